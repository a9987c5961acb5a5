//! The pass over one file.

use std::io;
use std::sync::OnceLock;

use super::log::Log;
use super::says::Says;
use super::{cubin, fatbin, ptx};
use crate::elf::{self, Marks, Tables};
use crate::model::{Container, FileFacts, FileKind, Gap, GapEffect, ImagePath, Item, Machine};
use crate::stream::{Body, MAX_WINDOW};

/// Bytes looked at in one go.
const CHUNK: usize = 64 << 10;

/// Bytes of a chunk that begin the next one: what a hit needs to be decoded, and what the tables ask for.
const OVERLAP: usize = 4096;

/// Bytes passed over at a mark that no device code follows.
const PASSED: usize = fatbin::MAGIC.len();

/// Largest cubin that is read whole to learn its suffix and toolkit.
const WHOLE_CUBIN: u64 = (MAX_WINDOW / 2) as u64;

/// Gaps kept for one file; damage that repeats says nothing new.
const MAX_GAPS: usize = 32;

/// The library that carries torch's list of architectures as text.
const TORCH_FLAGS_IN: &str = "libtorch_python.so";

/// Finds what may be device code.
fn searcher() -> &'static Marks {
    static SEARCHER: OnceLock<Marks> = OnceLock::new();
    SEARCHER.get_or_init(|| Marks::new(&[&fatbin::MAGIC, &cubin::MAGIC, ptx::MARK]))
}

pub(super) struct Scanner {
    kind: FileKind,
    log: Log,
    entries: Vec<(Item, u64)>,
    gaps: Vec<Gap>,
    /// Fatbin headers that no fatbin follows: damage, or a constant in the code of a program that handles fatbins.
    suspects: Vec<(u64, String)>,
    tables: Option<Tables>,
    flags: Option<String>,
    says: Option<Says>,
    file_name: Vec<u8>,
}

impl Scanner {
    pub(super) fn new(kind: FileKind) -> Self {
        Self {
            kind,
            log: Log::default(),
            entries: Vec::new(),
            gaps: Vec::new(),
            suspects: Vec::new(),
            tables: None,
            flags: None,
            says: None,
            file_name: Vec::new(),
        }
    }

    pub(super) fn run(mut self, path: &ImagePath, body: &mut dyn Body) -> io::Result<FileFacts> {
        if self.kind.is_elf() {
            match Tables::new(body.window(OVERLAP)?) {
                Ok(tables) => self.tables = Some(tables),
                Err(why) => {
                    self.kind = FileKind::BrokenElf;
                    self.gap(0, why, GapEffect::File);
                }
            }
        }
        self.file_name = path.file_name().to_vec();
        self.says = self.tables.as_ref().and_then(|_| Says::new(&self.file_name));
        let wants_flags = path.file_name_lossy().starts_with(TORCH_FLAGS_IN);
        let searcher = searcher();
        loop {
            let at = body.position();
            let window = body.window(CHUNK)?;
            if window.is_empty() {
                break;
            }
            // Fewer bytes than asked for: the end of the file.
            let last = window.len() < CHUNK;
            let usable = if last { window.len() } else { window.len() - OVERLAP };
            let hit = searcher.find(window, 0).filter(|&i| i < usable);
            let seen = hit.unwrap_or(window.len());
            if let Some(tables) = &mut self.tables {
                // Where no device code follows, the search goes on behind these bytes.
                tables.see(at, &window[..window.len().min(seen + PASSED)]);
            }
            if let Some(says) = &mut self.says {
                says.see(&window[..seen]);
            }
            if wants_flags {
                self.flags = longest_flags(&window[..seen], self.flags.take());
            }
            match hit {
                None => body.consume(usable),
                Some(i) => {
                    body.consume(i);
                    self.candidate(body)?;
                }
            }
        }
        Ok(self.finish(body.position()))
    }

    /// Decodes what stands at the current position, which begins with one of the marks, and moves past it.
    fn candidate(&mut self, body: &mut dyn Body) -> io::Result<()> {
        let window = body.window(ptx::LOOK * 2)?;
        if window.starts_with(&fatbin::MAGIC) {
            return self.region(body);
        }
        if let Some(found) = cubin::header(window) {
            return self.embedded_cubin(found, body);
        }
        if let Some(item) = ptx::directive(window) {
            self.entries.push((item, 0));
            self.log.add(Container::PtxText, body.position(), &mut self.entries);
        }
        self.pass(body, PASSED as u64)
    }

    fn region(&mut self, body: &mut dyn Body) -> io::Result<()> {
        let start = body.position();
        let left_in_file = body.len().map_or(u64::MAX, |n| n.saturating_sub(start));
        let window = body.window(fatbin::REGION_HEADER)?;
        let Some(header) = window.first_chunk::<{ fatbin::REGION_HEADER }>() else {
            self.suspect(start, "fatbin header is cut off by the end of the file".to_owned());
            return self.pass(body, PASSED as u64);
        };
        let Some(size) = fatbin::region_body(header) else {
            if start == 0 && self.kind == FileKind::Fatbin {
                self.damage(start, "fatbin header of an unknown version or size");
            }
            return self.pass(body, PASSED as u64);
        };
        let end = start.checked_add(fatbin::REGION_HEADER as u64).and_then(|b| b.checked_add(size));
        let Some(end) = end.filter(|e| e - start <= left_in_file) else {
            self.suspect(start, format!("fatbin of {size} bytes runs past the end of the file"));
            return self.pass(body, PASSED as u64);
        };
        self.pass(body, fatbin::REGION_HEADER as u64)?;
        if size == 0 {
            self.log.empty += 1;
            if self.kind == FileKind::Fatbin && left_in_file > fatbin::REGION_HEADER as u64 {
                self.damage(start, "an empty fatbin with more bytes behind it");
            }
            return Ok(());
        }
        while body.position() < end {
            let at = body.position();
            let left = end - at;
            let window = body.window(fatbin::ENTRY_HEADER)?;
            let decoded = match window.first_chunk::<{ fatbin::ENTRY_HEADER }>() {
                Some(header) if left >= fatbin::ENTRY_HEADER as u64 => fatbin::entry(header, left),
                _ => Err("fatbin entry header is cut off".to_owned()),
            };
            let entry = match decoded {
                Ok(entry) => entry,
                Err(why) => {
                    // What was decoded so far stands; the search goes on behind this header's first bytes.
                    if self.entries.is_empty() {
                        self.suspect(at, why);
                    } else {
                        self.damage(at, &why);
                    }
                    break;
                }
            };
            let mut item = entry.item;
            self.pass(body, entry.header)?;
            if item.packing == crate::model::Packing::None && item.form == crate::model::Form::Sass {
                let payload = body.window(cubin::HEADER)?;
                item.toolkit = cubin::header(payload).and_then(|c| c.item.toolkit);
            }
            self.entries.push((item, entry.payload));
            let before = body.position();
            self.pass(body, entry.payload)?;
            if body.position() - before < entry.payload {
                self.damage(before, "fatbin payload is cut off by the end of the file");
                break;
            }
        }
        self.log.add(Container::Fatbin, start, &mut self.entries);
        Ok(())
    }

    fn embedded_cubin(&mut self, found: cubin::Cubin, body: &mut dyn Body) -> io::Result<()> {
        let start = body.position();
        let left = body.len().map_or(u64::MAX, |n| n.saturating_sub(start));
        let whole = found.size <= left;
        if !whole {
            self.damage(start, "cubin runs past the end of the file");
        }
        let item = if whole { whole_cubin(found, body)? } else { found.item };
        self.entries.push((item, found.size.min(left)));
        self.log.add(Container::Cubin, start, &mut self.entries);
        self.pass(body, if whole { found.size } else { cubin::HEADER as u64 })
    }

    /// Moves past bytes; those that the ELF tables want are shown to them.
    fn pass(&mut self, body: &mut dyn Body, mut n: u64) -> io::Result<()> {
        while n > 0 {
            let at = body.position();
            let wanted = self.tables.as_ref().and_then(|t| t.next_wanted(at)).filter(|w| *w < at.saturating_add(n));
            let Some(wanted) = wanted else {
                body.skip(n)?;
                return Ok(());
            };
            n -= body.skip(wanted - at)?;
            let window = body.window(1)?;
            if window.is_empty() {
                return Ok(());
            }
            let step = (window.len() as u64).min(n) as usize;
            if let Some(tables) = &mut self.tables {
                tables.see(wanted, &window[..step]);
            }
            body.consume(step);
            n -= step as u64;
        }
        Ok(())
    }

    fn suspect(&mut self, offset: u64, why: String) {
        if self.suspects.len() < MAX_GAPS {
            self.suspects.push((offset, why));
        }
    }

    fn damage(&mut self, offset: u64, why: &str) {
        self.gap(offset, why.to_owned(), GapEffect::File);
    }

    fn gap(&mut self, offset: u64, why: String, effect: GapEffect) {
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push(Gap { path: None, layer: None, offset: Some(offset), why, effect });
        }
    }

    fn finish(mut self, size: u64) -> FileFacts {
        if let Some((offset, count)) = self.log.dropped {
            self.gap(
                offset,
                format!("{count} device code regions are over the limit for one file"),
                GapEffect::File,
            );
        }
        let mut sections: Vec<elf::Section> = Vec::new();
        let mut elf = None;
        if let Some(tables) = &mut self.tables {
            self.kind = tables.kind();
            sections = tables.sections();
            let (facts, notes) = tables.facts(&self.file_name);
            let expected = tables.expected_size();
            let machine = Machine(tables.machine());
            elf = Some(facts);
            if expected > size {
                self.gap(size, format!("ELF file is cut off: its tables end at byte {expected}"), GapEffect::File);
            }
            for why in notes {
                self.gap(0, why, GapEffect::None);
            }
            // Declared, but nothing well-formed was found: damage, or a format that is not understood.
            let declared = sections.iter().find(|s| matches!(s.name.as_str(), ".nv_fatbin" | "__nv_relfatbin"));
            if let Some(section) = declared.filter(|s| s.size > 0)
                && self.log.is_empty()
                && self.log.empty == 0
                && machine != Machine::CUDA
            {
                let why = format!("section {} holds nothing that can be read as device code", section.name);
                self.gap(section.offset, why, GapEffect::File);
            }
        }
        for (offset, why) in std::mem::take(&mut self.suspects) {
            let in_code = match sections.iter().find(|s| s.holds(offset)) {
                Some(section) => section.executable,
                None => self.tables.as_ref().is_some_and(|t| t.is_code(offset)),
            };
            if !in_code {
                self.gap(offset, why, GapEffect::File);
            }
        }
        let object = self.kind == FileKind::Object;
        let modules = self.log.modules(|offset| {
            let holder = sections.iter().find(|s| s.holds(offset));
            let relocatable = holder.is_some_and(|s| s.name.contains("nv_relfatbin"));
            (holder.map(|s| s.name.clone()), relocatable && !object)
        });
        let mut facts = FileFacts::new(self.kind, size);
        facts.elf = elf;
        facts.modules = modules;
        facts.arch_flags = self.flags;
        facts.gaps = self.gaps;
        if let Some(says) = self.says {
            says.tell(&mut facts);
        }
        facts
    }
}

/// The cubin at the current position with what its sections add; does not move.
fn whole_cubin(found: cubin::Cubin, body: &mut dyn Body) -> io::Result<Item> {
    if !found.suffix_in_sections || found.size > WHOLE_CUBIN {
        return Ok(found.item);
    }
    let window = body.window(found.size as usize)?;
    Ok(match window.get(..found.size as usize) {
        Some(bytes) => cubin::complete(found.item, bytes),
        None => found.item,
    })
}

/// A loose cubin: the whole file is one.
pub(super) fn read_cubin(body: &mut dyn Body) -> io::Result<FileFacts> {
    let mut scanner = Scanner::new(FileKind::Cubin);
    if let Some(found) = cubin::header(body.window(cubin::HEADER)?) {
        scanner.embedded_cubin(found, body)?;
    }
    body.skip(u64::MAX)?;
    Ok(scanner.finish(body.position()))
}

/// A loose PTX file.
pub(super) fn read_ptx(body: &mut dyn Body) -> io::Result<FileFacts> {
    let mut scanner = Scanner::new(FileKind::Ptx);
    let head = body.window(super::HEAD)?;
    let item = ptx::file_start(head).and_then(|at| ptx::directive(&head[at..]));
    body.skip(u64::MAX)?;
    let size = body.position();
    match item {
        Some(item) => {
            scanner.entries.push((item, size));
            scanner.log.add(Container::PtxText, 0, &mut scanner.entries);
        }
        None => scanner.damage(0, "PTX without a target that could be read"),
    }
    Ok(scanner.finish(size))
}

/// The longest string of architectures (`sm_50 sm_60 …`) among a chunk's strings and the one found before.
fn longest_flags(chunk: &[u8], best: Option<String>) -> Option<String> {
    let mut best = best;
    for at in memchr::memmem::find_iter(chunk, b"sm_") {
        if at > 0 && chunk[at - 1] != 0 {
            continue;
        }
        let Some(end) = memchr::memchr(0, &chunk[at..]) else { continue };
        let Ok(text) = std::str::from_utf8(&chunk[at..at + end]) else { continue };
        let valid = text.split(' ').all(|t| {
            (t.starts_with("sm_") || t.starts_with("compute_")) && t.parse::<crate::model::SmArch>().is_ok()
        });
        if valid && best.as_ref().is_none_or(|b| b.len() < text.len()) {
            best = Some(text.to_owned());
        }
    }
    best
}

const _: () = assert!(OVERLAP >= elf::OVERLAP_FOR_NAMES && OVERLAP < CHUNK);
