//! What a RUN does: its commands, one by one, with the variables they see.

use super::span::Span;
use super::value::{Text, Value};
use std::collections::BTreeMap;

/// When a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// At build time, always (should all before it succeed).
    Build,
    /// At build time, perhaps: in an arm of `if` or `case`, a loop, behind `||`, in a function.
    BuildMaybe,
    /// When the container starts: CMD, ENTRYPOINT, HEALTHCHECK.
    Start,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Index of its instruction in the document.
    pub instruction: usize,
    /// Where it stands in the file, assignments before it included.
    pub span: Span,
    pub when: When,
    /// The program, and its arguments. Never empty.
    pub words: Vec<Arg>,
    /// Assigned in the same RUN before it, or in front of it; what is exported or in front is seen by the program.
    pub assigned: BTreeMap<String, Assigned>,
    /// The working directory, as far as it is known.
    pub dir: Value,
    /// What it reads from a heredoc: the body's place.
    pub heredoc: Option<Span>,
    /// Where its output goes: `> file`, `| sudo tee file`.
    pub output: Option<Text>,
    /// Taken from a body that could not be parsed.
    pub guessed: bool,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// Without quotes, variables put in.
    pub text: Text,
    pub span: Span,
}

/// A shell variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    pub text: Text,
    /// `NAME=value`, the whole.
    pub span: Span,
    /// The value alone.
    pub value_span: Span,
    /// The program sees it.
    pub exported: bool,
}

impl Command {
    /// The program's name without its folder: `pip` for `/opt/venv/bin/pip`.
    pub fn program(&self) -> Option<&str> {
        let word = self.words.first()?.text.value.known()?;
        Some(word.rsplit('/').next().unwrap_or(word))
    }

    pub fn args(&self) -> &[Arg] {
        self.words.get(1..).unwrap_or_default()
    }
}
