//! What a person reads of linted Dockerfiles: each finding with its lines, and a line that sums up.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::Style;
use super::lint::LintReport;
use super::paint::{Ink, Page, span};
use super::snippet;
use super::source::Source;
use super::table::{against_baseline, tally};
use super::text::{clean, count};
use crate::model::AcceptedBy;

/// Gaps that are listed without `-v`.
const LISTED: usize = 5;

/// The whole report, ending in a line feed.
pub fn render(report: &LintReport, style: &Style) -> String {
    let mut page = Page::new(style);
    let sources = Source::all(&report.sources);
    for finding in &report.findings {
        page.gap();
        let source = finding.dockerfile.as_ref().and_then(|d| sources.get(d.file.as_str()));
        snippet::finding(&mut page, finding, source, "");
    }
    if style.verbose > 0 {
        for finding in &report.waived {
            page.gap();
            let source = finding.dockerfile.as_ref().and_then(|d| sources.get(d.file.as_str()));
            snippet::finding(&mut page, finding, source, " (ignored)");
        }
    }
    gaps(&mut page, report);
    page.gap();
    page.flow(&[], 2, Ink::Plain, &summary(report));
    page.finish()
}

fn gaps(page: &mut Page<'_>, report: &LintReport) {
    if report.gaps.is_empty() {
        return;
    }
    page.heading("GAPS", &format!("{} not understood", count(report.gaps.len(), "place", "places")));
    let listed = if page.verbose() > 0 { report.gaps.len() } else { LISTED };
    for gap in report.gaps.iter().take(listed) {
        let text = format!("{}:{}: {}", clean(&gap.path), gap.line, clean(&gap.why));
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Plain, &text);
    }
    if let Some(more) = report.gaps.len().checked_sub(listed).filter(|&n| n > 0) {
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Dim, &format!("… and {more} more (-v lists them)"));
    }
}

/// `3 errors, 2 warnings, 1 note in 2 files; 1 ignored; 4 fixable with --fix (2 more with --diff)`.
fn summary(report: &LintReport) -> String {
    let mut parts = Vec::new();
    let files: BTreeSet<&str> =
        report.findings.iter().filter_map(|f| f.dockerfile.as_ref()).map(|d| d.file.as_str()).collect();
    let found = tally(&report.findings);
    parts.push(match (report.findings.is_empty(), files.len(), report.sources.len()) {
        (true, _, all) => format!("{found} in {}", count(all, "file", "files")),
        (false, some, all) if some < all => format!("{found} in {some} of {}", count(all, "file", "files")),
        (false, _, all) => format!("{found} in {}", count(all, "file", "files")),
    });
    let by =
        |who: AcceptedBy| report.waived.iter().filter(|f| f.accepted.as_ref().is_some_and(|a| a.by == who)).count();
    for (number, word) in [(by(AcceptedBy::Comment), "ignored"), (by(AcceptedBy::Waiver), "waived")] {
        if number > 0 {
            parts.push(format!("{number} {word}"));
        }
    }
    parts.extend(Some(against_baseline(report.known.as_deref(), report.resolved)).filter(|t| !t.is_empty()));
    let fixes =
        |safe: bool| report.findings.iter().filter_map(|f| f.fix.as_ref()).filter(|f| f.safe == safe).count();
    match (fixes(true), fixes(false)) {
        (0, 0) => {}
        (0, more) => parts.push(format!("{more} with an edit to be read (--diff)")),
        (safe, 0) => parts.push(format!("{safe} fixable with --fix")),
        (safe, more) => parts.push(format!("{safe} fixable with --fix ({more} more with --diff)")),
    }
    if !report.gaps.is_empty() {
        parts.push(count(report.gaps.len(), "gap", "gaps"));
    }
    parts.join("; ")
}
