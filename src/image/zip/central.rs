//! The central directory at the end of an archive, compared with the local headers that went by.

use std::collections::HashMap;

use super::header::{self, Local, Sizes};
use super::{Stop, Walker};
use crate::model::{GapEffect, ImagePath};

/// Members named one by one when they are missing from the directory.
const NAMED: usize = 8;

/// Local headers seen, by offset.
#[derive(Default)]
pub struct Directory {
    /// Bytes before the archive proper.
    pub prefix: u64,
    seen: HashMap<u64, Seen>,
    listed: u64,
}

struct Seen {
    name_hash: u64,
    method: u16,
    sizes: Option<Sizes>,
}

impl Directory {
    pub fn saw(&mut self, offset: u64, local: &Local, sizes: Option<Sizes>) {
        self.seen.insert(offset, Seen { name_hash: local.name_hash, method: local.method, sizes });
    }

    /// Takes the local header that a central one points to. Offsets count from the archive or from the file.
    fn take(&mut self, offset: u64) -> Option<Seen> {
        let prefix = self.prefix;
        self.seen.remove(&offset.saturating_add(prefix)).or_else(|| self.seen.remove(&offset))
    }
}

/// Reads from the first central header to the end of the archive.
pub fn read(walker: &mut Walker<'_>) -> Result<(), Stop> {
    let mut wide_count = None;
    loop {
        let offset = walker.at();
        let signature = header::u32_at(walker.need(4, "the central directory")?, 0);
        match signature {
            header::CENTRAL => member(walker, offset)?,
            header::SIGNATURE => {
                let length = header::u16_at(walker.need(6, "the signature")?, 4);
                walker.pass(6 + u64::from(length), "the signature")?;
            }
            header::END64 => {
                let record = walker.need(56, "the end of the archive")?;
                let length = header::u64_at(record, 4);
                wide_count = Some(header::u64_at(record, 32));
                walker.pass(length.saturating_add(12), "the end of the archive")?;
            }
            header::LOCATOR64 => walker.pass(20, "the end of the archive")?,
            header::END => {
                end(walker, offset, wide_count)?;
                return compare(walker, offset);
            }
            other => return Err(walker.stop(format!("no central header but 0x{other:08x}"))),
        }
    }
}

fn member(walker: &mut Walker<'_>, offset: u64) -> Result<(), Stop> {
    walker.directory.listed += 1;
    if walker.directory.listed > walker.limits.entries {
        return Err(walker.stop(format!("more than {} members in the central directory", walker.limits.entries)));
    }
    let fixed = walker.need(header::CENTRAL_LEN, "a central header")?;
    let (name_len, extra_len) = (usize::from(header::u16_at(fixed, 28)), usize::from(header::u16_at(fixed, 30)));
    let comment_len = u64::from(header::u16_at(fixed, 32));
    let whole = header::CENTRAL_LEN + name_len + extra_len;
    let shown = name_len.min(walker.limits.name);
    let window = walker.need(whole, "a central header")?;
    let name = &window[header::CENTRAL_LEN..header::CENTRAL_LEN + name_len];
    let extra = &window[header::CENTRAL_LEN + name_len..whole];
    let name_hash = header::fnv1a(name);
    let path = ImagePath::new(&name[..shown]);
    let method = header::u16_at(window, 10);
    let crc = header::u32_at(window, 16);
    let (packed, unpacked) = (header::u32_at(window, 20), header::u32_at(window, 24));
    let at = header::u32_at(window, 42);
    let told = wide(extra, packed, unpacked, at);
    walker.body.consume(whole);
    walker.pass(comment_len, "a central header")?;

    let Some((packed, unpacked, at)) = told else {
        walker.problem(offset, Some(&path), GapEffect::File, "64-bit values are missing in its central header");
        return Ok(());
    };
    let what = match walker.directory.take(at) {
        None => Some(format!("the central directory places it at {at}, where no member was seen")),
        Some(seen) if seen.name_hash != name_hash => {
            Some("its local header has another name than the central directory".to_owned())
        }
        Some(seen) if seen.method != method => {
            Some("its local header has another method than the central directory".to_owned())
        }
        Some(Seen { sizes: Some(sizes), .. }) if sizes != (Sizes { crc, packed, unpacked }) => {
            Some("its content has another CRC or size than the central directory".to_owned())
        }
        Some(_) => None,
    };
    if let Some(what) = what {
        walker.problem(offset, Some(&path), GapEffect::File, what);
    }
    Ok(())
}

/// Packed size, unpacked size and offset of a central header, from the zip64 extra field where it must be.
pub fn wide(extra: &[u8], packed: u32, unpacked: u32, at: u32) -> Option<(u64, u64, u64)> {
    let wanted = [unpacked, packed, at].map(|v| v == u32::MAX);
    let mut values = [unpacked, packed, at].map(u64::from);
    if wanted.contains(&true) {
        let field = header::extra_field(extra, 1)?;
        let mut wide = field.chunks_exact(8).map(|c| header::u64_at(c, 0));
        for (value, wanted) in values.iter_mut().zip(wanted) {
            if wanted {
                *value = wide.next()?;
            }
        }
    }
    Some((values[1], values[0], values[2]))
}

/// The record that ends the archive, and what stands behind it.
fn end(walker: &mut Walker<'_>, offset: u64, wide_count: Option<u64>) -> Result<(), Stop> {
    let record = walker.need(header::END_LEN, "the end of the archive")?;
    let count = u64::from(header::u16_at(record, 10));
    let disks = header::u16_at(record, 4) | header::u16_at(record, 6);
    let comment = usize::from(header::u16_at(record, 20));
    let window = walker.need(header::END_LEN + comment, "the comment of the archive")?;
    let nested = memchr::memmem::find(&window[header::END_LEN..header::END_LEN + comment], b"PK\x05\x06");
    walker.body.consume(header::END_LEN + comment);
    if nested.is_some() {
        walker.problem(offset, None, GapEffect::File, "the archive's comment holds another end of archive");
    }
    if disks != 0 && disks != u16::MAX {
        walker.problem(offset, None, GapEffect::File, "the archive is split over several files");
    }
    let count = match wide_count {
        Some(wide) if count == u64::from(u16::MAX) || wide == count => wide,
        Some(_) => {
            walker.problem(offset, None, GapEffect::File, "two different counts of members");
            count
        }
        None => count,
    };
    let listed = walker.directory.listed;
    // Without zip64 the count is modulo 65536.
    if count != listed && (wide_count.is_some() || count != listed & 0xffff) {
        let what = format!("the archive says it has {count} members, its directory lists {listed}");
        walker.problem(offset, None, GapEffect::File, what);
    }
    let behind = walker.at();
    match walker.body.skip(u64::MAX) {
        Ok(0) => {}
        Ok(n) => {
            let what = format!("{n} bytes behind the end of the archive");
            walker.problem(behind, None, GapEffect::File, what);
        }
        Err(e) => return Err(Stop { offset: behind, what: e.to_string(), source: Some(e) }),
    }
    Ok(())
}

/// Members that no central header named.
fn compare(walker: &mut Walker<'_>, end: u64) -> Result<(), Stop> {
    let mut hidden: Vec<u64> = walker.directory.seen.keys().copied().collect();
    hidden.sort_unstable();
    for &offset in hidden.iter().take(NAMED) {
        let what = "a member that the central directory does not list";
        walker.problem(offset, None, GapEffect::File, what);
    }
    if hidden.len() > NAMED {
        let what = format!("{} more members that the central directory does not list", hidden.len() - NAMED);
        walker.problem(end, None, GapEffect::File, what);
    }
    Ok(())
}
