//! The only parallel module: image in, evidence out.

use crate::model::{Digest, Platform};

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
