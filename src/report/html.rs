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

use self::page::Page;
use super::lint::LintReport;
use super::sections::Sections;
use super::source::Source;
use super::table::overview;
use super::table::{against_baseline, tally};
use super::text::{clean, count};
use super::{Report, Tool};

/// Bytes of the sections of several images: a browser still opens that.
const MOST: usize = 24 << 20;

/// Images that are rows of the table of images.
const ROWS: usize = 2_000;

/// Places that were not understood, of one image or of all files.
const GAPS: usize = 200;

/// A page of one image or of several.
pub struct Document {
    several: bool,
    images: Sections,
}

impl Document {
    pub fn new(several: bool) -> Self {
        Self { several, images: Sections::new(MOST) }
    }

    /// `unread`: the image could not be looked at.
    pub fn add(&mut self, report: &Report, unread: bool, exit: Option<u8>) {
        let prefix = format!("i{}", self.images.rows.len());
        let mut page = Page::default();
        image::section(&mut page, report, &image::Told { unread, exit, prefix });
        self.images.add(report, unread, page.finish());
    }

    /// The page; `exit` of the whole run.
    pub fn finish(self, exit: Option<u8>) -> String {
        let name = match (&self.images.rows[..], self.several) {
            ([one], false) => clean(&one.reference),
            (rows, _) => count(rows.len(), "image", "images"),
        };
        let mut page = Page::document(&format!("imagelint: {name}"));
        if self.images.rows.is_empty() {
            page.raw("<main id=\"main\"><h1>imagelint</h1><p>No image was judged.</p></main>");
        } else {
            page.raw("<main id=\"main\">");
            if self.several {
                self.overview(&mut page, exit);
            }
            for section in &self.images.kept {
                page.raw(&section.text);
            }
            page.raw("</main>");
        }
        foot(&mut page, self.images.tool.as_ref());
        page.end()
    }

    /// One row an image, worst first.
    fn overview(&self, page: &mut Page, exit: Option<u8>) {
        let names = overview::names(&self.images.rows);
        let order = overview::worst_first(&self.images.rows);
        page.raw("<header class=\"top\"><h1>")
            .text(&count(self.images.rows.len(), "image", "images"))
            .raw("</h1><p>");
        page.text(&overview::sum(&self.images.rows));
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
            let linked = self.images.kept.iter().any(|section| section.row == *place);
            if linked {
                page.raw("<a href=\"#i").raw(&place.to_string()).raw("\">").text(&row.reference).raw("</a>");
            } else {
                page.text(&row.reference);
            }
            page.raw("</th>");
            for name in &names {
                page.raw("<td>");
                match row.of(name) {
                    _ if row.unread => page.raw("<span class=\"v unknown\">unread</span>"),
                    Some(verdict) => page.verdict(verdict),
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
        if let Some(more) = self.images.rows.len().checked_sub(self.images.kept.len()).filter(|&n| n > 0) {
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
    let sources = Source::all(&report.sources);
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
    page.raw("<footer>").text(&tool.told()).raw(" (<code>").text(&tool.catalog.digest.to_string());
    page.raw("</code>)</footer>");
}
