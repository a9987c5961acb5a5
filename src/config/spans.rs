//! Errors that point into the user's file.

use std::fmt;
use std::ops::Range;

use crate::catalog::names::nearest;

/// What is wrong with a configuration file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    #[error("{file}: cannot be read: {source}")]
    Read { file: String, source: std::io::Error },
    #[error("{0}")]
    Invalid(Box<Pointed>),
    /// Rows of `--rules`, as a folder or with the embedded ones.
    #[error("{place}: {what}")]
    Rows { place: String, what: String },
}

/// A message about a place in a file: shown with the line and a caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointed {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub message: String,
    pub help: Option<String>,
    /// The line's text, without what could drive a terminal.
    pub text: String,
    /// How many characters the caret underlines.
    pub width: usize,
}

impl fmt::Display for Pointed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, text, .. } = self;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{file}:{line}:{column}: {message}")?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {text}")?;
        write!(f, "{margin} | {}{}", " ".repeat(column.saturating_sub(1)), "^".repeat(self.width.max(1)))?;
        match &self.help {
            Some(help) => write!(f, "\n{margin} = help: {help}"),
            None => Ok(()),
        }
    }
}

/// A file's text, for turning byte ranges into places.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    pub fn error(&self, span: Range<usize>, message: impl Into<String>, help: Option<String>) -> ConfigError {
        let floor =
            |at: usize| (0..=at.min(self.text.len())).rev().find(|i| self.text.is_char_boundary(*i)).unwrap_or(0);
        let (start, end) = (floor(span.start), floor(span.end));
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_text = self.text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        let line_end = line_start + line_text.len();
        let width = self.text.get(start..end.clamp(start, line_end.max(start))).map_or(1, |t| t.chars().count());
        // One character for one, so that the caret stays below what it means.
        let shown = line_text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        ConfigError::Invalid(Box::new(Pointed {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: self.text.get(line_start..start).unwrap_or_default().chars().count() + 1,
            message: message.into(),
            help,
            text: shown,
            width,
        }))
    }

    /// An error of the TOML reader; unknown keys bring the nearest known one.
    pub fn toml(&self, error: &toml::de::Error) -> ConfigError {
        let message = error.message().trim();
        let (first, rest) = message.split_once('\n').unwrap_or((message, ""));
        let quoted: Vec<&str> = first.split('`').skip(1).step_by(2).collect();
        let unknown = ["unknown field", "unknown variant"].iter().find(|w| first.starts_with(**w));
        let (message, help) = match (unknown, quoted.as_slice()) {
            (Some(what), [given, known @ ..]) => {
                let what = if *what == "unknown field" { "key" } else { "value" };
                let near = nearest(given, known.iter().copied(), 1).into_iter().next();
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known here: {}", known.join(", ")),
                };
                (format!("unknown {what} `{given}`"), Some(help))
            }
            _ => (first.to_owned(), Some(rest.trim().replace('\n', "; ")).filter(|r| !r.is_empty())),
        };
        self.error(error.span().unwrap_or(0..0), message, help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_columns_of_characters() {
        let source = Source { file: "f.toml", text: "a = 1\nñé = \tx\n" };
        let at = source.text.find('x').unwrap();
        let shown = source.error(at..at + 1, "bad", Some("better".into())).to_string();
        assert_eq!(shown, "f.toml:2:7: bad\n  |\n2 | ñé =  x\n  |       ^\n  = help: better");
    }

    #[test]
    fn places_outside_the_text_do_no_harm() {
        #[allow(clippy::reversed_empty_ranges, reason = "a span that a parser got wrong")]
        for span in [0..0, 5..1, 100..200, 1..2] {
            let _ = Source { file: "f", text: "é" }.error(span, "bad", None).to_string();
        }
        assert!(Source { file: "f", text: "" }.error(3..9, "bad", None).to_string().starts_with("f:1:1: bad"));
    }
}
