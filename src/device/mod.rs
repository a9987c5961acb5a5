//! Device code in files: fatbins anywhere, cubins outside fatbins, PTX as text.
//!
//! A whole-file search for validated magic finds what a section walk misses (`.ldata`, `.lrodata`,
//! `.cask_resource`, `.rodata`), needs no section table and works forward on a stream; sections only label.

mod cubin;
mod fatbin;
mod log;
mod ptx;
mod says;
mod scanner;

use std::io;

use crate::elf;
use crate::model::{FileFacts, FileKind, ImagePath};
use crate::stream::Body;

/// Bytes that [`kind_of`] wants to see.
pub const HEAD: usize = 4096;

/// Start of a static archive.
const ARCHIVE_MAGIC: &[u8] = b"!<arch>\n";

/// What a file is, by its first bytes; `None`: nothing that holds device code or links libraries.
pub fn kind_of(head: &[u8]) -> Option<FileKind> {
    if head.starts_with(&elf::MAGIC) {
        if cubin::header(head).is_some() {
            return Some(FileKind::Cubin);
        }
        return Some(FileKind::SharedObject);
    }
    if head.starts_with(&fatbin::MAGIC) {
        return Some(FileKind::Fatbin);
    }
    if head.starts_with(ARCHIVE_MAGIC) {
        return Some(FileKind::Archive);
    }
    ptx::file_start(head).map(|_| FileKind::Ptx)
}

/// Reads one file of a kind that [`kind_of`] told. I/O errors are the source's; damage becomes gaps.
pub fn read(kind: FileKind, path: &ImagePath, body: &mut dyn Body) -> io::Result<FileFacts> {
    match kind {
        FileKind::Cubin => scanner::read_cubin(body),
        FileKind::Ptx => scanner::read_ptx(body),
        FileKind::Fatbin
        | FileKind::Archive
        | FileKind::CodeObject
        | FileKind::Bundle
        | FileKind::Kpack
        | FileKind::Zebin => scanner::Scanner::new(kind).run(path, body),
        FileKind::SharedObject | FileKind::Executable | FileKind::Object | FileKind::BrokenElf => {
            scanner::Scanner::new(FileKind::SharedObject).run(path, body)
        }
    }
}
