//! One pass over a text: quotes, escapes, `$name` and `${name…}`.

use super::pattern::Pattern;
use super::{MOST_TEXT, Work};

/// `${a:-${b:-…}}`: levels that are followed.
const MOST_NESTED: usize = 32;

/// What a variable is, under one choice of values.
#[derive(Debug, Clone, Copy)]
pub enum Seen<'a> {
    /// Its name as the scope has it, and its value.
    Set(&'a str, &'a str),
    /// Surely not set: empty.
    Unset,
    /// An ARG that nobody gave a value: not set in a build that gives nothing.
    NotGiven(&'a str),
    Unknown(Option<&'a str>),
}

impl<'a> Seen<'a> {
    fn name(self) -> Option<&'a str> {
        match self {
            Self::Set(name, _) | Self::NotGiven(name) => Some(name),
            Self::Unknown(name) => name,
            Self::Unset => None,
        }
    }
}

/// The build would fail, or a bound was reached.
pub struct Bad;

/// A part's text; none where it is unknown.
type Part = Result<Option<String>, Bad>;

pub struct Lexer<'l, 'a> {
    rest: std::iter::Peekable<std::str::Chars<'l>>,
    escape: char,
    /// Quotes are taken away.
    quotes: bool,
    /// Escape characters stay: in patterns.
    raw: bool,
    depth: usize,
    look: &'l mut dyn FnMut(&str) -> Seen<'a>,
    /// Names that went into the text.
    used: &'l mut Vec<&'a str>,
    work: &'l Work,
}

impl<'l, 'a> Lexer<'l, 'a> {
    pub fn new(
        text: &'l str,
        escape: char,
        quotes: bool,
        look: &'l mut dyn FnMut(&str) -> Seen<'a>,
        used: &'l mut Vec<&'a str>,
        work: &'l Work,
    ) -> Self {
        Self { rest: text.chars().peekable(), escape, quotes, raw: false, depth: 0, look, used, work }
    }

    /// The text; none where it is unknown or wrong.
    pub fn run(mut self) -> Option<String> {
        self.parts(None).ok()?.done()
    }

    /// The known text, and where in it what is unknown would stand; none where it is wrong.
    pub fn run_partly(mut self) -> Option<(String, Vec<usize>)> {
        self.parts(None).ok().map(|out| (out.text, out.holes))
    }

    /// Up to a character (which is taken), or to the end.
    fn until(&mut self, stop: Option<char>, raw: bool) -> Part {
        let before = std::mem::replace(&mut self.raw, raw);
        let result = self.parts(stop);
        self.raw = before;
        result.map(Output::done)
    }

    fn parts(&mut self, stop: Option<char>) -> Result<Output, Bad> {
        let mut out = Output::default();
        while let Some(c) = self.rest.peek().copied() {
            if Some(c) == stop {
                self.next()?;
                return Ok(out);
            }
            match c {
                '$' => out.part(self.dollar()?)?,
                '\'' if self.quotes => self.single(&mut out)?,
                '"' if self.quotes => self.double(&mut out)?,
                _ => {
                    self.next()?;
                    if c != self.escape {
                        out.push(c)?;
                        continue;
                    }
                    if self.raw {
                        out.push(c)?;
                    }
                    // At the end it escapes nothing and is dropped.
                    if let Some(escaped) = self.next()? {
                        out.push(escaped)?;
                    }
                }
            }
        }
        if stop.is_some() { Err(Bad) } else { Ok(out) }
    }

    /// `'…'`: nothing is special in it.
    fn single(&mut self, out: &mut Output) -> Result<(), Bad> {
        self.next()?;
        loop {
            match self.next()?.ok_or(Bad)? {
                '\'' => return Ok(()),
                c => out.push(c)?,
            }
        }
    }

    /// `"…"`: the escape character works on `"`, `$` and itself.
    fn double(&mut self, out: &mut Output) -> Result<(), Bad> {
        self.next()?;
        loop {
            match self.rest.peek().copied().ok_or(Bad)? {
                '"' => {
                    self.next()?;
                    return Ok(());
                }
                '$' => out.part(self.dollar()?)?,
                c if c == self.escape => {
                    self.next()?;
                    if self.raw {
                        out.push(c)?;
                    }
                    match self.rest.peek().copied() {
                        None => return Err(Bad),
                        Some(escaped) if escaped == '"' || escaped == '$' || escaped == self.escape => {
                            self.next()?;
                            out.push(escaped)?;
                        }
                        Some(_) => out.push(c)?,
                    }
                }
                c => {
                    self.next()?;
                    out.push(c)?;
                }
            }
        }
    }

    fn dollar(&mut self) -> Part {
        self.next()?;
        if self.rest.peek() != Some(&'{') {
            let name = self.name()?;
            if name.is_empty() {
                return Ok(Some("$".to_owned()));
            }
            let seen = self.look(&name);
            return Ok(plain(seen));
        }
        self.next()?;
        if matches!(self.rest.peek(), None | Some('{' | '}' | ':')) {
            return Err(Bad);
        }
        if self.depth >= MOST_NESTED {
            return Err(Bad);
        }
        self.depth += 1;
        let part = self.braces();
        self.depth -= 1;
        part
    }

    /// Behind `${`.
    fn braces(&mut self) -> Part {
        let name = self.name()?;
        let seen = self.look(&name);
        match self.next()?.ok_or(Bad)? {
            '}' => Ok(plain(seen)),
            ':' => {
                let modifier = self.next()?.ok_or(Bad)?;
                if matches!(modifier, '-' | '+' | '?') { self.choose(seen, modifier, true) } else { Err(Bad) }
            }
            modifier @ ('-' | '+' | '?') => self.choose(seen, modifier, false),
            modifier @ ('#' | '%') => self.trim(seen, modifier),
            '/' => self.replace(seen),
            _ => Err(Bad),
        }
    }

    /// `${x-word}`, `${x+word}`, `${x?word}`, and with a colon, for which empty is as good as unset.
    fn choose(&mut self, seen: Seen<'a>, modifier: char, colon: bool) -> Part {
        let mark = self.used.len();
        let word = self.until(Some('}'), false)?;
        let set = match seen {
            Seen::Set(_, text) => !(colon && text.is_empty()),
            Seen::Unset | Seen::NotGiven(_) => false,
            Seen::Unknown(_) => return Ok(None),
        };
        let word_counts = matches!((modifier, set), ('-', false) | ('+', true));
        if !word_counts {
            self.used.truncate(mark);
        }
        match (modifier, set) {
            ('-', true) | ('?', true) => Ok(plain(seen)),
            ('-', false) | ('+', true) => Ok(word),
            ('+', false) => Ok(Some(String::new())),
            // The build stops unless the value is given.
            _ if matches!(seen, Seen::NotGiven(_)) => Ok(None),
            _ => Err(Bad),
        }
    }

    /// `${x#p}`, `${x##p}`, `${x%p}`, `${x%%p}`.
    fn trim(&mut self, seen: Seen<'a>, end: char) -> Part {
        let (Some(word), Some(text)) = (self.until(Some('}'), true)?, plain(seen)) else { return Ok(None) };
        let (longest, word) = match word.strip_prefix(end) {
            Some(word) => (true, word),
            None => (false, word.as_str()),
        };
        let pattern = Pattern::parse(word).ok_or(Bad)?;
        let text: Vec<char> = text.chars().collect();
        let trimmed = if end == '#' {
            pattern.trim_start(text, longest, self.work)
        } else {
            pattern.trim_end(text, longest, self.work)
        };
        trimmed.map(Some).ok_or(Bad)
    }

    /// `${x/p/r}`, `${x//p/r}`.
    fn replace(&mut self, seen: Seen<'a>) -> Part {
        let all = self.rest.next_if_eq(&'/').is_some();
        let pattern = self.until(Some('/'), true)?;
        let by = self.until(Some('}'), true)?;
        let (Some(pattern), Some(by), Some(text)) = (pattern, by, plain(seen)) else { return Ok(None) };
        // BuildKit takes `$` in it for a group of its regular expression; nobody means that.
        if all && by.contains('$') {
            return Ok(None);
        }
        let pattern = Pattern::parse(&pattern).ok_or(Bad)?;
        let text: Vec<char> = text.chars().collect();
        pattern.replace(&text, &by, all, self.work).map(Some).ok_or(Bad)
    }

    /// A variable's name; a number or one special character is one too.
    fn name(&mut self) -> Result<String, Bad> {
        let mut name = String::new();
        let Some(first) = self.rest.peek().copied() else { return Ok(name) };
        if matches!(first, '@' | '*' | '#' | '?' | '-' | '$' | '!') {
            name.extend(self.next()?);
            return Ok(name);
        }
        let number = first.is_numeric();
        while let Some(c) = self.rest.peek().copied() {
            let belongs = if number { c.is_numeric() } else { c.is_alphanumeric() || c == '_' };
            if !belongs {
                break;
            }
            name.extend(self.next()?);
        }
        Ok(name)
    }

    fn look(&mut self, name: &str) -> Seen<'a> {
        let seen = (self.look)(name);
        self.used.extend(seen.name());
        seen
    }

    fn next(&mut self) -> Result<Option<char>, Bad> {
        if !self.work.take(1) {
            return Err(Bad);
        }
        Ok(self.rest.next())
    }
}

/// `$x`.
fn plain(seen: Seen<'_>) -> Option<String> {
    match seen {
        Seen::Set(_, text) => Some(text.to_owned()),
        Seen::Unset => Some(String::new()),
        Seen::NotGiven(_) | Seen::Unknown(_) => None,
    }
}

/// What has been put together.
#[derive(Default)]
struct Output {
    text: String,
    /// Where something unknown stands.
    holes: Vec<usize>,
}

impl Output {
    fn push(&mut self, c: char) -> Result<(), Bad> {
        self.text.push(c);
        self.bounded()
    }

    fn part(&mut self, part: Option<String>) -> Result<(), Bad> {
        match part {
            Some(part) => self.text.push_str(&part),
            None => self.holes.push(self.text.len()),
        }
        self.bounded()
    }

    fn bounded(&self) -> Result<(), Bad> {
        if self.text.len() <= MOST_TEXT { Ok(()) } else { Err(Bad) }
    }

    fn done(self) -> Option<String> {
        self.holes.is_empty().then_some(self.text)
    }
}
