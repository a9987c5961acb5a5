//! What is no image yet is read as one: a root file system as a folder or a tar, a single file, a wheel.

use std::path::{Path, PathBuf};

use super::super::{Content, Image, ImageError, Layer};
use super::Handle;
use super::files::{io_error, range};
use crate::model::ConfigFacts;

/// One layer and nothing known about it. `content` is made anew for each image asked for.
fn open(reference: String, size: Option<u64>, content: impl Fn() -> Content + Send + Sync + 'static) -> Handle {
    Handle::new(reference, Vec::new(), move |_| {
        let layer = Layer { digest: None, diff_id: None, size, created_by: None, content: content() };
        Ok(Image { digest: None, platform: None, config: ConfigFacts::default(), layers: vec![layer] })
    })
}

pub fn tree(path: PathBuf, reference: String) -> Handle {
    open(reference, None, move || Content::Tree(path.clone()))
}

pub fn tar(path: &Path, place: &str, reference: String) -> Result<Handle, ImageError> {
    let size = path.metadata().map_err(|e| io_error(place, e))?.len();
    let (path, place) = (path.to_owned(), place.to_owned());
    Ok(open(reference, Some(size), move || range(path.clone(), 0, size, place.clone())))
}

pub fn file(path: PathBuf, reference: String) -> Handle {
    open(reference, None, move || Content::File(path.clone()))
}

pub fn zip(path: PathBuf, reference: String) -> Handle {
    open(reference, None, move || Content::Zip(path.clone()))
}
