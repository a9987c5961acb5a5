//! What ELF files ask of each other: versions, symbols, libraries opened by name.

use serde::{Deserialize, Serialize};

/// Versions asked of one library (`.gnu.version_r`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The library's name as in DT_NEEDED, `libc.so.6`.
    pub of: String,
    /// `GLIBC_2.34`, in the file's order.
    pub versions: Vec<AskedVersion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedVersion {
    pub name: String,
    /// The loader only warns when it is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weak: bool,
}

/// An undefined symbol that a GPU library must provide.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Import {
    pub name: String,
    /// The library and the version it is asked of, where the file says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<(String, String)>,
    /// May stay undefined.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weak: bool,
}

/// The symbols that a GPU library defines: sorted FNV-1a hashes (64 bits) of `name` and of `name@VERSION`.
/// A cuDNN or cuBLAS library defines up to some thousands; as text they would be most of an image's facts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Exports {
    pub hashes: Vec<u64>,
}

impl Exports {
    /// From names and versions, in any order.
    pub fn new<'a>(symbols: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>) -> Self {
        let mut hashes = Vec::new();
        for (name, version) in symbols {
            hashes.push(fnv1a(name));
            if let Some(version) = version {
                hashes.push(fnv1a(&[name, b"@", version].concat()));
            }
        }
        hashes.sort_unstable();
        hashes.dedup();
        hashes.shrink_to_fit();
        Self { hashes }
    }

    /// Whether a symbol is defined, in that version when one is given.
    pub fn has(&self, name: &str, version: Option<&str>) -> bool {
        let hash = match version {
            Some(version) => fnv1a(format!("{name}@{version}").as_bytes()),
            None => fnv1a(name.as_bytes()),
        };
        self.hashes.binary_search(&hash).is_ok()
    }
}

/// FNV-1a, 64 bits: fixed by its definition, so that hashes can be stored.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
