//! Clang's offload bundles: a table of entries (place, size, id), then the entries' bytes.
//!
//! HIP registers one for each translation unit, so that a library holds up to hundreds, each on a page of its own. A
//! bundle tells no size of its own: it ends where its last entry does.

use std::io;

use super::image::Trouble;
use super::sink::Sink;
use super::target::{self, Target};
use super::{code_object, image};
use crate::model::{Container, Item, Packing};
use crate::stream::Body;

pub(super) const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";

/// Bytes before the first entry.
const HEADER: usize = 32;

/// More entries than any compiler writes; there are 70 processors or so.
const MAX_ENTRIES: u64 = 4096;

/// Longest id: a triple and a target with its features have 60 characters.
const MAX_ID: u64 = 1024;

/// Largest table.
pub(super) const MAX_TABLE: usize = 1 << 20;

/// One entry of a bundle's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// From the bundle's begin.
    pub offset: u64,
    pub size: u64,
    pub id: String,
}

/// A table, as far as the bytes reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Table {
    Whole {
        entries: Vec<Entry>,
        size: u64,
    },
    /// More bytes are needed, at least so many from the bundle's begin.
    Needs(usize),
    /// No bundle.
    Bad(String),
}

/// Reads the table of a bundle that begins with these bytes.
pub(super) fn table(bytes: &[u8]) -> Table {
    let needs = |least: usize| match least {
        ..=MAX_TABLE => Table::Needs(least),
        _ => Table::Bad(format!("offload bundle whose table of entries is over {MAX_TABLE} bytes")),
    };
    if bytes.len() < HEADER {
        return needs(HEADER);
    }
    let count = word(bytes, MAGIC.len());
    if !(1..=MAX_ENTRIES).contains(&count) {
        return Table::Bad(format!("offload bundle of {count} entries"));
    }
    let mut entries = Vec::new();
    let mut at = HEADER;
    for _ in 0..count {
        if bytes.len() < at + 24 {
            return needs(at + 24);
        }
        let (offset, size, length) = (word(bytes, at), word(bytes, at + 8), word(bytes, at + 16));
        if length > MAX_ID {
            return Table::Bad(format!("offload bundle with an entry id of {length} bytes"));
        }
        let end = at + 24 + length as usize;
        let Some(id) = bytes.get(at + 24..end) else { return needs(end) };
        let Some(id) = std::str::from_utf8(id).ok().filter(|id| id.bytes().all(|b| b.is_ascii_graphic())) else {
            return Table::Bad("offload bundle with an entry id that is no text".to_owned());
        };
        entries.push(Entry { offset, size, id: id.to_owned() });
        at = end;
    }
    Table::Whole { entries, size: at as u64 }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Where a bundle lies.
pub(super) struct Place {
    pub container: Container,
    /// The file's offset of the container that a bundle was inflated from.
    pub origin: Option<u64>,
    pub packing: Packing,
    /// Stored bytes for `1` inflated bytes each: (stored, raw).
    pub ratio: (u64, u64),
}

impl Place {
    /// A bundle as it stands.
    pub(super) const PLAIN: Self =
        Self { container: Container::Bundle, origin: None, packing: Packing::None, ratio: (1, 1) };

    fn at(&self, position: u64) -> u64 {
        self.origin.unwrap_or(position)
    }

    /// The share of an entry in what is stored.
    pub(super) fn stored(&self, size: u64) -> u64 {
        let (stored, raw) = self.ratio;
        (u128::from(size) * u128::from(stored) / u128::from(raw.max(1))) as u64
    }
}

/// Reads the bundle at the current position and moves past it; or tells why there is none, and does not move.
pub(super) fn read(sink: &mut Sink, body: &mut dyn Body, place: &Place) -> io::Result<Result<(), String>> {
    let start = body.position();
    let mut ask = HEADER;
    let (mut entries, table_size) = loop {
        let window = body.window(ask)?;
        let ended = window.len() < ask;
        match table(window) {
            Table::Whole { entries, size } => break (entries, size),
            Table::Bad(why) => return Ok(Err(why)),
            Table::Needs(_) if ended => {
                return Ok(Err("offload bundle whose table of entries is cut off by the end".to_owned()));
            }
            Table::Needs(least) => ask = least.max(ask.saturating_mul(2)).min(MAX_TABLE),
        }
    };
    let left = body.len().map_or(u64::MAX, |n| n.saturating_sub(start));
    check_bounds(sink, place.at(start), &mut entries, table_size, left);
    entries.sort_by_key(|e| (e.offset, e.size));
    let mut found: Vec<(Item, u64)> = Vec::new();
    let mut end = table_size;
    // Entries of the same bytes are read once.
    let mut last: Option<(u64, Vec<u8>)> = None;
    for entry in &entries {
        // Of an entry that runs past the end no more is passed than was looked at.
        let whole = entry.offset.checked_add(entry.size).filter(|e| *e <= left);
        end = end.max(whole.unwrap_or(entry.offset.saturating_add(code_object::HEADER as u64)).min(left));
        let Target::Device(arch) = target::of_id(&entry.id) else { continue };
        if entry.offset >= left {
            found.push((Item { packing: place.packing, ..image::by_name(arch) }, 0));
            continue;
        }
        let passed = body.position() - start;
        if entry.offset >= passed {
            body.skip(entry.offset - passed)?;
            let window = body.window(image::LOOK)?;
            let size = window.len().min(image::LOOK).min(usize::try_from(entry.size).unwrap_or(usize::MAX));
            last = Some((entry.offset, window[..size].to_vec()));
        }
        let at = place.at(start.saturating_add(entry.offset));
        let (item, problem) = match &last {
            Some((offset, head)) if *offset == entry.offset => image::judge(arch, head),
            _ => (image::by_name(arch), Some(Trouble::Damage("it lies within another entry".to_owned()))),
        };
        if let Some(trouble) = problem {
            trouble.tell(sink, at, &format!("offload bundle entry {}", entry.id));
        }
        found.push((Item { packing: place.packing, ..item }, place.stored(entry.size)));
    }
    if found.is_empty() {
        sink.log.empty += 1;
    }
    sink.add(place.container, place.at(start), &mut found);
    let rest = start.saturating_add(end).saturating_sub(body.position());
    if body.skip(rest)? < rest {
        sink.damage(place.at(start), "offload bundle is cut off by the end of the file");
    }
    Ok(Ok(()))
}

/// Drops the entries without bytes and those that lie within the table, and tells of those that are out of bounds: what
/// the table says of these stays.
pub(super) fn check_bounds(sink: &mut Sink, at: u64, entries: &mut Vec<Entry>, table_size: u64, left: u64) {
    entries.retain(|entry| {
        let end = entry.offset.checked_add(entry.size);
        if end.is_none_or(|e| e > left) {
            let why = format!(
                "offload bundle entry {} (offset {}, {} bytes) runs past the end",
                entry.id, entry.offset, entry.size
            );
            sink.damage(at, why);
        } else if entry.size > 0 && entry.offset < table_size {
            sink.damage(at, format!("offload bundle entry {} lies within the table of entries", entry.id));
        }
        entry.size > 0 && entry.offset >= table_size
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::bundle;
    use super::*;

    #[test]
    fn tables_grow() {
        let bytes =
            bundle(&[("host-x86_64-unknown-linux--", b""), ("hipv4-amdgcn-amd-amdhsa--gfx942", b"code")], 64);
        let size = 32 + 24 + 27 + 24 + 31;
        assert!(matches!(table(&bytes), Table::Whole { entries, size: n } if entries.len() == 2 && n == size));
        for n in 0..size as usize {
            assert!(matches!(table(&bytes[..n]), Table::Needs(least) if least > n), "{n}");
        }
    }
}
