//! A Dockerfile with its meaning: stages, variables in force, commands that run.

use std::sync::Arc;

use super::shell::Command;
use super::span::Span;
use super::syntax::{Document, Instruction};
use super::value::{Scope, Text};

/// What a stage is built on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// An earlier stage, by index.
    Stage(usize),
    /// An image from outside; the reference as far as it is known.
    Image(Text),
    Scratch,
    /// No FROM before the first instruction, or none that could be read.
    None,
}

/// One build stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// In lower case, as BuildKit compares them.
    pub name: Option<String>,
    pub base: Base,
    /// The FROM's image word.
    pub from: Span,
    /// Indexes into the document's instructions, FROM included.
    pub instructions: std::ops::Range<usize>,
    /// The base, followed through stages: `Image`, `Scratch` or `None`, and the stage whose FROM names it.
    pub root: (Base, usize),
    /// The final stage, or one it is FROM, directly or not: what is set and installed here is in the image.
    pub in_image: bool,
    /// Built at all for the final stage: by FROM, COPY --from or a mount.
    pub built: bool,
}

/// What may be known besides the file.
#[derive(Default)]
pub struct Inputs<'a> {
    /// `--build-arg`, bake, compose: later ones win.
    pub build_args: Vec<(String, super::value::Value)>,
    /// `--target`.
    pub target: Option<String>,
    /// `linux/amd64`; none: both amd64 and arm64 are possible.
    pub platform: Option<String>,
    /// The environment of a base image, by its reference.
    pub base_env: Option<&'a dyn Fn(&str) -> Vec<(String, String)>>,
}

/// An evaluated file.
#[derive(Debug, Clone)]
pub struct Reading {
    pub document: Document,
    pub stages: Vec<Stage>,
    /// The stage that is built: the last, or the one asked for.
    pub last: Option<usize>,
    /// What runs, in file order; also of SHELL, CMD and ENTRYPOINT, see `Command::when`.
    pub commands: Vec<Command>,
    /// Variables in force before each instruction (for FROM: the global ARGs).
    pub scopes: Vec<Arc<Scope>>,
    /// Variables in force at the end of each stage.
    pub ends: Vec<Arc<Scope>>,
    /// Bodies of RUN whose shell could not be parsed; their commands come from a plain split into words.
    pub unparsed: Vec<Span>,
}

impl Reading {
    pub fn instruction(&self, index: usize) -> Option<&Instruction> {
        self.document.instructions.get(index)
    }

    /// The stage of an instruction; none before the first FROM.
    pub fn stage_of(&self, instruction: usize) -> Option<usize> {
        self.stages.iter().position(|s| s.instructions.contains(&instruction))
    }
}
