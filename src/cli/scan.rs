//! `imagelint scan`, and the judging that `plan` shares.

use std::path::PathBuf;
use std::time::Instant;

use super::UNANSWERED;
use super::affinity;
use super::args::{FailOn, ImageArgs, ScanArgs};
use super::attest;
use super::baseline;
use super::basis;
use super::error::CliError;
use super::lint::Beside;
use super::many;
use super::output::Screen;
use super::outputs::{Outputs, document, render};
use super::policy::{self, Asked, Chosen};
use super::reader::{Read, Reader};
use super::saved;
use crate::config::Fleet;
use crate::image::sources::OpenOptions;
use crate::lint::{self, JudgeOptions};
use crate::model::{Evidence, Gap, ImageFacts};
use crate::report::table::overview::{self, ImageRow, Work};
use crate::report::{self, Format, Gathered, Report};
use crate::scan::LayerRun;

pub fn run(args: &ScanArgs, screen: &Screen) -> Result<u8, CliError> {
    let mut first = true;
    let baseline = args.baseline.as_deref().map(baseline::of_images).transpose()?;
    let amend = |report: &mut Report, made: &Made<'_>| {
        if args.sizes {
            report.sizes = Some(lint::sizes(made.evidence, made.fleet, basis::catalog()));
        }
        if let Some(baseline) = &baseline
            && !baseline.apply(report, made.several)
        {
            let name = report.image.as_ref().map_or("", |i| i.reference.as_str());
            screen.notice(&format!("the baseline has no report of {name}: all its findings are new"));
        }
        Ok(())
    };
    // Of a long list, one row an image is what a person can read.
    let in_short = args.image.many.list.is_some() && screen.verbose() == 0;
    let (mut rows, mut work) = (Vec::new(), Work::default());
    let mut several_images = false;
    // What is not to be had beside the reports keeps none of them back.
    let mut refused = None;
    // Of a format that is one document, however many images.
    let mut gathered: Option<Gathered> = None;
    let status = judge_and_amend(&args.image, screen, amend, |judged| {
        if !judged.unread {
            let written = gate(args, &judged);
            refused = refused.take().or(written.err());
        }
        let Judged { report, status, several, unread, .. } = judged;
        several_images = several;
        let style = screen.style(Some(status));
        let mut out = Vec::new();
        if gathered.is_none() {
            gathered = Gathered::new(args.format, several);
        }
        if let Some(gathered) = &mut gathered {
            gathered.add(report, unread, Some(status));
            return Ok(());
        }
        match args.format {
            Format::Table if several => {
                rows.push(ImageRow::new(report, unread));
                for run in judged.runs.iter().flatten() {
                    work.layers += 1;
                    work.cached += usize::from(run.cached);
                    work.read += run.read;
                }
                if !unread && !in_short {
                    render(report::write_next(report, first, args.format, &style, &mut out))?;
                    first = false;
                }
            }
            _ if several => render(report::write_next(report, first, args.format, &style, &mut out))?,
            _ => render(report::write(report, args.format, &style, &mut out))?,
        }
        screen.print(&out)
    })?;
    if let Some(gathered) = gathered.filter(|g| !g.is_empty()) {
        screen.print(&document(gathered, status)?)?;
    }
    if args.format == Format::Table && several_images {
        let work = (work.layers > 0).then_some(work);
        let text = overview::render(&rows, work, &screen.style(Some(status)));
        let gap = if first { "" } else { "\n" };
        screen.print(format!("{gap}{text}").as_bytes())?;
    }
    refused.map_or(Ok(status), Err)
}

/// What those who let images in, and those who place them, are given.
fn gate(args: &ScanArgs, judged: &Judged<'_>) -> Result<(), CliError> {
    if let Some(file) = &args.gate.attest {
        attest::write(file, &args.image, judged)?;
    }
    affinity::write(&args.gate, judged, basis::catalog())
}

/// One image, judged.
pub struct Judged<'a> {
    pub report: &'a Report,
    /// The exit status that the report alone would give.
    pub status: u8,
    pub fleet: &'a Fleet,
    /// Whether it is one of several images.
    pub several: bool,
    /// Of each platform that was scanned.
    pub evidence: &'a [Evidence],
    pub beside: Option<&'a Beside<'a>>,
    /// It could not be looked at: the report says just that.
    pub unread: bool,
    /// What reading its layers took.
    pub runs: &'a [Vec<LayerRun>],
}

/// Scans (or loads) and judges each image, hands each report to `show` as soon as it is there, and writes the files
/// that were asked for. One image that cannot be read does not keep the others from being judged.
pub fn judge(
    args: &ImageArgs,
    screen: &Screen,
    show: impl FnMut(Judged<'_>) -> Result<(), CliError>,
) -> Result<u8, CliError> {
    judge_and_amend(args, screen, |_, _| Ok(()), show)
}

/// What a report was made of.
pub struct Made<'a> {
    pub evidence: &'a [Evidence],
    pub fleet: &'a Fleet,
    /// How servers are spoken to.
    pub open: &'a OpenOptions,
    /// It is one of several.
    pub several: bool,
}

/// The same; `amend` is handed each report with what it was made of, before it is shown.
pub fn judge_and_amend(
    args: &ImageArgs,
    screen: &Screen,
    amend: impl Fn(&mut Report, &Made<'_>) -> Result<(), CliError>,
    mut show: impl FnMut(Judged<'_>) -> Result<(), CliError>,
) -> Result<u8, CliError> {
    let catalog = basis::catalog();
    let images = many::images(&args.many, &args.images, args.read.servers.password_stdin)?;
    let loaded = args.from_evidence.as_deref().map(saved::load).transpose()?;
    let several = images.len() > 1 || args.many.list.is_some() || loaded.as_ref().is_some_and(|l| l.len() > 1);
    let reader = Reader::new(&args.read, several, screen)?;
    let asked = Asked { policy: &args.policy, fleet: args.fleet.as_deref(), targets: &args.targets };
    let Chosen { fleet, policy } = policy::choose(&asked, reader.open(), catalog, screen)?;
    policy.iter().for_each(|policy| Chosen::tell(policy, screen));
    let options =
        JudgeOptions { allow_gaps: args.allow_gaps, today: basis::today(), config: args.dockerfile.is_none() };
    let platform = args.platform.as_ref().map(ToString::to_string);
    let beside = |path: &PathBuf| Beside::read(path, platform, &fleet, catalog);
    let beside = args.dockerfile.as_ref().map(beside).transpose()?;
    let mut worst = 0;
    let mut outputs = Outputs::new(&args.outputs, several);
    let mut saved = args.save_evidence.as_deref().map(saved::Saved::create).transpose()?;
    let mut take = |name: &str, read: Result<Read, CliError>| {
        let started = Instant::now();
        let (read, unread) = match read {
            Ok(read) => (read, false),
            Err(error) => {
                screen.error(&error);
                worst = UNANSWERED;
                if !several {
                    return Ok(());
                }
                // Of many, each has its line.
                (Read { evidence: vec![unopened(name, &error)], ..Read::default() }, true)
            }
        };
        let evidence = &read.evidence[..];
        let options = JudgeOptions { allow_gaps: args.allow_gaps && !unread, ..options };
        let mut report = lint::judge(evidence, &fleet, catalog, &options);
        if !unread {
            if let Some(beside) = &beside {
                beside.join(&mut report, evidence);
            }
            amend(&mut report, &Made { evidence, fleet: &fleet, open: reader.open(), several })?;
            if let Some(beside) = &beside {
                beside.change(&mut report, evidence.first());
            }
        }
        if let Some(policy) = &policy {
            policy::add_to(&mut report, policy, screen);
        }
        if args.stats {
            tell_work(&mut report, &read, started.elapsed().as_secs_f64());
        }
        let status = match unread {
            true => UNANSWERED,
            false => lint::exit_code(&report, args.fail_on.into(), args.allow_gaps),
        };
        if !unread {
            screen.unanswered(&lint::unanswered(&report, args.allow_gaps));
        }
        worst = worst.max(status);
        let beside = beside.as_ref();
        show(Judged {
            report: &report,
            status,
            fleet: &fleet,
            several,
            evidence,
            beside,
            unread,
            runs: &read.runs,
        })?;
        if let Some(saved) = saved.as_mut().filter(|_| !unread) {
            saved.add(evidence)?;
        }
        outputs.add(&report, status, unread, screen)
    };
    for evidence in loaded.into_iter().flatten() {
        take("", Ok(Read { evidence, ..Read::default() }))?;
    }
    reader.read_all(&images, args.many.list.is_some(), args.platform.as_ref(), &fleet, take)?;
    if let Some(saved) = saved {
        saved.finish()?;
    }
    outputs.finish(worst)?;
    Ok(worst)
}

/// What is known of an image that could not be looked at.
fn unopened(name: &str, error: &CliError) -> Evidence {
    let image = ImageFacts { reference: name.to_owned(), ..ImageFacts::default() };
    let gaps = vec![Gap::image(error.to_string())];
    Evidence { schema: Evidence::SCHEMA, image, gaps, ..Evidence::default() }
}

/// What no two runs need agree on.
fn tell_work(report: &mut Report, read: &Read, judged: f64) {
    report.stats.seconds = Some(read.seconds + judged);
    if read.runs.is_empty() {
        return;
    }
    report.stats.stored_bytes_read = Some(read.runs.iter().flatten().map(|run| run.read).sum());
    // The report's layers are those of its first platform.
    let layers = report.image.iter_mut().flat_map(|image| &mut image.layers);
    for (layer, run) in layers.zip(read.runs.iter().flatten()) {
        layer.cached = Some(run.cached);
    }
}

impl From<FailOn> for lint::FailOn {
    fn from(chosen: FailOn) -> Self {
        match chosen {
            FailOn::Error => Self::Error,
            FailOn::Warning => Self::Warning,
            FailOn::Note => Self::Note,
            FailOn::Never => Self::Never,
        }
    }
}
