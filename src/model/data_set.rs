//! Device code that lies in data files, whose names alone say which GPUs it is for.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::version::{ParseVersionError, serde_as_text};
use super::{GfxArch, GfxMode, GfxProcessor, ImagePath};

/// The GPUs that a data file is for: those of one target id (`gfx90a:xnack-`), or of all that begin alike (`gfx11xx`,
/// `gfx110x`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GfxGroup {
    One(GfxArch),
    /// `gfx11xx` has no minor.
    Family {
        major: u8,
        minor: Option<u8>,
    },
}

impl GfxGroup {
    /// Whether data of this group is what a GPU takes, as far as its modes are known. A library looks for its data by
    /// the processor's own name: there is none for a generic target.
    pub fn takes(self, gpu: GfxArch) -> bool {
        match self {
            Self::One(arch) => {
                let alike =
                    |data: GfxMode, gpu: GfxMode| data == GfxMode::Any || gpu == GfxMode::Any || data == gpu;
                arch.processor == gpu.processor && alike(arch.xnack, gpu.xnack) && alike(arch.sramecc, gpu.sramecc)
            }
            Self::Family { major, minor } => match gpu.processor {
                GfxProcessor::Exact { major: of, minor: is, .. } => {
                    major == of && minor.is_none_or(|minor| minor == is)
                }
                GfxProcessor::Generic { .. } => false,
            },
        }
    }
}

impl From<GfxProcessor> for GfxGroup {
    fn from(processor: GfxProcessor) -> Self {
        Self::One(processor.into())
    }
}

impl fmt::Display for GfxGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(arch) => arch.fmt(f),
            Self::Family { major, minor: None } => write!(f, "gfx{major}xx"),
            Self::Family { major, minor: Some(minor) } => write!(f, "gfx{major}{minor:x}x"),
        }
    }
}

impl FromStr for GfxGroup {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let family = || {
            let digits = text.strip_prefix("gfx")?.strip_suffix('x')?;
            // The last digits of a processor are its minor and its stepping: zeros stand in for what is left open.
            let (filled, has_minor) = match digits.strip_suffix('x') {
                Some(major) => (format!("gfx{major}00"), false),
                None => (format!("gfx{digits}0"), true),
            };
            match filled.parse().ok()? {
                GfxProcessor::Exact { major, minor, .. } => {
                    Some(Self::Family { major, minor: has_minor.then_some(minor) })
                }
                GfxProcessor::Generic { .. } => None,
            }
        };
        let whole = || text.parse().ok().map(Self::One);
        family()
            .or_else(whole)
            .ok_or_else(|| ParseVersionError::new(text, "a processor such as gfx90a or a family such as gfx11xx"))
    }
}
serde_as_text!(GfxGroup, "GfxGroup");

/// What a set of data files has for some GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataTarget {
    pub arch: GfxGroup,
    /// The file is there that the library looks for first; without it the others are not found.
    #[serde(default)]
    pub indexed: bool,
    /// Numbers of compute units that files were made for; empty: for any. Sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<u16>,
    pub files: u64,
}

/// The data files of one library in one place: the kernels that rocBLAS loads by the GPU's name, the databases of
/// MIOpen. Only names were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataSet {
    /// As the catalog's `data_libraries.toml` names it: `rocBLAS`.
    pub library: String,
    /// The folder that holds them: `opt/rocm-6.4.1/lib/rocblas/library`.
    pub root: ImagePath,
    /// By architecture. Empty: the files do not say.
    pub targets: Vec<DataTarget>,
    /// Files that tell of an architecture.
    pub files: u64,
    /// The topmost layer that has any of them, as an index into the image's layers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layer: Option<usize>,
    /// Index into the evidence's components.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub component: Option<usize>,
}

impl DataSet {
    /// What there is for a GPU. Where any target has an index, one without is as good as absent.
    pub fn target_for(&self, gpu: GfxArch) -> Option<&DataTarget> {
        let has_index = self.targets.iter().any(|t| t.indexed);
        self.targets.iter().filter(|t| t.indexed || !has_index).find(|t| t.arch.takes(gpu))
    }

    /// Whether there is data for a GPU.
    pub fn covers(&self, gpu: GfxArch) -> bool {
        self.target_for(gpu).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(text: &str) -> GfxGroup {
        text.parse().unwrap()
    }

    fn arch(text: &str) -> GfxArch {
        text.parse().unwrap()
    }

    #[test]
    fn groups_are_written_as_folders_are() {
        for text in
            ["gfx90a", "gfx90a:xnack+", "gfx11xx", "gfx110x", "gfx90x", "gfx9xx", "gfx1201", "gfx9-4-generic"]
        {
            assert_eq!(group(text).to_string(), text);
        }
        for text in ["", "gfx", "gfxxx", "gfx11xxx", "gfxx", "xx", "gfx1x", "gfx11Xx"] {
            assert!(text.parse::<GfxGroup>().is_err(), "{text}");
        }
    }

    #[test]
    fn data_is_found_by_the_processor_s_own_name() {
        for (data, gpu, takes) in [
            ("gfx90a", "gfx90a", true),
            ("gfx90a", "gfx90a:xnack+", true),
            ("gfx90a:xnack+", "gfx90a:xnack-", false),
            ("gfx90a:xnack+", "gfx90a", true),
            ("gfx1100", "gfx1102", false),
            ("gfx11xx", "gfx1151", true),
            ("gfx110x", "gfx1151", false),
            ("gfx110x", "gfx1103", true),
            ("gfx11xx", "gfx1201", false),
            ("gfx9-4-generic", "gfx942", false),
        ] {
            assert_eq!(group(data).takes(arch(gpu)), takes, "{data} on {gpu}");
        }
    }

    #[test]
    fn what_has_no_index_counts_only_where_nothing_has() {
        let target = |name: &str, indexed| DataTarget { arch: group(name), indexed, units: Vec::new(), files: 1 };
        let set = |targets| DataSet {
            library: "rocBLAS".into(),
            root: ImagePath::new("r"),
            targets,
            files: 2,
            layer: None,
            component: None,
        };
        let half = set(vec![target("gfx90a", true), target("gfx942", false)]);
        assert!(half.covers(arch("gfx90a")) && !half.covers(arch("gfx942")));
        let old = set(vec![target("gfx90a", false), target("gfx942", false)]);
        assert!(old.covers(arch("gfx942")) && !old.covers(arch("gfx1100")));
    }
}
