//! Kernels that were taken out of HIP libraries: `.kpack` archives, and what is left in the libraries.
//!
//! A library without its kernels keeps its `.hip_fatbin` section, with zeroed pages. Its wrappers say `HIPK` instead of
//! `HIPF`, and `.rocm_kpack_ref` names the archives (rocm-systems, shared/kpack).

use std::collections::BTreeMap;
use std::io;

use serde::Deserialize;

use super::image;
use super::sink::Sink;
use crate::elf::{Section, Tables};
use crate::model::{Arch, Container, GfxArch, Item, Kpack, Packing};
use crate::stream::Body;

pub(super) const MAGIC: &[u8; 4] = b"KPAK";
const HEADER: usize = 16;
const VERSION: u32 = 1;

/// Largest table of contents: of an archive of a thousand libraries, a few hundred kilobytes.
const MAX_TOC: usize = 8 << 20;
const MAX_BINARIES: usize = 1 << 16;

/// First bytes of a wrapper whose kernels lie elsewhere: the magic and version 1.
pub(super) const WRAPPER: &[u8; 8] = b"HIPK\x01\0\0\0";
const IN_FILE: &[u8; 4] = b"FPIH";
const ELSEWHERE: &[u8; 4] = b"HIPK";
/// Bytes of one wrapper.
pub(super) const RECORD: usize = 24;

/// The keys of a reference, as MessagePack writes them.
pub(super) const NAME_KEY: &[u8] = b"\xabkernel_name";
pub(super) const PATHS_KEY: &[u8] = b"\xb2kpack_search_paths";

/// Most bytes that are looked at behind a key.
const REFERENCE: usize = 64 << 10;
const MAX_KEPT: usize = 4096;
const MAX_PATHS: usize = 64;
const MAX_TEXT: usize = 4096;

/// The section of wrappers.
pub(super) const SEGMENT: &str = ".hipFatBinSegment";
const REFERENCE_SECTION: &str = ".rocm_kpack_ref";

/// What may belong to a reference, until the sections are known; with offsets.
#[derive(Default)]
pub(super) struct Seen {
    wrappers: Vec<(u64, u32)>,
    names: Vec<(u64, String)>,
    paths: Vec<(u64, Vec<String>)>,
}

/// Notes a wrapper or a part of a reference at the current position. Does not move. `false`: it is neither.
pub(super) fn see(seen: &mut Seen, body: &mut dyn Body) -> io::Result<bool> {
    let at = body.position();
    let head = body.window(PATHS_KEY.len())?;
    let is_reference = head.starts_with(NAME_KEY) || head.starts_with(PATHS_KEY);
    if !is_reference && !head.starts_with(WRAPPER) {
        return Ok(false);
    }
    let window = body.window(if is_reference { REFERENCE } else { RECORD })?;
    if !is_reference {
        let index = window.get(16..20).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        if let Some(index) = index.filter(|_| seen.wrappers.len() < MAX_KEPT) {
            seen.wrappers.push((at, index));
        }
    } else if let Some(rest) = window.strip_prefix(NAME_KEY) {
        let name: Option<String> = value(rest);
        if let Some(name) = name.filter(|n| n.len() <= MAX_TEXT && seen.names.len() < MAX_PATHS) {
            seen.names.push((at, name));
        }
    } else if let Some(rest) = window.strip_prefix(PATHS_KEY) {
        let paths: Option<Vec<String>> = value(rest);
        let fits = |p: &Vec<String>| p.len() <= MAX_PATHS && p.iter().all(|p| p.len() <= MAX_TEXT);
        if let Some(paths) = paths.filter(|p| fits(p) && seen.paths.len() < MAX_PATHS) {
            seen.paths.push((at, paths));
        }
    }
    Ok(true)
}

/// The value that begins with these bytes.
fn value<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    T::deserialize(&mut rmp_serde::Deserializer::from_read_ref(bytes)).ok()
}

/// What a library says of kernels that lie elsewhere, and how many of its wrappers do; tells of wrappers that nobody
/// knows.
pub(super) fn reference(sink: &mut Sink, sections: &[Section], tables: &Tables) -> (Option<Kpack>, u64) {
    let Seen { wrappers, names, paths } = std::mem::take(&mut sink.kpack);
    // Where sections are stripped, wrappers are taken for what they look like.
    let lies_in =
        |at: u64, name: &str| sections.is_empty() || sections.iter().any(|s| s.name == name && s.holds(at));
    for section in sections.iter().filter(|s| s.name == SEGMENT) {
        let records = tables.bytes_of(section).unwrap_or_default().chunks(RECORD).zip(0..);
        let odd = |r: &[u8]| r.len() < RECORD || !(r.starts_with(IN_FILE) || r.starts_with(ELSEWHERE));
        if let Some((_, index)) = records.into_iter().find(|(record, _)| odd(record)) {
            let at = section.offset + index * RECORD as u64;
            sink.damage(at, "wrapper of a HIP fat binary that is not understood: its kernels may lie elsewhere");
        }
    }
    let mut indices: Vec<u32> = wrappers.iter().filter(|w| lies_in(w.0, SEGMENT)).map(|w| w.1).collect();
    let elsewhere = indices.len() as u64;
    indices.sort_unstable();
    indices.dedup();
    let section = sections.iter().find(|s| s.name == REFERENCE_SECTION);
    if indices.is_empty() && section.is_none() {
        return (None, 0);
    }
    let kernel = names.into_iter().find(|n| lies_in(n.0, REFERENCE_SECTION)).map(|n| n.1);
    let paths = paths.into_iter().find(|p| lies_in(p.0, REFERENCE_SECTION)).map(|p| p.1).unwrap_or_default();
    if let Some(section) = section.filter(|_| kernel.is_none() || paths.is_empty()) {
        sink.damage(section.offset, format!("section {REFERENCE_SECTION} names no kernels or no archives"));
    }
    (Some(Kpack::Reference { kernel, paths, indices }), elsewhere)
}

/// An archive's table of contents, as far as it matters.
#[derive(Deserialize)]
struct Toc {
    #[serde(default)]
    compression_scheme: Option<String>,
    #[serde(default)]
    blobs: Vec<Blob>,
    /// By `NAME#INDEX` and target.
    toc: BTreeMap<String, BTreeMap<String, Kernel>>,
}

#[derive(Deserialize)]
struct Blob {
    offset: u64,
    size: u64,
}

#[derive(Deserialize)]
struct Kernel {
    ordinal: u64,
    #[serde(default)]
    original_size: u64,
}

/// Reads an archive, which the body begins with. Its table of contents stands at its end.
pub(super) fn read(sink: &mut Sink, body: &mut dyn Body) -> io::Result<Option<Kpack>> {
    let window = body.window(HEADER)?;
    let header = window.get(4..8).zip(window.get(8..16));
    let header = header.and_then(|(v, t)| Some((v.try_into().ok()?, t.try_into().ok()?)));
    let Some((version, at)) = header.map(|(v, t)| (u32::from_le_bytes(v), u64::from_le_bytes(t))) else {
        sink.damage(0, "kpack archive whose header is cut off");
        return Ok(None);
    };
    if version != VERSION || at < HEADER as u64 {
        sink.damage(0, format!("kpack archive of unknown version {version}, or without a table of contents"));
        return Ok(None);
    }
    if body.skip(at)? < at || body.window(1)?.is_empty() {
        sink.damage(
            8,
            format!("kpack archive whose table of contents (offset {at}) lies past the end of the file"),
        );
        return Ok(None);
    }
    let Some(bytes) = body.read_all(MAX_TOC)? else {
        sink.damage(at, format!("kpack archive whose table of contents is over {MAX_TOC} bytes"));
        return Ok(None);
    };
    let toc: Toc = match rmp_serde::from_slice(&bytes) {
        Ok(toc) => toc,
        Err(_) => {
            sink.damage(at, "kpack archive whose table of contents cannot be read");
            return Ok(None);
        }
    };
    Ok(Some(list(sink, at, toc)))
}

fn list(sink: &mut Sink, at: u64, toc: Toc) -> Kpack {
    let packing = match toc.compression_scheme.as_deref() {
        None | Some("none") => Packing::None,
        Some("zstd-per-kernel") => Packing::Zstd,
        Some(_) => Packing::Unknown,
    };
    if packing == Packing::Unknown {
        sink.damage(at, "kpack archive of an unknown compression");
    }
    let outside = |k: &Kernel| match packing {
        Packing::None => {
            let blob = usize::try_from(k.ordinal).ok().and_then(|n| toc.blobs.get(n));
            blob.and_then(|b| b.offset.checked_add(b.size)).is_none_or(|end| end > at)
        }
        Packing::Lz4 | Packing::Zlib | Packing::Zstd | Packing::Unknown => false,
    };
    let mut binaries = Vec::new();
    for (name, kernels) in &toc.toc {
        if binaries.len() >= MAX_BINARIES {
            sink.damage(at, format!("kpack archive of more than {MAX_BINARIES} binaries"));
            break;
        }
        if kernels.values().any(outside) {
            sink.damage(at, "kpack archive with kernels that lie elsewhere than in it");
        }
        let arch = |text: &String| text.parse::<GfxArch>().map_or(Arch::Unknown, Arch::Gfx);
        let item = |text: &String| Item { packing, ..image::by_name(arch(text)) };
        let mut found = kernels.iter().map(|(text, k)| (item(text), k.original_size)).collect();
        sink.add(Container::Kpack, at, &mut found);
        let mut archs: Vec<GfxArch> = kernels.keys().filter_map(|text| text.parse().ok()).collect();
        archs.sort_unstable();
        binaries.push((name.chars().take(MAX_TEXT).collect(), archs));
    }
    sink.log.empty += u64::from(binaries.is_empty());
    Kpack::Archive { binaries }
}

#[cfg(test)]
mod tests {
    use super::super::sink::Options;
    use super::*;
    use crate::stream::Stream;

    fn seen(bytes: &[u8]) -> Seen {
        let mut seen = Seen::default();
        let mut body = Stream::new(bytes, None);
        while !body.window(1).unwrap().is_empty() {
            see(&mut seen, &mut body).unwrap();
            body.consume(1);
        }
        seen
    }

    #[test]
    fn references_in_any_order() {
        let name = [&b"\xabkernel_name\xaalibfoo.so.1"[..]].concat();
        let paths = [&b"\xb2kpack_search_paths\x92\xa5a.kpk\xacb/@GFXARCH@."[..]].concat();
        let wrapper = [&WRAPPER[..], &[0; 8], &[7, 0, 0, 0, 0, 0, 0, 0]].concat();
        for parts in [[&name, &paths, &wrapper], [&wrapper, &paths, &name]] {
            let seen = seen(&[&b"\x82"[..], parts[0], parts[1], parts[2]].concat());
            assert_eq!(seen.names[0].1, "libfoo.so.");
            assert_eq!(seen.paths[0].1, ["a.kpk", "b/@GFXARCH@."]);
            assert_eq!(seen.wrappers[0].1, 7);
        }
        // More paths than there are bytes.
        let endless = seen(b"\xb2kpack_search_paths\xdd\xff\xff\xff\xff\xa1a");
        assert!(endless.paths.is_empty());
    }

    #[test]
    fn archives_of_wild_contents() {
        let toc = |bytes: &[u8]| {
            let file = [&MAGIC[..], &1u32.to_le_bytes(), &16u64.to_le_bytes(), bytes].concat();
            let mut sink = Sink::new(Options::default());
            let read = read(&mut sink, &mut Stream::new(&file[..], Some(file.len() as u64))).unwrap();
            (read, sink.gaps.len())
        };
        // { "toc": { "a#0": { "gfx942": { "ordinal": 0 }, "gfxnew": { "ordinal": 0 } } } }, and no blobs.
        let bytes = b"\x81\xa3toc\x81\xa3a#0\x82\xa6gfx942\x81\xa7ordinal\0\xa6gfxnew\x81\xa7ordinal\0";
        let gfx942 = "gfx942".parse().unwrap();
        assert_eq!(toc(bytes), (Some(Kpack::Archive { binaries: vec![("a#0".into(), vec![gfx942])] }), 1));
        for n in 0..bytes.len() {
            assert_eq!(toc(&bytes[..n]), (None, 1), "{n}");
        }
        // As deep as it gets.
        assert_eq!(toc(&[0x91; 100_000]), (None, 1));
    }
}
