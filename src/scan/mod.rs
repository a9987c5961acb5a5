//! The only parallel module: image in, evidence out.

mod assemble;
mod layer;
mod loading;
mod probe;
mod tree;
pub mod wheel;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::image::sources::{self, OpenOptions};
use crate::image::{Content, Image, ImageError, Opened};
use crate::model::{Digest, Evidence, Gap, ImagePath, Platform};

use layer::{LayerRead, Streamer};

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
    /// Platforms wanted of an index; empty: linux/amd64, or the only one there is.
    pub platforms: Vec<Platform>,
    /// Unpacked bytes of one layer.
    pub max_layer_bytes: u64,
    /// Unpacked bytes per stored byte, once a layer has unpacked to more than a GiB.
    pub max_ratio: u64,
    /// Entries of one layer.
    pub max_entries: u64,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { jobs: 0, platforms: Vec::new(), max_layer_bytes: 256 << 30, max_ratio: 200, max_entries: 4_000_000 }
    }
}

impl ScanOptions {
    /// The platform, where one is wanted and no other.
    fn only_platform(&self) -> Option<Platform> {
        match self.platforms.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    }
}

/// What scanning a reference gave.
pub struct Scanned {
    /// One per platform that was asked for.
    pub evidence: Vec<Evidence>,
    /// What was chosen for a bare word, and the like.
    pub notices: Vec<String>,
}

/// Opens a reference, reads its layers and merges them.
pub fn run(
    reference: &str,
    open: &OpenOptions,
    options: &ScanOptions,
    observer: &dyn Observer,
) -> Result<Scanned, ImageError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.jobs)
        .build()
        .map_err(|e| ImageError::Io { place: "worker threads".to_owned(), source: std::io::Error::other(e) })?;
    let mut streamer = Streamer::new(options, observer);
    let open = OpenOptions { platform: options.only_platform(), ..open.clone() };
    let opened = sources::open(reference, &open, &mut streamer)?;
    let streamed: Vec<Mutex<Option<LayerRead>>> =
        streamer.into_layers().into_iter().map(|l| Mutex::new(Some(l))).collect();
    let mut evidence = Vec::new();
    for platform in wanted(&*opened, &options.platforms) {
        let image = opened.image(platform.as_ref())?;
        let layers = read_layers(&image, &pool, options, observer, &streamed);
        evidence.push(assemble::evidence(opened.reference(), image, layers));
    }
    Ok(Scanned { evidence, notices: opened.notices().to_vec() })
}

/// Which of an index's platforms to read: those asked for that it has; otherwise one.
fn wanted(opened: &dyn Opened, asked: &[Platform]) -> Vec<Option<Platform>> {
    let there = opened.platforms();
    if there.len() <= 1 && asked.len() != 1 {
        return vec![None];
    }
    let mut found: Vec<Option<Platform>> = Vec::new();
    for want in asked {
        let has = there.iter().any(|p| p.serves(want));
        // A single platform asked for and not there is the source's error to tell.
        if (has || asked.len() == 1) && !found.contains(&Some(want.clone())) {
            found.push(Some(want.clone()));
        }
    }
    if found.is_empty() {
        found.push(None);
    }
    found
}

fn read_layers(
    image: &Image,
    pool: &rayon::ThreadPool,
    options: &ScanOptions,
    observer: &dyn Observer,
    streamed: &[Mutex<Option<LayerRead>>],
) -> Vec<LayerRead> {
    let results: Vec<Mutex<Option<LayerRead>>> = image.layers.iter().map(|_| Mutex::new(None)).collect();
    // Largest first, so that the last one running is a small one.
    let mut order: Vec<usize> = (0..image.layers.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(image.layers[i].size.unwrap_or(u64::MAX)));
    pool.scope_fifo(|scope| {
        for index in order {
            let (layer, result) = (&image.layers[index], &results[index]);
            scope.spawn_fifo(move |_| {
                observer.layer_started(index, layer.digest.as_ref(), layer.size);
                let read = match &layer.content {
                    Content::Blob(open) => layer::read_blob(index, layer, open, options, observer),
                    Content::Tree(root) => tree::read(index, root, observer),
                    Content::Files(files) => tree::read_files(index, &**files, options, observer),
                    Content::File(path) => tree::read_file(path),
                    Content::Zip(path) => tree::read_zip(path),
                    Content::Streamed(number) => match streamed.get(*number) {
                        Some(slot) => layer::take_streamed(slot, layer),
                        None => LayerRead::failed("layer is missing from the stream"),
                    },
                };
                observer.layer_done(index);
                if let Ok(mut slot) = result.lock() {
                    *slot = Some(read);
                }
            });
        }
    });
    results
        .into_iter()
        .map(|slot| {
            let read = slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            read.unwrap_or_else(|| LayerRead::failed("layer was not read"))
        })
        .collect()
}

/// Reads single files for `inspect`.
pub fn inspect(paths: &[PathBuf]) -> Vec<(PathBuf, Result<Evidence, ImageError>)> {
    use rayon::prelude::*;
    paths
        .par_iter()
        .map(|path| {
            if path.is_dir() {
                let place = path.display().to_string();
                let what = format!("is a folder; `imagelint scan dir:{place}` takes it as a root file system");
                return (path.clone(), Err(ImageError::Malformed { place, what }));
            }
            let read = if is_zip(path) { tree::read_zip(path) } else { tree::read_file(path) };
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
                    Ok(assemble::evidence(&name, image, vec![read]))
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
