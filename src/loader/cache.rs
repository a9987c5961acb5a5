//! `etc/ld.so.cache`: what ldconfig has found, for the loader to look up by name.
//!
//! Three forms: the old one (`ld.so-1.7.0`), the new one (`glibc-ld.so.cache1.1`), and the old one with the new one
//! behind it. String offsets count from the start of the new form, or from the end of the old form's table.

use serde::{Deserialize, Serialize};

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const NEW_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;
const NEW_HEADER: usize = 48;
const NEW_ENTRY: usize = 24;

/// A distribution with everything installed has some 10,000.
const MAX_ENTRIES: usize = 200_000;
/// PATH_MAX.
const MAX_STRING: usize = 4096;
/// Bytes of all strings together: entries may share strings, so that a small file can ask for much.
const MAX_STRINGS: usize = 24 << 20;

const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
/// The section that lists the names of glibc-hwcaps directories.
const HWCAPS_TAG: u32 = 1;
const MAX_SECTIONS: u32 = 64;
/// Bit 62: the lower half is an index into those names; bits 32 to 41 are an instruction set level.
const EXTENSION_BIT: u32 = 1 << 30;
const LEVEL_MASK: u32 = (1 << 10) - 1;

/// The cache, in its order: by name, descending, and what is preferred first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cache {
    pub entries: Vec<CacheEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheEntry {
    /// Kind of library and machine: 0x0303 for x86-64.
    pub flags: u32,
    pub name: String,
    pub path: String,
    #[serde(default)]
    pub capability: Capability,
}

/// What a processor must be able to do for an entry to count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    #[default]
    Any,
    /// A directory below `glibc-hwcaps`: `x86-64-v3`.
    Named(String),
    /// Bits of the mechanism that glibc 2.37 dropped.
    Legacy(u64),
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let bytes = self.0.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn text(&self, at: usize) -> Option<&'a [u8]> {
        let rest = self.0.get(at..)?;
        let end = memchr::memchr(0, &rest[..rest.len().min(MAX_STRING)])?;
        Some(&rest[..end])
    }
}

/// Strings read so far, within their limit.
struct Strings<'a> {
    bytes: Bytes<'a>,
    left: usize,
}

impl Strings<'_> {
    fn get(&mut self, at: usize) -> Result<String, String> {
        let text = self.bytes.text(at).ok_or("a name or path lies outside the file")?;
        self.left = self.left.checked_sub(text.len()).ok_or("its names and paths are too long")?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}

/// Reads a cache in any of its forms.
pub fn parse(bytes: &[u8]) -> Result<Cache, String> {
    if bytes.starts_with(NEW_MAGIC) {
        return parse_new(bytes);
    }
    if !bytes.starts_with(OLD_MAGIC) {
        return Err("is not in a form that ld.so reads".to_owned());
    }
    let count = entries(Bytes(bytes).u32(OLD_MAGIC.len() + 1))?;
    let end = OLD_HEADER + count * OLD_ENTRY;
    let aligned = end.next_multiple_of(8);
    match bytes.get(aligned..) {
        Some(new) if new.starts_with(NEW_MAGIC) => parse_new(new),
        _ => parse_old(bytes, count, end),
    }
}

fn entries(count: Option<u32>) -> Result<usize, String> {
    let count = count.ok_or("is cut short")? as usize;
    if count > MAX_ENTRIES { Err(format!("claims {count} entries")) } else { Ok(count) }
}

fn parse_old(bytes: &[u8], count: usize, end: usize) -> Result<Cache, String> {
    let mut strings = Strings { bytes: Bytes(bytes.get(end..).ok_or("is cut short")?), left: MAX_STRINGS };
    let table = Bytes(bytes);
    let mut cache = Cache::default();
    for at in (0..count).map(|i| OLD_HEADER + i * OLD_ENTRY) {
        let word = |k: usize| table.u32(at + 4 * k).ok_or("is cut short");
        cache.entries.push(CacheEntry {
            flags: word(0)?,
            name: strings.get(word(1)? as usize)?,
            path: strings.get(word(2)? as usize)?,
            capability: Capability::Any,
        });
    }
    Ok(cache)
}

fn parse_new(bytes: &[u8]) -> Result<Cache, String> {
    let table = Bytes(bytes);
    let mut strings = Strings { bytes: Bytes(bytes), left: MAX_STRINGS };
    // 0: written before this was noted; 2: little endian.
    match bytes.get(28) {
        Some(0 | 2) => {}
        Some(_) => return Err("is for another byte order".to_owned()),
        None => return Err("is cut short".to_owned()),
    }
    let count = entries(table.u32(NEW_MAGIC.len()))?;
    let hwcaps = hwcaps(&table, &mut strings)?;
    let mut cache = Cache::default();
    for at in (0..count).map(|i| NEW_HEADER + i * NEW_ENTRY) {
        let word = |k: usize| table.u32(at + 4 * k).ok_or("is cut short");
        let bits = table.u64(at + 16).ok_or("is cut short")?;
        let high = (bits >> 32) as u32;
        let capability = if bits == 0 {
            Capability::Any
        } else if high & !LEVEL_MASK == EXTENSION_BIT {
            match hwcaps.get(bits as u32 as usize) {
                Some(name) => Capability::Named(name.clone()),
                None => return Err("an entry names a glibc-hwcaps directory that is not listed".to_owned()),
            }
        } else {
            Capability::Legacy(bits)
        };
        cache.entries.push(CacheEntry {
            flags: word(0)?,
            name: strings.get(word(1)? as usize)?,
            path: strings.get(word(2)? as usize)?,
            capability,
        });
    }
    Ok(cache)
}

/// The names of glibc-hwcaps directories, where the cache has such a section.
fn hwcaps(table: &Bytes<'_>, strings: &mut Strings<'_>) -> Result<Vec<String>, String> {
    let start = table.u32(32).ok_or("is cut short")? as usize;
    if start == 0 || table.u32(start) != Some(EXTENSION_MAGIC) {
        return Ok(Vec::new());
    }
    let sections = table.u32(start + 4).unwrap_or(0).min(MAX_SECTIONS) as usize;
    for at in (0..sections).map(|i| start + 8 + i * 16) {
        if table.u32(at) != Some(HWCAPS_TAG) {
            continue;
        }
        let (Some(offset), Some(size)) = (table.u32(at + 8), table.u32(at + 12)) else {
            return Err("is cut short".to_owned());
        };
        let count = (size as usize / 4).min(1024);
        let name = |i: usize| {
            let at = table.u32((offset as usize).saturating_add(4 * i)).ok_or("is cut short")?;
            strings.get(at as usize)
        };
        return (0..count).map(name).collect();
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache in the new form: (flags, name, path, hwcap bits), and the names of glibc-hwcaps directories.
    fn build(rows: &[(u32, &str, &str, u64)], hwcaps: &[&str]) -> Vec<u8> {
        let mut strings = Vec::new();
        let base = NEW_HEADER + rows.len() * NEW_ENTRY;
        let mut add = |text: &str| {
            let at = base + strings.len();
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
            at as u32
        };
        let mut table = Vec::new();
        for (flags, name, path, bits) in rows {
            for word in [*flags, add(name), add(path), 0] {
                table.extend(word.to_le_bytes());
            }
            table.extend(bits.to_le_bytes());
        }
        let names: Vec<u32> = hwcaps.iter().map(|n| add(n)).collect();
        let extension = (base + strings.len()).next_multiple_of(4);
        let mut out = NEW_MAGIC.to_vec();
        out.extend((rows.len() as u32).to_le_bytes());
        out.extend((strings.len() as u32).to_le_bytes());
        out.extend([2, 0, 0, 0]);
        out.extend((if hwcaps.is_empty() { 0 } else { extension as u32 }).to_le_bytes());
        out.resize(NEW_HEADER, 0);
        out.extend(table);
        out.extend(strings);
        out.resize(extension, 0);
        if !hwcaps.is_empty() {
            let words = [EXTENSION_MAGIC, 1, HWCAPS_TAG, 0, extension as u32 + 24, 4 * names.len() as u32];
            out.extend(words.iter().chain(&names).flat_map(|w| w.to_le_bytes()));
        }
        out
    }

    fn entry(name: &str, path: &str, capability: Capability) -> CacheEntry {
        CacheEntry { flags: 0x303, name: name.into(), path: path.into(), capability }
    }

    #[test]
    fn the_new_form() {
        let named = (u64::from(EXTENSION_BIT) << 32) | 1;
        let bytes = build(
            &[
                (0x303, "libx.so.1", "/opt/glibc-hwcaps/x86-64-v3/libx.so.1", named),
                (0x303, "libx.so.1", "/opt/libx.so.1", 0),
                (0x303, "liba.so", "/opt/tls/liba.so", 1 << 63),
            ],
            &["x86-64-v2", "x86-64-v3"],
        );
        let expected = vec![
            entry("libx.so.1", "/opt/glibc-hwcaps/x86-64-v3/libx.so.1", Capability::Named("x86-64-v3".into())),
            entry("libx.so.1", "/opt/libx.so.1", Capability::Any),
            entry("liba.so", "/opt/tls/liba.so", Capability::Legacy(1 << 63)),
        ];
        assert_eq!(parse(&bytes).unwrap().entries, expected);
    }

    #[test]
    fn the_old_form_alone_and_with_the_new_one_behind() {
        let mut old = OLD_MAGIC.to_vec();
        old.push(0);
        for word in [1u32, 0x303, 0, 5] {
            old.extend(word.to_le_bytes());
        }
        let table_end = old.len();
        let mut alone = old.clone();
        alone.extend(b"liba\0/opt/liba\0");
        assert_eq!(parse(&alone).unwrap().entries, vec![entry("liba", "/opt/liba", Capability::Any)]);
        old.resize(table_end.next_multiple_of(8), 0);
        old.extend(build(&[(0x303, "libb", "/b", 0)], &[]));
        assert_eq!(parse(&old).unwrap().entries, vec![entry("libb", "/b", Capability::Any)]);
    }

    #[test]
    fn hostile_caches_are_refused_and_never_panic() {
        let named = u64::from(EXTENSION_BIT) << 32;
        let good = build(&[(0x303, "libx.so.1", "/opt/libx.so.1", named), (1, "a", "b", 0)], &["x86-64-v2"]);
        assert!(parse(&good).is_ok());
        for at in 0..good.len() {
            for value in [0u8, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = value;
                let _ = parse(&bytes);
            }
            let _ = parse(&good[..at]);
        }
        // 100,000 entries that share one long string.
        let long = "x".repeat(MAX_STRING - 1);
        let mut bytes = build(&[(0x303, long.as_str(), "/b", 0); 2], &[]);
        bytes[20..24].copy_from_slice(&100_000u32.to_le_bytes());
        assert!(parse(&bytes).is_err());
        assert!(parse(b"").is_err());
    }
}
