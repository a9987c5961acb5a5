//! From a document to its reading: each instruction with what is in force before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::reading::{Base, Inputs, Reading, Stage};
use super::scope::{Bounds, Variables, is_posix, is_proxy, predefined, workdir};
use super::shell::{self, Script, ShellKind, When};
use super::stages::{self, Graph};
use super::syntax::{Body, Document, Instruction, Joined, Keyword};
use super::value::{Scope, Value};

/// Evaluates a file.
pub fn read(document: Document, inputs: &Inputs<'_>) -> Reading {
    let mut reader = Reader::new(&document, inputs);
    let first = document.instructions.iter().take_while(|i| i.keyword != Keyword::From).count();
    let mut state = State {
        variables: Variables::new(true),
        dir: Arc::default(),
        user: Arc::default(),
        shell: ShellKind::Posix,
    };
    reader.predefine(&mut state.variables);
    for (index, instruction) in document.instructions.iter().enumerate().take(first) {
        reader.note(&state);
        if instruction.keyword == Keyword::Arg {
            reader.args(instruction, &mut state.variables, None);
        } else {
            reader.run(index, instruction, &state);
        }
    }
    let globals = state;
    let graph = stages::graph(
        &document,
        &globals.variables.expander(document.escape, &reader.bounds),
        inputs.target.as_deref(),
    );
    let mut ends: Vec<State> = Vec::with_capacity(graph.stages.len());
    for stage in &graph.stages {
        let state = reader.stage(stage, &globals, &ends);
        ends.push(state);
    }
    let Graph { stages, sources, last } = graph;
    let Notes { scopes, closed, dirs, users, shells, commands, unparsed } = reader.notes;
    let ends = ends.iter().map(|s| s.variables.snapshot()).collect();
    Reading { document, stages, last, commands, scopes, ends, closed, dirs, users, shells, sources, unparsed }
}

/// What is in force at a place.
#[derive(Clone)]
struct State {
    variables: Variables,
    dir: Arc<Value>,
    user: Arc<Value>,
    shell: ShellKind,
}

/// What a reading has for each instruction, and the commands.
#[derive(Default)]
struct Notes {
    scopes: Vec<Arc<Scope>>,
    closed: Vec<bool>,
    dirs: Vec<Arc<Value>>,
    users: Vec<Arc<Value>>,
    shells: Vec<ShellKind>,
    commands: Vec<shell::Command>,
    unparsed: Vec<super::span::Span>,
}

struct Reader<'a> {
    document: &'a Document,
    inputs: &'a Inputs<'a>,
    given: BTreeMap<&'a str, &'a Value>,
    bounds: Bounds,
    notes: Notes,
}

impl<'a> Reader<'a> {
    fn new(document: &'a Document, inputs: &'a Inputs<'a>) -> Self {
        let given = inputs.build_args.iter().map(|(name, value)| (name.as_str(), value)).collect();
        Self { document, inputs, given, bounds: Bounds::default(), notes: Notes::default() }
    }

    /// The builder's own ARGs, unless it was told others.
    fn predefine(&mut self, variables: &mut Variables) {
        let last = self.document.instructions.iter().rev().find_map(|i| match &i.body {
            Body::From { alias, .. } => Some(alias.as_ref().map(|a| a.text.to_lowercase())),
            _ => None,
        });
        let target = self.inputs.target.clone().or(last.flatten()).unwrap_or_default();
        for (name, value) in predefined(self.inputs.platform.as_deref(), &target) {
            let given = self.given.get(name);
            let value = given.map_or(value, |v| (*v).clone());
            variables.predefine(name, value, given.is_some(), &mut self.bounds);
        }
    }

    fn args(&mut self, instruction: &Instruction, variables: &mut Variables, globals: Option<&Scope>) {
        if let Body::Pairs(pairs) = &instruction.body {
            for pair in pairs {
                variables.arg(pair, self.document.escape, &self.given, globals, &mut self.bounds);
            }
        }
    }

    /// Keeps what is in force before an instruction.
    fn note(&mut self, state: &State) {
        self.notes.scopes.push(state.variables.snapshot());
        self.notes.closed.push(state.variables.closed());
        self.notes.dirs.push(Arc::clone(&state.dir));
        self.notes.users.push(Arc::clone(&state.user));
        self.notes.shells.push(state.shell);
    }

    /// Reads a stage; what is in force at its end.
    fn stage(&mut self, stage: &Stage, globals: &State, ends: &[State]) -> State {
        self.note(globals);
        let mut state = self.start(stage, ends);
        let shared = globals.variables.snapshot();
        for index in stage.instructions.clone().skip(1) {
            let Some(instruction) = self.document.instructions.get(index) else { break };
            self.note(&state);
            match instruction.keyword {
                Keyword::Arg => self.args(instruction, &mut state.variables, Some(&shared)),
                Keyword::Env => {
                    if let Body::Pairs(pairs) = &instruction.body {
                        state.variables.env(pairs, self.document.escape, &mut self.bounds);
                    }
                }
                Keyword::Workdir | Keyword::User => self.place(instruction, &mut state),
                Keyword::Shell => {
                    if let Body::Exec(words) | Body::Words(words) = &instruction.body {
                        state.shell = if is_posix(words) { ShellKind::Posix } else { ShellKind::Other };
                    }
                }
                _ => self.run(index, instruction, &state),
            }
        }
        state.variables = state.variables.end(&mut self.bounds);
        state
    }

    /// What a stage begins with.
    fn start(&mut self, stage: &Stage, ends: &[State]) -> State {
        let bases: Option<Vec<State>> = match &stage.base {
            Base::Stage(index) => ends.get(*index).map(|s| vec![s.clone()]),
            // One of several stages.
            Base::Image(text) if !stage.maybe.is_empty() && text.value.all().count() == stage.maybe.len() => {
                stage.maybe.iter().map(|index| ends.get(*index).cloned()).collect()
            }
            Base::Image(text) => {
                let images = text.value.all().map(|reference| self.image(reference)).collect::<Vec<_>>();
                (!images.is_empty()).then_some(images)
            }
            Base::Scratch => Some(vec![State {
                variables: Variables::scratch(&mut self.bounds),
                dir: Arc::new(Value::Known("/".to_owned())),
                user: Arc::default(),
                shell: self.default_shell(),
            }]),
            Base::None => None,
        };
        let mut state = self.join(bases.unwrap_or_default());
        for (name, value) in &self.given {
            if is_proxy(name) {
                state.variables.predefine(name, (*value).clone(), true, &mut self.bounds);
            }
        }
        state
    }

    /// What an image brings.
    fn image(&mut self, reference: &str) -> State {
        let env = self.inputs.base_env.map(|env| env(reference)).unwrap_or_default();
        State {
            variables: Variables::image(env, &mut self.bounds),
            dir: Arc::default(),
            user: Arc::default(),
            shell: self.default_shell(),
        }
    }

    /// What holds for all of several.
    fn join(&mut self, mut states: Vec<State>) -> State {
        if states.len() == 1
            && let Some(state) = states.pop()
        {
            return state;
        }
        let all: Vec<Variables> = states.iter().map(|s| s.variables.clone()).collect();
        let value = |of: fn(&State) -> &Value| -> Arc<Value> {
            let mut values = states.iter().map(of);
            let first = values.next().cloned().unwrap_or_default();
            Arc::new(values.fold(first, |all, value| all.or(value)))
        };
        let other = states.iter().any(|s| s.shell == ShellKind::Other);
        State {
            variables: Variables::join(&all, &mut self.bounds),
            dir: value(|s| &s.dir),
            user: value(|s| &s.user),
            shell: if other { ShellKind::Other } else { self.default_shell() },
        }
    }

    /// Windows has no sh; nobody else sets the escape character to a backquote.
    fn default_shell(&self) -> ShellKind {
        let windows = self.document.escape == '`'
            || self.inputs.platform.as_deref().is_some_and(|p| p.to_ascii_lowercase().starts_with("windows"));
        if windows { ShellKind::Other } else { ShellKind::Posix }
    }

    /// WORKDIR and USER.
    fn place(&mut self, instruction: &Instruction, state: &mut State) {
        let (Body::Words(words) | Body::Exec(words)) = &instruction.body else { return };
        let Some(word) = words.first() else { return };
        let text = state.variables.expander(self.document.escape, &self.bounds).word(word);
        if instruction.keyword == Keyword::User {
            state.user = Arc::new(text.value);
        } else {
            state.dir = Arc::new(workdir(&state.dir, &text));
        }
    }

    /// The commands of an instruction that runs something.
    fn run(&mut self, index: usize, instruction: &Instruction, state: &State) {
        let when = match instruction.keyword {
            Keyword::Run => When::Build,
            Keyword::Cmd | Keyword::Entrypoint | Keyword::Healthcheck => When::Start,
            _ => return,
        };
        let nothing = Joined::default();
        let body = match &instruction.body {
            Body::Shell(text) => Script::Text(text),
            Body::Exec(words) => Script::Exec(words),
            Body::Nothing if !instruction.heredocs.is_empty() => Script::Text(&nothing),
            _ => return,
        };
        let scope = state.variables.snapshot();
        let parsed = shell::commands(&shell::Input {
            instruction: index,
            body,
            scope: &scope,
            dir: &state.dir,
            kind: state.shell,
            when,
            document: self.document,
            heredocs: &instruction.heredocs,
            budget: &self.bounds.shell,
        });
        self.notes.commands.extend(parsed.commands);
        self.notes.unparsed.extend(parsed.unparsed);
    }
}

#[cfg(test)]
mod tests;
