//! What a process shows, in the words of the evidence.

use super::process::{Process, To};
use super::search::{Answer, Search, Via};
use super::table::Files;
use crate::model::{Law, Outcome};

pub fn law(files: &Files<'_>, frameworks: &[String], via: Via) -> Law {
    match via {
        Via::Path => Law::Path,
        Via::Rpath(of) => Law::Rpath(files.path(of).clone()),
        Via::LibraryPath => Law::LibraryPath,
        Via::Runpath => Law::Runpath,
        Via::SystemPath => Law::SystemPath,
        Via::Cache => Law::Cache,
        Via::Default => Law::Default,
        Via::Framework(n) => Law::Framework(frameworks.get(n as usize).cloned().unwrap_or_default()),
    }
}

pub fn found(files: &Files<'_>, file: u32, law: Law) -> Outcome {
    Outcome::Found { path: files.path(file).clone(), law }
}

pub const MISSING: Outcome = Outcome::Missing { ldconfig: None, refused: None };

pub fn is_missing(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Missing { refused: None, .. })
}

/// A map that was loaded before it was asked for.
pub fn already(files: &Files<'_>, process: &Process, number: u32) -> Outcome {
    let map = &process.maps[number as usize];
    let by = &process.maps[map.by as usize];
    let law = match (map.preloaded, map.is_loader) {
        (true, _) => Law::Preload,
        (_, true) => Law::Loaded(files.path(map.instance.file).clone()),
        _ => Law::Loaded(files.path(by.instance.file).clone()),
    };
    found(files, map.instance.file, law)
}

/// The same, where a framework may have loaded it.
fn loaded(files: &Files<'_>, frameworks: &[String], process: &Process, number: u32) -> Outcome {
    let map = &process.maps[number as usize];
    match map.via {
        Via::Framework(_) => found(files, map.instance.file, law(files, frameworks, map.via)),
        _ => already(files, process, number),
    }
}

pub fn outcome(
    files: &Files<'_>,
    frameworks: &[String],
    search: &Search<'_>,
    process: &Process,
    to: To,
) -> Outcome {
    match to {
        To::Fresh(number) => {
            let map = &process.maps[number as usize];
            found(files, map.instance.file, law(files, frameworks, map.via))
        }
        To::Already(number) => loaded(files, frameworks, process, number),
        To::Refused(id) => Outcome::Missing { ldconfig: None, refused: Some(search.refusal(id)) },
        To::Missing => MISSING,
    }
}

/// The same for what is only searched for, and not loaded.
pub fn answer(
    files: &Files<'_>,
    frameworks: &[String],
    search: &Search<'_>,
    process: &Process,
    answer: Result<u32, Answer>,
) -> Outcome {
    match answer {
        Ok(number) => loaded(files, frameworks, process, number),
        Err(Answer::Found { file, via, .. }) => found(files, file, law(files, frameworks, via)),
        Err(Answer::Refused(id)) => Outcome::Missing { ldconfig: None, refused: Some(search.refusal(id)) },
        Err(Answer::Missing) => MISSING,
    }
}
