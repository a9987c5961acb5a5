//! Rules of Dockerfiles that an image's config alone can answer, where there is no Dockerfile: the config is written
//! down as one, and each line knows the layer it came from.

use std::collections::BTreeMap;

use super::{CHECKS, Check, Found, Lint, Loudness, run};
use crate::catalog::Catalog;
use crate::dockerfile::commands::{Files, asks};
use crate::dockerfile::parse::parse;
use crate::dockerfile::reading::{Inputs, read};
use crate::model::{Evidence, Finding, ImageFacts, Severity, Target, Verdict};

/// Steps of a history longer than this are left out: a script that was copied in whole says little.
const LONGEST_STEP: usize = 16 * 1024;

/// What the rules that hold for configs say of an image.
pub fn findings(
    evidence: &Evidence,
    targets: &[Target],
    catalog: &Catalog,
    levels: &BTreeMap<String, Loudness>,
) -> Vec<Finding> {
    if evidence.image.alone {
        return Vec::new();
    }
    let (text, layers) = written(&evidence.image);
    let reading = read(parse(text.as_bytes()), &Inputs::default());
    let asks = asks(&reading, &NoFiles);
    let lint = Lint::new(&reading, &asks, targets, catalog, Some(evidence));
    let loudness = |c: &Check| {
        let asked = levels.get(c.id).copied().unwrap_or(if c.on { Loudness::On } else { Loudness::Off });
        (c.id.to_owned(), if c.config { asked } else { Loudness::Off })
    };
    let asked: BTreeMap<String, Loudness> = CHECKS.iter().map(loudness).collect();
    let mut out: Vec<Finding> = Vec::new();
    for (check, found) in run(&lint, &asked) {
        let line = reading.document.lines.line(found.span.start);
        let layer = layers.get(line.saturating_sub(1)).copied().flatten();
        let finding = told(check, found, evidence, layer);
        if !out.iter().any(|o| o.rule == finding.rule && o.message == finding.message) {
            out.push(finding);
        }
    }
    out
}

fn told(check: &Check, found: Found, evidence: &Evidence, layer: Option<usize>) -> Finding {
    let verdict = match found.severity {
        Severity::Error => Verdict::Fail,
        Severity::Warning => Verdict::Warn,
        Severity::Note => Verdict::Ok,
    };
    let layer = layer.and_then(|at| evidence.image.layers.get(at));
    let mut because = found.because;
    because.push(match layer.and_then(|l| l.created_by.as_deref()) {
        Some(step) => format!("the image's history: {}", short(step)),
        None => "the image's config".to_owned(),
    });
    let mut finding = Finding::new(check.id, found.severity, verdict, found.message);
    finding.confidence = found.confidence;
    finding.targets = found.targets;
    finding.help = found.help;
    finding.layer = layer.and_then(|l| l.digest);
    finding.because = because;
    finding
}

fn short(step: &str) -> String {
    let line: String = step.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// A config as a Dockerfile, and the layer of each of its lines.
fn written(image: &ImageFacts) -> (String, Vec<Option<usize>>) {
    // What the image is built on is not known: its own steps and those of its base cannot be told apart.
    let mut lines = vec![("FROM $BASE".to_owned(), None)];
    for (at, layer) in image.layers.iter().enumerate() {
        if let Some(command) = layer.created_by.as_deref().and_then(command) {
            lines.push((format!("RUN {command}"), Some(at)));
        }
    }
    for (name, value) in &image.config.env {
        if name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) && !name.is_empty() {
            lines.push((format!("ENV {name}=\"{}\"", quoted(value)), None));
        }
    }
    let text = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    (text, lines.into_iter().map(|(_, layer)| layer).collect())
}

/// The shell command of a step that ran one, in one line.
fn command(step: &str) -> Option<String> {
    let (_, command) = step.split_once("/bin/sh -c ")?;
    if command.starts_with("#(nop)") || command.len() > LONGEST_STEP || command.contains("<<") {
        return None;
    }
    let command = command.trim().trim_end_matches("# buildkit").trim();
    let lines: Vec<&str> = command.lines().map(|l| l.trim().trim_end_matches('\\')).collect();
    Some(lines.join(" ")).filter(|c| !c.is_empty())
}

fn quoted(value: &str) -> String {
    let mut out = String::new();
    for c in value.chars() {
        match c {
            '"' | '\\' | '$' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Option<Result<Vec<u8>, String>> {
        None
    }
}
