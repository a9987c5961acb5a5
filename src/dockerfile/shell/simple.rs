//! Simple commands: assignments, builtins that change what follows, scripts inside, and all others.

use std::ops::Range;

use super::parse::is_assignment;
use super::scan::is_name;
use super::tree::{RedirectKind, Simple};
use super::vars::{Found, Variable};
use super::walk::Walk;
use super::word::{slice, unquoted};
use super::wrap::{self, ShellScript};
use super::{Arg, json};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Joined, Word};
use crate::dockerfile::value::{Text, Value};

/// Wrappers around one command that are looked through.
const MOST_WRAPPERS: usize = 16;

/// A command's words as they were written.
enum Written<'s> {
    Script(&'s Joined, &'s [Range<usize>]),
    Exec(&'s [Option<Joined>]),
}

impl Written<'_> {
    /// A word without quotes, as a script of its own; none where its places in the file are not clear.
    fn script(&self, index: usize) -> Option<Joined> {
        match self {
            Self::Script(source, words) => words.get(index).map(|w| unquoted(source, w.clone())),
            Self::Exec(words) => words.get(index).cloned().flatten(),
        }
    }
}

/// A command with all its words evaluated.
struct Evaluated<'s> {
    written: Written<'s>,
    args: Vec<Arg>,
    /// For each of `args`, the word that it came from.
    origins: Vec<usize>,
    span: Span,
    /// The body, and its text.
    heredoc: Option<(Span, Joined)>,
    output: Option<Text>,
    /// The number of commands before its words were evaluated.
    first: usize,
}

impl Walk<'_> {
    /// A simple command of a script.
    pub fn simple(&mut self, source: &Joined, simple: &Simple) {
        let first = self.commands.len();
        let (mut heredoc, mut output) = (None, None);
        for redirect in &simple.redirects {
            let target = redirect.target.clone();
            match redirect.kind {
                RedirectKind::Heredoc => heredoc = Some((source.span(target.clone()), slice(source, target))),
                RedirectKind::Output => output = Some(self.single(source, target).text),
                RedirectKind::Other => {
                    self.single(source, target);
                }
            }
        }
        let before = (!simple.words.is_empty() && !simple.assignments.is_empty()).then(|| self.variables.clone());
        let mut front = Vec::new();
        for range in &simple.assignments {
            if let Some((name, variable)) = self.assign(source, range.clone(), before.is_some()) {
                self.variables.set(&name, variable.clone());
                front.push((name, variable));
            }
        }
        let Some(word) = simple.words.first() else { return };
        if let Some(before) = before {
            self.variables = before;
        }
        let declares =
            matches!(source.text.get(word.clone()), Some("export" | "declare" | "typeset" | "local" | "readonly"));
        let (mut args, mut origins) = (Vec::new(), Vec::new());
        for (index, range) in simple.words.iter().enumerate() {
            let assignment = declares && source.text.get(range.clone()).is_some_and(is_assignment);
            let words = if assignment {
                let field = self.single(source, range.clone());
                vec![Arg { text: field.text, partly: field.partly, span: source.span(range.clone()) }]
            } else {
                self.word(source, range.clone())
            };
            origins.extend(words.iter().map(|_| index));
            args.extend(words);
        }
        let span = source.span(simple.range.clone());
        let written = Written::Script(source, &simple.words);
        self.run(Evaluated { written, args, origins, span, heredoc, output, first }, front);
    }

    /// A command in JSON form.
    pub fn exec(&mut self, words: &[Word]) {
        let (Some(start), Some(end)) = (words.first(), words.last()) else { return };
        let document = self.input.document;
        let scripts: Vec<Option<Joined>> = words.iter().map(|w| json::unescaped(document, w)).collect();
        let args = words.iter().map(|w| Arg { text: Text::known(&*w.text), partly: None, span: w.span }).collect();
        let evaluated = Evaluated {
            written: Written::Exec(&scripts),
            args,
            origins: (0..words.len()).collect(),
            span: start.span.to(end.span),
            heredoc: None,
            output: None,
            first: 0,
        };
        self.run(evaluated, Vec::new());
    }

    fn run(&mut self, mut command: Evaluated<'_>, mut front: Vec<(String, Variable)>) {
        let mut more = false;
        for _ in 0..MOST_WRAPPERS {
            let Some(inner) = wrap::strip(&command.args) else { break };
            for index in inner.assignments {
                front.extend(self.assignment_word(&command, index));
            }
            if inner.also {
                self.note(&command, &front);
            }
            more |= inner.more;
            command.args.drain(..inner.skip);
            command.origins.drain(..inner.skip);
        }
        if self.inner_script(&command, &front) {
            return;
        }
        self.builtin(&command);
        if more {
            let span = Span::new(command.span.end, command.span.end);
            command.args.push(Arg { text: Text::default(), partly: Some(super::HOLE.to_owned()), span });
        }
        self.note(&command, &front);
    }

    fn note(&mut self, command: &Evaluated<'_>, front: &[(String, Variable)]) {
        let heredoc = command.heredoc.as_ref().map(|(span, _)| *span);
        self.emit(command.args.clone(), command.span, heredoc, command.output.clone(), front);
    }

    /// `NAME=value` among the words of `env` or `export`.
    fn assignment_word(&mut self, command: &Evaluated<'_>, index: usize) -> Option<(String, Variable)> {
        let origin = *command.origins.get(index)?;
        if let Written::Script(source, words) = &command.written {
            let range = words.get(origin)?;
            if source.text.get(range.clone()).is_some_and(is_assignment) {
                return self.assign(source, range.clone(), true);
            }
        }
        let arg = command.args.get(index)?;
        let (name, _) = arg.known_or_partly().split_once('=')?;
        let value = super::word::map_values(&arg.text.value, |v| Some(v.get(name.len() + 1..)?.to_owned()));
        let text = Text { value, trail: arg.text.trail.clone() };
        let variable =
            Variable { text, span: arg.span, value_span: arg.span, exported: true, items: None, gone: false };
        is_name(name.as_bytes()).then(|| (name.to_owned(), variable))
    }

    /// Reads the script that `bash -c`, `eval` or a heredoc brings; false where there is none.
    fn inner_script(&mut self, command: &Evaluated<'_>, front: &[(String, Variable)]) -> bool {
        let origin = |index: usize| command.origins.get(index).copied().unwrap_or_default();
        if command.args.first().and_then(|a| a.text.value.known()) == Some("eval") && command.args.len() > 1 {
            let mut script = Joined::default();
            let mut last = None;
            for index in 1..command.args.len() {
                if last.replace(origin(index)) == Some(origin(index)) {
                    continue;
                }
                let Some(part) = command.written.script(origin(index)) else { return false };
                // The blank between two words has a place in the file, one behind the last may have none.
                if !script.text.is_empty() {
                    script.text.push(' ');
                }
                let base = script.text.len();
                script.pieces.extend(part.pieces.iter().map(|(at, file)| (base + at, *file)));
                script.text.push_str(&part.text);
            }
            self.commands.truncate(command.first);
            self.evaluated(&script);
            return true;
        }
        let script = match wrap::shell_script(&command.args) {
            Some(ShellScript::Word(index)) => {
                let Some(script) = command.written.script(origin(index)) else { return false };
                self.commands.truncate(command.first);
                script
            }
            Some(ShellScript::Input) => match &command.heredoc {
                Some((_, body)) => body.clone(),
                None => return false,
            },
            _ => return false,
        };
        let before = self.variables.clone();
        for (name, variable) in front {
            self.variables.set(name, variable.clone());
        }
        self.nested(&script);
        self.variables = before;
        true
    }

    /// What a builtin changes for the commands behind it.
    fn builtin(&mut self, command: &Evaluated<'_>) {
        let Some(name) = command.args.first().and_then(|a| a.text.value.known()) else { return };
        let name = name.to_owned();
        let args = command.args.get(1..).unwrap_or_default();
        match name.as_str() {
            "cd" => {
                let target = args.iter().find(|a| !matches!(a.text.value.known(), Some("-P" | "-L" | "--")));
                let path = target.map_or_else(|| self.home(), |arg| arg.text.value.clone());
                self.dirs.change(&path);
            }
            "pushd" => self.dirs.push(args.first().map_or(&Value::Unknown, |arg| &arg.text.value)),
            "popd" => self.dirs.pop(),
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(&name, command),
            "unset" => {
                for arg in args {
                    if let Some(name) = arg.text.value.known().filter(|n| is_name(n.as_bytes())) {
                        let text = Text::known("");
                        let (span, exported) = (arg.span, false);
                        let gone = Variable { text, span, value_span: span, exported, items: None, gone: true };
                        self.variables.set(name, gone);
                    }
                }
            }
            "read" | "mapfile" | "readarray" | "getopts" | "printf" => {
                let names = if name == "printf" {
                    let at = args.iter().position(|a| a.text.value.known() == Some("-v"));
                    at.and_then(|at| args.get(at + 1..at + 2)).unwrap_or_default()
                } else {
                    args
                };
                for arg in names {
                    if let Some(name) = arg.text.value.known().filter(|n| is_name(n.as_bytes())) {
                        self.variables.forget(name, arg.span);
                    }
                }
            }
            _ => {}
        }
    }

    fn declare(&mut self, program: &str, command: &Evaluated<'_>) {
        let options = |a: &Arg| a.text.value.known().is_some_and(|t| t.starts_with('-'));
        let flags: String = command.args.iter().skip(1).filter(|a| options(a)).map(Arg::known_or_partly).collect();
        let exported = program == "export" || flags.contains('x');
        for index in 1..command.args.len() {
            let Some(arg) = command.args.get(index) else { return };
            if let Some(name) = arg.text.value.known().filter(|n| is_name(n.as_bytes())) {
                if exported {
                    self.variables.export(name);
                }
            } else if let Some((name, mut variable)) = self.assignment_word(command, index) {
                variable.exported = exported || self.variables.get(&name).is_some_and(|v| v.exported);
                self.variables.set(&name, variable);
            }
        }
    }

    fn home(&self) -> Value {
        match self.variables.find("HOME", self.input.scope) {
            Found::Set(text) => text.value,
            _ => Value::Unknown,
        }
    }
}
