//! Components down, targets across.

use super::super::components::{self, ComponentRow};
use super::super::paint::{Ink, Page, cell, span};
use super::super::text::{clean, count};
use super::super::{ComponentReport, ModuleCounts, Role, TargetReport};
use super::grid::{self, Heads, Row};
use crate::model::Verdict;

/// What stands above the columns, here and in the list of targets.
pub(super) fn heads(fleet: &[&TargetReport], width: usize) -> Heads {
    let rows = rows(fleet);
    Heads::fit(&names(fleet), rows.iter().map(|r| r.label.as_str()), grid::cell_width(&rows), width)
}

/// How a terminal's reader sees more.
const MORE: &str = " (-v lists them)";

/// The rows that are shown in short, and what is said of the others.
pub(in crate::report) fn in_short(fleet: &[&TargetReport]) -> (Vec<Row>, Vec<String>) {
    let (rows, notes) = fold(rows(fleet), 0);
    let plain = |note: String| note.trim_end_matches(MORE).to_owned();
    (rows, notes.into_iter().map(plain).collect())
}

fn names(fleet: &[&TargetReport]) -> Vec<String> {
    fleet.iter().map(|t| clean(&t.name)).collect()
}

/// One row per component, worst first.
fn rows(fleet: &[&TargetReport]) -> Vec<Row> {
    let row = |row: ComponentRow<'_>| Row {
        label: clean(&row.label()),
        role: row.role,
        // Of what is installed twice, the worst is what may happen.
        cells: row.cells.iter().map(|all| all.iter().map(|c| c.verdict).min()).collect(),
    };
    let mut rows: Vec<Row> = components::rows(fleet).into_iter().map(row).collect();
    rows.sort_by(|a, b| (a.role, a.worst(), &a.label).cmp(&(b.role, b.worst(), &b.label)));
    rows
}

/// Components that are worth a row of their own; of the others, how many are well and how many nothing uses.
fn fold(rows: Vec<Row>, verbose: u8) -> (Vec<Row>, Vec<String>) {
    if verbose > 0 {
        return (rows, Vec::new());
    }
    let well = |r: &Row| r.worst() == Verdict::Ok && r.role != Role::Core;
    let unused = |r: &Row| r.worst() != Verdict::Ok && r.role == Role::Idle;
    let fine = rows.iter().filter(|r| well(r)).count();
    let idle = rows.iter().filter(|r| unused(r)).count();
    let mut kept = Vec::new();
    for row in rows {
        // One line tells no more than one row does.
        if (well(&row) && fine > 1) || (unused(&row) && idle > 1) {
            continue;
        }
        kept.push(row);
    }
    let more = if kept.is_empty() { "" } else { "more " };
    let mut notes = Vec::new();
    if fine > 1 {
        notes.push(format!("+ {fine} {more}components, ok on every target"));
    }
    if idle > 1 {
        notes.push(format!("+ {idle} components that nothing loads, not ok on some target{MORE}"));
    }
    (kept, notes)
}

pub(super) fn section(page: &mut Page<'_>, fleet: &[&TargetReport], heads: Heads) {
    let rows = rows(fleet);
    let cell = grid::cell_width(&rows);
    let (rows, notes) = fold(rows, page.verbose());
    if rows.is_empty() && notes.is_empty() {
        page.heading("COMPONENTS", "none with device code");
        return;
    }
    page.heading("COMPONENTS", "");
    grid::set(page, &rows, &names(fleet), heads, cell);
    for note in notes {
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Dim, &note);
    }
}

/// `-v`: why components got their words, but for what is simply well; `-vv`: all of them, file by file.
pub(super) fn reasons(page: &mut Page<'_>, fleet: &[&TargetReport]) {
    page.heading("REASONS", "component by component");
    for target in fleet {
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Strong, &clean(&target.name));
        let all = page.verbose() > 1;
        let told = |c: &&ComponentReport| all || c.verdict != Verdict::Ok || c.role == Role::Core;
        for component in target.components.iter().filter(told) {
            let role = match component.role {
                Role::Core => "core",
                Role::Optional => "optional",
                Role::Idle => "idle",
            };
            let lead = [span(Ink::Plain, "    "), cell(component.verdict, component.verdict.word(), 9)];
            let why = format!(
                "{} ({role}): {}{}",
                clean(&components::label(&component.name, component.version.as_deref())),
                clean(&component.why),
                modules(&component.modules, !component.why.is_empty())
            );
            page.flow(&lead, 13, Ink::Plain, &why);
            for file in component.by_file.iter().filter(|_| all) {
                let lead = [span(Ink::Plain, " ".repeat(13)), cell(file.verdict, file.verdict.word(), 9)];
                let why =
                    format!("{}: {}{}", file.path, clean(&file.why), modules(&file.modules, !file.why.is_empty()));
                page.flow(&lead, 22, Ink::Dim, &why);
            }
        }
    }
}

fn modules(counts: &ModuleCounts, after: bool) -> String {
    if counts.total == 0 {
        return String::new();
    }
    let parts = [
        (counts.native, "native"),
        (counts.compatible, "compatible"),
        (counts.jit, "JIT"),
        (counts.missing, "missing"),
    ];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let total = count(usize::try_from(counts.total).unwrap_or(usize::MAX), "module", "modules");
    let text = format!("{total}: {}", parts.join(", "));
    if after { format!(" ({text})") } else { text }
}
