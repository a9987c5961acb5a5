//! The layers in the order of their making: what made each, what it weighs, what came with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::table;
use super::super::text::{bytes, count};
use super::super::{ArchRow, Report};
use super::page::Page;
use super::{chart, findings};
use crate::model::{Digest, LayerSummary};

/// Layers.
const SHOWN: usize = 300;
/// Components and findings of a layer.
const NAMED: usize = 20;
/// Characters of a command before it unfolds.
const COMMAND: usize = 240;

/// What came with a layer.
#[derive(Default)]
struct Brought<'a> {
    components: BTreeMap<String, (u64, Vec<&'a ArchRow>)>,
    findings: BTreeSet<String>,
}

pub(super) fn section(page: &mut Page, report: &Report, prefix: &str, finding_prefix: &str) {
    let Some(image) = report.image.as_ref().filter(|i| !i.layers.is_empty()) else { return };
    let brought = brought(report, finding_prefix);
    let aside = format!("{}, {} as stored", count(image.layers.len(), "layer", "layers"), bytes(image.size));
    page.section(&format!("{prefix}-layers"), "Layers", &aside);
    let most = image.layers.iter().map(|l| l.size).max().unwrap_or(0);
    page.raw("<ol class=\"layers\">");
    for layer in image.layers.iter().take(SHOWN) {
        let with = layer.digest.as_ref().and_then(|d| brought.get(d));
        one(page, layer, with, most);
    }
    page.raw("</ol>");
    page.more(image.layers.len(), SHOWN, "layers");
    page.raw("</section>");
}

fn brought<'a>(report: &'a Report, finding_prefix: &str) -> HashMap<Digest, Brought<'a>> {
    let mut all: HashMap<Digest, Brought<'a>> = HashMap::new();
    for file in &report.device_code {
        let Some(layer) = file.layer else { continue };
        let name = file.component.clone().unwrap_or_else(|| file.path.to_string());
        let (sum, archs) = all.entry(layer).or_default().components.entry(name).or_default();
        *sum += file.bytes;
        archs.extend(&file.archs);
    }
    for finding in &report.findings {
        let Some(layer) = finding.layer else { continue };
        let Some(id) = findings::id(finding_prefix, &report.findings, finding) else { continue };
        all.entry(layer).or_default().findings.insert(id);
    }
    all
}

fn one(page: &mut Page, layer: &LayerSummary, with: Option<&Brought<'_>>, most: u64) {
    page.raw("<li><div class=\"size\">");
    chart::bar(page, std::iter::once(("layer", layer.size)), most);
    page.raw("<span>").text(&bytes(layer.size)).raw("</span></div>");
    match &layer.created_by {
        Some(command) => {
            let cut = command.char_indices().nth(COMMAND).map(|(at, _)| at);
            match cut.and_then(|at| command.get(..at)) {
                Some(start) => {
                    page.raw("<details class=\"command\"><summary><code>").text(start);
                    page.raw("…</code></summary><code>").text(command).raw("</code></details>");
                }
                None => {
                    page.raw("<code>").text(command).raw("</code>");
                }
            }
        }
        None => {
            page.raw("<span class=\"dim\">what made it is not told</span>");
        }
    }
    if let Some(digest) = &layer.digest {
        page.raw(" <small class=\"dim\">sha256:").text(&digest.short()).raw("</small>");
    }
    let Some(with) = with else {
        page.raw("</li>");
        return;
    };
    page.raw("<ul>");
    for (name, (sum, archs)) in with.components.iter().take(NAMED) {
        page.raw("<li>").text(name).raw(" <span class=\"dim\">").text(&bytes(*sum)).raw(": ");
        page.text(&table::compact(archs)).raw("</span></li>");
    }
    if let Some(more) = with.components.len().checked_sub(NAMED).filter(|&n| n > 0) {
        page.raw("<li class=\"dim\">").text(&format!("… and {more} more")).raw("</li>");
    }
    if !with.findings.is_empty() {
        page.raw("<li>").text(&count(with.findings.len(), "finding", "findings")).raw(": ");
        for (number, id) in with.findings.iter().take(NAMED).enumerate() {
            page.raw("<a href=\"#").raw(id).raw("\">").raw(&(number + 1).to_string()).raw("</a> ");
        }
        page.raw("</li>");
    }
    page.raw("</ul></li>");
}
