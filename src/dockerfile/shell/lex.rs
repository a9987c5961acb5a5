//! Tokens of a shell script, by byte range.

use std::ops::Range;

use super::scan::{body_end, delimiter, ends_word, word_end};

/// Tokens taken of one script; what follows is not read.
const MOST_TOKENS: usize = 1 << 18;

/// How far the end of `(( … ))` is looked for.
const MOST_ARITHMETIC: usize = 512;

/// Words that nothing closes: behind them, blanks alone end words.
const MOST_UNCLOSED: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Word,
    /// `[[ … ]]`
    Test,
    /// `(( … ))`
    Arithmetic,
    And,
    Or,
    /// `|` and `|&`.
    Pipe,
    Semi,
    Amp,
    /// `;;`, `;&`, `;;&`
    EndOfArm,
    Open,
    Close,
    Newline,
    /// `>`, `>>`, `>|`, `&>`, `&>>` of the standard output.
    Output,
    /// Any other redirection: its word is no argument.
    Redirect,
    /// `<<EOF`, by its index into `Tokens::heredocs`; the token holds the delimiter too.
    Here(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub range: Range<usize>,
}

/// A heredoc of the script itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    pub body: Range<usize>,
}

#[derive(Debug, Default)]
pub struct Tokens {
    pub tokens: Vec<Token>,
    pub heredocs: Vec<Here>,
    /// Where something was not closed, or a heredoc had no end, or the script was too long.
    pub broken: Option<usize>,
}

/// Splits a script into tokens.
pub fn tokens(text: &str) -> Tokens {
    run(text, false)
}

/// The same where a quote or bracket that nothing closes is a character like others.
pub fn lenient_tokens(text: &str) -> Tokens {
    run(text, true)
}

fn run(text: &str, lenient: bool) -> Tokens {
    let bytes = text.as_bytes();
    let mut lexer = Lexer { text, bytes, at: 0, out: Tokens::default(), pending: Vec::new(), lenient, unclosed: 0 };
    while lexer.at < lexer.bytes.len() {
        if lexer.out.tokens.len() >= MOST_TOKENS {
            lexer.broken(lexer.at);
            break;
        }
        lexer.step();
    }
    if let Some((opener, ..)) = lexer.pending.first() {
        lexer.broken(*opener);
    }
    lexer.out
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    out: Tokens,
    /// Opener's offset, index of the heredoc, delimiter, tabs stripped: of bodies that start at the next line.
    pending: Vec<(usize, usize, String, bool)>,
    lenient: bool,
    /// Words that were not closed.
    unclosed: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn broken(&mut self, at: usize) {
        self.out.broken.get_or_insert(at);
    }

    fn push(&mut self, kind: Kind, length: usize) {
        let end = self.at + length;
        self.out.tokens.push(Token { kind, range: self.at..end });
        self.at = end;
    }

    fn step(&mut self) {
        let Some(byte) = self.peek(0) else { return };
        match byte {
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'\\' if self.peek(1) == Some(b'\n') => self.at += 2,
            b'\\' if self.peek(1) == Some(b'\r') && self.peek(2) == Some(b'\n') => self.at += 3,
            b'#' => {
                let rest = self.bytes.get(self.at..).unwrap_or_default();
                self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            }
            b'\n' => {
                self.push(Kind::Newline, 1);
                self.bodies();
            }
            b';' => match (self.peek(1), self.peek(2)) {
                (Some(b';'), Some(b'&')) => self.push(Kind::EndOfArm, 3),
                (Some(b';' | b'&'), _) => self.push(Kind::EndOfArm, 2),
                _ => self.push(Kind::Semi, 1),
            },
            b'&' => match (self.peek(1), self.peek(2)) {
                (Some(b'&'), _) => self.push(Kind::And, 2),
                (Some(b'>'), Some(b'>')) => self.push(Kind::Output, 3),
                (Some(b'>'), _) => self.push(Kind::Output, 2),
                _ => self.push(Kind::Amp, 1),
            },
            b'|' => match self.peek(1) {
                Some(b'|') => self.push(Kind::Or, 2),
                Some(b'&') => self.push(Kind::Pipe, 2),
                _ => self.push(Kind::Pipe, 1),
            },
            b'(' => self.parenthesis(),
            b')' => self.push(Kind::Close, 1),
            b'<' | b'>' if self.peek(1) == Some(b'(') => self.word(),
            b'<' | b'>' => self.redirection(0),
            b'0'..=b'9' => {
                let digits = self.bytes.get(self.at..).unwrap_or_default();
                let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
                match self.peek(length) {
                    Some(b'<' | b'>') => self.redirection(length),
                    _ => self.word(),
                }
            }
            _ => self.word(),
        }
    }

    /// A redirection's operator, behind the digits of its descriptor.
    fn redirection(&mut self, digits: usize) {
        let output = matches!(self.bytes.get(self.at..self.at + digits), Some(b"" | b"1"));
        let rest = self.bytes.get(self.at + digits..).unwrap_or_default();
        match rest {
            [b'<', b'<', b'<', ..] => self.push(Kind::Redirect, digits + 3),
            [b'<', b'<', b'-', ..] => self.heredoc(digits + 3, true),
            [b'<', b'<', ..] => self.heredoc(digits + 2, false),
            [b'<', b'&' | b'>', ..] | [b'>', b'&', ..] => self.push(Kind::Redirect, digits + 2),
            [b'>', b'>' | b'|', ..] if output => self.push(Kind::Output, digits + 2),
            [b'>', b'>' | b'|', ..] => self.push(Kind::Redirect, digits + 2),
            [b'>', ..] if output => self.push(Kind::Output, digits + 1),
            _ => self.push(Kind::Redirect, digits + 1),
        }
    }

    fn heredoc(&mut self, operator: usize, strip: bool) {
        let start = self.at;
        let mut from = start + operator;
        while matches!(self.bytes.get(from), Some(b' ' | b'\t')) {
            from += 1;
        }
        let (end, complete) = word_end(self.text, from);
        let delimiter = delimiter(self.bytes.get(from..end).unwrap_or_default());
        if !complete || end == from {
            self.broken(start);
            self.push(Kind::Redirect, operator);
            return;
        }
        let index = self.out.heredocs.len();
        self.out.heredocs.push(Here { body: end..end });
        self.push(Kind::Here(index), end - start);
        self.pending.push((start, index, delimiter, strip));
    }

    /// At the start of a line: the bodies of the heredocs of the line before.
    fn bodies(&mut self) {
        for (opener, index, delimiter, strip) in std::mem::take(&mut self.pending) {
            let from = self.at;
            let (end, after) = body_end(self.bytes, from, &delimiter, strip).unwrap_or_else(|| {
                self.broken(opener);
                (self.bytes.len(), self.bytes.len())
            });
            if let Some(here) = self.out.heredocs.get_mut(index) {
                here.body = from..end;
            }
            self.at = after;
        }
    }

    /// `((` of an arithmetic command, or an ordinary parenthesis.
    fn parenthesis(&mut self) {
        let may = self.peek(1) == Some(b'(') && (self.starts_command() || self.last_word("for"));
        match may.then(|| self.arithmetic_end()).flatten() {
            Some(end) => self.push(Kind::Arithmetic, end - self.at),
            None => self.push(Kind::Open, 1),
        }
    }

    /// Behind the `))`, where both stand together.
    fn arithmetic_end(&self) -> Option<usize> {
        let mut depth = 0usize;
        for at in self.at..self.bytes.len().min(self.at + MOST_ARITHMETIC) {
            match self.bytes.get(at)? {
                b'(' => depth += 1,
                b')' if depth == 2 => return (self.bytes.get(at + 1) == Some(&b')')).then_some(at + 2),
                b')' => depth = depth.checked_sub(1)?,
                b'\n' => return None,
                _ => {}
            }
        }
        None
    }

    /// Whether a command's first word may stand here.
    fn starts_command(&self) -> bool {
        match self.out.tokens.last() {
            None => true,
            Some(Token { kind: Kind::Word, range }) => matches!(
                self.text.get(range.clone()),
                Some("if" | "then" | "else" | "elif" | "while" | "until" | "do" | "!" | "{" | "time")
            ),
            Some(token) => matches!(
                token.kind,
                Kind::And
                    | Kind::Or
                    | Kind::Pipe
                    | Kind::Semi
                    | Kind::Amp
                    | Kind::EndOfArm
                    | Kind::Open
                    | Kind::Close
                    | Kind::Newline
            ),
        }
    }

    fn last_word(&self, word: &str) -> bool {
        self.out.tokens.last().is_some_and(|t| t.kind == Kind::Word && self.text.get(t.range.clone()) == Some(word))
    }

    fn word(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let test = matches!(rest, [b'[', b'[', b, ..] if ends_word(*b));
        if let Some(end) = (test && self.starts_command()).then(|| self.test_end()).flatten() {
            self.push(Kind::Test, end - self.at);
            return;
        }
        let (mut end, complete) = self.closed_word();
        if !complete {
            self.broken(self.at);
            self.unclosed += 1;
            if self.lenient {
                end = self.at + rest.iter().position(|b| ends_word(*b)).unwrap_or(rest.len());
            }
        }
        self.push(Kind::Word, (end - self.at).max(1));
    }

    /// The end of the word here. Each that nothing closes costs a look at all the rest, so not many are tried.
    fn closed_word(&self) -> (usize, bool) {
        if self.unclosed > MOST_UNCLOSED { (self.at, false) } else { word_end(self.text, self.at) }
    }

    /// Behind the `]]` of a test.
    fn test_end(&self) -> Option<usize> {
        let mut at = self.at + 2;
        loop {
            match *self.bytes.get(at)? {
                b']' if self.bytes.get(at + 1) == Some(&b']')
                    && self.bytes.get(at + 2).is_none_or(|b| ends_word(*b)) =>
                {
                    return Some(at + 2);
                }
                byte if ends_word(byte) => at += 1,
                _ => {
                    let (end, complete) = word_end(self.text, at);
                    if !complete {
                        return None;
                    }
                    at = end.max(at + 1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let out = tokens(text);
        assert_eq!(out.broken, None, "{text}");
        out.tokens.iter().map(|t| &text[t.range.clone()]).collect()
    }

    #[test]
    fn tokens_stand_where_the_text_has_them() {
        assert_eq!(
            words("a=1 b 'c d'&&e|f;g 2>&1 >h"),
            ["a=1", "b", "'c d'", "&&", "e", "|", "f", ";", "g", "2>&", "1", ">", "h"]
        );
        assert_eq!(words("a \\\n  b # c\nd"), ["a", "b", "\n", "d"]);
        assert_eq!(words("pip install a>=1"), ["pip", "install", "a", ">", "=1"]);
        assert_eq!(
            words("if [[ a < b && (c =~ d|e) ]]; then ((i<3)); fi"),
            ["if", "[[ a < b && (c =~ d|e) ]]", ";", "then", "((i<3))", ";", "fi"]
        );
        assert_eq!(words("((a);(b))"), ["(", "(", "a", ")", ";", "(", "b", ")", ")"]);
    }

    #[test]
    fn heredocs_are_taken_out_of_the_lines() {
        let text = "cat <<A >f && b <<-'B'\none $x\nA\n\ttwo\n\tB\nc";
        let out = tokens(text);
        assert_eq!(out.broken, None);
        let bodies: Vec<&str> = out.heredocs.iter().map(|h| &text[h.body.clone()]).collect();
        assert_eq!(bodies, ["one $x\n", "\ttwo\n"]);
        let last = out.tokens.last().map(|t| &text[t.range.clone()]);
        assert_eq!(last, Some("c"));
    }

    #[test]
    fn what_is_not_closed_is_told() {
        for text in ["a 'b", "cat <<E\nx", "cat <<E", "a \"$(b\"", "cat <<"] {
            assert!(tokens(text).broken.is_some(), "{text}");
        }
    }
}
