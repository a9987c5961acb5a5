//! A Dockerfile that is to be changed so that what it builds serves the fleet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::discover::{Named, shown};
use super::engine::{Build, Engine, Understood, bytes};
use super::{ROUNDS, fix};
use crate::catalog::Catalog;
use crate::cli::error::CliError;
use crate::config::Fleet;
use crate::lint::dockerfile;
use crate::model::{Evidence, Finding, Severity, Verdict};
use crate::plan::patch;
use crate::report::{Plan, unified};

pub struct Subject<'a> {
    engine: Engine<'a>,
    /// Absent: the file is yet to be made.
    pub path: Option<PathBuf>,
    /// What reports call it.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// What is said of a build besides its Dockerfile.
#[derive(Debug, Clone, Default)]
pub struct Around<'a> {
    pub build_args: &'a [String],
    pub stage: Option<&'a str>,
    pub platform: Option<String>,
    pub context: Option<&'a Path>,
}

/// A file's new bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    pub bytes: Vec<u8>,
    /// What was changed: `Dockerfile:3: add 9.0`.
    pub changes: Vec<String>,
    /// What was not, and why.
    pub left: Vec<String>,
}

impl<'a> Subject<'a> {
    /// Reads the file; without a path there is none yet, and it is empty.
    pub fn read(
        path: Option<&Path>,
        around: Around<'_>,
        fleet: &'a Fleet,
        catalog: &'a Catalog,
    ) -> Result<Self, CliError> {
        let build = Build {
            target: around.stage.map(str::to_owned),
            platform: around.platform,
            context: around.context.map(Path::to_owned),
            ..Build::with_args(around.build_args)
        };
        let engine = Engine::new(build, fleet, dockerfile::levels(fleet), catalog)?;
        let Some(path) = path else {
            return Ok(Self { engine, path: None, name: "Dockerfile".to_owned(), bytes: Vec::new() });
        };
        let name = shown(path);
        let bytes = bytes(&Named { path: Some(path.to_owned()), name: name.clone() })?;
        Ok(Self { engine, path: Some(path.to_owned()), name, bytes })
    }

    fn understand(&self, bytes: &[u8]) -> Understood {
        self.engine.understand(self.path.as_deref(), bytes)
    }

    /// The worst that a file of these bytes lets expect of each target; those of which it says nothing are absent.
    pub fn predicted(&self, bytes: &[u8]) -> BTreeMap<String, Verdict> {
        let report = self.engine.report(&self.name, &self.understand(bytes), None);
        let mut out: BTreeMap<String, Verdict> = BTreeMap::new();
        for finding in self.engine.standing(&report) {
            for target in finding.targets.iter().filter(|_| finding.severity > Severity::Note) {
                let worst = out.entry(target.clone()).or_insert(finding.verdict);
                *worst = (*worst).min(finding.verdict);
            }
        }
        out
    }

    /// Writes a plan's steps, those of `tag` and of none; and which steps of the plan are not in it.
    pub fn planned(&self, plan: &Plan, tag: Option<&str>, image: &Evidence) -> (Mended, Vec<usize>) {
        let understood = self.understand(&self.bytes);
        let lint = self.engine.beside(&understood, Some(image));
        let patch = patch::patch(&lint, plan, tag);
        let mut told = plan.clone();
        patch.tell(&mut told, &lint.reading.document, &self.name);
        let mut mended = Mended { bytes: patch.apply(&self.bytes), changes: Vec::new(), left: Vec::new() };
        let mut left: Vec<usize> = (0..plan.steps.len()).collect();
        for one in &patch.steps {
            let Some(step) = told.steps.get(one.step) else { continue };
            if let Some(why) = &one.left {
                let how = if one.edits.is_empty() { "not written" } else { "to be reviewed" };
                mended.left.push(format!("{how}: {}: {why}", step.summary));
            }
            if !one.edits.is_empty() {
                mended.changes.extend(step.edits.iter().cloned());
                // What is partly written promises nothing.
                left.retain(|at| *at != one.step || one.left.is_some());
            }
        }
        (mended, left)
    }

    /// Applies the edits of findings that keep targets from being served: those that are safe, and those of lists of
    /// architectures, wheels and bases. `image` is what the file made as it stands, where that was scanned.
    pub fn mended(&self, image: Option<&Evidence>) -> Mended {
        let mut mended = Mended { bytes: self.bytes.clone(), changes: Vec::new(), left: Vec::new() };
        let mut image = image;
        for _ in 0..ROUNDS {
            let understood = self.understand(&mended.bytes);
            // What the image was measured to be no longer holds once the file is another.
            let report = self.engine.report(&self.name, &understood, image.take());
            let standing = self.engine.standing(&report);
            let (bytes, count) = fix::apply(&mended.bytes, &report.source, &standing, wanted);
            if count == 0 || bytes == mended.bytes {
                break;
            }
            for finding in standing.iter().filter(|f| wanted(f)) {
                let line = finding.dockerfile.as_ref().map_or(1, |d| d.line);
                let what = finding.fix.as_ref().map_or("", |f| f.what.as_str());
                let change = format!("{}:{line}: {what} ({})", self.name, finding.rule);
                if !mended.changes.contains(&change) {
                    mended.changes.push(change);
                }
            }
            mended.bytes = bytes;
        }
        mended
    }

    /// The change as a patch that `git apply` takes; empty where there is none.
    pub fn patch(&self, bytes: &[u8]) -> Vec<u8> {
        unified::patch(&self.name, &self.bytes, bytes)
    }
}

fn wanted(finding: &Finding) -> bool {
    let Some(fix) = &finding.fix else { return false };
    fix.safe || finding.severity > Severity::Note && dockerfile::is_of_code(&finding.rule)
}
