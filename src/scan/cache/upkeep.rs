//! How large the cache is, and what is taken out of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::entry::Entry;
use super::{Blob, Cache, MAX_BLOB_FILE, MAX_FACTS, MAX_FACTS_FILE, sealed};
use crate::model::Digest;

/// What a killed process left is not touched while it may still be alive.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// What is in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    pub layers: u64,
    pub blobs: u64,
    /// Of all files together.
    pub bytes: u64,
}

/// What stays when the cache is pruned; what is damaged or of other versions never does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Keep {
    /// What has been used within this time; `None`: however old.
    pub used_within: Option<Duration>,
    /// As many bytes, the last used first; `None`: all.
    pub max_bytes: Option<u64>,
}

/// What was taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    pub files: u64,
    pub bytes: u64,
}

/// One file of the cache.
struct Item {
    path: PathBuf,
    digest: Option<Digest>,
    bytes: u64,
    used: SystemTime,
}

impl Cache {
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn size(&self) -> io::Result<Size> {
        let (layers, blobs) = (self.items("layers")?, self.items("blobs")?);
        let bytes = layers.iter().chain(&blobs).chain(&self.items("tmp")?).map(|i| i.bytes).sum();
        Ok(Size { layers: layers.len() as u64, blobs: blobs.len() as u64, bytes })
    }

    /// Takes out what is of no use, and what `keep` does not spare.
    pub fn prune(&self, keep: &Keep) -> io::Result<Pruned> {
        let now = SystemTime::now();
        let age = |item: &Item| now.duration_since(item.used).unwrap_or_default();
        let mut pruned = Pruned::default();
        for item in self.items("tmp")? {
            if age(&item) > ABANDONED {
                pruned.remove(&item)?;
            }
        }
        let mut layers = self.items("layers")?;
        // The last used first.
        layers.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.path.cmp(&b.path)));
        let mut kept = Vec::new();
        let mut bytes = 0;
        for item in layers {
            let is_old = keep.used_within.is_some_and(|most| age(&item) > most);
            let is_much = keep.max_bytes.is_some_and(|most| bytes + item.bytes > most);
            match item.digest.filter(|digest| !is_old && !is_much && self.is_of_use(digest)) {
                Some(digest) => {
                    bytes += item.bytes;
                    kept.push(digest);
                }
                None => pruned.remove(&item)?,
            }
        }
        kept.sort();
        for item in self.items("blobs")? {
            let blob: Option<Blob> = sealed::read(&item.path, MAX_BLOB_FILE, MAX_BLOB_FILE);
            if blob.is_none_or(|blob| kept.binary_search(&blob.diff_id).is_err()) {
                pruned.remove(&item)?;
            }
        }
        Ok(pruned)
    }

    /// Takes out everything.
    pub fn clear(&self) -> io::Result<Pruned> {
        let mut pruned = Pruned::default();
        for folder in ["layers", "blobs", "tmp"] {
            self.items(folder)?.iter().try_for_each(|item| pruned.remove(item))?;
        }
        Ok(pruned)
    }

    /// Whether any of a layer's facts still hold.
    fn is_of_use(&self, diff_id: &Digest) -> bool {
        let entry: Option<Entry> = sealed::read(&self.layer_path(diff_id), MAX_FACTS_FILE, MAX_FACTS);
        entry.is_some_and(|e| e.diff_id() == diff_id && e.is_of_use())
    }

    /// The files of one of the folders that the cache has named.
    fn items(&self, folder: &str) -> io::Result<Vec<Item>> {
        let mut out = Vec::new();
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            // Whoever made the cache was stopped before it came to that.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(out),
            Err(e) => return Err(e),
        };
        for entry in entries {
            let entry = entry?;
            let meta = match entry.metadata() {
                Ok(meta) => meta,
                // Another process was faster.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            if meta.is_file() {
                let digest = entry.file_name().to_str().and_then(|name| format!("sha256:{name}").parse().ok());
                let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if folder == "tmp" || digest.is_some() {
                    out.push(Item { path: entry.path(), digest, bytes: meta.len(), used });
                }
            }
        }
        Ok(out)
    }
}

impl Pruned {
    fn remove(&mut self, item: &Item) -> io::Result<()> {
        match fs::remove_file(&item.path) {
            Ok(()) => {
                self.files += 1;
                self.bytes += item.bytes;
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        }
    }
}
