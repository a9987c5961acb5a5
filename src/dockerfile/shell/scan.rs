//! Where a word of a shell script ends: quotes, `${…}`, `$(…)` and backquotes are passed over as a whole.
//!
//! One pass with its own stack, so that the depth of the text costs neither stack nor time.

/// Something open, inside of which a blank does not end the word.
#[derive(Debug, Clone)]
enum Open {
    Double,
    Brace,
    Back,
    Paren(Paren),
}

/// Inside of `$(`, `<(`, `(`: commands, or words of an array.
#[derive(Debug, Clone, Default)]
struct Paren {
    /// `case` without its `esac`: a `)` then ends a pattern.
    cases: usize,
    /// The next word would be a command's first.
    first: bool,
    /// `((`: no comments, no heredocs.
    arithmetic: bool,
    /// Delimiters whose bodies start at the next line.
    heredocs: Vec<(String, bool)>,
}

impl Paren {
    fn new(arithmetic: bool) -> Self {
        Self { first: true, arithmetic, ..Self::default() }
    }
}

/// The end of the word that starts at `start`; false where something in it is not closed.
pub fn word_end(text: &str, start: usize) -> (usize, bool) {
    Scan { text: text.as_bytes(), at: start, start, open: Vec::new() }.run(false)
}

/// The end of what opens at `start` (`$(`, `${`, a backquote, `"`), behind its closing character.
pub fn closing(text: &str, start: usize) -> Option<usize> {
    let (end, complete) = Scan { text: text.as_bytes(), at: start, start, open: Vec::new() }.run(true);
    complete.then_some(end)
}

/// Whether a character ends a word.
pub fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// The place of the quote that ends a `'…'` whose content starts at `from`.
pub fn single_end(text: &[u8], from: usize) -> Option<usize> {
    memchr::memchr(b'\'', text.get(from..)?).map(|at| from + at)
}

/// The same for `$'…'`, where a backslash escapes.
pub fn ansi_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match text.get(at)? {
            b'\\' => at += 2,
            b'\'' => return Some(at),
            _ => at += 1,
        }
    }
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    start: usize,
    open: Vec<Open>,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// Up to the end of the word, or of the first thing that opens and closes.
    fn run(mut self, one: bool) -> (usize, bool) {
        while let Some(byte) = self.peek(0) {
            let inside = !self.open.is_empty();
            let going = match self.open.last() {
                None => self.plain(byte),
                Some(Open::Double) => self.double(byte),
                Some(Open::Brace) => self.brace(byte),
                Some(Open::Back) => self.back(byte),
                Some(Open::Paren(_)) => self.paren(byte),
            };
            match going {
                Some(true) => {}
                Some(false) => return (self.at, true),
                None => return (self.text.len(), false),
            }
            if one && inside && self.open.is_empty() {
                return (self.at, true);
            }
        }
        let complete = self.open.is_empty() && self.at == self.text.len();
        (self.text.len(), complete && !one)
    }

    /// Outside of everything. False: the word ends here; none: a quote is not closed.
    fn plain(&mut self, byte: u8) -> Option<bool> {
        match byte {
            b'(' if self.opens_list() => self.push(Open::Paren(Paren::new(true)), 1),
            b'<' | b'>' if self.at == self.start && self.peek(1) == Some(b'(') => {
                self.push(Open::Paren(Paren::new(false)), 2);
            }
            _ if ends_word(byte) => return Some(false),
            b'"' => self.push(Open::Double, 1),
            _ => return self.common(byte),
        }
        Some(true)
    }

    /// `NAME=(` and `@(`: the parenthesis belongs to the word.
    fn opens_list(&self) -> bool {
        let before = self.text.get(self.start..self.at).unwrap_or_default();
        match before.last() {
            Some(b'=') => {
                let name = before.strip_suffix(b"+=").or(before.strip_suffix(b"=")).unwrap_or_default();
                is_name(name)
            }
            Some(b'@' | b'?' | b'+' | b'*') => true,
            _ => false,
        }
    }

    /// What is special outside of quotes.
    fn common(&mut self, byte: u8) -> Option<bool> {
        match byte {
            b'\\' => self.at += if self.peek(1).is_some() { 2 } else { 1 },
            b'\'' => self.at = single_end(self.text, self.at + 1)? + 1,
            b'"' => self.push(Open::Double, 1),
            b'$' if self.peek(1) == Some(b'\'') => self.at = ansi_end(self.text, self.at + 2)? + 1,
            _ => self.expansion(byte),
        }
        Some(true)
    }

    /// What is special in double quotes too.
    fn expansion(&mut self, byte: u8) {
        match (byte, self.peek(1)) {
            (b'`', _) => self.push(Open::Back, 1),
            (b'$', Some(b'(')) => {
                let arithmetic = self.peek(2) == Some(b'(');
                self.push(Open::Paren(Paren::new(arithmetic)), 2);
            }
            (b'$', Some(b'{')) => self.push(Open::Brace, 2),
            _ => self.at += 1,
        }
    }

    fn push(&mut self, open: Open, length: usize) {
        self.open.push(open);
        self.at += length;
    }

    fn pop(&mut self) {
        self.open.pop();
        self.at += 1;
    }

    fn double(&mut self, byte: u8) -> Option<bool> {
        match byte {
            b'"' => self.pop(),
            b'\\' => self.at += if self.peek(1).is_some() { 2 } else { 1 },
            _ => self.expansion(byte),
        }
        Some(true)
    }

    fn back(&mut self, byte: u8) -> Option<bool> {
        match byte {
            b'`' => self.pop(),
            b'\\' => self.at += if self.peek(1).is_some() { 2 } else { 1 },
            _ => self.at += 1,
        }
        Some(true)
    }

    fn brace(&mut self, byte: u8) -> Option<bool> {
        // In double quotes, a single quote inside of `${…}` is one of the text.
        let quoted = self.open.iter().rev().nth(1).is_some_and(|o| matches!(o, Open::Double));
        match byte {
            b'}' => self.pop(),
            b'\'' if quoted => self.at += 1,
            _ => return self.common(byte),
        }
        Some(true)
    }

    fn paren(&mut self, byte: u8) -> Option<bool> {
        let at = self.at;
        let word = self.bare_word();
        let next = self.peek(1);
        let Some(Open::Paren(paren)) = self.open.last_mut() else { return Some(true) };
        match byte {
            b')' if paren.cases > 0 => {
                paren.first = true;
                self.at += 1;
            }
            b')' => self.pop(),
            b'(' => {
                let arithmetic = paren.arithmetic;
                paren.first = true;
                self.push(Open::Paren(Paren::new(arithmetic)), 1);
            }
            b'#' if !paren.arithmetic && self.text.get(at - 1).is_none_or(|b| ends_word(*b)) => {
                self.at =
                    self.text.get(at..).and_then(|t| memchr::memchr(b'\n', t)).map_or(self.text.len(), |n| at + n);
            }
            b'<' if !paren.arithmetic && next == Some(b'<') => self.heredoc(),
            b'\n' => {
                paren.first = true;
                self.at += 1;
                self.bodies();
            }
            b';' | b'&' | b'|' => {
                paren.first = true;
                self.at += 1;
            }
            b' ' | b'\t' | b'\r' => self.at += 1,
            _ => {
                if let Some(word) = word {
                    match word {
                        b"case" if paren.first => paren.cases += 1,
                        b"esac" if paren.first => paren.cases = paren.cases.saturating_sub(1),
                        _ => {}
                    }
                    paren.first &=
                        matches!(word, b"then" | b"do" | b"else" | b"elif" | b"if" | b"while" | b"until");
                    paren.first |= matches!(word, b"in") && paren.cases > 0;
                    self.at += word.len();
                } else {
                    paren.first = matches!(byte, b'{' | b'!');
                    return self.common(byte);
                }
            }
        }
        Some(true)
    }

    /// Letters that are a word of their own.
    fn bare_word(&self) -> Option<&'static [u8]> {
        const WORDS: [&[u8]; 10] =
            [b"case", b"esac", b"then", b"do", b"else", b"elif", b"if", b"while", b"until", b"in"];
        if !ends_word(*self.text.get(self.at.checked_sub(1)?)?) {
            return None;
        }
        let rest = self.text.get(self.at..)?;
        WORDS.into_iter().find(|w| rest.starts_with(w) && rest.get(w.len()).is_none_or(|b| ends_word(*b)))
    }

    /// At `<<` of a heredoc, or `<<<`.
    fn heredoc(&mut self) {
        self.at += 2;
        if self.peek(0) == Some(b'<') {
            self.at += 1;
            return;
        }
        let strip = self.peek(0) == Some(b'-');
        self.at += usize::from(strip);
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let from = self.at;
        while self.peek(0).is_some_and(|b| !ends_word(b)) {
            self.at += 1;
        }
        let delimiter = delimiter(self.text.get(from..self.at).unwrap_or_default());
        if let (false, Some(Open::Paren(paren))) = (delimiter.is_empty(), self.open.last_mut()) {
            paren.heredocs.push((delimiter, strip));
        }
    }

    /// At the start of a line, where the bodies of heredocs stand.
    fn bodies(&mut self) {
        let Some(Open::Paren(paren)) = self.open.last_mut() else { return };
        for (delimiter, strip) in std::mem::take(&mut paren.heredocs) {
            self.at = body_end(self.text, self.at, &delimiter, strip).map_or(self.text.len(), |(_, after)| after);
        }
    }
}

/// A heredoc's delimiter without quotes.
pub fn delimiter(word: &[u8]) -> String {
    let plain: Vec<u8> = word.iter().copied().filter(|b| !matches!(b, b'\'' | b'"' | b'\\')).collect();
    String::from_utf8_lossy(&plain).into_owned()
}

/// Where the body that starts at `from` ends, and where the line behind its delimiter starts.
pub fn body_end(text: &[u8], from: usize, delimiter: &str, strip: bool) -> Option<(usize, usize)> {
    let mut at = from;
    while at < text.len() {
        let rest = text.get(at..)?;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let mut line = rest.get(..length)?;
        line = line.strip_suffix(b"\r").unwrap_or(line);
        while let (true, [b'\t', more @ ..]) = (strip, line) {
            line = more;
        }
        if line == delimiter.as_bytes() {
            return Some((at, (at + length + 1).min(text.len())));
        }
        at += length + 1;
    }
    None
}

/// A variable's name.
pub fn is_name(name: &[u8]) -> bool {
    name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
        && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word at the start of a text.
    fn word(text: &str) -> &str {
        let (end, complete) = word_end(text, 0);
        assert!(complete, "{text}");
        &text[..end]
    }

    #[test]
    fn quotes_and_expansions_are_passed_over() {
        for (text, expected) in [
            ("a b", "a"),
            ("'a b'c d", "'a b'c"),
            (r#""a \" b"c;d"#, r#""a \" b"c"#),
            ("a\\ b c", "a\\ b"),
            ("$(a; b) c", "$(a; b)"),
            ("$(a ')' \")\" b)c d", "$(a ')' \")\" b)c"),
            ("${x:-a b} c", "${x:-a b}"),
            ("\"${x:-'}\" c", "\"${x:-'}\""),
            ("`a b` c", "`a b`"),
            ("$((1 + (2 << 3)))x y", "$((1 + (2 << 3)))x"),
            ("$(case a in a) b;; (c) d;; esac; e) f", "$(case a in a) b;; (c) d;; esac; e)"),
            ("$(if case a in a) b;; esac; then c; fi)z f", "$(if case a in a) b;; esac; then c; fi)z"),
            ("$(a # ) '\n b) c", "$(a # ) '\n b)"),
            ("$(cat <<E\n)'\nE\n) c", "$(cat <<E\n)'\nE\n)"),
            ("A=(a 'b c' d) e", "A=(a 'b c' d)"),
            ("<(a b) c", "<(a b)"),
            ("a|b", "a"),
            ("$'a\\'b' c", "$'a\\'b'"),
            ("\"$(a \"b c\" d)\" e", "\"$(a \"b c\" d)\""),
            ("$x\"é\" ü", "$x\"é\""),
        ] {
            assert_eq!(word(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_closed_is_told() {
        for text in ["'a", "\"a", "$(a", "${a", "`a", "a\"$(b", "$'a\\'"] {
            assert_eq!(word_end(text, 0), (text.len(), false), "{text}");
        }
    }

    #[test]
    fn depth_costs_nothing() {
        let deep = "$(".repeat(500_000);
        assert_eq!(word_end(&deep, 0), (deep.len(), false));
        let closed = format!("{}{}", "\"$(".repeat(100_000), ")\"".repeat(100_000));
        assert_eq!(word_end(&closed, 0), (closed.len(), true));
    }
}
