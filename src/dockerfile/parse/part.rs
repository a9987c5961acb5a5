//! A stretch of an instruction's joined text that knows where in the file it stands.

use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Joined, Word};

/// Offsets that its methods take count from its own start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    line: &'a Joined,
    start: usize,
    end: usize,
}

/// The white space of ASCII as Go has it.
pub(super) const fn is_ascii_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ')
}

/// What BuildKit splits words at. Other white space (NBSP …) it only trims.
const fn is_blank(c: char) -> bool {
    matches!(c, '\t' | '\x0b' | '\x0c' | '\r' | ' ')
}

impl<'a> Part<'a> {
    pub(super) fn all(line: &'a Joined) -> Self {
        Self { line, start: 0, end: line.text.len() }
    }

    pub(super) fn text(self) -> &'a str {
        self.line.text.get(self.start..self.end).unwrap_or_default()
    }

    pub(super) fn is_empty(self) -> bool {
        self.start >= self.end
    }

    pub(super) fn sub(self, start: usize, end: usize) -> Self {
        let at = |offset: usize| self.end.min(self.start + offset);
        Self { line: self.line, start: at(start), end: at(end.max(start)) }
    }

    pub(super) fn from(self, start: usize) -> Self {
        self.sub(start, self.end - self.start)
    }

    /// Without the white space around, of all kinds that Unicode knows.
    pub(super) fn trim(self) -> Self {
        let text = self.text();
        let lead = text.len() - text.trim_start().len();
        self.sub(lead, lead + text.trim().len())
    }

    /// Without the white space of ASCII before it.
    pub(super) fn trim_ascii_start(self) -> Self {
        let text = self.text();
        self.from(text.len() - text.trim_start_matches(is_ascii_space).len())
    }

    /// What is before the first blanks, and what is behind them where there are any.
    pub(super) fn split_blank(self) -> (Self, Option<Self>) {
        let text = self.text();
        let Some(end) = text.find(is_blank) else {
            return (self, None);
        };
        let rest = text.get(end..).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start_matches(is_blank).len();
        (self.sub(0, end), Some(self.from(end + blanks)))
    }

    /// What is between blanks.
    pub(super) fn between_blanks(self) -> Vec<Self> {
        let mut out = Vec::new();
        let mut rest = Some(self).filter(|part| !part.is_empty());
        while let Some(part) = rest {
            let (word, behind) = part.split_blank();
            out.push(word);
            rest = behind;
        }
        out
    }

    pub(super) fn span(self) -> Span {
        self.line.span(self.start..self.end)
    }

    pub(super) fn word(self) -> Word {
        Word { text: self.text().to_owned(), span: self.span(), literal: false }
    }

    /// The word behind an `=`. Where there is none, its place is right there and not on a line that follows.
    pub(super) fn value(self) -> Word {
        let before = self.start.checked_sub(1).filter(|_| self.is_empty());
        let at = before.map(|before| self.line.offset(before) + 1);
        Word { span: at.map_or_else(|| self.span(), |at| Span::new(at, at)), ..self.word() }
    }

    pub(super) fn joined(self) -> Joined {
        self.line.slice(self.start..self.end)
    }
}
