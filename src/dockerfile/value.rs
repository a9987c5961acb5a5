//! What a text with variables comes to, as far as a file alone can tell.

use std::collections::BTreeMap;

use super::span::Span;

/// What something comes to in a build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Value {
    Known(String),
    /// One of these, sorted, more than one: platforms, a bake file's targets, both arms of an `if`.
    OneOf(Vec<String>),
    /// Depends on what is not in the file. A rule never makes an error of it.
    #[default]
    Unknown,
}

/// Values kept of a set; beyond it nothing is known.
pub const MOST_VALUES: usize = 32;

impl Value {
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::OneOf(_) | Self::Unknown => None,
        }
    }

    /// All it may be; empty where it is unknown.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let (one, many): (Option<&String>, &[String]) = match self {
            Self::Known(text) => (Some(text), &[]),
            Self::OneOf(texts) => (None, texts),
            Self::Unknown => (None, &[]),
        };
        one.into_iter().chain(many).map(String::as_str)
    }

    /// One of several.
    pub fn one_of(mut texts: Vec<String>) -> Self {
        texts.sort();
        texts.dedup();
        match texts.len() {
            0 => Self::Unknown,
            1 => texts.pop().map_or(Self::Unknown, Self::Known),
            2..=MOST_VALUES => Self::OneOf(texts),
            _ => Self::Unknown,
        }
    }

    /// What it may be where it is one or the other.
    pub fn or(&self, other: &Self) -> Self {
        if *self == Self::Unknown || *other == Self::Unknown {
            return Self::Unknown;
        }
        Self::one_of(self.all().chain(other.all()).map(str::to_owned).collect())
    }
}

/// A text, and the variables that made it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    pub value: Value,
    /// In the order of use, each once.
    pub trail: Vec<Trail>,
}

impl Text {
    pub fn known(text: impl Into<String>) -> Self {
        Self { value: Value::Known(text.into()), trail: Vec::new() }
    }
}

/// A variable that a text was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    pub name: String,
    pub origin: Origin,
}

/// Where a variable has its value from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The default of an ARG: the whole pair.
    Arg(Span),
    Env(Span),
    /// An assignment in a RUN.
    Shell(Span),
    /// `--build-arg`, a bake or compose file.
    Given,
    /// The base image's own.
    Base,
    /// Of the builder: TARGETARCH and the like.
    Predefined,
}

/// A variable in force at some instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub value: Value,
    pub origin: Origin,
    /// ARG only: not in the built image.
    pub arg: bool,
    /// Declared by `ARG name` alone and given by nobody: empty in a build that gives nothing.
    pub unset: bool,
    /// What its value was made of, itself not included.
    pub trail: Vec<Trail>,
}

/// The variables in force at an instruction, by name.
pub type Scope = BTreeMap<String, Variable>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_and_bounded() {
        let set = |texts: &[&str]| Value::one_of(texts.iter().map(|t| (*t).to_owned()).collect());
        assert_eq!(set(&[]), Value::Unknown);
        assert_eq!(set(&["a", "a"]), Value::Known("a".into()));
        assert_eq!(set(&["b", "a", "b"]), Value::OneOf(vec!["a".into(), "b".into()]));
        let many = |n: usize| Value::one_of((0..n).map(|i| i.to_string()).collect());
        assert_eq!(many(MOST_VALUES).all().count(), MOST_VALUES);
        assert_eq!(many(MOST_VALUES + 1), Value::Unknown);
    }

    #[test]
    fn one_or_the_other() {
        let known = |text: &str| Value::Known(text.to_owned());
        assert_eq!(known("a").or(&known("a")), known("a"));
        assert_eq!(known("b").or(&known("a")).all().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(known("a").or(&Value::Unknown), Value::Unknown);
        assert_eq!(Value::Unknown.all().count(), 0);
    }
}
