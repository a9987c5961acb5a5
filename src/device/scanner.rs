//! The pass over one file.

use std::io;
use std::sync::OnceLock;

use super::bundle::Place;
use super::passing::Passing;
use super::says::Says;
use super::sink::{Options, Sink};
use super::{bundle, ccob, code_object, cubin, fatbin, image, inflate, kpack, offload, ptx, sycl, verdict, zebin};
use crate::elf::{self, Marks, Tables};
use crate::model::{Container, FileFacts, FileKind, ImagePath, Kpack};
use crate::stream::Body;

/// Bytes looked at in one go.
const CHUNK: usize = 64 << 10;

/// Bytes of a chunk that begin the next one: what a hit needs to be decoded, and what the tables ask for.
const OVERLAP: usize = 4096;

/// Bytes passed over at a mark that no device code follows.
const PASSED: usize = fatbin::MAGIC.len();

/// The name of the section that holds sections' names; among them it stands as well.
const SECTION_NAMES: &[u8] = b".shstrtab\0";

/// The library that carries torch's list of architectures as text.
const TORCH_FLAGS_IN: &str = "libtorch_python.so";

/// Finds what may be device code.
fn searcher() -> &'static Marks {
    static SEARCHER: OnceLock<Marks> = OnceLock::new();
    SEARCHER.get_or_init(|| {
        Marks::new(&[
            &fatbin::MAGIC,
            &cubin::MAGIC,
            ptx::MARK,
            bundle::MAGIC,
            ccob::MAGIC,
            &offload::MAGIC,
            kpack::WRAPPER,
            kpack::NAME_KEY,
            kpack::PATHS_KEY,
            &image::BITCODE[0],
            &image::BITCODE[1],
            &image::SPIRV,
            &inflate::ZSTD_MAGIC,
            zebin::ARCHIVE,
            SECTION_NAMES,
        ])
    })
}

pub(super) struct Scanner {
    kind: FileKind,
    sink: Sink,
    tables: Option<Tables>,
    flags: Option<String>,
    says: Option<Says>,
    file_name: Vec<u8>,
    archive: Option<Kpack>,
}

impl Scanner {
    pub(super) fn new(kind: FileKind, options: Options) -> Self {
        let sink = Sink::new(options);
        Self { kind, sink, tables: None, flags: None, says: None, file_name: Vec::new(), archive: None }
    }

    pub(super) fn run(mut self, path: &ImagePath, body: &mut dyn Body) -> io::Result<FileFacts> {
        if self.kind.is_elf() {
            match Tables::new(body.window(OVERLAP)?) {
                Ok(tables) => self.tables = Some(tables),
                Err(why) => {
                    self.kind = FileKind::BrokenElf;
                    self.sink.damage(0, why);
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
                if window[seen..].starts_with(SECTION_NAMES) {
                    let from = seen.saturating_sub(OVERLAP);
                    tables.see_section_names(at + from as u64, &window[from..window.len().min(seen + OVERLAP)]);
                }
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
        let is_elf = self.tables.is_some();
        let body = &mut Passing::new(body, self.tables.as_mut());
        let sink = &mut self.sink;
        let at = body.position();
        let window = body.window(ptx::LOOK * 2)?;
        let taken = if window.starts_with(&fatbin::MAGIC) {
            fatbin::read(sink, body, self.kind == FileKind::Fatbin)?
        } else if window.starts_with(bundle::MAGIC) {
            // Names of sections and messages go on as text.
            let count = window.get(bundle::MAGIC.len()..bundle::MAGIC.len() + 8).unwrap_or_default();
            let text = is_elf && count.iter().all(|b| b.is_ascii_graphic() || *b == b' ');
            let told = bundle::read(sink, body, &Place::PLAIN)?;
            if text { told.is_ok() } else { doubted(sink, at, told) }
        } else if window.starts_with(ccob::MAGIC) {
            let told = ccob::read(sink, body, None)?;
            doubted(sink, at, told)
        } else if window.starts_with(&offload::MAGIC) {
            let told = offload::read(sink, body)?;
            doubted(sink, at, told)
        } else if let Some(found) = cubin::header(window) {
            cubin::read(sink, body, found)?;
            true
        } else if let Some(found) = code_object::header(window) {
            code_object::read(sink, body, found)?;
            true
        } else if let Some(item) = ptx::directive(window) {
            sink.add(Container::PtxText, at, &mut vec![(item, 0)]);
            false
        } else if !is_elf {
            // What follows counts by its section.
            false
        } else if image::is_bitcode(window) {
            sink.bitcode(at);
            false
        } else {
            !kpack::see(&mut sink.kpack, body)? && sycl::see(sink, body)?
        };
        if !taken {
            body.skip(PASSED as u64)?;
        }
        Ok(())
    }

    fn finish(self, size: u64) -> FileFacts {
        let Self { kind, mut sink, mut tables, flags, says, file_name, archive } = self;
        let kind = tables.as_ref().map_or(kind, Tables::kind);
        let elf = tables.as_mut().map(|tables| {
            let (facts, notes) = tables.facts(&file_name);
            notes.into_iter().for_each(|why| sink.note(0, why));
            facts
        });
        let mut facts = FileFacts::new(kind, size);
        facts.elf = elf;
        facts.arch_flags = flags;
        facts.kpack = archive;
        verdict::fill(&mut facts, sink, tables.as_ref());
        if let Some(says) = says {
            says.tell(&mut facts);
        }
        facts
    }
}

/// Notes why a mark has nothing behind it.
fn doubted(sink: &mut Sink, at: u64, told: Result<(), String>) -> bool {
    told.map_err(|why| sink.doubt(at, why)).is_ok()
}

/// A loose cubin: the whole file is one.
pub(super) fn read_cubin(body: &mut dyn Body, options: Options) -> io::Result<FileFacts> {
    let mut scanner = Scanner::new(FileKind::Cubin, options);
    if let Some(found) = cubin::header(body.window(cubin::HEADER)?) {
        cubin::read(&mut scanner.sink, body, found)?;
    }
    body.skip(u64::MAX)?;
    Ok(scanner.finish(body.position()))
}

/// A loose code object.
pub(super) fn read_code_object(body: &mut dyn Body, options: Options) -> io::Result<FileFacts> {
    let mut scanner = Scanner::new(FileKind::CodeObject, options);
    if let Some(found) = code_object::header(body.window(code_object::HEADER)?) {
        code_object::read(&mut scanner.sink, body, found)?;
    }
    body.skip(u64::MAX)?;
    Ok(scanner.finish(body.position()))
}

/// An archive of kernels that were taken out of HIP libraries.
pub(super) fn read_kpack(body: &mut dyn Body, options: Options) -> io::Result<FileFacts> {
    let mut scanner = Scanner::new(FileKind::Kpack, options);
    scanner.archive = kpack::read(&mut scanner.sink, body)?;
    body.skip(u64::MAX)?;
    Ok(scanner.finish(body.position()))
}

/// A loose Intel GPU binary, or an archive of them.
pub(super) fn read_zebin(body: &mut dyn Body, options: Options) -> io::Result<FileFacts> {
    let mut scanner = Scanner::new(FileKind::Zebin, options);
    zebin::read_file(&mut scanner.sink, body)?;
    body.skip(u64::MAX)?;
    Ok(scanner.finish(body.position()))
}

/// A loose PTX file.
pub(super) fn read_ptx(body: &mut dyn Body, options: Options) -> io::Result<FileFacts> {
    let mut scanner = Scanner::new(FileKind::Ptx, options);
    let head = body.window(super::HEAD)?;
    let item = ptx::file_start(head).and_then(|at| ptx::directive(&head[at..]));
    body.skip(u64::MAX)?;
    let size = body.position();
    match item {
        Some(item) => scanner.sink.add(Container::PtxText, 0, &mut vec![(item, size)]),
        None => scanner.sink.damage(0, "PTX without a target that could be read"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The automaton would cost every file several times as much.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn marks_are_searched_with_vectors() {
        assert!(matches!(searcher(), Marks::Packed(_)));
    }
}
