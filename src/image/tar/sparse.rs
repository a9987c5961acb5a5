//! Sparse files: GNU's old type `S`, and the PAX dialects 0.0, 0.1 and 1.0.

use std::io::{self, Read};

use super::TarError;
use super::extension::Extensions;
use crate::stream::{Body, Part, Source, Stream};

/// Pieces of data of one file; real sparse libraries have a handful.
const MAX_PIECES: usize = 1 << 16;

/// Bytes of holes a file may have: reading them costs time and no library has more.
const MAX_HOLES: u64 = 4 << 30;

/// Where the stored bytes belong in the logical file.
#[derive(Debug)]
pub(super) struct Map {
    /// (offset, length), ascending, not overlapping.
    pieces: Vec<(u64, u64)>,
    /// Logical size.
    pub(super) size: u64,
}

impl Map {
    fn new(pieces: Vec<(u64, u64)>, size: u64, at: u64) -> Result<Self, TarError> {
        let bad = |what: &str| TarError::Header { at, what: format!("sparse map: {what}") };
        let mut end = 0u64;
        let mut data = 0u64;
        for &(offset, length) in &pieces {
            if offset < end {
                return Err(bad("pieces overlap or go backwards"));
            }
            end = offset.checked_add(length).ok_or_else(|| bad("a piece overflows"))?;
            data += length;
        }
        if end > size {
            return Err(bad("a piece lies behind the end of the file"));
        }
        if size - data > MAX_HOLES {
            return Err(bad(&format!("{} bytes of holes are over the limit of {MAX_HOLES}", size - data)));
        }
        Ok(Self { pieces, size })
    }

    /// GNU type `S`: four pieces in the header, 21 more in each extension block.
    pub(super) fn from_gnu(header: &tar::Header, body: &mut dyn Body, at: u64) -> Result<Self, TarError> {
        let bad = |what: &str| TarError::Header { at, what: format!("sparse map: {what}") };
        let gnu = header.as_gnu().ok_or_else(|| bad("not a GNU header"))?;
        let mut pieces = Vec::new();
        let mut add = |sparse: &tar::GnuSparseHeader| -> Result<(), TarError> {
            if sparse.offset[0] == 0 || sparse.numbytes[0] == 0 {
                return Ok(());
            }
            let offset = super::number(&sparse.offset).ok_or_else(|| bad("an offset is not a number"))?;
            let length = super::number(&sparse.numbytes).ok_or_else(|| bad("a length is not a number"))?;
            if pieces.len() >= MAX_PIECES {
                return Err(bad("too many pieces"));
            }
            pieces.push((offset, length));
            Ok(())
        };
        for sparse in &gnu.sparse {
            add(sparse)?;
        }
        let mut more = gnu.isextended[0] != 0;
        while more {
            let mut block = tar::GnuExtSparseHeader::new();
            let window = body.window(512)?;
            let bytes = window.get(..512).ok_or_else(|| bad("cut off"))?;
            block.as_mut_bytes().copy_from_slice(bytes);
            body.consume(512);
            for sparse in &block.sparse {
                add(sparse)?;
            }
            more = block.isextended[0] != 0;
        }
        let size = super::number(&gnu.realsize).ok_or_else(|| bad("the real size is not a number"))?;
        Self::new(pieces, size, at)
    }

    /// The PAX dialects; reads the map of dialect 1.0 from the beginning of the data. `None`: not sparse.
    pub(super) fn from_pax(ext: &Extensions, data: &mut Part<'_>, at: u64) -> Result<Option<Self>, TarError> {
        let bad = |what: String| TarError::Header { at, what };
        let size = match ext.number("GNU.sparse.realsize").or_else(|| ext.number("GNU.sparse.size")) {
            Some(size) => size.map_err(bad)?,
            None => return Ok(None),
        };
        let wrong = || bad("sparse map: not a list of numbers".to_owned());
        let numbers: Vec<u64> = if ext.get("GNU.sparse.major") == Some(b"1") {
            read_leading_map(data, at)?
        } else if let Some(map) = ext.get("GNU.sparse.map") {
            let text = std::str::from_utf8(map).map_err(|_| wrong())?;
            text.split(',')
                .filter(|t| !t.is_empty())
                .map(|t| t.parse().map_err(|_| wrong()))
                .collect::<Result<_, _>>()?
        } else {
            let pairs = ext.pax.iter().filter(|(k, _)| k == b"GNU.sparse.offset" || k == b"GNU.sparse.numbytes");
            pairs
                .map(|(_, v)| std::str::from_utf8(v).ok().and_then(|t| t.parse().ok()).ok_or_else(wrong))
                .collect::<Result<_, _>>()?
        };
        if !numbers.len().is_multiple_of(2) || numbers.len() > 2 * MAX_PIECES {
            return Err(wrong());
        }
        let pieces = numbers.chunks_exact(2).map(|p| (p[0], p[1])).collect();
        Self::new(pieces, size, at).map(Some)
    }

    /// The logical file over the stored pieces.
    pub(super) fn expand<'a>(self, data: &'a mut dyn Body) -> Stream<Expand<'a>> {
        let size = self.size;
        Stream::new(Expand { data, pieces: self.pieces, next: 0, at: 0, size }, Some(size))
    }
}

/// Dialect 1.0: decimal numbers, one a line, padded to a block.
fn read_leading_map(data: &mut Part<'_>, at: u64) -> Result<Vec<u64>, TarError> {
    let wrong = || TarError::Header { at, what: "sparse map: not a list of numbers".to_owned() };
    let line = |data: &mut Part<'_>| -> Result<u64, TarError> {
        let window = data.window(24)?;
        let end = window.iter().take(24).position(|&b| b == b'\n').ok_or_else(wrong)?;
        let value = std::str::from_utf8(&window[..end]).ok().and_then(|t| t.parse().ok()).ok_or_else(wrong)?;
        data.consume(end + 1);
        Ok(value)
    };
    let count = line(data)?;
    if count > MAX_PIECES as u64 {
        return Err(TarError::Header { at, what: format!("sparse map: {count} pieces are over the limit") });
    }
    let numbers = (0..2 * count).map(|_| line(data)).collect::<Result<Vec<_>, _>>()?;
    let pad = data.position().wrapping_neg() % 512;
    data.skip(pad)?;
    Ok(numbers)
}

/// Reads pieces and zeros.
pub(super) struct Expand<'a> {
    data: &'a mut dyn Body,
    pieces: Vec<(u64, u64)>,
    next: usize,
    at: u64,
    size: u64,
}

impl Expand<'_> {
    /// What comes now: (bytes, whether they are data).
    fn run(&mut self) -> (u64, bool) {
        while let Some(&(offset, length)) = self.pieces.get(self.next) {
            if self.at < offset {
                return (offset - self.at, false);
            }
            if self.at < offset + length {
                return (offset + length - self.at, true);
            }
            self.next += 1;
        }
        (self.size - self.at, false)
    }
}

impl Read for Expand<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (left, is_data) = self.run();
        let n = left.min(buf.len() as u64) as usize;
        if n == 0 {
            return Ok(0);
        }
        let n = if is_data {
            let window = self.data.window(1)?;
            let n = n.min(window.len());
            if n == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a sparse file's data ends early"));
            }
            buf[..n].copy_from_slice(&window[..n]);
            self.data.consume(n);
            n
        } else {
            buf[..n].fill(0);
            n
        };
        self.at += n as u64;
        Ok(n)
    }
}

impl Source for Expand<'_> {
    fn skip(&mut self, n: u64) -> io::Result<u64> {
        let mut left = n;
        while left > 0 {
            let (run, is_data) = self.run();
            let step = run.min(left);
            if step == 0 {
                break;
            }
            let step = if is_data { self.data.skip(step)? } else { step };
            if step == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a sparse file's data ends early"));
            }
            self.at += step;
            left -= step;
        }
        Ok(n - left)
    }
}
