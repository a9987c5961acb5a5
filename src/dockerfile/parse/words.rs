//! Words between white space, with quotes and escapes: pairs of ENV, LABEL and ARG, and flags.

use super::part::Part;

/// The words of ENV, LABEL and ARG. Quotes and escapes stay in them; an escape character that is the last of all is
/// dropped.
pub(super) fn quoted<'a>(rest: Part<'a>, escape: char) -> Vec<Part<'a>> {
    let text = rest.text();
    let mut words = Vec::new();
    let mut start: Option<usize> = None;
    let mut quote: Option<char> = None;
    let mut end = text.len();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if start.is_none() && c.is_whitespace() {
            continue;
        }
        let from = *start.get_or_insert(at);
        match quote {
            None if c.is_whitespace() => {
                words.push(rest.sub(from, at));
                start = None;
                continue;
            }
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
        // Nothing is escaped inside of '.
        if c == escape && quote != Some('\'') && chars.next().is_none() {
            end = at;
        }
    }
    words.extend(start.filter(|from| *from < end).map(|from| rest.sub(from, end)));
    words
}

/// A flag as it is written, and as it is understood.
#[derive(Debug)]
pub(super) struct RawFlag<'a> {
    pub(super) part: Part<'a>,
    /// Without quotes and escapes, with its dashes.
    pub(super) text: String,
    /// What is written behind the first `=`, and whether quotes were open there.
    pub(super) value: Option<(Part<'a>, bool)>,
}

/// The words at the start that begin with `--`, and what is behind them. A bare `--` ends them.
///
/// BuildKit reads them byte by byte, each byte a character: of others than ASCII nothing good comes, and in the middle
/// of some of them a flag ends. All of that is so here too, but for a value's text.
pub(super) fn flags<'a>(rest: Part<'a>, escape: char) -> (Vec<RawFlag<'a>>, Part<'a>) {
    let mut found = Vec::new();
    let mut rest = rest;
    loop {
        rest = rest.trim_ascii_start();
        if !rest.text().starts_with("--") {
            return (found, rest);
        }
        let (flag, length) = flag(rest, escape);
        rest = rest.from(length);
        if flag.text == "--" {
            return (found, rest);
        }
        found.push(flag);
    }
}

/// White space among bytes that are taken for characters.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0x85 | 0xa0)
}

fn flag<'a>(rest: Part<'a>, escape: char) -> (RawFlag<'a>, usize) {
    let source = rest.text();
    let mut text = String::new();
    let mut equals: Option<(usize, bool)> = None;
    let mut quote: Option<u8> = None;
    let mut end = source.len();
    let mut bytes = source.bytes().enumerate();
    while let Some((at, mut byte)) = bytes.next() {
        match quote {
            None if is_space(byte) => {
                end = at;
                break;
            }
            None if byte == b'\'' || byte == b'"' => {
                quote = Some(byte);
                continue;
            }
            Some(open) if byte == open => {
                quote = None;
                continue;
            }
            _ => {}
        }
        let mut behind = at + 1;
        if char::from(byte) == escape {
            let Some((next, escaped)) = bytes.next() else {
                continue;
            };
            byte = escaped;
            behind = next + 1;
        }
        if byte == b'=' && equals.is_none() {
            equals = Some((behind, quote.is_some()));
        }
        text.push(char::from(byte));
    }
    // Not in the middle of a character.
    let end = (end..source.len()).find(|at| source.is_char_boundary(*at)).unwrap_or(source.len());
    let value = equals.map(|(at, open)| (rest.sub(at, end), open));
    (RawFlag { part: rest.sub(0, end), text, value }, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dockerfile::syntax::Joined;

    fn words(text: &str, escape: char) -> Vec<String> {
        let line = Joined::at(text, 0);
        quoted(Part::all(&line), escape).into_iter().map(|p| p.text().to_owned()).collect()
    }

    #[test]
    fn words_keep_quotes_and_escapes() {
        assert_eq!(words(r#"a=b  c="d e" f='g h'"#, '\\'), ["a=b", r#"c="d e""#, "f='g h'"]);
        assert_eq!(words(r"a=b\ c d=\'", '\\'), [r"a=b\ c", r"d=\'"]);
        assert_eq!(words(r#"a="b\" c" d"#, '\\'), [r#"a="b\" c""#, "d"]);
        // No escapes between single quotes.
        assert_eq!(words(r"a='b\' c", '\\'), [r"a='b\'", "c"]);
        assert_eq!(words(r#"a="b c"#, '\\'), [r#"a="b c"#]);
        assert_eq!(words("a=`b c", '`'), ["a=`b", "c"]);
        assert_eq!(words("a=\u{a0}b", '\\'), ["a=", "b"]);
        assert_eq!(words("", '\\'), Vec::<String>::new());
    }

    #[test]
    fn an_escape_at_the_very_end_is_dropped() {
        assert_eq!(words(r"a=b\\\", '\\'), [r"a=b\\"]);
        assert_eq!(words(r"a=b \", '\\'), ["a=b"]);
        assert_eq!(words(r#"a="b\"#, '\\'), [r#"a="b"#]);
        assert_eq!(words(r"a='b\", '\\'), [r"a='b\"]);
    }

    fn flags_of(text: &str) -> (Vec<String>, Vec<Option<String>>, String) {
        let line = Joined::at(text, 0);
        let (found, rest) = flags(Part::all(&line), '\\');
        let values = found.iter().map(|f| f.value.map(|(p, _)| p.text().to_owned())).collect();
        (found.into_iter().map(|f| f.text).collect(), values, rest.text().to_owned())
    }

    #[test]
    fn flags_are_understood_and_kept_as_written() {
        let (texts, values, rest) = flags_of(r#"--a="b c" --d=e\ f  --link g --h"#);
        assert_eq!(texts, ["--a=b c", "--d=e f", "--link"]);
        assert_eq!(values, [Some(r#""b c""#.to_owned()), Some(r"e\ f".to_owned()), None]);
        assert_eq!(rest, "g --h");
        assert_eq!(flags_of("--a -- --b c").0, ["--a"]);
        assert_eq!(flags_of("--a -- --b c").2, " --b c");
        assert_eq!(flags_of("- --a").0, Vec::<String>::new());
        assert_eq!(flags_of("--"), (vec![], vec![], String::new()));
        assert_eq!(flags_of("--a='b c").0, ["--a=b c"]);
    }

    #[test]
    fn flags_are_bytes() {
        assert_eq!(flags_of("--link\u{a0}x"), (vec!["--linkÂ".into()], vec![None], "x".into()));
        assert_eq!(flags_of("--a=入 b").1, [Some("入".to_owned())]);
        assert_eq!(flags_of("--a=é b").1, [Some("é".to_owned())]);
        assert_eq!(flags_of("--a \u{a0}--b c").0, ["--a"]);
    }
}
