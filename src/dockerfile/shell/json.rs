//! The words of a JSON form, with the places of their characters in the file.

use crate::dockerfile::syntax::{Document, Joined, Word};

/// A word's text, each part with its place; none where it cannot be followed through the file.
pub fn unescaped(document: &Document, word: &Word) -> Option<Joined> {
    let written = document.slice(word.span).strip_prefix('"')?.strip_suffix('"')?;
    let base = word.span.start + 1;
    let mut out = Joined::default();
    let mut at = 0;
    let mut from = 0;
    while let Some(next) = written.get(at..)?.find(['\\', document.escape]) {
        at += next;
        let rest = written.get(at..)?;
        if let Some(length) = continuation(rest, document.escape) {
            out.push(written.get(from..at)?, base + from);
            at += length;
            from = at;
        } else if let Some(escaped) = rest.strip_prefix('\\') {
            out.push(written.get(from..at)?, base + from);
            let (char, length) = character(escaped)?;
            out.push(char.encode_utf8(&mut [0; 4]), base + at + 1);
            at += 1 + length;
            from = at;
        } else {
            at += document.escape.len_utf8();
        }
    }
    out.push(written.get(from..)?, base + from);
    (out.text == word.text).then_some(out)
}

/// The length of a line's continuation: the escape, blanks, the line end, and lines of comment or nothing behind it.
fn continuation(rest: &str, escape: char) -> Option<usize> {
    let behind = rest.strip_prefix(escape)?;
    let (blanks, mut next) = behind.split_once('\n')?;
    if !blanks.trim().is_empty() {
        return None;
    }
    while let Some((line, more)) = next.split_once('\n') {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            break;
        }
        next = more;
    }
    Some(rest.len() - next.len())
}

/// What stands behind a backslash, and its length.
fn character(escaped: &str) -> Option<(char, usize)> {
    let char = escaped.chars().next()?;
    match char {
        '"' | '\\' | '/' => Some((char, 1)),
        'n' => Some(('\n', 1)),
        't' => Some(('\t', 1)),
        'r' => Some(('\r', 1)),
        'u' => {
            let code = u32::from_str_radix(escaped.get(1..5)?, 16).ok()?;
            Some((char::from_u32(code)?, 5))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dockerfile::parse::parse;
    use crate::dockerfile::syntax::Body;

    #[test]
    fn characters_are_found_in_the_file() {
        let text = "CMD [\"x\", \"a \\\n  # no\n\n  b\\\"c\\u00e9\\td\"]\n";
        let document = parse(text.as_bytes());
        let Body::Exec(words) = &document.instructions[0].body else { panic!("{document:?}") };
        let joined = unescaped(&document, &words[1]).unwrap();
        assert_eq!(joined.text, words[1].text);
        for plain in ["a", "b", "c", "d"] {
            let at = joined.text.find(plain).unwrap();
            assert_eq!(document.slice(joined.span(at..at + 1)), plain);
        }
    }
}
