//! Compressed offload bundles, `CCOB`: a header, then one plain bundle in zlib or zstd.
//!
//! The table of entries is at the bundle's front, so a few kilobytes of each are enough for the listing: one real file
//! has 28 MB of them for 2.3 GB. Only small ones are inflated whole, unless all is to be verified.

use std::io::{self, Read};

use super::bundle::{self, Entry, MAX_TABLE, Place, Table};
use super::image;
use super::inflate::{self, Counted, Inflater, Method, Sum, Summed};
use super::sink::Sink;
use super::target::{self, Target};
use crate::model::{Container, Item};
use crate::stream::{Body, BodyReader, Part, Plain, Stream};

pub(super) const MAGIC: &[u8; 4] = b"CCOB";

/// Longest header, that of version 3.
const LONGEST_HEADER: usize = 32;

/// Longest header of a zstd frame.
const FRAME_HEADER: usize = 18;

/// Bundles that are not larger are inflated whole.
const SMALL: u64 = 1 << 20;

/// Compressed bytes from which a table is tried to be read, one after the other.
const PREFIXES: [usize; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Whether a file of its own begins so: numbers of a version and a method, no text.
pub(super) fn is_start(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) && bytes.len() >= 8 && bytes[5] == 0 && bytes[7] == 0
}

/// A decoded header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    method: Method,
    /// Bytes of the header.
    size: u64,
    /// Bytes of the whole, header included; version 1 does not tell.
    total: Option<u64>,
    raw: u64,
    hash: u64,
}

fn header(bytes: &[u8]) -> Result<Header, String> {
    let number = |at: usize, size: usize| -> Option<u64> {
        let bytes = bytes.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |value, b| value << 8 | u64::from(*b)))
    };
    let cut = || "compressed offload bundle whose header is cut off by the end".to_owned();
    let (Some(version), Some(method)) = (number(4, 2), number(6, 2)) else { return Err(cut()) };
    let method = match method {
        0 => Method::Zlib,
        1 => Method::Zstd,
        other => return Err(format!("compressed offload bundle of unknown method {other}")),
    };
    let (size, total, raw) = match version {
        1 => (20, None, number(8, 4)),
        2 => (24, number(8, 4), number(12, 4)),
        3 => (32, number(8, 8), number(16, 8)),
        other => return Err(format!("compressed offload bundle of unknown version {other}")),
    };
    let (Some(raw), Some(hash)) = (raw, number(size - 8, 8)) else { return Err(cut()) };
    let size = size as u64;
    if total.is_some_and(|t| t <= size) {
        return Err("compressed offload bundle without bytes".to_owned());
    }
    Ok(Header { method, size, total, raw, hash })
}

/// Reads the compressed bundle at the current position and moves past it; or tells why there is none, and does not
/// move. `origin` as in [`Place`].
pub(super) fn read(sink: &mut Sink, body: &mut dyn Body, origin: Option<u64>) -> io::Result<Result<(), String>> {
    let start = body.position();
    let at = origin.unwrap_or(start);
    let window = body.window(LONGEST_HEADER + FRAME_HEADER)?;
    let mut header = match header(window) {
        Ok(header) => header,
        Err(why) => return Ok(Err(why)),
    };
    let compressed = window.get(header.size as usize..).unwrap_or_default();
    if !header.method.begins(compressed) {
        return Ok(Err("compressed offload bundle without compressed bytes".to_owned()));
    }
    let says = if header.method == Method::Zstd { inflate::zstd_size(compressed) } else { None };
    let wrong = says.filter(|n| *n != header.raw);
    if let Some(says) = wrong {
        let why = format!("compressed offload bundle states {} bytes, its zstd frame {says}", header.raw);
        sink.damage(at, why);
        header.raw = says;
    }
    let left = body.len().map_or(u64::MAX, |n| n.saturating_sub(start));
    if let Some(total) = header.total.filter(|t| *t > left) {
        sink.damage(
            at,
            format!("compressed offload bundle of {total} bytes runs past the end ({left} bytes left)"),
        );
        listed(sink, body, at, &header, left - header.size.min(left))?;
        // The size is wrong, so what it says of the next one's place is, too.
        body.skip(header.size)?;
        return Ok(Ok(()));
    }
    let stored = header.total.map(|t| t - header.size);
    let whole = header.raw <= SMALL || sink.options.verify || stored.is_none();
    if whole && wrong.is_none() && header.raw <= sink.may_inflate() {
        body.skip(header.size)?;
        inflated(sink, body, at, &header, stored)?;
        return Ok(Ok(()));
    }
    if sink.options.verify && wrong.is_none() {
        sink.damage(at, "compressed offload bundle is not verified: over the limit for one file");
    }
    listed(sink, body, at, &header, stored.unwrap_or(u64::MAX))?;
    // Without a total the search goes on behind the header.
    let size = header.size + stored.unwrap_or(0);
    if body.skip(size)? < size {
        sink.damage(at, "compressed offload bundle is cut off by the end of the file");
    }
    Ok(Ok(()))
}

/// Lists the entries from the first compressed bytes. Does not move.
fn listed(sink: &mut Sink, body: &mut dyn Body, at: u64, header: &Header, stored: u64) -> io::Result<()> {
    let skip = header.size as usize;
    for prefix in PREFIXES {
        let want = usize::try_from(stored).unwrap_or(usize::MAX).min(prefix);
        let window = body.window(skip + want)?.get(skip..).unwrap_or_default();
        let bytes = &window[..window.len().min(want)];
        let all = bytes.len() < prefix;
        let most = sink.may_inflate().min(MAX_TABLE as u64) as usize;
        let (table, inflated) = first_table(header.method, bytes, most);
        sink.inflated(inflated as u64);
        match table {
            Table::Whole { entries, size } => {
                list(sink, at, header, entries, size, stored);
                return Ok(());
            }
            Table::Bad(why) => {
                sink.damage(at, format!("compressed: {why}"));
                return Ok(());
            }
            Table::Needs(_) if all => break,
            Table::Needs(_) => {}
        }
    }
    sink.damage(at, "the table of entries of a compressed offload bundle cannot be inflated");
    Ok(())
}

/// Inflates until the table is whole; `Needs`: the bytes do not reach. Also how much was inflated.
fn first_table(method: Method, bytes: &[u8], most: usize) -> (Table, usize) {
    let Ok(mut inflater) = Inflater::new(method, bytes) else { return (Table::Needs(0), 0) };
    let mut out = Vec::new();
    let mut table = Table::Needs(bundle::MAGIC.len());
    let mut buffer = [0; 4 << 10];
    while let Table::Needs(least) = table {
        while out.len() < least {
            match inflater.read(&mut buffer) {
                Ok(n) if n > 0 && out.len() < most => out.extend_from_slice(&buffer[..n]),
                _ => return (table, out.len()),
            }
        }
        table = match out.starts_with(bundle::MAGIC) {
            true => bundle::table(&out),
            false => Table::Bad("what is inflated is no offload bundle".to_owned()),
        };
    }
    (table, out.len())
}

fn list(sink: &mut Sink, at: u64, header: &Header, mut entries: Vec<Entry>, table_size: u64, stored: u64) {
    let place = place(at, header, Some(stored).filter(|_| header.total.is_some()));
    bundle::check_bounds(sink, at, &mut entries, table_size, header.raw);
    let mut found: Vec<(Item, u64)> = Vec::new();
    for entry in entries {
        if let Target::Device(arch) = target::of_id(&entry.id) {
            found.push((Item { packing: place.packing, ..image::by_name(arch) }, place.stored(entry.size)));
        }
    }
    if found.is_empty() {
        sink.log.empty += 1;
    }
    sink.add(place.container, at, &mut found);
}

/// Where no size of the whole is stated, entries have their inflated sizes.
fn place(at: u64, header: &Header, stored: Option<u64>) -> Place {
    let packing = header.method.packing();
    let ratio = stored.map_or((1, 1), |stored| (stored, header.raw));
    Place { container: Container::CompressedBundle, origin: Some(at), packing, ratio }
}

/// Inflates all of it, behind its header, and checks what it holds. Moves past it.
fn inflated(sink: &mut Sink, body: &mut dyn Body, at: u64, header: &Header, stored: Option<u64>) -> io::Result<()> {
    let mut part = Part::new(body, stored.unwrap_or(u64::MAX));
    let mut failed = None;
    let (mut sum, mut count) = (Sum::default(), 0);
    // One byte more than stated shows that there is more; of small ones the table can be told nevertheless.
    let most = header.raw.max(SMALL).saturating_add(1);
    let read = {
        let source = Watched { inner: BodyReader(&mut part), failed: &mut failed };
        let inner = Inflater::new(header.method, source)?;
        let inner = Counted { inner, count: &mut count, most };
        let mut stream = Stream::new(Plain(Summed { inner, sum: &mut sum }), None);
        let place = place(at, header, stored);
        bundle_of(sink, &mut stream, &place)
    };
    if let Some(source) = failed {
        return Err(source);
    }
    sink.inflated(sum.bytes);
    if let Ok(Err(why)) = &read {
        sink.damage(at, format!("compressed: {why}"));
    }
    if read.is_err() {
        sink.damage(at, "compressed offload bundle is damaged: it cannot be inflated");
    } else if sum.bytes > header.raw {
        sink.damage(
            at,
            format!("compressed offload bundle inflates to more than the {} bytes it states", header.raw),
        );
    } else if sum.bytes < header.raw {
        let why = format!("compressed offload bundle inflates to {} bytes of {}", sum.bytes, header.raw);
        sink.damage(at, why);
    } else if sum.hash() != header.hash {
        sink.damage(at, "compressed offload bundle has another hash than its header states");
    }
    if stored.is_some() {
        let missing = part.finish()?;
        if missing > 0 {
            sink.damage(at, "compressed offload bundle is cut off by the end of the file");
        }
    }
    Ok(())
}

/// Reads the bundle that a stream is, to its end.
fn bundle_of(sink: &mut Sink, stream: &mut dyn Body, place: &Place) -> io::Result<Result<(), String>> {
    if !stream.window(bundle::MAGIC.len())?.starts_with(bundle::MAGIC) {
        return Ok(Err("what is inflated is no offload bundle".to_owned()));
    }
    let told = bundle::read(sink, stream, place)?;
    stream.skip(u64::MAX)?;
    Ok(told)
}

/// Remembers an error of the source: an inflater reports it like damage.
struct Watched<'a, R> {
    inner: R,
    failed: &'a mut Option<io::Error>,
}

impl<R> Watched<'_, R> {
    fn note<T>(failed: &mut Option<io::Error>, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            *failed = Some(error);
            kind.into()
        })
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Self::note(self.failed, self.inner.read(buf))
    }
}

impl<R: io::BufRead> io::BufRead for Watched<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Self::note(self.failed, self.inner.fill_buf())
    }

    fn consume(&mut self, n: usize) {
        self.inner.consume(n);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::sink::Options;
    use super::super::testing::{bundle, code_object};
    use super::*;

    fn compressed(version: u16, method: u16, raw: &[u8], stated: usize) -> Vec<u8> {
        let bytes = if method == 0 {
            let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(raw).unwrap();
            out.finish().unwrap()
        } else {
            zstd::bulk::compress(raw, 1).unwrap()
        };
        let mut sum = Sum::default();
        io::copy(&mut Summed { inner: raw, sum: &mut sum }, &mut io::sink()).unwrap();
        let mut out = MAGIC.to_vec();
        out.extend([version.to_le_bytes(), method.to_le_bytes()].concat());
        let wide = if version == 3 { 8 } else { 4 };
        if version > 1 {
            out.extend(&(8 + 2 * wide + 8 + bytes.len()).to_le_bytes()[..wide]);
        }
        out.extend(&stated.to_le_bytes()[..wide]);
        out.extend(sum.hash().to_le_bytes());
        out.extend(bytes);
        out
    }

    /// Targets, gaps, where reading ended.
    fn told(bytes: &[u8], options: Options) -> (Vec<String>, Vec<String>, u64) {
        let mut sink = Sink::new(options);
        let mut body = Stream::new(bytes, Some(bytes.len() as u64));
        let read = read(&mut sink, &mut body, None).unwrap();
        assert_eq!(read, Ok(()));
        let modules = sink.log.modules(|_| (None, false));
        let items = modules.iter().flat_map(|m| &m.items).map(|i| i.item.arch.to_string()).collect();
        (items, sink.gaps.into_iter().map(|g| g.why).collect(), body.position())
    }

    fn raw(size: usize) -> Vec<u8> {
        let large = [code_object(6, 0x54c), vec![7; size]].concat();
        bundle(
            &[
                ("host-x86_64-unknown-linux--", b""),
                ("hipv4-amdgcn-amd-amdhsa--gfx942", &large),
                ("hipv4-amdgcn-amd-amdhsa--gfx90a", &code_object(6, 0x53f)),
            ],
            4096,
        )
    }

    #[test]
    fn small_and_large_ones_of_all_versions() {
        for size in [100, 3 << 20] {
            let raw = raw(size);
            for (version, method) in [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)] {
                for verify in [false, true] {
                    let mut bytes = compressed(version, method, &raw, raw.len());
                    let end = bytes.len() as u64;
                    bytes.extend([0; 100]);
                    let (targets, gaps, at) = told(&bytes, Options { verify });
                    assert_eq!((targets.len(), gaps.len(), at), (2, 0, end), "{version} {method} {size} {gaps:?}");
                }
            }
        }
    }

    #[test]
    fn what_the_header_states_is_checked() {
        let all = Options { verify: true };
        let large = raw(3 << 20);
        for (stated, method) in [(large.len() - 1, 0), (large.len() + 1, 0), (large.len() - 1, 1)] {
            let (targets, gaps, _) = told(&compressed(3, method, &large, stated), all);
            assert_eq!((targets.len(), gaps.is_empty()), (2, false), "{stated} {gaps:?}");
        }
        let mut bytes = compressed(3, 1, &large, large.len());
        bytes[24] ^= 1;
        assert_eq!(told(&bytes, Options::default()).1, Vec::<String>::new());
        assert!(told(&bytes, all).1[0].contains("hash"), "{:?}", told(&bytes, all).1);
        // Of two targets one is another's code: only found by looking at it.
        let id = "hipv4-amdgcn-amd-amdhsa--gfx90a";
        let large = bundle(&[(id, &[code_object(6, 0x54c), vec![0; 2 << 20]].concat())], 4096);
        let bytes = compressed(3, 1, &large, large.len());
        assert_eq!(told(&bytes, Options::default()).1, Vec::<String>::new());
        let gaps = told(&bytes, all).1;
        assert!(gaps[0].contains("gfx90a") && gaps[0].contains("gfx942"), "{gaps:?}");
    }

    #[test]
    fn sizes_that_wrap_are_told() {
        let id = "hipv4-amdgcn-amd-amdhsa--gfx942";
        let mut wild = bundle(&[(id, &code_object(6, 0x54c)), (id, &code_object(6, 0x54c))], 4096);
        for at in [40, 40 + 24 + id.len()] {
            wild[at..at + 8].copy_from_slice(&(u64::MAX - 8192).to_le_bytes());
        }
        let (targets, gaps, _) = told(&compressed(3, 1, &wild, wild.len()), Options::default());
        assert_eq!((targets.len(), gaps.is_empty()), (1, false));
    }

    #[test]
    fn a_bomb_costs_no_more_than_its_file_may() {
        // Small ones are inflated whole, so long as that is not too much together.
        let small = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx90a", &[0; (1 << 20) - 4096])], 4096);
        let mut sink = Sink::new(Options::default());
        let bytes = compressed(3, 1, &small, small.len()).repeat(600);
        let mut body = Stream::new(&bytes[..], Some(bytes.len() as u64));
        while body.window(4).unwrap().starts_with(MAGIC) {
            read(&mut sink, &mut body, None).unwrap().unwrap();
        }
        assert_eq!(sink.may_inflate(), 0);
        assert!(!sink.gaps.is_empty() && !sink.log.is_empty());
    }
}
