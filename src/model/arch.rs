//! What device code was made for: CUDA architectures (`sm_90`, `sm_90a`, `sm_100f`), AMD's target ids, Intel's IP
//! versions, and code for all GPUs of a maker. And compute capabilities: 9.0.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::version::{ParseVersionError, serde_as_text};
use super::{GfxArch, IntelIp};

/// A compute capability, a property of a GPU: 8.9, 12.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    pub major: u16,
    pub minor: u16,
}

impl Capability {
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Capability {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParseVersionError::new(text, "a compute capability such as 8.9");
        let (major, minor) = text.split_once('.').ok_or_else(err)?;
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if !digits(major) || !digits(minor) || minor.len() != 1 || major.len() > 2 {
            return Err(err());
        }
        Ok(Self { major: major.parse().map_err(|_| err())?, minor: minor.parse().map_err(|_| err())? })
    }
}
serde_as_text!(Capability, "Capability");

/// What the suffix of an architecture promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// No suffix: runs on the same major, equal or higher minor.
    Plain,
    /// `a`, architecture-specific: this capability alone.
    Arch,
    /// `f`, family-specific: this family, equal or higher minor.
    Family,
}

/// A code target as a fatbin entry, a cubin or a `.target` line names it. The number is kept as it stands in
/// the file (a damaged header can hold any value); [`SmArch::capability`] is its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SmArch {
    pub number: u32,
    pub feature: Feature,
}

impl SmArch {
    pub const fn new(number: u32, feature: Feature) -> Self {
        Self { number, feature }
    }

    /// The compute capability this code was made for; `None` where the number names none. 101 was renamed 110
    /// in CUDA 13.0 (Jetson Thor), so both mean 11.0.
    pub fn capability(self) -> Option<Capability> {
        match self.number {
            101 => Some(Capability::new(11, 0)),
            n @ 10..=999 => Some(Capability::new((n / 10) as u16, (n % 10) as u16)),
            _ => None,
        }
    }

    /// The suffix as text: "", "a" or "f".
    pub fn suffix(self) -> &'static str {
        match self.feature {
            Feature::Plain => "",
            Feature::Arch => "a",
            Feature::Family => "f",
        }
    }
}

impl From<Capability> for SmArch {
    fn from(cc: Capability) -> Self {
        Self::new(u32::from(cc.major) * 10 + u32::from(cc.minor), Feature::Plain)
    }
}

impl fmt::Display for SmArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.number, self.suffix())
    }
}

impl FromStr for SmArch {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParseVersionError::new(text, "an architecture such as sm_90a");
        let body = ["sm_", "compute_", "lto_"].iter().find_map(|p| text.strip_prefix(p)).unwrap_or(text);
        let (digits, feature) = match body.strip_suffix('a') {
            Some(d) => (d, Feature::Arch),
            None => match body.strip_suffix('f') {
                Some(d) => (d, Feature::Family),
                None => (body, Feature::Plain),
            },
        };
        if digits.is_empty() || digits.len() > 10 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(err());
        }
        Ok(Self { number: digits.parse().map_err(|_| err())?, feature })
    }
}
serde_as_text!(SmArch, "SmArch");

/// What device code was made for, whoever makes the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    Sm(SmArch),
    Gfx(GfxArch),
    /// AMD's SPIR-V: compiled for whatever AMD GPU there is.
    AmdSpirv,
    Intel(IntelIp),
    /// SPIR-V of SYCL and OpenCL: compiled for whatever Intel GPU there is.
    Spir64,
    /// Nothing that is understood.
    Unknown,
}

impl Arch {
    /// The CUDA architecture, if it is one.
    pub fn sm(self) -> Option<SmArch> {
        match self {
            Self::Sm(arch) => Some(arch),
            Self::Gfx(_) | Self::AmdSpirv | Self::Intel(_) | Self::Spir64 | Self::Unknown => None,
        }
    }

    /// The AMD target id, if it is one.
    pub fn gfx(self) -> Option<GfxArch> {
        match self {
            Self::Gfx(arch) => Some(arch),
            Self::Sm(_) | Self::AmdSpirv | Self::Intel(_) | Self::Spir64 | Self::Unknown => None,
        }
    }

    /// Whose GPUs it is for; `None` where it is not understood.
    pub fn maker(self) -> Option<Maker> {
        match self {
            Self::Sm(arch) => arch.capability().map(|_| Maker::Nvidia),
            Self::Gfx(_) | Self::AmdSpirv => Some(Maker::Amd),
            Self::Intel(_) | Self::Spir64 => Some(Maker::Intel),
            Self::Unknown => None,
        }
    }
}

impl From<SmArch> for Arch {
    fn from(arch: SmArch) -> Self {
        Self::Sm(arch)
    }
}

impl From<GfxArch> for Arch {
    fn from(arch: GfxArch) -> Self {
        Self::Gfx(arch)
    }
}

impl From<IntelIp> for Arch {
    fn from(ip: IntelIp) -> Self {
        Self::Intel(ip)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sm(arch) => arch.fmt(f),
            Self::Gfx(arch) => arch.fmt(f),
            Self::AmdSpirv => f.write_str("amdgcnspirv"),
            Self::Intel(ip) => ip.fmt(f),
            Self::Spir64 => f.write_str("spir64"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl FromStr for Arch {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "amdgcnspirv" => Self::AmdSpirv,
            "spir64" => Self::Spir64,
            "unknown" => Self::Unknown,
            _ if text.starts_with("gfx") => Self::Gfx(text.parse()?),
            _ if text.starts_with("intel_gpu_") => Self::Intel(text.parse()?),
            _ => Self::Sm(text.parse()?),
        })
    }
}
serde_as_text!(Arch, "Arch");

/// A maker of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Maker {
    Nvidia,
    Amd,
    Intel,
}

impl Maker {
    pub const ALL: [Self; 3] = [Self::Nvidia, Self::Amd, Self::Intel];

    /// "NVIDIA".
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA",
            Self::Amd => "AMD",
            Self::Intel => "Intel",
        }
    }
}

impl fmt::Display for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_part_of_an_architecture() {
        let a = |t: &str| t.parse::<SmArch>().unwrap();
        assert_ne!(a("sm_90a"), a("sm_90"));
        assert_eq!(a("compute_100f"), SmArch::new(100, Feature::Family));
        assert_eq!(a("sm_90a").to_string(), "sm_90a");
        assert!("sm_".parse::<SmArch>().is_err());
        assert!("sm_9x".parse::<SmArch>().is_err());
    }

    #[test]
    fn capabilities() {
        assert_eq!(SmArch::new(101, Feature::Arch).capability(), Some(Capability::new(11, 0)));
        assert_eq!(SmArch::new(121, Feature::Plain).capability(), Some(Capability::new(12, 1)));
        assert_eq!(SmArch::new(0, Feature::Plain).capability(), None);
        assert_eq!(SmArch::new(4_294_967_280, Feature::Plain).capability(), None);
        assert!("12.0".parse::<Capability>().unwrap() > "9.0".parse().unwrap());
        assert!("8.10".parse::<Capability>().is_err());
    }

    #[test]
    fn code_of_all_makers_has_a_text() {
        for text in
            ["sm_90a", "gfx90a:xnack+", "gfx11-generic", "amdgcnspirv", "intel_gpu_12_60_7", "spir64", "unknown"]
        {
            assert_eq!(text.parse::<Arch>().unwrap().to_string(), text);
        }
        assert_eq!(Arch::Sm(SmArch::new(0, Feature::Plain)).maker(), None);
        assert_eq!("gfx942".parse::<Arch>().unwrap().maker(), Some(Maker::Amd));
    }
}
