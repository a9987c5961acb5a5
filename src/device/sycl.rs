//! Images that SYCL programs register: SPIR-V, archives of zebins, zebins, and zstd around any of these, one after
//! another in sections of their own. The sections have clang's bundle in their names but hold no bundle.
//!
//! Sections are known only at a file's end, and other programs carry SPIR-V, too (Vulkan's shaders): so images are noted
//! wherever they look right, and those outside of these sections are dropped afterwards.

use std::io::{self, Read};

use super::image;
use super::inflate::{self, Counted, Inflater, Method};
use super::sink::Sink;
use super::zebin::{self, Found};
use crate::model::{Arch, Item, Packing};
use crate::stream::{Body, BodyReader, Plain, Stream};

/// Nearly every library linked by the SYCL compiler has an image of 88 bytes without a function: SPIR-V that is not longer
/// than this is looked through for one.
const STUB: u64 = 400;

/// The instruction that begins a function.
const OP_FUNCTION: u32 = 54;

/// Images noted of one file; the most in a real one are 4,642.
const MAX_IMAGES: usize = 1 << 16;
const MAX_ITEMS: usize = 1 << 18;
const MAX_PROBLEMS: usize = 64;

const SPIRV_HEADER: u64 = 20;
/// A bound of ids above this is no SPIR-V: the standard's own limit.
const MAX_BOUND: u32 = 0x3f_ffff;

/// Compressed bytes that show what a frame holds: the longest first block and the headers before it.
const FIRST_BLOCK: usize = (128 << 10) + 32;
const BLOCK_HEADER: usize = 3;

/// An image, until the sections are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    pub offset: u64,
    /// Where it ends; plain SPIR-V does not tell: at the next image, or where its section does.
    pub end: Option<u64>,
    pub items: Vec<(Item, u64)>,
    /// Plain SPIR-V that begins as a stub does.
    stub: bool,
}

impl Image {
    /// What is in an image that ends here: nothing, where plain SPIR-V is a stub.
    pub(super) fn items(&self, end: u64) -> Vec<(Item, u64)> {
        let size = end.saturating_sub(self.offset);
        match self.end {
            Some(_) => self.items.clone(),
            None if self.stub && size <= STUB => Vec::new(),
            None => vec![(image::by_name(Arch::Spir64), size)],
        }
    }
}

/// What was noted of a file.
#[derive(Default)]
pub(super) struct Images {
    /// In the file's order.
    pub all: Vec<Image>,
    items: usize,
    pub problems: Vec<(u64, String)>,
    /// There were more.
    pub dropped: bool,
}

/// Notes the image at the current position and moves past it, or into it where it does not tell its size. `false`: there
/// is none, and nothing was moved.
pub(super) fn see(sink: &mut Sink, body: &mut dyn Body) -> io::Result<bool> {
    let offset = body.position();
    let head = body.window(zebin::ARCHIVE.len() + 64)?;
    let found = if head.starts_with(&image::SPIRV) {
        if !is_spirv(head) {
            return Ok(false);
        }
        let stub = is_stub(body.window(STUB as usize)?);
        body.skip(SPIRV_HEADER)?;
        note(&mut sink.images, Image { offset, end: None, items: Vec::new(), stub }, None);
        return Ok(true);
    } else if head.starts_with(&inflate::ZSTD_MAGIC) {
        match frame(sink, body)? {
            Some(found) => found,
            None => return Ok(false),
        }
    } else if zebin::begins_archive(head) {
        zebin::read_archive(body, Packing::None)?
    } else if let Some(size) = zebin::header(head) {
        let left = body.len().map_or(u64::MAX, |n| n.saturating_sub(offset));
        zebin::read(body, size.min(left), Packing::None)?
    } else {
        return Ok(false);
    };
    let end = Some(body.position());
    note(&mut sink.images, Image { offset, end, items: found.items, stub: false }, found.problem);
    Ok(true)
}

fn note(images: &mut Images, image: Image, problem: Option<String>) {
    if images.all.len() >= MAX_IMAGES || images.items + image.items.len() > MAX_ITEMS {
        images.dropped = true;
        return;
    }
    if let Some(problem) = problem.filter(|_| images.problems.len() < MAX_PROBLEMS) {
        images.problems.push((image.offset, problem));
    }
    images.items += image.items.len();
    images.all.push(image);
}

/// SPIR-V in a zstd frame of so many bytes.
fn spirv(stub: bool, stored: u64) -> Found {
    let mut found = Found::default();
    if !stub {
        found.items.push((Item { packing: Packing::Zstd, ..image::by_name(Arch::Spir64) }, stored));
    }
    found
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whether a SPIR-V module begins with these bytes: version 1.0 to 1.9, ids bounded, schema 0.
fn is_spirv(head: &[u8]) -> bool {
    let version = word(head, 4).is_some_and(|v| v & 0xffff_00ff == 0x1_0000 && v >> 8 & 0xff < 10);
    let bound = word(head, 12).is_some_and(|b| (1..=MAX_BOUND).contains(&b));
    head.starts_with(&image::SPIRV) && version && bound && word(head, 16) == Some(0)
}

/// Whether a module has instructions, and among those in its first bytes none that begins a function.
fn is_stub(module: &[u8]) -> bool {
    let module = &module[..module.len().min(STUB as usize)];
    let mut at = SPIRV_HEADER as usize;
    let mut any = false;
    while let Some(first) = word(module, at) {
        let (words, code) = ((first >> 16) as usize, first & 0xffff);
        if code == OP_FUNCTION {
            return false;
        }
        // The end, or what stands behind it.
        if words == 0 || module[at..].starts_with(&image::SPIRV) {
            break;
        }
        any = true;
        at += words * 4;
    }
    any
}

/// Reads the zstd frame at the current position, if an image is in it, and moves past it.
fn frame(sink: &mut Sink, body: &mut dyn Body) -> io::Result<Option<Found>> {
    let start = body.position();
    let window = body.window(FIRST_BLOCK)?;
    let Some(header) = frame_header(window) else { return Ok(None) };
    let says = inflate::zstd_size(window);
    let mut first = [0; STUB as usize];
    let n = peek(window, &mut first);
    let first = &first[..n];
    sink.inflate_images = sink.inflate_images.saturating_sub(n as u64);
    if is_spirv(first) {
        let stub = says.is_some_and(|raw| raw <= STUB) && is_stub(first);
        skip_frame(body, header)?;
        return Ok(Some(spirv(stub, body.position() - start)));
    }
    let archive = zebin::begins_archive(first);
    if !archive && zebin::header(first).is_none() {
        return Ok(None);
    }
    let most = sink.inflate_images;
    let mut count = 0;
    let read = inflated(body, &mut count, most, |stream| {
        if archive {
            zebin::read_archive(stream, Packing::Zstd)
        } else {
            zebin::read(stream, u64::MAX, Packing::Zstd)
        }
    })?;
    sink.inflate_images -= count.min(most);
    let mut found = read.unwrap_or_default();
    // A zebin's size is not known before its end.
    let stored = body.position() - start;
    let raw: u64 = found.items.iter().map(|i| i.1.min(count)).sum();
    for (_, bytes) in &mut found.items {
        *bytes = (u128::from((*bytes).min(count)) * u128::from(stored) / u128::from(raw.max(1))) as u64;
    }
    if says.is_some_and(|says| says != count) || found.items.is_empty() {
        let why = if count < most { "that cannot be inflated" } else { "over the limit for one file" };
        found.problem = Some(format!("compressed Intel GPU binaries {why}"));
    }
    Ok(Some(found))
}

/// Inflates the frame at the current position into `read`, and moves past it; `None`: it is damaged.
fn inflated(
    body: &mut dyn Body,
    count: &mut u64,
    most: u64,
    read: impl FnOnce(&mut dyn Body) -> io::Result<Found>,
) -> io::Result<Option<Found>> {
    let inner = Inflater::new(Method::Zstd, BodyReader(body))?;
    let mut stream = Stream::new(Plain(Counted { inner, count, most }), None);
    let found = read(&mut stream).and_then(|found| stream.skip(u64::MAX).map(|_| found));
    match found {
        Ok(found) => Ok(Some(found)),
        // What zstd says of damaged bytes; errors of the source have other kinds.
        Err(e) if matches!(e.kind(), io::ErrorKind::Other | io::ErrorKind::UnexpectedEof) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The first inflated bytes of a frame; returns how many there are.
fn peek(frame: &[u8], out: &mut [u8]) -> usize {
    let Ok(mut inflater) = Inflater::new(Method::Zstd, frame) else { return 0 };
    let mut n = 0;
    while n < out.len() {
        match inflater.read(&mut out[n..]) {
            Ok(got) if got > 0 => n += got,
            _ => break,
        }
    }
    n
}

/// A frame's header (RFC 8878, 3.1.1.1): its size, and whether a checksum follows the last block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FrameHeader {
    size: u64,
    checksum: bool,
}

fn frame_header(bytes: &[u8]) -> Option<FrameHeader> {
    let flags = *bytes.get(4)?;
    let single = flags & 0x20 != 0;
    let content = match flags >> 6 {
        0 => u64::from(single),
        n => 1 << n,
    };
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    // The reserved bit must be zero.
    (flags & 8 == 0)
        .then_some(FrameHeader { size: 5 + u64::from(!single) + dictionary + content, checksum: flags & 4 != 0 })
}

/// Moves past a frame by the sizes of its blocks.
fn skip_frame(body: &mut dyn Body, header: FrameHeader) -> io::Result<()> {
    body.skip(header.size)?;
    loop {
        let Some(&[a, b, c]) = body.window(BLOCK_HEADER)?.first_chunk() else { return Ok(()) };
        let block = u32::from_le_bytes([a, b, c, 0]);
        let size = match block >> 1 & 3 {
            // One byte, repeated.
            1 => 1,
            _ => block >> 3,
        };
        body.skip(BLOCK_HEADER as u64 + u64::from(size))?;
        if block & 1 == 1 {
            body.skip(if header.checksum { 4 } else { 0 })?;
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sink::Options;
    use super::super::testing::{archive, spirv, zebin};
    use super::*;

    /// The targets of each image at these bytes, where each ends, and problems.
    fn told(bytes: &[u8]) -> (Vec<String>, Vec<u64>, usize) {
        let mut sink = Sink::new(Options::default());
        let mut body = Stream::new(bytes, Some(bytes.len() as u64));
        while !body.window(1).unwrap().is_empty() {
            if !see(&mut sink, &mut body).unwrap() {
                body.skip(1).unwrap();
            }
        }
        let images = sink.images.all;
        let next = |i: usize| images.get(i + 1).map_or(bytes.len() as u64, |i| i.offset);
        let ends: Vec<u64> = images.iter().enumerate().map(|(i, image)| image.end.unwrap_or(next(i))).collect();
        let archs = |items: Vec<(Item, u64)>| {
            let archs: Vec<String> = items.iter().map(|i| i.0.arch.to_string()).collect();
            archs.join(" ")
        };
        let items = images.iter().zip(&ends).map(|(image, end)| archs(image.items(*end))).collect();
        let sizes = images.iter().zip(&ends).map(|(image, end)| end - image.offset).collect();
        (items, sizes, sink.images.problems.len())
    }

    #[test]
    fn images_one_after_another() {
        let module = spirv(1000);
        let ocloc = archive(&[("64.12.60.7/", &zebin(0x030f_0007)), ("64.20.1.0/", &zebin(0x0500_4000))]);
        let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
        let zeros = vec![0; 9];
        let parts = [
            module.clone(),
            module.clone(),
            zstd(&module),
            zstd(&ocloc),
            zeros.clone(),
            ocloc.clone(),
            zeros,
            zebin(0x030f_0007),
            spirv(8),
            zstd(b"something else"),
        ];
        let (items, sizes, problems) = told(&parts.concat());
        let both = "intel_gpu_12_60_7 intel_gpu_20_1_0";
        assert_eq!(items, ["spir64", "spir64", "spir64", both, both, "unknown", ""]);
        let size = |i: usize| parts[i].len() as u64;
        // A zebin of nothing but a header and a note ends, by its tables, behind its header.
        assert_eq!(sizes, [size(0), size(1), size(2), size(3), size(5), 64, size(8) + size(9)]);
        assert_eq!(problems, 1);
    }

    #[test]
    fn short_modules_with_a_function_are_code() {
        let function = |n: usize| [spirv(n), [0x0005_0036u32, 1, 2, 0, 3].map(u32::to_le_bytes).concat()].concat();
        let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
        let parts =
            [function(8), spirv(8), zstd(&function(8)), zstd(&spirv(8)), zstd(&spirv(100)), spirv(0), vec![0; 8]];
        assert_eq!(told(&parts.concat()).0, ["spir64", "", "spir64", "", "spir64", "spir64"]);
    }

    #[test]
    fn frames_of_all_shapes_end_where_they_do() {
        let raw = [spirv(100_000), vec![0; 300_000]].concat();
        for (level, checksum, size) in [(1, false, true), (3, true, true), (9, true, false)] {
            let mut encoder = zstd::stream::Encoder::new(Vec::new(), level).unwrap();
            encoder.include_checksum(checksum).unwrap();
            if size {
                encoder.set_pledged_src_size(Some(raw.len() as u64)).unwrap();
            }
            io::Write::write_all(&mut encoder, &raw).unwrap();
            let bytes = encoder.finish().unwrap();
            assert_eq!(told(&[&bytes[..], b"more"].concat()).1, [bytes.len() as u64], "{level}");
        }
    }

    #[test]
    fn what_only_looks_alike() {
        for version in [0u32, 0x0002_0000, 0x0001_0a00, 0x0101_0000] {
            let mut module = spirv(1000);
            module[4..8].copy_from_slice(&version.to_le_bytes());
            assert_eq!(told(&module).1, Vec::<u64>::new(), "{version:x}");
        }
        let all: Vec<u8> = (0..=255).cycle().take(5000).collect();
        let mut bytes = inflate::ZSTD_MAGIC.to_vec();
        bytes.extend(all);
        assert_eq!(told(&bytes).1, Vec::<u64>::new());
        assert_eq!(told(b"!<arch>\n and so on").1, Vec::<u64>::new());
    }
}
