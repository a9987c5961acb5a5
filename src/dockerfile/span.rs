//! Places in a file: byte ranges, and the lines and columns that people are told.

/// A range of bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

impl Span {
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Where each line starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineIndex {
    starts: Vec<usize>,
}

/// A line and a column, both from 1; columns count characters, as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    pub line: usize,
    pub column: usize,
}

impl LineIndex {
    pub fn new(text: &str) -> Self {
        let ends = || memchr::memchr_iter(b'\n', text.as_bytes());
        let mut starts = Vec::with_capacity(ends().count() + 1);
        starts.push(0);
        starts.extend(ends().map(|at| at + 1));
        Self { starts }
    }

    /// The line of an offset, from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|s| *s <= offset).max(1)
    }

    /// Where a line (from 1) starts.
    pub fn start(&self, line: usize) -> Option<usize> {
        self.starts.get(line.checked_sub(1)?).copied()
    }

    pub fn place(&self, text: &str, offset: usize) -> LineColumn {
        let line = self.line(offset);
        let start = self.start(line).unwrap_or_default();
        let column = text.get(start..offset).map_or(1, |t| t.chars().count() + 1);
        LineColumn { line, column }
    }
}
