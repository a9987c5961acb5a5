//! Zip headers: bytes to plain values.

use crate::model::ImagePath;

pub const LOCAL: u32 = 0x0403_4b50;
pub const CENTRAL: u32 = 0x0201_4b50;
pub const END: u32 = 0x0605_4b50;
pub const END64: u32 = 0x0606_4b50;
pub const LOCATOR64: u32 = 0x0706_4b50;
pub const SIGNATURE: u32 = 0x0505_4b50;
pub const EXTRA_DATA: u32 = 0x0806_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;

pub const LOCAL_LEN: usize = 30;
pub const CENTRAL_LEN: usize = 46;
pub const END_LEN: usize = 22;

pub const STORED: u16 = 0;
pub const DEFLATED: u16 = 8;

/// The 16-bit value at `at`; 0 beyond the end.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_le_bytes)
}

/// The 32-bit value at `at`; 0 beyond the end.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The 64-bit value at `at`; 0 beyond the end.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// CRC and sizes of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    pub crc: u32,
    pub packed: u64,
    pub unpacked: u64,
}

/// A local header.
#[derive(Debug)]
pub struct Local {
    pub path: ImagePath,
    /// FNV-1a of the name as stored.
    pub name_hash: u64,
    pub is_dir: bool,
    pub oversized_name: bool,
    pub method: u16,
    pub encrypted: bool,
    /// CRC and sizes stand behind the data.
    pub descriptor: bool,
    /// As the header tells them; `None` where it leaves them to the descriptor.
    pub sizes: Option<Sizes>,
}

impl Local {
    /// Reads a whole local header. The second value says what is odd about it.
    pub fn parse(header: &[u8], name_limit: usize) -> (Self, Option<&'static str>) {
        let flags = u16_at(header, 6);
        let name_len = usize::from(u16_at(header, 26));
        let name = header.get(LOCAL_LEN..LOCAL_LEN + name_len).unwrap_or_default();
        let extra = header.get(LOCAL_LEN + name_len..).unwrap_or_default();
        let shown = &name[..name.len().min(name_limit)];
        let normal = ImagePath::normalise(shown);
        let descriptor = flags & 8 != 0;
        let (packed, unpacked) = (u32_at(header, 18), u32_at(header, 22));
        let wide = wide_sizes(extra, unpacked == u32::MAX, packed == u32::MAX);
        let crc = u32_at(header, 14);
        let sizes = match wide {
            Some((u, p)) => {
                let unpacked = u.unwrap_or(u64::from(unpacked));
                Some(Sizes { crc, packed: p.unwrap_or(u64::from(packed)), unpacked })
            }
            None => None,
        };
        let sizes = sizes.filter(|s| !descriptor || (s.packed != 0 && s.packed != u64::from(u32::MAX)));
        let complaint = if normal.escaped {
            Some("its name climbs out of the archive")
        } else if wide.is_none() && !descriptor {
            Some("its 64-bit sizes are missing")
        } else if name.contains(&0) {
            Some("its name holds a NUL byte")
        } else {
            None
        };
        let local = Self {
            path: normal.path,
            name_hash: fnv1a(name),
            is_dir: name.last() == Some(&b'/'),
            oversized_name: name.len() > name_limit,
            method: u16_at(header, 8),
            encrypted: flags & (1 | 1 << 6 | 1 << 13) != 0,
            descriptor,
            sizes,
        };
        (local, complaint)
    }

    /// The length of the data, where the header tells it.
    pub fn packed(&self) -> Option<u64> {
        self.sizes.map(|s| s.packed)
    }
}

/// Bytes of name and extra field behind a fixed local header.
pub fn variable_len(fixed: &[u8]) -> usize {
    usize::from(u16_at(fixed, 26)) + usize::from(u16_at(fixed, 28))
}

/// 64-bit sizes (unpacked, packed) from the zip64 extra field, as far as they are wanted; `None` when one is
/// wanted and missing.
fn wide_sizes(extra: &[u8], unpacked: bool, packed: bool) -> Option<(Option<u64>, Option<u64>)> {
    if !unpacked && !packed {
        return Some((None, None));
    }
    let mut values = extra_field(extra, 1)?.chunks_exact(8).map(|c| u64_at(c, 0));
    let unpacked = if unpacked { Some(values.next()?) } else { None };
    let packed = if packed { Some(values.next()?) } else { None };
    Some((unpacked, packed))
}

/// One field of an extra area.
pub fn extra_field(mut extra: &[u8], wanted: u16) -> Option<&[u8]> {
    while extra.len() >= 4 {
        let (id, length) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let field = extra.get(4..4 + length)?;
        if id == wanted {
            return Some(field);
        }
        extra = &extra[4 + length..];
    }
    None
}

/// A data descriptor: its length and values.
pub fn descriptor(window: &[u8], actual: Option<Sizes>) -> Option<(usize, Sizes)> {
    let signed = u32_at(window, 0) == DESCRIPTOR;
    // A CRC can look like the signature, so that layouts without one are tried even then.
    let layouts = [(true, true), (true, false), (false, true), (false, false)];
    let read = |(sign, wide): (bool, bool)| {
        let at = if sign { 4 } else { 0 };
        let length = at + if wide { 20 } else { 12 };
        if window.len() < length || (sign && !signed) {
            return None;
        }
        let crc = u32_at(window, at);
        let (packed, unpacked) = if wide {
            (u64_at(window, at + 4), u64_at(window, at + 12))
        } else {
            (u64::from(u32_at(window, at + 4)), u64::from(u32_at(window, at + 8)))
        };
        let header_next = matches!(u32_at(window, length), LOCAL | CENTRAL | END | END64 | EXTRA_DATA);
        Some((length, Sizes { crc, packed, unpacked }, header_next))
    };
    let found: Vec<_> = layouts.into_iter().filter_map(read).collect();
    let right = |s: Sizes| actual.is_some_and(|a| a == s);
    let best = found
        .iter()
        .find(|f| right(f.1) && f.2)
        .or_else(|| found.iter().find(|f| right(f.1)))
        .or_else(|| found.iter().find(|f| f.2))?;
    Some((best.0, best.1))
}

/// FNV-1a, 64 bits.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
