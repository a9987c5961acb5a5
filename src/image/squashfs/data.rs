//! A file's bytes: whole blocks, and an end that may lie in a fragment with those of other files.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::inode::FileInode;
use super::meta::{Cursor, array};
use super::{Squashfs, damaged};
use crate::stream::Source;

/// Fragments kept unpacked: files that lie side by side share them.
const KEPT: usize = 12;

/// A stored size with this bit is of a block that is not compressed.
const PLAIN: u32 = 1 << 24;

/// The fragments unpacked last.
#[derive(Default)]
pub struct Fragments(Mutex<VecDeque<(u32, Arc<[u8]>)>>);

impl Squashfs {
    fn unpacked(&self, at: u64, word: u32) -> io::Result<Vec<u8>> {
        let length = (word & (PLAIN - 1)) as usize;
        let most = self.block_size as usize;
        if length > most {
            return Err(damaged("a block is stored larger than a block can be"));
        }
        let stored = self.store.bytes(at, length)?;
        if word & PLAIN != 0 { Ok(stored) } else { self.store.codec.unpack(&stored, most) }
    }

    fn fragment(&self, number: u32) -> io::Result<Arc<[u8]>> {
        let kept = || self.fragments.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = kept().iter().find(|(n, _)| *n == number) {
            return Ok(bytes.clone());
        }
        if number >= self.fragment_count {
            return Err(damaged("a file ends in a fragment that is not there"));
        }
        let pointer = self.fragment_table.saturating_add(u64::from(number / 512) * 8);
        let at = u64::from_le_bytes(array(&self.store.bytes(pointer, 8)?)?);
        let mut c = self.store.cursor(at, (number % 512) as usize * 16);
        let (start, word) = (c.u64()?, c.u32()?);
        let bytes: Arc<[u8]> = self.unpacked(start, word)?.into();
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((number, bytes.clone()));
        Ok(bytes)
    }

    pub fn reader<'a>(&'a self, file: FileInode<'a>) -> FileReader<'a> {
        let FileInode { size, start, fragment, blocks } = file;
        FileReader { fs: self, size, fragment, sizes: blocks, at: start, next: 0, ready: Vec::new(), used: 0 }
    }
}

/// Reads a file's bytes; skips whole blocks without unpacking them.
pub struct FileReader<'a> {
    fs: &'a Squashfs,
    size: u64,
    fragment: Option<(u32, u32)>,
    sizes: Cursor<'a>,
    /// Where the next block is stored.
    at: u64,
    /// The file's bytes up to here are unpacked or passed over.
    next: u64,
    ready: Vec<u8>,
    used: usize,
}

impl FileReader<'_> {
    /// How much of the file the next block holds; `None` if it is in the fragment.
    fn block(&self) -> (u64, bool) {
        let left = self.size - self.next;
        let whole = u64::from(self.fs.block_size);
        (left.min(whole), left >= whole || self.fragment.is_none())
    }

    fn load(&mut self) -> io::Result<()> {
        let (length, stored) = self.block();
        self.used = 0;
        self.ready = if stored {
            let word = self.sizes.u32()?;
            match word & (PLAIN - 1) {
                // A hole.
                0 => vec![0; length as usize],
                n => {
                    let at = self.at;
                    self.at = at.saturating_add(n.into());
                    self.fs.unpacked(at, word)?
                }
            }
        } else if let Some((number, offset)) = self.fragment {
            let fragment = self.fs.fragment(number)?;
            let from = offset as usize;
            let part = from.checked_add(length as usize).and_then(|to| fragment.get(from..to));
            part.ok_or_else(|| damaged("a file's end lies outside its fragment"))?.to_vec()
        } else {
            Vec::new()
        };
        if self.ready.len() as u64 != length {
            return Err(damaged("a block holds more or less than its part of the file"));
        }
        self.next += length;
        Ok(())
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.used == self.ready.len() {
            if self.next >= self.size || out.is_empty() {
                return Ok(0);
            }
            self.load()?;
        }
        let n = out.len().min(self.ready.len() - self.used);
        out[..n].copy_from_slice(&self.ready[self.used..self.used + n]);
        self.used += n;
        Ok(n)
    }
}

impl Source for FileReader<'_> {
    fn seeks(&self) -> bool {
        true
    }

    fn skip(&mut self, n: u64) -> io::Result<u64> {
        let mut left = n;
        loop {
            let here = left.min((self.ready.len() - self.used) as u64);
            self.used += here as usize;
            left -= here;
            if left == 0 || self.next >= self.size {
                return Ok(n - left);
            }
            let (length, stored) = self.block();
            if length <= left && stored {
                self.at = self.at.saturating_add(u64::from(self.sizes.u32()? & (PLAIN - 1)));
                self.next += length;
                left -= length;
            } else {
                self.load()?;
            }
        }
    }
}
