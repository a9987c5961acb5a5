//! The JSON form of arguments. What is not JSON to the last character is no error: it is in shell form then.

use std::ops::Range;

/// What a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Json {
    /// No array of JSON.
    No,
    /// An array of strings: unescaped, with the place of each, quotes included.
    Strings(Vec<(String, Range<usize>)>),
    /// An array with something else in it, the first of it here.
    Mixed(Range<usize>),
}

/// Arrays and objects inside each other; as Go's decoder has it.
const DEEPEST: usize = 10_000;

/// Reads an array. `replaced`: U+001A stands for bytes that are no UTF-8 and may be in a string.
pub(super) fn array(text: &str, replaced: bool) -> Json {
    if !text.starts_with('[') {
        return Json::No;
    }
    let mut reader = Reader { bytes: text.as_bytes(), at: 0, replaced };
    reader.array().unwrap_or(Json::No)
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    /// A value or the end of an array that has none yet.
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    replaced: bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn bump(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn eat(&mut self, wanted: &[u8]) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(wanted).then(|| self.at += wanted.len())
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// None: not JSON. Keeps its own stack: the text decides how deep it gets.
    fn array(&mut self) -> Option<Json> {
        let mut closers = vec![b']'];
        let mut expect = Expect::ValueOrEnd;
        let mut strings = Vec::new();
        let mut other: Option<Range<usize>> = None;
        self.at = 1;
        while let Some(closer) = closers.last().copied() {
            self.skip_space();
            let start = self.at;
            let byte = self.peek()?;
            let may_end = matches!(expect, Expect::ValueOrEnd | Expect::KeyOrEnd | Expect::CommaOrEnd);
            if may_end && byte == closer {
                self.at += 1;
                closers.pop();
                expect = Expect::CommaOrEnd;
                if closers.len() == 1 {
                    // The end of an array or object right inside the outermost array.
                    other = other.map(|o| if o.end == 0 { o.start..self.at } else { o });
                }
                continue;
            }
            match expect {
                Expect::CommaOrEnd => {
                    self.eat(b",")?;
                    expect = if closer == b']' { Expect::Value } else { Expect::Key };
                    continue;
                }
                Expect::Key | Expect::KeyOrEnd => {
                    self.string()?;
                    self.skip_space();
                    self.eat(b":")?;
                    expect = Expect::Value;
                    continue;
                }
                Expect::Value | Expect::ValueOrEnd => expect = Expect::CommaOrEnd,
            }
            let outermost = closers.len() == 1;
            match byte {
                b'"' => {
                    let string = self.string()?;
                    if outermost {
                        strings.push((string, start..self.at));
                    }
                    continue;
                }
                b'[' | b'{' => {
                    self.at += 1;
                    closers.push(if byte == b'[' { b']' } else { b'}' });
                    expect = if byte == b'[' { Expect::ValueOrEnd } else { Expect::KeyOrEnd };
                    if closers.len() > DEEPEST {
                        return None;
                    }
                    // Its end is filled in when it is reached.
                    other.get_or_insert(start..0);
                    continue;
                }
                b't' => self.eat(b"true")?,
                b'f' => self.eat(b"false")?,
                b'n' => self.eat(b"null")?,
                _ => self.number()?,
            }
            if outermost {
                other.get_or_insert(start..self.at);
            }
        }
        self.skip_space();
        (self.at == self.bytes.len()).then(|| other.map_or(Json::Strings(strings), Json::Mixed))
    }

    /// A number that a 64-bit float can hold.
    fn number(&mut self) -> Option<()> {
        let start = self.at;
        let _ = self.eat(b"-");
        match self.bump()? {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.eat(b".").is_some() {
            self.peek().filter(u8::is_ascii_digit)?;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.peek().filter(u8::is_ascii_digit)?;
            self.digits();
        }
        let text = std::str::from_utf8(self.bytes.get(start..self.at)?).ok()?;
        text.parse::<f64>().ok().filter(|n| n.is_finite()).map(|_| ())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// A string, from its opening quote to behind the closing one.
    fn string(&mut self) -> Option<String> {
        self.eat(b"\"")?;
        let mut out = String::new();
        loop {
            let plain = self.at;
            while self.peek().is_some_and(|b| self.is_plain(b)) {
                self.at += 1;
            }
            out.push_str(std::str::from_utf8(self.bytes.get(plain..self.at)?).ok()?);
            match self.bump()? {
                b'"' => return Some(out),
                b'\\' => out.push(self.escape()?),
                _ => return None,
            }
        }
    }

    fn is_plain(&self, byte: u8) -> bool {
        match byte {
            b'"' | b'\\' => false,
            0x1a => self.replaced,
            _ => byte >= 0x20,
        }
    }

    fn escape(&mut self) -> Option<char> {
        Some(match self.bump()? {
            c @ (b'"' | b'\\' | b'/') => char::from(c),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex4()?;
                let behind = self.at;
                let pair = (0xd800..0xdc00).contains(&first) && self.eat(b"\\u").is_some();
                let second = if pair { Some(self.hex4()?) } else { None };
                let both = second.and_then(|s| char::decode_utf16([first, s]).next()).and_then(Result::ok);
                if both.is_none() {
                    // A half alone; what follows stands for itself.
                    self.at = behind;
                }
                both.or_else(|| char::from_u32(u32::from(first))).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return None,
        })
    }

    fn hex4(&mut self) -> Option<u16> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |sum, b| Some(sum << 4 | char::from(*b).to_digit(16).map(|d| d as u16)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(text: &str) -> Vec<String> {
        match array(text, false) {
            Json::Strings(all) => {
                for (_, range) in &all {
                    assert!(text[range.clone()].starts_with('"') && text[range.clone()].ends_with('"'));
                }
                all.into_iter().map(|(s, _)| s).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn strings_are_unescaped() {
        assert_eq!(strings(r#"["a", "b c"]"#), ["a", "b c"]);
        assert_eq!(strings("[]"), Vec::<String>::new());
        assert_eq!(strings("[ \t\"a\"\r\n,\"\" ]"), ["a", ""]);
        assert_eq!(strings(r#"["\"\\\/\b\f\n\r\t"]"#), ["\"\\/\x08\x0c\n\r\t"]);
        assert_eq!(strings(r#"["\u00e9\ud83d\ude00"]"#), ["é😀"]);
        assert_eq!(strings(r#"["\ud83dx","\ude00","\ud83d\u0041"]"#), ["\u{fffd}x", "\u{fffd}", "\u{fffd}A"]);
        assert_eq!(strings(r#"["é😀"]"#), ["é😀"]);
    }

    #[test]
    fn anything_but_json_is_none() {
        for text in [
            "",
            "a",
            "[",
            "[\"a\"",
            "['a']",
            "[\"a\",]",
            "[,]",
            "[\"a\" \"b\"]",
            "[\"a\"] b",
            "[\"a]",
            "[a]",
            "[\"\\x\"]",
            "[\"\\u12\"]",
            "[\"\\ud83d\\uzzzz\"]",
            "[\"\t\"]",
            "[\"\u{1a}\"]",
            "[01]",
            "[1.]",
            "[1e]",
            "[-]",
            "[1e999]",
            "[{]",
            "[{\"a\"}]",
            "[{\"a\":1,}]",
            "[{1:2}]",
            "[tru]",
            "[[]",
            "\u{a0}[]",
        ] {
            assert_eq!(array(text, false), Json::No, "{text}");
        }
        assert_eq!(array("[\"\u{1a}\"]", true), Json::Strings(vec![("\u{1a}".into(), 1..4)]));
    }

    #[test]
    fn an_array_of_other_things_says_where() {
        for (text, other) in [
            (r#"["a", 1]"#, "1"),
            (r#"["a", [["b"], 2], 3]"#, r#"[["b"], 2]"#),
            (r#"[{"a": {"b": []}}, "c"]"#, r#"{"a": {"b": []}}"#),
            ("[null]", "null"),
            ("[-1.5e+3,true]", "-1.5e+3"),
            ("[ false ]", "false"),
        ] {
            let at = text.find(other).unwrap();
            assert_eq!(array(text, false), Json::Mixed(at..at + other.len()), "{text}");
        }
    }

    #[test]
    fn depth_costs_no_recursion() {
        assert_eq!(array(&"[".repeat(1_000_000), false), Json::No);
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(matches!(array(&nested(DEEPEST), false), Json::Mixed(_)));
        assert_eq!(array(&nested(DEEPEST + 1), false), Json::No);
    }
}
