//! Markdown for a job's summary and a comment of a pull request: the matrix, what it comes to, what is wrong, what to
//! do. Bounded, since GitHub takes no more than 65,536 characters of a comment.

mod escape;
mod findings;
mod image;
mod sheet;

#[cfg(test)]
mod tests;

use self::escape::{code, text};
use self::sheet::{Around, Sheet};
use super::lint::LintReport;
use super::sections::Sections;
use super::table::overview::{self, ImageRow};
use super::table::{against_baseline, tally};
use super::text::count;
use super::{Report, Tool};
use crate::model::Verdict;

#[cfg(test)]
pub(super) use self::escape::tests::read;

/// Bytes of a document: below a comment's bound, with room for what an action puts around it.
const MOST: usize = 64_000;

/// Bytes of an image among several.
const MOST_OF_IMAGE: usize = 16_000;

/// Targets that are columns of the table of images.
const COLUMNS: usize = 12;

/// A document of one image or of several.
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
        let most = if self.several { MOST_OF_IMAGE } else { MOST };
        self.images.add(report, unread, image::section(report, unread, exit, most));
    }

    /// The document, ending in a line feed; `exit` of the whole run.
    pub fn finish(self, exit: Option<u8>) -> String {
        let mut sheet = Sheet::new(MOST);
        let foot = self.images.tool.as_ref().map(foot).unwrap_or_default();
        if self.images.rows.is_empty() {
            sheet.put("## imagelint\n\nNo image was judged.\n");
            return sheet.finish();
        }
        if !self.several {
            let section = self.images.kept.first().map_or("", |s| s.text.as_str());
            return format!("{section}{foot}");
        }
        overview(&mut sheet, &self.images.rows, exit);
        let mut shown = 0;
        for section in self.images.kept.iter().map(|s| &s.text) {
            // The last words keep their room.
            if section.len() + foot.len() + 200 > sheet.room() || !sheet.put(&format!("\n{section}")) {
                break;
            }
            shown += 1;
        }
        if let Some(more) = self.images.rows.len().checked_sub(shown).filter(|&n| n > 0) {
            let more = count(more, "more image", "more images");
            sheet.put(&format!("\n… and {more}, of which only the table tells\n"));
        }
        sheet.put(&foot);
        sheet.finish()
    }
}

/// One row an image, worst first, and the sum of it.
fn overview(sheet: &mut Sheet, images: &[ImageRow], exit: Option<u8>) {
    let mut names = overview::names(images);
    let left_out = names.len().saturating_sub(COLUMNS);
    names.truncate(COLUMNS);
    let row = |(_, image): (usize, &ImageRow)| {
        let verdicts = names.iter().map(|name| image.of(name).map_or_else(|| "–".to_owned(), mark));
        let state = if image.unread { "❌ unread".to_owned() } else { mark(image.worst()) };
        cells([state, code(&image.reference)].into_iter().chain(verdicts))
    };
    let rows: Vec<String> = overview::worst_first(images).into_iter().map(row).collect();
    let heads = cells(["".to_owned(), "Image".to_owned()].into_iter().chain(names.iter().map(|n| text(n))));
    let rule = cells(["---", "---"].into_iter().chain(names.iter().map(|_| ":-:")).map(str::to_owned));
    let before = format!("## imagelint: {}\n\n{heads}\n{rule}\n", count(images.len(), "image", "images"));
    let share = sheet.room() / 2;
    sheet.list(&Around { before: &before, after: "", what: "images" }, &rows, share);
    if left_out > 0 {
        sheet.put(&format!("\n… and {} in the sections below\n", count(left_out, "more target", "more targets")));
    }
    let exit = exit.map_or(String::new(), |status| format!(" · exit {status}"));
    sheet.put(&format!("\n{}{exit}\n", overview::sum(images)));
}

/// The report of Dockerfiles, ending in a line feed.
pub fn of_files(report: &LintReport, exit: Option<u8>) -> String {
    let mut sheet = Sheet::new(MOST);
    let foot = foot(&report.tool);
    sheet.put(&format!("## imagelint: {}\n", count(report.sources.len(), "Dockerfile", "Dockerfiles")));
    let mut parts = vec![tally(&report.findings)];
    parts.extend(Some(against_baseline(report.known.as_deref(), report.resolved)).filter(|t| !t.is_empty()));
    if !report.waived.is_empty() {
        parts.push(format!("{} ignored or waived", report.waived.len()));
    }
    if !report.gaps.is_empty() {
        parts.push(count(report.gaps.len(), "gap", "gaps"));
    }
    parts.extend(exit.map(|status| format!("exit {status}")));
    sheet.put(&format!("\n{}\n", parts.join(" · ")));
    findings::weakened(&mut sheet, report.policy.as_ref());
    findings::section(&mut sheet, &report.findings, &report.waived, report.known.as_deref().unwrap_or_default());
    let gaps: Vec<String> = report
        .gaps
        .iter()
        .map(|gap| format!("- {}: {}", code(&format!("{}:{}", gap.path, gap.line)), text(&gap.why)))
        .collect();
    image::gaps(&mut sheet, &gaps, foot.len());
    sheet.put(&foot);
    sheet.finish()
}

fn foot(tool: &Tool) -> String {
    format!("\n<sub>{}</sub>\n", text(&tool.told()))
}

/// A row of a table.
fn cells(cells: impl Iterator<Item = String>) -> String {
    let mut out = String::from("|");
    for cell in cells {
        out.push_str(&format!(" {cell} |"));
    }
    out
}

/// The word, and a sign that is seen first.
fn mark(verdict: Verdict) -> String {
    let sign = match verdict {
        Verdict::Fail | Verdict::Blocked => "❌",
        Verdict::Unknown => "❓",
        Verdict::Cpu | Verdict::Slow | Verdict::Warn => "⚠️",
        Verdict::Ok => "✅",
    };
    format!("{sign} {verdict}")
}
