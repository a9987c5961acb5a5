//! The plan in the Dockerfile: what is changed before it is built.

use crate::cli::error::CliError;
use crate::cli::lint::{Mended, Subject};
use crate::model::{Change, Evidence};
use crate::plan;
use crate::report::{Disposition, Plan, Report, Step};

/// The Dockerfile with a plan in it.
#[derive(Debug)]
pub struct Planned {
    pub mended: Mended,
    /// Steps that are not in it, by their place in the plan.
    pub left: Vec<usize>,
}

/// Writes the plan's steps; `tag`: those of one of several images. `image` is what the file made as it stands. Where
/// the plan has nothing to write, what the rules of Dockerfiles would change is.
pub fn of_plan(subject: &Subject<'_>, plan: &Plan, tag: Option<&str>, image: &Evidence) -> Planned {
    let (mended, left) = subject.planned(plan, tag, image);
    if mended.bytes != subject.bytes {
        return Planned { mended, left };
    }
    let by_rules = subject.mended(Some(image));
    Planned { mended: Mended { left: mended.left, ..by_rules }, left }
}

/// A Dockerfile that starts from the image, where there is none.
pub fn fresh(report: &Report, tag: Option<&str>, image: &Evidence) -> Result<Planned, CliError> {
    let input = plan::Input { report, config: Some(&image.image.config), dockerfile: None, tag };
    let emitted = plan::emit(&input, plan::Emit::Dockerfile)?;
    let text = String::from_utf8_lossy(&emitted.bytes).into_owned();
    let changes: Vec<String> = text.lines().filter(|line| changes_something(line)).map(str::to_owned).collect();
    // Of an image that stays as it is nothing is built.
    let bytes = if changes.is_empty() { Vec::new() } else { emitted.bytes };
    let steps = report.plan.iter().flat_map(|p| p.steps.iter().enumerate());
    // What is to be reviewed may stand there as a comment, and another base always does.
    let comment = |s: &Step| s.disposition == Disposition::Review || matches!(s.change, Change::Base { .. });
    let left = steps.filter(|(_, s)| comment(s)).map(|(at, _)| at).collect();
    Ok(Planned { mended: Mended { bytes, changes, left: Vec::new() }, left })
}

fn changes_something(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or("#");
    !word.starts_with('#') && !matches!(word, "FROM" | "ARG" | "USER")
}
