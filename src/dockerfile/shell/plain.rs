//! A plain split into commands and words, for what the grammar does not take and for shells that are not POSIX.

use std::ops::Range;

use super::lex::{Kind, lenient_tokens};
use super::tree::{AndOr, Joint, List, Node, Pipeline, Redirect, RedirectKind, Simple};

/// The commands of a script, all in one row.
pub fn posix(text: &str) -> List {
    let tokens = lenient_tokens(text);
    let mut list = List::default();
    let mut simple = Simple::default();
    let mut redirect: Option<RedirectKind> = None;
    for token in &tokens.tokens {
        let word = text.get(token.range.clone()).unwrap_or_default();
        match token.kind {
            Kind::Word => {
                if let Some(kind) = redirect.take() {
                    simple.redirects.push(Redirect { target: token.range.clone(), kind });
                } else if simple.words.is_empty() && super::parse::is_assignment(word) {
                    simple.assignments.push(token.range.clone());
                } else if !simple.words.is_empty() || !is_reserved(word) {
                    simple.words.push(token.range.clone());
                }
            }
            Kind::Output => redirect = Some(RedirectKind::Output),
            Kind::Redirect => redirect = Some(RedirectKind::Other),
            Kind::Here(index) => {
                let target = tokens.heredocs.get(index).map_or(0..0, |h| h.body.clone());
                simple.redirects.push(Redirect { target, kind: RedirectKind::Heredoc });
            }
            // The pattern of a `case`.
            Kind::Close if simple.words.len() == 1 && simple.assignments.is_empty() => simple = Simple::default(),
            _ => {
                list.items.extend(item(std::mem::take(&mut simple)));
                redirect = None;
            }
        }
    }
    list.items.extend(item(simple));
    list
}

fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "if" | "then" | "else" | "elif" | "fi" | "do" | "done" | "while" | "until" | "esac" | "{" | "}" | "!"
    )
}

fn item(mut simple: Simple) -> Option<AndOr> {
    let mut ranges = simple.assignments.iter().chain(&simple.words);
    let first = ranges.next()?.clone();
    let last = ranges.next_back().unwrap_or(&first).clone();
    simple.range = first.start.min(last.start)..last.end;
    let pipeline = Pipeline { stages: vec![Node::Simple(simple)] };
    Some(AndOr { pipelines: vec![(Joint::First, pipeline)] })
}

/// The words of the commands for another shell: words end at blanks outside of quotes; `;`, `|`, `&` and line ends
/// divide commands.
pub fn other(text: &str) -> Vec<Vec<Range<usize>>> {
    let bytes = text.as_bytes();
    let mut all = vec![Vec::new()];
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' => at += 1,
            b';' | b'|' | b'&' | b'\n' => {
                at += 1;
                if all.last().is_some_and(|w| !w.is_empty()) {
                    all.push(Vec::new());
                }
            }
            _ => {
                let range = other_word(bytes, at);
                at = range.end;
                if let Some(words) = all.last_mut() {
                    words.push(range);
                }
            }
        }
    }
    all
}

fn other_word(bytes: &[u8], start: usize) -> Range<usize> {
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' => break,
            b'\'' | b'"' => {
                let rest = bytes.get(at + 1..).unwrap_or_default();
                // A quote that nothing closes is a character like others.
                at +=
                    memchr::memchr2(*byte, b'\n', rest).filter(|n| rest.get(*n) == Some(byte)).map_or(1, |n| n + 2);
            }
            _ => at += 1,
        }
    }
    start..at
}

/// A word of a shell that is not POSIX, without quotes; none where it holds what only that shell knows.
pub fn other_text(word: &str) -> Option<String> {
    let bare: String = word.chars().filter(|c| !matches!(c, '"' | '\'')).collect();
    let single = word.starts_with('\'') && word.ends_with('\'');
    (single || !bare.contains(['$', '%', '`'])).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_scripts_keep_their_commands() {
        let text = "if a; then pip install 'b && c d; x) e;; fi";
        let list = posix(text);
        let words: Vec<Vec<&str>> = list
            .items
            .iter()
            .flat_map(|i| &i.pipelines)
            .flat_map(|(_, p)| &p.stages)
            .filter_map(|n| match n {
                Node::Simple(s) => Some(s.words.iter().map(|r| &text[r.clone()]).collect()),
                _ => None,
            })
            .collect();
        assert_eq!(words, [vec!["a"], vec!["pip", "install", "'b"], vec!["c", "d"], vec!["e"]]);
    }

    #[test]
    fn windows_paths_stay_whole() {
        let text = r#"Invoke-WebRequest "https://x/a b" -OutFile C:\t\a.exe ; Start-Process C:\t\a.exe"#;
        let words: Vec<Vec<&str>> =
            other(text).into_iter().map(|w| w.into_iter().map(|r| &text[r]).collect()).collect();
        assert_eq!(
            words,
            [
                vec!["Invoke-WebRequest", "\"https://x/a b\"", "-OutFile", r"C:\t\a.exe"],
                vec!["Start-Process", r"C:\t\a.exe"]
            ]
        );
        assert_eq!(other_text("\"a b\"").as_deref(), Some("a b"));
        assert_eq!(other_text("$Env:PATH"), None);
    }
}
