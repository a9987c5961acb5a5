//! The table a person wants first: what the image is, the verdict per target, each component across the fleet, then
//! findings, what to do, and what could not be read.

mod coverage;
mod findings;
mod grid;
mod matrix;
pub mod overview;
mod sizes;
mod tail;
mod targets;

#[cfg(test)]
pub(super) mod tests;

pub(super) use coverage::{compact, coverage};
pub(super) use findings::{against_baseline, tally, tally_of, worst_first};
pub(super) use grid::Row;
pub(super) use matrix::in_short;
pub(super) use tail::{gaps as gap_section, place as gap_place, reach, sum, told_verdict, worst_gaps};
pub(super) use targets::{gpu, why};

use super::paint::{Ink, Page, span};
use super::text::{bytes, clean, count};
use super::{ImageReport, Report, Style, TargetReport};

/// The whole table, ending in a line feed.
pub fn render(report: &Report, style: &Style) -> String {
    let mut page = Page::new(style);
    if let Some(image) = &report.image {
        header(&mut page, image);
    }
    let fleet = fleet(report);
    if fleet.is_empty() {
        coverage::section(&mut page, report);
    } else {
        let heads = matrix::heads(&fleet, style.width);
        targets::section(&mut page, &fleet, heads);
        matrix::section(&mut page, &fleet, heads);
        if style.verbose > 0 {
            matrix::reasons(&mut page, &fleet);
        }
        coverage::section(&mut page, report);
    }
    if let Some(sizes) = &report.sizes {
        sizes::section(&mut page, sizes);
    }
    findings::section(&mut page, report);
    tail::plan(&mut page, report);
    tail::gaps(&mut page, report);
    tail::summary(&mut page, report, &fleet);
    page.finish()
}

/// The targets, worst first; their numbers are their places here.
pub(super) fn fleet(report: &Report) -> Vec<&TargetReport> {
    let mut fleet: Vec<&TargetReport> = report.targets.iter().flatten().collect();
    fleet.sort_by_key(|t| t.verdict);
    fleet
}

fn header(page: &mut Page<'_>, image: &ImageReport) {
    let mut facts = Vec::new();
    facts.extend(image.platform.as_ref().map(|p| clean(&p.to_string())));
    facts.push(match image.layers.len() {
        0 => bytes(image.size),
        n => format!("{} in {}", bytes(image.size), count(n, "layer", "layers")),
    });
    facts.extend(image.digest.as_ref().map(|d| format!("sha256:{}", d.short())));
    page.flow(&[], 2, Ink::Strong, &clean(&image.reference));
    page.flow(&[span(Ink::Plain, "  ")], 2, Ink::Dim, &facts.join(" · "));
    if let Some(floor) = &image.min_driver {
        let lead = [span(Ink::Plain, "  driver     ")];
        page.flow(&lead, 13, Ink::Plain, &clean(&format!("{} or newer: {}", floor.version, floor.cause)));
    }
    if let Some(list) = &image.arch_list {
        let lead = [span(Ink::Plain, "  arch list  ")];
        let list = if list.is_empty() { "empty".to_owned() } else { list.join(" ") };
        page.flow(&lead, 13, Ink::Plain, &clean(&list));
    }
    if let Some(amd) = image.amd.as_ref().filter(|a| !(a.all.is_empty() && a.in_parts.is_empty())) {
        page.flow(&[span(Ink::Plain, "  amd        ")], 13, Ink::Plain, &amd.line());
    }
}
