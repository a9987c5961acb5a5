//! What could not be looked at. Always reported, never dropped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Digest, ImagePath};

/// How far a gap reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GapEffect {
    /// Told, but no answer rests on it.
    None,
    /// The listing of this file's device code is incomplete: its component is `unknown`.
    File,
    /// Part of the image was not read: the scan is incomplete and answers nothing (exit 2).
    Image,
}

/// One thing that could not be read or understood.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Where in the image; absent when it concerns a layer or the image as a whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<ImagePath>,
    /// The layer's digest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layer: Option<Digest>,
    /// Byte offset within the file (or the unpacked layer, when no path is given).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<u64>,
    pub why: String,
    pub effect: GapEffect,
}

impl Gap {
    pub fn file(path: ImagePath, offset: u64, why: impl Into<String>) -> Self {
        Self { path: Some(path), layer: None, offset: Some(offset), why: why.into(), effect: GapEffect::File }
    }

    pub fn note(path: ImagePath, why: impl Into<String>) -> Self {
        Self { path: Some(path), layer: None, offset: None, why: why.into(), effect: GapEffect::None }
    }

    pub fn image(why: impl Into<String>) -> Self {
        Self { path: None, layer: None, offset: None, why: why.into(), effect: GapEffect::Image }
    }
}
