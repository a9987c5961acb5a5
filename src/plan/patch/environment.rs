//! Variables of the built image.

use super::Placed;
use super::words::{Spot, Words, escaped, is_variable};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Keyword;
use crate::lint::dockerfile::{Lint, Set, pair_removed};
use crate::model::escape;

/// ENV instructions that are in the image and set a name.
fn sets<'l>(lint: &'l Lint<'_>, name: &str) -> Vec<Set<'l>> {
    lint.sets(false).into_iter().filter(|s| s.name == name && lint.in_image(s.instruction)).collect()
}

/// A directory out of a path variable, wherever the file puts it in.
pub fn drop_entry(words: &Words<'_, '_>, variable: &str, entry: &str) -> Placed {
    let lint = words.lint;
    let told = || format!("take {} out of {}", escape(entry.as_bytes()), escape(variable.as_bytes()));
    let trimmed = |t: &str| if t.len() > 1 { t.trim_end_matches('/').to_owned() } else { t.to_owned() };
    let is_it = |t: &str| !t.is_empty() && trimmed(t) == trimmed(entry);
    let mut placed = Placed::default();
    for set in sets(lint, variable) {
        let Some(value) = &set.pair.value else { continue };
        let quotes: &[char] = &['"', '\''];
        let raw = value.text.as_str();
        let inner = raw.trim_matches(quotes);
        let start = value.span.start + raw.find(inner).unwrap_or_default();
        let line = words.line(set.pair.span);
        if value.span.end - value.span.start != raw.len() {
            placed.take(Err(format!("line {line} stands on several lines: {}", told())));
            continue;
        }
        let parts: Vec<&str> = inner.split(':').collect();
        let kept: Vec<&str> = parts.iter().copied().filter(|p| !is_it(p)).collect();
        if kept.is_empty() {
            placed.edits.push(Edit::new(value.span, "\"\""));
        } else if kept.len() < parts.len() {
            placed.edits.push(Edit::new(Span::new(start, start + inner.len()), kept.join(":")));
        }
    }
    if placed.edits.is_empty() && placed.left.is_empty() {
        let end = lint.reading.last.and_then(|last| lint.reading.ends.get(last)).and_then(|s| s.get(variable));
        let has = end.and_then(|v| v.value.known()).is_some_and(|v| v.split(':').any(is_it));
        placed.left.push(match has {
            true => format!("no line spells it out: {}", told()),
            false => format!("no ENV of the file has it: {}", told()),
        });
    }
    placed
}

/// A variable of the image: where it is set last, else in a line of its own.
pub fn set(words: &Words<'_, '_>, name: &str, value: &str) -> Placed {
    let lint = words.lint;
    let line = words.assignment(Keyword::Env, name, value);
    let Some(line) = line.filter(|_| is_variable(name)) else {
        return Placed::left(format!("{} cannot be set in a Dockerfile", escape(name.as_bytes())));
    };
    if let Some(set) = sets(lint, name).pop() {
        let Some(word) = &set.pair.value else { return Placed::left("it is set to nothing") };
        let old = set.value.known();
        if old == Some(value) {
            return Placed::left(format!("line {} sets it so already", words.line(set.pair.span)));
        }
        let spot = Spot { span: word.span, instruction: set.instruction, command: None };
        if let Some(Ok(edits)) = old.filter(|o| !o.is_empty()).map(|old| words.change(spot, old, value)) {
            return Placed::edit(edits);
        }
        let new = format!("\"{}\"", escaped(value, lint.reading.document.escape));
        return Placed::edit(vec![Edit::new(word.span, new)]);
    }
    match at_the_end(words, &line) {
        Some(edit) => Placed::edit(vec![edit]),
        None => Placed::left(format!("there is no final stage to set {name} in")),
    }
}

/// A line at the end of the final stage, before what says how the image starts: what is built before stays cached.
fn at_the_end(words: &Words<'_, '_>, line: &str) -> Option<Edit> {
    let reading = words.lint.reading;
    let stage = reading.stages.get(reading.last?)?;
    let starts = |at: &usize| {
        reading.instruction(*at).is_some_and(|i| {
            matches!(
                i.keyword,
                Keyword::Cmd
                    | Keyword::Entrypoint
                    | Keyword::Healthcheck
                    | Keyword::Expose
                    | Keyword::Stopsignal
                    | Keyword::Volume
                    | Keyword::Label
            )
        })
    };
    let tail = stage.instructions.clone().rev().take_while(starts).last();
    match tail {
        Some(first) => words.before(first, line),
        None => words.behind(stage.instructions.end.checked_sub(1)?, line),
    }
}

/// Whether the file speaks of a variable anywhere but in what sets it.
fn is_used(lint: &Lint<'_>, name: &str, sets: &[Set<'_>]) -> bool {
    let document = &lint.reading.document;
    document.text.match_indices(name).any(|(at, _)| {
        let span = Span::new(at, at + name.len());
        let whole = |c: Option<char>| c.is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '_'));
        let before = document.text.get(..at).and_then(|t| t.chars().next_back());
        let after = document.text.get(span.end..).and_then(|t| t.chars().next());
        whole(before)
            && whole(after)
            && !sets.iter().any(|s| s.pair.key.span.contains(span))
            && !document.comments.iter().any(|c| c.span.contains(span))
    })
}

/// A variable that the image should not have.
pub fn unset(words: &Words<'_, '_>, name: &str) -> Placed {
    let lint = words.lint;
    let all = sets(lint, name);
    let told = escape(name.as_bytes());
    let mut placed = Placed::default();
    for set in &all {
        let line = words.line(set.pair.span);
        if is_used(lint, name, &all) {
            placed.take(Err(format!("{told} of line {line} is used in the file: see what needs it")));
            continue;
        }
        placed.take(pair_removed(lint, set).ok_or_else(|| format!("take {told} out of line {line}")));
    }
    let last = lint.reading.last;
    let of_base = last.and_then(|l| lint.base(l)).is_some_and(|b| b.env(name).is_some());
    if of_base && placed.left.is_empty() {
        // What a base sets can be emptied, not unset.
        match words.assignment(Keyword::Env, name, "").and_then(|line| at_the_end(words, &line)) {
            Some(edit) => {
                placed.edits = vec![edit];
                placed.left.push(format!("the base sets {told}: an image can empty it, not unset it"));
            }
            None => placed.left.push(format!("the base sets {told}")),
        }
    } else if all.is_empty() {
        placed.left.push(format!("no ENV of the file sets {told}: it comes from the base"));
    }
    placed
}
