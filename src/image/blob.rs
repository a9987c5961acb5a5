//! A layer's stored bytes: digest verified, decompressed by what the bytes are (not by media type), bounded.

use std::cell::{Cell, RefCell};
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use super::sha256::Pair;
use crate::model::Digest;
use crate::stream::{Body, Source, Stream};
use flate2::bufread::MultiGzDecoder;

/// Bytes of stored data buffered before the decoder.
const STORED_BUFFER: usize = 64 << 10;

/// Unpacked bytes after which the ratio limit counts: small layers may be all zeros.
const RATIO_FROM: u64 = 1 << 30;

/// The zstd window that is accepted, 2^27: what `zstd --long` makes and what decoders allow by default.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Limits on what a layer may unpack to.
#[derive(Debug, Clone, Copy)]
pub struct BlobLimits {
    pub max_bytes: u64,
    pub max_ratio: u64,
}

/// Whether a blob of these sizes can be read to its end under the limits.
pub fn is_within(unpacked: u64, stored: u64, limits: BlobLimits) -> bool {
    unpacked <= limits.max_bytes && (unpacked <= RATIO_FROM || unpacked / stored.max(1) <= limits.max_ratio)
}

/// How a blob is compressed, told by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Gzip,
    Zstd,
    Plain,
}

impl Compression {
    /// Tells gzip and zstd (also behind skippable frames) by magic; anything else is taken as plain bytes.
    pub fn sniff(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [b, 0x2a, 0x4d, 0x18, ..] if b & 0xf0 == 0x50 => Self::Zstd,
            _ => Self::Plain,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Plain => "stored",
        }
    }
}

/// Counts and hashes what is read through it, and tells `on_read` of the byte counts.
pub struct Counted<'a, R> {
    inner: R,
    hashes: Rc<RefCell<Pair>>,
    count: Rc<Cell<u64>>,
    on_read: Option<&'a (dyn Fn(u64) + Sync)>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.hashes.borrow_mut().stored(&buf[..n]);
        self.count.set(self.count.get() + n as u64);
        if let Some(told) = self.on_read {
            told(n as u64);
        }
        Ok(n)
    }
}

#[allow(clippy::large_enum_variant, reason = "one a layer; a box would cost an indirection on every read")]
enum Decoder<R: Read> {
    Gzip(MultiGzDecoder<BufReader<Peeked<R>>>),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<Peeked<R>>>),
    Plain(BufReader<Peeked<R>>),
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(d) => d.read(buf),
            Self::Zstd(d) => d.read(buf),
            Self::Plain(d) => d.read(buf),
        }
    }
}

impl<R: Read> Decoder<R> {
    fn new(stored: R) -> io::Result<(Self, Compression)> {
        let peeked = Peeked::new(stored)?;
        let compression = peeked.compression();
        let buffered = BufReader::with_capacity(STORED_BUFFER, peeked);
        let decoder = match compression {
            Compression::Gzip => Self::Gzip(MultiGzDecoder::new(buffered)),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Self::Zstd(decoder)
            }
            Compression::Plain => Self::Plain(buffered),
        };
        Ok((decoder, compression))
    }

    fn stored(self) -> BufReader<Peeked<R>> {
        match self {
            Self::Gzip(d) => d.into_inner(),
            Self::Zstd(d) => d.finish(),
            Self::Plain(d) => d,
        }
    }
}

/// The unpacking side: enforces limits, hashes for the diff_id.
pub struct Unpacked<R: Read> {
    decoder: Decoder<R>,
    compression: Compression,
    /// Absent when the unpacked digest is not asked for.
    hashes: Option<Rc<RefCell<Pair>>>,
    stored: Rc<Cell<u64>>,
    unpacked: u64,
    limits: BlobLimits,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.decoder.read(buf).map_err(|e| {
            let at = self.stored.get();
            let name = self.compression.name();
            match e.kind() {
                io::ErrorKind::UnexpectedEof => io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("{name} data ends early (after {at} stored bytes)"),
                ),
                // A source's own failures speak for themselves.
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other
                    if self.compression != Compression::Plain =>
                {
                    io::Error::new(e.kind(), format!("damaged {name} data near stored byte {at}: {e}"))
                }
                _ => e,
            }
        })?;
        if let Some(hashes) = &self.hashes {
            hashes.borrow_mut().unpacked(&buf[..n]);
        }
        self.unpacked += n as u64;
        if self.unpacked > self.limits.max_bytes {
            return Err(limit(format!(
                "unpacks to more than {} bytes (raise --max-layer-size to read on)",
                self.limits.max_bytes
            )));
        }
        if self.unpacked > RATIO_FROM {
            let stored = self.stored.get().max(1);
            if self.unpacked / stored > self.limits.max_ratio {
                return Err(limit(format!(
                    "unpacks to more than {} times its stored size: taken for a decompression bomb (raise \
                     --max-ratio to read on)",
                    self.limits.max_ratio
                )));
            }
        }
        Ok(n)
    }
}

impl<R: Read> Source for Unpacked<R> {}

fn limit(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, what)
}

/// A layer as a stream of its unpacked bytes.
pub type BlobBody<'a> = Stream<Unpacked<Counted<'a, Box<dyn Read + 'a>>>>;

/// What reading a blob to its end has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobSummary {
    pub digest: Digest,
    /// Absent when it was not asked for.
    pub diff_id: Option<Digest>,
    pub stored: u64,
    pub unpacked: u64,
}

/// Opens stored bytes for reading; `diff_id` asks for the unpacked digest too.
pub fn open<'a>(
    stored: Box<dyn Read + 'a>,
    limits: BlobLimits,
    diff_id: bool,
    on_read: Option<&'a (dyn Fn(u64) + Sync)>,
) -> io::Result<BlobBody<'a>> {
    let count = Rc::new(Cell::new(0));
    let hashes = Rc::new(RefCell::new(Pair::new()));
    let counted = Counted { inner: stored, hashes: hashes.clone(), count: count.clone(), on_read };
    let (decoder, compression) = Decoder::new(counted)?;
    // Plain bytes are their own unpacked form: one digest serves for both.
    let diff_id = diff_id && compression != Compression::Plain;
    let unpacked =
        Unpacked { decoder, compression, hashes: diff_id.then_some(hashes), stored: count, unpacked: 0, limits };
    Ok(Stream::new(unpacked, None))
}

/// Looks at the first bytes of a reader and gives them back to whoever reads next.
struct Peeked<R> {
    head: [u8; 4],
    held: usize,
    given: usize,
    inner: R,
}

impl<R: Read> Peeked<R> {
    fn new(mut inner: R) -> io::Result<Self> {
        let mut head = [0; 4];
        let mut held = 0;
        while held < head.len() {
            match inner.read(&mut head[held..]) {
                Ok(0) => break,
                Ok(n) => held += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Self { head, held, given: 0, inner })
    }

    fn compression(&self) -> Compression {
        Compression::sniff(&self.head[..self.held])
    }
}

impl<R: Read> Read for Peeked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = &self.head[self.given..self.held];
        if left.is_empty() {
            return self.inner.read(buf);
        }
        let n = left.len().min(buf.len());
        buf[..n].copy_from_slice(&left[..n]);
        self.given += n;
        Ok(n)
    }
}

/// Reads what is left (padding after the tar's end belongs to the digests too) and gives the digests.
pub fn finish(mut body: BlobBody<'_>) -> io::Result<BlobSummary> {
    loop {
        let n = body.window(1)?.len();
        if n == 0 {
            break;
        }
        body.consume(n);
    }
    let Unpacked { decoder, compression, hashes, stored, unpacked, .. } = body.into_source();
    let asked = hashes.is_some();
    drop(hashes);
    let mut rest = decoder.stored();
    // Bytes behind the last gzip member or zstd frame: part of the blob and its digest.
    io::copy(&mut rest, &mut io::sink())?;
    let hashes = std::mem::take(&mut *rest.get_ref().inner.hashes.borrow_mut());
    let (digest, unpacked_digest) = hashes.finish();
    let diff_id = match compression {
        Compression::Plain => Some(digest),
        Compression::Gzip | Compression::Zstd => asked.then_some(unpacked_digest),
    };
    Ok(BlobSummary { digest, diff_id, stored: stored.get(), unpacked })
}

/// A decompressing reader without digests: for the outside of a compressed archive.
pub fn decompress<'a>(stored: Box<dyn Read + Send + 'a>) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(Box::new(Decoder::new(stored)?.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LIMITS: BlobLimits = BlobLimits { max_bytes: 1 << 40, max_ratio: 200 };

    fn gz(data: &[u8]) -> Vec<u8> {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        e.write_all(data).unwrap();
        e.finish().unwrap()
    }

    fn read(stored: &[u8]) -> io::Result<(Vec<u8>, BlobSummary)> {
        let mut body = open(Box::new(stored), LIMITS, true, None)?;
        let data = body.read_all(1 << 30)?.unwrap();
        Ok((data, finish(body)?))
    }

    #[test]
    fn every_compression_gives_the_same_bytes_and_both_digests() {
        let data: Vec<u8> = (0..200_000u32).flat_map(|i| i.wrapping_mul(i).to_le_bytes()).collect();
        let mut two_members = gz(&data[..1000]);
        two_members.extend(gz(&data[1000..]));
        let mut two_frames = zstd::encode_all(&data[..1000], 3).unwrap();
        two_frames.extend(b"\x50\x2a\x4d\x18\x04\0\0\0skip");
        two_frames.extend(zstd::encode_all(&data[1000..], 3).unwrap());
        let mut skippable_first = b"\x5f\x2a\x4d\x18\x02\0\0\0ab".to_vec();
        skippable_first.extend(&two_frames);
        for stored in [data.clone(), gz(&data), two_members, two_frames, skippable_first] {
            let (got, summary) = read(&stored).unwrap();
            assert_eq!(got, data);
            assert_eq!(summary.digest, Digest::of(&stored));
            assert_eq!(summary.diff_id, Some(Digest::of(&data)));
            assert_eq!((summary.stored, summary.unpacked), (stored.len() as u64, data.len() as u64));
        }
    }

    #[test]
    fn cut_and_damaged_streams_are_errors() {
        let data = vec![7u8; 100_000];
        for whole in [gz(&data), zstd::encode_all(&data[..], 3).unwrap()] {
            let err = read(&whole[..whole.len() - 9]).unwrap_err();
            assert!(err.to_string().contains("ends early"), "{err}");
        }
        let mut bad_crc = gz(&data);
        let n = bad_crc.len();
        bad_crc[n - 8..].fill(0);
        assert!(read(&bad_crc).unwrap_err().to_string().contains("damaged gzip"));
    }

    #[test]
    fn a_bomb_is_stopped() {
        // Members of 16 MiB of zeros, together a little over the size from which the ratio counts.
        let member = gz(&vec![0; 16 << 20]);
        let bomb = member.repeat(66);
        let mut body = open(Box::new(&bomb[..]), LIMITS, false, None).unwrap();
        let err = body.skip(u64::MAX).unwrap_err();
        assert!(err.to_string().contains("--max-ratio"), "{err}");
    }

    /// Damage that gets past the decoder must not get past the digests.
    #[test]
    fn whatever_is_cut_or_flipped_the_digests_are_of_what_was_there() {
        let data: Vec<u8> = (0..3000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let members = [gz(&data[..5000]), gz(&data[5000..])].concat();
        let skippable = b"\x50\x2a\x4d\x18\x04\0\0\0skip".to_vec();
        let zstd = |data: &[u8]| zstd::encode_all(data, 3).unwrap();
        let frames = [zstd(&data[..5000]), skippable, zstd(&data[5000..])].concat();
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let honest = |stored: &[u8]| {
            if let Ok((got, summary)) = read(stored) {
                assert_eq!(summary.digest, Digest::of(stored));
                assert_eq!(summary.diff_id, Some(Digest::of(&got)));
                assert_eq!((summary.stored, summary.unpacked), (stored.len() as u64, got.len() as u64));
            }
        };
        for whole in [members, frames] {
            (0..whole.len()).for_each(|cut| honest(&whole[..cut]));
            for _ in 0..2000 {
                let mut hurt = whole.clone();
                for _ in 0..1 + random() % 4 {
                    let at = random() as usize % hurt.len();
                    hurt[at] = random() as u8;
                }
                honest(&hurt);
            }
        }
    }
}
