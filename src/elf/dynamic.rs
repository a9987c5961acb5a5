//! Header, program and section tables, dynamic section.
//!
//! Memory for one file while it is read: of its front up to 3 MiB, and undefined symbols (2 MiB at most), until the
//! dynamic section has passed; then of its tables what passed and what comes (symbols up to 4 MiB, names up to
//! 2.5 MiB, versions); all along the bytes before the section table (1 MiB) and the strings that look like names.
//! Files whose tables were moved: 3 MiB for those.

use std::collections::BTreeSet;

use goblin::container::{Container, Ctx};
use goblin::elf::{Elf, Header, ProgramHeader, SectionHeader, dynamic, header, program_header, section_header};

use super::head::{Head, Slim};
use super::places::Places;
use super::symbols::{Kept, Linkage};
use super::{Harvest, Keep, vendor};
use crate::model::{ElfFacts, FileKind};

/// Bytes before the section table that are kept: the section names stand there, behind them only symbol names.
const NAMES_BEFORE_TABLE: u64 = 1 << 20;
const MAX_SECTIONS: u64 = 1 << 16;
/// Longer names are left out; those of offload bundles hold a triple and a target with its features.
const MAX_SECTION_NAME: usize = 256;
const MAX_DYNAMIC: u64 = 64 << 10;
/// The interpreter's path.
const MAX_INTERPRETER: u64 = 4096;

/// An entry that every dynamic section of a 64-bit file has: `DT_SYMENT` = 24. It finds the section in files
/// whose program headers were moved to the end (patchelf does that).
const SYMBOL_SIZE_ENTRY: [u8; 16] = [11, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0];
/// Bytes kept on either side of such an entry.
const AROUND: usize = 4096;
const MAX_CANDIDATES: usize = 8;

/// `DF_1_NODEFLIB` of `DT_FLAGS_1`.
const NO_DEFAULT_DIRS: u64 = 0x800;

/// Names of GPU libraries listed per file.
const MAX_MENTIONS: usize = 256;

/// Tables behind this offset are not read: those of the largest library known, libtensorflow_cc, end at 99 MiB.
const MAX_HEAD: u64 = 128 << 20;

/// Bytes kept before a dynamic section that was moved.
const MAX_MOVED: u64 = 3 << 20;

/// Parts kept of a table of names that is not kept whole.
const MAX_PARTS: usize = 64;

/// A section's place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub offset: u64,
    pub size: u64,
    /// Machine code of the host's processor.
    pub executable: bool,
}

impl Section {
    pub fn holds(&self, offset: u64) -> bool {
        offset >= self.offset && offset - self.offset < self.size
    }
}

/// The tables of one ELF file, gathered while it streams by.
pub struct Tables {
    header: Header,
    ctx: Ctx,
    programs: Option<Vec<ProgramHeader>>,
    keep: Keep,
    harvest: Harvest,
    /// Parts that may hold the dynamic strings, (start, end).
    zones: Vec<(u64, u64)>,
    candidates: Vec<(u64, Vec<u8>)>,
    /// Parts kept that may hold sections' names.
    section_names: usize,
    /// The front of the file, until the dynamic section has passed; `None` also where symbols are not read.
    head: Option<Head>,
    /// Symbols and versions among strings that are not kept.
    picked: Harvest,
    /// Undefined symbols of parts of the table that are not kept.
    undefined: Vec<(u64, Slim)>,
    /// Known once the dynamic section has passed.
    places: Option<Places>,
}

impl Tables {
    /// Starts from the first bytes of the file (a window that begins at offset 0).
    pub fn new(head: &[u8]) -> Result<Self, String> {
        let header = Elf::parse_header(head).map_err(|_| "the ELF header cannot be read".to_owned())?;
        let little = header.endianness().map_err(|_| "the ELF header names no byte order".to_owned())?;
        let container = match header.container() {
            Ok(c) => c,
            Err(_) => return Err("the ELF header names no class".to_owned()),
        };
        let ctx = Ctx::new(container, little);
        let mut tables = Self {
            header,
            ctx,
            programs: None,
            keep: Keep::default(),
            harvest: Harvest::default(),
            zones: Vec::new(),
            candidates: Vec::new(),
            section_names: 0,
            head: None,
            picked: Harvest::default(),
            undefined: Vec::new(),
            places: None,
        };
        let h = &tables.header;
        let count = u64::from(h.e_phnum);
        let programs_end = h.e_phoff.saturating_add(count * u64::from(h.e_phentsize));
        if count > 0 && programs_end <= head.len() as u64 {
            tables.programs = parse_programs(&head[h.e_phoff as usize..programs_end as usize], &tables.header, ctx);
        } else if count > 0 {
            tables.keep.want(h.e_phoff, programs_end);
        }
        let dynamic = tables.segment(program_header::PT_DYNAMIC);
        if let Some((at, size)) = dynamic {
            tables.keep.want(at, at.saturating_add(size.min(MAX_DYNAMIC)));
        }
        if let Some((start, end)) = tables.moved_tables().filter(|_| tables.reads_symbols()) {
            tables.keep.want(start, end);
        }
        if let Some((at, size)) = tables.segment(program_header::PT_INTERP) {
            tables.keep.want(at, at.saturating_add(size.min(MAX_INTERPRETER)));
        }
        tables.zones = match &tables.programs {
            Some(programs) if dynamic.is_some() => string_zones(programs),
            Some(_) => Vec::new(),
            // Not known yet: the strings may be anywhere.
            None if count > 0 => vec![(0, u64::MAX)],
            None => Vec::new(),
        };
        if tables.reads_symbols() && !tables.zones.is_empty() {
            tables.head = Some(Head::default());
        }
        let h = &tables.header;
        if h.e_shoff > 0 {
            let table_end = h.e_shoff.saturating_add(table_size(h));
            tables.keep.want(h.e_shoff.saturating_sub(NAMES_BEFORE_TABLE), table_end);
        }
        Ok(tables)
    }

    pub fn kind(&self) -> FileKind {
        match self.header.e_type {
            header::ET_REL => FileKind::Object,
            header::ET_EXEC => FileKind::Executable,
            header::ET_DYN if self.segment(program_header::PT_INTERP).is_some() => FileKind::Executable,
            header::ET_DYN => FileKind::SharedObject,
            _ => FileKind::Object,
        }
    }

    pub fn machine(&self) -> u16 {
        self.header.e_machine
    }

    /// Shows bytes around the name of the section of names, of which there are few: linkers may put the names of all
    /// symbols, which are many, between it and the section table.
    pub fn see_section_names(&mut self, at: u64, bytes: &[u8]) {
        if self.section_names < MAX_CANDIDATES {
            self.section_names += 1;
            self.keep.want_rest(at, at + bytes.len() as u64, bytes.to_vec());
        }
    }

    /// The next byte at or behind `at` that must be shown even within device code.
    pub fn next_wanted(&self, at: u64) -> Option<u64> {
        self.keep.next_wanted(at)
    }

    /// Shows a chunk of the file. Chunks come in order; the last [`super::harvest::OVERLAP`] bytes of one should
    /// begin the next.
    pub fn see(&mut self, at: u64, chunk: &[u8]) {
        self.keep.see(at, chunk);
        for &(start, end) in &self.zones {
            let from = start.max(at);
            let to = end.min(at + chunk.len() as u64);
            if from < to {
                self.harvest.see(from, &chunk[(from - at) as usize..(to - at) as usize], from == start);
            }
        }
        if let (Some(head), Some((start, end))) = (&mut self.head, self.zones.first()) {
            // Linkers put the tables into the first segment; what was moved is behind the dynamic section.
            let (from, to) = (at.max(*start), (at + chunk.len() as u64).min(*end).min(MAX_HEAD));
            if from < to {
                head.see(from, &chunk[(from - at) as usize..(to - at) as usize], &mut self.picked);
            }
        }
        if self.head.is_some() && self.dynamic().is_some() {
            self.place();
            self.keep.see(at, chunk);
        }
        if let Some(places) = self.places.as_ref().filter(|p| !p.keeps_strings()) {
            let (from, to) = (places.strings.0.max(at), places.strings.1.min(at + chunk.len() as u64));
            if from < to {
                self.picked.pick(at, chunk, (from - at) as usize, (to - at) as usize);
            }
        }
        if self.programs.is_none() && self.ctx.container == Container::Big {
            for hit in memchr::memmem::find_iter(chunk, &SYMBOL_SIZE_ENTRY) {
                let from = hit.saturating_sub(AROUND);
                let to = chunk.len().min(hit + AROUND);
                if self.candidates.len() < MAX_CANDIDATES {
                    self.candidates.push((at + from as u64, chunk[from..to].to_vec()));
                }
            }
        }
    }

    /// Symbols are read of 64-bit little-endian files only: no GPU library is of another kind.
    fn reads_symbols(&self) -> bool {
        self.ctx.container == Container::Big && self.ctx.le.is_little()
    }

    /// Tables that patchelf moved to the end of the file, together with the dynamic section and before it. They
    /// have a segment of their own; where a linker puts the dynamic section, it is among what becomes read-only.
    fn moved_tables(&self) -> Option<(u64, u64)> {
        let (at, _) = self.segment(program_header::PT_DYNAMIC)?;
        let holds = |p: &&ProgramHeader| at >= p.p_offset && at - p.p_offset < p.p_filesz;
        let programs = self.programs.as_ref()?;
        if programs.iter().filter(|p| p.p_type == program_header::PT_GNU_RELRO).any(|p| holds(&p)) {
            return None;
        }
        let segment = programs.iter().filter(|p| p.p_type == program_header::PT_LOAD).skip(1).find(holds)?;
        Some((segment.p_offset.max(at.saturating_sub(MAX_MOVED)), at))
    }

    fn segment(&self, kind: u32) -> Option<(u64, u64)> {
        let p = self.programs.as_ref()?.iter().find(|p| p.p_type == kind)?;
        Some((p.p_offset, p.p_filesz))
    }

    /// Whether an offset lies in a loaded segment of machine code.
    pub fn is_code(&self, offset: u64) -> bool {
        self.programs.iter().flatten().any(|p| {
            p.p_type == program_header::PT_LOAD
                && p.p_flags & program_header::PF_X != 0
                && offset >= p.p_offset
                && offset - p.p_offset < p.p_filesz
        })
    }

    /// Bytes the file must have for its tables to be whole.
    pub fn expected_size(&self) -> u64 {
        let h = &self.header;
        let sections = if h.e_shoff > 0 { h.e_shoff.saturating_add(table_size(h)) } else { 0 };
        sections.max(h.e_phoff.saturating_add(u64::from(h.e_phnum) * u64::from(h.e_phentsize)))
    }

    fn section_headers(&self) -> Vec<SectionHeader> {
        let h = &self.header;
        let entry = SectionHeader::size(self.ctx) as u64;
        if h.e_shoff == 0 || u64::from(h.e_shentsize) != entry {
            return Vec::new();
        }
        let Some(table) = self.keep.get(h.e_shoff, h.e_shoff.saturating_add(table_size(h))) else {
            return Vec::new();
        };
        let count = (table.len() as u64 / entry).min(MAX_SECTIONS) as usize;
        SectionHeader::parse_from(table, 0, count, self.ctx).unwrap_or_default()
    }

    /// Sections with names; empty when there are none or they could not be kept.
    pub fn sections(&self) -> Vec<Section> {
        let headers = self.section_headers();
        let names_index = match u32::from(self.header.e_shstrndx) {
            section_header::SHN_XINDEX => headers.first().map_or(0, |s| s.sh_link as usize),
            n => n as usize,
        };
        let Some(names) = headers.get(names_index) else { return Vec::new() };
        let name_of = |s: &SectionHeader| {
            let at = names.sh_offset.checked_add(s.sh_name as u64)?;
            let bytes = self.keep.get_from(at, MAX_SECTION_NAME)?;
            let end = memchr::memchr(0, bytes)?;
            Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
        };
        headers
            .iter()
            .filter(|s| s.sh_type != section_header::SHT_NOBITS)
            .filter_map(|s| {
                Some(Section {
                    name: name_of(s)?,
                    offset: s.sh_offset,
                    size: s.sh_size,
                    executable: s.is_executable(),
                })
            })
            .collect()
    }

    /// A section's bytes; `None` where they were not kept (those shortly before the section table are).
    pub fn bytes_of(&self, section: &Section) -> Option<&[u8]> {
        self.keep.get(section.offset, section.offset.checked_add(section.size)?)
    }

    /// What the dynamic section and its tables say, once the whole file has passed, and what of it could not be
    /// read. The file's name tells, as its SONAME does, whether it is a GPU vendor's library.
    pub fn facts(&mut self, file_name: &[u8]) -> (ElfFacts, Vec<String>) {
        if self.programs.is_none() {
            let h = &self.header;
            let end = h.e_phoff.saturating_add(u64::from(h.e_phnum) * u64::from(h.e_phentsize));
            self.programs = self.keep.get(h.e_phoff, end).and_then(|b| parse_programs(b, h, self.ctx));
        }
        let mut facts = ElfFacts { machine: self.header.e_machine, ..ElfFacts::default() };
        if let Some((at, size)) = self.segment(program_header::PT_INTERP) {
            facts.interpreter = self
                .keep
                .get(at, at.saturating_add(size.min(MAX_INTERPRETER)))
                .map(|b| String::from_utf8_lossy(b.split(|&c| c == 0).next().unwrap_or_default()).into_owned());
        }
        if self.places.is_none() {
            self.place();
        }
        let Some(places) = &self.places else { return (facts, Vec::new()) };
        let sections = self.section_headers();
        let symbols = sections.iter().filter(|s| s.sh_type == section_header::SHT_DYNSYM);
        let kept = Kept {
            places,
            keep: &self.keep,
            picked: &self.picked,
            undefined: &self.undefined,
            harvest: &self.harvest,
            symbols_size: symbols
                .filter(|s| places.symbols.is_some_and(|p| p.0 == s.sh_offset))
                .map(|s| s.sh_size)
                .next(),
        };
        let entries = self.dynamic().map(|section| self.entries(section)).unwrap_or_default();
        let find = |tag: u64| entries.iter().find(|e| e.0 == tag).map(|e| e.1);
        let mut unread = 0;
        let mut text = |at: u64| {
            let found = kept.text(at).map(|t| String::from_utf8_lossy(t).into_owned());
            unread += usize::from(found.is_none());
            found
        };
        facts.no_default_dirs = find(dynamic::DT_FLAGS_1).is_some_and(|flags| flags & NO_DEFAULT_DIRS != 0);
        facts.soname = find(dynamic::DT_SONAME).and_then(&mut text);
        facts.rpath = find(dynamic::DT_RPATH).and_then(&mut text);
        facts.runpath = find(dynamic::DT_RUNPATH).and_then(&mut text);
        facts.needed = entries.iter().filter(|e| e.0 == dynamic::DT_NEEDED).filter_map(|e| text(e.1)).collect();
        let mut notes = Vec::new();
        if unread > 0 {
            notes.push(format!("{unread} names of the dynamic section could not be read"));
        }
        if self.reads_symbols() {
            let soname = facts.soname.as_deref().unwrap_or_default();
            let gives_calls = vendor::gives_calls(file_name) || vendor::gives_calls(soname.as_bytes());
            let found = kept.linkage(gives_calls);
            if found.unread > 0 {
                notes.push(format!("{} names of symbol versions could not be read", found.unread));
            }
            if found.dropped > 0 {
                notes.push(format!("{} imported symbols are over the limit for one file", found.dropped));
            }
            let Linkage { asks, defines, imports, exports, .. } = found;
            facts = ElfFacts { asks, defines, imports, exports, ..facts };
        }
        facts.mentions = mentions(&self.harvest, places, &facts);
        (facts, notes)
    }

    /// The dynamic section, once it has passed.
    fn dynamic(&self) -> Option<&[u8]> {
        let (at, size) = self.segment(program_header::PT_DYNAMIC)?;
        let size = size.min(MAX_DYNAMIC);
        self.keep.get(at, at.saturating_add(size)).or_else(|| {
            self.candidates.iter().find_map(|(start, bytes)| {
                let from = usize::try_from(at.checked_sub(*start)?).ok()?;
                bytes.get(from..bytes.len().min(from + size as usize)).filter(|b| !b.is_empty())
            })
        })
    }

    /// Learns from the dynamic section where the tables stand: keeps what has passed of them and asks for the
    /// rest.
    fn place(&mut self) {
        let places = self.dynamic().and_then(|section| {
            let entries = self.entries(section);
            Places::new(&entries, |address| self.file_offset(address))
        });
        let head = self.head.take();
        let Some(places) = places else { return };
        if let Some(head) = head {
            for range in places.tables() {
                let whole = Some(range) != places.symbols || places.keeps_symbols();
                retain(&mut self.keep, &head, range, whole);
            }
            retain(&mut self.keep, &head, places.strings, places.keeps_strings());
            self.undefined = head.into_undefined();
        }
        self.places = Some(places);
    }

    fn entries(&self, section: &[u8]) -> Vec<(u64, u64)> {
        let word = |b: &[u8]| -> u64 {
            let mut value = 0u64;
            let bytes: Box<dyn Iterator<Item = &u8>> =
                if self.ctx.le.is_little() { Box::new(b.iter().rev()) } else { Box::new(b.iter()) };
            for &byte in bytes {
                value = value << 8 | u64::from(byte);
            }
            value
        };
        let size = if self.ctx.container == Container::Big { 8 } else { 4 };
        section
            .chunks_exact(2 * size)
            .map(|pair| (word(&pair[..size]), word(&pair[size..])))
            .take_while(|e| e.0 != dynamic::DT_NULL)
            .collect()
    }

    fn file_offset(&self, address: u64) -> Option<u64> {
        self.programs.as_ref()?.iter().filter(|p| p.p_type == program_header::PT_LOAD).find_map(|p| {
            let within = address.checked_sub(p.p_vaddr)?;
            (within < p.p_filesz).then(|| p.p_offset.saturating_add(within))
        })
    }
}

fn parse_programs(bytes: &[u8], h: &Header, ctx: Ctx) -> Option<Vec<ProgramHeader>> {
    if usize::from(h.e_phentsize) != ProgramHeader::size(ctx) {
        return None;
    }
    ProgramHeader::parse(bytes, 0, usize::from(h.e_phnum), ctx).ok()
}

/// Where `.dynstr` can be: any loaded segment (patchelf appends a grown table in a segment of its own), but not
/// a segment of machine code, unless it is the first (older linkers put everything read-only there).
fn string_zones(programs: &[ProgramHeader]) -> Vec<(u64, u64)> {
    let loads = programs.iter().filter(|p| p.p_type == program_header::PT_LOAD);
    loads
        .enumerate()
        .filter(|(i, p)| *i == 0 || p.p_flags & program_header::PF_X == 0)
        .map(|(_, p)| (p.p_offset, p.p_offset.saturating_add(p.p_filesz)))
        .collect()
}

/// Keeps what there is of a table, and asks for its rest if it may be kept whole.
fn retain(keep: &mut Keep, head: &Head, (start, end): (u64, u64), whole: bool) {
    if keep.get(start, end).is_some() {
        return;
    }
    let mut begun = false;
    for (at, bytes) in head.parts(start, end).take(MAX_PARTS) {
        let first = at == start && whole;
        begun |= first;
        keep.want_rest(at, if first { end } else { at + bytes.len() as u64 }, bytes.to_vec());
    }
    if whole && !begun {
        keep.want(start, end);
    }
}

/// Names of GPU vendors' libraries among a file's strings. Those in the table of names are no strings of the
/// program: libraries that it needs, versions, and itself.
fn mentions(harvest: &Harvest, places: &Places, facts: &ElfFacts) -> Vec<String> {
    let versions = facts.asks.iter().flat_map(|a| &a.versions).map(|v| &v.name);
    let linked: BTreeSet<&String> =
        facts.needed.iter().chain(&facts.soname).chain(&facts.defines).chain(versions).collect();
    let names = harvest.names().filter(|(at, name)| {
        !places.in_strings(*at) && vendor::is_opened(name.as_bytes()) && !linked.contains(&(*name).to_owned())
    });
    let found: BTreeSet<&str> = names.map(|n| n.1).collect();
    found.into_iter().take(MAX_MENTIONS).map(str::to_owned).collect()
}

fn table_size(h: &Header) -> u64 {
    // With more than 0xff00 sections the count stands in the first entry; such files hold no device code.
    u64::from(h.e_shnum.max(1)) * u64::from(h.e_shentsize)
}
