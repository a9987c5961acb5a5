//! A tree of files that is read where it lies, without being unpacked.

use std::io;

use crate::model::ImagePath;
use crate::stream::Source;

/// What a path of the tree is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Dir,
    /// `id` is the tree's own word for the file.
    File {
        size: u64,
        id: u64,
    },
    Symlink(Vec<u8>),
    /// Device, fifo, socket: never opened.
    Special,
    /// What lower layers have of that name is gone.
    Whiteout,
    /// What lower layers have in this folder is gone.
    Opaque,
}

/// What a tree holds.
#[derive(Debug, Default)]
pub struct Listing {
    pub entries: Vec<(ImagePath, Node)>,
    /// What could not be listed: (path, why).
    pub troubles: Vec<(ImagePath, String)>,
}

/// A tree of files. Whoever opens one has checked that it is there; every other failure is told by what is read.
pub trait FileTree: Send + Sync {
    /// Everything in it. More than `limit` entries are an error.
    fn list(&self, limit: u64) -> io::Result<Listing>;

    /// Opens a file of the listing.
    fn open(&self, path: &ImagePath, id: u64) -> io::Result<Box<dyn Source + Send + '_>>;

    /// Bytes as stored, where they are fewer than what they unpack to.
    fn stored(&self) -> Option<u64>;

    /// Whether it is a root file system by itself, and not one layer of it.
    fn is_root(&self) -> bool;
}
