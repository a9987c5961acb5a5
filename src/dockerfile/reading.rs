//! A Dockerfile with its meaning: stages, variables in force, commands that run.

use std::sync::Arc;

use super::expand::{Expander, Piece, Work};
use super::shell::{Command, ShellKind};
use super::span::Span;
use super::syntax::{Document, Instruction, Word};
use super::value::{Scope, Text, Value};

pub use super::read::read;

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
    /// Earlier stages that the FROM names perhaps: the base is an `Image` whose text is one of several, or unknown
    /// in part (`FROM build-${TARGETARCH}`). Where all that it may be are stages, the variables are those they
    /// agree on.
    pub maybe: Vec<usize>,
    /// The final stage, or one it is FROM, directly or not: what is set and installed here is in the image.
    pub in_image: bool,
    /// In the image only if such a FROM names it.
    pub perhaps: bool,
    /// Built at all for the final stage: by FROM, COPY --from or a mount.
    pub built: bool,
}

/// What COPY --from or a mount of RUN takes files from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub instruction: usize,
    /// `None` where it names what is not there.
    pub from: Base,
    /// The flag's value.
    pub span: Span,
}

/// The environment of an image, by its reference; empty where it is not known.
pub type BaseEnv<'a> = &'a dyn Fn(&str) -> Vec<(String, String)>;

/// What may be known besides the file.
#[derive(Default)]
pub struct Inputs<'a> {
    /// `--build-arg`, bake, compose: later ones win.
    pub build_args: Vec<(String, Value)>,
    /// `--target`.
    pub target: Option<String>,
    /// `linux/amd64`; none: both amd64 and arm64 are possible.
    pub platform: Option<String>,
    /// The environment of a base image, by its reference. One with a PATH is taken for all of it.
    pub base_env: Option<BaseEnv<'a>>,
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
    /// Whether a name that the scope before an instruction has not is surely set nowhere; else the base image may
    /// set it.
    pub closed: Vec<bool>,
    /// The working directory before each instruction.
    pub dirs: Vec<Arc<Value>>,
    /// The user before each instruction; the base image's own is unknown.
    pub users: Vec<Arc<Value>>,
    /// What reads the shell form at each instruction.
    pub shells: Vec<ShellKind>,
    /// Where files are taken from, in file order.
    pub sources: Vec<Source>,
    /// Bodies of RUN whose shell could not be parsed; their commands come from a plain split into words.
    pub unparsed: Vec<Span>,
}

impl Reading {
    pub fn instruction(&self, index: usize) -> Option<&Instruction> {
        self.document.instructions.get(index)
    }

    /// The stage of an instruction; none before the first FROM.
    pub fn stage_of(&self, instruction: usize) -> Option<usize> {
        self.stages.partition_point(|s| s.instructions.start <= instruction).checked_sub(1)
    }

    /// What a word of an instruction comes to.
    pub fn expand(&self, instruction: usize, word: &Word) -> Text {
        self.expander(instruction, &Work::default()).map(|e| e.word(word)).unwrap_or_default()
    }

    /// What is known of a word of an instruction, where it is not known as a whole:
    /// `/usr/lib/stubs:$LD_LIBRARY_PATH`.
    pub fn partly(&self, instruction: usize, word: &Word) -> Vec<Piece> {
        self.expander(instruction, &Work::default()).map(|e| e.partly(word)).unwrap_or_default()
    }

    fn expander<'a>(&'a self, instruction: usize, work: &'a Work) -> Option<Expander<'a>> {
        let scope = self.scopes.get(instruction)?;
        let closed = self.closed.get(instruction) == Some(&true);
        Some(Expander { scope, closed, escape: self.document.escape, work })
    }
}
