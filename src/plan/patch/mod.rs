//! A plan written into a Dockerfile: edits in place, through the places that the parser gives. Nothing else of the
//! file changes by a byte. What cannot be placed surely is left, with the reason.

mod base;
mod environment;
mod packages;
mod source;
#[cfg(test)]
mod tests;
mod wheel;
mod words;

use std::collections::BTreeSet;

pub use words::{assignment, is_variable};

use self::words::Words;
use crate::catalog::Catalog;
use crate::dockerfile::edit::{Edit, apply};
use crate::dockerfile::parse::parse;
use crate::dockerfile::reading::{Inputs, Reading, read};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Document;
use crate::lint::dockerfile::Lint;
use crate::model::{Change, escape};
use crate::report::{Disposition, Plan, Step};

/// Characters of a changed text that are told.
const MOST_TOLD: usize = 100;

/// What a plan does to a Dockerfile.
#[derive(Debug, Clone, Default)]
pub struct Patch {
    /// All edits, which can be made together.
    pub edits: Vec<Edit>,
    /// Of each step that concerns the file and the tag, in the plan's order.
    pub steps: Vec<StepPatch>,
}

/// What one step does to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepPatch {
    /// Index into the plan's steps.
    pub step: usize,
    pub edits: Vec<Edit>,
    /// Why nothing was written, or what is left to do by hand.
    pub left: Option<String>,
}

/// What a step comes to before it is held against the others.
#[derive(Debug, Default)]
struct Placed {
    edits: Vec<Edit>,
    /// What is not done.
    left: Vec<String>,
}

impl Placed {
    fn left(why: impl Into<String>) -> Self {
        Self { edits: Vec::new(), left: vec![why.into()] }
    }

    fn edit(edits: Vec<Edit>) -> Self {
        Self { edits, left: Vec::new() }
    }

    fn take(&mut self, done: Result<Vec<Edit>, String>) {
        match done {
            Ok(edits) => self.edits.extend(edits),
            Err(why) if self.left.contains(&why) => {}
            Err(why) => self.left.push(why),
        }
    }
}

/// Writes a plan's steps into the file that `lint` has read: those of a tag and those of no tag; of all tags' steps
/// none without one.
pub fn patch(lint: &Lint<'_>, plan: &Plan, tag: Option<&str>) -> Patch {
    let mut patch = Patch::default();
    let wanted = |s: &Step| s.change.is_of_the_image() && (s.tag.is_none() || s.tag.as_deref() == tag);
    let steps: Vec<(usize, &Step)> = plan.steps.iter().enumerate().filter(|(_, s)| wanted(s)).collect();
    if steps.is_empty() {
        return patch;
    }
    let moved: BTreeSet<&str> = steps
        .iter()
        .filter_map(|(_, s)| match &s.change {
            Change::Wheel { package, .. } => Some(package.as_str()),
            _ => None,
        })
        .collect();
    let before = reread(&lint.reading.document.source, lint.catalog);
    for (at, step) in steps {
        let mut placed = place(lint, step, &moved);
        let mut edits = placed.edits;
        edits.sort_unstable();
        edits.dedup();
        if !edits.is_empty() {
            match joined(&patch.edits, &edits).and_then(|all| holds(lint, &before, &all).map(|()| all)) {
                Ok(all) => patch.edits = all,
                Err(why) => {
                    edits.clear();
                    placed.left.insert(0, why);
                }
            }
        }
        let left = (!placed.left.is_empty()).then(|| placed.left.join("; "));
        patch.steps.push(StepPatch { step: at, edits, left });
    }
    patch
}

fn place(lint: &Lint<'_>, step: &Step, moved: &BTreeSet<&str>) -> Placed {
    let words = Words::new(lint);
    match &step.change {
        Change::Wheel { package, version, specifier, index, .. } => {
            let wanted = wheel::Wanted { package, version: version.as_deref(), specifier, index: index.as_ref() };
            wheel::place(words, &wanted, moved)
        }
        Change::Source { component, project, form, setting, built, install } => {
            let wanted =
                source::Wanted { component, project: project.as_deref(), form: *form, setting, built, install };
            source::place(&words, &wanted)
        }
        Change::Base { from, to } => base::place(words, from, to),
        Change::DropEntry { variable, entry } => environment::drop_entry(&words, variable, entry),
        Change::SetVariable { name, value } => environment::set(&words, name, value),
        Change::UnsetVariable { name } => environment::unset(&words, name),
        Change::RemovePackages { manager, names } => packages::remove(&words, *manager, names),
        Change::AddPackages { manager, names } => packages::add(&words, *manager, names),
        Change::Driver { .. } | Change::DropTargets { .. } | Change::Advice => Placed::default(),
    }
}

impl Patch {
    /// The file with all edits made; as it was where they cannot be.
    pub fn apply(&self, source: &[u8]) -> Vec<u8> {
        apply(source, &self.edits).unwrap_or_else(|_| source.to_vec())
    }

    /// Tells a plan's steps what they do to the file of that name, and marks what is left as to be reviewed.
    pub fn tell(&self, plan: &mut Plan, document: &Document, name: &str) {
        for one in &self.steps {
            let Some(step) = plan.steps.get_mut(one.step) else { continue };
            step.edits = one.edits.iter().map(|e| told(document, name, e)).collect();
            let Some(left) = &one.left else { continue };
            step.disposition = Disposition::Review;
            let left = format!("{name}: {left}");
            step.review = Some(match step.review.take() {
                Some(other) if !other.contains(&left) => format!("{other}; {left}"),
                _ => left,
            });
        }
    }
}

/// Tells a plan what it does to a Dockerfile, for each of its tags.
pub fn tell(plan: &mut Plan, lint: &Lint<'_>, name: &str) {
    let tags: Vec<Option<String>> = match plan.tags.is_empty() {
        true => vec![None],
        false => plan.tags.iter().map(|t| Some(t.name.clone())).collect(),
    };
    for tag in tags {
        patch(lint, plan, tag.as_deref()).tell(plan, &lint.reading.document, name);
    }
}

/// `Dockerfile:12:5: "cu126" -> "cu128"`.
fn told(document: &Document, name: &str, edit: &Edit) -> String {
    let place = document.lines.place(&document.text, edit.span.start);
    let shown = |text: &str| {
        let text = escape(text.split_whitespace().collect::<Vec<_>>().join(" ").as_bytes());
        match text.char_indices().nth(MOST_TOLD) {
            Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
            None => text,
        }
    };
    let (old, new) = (shown(document.slice(edit.span)), shown(&edit.text));
    let at = format!("{name}:{}:{}", place.line, place.column);
    match (old.is_empty(), new.is_empty()) {
        (true, _) => format!("{at}: + \"{new}\""),
        (_, true) => format!("{at}: - \"{old}\""),
        _ => format!("{at}: \"{old}\" -> \"{new}\""),
    }
}

/// Edits made beside others: insertions at one place follow each other, anything else in common is refused.
fn joined(before: &[Edit], new: &[Edit]) -> Result<Vec<Edit>, String> {
    let mut all = before.to_vec();
    for edit in new {
        if all.contains(edit) {
            continue;
        }
        let same = all.iter_mut().find(|o| o.span == edit.span && o.span.is_empty());
        if let Some(other) = same {
            if !other.text.contains(&edit.text) {
                other.text.push_str(&edit.text);
            }
            continue;
        }
        let overlaps = |o: &Edit| edit.span.start < o.span.end && o.span.start < edit.span.end;
        if all.iter().any(overlaps) {
            return Err("another step changes the same words to something else".to_owned());
        }
        all.push(edit.clone());
    }
    all.sort_unstable();
    Ok(all)
}

/// What a file means, by itself: without what is given from outside.
fn reread(source: &[u8], catalog: &Catalog) -> Reading {
    let base = |reference: &str| catalog.bases().find(reference).map(|b| b.env).unwrap_or_default();
    read(parse(source), &Inputs { base_env: Some(&base), ..Inputs::default() })
}

/// Whether the file with the edits made still says the same but for them.
fn holds(lint: &Lint<'_>, before: &Reading, edits: &[Edit]) -> Result<(), String> {
    let broken = || "the file could not be read any more with the edit made".to_owned();
    let source = apply(&lint.reading.document.source, edits).map_err(|e| e.to_string())?;
    let after = reread(&source, lint.catalog);
    let errors = |r: &Reading| {
        r.document.errors.len() + r.document.instructions.iter().filter(|i| i.error.is_some()).count()
    };
    if errors(&after) > errors(before)
        || after.unparsed.len() > before.unparsed.len()
        || after.commands.len() != before.commands.len()
        || after.stages.len() != before.stages.len()
    {
        return Err(broken());
    }
    let touched = |span: Span| edits.iter().any(|e| e.span.start <= span.end && span.start <= e.span.end);
    for (old, new) in before.commands.iter().zip(&after.commands) {
        let redirected = old.output.is_some() != new.output.is_some();
        let differs = old.words.len() != new.words.len() && !touched(old.span);
        if redirected || differs || old.program() != new.program() {
            return Err(broken());
        }
    }
    Ok(())
}
