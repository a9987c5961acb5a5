//! JUnit's XML, which most CI systems show as tests: a suite for each image, with a case for each core component on
//! each target; for Dockerfiles, a suite for each file with a case for each rule.

mod xml;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use super::components::label;
use super::lint::LintReport;
use super::text::{clean, count, rooted};
use super::told::block;
use super::{ComponentReport, Report, Role, TargetReport, table};
use crate::model::{Finding, Severity, Verdict};

/// Cases that belong together.
#[derive(Debug)]
pub struct Suite {
    name: String,
    cases: Vec<Case>,
    /// Only with `--stats`.
    seconds: Option<f64>,
}

#[derive(Debug)]
struct Case {
    class: String,
    name: String,
    outcome: Outcome,
    /// The verdict or the severity, in a word.
    kind: String,
    /// Why, in a line.
    message: String,
    /// What is found about it.
    body: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failure,
    /// It could not be decided.
    Error,
    /// It does not gate: what only may fail, is slow, is accepted, or is of no required target.
    Skipped,
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fail | Verdict::Blocked | Verdict::Cpu => Self::Failure,
            Verdict::Unknown => Self::Error,
            Verdict::Slow | Verdict::Warn => Self::Skipped,
            Verdict::Ok => Self::Passed,
        }
    }
}

impl From<Severity> for Outcome {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Failure,
            Severity::Warning => Self::Skipped,
            Severity::Note => Self::Passed,
        }
    }
}

/// The document, ending in a line feed.
pub fn document(suites: &[Suite]) -> String {
    xml::render(suites)
}

/// The suite of an image. `unread`: it could not be looked at.
pub fn of_image(report: &Report, unread: bool) -> Suite {
    let name = report.image.as_ref().map_or_else(|| "files".to_owned(), |i| clean(&i.reference));
    let seconds = report.stats.seconds;
    if unread {
        let why = table::worst_gaps(report).first().map_or_else(String::new, |g| clean(&g.why));
        let case = Case {
            class: name.clone(),
            name: "the image is read".into(),
            outcome: Outcome::Error,
            kind: "unread".into(),
            message: why,
            body: String::new(),
        };
        return Suite { name, cases: vec![case], seconds };
    }
    let mut told = vec![false; report.findings.len()];
    let targets: Vec<&TargetReport> = report.targets.iter().flatten().collect();
    for (finding, told) in report.findings.iter().zip(&mut told) {
        // What is said of a component's cases needs none of its own.
        let has_case = |name: &String| {
            targets.iter().any(|t| t.name == *name && t.components.iter().any(|c| is_about(finding, c)))
        };
        *told = !finding.targets.is_empty() && finding.targets.iter().all(has_case);
    }
    let in_cases: Vec<&Finding> = report.findings.iter().zip(&told).filter(|(_, t)| **t).map(|(f, _)| f).collect();
    let mut cases = Vec::new();
    for target in &targets {
        cases.extend(of_target(target));
        let core = target.components.iter().filter(|c| c.role == Role::Core);
        cases.extend(core.map(|c| of_component(target, c, &in_cases, &report.base)));
    }
    let rest = report.findings.iter().zip(told).filter(|(_, told)| !told).map(|(f, _)| f);
    cases.extend(rest.map(|f| of_finding(f, f.severity.into(), &report.base)));
    let accepted = report.waived.iter().chain(report.known.iter().flatten());
    cases.extend(accepted.map(|f| of_finding(f, Outcome::Skipped, &report.base)));
    Suite { name, cases: numbered(cases), seconds }
}

fn is_about(finding: &Finding, component: &ComponentReport) -> bool {
    component.role == Role::Core && finding.component.as_ref() == Some(&component.name)
}

/// The target itself, where no core component tells its verdict.
fn of_target(target: &TargetReport) -> Option<Case> {
    let core = || target.components.iter().filter(|c| c.role == Role::Core);
    let told = core().any(|c| c.verdict == target.verdict);
    (!told).then(|| Case {
        class: clean(&target.name),
        name: "the image runs".into(),
        outcome: gated(target, target.verdict),
        kind: target.verdict.word().into(),
        message: format!("{}: {}", target.verdict, table::why(target)),
        body: String::new(),
    })
}

fn of_component(target: &TargetReport, component: &ComponentReport, findings: &[&Finding], base: &str) -> Case {
    let about = |f: &&&Finding| f.targets.contains(&target.name) && is_about(f, component);
    let body: Vec<String> = findings.iter().filter(about).map(|f| block(f, base)).collect();
    let name = format!("{} runs", label(&component.name, component.version.as_deref()));
    let counts = &component.modules;
    let missing = match counts.missing {
        0 => String::new(),
        n => format!(
            " ({n} of {} without code)",
            count(usize::try_from(counts.total).unwrap_or(usize::MAX), "module", "modules")
        ),
    };
    Case {
        class: clean(&target.name),
        name: clean(&name),
        outcome: gated(target, component.verdict),
        kind: component.verdict.word().into(),
        message: format!("{} on {}: {}{missing}", component.verdict, table::gpu(target), clean(&component.why)),
        body: body.join("\n"),
    }
}

/// What is not required never gates.
fn gated(target: &TargetReport, verdict: Verdict) -> Outcome {
    match Outcome::from(verdict) {
        Outcome::Failure | Outcome::Error if !target.required => Outcome::Skipped,
        outcome => outcome,
    }
}

fn of_finding(finding: &Finding, outcome: Outcome, base: &str) -> Case {
    let place = match (&finding.component, &finding.dockerfile, &finding.path) {
        (Some(component), _, _) => clean(component),
        (None, Some(place), _) => format!("{}:{}", rooted(base, &clean(&place.file)), place.line),
        (None, None, Some(path)) => path.to_string(),
        (None, None, None) => String::new(),
    };
    let rule = clean(&finding.rule);
    Case {
        class: "findings".into(),
        name: if place.is_empty() { rule } else { format!("{rule}: {place}") },
        outcome,
        kind: finding.severity.to_string(),
        message: clean(&finding.message),
        body: block(finding, base),
    }
}

/// The suites of Dockerfiles: each file was held against each rule.
pub fn of_files(report: &LintReport) -> Vec<Suite> {
    let mut by_file: BTreeMap<&str, Vec<(&Finding, bool)>> =
        report.sources.keys().map(|name| (name.as_str(), Vec::new())).collect();
    let accepted = report.waived.iter().chain(report.known.iter().flatten()).map(|f| (f, true));
    let mut alone = Vec::new();
    for (finding, accepted) in report.findings.iter().map(|f| (f, false)).chain(accepted) {
        match &finding.dockerfile {
            Some(place) => by_file.entry(place.file.as_str()).or_default().push((finding, accepted)),
            None => alone.push(of_finding(finding, outcome(finding, accepted), &report.base)),
        }
    }
    let mut suites: Vec<Suite> = Vec::new();
    for (file, findings) in by_file {
        let name = rooted(&report.base, &clean(file));
        let mut by_rule: BTreeMap<&str, Vec<(&Finding, bool)>> =
            report.rules.iter().filter(|r| r.of_dockerfiles).map(|r| (r.id, Vec::new())).collect();
        for (finding, accepted) in findings {
            by_rule.entry(finding.rule.as_str()).or_default().push((finding, accepted));
        }
        let cases = by_rule.into_iter().map(|(rule, found)| of_rule(&name, rule, &found, &report.base));
        suites.push(Suite { name: name.clone(), cases: cases.collect(), seconds: None });
    }
    if !alone.is_empty() {
        suites.push(Suite { name: "imagelint.toml".into(), cases: numbered(alone), seconds: None });
    }
    suites
}

fn outcome(finding: &Finding, accepted: bool) -> Outcome {
    if accepted { Outcome::Skipped } else { finding.severity.into() }
}

/// A rule on a file: the worst of what it found.
fn of_rule(file: &str, rule: &str, found: &[(&Finding, bool)], base: &str) -> Case {
    let rank = |outcome: Outcome| match outcome {
        Outcome::Error => 3,
        Outcome::Failure => 2,
        Outcome::Skipped => 1,
        Outcome::Passed => 0,
    };
    let worst =
        found.iter().map(|(f, accepted)| (outcome(f, *accepted), *f)).max_by_key(|(o, f)| (rank(*o), f.severity));
    let body: Vec<String> = found.iter().map(|(f, _)| block(f, base)).collect();
    let more = if found.len() > 1 { format!(" (and {} more)", found.len() - 1) } else { String::new() };
    Case {
        class: file.to_owned(),
        name: clean(rule),
        outcome: worst.map_or(Outcome::Passed, |(o, _)| o),
        kind: worst.map_or_else(String::new, |(_, f)| f.severity.to_string()),
        message: worst.map_or_else(String::new, |(_, f)| format!("{}{more}", clean(&f.message))),
        body: body.join("\n"),
    }
}

/// Cases of one name are taken for one: the second gets a number.
fn numbered(mut cases: Vec<Case>) -> Vec<Case> {
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    for case in &mut cases {
        let times = seen.entry((case.class.clone(), case.name.clone())).and_modify(|n| *n += 1).or_insert(1);
        if *times > 1 {
            case.name.push_str(&format!(" ({times})"));
        }
    }
    cases
}
