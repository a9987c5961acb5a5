//! One forward pass over bytes: a buffered reader that can look ahead and skip.
//!
//! Everything that reads an outside file reads it through [`Body`]: a layer's tar, a file in it, a file on disk.
//! Bodies are never held whole; a window is at most [`MAX_WINDOW`] bytes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The largest window that can be asked for.
pub const MAX_WINDOW: usize = 8 << 20;

/// Buffer size: large enough that look-ahead rarely moves bytes, small enough to stay in cache.
const BUFFER: usize = 128 << 10;

/// A forward-only view of bytes.
#[allow(clippy::len_without_is_empty, reason = "whether anything is left is what a window tells")]
pub trait Body {
    /// The bytes at the current position: at least `min` of them, fewer only at the end; often more. Does not
    /// move. `min` is at most [`MAX_WINDOW`].
    fn window(&mut self, min: usize) -> io::Result<&[u8]>;

    /// Moves past `n` bytes of the last window.
    fn consume(&mut self, n: usize);

    /// Moves past `n` bytes and returns how many there were: fewer than `n` only at the end.
    fn skip(&mut self, n: u64) -> io::Result<u64>;

    /// Bytes consumed and skipped so far.
    fn position(&self) -> u64;

    /// The whole length, where it is known before the end.
    fn len(&self) -> Option<u64>;

    /// Reads the rest, if it is at most `cap` bytes; `None` if there is more.
    fn read_all(&mut self, cap: usize) -> io::Result<Option<Vec<u8>>> {
        let mut out = Vec::new();
        loop {
            let window = self.window(1)?;
            if window.is_empty() {
                return Ok(Some(out));
            }
            let n = window.len();
            if out.len() + n > cap {
                return Ok(None);
            }
            out.extend_from_slice(window);
            self.consume(n);
        }
    }
}

/// Bytes read first after a seek: what follows skipped device code is usually one header.
const AFTER_SEEK: usize = 4 << 10;

/// A reader that may know a faster way to skip.
pub trait Source: Read {
    /// Whether skipping costs nothing, so that reading far ahead of a skip would be wasted.
    fn seeks(&self) -> bool {
        false
    }

    /// Skips up to `n` bytes; returns how many.
    fn skip(&mut self, n: u64) -> io::Result<u64> {
        let mut left = n;
        let mut sink = [0u8; 16 << 10];
        while left > 0 {
            let want = left.min(sink.len() as u64) as usize;
            match self.read(&mut sink[..want]) {
                Ok(0) => break,
                Ok(got) => left -= got as u64,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(n - left)
    }
}

impl Source for &[u8] {
    fn skip(&mut self, n: u64) -> io::Result<u64> {
        let n = n.min(self.len() as u64) as usize;
        *self = &self[n..];
        Ok(n as u64)
    }
}

/// A file on disk, skipped by seeking.
#[derive(Debug)]
pub struct DiskFile {
    file: File,
    at: u64,
    size: u64,
}

impl DiskFile {
    pub fn new(mut file: File) -> io::Result<Self> {
        let at = file.stream_position()?;
        let size = file.metadata()?.len();
        Ok(Self { file, at, size })
    }
}

impl Read for DiskFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buf)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Source for DiskFile {
    fn seeks(&self) -> bool {
        true
    }

    fn skip(&mut self, n: u64) -> io::Result<u64> {
        let n = n.min(self.size.saturating_sub(self.at));
        self.at = self.file.seek(SeekFrom::Start(self.at + n))?;
        Ok(n)
    }
}

/// Any reader as a source that skips by reading.
pub struct Plain<R>(pub R);

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}
impl<R: Read> Source for Plain<R> {}

/// A buffered [`Body`] over a source.
pub struct Stream<S> {
    source: S,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    position: u64,
    length: Option<u64>,
    ended: bool,
    /// Bytes to read next; grows while reading goes straight on.
    reach: usize,
}

impl Stream<DiskFile> {
    pub fn open(path: &std::path::Path) -> io::Result<Self> {
        let file = DiskFile::new(File::open(path)?)?;
        let size = file.size;
        Ok(Self::new(file, Some(size)))
    }
}

impl<S: Source> Stream<S> {
    pub fn new(source: S, length: Option<u64>) -> Self {
        let size = match length {
            Some(n) if n < BUFFER as u64 => (n as usize + 1).max(4 << 10),
            _ => BUFFER,
        };
        Self {
            source,
            buffer: vec![0; size].into_boxed_slice(),
            start: 0,
            end: 0,
            position: 0,
            length,
            ended: false,
            reach: usize::MAX,
        }
    }

    pub fn into_source(self) -> S {
        self.source
    }

    pub fn source(&self) -> &S {
        &self.source
    }

    #[cold]
    fn make_room(&mut self, min: usize) {
        if min > self.buffer.len() {
            let mut larger = vec![0; min.next_power_of_two()].into_boxed_slice();
            larger[..self.end - self.start].copy_from_slice(&self.buffer[self.start..self.end]);
            self.buffer = larger;
        } else {
            self.buffer.copy_within(self.start..self.end, 0);
        }
        self.end -= self.start;
        self.start = 0;
    }
}

impl<S: Source> Body for Stream<S> {
    fn window(&mut self, min: usize) -> io::Result<&[u8]> {
        if min > MAX_WINDOW {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "look-ahead window too large"));
        }
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        while self.end - self.start < min && !self.ended {
            if self.start + min > self.buffer.len() {
                self.make_room(min);
            }
            let room = self.buffer.len() - self.end;
            let want = room.min(self.reach.max(min));
            self.reach = self.reach.saturating_mul(2);
            match self.source.read(&mut self.buffer[self.end..self.end + want]) {
                Ok(0) => self.ended = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, n: usize) {
        let n = n.min(self.end - self.start);
        self.start += n;
        self.position += n as u64;
    }

    fn skip(&mut self, n: u64) -> io::Result<u64> {
        let have = (self.end - self.start) as u64;
        let mut done = n.min(have);
        self.start += done as usize;
        if done < n && !self.ended {
            done += self.source.skip(n - done)?;
            if self.source.seeks() {
                self.reach = AFTER_SEEK;
            }
        }
        self.position += done;
        Ok(done)
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn len(&self) -> Option<u64> {
        self.length
    }
}

/// A body as a plain reader, for libraries that want one.
pub struct BodyReader<'a>(pub &'a mut dyn Body);

impl Read for BodyReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let window = self.0.window(1)?;
        let n = window.len().min(buf.len());
        buf[..n].copy_from_slice(&window[..n]);
        self.0.consume(n);
        Ok(n)
    }
}

/// Takes from the body what is consumed, not a byte more: what follows a compressed stream stays.
impl io::BufRead for BodyReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.window(1)
    }

    fn consume(&mut self, n: usize) {
        self.0.consume(n);
    }
}

impl Source for BodyReader<'_> {
    fn skip(&mut self, n: u64) -> io::Result<u64> {
        self.0.skip(n)
    }
}

/// The next `length` bytes of a body, as a body of their own.
pub struct Part<'a> {
    inner: &'a mut dyn Body,
    position: u64,
    length: u64,
}

impl<'a> Part<'a> {
    pub fn new(inner: &'a mut dyn Body, length: u64) -> Self {
        Self { inner, position: 0, length }
    }

    /// Moves to the end of the part; returns how many bytes were missing.
    pub fn finish(mut self) -> io::Result<u64> {
        let left = self.length - self.position;
        Ok(left - self.skip(left)?)
    }
}

impl Body for Part<'_> {
    fn window(&mut self, min: usize) -> io::Result<&[u8]> {
        let left = self.length - self.position;
        if left == 0 {
            return Ok(&[]);
        }
        let min = (min as u64).min(left) as usize;
        let window = self.inner.window(min)?;
        Ok(&window[..(window.len() as u64).min(left) as usize])
    }

    fn consume(&mut self, n: usize) {
        let n = (n as u64).min(self.length - self.position) as usize;
        self.inner.consume(n);
        self.position += n as u64;
    }

    fn skip(&mut self, n: u64) -> io::Result<u64> {
        let done = self.inner.skip(n.min(self.length - self.position))?;
        self.position += done;
        Ok(done)
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn len(&self) -> Option<u64> {
        Some(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out one byte at a time, the worst reader there is.
    struct Drip<'a>(&'a [u8]);
    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() || buf.is_empty() {
                return Ok(0);
            }
            buf[0] = self.0[0];
            self.0 = &self.0[1..];
            Ok(1)
        }
    }
    impl Source for Drip<'_> {}

    #[test]
    fn windows_grow_and_slide() {
        let data: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
        let mut s = Stream::new(Plain(&data[..]), None);
        assert_eq!(s.window(200_000).unwrap()[..200_000], data[..200_000]);
        s.consume(150_000);
        assert_eq!(s.skip(100_000).unwrap(), 100_000);
        assert_eq!(s.position(), 250_000);
        assert_eq!(s.window(60_000).unwrap(), &data[250_000..]);
        assert_eq!(s.skip(60_000).unwrap(), 50_000);
        assert!(s.window(1).unwrap().is_empty());
        assert!(s.window(MAX_WINDOW + 1).is_err());
    }

    #[test]
    fn a_part_ends_where_it_should() {
        let data = b"abcdefghij";
        let mut s = Stream::new(Drip(data), None);
        s.window(2).unwrap();
        s.consume(2);
        let mut p = Part::new(&mut s, 5);
        assert_eq!(p.window(100).unwrap(), b"cdefg");
        p.consume(2);
        assert_eq!(p.read_all(10).unwrap().unwrap(), b"efg");
        assert_eq!(p.finish().unwrap(), 0);
        assert_eq!(s.window(1).unwrap(), b"h");
        let p = Part::new(&mut s, 9);
        assert_eq!(p.finish().unwrap(), 6);
    }
}
