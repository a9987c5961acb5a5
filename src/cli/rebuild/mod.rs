//! `imagelint rebuild`: the plan, carried out in a copy of the Dockerfile, and held against a scan of what was built.

mod builder;
mod child;
mod edits;
mod names;
mod promise;
mod secrets;
mod start;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use tempfile::TempDir;

use self::builder::{Builder, Request};
pub use self::child::Watch;
use self::child::{Ended, stream};
use self::edits::Planned;
use self::promise::Promise;
use self::secrets::Secrets;
use super::args::RebuildArgs;
use super::error::CliError;
use super::lint::{Around, Mended, Subject, shown};
use super::output::{Screen, write_file};
use super::reader::Reader;
use super::{UNANSWERED, fleet};
use crate::catalog::Catalog;
use crate::cli::basis;
use crate::config::Fleet;
use crate::lint::{self, JudgeOptions};
use crate::model::Evidence;
use crate::plan;
use crate::report::rebuild::{RebuildReport, Rebuilt};
use crate::report::{Format, Plan, Report};

/// Version of the JSON schema.
const SCHEMA: u32 = 1;

/// What builders read beside a Dockerfile, by its name.
const BESIDE: [&str; 2] = [".dockerignore", ".containerignore"];

pub fn run(args: &RebuildArgs, screen: &Screen) -> Result<u8, CliError> {
    if args.image.is_none() && args.dockerfile.is_none() {
        return Err(CliError::NothingToRebuild);
    }
    let catalog = basis::catalog();
    let fleet = fleet::choose(args.fleet.as_deref(), &args.targets, catalog, screen)?;
    fleet::warn_of_unknown_rules(&fleet, screen);
    if fleet.targets.is_empty() {
        return Err(CliError::NoTargets);
    }
    let context = context(args.context.as_deref(), args.dockerfile.as_deref())?;
    let around = Around {
        build_args: &args.build_args,
        stage: args.stage.as_deref(),
        platform: args.platform.as_ref().map(ToString::to_string),
        context: context.as_deref(),
    };
    let subject = Subject::read(args.dockerfile.as_deref(), around, &fleet, catalog)?;
    let temporary = |source| CliError::write(std::env::temp_dir(), source);
    let folder = tempfile::Builder::new().prefix("imagelint-").tempdir().map_err(temporary)?;
    let watch = Watch::start(folder.path()).map_err(temporary)?;
    // A Dockerfile that is made here copies nothing.
    let context = match context {
        Some(context) => context,
        None => {
            let empty = folder.path().join("context");
            fs::create_dir(&empty).map_err(temporary)?;
            empty
        }
    };
    let secrets = Secrets::of(&args.build_args);
    let reader = Reader::new(&args.read, false, screen)?;
    Run { args, screen, reader, catalog, fleet: &fleet, context, folder, watch, secrets, builder: None }
        .all(subject)
}

/// The folder that is built from; none where nobody named one, and there is no Dockerfile that stands in one.
fn context(asked: Option<&Path>, dockerfile: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let parent =
        |file: &Path| file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    let Some(folder) = asked.map(Path::to_owned).or_else(|| dockerfile.map(parent)) else { return Ok(None) };
    match fs::canonicalize(&folder) {
        Ok(real) if real.is_dir() => Ok(Some(real)),
        _ => Err(CliError::NotFound(shown(&folder))),
    }
}

struct Run<'a> {
    args: &'a RebuildArgs,
    screen: &'a Screen,
    reader: Reader<'a>,
    catalog: &'a Catalog,
    fleet: &'a Fleet,
    context: PathBuf,
    /// Gone with the run.
    folder: TempDir,
    watch: Watch,
    secrets: Secrets,
    /// Looked for when there is something to build.
    builder: Option<Builder>,
}

/// One image to build.
struct Job {
    /// Of several images: the part of its name, and the fleet that it is for.
    tag: Option<String>,
    fleet: Fleet,
    mended: Mended,
    diff: Vec<u8>,
    promise: Promise,
}

impl Run<'_> {
    fn all(mut self, mut subject: Subject<'_>) -> Result<u8, CliError> {
        let before = self.args.image.as_deref().map(|image| self.look(image, None, self.fleet)).transpose()?;
        let original = subject.bytes.clone();
        let mut builds = Vec::new();
        let mut plan = before.as_ref().and_then(|(report, _)| report.plan.clone());
        let mut jobs = match &before {
            Some((report, evidence)) => self.planned(&subject, report, evidence)?,
            None => vec![self.predicted(&subject)],
        };
        if let Some((report, evidence)) = &before {
            let status = lint::exit_code(report, self.args.fail_on.into(), self.args.allow_gaps);
            self.told(&self.plan(report, evidence)?)?;
            if status == UNANSWERED {
                self.screen.unanswered(&lint::unanswered(report, self.args.allow_gaps));
                return Ok(UNANSWERED);
            }
            let nothing = jobs.iter().all(|job| job.diff.is_empty());
            if nothing && (status == 0 || subject.path.is_none()) {
                if status != 0 {
                    self.screen
                        .notice("no step of the plan can be made in a Dockerfile that starts from the image");
                }
                return self.finish(report.tool.clone(), plan, builds, status == 0);
            }
        }
        if self.args.write && jobs.len() > 1 {
            return Err(CliError::WriteOfSeveral { place: subject.name });
        }
        loop {
            for job in &jobs {
                self.told(&self.announced(job, &subject.name))?;
            }
            let mut last = None;
            for job in &jobs {
                let (built, evidence) = self.build(job, &subject)?;
                builds.push(built);
                last = Some(evidence);
            }
            let round = builds.iter().rev().take(jobs.len());
            let kept = round.clone().all(|b| b.kept);
            if kept {
                break;
            }
            // What a scan of the first shows may be mended where nothing was scanned before.
            let (Some(built), Some(evidence)) = (builds.last(), last) else { break };
            if before.is_some() || builds.len() > 1 {
                break;
            }
            if let [job] = jobs.as_slice() {
                subject.bytes.clone_from(&job.mended.bytes);
            }
            let mut again = self.planned(&subject, &built.report, &evidence)?;
            let [job] = again.as_mut_slice() else { break };
            if job.diff.is_empty() {
                break;
            }
            // What was promised once is still to be kept.
            for first in &jobs {
                job.promise = std::mem::take(&mut job.promise).and(first.promise.clone());
            }
            plan = built.report.plan.clone();
            self.told(b"\nThe promise was not kept. The scan shows what the file did not; once more:\n")?;
            jobs = again;
        }
        let kept = builds.iter().rev().take(jobs.len()).all(|b| b.kept);
        if kept {
            if let [job] = jobs.as_slice()
                && self.args.write
                && job.mended.bytes != original
                && let Some(path) = &subject.path
            {
                write_file(path, &job.mended.bytes)?;
                self.screen.notice(&format!("{}: the patched Dockerfile was written", subject.name));
            }
            let from = builds.len() - jobs.len();
            for built in builds.iter_mut().skip(from).filter(|_| self.args.push) {
                self.push(&built.name)?;
                built.pushed = true;
            }
        }
        match builds.last().map(|b| b.report.tool.clone()) {
            Some(tool) => self.finish(tool, plan, builds, kept),
            None => Ok(u8::from(!kept)),
        }
    }

    fn finish(
        &self,
        tool: crate::report::Tool,
        plan: Option<Plan>,
        builds: Vec<Rebuilt>,
        kept: bool,
    ) -> Result<u8, CliError> {
        let status = u8::from(!kept);
        let report = RebuildReport { schema: SCHEMA, tool, image: self.args.image.clone(), plan, builds, kept };
        match self.args.format {
            Format::Json => {
                let json = report.json().map_err(|e| CliError::Write { place: "the report".into(), source: e })?;
                self.screen.print(&json)?;
            }
            _ => self.screen.print(report.table(&self.screen.style(Some(status))).as_bytes())?,
        }
        Ok(status)
    }

    /// What is to be seen before a build: on standard output where that is for reading.
    fn told(&self, text: &[u8]) -> Result<(), CliError> {
        match self.args.format {
            Format::Json => Ok(()),
            _ => self.screen.print(text),
        }
    }

    fn announced(&self, job: &Job, name: &str) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(tag) = &job.tag {
            let targets: Vec<&str> = job.fleet.targets.iter().map(|t| t.name.as_str()).collect();
            out.extend_from_slice(format!("\nFor {} ({tag}):\n", targets.join(", ")).as_bytes());
        }
        for left in &job.mended.left {
            out.extend_from_slice(format!("\n{left}\n").as_bytes());
        }
        if job.diff.is_empty() {
            out.extend_from_slice(format!("\nNo edit of {name} is known: it is built as it stands.\n").as_bytes());
            return out;
        }
        out.push(b'\n');
        for change in &job.mended.changes {
            out.extend_from_slice(format!("{change}\n").as_bytes());
        }
        out.push(b'\n');
        out.extend_from_slice(&job.diff);
        out
    }

    /// Scans and judges; `name` is what reports call the image.
    fn look(&self, image: &str, name: Option<&str>, fleet: &Fleet) -> Result<(Report, Vec<Evidence>), CliError> {
        let mut evidence = self.reader.read(image, self.args.platform.as_ref(), fleet)?.evidence;
        for one in &mut evidence {
            if let Some(name) = name {
                name.clone_into(&mut one.image.reference);
            }
        }
        let options = JudgeOptions { allow_gaps: self.args.allow_gaps, today: basis::today(), config: true };
        Ok((lint::judge(&evidence, fleet, self.catalog, &options), evidence))
    }

    /// What is to be built of a Dockerfile that nothing is known of but what it says.
    fn predicted(&self, subject: &Subject<'_>) -> Job {
        let mended = subject.mended(None);
        let promise = Promise::predicted(&subject.predicted(&subject.bytes), &subject.predicted(&mended.bytes));
        Job { tag: None, fleet: self.fleet.clone(), diff: subject.patch(&mended.bytes), mended, promise }
    }

    /// What is to be built by the plan of a scan: one image, or the fewest that serve the fleet.
    fn planned(&self, subject: &Subject<'_>, report: &Report, evidence: &[Evidence]) -> Result<Vec<Job>, CliError> {
        let (Some(plan), Some(image)) = (&report.plan, evidence.first()) else { return Ok(Vec::new()) };
        if plan.tags.is_empty() {
            return Ok(vec![job(subject, report, plan, None, self.fleet.clone(), image)?]);
        }
        let of = |tag: &crate::report::Tag| {
            let mut fleet = self.fleet.clone();
            fleet.targets.retain(|t| tag.targets.contains(&t.name));
            job(subject, report, plan, Some(&tag.name), fleet, image)
        };
        plan.tags.iter().map(of).collect()
    }

    /// The plan to be read.
    fn plan(&self, report: &Report, evidence: &[Evidence]) -> Result<Vec<u8>, CliError> {
        let config = evidence.first().map(|e| &e.image.config);
        let input = plan::Input { report, config, dockerfile: None, tag: None };
        Ok(plan::emit(&input, plan::Emit::Text)?.bytes)
    }

    fn builder(&mut self) -> Result<Builder, CliError> {
        match &self.builder {
            Some(builder) => Ok(builder.clone()),
            None => {
                let builder = Builder::find(self.args.builder, &self.watch)?;
                self.builder = Some(builder.clone());
                Ok(builder)
            }
        }
    }

    /// Builds, scans what came of it and holds that against the promise.
    fn build(&mut self, job: &Job, subject: &Subject<'_>) -> Result<(Rebuilt, Vec<Evidence>), CliError> {
        let builder = self.builder()?;
        let name = names::name(self.args.tag.as_deref(), &job.mended.bytes, job.tag.as_deref());
        let start = match subject.path {
            Some(_) => None,
            None => self.start(&builder, &job.mended.bytes)?,
        };
        let dockerfile = self.placed(subject, &job.mended.bytes)?;
        let request = Request {
            dockerfile: &dockerfile,
            context: &self.context,
            name: &name,
            stage: self.args.stage.as_deref(),
            platform: self.args.platform.as_ref().map(ToString::to_string),
            build_args: &self.args.build_args,
            image: start.as_deref(),
            extra: &self.args.extra,
        };
        self.screen.notice(&format!("building {name} with {}", builder.told()));
        let ended = self.streamed(&builder, builder.build(&request))?;
        succeeded(&builder, &format!("build {}", subject.name), ended)?;
        let archive = self.folder.path().join("image.tar");
        let (export, reference) = builder.export(&name, &archive);
        let ended = self.streamed(&builder, export)?;
        succeeded(&builder, &format!("write {name} to a file in {}", shown(&std::env::temp_dir())), ended)?;
        let looked = self.look(&reference, Some(&name), &job.fleet);
        // It is as large as the image; what cannot be removed goes with the folder.
        let _ = fs::remove_file(&archive);
        let (report, evidence) = looked?;
        let unanswered = lint::unanswered(&report, self.args.allow_gaps);
        if let Some(first) = unanswered.first() {
            return Err(CliError::NotSeen { name, why: first.clone() });
        }
        let outcome = job.promise.held(&report, &job.fleet, self.args.fail_on.into());
        let built = Rebuilt {
            name,
            tag: job.tag.clone(),
            builder: builder.told(),
            changes: job.mended.changes.clone(),
            diff: String::from_utf8_lossy(&job.diff).into_owned(),
            targets: outcome.targets,
            effect: outcome.effect,
            kept: outcome.broken.is_empty(),
            broken: outcome.broken,
            pushed: false,
            report,
        };
        Ok((built, evidence))
    }

    /// What a Dockerfile that was made here is to start from, where that is no name of a registry.
    fn start(&self, builder: &Builder, dockerfile: &[u8]) -> Result<Option<String>, CliError> {
        if memchr::memmem::find(dockerfile, b"FROM ${IMAGE}").is_none() {
            return Ok(None);
        }
        let reference = self.args.image.clone().unwrap_or_default();
        match start::transport(&reference).filter(|_| builder.starts_from_archives()) {
            Some(image) => Ok(Some(image)),
            None => Err(CliError::NoStart { reference, builder: builder.label() }),
        }
    }

    /// The Dockerfile in a folder of its own, with what the builder looks for beside it.
    fn placed(&self, subject: &Subject<'_>, bytes: &[u8]) -> Result<PathBuf, CliError> {
        let name = subject.path.as_deref().and_then(Path::file_name).unwrap_or("Dockerfile".as_ref());
        let place = self.folder.path().join(name);
        fs::write(&place, bytes).map_err(|e| CliError::write(place.clone(), e))?;
        let Some(path) = &subject.path else { return Ok(place) };
        for ending in BESIDE {
            let mut beside = name.to_owned();
            beside.push(ending);
            let from = path.with_file_name(&beside);
            if from.is_file() {
                fs::copy(&from, self.folder.path().join(&beside)).map_err(|e| CliError::read(&from, e))?;
            }
        }
        Ok(place)
    }

    fn streamed(&self, builder: &Builder, command: std::process::Command) -> Result<Ended, CliError> {
        let start = |source| CliError::Start { builder: builder.label(), source };
        stream(command, self.screen.quiet, &self.secrets, &self.watch).map_err(start)
    }

    fn push(&mut self, name: &str) -> Result<(), CliError> {
        let builder = self.builder()?;
        self.screen.notice(&format!("pushing {name} with {}", builder.label()));
        let ended = self.streamed(&builder, builder.push(name))?;
        succeeded(&builder, &format!("push {name}, which is built and serves the fleet as was promised"), ended)
    }
}

/// One image by a plan.
fn job(
    subject: &Subject<'_>,
    report: &Report,
    plan: &Plan,
    tag: Option<&str>,
    fleet: Fleet,
    image: &Evidence,
) -> Result<Job, CliError> {
    let Planned { mended, left } = match &subject.path {
        Some(_) => edits::of_plan(subject, plan, tag, image),
        None => edits::fresh(report, tag, image)?,
    };
    let said = Promise::predicted(&subject.predicted(&subject.bytes), &subject.predicted(&mended.bytes));
    let promise = Promise::planned(report, plan, tag, &left).and(said);
    Ok(Job { tag: tag.map(str::to_owned), fleet, diff: subject.patch(&mended.bytes), mended, promise })
}

fn succeeded(builder: &Builder, what: &str, ended: Ended) -> Result<(), CliError> {
    if ended.status.success() {
        return Ok(());
    }
    let how = how(ended.status);
    Err(CliError::Builder { builder: builder.label(), what: what.to_owned(), how, tail: ended.tail })
}

/// `exit status 1`, `signal 9`.
fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit status".to_owned(),
    }
}
