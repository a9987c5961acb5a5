//! Versions and symbols of a 64-bit little-endian file, read from the tables that were kept.

use std::collections::BTreeMap;

use super::head::{SYMBOL, Slim};
use super::places::Places;
use super::{Harvest, Keep, vendor};
use crate::model::{Asked, AskedVersion, Exports, Import};

/// Versions read of one file, asked or defined; the C library defines some dozens.
const MAX_VERSIONS: usize = 1000;

/// Imports listed of one file; the largest user of NVIDIA's libraries known has some hundreds.
const MAX_IMPORTS: usize = 8192;

/// Longest string: lists of directories are among them.
const MAX_TEXT: usize = 64 << 10;

/// `VER_FLG_BASE`: the version that names the file; `VER_FLG_WEAK`: may be missing.
const BASE: u16 = 1;
const WEAK: u16 = 2;

/// The bit of a symbol's version that hides it from the link editor.
const HIDDEN: u16 = 0x8000;

/// The first version that is not "local" or "global".
const FIRST_VERSION: u16 = 2;

const BIND_GLOBAL: u8 = 1;
const BIND_WEAK: u8 = 2;
const BIND_UNIQUE: u8 = 10;

/// What one file asks of others and defines.
#[derive(Debug, Default)]
pub struct Linkage {
    pub asks: Vec<Asked>,
    pub defines: Vec<String>,
    pub imports: Vec<Import>,
    pub exports: Option<Exports>,
    /// Names of versions and of the libraries they are asked of that could not be read.
    pub unread: usize,
    /// Imports over the limit.
    pub dropped: usize,
}

/// The kept tables of one file.
pub struct Kept<'a> {
    pub places: &'a Places,
    pub keep: &'a Keep,
    /// Strings of tables too large to be kept whole.
    pub picked: &'a Harvest,
    pub harvest: &'a Harvest,
    /// Undefined symbols that are not among the kept bytes.
    pub undefined: &'a [(u64, Slim)],
    /// Size of the table of symbols as the section table has it.
    pub symbols_size: Option<u64>,
}

struct Symbol {
    name: u64,
    defined: bool,
    hidden: bool,
    bind: u8,
    version: u16,
}

impl<'a> Kept<'a> {
    /// Reads everything; `exports` too if the file is a GPU vendor's library.
    pub fn linkage(&self, exports: bool) -> Linkage {
        let mut out = Linkage::default();
        let asked = self.asks(&mut out);
        let defined = self.defines(&mut out);
        out.exports = exports.then(|| self.exports(&defined)).flatten();
        for symbol in self.symbols().filter(|s| !s.defined) {
            let Some(name) = self.text(symbol.name) else { continue };
            let version = match symbol.version {
                FIRST_VERSION.. => match asked.get(&symbol.version) {
                    Some((of, version)) if vendor::gives_calls(of) => Some((string(of), string(version))),
                    _ => continue,
                },
                _ if vendor::is_call(name) => None,
                _ => continue,
            };
            if out.imports.len() < MAX_IMPORTS {
                out.imports.push(Import { name: string(name), version, weak: symbol.bind == BIND_WEAK });
            } else {
                out.dropped += 1;
            }
        }
        out.imports.sort_unstable();
        out.imports.dedup();
        out
    }

    /// A string of the table of names; nothing but printable characters.
    pub fn text(&self, at: u64) -> Option<&'a [u8]> {
        let offset = self.places.strings.0.checked_add(at).filter(|&o| self.places.in_strings(o))?;
        let picked = || self.picked.get(offset).or_else(|| self.harvest.get(offset)).map(str::as_bytes);
        let printable = |t: &&[u8]| t.iter().all(|b| (0x20..0x7f).contains(b));
        self.keep.text(offset, MAX_TEXT).or_else(picked).filter(printable)
    }

    /// Versions asked of other libraries, by their numbers.
    fn asks(&self, out: &mut Linkage) -> BTreeMap<u16, (&'a [u8], &'a [u8])> {
        let mut by_number = BTreeMap::new();
        let Some(((start, end), count)) = self.places.needs else { return by_number };
        let mut left = MAX_VERSIONS;
        for need in self.chain::<16>(start, end, count, 12) {
            let file = self.text(u64::from(word(&need.bytes[4..])));
            out.unread += usize::from(file.is_none());
            let mut versions = Vec::new();
            let first = need.at.saturating_add(u64::from(word(&need.bytes[8..])));
            for version in self.chain::<16>(first, end, u64::from(half(&need.bytes[2..])), 12) {
                if left == 0 {
                    break;
                }
                left -= 1;
                let Some(name) = self.text(u64::from(word(&version.bytes[8..]))) else {
                    out.unread += 1;
                    continue;
                };
                versions.push(AskedVersion { name: string(name), weak: half(&version.bytes[4..]) & WEAK != 0 });
                if let Some(file) = file {
                    by_number.insert(half(&version.bytes[6..]) & !HIDDEN, (file, name));
                }
            }
            if let Some(file) = file {
                out.asks.push(Asked { of: string(file), versions });
            }
        }
        by_number
    }

    /// Versions defined, by their numbers.
    fn defines(&self, out: &mut Linkage) -> BTreeMap<u16, &'a [u8]> {
        let mut by_number = BTreeMap::new();
        let Some(((start, end), count)) = self.places.defines else { return by_number };
        for definition in self.chain::<20>(start, end, count.min(MAX_VERSIONS as u64), 16) {
            if half(&definition.bytes[2..]) & BASE != 0 {
                continue;
            }
            let first = definition.at.saturating_add(u64::from(word(&definition.bytes[12..])));
            let name = self.chain::<8>(first, end, 1, 4).next().map(|n| u64::from(word(&n.bytes)));
            match name.and_then(|at| self.text(at)) {
                Some(name) => {
                    out.defines.push(string(name));
                    by_number.insert(half(&definition.bytes[4..]) & !HIDDEN, name);
                }
                None => out.unread += 1,
            }
        }
        by_number
    }

    /// `None` where part of the table was not kept.
    fn exports(&self, versions: &BTreeMap<u16, &[u8]>) -> Option<Exports> {
        let (start, end) = self.places.symbols?;
        let whole = (end - start) / SYMBOL as u64;
        self.keep.get(start, start + whole.min(self.count()) * SYMBOL as u64)?;
        let defined = self.symbols().filter(|s| s.defined && !s.hidden);
        Some(Exports::new(defined.filter_map(|s| {
            let name = self.text(s.name)?;
            // A version has a symbol of its own name.
            Some((name, versions.get(&s.version).copied().filter(|v| *v != name)))
        })))
    }

    /// How many symbols there are, as far as anything tells.
    fn count(&self) -> u64 {
        let words = self.places.hash.and_then(|(at, end)| self.keep.get(at, end)).filter(|w| w.len() == 8);
        let told = words.map(|w| u64::from(word(&w[4..])));
        let sized = self.symbols_size.map(|size| size / SYMBOL as u64);
        [told, sized].into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// All symbols that are known, but local ones; some may come twice.
    fn symbols(&self) -> impl Iterator<Item = Symbol> {
        let (start, end) = self.places.symbols.unwrap_or((0, 0));
        let size = SYMBOL as u64;
        let kept = self.keep.parts(start, end).flat_map(move |(at, bytes)| {
            let first = (at - start).next_multiple_of(size);
            let entries = bytes.get((start + first - at) as usize..).unwrap_or_default().chunks_exact(SYMBOL);
            entries.zip(first / size..).filter_map(|(e, i)| Some((i, *e.first_chunk::<8>()?)))
        });
        let noted = self.undefined.iter().filter_map(move |(at, slim)| {
            let within = at.checked_sub(start).filter(|w| *at < end && w % size == 0)?;
            Some((within / size, *slim))
        });
        let count = self.count();
        let versions = self.places.versym.map(|(at, end)| {
            let most = usize::try_from(end - at).unwrap_or(usize::MAX);
            self.keep.get_from(at, most).unwrap_or_default()
        });
        kept.chain(noted).filter(move |(i, _)| (1..count).contains(i)).filter_map(move |(i, entry)| {
            let bind = entry[4] >> 4;
            let listed = matches!(bind, BIND_GLOBAL | BIND_WEAK | BIND_UNIQUE);
            let version = match versions {
                Some(table) => half(table.get(2 * i as usize..2 * i as usize + 2)?) & !HIDDEN,
                None => 1,
            };
            listed.then(|| Symbol {
                name: u64::from(word(&entry)),
                defined: half(&entry[6..]) != 0,
                hidden: matches!(entry[5] & 3, 1 | 2),
                bind,
                version,
            })
        })
    }

    /// A chain of records, each of which tells at `next` how far behind it the next one stands.
    fn chain<const N: usize>(
        &self,
        start: u64,
        end: u64,
        count: u64,
        next: usize,
    ) -> impl Iterator<Item = Record<N>> {
        let read = move |at: u64| -> Option<Record<N>> {
            let bytes = *self.keep.get_from(at, N).filter(|_| at < end)?.first_chunk::<N>()?;
            Some(Record { at, bytes })
        };
        let follow = move |record: &Record<N>| match word(&record.bytes[next..]) {
            0 => None,
            step => read(record.at.checked_add(u64::from(step))?),
        };
        std::iter::successors(read(start), follow).take(count.min(MAX_VERSIONS as u64) as usize)
    }
}

struct Record<const N: usize> {
    at: u64,
    bytes: [u8; N],
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b))
}

fn half(bytes: &[u8]) -> u16 {
    bytes.first_chunk().map_or(0, |b| u16::from_le_bytes(*b))
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
