//! Variables that name the GPUs to build for, and the grammar of each. Table: `arch_variables.toml`.
//!
//! What a list's code runs on is decided in [`compat`](super::compat), never here.

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use serde::Deserialize;

use super::arch_grammar;
use super::compat::{Fit, Host, module_fit};
use super::{CatalogError, Tables, Trust};
use crate::model::{Capability, Form, Item, Maker, SmArch};

pub(super) const FILE: &str = "arch_variables.toml";

/// How a variable's value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grammar {
    /// `8.0;8.6 9.0a+PTX`, names such as Ampere: PyTorch's extensions.
    Torch,
    /// `80-real;90-virtual;native`: CMake.
    Cmake,
    /// `-gencode arch=compute_80,code=sm_80`, `-arch=sm_80`: nvcc's options.
    Gencode,
    /// `sm_80,compute_90` or `8.0,9.0`: TensorFlow and what bazel builds.
    Bazel,
    /// `80;90`: numbers, machine code each.
    Numbers,
    /// `8.0,8.6`: with dots, machine code each.
    Dotted,
    /// The same, PTX each: CUDA_ARCH_PTX of OpenCV.
    DottedPtx,
    /// One number: `80`.
    One,
    /// `gfx90a;gfx942`: AMD.
    Gfx,
    /// Not understood; any value stands.
    Free,
}

/// One variable, `[[variable]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct ArchVariable {
    pub name: String,
    /// Other spellings: `torch_cuda_arch_list`.
    #[serde(default)]
    pub aliases: Vec<String>,
    pub grammar: Grammar,
    pub maker: Maker,
    /// What may part two members, the preferred first.
    pub separators: Vec<String>,
    /// Words that are no architecture and stand for several: "native", "all-major", "Common".
    #[serde(default)]
    pub words: Vec<String>,
    /// A value, as the variable writes it.
    pub example: String,
    /// Whose it is.
    pub reader: String,
    /// A tool's that any project may be built with: PyTorch's extension builder, CMake. Else one project's own.
    #[serde(default)]
    pub general: bool,
    /// General ones: the names that the tool takes from the environment.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Other projects write other things under the same name, so that its grammar is not certain.
    #[serde(default)]
    pub shared: bool,
    /// Options that come on top of those that the build has itself: what they leave out may be there all the same.
    #[serde(default)]
    pub adds: bool,
    /// PTX of each member, or of the newest, is kept too; the grammar alone would not say so.
    #[serde(default)]
    pub ptx: bool,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(skip, default = "no_names")]
    pub(super) named: Arc<[NamedArch]>,
    #[serde(flatten)]
    trust: Trust,
}

fn no_names() -> Arc<[NamedArch]> {
    Arc::from([])
}

/// A word that stands for several architectures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keyword {
    /// Those of the GPUs of the machine that builds: none in a `docker build`.
    Native,
    /// All that the compiler knows.
    All,
    /// The lowest of each major that the compiler knows, with PTX of the newest.
    AllMajor,
    /// What the project's build prefers: `Common`, `RAPIDS`, `default`.
    Own,
}

/// One member of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchEntry {
    /// Bytes of the value.
    pub range: Range<usize>,
    /// Machine code it asks for.
    pub sass: Vec<SmArch>,
    /// PTX it asks for.
    pub ptx: Vec<SmArch>,
    /// AMD's name, features kept: "gfx90a:xnack-".
    pub gfx: Option<String>,
    pub keyword: Option<Keyword>,
}

/// Something the reader of the variable would refuse or not take as meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchProblem {
    pub range: Range<usize>,
    /// What is wrong, in a few words.
    pub what: String,
    /// What to write instead, where that is certain.
    pub replacement: Option<String>,
}

/// A value, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchList {
    pub entries: Vec<ArchEntry>,
    /// Machine code of all entries, in order, each once.
    pub sass: Vec<SmArch>,
    pub ptx: Vec<SmArch>,
    pub gfx: Vec<String>,
    pub keywords: Vec<Keyword>,
    pub problems: Vec<ArchProblem>,
    /// What parts the members here; the variable's preferred one where there is one member.
    pub separator: String,
}

impl ArchList {
    pub(super) fn push(&mut self, entry: ArchEntry) {
        for arch in &entry.sass {
            if !self.sass.contains(arch) {
                self.sass.push(*arch);
            }
        }
        for arch in &entry.ptx {
            if !self.ptx.contains(arch) {
                self.ptx.push(*arch);
            }
        }
        if let Some(gfx) = &entry.gfx
            && !self.gfx.contains(gfx)
        {
            self.gfx.push(gfx.clone());
        }
        if let Some(keyword) = entry.keyword
            && !self.keywords.contains(&keyword)
        {
            self.keywords.push(keyword);
        }
        self.entries.push(entry);
    }

    /// Whether the value alone says what is built: no keyword stands for something else, and all was understood.
    pub fn is_closed(&self) -> bool {
        self.keywords.is_empty() && self.problems.is_empty() && !self.entries.is_empty()
    }
}

/// What a list does for a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Serves {
    /// Nothing in it runs there.
    No,
    /// The evidence disagrees or is missing: code of discrete GPUs on Jetson.
    Unsure,
    /// Its PTX would be compiled by the driver at load time.
    Ptx,
    /// Machine code of a lower capability of the same family.
    Compatible,
    /// Machine code for this very capability.
    Native,
}

/// What a list does for a GPU, by the law of coverage. Keywords add nothing: ask [`ArchList::is_closed`] first.
pub fn serves(list: &ArchList, gpu: Capability) -> Serves {
    match fit(list, &Host::bare(gpu.into())) {
        Fit::Missing | Fit::Blocked(_) => Serves::No,
        Fit::Uncertain(_) => Serves::Unsure,
        Fit::Jit => Serves::Ptx,
        Fit::Compatible => Serves::Compatible,
        Fit::Native => Serves::Native,
    }
}

/// The same on a host with its driver.
pub fn fit(list: &ArchList, host: &Host) -> Fit {
    let mut items: Vec<Item> = list.sass.iter().map(|a| Item::of(*a, Form::Sass)).collect();
    items.extend(list.ptx.iter().map(|a| Item::of(*a, Form::Ptx)));
    module_fit(&items, host)
}

impl ArchVariable {
    /// Reads a value as whoever reads the variable would. Any text is read; nothing panics.
    pub fn parse(&self, value: &str) -> ArchList {
        arch_grammar::parse(self, value)
    }

    /// The value with capabilities added, in the variable's own way of writing. `None` where the grammar takes no
    /// more members or is not understood.
    pub fn add(&self, value: &str, missing: &[Capability]) -> Option<String> {
        arch_grammar::add(self, value, missing)
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }

    pub fn is_sure(&self) -> bool {
        self.trust.is_sure()
    }
}

/// A name that stands for architectures in a [`Grammar::Torch`] list, `[[named]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct NamedArch {
    pub name: String,
    /// "8.0;8.6+PTX".
    pub archs: String,
}

/// All variables.
#[derive(Debug)]
pub struct ArchVariables {
    variables: Vec<ArchVariable>,
    /// All names.
    names: AhoCorasick,
}

impl ArchVariables {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let named: Arc<[NamedArch]> = tables.rows::<NamedArch>(FILE, "named")?.into();
        let mut variables: Vec<ArchVariable> = tables.rows(FILE, "variable")?;
        for variable in variables.iter_mut().filter(|v| v.grammar == Grammar::Torch) {
            variable.named = Arc::clone(&named);
        }
        let names = variables.iter().flat_map(|v| std::iter::once(&v.name).chain(&v.aliases));
        let names = AhoCorasick::new(names).map_err(|e| CatalogError::Row {
            file: FILE.to_owned(),
            row: "[[variable]]".to_owned(),
            what: e.to_string(),
        })?;
        Ok(Self { variables, names })
    }

    pub fn all(&self) -> &[ArchVariable] {
        &self.variables
    }

    /// Whether a text holds the name of any of them.
    pub fn mentioned(&self, text: &str) -> bool {
        self.names.is_match(text)
    }

    /// By the variable's or the option's name, `-D` dropped: "TORCH_CUDA_ARCH_LIST", "-gencode".
    pub fn variable(&self, name: &str) -> Option<&ArchVariable> {
        let name = name.strip_prefix("-D").unwrap_or(name);
        let name = name.split_once(':').map_or(name, |(n, _)| n);
        self.variables.iter().find(|v| v.name == name || v.aliases.iter().any(|a| a == name))
    }
}

#[cfg(test)]
mod tests;
