//! Whether a command that fails fails the build.

use crate::dockerfile::shell::{Command, When};
use crate::dockerfile::syntax::{Body, Keyword};
use crate::lint::dockerfile::Lint;

/// Words behind which a command's failure is an answer.
const ASKING: &[&str] = &["if", "elif", "while", "until", "!"];

/// Whether the build stops where the command fails: nothing behind it takes the failure (`||`, `;`, a pipe), and no
/// condition asks for it.
pub fn is_fatal(lint: &Lint<'_>, command: &Command) -> bool {
    if command.when != When::Build || command.guessed {
        return false;
    }
    let Some(instruction) = lint.reading.instruction(command.instruction) else { return false };
    // `RUN --device=nvidia.com/gpu=all` is given a GPU.
    if instruction.keyword != Keyword::Run || instruction.flag("device").is_some() {
        return false;
    }
    if matches!(instruction.body, Body::Exec(_)) {
        return true;
    }
    let document = &lint.reading.document;
    let (mut from, mut to) = (instruction.span.start, instruction.span.end);
    for heredoc in &instruction.heredocs {
        if heredoc.body.contains(command.span) {
            (from, to) = (heredoc.body.start, heredoc.body.end);
            break;
        }
        // The lines that a command reads are none of the script.
        if heredoc.body.start >= command.span.end {
            to = to.min(heredoc.body.start);
        }
    }
    let before = document.text.get(from..command.span.start).unwrap_or_default();
    let after = document.text.get(command.span.end..to).unwrap_or_default();
    !is_asked(before) && (taken(after) == Taken::No || (taken(after) == Taken::BySequence && exits(lint, before)))
}

/// Whether the piece of a script in front of a command makes a condition of it, or takes its output.
fn is_asked(before: &str) -> bool {
    let start = before.rfind([';', '{']).map_or(0, |at| at + 1);
    let piece = before.get(start..).unwrap_or_default();
    let mut words = piece.split_whitespace().filter(|w| *w != "\\");
    words.any(|w| ASKING.contains(&w)) || piece.contains("$(") || piece.contains('`') || piece.contains("<(")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    No,
    /// By `||`, a pipe, or `&`.
    ByOperator,
    /// By what comes behind `;` or in the next line, unless the shell exits on errors.
    BySequence,
}

/// What becomes of a failure, by the text behind the command.
fn taken(after: &str) -> Taken {
    let mut text = after;
    let mut quote = None;
    while let Some(c) = text.chars().next() {
        let rest = text.get(c.len_utf8()..).unwrap_or_default();
        let next = rest.chars().next();
        text = rest;
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '\\') => text = behind_line_end(rest),
            (None, '|') => return Taken::ByOperator,
            (None, '&') if next == Some('&') => text = rest.get(1..).unwrap_or_default(),
            (None, '&') if next == Some('>') || next.is_some_and(|n| n.is_ascii_digit()) => {}
            (None, '&') => return Taken::ByOperator,
            (None, '>') if next == Some('&') => text = rest.get(1..).unwrap_or_default(),
            (None, ';' | '\n') => {
                let last = text.trim_matches([' ', '\t', '\r', '\n', ';', '}', ')']).is_empty();
                return if last { Taken::No } else { Taken::BySequence };
            }
            (None, _) => {}
        }
    }
    Taken::No
}

/// What follows an escape: behind the line's end and the comments and empty lines that follow it.
fn behind_line_end(text: &str) -> &str {
    let line = text.split('\n').next().unwrap_or_default();
    if !line.trim().is_empty() {
        return text.get(text.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
    }
    let mut text = text.get(line.len() + 1..).unwrap_or_default();
    loop {
        let line = text.split('\n').next().unwrap_or_default();
        let (head, whole) = (line.trim_start(), line.len() + 1);
        if !(head.starts_with('#') || (head.trim().is_empty() && text.len() >= whole)) {
            return text;
        }
        text = text.get(whole..).unwrap_or_default();
    }
}

/// Whether the shell exits at the first failure: `set -e` before, or so started by SHELL.
fn exits(lint: &Lint<'_>, before: &str) -> bool {
    let letters = |w: &str| w.strip_prefix('-').is_some_and(|l| !l.starts_with('-') && l.contains('e'));
    let mut words = before.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if word == "set" && words.peek().is_some_and(|w| letters(w.trim_end_matches(';')) || *w == "-o") {
            return true;
        }
    }
    lint.reading.document.instructions.iter().any(|i| {
        let Body::Exec(shell) = &i.body else { return false };
        i.keyword == Keyword::Shell && shell.iter().any(|w| letters(&w.text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_failure() {
        for (after, want) in [
            ("", Taken::No),
            (" && x", Taken::No),
            (" 2>&1", Taken::No),
            (" >&2 && x", Taken::No),
            (" &> log", Taken::No),
            (" \\\n  && x \\\n  # y || z\n  && w", Taken::No),
            (" 'a || b'", Taken::No),
            (";", Taken::No),
            ("\n", Taken::No),
            (" || true", Taken::ByOperator),
            (" && x || true", Taken::ByOperator),
            (" \\\n  || true", Taken::ByOperator),
            (" | grep x", Taken::ByOperator),
            (" & x", Taken::ByOperator),
            ("; x", Taken::BySequence),
            ("\nx\n", Taken::BySequence),
        ] {
            assert_eq!(taken(after), want, "{after:?}");
        }
    }

    #[test]
    fn what_asks() {
        for asked in ["RUN if ", "RUN x; if ", "RUN if a && ", "RUN ! ", "RUN A=$(", "RUN while "] {
            assert!(is_asked(asked), "{asked}");
        }
        for told in ["RUN ", "RUN x && ", "RUN if a; then b; fi; ", "RUN --mount=type=cache,target=/x "] {
            assert!(!is_asked(told), "{told}");
        }
    }
}
