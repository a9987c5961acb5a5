//! `imagelint diff OLD NEW`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::UNANSWERED;
use super::args::DiffArgs;
use super::basis;
use super::error::CliError;
use super::output::Screen;
use super::outputs::render;
use super::reader::Reader;
use super::{fleet, saved};
use crate::config::Fleet;
use crate::diff::{self, Image};
use crate::lint::{self, JudgeOptions};
use crate::model::{Evidence, Platform};
use crate::report::Format;

pub fn run(args: &DiffArgs, screen: &Screen) -> Result<u8, CliError> {
    let catalog = basis::catalog();
    let fleet = fleet::choose(args.fleet.as_deref(), &args.targets, catalog, screen)?;
    fleet::warn_of_unknown_rules(&fleet, screen);
    let reader = Reader::new(&args.read, false, screen)?;
    let (old, new) = (read(&args.old, args, &fleet, &reader)?, read(&args.new, args, &fleet, &reader)?);
    let options = JudgeOptions { allow_gaps: args.allow_gaps, today: basis::today(), config: false };
    let judged = |evidence: &[Evidence]| lint::judge(evidence, &fleet, catalog, &options);
    let (before, after) = (judged(&old), judged(&new));
    let (a, b) = platform(&old, &new);
    let (Some(a), Some(b)) = (old.get(a), new.get(b)) else {
        return Err(CliError::NotOneImage { place: args.old.clone(), count: 0 });
    };
    if a.image.platform != b.image.platform {
        let name = |p: &Option<Platform>| p.as_ref().map_or_else(|| "none".to_owned(), Platform::to_string);
        let (a, b) = (name(&a.image.platform), name(&b.image.platform));
        screen.notice(&format!("the images are of different platforms, {a} and {b}"));
    }
    let sides = (Image { evidence: a, report: &before }, Image { evidence: b, report: &after });
    let mut report = diff::compare(sides.0, sides.1, &fleet.required_components, catalog);
    if args.allow_gaps {
        report.undecided.clear();
    }
    let status = match () {
        () if !report.undecided.is_empty() => UNANSWERED,
        () => u8::from(args.fail_on_loss && !report.losses.is_empty()),
    };
    let mut out = Vec::new();
    render(report.write(args.format == Format::Json, &screen.style(Some(status)), &mut out))?;
    screen.print(&out)?;
    screen.unanswered(&report.undecided);
    Ok(status)
}

/// An image, or a saved scan: what is named so, or a file that begins like one, as no image does.
fn read(word: &str, args: &DiffArgs, fleet: &Fleet, reader: &Reader<'_>) -> Result<Vec<Evidence>, CliError> {
    let path = match word.strip_prefix("evidence:") {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(PathBuf::from(word)).filter(|path| is_json(path)),
    };
    let Some(path) = path else {
        return Ok(reader.read(word, args.platform.as_ref(), fleet)?.evidence);
    };
    let mut images = saved::load(&path)?;
    if images.len() > 1 {
        return Err(CliError::NotOneImage { place: word.to_owned(), count: images.len() });
    }
    let mut evidence = images.pop().unwrap_or_default();
    if let Some(asked) = &args.platform {
        evidence.retain(|e| e.image.platform.as_ref().is_none_or(|p| p.serves(asked)));
        if evidence.is_empty() {
            let what = format!("it has no scan of {asked}");
            return Err(CliError::NotEvidence { place: word.to_owned(), what });
        }
    }
    Ok(evidence)
}

fn is_json(path: &Path) -> bool {
    let mut head = [0; 64];
    if !path.is_file() {
        return false;
    }
    let Ok(length) = File::open(path).and_then(|mut file| file.read(&mut head)) else { return false };
    head.get(..length).unwrap_or_default().trim_ascii_start().starts_with(b"{")
}

/// The platform that is compared: of those that both have, linux/amd64 first; else the first of each.
fn platform(old: &[Evidence], new: &[Evidence]) -> (usize, usize) {
    let same = |a: &Evidence, b: &Evidence| a.image.platform == b.image.platform;
    let pairs = old
        .iter()
        .enumerate()
        .flat_map(|(i, a)| new.iter().enumerate().filter(move |(_, b)| same(a, b)).map(move |(j, _)| (i, j)));
    let usual = |(i, _): &(usize, usize)| {
        old.get(*i).and_then(|e| e.image.platform.as_ref()).is_some_and(|p| p.serves(&Platform::default()))
    };
    pairs.clone().find(usual).or_else(|| pairs.clone().next()).unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ImageFacts;

    fn of(platforms: &[&str]) -> Vec<Evidence> {
        let one = |p: &&str| {
            let image = ImageFacts { platform: Some(Platform::linux(p)), ..ImageFacts::default() };
            Evidence { image, ..Evidence::default() }
        };
        platforms.iter().map(one).collect()
    }

    #[test]
    fn the_platform_that_both_have_is_compared() {
        let both = |a: &[&str], b: &[&str]| platform(&of(a), &of(b));
        assert_eq!(both(&["arm64", "amd64"], &["amd64", "arm64"]), (1, 0), "the usual one first");
        assert_eq!(both(&["amd64", "arm64"], &["arm64"]), (1, 0));
        assert_eq!(both(&["amd64"], &["arm64"]), (0, 0));
        assert_eq!(both(&["amd64"], &["amd64"]), (0, 0));
    }

    #[test]
    fn saved_scans_are_told_by_how_they_begin() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scan");
        for (text, json) in
            [("{\"schema\":2", true), (" \n{", true), ("\u{7f}ELF", false), ("", false), ("[1]", false)]
        {
            std::fs::write(&path, text).unwrap();
            assert_eq!(is_json(&path), json, "{text:?}");
        }
        assert!(!is_json(dir.path()) && !is_json(&dir.path().join("none")));
    }
}
