//! The physical lines of a file.

use crate::dockerfile::span::Span;

/// Bytes of a line, its `\n` not counted, beyond which BuildKit's reader gives up.
pub(super) const LONGEST_LINE: usize = 65_535;

pub(super) const BOM: char = '\u{feff}';

/// Reads lines one after the other.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    text: &'a str,
    at: usize,
    /// The first that BuildKit would not read.
    pub(super) too_long: Option<Span>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, too_long: None }
    }

    /// Where the next line starts.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The place of the next line, without its end (`\n`, and every `\r` before it) and without a byte order mark.
    pub(super) fn next(&mut self) -> Option<Span> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        let line = rest.get(..length).unwrap_or_default();
        let mut span = Span::new(self.at, self.at + line.trim_end_matches(['\r', '\n']).len());
        if length > LONGEST_LINE && self.too_long.is_none() {
            self.too_long = Some(span);
        }
        if self.at == 0 && line.starts_with(BOM) {
            span.start = BOM.len_utf8();
        }
        self.at = self.text.len().min(self.at + length + 1);
        Some(span)
    }
}

/// What a line gives to its instruction, and whether the next line goes on with it: the last character but blanks is
/// the escape character, and the one before it is not.
pub(super) fn cut_continuation(line: &str, escape: char) -> (&str, bool) {
    match line.trim_end_matches([' ', '\t']).strip_suffix(escape) {
        Some(before) if !before.ends_with(escape) => (before, true),
        _ => (line, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuations_are_an_unescaped_escape_at_the_end() {
        assert_eq!(cut_continuation(r"RUN a \", '\\'), ("RUN a ", true));
        assert_eq!(cut_continuation("RUN a\\ \t ", '\\'), ("RUN a", true));
        assert_eq!(cut_continuation(r"RUN a\\", '\\'), (r"RUN a\\", false));
        assert_eq!(cut_continuation(r"RUN a\\\", '\\'), (r"RUN a\\\", false));
        assert_eq!(cut_continuation(r"\", '\\'), ("", true));
        assert_eq!(cut_continuation("RUN a `", '`'), ("RUN a ", true));
        assert_eq!(cut_continuation(r"RUN a \", '`'), (r"RUN a \", false));
        assert_eq!(cut_continuation("", '\\'), ("", false));
    }

    #[test]
    fn lines_lose_their_ends_and_the_first_its_mark() {
        let mut lines = Lines::new("\u{feff}a\r\n\r\r\nb\rc\n\nd");
        let mut all = Vec::new();
        while let Some(span) = lines.next() {
            all.push(lines.slice(span));
        }
        assert_eq!(all, ["a", "", "b\rc", "", "d"]);
    }

    #[test]
    fn the_longest_line_is_known() {
        for (length, end, refused) in
            [(LONGEST_LINE, "\n", false), (LONGEST_LINE, "", false), (LONGEST_LINE + 1, "\n", true)]
        {
            let text = format!("x\n{}{end}", "a".repeat(length));
            let mut lines = Lines::new(&text);
            while lines.next().is_some() {}
            assert_eq!(lines.too_long.is_some(), refused, "{length}");
        }
    }
}
