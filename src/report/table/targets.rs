//! Per target: the verdict, the GPU, the driver, and why in one line.

use super::super::TargetReport;
use super::super::paint::{Ink, Page, cell, span};
use super::super::text::{clean, columns, count};
use super::grid::Heads;
use crate::model::{Verdict, Virtualisation};

/// What a verdict means, for a reader who sees the word for the first time.
pub(super) fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fail => "will not run",
        Verdict::Unknown => "could not be decided",
        Verdict::Blocked => "refused by the container runtime, the code would run",
        Verdict::Cpu => "starts, but silently without the GPU",
        Verdict::Slow => "runs after JIT compilation at every cold start",
        Verdict::Warn => "may fail, depending on what is used",
        Verdict::Ok => "runs",
    }
}

struct Row {
    number: String,
    name: String,
    gpu: String,
    driver: String,
    why: String,
    verdict: Verdict,
}

impl Row {
    fn of(index: usize, target: &TargetReport, heads: Heads) -> Self {
        Self {
            number: match heads {
                Heads::Names => String::new(),
                Heads::Numbers => (index + 1).to_string(),
            },
            name: clean(&target.name),
            gpu: gpu(target),
            driver: target
                .driver
                .as_ref()
                .map_or_else(|| "any driver".to_owned(), |d| format!("driver {}", clean(d))),
            why: why(target),
            verdict: target.verdict,
        }
    }
}

/// `NVIDIA H100 (sm_90, mig)`.
pub(in crate::report) fn gpu(target: &TargetReport) -> String {
    let arch = target.arch.to_string();
    let gpu = clean(&target.gpu);
    match target.virtualisation {
        None | Some(Virtualisation::None) if gpu == arch => arch,
        None | Some(Virtualisation::None) => format!("{gpu} ({arch})"),
        Some(v) => format!("{gpu} ({arch}, {v})"),
    }
}

/// Why it has its verdict, and what is special about it.
pub(in crate::report) fn why(target: &TargetReport) -> String {
    let mut why = clean(&target.why);
    if why.is_empty() {
        why = meaning(target.verdict).to_owned();
    }
    if !target.required {
        why.push_str(" (not required)");
    }
    if let Some(platform) = target.platform.as_ref().filter(|p| p.architecture != "amd64") {
        why.push_str(&clean(&format!(" [{platform}]")));
    }
    why
}

/// Columns of a verdict's word.
const WORD: usize = 7;
/// The least room for a reason that stands beside the other columns.
const REASON: usize = 44;

pub(super) fn section(page: &mut Page<'_>, fleet: &[&TargetReport], heads: Heads) {
    let rows: Vec<Row> = fleet.iter().enumerate().map(|(i, t)| Row::of(i, t, heads)).collect();
    let widest = |of: fn(&Row) -> &String| rows.iter().map(|r| columns(of(r))).max().unwrap_or(0);
    let (number, name, gpu, driver) =
        (widest(|r| &r.number), widest(|r| &r.name), widest(|r| &r.gpu), widest(|r| &r.driver));
    let indent = if number == 0 { 2 } else { number + 4 };
    let lead = indent + WORD + 2 + name + 2 + gpu + 2 + driver + 2;
    page.heading("TARGETS", &count(fleet.len(), "target", "targets"));
    for row in &rows {
        let mut spans = vec![span(Ink::Plain, "  ")];
        if number > 0 {
            let blanks = " ".repeat(number - columns(&row.number));
            spans.push(span(Ink::Dim, format!("{blanks}{}  ", row.number)));
        }
        spans.push(cell(row.verdict, row.verdict.word(), WORD + 2));
        if lead + REASON <= page.width() {
            spans.push(cell(Ink::Strong, &row.name, name + 2));
            spans.push(cell(Ink::Plain, &row.gpu, gpu + 2));
            spans.push(cell(Ink::Plain, &row.driver, driver + 2));
            page.flow(&spans, lead, Ink::Plain, &row.why);
        } else {
            let hang = indent + WORD + 2;
            let title = if row.gpu.starts_with(row.name.as_str()) {
                format!("{}, {}", row.gpu, row.driver)
            } else {
                format!("{}: {}, {}", row.name, row.gpu, row.driver)
            };
            page.flow(&spans, hang, Ink::Strong, &title);
            page.flow(&[span(Ink::Plain, " ".repeat(hang))], hang, Ink::Plain, &row.why);
        }
    }
}
