//! `export` lines that a build script can source; what is no variable is a comment.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::patch::is_variable;
use super::super::shell::quoted;
use super::Emitted;
use crate::model::Change;
use crate::report::text::clean;
use crate::report::{Plan, Step};

/// The variables of a plan. Those of several tags are never in force together: without a tag each tag's lines are
/// comments, and only what all images share is exported.
pub fn env(plan: &Plan, tag: Option<&str>) -> Emitted {
    let mut out = Out::default();
    let mut notes = Vec::new();
    for step in of(plan, None) {
        out.step(step, true);
    }
    match (tag, plan.tags.as_slice()) {
        (Some(tag), _) => of(plan, Some(tag)).for_each(|s| out.step(s, true)),
        (None, []) => plan.steps.iter().filter(|s| s.tag.is_some()).for_each(|s| out.step(s, false)),
        (None, [only]) => of(plan, Some(only.name.as_str())).for_each(|s| out.step(s, true)),
        (None, tags) => {
            let names: Vec<String> = tags.iter().map(|t| clean(&t.name)).collect();
            notes
                .push(format!("the plan has the tags {}: name one with --tag for its variables", names.join(", ")));
            for one in tags {
                out.comment(&format!("tag {}: {}", one.name, one.targets.join(", ")));
                // Each tag is a build of its own.
                let shared = out.seen.clone();
                of(plan, Some(one.name.as_str())).for_each(|s| out.step(s, false));
                out.seen = shared;
            }
        }
    }
    for left in &plan.unresolved {
        out.comment(&format!("unresolved: {left}"));
    }
    Emitted { bytes: out.text.into_bytes(), notes }
}

/// The steps of one tag, or of none.
fn of<'p>(plan: &'p Plan, tag: Option<&'p str>) -> impl Iterator<Item = &'p Step> {
    plan.steps.iter().filter(move |s| s.tag.as_deref() == tag)
}

#[derive(Default)]
struct Out {
    text: String,
    seen: BTreeMap<String, String>,
}

impl Out {
    fn comment(&mut self, text: &str) {
        let _ = writeln!(self.text, "# {}", clean(text));
    }

    fn step(&mut self, step: &Step, export: bool) {
        self.comment(&step.summary);
        if let Some(command) = &step.command {
            self.comment(&format!("  {command}"));
        }
        if let Some(review) = &step.review {
            self.comment(&format!("  to be reviewed: {review}"));
        }
        // What the image itself is to have is nothing for the shell that builds it.
        let of_image = matches!(step.change, Change::SetVariable { .. } | Change::UnsetVariable { .. });
        for (name, value) in &step.env {
            let line = format!("export {name}={}", quoted(value));
            match self.seen.get(name) {
                Some(other) if other == value => {}
                Some(_) => self.comment(&format!("  another value than above, for a build of its own: {line}")),
                None if export && !of_image && is_variable(name) && !value.contains(['\n', '\r', '\0']) => {
                    let _ = writeln!(self.text, "{line}");
                    self.seen.insert(name.clone(), value.clone());
                }
                None => self.comment(&format!("  {line}")),
            }
        }
    }
}
