//! One Dockerfile: read, understood, judged.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::MOST_BYTES;
use super::context::Context;
use super::discover::Named;
use crate::catalog::Catalog;
use crate::cli::args::LintArgs;
use crate::cli::error::CliError;
use crate::config::{Date, Fleet};
use crate::dockerfile::commands::{self, Asks};
use crate::dockerfile::reading::{Inputs, Reading};
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::{self, FileReport, Levels, Lint};
use crate::model::Finding;

/// What all files of a run are judged by.
pub struct Engine<'a> {
    args: &'a LintArgs,
    fleet: &'a Fleet,
    levels: &'a Levels,
    catalog: &'a Catalog,
    build_args: Vec<(String, Value)>,
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
    pub fn new(
        args: &'a LintArgs,
        fleet: &'a Fleet,
        levels: &'a Levels,
        catalog: &'a Catalog,
    ) -> Result<Self, CliError> {
        let build_args = args.build_args.iter().filter_map(|arg| build_arg(arg)).collect();
        Ok(Self { args, fleet, levels, catalog, build_args })
    }

    pub fn lint(&self, file: &Named) -> Result<Linted, CliError> {
        let failed = |source| CliError::Read { place: file.name.clone(), source };
        let mut bytes = Vec::new();
        let read = match &file.path {
            Some(path) => File::open(path).and_then(|f| f.take(MOST_BYTES + 1).read_to_end(&mut bytes)),
            None => io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes),
        };
        read.map_err(failed)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(CliError::TooLarge { place: file.name.clone(), most: MOST_BYTES >> 20 });
        }
        Ok(self.judge(file.path.as_deref(), &file.name, bytes))
    }

    /// Judges bytes as the file's.
    pub fn judge(&self, path: Option<&Path>, name: &str, bytes: Vec<u8>) -> Linted {
        let context = match &self.args.context {
            Some(dir) => Context::of(dir),
            None => Context::around(path),
        };
        let inputs = Inputs {
            build_args: self.build_args.clone(),
            target: self.args.build_target.clone(),
            platform: self.args.platform.as_ref().map(ToString::to_string),
            base_env: None,
        };
        let (reading, asks) = understand(&bytes, &inputs, &context);
        let lint = Lint {
            reading: &reading,
            asks: &asks,
            targets: &self.fleet.targets,
            catalog: self.catalog,
            image: None,
        };
        let report = dockerfile::file(name, &lint, self.levels);
        Linted { path: path.map(Path::to_owned), bytes, report, notes: Vec::new() }
    }

    /// Findings that neither a comment nor a waiver covers.
    pub fn standing(&self, report: &FileReport) -> Vec<Finding> {
        dockerfile::join(vec![report.clone()], self.fleet, self.catalog, self.levels, Date::today()).findings
    }
}

/// `NAME=VALUE`; `NAME` alone takes the environment's value, and is left out where that has none, as docker does it.
fn build_arg(text: &str) -> Option<(String, Value)> {
    match text.split_once('=') {
        Some((name, value)) => Some((name.to_owned(), Value::Known(value.to_owned()))),
        None => std::env::var(text).ok().map(|value| (text.to_owned(), Value::Known(value))),
    }
}

fn understand(bytes: &[u8], inputs: &Inputs<'_>, context: &Context) -> (Reading, Asks) {
    let reading = crate::dockerfile::reading::read(crate::dockerfile::parse::parse(bytes), inputs);
    let asks = commands::asks(&reading, context);
    (reading, asks)
}
