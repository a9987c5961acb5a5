//! The lines of a file, put together to instructions.

use super::directives::Block;
use super::heredoc;
use super::instruction::{self, Read, Rules};
use super::lines::{LONGEST_LINE, Lines, cut_continuation};
use super::part::Part;
use super::problem::{error, shown};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Body, Comment, Directive, Heredoc, Instruction, Joined, SyntaxError};

/// The escape character where no directive names another.
pub(super) const ESCAPE: char = '\\';

/// Bytes of an instruction's joined lines, heredocs not counted.
pub(super) const LONGEST_INSTRUCTION: usize = 1 << 20;

/// Parts (instructions, words, pieces of lines, comments) that a document is made of at most; they bound its memory.
const MOST_PARTS: usize = 400_000;

/// What was read.
pub(super) struct Reading {
    pub(super) escape: char,
    pub(super) directives: Vec<Directive>,
    pub(super) comments: Vec<Comment>,
    pub(super) instructions: Vec<Instruction>,
    pub(super) errors: Vec<SyntaxError>,
}

pub(super) fn read(text: &str, replaced: bool) -> Reading {
    let mut reader = Reader {
        lines: Lines::new(text),
        block: Block::default(),
        comments: Vec::new(),
        instructions: Vec::new(),
        replaced,
        parts: 0,
    };
    let cut = reader.run();
    let Reader { lines, block, comments, instructions, .. } = reader;
    let mut errors = block.errors;
    errors.extend(lines.too_long.map(|span| {
        let what = format!("a line of more than {LONGEST_LINE} bytes, which BuildKit does not read: break it");
        error(span, what)
    }));
    errors.extend(cut);
    Reading { escape: block.escape.unwrap_or(ESCAPE), directives: block.found, comments, instructions, errors }
}

struct Reader<'a> {
    lines: Lines<'a>,
    block: Block,
    comments: Vec<Comment>,
    instructions: Vec<Instruction>,
    replaced: bool,
    parts: usize,
}

impl Reader<'_> {
    /// Reads all lines; an error where the file has too many parts to read on.
    fn run(&mut self) -> Option<SyntaxError> {
        while let Some(line) = self.lines.next() {
            let line = self.without_indent(line);
            let text = self.lines.slice(line);
            if text.starts_with('#') {
                if !self.block.take(text, line) {
                    self.comment(line);
                }
            } else {
                self.block.end();
                if !text.is_empty() {
                    self.instruction(line);
                }
            }
            if self.parts > MOST_PARTS {
                let rest = Span::new(self.lines.at(), self.lines.at());
                return Some(error(rest, "the file is not read from here: it has too many words, make it smaller"));
            }
        }
        None
    }

    fn without_indent(&self, line: Span) -> Span {
        let text = self.lines.slice(line);
        Span::new(line.start + text.len() - text.trim_start().len(), line.end)
    }

    fn comment(&mut self, span: Span) {
        if self.parts > MOST_PARTS {
            return;
        }
        let text = self.lines.slice(span).trim_start_matches('#').trim().to_owned();
        self.comments.push(Comment { span, text });
        self.parts += 1;
    }

    /// The instruction that starts in a line.
    fn instruction(&mut self, first: Span) {
        let escape = self.block.escape.unwrap_or(ESCAPE);
        let (joined, end, whole) = self.join(first, escape);
        let line = Part::all(&joined);
        let mut heredocs = Vec::new();
        let mut instruction = if whole {
            let Read { mut instruction, heredocs: may, .. } =
                instruction::read(line, Rules { escape, replaced: self.replaced });
            if may {
                heredocs = self.heredocs(line, &mut instruction);
            }
            instruction
        } else {
            instruction::too_long(line, LONGEST_INSTRUCTION)
        };
        self.parts += joined.pieces.len() + size(&instruction) + heredocs.len();
        let ends = heredocs.iter().map(|h| h.end.unwrap_or(self.without_end(h.body)).end);
        let end = ends.fold(end, usize::max);
        instruction.span = Span::new(first.start, end);
        if let Body::Onbuild(inner) = &mut instruction.body {
            inner.span.end = end;
            inner.heredocs = heredocs;
        } else {
            instruction.heredocs = heredocs;
        }
        self.instructions.push(instruction);
    }

    /// The heredocs that a line opens, with their lines.
    fn heredocs(&mut self, line: Part<'_>, instruction: &mut Instruction) -> Vec<Heredoc> {
        let mut refuse = |span: Span, what: String| {
            instruction.error.get_or_insert_with(|| error(span, what));
        };
        let openers = heredoc::openers(line).unwrap_or_else(|span| {
            refuse(span, "a heredoc's name has a quote that is not closed: close it".to_owned());
            Vec::new()
        });
        let mut found = Vec::with_capacity(openers.len());
        for (opener, place) in openers {
            let heredoc = heredoc::read(&mut self.lines, opener, place);
            if heredoc.end.is_none() {
                let name = shown(&heredoc.name);
                refuse(
                    place,
                    format!("the heredoc has no end: write a line that is {name} alone behind its last one"),
                );
            }
            found.push(heredoc);
        }
        found
    }

    /// A heredoc's lines without the last one's end.
    fn without_end(&self, body: Span) -> Span {
        Span::new(body.start, body.start + self.lines.slice(body).trim_end_matches(['\r', '\n']).len())
    }

    /// Joins a line with those that continue it; also where the last of them ends, and whether nothing is left out.
    fn join(&mut self, first: Span, escape: char) -> (Joined, usize, bool) {
        let (text, mut open) = cut_continuation(self.lines.slice(first), escape);
        let mut joined = Joined::at(text, first.start);
        let (mut end, mut whole) = (first.end, true);
        while open {
            let Some(line) = self.lines.next() else { break };
            let bare = self.without_indent(line);
            if bare.is_empty() {
                continue;
            }
            if self.lines.slice(bare).starts_with('#') {
                self.comment(bare);
                continue;
            }
            let text;
            (text, open) = cut_continuation(self.lines.slice(line), escape);
            end = line.end;
            whole &= joined.text.len() + text.len() <= LONGEST_INSTRUCTION;
            if whole && !text.is_empty() {
                joined.push(text, line.start);
            }
        }
        (joined, end, whole)
    }
}

/// What it is made of: words, flags, and itself.
fn size(instruction: &Instruction) -> usize {
    let body = match &instruction.body {
        Body::Nothing | Body::From { .. } => 1,
        Body::Pairs(pairs) => 2 * pairs.len(),
        Body::Shell(joined) => joined.pieces.len(),
        Body::Exec(words) | Body::Words(words) => words.len(),
        // Not more than one inside the other.
        Body::Onbuild(inner) => size(inner),
    };
    1 + body + instruction.flags.len()
}
