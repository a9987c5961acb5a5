//! How BuildKit splits a line into shell words when it looks for heredocs, with no variable set.
//!
//! Its laws are not those of a shell, and a file depends on them: a quote that is not closed or a `${` that it does
//! not know means that the line has no heredocs at all. Variables stay as they are written, except that escapes are
//! taken out of the word of `${x:-word}`; what stands before such a word in the same shell word is lost.

use super::lines::BOM;
use std::iter::Peekable;
use std::str::CharIndices;

const ESCAPE: char = '\\';

/// What stays in the words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keep {
    pub(super) quotes: bool,
    pub(super) escapes: bool,
}

/// A word, and where its first and behind its last character stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellWord {
    pub(super) text: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The words; none where the line cannot be split.
pub(super) fn words(line: &str, keep: Keep) -> Option<Vec<ShellWord>> {
    let mut chars = line.char_indices().peekable();
    // Go's scanner does not see a byte order mark at the start.
    chars.next_if(|(_, c)| *c == BOM);
    let mut lexer =
        Lexer { chars, at: 0, keep, open: Vec::new(), pending: Vec::new(), nested: false, words: Words::default() };
    lexer.run()?;
    lexer.words.end();
    Some(lexer.words.done)
}

/// What has been opened and is not closed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// `"`
    Quote,
    /// The word of `${x:-word}`; whether escapes stay.
    Word { escapes: bool },
    /// The pattern of `${x/pattern/replacement}`.
    Pattern,
}

struct Lexer<'a> {
    chars: Peekable<CharIndices<'a>>,
    /// Where the character taken last stands.
    at: usize,
    keep: Keep,
    open: Vec<Open>,
    /// What comes of the outermost quote or variable so far.
    pending: Vec<(char, usize)>,
    /// The pending text has the word of a `${x:-word}` in it.
    nested: bool,
    words: Words,
}

impl Lexer<'_> {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    fn next(&mut self) -> Option<char> {
        let (at, c) = self.chars.next()?;
        self.at = at;
        Some(c)
    }

    /// A character of the text inside of quotes and variables.
    fn push(&mut self, c: char) {
        self.pending.push((c, self.at));
    }

    /// A character that cannot end a word.
    fn raw(&mut self, c: char) {
        if self.open.is_empty() {
            self.words.raw(c, self.at);
        } else {
            self.push(c);
        }
    }

    fn escapes(&self) -> bool {
        let inner = self.open.iter().rev().find_map(|open| match open {
            Open::Quote => None,
            Open::Word { escapes } => Some(*escapes),
            Open::Pattern => Some(true),
        });
        inner.unwrap_or(self.keep.escapes)
    }

    fn run(&mut self) -> Option<()> {
        while let Some(c) = self.peek() {
            let inside = self.open.last().copied();
            match (inside, c) {
                (Some(Open::Word { .. }), '}') | (Some(Open::Pattern), '/') | (Some(Open::Quote), '"') => {
                    self.close()
                }
                (_, '$') => {
                    self.next();
                    self.variable()?;
                    self.settle(false);
                }
                (Some(Open::Quote), _) => self.quoted(),
                (_, '<') => self.angle(),
                (_, '\'') => self.single_quoted()?,
                (_, '"') => {
                    self.next();
                    self.open.push(Open::Quote);
                    if self.keep.quotes {
                        self.push(c);
                    }
                }
                (_, ESCAPE) => self.escaped(),
                (None, _) => {
                    self.next();
                    self.words.add(c, self.at);
                }
                (Some(_), _) => {
                    self.next();
                    self.push(c);
                }
            }
        }
        self.open.is_empty().then_some(())
    }

    /// Takes what closes the innermost.
    fn close(&mut self) {
        let Some(c) = self.next() else { return };
        match self.open.pop() {
            Some(Open::Quote) => {
                if self.keep.quotes {
                    self.push(c);
                }
                self.settle(true);
            }
            Some(Open::Pattern) => {
                self.push(c);
                self.open.push(Open::Word { escapes: true });
            }
            Some(Open::Word { .. }) => {
                self.push(c);
                self.settle(false);
            }
            None => {}
        }
    }

    /// Gives the pending text to the words, where nothing is open any more. Quoted text is not split.
    fn settle(&mut self, quoted: bool) {
        if !self.open.is_empty() {
            return;
        }
        if std::mem::take(&mut self.nested) {
            self.words.forget();
        }
        for (c, at) in self.pending.drain(..) {
            if quoted {
                self.words.raw(c, at);
            } else {
                self.words.add(c, at);
            }
        }
    }

    fn escaped(&mut self) {
        self.next();
        if self.escapes() {
            self.raw(ESCAPE);
        }
        if let Some(c) = self.next() {
            self.raw(c);
        }
    }

    /// One character between double quotes.
    fn quoted(&mut self) {
        let Some(mut c) = self.next() else { return };
        if c == ESCAPE {
            if self.escapes() {
                self.push(c);
            }
            match self.peek() {
                None => return,
                Some(special @ ('"' | '$' | ESCAPE)) => {
                    self.next();
                    c = special;
                }
                Some(_) => {}
            }
        }
        self.push(c);
    }

    fn single_quoted(&mut self) -> Option<()> {
        self.next();
        if self.keep.quotes {
            self.raw('\'');
        }
        loop {
            match self.next()? {
                '\'' => break,
                c => self.raw(c),
            }
        }
        if self.keep.quotes {
            self.raw('\'');
        }
        Some(())
    }

    /// `<`, or `<<` with the blanks behind it.
    fn angle(&mut self) {
        self.next();
        self.raw('<');
        if self.peek() != Some('<') {
            return;
        }
        self.next();
        self.raw('<');
        while let Some(c @ ('\t' | '\r' | ' ')) = self.peek() {
            self.next();
            self.raw(c);
        }
    }

    /// What follows a `$`.
    fn variable(&mut self) -> Option<()> {
        self.push('$');
        if self.peek() != Some('{') {
            self.name();
            return Some(());
        }
        self.next();
        self.push('{');
        if matches!(self.peek()?, '{' | '}' | ':') {
            return None;
        }
        self.name();
        let mut operator = self.next()?;
        self.push(operator);
        match operator {
            '}' => return Some(()),
            '/' => {
                if self.peek() == Some('/') {
                    self.next();
                }
                self.open.push(Open::Pattern);
            }
            ':' | '+' | '-' | '?' | '#' | '%' => {
                let colon = operator == ':';
                if colon {
                    operator = self.next()?;
                    self.push(operator);
                }
                let escapes = matches!(operator, '#' | '%');
                if colon && escapes {
                    return None;
                }
                self.open.push(Open::Word { escapes });
            }
            _ => return None,
        }
        self.nested = true;
        Some(())
    }

    fn name(&mut self) {
        let Some(first) = self.peek() else { return };
        let digits = first.is_ascii_digit();
        if !digits && matches!(first, '@' | '*' | '#' | '?' | '-' | '$' | '!') {
            self.next();
            return self.push(first);
        }
        let belongs = |c: char| if digits { c.is_ascii_digit() } else { c.is_alphanumeric() || c == '_' };
        while let Some(c) = self.peek().filter(|c| belongs(*c)) {
            self.next();
            self.push(c);
        }
    }
}

/// The words of the line itself.
#[derive(Debug, Default)]
struct Words {
    done: Vec<ShellWord>,
    text: String,
    start: usize,
    end: usize,
}

impl Words {
    fn add(&mut self, c: char, at: usize) {
        if c.is_whitespace() {
            self.end();
        } else {
            self.raw(c, at);
        }
    }

    fn raw(&mut self, c: char, at: usize) {
        if self.text.is_empty() {
            self.start = at;
        }
        self.text.push(c);
        self.end = at + c.len_utf8();
    }

    fn end(&mut self) {
        if !self.text.is_empty() {
            self.done.push(ShellWord { text: std::mem::take(&mut self.text), start: self.start, end: self.end });
        }
    }

    fn forget(&mut self) {
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: Keep = Keep { quotes: true, escapes: true };
    const BARE: Keep = Keep { quotes: false, escapes: false };

    fn texts(line: &str, keep: Keep) -> Option<Vec<String>> {
        Some(words(line, keep)?.into_iter().map(|w| w.text).collect())
    }

    #[test]
    fn words_are_split_outside_of_quotes() {
        assert_eq!(texts(r#"a "b c" 'd e'f \ g"#, RAW).unwrap(), ["a", r#""b c""#, "'d e'f", r"\ g"]);
        assert_eq!(texts(r#"a "b c" 'd e'f \ g"#, BARE).unwrap(), ["a", "b c", "d ef", " g"]);
        assert_eq!(texts("cat << EOF >x", RAW).unwrap(), ["cat", "<< EOF", ">x"]);
        assert_eq!(texts("a<b 3<<-X", RAW).unwrap(), ["a<b", "3<<-X"]);
        assert_eq!(texts(r#""" ''"#, BARE).unwrap(), Vec::<String>::new());
        assert_eq!(texts("\u{feff}a\u{feff}", RAW).unwrap(), ["a\u{feff}"]);
    }

    #[test]
    fn variables_stay_as_they_are_written() {
        for line in ["$x", "${x}", "$", "$1a", "${x:-y}", "${x#\\*}", "${x:0:3}", "${x/a/b}", "\"${x:-a b}\""] {
            assert_eq!(texts(line, RAW).unwrap(), [line]);
        }
        assert_eq!(texts("${x:-a b}", RAW).unwrap(), ["${x:-a", "b}"]);
        assert_eq!(texts("${x//a/b}", RAW).unwrap(), ["${x/a/b}"]);
        assert_eq!(texts(r"${x:-\}}", RAW).unwrap(), ["${x:-}}"]);
        assert_eq!(texts("lost${x:-y}kept", RAW).unwrap(), ["${x:-y}kept"]);
        assert_eq!(texts("${a:-${b:-${c}}}", RAW).unwrap(), ["${a:-${b:-${c}}}"]);
    }

    #[test]
    fn what_is_not_closed_or_known_gives_nothing() {
        for line in ["a 'b", "a \"b", "${", "${x", "${x:-", "${}", "${{x}}", "${:x}", "${x:#y}", "${x,,}", "${#x}"]
        {
            assert_eq!(texts(line, RAW), None, "{line}");
        }
    }

    #[test]
    fn places_are_those_of_the_line() {
        let line = "é a\\ b \"c d\"";
        let places: Vec<&str> = words(line, RAW).unwrap().iter().map(|w| &line[w.start..w.end]).collect();
        assert_eq!(places, ["é", "a\\ b", "\"c d\""]);
    }

    #[test]
    fn depth_costs_no_recursion() {
        assert_eq!(texts(&"${a:-".repeat(200_000), RAW), None);
        let deep = "${a:-".repeat(100_000) + &"}".repeat(100_000);
        assert_eq!(texts(&deep, RAW).unwrap(), [deep]);
    }
}
