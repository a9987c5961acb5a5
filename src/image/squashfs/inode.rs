//! Inodes and directories.

use std::io;

use super::Squashfs;
use super::damaged;
use super::meta::Cursor;

/// The longest link target, PATH_MAX.
const MAX_TARGET: u32 = 4096;

/// Stands for no fragment.
const NO_FRAGMENT: u32 = u32::MAX;

/// What an inode is, as far as it matters here.
pub enum Inode<'a> {
    Dir(Dir),
    File(FileInode<'a>),
    Symlink(Vec<u8>),
    Special,
}

/// Where a directory's entries are, and how many bytes of them.
#[derive(Debug, Clone, Copy)]
pub struct Dir {
    block: u32,
    offset: u16,
    size: u32,
}

/// A file's size and places.
pub struct FileInode<'a> {
    pub size: u64,
    /// Of the first block, in the file system's file.
    pub start: u64,
    /// Number of the fragment that holds its end, and where.
    pub fragment: Option<(u32, u32)>,
    /// The stored sizes of its blocks follow here.
    pub blocks: Cursor<'a>,
}

/// An entry of a directory.
pub struct DirEntry {
    pub name: Vec<u8>,
    /// The inode's place: block and offset.
    pub inode: u64,
}

impl Squashfs {
    /// Reads an inode by its place.
    pub fn inode(&self, place: u64) -> io::Result<Inode<'_>> {
        let at = self.inode_table.checked_add(place >> 16).ok_or_else(|| damaged("an inode without a place"))?;
        let mut c = self.store.cursor(at, (place & 0xffff) as usize);
        let kind = c.u16()?;
        c.pass(14)?;
        Ok(match kind {
            1 => {
                let block = c.u32()?;
                c.pass(4)?;
                let size = u32::from(c.u16()?);
                Inode::Dir(Dir { block, offset: c.u16()?, size })
            }
            8 => {
                c.pass(4)?;
                let (size, block) = (c.u32()?, c.u32()?);
                c.pass(6)?;
                Inode::Dir(Dir { block, offset: c.u16()?, size })
            }
            2 => {
                let (start, fragment, offset, size) = (c.u32()?, c.u32()?, c.u32()?, c.u32()?);
                let fragment = (fragment != NO_FRAGMENT).then_some((fragment, offset));
                Inode::File(FileInode { size: size.into(), start: start.into(), fragment, blocks: c })
            }
            9 => {
                let (start, size) = (c.u64()?, c.u64()?);
                c.pass(12)?;
                let (fragment, offset) = (c.u32()?, c.u32()?);
                c.pass(4)?;
                let fragment = (fragment != NO_FRAGMENT).then_some((fragment, offset));
                Inode::File(FileInode { size, start, fragment, blocks: c })
            }
            3 | 10 => {
                c.pass(4)?;
                let length = c.u32()?;
                if length > MAX_TARGET {
                    return Err(damaged("a symbolic link is longer than any path"));
                }
                let mut target = vec![0; length as usize];
                c.read(&mut target)?;
                Inode::Symlink(target)
            }
            4..=7 | 11..=14 => Inode::Special,
            _ => return Err(damaged("an inode of unknown kind")),
        })
    }

    /// The entries of a directory, each handed over as it is read.
    pub fn entries(&self, dir: Dir, each: &mut dyn FnMut(DirEntry) -> io::Result<()>) -> io::Result<()> {
        // Three bytes are counted for `.` and `..`, which are not stored.
        let mut left = dir.size.saturating_sub(3);
        let mut c = self.store.cursor(self.dir_table.saturating_add(dir.block.into()), dir.offset.into());
        while left > 0 {
            let (count, start) = (c.u32()?, c.u32()?);
            c.pass(4)?;
            left = left.saturating_sub(12);
            if count >= 256 {
                return Err(damaged("a directory has more entries in a row than it may"));
            }
            for _ in 0..=count {
                let offset = c.u16()?;
                c.pass(4)?;
                let mut name = vec![0; usize::from(c.u16()?) + 1];
                if name.len() > 256 {
                    return Err(damaged("a directory holds a name that is too long"));
                }
                c.read(&mut name)?;
                left = left.saturating_sub(8 + name.len() as u32);
                if matches!(&name[..], b"." | b"..") || name.iter().any(|b| matches!(b, b'/' | 0)) {
                    return Err(damaged("a directory holds a name that no file may have"));
                }
                each(DirEntry { name, inode: (u64::from(start) << 16) | u64::from(offset) })?;
            }
        }
        Ok(())
    }
}
