//! Where the tables of dynamic linking stand in a file, as its dynamic section tells.

use goblin::elf::dynamic::{
    DT_FINI, DT_FINI_ARRAY, DT_GNU_HASH, DT_HASH, DT_INIT, DT_INIT_ARRAY, DT_JMPREL, DT_REL, DT_RELA, DT_STRSZ,
    DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM, DT_VERSYM,
};

const DT_RELR: u64 = 36;

/// Most that is looked at of each table.
const MAX_SYMBOLS: u64 = 16 << 20;
const MAX_VERSYM: u64 = 1 << 20;
const MAX_VERSIONS: u64 = 256 << 10;

/// Largest table of symbols that is kept whole where it stands behind the dynamic section.
const MAX_KEPT_SYMBOLS: u64 = 4 << 20;

/// Largest table of names that is kept whole.
pub const MAX_STRINGS: u64 = 5 << 19;

/// A part of a file, from and to.
pub type Range = (u64, u64);

/// Tables, as parts of the file. What a table's end is not told by anything, it ends where the next begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Names of symbols, versions and libraries.
    pub strings: Range,
    pub symbols: Option<Range>,
    /// One version per symbol.
    pub versym: Option<Range>,
    /// Versions asked of other libraries, and of how many libraries.
    pub needs: Option<(Range, u64)>,
    /// Versions defined, and how many.
    pub defines: Option<(Range, u64)>,
    /// The table of hashes, whose first words tell the number of symbols.
    pub hash: Option<Range>,
}

impl Places {
    /// From the dynamic section's entries; `None` where they name no table of strings.
    pub fn new(entries: &[(u64, u64)], file_offset: impl Fn(u64) -> Option<u64>) -> Option<Self> {
        let find = |tag: u64| entries.iter().find(|e| e.0 == tag).map(|e| e.1);
        let at = |tag: u64| find(tag).and_then(&file_offset);
        let tables = [
            DT_FINI,
            DT_FINI_ARRAY,
            DT_GNU_HASH,
            DT_HASH,
            DT_INIT,
            DT_INIT_ARRAY,
            DT_JMPREL,
            DT_REL,
            DT_RELA,
            DT_RELR,
            DT_STRTAB,
            DT_SYMTAB,
            DT_VERDEF,
            DT_VERNEED,
            DT_VERSYM,
        ];
        let starts: Vec<u64> = tables.iter().filter_map(|&tag| at(tag)).collect();
        let range = |start: u64, most: u64| {
            let next = starts.iter().copied().filter(|s| *s > start).min().unwrap_or(u64::MAX);
            (start, next.min(start.saturating_add(most)))
        };
        let strings = at(DT_STRTAB)?;
        // Without a size the table ends like any other.
        let strings = match find(DT_STRSZ) {
            Some(size) => (strings, strings.saturating_add(size)),
            None => range(strings, u64::MAX),
        };
        let versions = |tag, count| Some((range(at(tag)?, MAX_VERSIONS), find(count)?));
        Some(Self {
            strings,
            symbols: at(DT_SYMTAB).map(|s| range(s, MAX_SYMBOLS)),
            versym: at(DT_VERSYM).map(|s| range(s, MAX_VERSYM)),
            needs: versions(DT_VERNEED, DT_VERNEEDNUM),
            defines: versions(DT_VERDEF, DT_VERDEFNUM),
            hash: at(DT_HASH).map(|s| range(s, 8)),
        })
    }

    /// The tables that are kept whole.
    pub fn tables(&self) -> impl Iterator<Item = Range> {
        let versions = [self.needs, self.defines].into_iter().flatten().map(|v| v.0);
        [self.symbols, self.versym, self.hash].into_iter().flatten().chain(versions)
    }

    /// Whether the table of symbols is small enough to be kept whole, should it still come.
    pub fn keeps_symbols(&self) -> bool {
        self.symbols.is_none_or(|(start, end)| end - start <= MAX_KEPT_SYMBOLS)
    }

    /// Whether the table of names is small enough to be kept whole.
    pub fn keeps_strings(&self) -> bool {
        self.strings.1 - self.strings.0 <= MAX_STRINGS
    }

    pub fn in_strings(&self, offset: u64) -> bool {
        offset >= self.strings.0 && offset < self.strings.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_ends_where_the_next_begins() {
        let entries = [
            (DT_SYMTAB, 0x1400),
            (DT_STRTAB, 0x1900),
            (DT_STRSZ, 0x80),
            (DT_VERSYM, 0x1a00),
            (DT_VERNEED, 0x1a40),
            (DT_VERNEEDNUM, 2),
            (DT_RELA, 0x1b00),
        ];
        let places = Places::new(&entries, |v| v.checked_sub(0x1000)).unwrap();
        assert_eq!(places.strings, (0x900, 0x980));
        assert_eq!(places.symbols, Some((0x400, 0x900)));
        assert_eq!(places.versym, Some((0xa00, 0xa40)));
        assert_eq!(places.needs, Some(((0xa40, 0xb00), 2)));
        assert_eq!(places.defines, None);
        assert_eq!(Places::new(&entries[..1], Some), None);
        let wild = Places::new(&[(DT_STRTAB, u64::MAX), (DT_STRSZ, u64::MAX), (DT_VERSYM, 9)], Some).unwrap();
        assert!(!wild.in_strings(5) && wild.keeps_strings());
        assert_eq!(wild.versym, Some((9, 9 + MAX_VERSYM)));
    }
}
