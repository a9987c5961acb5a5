//! `imagelint action-outputs`: what the GitHub Action hands to the steps behind it.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;

use super::args::ActionOutputsArgs;
use super::error::CliError;
use super::output::Screen;
use crate::model::{Digest, Severity};

/// As much of a report of images or Dockerfiles as is counted.
#[derive(Deserialize)]
struct Document {
    image: Option<Image>,
    findings: Vec<Counted>,
}

#[derive(Deserialize)]
struct Image {
    digest: Option<Digest>,
}

#[derive(Deserialize)]
struct Counted {
    severity: Severity,
}

#[derive(Default)]
struct Sum {
    findings: usize,
    errors: usize,
    warnings: usize,
    digests: Vec<Digest>,
}

/// Prints `name=value` lines, as the file GITHUB_OUTPUT takes them: no value of a report is among them but numbers and
/// a digest.
pub fn run(args: &ActionOutputsArgs, screen: &Screen) -> Result<u8, CliError> {
    let sum = read(&args.report)?;
    // Of several images, none is the one.
    let digest = match &sum.digests[..] {
        [one] => one.to_string(),
        _ => String::new(),
    };
    let Sum { findings, errors, warnings, .. } = sum;
    screen.print(
        format!("findings={findings}\nerrors={errors}\nwarnings={warnings}\ndigest={digest}\n").as_bytes(),
    )?;
    Ok(0)
}

/// One object, or one a line.
fn read(report: &Path) -> Result<Sum, CliError> {
    let file = File::open(report).map_err(|e| CliError::read(report, e))?;
    let mut sum = Sum::default();
    for document in serde_json::Deserializer::from_reader(BufReader::new(file)).into_iter::<Document>() {
        let document = document.map_err(|e| CliError::read(report, e.into()))?;
        sum.findings += document.findings.len();
        let of = |severity| document.findings.iter().filter(|f| f.severity == severity).count();
        sum.errors += of(Severity::Error);
        sum.warnings += of(Severity::Warning);
        sum.digests.extend(document.image.and_then(|image| image.digest));
    }
    Ok(sum)
}
