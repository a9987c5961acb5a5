//! `# syntax=…`, `# escape=…` and `# check=…` in the lines at the top of a file.

use super::problem::{error, shown};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Directive, SyntaxError};

const NAMES: [&str; 3] = ["syntax", "escape", "check"];

/// The block of directives: over with the first line that is none.
#[derive(Debug, Default)]
pub(super) struct Block {
    over: bool,
    pub(super) found: Vec<Directive>,
    pub(super) errors: Vec<SyntaxError>,
    /// Of the `escape` directive.
    pub(super) escape: Option<char>,
}

impl Block {
    /// A line that is no comment.
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    /// Takes a comment (`text` starts with `#`) where it is a directive.
    pub(super) fn take(&mut self, text: &str, span: Span) -> bool {
        let Some((name, value)) = (!self.over).then(|| split(text)).flatten() else {
            self.over = true;
            return false;
        };
        if self.found.iter().any(|d| d.name == name) {
            let what = format!("a second `{name}` directive: remove one of them");
            self.errors.push(error(span, what));
        } else if name == "escape" {
            match value {
                "\\" => self.escape = Some('\\'),
                "`" => self.escape = Some('`'),
                _ => self
                    .errors
                    .push(error(span, format!("{} cannot be the escape character: write \\ or `", shown(value)))),
            }
        }
        self.found.push(Directive { name, value: value.to_owned(), span });
        true
    }
}

/// The white space that the patterns of BuildKit's directives know.
const fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ')
}

fn split(comment: &str) -> Option<(String, &str)> {
    let (name, value) = comment.strip_prefix('#')?.trim_start().split_once('=')?;
    let name = name.trim_end_matches(is_space).to_ascii_lowercase();
    if !NAMES.contains(&name.as_str()) {
        return None;
    }
    let trimmed = value.trim_matches(is_space);
    // Where there is nothing but white space, its last character is the value; so says BuildKit's pattern.
    let last = || value.char_indices().next_back().and_then(|(at, _)| value.get(at..));
    Some((name, if trimmed.is_empty() { last()? } else { trimmed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lines: &[&str]) -> Block {
        let mut block = Block::default();
        for line in lines {
            block.take(line, Span::default());
        }
        block
    }

    #[test]
    fn names_are_read_in_any_case_and_spacing() {
        let block = block(&["# Syntax = docker/dockerfile:1 ", "#ESCAPE=`", "#\tcheck=skip=all;error=true"]);
        let found: Vec<(&str, &str)> = block.found.iter().map(|d| (d.name.as_str(), d.value.as_str())).collect();
        assert_eq!(found, [("syntax", "docker/dockerfile:1"), ("escape", "`"), ("check", "skip=all;error=true")]);
        assert_eq!((block.escape, block.errors.len()), (Some('`'), 0));
    }

    #[test]
    fn what_is_no_directive_ends_the_block() {
        for other in ["# hello", "# foo=bar", "#", "# escape", "# escape=", "# 1escape=`", "# es cape=`"] {
            let block = block(&[other, "# escape=`"]);
            assert_eq!((block.found.len(), block.escape), (0, None), "{other}");
        }
        let mut block = Block::default();
        block.end();
        assert!(!block.take("# escape=`", Span::default()));
    }

    #[test]
    fn doubled_and_impossible_directives_are_errors() {
        assert_eq!(block(&["# escape=`", "# escape=`"]).errors.len(), 1);
        assert_eq!(block(&["# escape=``"]).errors.len(), 1);
        assert_eq!(block(&["# escape=  "]).errors.len(), 1);
        assert_eq!(block(&["# syntax=a", "# syntax=b"]).errors.len(), 1);
    }
}
