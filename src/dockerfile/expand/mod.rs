//! Variables put into words, the way BuildKit's lexer does it (`frontend/dockerfile/shell/lex.go`).
//!
//! Values may be sets or unknown: a text is evaluated once for every choice of the sets that it uses, so that
//! one variable has one value in all of the text. Length, nesting and work are bounded.

mod lexer;
mod pattern;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use super::syntax::Word;
use super::value::{Scope, Text, Trail, Value};
use lexer::{Lexer, Seen};

/// Bytes of a value; a longer one is unknown.
pub const MOST_TEXT: usize = 64 * 1024;

/// Choices of values that one text is evaluated for.
const MOST_CHOICES: usize = 256;

/// Variables that a trail names.
const MOST_TRAIL: usize = 16;

/// Work that expansions of one file may do, in characters looked at; when it is spent, all is unknown.
#[derive(Debug)]
pub struct Work(Cell<usize>);

impl Default for Work {
    fn default() -> Self {
        Self(Cell::new(1 << 24))
    }
}

impl Work {
    /// Takes some of it; false when there is not enough.
    pub fn take(&self, amount: usize) -> bool {
        let left = self.0.get().checked_sub(amount);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// Puts the variables of a scope into words.
#[derive(Debug, Clone, Copy)]
pub struct Expander<'a> {
    pub scope: &'a Scope,
    /// A name that the scope has not is set nowhere; else the base image may set it.
    pub closed: bool,
    /// The file's escape character.
    pub escape: char,
    pub work: &'a Work,
}

/// A part of a word that is known only in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Known(String),
    /// A variable that is unknown, or one of several.
    Unknown,
}

/// A text's value under one choice.
type Outcome<'a> = (Option<String>, Vec<&'a str>);

impl<'a> Expander<'a> {
    /// A word as an instruction takes it: without quotes and escapes, variables put in. The words of a JSON form
    /// have no quotes.
    pub fn word(&self, word: &Word) -> Text {
        self.expand(&word.text, !word.literal)
    }

    /// A word in pieces, with what is known of it. A word that is wrong is one unknown piece.
    pub fn partly(&self, word: &Word) -> Vec<Piece> {
        let (mut used, mut sets) = (Vec::new(), Vec::new());
        let mut look = |name: &str| match self.look(name, &[], &mut sets) {
            Seen::Set(name, _) if matches!(self.scope.get(name), Some(v) if v.value.known().is_none()) => {
                Seen::Unknown(Some(name))
            }
            seen => seen,
        };
        let lexer = Lexer::new(&word.text, self.escape, !word.literal, &mut look, &mut used, self.work);
        let Some((text, holes)) = lexer.run_partly() else { return vec![Piece::Unknown] };
        let mut pieces = Vec::new();
        let mut from = 0;
        for at in holes.iter().copied().map(Some).chain([None]) {
            let known = text.get(from..at.unwrap_or(text.len())).unwrap_or_default();
            if !known.is_empty() {
                pieces.push(Piece::Known(known.to_owned()));
            }
            if let Some(at) = at {
                pieces.push(Piece::Unknown);
                from = at;
            }
        }
        pieces
    }

    /// A text that is no word: the body of a heredoc. Quotes stay.
    pub fn body(&self, text: &str) -> Text {
        self.expand(text, false)
    }

    fn expand(&self, text: &str, quotes: bool) -> Text {
        if !text.contains(['$', '\'', '"', self.escape]) {
            let value = if text.len() <= MOST_TEXT { Value::Known(text.to_owned()) } else { Value::Unknown };
            return Text { value, trail: Vec::new() };
        }
        let mut sets = Vec::new();
        let first = self.once(text, quotes, &[], &mut sets);
        if sets.is_empty() {
            let value = first.0.map_or(Value::Unknown, Value::Known);
            return Text { value, trail: self.trail(&first.1) };
        }
        let (value, used) = self.all(text, quotes, &sets);
        Text { value, trail: self.trail(&used) }
    }

    /// The values under every choice of the sets, and all variables used.
    fn all(&self, text: &str, quotes: bool, sets: &[(&'a str, usize)]) -> (Value, Vec<&'a str>) {
        let choices = sets.iter().try_fold(1_usize, |all, (_, n)| all.checked_mul(*n));
        let Some(choices) = choices.filter(|n| *n <= MOST_CHOICES) else {
            return (Value::Unknown, sets.iter().map(|(name, _)| *name).collect());
        };
        let mut values = Vec::with_capacity(choices);
        let mut used: Vec<&str> = Vec::new();
        let mut unknown = false;
        for choice in 0..choices {
            let mut rest = choice;
            let chosen: Vec<(&str, usize)> = sets
                .iter()
                .map(|(name, n)| {
                    let index = rest % n.max(&1);
                    rest /= n.max(&1);
                    (*name, index)
                })
                .collect();
            let (value, names) = self.once(text, quotes, &chosen, &mut Vec::new());
            used.extend(names);
            match value {
                Some(value) => values.push(value),
                None => unknown = true,
            }
        }
        if unknown || values.iter().map(String::len).sum::<usize>() > MOST_TEXT {
            return (Value::Unknown, used);
        }
        (Value::one_of(values), used)
    }

    /// The value under one choice (sets that it has not take their first); `sets` gets those that were met.
    fn once(
        &self,
        text: &str,
        quotes: bool,
        chosen: &[(&'a str, usize)],
        sets: &mut Vec<(&'a str, usize)>,
    ) -> Outcome<'a> {
        let mut used = Vec::new();
        let mut look = |name: &str| self.look(name, chosen, sets);
        let value = Lexer::new(text, self.escape, quotes, &mut look, &mut used, self.work).run();
        (value, used)
    }

    fn look(&self, name: &str, chosen: &[(&'a str, usize)], sets: &mut Vec<(&'a str, usize)>) -> Seen<'a> {
        // `$1`, `$@` and their like are never set in a Dockerfile.
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return Seen::Unset;
        }
        let Some((name, variable)) = self.scope.get_key_value(name) else {
            return if self.closed { Seen::Unset } else { Seen::Unknown(None) };
        };
        match &variable.value {
            Value::Known(text) => Seen::Set(name, text),
            Value::OneOf(texts) => {
                if !sets.iter().any(|(n, _)| n == name) {
                    sets.push((name, texts.len()));
                }
                let index = chosen.iter().find(|(n, _)| n == name).map_or(0, |(_, i)| *i);
                texts.get(index).map_or(Seen::Unknown(Some(name)), |text| Seen::Set(name, text))
            }
            Value::Unknown if variable.unset => Seen::NotGiven(name),
            Value::Unknown => Seen::Unknown(Some(name)),
        }
    }

    /// The variables, each followed by those that its own value was made of.
    fn trail(&self, used: &[&str]) -> Vec<Trail> {
        let mut trail: Vec<Trail> = Vec::new();
        for name in used {
            let Some(variable) = self.scope.get(*name) else { continue };
            let own = Trail { name: (*name).to_owned(), origin: variable.origin };
            for step in std::iter::once(&own).chain(&variable.trail) {
                if trail.len() < MOST_TRAIL && !trail.contains(step) {
                    trail.push(step.clone());
                }
            }
        }
        trail
    }
}
