//! What installers and builders were asked for, read from their command lines.

mod args;
mod builds;
mod conda;
mod context;
mod environment;
mod git;
mod pip;
mod project;
pub mod requirements;
mod settings;
mod system;
#[cfg(test)]
mod tests;

pub use args::bare;

use super::reading::Reading;
use super::shell::{Dir, HOLE, When};
use super::span::Span;
use super::value::{Text, Value};

/// Where something was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// In the Dockerfile.
    Here(Span),
    /// In a file that the Dockerfile names: its path in the build context, and the line from 1.
    File { file: String, line: usize },
}

/// A version as pip writes and compares it is text here: `==2.6.0+cu124` is `("==", "2.6.0+cu124")`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Normalised (PEP 503).
    pub name: String,
    pub extras: Vec<String>,
    /// Operator and version, in order.
    pub specifiers: Vec<(String, String)>,
    /// `name @ URL`, `git+https://…`, a path: built or taken from there. What is not known of it stands as
    /// [`HOLE`](super::shell::HOLE).
    pub url: Option<String>,
    /// Part of the text is unknown.
    pub unsure: bool,
    /// The environment marker (`; python_version < "3.9"`), unevaluated.
    pub marker: Option<String>,
    pub asked: Asked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PythonTool {
    Pip,
    UvPip,
    /// `uv sync`, `uv add`, `poetry install`: what the project's files ask for.
    Project,
}

/// An option's value and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub text: Text,
    /// The value alone.
    pub span: Span,
    /// From a requirements file instead.
    pub file: Option<Asked>,
}

/// `pip install` and its kin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipInstall {
    /// Index into the reading's commands.
    pub command: usize,
    pub tool: PythonTool,
    /// Of the command line and of the files it names, in order.
    pub requirements: Vec<Requirement>,
    /// `--index-url`, `-i`, or PIP_INDEX_URL / UV_INDEX_URL / UV_DEFAULT_INDEX in force.
    pub index: Option<Setting>,
    /// `--extra-index-url`, `--index` of uv, and the variables.
    pub extra_indexes: Vec<Setting>,
    /// `-f`, `--find-links`.
    pub find_links: Vec<Setting>,
    /// `--torch-backend` of uv.
    pub torch_backend: Option<Setting>,
    /// `-r` files: as written, and whether they could be read.
    pub files: Vec<(Text, bool)>,
    /// `-c` files.
    pub constraints: Vec<Text>,
    /// Paths that are built: `.`, `-e .`, `./csrc`.
    pub local: Vec<Text>,
    pub no_build_isolation: bool,
    /// `--no-binary` names, `:all:` among them.
    pub no_binary: Vec<String>,
    pub pre: bool,
    pub upgrade: bool,
    pub no_deps: bool,
    /// Words whose value is not known: there may be more packages and options.
    pub more: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemTool {
    Apt,
    /// dnf, yum, microdnf, tdnf.
    Rpm,
    Apk,
    Zypper,
}

/// A package asked of the distribution's installer or of conda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPackage {
    /// Up to what is not known of it: `cuda-nvcc-` for `cuda-nvcc-$V`.
    pub name: String,
    /// `=version` of apt, `-version` is not split for rpm.
    pub version: Option<String>,
    pub unsure: bool,
    pub span: Span,
}

/// `apt-get install`, `dnf install` ….
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemInstall {
    pub command: usize,
    pub tool: SystemTool,
    pub packages: Vec<SystemPackage>,
}

/// `conda install`, `conda create`, `mamba env create -f`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CondaInstall {
    pub command: usize,
    /// Names with the specification behind them (`pytorch` and `=2.5.1=*cuda*`), also of environment files. What is
    /// not known of a specification stands as [`HOLE`](super::shell::HOLE).
    pub packages: Vec<(String, Option<String>, Asked)>,
    pub channels: Vec<String>,
    pub files: Vec<(Text, bool)>,
    /// Pip requirements inside environment files.
    pub pip: Vec<Requirement>,
}

/// What is compiled, by which build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildTool {
    /// `python setup.py install/develop/bdist_wheel`, `pip wheel .`, `python -m build`.
    Setuptools,
    /// `cmake` configure.
    Cmake,
    Make,
    Nvcc,
    Cargo,
    Bazel,
}

/// A build from source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceBuild {
    pub command: usize,
    pub tool: BuildTool,
    /// `-DNAME=value`, `NAME=value` arguments of make, `-gencode`/`-arch` of nvcc under their option's name.
    pub defines: Vec<(String, Setting)>,
    pub dir: Value,
}

/// `git clone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitClone {
    pub command: usize,
    pub url: Text,
    pub url_span: Span,
    /// `-b`, `--branch`, or a `git checkout` later in the same RUN.
    pub pinned: bool,
    /// Where it is cloned to, where that is known.
    pub dir: Value,
}

/// All that the commands of a reading ask for, in file order.
#[derive(Debug, Clone, Default)]
pub struct Asks {
    pub pip: Vec<PipInstall>,
    pub system: Vec<SystemInstall>,
    pub conda: Vec<CondaInstall>,
    pub builds: Vec<SourceBuild>,
    pub clones: Vec<GitClone>,
    /// Files that were named and not found beside the Dockerfile, or not understood.
    pub missing: Vec<(String, Span)>,
}

/// Files of the build context, by their path in it (`docker/requirements.txt`).
pub trait Files {
    /// None where there is no such file; the error says why it cannot be read.
    fn read(&self, path: &str) -> Option<Result<Vec<u8>, String>>;
}

/// What the commands of a reading ask for.
pub fn asks(reading: &Reading, files: &dyn Files) -> Asks {
    let document = &reading.document;
    let clones = git::clones(reading);
    let place = |d: &Dir| d.value.known().or(d.partly.as_deref()).map(str::to_owned);
    let foreign = clones.iter().filter_map(|(c, d)| Some((c.command, place(d)?))).collect();
    let context = context::Context::new(reading, files, foreign);
    let mut out = Asks { clones: clones.into_iter().map(|(c, _)| c).collect(), ..Asks::default() };
    let configured = environment::configured(reading);
    for (index, command) in reading.commands.iter().enumerate() {
        let environment = environment::Environment { reading, configured: &configured, index, command };
        let mut around = pip::Around { document, context: &context, environment, missing: &mut out.missing };
        if let Some(found) = pip::invocation(command) {
            out.pip.extend(pip::install(index, command, &found, &mut around));
        } else if let Some(project) = project::install(index, command, &mut around) {
            out.pip.push(project);
        } else if let Some(conda) = conda::install(index, command, &mut around) {
            out.conda.push(conda);
        } else if let Some(system) = system::install(document, index, command) {
            out.system.push(system);
        }
        out.builds.extend(builds::build(document, index, command));
    }
    out
}

/// Whether a command surely runs at build time.
pub fn surely(when: When) -> bool {
    when == When::Build
}
