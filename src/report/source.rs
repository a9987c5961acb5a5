//! The text of a file by lines and columns, and edits of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{EditReport, FilePlace};

/// A text that places point into. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    pub text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Source<'a> {
    /// Of Dockerfiles, by name.
    pub fn all(texts: &'a BTreeMap<String, Arc<str>>) -> BTreeMap<&'a str, Self> {
        texts.iter().map(|(name, text)| (name.as_str(), Self::new(text))).collect()
    }

    pub fn new(text: &'a str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        Self { text, starts: std::iter::once(0).chain(ends.map(|at| at + 1)).collect() }
    }

    /// A line without its end; empty where there is none.
    pub fn line(&self, number: usize) -> &'a str {
        let line = self.text.get(self.start(number)..self.start(number.saturating_add(1))).unwrap_or_default();
        line.strip_suffix('\n').map_or(line, |l| l.strip_suffix('\r').unwrap_or(l))
    }

    /// Where a line starts; behind the last, the text's end.
    pub fn start(&self, number: usize) -> usize {
        number.checked_sub(1).and_then(|n| self.starts.get(n)).copied().unwrap_or(self.text.len())
    }

    /// The offset of a place; a column behind the line's end is its end.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        let start = self.start(line);
        let end = self.start(line.saturating_add(1)).max(start);
        let text = self.text.get(start..end).unwrap_or_default();
        text.char_indices().nth(column.saturating_sub(1)).map_or(end, |(at, _)| start + at)
    }

    pub fn range(&self, place: &FilePlace) -> std::ops::Range<usize> {
        let start = self.offset(place.line, place.column);
        start..self.offset(place.end_line, place.end_column).max(start)
    }

    pub fn edited(&self, edit: &EditReport) -> std::ops::Range<usize> {
        let start = self.offset(edit.line, edit.column);
        start..self.offset(edit.end_line, edit.end_column).max(start)
    }

    /// Lines `from` to `to`, with their ends.
    pub fn lines(&self, from: usize, to: usize) -> &'a str {
        self.text.get(self.start(from)..self.start(to + 1)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_any_text() {
        let source = Source::new("añb\r\n\r\nlast");
        assert_eq!((source.line(1), source.line(2), source.line(3), source.line(4)), ("añb", "", "last", ""));
        assert_eq!(source.offset(1, 3), 3);
        assert_eq!(source.offset(3, 5), source.text.len());
        assert_eq!(source.offset(9, 9), source.text.len());
        assert_eq!(source.offset(0, 0), source.text.len());
        assert_eq!(source.offset(1, 99), 6, "behind a line is the next one's start");
        assert_eq!(source.lines(2, 3), "\r\nlast");
        assert_eq!(Source::new("").line(1), "");
    }
}
