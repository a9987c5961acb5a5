//! How many bytes of an image are device code, and how many of them no target takes.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{Arch, Form};

/// Bytes of device code. All are stored bytes of entries: compressed entries as they lie in their file, without the
/// headers around them; layers that are compressed again hold less.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Sizes {
    pub bytes: u64,
    /// Of the whole image.
    pub archs: Vec<ArchSize>,
    /// Most bytes first.
    pub components: Vec<ComponentSize>,
    /// Absent without targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused: Option<Unused>,
}

/// Code of one architecture and form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArchSize {
    pub arch: Arch,
    pub form: Form,
    pub entries: u64,
    pub bytes: u64,
    /// Bytes that no target takes: nothing of theirs, or beside something that fits better in the same module.
    /// Absent without targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused: Option<u64>,
    /// Bytes of which that cannot be told: input of linkers and compilers, archives, files that nothing loads, other
    /// makers' GPUs. Neither used nor unused.
    pub not_judged: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ComponentSize {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused: Option<u64>,
    pub not_judged: u64,
    pub archs: Vec<ArchSize>,
}

/// What no target takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Unused {
    pub bytes: u64,
    /// Of these, what a build for the targets alone would not have.
    pub rebuild: u64,
    /// Of these, what is in NVIDIA's own libraries, which nobody else builds.
    pub vendor: u64,
    /// `rebuild` in percent of the image's stored bytes, to a tenth; absent where the image is stored in less than
    /// that, as layers that compress well are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuild_percent: Option<f64>,
}
