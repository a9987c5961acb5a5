//! A finding as a block of plain text, for formats that hold text.

use super::text::{clean, rooted};
use crate::model::{AcceptedBy, Confidence, Finding};

/// Its first line has severity, rule and message; the others each a word and what it is. `base` goes before the names
/// of files.
pub(super) fn block(finding: &Finding, base: &str) -> String {
    let unsure = match finding.confidence {
        Confidence::High => "",
        Confidence::Medium => " (medium confidence)",
        Confidence::Low => " (low confidence)",
    };
    let head = format!("{}[{}]{unsure}: {}", finding.severity, clean(&finding.rule), clean(&finding.message));
    std::iter::once(head).chain(details(finding, base)).collect::<Vec<_>>().join("\n  ")
}

/// `targets: a, b` and the like, each for a line of its own.
pub(super) fn details(finding: &Finding, base: &str) -> Vec<String> {
    let mut out = Vec::new();
    if !finding.targets.is_empty() {
        out.push(format!("targets: {}", clean(&finding.targets.join(", "))));
    }
    if let Some(place) = &finding.dockerfile {
        out.push(format!("in: {}:{}", rooted(base, &clean(&place.file)), place.line));
    }
    if let Some(path) = &finding.path {
        out.push(format!("at: {path}"));
    }
    out.extend(finding.help.as_ref().map(|help| format!("help: {}", clean(help))));
    out.extend(finding.accepted.as_ref().map(|accepted| {
        let who = match accepted.by {
            AcceptedBy::Comment => "ignored by a comment",
            AcceptedBy::Waiver => "waived",
        };
        format!("{who}: {}", clean(&accepted.reason))
    }));
    out
}
