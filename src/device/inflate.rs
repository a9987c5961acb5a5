//! Compressed device code: inflated as a stream, counted and hashed, never kept.

use std::io::{self, BufRead, Read};

use flate2::bufread::ZlibDecoder;
use md5::{Digest, Md5};

use crate::model::Packing;

/// First bytes of a zstd frame.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How bytes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Zlib,
    Zstd,
}

impl Method {
    pub(super) fn packing(self) -> Packing {
        match self {
            Self::Zlib => Packing::Zlib,
            Self::Zstd => Packing::Zstd,
        }
    }

    /// Whether a stream may begin so.
    pub(super) fn begins(self, bytes: &[u8]) -> bool {
        match (self, bytes) {
            (Self::Zlib, [a, b, ..]) => a & 0xf == 8 && (u16::from(*a) << 8 | u16::from(*b)).is_multiple_of(31),
            (Self::Zstd, _) => bytes.starts_with(&ZSTD_MAGIC),
            (Self::Zlib, _) => false,
        }
    }
}

/// Inflates one stream; takes of the source no more than that stream.
pub(super) enum Inflater<R: BufRead> {
    Zlib(ZlibDecoder<R>),
    Zstd(Box<zstd::stream::read::Decoder<'static, R>>),
}

impl<R: BufRead> Inflater<R> {
    pub(super) fn new(method: Method, source: R) -> io::Result<Self> {
        Ok(match method {
            Method::Zlib => Self::Zlib(ZlibDecoder::new(source)),
            Method::Zstd => Self::Zstd(Box::new(zstd::stream::read::Decoder::with_buffer(source)?.single_frame())),
        })
    }
}

impl<R: BufRead> Read for Inflater<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Zlib(decoder) => decoder.read(buf),
            Self::Zstd(decoder) => decoder.read(buf),
        }
    }
}

/// What was inflated so far.
#[derive(Default)]
pub(super) struct Sum {
    pub bytes: u64,
    md5: Md5,
}

impl Sum {
    /// The first eight bytes of the hash, little-endian, as compressed bundles state them.
    pub(super) fn hash(self) -> u64 {
        let digest = self.md5.finalize();
        digest.first_chunk().copied().map_or(0, u64::from_le_bytes)
    }
}

/// A reader that sums up what it gives.
pub(super) struct Summed<'a, R> {
    pub inner: R,
    pub sum: &'a mut Sum,
}

impl<R: Read> Read for Summed<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.sum.bytes += n as u64;
        self.sum.md5.update(&buf[..n]);
        Ok(n)
    }
}

/// A reader that counts what it gives, and ends at a bound.
pub(super) struct Counted<'a, R> {
    pub inner: R,
    pub count: &'a mut u64,
    pub most: u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.most.saturating_sub(*self.count)).unwrap_or(usize::MAX);
        let room = room.min(buf.len());
        let n = self.inner.read(&mut buf[..room])?;
        *self.count += n as u64;
        Ok(n)
    }
}

/// The uncompressed size that a zstd frame's header gives.
pub(super) fn zstd_size(frame: &[u8]) -> Option<u64> {
    zstd::zstd_safe::get_frame_content_size(frame).ok().flatten()
}
