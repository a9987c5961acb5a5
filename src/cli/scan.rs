//! `imagelint scan`, and the judging that `plan` shares.

use std::path::PathBuf;
use std::time::Instant;

use super::UNANSWERED;
use super::args::{FailOn, ImageArgs, ScanArgs};
use super::error::CliError;
use super::fleet;
use super::lint::Beside;
use super::output::{Screen, write_file};
use super::progress::Bars;
use super::saved;
use crate::catalog::Catalog;
use crate::config::Date;
use crate::config::Fleet;
use crate::image::ImageError;
use crate::image::sources::OpenOptions;
use crate::lint::{self, JudgeOptions};
use crate::model::Evidence;
use crate::report::{self, Format, Report, sarif};
use crate::scan::{self, ScanOptions, Scanned, Silent};

pub fn run(args: &ScanArgs, screen: &Screen) -> Result<u8, CliError> {
    let mut first = true;
    let mut runs = Vec::new();
    let status = judge(&args.image, screen, |judged| {
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
    let mut from_images = args.images.iter().map(|image| one(image, args, &fleet, screen));
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

/// The evidence of one image, of each platform that the fleet is of.
pub fn one(image: &str, args: &ImageArgs, fleet: &Fleet, screen: &Screen) -> Result<Vec<Evidence>, CliError> {
    let open = OpenOptions { insecure: args.insecure_registries.clone(), ..OpenOptions::default() };
    let mut options = ScanOptions { jobs: args.jobs, ..ScanOptions::default() };
    if let Some(ratio) = args.max_ratio {
        options.max_ratio = ratio;
    }
    if let Some(limit) = args.max_layer_size {
        options.max_layer_bytes = limit;
    }
    options.platforms = match args.platform.clone() {
        Some(asked) => vec![asked],
        // A stream cannot be read a second time, should it not have what the targets would like.
        None if image == "-" => Vec::new(),
        None => fleet::platforms(fleet),
    };
    let mut result = observed(image, &open, &options, screen);
    if args.platform.is_none() && matches!(result, Err(ImageError::NoSuchPlatform { .. })) {
        // Nobody asked for that platform by name: what there is gets judged, for being of another platform.
        options.platforms.clear();
        result = observed(image, &open, &options, screen);
    }
    let scanned = result?;
    for notice in &scanned.notices {
        screen.notice(notice);
    }
    Ok(scanned.evidence)
}

fn observed(
    image: &str,
    open: &OpenOptions,
    options: &ScanOptions,
    screen: &Screen,
) -> Result<Scanned, ImageError> {
    if !screen.draws() {
        return scan::run(image, open, options, &Silent);
    }
    let bars = Bars::new();
    let scanned = scan::run(image, open, options, &bars);
    bars.clear();
    scanned
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
