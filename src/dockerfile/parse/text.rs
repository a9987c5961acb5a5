//! Whether bytes are text, and the text that they are.

use super::problem::error;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Comment, SyntaxError};

/// Stands for each byte that is no UTF-8.
const REPLACEMENT: char = '\u{1a}';

/// The text, as long as the bytes.
pub(super) fn decode(source: &[u8]) -> String {
    let mut out = String::with_capacity(source.len());
    for chunk in source.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| REPLACEMENT));
    }
    out
}

/// Why nothing of the file can be read.
pub(super) fn no_text(source: &[u8]) -> Option<SyntaxError> {
    let utf16 = || error(Span::default(), "the file is UTF-16: save it as UTF-8");
    if source.starts_with(&[0xff, 0xfe]) || source.starts_with(&[0xfe, 0xff]) {
        return Some(utf16());
    }
    let first = memchr::memchr(0, source)?;
    // UTF-16 without its mark: every second byte of the first letters is 0.
    let zeros = |odd: usize| source.chunks_exact(2).take(8).all(|pair| pair.get(odd) == Some(&0));
    if source.len() >= 4 && (zeros(0) || zeros(1)) && source.get(..2) != Some(&[0, 0]) {
        return Some(utf16());
    }
    let what = "a NUL byte: this is no text file, name another or take the byte out";
    Some(error(Span::new(first, first + 1), what))
}

/// The first byte that is no UTF-8 and not in a comment.
pub(super) fn no_utf8(source: &[u8], comments: &[Comment]) -> Option<SyntaxError> {
    let in_comment = |at: usize| {
        let before = comments.partition_point(|c| c.span.start <= at).checked_sub(1);
        before.and_then(|b| comments.get(b)).is_some_and(|c| at < c.span.end)
    };
    let mut at = 0;
    for chunk in source.utf8_chunks() {
        at += chunk.valid().len();
        let end = at + chunk.invalid().len();
        if at < end && !in_comment(at) {
            let what = "bytes that are no UTF-8, Latin-1 perhaps: save the file as UTF-8";
            return Some(error(Span::new(at, end), what));
        }
        at = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_that_is_no_utf8_is_one_character() {
        assert_eq!(decode(b"a\xe9b\xe2\x82c\xff\xfe"), "a\u{1a}b\u{1a}\u{1a}c\u{1a}\u{1a}");
        assert_eq!(decode("é".as_bytes()), "é");
    }

    #[test]
    fn other_encodings_and_binaries_are_no_text() {
        let utf16 = |text: &str, le: bool| -> Vec<u8> {
            text.encode_utf16().flat_map(|u| if le { u.to_le_bytes() } else { u.to_be_bytes() }).collect()
        };
        for bytes in [
            utf16("\u{feff}FROM é", true),
            utf16("\u{feff}FROM é", false),
            utf16("FROM a\nRUN b", true),
            utf16("FROM a\nRUN b", false),
        ] {
            assert!(no_text(&bytes).unwrap().what.contains("UTF-16"), "{bytes:?}");
        }
        for bytes in [&b"FROM a\nRUN \0x"[..], b"\x7fELF\x02\x01\x01\0\0\0\0", b"\0\0\0\0\0\0", b"\0"] {
            assert!(no_text(bytes).unwrap().what.contains("NUL"), "{bytes:?}");
        }
        assert_eq!(no_text(b"FROM a"), None);
        assert_eq!(no_text(b""), None);
    }
}
