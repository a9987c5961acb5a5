//! A finished plan as text, and as files that a build takes.

mod bake;
mod env;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use super::patch::{self, Patch};
use super::{fresh, shell};
use crate::lint::dockerfile::Lint;
use crate::model::{ConfigFacts, escape};
use crate::report::{ImageReport, Plan, Report, unified};

/// Forms of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emit {
    /// To be read.
    Text,
    /// `export` lines.
    Env,
    /// The Dockerfile with the plan in it; without one, one that starts from the image.
    Dockerfile,
    /// The same as a patch.
    Diff,
    /// A bake file: one target a tag.
    Bake,
    Json,
}

impl Emit {
    /// Whether it is of one image alone: two of them in one file would contradict each other.
    pub fn is_of_one_image(self) -> bool {
        match self {
            Self::Text | Self::Json => false,
            Self::Env | Self::Dockerfile | Self::Diff | Self::Bake => true,
        }
    }
}

/// The Dockerfile that the image was built from.
#[derive(Clone, Copy)]
pub struct Written<'a> {
    pub lint: &'a Lint<'a>,
    /// Its path, as a patch and a builder name it: from where the program was started.
    pub path: &'a str,
}

/// What a plan is emitted from.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub report: &'a Report,
    /// The image's config.
    pub config: Option<&'a ConfigFacts>,
    pub dockerfile: Option<Written<'a>>,
    /// Of several tags the one that is wanted.
    pub tag: Option<&'a str>,
}

/// A plan in one of its forms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emitted {
    pub bytes: Vec<u8>,
    /// What the form itself cannot say.
    pub notes: Vec<String>,
}

/// Why a form cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    #[error("there is no Dockerfile to change")]
    NoDockerfile,
    #[error("the plan has no tag `{0}`: {1}")]
    NoSuchTag(String, String),
    #[error("the report has no image to build on")]
    NoImage,
    #[error("the bake file could not be written: {0}")]
    Bake(String),
}

/// Renders the plan of a report; text ends with a newline, unless it is empty.
pub fn emit(input: &Input<'_>, form: Emit) -> Result<Emitted, EmitError> {
    let none = Plan::default();
    let plan = input.report.plan.as_ref().unwrap_or(&none);
    if let Some(tag) = input.tag.filter(|t| !plan.tags.iter().any(|o| o.name == **t)) {
        let known: Vec<String> = plan.tags.iter().map(|t| escape(t.name.as_bytes())).collect();
        let known = if known.is_empty() { "one image serves all".to_owned() } else { known.join(", ") };
        return Err(EmitError::NoSuchTag(tag.to_owned(), known));
    }
    match form {
        Emit::Text => {
            Ok(Emitted { bytes: text::text(input.report, plan, input.tag).into_bytes(), notes: Vec::new() })
        }
        Emit::Env => Ok(env::env(plan, input.tag)),
        Emit::Dockerfile => one(input, plan, |patched, old| patched.map_or_else(|| old.to_vec(), |p| p.apply(old))),
        Emit::Diff => {
            let Some(written) = input.dockerfile else { return Err(EmitError::NoDockerfile) };
            one(input, plan, |patched, old| {
                let new = patched.map_or_else(|| old.to_vec(), |p| p.apply(old));
                unified::patch(written.path, old, &new)
            })
        }
        Emit::Bake => bake::bake(input, plan),
        Emit::Json => json(plan),
    }
}

/// What the plan makes of the Dockerfile, as a patch; of several tags the first. None: nothing changes.
pub fn patched(plan: &Plan, written: Written<'_>) -> Option<String> {
    let old = &written.lint.reading.document.source;
    let patch = patch::patch(written.lint, plan, plan.tags.first().map(|t| t.name.as_str()));
    let bytes = unified::patch(written.path, old, &patch.apply(old));
    Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.is_empty())
}

/// A form of one file: of several tags the first is taken, and that is told.
fn one(
    input: &Input<'_>,
    plan: &Plan,
    render: impl Fn(Option<&Patch>, &[u8]) -> Vec<u8>,
) -> Result<Emitted, EmitError> {
    let mut notes = Vec::new();
    let tag = input.tag.or_else(|| plan.tags.first().map(|t| t.name.as_str()));
    if let (None, Some(tag), [_, _, ..]) = (input.tag, tag, plan.tags.as_slice()) {
        let all: Vec<String> = plan.tags.iter().map(|t| escape(t.name.as_bytes())).collect();
        notes.push(format!(
            "the plan has the tags {}; this is {}: name another with --tag",
            all.join(", "),
            escape(tag.as_bytes())
        ));
    }
    let bytes = match input.dockerfile {
        Some(written) => {
            let patch = patch::patch(written.lint, plan, tag);
            notes.extend(left(&patch, plan));
            render(Some(&patch), &written.lint.reading.document.source)
        }
        None => render(None, fresh_file(input, plan, tag)?.as_bytes()),
    };
    Ok(Emitted { bytes, notes })
}

/// What a patch leaves to be done by hand.
fn left(patch: &Patch, plan: &Plan) -> Vec<String> {
    let left = patch.steps.iter().filter_map(|s| Some((plan.steps.get(s.step)?, s.left.as_ref()?)));
    left.map(|(step, why)| format!("to be reviewed: {}: {why}", step.summary)).collect()
}

fn fresh_file(input: &Input<'_>, plan: &Plan, tag: Option<&str>) -> Result<String, EmitError> {
    let image: &ImageReport = input.report.image.as_ref().ok_or(EmitError::NoImage)?;
    Ok(fresh::dockerfile(image, input.config, plan, tag))
}

/// The plan's own JSON, on one line.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    plan: &'a Plan,
}

fn json(plan: &Plan) -> Result<Emitted, EmitError> {
    let mut bytes = Vec::new();
    // Writing to memory does not fail, and a plan has no map but with keys of text.
    if serde_json::to_writer_pretty(&mut bytes, &Document { schema: 1, plan }).is_err() {
        bytes.clear();
    }
    bytes.push(b'\n');
    Ok(Emitted { bytes, notes: Vec::new() })
}
