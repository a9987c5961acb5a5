//! The archive as installers see it: the central directory first, then only the members that are wanted. For archives
//! of which any part can be had, but not cheaply.
//!
//! What the directory says is checked before anything is read for it: it must lie inside the archive, no two members
//! may share bytes or a name, and each local header must say the same.

use std::collections::HashSet;
use std::io;

use super::central::{self, Directory};
use super::header::{self, DEFLATED, STORED, Sizes};
use super::{Stop, Visit, Walker, ZipError, ZipLimits, ZipSummary};
use crate::model::{GapEffect, ImagePath};
use crate::stream::Body;

/// How much of an archive's end [`end`] wants to see: the longest comment, and the records before it.
pub const TAIL: u64 = (header::END_LEN + u16::MAX as usize + LOCATOR_LEN + END64_LEN) as u64;

const LOCATOR_LEN: usize = 20;
const END64_LEN: usize = 56;

/// The largest central directory; 200,000 members with long names need half of it.
const MAX_DIRECTORY: u64 = 64 << 20;

/// Where the central directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Within the archive.
    pub at: u64,
    pub length: u64,
    pub members: u64,
    /// Bytes before the archive proper, from which offsets do not count.
    prefix: u64,
}

/// A member as the central directory lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub path: ImagePath,
    pub is_dir: bool,
    pub packed: u64,
    pub unpacked: u64,
    /// Of its local header.
    pub at: u64,
    /// Its bytes end here at the latest.
    pub limit: u64,
    name_hash: u64,
    method: u16,
    crc: u32,
}

/// Finds the directory by the archive's last bytes ([`TAIL`] of them, or all).
pub fn end(tail: &[u8], size: u64) -> Result<End, String> {
    let start = size.checked_sub(tail.len() as u64).ok_or("cut off")?;
    let last = tail.len().checked_sub(header::END_LEN).ok_or("too short for a zip archive")?;
    let ends = |at: &usize| {
        let comment = usize::from(header::u16_at(tail, at + 20));
        header::u32_at(tail, *at) == header::END && at + header::END_LEN + comment == tail.len()
    };
    let at = (0..=last).rev().take(header::END_LEN + usize::from(u16::MAX)).find(ends);
    let at = at.ok_or("no zip archive: the record that ends one is missing")?;
    if memchr::memmem::find(&tail[at + header::END_LEN..], b"PK\x05\x06").is_some() {
        return Err("its comment holds another end of archive".to_owned());
    }
    if header::u16_at(tail, at + 4) != 0 || header::u16_at(tail, at + 6) != 0 {
        return Err("the archive is split over several files".to_owned());
    }
    let mut members = u64::from(header::u16_at(tail, at + 10));
    let mut length = u64::from(header::u32_at(tail, at + 12));
    let mut told = u64::from(header::u32_at(tail, at + 16));
    let mut behind = at;
    let locator = at.checked_sub(LOCATOR_LEN).filter(|&l| header::u32_at(tail, l) == header::LOCATOR64);
    if let Some(locator) = locator {
        // Only the record right before its locator is believed, which is where every writer puts it.
        let record = locator.checked_sub(END64_LEN).filter(|&r| header::u32_at(tail, r) == header::END64);
        let record = record.ok_or("its 64-bit end record is not where it should be")?;
        if header::u64_at(tail, record + 4) != END64_LEN as u64 - 12 {
            return Err("its 64-bit end record has an unknown length".to_owned());
        }
        members = header::u64_at(tail, record + 32);
        length = header::u64_at(tail, record + 40);
        told = header::u64_at(tail, record + 48);
        behind = record;
    }
    let behind = start + behind as u64;
    let at = behind.checked_sub(length).ok_or("its central directory is longer than the archive")?;
    let prefix = at.checked_sub(told).ok_or("its central directory lies outside the archive")?;
    if length > MAX_DIRECTORY {
        return Err(format!("its central directory has more than {MAX_DIRECTORY} bytes"));
    }
    if members > length / header::CENTRAL_LEN as u64 {
        return Err(format!("{members} members do not fit into its central directory"));
    }
    Ok(End { at, length, members, prefix })
}

/// Reads the central directory: its members, by place.
pub fn members(directory: &[u8], end: &End, limits: &ZipLimits) -> Result<Vec<Listed>, String> {
    if end.members > limits.entries {
        return Err(format!("more than {} members", limits.entries));
    }
    let mut out: Vec<Listed> = Vec::new();
    let mut names = HashSet::new();
    let mut rest = directory;
    while header::u32_at(rest, 0) == header::CENTRAL {
        let (name_len, extra_len) = (usize::from(header::u16_at(rest, 28)), usize::from(header::u16_at(rest, 30)));
        let whole = header::CENTRAL_LEN + name_len + extra_len + usize::from(header::u16_at(rest, 32));
        let record = rest.get(..whole).ok_or("its central directory is cut off")?;
        rest = &rest[whole..];
        let name = &record[header::CENTRAL_LEN..header::CENTRAL_LEN + name_len];
        let extra = &record[header::CENTRAL_LEN + name_len..header::CENTRAL_LEN + name_len + extra_len];
        let shown = ImagePath::new(&name[..name_len.min(limits.name)]);
        let what = |why: &str| format!("{shown}: {why}");
        if name_len > limits.name {
            return Err(what(&format!("its name is longer than {} bytes", limits.name)));
        }
        let normal = ImagePath::normalise(name);
        if normal.escaped || name.contains(&0) {
            return Err(what("its name climbs out of the archive, or holds a NUL byte"));
        }
        let [packed, unpacked, at] = [20, 24, 42].map(|o| header::u32_at(record, o));
        let (packed, unpacked, at) =
            central::wide(extra, packed, unpacked, at).ok_or_else(|| what("its 64-bit values are missing"))?;
        let at = at.checked_add(end.prefix).ok_or_else(|| what("it lies outside the archive"))?;
        if !names.insert(normal.path.clone()) {
            return Err(what("there are two members of this name"));
        }
        out.push(Listed {
            path: normal.path,
            is_dir: name.last() == Some(&b'/'),
            packed,
            unpacked,
            at,
            limit: end.at,
            name_hash: header::fnv1a(name),
            method: header::u16_at(record, 10),
            crc: header::u32_at(record, 16),
        });
        if out.len() as u64 > end.members {
            break;
        }
    }
    if !rest.is_empty() && header::u32_at(rest, 0) != header::SIGNATURE || out.len() as u64 != end.members {
        let listed = out.len();
        return Err(format!("it says it has {} members, its central directory lists {listed}", end.members));
    }
    out.sort_by_key(|m| m.at);
    for place in 0..out.len() {
        let limit = out.get(place + 1).map_or(end.at, |next| next.at);
        let member = &mut out[place];
        // Its local header names it too.
        let least = (header::LOCAL_LEN as u64).saturating_add(member.packed);
        if member.at.checked_add(least).is_none_or(|ends| ends > limit) {
            return Err(format!("{}: it lies outside the archive, or in another member", member.path));
        }
        member.limit = limit;
    }
    Ok(out)
}

/// Reads some members, by place, from a body that starts at `start` of the archive. A member that cannot be unpacked
/// is a problem; where bytes are missing the reading ends.
pub fn read(
    body: &mut dyn Body,
    start: u64,
    wanted: &[&Listed],
    limits: &ZipLimits,
    visit: &mut Visit<'_>,
) -> Result<ZipSummary, ZipError> {
    let mut placed = Placed { inner: body, start };
    let summary = ZipSummary::default();
    let mut walker = Walker { body: &mut placed, base: 0, limits, summary, directory: Directory::default() };
    let read = wanted.iter().try_for_each(|listed| member(&mut walker, listed, visit));
    match read {
        Ok(()) => Ok(walker.summary),
        Err(Stop { offset, what, source }) => {
            Err(ZipError { offset, what, before: Box::new(walker.summary), source })
        }
    }
}

fn member(walker: &mut Walker<'_>, listed: &Listed, visit: &mut Visit<'_>) -> Result<(), Stop> {
    let Some(gap) = listed.at.checked_sub(walker.at()) else {
        return Err(walker.stop("a member reaches into the next"));
    };
    walker.pass(gap, "the bytes between members")?;
    let offset = walker.at();
    let signature = header::u32_at(walker.need(4, "a member's header")?, 0);
    let wrong = |what: &str| Stop { offset, what: format!("{}: {what}", listed.path), source: None };
    if signature != header::LOCAL {
        return Err(wrong("no member is where the central directory places it"));
    }
    let mut local = walker.local_header(offset)?;
    if local.name_hash != listed.name_hash {
        return Err(wrong("its local header has another name than the central directory"));
    }
    if local.method != listed.method || !matches!(local.method, STORED | DEFLATED) && !local.encrypted {
        return Err(wrong(
            "its local header has another method than the central directory, or none that is supported",
        ));
    }
    let told = Sizes { crc: listed.crc, packed: listed.packed, unpacked: listed.unpacked };
    if local.sizes.is_some_and(|sizes| sizes != told) && !local.descriptor {
        return Err(wrong("its local header has another CRC or size than the central directory"));
    }
    // Where the header leaves them to what stands behind the data, the directory knows.
    local.sizes = Some(told);
    if walker.at().checked_add(listed.packed).is_none_or(|ends| ends > listed.limit) {
        return Err(wrong("it reaches into the next member"));
    }
    walker.summary.entries += 1;
    if let Some(seen) = walker.unpack(&local, offset, visit)?
        && seen != told
    {
        walker.problem(
            offset,
            Some(&listed.path),
            GapEffect::File,
            "its content has another CRC or size than told",
        );
    }
    Ok(())
}

/// A body that starts somewhere inside.
struct Placed<'a> {
    inner: &'a mut dyn Body,
    start: u64,
}

impl Body for Placed<'_> {
    fn window(&mut self, min: usize) -> io::Result<&[u8]> {
        self.inner.window(min)
    }

    fn consume(&mut self, n: usize) {
        self.inner.consume(n);
    }

    fn skip(&mut self, n: u64) -> io::Result<u64> {
        self.inner.skip(n)
    }

    fn position(&self) -> u64 {
        self.start + self.inner.position()
    }

    fn len(&self) -> Option<u64> {
        self.inner.len()
    }
}
