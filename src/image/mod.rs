//! Images: where they come from, how their layers are read and merged.

pub mod blob;
mod fetch;
pub mod files;
pub mod history;
mod http;
pub mod index;
pub mod overlay;
mod sha256;
pub mod sources;
pub mod squashfs;
pub mod tar;
pub mod zip;

use std::io::Read;
use std::path::PathBuf;

pub use self::fetch::fetch;
use crate::model::{ConfigFacts, Digest, Platform};

/// Why an image could not be opened or a layer not be read. Always exit status 2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Nothing of that name. `hint` says what to try.
    #[error("{reference}: not found{}", hint_text(hint))]
    NotFound { reference: String, hint: String },
    /// Found, but not a container image (an artifact, a build cache, an attestation).
    #[error("{reference}: {what}, not a container image")]
    NotAnImage { reference: String, what: String },
    #[error("{reference} has no image for {platform}; it has {available}")]
    NoSuchPlatform { reference: String, platform: Platform, available: String },
    /// The image names itself in a way that cannot be followed.
    #[error("{place}: {what}")]
    Malformed { place: String, what: String },
    #[error(
        "{place}: digest mismatch: expected {expected}, got {actual}; it was damaged on its way or where it is kept"
    )]
    DigestMismatch { place: String, expected: Digest, actual: Digest },
    #[error("{place}: {what} is larger than the limit of {limit} bytes")]
    TooLarge { place: String, what: String, limit: u64 },
    /// A network failure, told in one line with what to try.
    #[error("{host}: {what}{}", hint_text(hint))]
    Network { host: String, what: String, hint: String },
    #[error("{place}: {source}")]
    Io { place: String, source: std::io::Error },
}

fn hint_text(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("; {hint}") }
}

/// Opens a layer's stored bytes; called once, by the worker that reads it.
pub type OpenBlob = Box<dyn Fn() -> Result<Box<dyn Read + Send>, ImageError> + Send + Sync>;

/// Where a layer's entries come from.
pub enum Content {
    /// A tar, compressed or not.
    Blob(OpenBlob),
    /// A directory tree on disk, the root file system.
    Tree(PathBuf),
    /// A tree of files that is read where it lies.
    Files(Box<dyn files::FileTree>),
    /// One file on disk, and the name it goes by in the report.
    File(PathBuf),
    /// A zip archive on disk (a wheel), its members being the files of the root.
    Zip(PathBuf),
    /// Read as it streamed by; the number is what [`BlobSink::layer`] returned.
    Streamed(usize),
}

/// One layer of an image, lowest first.
pub struct Layer {
    /// Digest of the stored bytes, from the manifest; verified while reading.
    pub digest: Option<Digest>,
    /// Digest of the unpacked tar, from the config; verified while reading.
    pub diff_id: Option<Digest>,
    /// Stored size from the manifest, where it says one; verified while reading.
    pub size: Option<u64>,
    pub created_by: Option<String>,
    pub content: Content,
}

/// An image, ready to be read.
pub struct Image {
    /// Manifest digest.
    pub digest: Option<Digest>,
    /// From the config; `None` for a bare root file system.
    pub platform: Option<Platform>,
    pub config: ConfigFacts,
    pub layers: Vec<Layer>,
}

/// A reference that was found, perhaps an index of several platforms.
pub trait Opened: Send + Sync {
    /// The reference as the report names it: no absolute host path.
    fn reference(&self) -> &str;

    /// What the reference was taken for, where it could have meant something else.
    fn taken_for(&self) -> Option<&str>;

    /// What is worth one line on standard error.
    fn notices(&self) -> &[String];

    /// Platforms to choose from; empty where there is no choice.
    fn platforms(&self) -> &[Platform];

    /// The image for a platform. `None`: the only one, or linux/amd64, or the first.
    fn image(&self, platform: Option<&Platform>) -> Result<Image, ImageError>;
}

/// Takes layers in passing from a stream that cannot be read twice.
pub trait BlobSink {
    /// Reads a blob that may be a layer to its end; returns the number of its facts and the digests of what was
    /// read, or `None` if it is no tar, compressed or not.
    fn layer(&mut self, blob: &mut dyn Read) -> std::io::Result<Streamed>;
}

/// What a [`BlobSink`] learned of a blob.
#[derive(Debug, Clone, Copy)]
pub struct Streamed {
    /// Number for [`Content::Streamed`]; `None` if the blob is no layer.
    pub number: Option<usize>,
    /// Digest of the bytes as stored.
    pub digest: Digest,
    pub diff_id: Option<Digest>,
    pub size: u64,
}
