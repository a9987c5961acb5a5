//! Judged targets as findings: equal ones of several targets are one.

use std::collections::BTreeMap;

use super::case::TargetCase;
use super::words;
use crate::config::{Fleet, Level};
use crate::model::{Confidence, Digest, Evidence, EvidenceFile, Finding, GapEffect, Severity, Verdict};
use crate::report::Plan;

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
    /// Name and version of the component it is about.
    label: String,
}

/// All findings, worst first.
pub fn all(
    cases: &[TargetCase<'_>],
    evidence: &[Evidence],
    fleet: &Fleet,
    plan: &Plan,
    allow_gaps: bool,
) -> Vec<Finding> {
    let mut drafts: BTreeMap<Key, Draft> = BTreeMap::new();
    for case in cases {
        components(case, plan, &mut drafts);
        for problem in &case.problems {
            let severity = gate(case, problem.verdict.severity());
            let draft = finding(problem.rule, severity, problem.verdict, problem.message.clone());
            let file = problem.path.as_ref().and_then(|p| case.evidence.files.iter().find(|f| f.path == *p));
            let finding = Finding {
                help: Some(problem.help.clone()),
                because: vec![problem.because.clone()],
                layer: file.and_then(|f| layer_of(case.evidence, f)),
                path: problem.path.clone(),
                ..draft
            };
            add(&mut drafts, case, String::new(), finding);
        }
        let silent = case.components.is_empty() && case.problems.is_empty() && case.verdict == Verdict::Ok;
        if silent {
            let draft = finding("no-gpu-code", Severity::Note, Verdict::Ok, words::nothing(case.evidence));
            let help = "nothing to do, unless the image was meant to use a GPU".to_owned();
            add(&mut drafts, case, String::new(), Finding { help: Some(help), ..draft });
        }
    }
    let mut out: Vec<Finding> = drafts.into_values().map(finish).collect();
    if !allow_gaps && let Some(finding) = incomplete(evidence, cases) {
        out.insert(0, finding);
    }
    out.retain_mut(|f| apply_level(f, fleet));
    out
}

fn components(case: &TargetCase<'_>, plan: &Plan, drafts: &mut BTreeMap<Key, Draft>) {
    for component in &case.components {
        let Some(rule) = words::rule_of(component) else { continue };
        if case.is_settled_by_host(rule) {
            continue;
        }
        let verdict = words::weighed(component);
        let idle = component.role == crate::report::Role::Idle;
        let severity = if idle { Severity::Note } else { gate(case, verdict.severity()) };
        let label = words::component(&case.evidence.components[component.index]);
        let reason = words::reason(case, component);
        let mut draft = finding(rule, severity, verdict, reason);
        let name = &case.evidence.components[component.index].name;
        draft.component = Some(crate::model::escape(name.as_bytes()));
        draft.path = component.worst.map(|f| f.path.clone());
        draft.layer = component.worst.and_then(|f| layer_of(case.evidence, f));
        draft.because = vec![case.target.because.clone()];
        if let Some(note) = &component.note {
            draft.because.push(note.clone());
        }
        let steps = plan.steps.iter().filter(|s| s.component == label && s.resolves.contains(&case.target.name));
        if severity > Severity::Note {
            draft.help = steps.map(|s| s.summary.clone()).next();
            draft.confidence = if verdict == Verdict::Warn { Confidence::Medium } else { Confidence::High };
        }
        add(drafts, case, label, draft);
    }
}

fn finding(rule: &'static str, severity: Severity, verdict: Verdict, message: String) -> Finding {
    Finding {
        rule: rule.to_owned(),
        severity,
        confidence: Confidence::High,
        verdict,
        targets: Vec::new(),
        message,
        help: None,
        component: None,
        path: None,
        layer: None,
        because: Vec::new(),
    }
}

/// Targets that are not required report, and never gate.
fn gate(case: &TargetCase<'_>, severity: Severity) -> Severity {
    if case.target.required { severity } else { Severity::Note }
}

fn layer_of(evidence: &Evidence, file: &EvidenceFile) -> Option<Digest> {
    evidence.image.layers.get(file.layer?)?.digest
}

fn add(drafts: &mut BTreeMap<Key, Draft>, case: &TargetCase<'_>, subject: String, finding: Finding) {
    let rule = super::rules::find(&finding.rule).map_or("", |r| r.id);
    let label = subject.clone();
    let key = Key {
        severity: std::cmp::Reverse(finding.severity),
        verdict: finding.verdict,
        rule,
        subject,
        text: finding.message.clone(),
    };
    let draft = drafts.entry(key).or_insert_with(|| Draft { finding, gpus: Vec::new(), label });
    draft.finding.targets.push(case.target.name.clone());
    let gpu = words::gpu(case.target);
    if !draft.gpus.contains(&gpu) {
        draft.gpus.push(gpu);
    }
    if !draft.finding.because.contains(&case.target.because) && draft.finding.component.is_some() {
        draft.finding.because.push(case.target.because.clone());
    }
}

fn finish(draft: Draft) -> Finding {
    let Draft { mut finding, gpus, label } = draft;
    finding.targets.sort();
    finding.targets.dedup();
    if finding.component.is_some() {
        finding.message = format!("{label} on {}: {}", gpus.join(", "), finding.message);
    }
    finding
}

/// One finding for a scan that did not see everything.
fn incomplete(evidence: &[Evidence], cases: &[TargetCase<'_>]) -> Option<Finding> {
    let gaps: Vec<_> = evidence.iter().flat_map(|e| &e.gaps).filter(|g| g.effect == GapEffect::Image).collect();
    let first = gaps.first()?;
    let more = if gaps.len() > 1 { format!(" (and {} more gaps)", gaps.len() - 1) } else { String::new() };
    let message = format!("the image could not be read whole: {}{more}", words::gap(first));
    let help = "mend or pull the image again; --allow-gaps judges what was read".to_owned();
    let mut targets: Vec<String> = cases.iter().map(|c| c.target.name.clone()).collect();
    targets.sort();
    let draft = finding("scan-incomplete", Severity::Warning, Verdict::Unknown, message);
    Some(Finding { help: Some(help), layer: first.layer, path: first.path.clone(), targets, ..draft })
}

fn apply_level(finding: &mut Finding, fleet: &Fleet) -> bool {
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
