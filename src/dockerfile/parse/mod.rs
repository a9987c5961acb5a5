//! From bytes to a [`Document`], by the laws of BuildKit's parser, but without an end at the first error.
//!
//! bytes ▶ `text` ▶ `lines` ▶ `reader` (directives, comments, continuations, heredocs) ▶ `instruction` (keyword,
//! flags, `body`). What BuildKit would refuse has an error that says so; all that can be read is read nevertheless.

mod body;
mod directives;
mod flags;
mod heredoc;
mod instruction;
mod json;
mod lex;
mod lines;
mod part;
mod problem;
mod reader;
mod text;
mod values;
mod words;

#[cfg(test)]
mod tests;

use super::span::{LineIndex, Span};
use super::syntax::{Document, Keyword};
use problem::error;

/// Bytes of the largest file that is read.
pub const MAX_FILE: usize = 16 << 20;

/// Parses a file. Never fails: errors are in the document and its instructions.
pub fn parse(source: &[u8]) -> Document {
    let mut document = empty(source);
    if source.len() > MAX_FILE {
        let what = format!("more than {} MiB: no Dockerfile is that large, name another file", MAX_FILE >> 20);
        document.errors.push(error(Span::default(), what));
        return document;
    }
    document.text = text::decode(source);
    document.lines = LineIndex::new(&document.text);
    if let Some(refusal) = text::no_text(source) {
        document.errors.push(refusal);
        return document;
    }
    let replaced = std::str::from_utf8(source).is_err();
    let read = reader::read(&document.text, replaced);
    document.escape = read.escape;
    document.directives = read.directives;
    document.comments = read.comments;
    document.instructions = read.instructions;
    document.errors = read.errors;
    if replaced {
        document.errors.extend(text::no_utf8(source, &document.comments));
    }
    if document.instructions.is_empty() {
        let what = "no instruction: a Dockerfile starts with `FROM image`";
        document.errors.push(error(Span::default(), what));
    }
    stage_first(&mut document);
    document
}

fn empty(source: &[u8]) -> Document {
    Document {
        source: source.to_vec(),
        text: String::new(),
        lines: LineIndex::default(),
        escape: reader::ESCAPE,
        directives: Vec::new(),
        comments: Vec::new(),
        instructions: Vec::new(),
        errors: Vec::new(),
    }
}

/// Before the first FROM only ARG may stand. One error is enough: what follows has the same cause.
fn stage_first(document: &mut Document) {
    let first = document.instructions.iter_mut().find(|i| i.keyword != Keyword::Arg);
    if let Some(first) = first.filter(|i| i.keyword != Keyword::From && i.error.is_none()) {
        let what = format!("{} before the first FROM: start the stage with `FROM image`", first.keyword.name());
        first.error = Some(error(first.keyword_span, what));
    }
}
