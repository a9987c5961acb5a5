//! The fatbin container: a region header, then entries (header, payload) that fill the body exactly.
//!
//! Layout and flags were measured by writing each value into real files and reading what NVIDIA's cuobjdump 12.4
//! and 13.5 call it. Only headers are decoded: the architecture a loader selects by stands in the entry header.

use std::io;

use super::cubin;
use super::sink::Sink;
use crate::model::{Container, Feature, Form, Item, Packing, PtxIsa, SmArch};
use crate::stream::Body;

/// First bytes of a region, `0xBA55ED50` little-endian.
pub const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

pub const REGION_HEADER: usize = 16;
/// Fixed part of an entry header; the identifier and options may follow.
pub const ENTRY_HEADER: usize = 64;

/// Entry headers grow by the identifier (a path) and the compiler's options; more than this is damage.
const MAX_ENTRY_HEADER: u32 = 1 << 20;

const FLAG_OLD_CODECS: u64 = 0x1000 | 0x4000;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_ARCH: u64 = 0x10_0000;
const FLAG_FAMILY: u64 = 0x20_0000;

/// Decodes a region header: the size of its body. `None`: not a region (a chance occurrence of the magic).
pub fn region_body(header: &[u8; REGION_HEADER]) -> Option<u64> {
    let version = u16::from_le_bytes([header[4], header[5]]);
    let size = u16::from_le_bytes([header[6], header[7]]);
    if header[..4] != MAGIC || version != 1 || usize::from(size) != REGION_HEADER {
        return None;
    }
    Some(read_u64(header, 8))
}

/// A decoded entry header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub item: Item,
    /// Bytes of the header, payload following.
    pub header: u64,
    /// Stored payload bytes, padding included.
    pub payload: u64,
}

/// Decodes an entry header; `left` is what remains of the region's body.
pub fn entry(header: &[u8; ENTRY_HEADER], left: u64) -> Result<Entry, String> {
    let kind = u16::from_le_bytes([header[0], header[1]]);
    let header_size = read_u32(header, 4);
    let payload = read_u64(header, 8);
    if !(ENTRY_HEADER as u32..=MAX_ENTRY_HEADER).contains(&header_size) {
        return Err(format!("fatbin entry with a header of {header_size} bytes"));
    }
    // No compiler writes an entry without code; a zero here would make the payload look like the next header.
    if payload == 0 {
        return Err("fatbin entry without a payload".to_owned());
    }
    let total = u64::from(header_size).checked_add(payload);
    if total.is_none_or(|t| t > left) {
        return Err(format!("fatbin entry of {payload} payload bytes runs past its region ({left} bytes left)"));
    }
    let minor = u16::from_le_bytes([header[24], header[25]]);
    let major = u16::from_le_bytes([header[26], header[27]]);
    let number = read_u32(header, 28);
    let flags = read_u64(header, 40);
    let feature = match () {
        () if flags & FLAG_ARCH != 0 => Feature::Arch,
        () if flags & FLAG_FAMILY != 0 => Feature::Family,
        () => Feature::Plain,
    };
    let form = match kind {
        1 => Form::Ptx,
        2 => Form::Sass,
        8 => Form::LtoIr,
        128 => Form::TileIr,
        _ => Form::Unknown,
    };
    let packing = match () {
        () if flags & FLAG_ZSTD != 0 => Packing::Zstd,
        () if flags & FLAG_LZ4 != 0 => Packing::Lz4,
        () if flags & FLAG_OLD_CODECS != 0 => Packing::Unknown,
        () => Packing::None,
    };
    let item = Item {
        arch: SmArch::new(number, feature).into(),
        form,
        kind,
        isa: (form == Form::Ptx).then_some(PtxIsa::new(major, minor)),
        packing,
        toolkit: None,
    };
    Ok(Entry { item, header: u64::from(header_size), payload })
}

/// Reads the region at the current position and moves past it. `false`: there is none, and nothing was moved. `loose`:
/// it begins a file of its own.
pub(super) fn read(sink: &mut Sink, body: &mut dyn Body, loose: bool) -> io::Result<bool> {
    let start = body.position();
    let left_in_file = body.len().map_or(u64::MAX, |n| n.saturating_sub(start));
    let window = body.window(REGION_HEADER)?;
    let Some(header) = window.first_chunk::<REGION_HEADER>() else {
        sink.suspect(start, "fatbin header is cut off by the end of the file");
        return Ok(false);
    };
    let Some(size) = region_body(header) else {
        if start == 0 && loose {
            sink.damage(start, "fatbin header of an unknown version or size");
        }
        return Ok(false);
    };
    let end = start.checked_add(REGION_HEADER as u64).and_then(|b| b.checked_add(size));
    let Some(end) = end.filter(|e| e - start <= left_in_file) else {
        sink.suspect(start, format!("fatbin of {size} bytes runs past the end of the file"));
        return Ok(false);
    };
    body.skip(REGION_HEADER as u64)?;
    if size == 0 {
        sink.log.empty += 1;
        if loose && left_in_file > REGION_HEADER as u64 {
            sink.damage(start, "an empty fatbin with more bytes behind it");
        }
        return Ok(true);
    }
    let mut entries = Vec::new();
    while body.position() < end {
        let at = body.position();
        let left = end - at;
        let window = body.window(ENTRY_HEADER)?;
        let decoded = match window.first_chunk::<ENTRY_HEADER>() {
            Some(header) if left >= ENTRY_HEADER as u64 => entry(header, left),
            _ => Err("fatbin entry header is cut off".to_owned()),
        };
        let entry = match decoded {
            Ok(entry) => entry,
            Err(why) => {
                // What was decoded so far stands; the search goes on behind this header's first bytes.
                if entries.is_empty() {
                    sink.suspect(at, why);
                } else {
                    sink.damage(at, why);
                }
                break;
            }
        };
        let mut item = entry.item;
        body.skip(entry.header)?;
        if item.packing == Packing::None && item.form == Form::Sass {
            let payload = body.window(cubin::HEADER)?;
            item.toolkit = cubin::header(payload).and_then(|c| c.item.toolkit);
        }
        entries.push((item, entry.payload));
        let before = body.position();
        if body.skip(entry.payload)? < entry.payload {
            sink.damage(before, "fatbin payload is cut off by the end of the file");
            break;
        }
    }
    sink.add(Container::Fatbin, start, &mut entries);
    Ok(true)
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}
