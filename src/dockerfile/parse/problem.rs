//! How errors are told.

use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::SyntaxError;

pub(super) fn error(span: Span, what: impl Into<String>) -> SyntaxError {
    SyntaxError { span, what: what.into() }
}

/// Why BuildKit would refuse an instruction.
#[derive(Debug, Clone)]
pub(super) enum Refusal {
    /// The parser would: also inside ONBUILD.
    Form(SyntaxError),
    /// What makes an instruction of the parsed line would: inside ONBUILD only in a build on the image.
    Content(SyntaxError),
}

impl Refusal {
    pub(super) fn form(span: Span, what: impl Into<String>) -> Self {
        Self::Form(error(span, what))
    }

    pub(super) fn content(span: Span, what: impl Into<String>) -> Self {
        Self::Content(error(span, what))
    }

    pub(super) fn error(self) -> SyntaxError {
        match self {
            Self::Form(error) | Self::Content(error) => error,
        }
    }
}

/// Characters of a word that a message repeats.
const SHOWN: usize = 40;

/// A word of the file as messages have it: in backquotes, on one line, not too long.
pub(super) fn shown(word: &str) -> String {
    let mut out = String::from("`");
    for (count, c) in word.chars().enumerate() {
        if count == SHOWN {
            out.push('…');
            break;
        }
        out.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    out.push('`');
    out
}

/// The one of `names` (of ASCII) that was probably meant: in the wrong case of letters, or one or two letters off.
pub(super) fn meant<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 24;
    let word: Vec<char> = word.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
    let near = |name: &str| {
        let most = if name.len() > 4 { 2 } else { 1 };
        if name.len().abs_diff(word.len()) > most {
            return None;
        }
        let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
        Some(distance(&word, &name)).filter(|d| *d <= most)
    };
    names.into_iter().filter_map(|name| Some((near(name)?, name))).min_by_key(|(d, _)| *d).map(|(_, name)| name)
}

/// Letters to be put in, taken out or changed.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        let mut left = i + 1;
        next.push(left);
        for (y, above) in b.iter().zip(row.windows(2)) {
            let (diagonal, up) = (above.first().copied().unwrap_or(0), above.last().copied().unwrap_or(0));
            left = (diagonal + usize::from(x != y)).min(up + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_on_one_line() {
        assert_eq!(shown("a\u{1a}b\rc"), "`a\u{fffd}b\u{fffd}c`");
        assert_eq!(shown(&"x".repeat(1000)), format!("`{}…`", "x".repeat(SHOWN)));
    }

    #[test]
    fn near_names_are_meant() {
        let names = ["FROM", "RUN", "ENTRYPOINT", "COPY"];
        assert_eq!(meant("fntrypoint", names), Some("ENTRYPOINT"));
        assert_eq!(meant("RNU", names), None);
        assert_eq!(meant("RUNN", names), Some("RUN"));
        assert_eq!(meant("python3", names), None);
        assert_eq!(meant("", names), None);
        let text: Vec<char> = "kitten".chars().collect();
        assert_eq!(distance(&text, &"sitting".chars().collect::<Vec<_>>()), 3);
    }
}
