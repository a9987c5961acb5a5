//! What comes last: what to do, what could not be read, and the sum of it.

use super::super::paint::{Ink, Page, span};
use super::super::text::{clean, count};
use super::super::{Report, TargetReport};
use super::findings::{against_baseline, tally};
use super::targets::meaning;
use crate::model::{Gap, GapEffect, Verdict};

/// Gaps that are listed without `-v`.
const LISTED: usize = 10;

/// Steps that are listed without `-v`.
const STEPS: usize = 5;

/// One line that leads to the plan.
pub(super) fn plan(page: &mut Page<'_>, report: &Report) {
    let Some(plan) = &report.plan else { return };
    if plan.steps.is_empty() && plan.unresolved.is_empty() {
        return;
    }
    let mut rest = count(plan.steps.len(), "step", "steps");
    if !plan.unresolved.is_empty() {
        rest.push_str(&format!(", {} left open", plan.unresolved.len()));
    }
    page.heading("PLAN", &format!("{rest}; `imagelint plan` with the same arguments shows all"));
    let shown = if page.verbose() > 0 { plan.steps.len() } else { STEPS };
    for step in plan.steps.iter().take(shown) {
        page.flow(&[span(Ink::Plain, "  - ")], 4, Ink::Plain, &clean(&step.summary));
    }
    if let Some(more) = plan.steps.len().checked_sub(shown).filter(|&n| n > 0) {
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Dim, &format!("… and {more} more"));
    }
    if page.verbose() > 0 {
        for open in &plan.unresolved {
            page.flow(&[span(Ink::Plain, "  ? ")], 4, Ink::Plain, &clean(open));
        }
    }
}

pub(in crate::report) fn gaps(page: &mut Page<'_>, report: &Report) {
    if report.gaps.is_empty() {
        return;
    }
    page.heading(
        "GAPS",
        &format!("{} could not be read or understood", count(report.gaps.len(), "place", "places")),
    );
    let listed = if page.verbose() > 0 { report.gaps.len() } else { LISTED };
    let sorted = worst_gaps(report);
    for gap in sorted.iter().take(listed) {
        let place = place(gap);
        let ink = match gap.effect {
            GapEffect::None => Ink::Plain,
            GapEffect::File => Ink::Open,
            GapEffect::Image => Ink::Bad,
        };
        page.flow(&[span(Ink::Plain, "  ")], 4, ink, &format!("{place}: {}{}", clean(&gap.why), reach(gap)));
    }
    if let Some(more) = sorted.len().checked_sub(listed).filter(|&n| n > 0) {
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Dim, &format!("… and {more} more (-v lists them)"));
    }
}

/// Those that an answer rests on come first.
pub(in crate::report) fn worst_gaps(report: &Report) -> Vec<&Gap> {
    let mut sorted: Vec<&Gap> = report.gaps.iter().collect();
    sorted.sort_by_key(|g| std::cmp::Reverse(g.effect));
    sorted
}

/// What a gap takes from the answer.
pub(in crate::report) fn reach(gap: &Gap) -> &'static str {
    match gap.effect {
        GapEffect::None => "",
        GapEffect::File => " (listing incomplete)",
        GapEffect::Image => " (scan incomplete)",
    }
}

/// Where a gap is.
pub(in crate::report) fn place(gap: &Gap) -> String {
    let mut place = match (&gap.path, &gap.layer) {
        (Some(path), _) => path.to_string(),
        (None, Some(layer)) => format!("layer sha256:{}", layer.short()),
        (None, None) => "image".to_owned(),
    };
    if let Some(offset) = gap.offset {
        place.push_str(&format!(" +{offset:#x}"));
    }
    place
}

/// The last line: verdict, tally, exit status.
pub(super) fn summary(page: &mut Page<'_>, report: &Report, fleet: &[&TargetReport]) {
    page.gap();
    let verdict = told_verdict(report);
    let lead = verdict.map(|word| [span(word, word.word()), span(Ink::Plain, "  ")]);
    page.flow(lead.as_ref().map_or(&[], |l| &l[..]), 2, Ink::Plain, &sum(report, fleet, page.exit()).join(" · "));
}

/// The image's verdict; without targets, where something is wrong on any.
pub(in crate::report) fn told_verdict(report: &Report) -> Option<Verdict> {
    let judged = report.targets.iter().flatten().next().is_some();
    report.image.as_ref().map(|i| i.verdict).filter(|&v| judged || v < Verdict::Ok)
}

/// What the last line says, part by part.
pub(in crate::report) fn sum(report: &Report, fleet: &[&TargetReport], exit: Option<u8>) -> Vec<String> {
    let mut parts = vec![match (&report.image, fleet.len()) {
        (Some(_), n) if n > 0 => standing(fleet),
        _ => "no target given, so no GPU was judged: add --target GPU[@DRIVER] or --fleet FILE".to_owned(),
    }];
    parts.push(tally(&report.findings));
    parts.extend(Some(against_baseline(report.known.as_deref(), report.resolved)).filter(|t| !t.is_empty()));
    if !report.gaps.is_empty() {
        parts.push(count(report.gaps.len(), "gap", "gaps"));
    }
    if let Some(seconds) = report.stats.seconds {
        parts.push(format!("{seconds:.2} s"));
    }
    parts.extend(exit.map(|status| match status {
        0 => "exit 0: nothing at or above --fail-on".to_owned(),
        1 => "exit 1: a finding at or above --fail-on".to_owned(),
        n => format!("exit {n}: the question could not be answered"),
    }));
    parts
}

/// `1 of 3 targets will not run, 1 runs after JIT …`, or that all are well.
fn standing(fleet: &[&TargetReport]) -> String {
    let of = |verdict: Verdict| fleet.iter().filter(|t| t.verdict == verdict).count();
    if of(Verdict::Ok) == fleet.len() {
        return format!(
            "runs on {}",
            if fleet.len() == 1 { "the target".to_owned() } else { format!("all {} targets", fleet.len()) }
        );
    }
    let present: Vec<Verdict> = Verdict::ALL.into_iter().filter(|&w| of(w) > 0).collect();
    match present.as_slice() {
        [only] => format!("{}: {}", count(fleet.len(), "target", "targets"), meaning(*only)),
        several => {
            let parts: Vec<String> = several.iter().map(|&w| format!("{} {w}", of(w))).collect();
            format!("{}: {}", count(fleet.len(), "target", "targets"), parts.join(", "))
        }
    }
}
