//! `imagelint lint [PATH]…`.

mod bases;
mod builds;
mod context;
mod discover;
mod engine;
mod fix;
mod subject;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

pub use self::bases::{Start, starts};
use self::discover::Named;
pub use self::discover::shown;
use self::engine::{Build, Engine, Linted, Understood};
pub use self::subject::{Around, Mended, Subject};
use super::UNANSWERED;
use super::args::{LintArgs, RuleLevel};
use super::error::CliError;
use super::output::{Screen, write_file};
use super::outputs::render;
use super::policy::{self, Asked, Chosen};
use crate::catalog::{Catalog, names};
use crate::cli::basis;
use crate::config::Fleet;
use crate::image::sources::OpenOptions;
use crate::lint::dockerfile::{Levels, Loudness};
use crate::lint::{self, RULES, dockerfile};
use crate::model::Evidence;
use crate::plan::{self, Written, patch};
use crate::report::{Report, unified};

/// Bytes of a Dockerfile that are read.
const MOST_BYTES: u64 = 16 << 20;

/// Rounds of fixing, each of which may let another rule see more.
const ROUNDS: usize = 10;

pub fn run(args: &LintArgs, screen: &Screen) -> Result<u8, CliError> {
    let catalog = basis::catalog();
    let asked = Asked { policy: &args.policy, fleet: args.fleet.as_deref(), targets: &args.targets };
    let Chosen { fleet, policy } = policy::choose(&asked, &OpenOptions::default(), catalog, screen)?;
    policy.iter().for_each(|policy| Chosen::tell(policy, screen));
    let levels = levels(args, &fleet)?;
    let baseline = args.baseline.as_deref().map(super::baseline::of_files).transpose()?;
    let (files, mut errors) = discover::find(&args.paths, args.no_ignore);
    if args.fix && files.iter().any(|f| f.path.is_none()) {
        return Err(CliError::FixOfStandardInput);
    }
    let engine = Engine::new(Build::new(args), &fleet, levels, catalog)?;
    let all = in_parallel(args.jobs, &files, |file| engine.lint(file));
    let mut linted = Vec::new();
    for result in all {
        match result {
            Ok(one) => linted.push(one),
            Err(error) => errors.push(error),
        }
    }
    for error in &errors {
        screen.error(error);
    }
    for note in linted.iter().flat_map(|l| &l.notes) {
        if screen.verbose() > 0 {
            screen.notice(note);
        }
    }
    if linted.is_empty() {
        return Ok(UNANSWERED);
    }
    let mut patches = Vec::new();
    for one in &mut linted {
        finish(one, &engine, args, screen, &mut patches)?;
    }
    let reports = linted.into_iter().map(|l| l.report).collect();
    let mut report = dockerfile::join(reports, &engine.base, &fleet, catalog, &engine.levels, basis::today());
    if let Some(policy) = &policy {
        policy::add_to_files(&mut report, policy, screen);
    }
    if let Some(baseline) = &baseline {
        baseline.apply_to_files(&mut report);
    }
    let status =
        if errors.is_empty() { lint::exit_code_of(&report.findings, args.fail_on.into()) } else { UNANSWERED };
    if args.diff {
        screen.print(&patches)?;
    } else {
        let mut out = Vec::new();
        render(report.write(args.format, &screen.style(Some(status)), &mut out))?;
        screen.print(&out)?;
    }
    for output in &args.outputs {
        let mut out = Vec::new();
        render(report.write(output.format, &screen.file_style(Some(status)), &mut out))?;
        write_file(&output.file, &out)?;
    }
    Ok(status)
}

/// The results in the files' order, however many threads there are.
fn in_parallel<T: Send>(jobs: usize, files: &[Named], lint: impl Fn(&Named) -> T + Sync) -> Vec<T> {
    let all = || files.par_iter().map(&lint).collect();
    match rayon::ThreadPoolBuilder::new().num_threads(jobs).build() {
        Ok(pool) => pool.install(all),
        Err(_) => files.iter().map(&lint).collect(),
    }
}

/// What the fleet file and then the command line ask of rules.
fn levels(args: &LintArgs, fleet: &Fleet) -> Result<Levels, CliError> {
    let mut levels = dockerfile::levels(fleet);
    for flag in &args.rules {
        let Some(rule) = RULES.iter().find(|r| r.id == flag.rule) else {
            let near = names::nearest(&flag.rule, RULES.iter().map(|r| r.id), 1).first().copied();
            return Err(CliError::NoRuleToSet(flag.rule.clone(), near));
        };
        if rule.needs.is_none() {
            return Err(CliError::RuleOfImages(flag.rule.clone()));
        }
        let loudness = match flag.level {
            RuleLevel::Off => Loudness::Off,
            RuleLevel::On => Loudness::On,
            RuleLevel::At(severity) => Loudness::At(severity),
        };
        levels.insert(flag.rule.clone(), loudness);
    }
    Ok(levels)
}

/// Applies what may be applied, or adds what would change to the patch.
fn finish(
    one: &mut Linted,
    engine: &Engine<'_>,
    args: &LintArgs,
    screen: &Screen,
    patches: &mut Vec<u8>,
) -> Result<(), CliError> {
    if args.diff {
        let (new, _) = fix::apply(&one.bytes, &one.report.source, &engine.standing(&one.report), |_| true);
        patches.extend(unified::patch(&one.report.file, &one.bytes, &new));
        return Ok(());
    }
    let Some(path) = one.path.clone().filter(|_| args.fix) else { return Ok(()) };
    let mut fixed = 0;
    let before = one.bytes.clone();
    for _ in 0..ROUNDS {
        let standing = engine.standing(&one.report);
        let safe = |f: &crate::model::Finding| f.fix.as_ref().is_some_and(|f| f.safe);
        let (new, count) = fix::apply(&one.bytes, &one.report.source, &standing, safe);
        if count == 0 || new == one.bytes {
            break;
        }
        fixed += count;
        *one = engine.judge(Some(&path), &one.report.file, new);
    }
    if one.bytes != before {
        write_file(&path, &one.bytes)?;
        let fixes = crate::report::text::count(fixed, "fix", "fixes");
        screen.notice(&format!("{}: {fixes} applied", one.report.file));
    }
    Ok(())
}

/// The Dockerfile that images were built from, understood once for all of them.
pub struct Beside<'a> {
    engine: Engine<'a>,
    path: PathBuf,
    name: String,
    understood: Understood,
}

/// A path from the working directory; of one that is elsewhere, what is left without the way there.
fn relative(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    let normal = inside.components().filter_map(|c| match c {
        std::path::Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    normal.collect::<Vec<_>>().join("/")
}

impl<'a> Beside<'a> {
    pub fn read(
        path: &Path,
        platform: Option<String>,
        fleet: &'a Fleet,
        catalog: &'a Catalog,
    ) -> Result<Self, CliError> {
        let build = Build { platform, ..Build::default() };
        let engine = Engine::new(build, fleet, dockerfile::levels(fleet), catalog)?;
        let file = Named { name: discover::shown(path), path: Some(path.to_owned()) };
        let understood = engine.understand(Some(path), &engine::bytes(&file)?);
        Ok(Self { engine, path: path.to_owned(), name: file.name, understood })
    }

    /// The file, read, beside an image.
    pub fn lint<'l>(&'l self, image: Option<&'l Evidence>) -> dockerfile::Lint<'l> {
        self.engine.beside(&self.understood, image)
    }

    /// The file's path from the working directory, where it is below that.
    pub fn path(&self) -> String {
        relative(&self.path)
    }

    /// Tells the plan, when it is done, what it makes of the file.
    pub fn change(&self, report: &mut Report, image: Option<&Evidence>) {
        if let Some(plan) = &mut report.plan {
            plan.patch = plan::patched(plan, Written { lint: &self.lint(image), path: &self.path() });
        }
    }

    /// Adds what the file says to what its image says, and tells the plan where it changes the file.
    pub fn join(&self, report: &mut Report, evidence: &[Evidence]) {
        let Engine { fleet, levels, catalog, base, .. } = &self.engine;
        if let Some(plan) = &mut report.plan {
            let lint = self.lint(evidence.first());
            patch::tell(plan, &lint, &self.name);
        }
        dockerfile::image::point(report, evidence, &self.understood.reading, &self.name);
        let mut file = self.engine.report(&self.name, &self.understood, evidence.first());
        dockerfile::image::measured(&mut file, report);
        let file = dockerfile::join(vec![file], base, fleet, catalog, levels, basis::today());
        dockerfile::add_to(report, file);
    }
}
