//! A word taken out of a command, and the blanks around it.

use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::Lint;

/// The edit that takes a word out of a command that goes on without it; none where it is not written as it is
/// (`nvidia-{a,b}`, a variable), or nothing would be left to end the command's lines.
pub fn drop_word(lint: &Lint<'_>, word: Span, name: &str) -> Option<Edit> {
    let document = &lint.reading.document;
    let text = document.text.as_str();
    let written = document.slice(word).trim_matches(['"', '\'']);
    if written.contains(['$', '{', '}', '`', '\\', '*']) || !written.starts_with(name) {
        return None;
    }
    let (before, after) = (text.get(..word.start)?, text.get(word.end..)?);
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let head = text.get(line..word.start)?;
    let tail = after.split('\n').next().unwrap_or_default();
    let blank = |c: char| matches!(c, ' ' | '\t' | '\r');
    let ends = tail.trim_matches(blank);
    let escape = document.escape.to_string();
    if !head.chars().all(blank) {
        // Behind other words: with the blanks in front of it.
        let start = word.start - (head.len() - head.trim_end_matches(blank).len());
        return (start < word.start).then(|| Edit::new(Span::new(start, word.end), ""));
    }
    if ends == escape && after.len() > tail.len() {
        // A line of its own, and lines behind it.
        return Some(Edit::new(Span::new(line, word.end + tail.len() + 1), ""));
    }
    if !ends.is_empty() {
        // At the head of a line with more words.
        let gap = tail.len() - tail.trim_start_matches(blank).len();
        return (gap > 0).then(|| Edit::new(Span::new(word.start, word.end + gap), ""));
    }
    // The last line: the one before it must end the command then.
    let above = before.get(..line)?.strip_suffix('\n')?.trim_end_matches(blank);
    let kept = above.strip_suffix(document.escape)?.trim_end_matches(blank);
    let comment = kept.rsplit('\n').next()?.trim_start().starts_with('#');
    (!kept.is_empty() && !comment).then(|| Edit::new(Span::new(kept.len(), word.end), ""))
}

/// Whether two places stand on lines that follow each other.
pub fn is_right_above(lint: &Lint<'_>, upper: Span, lower: Span) -> bool {
    lint.line(upper) + 1 == lint.line(lower)
}
