//! Packages that compile for AMD's GPUs when they run, and the library that holds their compiler: `[[gfx_compiler]]` of
//! `libraries.toml`.

use serde::Deserialize;

use super::components::Globs;
use super::libraries::FILE;
use super::{CatalogError, Tables, Trust, names};
use crate::model::ImagePath;

#[derive(Debug)]
pub struct GfxCompiler {
    pub name: String,
    dists: Globs,
    files: Globs,
    /// What is seen where the compiler does not know the GPU.
    pub symptom: String,
    trust: Trust,
}

#[derive(Deserialize)]
struct Raw {
    name: String,
    dists: Vec<String>,
    files: Vec<String>,
    symptom: String,
    #[serde(flatten)]
    trust: Trust,
}

impl GfxCompiler {
    pub(super) fn read(tables: &mut Tables) -> Result<Vec<Self>, CatalogError> {
        let typed = |raw: Raw| {
            Ok(Self {
                dists: Globs::new(FILE, &raw.name, &raw.dists, false)?,
                files: Globs::new(FILE, &raw.name, &raw.files, true)?,
                name: raw.name,
                symptom: raw.symptom,
                trust: raw.trust,
            })
        };
        tables.rows::<Raw>(FILE, "gfx_compiler")?.into_iter().map(typed).collect()
    }

    pub fn is_dist(&self, name: &str) -> bool {
        self.dists.matches_name(&names::dist(name))
    }

    /// Whether a file holds the compiler.
    pub fn is_file(&self, path: &ImagePath) -> bool {
        self.files.matches(path)
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}
