//! One page that needs nothing else: the fleet and its components at a glance, what is wrong beside its lines, what the
//! plan changes, where the device code lies and which layer brought it. No script, and nothing is loaded.
//!
//! The markup is also well-formed XML. Text from outside goes through [`Page::text`] or an attribute's value, and
//! nothing else.

mod chart;
mod findings;
mod image;
mod layers;
mod matrix;
mod page;
mod plan;
mod source;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::page::Page;
use super::lint::LintReport;
use super::source::Source;
use super::table::overview::{self, ImageRow};
use super::table::{against_baseline, tally};
use super::text::{clean, count};
use super::{Report, Tool};
use crate::model::Verdict;

/// Bytes of the sections of several images: a browser still opens that.
const MOST: usize = 24 << 20;

/// Images that are rows of the table of images.
const ROWS: usize = 2_000;

/// Places that were not understood, of one image or of all files.
const GAPS: usize = 200;

/// A page of one image or of several.
pub struct Document {
    several: bool,
    rows: Vec<ImageRow>,
    /// Sections of images, worst first, with their places; those that have no room any more are dropped.
    sections: Vec<(Verdict, usize, String)>,
    tool: Option<Tool>,
}

impl Document {
    pub fn new(several: bool) -> Self {
        Self { several, rows: Vec::new(), sections: Vec::new(), tool: None }
    }

    /// `unread`: the image could not be looked at.
    pub fn add(&mut self, report: &Report, unread: bool, exit: Option<u8>) {
        let row = ImageRow::new(report, unread);
        let rank = if unread { Verdict::Fail } else { row.worst() };
        let place = self.rows.len();
        let mut page = Page::default();
        image::section(&mut page, report, &image::Told { unread, exit, prefix: format!("i{place}") });
        self.sections.push((rank, place, page.finish()));
        self.rows.push(row);
        self.tool.get_or_insert_with(|| report.tool.clone());
        self.sections.sort_by_key(|(rank, at, _)| (*rank, *at));
        let mut kept = 0;
        let fits = |(_, _, text): &&(Verdict, usize, String)| {
            kept += text.len();
            kept <= MOST
        };
        let keep = self.sections.iter().take_while(fits).count().max(1);
        self.sections.truncate(keep);
    }

    /// The page; `exit` of the whole run.
    pub fn finish(self, exit: Option<u8>) -> String {
        let name = match (&self.rows[..], self.several) {
            ([one], false) => clean(&one.reference),
            (rows, _) => count(rows.len(), "image", "images"),
        };
        let mut page = Page::document(&format!("imagelint: {name}"));
        if self.rows.is_empty() {
            page.raw("<main id=\"main\"><h1>imagelint</h1><p>No image was judged.</p></main>");
        } else {
            page.raw("<main id=\"main\">");
            if self.several {
                self.overview(&mut page, exit);
            }
            for (_, _, section) in &self.sections {
                page.raw(section);
            }
            page.raw("</main>");
        }
        foot(&mut page, self.tool.as_ref());
        page.end()
    }

    /// One row an image, worst first.
    fn overview(&self, page: &mut Page, exit: Option<u8>) {
        let names = overview::names(&self.rows);
        let mut order: Vec<(usize, &ImageRow)> = self.rows.iter().enumerate().collect();
        order.sort_by_key(|(_, row)| (!row.unread, row.worst()));
        page.raw("<header class=\"top\"><h1>").text(&count(self.rows.len(), "image", "images")).raw("</h1><p>");
        page.text(&overview::sum(&self.rows));
        if let Some(exit) = exit {
            page.text(&format!(" · exit {exit}"));
        }
        page.raw("</p></header><section class=\"card\" aria-label=\"Images\"><div class=\"scroll\"><table class=\"matrix\"><thead><tr><th scope=\"col\">Image</th>");
        for name in &names {
            page.raw("<th scope=\"col\">").text(name).raw("</th>");
        }
        page.raw("<th scope=\"col\">Findings</th></tr></thead><tbody>");
        for (place, row) in order.iter().take(ROWS) {
            page.raw("<tr><th scope=\"row\">");
            let linked = self.sections.iter().any(|(_, at, _)| at == place);
            if linked {
                page.raw("<a href=\"#i").raw(&place.to_string()).raw("\">").text(&row.reference).raw("</a>");
            } else {
                page.text(&row.reference);
            }
            page.raw("</th>");
            for name in &names {
                page.raw("<td>");
                match row.verdicts.iter().find(|(n, _)| clean(n) == *name) {
                    _ if row.unread => page.raw("<span class=\"v unknown\">unread</span>"),
                    Some((_, verdict)) => page.verdict(*verdict),
                    None => page.raw("<span class=\"none\">–</span>"),
                };
                page.raw("</td>");
            }
            let errors = count(row.errors, "error", "errors");
            page.raw("<td>")
                .text(&format!("{errors}, {}", count(row.warnings, "warning", "warnings")))
                .raw("</td></tr>");
        }
        page.raw("</tbody></table></div>");
        page.more(order.len(), ROWS, "images");
        if let Some(more) = self.rows.len().checked_sub(self.sections.len()).filter(|&n| n > 0) {
            let more = count(more, "image", "images");
            page.raw("<p class=\"dim\">").text(&format!("Of {more} only this table tells.")).raw("</p>");
        }
        page.raw("</section>");
    }
}

/// The page of Dockerfiles.
pub fn of_files(report: &LintReport, exit: Option<u8>) -> String {
    let files = count(report.sources.len(), "Dockerfile", "Dockerfiles");
    let mut page = Page::document(&format!("imagelint: {files}"));
    page.raw("<main id=\"main\"><header class=\"top\"><h1>").text(&files).raw("</h1><p>");
    let mut parts = vec![tally(&report.findings)];
    parts.extend(Some(against_baseline(report.known.as_deref(), report.resolved)).filter(|t| !t.is_empty()));
    if !report.waived.is_empty() {
        parts.push(format!("{} ignored or waived", report.waived.len()));
    }
    parts.extend(exit.map(|status| format!("exit {status}")));
    page.text(&parts.join(" · ")).raw("</p></header>");
    image::weakened(&mut page, report.policy.as_ref());
    let sources: BTreeMap<&str, Source<'_>> =
        report.sources.iter().map(|(name, text)| (name.as_str(), Source::new(text))).collect();
    let all = findings::All {
        findings: &report.findings,
        waived: &report.waived,
        known: report.known.as_deref().unwrap_or_default(),
        sources: &sources,
        base: &report.base,
        prefix: "f",
    };
    findings::section(&mut page, &all);
    let gaps = report.gaps.iter().map(|gap| (format!("{}:{}", gap.path, gap.line), gap.why.clone()));
    image::gaps(&mut page, gaps.collect());
    page.raw("</main>");
    foot(&mut page, Some(&report.tool));
    page.end()
}

fn foot(page: &mut Page, tool: Option<&Tool>) {
    let Some(tool) = tool else { return };
    let told = format!("{} {}, catalog of {} (", tool.name, tool.version, tool.catalog.as_of);
    page.raw("<footer>").text(&told).raw("<code>").text(&tool.catalog.digest.to_string());
    page.raw("</code>)</footer>");
}
