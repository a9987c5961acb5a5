//! A word taken out of a command, and the blanks around it.

use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::Lint;

/// The edit that takes a word out of a command that goes on without it; none where it is not written as it is
/// (`nvidia-{a,b}`, a variable), or nothing would be left to end the command's lines. `others` are dropped too.
pub fn drop_word(lint: &Lint<'_>, word: Span, name: &str, others: &[Span]) -> Option<Edit> {
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
    let gap = tail.len() - tail.trim_start_matches(blank).len();
    let alone = head.chars().all(blank);
    if alone && ends == escape && after.len() > tail.len() {
        // A line of its own, and lines behind it.
        return Some(Edit::new(Span::new(line, word.end + tail.len() + 1), ""));
    }
    if gap > 0 && !ends.is_empty() {
        return Some(Edit::new(Span::new(word.start, word.end + gap), ""));
    }
    if !alone {
        let start = word.start - (head.len() - head.trim_end_matches(blank).len());
        let taken = others.iter().any(|o| start < o.end + 1 && o.end < word.start + 1 && *o != word);
        return Some(Edit::new(Span::new(if taken { word.start } else { start }, word.end), ""));
    }
    if !ends.is_empty() || others.iter().any(|o| lint.line(*o) + 1 == lint.line(word)) {
        return None;
    }
    // The last line: the one before it must end the command then.
    let above = before.get(..line)?.strip_suffix('\n')?.trim_end_matches(blank);
    let kept = above.strip_suffix(document.escape)?.trim_end_matches(blank);
    let comment = kept.rsplit('\n').next()?.trim_start().starts_with('#');
    (!kept.is_empty() && !comment).then(|| Edit::new(Span::new(kept.len(), word.end), ""))
}
