//! Edits of `NAME=value` pairs that leave the rest of the instruction as it is.

use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Body;
use crate::lint::dockerfile::{Lint, Set};

/// The pair taken out: with its instruction where it is the only one. None where a comment stands in the way.
pub fn removed(lint: &Lint<'_>, set: &Set<'_>) -> Option<Vec<Edit>> {
    let instruction = lint.reading.instruction(set.instruction)?;
    let Body::Pairs(pairs) = &instruction.body else { return None };
    let at = pairs.iter().position(|p| p.span == set.pair.span)?;
    let text = &lint.reading.document.text;
    let cut = if pairs.len() == 1 {
        let before = text.get(..instruction.span.start)?;
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        let behind = text.get(instruction.span.end..)?;
        let end = behind.find('\n').map_or(behind.len(), |n| n + 1);
        // Comments between its lines would go too, and so would anything else on its lines.
        let lone = before.get(start..)?.trim().is_empty() && behind.get(..end)?.trim().is_empty();
        let whole = text.get(instruction.span.start..instruction.span.end)?;
        if !lone || whole.contains('#') {
            return None;
        }
        Span::new(start, instruction.span.end + end)
    } else if at == 0 {
        Span::new(set.pair.span.start, pairs.get(1)?.span.start)
    } else {
        Span::new(pairs.get(at - 1)?.span.end, set.pair.span.end)
    };
    let gone = lint.reading.document.slice(cut);
    let own = lint.reading.document.slice(set.pair.span);
    let comment = pairs.len() > 1 && gone.replacen(own, "", 1).contains('#');
    (!comment).then(|| vec![Edit::new(cut, "")])
}

/// Whether the file speaks of the variable anywhere but in what sets it.
pub fn is_used(lint: &Lint<'_>, set: &Set<'_>) -> bool {
    let own = set.pair.key.span;
    let instructions = &lint.reading.document.instructions;
    let text = |span: Span| lint.reading.document.slice(span);
    instructions.iter().any(|i| {
        text(i.span)
            .match_indices(set.name)
            .any(|(at, _)| !own.contains(Span::new(i.span.start + at, i.span.start + at)))
    })
}

/// Text put at the end of a value, within its quotes. None where quotes would keep variables from being put in.
pub fn appended(set: &Set<'_>, text: &str) -> Option<Vec<Edit>> {
    let value = set.pair.value.as_ref()?;
    let raw = value.text.trim_end();
    if raw.is_empty() || raw.ends_with('\'') {
        return None;
    }
    let inside = usize::from(raw.ends_with('"') && raw.len() > 1);
    let at = value.span.end.checked_sub(inside)?;
    Some(vec![Edit::new(Span::new(at, at), text)])
}
