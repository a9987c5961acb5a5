//! Version numbers that are compared as numbers, never as text: `12.10 > 12.9`.

use std::fmt;
use std::str::FromStr;

/// Why a version, architecture or digest could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}")]
pub struct ParseVersionError {
    /// What was given.
    pub text: String,
    /// What was expected, as in "a CUDA version such as 12.8".
    pub what: &'static str,
}

impl ParseVersionError {
    pub(crate) fn new(text: &str, what: &'static str) -> Self {
        Self { text: text.to_owned(), what }
    }
}

/// Serialises a type through its `Display` and `FromStr`, and describes it as a string in the schema.
macro_rules! serde_as_text {
    ($type:ty, $name:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    };
}
pub(crate) use serde_as_text;

fn pair(text: &str) -> Option<(u16, u16)> {
    let (major, rest) = text.split_once('.').unwrap_or((text, "0"));
    let minor = rest.split('.').next()?;
    if rest.split('.').skip(1).any(|p| p.parse::<u32>().is_err()) {
        return None;
    }
    Some((number(major)?, number(minor)?))
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// A CUDA toolkit or driver-API version, `major.minor`; a patch level is accepted and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVersion {
    pub major: u16,
    pub minor: u16,
}

impl CudaVersion {
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl FromStr for CudaVersion {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) =
            pair(text).ok_or_else(|| ParseVersionError::new(text, "a CUDA version such as 12.8"))?;
        Ok(Self { major, minor })
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
serde_as_text!(CudaVersion, "CudaVersion");

/// A PTX ISA version: the `.version` line of PTX, which the driver's JIT must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PtxIsa {
    pub major: u16,
    pub minor: u16,
}

impl PtxIsa {
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl FromStr for PtxIsa {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) =
            pair(text).ok_or_else(|| ParseVersionError::new(text, "a PTX ISA version such as 8.7"))?;
        Ok(Self { major, minor })
    }
}

impl fmt::Display for PtxIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
serde_as_text!(PtxIsa, "PtxIsa");

/// A driver version. NVIDIA's is a branch (`535`) or a full version (`535.183.01`), and is what a text is taken for;
/// AMD's has a number below 100 and a minor one ([`Self::of_amd`]). Missing parts compare as 0, and leading zeros are
/// kept for display only.
#[derive(Debug, Clone)]
pub struct DriverVersion {
    parts: [u32; 3],
    text: String,
}

impl DriverVersion {
    /// The lowest version of a branch.
    pub fn branch_floor(branch: u32) -> Self {
        Self { parts: [branch, 0, 0], text: branch.to_string() }
    }

    /// One of AMD's: a release of ROCm's driver up to `6.4`, of amdgpu since (`30.30.3`), or what the kernel's module calls
    /// itself (`6.10.5`).
    pub fn of_amd(text: &str) -> Result<Self, ParseVersionError> {
        let err = || ParseVersionError::new(text, "a driver version of AMD such as 6.3, 30.30.3 or 6.10.5");
        let parts = numbers(text).filter(|parts| parts[0] < 100 && text.contains('.')).ok_or_else(err)?;
        Ok(Self { parts, text: text.to_owned() })
    }

    /// The driver branch, `535` in `535.183.01`.
    pub fn branch(&self) -> u32 {
        self.parts[0]
    }

    /// Whether only a branch was named.
    pub fn is_branch(&self) -> bool {
        !self.text.contains('.')
    }
}

impl PartialEq for DriverVersion {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}
impl Eq for DriverVersion {}
impl PartialOrd for DriverVersion {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for DriverVersion {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts.cmp(&other.parts)
    }
}

impl FromStr for DriverVersion {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParseVersionError::new(text, "a driver version such as 535 or 535.183.01");
        let bare = text.strip_prefix(['R', 'r']).unwrap_or(text);
        let parts = numbers(bare).filter(|parts| parts[0] >= 100).ok_or_else(err)?;
        Ok(Self { parts, text: bare.to_owned() })
    }
}

/// One to three numbers with points between.
fn numbers(text: &str) -> Option<[u32; 3]> {
    let mut parts = [0u32; 3];
    for (i, part) in text.split('.').enumerate() {
        *parts.get_mut(i)? = number(part)?;
    }
    Some(parts)
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl serde::Serialize for DriverVersion {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for DriverVersion {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
        text.parse().or_else(|e| Self::of_amd(&text).map_err(|_| serde::de::Error::custom(e)))
    }
}

impl schemars::JsonSchema for DriverVersion {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DriverVersion".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// The first two numbers of a version as it is written: `2.8` of `2.8.0`.
pub fn first_two(version: &str) -> &str {
    version.match_indices('.').nth(1).map_or(version, |(at, _)| &version[..at])
}

/// A release of ROCm, `6.4` or `6.4.1`. What builds append (`6.4.43482-0f2d60242`, `7.13.0a2`) is dropped behind the
/// numbers; without a patch level it is older than any with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RocmVersion {
    pub major: u16,
    pub minor: u16,
    pub patch: Option<u32>,
}

impl RocmVersion {
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor, patch: None }
    }

    /// The release without its patch level: `6.4`.
    pub fn short(self) -> Self {
        Self { patch: None, ..self }
    }
}

impl FromStr for RocmVersion {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParseVersionError::new(text, "a ROCm version such as 6.4");
        let plain = &text[..text.find(['-', '+', '~', ' ']).unwrap_or(text.len())];
        let mut parts = plain.splitn(4, '.');
        let mut next = |end: bool| {
            let part = parts.next()?;
            // A pre-release's letters stand behind the last number.
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let is_whole = digits == part.len() || (end && digits > 0);
            is_whole.then(|| part[..digits].to_owned())
        };
        let (major, minor) = (next(false).ok_or_else(err)?, next(true).ok_or_else(err)?);
        let patch = next(true).map(|p| number(&p).ok_or_else(err)).transpose()?;
        Ok(Self { major: number(&major).ok_or_else(err)?, minor: number(&minor).ok_or_else(err)?, patch })
    }
}

impl fmt::Display for RocmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        self.patch.map_or(Ok(()), |patch| write!(f, ".{patch}"))
    }
}
serde_as_text!(RocmVersion, "RocmVersion");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rocm_releases_are_read_as_they_are_written() {
        let v = |t: &str| t.parse::<RocmVersion>().map(|v| v.to_string()).ok();
        for (text, expected) in [
            ("6.4", Some("6.4")),
            ("6.4.1", Some("6.4.1")),
            ("6.4.43482-0f2d60242", Some("6.4.43482")),
            ("7.13.0a20260313", Some("7.13.0")),
            ("7.14.1-2", Some("7.14.1")),
            ("10.0", Some("10.0")),
            ("6.4.1.60401", Some("6.4.1")),
            ("6", None),
            ("", None),
            ("a.b", None),
            ("6.x", None),
            ("6a.4", None),
            ("99999.1", None),
            ("6.4.99999999999", None),
        ] {
            assert_eq!(v(text).as_deref(), expected, "{text}");
        }
        let order = |t: &str| t.parse::<RocmVersion>().unwrap();
        assert!(order("6.10") > order("6.9") && order("10.0") > order("7.14") && order("6.4.1") > order("6.4"));
        assert_eq!(order("6.4.1").short(), RocmVersion::new(6, 4));
    }

    #[test]
    fn the_first_two_numbers_of_a_version() {
        for (version, expected) in [("2.8.0", "2.8"), ("2.8", "2.8"), ("2", "2"), ("2.8.0.post1", "2.8"), ("", "")]
        {
            assert_eq!(first_two(version), expected);
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        let v = |t: &str| t.parse::<CudaVersion>().unwrap();
        assert!(v("12.10") > v("12.9"));
        assert_eq!(v("12.8.1"), v("12.8"));
        assert_eq!(v("13"), v("13.0"));
        assert!("12.x".parse::<CudaVersion>().is_err());
        assert!("".parse::<CudaVersion>().is_err());
        assert!("-1.2".parse::<PtxIsa>().is_err());
    }

    #[test]
    fn drivers_compare_as_numbers_and_keep_their_text() {
        let v = |t: &str| t.parse::<DriverVersion>().unwrap();
        assert!(v("550.54.14") > v("550.54.9"));
        assert!(v("535.183.01") > v("535"));
        assert_eq!(v("535.183.01").to_string(), "535.183.01");
        assert_eq!(v("R535").branch(), 535);
        assert!("12.2".parse::<DriverVersion>().is_err());
        assert!("535.1.2.3".parse::<DriverVersion>().is_err());
        let amd = |t: &str| DriverVersion::of_amd(t).ok().map(|v| v.to_string());
        for good in ["6.3", "30.30.3", "6.10.5"] {
            assert_eq!(amd(good).as_deref(), Some(good));
            assert!(good.parse::<DriverVersion>().is_err(), "NVIDIA has none of that number");
            let json = format!("\"{good}\"");
            assert_eq!(serde_json::from_str::<DriverVersion>(&json).unwrap().to_string(), good);
        }
        assert_eq!([amd("535.1"), amd("6"), amd("6.x"), amd(""), amd("1.2.3.4")], [const { None }; 5]);
    }

    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pairs_come_back_and_are_ordered_as_numbers(a in any::<(u16, u16)>(), b in any::<(u16, u16)>()) {
            let (x, y) = (CudaVersion::new(a.0, a.1), CudaVersion::new(b.0, b.1));
            prop_assert_eq!(x.to_string().parse::<CudaVersion>(), Ok(x));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(format!("{x}.7").parse::<CudaVersion>(), Ok(x), "a patch level is dropped");
            let (x, y) = (PtxIsa::new(a.0, a.1), PtxIsa::new(b.0, b.1));
            prop_assert_eq!(x.to_string().parse::<PtxIsa>(), Ok(x));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        }

        #[test]
        fn drivers_come_back_and_are_ordered_as_numbers(
            a in (100u32..2000, 0u32..300, 0u32..100),
            b in (100u32..2000, 0u32..300, 0u32..100),
        ) {
            let text = |(branch, minor, patch): (u32, u32, u32)| format!("{branch}.{minor}.{patch:02}");
            let (x, y): (DriverVersion, DriverVersion) = (text(a).parse().unwrap(), text(b).parse().unwrap());
            prop_assert_eq!(x.to_string(), text(a));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x == y, a == b);
            prop_assert_eq!(x.branch(), a.0);
            prop_assert!(DriverVersion::branch_floor(a.0) <= x);
            prop_assert!(DriverVersion::branch_floor(a.0 + 1) > x);
            let short: DriverVersion = format!("{}.{}", a.0, a.1).parse().unwrap();
            prop_assert_eq!(short.cmp(&x), 0.cmp(&a.2), "what is missing is 0");
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in any::<String>()) {
            for text in [text.clone(), format!("12.{text}"), format!("535.{text}")] {
                if let Ok(version) = text.parse::<CudaVersion>() {
                    prop_assert_eq!(version.to_string().parse(), Ok(version));
                }
                if let Ok(version) = text.parse::<DriverVersion>() {
                    prop_assert_eq!(version.to_string().parse(), Ok(version));
                }
            }
        }
    }
}
