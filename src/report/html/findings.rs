//! What is wrong, beside the lines that are meant.

use std::collections::BTreeMap;

use super::super::source::Source;
use super::super::table::{tally, worst_first};
use super::super::text::rooted;
use super::page::Page;
use super::source;
use crate::model::{AcceptedBy, Confidence, Finding, Severity};

/// Findings of each list.
const SHOWN: usize = 500;
/// Facts, and other places, of a finding.
const FACTS: usize = 40;
/// Edits of a finding.
const EDITS: usize = 20;

pub(super) struct All<'a> {
    pub findings: &'a [Finding],
    pub waived: &'a [Finding],
    pub known: &'a [Finding],
    pub sources: &'a BTreeMap<&'a str, Source<'a>>,
    /// What goes before names of Dockerfiles.
    pub base: &'a str,
    /// Of the ids: `i0-f`, for `i0-f12`.
    pub prefix: &'a str,
}

pub(super) fn section(page: &mut Page, all: &All<'_>) {
    page.section(&format!("{}-findings", all.prefix), "Findings", &tally(all.findings));
    let sorted = worst_first(all.findings);
    let (loud, notes): (Vec<_>, Vec<_>) = sorted.into_iter().partition(|f| f.severity > Severity::Note);
    list(page, &loud, all);
    if loud.is_empty() {
        page.raw("<p class=\"dim\">No errors and no warnings.</p>");
    }
    let mut folded = |found: &[&Finding], one: &str, many: &str| {
        if !found.is_empty() {
            page.details(found.len(), one, many);
            list(page, found, all);
            page.raw("</details>");
        }
    };
    folded(&notes, "note", "notes");
    folded(&all.waived.iter().collect::<Vec<_>>(), "finding that is accepted", "findings that are accepted");
    folded(
        &all.known.iter().collect::<Vec<_>>(),
        "finding that the baseline has",
        "findings that the baseline has",
    );
    page.raw("</section>");
}

/// The id of a finding of the report's list.
pub(super) fn id(prefix: &str, findings: &[Finding], finding: &Finding) -> Option<String> {
    let place = findings.iter().position(|f| std::ptr::eq(f, finding))?;
    Some(format!("{prefix}{place}"))
}

fn list(page: &mut Page, found: &[&Finding], all: &All<'_>) {
    for finding in found.iter().take(SHOWN) {
        one(page, finding, all);
    }
    page.more(found.len(), SHOWN, "of these");
}

fn one(page: &mut Page, finding: &Finding, all: &All<'_>) {
    let severity = finding.severity.to_string();
    page.raw("<article class=\"finding ").raw(&severity).raw("\"").attribute("data-rule", &finding.rule);
    if let Some(id) = id(all.prefix, all.findings, finding) {
        page.raw(" id=\"").raw(&id).raw("\"");
    }
    page.raw("><div><h3><span class=\"sev\">")
        .raw(&severity)
        .raw("</span> <code>")
        .text(&finding.rule)
        .raw("</code>");
    page.raw(match finding.confidence {
        Confidence::High => "",
        Confidence::Medium => " <small>medium confidence</small>",
        Confidence::Low => " <small>low confidence</small>",
    });
    page.raw("</h3><p>").text(&finding.message).raw("</p><dl>");
    if !finding.targets.is_empty() {
        page.raw("<dt>targets</dt><dd>");
        for target in &finding.targets {
            page.raw("<span class=\"chip\">").text(target).raw("</span> ");
        }
        page.raw("</dd>");
    }
    let mut row = |word: &str, text: &str, code: bool| {
        page.raw("<dt>").raw(word).raw("</dt><dd>").raw(if code { "<code>" } else { "" });
        page.text(text).raw(if code { "</code>" } else { "" }).raw("</dd>");
    };
    if let Some(place) = &finding.dockerfile {
        row("in", &format!("{}:{}", rooted(all.base, &super::clean(&place.file)), place.line), true);
    }
    if let Some(path) = &finding.path {
        row("at", &path.to_string(), true);
    }
    if let Some(help) = &finding.help {
        row("help", help, false);
    }
    if let Some(fix) = &finding.fix {
        row(if fix.safe { "fix" } else { "edit" }, &fix.what, false);
        for edit in fix.edits.iter().take(EDITS).filter(|e| !e.text.is_empty()) {
            row("", &format!("{}:{} {}", edit.line, edit.column, edit.text.trim()), true);
        }
    }
    if let Some(accepted) = &finding.accepted {
        let by = match accepted.by {
            AcceptedBy::Comment => "ignored by a comment in line",
            AcceptedBy::Waiver => "waived in line",
        };
        row("accepted", &format!("{by} {}: {}", accepted.line, accepted.reason), false);
    }
    page.raw("</dl>");
    if finding.because.len() + finding.related.len() > 0 {
        page.raw("<details><summary>Why</summary><ul>");
        for related in finding.related.iter().take(FACTS) {
            let place = format!("{}:{}: ", related.place.file, related.place.line);
            page.raw("<li>").text(&place).text(&related.message).raw("</li>");
        }
        for fact in finding.because.iter().take(FACTS) {
            page.raw("<li>").text(fact).raw("</li>");
        }
        page.raw("</ul>");
        page.more(finding.because.len(), FACTS, "facts");
        page.raw("</details>");
    }
    page.raw("</div>");
    let place = finding.dockerfile.as_ref();
    if let Some((place, text)) = place.and_then(|p| Some((p, all.sources.get(p.file.as_str())?))) {
        source::lines(page, text, place);
    }
    page.raw("</article>");
}
