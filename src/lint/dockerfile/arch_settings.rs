//! Every place of a file where an architecture variable gets a value, and the builds that take it from there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::catalog::arch_lists::{ArchList, ArchVariable};
use crate::dockerfile::shell::{Assigned, Command, When};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Body, Pair};
use crate::dockerfile::value::{Origin, Trail, Value};

use super::Lint;
use super::ask::origin_span;
use super::builds::{Build, By, Reads};
use crate::model::Maker;

/// Options of one value that are looked at.
const MOST_OPTIONS: usize = 256;

/// How the value is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Env,
    /// The default of an ARG.
    Arg,
    /// In a RUN: `export NAME=value`, or in front of a command.
    Shell,
    /// An option of the command that builds: `-DNAME=value`, `-arch=value`, make's `NAME=value`.
    Option,
}

/// One place where an architecture variable gets a value.
pub struct ArchSetting<'a> {
    pub variable: &'a ArchVariable,
    /// The name that it is set under: the variable's own or an alias.
    pub name: String,
    /// `CMAKE_ARGS` where the value is an option inside of that one's value.
    pub inside: Option<String>,
    pub value: Value,
    pub trail: Vec<Trail>,
    pub how: How,
    /// The words that set it.
    pub span: Span,
    /// Where the value is written out: here, or in the ARG or ENV that it is made of.
    pub place: Place,
    pub instruction: usize,
    /// None: an ARG before the first FROM.
    pub stage: Option<usize>,
    /// Indexes into the builds that were given, of those that see this value, and whether they read it.
    pub readers: Vec<(usize, Reads)>,
}

/// A value as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub span: Span,
    /// The bytes are the value itself, without a variable, a quote or an escape in them.
    pub verbatim: bool,
    /// What stands around it would take a blank or a semicolon: quotes.
    pub quoted: bool,
    /// In an ARG's default: a build argument changes it.
    pub default_of_arg: bool,
}

impl ArchSetting<'_> {
    /// The lists that it may be, all that the value may come to; empty where that is not known.
    pub fn lists(&self) -> Vec<ArchList> {
        self.value.all().map(|v| self.variable.parse(v)).collect()
    }

    pub fn is_read(&self) -> bool {
        self.readers.iter().any(|(_, reads)| *reads != Reads::No)
    }
}

impl<'l> Lint<'l> {
    /// All of them of NVIDIA's variables, in the file's order.
    pub fn arch_settings(&self, builds: &[Build<'l>], maker: Maker) -> Vec<ArchSetting<'l>> {
        let mut out = Vec::new();
        for arg in [false, true] {
            for set in self.sets(arg) {
                // `ARG NAME` alone repeats what is set before.
                if set.pair.value.is_none() {
                    continue;
                }
                let how = if arg { How::Arg } else { How::Env };
                let found = Found { how, span: set.pair.span, instruction: set.instruction, stage: set.stage };
                let span = set.pair.value.as_ref().map_or(set.pair.span, |v| v.span);
                let place = match arg {
                    true => Place { default_of_arg: true, ..self.verbatim(span, set.value) },
                    false => self.place_of(span, set.value, set.trail),
                };
                self.of_text(set.name, set.value, set.trail, place, &found, &mut out);
            }
        }
        // Of one assignment the last command that sees it knows most: behind an `if` it is one of several.
        let mut assigned: BTreeMap<Span, (&'l str, &'l Assigned, &'l Command)> = BTreeMap::new();
        let runs = |c: &&Command| c.when != When::Start && self.built(c.instruction);
        for command in self.reading.commands.iter().filter(runs) {
            for (name, value) in command.assigned.iter().filter(|(_, a)| !a.value_span.is_empty()) {
                assigned.insert(value.span, (name, value, command));
            }
        }
        for (name, assigned, command) in assigned.into_values() {
            let found = Found {
                how: How::Shell,
                span: assigned.span,
                instruction: command.instruction,
                stage: self.reading.stage_of(command.instruction),
            };
            let text = &assigned.text;
            let place = self.place_of(assigned.value_span, &text.value, &text.trail);
            self.of_text(name, &text.value, &text.trail, place, &found, &mut out);
        }
        tell_readers(self, &mut out, builds);
        for (at, build) in builds.iter().enumerate() {
            self.of_options(at, build, &mut out);
        }
        out.retain(|s| s.variable.maker == maker);
        out.sort_by_key(|s| (s.span, s.place));
        out
    }

    /// A variable's value: its own list, or options that hold one.
    fn of_text(
        &self,
        name: &str,
        value: &Value,
        trail: &[Trail],
        place: Place,
        found: &Found,
        out: &mut Vec<ArchSetting<'l>>,
    ) {
        let variables = self.catalog.arch_variables();
        if let Some(variable) = variables.variable(name).filter(|_| !name.starts_with('-')) {
            out.push(found.setting(variable, name, None, value.clone(), trail, place));
            return;
        }
        let Some(text) = value.known() else { return };
        for (option, range) in options(text) {
            let Some(variable) = variables.variable(option) else { continue };
            let Some(inner) = text.get(range.clone()) else { continue };
            let place = place.within(range);
            let value = Value::Known(inner.to_owned());
            out.push(found.setting(variable, option, Some(name.to_owned()), value, trail, place));
        }
    }

    /// What the command that builds is told itself.
    fn of_options(&self, at: usize, build: &Build<'l>, out: &mut Vec<ArchSetting<'l>>) {
        let Some(source) = build.source else { return };
        let mut names: Vec<&str> = source.defines.iter().map(|(n, _)| n.as_str()).collect();
        names.dedup();
        for name in names {
            let Some(variable) = self.catalog.arch_variables().variable(name) else { continue };
            let same: Vec<_> = source.defines.iter().filter(|(n, _)| n == name).map(|(_, s)| s).collect();
            // nvcc adds up what it is told, the others take the last.
            let repeats = build.by == By::Nvcc && same.len() > 1;
            let Some(last) = same.last() else { continue };
            let span = same.iter().fold(last.span, |all, s| all.to(s.span));
            let (value, place) = if repeats {
                let texts: Option<Vec<&str>> = same.iter().map(|s| s.text.value.known()).collect();
                let value = texts.map_or(Value::Unknown, |t| Value::Known(t.join(" ")));
                (value, Place { span, verbatim: false, quoted: false, default_of_arg: false })
            } else {
                (last.text.value.clone(), self.place_of(last.span, &last.text.value, &last.text.trail))
            };
            let found = Found {
                how: How::Option,
                span: if repeats { span } else { last.span },
                instruction: build.command.instruction,
                stage: Some(build.stage),
            };
            if out.iter().any(|s| s.span == found.span && s.name == name) {
                continue;
            }
            let mut setting = found.setting(variable, name, None, value, &last.text.trail, place);
            setting.readers = vec![(at, Reads::Surely)];
            out.push(setting);
        }
    }

    /// Where a value is written out: at a place of its own, or where the variable stands that it is.
    fn place_of(&self, span: Span, value: &Value, trail: &[Trail]) -> Place {
        let own = self.verbatim(span, value);
        if own.verbatim || value.known().is_none() {
            return own;
        }
        let from = |step: &Trail| {
            let (pair, arg) = self.pair(step.origin)?;
            let place = self.verbatim(pair.value.as_ref()?.span, value);
            place.verbatim.then_some(Place { default_of_arg: arg, ..place })
        };
        trail.iter().find_map(from).unwrap_or(own)
    }

    /// The ENV or ARG pair at an origin, and whether it is an ARG's.
    fn pair(&self, origin: Origin) -> Option<(&'l Pair, bool)> {
        let (span, arg) = match origin {
            Origin::Arg(span) => (span, true),
            Origin::Env(span) => (span, false),
            _ => return None,
        };
        let instructions = &self.reading.document.instructions;
        let at = instructions.partition_point(|i| i.span.start <= span.start).checked_sub(1)?;
        let Body::Pairs(pairs) = &instructions.get(at)?.body else { return None };
        pairs.iter().find(|p| p.span == span).map(|p| (p, arg))
    }

    /// A span as a place, without the quotes around it.
    fn verbatim(&self, span: Span, value: &Value) -> Place {
        let document = &self.reading.document;
        let text = document.slice(span);
        let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
        let inner = quote.and_then(|q| text.strip_prefix(q)?.strip_suffix(q)).filter(|t| !t.is_empty());
        let (span, quoted) = match inner {
            Some(inner) => (Span::new(span.start + 1, span.start + 1 + inner.len()), true),
            // `"-DNAME=value"`: the quotes stand around more than the value.
            None => (span, inside_quotes(&document.text, span)),
        };
        let verbatim = value.known().is_some_and(|v| v == document.slice(span));
        Place { span, verbatim, quoted, default_of_arg: false }
    }
}

/// Whether a span stands inside of quotes that open in the same word.
fn inside_quotes(text: &str, span: Span) -> bool {
    let word = text.get(..span.start).unwrap_or_default();
    let start = word.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = word.get(start..).unwrap_or_default();
    ['"', '\''].iter().any(|q| word.matches(*q).count() % 2 == 1)
}

impl Place {
    /// A part of the value.
    pub fn within(self, range: std::ops::Range<usize>) -> Self {
        if !self.verbatim {
            return self;
        }
        Self { span: Span::new(self.span.start + range.start, self.span.start + range.end), ..self }
    }
}

/// What the settings at one place share.
struct Found {
    how: How,
    span: Span,
    instruction: usize,
    stage: Option<usize>,
}

impl Found {
    fn setting<'a>(
        &self,
        variable: &'a ArchVariable,
        name: &str,
        inside: Option<String>,
        value: Value,
        trail: &[Trail],
        place: Place,
    ) -> ArchSetting<'a> {
        ArchSetting {
            variable,
            name: name.to_owned(),
            inside,
            value,
            trail: trail.to_vec(),
            how: self.how,
            span: self.span,
            place,
            instruction: self.instruction,
            stage: self.stage,
            readers: Vec::new(),
        }
    }
}

/// Names and values of the options `-DNAME=value` in a text, `-DNAME:TYPE=value` too.
fn options(text: &str) -> Vec<(&str, std::ops::Range<usize>)> {
    let mut out = Vec::new();
    let mut end = 0;
    for word in text.split(char::is_whitespace) {
        let start = end;
        end += word.len() + text.get(end + word.len()..).and_then(|t| t.chars().next()).map_or(0, char::len_utf8);
        let Some((name, value)) = word.strip_prefix("-D").and_then(|w| w.split_once('=')) else { continue };
        let name = name.split_once(':').map_or(name, |(n, _)| n);
        let value_at = start + word.len() - value.len();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        // A value in quotes may go on behind a blank.
        let rest = text.get(value_at + 1..).unwrap_or_default();
        let range = match quote.and_then(|q| rest.find(q)) {
            Some(length) => value_at + 1..value_at + 1 + length,
            None => value_at..value_at + value.len(),
        };
        out.push((name, range));
        if out.len() == MOST_OPTIONS {
            break;
        }
    }
    out
}

/// The place that gave a program a variable: in its own RUN, else the Dockerfile's.
pub fn giver(lint: &Lint<'_>, command: &Command, name: &str) -> Option<Span> {
    if let Some(assigned) = command.assigned.get(name) {
        // What is in the environment already stays there, under its new value.
        let known = || lint.scope(command.instruction).is_some_and(|s| s.contains_key(name));
        return (assigned.exported || known()).then_some(assigned.span);
    }
    origin_span(lint.scope(command.instruction)?.get(name)?.origin)
}

/// Tells each setting the builds that see it.
fn tell_readers(lint: &Lint<'_>, settings: &mut [ArchSetting<'_>], builds: &[Build<'_>]) {
    let holder = |s: &ArchSetting<'_>| s.inside.clone().unwrap_or_else(|| s.name.clone());
    let mut given: HashMap<(String, Span), Vec<usize>> = HashMap::new();
    for (at, setting) in settings.iter().enumerate() {
        given.entry((holder(setting), setting.span)).or_default().push(at);
    }
    let names: BTreeSet<String> = settings.iter().map(holder).collect();
    for (reader, build) in builds.iter().enumerate() {
        for name in &names {
            let Some(span) = giver(lint, build.command, name) else { continue };
            for at in given.get(&(name.clone(), span)).into_iter().flatten() {
                if let Some(setting) = settings.get_mut(*at) {
                    let reads = reads(setting, name, build);
                    setting.readers.push((reader, reads));
                }
            }
        }
    }
}

/// Whether a build that sees a setting reads it.
fn reads(setting: &ArchSetting<'_>, name: &str, build: &Build<'_>) -> Reads {
    match &setting.inside {
        // CMAKE_ARGS and its like: what is driven by CMake below pip reads them.
        Some(holder) => match build.project {
            Some(project) if project.variables.iter().any(|v| v == holder) => Reads::Surely,
            None if matches!(build.by, By::Pip | By::Setuptools) => Reads::Probably,
            _ => Reads::No,
        },
        // What stands right in front of a build is meant for it.
        None if setting.how == How::Shell && build.command.span.contains(setting.span) => {
            build.reads(setting.variable, name).max(Reads::Probably)
        }
        None => build.reads(setting.variable, name),
    }
}
