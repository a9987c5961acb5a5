//! The section of one image.

use super::super::source::Source;
use super::super::table;
use super::super::text::{bytes, count};
use super::super::{PolicyReport, Report};
use super::page::Page;
use super::{GAPS, chart, findings, layers, matrix, plan};

/// Lines of a policy's that are told.
const WEAKENED: usize = 50;

pub(super) struct Told {
    pub unread: bool,
    pub exit: Option<u8>,
    /// Of this image's ids.
    pub prefix: String,
}

pub(super) fn section(page: &mut Page, report: &Report, told: &Told) {
    let name = report.image.as_ref().map_or("files", |i| i.reference.as_str());
    let prefix = told.prefix.as_str();
    page.raw("<article id=\"").raw(prefix).raw("\"><header class=\"top\"><h1>").text(name).raw("</h1>");
    if told.unread {
        let why = table::worst_gaps(report).first().map_or(String::new(), |g| format!(": {}", g.why));
        page.raw("<p><span class=\"v unknown\">unread</span> The image could not be read").text(&why);
        page.raw("</p></header></article>");
        return;
    }
    let fleet = table::fleet(report);
    page.raw("<p class=\"sum\">");
    if let Some(verdict) = table::told_verdict(report) {
        page.verdict(verdict).raw(" ");
    }
    page.text(&table::sum(report, &fleet, told.exit).join(" · ")).raw("</p>");
    facts(page, report);
    page.raw("</header>");
    weakened(page, report.policy.as_ref());
    if !fleet.is_empty() {
        matrix::section(page, &fleet, prefix);
    }
    let sources = Source::all(&report.sources);
    let finding_prefix = format!("{prefix}-f");
    let all = findings::All {
        findings: &report.findings,
        waived: &report.waived,
        known: report.known.as_deref().unwrap_or_default(),
        sources: &sources,
        base: &report.base,
        prefix: &finding_prefix,
    };
    findings::section(page, &all);
    if let Some(plan) = &report.plan {
        plan::section(page, plan, prefix);
    }
    chart::section(page, report, prefix);
    layers::section(page, report, prefix, &finding_prefix);
    let told = table::worst_gaps(report).into_iter();
    gaps(page, told.map(|gap| (table::gap_place(gap), format!("{}{}", gap.why, table::reach(gap)))).collect());
    page.raw("</article>");
}

fn facts(page: &mut Page, report: &Report) {
    let Some(image) = &report.image else { return };
    page.raw("<dl class=\"facts\">");
    let mut row = |word: &str, text: &str| {
        page.raw("<div><dt>").raw(word).raw("</dt><dd>").text(text).raw("</dd></div>");
    };
    if let Some(platform) = &image.platform {
        row("platform", &platform.to_string());
    }
    row("size", &bytes(image.size));
    if let Some(digest) = &image.digest {
        row("digest", &digest.to_string());
    }
    if let Some(floor) = &image.min_driver {
        row("driver", &format!("{} or newer: {}", floor.version, floor.cause));
    }
    if let Some(list) = &image.arch_list {
        row("arch list", &if list.is_empty() { "empty".to_owned() } else { list.join(" ") });
    }
    if let Some(amd) = image.amd.as_ref().filter(|a| !(a.all.is_empty() && a.in_parts.is_empty())) {
        row("amd", &amd.line());
    }
    page.raw("</dl>");
}

/// What the change would have made easier for itself.
pub(super) fn weakened(page: &mut Page, policy: Option<&PolicyReport>) {
    let Some(policy) = policy.filter(|p| !p.weakened.is_empty()) else { return };
    page.raw("<section class=\"card told\" aria-label=\"Policy\"><h2>The policy counts, not what this change says</h2><ul>");
    for what in policy.weakened.iter().take(WEAKENED) {
        page.raw("<li>").text(what).raw("</li>");
    }
    page.raw("</ul>");
    page.more(policy.weakened.len(), WEAKENED, "of these");
    page.raw("</section>");
}

/// Places and why, the weightiest first.
pub(super) fn gaps(page: &mut Page, gaps: Vec<(String, String)>) {
    if gaps.is_empty() {
        return;
    }
    let title = format!("{} could not be read or understood", count(gaps.len(), "place", "places"));
    page.raw("<section class=\"card\" aria-label=\"Gaps\"><details><summary>").text(&title).raw("</summary><ul>");
    for (place, why) in gaps.iter().take(GAPS) {
        page.raw("<li><code>").text(place).raw("</code>: ").text(why).raw("</li>");
    }
    page.raw("</ul>");
    page.more(gaps.len(), GAPS, "places");
    page.raw("</details></section>");
}
