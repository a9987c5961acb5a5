//! Whole files: the laws one by one, files that BuildKit's own parser has read, and any bytes at all.

mod files;
mod hostile;
mod laws;
mod properties;
mod sound;

use super::parse;
use crate::dockerfile::syntax::{Document, Instruction};
use sound::assert_sound;

/// A document that holds what every document must.
fn read(text: &str) -> Document {
    read_bytes(text.as_bytes())
}

fn read_bytes(source: &[u8]) -> Document {
    let document = parse(source);
    assert_sound(&document);
    document
}

/// The instruction behind `FROM scratch`.
fn one(text: &str) -> Instruction {
    let mut document = read(&format!("FROM scratch\n{text}\n"));
    assert_eq!((document.errors.len(), document.instructions.len()), (0, 2), "{text}: {:?}", document.instructions);
    document.instructions.remove(1)
}

/// What is said of the instruction behind `FROM scratch`.
pub(super) fn refused(text: &str) -> Option<String> {
    one(text).error.map(|e| e.what)
}

/// All that is said of a file, in order.
fn said(document: &Document) -> Vec<&str> {
    let own = document.errors.iter();
    own.chain(document.instructions.iter().filter_map(|i| i.error.as_ref())).map(|e| e.what.as_str()).collect()
}
