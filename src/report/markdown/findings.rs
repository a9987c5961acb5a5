//! Findings as items of a list: the worst are open, the rest unfolds.

use super::super::PolicyReport;
use super::super::table::worst_first;
use super::super::text::count;
use super::escape::{code, text};
use super::sheet::{Around, END_OF_DETAILS, Sheet, details};
use crate::model::{Accepted, AcceptedBy, Confidence, Finding, Severity};

/// Errors and warnings that are open.
const OPEN: usize = 10;

/// What is found, what is only noted, and what is accepted or known.
pub(super) fn section(sheet: &mut Sheet, findings: &[Finding], waived: &[Finding], known: &[Finding]) {
    let sorted = worst_first(findings);
    let (loud, notes): (Vec<&Finding>, Vec<&Finding>) =
        sorted.into_iter().partition(|f| f.severity > Severity::Note);
    let loud: Vec<String> = loud.into_iter().map(item).collect();
    let (open, rest) = loud.split_at(loud.len().min(OPEN));
    if !open.is_empty() {
        let share = sheet.room() / 2;
        let around = Around { before: "\n#### Errors and warnings\n\n", after: "", what: "of these" };
        sheet.list(&around, open, share);
    }
    let folded = |sheet: &mut Sheet, head: String, items: &[String]| {
        if items.is_empty() {
            return;
        }
        let share = sheet.room() / 2;
        let around = Around { before: &details(&head), after: END_OF_DETAILS, what: "of these" };
        sheet.list(&around, items, share);
    };
    folded(sheet, format!("{} more errors and warnings", rest.len()), rest);
    let items = |all: Vec<&Finding>| all.into_iter().map(item).collect::<Vec<_>>();
    folded(sheet, count(notes.len(), "note", "notes"), &items(notes));
    folded(sheet, format!("{} ignored or waived", waived.len()), &items(waived.iter().collect()));
    folded(sheet, format!("{} known from the baseline", known.len()), &items(known.iter().collect()));
}

/// What the change would have made easier for itself.
pub(super) fn weakened(sheet: &mut Sheet, policy: Option<&PolicyReport>) {
    let told: Vec<String> =
        policy.iter().flat_map(|p| &p.weakened).map(|what| format!("- {}", text(what))).collect();
    if !told.is_empty() {
        let before = "\n#### The policy counts, not what this change says\n\n";
        let share = sheet.room() / 4;
        sheet.list(&Around { before, after: "", what: "of these" }, &told, share);
    }
}

/// One line; what is inside of it is set below the message.
fn item(finding: &Finding) -> String {
    let unsure = match finding.confidence {
        Confidence::High => "",
        Confidence::Medium => " (medium confidence)",
        Confidence::Low => " (low confidence)",
    };
    let mut out = format!("- **{}** {}{unsure}: {}", finding.severity, code(&finding.rule), text(&finding.message));
    let mut detail = |word: &str, value: String| out.push_str(&format!("<br>{word}: {value}"));
    if !finding.targets.is_empty() {
        detail("targets", finding.targets.iter().map(|t| code(t)).collect::<Vec<_>>().join(", "));
    }
    if let Some(place) = &finding.dockerfile {
        detail("in", code(&format!("{}:{}", place.file, place.line)));
    }
    if let Some(path) = &finding.path {
        detail("at", code(&path.to_string()));
    }
    if let Some(help) = &finding.help {
        detail("help", text(help));
    }
    if let Some(accepted) = &finding.accepted {
        detail(who(accepted), text(&accepted.reason));
    }
    out
}

fn who(accepted: &Accepted) -> &'static str {
    match accepted.by {
        AcceptedBy::Comment => "ignored by a comment",
        AcceptedBy::Waiver => "waived",
    }
}
