//! Which tags of wheels an interpreter takes, in pip's order.

use std::fmt;

use super::wheel_name::WheelName;
use crate::model::{Libc, Platform};

/// A CPython.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Python {
    pub major: u8,
    pub minor: u8,
    /// Built without the global lock: `cp313t`.
    pub threaded: bool,
}

impl Python {
    /// `cp312`, `cp313t`, `312-x86_64-linux-gnu`, `3.12`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("cp").unwrap_or(text);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, rest) = text.split_at(end);
        let threaded = rest.starts_with('t');
        let (major, minor) = match digits.split_once('.') {
            Some((major, minor)) => (major, minor.split('.').next().unwrap_or_default()),
            None => digits.split_at_checked(1)?,
        };
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()?, threaded })
    }

    /// `cp312`, `cp313t`.
    pub fn tag(&self) -> String {
        format!("cp{}{}{}", self.major, self.minor, if self.threaded { "t" } else { "" })
    }
}

impl fmt::Display for Python {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}{}", self.major, self.minor, if self.threaded { "t" } else { "" })
    }
}

/// How well a wheel fits an interpreter, best last; `None`: not.
pub fn python_fit(wheel: &WheelName, python: Option<Python>) -> Option<(u8, u16)> {
    let pairs = || wheel.pythons.iter().flat_map(|p| wheel.abis.iter().map(move |a| (p.as_str(), a.as_str())));
    pairs().filter_map(|(p, abi)| pair_fit(p, abi, python)).max()
}

fn pair_fit(tag: &str, abi: &str, python: Option<Python>) -> Option<(u8, u16)> {
    let generic = tag.strip_prefix("py");
    let wheel = Python::parse(generic.unwrap_or(tag)).map(|p| (p.major, p.minor));
    let major = generic.and_then(|v| v.parse::<u8>().ok()).filter(|v| *v < 10);
    let Some(python) = python else {
        // Any will do: the newest.
        return match (major, wheel) {
            (Some(3), _) => Some((1, 0)),
            (None, Some((3, minor))) => Some((if generic.is_some() { 1 } else { 2 }, u16::from(minor))),
            _ => None,
        };
    };
    let own = (python.major, python.minor);
    let not_newer = |v: (u8, u8)| v.0 == own.0 && v.1 <= own.1;
    match (generic.is_some(), abi) {
        // PEP 425: generic wheels have no ABI.
        (true, "none") => match (major, wheel) {
            (Some(major), _) => (major == own.0).then_some((1, 0)),
            (None, Some(version)) => not_newer(version).then_some((1, u16::from(version.1) + 1)),
            _ => None,
        },
        (true, _) => None,
        (false, _) if !tag.starts_with("cp") => None,
        (false, "none") => (wheel == Some(own)).then_some((2, 0)),
        (false, "abi3") => {
            // The stable ABI is not that of interpreters without the lock.
            wheel
                .filter(|v| not_newer(*v) && !python.threaded)
                .map(|v| if v == own { (4, 0) } else { (3, u16::from(v.1)) })
        }
        (false, abi) => {
            // Up to 3.7 the ABI tag has an m.
            let fits = abi == python.tag() || (own < (3, 8) && abi == format!("{}m", python.tag()));
            (fits && wheel == Some(own)).then_some((5, 0))
        }
    }
}

/// Whether a platform tag is of an operating system and an architecture.
pub fn machine_fits(tag: &str, platform: &Platform) -> bool {
    let Some(machine) = machine(platform) else { return tag == "any" };
    tag == "any" || (tag.contains("linux") && tag.strip_suffix(machine).is_some_and(|t| t.ends_with('_')))
}

/// An architecture as platform tags call it.
pub fn machine(platform: &Platform) -> Option<&'static str> {
    if platform.os != "linux" {
        return None;
    }
    match platform.architecture.as_str() {
        "amd64" => Some("x86_64"),
        "arm64" => Some("aarch64"),
        "386" => Some("i686"),
        "arm" => Some("armv7l"),
        "ppc64le" => Some("ppc64le"),
        "s390x" => Some("s390x"),
        "riscv64" => Some("riscv64"),
        "loong64" => Some("loongarch64"),
        _ => None,
    }
}

/// What a platform tag asks of the C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asks {
    Nothing,
    /// `linux_x86_64`: whatever it was built with.
    Untold,
    Glibc(u16, u16),
    Musl(u16, u16),
}

pub fn asks(tag: &str) -> Asks {
    let version = |rest: &str| {
        let mut parts = rest.split('_');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    if let Some((major, minor)) = tag.strip_prefix("manylinux_").and_then(version) {
        return Asks::Glibc(major, minor);
    }
    if let Some((major, minor)) = tag.strip_prefix("musllinux_").and_then(version) {
        return Asks::Musl(major, minor);
    }
    match tag.split('_').next() {
        // PEP 600 gives what the older names mean.
        Some("manylinux2014") => Asks::Glibc(2, 17),
        Some("manylinux2010") => Asks::Glibc(2, 12),
        Some("manylinux1") => Asks::Glibc(2, 5),
        Some("linux") => Asks::Untold,
        _ => Asks::Nothing,
    }
}

/// Whether a C library gives what a tag asks. Where its version is not known, its kind decides.
pub fn libc_gives(libc: Option<&Libc>, asks: Asks) -> bool {
    match (asks, libc) {
        (Asks::Nothing | Asks::Untold, _) => true,
        (Asks::Glibc(..), None) => true,
        (Asks::Musl(..), None) => false,
        (Asks::Glibc(major, minor), Some(Libc::Glibc { version, .. })) => {
            let has = version.as_deref().and_then(|v| {
                let (major, rest) = v.split_once('.')?;
                Some((major.parse::<u16>().ok()?, rest.split('.').next()?.parse::<u16>().ok()?))
            });
            has.is_none_or(|has| has >= (major, minor))
        }
        (Asks::Musl(..), Some(Libc::Musl { .. })) => true,
        (Asks::Glibc(..), Some(Libc::Musl { .. })) | (Asks::Musl(..), Some(Libc::Glibc { .. })) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wheel(tags: &str) -> WheelName {
        WheelName::parse(&format!("a-1-{tags}.whl")).unwrap()
    }

    #[test]
    fn interpreters_take_their_own_then_stable_then_generic() {
        let p = Python::parse("3.12");
        let fit = |tags: &str| python_fit(&wheel(tags), p);
        let order = ["cp312-cp312-any", "cp312-abi3-any", "cp39-abi3-any", "cp38-abi3-any", "cp312-none-any"];
        let order = [&order[..], &["py312-none-any", "py310-none-any", "py2.py3-none-any"]].concat();
        let fits: Vec<_> = order.iter().map(|t| fit(t)).collect();
        assert!(fits.iter().all(Option::is_some), "{fits:?}");
        assert!(fits.windows(2).all(|w| w[0] > w[1]), "{fits:?}");
        for no in ["cp311-cp311-any", "cp313-abi3-any", "cp313-none-any", "py2-none-any", "py313-none-any"] {
            assert_eq!(fit(no), None, "{no}");
        }
        for no in ["pp312-pypy312_pp73-any", "cp312-cp312t-any", "py3-cp312-any"] {
            assert_eq!(fit(no), None, "{no}");
        }
        let free = Python::parse("cp313t");
        assert_eq!(free, Some(Python { major: 3, minor: 13, threaded: true }));
        assert!(python_fit(&wheel("cp313-cp313t-any"), free).is_some());
        assert!(python_fit(&wheel("cp313-cp313-any"), free).is_none());
        assert!(python_fit(&wheel("cp38-abi3-any"), free).is_none());
        assert!(python_fit(&wheel("cp36-cp36m-any"), Python::parse("3.6")).is_some());
        // Of an interpreter that is not known, the newest.
        assert!(python_fit(&wheel("cp313-cp313-any"), None) > python_fit(&wheel("cp312-cp312-any"), None));
        assert_eq!(python_fit(&wheel("cp27-cp27mu-any"), None), None);
    }

    #[test]
    fn platforms_are_told_by_machine_and_libc() {
        let (x86, arm) = (Platform::linux("amd64"), Platform::linux("arm64"));
        for (tag, on_x86, on_arm) in [
            ("manylinux_2_28_x86_64", true, false),
            ("manylinux2014_aarch64", false, true),
            ("linux_x86_64", true, false),
            ("musllinux_1_2_x86_64", true, false),
            ("any", true, true),
            ("win_amd64", false, false),
            ("macosx_11_0_arm64", false, false),
            ("macosx_10_9_x86_64", false, false),
        ] {
            assert_eq!((machine_fits(tag, &x86), machine_fits(tag, &arm)), (on_x86, on_arm), "{tag}");
        }
        let glibc = |v: &str| Some(Libc::Glibc { path: Default::default(), version: Some(v.into()) });
        let musl = Some(Libc::Musl { path: Default::default() });
        let gives = |l: &Option<Libc>, tag: &str| libc_gives(l.as_ref(), asks(tag));
        assert!(gives(&glibc("2.36"), "manylinux_2_28_x86_64") && !gives(&glibc("2.17"), "manylinux_2_28_x86_64"));
        assert!(gives(&glibc("2.17"), "manylinux2014_x86_64") && gives(&glibc("2.5"), "manylinux1_x86_64"));
        assert!(!gives(&glibc("2.36"), "musllinux_1_1_x86_64") && gives(&musl, "musllinux_1_1_x86_64"));
        assert!(!gives(&musl, "manylinux1_x86_64") && gives(&musl, "linux_x86_64"));
        assert!(gives(&None, "manylinux_2_39_x86_64") && !gives(&None, "musllinux_1_1_x86_64"));
    }
}
