//! What a RUN does: its commands, one by one, with the variables they see.

use std::collections::BTreeMap;

use super::span::Span;
use super::syntax::{Document, Heredoc, Joined, Word};
use super::value::{Scope, Text, Value};

/// One body to be read: that of a RUN, a CMD, an ENTRYPOINT or a HEALTHCHECK.
pub struct Input<'a> {
    /// Index of the instruction in the document.
    pub instruction: usize,
    pub body: Script<'a>,
    /// Variables in force before it.
    pub scope: &'a Scope,
    /// The working directory.
    pub dir: &'a Value,
    pub kind: ShellKind,
    /// When its commands run, unless they stand behind a condition.
    pub when: When,
    pub document: &'a Document,
    /// Those of the instruction.
    pub heredocs: &'a [Heredoc],
}

/// What is written behind the keyword.
#[derive(Debug, Clone, Copy)]
pub enum Script<'a> {
    /// Shell form.
    Text(&'a Joined),
    /// The JSON form: the words of one command.
    Exec(&'a [Word]),
}

/// What reads the shell form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellKind {
    /// sh, bash and their kin.
    Posix,
    /// PowerShell, cmd, python: split into words only.
    Other,
}

/// The commands of a body.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// In the order in which they would run.
    pub commands: Vec<Command>,
    /// Text for a POSIX shell that could not be parsed.
    pub unparsed: Vec<Span>,
}

/// Reads a body. It never fails: what cannot be parsed is split into words.
pub fn commands(_input: &Input<'_>) -> Parsed {
    Parsed::default()
}

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
