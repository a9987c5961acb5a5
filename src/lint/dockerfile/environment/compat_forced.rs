//! The base's forward-compat libcuda forced before the host's by LD_LIBRARY_PATH.

use crate::catalog::bases::BaseFamily;
use crate::catalog::compat::on_tegra;
use crate::catalog::forward::Eligible;
use crate::lint::dockerfile::wheels::{compat_library, drives, with_drivers};
use crate::lint::dockerfile::{Found, Lint, Set};
use crate::model::{DriverVersion, Runtime, Target};

/// What becomes of it on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    /// 804.
    NotEligible,
    /// 803.
    Older,
    /// Newer, and not made for the host's branch.
    NotForBranch,
    /// Newer, and of a driver that gave the GPU up.
    NotForGpu,
}

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let env = lint.image_env();
    let Some(set) = env.iter().find(|s| s.name == "LD_LIBRARY_PATH") else { return };
    let Some(last) = lint.reading.last else { return };
    // NVIDIA's framework images keep the library one folder deeper, where their start script finds it.
    let deep = lint.base(last).is_some_and(|b| b.family == BaseFamily::NvidiaNgc);
    let Some(folder) = compat(set, deep) else { return };
    let Some(library) = compat_library(lint, last) else { return };
    for fate in [Fate::NotEligible, Fate::Older, Fate::NotForBranch, Fate::NotForGpu] {
        let bad: Vec<&Target> = lint.targets.iter().filter(|t| judge(lint, t, &library) == fate).collect();
        if bad.is_empty() {
            continue;
        }
        let branch = library.branch();
        let who = with_drivers(&bad);
        let end = match fate {
            Fate::NotEligible => format!(
                "{who} is no GPU that it serves: \"forward compatibility was attempted on non supported HW\" (804)"
            ),
            Fate::Older => format!(
                "it is older than that of {who}: \"system has unsupported display driver / cuda driver \
                 combination\" (803)"
            ),
            Fate::NotForGpu => format!("R{branch} does not drive {who} any more"),
            Fate::NotForBranch | Fate::Fine => format!("it is not made for that of {who}"),
        };
        let mut found = Found::warning(
            set.value_span(),
            format!("{folder} on LD_LIBRARY_PATH puts the base's libcuda of R{branch} before the host's driver, and {end}"),
        )
        .label("before the host's driver")
        .help(
            "drop the folder: the container toolkit takes the library where it serves; or add it in the start script, after \
             a look at the driver",
        )
        .on(bad.iter().map(|t| t.name.clone()).collect());
        let first = bad.first().and_then(|t| lint.catalog.forward().eligible(t.class));
        found.because.extend(first.filter(|_| fate == Fate::NotEligible).map(|(_, because)| because));
        found.because.extend(lint.catalog.forward().package(&library).map(|p| p.because()));
        out.push(found);
    }
}

/// The folder of that kind that the variable names.
fn compat(set: &Set<'_>, deep: bool) -> Option<String> {
    let is = |entry: &str| {
        let mut parts = entry.trim_end_matches('/').split('/').filter(|p| !p.is_empty());
        let local = parts.next() == Some("usr") && parts.next() == Some("local");
        let cuda = parts.next().is_some_and(|p| p == "cuda" || p.starts_with("cuda-"));
        let compat = parts.next() == Some("compat");
        local && cuda && compat && parts.next() == if deep { Some("lib.real") } else { None }
    };
    let raw = set.pair.value.as_ref()?.text.trim_matches(['"', '\'']);
    let text = set.value.known().unwrap_or(raw);
    text.split(':').find(|e| is(e)).map(str::to_owned)
}

fn judge(lint: &Lint<'_>, target: &Target, library: &DriverVersion) -> Fate {
    let Some(host) = target.driver.as_ref().map(|d| &d.lowest) else { return Fate::Fine };
    if on_tegra(target) || matches!(target.runtime, Runtime::Wsl | Runtime::Tegra) {
        return Fate::Fine;
    }
    let forward = lint.catalog.forward();
    // The library's release is not known, only its branch: the same branch may be either.
    if host.branch() == library.branch() {
        return Fate::Fine;
    }
    if library.branch() < host.branch() {
        return Fate::Older;
    }
    match forward.eligible(target.class) {
        Some((Eligible::No, _)) => Fate::NotEligible,
        Some((Eligible::Own, _)) => Fate::Fine,
        _ if !drives(lint, library, target) => Fate::NotForGpu,
        _ if forward.serves(library, host, None) => Fate::Fine,
        _ => Fate::NotForBranch,
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "compat-forced";
    const BASE: &str = "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n";
    const ENV: &str = "ENV LD_LIBRARY_PATH=/usr/local/cuda/compat:$LD_LIBRARY_PATH\n";

    #[test]
    fn what_drivers_and_gpus_make_of_it() {
        let file = format!("{BASE}{ENV}");
        assert_eq!(blamed(RULE, &file, &["RTX 3060@525"]), ["/usr/local/cuda/compat:$LD_LIBRARY_PATH"]);
        assert!(lint(RULE, &file, &["RTX 3060@525"])[0].message.contains("804"));
        assert!(lint(RULE, &file, &["a100@575"])[0].message.contains("803"));
        assert!(lint(RULE, &file, &["a100@525", "a100@550", "a100"]).is_empty());
        let newer = format!("FROM nvidia/cuda:13.1.0-runtime-ubuntu22.04\n{ENV}");
        assert!(lint(RULE, &newer, &["v100@580"])[0].message.contains("does not drive"));
        let versioned =
            format!("{BASE}ENV V=12.4\nENV LD_LIBRARY_PATH /usr/local/cuda-${{V}}/compat:$LD_LIBRARY_PATH\n");
        assert_eq!(lint(RULE, &versioned, &["a100@575"]).len(), 1);
    }

    #[test]
    fn where_it_is_not_forced() {
        for quiet in [
            BASE.to_owned(),
            format!("{BASE}ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64\n"),
            // For the build only.
            format!("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS b\n{ENV}{BASE}"),
            format!("{BASE}{ENV}RUN make\nENV LD_LIBRARY_PATH=/usr/local/nvidia/lib\n"),
            // No such library.
            format!("FROM ubuntu\n{ENV}"),
        ] {
            assert!(blamed(RULE, &quiet, &["RTX 3060@525", "a100@575"]).is_empty(), "{quiet}");
        }
    }
}
