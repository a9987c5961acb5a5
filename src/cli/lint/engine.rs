//! One Dockerfile: read, understood, judged.

use std::path::{Path, PathBuf};

use super::MOST_BYTES;
use super::builds::{Builds, Kind};
use super::context::Context;
use super::discover::Named;
use crate::catalog::Catalog;
use crate::cli::args::LintArgs;
use crate::cli::error::CliError;
use crate::cli::{basis, bounded};
use crate::config::Fleet;
use crate::dockerfile::commands::{self, Asks};
use crate::dockerfile::parse::parse;
use crate::dockerfile::reading::{Inputs, Reading, read};
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::{self, FileReport, Levels, Lint};
use crate::model::{Evidence, Finding, escape};

/// What is said of the build besides the Dockerfile.
#[derive(Debug, Clone, Default)]
pub struct Build {
    pub args: Vec<(String, Value)>,
    pub target: Option<String>,
    pub platform: Option<String>,
    pub compose: Option<PathBuf>,
    pub bake: Option<PathBuf>,
    pub context: Option<PathBuf>,
}

impl Build {
    pub fn new(args: &LintArgs) -> Self {
        Self {
            target: args.build_target.clone(),
            platform: args.platform.as_ref().map(ToString::to_string),
            compose: args.compose.clone(),
            bake: args.bake.clone(),
            context: args.context.clone(),
            ..Self::with_args(&args.build_args)
        }
    }

    /// Of `NAME=VALUE` and `NAME`, as builders take them.
    pub fn with_args(args: &[String]) -> Self {
        Self { args: args.iter().filter_map(|arg| build_arg(arg)).collect(), ..Self::default() }
    }
}

/// What all files of a run are judged by.
pub struct Engine<'a> {
    pub build: Build,
    pub fleet: &'a Fleet,
    pub levels: Levels,
    pub catalog: &'a Catalog,
    /// The way from the repository's root to the working directory: code scanning and annotations count from there.
    pub base: String,
    builds: Builds,
}

/// A file, understood.
pub struct Understood {
    pub reading: Reading,
    pub asks: Asks,
    /// What was taken from elsewhere.
    pub notes: Vec<String>,
}

/// A file with what was found in it.
pub struct Linted {
    pub path: Option<PathBuf>,
    pub bytes: Vec<u8>,
    pub report: FileReport,
    /// What was taken from elsewhere.
    pub notes: Vec<String>,
}

impl<'a> Engine<'a> {
    /// An error where a compose or bake file that was named cannot be read.
    pub fn new(build: Build, fleet: &'a Fleet, levels: Levels, catalog: &'a Catalog) -> Result<Self, CliError> {
        let builds = Builds::default();
        for (file, kind) in [(&build.compose, Kind::Compose), (&build.bake, Kind::Bake)] {
            if let Some(file) = file {
                builds.named(file, kind, None)?;
            }
        }
        Ok(Self { build, fleet, levels, catalog, base: base(), builds })
    }

    /// Judges a file by itself.
    pub fn lint(&self, file: &Named) -> Result<Linted, CliError> {
        let bytes = bytes(file)?;
        Ok(self.judge(file.path.as_deref(), &file.name, bytes))
    }

    /// Judges bytes as the file's.
    pub fn judge(&self, path: Option<&Path>, name: &str, bytes: Vec<u8>) -> Linted {
        let understood = self.understand(path, &bytes);
        let report = self.report(name, &understood, None);
        Linted { path: path.map(Path::to_owned), bytes, report, notes: understood.notes }
    }

    pub fn understand(&self, path: Option<&Path>, bytes: &[u8]) -> Understood {
        let around = Context::around(path);
        let document = parse(bytes);
        let mut inputs = Inputs::default();
        let mut notes = Vec::new();
        let mut target = None;
        if let Some(path) = path {
            let taken = self.builds.around(around.folders(), path, &document);
            inputs.build_args = taken.args;
            notes = taken.notes;
        }
        for (file, kind) in [(&self.build.compose, Kind::Compose), (&self.build.bake, Kind::Bake)] {
            let Some(file) = file else { continue };
            // That it can be read was seen to before any Dockerfile was.
            let taken = self.builds.named(file, kind, path).unwrap_or_default();
            inputs.build_args.extend(taken.args);
            inputs.platform = taken.platform.or(inputs.platform);
            target = taken.target.or(target);
            notes.extend(taken.notes);
        }
        inputs.build_args.extend(self.build.args.iter().cloned());
        inputs.platform = self.build.platform.clone().or(inputs.platform);
        inputs.target = self.build.target.clone().or(target);
        let env = |base: &str| self.catalog.bases().find(base).map(|b| b.env).unwrap_or_default();
        inputs.base_env = Some(&env);
        let reading = read(document, &inputs);
        let context = self.build.context.as_deref().map_or(around, Context::of);
        let asks = commands::asks(&reading, &context);
        Understood { reading, asks, notes }
    }

    /// What the rules say, beside the image that the file made where that was scanned.
    pub fn report(&self, name: &str, understood: &Understood, image: Option<&Evidence>) -> FileReport {
        let mut report = dockerfile::file(name, &self.beside(understood, image), &self.levels);
        if self.fleet.is_policy {
            dockerfile::overrule_comments(&mut report);
        }
        report
    }

    /// What rules and plans look at.
    pub fn beside<'l>(&'l self, understood: &'l Understood, image: Option<&'l Evidence>) -> Lint<'l> {
        Lint::new(&understood.reading, &understood.asks, &self.fleet.targets, self.catalog, image)
    }

    /// Findings that neither a comment nor a waiver covers.
    pub fn standing(&self, report: &FileReport) -> Vec<Finding> {
        dockerfile::join(vec![report.clone()], &self.base, self.fleet, self.catalog, &self.levels, basis::today())
            .findings
    }
}

/// A file's bytes, if they are few enough for a Dockerfile.
pub fn bytes(file: &Named) -> Result<Vec<u8>, CliError> {
    let read = match &file.path {
        Some(path) => bounded::read(path, MOST_BYTES),
        None => bounded::read_stdin(MOST_BYTES),
    };
    let read = read.map_err(|source| CliError::Read { place: file.name.clone(), source })?;
    read.ok_or_else(|| CliError::TooLarge { place: file.name.clone(), most: MOST_BYTES >> 20 })
}

/// `NAME=VALUE`; `NAME` alone takes the environment's value, and is left out where that has none, as docker does it.
fn build_arg(text: &str) -> Option<(String, Value)> {
    match text.split_once('=') {
        Some((name, value)) => Some((name.to_owned(), Value::Known(value.to_owned()))),
        None => std::env::var(text).ok().map(|value| (text.to_owned(), Value::Known(value))),
    }
}

fn base() -> String {
    let Ok(here) = std::env::current_dir() else { return String::new() };
    let root = here.ancestors().find(|d| d.join(".git").exists());
    let way = root.and_then(|root| here.strip_prefix(root).ok());
    let way = way.map(|way| escape(way.as_os_str().as_encoded_bytes()));
    way.filter(|way| !way.is_empty()).map_or(String::new(), |way| format!("{way}/"))
}
