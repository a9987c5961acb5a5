//! What a RUN does: its commands, one by one, with the variables they see.

mod budget;
mod build;
mod compound;
mod dir;
mod json;
mod lex;
mod output;
mod param;
mod parse;
mod pattern;
mod plain;
mod scan;
mod simple;
#[cfg(test)]
mod tests;
mod tree;
mod vars;
mod walk;
mod word;
mod wrap;

use std::collections::BTreeMap;

pub use budget::Budget;
pub use dir::{Dir, join as join_path, normal as normal_path};
pub use pattern::Pattern as Glob;
use walk::Walk;

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
    /// One for all bodies of a file.
    pub budget: &'a Budget,
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

impl ShellKind {
    /// By the words of SHELL, or the path behind `#!`: `/bin/bash`, `conda run -n x bash -c`.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        if words.into_iter().any(wrap::is_shell) { Self::Posix } else { Self::Other }
    }
}

/// Reads a body. It never fails: what cannot be parsed is split into words.
pub fn commands(input: &Input<'_>) -> Parsed {
    let mut walk = Walk::new(input);
    match input.body {
        Script::Exec(words) => walk.exec(words),
        Script::Text(text) => match input.heredocs {
            [heredoc] if is_opener(&text.text) => whole_heredoc(&mut walk, heredoc),
            _ if input.kind == ShellKind::Other => walk.other(text),
            [] => walk.script(text),
            heredocs => walk.script(&with_heredocs(input.document, text, heredocs)),
        },
    }
    Parsed { commands: walk.commands, unparsed: walk.unparsed }
}

/// Whether a body is nothing but `<<EOF`, so that the lines behind it are the script.
fn is_opener(text: &str) -> bool {
    let text = text.trim().trim_start_matches(|c: char| c.is_ascii_digit());
    text.is_empty() || text.strip_prefix("<<").is_some_and(|rest| !rest.contains([' ', '\t', '<', '\n']))
}

/// A heredoc that is the whole script, for the shell or for what `#!` names.
fn whole_heredoc(walk: &mut Walk<'_>, heredoc: &Heredoc) {
    let input = walk.input;
    let body = input.document.slice(heredoc.body);
    let source = Joined::at(body, heredoc.body.start);
    let Some(line) = body.strip_prefix("#!").map(|b| b.lines().next().unwrap_or_default()) else {
        if input.kind == ShellKind::Posix {
            walk.script(&source);
        } else {
            walk.other(&source);
        }
        return;
    };
    if ShellKind::of(line.split_whitespace()) == ShellKind::Posix {
        walk.script(&source);
        return;
    }
    let mut at = heredoc.body.start + 2;
    let mut words = Vec::new();
    for word in line.split_inclusive(char::is_whitespace) {
        let text = word.trim();
        let start = at + (word.len() - word.trim_start().len());
        if !text.is_empty() {
            let span = Span::new(start, start + text.len());
            words.push(Arg { text: Text::known(text), partly: None, span });
        }
        at += word.len();
    }
    let place = Span::new(heredoc.body.start, heredoc.body.start + 2 + line.len());
    walk.emit(words, place, Some(heredoc.body), None, &[]);
}

/// The script as the shell gets it: the bodies stand behind the text.
fn with_heredocs(document: &Document, text: &Joined, heredocs: &[Heredoc]) -> Joined {
    let mut all = text.clone();
    for heredoc in heredocs {
        let body = document.slice(heredoc.body);
        all.push("\n", heredoc.body.start);
        all.push(body, heredoc.body.start);
        if !body.is_empty() && !body.ends_with('\n') {
            all.push("\n", heredoc.body.end);
        }
        all.push(&heredoc.name, heredoc.end.map_or(heredoc.body.end, |e| e.start));
    }
    all
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
    /// What is known of it where it is not known: [`HOLE`] stands for where the instruction starts, as in
    /// `/\u{fffc}/src`. None where nothing is.
    pub partly_dir: Option<String>,
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
    /// What is known of it where its value is unknown, with [`HOLE`] for the rest: `torch==\u{fffc}`.
    pub partly: Option<String>,
    pub span: Span,
}

/// Stands for what is not known in [`Arg::partly`].
pub const HOLE: &str = "\u{fffc}";

impl Arg {
    /// The text, or what is known of it; where it may be one of several, the first.
    pub fn known_or_partly(&self) -> &str {
        self.text.value.all().next().or(self.partly.as_deref()).unwrap_or(HOLE)
    }
}

/// A shell variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    pub text: Text,
    /// `NAME=value`, the whole.
    pub span: Span,
    /// The value alone, with the quotes around it.
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

    /// The working directory as one may be compared with another of the same stage: it may hold [`HOLE`].
    pub fn place(&self) -> Option<&str> {
        self.dir.known().or(self.partly_dir.as_deref())
    }

    pub fn args(&self) -> &[Arg] {
        self.words.get(1..).unwrap_or_default()
    }
}
