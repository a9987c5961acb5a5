//! What an image serves of AMD's GPUs, whatever the targets.

use schemars::JsonSchema;
use serde::Serialize;

use super::text::clean;
use crate::model::{GfxGroup, GfxProcessor, ImagePath};

/// AMD's processors that an image serves. Libraries are loaded one by one, so an image serves what each of them does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AmdReport {
    /// Served by all core code for AMD and by the data that its libraries cannot do without.
    pub all: Vec<GfxProcessor>,
    /// Served by some of it.
    pub in_parts: Vec<GfxProcessor>,
    /// Kernels and databases in data files, by library and place.
    pub data: Vec<AmdData>,
}

/// A library's data files in one place, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AmdData {
    pub library: String,
    pub path: ImagePath,
    pub targets: Vec<GfxGroup>,
}

impl AmdReport {
    /// "gfx942 gfx1100; in parts gfx90a".
    pub(super) fn line(&self) -> String {
        let list = |all: &[GfxProcessor]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let all = if self.all.is_empty() { "none in all parts".to_owned() } else { list(&self.all) };
        match self.in_parts.is_empty() {
            true => all,
            false => format!("{all}; in parts {}", list(&self.in_parts)),
        }
    }
}

impl AmdData {
    /// "rocBLAS data".
    pub(super) fn name(&self) -> String {
        format!("{} data", clean(&self.library))
    }

    pub(super) fn list(&self) -> String {
        match self.targets.is_empty() {
            true => "no architecture in its names".to_owned(),
            false => self.targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        }
    }
}
