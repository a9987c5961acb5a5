//! Judged targets as findings: equal ones of several targets are one.

use std::collections::BTreeMap;

use super::case::TargetCase;
use super::{Judged, Problem, words};
use crate::config::{Fleet, Level};
use crate::model::{Change, Confidence, Digest, Evidence, EvidenceFile, Finding, GapEffect, Severity, Verdict};
use crate::report::{Plan, Step};

/// What makes findings of several targets one, in report order: worst first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    severity: std::cmp::Reverse<Severity>,
    verdict: Verdict,
    rule: &'static str,
    subject: String,
    text: String,
}

struct Draft {
    finding: Finding,
    gpus: Vec<String>,
    /// Name and version of the component whose code it is about.
    label: Option<String>,
}

/// All findings, worst first.
pub fn all(
    cases: &[TargetCase<'_>],
    images: &[Judged<'_>],
    fleet: &Fleet,
    plan: &Plan,
    allow_gaps: bool,
) -> Vec<Finding> {
    let mut drafts: BTreeMap<Key, Draft> = BTreeMap::new();
    for case in cases {
        components(case, plan, &mut drafts);
        for problem in &case.problems {
            let (subject, mut finding) = told(problem, case.evidence);
            finding.severity = gate(case, finding.severity);
            add(&mut drafts, Some(case), subject, finding, false);
        }
        let silent = !case.components.iter().any(|c| c.has_code())
            && case.verdict == Verdict::Ok
            && case.problems.iter().all(|p| p.verdict == Verdict::Ok);
        if silent {
            let draft = Finding::new("no-gpu-code", Severity::Note, Verdict::Ok, words::nothing(case.evidence));
            let help = "nothing to do, unless the image was meant to use a GPU".to_owned();
            add(&mut drafts, Some(case), String::new(), Finding { help: Some(help), ..draft }, false);
        }
    }
    // What is wrong on any target is said without targets too.
    if cases.is_empty() {
        for (evidence, _, problems) in images {
            for problem in *problems {
                let (subject, finding) = told(problem, evidence);
                add(&mut drafts, None, subject, finding, false);
            }
        }
    }
    let mut out: Vec<Finding> = drafts.into_values().map(finish).collect();
    if !allow_gaps && let Some(finding) = incomplete(images, cases) {
        out.insert(0, finding);
    }
    out.retain_mut(|f| apply_level(f, fleet));
    out
}

/// A problem as a finding, and the label of the component it is about.
fn told(problem: &Problem, evidence: &Evidence) -> (String, Finding) {
    let file = problem.path.as_ref().and_then(|p| evidence.file(p));
    let component = problem.component.map(|index| &evidence.components[index]);
    let label = component.map(words::component);
    let message = match &label {
        Some(label) => format!("{label}: {}", problem.message),
        None => problem.message.clone(),
    };
    let draft = Finding::new(problem.rule, problem.verdict.severity(), problem.verdict, message);
    let finding = Finding {
        confidence: problem.confidence,
        help: Some(problem.help.clone()),
        because: problem.because.clone(),
        component: component.map(|c| crate::model::escape(c.name.as_bytes())),
        layer: file.and_then(|f| layer_of(evidence, f)),
        path: problem.path.clone(),
        ..draft
    };
    (label.unwrap_or_default(), finding)
}

fn components(case: &TargetCase<'_>, plan: &Plan, drafts: &mut BTreeMap<Key, Draft>) {
    for component in &case.components {
        let Some(rule) = words::rule_of(component).filter(|_| component.has_code()) else { continue };
        if case.is_settled_by_host(rule) {
            continue;
        }
        let verdict = words::weighed(component);
        let idle = component.role == crate::report::Role::Idle;
        let severity = if idle { Severity::Note } else { gate(case, verdict.severity()) };
        let label = words::component(&case.evidence.components[component.index]);
        let reason = words::reason(case, component);
        let mut draft = Finding::new(rule, severity, verdict, reason);
        let name = &case.evidence.components[component.index].name;
        draft.component = Some(crate::model::escape(name.as_bytes()));
        draft.path = component.worst.map(|f| f.path.clone());
        draft.layer = component.worst.and_then(|f| layer_of(case.evidence, f));
        draft.because = vec![case.target.because.clone()];
        if let Some(note) = &component.note {
            draft.because.push(note.clone());
        }
        if severity > Severity::Note {
            draft.help = help(case, &label, plan);
            draft.confidence = if verdict == Verdict::Warn { Confidence::Medium } else { Confidence::High };
        }
        add(drafts, Some(case), label, draft, true);
    }
}

/// The step that the plan takes for a component on a target; and what the hosts could do instead, where that helps too.
fn help(case: &TargetCase<'_>, label: &str, plan: &Plan) -> Option<String> {
    let mine = |s: &&Step| s.component == label && s.resolves.contains(&case.target.name);
    let taken = plan.steps.iter().find(mine)?;
    let hosts = |s: &&Step| matches!(s.change, Change::Driver { .. });
    let other = plan.alternatives.iter().filter(mine).find(hosts).filter(|s| s.summary != taken.summary);
    Some(match other {
        Some(other) => format!("{}; or {}", taken.summary, other.summary),
        None => taken.summary.clone(),
    })
}

/// Targets that are not required report, and never gate.
fn gate(case: &TargetCase<'_>, severity: Severity) -> Severity {
    if case.target.required { severity } else { Severity::Note }
}

fn layer_of(evidence: &Evidence, file: &EvidenceFile) -> Option<Digest> {
    evidence.image.layers.get(file.layer?)?.digest
}

/// Adds a target's finding to what was said of others. The GPUs are named before code's findings.
fn add(
    drafts: &mut BTreeMap<Key, Draft>,
    case: Option<&TargetCase<'_>>,
    subject: String,
    finding: Finding,
    names_gpus: bool,
) {
    let rule = super::rules::find(&finding.rule).map_or("", |r| r.id);
    let label = names_gpus.then(|| subject.clone());
    let key = Key {
        severity: std::cmp::Reverse(finding.severity),
        verdict: finding.verdict,
        rule,
        subject,
        text: finding.message.clone(),
    };
    let draft = drafts.entry(key).or_insert_with(|| Draft { finding, gpus: Vec::new(), label });
    let Some(case) = case else { return };
    draft.finding.targets.push(case.target.name.clone());
    let gpu = case.target.label();
    if !draft.gpus.contains(&gpu) {
        draft.gpus.push(gpu);
    }
    if names_gpus && !draft.finding.because.contains(&case.target.because) {
        draft.finding.because.push(case.target.because.clone());
    }
}

fn finish(draft: Draft) -> Finding {
    let Draft { mut finding, gpus, label } = draft;
    finding.targets.sort();
    finding.targets.dedup();
    if let Some(label) = label {
        finding.message = format!("{label} on {}: {}", gpus.join(", "), finding.message);
    }
    finding
}

/// One finding for a scan that did not see everything.
fn incomplete(images: &[Judged<'_>], cases: &[TargetCase<'_>]) -> Option<Finding> {
    let gaps: Vec<_> = images.iter().flat_map(|i| &i.0.gaps).filter(|g| g.effect == GapEffect::Image).collect();
    let first = gaps.first()?;
    let more = if gaps.len() > 1 { format!(" (and {} more gaps)", gaps.len() - 1) } else { String::new() };
    let message = format!("the image could not be read whole: {}{more}", words::gap(first));
    let help = "mend or pull the image again; --allow-gaps judges what was read".to_owned();
    let mut targets: Vec<String> = cases.iter().map(|c| c.target.name.clone()).collect();
    targets.sort();
    let draft = Finding::new("scan-incomplete", Severity::Warning, Verdict::Unknown, message);
    Some(Finding { help: Some(help), layer: first.layer, path: first.path.clone(), targets, ..draft })
}

pub(super) fn apply_level(finding: &mut Finding, fleet: &Fleet) -> bool {
    match fleet.levels.get(&finding.rule) {
        None => true,
        Some(Level::Off) => false,
        Some(Level::Note) => {
            finding.severity = Severity::Note;
            true
        }
        Some(Level::Warning) => {
            finding.severity = Severity::Warning;
            true
        }
        Some(Level::Error) => {
            finding.severity = Severity::Error;
            true
        }
    }
}
