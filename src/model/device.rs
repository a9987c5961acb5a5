//! What a GPU is to the code that runs on it.

use std::fmt;
use std::str::FromStr;

use super::version::{ParseVersionError, serde_as_text};
use super::{Arch, Capability, GfxArch, GfxMode, GfxProcessor, IntelIp, Maker, SmArch};

/// A GPU's architecture. As text `9.0`, `gfx90a`, `gfx90a:xnack+`, `12.60.7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    Nvidia(Capability),
    /// A processor, with the features whose mode is known.
    Amd(GfxArch),
    Intel(IntelIp),
}

impl Device {
    pub fn maker(self) -> Maker {
        match self {
            Self::Nvidia(_) => Maker::Nvidia,
            Self::Amd(_) => Maker::Amd,
            Self::Intel(_) => Maker::Intel,
        }
    }

    /// NVIDIA's compute capability.
    pub fn capability(self) -> Option<Capability> {
        match self {
            Self::Nvidia(capability) => Some(capability),
            Self::Amd(_) | Self::Intel(_) => None,
        }
    }

    /// AMD's processor with its features.
    pub fn gfx(self) -> Option<GfxArch> {
        match self {
            Self::Amd(arch) => Some(arch),
            Self::Nvidia(_) | Self::Intel(_) => None,
        }
    }

    /// What code is made for that is made for this GPU: `sm_90`, `gfx90a`, `intel_gpu_12_60_7`.
    pub fn arch(self) -> Arch {
        match self {
            Self::Nvidia(capability) => Arch::Sm(SmArch::from(capability)),
            Self::Amd(arch) => Arch::Gfx(arch),
            Self::Intel(ip) => Arch::Intel(ip),
        }
    }
}

impl From<Capability> for Device {
    fn from(capability: Capability) -> Self {
        Self::Nvidia(capability)
    }
}

impl From<GfxProcessor> for Device {
    fn from(processor: GfxProcessor) -> Self {
        Self::Amd(GfxArch { processor, sramecc: GfxMode::Any, xnack: GfxMode::Any })
    }
}

impl From<IntelIp> for Device {
    fn from(ip: IntelIp) -> Self {
        Self::Intel(ip)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nvidia(capability) => capability.fmt(f),
            Self::Amd(arch) => arch.fmt(f),
            Self::Intel(ip) => f.write_str(&ip.dotted()),
        }
    }
}

impl FromStr for Device {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("gfx") {
            let arch: GfxArch = text.parse()?;
            return match arch.processor {
                GfxProcessor::Exact { .. } => Ok(Self::Amd(arch)),
                GfxProcessor::Generic { .. } => Err(ParseVersionError::new(text, "a processor such as gfx90a")),
            };
        }
        match text.matches('.').count() {
            2 => text.parse().map(Self::Intel),
            _ => text.parse().map(Self::Nvidia),
        }
    }
}
serde_as_text!(Device, "Device");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_a_text() {
        for text in ["9.0", "12.1", "gfx942", "gfx90a:xnack+", "12.60.7"] {
            assert_eq!(text.parse::<Device>().unwrap().to_string(), text);
        }
        for text in ["sm_90", "gfx9-generic", "12", "12.60.7.1"] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
        let arch = |text: &str| text.parse::<Device>().unwrap().arch().to_string();
        assert_eq!([arch("8.9"), arch("gfx942"), arch("20.1.0")], ["sm_89", "gfx942", "intel_gpu_20_1_0"]);
    }
}
