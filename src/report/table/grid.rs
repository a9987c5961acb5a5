//! Rows down, targets across. A fleet that is too wide for the terminal folds: first the columns are numbered,
//! then equal columns are joined, then the rest is set in blocks below each other.

use super::super::Role;
use super::super::paint::{Ink, Page, Span, cell, span};
use super::super::text::{columns, cut, ranges};
use crate::model::Verdict;

/// Columns between two columns.
const GAP: usize = 2;
/// The least width of the first column that names need to leave.
const LABEL: usize = 24;

/// Columns that the first column has on a screen of that width, however wide the rest is.
pub(super) fn label_room(width: usize) -> usize {
    LABEL.max(width / 3)
}

/// What stands above the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heads {
    /// The targets' names.
    Names,
    /// Their numbers in the list of targets.
    Numbers,
}

/// One thing's words across the fleet.
pub(in crate::report) struct Row {
    pub label: String,
    pub role: Role,
    pub cells: Vec<Option<Verdict>>,
}

impl Row {
    pub fn worst(&self) -> Verdict {
        self.cells.iter().flatten().min().copied().unwrap_or(Verdict::Ok)
    }
}

impl Heads {
    /// Names, where all of them fit beside a readable first column.
    pub fn fit<'a>(names: &[String], labels: impl Iterator<Item = &'a str>, cell: usize, width: usize) -> Self {
        let label = labels.map(columns).max().unwrap_or(0).min(LABEL);
        let names: usize = names.iter().map(|n| columns(n).max(cell) + GAP).sum();
        if 2 + label + names <= width { Self::Names } else { Self::Numbers }
    }
}

/// Columns of the widest word.
pub(super) fn cell_width(rows: &[Row]) -> usize {
    rows.iter().flat_map(|r| r.cells.iter().flatten()).map(|v| v.word().len()).max().unwrap_or(1)
}

/// A column of the grid: the targets (by number, from 0) that share it.
struct Column {
    head: String,
    members: Vec<usize>,
}

/// Sets the rows under the targets' names; `cell`: columns of the widest word.
pub(super) fn set(page: &mut Page<'_>, rows: &[Row], names: &[String], heads: Heads, cell: usize) {
    let widest = rows.iter().map(|r| columns(&r.label)).max().unwrap_or(0);
    let mut columns_ = columns_of(names, heads);
    let one_block = |cols: &[Column]| cols.iter().map(|c| columns(&c.head).max(cell) + GAP).sum::<usize>();
    let width = page.width();
    let room = |name: usize| width.saturating_sub(2 + name);
    let narrow = widest.min(label_room(page.width()));
    let mut legend = Vec::new();
    if heads == Heads::Numbers && one_block(&columns_) > room(narrow) {
        let (letters, meanings) = joined(rows, names.len());
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
        set_block(page, rows, block, name, cell);
    }
}

fn columns_of(names: &[String], heads: Heads) -> Vec<Column> {
    let head = |i: usize, name: &String| match heads {
        Heads::Names => name.clone(),
        Heads::Numbers => (i + 1).to_string(),
    };
    names.iter().enumerate().map(|(i, name)| Column { head: head(i, name), members: vec![i] }).collect()
}

/// Joins equal columns under letters, and says which target stands where.
fn joined(rows: &[Row], targets: usize) -> (Vec<Column>, Vec<String>) {
    let key = |target: usize| rows.iter().map(|r| r.cells[target]).collect::<Vec<_>>();
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

fn set_block(page: &mut Page<'_>, rows: &[Row], block: &[Column], name: usize, width: usize) {
    let mut head = vec![cell(Ink::Plain, "", 2 + name)];
    for column in block {
        head.push(span(Ink::Plain, " ".repeat(GAP)));
        head.push(cell(Ink::Dim, &column.head, columns(&column.head).max(width)));
    }
    page.line(&head);
    for row in rows {
        let mut spans = vec![span(Ink::Plain, "  "), label_cell(row, name)];
        for column in block {
            let word = column.members.first().and_then(|&m| row.cells[m]);
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

fn label_cell(row: &Row, width: usize) -> Span {
    let ink = match row.role {
        Role::Core => Ink::Strong,
        Role::Optional => Ink::Plain,
        Role::Idle => Ink::Dim,
    };
    cell(ink, &cut(&row.label, width), width)
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
