//! Facts of layers that were read before, on disk: a layer is its diff_id, so what was found in it stays found.
//!
//! `layers/HEX` holds the facts of the layer whose diff_id that is, `blobs/HEX` says which layer a blob unpacks to, so that
//! a blob that was verified once need not be fetched again. Every file is written beside and renamed, carries its own
//! digest, and is read anew from the image when anything about it is not right: several processes may share the folder,
//! and be killed at any moment. Whoever can write to the folder is trusted, as the program itself is.

mod entry;
mod sealed;
mod upkeep;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use self::entry::Entry;
pub use self::entry::Kept;
pub use self::upkeep::{Keep, Pruned, Size};
use super::ScanOptions;
use super::layer::LayerRead;
use crate::image::Layer;
use crate::model::Digest;

/// The most bytes of the file that says what a blob unpacks to.
const MAX_BLOB_FILE: u64 = 4 << 10;

/// The most bytes of a layer's facts, packed and unpacked: a million files take some 100 MB.
const MAX_FACTS_FILE: u64 = 256 << 20;
const MAX_FACTS: u64 = 2 << 30;

/// A use is noted when the last note is older than this.
const NOTED_FOR: Duration = Duration::from_secs(60 * 60);

/// The folder.
pub struct Cache {
    root: PathBuf,
    /// The first failure to write; the scan does without.
    trouble: Mutex<Option<String>>,
}

/// What is known of a layer.
pub enum Found {
    Whole(Box<LayerRead>),
    /// Some probes have changed since; the layer is read for these alone.
    Part(Box<Kept>),
    Nothing,
}

/// What a blob turned out to be.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Blob {
    diff_id: Digest,
    /// Its own size.
    stored: u64,
}

impl Cache {
    /// Opens the folder, and makes it where it is not there.
    pub fn open(root: &Path) -> io::Result<Self> {
        // The one that tells of a cache comes last.
        for folder in ["tmp", "blobs", "layers"] {
            fs::create_dir_all(root.join(folder))?;
        }
        let tag = root.join("CACHEDIR.TAG");
        if !tag.exists() {
            // Tells backup programs to leave the folder out; it works without.
            let _ = fs::write(&tag, "Signature: 8a477f597d28d172789f06886806bc55\n# Layers read by imagelint.\n");
        }
        Ok(Self { root: root.to_owned(), trouble: Mutex::new(None) })
    }

    /// Opens the folder only if it is there.
    pub fn existing(root: &Path) -> Option<Self> {
        root.join("layers").is_dir().then(|| Self { root: root.to_owned(), trouble: Mutex::new(None) })
    }

    /// The first failure to write since it was last asked for.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What is known of a layer of an image, and is what reading it under these limits would give.
    pub fn find(&self, layer: &Layer, options: &ScanOptions) -> Found {
        let Some(diff_id) = layer.diff_id else { return Found::Nothing };
        let Some(entry) = self.entry(&diff_id) else { return Found::Nothing };
        let stale = entry.stale();
        if !stale.is_empty() {
            return Kept::new(entry, stale).map_or(Found::Nothing, |kept| Found::Part(Box::new(kept)));
        }
        // A blob that was never seen to be this layer is read, and verified.
        let stored = match layer.digest.filter(|digest| *digest != diff_id) {
            Some(digest) => match self.blob(&digest) {
                Some(blob) if blob.diff_id == diff_id && layer.size.is_none_or(|n| n == blob.stored) => blob.stored,
                _ => return Found::Nothing,
            },
            None => layer.size.unwrap_or(entry.unpacked()),
        };
        if !entry.is_within(stored, options) {
            return Found::Nothing;
        }
        match entry.restore() {
            Some(mut read) => {
                read.stored = stored;
                read.digest = layer.digest;
                self.note_use(&self.layer_path(&diff_id));
                Found::Whole(Box::new(read))
            }
            None => Found::Nothing,
        }
    }

    /// Keeps what was read of a layer whose digests were found right.
    pub fn keep(&self, read: &LayerRead) {
        let Some(diff_id) = read.diff_id else { return };
        let kept = Entry::of(diff_id, read).and_then(|entry| {
            sealed::write(&self.layer_path(&diff_id), &self.temporary(), &entry)?;
            self.keep_blob(read, diff_id)
        });
        if let Err(e) = kept {
            let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
            trouble.get_or_insert(format!("the cache in {} cannot be written: {e}", self.root.display()));
        }
    }

    fn keep_blob(&self, read: &LayerRead, diff_id: Digest) -> io::Result<()> {
        let Some(digest) = read.digest.filter(|digest| *digest != diff_id) else { return Ok(()) };
        let blob = Blob { diff_id, stored: read.stored };
        if self.blob(&digest).as_ref() == Some(&blob) {
            return Ok(());
        }
        sealed::write(&self.blob_path(&digest), &self.temporary(), &blob)
    }

    fn entry(&self, diff_id: &Digest) -> Option<Entry> {
        let entry: Entry = sealed::read(&self.layer_path(diff_id), MAX_FACTS_FILE, MAX_FACTS)?;
        (entry.diff_id() == diff_id).then_some(entry)
    }

    fn blob(&self, digest: &Digest) -> Option<Blob> {
        sealed::read(&self.blob_path(digest), MAX_BLOB_FILE, MAX_BLOB_FILE)
    }

    fn layer_path(&self, diff_id: &Digest) -> PathBuf {
        self.root.join("layers").join(diff_id.hex())
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(digest.hex())
    }

    fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// What has not been used for long is what is removed first.
    fn note_use(&self, path: &Path) {
        let now = SystemTime::now();
        let noted = fs::metadata(path).and_then(|m| m.modified());
        let is_recent = noted.is_ok_and(|t| now.duration_since(t).is_ok_and(|age| age < NOTED_FOR));
        if !is_recent && let Ok(file) = fs::File::options().write(true).open(path) {
            // A folder that is only read from serves as well.
            let _ = file.set_modified(now);
        }
    }
}

#[cfg(test)]
mod tests;
