//! The outside images that the Dockerfiles of a folder start from.

use std::path::PathBuf;

use super::discover::find;
use super::engine::{Build, Engine, bytes};
use crate::catalog::Catalog;
use crate::catalog::bases::Base;
use crate::cli::error::CliError;
use crate::config::Fleet;
use crate::dockerfile::reading;
use crate::lint::dockerfile;

/// One FROM of an image that the catalog knows.
pub struct Start {
    /// The Dockerfile, as reports name it.
    pub file: String,
    pub image: String,
    pub base: Base,
}

/// Of all stages of the Dockerfiles in a folder and below, each image once a file. What cannot be read is passed over:
/// `lint` tells of that.
pub fn starts(dir: PathBuf, catalog: &Catalog) -> Result<Vec<Start>, CliError> {
    let fleet = Fleet::default();
    let engine = Engine::new(Build::default(), &fleet, dockerfile::levels(&fleet), catalog)?;
    let (files, _) = find(&[dir], false);
    let mut out: Vec<Start> = Vec::new();
    for file in &files {
        let Ok(text) = bytes(file) else { continue };
        let understood = engine.understand(file.path.as_deref(), &text);
        for stage in &understood.reading.stages {
            let reading::Base::Image(text) = &stage.base else { continue };
            let Some(image) = text.value.known() else { continue };
            let Some(base) = catalog.bases().find(image) else { continue };
            if !out.iter().any(|s| s.file == file.name && s.image == image) {
                out.push(Start { file: file.name.clone(), image: image.to_owned(), base });
            }
        }
    }
    Ok(out)
}
