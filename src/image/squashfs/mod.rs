//! Squashfs 4.0, as enroot and mksquashfs write it, read in place.
//!
//! Nothing is held but what is being read: inodes, directories and fragments are unpacked where they are asked for,
//! a few of each are kept. What a table says is checked before anything is reserved for it.

mod codec;
mod data;
mod inode;
mod meta;

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;

use super::files::{FileTree, Listing, Node};
use crate::model::ImagePath;
use crate::stream::Source;
use codec::Codec;
use inode::{Dir, Inode};
use meta::{Store, array};

pub const MAGIC: &[u8; 4] = b"hsqs";

/// Bytes of all paths together; a root file system of a million files has about 100 MiB.
const MAX_NAMES: usize = 512 << 20;

/// The longest path: four times PATH_MAX.
const MAX_PATH: usize = 16 << 10;

/// A squashfs file system.
pub struct Squashfs {
    store: Store,
    size: u64,
    block_size: u32,
    root: u64,
    inode_table: u64,
    dir_table: u64,
    fragment_table: u64,
    fragment_count: u32,
    fragments: data::Fragments,
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl Squashfs {
    /// Reads the superblock and checks that the file is whole.
    pub fn open(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::FileExt;
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut head = [0; 96];
        if size < head.len() as u64 {
            return Err(damaged("no squashfs: shorter than its first block"));
        }
        file.read_exact_at(&mut head, 0)?;
        let u16_at = |at: usize| array(&head[at..]).map(u16::from_le_bytes);
        let u32_at = |at: usize| array(&head[at..]).map(u32::from_le_bytes);
        let u64_at = |at: usize| array(&head[at..]).map(u64::from_le_bytes);
        if !head.starts_with(MAGIC) {
            return Err(damaged("no squashfs"));
        }
        let version = (u16_at(28)?, u16_at(30)?);
        if version != (4, 0) {
            return Err(damaged(format!("squashfs {}.{}; only 4.0 is supported", version.0, version.1)));
        }
        let block_size = u32_at(12)?;
        if !block_size.is_power_of_two()
            || !(4 << 10..=1 << 20).contains(&block_size)
            || u32::from(u16_at(22)?) != block_size.trailing_zeros()
        {
            return Err(damaged("a damaged first block: an impossible block size"));
        }
        let used = u64_at(40)?;
        if used > size {
            return Err(damaged(format!("cut short: {size} of {used} bytes")));
        }
        let codec = Codec::new(u16_at(20)?)?;
        let fs = Self {
            store: Store::new(file, codec, used),
            size,
            block_size,
            root: u64_at(32)?,
            inode_table: u64_at(64)?,
            dir_table: u64_at(72)?,
            fragment_table: u64_at(80)?,
            fragment_count: u32_at(16)?,
            fragments: data::Fragments::default(),
        };
        fs.root()?;
        Ok(fs)
    }

    fn root(&self) -> io::Result<Dir> {
        match self.inode(self.root)? {
            Inode::Dir(dir) => Ok(dir),
            _ => Err(damaged("its root is no directory")),
        }
    }

    /// A file by its path, no link followed, if it has at most `cap` bytes.
    pub fn small(&self, path: &ImagePath, cap: usize) -> io::Result<Option<Vec<u8>>> {
        let mut place = self.root;
        for name in path.components() {
            let Inode::Dir(dir) = self.inode(place)? else { return Ok(None) };
            let mut found = None;
            self.entries(dir, &mut |entry| {
                if entry.name == name {
                    found = Some(entry.inode);
                }
                Ok(())
            })?;
            let Some(inode) = found else { return Ok(None) };
            place = inode;
        }
        let Inode::File(file) = self.inode(place)? else { return Ok(None) };
        if file.size > cap as u64 {
            return Ok(None);
        }
        let mut out = Vec::new();
        io::Read::read_to_end(&mut self.reader(file), &mut out)?;
        Ok(Some(out))
    }
}

impl FileTree for Squashfs {
    fn list(&self, limit: u64) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let mut names = 0;
        // A directory has one place; a second one would be a loop.
        let mut seen = HashSet::from([self.root]);
        let mut dirs = vec![(ImagePath::default(), self.root()?)];
        while let Some((path, dir)) = dirs.pop() {
            self.entries(dir, &mut |entry| {
                let below = path.join(&entry.name);
                names += below.as_bytes().len();
                if listing.entries.len() as u64 >= limit || names > MAX_NAMES || below.as_bytes().len() > MAX_PATH {
                    return Err(damaged("more or longer names than a root file system has"));
                }
                let node = match self.inode(entry.inode)? {
                    Inode::Dir(_) if !seen.insert(entry.inode) => {
                        return Err(damaged("a directory lies in two places"));
                    }
                    Inode::Dir(dir) => {
                        dirs.push((below.clone(), dir));
                        Node::Dir
                    }
                    Inode::File(file) => Node::File { size: file.size, id: entry.inode },
                    Inode::Symlink(to) => Node::Symlink(to),
                    Inode::Special => Node::Special,
                };
                listing.entries.push((below, node));
                Ok(())
            })?;
        }
        Ok(listing)
    }

    fn open(&self, _: &ImagePath, id: u64) -> io::Result<Box<dyn Source + Send + '_>> {
        match self.inode(id)? {
            Inode::File(file) => Ok(Box::new(self.reader(file))),
            _ => Err(damaged("no file any more")),
        }
    }

    fn stored(&self) -> Option<u64> {
        Some(self.size)
    }

    fn is_root(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
