//! `--baseline FILE`.

use std::path::Path;

use super::bounded;
use super::error::CliError;
use crate::lint::Baseline;

/// Bytes of a baseline that are read.
const MOST_BYTES: u64 = 1 << 30;

/// Reads a baseline of images.
pub fn of_images(path: &Path) -> Result<Baseline, CliError> {
    let command = "scan IMAGE";
    let baseline = read(path, command)?;
    if baseline.is_of_images() {
        return Ok(baseline);
    }
    let what = "it is a report of Dockerfiles or single files, not of an image".to_owned();
    Err(CliError::NotBaseline { place: path.display().to_string(), what, command })
}

/// Reads a baseline of Dockerfiles.
pub fn of_files(path: &Path) -> Result<Baseline, CliError> {
    let command = "lint";
    let baseline = read(path, command)?;
    if !baseline.is_of_images() {
        return Ok(baseline);
    }
    let what = "it is a report of an image, not of Dockerfiles".to_owned();
    Err(CliError::NotBaseline { place: path.display().to_string(), what, command })
}

fn read(path: &Path, command: &'static str) -> Result<Baseline, CliError> {
    let broken = |what| CliError::NotBaseline { place: path.display().to_string(), what, command };
    let Some(bytes) = bounded::read(path, MOST_BYTES).map_err(|e| CliError::read(path, e))? else {
        return Err(broken(format!("it is larger than {} MiB", MOST_BYTES >> 20)));
    };
    Baseline::parse(&bytes).map_err(broken)
}
