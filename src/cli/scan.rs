//! `imagelint scan`, and the judging that `plan` shares.

use std::path::PathBuf;
use std::time::Instant;

use super::UNANSWERED;
use super::args::{FailOn, ImageArgs, ScanArgs};
use super::baseline;
use super::error::CliError;
use super::fleet;
use super::lint::Beside;
use super::output::{Screen, write_file};
use super::reader::Reader;
use super::saved;
use crate::catalog::Catalog;
use crate::config::Date;
use crate::config::Fleet;
use crate::image::sources::OpenOptions;
use crate::lint::{self, JudgeOptions};
use crate::model::Evidence;
use crate::report::{self, Format, Report, sarif};

pub fn run(args: &ScanArgs, screen: &Screen) -> Result<u8, CliError> {
    let mut first = true;
    let mut runs = Vec::new();
    let baseline = args.baseline.as_deref().map(baseline::of_images).transpose()?;
    let amend = |report: &mut Report, made: &Made<'_>| {
        if args.sizes {
            report.sizes = Some(lint::sizes(made.evidence, made.fleet, Catalog::embedded()));
        }
        if let Some(baseline) = &baseline
            && !baseline.apply(report, made.several)
        {
            let name = report.image.as_ref().map_or("", |i| i.reference.as_str());
            screen.notice(&format!("the baseline has no report of {name}: all its findings are new"));
        }
        Ok(())
    };
    let status = judge_and_amend(&args.image, screen, amend, |judged| {
        let Judged { report, status, several, .. } = judged;
        let style = screen.style(Some(status));
        let mut out = Vec::new();
        if args.format == Format::Sarif {
            // One log, however many images.
            runs.push(sarif::of_image(report, Some(status), several));
            return Ok(());
        } else if several {
            render(report::write_next(report, first, args.format, &style, &mut out))?;
        } else {
            render(report::write(report, args.format, &style, &mut out))?;
        }
        first = false;
        screen.print(&out)
    })?;
    if args.format == Format::Sarif && !runs.is_empty() {
        screen.print(&log(runs)?)?;
    }
    Ok(status)
}

fn log(runs: Vec<sarif::Run>) -> Result<Vec<u8>, CliError> {
    sarif::log(runs).map_err(|source| CliError::Write { place: "the report".into(), source })
}

/// One image, judged.
pub struct Judged<'a> {
    pub report: &'a Report,
    /// The exit status that the report alone would give.
    pub status: u8,
    /// Whether it is one of several images.
    pub several: bool,
    /// Of each platform that was scanned.
    pub evidence: &'a [Evidence],
    pub beside: Option<&'a Beside<'a>>,
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
    let catalog = Catalog::embedded();
    let fleet = fleet::choose(args.fleet.as_deref(), &args.targets, catalog, screen)?;
    let options =
        JudgeOptions { allow_gaps: args.allow_gaps, today: Date::today(), config: args.dockerfile.is_none() };
    let platform = args.platform.as_ref().map(ToString::to_string);
    let beside = |path: &PathBuf| Beside::read(path, platform, &fleet, catalog);
    let beside = args.dockerfile.as_ref().map(beside).transpose()?;
    let mut worst = 0;
    let mut reports: Vec<(Report, u8)> = Vec::new();
    let mut kept: Vec<Evidence> = Vec::new();
    let loaded = args.from_evidence.as_deref().map(saved::load).transpose()?;
    let several = args.images.len() > 1 || loaded.as_ref().is_some_and(|all| all.len() > 1);
    let reader = Reader::new(&args.read, screen)?;
    let mut from_images = args.images.iter().map(|image| reader.read(image, args.platform.as_ref(), &fleet));
    let mut from_file = loaded.into_iter().flatten().map(Ok);
    loop {
        let started = Instant::now();
        let evidence = match from_file.next().or_else(|| from_images.next()) {
            None => break,
            Some(Ok(evidence)) => evidence,
            Some(Err(error)) => {
                screen.error(&error);
                worst = UNANSWERED;
                continue;
            }
        };
        let mut report = lint::judge(&evidence, &fleet, catalog, &options);
        if let Some(beside) = &beside {
            beside.join(&mut report, &evidence);
        }
        amend(&mut report, &Made { evidence: &evidence, fleet: &fleet, open: reader.open(), several })?;
        if args.stats {
            report.stats.seconds = Some(started.elapsed().as_secs_f64());
        }
        let status = lint::exit_code(&report, args.fail_on.into(), args.allow_gaps);
        screen.unanswered(&lint::unanswered(&report, args.allow_gaps));
        worst = worst.max(status);
        show(Judged { report: &report, status, several, evidence: &evidence, beside: beside.as_ref() })?;
        if args.save_evidence.is_some() {
            kept.extend(evidence);
        }
        if !args.outputs.is_empty() {
            reports.push((report, status));
        }
    }
    drop(from_images);
    if let Some(path) = &args.save_evidence {
        saved::save(path, &kept)?;
    }
    for output in &args.outputs {
        let mut out = Vec::new();
        if output.format == Format::Sarif {
            let run = |(report, status): &(Report, u8)| sarif::of_image(report, Some(*status), several);
            write_file(&output.file, &log(reports.iter().map(run).collect())?)?;
            continue;
        }
        for (place, (report, status)) in reports.iter().enumerate() {
            let style = screen.file_style(Some(*status));
            if several {
                render(report::write_next(report, place == 0, output.format, &style, &mut out))?;
            } else {
                render(report::write(report, output.format, &style, &mut out))?;
            }
        }
        write_file(&output.file, &out)?;
    }
    Ok(worst)
}

/// Rendering goes to memory, so what can fail is the report itself.
pub fn render(result: std::io::Result<()>) -> Result<(), CliError> {
    result.map_err(|source| CliError::Write { place: "the report".into(), source })
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
