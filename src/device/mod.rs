//! Device code in files: fatbins and offload bundles anywhere, cubins and code objects outside them, PTX as text.
//!
//! A whole-file search for validated magic finds what a section walk misses (`.ldata`, `.lrodata`,
//! `.cask_resource`, `.rodata`), needs no section table and works forward on a stream; sections only label.

mod bundle;
mod ccob;
mod code_object;
mod cubin;
mod fatbin;
mod image;
mod inflate;
mod kpack;
mod log;
mod offload;
mod passing;
mod ptx;
mod says;
mod scanner;
mod sink;
mod sycl;
mod target;
#[cfg(test)]
mod testing;
mod verdict;
mod zebin;

use std::io;

use crate::elf;
use crate::model::{FileFacts, FileKind, ImagePath};
use crate::stream::Body;

pub use sink::Options;

/// Bytes that [`kind_of`] wants to see.
pub const HEAD: usize = 4096;

/// What a file is, by its first bytes; `None`: nothing that holds device code or links libraries.
pub fn kind_of(head: &[u8]) -> Option<FileKind> {
    if head.starts_with(&elf::MAGIC) {
        if cubin::header(head).is_some() {
            return Some(FileKind::Cubin);
        }
        if code_object::header(head).is_some() {
            return Some(FileKind::CodeObject);
        }
        if zebin::header(head).is_some() {
            return Some(FileKind::Zebin);
        }
        return Some(FileKind::SharedObject);
    }
    if head.starts_with(&fatbin::MAGIC) {
        return Some(FileKind::Fatbin);
    }
    if head.starts_with(bundle::MAGIC) || ccob::is_start(head) || head.starts_with(&offload::MAGIC) {
        return Some(FileKind::Bundle);
    }
    if head.starts_with(kpack::MAGIC) {
        return Some(FileKind::Kpack);
    }
    if head.starts_with(zebin::ARCHIVE) {
        return Some(if zebin::is_archive(head) { FileKind::Zebin } else { FileKind::Archive });
    }
    ptx::file_start(head).map(|_| FileKind::Ptx)
}

/// Reads one file of a kind that [`kind_of`] told. I/O errors are the source's; damage becomes gaps.
pub fn read(kind: FileKind, path: &ImagePath, body: &mut dyn Body) -> io::Result<FileFacts> {
    read_with(kind, path, body, Options::default())
}

/// As [`read`], by `options`.
pub fn read_with(kind: FileKind, path: &ImagePath, body: &mut dyn Body, options: Options) -> io::Result<FileFacts> {
    match kind {
        FileKind::Cubin => scanner::read_cubin(body, options),
        FileKind::Ptx => scanner::read_ptx(body, options),
        FileKind::CodeObject => scanner::read_code_object(body, options),
        FileKind::Kpack => scanner::read_kpack(body, options),
        FileKind::Zebin => scanner::read_zebin(body, options),
        FileKind::Fatbin | FileKind::Archive | FileKind::Bundle => {
            scanner::Scanner::new(kind, options).run(path, body)
        }
        FileKind::SharedObject | FileKind::Executable | FileKind::Object | FileKind::BrokenElf => {
            scanner::Scanner::new(FileKind::SharedObject, options).run(path, body)
        }
    }
}
