//! Metadata: chains of small packed blocks, read where they are asked for and kept a while.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use super::codec::Codec;
use super::damaged;

/// A metadata block unpacked.
const BLOCK: usize = 8192;

/// Blocks kept: 4 MiB.
const KEPT: usize = 512;

/// The file, its codec, and the metadata blocks read last.
pub struct Store {
    file: File,
    pub codec: Codec,
    /// Bytes of the file that the file system has.
    end: u64,
    kept: Mutex<HashMap<u64, Block>>,
}

/// Where the next block begins, and what is in this one.
type Block = (u64, Arc<[u8]>);

impl Store {
    pub fn new(file: File, codec: Codec, end: u64) -> Self {
        Self { file, codec, end, kept: Mutex::default() }
    }

    /// Stored bytes.
    pub fn bytes(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        if at.checked_add(length as u64).is_none_or(|end| end > self.end) {
            return Err(damaged("a part of it lies behind its end"));
        }
        let mut out = vec![0; length];
        self.file.read_exact_at(&mut out, at)?;
        Ok(out)
    }

    fn block(&self, at: u64) -> io::Result<Block> {
        if let Some(block) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&at) {
            return Ok(block.clone());
        }
        let head = u16::from_le_bytes(array(&self.bytes(at, 2)?)?);
        let length = usize::from(head & 0x7fff);
        if length == 0 || length > BLOCK {
            return Err(damaged("a block of metadata has an impossible length"));
        }
        let stored = self.bytes(at + 2, length)?;
        let plain = if head & 0x8000 != 0 { stored } else { self.codec.unpack(&stored, BLOCK)? };
        let block: Block = (at + 2 + length as u64, plain.into());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(at, block.clone());
        Ok(block)
    }

    /// Reads on from `offset` in the block at `at`.
    pub fn cursor(&self, at: u64, offset: usize) -> Cursor<'_> {
        Cursor { store: self, next: at, block: Arc::new([]), offset }
    }
}

/// Reads metadata on across blocks.
pub struct Cursor<'a> {
    store: &'a Store,
    next: u64,
    block: Arc<[u8]>,
    offset: usize,
}

impl Cursor<'_> {
    pub fn read(&mut self, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            if self.offset >= self.block.len() {
                let skipped = self.offset - self.block.len();
                let (next, block) = self.store.block(self.next)?;
                // Only the first block is entered in its middle.
                if skipped >= block.len() {
                    return Err(damaged("a reference into metadata leads past its block"));
                }
                (self.next, self.block, self.offset) = (next, block, skipped);
            }
            let n = out.len().min(self.block.len() - self.offset);
            let (head, rest) = out.split_at_mut(n);
            head.copy_from_slice(&self.block[self.offset..self.offset + n]);
            self.offset += n;
            out = rest;
        }
        Ok(())
    }

    pub fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut out = [0; N];
        self.read(&mut out)?;
        Ok(out)
    }

    pub fn u16(&mut self) -> io::Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Leaves out `n` bytes.
    pub fn pass(&mut self, n: usize) -> io::Result<()> {
        self.read(&mut vec![0; n.min(BLOCK)])
    }
}

/// The first `N` bytes.
pub fn array<const N: usize>(bytes: &[u8]) -> io::Result<[u8; N]> {
    bytes.first_chunk().copied().ok_or_else(|| damaged("cut short"))
}
