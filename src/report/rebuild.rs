//! What `imagelint rebuild` has to say: the images that were built, and what each does for its targets.

use schemars::JsonSchema;
use serde::Serialize;

use super::paint::{Ink, Page, cell, span};
use super::text::{clean, columns};
use super::{Basis, Effect, Plan, Report, Style, Tool};
use crate::model::Verdict;

/// The whole report of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RebuildReport {
    /// Version of this schema: 1.
    pub schema: u32,
    pub tool: Tool,
    /// The image that was to be rebuilt; absent: there was a Dockerfile alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What was to be done: of that image, or of the first build where there was a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// In the order in which they were built. Of two of the same tag the first did not do.
    pub builds: Vec<Rebuilt>,
    /// Every required target is served as was promised.
    pub kept: bool,
}

/// An image that was built.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Rebuilt {
    /// By which the builder knows it.
    pub name: String,
    /// Of a plan of several images: which this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The builder, with its version.
    pub builder: String,
    /// What was changed in the Dockerfile.
    pub changes: Vec<String>,
    /// The same as a patch.
    pub diff: String,
    pub targets: Vec<TargetChange>,
    /// Verdicts before and after of the targets that were judged before.
    pub effect: Effect,
    pub kept: bool,
    /// Where it was not: why, one line each.
    pub broken: Vec<String>,
    pub pushed: bool,
    /// The scan of it.
    pub report: Report,
}

/// A target before and after.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TargetChange {
    pub name: String,
    /// False: reported, never gates.
    pub required: bool,
    /// Absent: nothing was said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Known>,
    /// Absent: nothing was promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promised: Option<Verdict>,
    /// Measured.
    pub after: Verdict,
    /// One line.
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Known {
    pub verdict: Verdict,
    pub basis: Basis,
}

impl RebuildReport {
    /// One indented object.
    pub fn json(&self) -> std::io::Result<Vec<u8>> {
        let mut out = serde_json::to_vec_pretty(self)?;
        out.push(b'\n');
        Ok(out)
    }

    /// For a person: each image with its targets before and after, and what broke a promise.
    pub fn table(&self, style: &Style) -> String {
        let mut page = Page::new(style);
        for built in &self.builds {
            image(&mut page, built);
        }
        if let Some(last) = self.builds.last() {
            page.gap();
            let names: Vec<&str> = self.builds.iter().map(|b| b.name.as_str()).collect();
            let (ink, what) = match (self.kept, last.pushed) {
                (true, true) => (Ink::Good, "the promise was kept; pushed"),
                (true, false) => (Ink::Good, "the promise was kept; left with the builder"),
                (false, _) => (Ink::Bad, "the promise was not kept; left with the builder"),
            };
            page.flow(&[], 2, ink, &clean(&format!("{what}: {}", unique(&names).join(", "))));
        }
        page.finish()
    }
}

fn unique<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut out: Vec<&str> = Vec::new();
    for name in names {
        if !out.contains(name) {
            out.push(name);
        }
    }
    out
}

fn image(page: &mut Page<'_>, built: &Rebuilt) {
    let of = built.tag.as_ref().map_or(String::new(), |tag| format!(" ({tag})"));
    page.heading("BUILT", &clean(&format!("{}{of} with {}", built.name, built.builder)));
    let name = built.targets.iter().map(|t| columns(&clean(&t.name))).max().unwrap_or(0) + 2;
    let before = |t: &TargetChange| match t.before {
        Some(Known { verdict, basis: Basis::Measured }) => verdict.to_string(),
        Some(Known { verdict, basis: Basis::Predicted }) => format!("{verdict} (predicted)"),
        None => "-".to_owned(),
    };
    let first = built.targets.iter().map(|t| columns(&before(t))).max().unwrap_or(0);
    for target in &built.targets {
        let ink = target.before.map_or(Ink::Dim, |b| b.verdict.into());
        let lead = [
            span(Ink::Plain, "  "),
            cell(Ink::Strong, &clean(&target.name), name),
            cell(ink, &before(target), first),
            span(Ink::Dim, " -> "),
            cell(target.after, target.after.word(), 9),
        ];
        let promised = target.promised.map_or(String::new(), |p| format!("promised: {p}; "));
        let aside = if target.required { "" } else { " (not required)" };
        let hang = 2 + name + first + 4 + 9;
        page.flow(&lead, hang, Ink::Plain, &clean(&format!("{promised}measured: {}{aside}", target.why)));
    }
    for broken in &built.broken {
        page.flow(&[span(Ink::Bad, "  ! ")], 4, Ink::Plain, &clean(broken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn report(kept: bool) -> RebuildReport {
        let change = |name: &str, before: Option<Basis>, after| TargetChange {
            name: name.to_owned(),
            required: name != "spare",
            before: before.map(|basis| Known { verdict: Verdict::Fail, basis }),
            promised: before.map(|_| Verdict::Ok),
            after,
            why: "machine code for it".to_owned(),
        };
        let report = sample::failing();
        let built = Rebuilt {
            name: "localhost/imagelint-rebuild:0123".to_owned(),
            tag: Some("cu\u{1b}126".to_owned()),
            builder: "buildah 1.28".to_owned(),
            changes: vec!["Dockerfile:2: add 9.0 (arch-list-misses-target)".to_owned()],
            diff: "--- a/Dockerfile\n".to_owned(),
            targets: vec![
                change("h100", Some(Basis::Measured), Verdict::Ok),
                change("a100", Some(Basis::Predicted), Verdict::Warn),
                change("spare", None, Verdict::Fail),
            ],
            effect: Effect { basis: Basis::Measured, verdicts: std::collections::BTreeMap::new() },
            kept,
            broken: if kept { vec![] } else { vec!["a100 is warn, ok was promised".to_owned()] },
            pushed: false,
            report: report.clone(),
        };
        let again = Rebuilt { ..built.clone() };
        RebuildReport {
            schema: 1,
            tool: report.tool,
            image: None,
            plan: None,
            builds: if kept { vec![built] } else { vec![built, again] },
            kept,
        }
    }

    #[test]
    fn the_table_says_what_was_known_and_what_is() {
        let style = Style { width: 100, ..Style::default() };
        let text = report(true).table(&style);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "BUILT  localhost/imagelint-rebuild:0123 (cu\\x1b126) with buildah 1.28");
        assert_eq!(lines[1], "  h100   fail             -> ok       promised: ok; measured: machine code for it");
        assert_eq!(lines[2], "  a100   fail (predicted) -> warn     promised: ok; measured: machine code for it");
        assert_eq!(lines[3], "  spare  -                -> fail     measured: machine code for it (not required)");
        assert!(text.ends_with("left with the builder: localhost/imagelint-rebuild:0123\n"), "{text}");
        let text = report(false).table(&style);
        assert!(text.contains("  ! a100 is warn") && text.contains("was not kept"), "{text}");
        assert!(text.ends_with("builder: localhost/imagelint-rebuild:0123\n"), "each name once: {text}");
    }

    #[test]
    fn the_json_matches_its_schema() {
        let schema: serde_json::Value = serde_json::from_str(&crate::report::json::rebuild_schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&report(true).json().unwrap()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(value["builds"][0]["targets"][1]["before"]["basis"], "predicted");
        assert_eq!(value["builds"][0]["effect"]["basis"], "measured");
    }
}
