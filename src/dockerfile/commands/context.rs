//! Files that commands name, looked up in the build context through COPY, ADD, mounts and what commands wrote.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::Files;
use crate::dockerfile::reading::{Base, Reading};
use crate::dockerfile::shell::{Command, Dir, Glob, HOLE, join_path, normal_path};
use crate::dockerfile::syntax::{Body, Instruction, Keyword};
use crate::dockerfile::value::Value;

/// Files looked for on behalf of one Dockerfile.
const MOST_LOOKUPS: usize = 512;

/// Instructions looked at for all of them.
const MOST_COPIES: usize = 200_000;

/// Stages that a file is followed through.
const MOST_STAGES: usize = 8;

/// Bytes of a file that is taken apart.
const MOST_BYTES: usize = 16 << 20;

/// What is known of a file.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// Its bytes, and how the Dockerfile's people know it: its path in the context.
    Found(Rc<Found>),
    /// Not in the context, or not to be read.
    Missing,
}

#[derive(Debug)]
pub struct Found {
    pub path: String,
    pub bytes: Vec<u8>,
}

pub struct Context<'a> {
    reading: &'a Reading,
    files: &'a dyn Files,
    /// Folders that are not the context's, with the command that made them: clones.
    foreign: Vec<(usize, String)>,
    lookups: Cell<usize>,
    copies: Cell<usize>,
    read: RefCell<BTreeMap<String, Option<Rc<Found>>>>,
}

impl<'a> Context<'a> {
    pub fn new(reading: &'a Reading, files: &'a dyn Files, foreign: Vec<(usize, String)>) -> Self {
        Self { reading, files, foreign, lookups: Cell::new(0), copies: Cell::new(0), read: RefCell::default() }
    }

    /// A file by the path that a command gives. Where nothing says how it came into the image, the context's file
    /// of the same path or name is taken.
    pub fn find(&self, index: usize, command: &Command, path: &str) -> Lookup {
        match self.find_copied(index, command, path) {
            Some(found) => found,
            None if self.moved(command) => Lookup::Missing,
            None => {
                let relative = normal_path(path.trim_start_matches('/'));
                let name = relative.rsplit('/').next().unwrap_or(&relative).to_owned();
                let guesses = [relative.clone(), name];
                guesses.iter().find_map(|g| self.get(g)).map_or(Lookup::Missing, Lookup::Found)
            }
        }
    }

    /// Whether a command has changed its directory: what is there may be an archive's.
    fn moved(&self, command: &Command) -> bool {
        let start = self.reading.dirs.get(command.instruction).map(|d| Dir::start(d));
        start.is_none_or(|s| s.value != command.dir || s.partly != command.partly_dir)
    }

    /// The same where the Dockerfile says how it came into the image; none where it does not.
    pub fn find_copied(&self, index: usize, command: &Command, path: &str) -> Option<Lookup> {
        if self.lookups.get() >= MOST_LOOKUPS || path.contains(HOLE) || path.contains("://") {
            return Some(Lookup::Missing);
        }
        self.lookups.set(self.lookups.get() + 1);
        let Some(absolute) = Self::absolute(command, path) else { return Some(Lookup::Missing) };
        if self.foreign.iter().any(|(at, dir)| *at < index && under(&absolute, dir).is_some()) {
            return Some(Lookup::Missing);
        }
        if let Some(written) = self.written(index, command, &absolute) {
            return Some(written);
        }
        let instruction = command.instruction;
        if let Some(from) = self.mounted(instruction, &absolute) {
            return Some(self.get(&from).map_or(Lookup::Missing, Lookup::Found));
        }
        let stage = self.reading.stage_of(instruction)?;
        self.copied(stage, instruction, &absolute, 0).into_iter().find_map(|from| match from {
            Source::Context(from) => self.get(&from).map(Lookup::Found),
            Source::Inline(bytes) => Some(Lookup::Found(Rc::new(Found { path: path.to_owned(), bytes }))),
        })
    }

    /// A file beside another of the context.
    pub fn beside(&self, file: &str, path: &str) -> Lookup {
        if self.lookups.get() >= MOST_LOOKUPS
            || path.contains(HOLE)
            || path.contains("://")
            || path.starts_with('/')
        {
            return Lookup::Missing;
        }
        self.lookups.set(self.lookups.get() + 1);
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.get(&normal_path(&format!("{folder}/{path}"))).map_or(Lookup::Missing, Lookup::Found)
    }

    fn get(&self, path: &str) -> Option<Rc<Found>> {
        if let Some(known) = self.read.borrow().get(path) {
            return known.clone();
        }
        let bytes = self.files.read(path.trim_start_matches('/')).and_then(Result::ok);
        let found = bytes
            .filter(|b| b.len() <= MOST_BYTES)
            .map(|bytes| Rc::new(Found { path: path.trim_start_matches('/').to_owned(), bytes }));
        self.read.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    /// A path from the root; a base image's own working directory stands as [`HOLE`].
    fn absolute(command: &Command, path: &str) -> Option<String> {
        if path.starts_with('/') {
            return Some(normal_path(path));
        }
        let dir = command.place().filter(|_| !path.starts_with('~'))?;
        Some(normal_path(&format!("{dir}/{path}")))
    }

    /// What an earlier command wrote there, with `cat <<EOF > file` or `echo … > file`.
    fn written(&self, index: usize, command: &Command, absolute: &str) -> Option<Lookup> {
        let stage = self.reading.stage_of(command.instruction);
        let before = self.reading.commands.get(..index)?;
        let writer = before.iter().rev().take(MOST_LOOKUPS).find(|c| {
            let output = c.output.as_ref().and_then(|o| o.value.known());
            output.and_then(|o| Self::absolute(c, o)).as_deref() == Some(absolute)
                && self.reading.stage_of(c.instruction) == stage
        })?;
        let document = &self.reading.document;
        let bytes = match (writer.program(), writer.heredoc) {
            (Some("cat"), Some(body)) => document.slice(body).as_bytes().to_vec(),
            (Some("echo" | "printf"), _) => {
                let words: Option<Vec<&str>> = writer.args().iter().map(|a| a.text.value.known()).collect();
                let text = words?.join(" ").replace("\\n", "\n");
                text.trim_start_matches("-e ").as_bytes().to_vec()
            }
            _ => return Some(Lookup::Missing),
        };
        Some(Lookup::Found(Rc::new(Found { path: absolute.to_owned(), bytes })))
    }

    /// Through `RUN --mount=type=bind`.
    fn mounted(&self, instruction: usize, absolute: &str) -> Option<String> {
        let own = self.reading.instruction(instruction)?;
        for flag in own.flags.iter().filter(|f| f.name == "mount") {
            let text = &flag.value.as_ref()?.text;
            let get = |keys: &[&str]| {
                text.split(',').filter_map(|p| p.split_once('=')).find(|(k, _)| keys.contains(k)).map(|(_, v)| v)
            };
            if get(&["type"]).is_some_and(|t| t != "bind") || get(&["from"]).is_some() {
                continue;
            }
            let Some(target) = get(&["target", "dst", "destination"]) else { continue };
            let Some(target) = self.in_image(instruction, target) else { continue };
            if let Some(rest) = under(absolute, &target) {
                let source = get(&["source", "src"]).unwrap_or("");
                return Some(normal_path(&format!("{}{rest}", source.trim_start_matches('/'))));
            }
        }
        None
    }

    /// A path of the image, from the root.
    fn in_image(&self, instruction: usize, path: &str) -> Option<String> {
        let dir = self.reading.dirs.get(instruction)?;
        match (&**dir, path.starts_with('/')) {
            (_, true) => Some(normal_path(path)),
            (Value::Unknown, false) => Some(normal_path(&format!("/{HOLE}/{path}"))),
            (dir, false) => join_path(dir, &Value::Known(path.to_owned())).known().map(str::to_owned),
        }
    }

    /// Where a file of a stage comes from, the last COPY first.
    fn copied(&self, stage: usize, before: usize, absolute: &str, depth: usize) -> Vec<Source> {
        let mut out = Vec::new();
        let Some(own) = self.reading.stages.get(stage).filter(|_| depth < MOST_STAGES) else { return out };
        for index in own.instructions.clone().rev().filter(|i| *i < before) {
            let Some(instruction) = self.reading.instruction(index) else { continue };
            if !matches!(instruction.keyword, Keyword::Copy | Keyword::Add) {
                continue;
            }
            self.copies.set(self.copies.get() + 1);
            if self.copies.get() > MOST_COPIES {
                break;
            }
            for from in self.copy(index, instruction, absolute) {
                let Some(flag) = instruction.flag("from") else {
                    out.push(from);
                    continue;
                };
                let source = self.reading.sources.iter().find(|s| s.instruction == index);
                let stage = source.and_then(|s| match s.from {
                    Base::Stage(stage) => Some(stage),
                    _ => None,
                });
                if let (Some(stage), Source::Context(path), Some(_)) = (stage, from, &flag.value) {
                    out.extend(self.copied(stage, usize::MAX, &normal_path(&format!("/{path}")), depth + 1));
                }
            }
            // One COPY that gives the file is enough; folders may hold it or not.
            if out.len() >= MOST_STAGES {
                break;
            }
        }
        if let Base::Stage(parent) = own.base {
            out.extend(self.copied(parent, usize::MAX, absolute, depth + 1));
        }
        out
    }

    /// What one COPY puts at a path.
    fn copy(&self, index: usize, instruction: &Instruction, absolute: &str) -> Vec<Source> {
        let Body::Words(words) = &instruction.body else { return Vec::new() };
        let Some((target, sources)) = words.split_last() else { return Vec::new() };
        let target = self.reading.expand(index, target);
        let Some(target) = target.value.known() else { return Vec::new() };
        let Some(folder) = self.in_image(index, target) else { return Vec::new() };
        let Some(rest) = under(absolute, &folder) else { return Vec::new() };
        let rest = rest.trim_start_matches('/');
        let mut out = Vec::new();
        for word in sources {
            if let Some(heredoc) = instruction.heredocs.iter().find(|h| h.opener == word.span) {
                if rest.is_empty() || rest == heredoc.name {
                    let body = self.reading.document.slice(heredoc.body);
                    out.push(Source::Inline(body.as_bytes().to_vec()));
                }
                continue;
            }
            let source = self.reading.expand(index, word);
            let Some(source) = source.value.known().filter(|s| !s.contains("://")) else { continue };
            let source = normal_path(source.trim_start_matches('/'));
            let name = source.rsplit('/').next().unwrap_or(&source);
            if rest.is_empty() {
                // The target is the file itself.
                if sources.len() == 1 && !source.contains(['*', '?']) {
                    out.push(Source::Context(source));
                }
            } else if Glob::new(name).matches(rest) {
                let folder = source.strip_suffix(name).unwrap_or_default();
                out.push(Source::Context(format!("{folder}{rest}")));
            } else if !source.contains(['*', '?']) {
                // The source is a folder, whose content is copied.
                out.push(Source::Context(normal_path(&format!("{source}/{rest}"))));
            }
        }
        out
    }
}

/// Where a file of the image comes from.
enum Source {
    /// From the context, or the image that `--from` names.
    Context(String),
    Inline(Vec<u8>),
}

/// What a path has behind a folder's; empty where it is the same.
fn under<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(folder.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}
