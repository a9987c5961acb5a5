//! Goes through a script's tree the way the shell would, and notes each command with what it sees.

use std::mem;
use std::ops::Range;

use super::dir::Dirs;
use super::lex::tokens;
use super::parse::parse;
use super::tree::{AndOr, Joint, List, Node, Pipeline, Redirect, RedirectKind};
use super::vars::{Variable, Variables};
use super::word::slice;
use super::{Arg, Command, Input, When, plain};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Joined;
use crate::dockerfile::value::{Text, Value};

/// About what a word and a command take.
const WORD_BYTES: usize = 160;
const COMMAND_BYTES: usize = 400;

/// Scripts inside of scripts: `$(…)`, `bash -c`, `eval`.
const MOST_SCRIPTS: usize = 8;

/// A longer script is not parsed.
const MOST_SCRIPT: usize = 1 << 20;

pub struct Walk<'a> {
    pub input: &'a Input<'a>,
    pub commands: Vec<Command>,
    pub unparsed: Vec<Span>,
    pub variables: Variables,
    pub dirs: Dirs,
    pub when: When,
    pub guessed: bool,
    /// The body is noted as one that was not read in full.
    cut: bool,
    scripts: usize,
}

/// What a branch may have changed.
#[derive(Clone)]
pub struct State {
    variables: Variables,
    dirs: Dirs,
}

impl<'a> Walk<'a> {
    pub fn new(input: &'a Input<'a>) -> Self {
        Self {
            input,
            commands: Vec::new(),
            unparsed: Vec::new(),
            variables: Variables::default(),
            dirs: Dirs::new(input.dir),
            when: input.when,
            guessed: false,
            cut: false,
            scripts: 0,
        }
    }

    /// Takes bytes from what may be used; false when there are none left.
    pub fn spend(&self, bytes: usize) -> bool {
        self.input.budget.spend(bytes)
    }

    /// The same for steps of matching.
    pub fn work(&self, steps: usize) -> bool {
        self.input.budget.work(steps)
    }

    /// One more command, of so many words; false when it is too much.
    pub fn step(&mut self, source: &Joined, words: usize) -> bool {
        let may = self.input.budget.step() && self.spend(COMMAND_BYTES + words * WORD_BYTES);
        if !may && !self.cut {
            self.cut = true;
            self.unparsed.push(source.span(0..source.text.len()));
        }
        may
    }

    /// A whole script of the body.
    pub fn script(&mut self, source: &Joined) {
        if source.text.len() > MOST_SCRIPT {
            self.unparsed.push(source.span(0..source.text.len()));
            let mut end = MOST_SCRIPT;
            while !source.text.is_char_boundary(end) {
                end -= 1;
            }
            self.plain(&slice(source, 0..end));
            return;
        }
        let tokens = tokens(&source.text);
        let (list, error) = parse(&source.text, &tokens);
        if error.is_none() {
            self.list(source, &list);
        } else {
            self.unparsed.push(source.span(0..source.text.len()));
            self.plain(source);
        }
    }

    /// Commands by a plain split into words.
    pub fn plain(&mut self, source: &Joined) {
        let before = mem::replace(&mut self.guessed, true);
        self.list(source, &plain::posix(&source.text));
        self.guessed = before;
    }

    /// The same for a shell that is not POSIX: no variable is put in.
    pub fn other(&mut self, source: &Joined) {
        self.guessed = true;
        for words in plain::other(&source.text) {
            if !self.step(source, words.len()) {
                return;
            }
            let (Some(first), Some(last)) = (words.first(), words.last()) else { continue };
            let place = source.span(first.start..last.end);
            let args = words.iter().map(|w| {
                let text = source.text.get(w.clone()).unwrap_or_default();
                let value = plain::other_text(text).map_or(Value::Unknown, Value::Known);
                let partly = (value == Value::Unknown).then(|| super::HOLE.to_owned());
                Arg { text: Text { value, trail: Vec::new() }, partly, span: source.span(w.clone()) }
            });
            self.emit(args.collect(), place, None, None, &[]);
        }
    }

    /// A script inside of another: what it sets is lost behind it. Gives what it prints, if that is known.
    pub fn nested(&mut self, source: &Joined) -> Option<Text> {
        if self.scripts >= MOST_SCRIPTS || source.text.len() > MOST_SCRIPT {
            self.unparsed.push(source.span(0..source.text.len()));
            return None;
        }
        self.scripts += 1;
        let state = self.save();
        let first = self.commands.len();
        let tokens = tokens(&source.text);
        let (list, error) = parse(&source.text, &tokens);
        let mut output = None;
        if error.is_none() {
            self.list(source, &list);
            let stages = stages(&list);
            let commands = self.commands.get(first..).unwrap_or_default();
            if stages == Some(commands.len()) {
                output = super::output::of(commands);
            }
        } else {
            self.unparsed.push(source.span(0..source.text.len()));
            self.plain(source);
        }
        self.restore(state);
        self.scripts -= 1;
        output
    }

    /// A script whose assignments stay: `eval`.
    pub fn evaluated(&mut self, source: &Joined) {
        if self.scripts < MOST_SCRIPTS {
            self.scripts += 1;
            self.script(source);
            self.scripts -= 1;
        }
    }

    pub fn save(&self) -> State {
        State { variables: self.variables.clone(), dirs: self.dirs.clone() }
    }

    pub fn restore(&mut self, state: State) {
        self.variables = state.variables;
        self.dirs = state.dirs;
    }

    /// Either the present state or another.
    pub fn merge(&mut self, other: &State) {
        let variables = mem::take(&mut self.variables);
        self.variables = variables.merge(&other.variables, self.input.scope);
        self.dirs = self.dirs.or(&other.dirs);
    }

    /// Runs something that may not run at build time.
    pub fn maybe<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.when;
        if self.when == When::Build {
            self.when = When::BuildMaybe;
        }
        let out = run(self);
        self.when = before;
        out
    }

    pub fn list(&mut self, source: &Joined, list: &List) {
        for item in &list.items {
            self.and_or(source, item);
        }
    }

    fn and_or(&mut self, source: &Joined, item: &AndOr) {
        let mut tested = false;
        for (joint, pipeline) in &item.pipelines {
            if *joint == Joint::Or || (*joint == Joint::And && tested) {
                let before = self.save();
                self.maybe(|walk| walk.pipeline(source, pipeline));
                self.merge(&before);
            } else {
                self.pipeline(source, pipeline);
            }
            tested = match joint {
                Joint::First => is_test(source, pipeline),
                Joint::And => tested || is_test(source, pipeline),
                Joint::Or => false,
            };
        }
    }

    fn pipeline(&mut self, source: &Joined, pipeline: &Pipeline) {
        if let [one] = pipeline.stages.as_slice() {
            self.node(source, one);
            return;
        }
        let mut last = self.commands.len()..self.commands.len();
        for stage in &pipeline.stages {
            let state = self.save();
            let first = self.commands.len();
            self.node(source, stage);
            self.restore(state);
            let own = first..self.commands.len();
            if let Some(file) = self.commands.get(own.clone()).and_then(tee) {
                self.outputs(last, &file);
            }
            last = own;
        }
    }

    /// Says where the output of some commands goes.
    fn outputs(&mut self, range: Range<usize>, file: &Text) {
        for command in self.commands.get_mut(range).unwrap_or_default() {
            if command.output.is_none() {
                command.output = Some(file.clone());
            }
        }
    }

    fn node(&mut self, source: &Joined, node: &Node) {
        let words = match node {
            Node::Simple(simple) => simple.words.len() + simple.assignments.len(),
            _ => 0,
        };
        if !self.step(source, words) {
            return;
        }
        match node {
            Node::Simple(simple) => self.simple(source, simple),
            Node::Group(list, redirects) => self.redirected(source, redirects, |walk| walk.list(source, list)),
            Node::Subshell(list, redirects) => {
                let state = self.save();
                self.redirected(source, redirects, |walk| walk.list(source, list));
                self.restore(state);
            }
            Node::If { arms, otherwise } => self.conditional(source, arms, otherwise.as_ref()),
            Node::Loop { condition, body } => {
                self.list(source, condition);
                let before = self.save();
                self.maybe(|walk| walk.list(source, body));
                self.merge(&before);
            }
            Node::For { name, words, body } => self.for_loop(source, name, words.as_deref(), body),
            Node::Case { subject, arms } => {
                self.single(source, subject.clone());
                let rest = arms.iter().any(|a| a.patterns.iter().any(|p| source.text.get(p.clone()) == Some("*")));
                let bodies: Vec<&List> = arms.iter().map(|a| &a.body).collect();
                self.branches(source, &bodies, !rest);
            }
            Node::Function(body) => {
                let before = self.save();
                self.maybe(|walk| walk.node(source, body));
                self.merge(&before);
            }
            Node::Test(range) => self.test(source, range),
            Node::Arithmetic(range) => self.arithmetic(source, range),
        }
    }

    /// The commands of a group that has redirections of its own.
    fn redirected(&mut self, source: &Joined, redirects: &[Redirect], run: impl FnOnce(&mut Self)) {
        let first = self.commands.len();
        run(self);
        for redirect in redirects {
            if redirect.kind == RedirectKind::Output {
                let file = self.single(source, redirect.target.clone()).text;
                self.outputs(first..self.commands.len(), &file);
            }
        }
    }

    /// Notes a command.
    pub fn emit(
        &mut self,
        words: Vec<Arg>,
        place: Span,
        heredoc: Option<Span>,
        output: Option<Text>,
        front: &[(String, Variable)],
    ) {
        if words.is_empty() {
            return;
        }
        let (mut assigned, size) = self.variables.assigned();
        if !self.spend(size) {
            assigned.clear();
        }
        assigned.extend(front.iter().map(|(name, v)| (name.clone(), v.assigned())));
        self.commands.push(Command {
            instruction: self.input.instruction,
            span: place,
            when: self.when,
            words,
            assigned,
            dir: self.dirs.now.value.clone(),
            partly_dir: self.dirs.now.partly.clone(),
            heredoc,
            output,
            guessed: self.guessed,
        });
    }
}

/// A command that only looks, so that what follows depends on it.
fn is_test(source: &Joined, pipeline: &Pipeline) -> bool {
    match pipeline.stages.as_slice() {
        [Node::Test(_) | Node::Arithmetic(_)] => true,
        [Node::Simple(simple)] => {
            let word = simple.words.first().and_then(|w| source.text.get(w.clone()));
            matches!(word, Some("[" | "test"))
        }
        _ => false,
    }
}

/// The number of commands of a script that is one pipeline of simple commands.
fn stages(list: &List) -> Option<usize> {
    let [AndOr { pipelines }] = list.items.as_slice() else { return None };
    let [(_, pipeline)] = pipelines.as_slice() else { return None };
    let simple = |n: &Node| matches!(n, Node::Simple(s) if s.redirects.is_empty() && !s.words.is_empty());
    pipeline.stages.iter().all(simple).then_some(pipeline.stages.len())
}

/// The file that `tee` writes.
fn tee(commands: &[Command]) -> Option<Text> {
    let [command] = commands else { return None };
    if command.program() != Some("tee") {
        return None;
    }
    let file = command.args().iter().find(|a| !a.text.value.known().is_some_and(|t| t.starts_with('-')))?;
    Some(file.text.clone())
}
