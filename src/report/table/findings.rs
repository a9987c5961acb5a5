//! What rules have to say, worst first.

use super::super::Report;
use super::super::paint::{Ink, Page, span};
use super::super::text::{clean, count};
use crate::model::{Confidence, Finding, Severity};

/// Further findings of one rule for the same targets that are folded into a line, from so many on.
const FOLDED: usize = 2;

/// `2 errors, 1 warning, 3 notes`.
pub(in crate::report) fn tally(findings: &[Finding]) -> String {
    let of = |severity: Severity| findings.iter().filter(|f| f.severity == severity).count();
    tally_of([Severity::Error, Severity::Warning, Severity::Note].map(of))
}

/// The same of errors, warnings and notes that are counted.
pub(in crate::report) fn tally_of([errors, warnings, notes]: [usize; 3]) -> String {
    let kinds = [(errors, "error", "errors"), (warnings, "warning", "warnings"), (notes, "note", "notes")];
    let parts: Vec<String> =
        kinds.iter().filter(|(n, ..)| *n > 0).map(|(n, one, many)| count(*n, one, many)).collect();
    if parts.is_empty() { "no findings".to_owned() } else { parts.join(", ") }
}

/// Alike ones in the order that they have.
pub(in crate::report) fn worst_first(findings: &[Finding]) -> Vec<&Finding> {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|f| (std::cmp::Reverse(f.severity), f.verdict));
    sorted
}

/// `12 known from the baseline, 3 resolved`; empty without a baseline.
pub(in crate::report) fn against_baseline(known: Option<&[Finding]>, resolved: Option<usize>) -> String {
    let Some(known) = known else { return String::new() };
    let resolved = resolved.filter(|n| *n > 0).map_or(String::new(), |n| format!(", {n} resolved"));
    format!("{} known from the baseline{resolved}", known.len())
}

pub(super) fn section(page: &mut Page<'_>, report: &Report) {
    let known = report.known.as_deref().unwrap_or_default();
    if report.findings.is_empty() && report.waived.is_empty() && known.is_empty() {
        return;
    }
    let mut rest = tally(&report.findings);
    if !known.is_empty() {
        rest.push_str(&format!(", {} known", known.len()));
    }
    if !report.waived.is_empty() {
        rest.push_str(&format!(", {} waived", report.waived.len()));
    }
    page.heading("FINDINGS", &rest);
    let sorted = worst_first(&report.findings);
    // Notes ask for nothing: they are counted above, and shown to those who ask.
    let (shown, notes): (Vec<_>, Vec<_>) =
        sorted.into_iter().partition(|f| f.severity > Severity::Note || page.verbose() > 0);
    let alone = shown.is_empty() && notes.len() == 1;
    let shown: Vec<&Finding> = shown.into_iter().chain(notes.iter().copied().filter(|_| alone)).collect();
    let mut told = vec![false; shown.len()];
    for (place, finding) in shown.iter().enumerate() {
        if told[place] {
            continue;
        }
        one(page, finding, "");
        // Many libraries fall short in the same way: the others of a kind take a line together.
        let alike = |f: &Finding| {
            f.severity == finding.severity
                && f.rule == finding.rule
                && f.targets == finding.targets
                && f.component.is_some()
        };
        let others: Vec<usize> = (place + 1..shown.len()).filter(|&i| !told[i] && alike(shown[i])).collect();
        if others.len() >= FOLDED && page.verbose() == 0 {
            others.iter().for_each(|&i| told[i] = true);
            let names: Vec<&str> = others.iter().filter_map(|&i| shown[i].component.as_deref()).collect();
            detail(page, "likewise", &clean(&format!("{} (-v tells each)", names.join(", "))));
        }
    }
    if !notes.is_empty() && !alone {
        let text = format!("{} (-v shows them)", count(notes.len(), "note", "notes"));
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Dim, &text);
    }
    if page.verbose() > 0 {
        for finding in &report.waived {
            one(page, finding, " (waived)");
        }
        for finding in known {
            one(page, finding, " (known)");
        }
    }
}

fn one(page: &mut Page<'_>, finding: &Finding, mark: &str) {
    let unsure = match finding.confidence {
        Confidence::High => "",
        Confidence::Medium => " (medium confidence)",
        Confidence::Low => " (low confidence)",
    };
    let head = format!("{}[{}]{unsure}{mark}", finding.severity, clean(&finding.rule));
    page.flow(&[span(Ink::Plain, "  ")], 4, finding.severity.into(), &head);
    page.flow(&[span(Ink::Plain, "    ")], 4, Ink::Plain, &clean(&finding.message));
    if !finding.targets.is_empty() {
        detail(page, "targets", &clean(&finding.targets.join(", ")));
    }
    if let Some(place) = &finding.dockerfile {
        detail(page, "in", &format!("{}:{}:{}", clean(&place.file), place.line, place.column));
    }
    if let Some(path) = &finding.path {
        detail(page, "at", &path.to_string());
    }
    if let Some(help) = &finding.help {
        detail(page, "help", &clean(help));
    }
    if page.verbose() > 0 {
        if let Some(layer) = &finding.layer {
            detail(page, "layer", &layer.to_string());
        }
        for because in &finding.because {
            detail(page, "because", &clean(because));
        }
    }
}

fn detail(page: &mut Page<'_>, word: &str, text: &str) {
    let lead = [span(Ink::Plain, "    "), span(Ink::Dim, format!("{word}: "))];
    page.flow(&lead, 6, Ink::Plain, text);
}
