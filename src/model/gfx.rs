//! AMD's GPU targets: processors (`gfx90a`), generic targets (`gfx9-4-generic`), and target ids with features
//! (`gfx90a:sramecc+:xnack-`). Grammar: LLVM's AMDGPUUsage, "Target ID"; names are hexadecimal in their last two digits.

use std::fmt;
use std::str::FromStr;

use super::version::{ParseVersionError, serde_as_text};

/// What code was compiled for: one processor, or all of a generic target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GfxProcessor {
    /// `gfx90a` is 9, 0, 10; `gfx1030` is 10, 3, 0.
    Exact { major: u8, minor: u8, stepping: u8 },
    /// `gfx11-generic`, `gfx10-3-generic`.
    Generic { major: u8, minor: Option<u8> },
}

impl GfxProcessor {
    pub fn is_generic(self) -> bool {
        matches!(self, Self::Generic { .. })
    }
}

impl fmt::Display for GfxProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact { major, minor, stepping } => write!(f, "gfx{major}{minor:x}{stepping:x}"),
            Self::Generic { major, minor: None } => write!(f, "gfx{major}-generic"),
            Self::Generic { major, minor: Some(minor) } => write!(f, "gfx{major}-{minor}-generic"),
        }
    }
}

impl FromStr for GfxProcessor {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        processor(text).ok_or_else(|| ParseVersionError::new(text, "a processor such as gfx90a"))
    }
}
serde_as_text!(GfxProcessor, "GfxProcessor");

fn processor(text: &str) -> Option<GfxProcessor> {
    let body = text.strip_prefix("gfx")?;
    if let Some(family) = body.strip_suffix("-generic") {
        let (major, minor) = match family.split_once('-') {
            Some((major, minor)) => (major, Some(small(minor)?)),
            None => (family, None),
        };
        return Some(GfxProcessor::Generic { major: small(major)?, minor });
    }
    let cut = body.len().checked_sub(2)?;
    let (major, rest) = (body.get(..cut)?, body.get(cut..)?);
    let lower = rest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let mut digits = rest.chars().filter_map(|c| c.to_digit(16));
    let (Some(minor), Some(stepping), true) = (digits.next(), digits.next(), lower) else { return None };
    Some(GfxProcessor::Exact { major: small(major)?, minor: minor as u8, stepping: stepping as u8 })
}

/// A number of one or two digits, without a leading zero.
fn small(text: &str) -> Option<u8> {
    let plain = matches!(text.len(), 1 | 2) && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    plain.then(|| text.parse().ok()).flatten()
}

/// What code asks of a feature that a GPU has on or off as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum GfxMode {
    /// Either will do, or the processor has no such feature.
    #[default]
    Any,
    Off,
    On,
}

impl GfxMode {
    /// Whether code that asks for this loads where the feature is so.
    pub fn takes(self, on: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Off => !on,
            Self::On => on,
        }
    }

    fn sign(self) -> Option<char> {
        match self {
            Self::Any => None,
            Self::Off => Some('-'),
            Self::On => Some('+'),
        }
    }
}

/// A target id: what a code object was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GfxArch {
    pub processor: GfxProcessor,
    pub sramecc: GfxMode,
    pub xnack: GfxMode,
}

impl From<GfxProcessor> for GfxArch {
    fn from(processor: GfxProcessor) -> Self {
        Self { processor, sramecc: GfxMode::Any, xnack: GfxMode::Any }
    }
}

impl fmt::Display for GfxArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.processor)?;
        // In the alphabet's order, as LLVM writes them.
        if let Some(sign) = self.sramecc.sign() {
            write!(f, ":sramecc{sign}")?;
        }
        if let Some(sign) = self.xnack.sign() {
            write!(f, ":xnack{sign}")?;
        }
        Ok(())
    }
}

impl FromStr for GfxArch {
    type Err = ParseVersionError;
    /// Features in any order, each once.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParseVersionError::new(text, "a target id such as gfx90a:xnack-");
        let mut parts = text.split(':');
        let mut arch = Self::from(parts.next().and_then(processor).ok_or_else(err)?);
        for part in parts {
            let (name, mode) = match (part.strip_suffix('+'), part.strip_suffix('-')) {
                (Some(name), _) => (name, GfxMode::On),
                (_, Some(name)) => (name, GfxMode::Off),
                _ => return Err(err()),
            };
            let feature = match name {
                "sramecc" => &mut arch.sramecc,
                "xnack" => &mut arch.xnack,
                _ => return Err(err()),
            };
            if *feature != GfxMode::Any {
                return Err(err());
            }
            *feature = mode;
        }
        Ok(arch)
    }
}
serde_as_text!(GfxArch, "GfxArch");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_ids() {
        for text in [
            "gfx600",
            "gfx90a",
            "gfx90c",
            "gfx1030",
            "gfx1201",
            "gfx9-generic",
            "gfx10-1-generic",
            "gfx9-4-generic",
            "gfx12-5-generic",
            "gfx906:sramecc+",
            "gfx90a:sramecc-:xnack+",
        ] {
            assert_eq!(text.parse::<GfxArch>().unwrap().to_string(), text);
        }
        let arch: GfxArch = "gfx90a:xnack-:sramecc+".parse().unwrap();
        assert_eq!(arch.to_string(), "gfx90a:sramecc+:xnack-");
        let exact = GfxProcessor::Exact { major: 9, minor: 0, stepping: 10 };
        assert_eq!(arch.processor, exact);
        for text in [
            "",
            "gfx",
            "gfx9",
            "gfx90A",
            "gfx90g",
            "gfx0900",
            "gfx-generic",
            "gfx90a:",
            "gfx90a:xnack",
            "gfx90a:x+",
        ] {
            assert!(text.parse::<GfxArch>().is_err(), "{text}");
        }
        assert!("gfx90a:xnack+:xnack-".parse::<GfxArch>().is_err());
        assert!("gfx10-3-1-generic".parse::<GfxArch>().is_err());
    }

    #[test]
    fn processors_are_ordered_as_numbers() {
        let p = |t: &str| t.parse::<GfxProcessor>().unwrap();
        assert!(p("gfx90a") < p("gfx1030") && p("gfx908") < p("gfx90a") && p("gfx1201") < p("gfx9-generic"));
    }
}
