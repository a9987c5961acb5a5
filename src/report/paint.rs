//! Colour, and the page that lines are laid out on. Colour never is the only carrier of a meaning.

use anstyle::{AnsiColor, Style as Ansi};

use super::Style;
use super::text::{columns, pad, wrap};
use crate::model::{Severity, Verdict};

/// What a piece of text is; decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    Plain,
    /// Headings, names.
    Strong,
    /// What can be skipped.
    Dim,
    Good,
    Caution,
    Bad,
    /// Not known.
    Open,
}

impl Ink {
    fn ansi(self) -> Ansi {
        match self {
            Self::Plain => Ansi::new(),
            Self::Strong => Ansi::new().bold(),
            Self::Dim => Ansi::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Caution => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Open => AnsiColor::Magenta.on_default(),
        }
    }
}

impl From<Verdict> for Ink {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fail | Verdict::Blocked => Self::Bad,
            Verdict::Unknown => Self::Open,
            Verdict::Cpu | Verdict::Slow | Verdict::Warn => Self::Caution,
            Verdict::Ok => Self::Good,
        }
    }
}

impl From<Severity> for Ink {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Bad,
            Severity::Warning => Self::Caution,
            Severity::Note => Self::Dim,
        }
    }
}

/// A piece of one line.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub ink: Ink,
    pub text: String,
}

pub(super) fn span(ink: impl Into<Ink>, text: impl Into<String>) -> Span {
    Span { ink: ink.into(), text: text.into() }
}

/// A span filled up to a number of columns.
pub(super) fn cell(ink: impl Into<Ink>, text: &str, width: usize) -> Span {
    span(ink, pad(text, width))
}

/// Lines under construction.
pub(super) struct Page<'a> {
    style: &'a Style,
    text: String,
}

impl<'a> Page<'a> {
    pub fn new(style: &'a Style) -> Self {
        Self { style, text: String::new() }
    }

    pub fn width(&self) -> usize {
        self.style.width
    }

    pub fn verbose(&self) -> u8 {
        self.style.verbose
    }

    pub fn colour(&self) -> bool {
        self.style.colour
    }

    pub fn exit(&self) -> Option<u8> {
        self.style.exit
    }

    pub fn finish(self) -> String {
        self.text
    }

    /// An empty line, but never two, and none at the top.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A section's title, and what it says of itself.
    pub fn heading(&mut self, title: &str, rest: &str) {
        self.gap();
        let lead = [span(Ink::Strong, title), span(Ink::Plain, "  ")];
        self.flow(&lead, 2, Ink::Dim, rest);
    }

    /// One line as it is; the caller has seen to its width.
    pub fn line(&mut self, spans: &[Span]) {
        let last = spans.iter().rposition(|s| !s.text.trim_end().is_empty());
        for (i, s) in spans.iter().enumerate().take(last.map_or(0, |l| l + 1)) {
            let text = if Some(i) == last { s.text.trim_end() } else { &s.text };
            self.push(s.ink, text);
        }
        self.text.push('\n');
    }

    /// `lead`, then text that wraps; lines after the first start at column `hang`.
    pub fn flow(&mut self, lead: &[Span], hang: usize, ink: Ink, text: &str) {
        let used: usize = lead.iter().map(|s| columns(&s.text)).sum();
        let width = self.style.width;
        let lines = wrap(text, width.saturating_sub(used), width.saturating_sub(hang));
        let mut row = lead.to_vec();
        for line in lines {
            row.push(span(ink, line));
            self.line(&row);
            row = vec![span(Ink::Plain, " ".repeat(hang))];
        }
    }

    /// Lines that were laid out elsewhere.
    pub fn block(&mut self, text: &str) {
        for line in text.lines() {
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    fn push(&mut self, ink: Ink, text: &str) {
        use std::fmt::Write;
        if self.style.colour && ink != Ink::Plain {
            let ansi = ink.ansi();
            // Writing to a String cannot fail.
            let _ = write!(self.text, "{ansi}{text}{ansi:#}");
        } else {
            self.text.push_str(text);
        }
    }
}
