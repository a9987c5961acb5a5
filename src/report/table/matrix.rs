//! Components down, targets across. A fleet that is too wide for the terminal folds: first the columns are numbered,
//! then equal columns are joined, then the rest is set in blocks below each other.

use super::super::paint::{Ink, Page, Span, cell, span};
use super::super::text::{clean, columns, count, cut, ranges};
use super::super::{ComponentReport, ModuleCounts, Role, TargetReport};
use crate::model::Verdict;

/// What stands above the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heads {
    /// The targets' names.
    Names,
    /// Their numbers in the list of targets.
    Numbers,
}

/// Columns between two columns.
const GAP: usize = 2;
/// The least width of the first column that names need to leave.
const LABEL: usize = 24;

impl Heads {
    /// Names, where all of them fit beside a readable first column.
    pub fn choose(fleet: &[&TargetReport], width: usize) -> Self {
        let label = labels(fleet).iter().map(|l| columns(l)).max().unwrap_or(0).min(LABEL);
        let names: usize = fleet.iter().map(|t| columns(&clean(&t.name)).max(cell_width(fleet)) + GAP).sum();
        if 2 + label + names <= width { Self::Names } else { Self::Numbers }
    }
}

/// A component's words across the fleet.
struct Row<'a> {
    label: String,
    role: Role,
    cells: Vec<Option<&'a ComponentReport>>,
}

impl Row<'_> {
    fn worst(&self) -> Verdict {
        self.cells.iter().flatten().map(|c| c.verdict).min().unwrap_or(Verdict::Ok)
    }

    fn words(&self) -> Vec<Option<Verdict>> {
        self.cells.iter().map(|c| c.map(|c| c.verdict)).collect()
    }
}

fn label(component: &ComponentReport) -> String {
    match &component.version {
        Some(version) => clean(&format!("{} {version}", component.name)),
        None => clean(&component.name),
    }
}

fn labels(fleet: &[&TargetReport]) -> Vec<String> {
    fleet.iter().flat_map(|t| &t.components).map(label).collect()
}

/// Columns of the widest word.
fn cell_width(fleet: &[&TargetReport]) -> usize {
    fleet.iter().flat_map(|t| &t.components).map(|c| c.verdict.word().len()).max().unwrap_or(1)
}

/// One row per component (targets of other platforms may have others), worst first.
fn rows<'a>(fleet: &[&'a TargetReport]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (column, target) in fleet.iter().enumerate() {
        for component in &target.components {
            let key = (component.name.as_str(), component.version.as_deref());
            let place = *places.entry(key).or_insert_with(|| {
                rows.push(Row { label: label(component), role: component.role, cells: vec![None; fleet.len()] });
                rows.len() - 1
            });
            rows[place].cells[column] = Some(component);
            rows[place].role = rows[place].role.min(component.role);
        }
    }
    rows.sort_by(|a, b| (a.role, a.worst(), &a.label).cmp(&(b.role, b.worst(), &b.label)));
    rows
}

/// Components that are worth a row of their own; of the others, how many are well and how many nothing uses.
fn fold(rows: Vec<Row<'_>>, verbose: u8) -> (Vec<Row<'_>>, Vec<String>) {
    if verbose > 0 {
        return (rows, Vec::new());
    }
    let well = |r: &Row<'_>| r.worst() == Verdict::Ok && r.role != Role::Core;
    let unused = |r: &Row<'_>| r.worst() != Verdict::Ok && r.role == Role::Idle;
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
        notes.push(format!("+ {idle} components that nothing loads, not ok on some target (-v lists them)"));
    }
    (kept, notes)
}

/// A column of the matrix: the targets (by number, from 0) that share it.
struct Column {
    head: String,
    members: Vec<usize>,
}

pub(super) fn section(page: &mut Page<'_>, fleet: &[&TargetReport], heads: Heads) {
    let (rows, notes) = fold(rows(fleet), page.verbose());
    if rows.is_empty() && notes.is_empty() {
        page.heading("COMPONENTS", "none with device code");
        return;
    }
    page.heading("COMPONENTS", "");
    let cell = cell_width(fleet);
    let widest = rows.iter().map(|r| columns(&r.label)).max().unwrap_or(0);
    let mut columns_ = columns_of(fleet, heads);
    let one_block = |cols: &[Column]| cols.iter().map(|c| columns(&c.head).max(cell) + GAP).sum::<usize>();
    let width = page.width();
    let room = |name: usize| width.saturating_sub(2 + name);
    let narrow = widest.min(LABEL.max(page.width() / 3));
    let mut legend = Vec::new();
    if heads == Heads::Numbers && one_block(&columns_) > room(narrow) {
        let (letters, meanings) = joined(&rows, fleet.len());
        // Letters are one step more for the reader, so they must spare blocks.
        if one_block(&letters) <= room(narrow) || letters.len() * 2 <= columns_.len() {
            (columns_, legend) = (letters, meanings);
        }
    }
    let total = one_block(&columns_);
    let name = if total <= room(narrow) { widest.min(width.saturating_sub(2 + total)) } else { narrow };
    if !legend.is_empty() {
        page.flow(&[span(Ink::Plain, "  ")], 2, Ink::Dim, &legend.join(" · "));
    }
    let mut left = columns_.as_slice();
    let mut first = true;
    while !left.is_empty() && !rows.is_empty() {
        let mut used = 0;
        let fits = left.iter().take_while(|c| {
            used += columns(&c.head).max(cell) + GAP;
            used <= room(name)
        });
        let taken = fits.count().max(1);
        let (block, rest) = left.split_at(taken);
        left = rest;
        if !first {
            page.gap();
        }
        first = false;
        set_block(page, &rows, block, name, cell);
    }
    for note in notes {
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Dim, &note);
    }
}

fn columns_of(fleet: &[&TargetReport], heads: Heads) -> Vec<Column> {
    let head = |i: usize, t: &TargetReport| match heads {
        Heads::Names => clean(&t.name),
        Heads::Numbers => (i + 1).to_string(),
    };
    fleet.iter().enumerate().map(|(i, t)| Column { head: head(i, t), members: vec![i] }).collect()
}

/// Joins equal columns under letters, and says which target stands where.
fn joined(rows: &[Row<'_>], targets: usize) -> (Vec<Column>, Vec<String>) {
    let words: Vec<Vec<Option<Verdict>>> = rows.iter().map(Row::words).collect();
    let key = |target: usize| words.iter().map(|w| w[target]).collect::<Vec<_>>();
    let mut groups: Vec<(Vec<Option<Verdict>>, Vec<usize>)> = Vec::new();
    for target in 0..targets {
        let k = key(target);
        match groups.iter_mut().find(|(have, _)| *have == k) {
            Some((_, members)) => members.push(target),
            None => groups.push((k, vec![target])),
        }
    }
    let mut legend = Vec::new();
    let mut columns = Vec::new();
    for (place, (_, members)) in groups.into_iter().enumerate() {
        let numbers: Vec<usize> = members.iter().map(|m| m + 1).collect();
        let head = letters(place);
        legend.push(format!(
            "{head} = {} {}",
            if numbers.len() == 1 { "target" } else { "targets" },
            ranges(&numbers)
        ));
        columns.push(Column { head, members });
    }
    (columns, legend)
}

/// A, B, … Z, AA, AB, …
fn letters(mut place: usize) -> String {
    let mut out = Vec::new();
    loop {
        out.push(char::from(b'A' + (place % 26) as u8));
        if place < 26 {
            break;
        }
        place = place / 26 - 1;
    }
    out.iter().rev().collect()
}

fn set_block(page: &mut Page<'_>, rows: &[Row<'_>], block: &[Column], name: usize, width: usize) {
    let mut head = vec![cell(Ink::Plain, "", 2 + name)];
    for column in block {
        head.push(span(Ink::Plain, " ".repeat(GAP)));
        head.push(cell(Ink::Dim, &column.head, columns(&column.head).max(width)));
    }
    page.line(&head);
    for row in rows {
        let mut spans = vec![span(Ink::Plain, "  "), label_cell(row, name)];
        for column in block {
            let word = column.members.first().and_then(|&m| row.cells[m]).map(|c| c.verdict);
            spans.push(span(Ink::Plain, " ".repeat(GAP)));
            let width = columns(&column.head).max(width);
            spans.push(match word {
                Some(verdict) => cell(verdict, verdict.word(), width),
                None => cell(Ink::Dim, "-", width),
            });
        }
        page.line(&spans);
    }
}

fn label_cell(row: &Row<'_>, width: usize) -> Span {
    let ink = match row.role {
        Role::Core => Ink::Strong,
        Role::Optional => Ink::Plain,
        Role::Idle => Ink::Dim,
    };
    cell(ink, &cut(&row.label, width), width)
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
                label(component),
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

#[cfg(test)]
mod tests {
    use super::letters;

    #[test]
    fn columns_are_lettered_beyond_z() {
        assert_eq!(letters(0), "A");
        assert_eq!(letters(25), "Z");
        assert_eq!(letters(26), "AA");
        assert_eq!(letters(701), "ZZ");
        assert_eq!(letters(702), "AAA");
    }
}
