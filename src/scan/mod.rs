//! The only parallel module: image in, evidence out.

mod assemble;
pub mod cache;
mod data_sets;
mod layer;
mod loading;
mod probe;
mod session;
mod tree;
pub mod wheel;

use std::path::{Path, PathBuf};

use crate::catalog::Catalog;
use crate::device;
use crate::image::{Content, Image, ImageError};
use crate::model::{Digest, Evidence, Gap, ImagePath};

pub use session::Session;

/// Told of progress; must not print on its own unless it owns the terminal.
pub trait Observer: Sync {
    /// A layer (or a file tree) begins; `stored` is its size as stored, where known.
    fn layer_started(&self, _layer: usize, _digest: Option<&Digest>, _stored: Option<u64>) {}
    /// Stored bytes went by since the last call.
    fn bytes(&self, _layer: usize, _stored: u64) {}
    fn layer_done(&self, _layer: usize) {}
}

/// Says nothing.
pub struct Silent;
impl Observer for Silent {}

/// Limits and choices of a scan.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// Worker threads; 0: as many as there are cores.
    pub jobs: usize,
    /// Unpacked bytes of one layer.
    pub max_layer_bytes: u64,
    /// Unpacked bytes per stored byte, once a layer has unpacked to more than a GiB.
    pub max_ratio: u64,
    /// Entries of one layer.
    pub max_entries: u64,
    /// How packages are called that nothing in an image names, and who loads libraries by name. It is asked when layers
    /// are merged: what the cache keeps of a layer does not depend on it.
    pub catalog: &'static Catalog,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            jobs: 0,
            max_layer_bytes: 256 << 30,
            max_ratio: 200,
            max_entries: 4_000_000,
            catalog: Catalog::embedded(),
        }
    }
}

/// What scanning a reference gave.
#[derive(Default)]
pub struct Scanned {
    /// One per platform that was asked for.
    pub evidence: Vec<Evidence>,
    /// What the word was taken for, where it could have meant something else.
    pub taken_for: Option<String>,
    /// What is worth one line on standard error.
    pub notices: Vec<String>,
    /// Of each of the evidence, what reading its layers took this time.
    pub runs: Vec<Vec<LayerRun>>,
}

/// What reading a layer took. No two runs need agree on it, so it is no evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerRun {
    /// Taken from the cache.
    pub cached: bool,
    /// Stored bytes that were read.
    pub read: u64,
}

/// Reads single files for `inspect`; `verify`: compressed bundles are inflated whole and checked.
pub fn inspect(paths: &[PathBuf], verify: bool, catalog: &Catalog) -> Vec<(PathBuf, Result<Evidence, ImageError>)> {
    use rayon::prelude::*;
    paths
        .par_iter()
        .map(|path| {
            if path.is_dir() {
                let place = path.display().to_string();
                let what = format!("is a folder; `imagelint scan dir:{place}` takes it as a root file system");
                return (path.clone(), Err(ImageError::Malformed { place, what }));
            }
            let options = device::Options { verify };
            let read = if is_zip(path) { tree::read_zip(path, options) } else { tree::read_file(path, options) };
            let name = path.to_string_lossy().into_owned();
            let failure = read.gaps.iter().find(|g| g.effect == crate::model::GapEffect::Image).cloned();
            let evidence = match failure {
                Some(gap) if read.entries.is_empty() => Err(ImageError::Malformed { place: name, what: gap.why }),
                _ => {
                    let image = Image {
                        digest: None,
                        platform: None,
                        config: Default::default(),
                        layers: vec![crate::image::Layer {
                            digest: None,
                            diff_id: None,
                            size: None,
                            created_by: None,
                            content: Content::File(path.clone()),
                        }],
                    };
                    Ok(assemble::evidence(&name, image, vec![read], catalog))
                }
            };
            (path.clone(), evidence)
        })
        .collect()
}

fn is_zip(path: &Path) -> bool {
    let mut head = [0; 4];
    std::fs::File::open(path).and_then(|mut f| std::io::Read::read_exact(&mut f, &mut head)).is_ok()
        && crate::image::zip::is_zip(&head)
}

/// A gap at a path of a layer that is being read.
fn file_gap(path: &ImagePath, why: impl Into<String>) -> Gap {
    Gap {
        path: Some(path.clone()),
        layer: None,
        offset: None,
        why: why.into(),
        effect: crate::model::GapEffect::File,
    }
}
