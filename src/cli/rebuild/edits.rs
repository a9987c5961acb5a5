//! The plan in the Dockerfile: what is changed before it is built.

use crate::cli::lint::{Mended, Subject};
use crate::model::Evidence;
use crate::report::Plan;

/// The Dockerfile with a plan in it.
#[derive(Debug)]
pub struct Planned {
    pub mended: Mended,
    /// Steps that are not in it, by their place in the plan.
    pub left: Vec<usize>,
}

/// Writes the plan's steps; `tag`: those of one of several images. `image` is what the file made as it stands.
pub fn of_plan(subject: &Subject<'_>, plan: &Plan, tag: Option<&str>, image: &Evidence) -> Planned {
    let ours = |at: &usize| plan.steps.get(*at).is_some_and(|s| s.tag.is_none() || s.tag.as_deref() == tag);
    let left = (0..plan.steps.len()).filter(ours).collect();
    Planned { mended: subject.mended(Some(image)), left }
}
