//! What the dynamic loader would do with a file: which library it takes for each name, and by which law.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ImagePath;

/// What one ELF file would load. Only files with something to load have a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loads {
    /// Index into the evidence's files.
    pub file: usize,
    /// One per DT_NEEDED, in that order.
    pub needs: Vec<Need>,
    /// Libraries that it opens by name (dlopen), as far as a table knows that it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<Need>,
    /// What its symbols and versions ask of the libraries it would get, and do not find there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Unmet>,
}

/// One library name and what the loader makes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    pub name: String,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The real place of the file (links followed) and why this one.
    Found { path: ImagePath, law: Law },
    /// Not in the image: the NVIDIA container runtime puts it there from the host's driver.
    Driver,
    /// Not found. `ldconfig`: where it would be found once ldconfig has refreshed a stale ld.so.cache.
    /// `refused`: a file that is found first but cannot be loaded, and why (then the loader gives up).
    Missing {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ldconfig: Option<ImagePath>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<(ImagePath, String)>,
    },
}

impl Outcome {
    pub fn path(&self) -> Option<&ImagePath> {
        match self {
            Self::Found { path, .. } => Some(path),
            Self::Driver | Self::Missing { .. } => None,
        }
    }
}

/// The law by which the loader found a file, in the order in which glibc tries them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// The name has a slash: it is a path.
    Path,
    /// It is in LD_PRELOAD.
    Preload,
    /// A library of that name is loaded already, for the file named.
    Loaded(ImagePath),
    /// DT_RPATH, of the file itself or of one of those that load it.
    Rpath(ImagePath),
    LibraryPath,
    Runpath,
    /// musl's search path: built in, or `etc/ld-musl-ARCH.path`.
    SystemPath,
    Cache,
    /// The loader's built-in directories.
    Default,
    /// A framework looks it up itself before (torch, cupy: the nvidia-* wheels beside it).
    Framework(String),
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("named by its path"),
            Self::Preload => f.write_str("LD_PRELOAD"),
            Self::Loaded(by) => write!(f, "already loaded by {by}"),
            Self::Rpath(of) => write!(f, "RPATH of {of}"),
            Self::LibraryPath => f.write_str("LD_LIBRARY_PATH"),
            Self::Runpath => f.write_str("RUNPATH"),
            Self::SystemPath => f.write_str("musl's system path"),
            Self::Cache => f.write_str("ld.so.cache"),
            Self::Default => f.write_str("default directory"),
            Self::Framework(name) => write!(f, "loaded by {name}"),
        }
    }
}

/// Names that a file asks of a library, and that the library does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmet {
    /// The library's name as it is asked for.
    pub library: String,
    /// The file that the loader takes for it.
    pub provider: ImagePath,
    pub kind: UnmetKind,
    /// At most ten, sorted.
    pub names: Vec<String>,
    /// How many there are.
    pub count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnmetKind {
    /// "version `GLIBC_2.34' not found".
    Version,
    /// "undefined symbol".
    Symbol,
}
