//! Which architectures each component carries, in one compact line.

use std::collections::{BTreeMap, BTreeSet};

use super::super::paint::{Ink, Page, cell, span};
use super::super::text::{clean, columns, cut};
use super::super::{ArchRow, Report};
use crate::model::Form;

/// A component and its versions are told apart by name alone here: device code names its component.
pub(super) fn section(page: &mut Page<'_>, report: &Report) {
    let data = report.image.iter().filter_map(|i| i.amd.as_ref()).flat_map(|a| &a.data);
    if report.device_code.is_empty() && data.clone().next().is_none() {
        page.heading("COVERAGE", "no GPU code found");
        return;
    }
    let rows = coverage(report);
    page.heading("COVERAGE", "architectures of the device code, per component");
    let named = data.clone().map(|d| columns(&d.name()));
    let widest = rows.keys().map(|(name, _)| columns(name)).chain(named).max().unwrap_or(0);
    let name = widest.min((page.width() / 3).max(20));
    for ((label, not_judged), archs) in &rows {
        let label = if columns(label) > name { cut_front(label, name) } else { label.clone() };
        let lead = [span(Ink::Plain, "  "), cell(Ink::Strong, &label, name + 2)];
        let why = not_judged.map_or(String::new(), |why| format!(" (not judged: {})", clean(why)));
        page.flow(&lead, name + 4, Ink::Plain, &format!("{}{why}", compact(archs)));
    }
    for data in data {
        let lead = [span(Ink::Plain, "  "), cell(Ink::Strong, &data.name(), name + 2)];
        page.flow(&lead, name + 4, Ink::Plain, &format!("{} ({})", data.list(), data.path));
    }
}

/// Device code by component (or file, where that is of none) and why it is not judged.
pub(in crate::report) fn coverage(report: &Report) -> BTreeMap<(String, Option<&str>), Vec<&ArchRow>> {
    let mut rows: BTreeMap<(String, Option<&str>), Vec<&ArchRow>> = BTreeMap::new();
    for file in &report.device_code {
        let name = file.component.as_ref().map_or_else(|| file.path.to_string(), |c| clean(c));
        rows.entry((name, file.not_judged.as_deref())).or_default().extend(&file.archs);
    }
    rows
}

/// Of a path the end tells more than the start.
fn cut_front(text: &str, width: usize) -> String {
    if !text.contains('/') {
        return cut(text, width);
    }
    let mut tail = text;
    while columns(tail) + 1 > width {
        let mut chars = tail.chars();
        chars.next();
        tail = chars.as_str();
    }
    format!("…{tail}")
}

/// `sm_80 86 90 90a · ptx 90 (ISA 8.7)`.
pub(in crate::report) fn compact(archs: &[&ArchRow]) -> String {
    let mut parts = Vec::new();
    let of = |form: Form, relocatable: bool| {
        archs.iter().filter(move |a| a.form == form && a.relocatable == relocatable)
    };
    let list = |form: Form, relocatable: bool| {
        let set: BTreeSet<_> = of(form, relocatable).map(|a| a.arch).collect();
        set.into_iter().map(crate::report::text::bare_arch).collect::<Vec<_>>().join(" ")
    };
    let forms = [
        (Form::Sass, "sm_"),
        (Form::Ptx, "ptx "),
        (Form::LtoIr, "lto-ir "),
        (Form::TileIr, "tile-ir "),
        (Form::CodeObject, ""),
        (Form::Spirv, "spirv "),
        (Form::Native, "intel "),
        (Form::Unknown, "unknown "),
    ];
    for relocatable in [false, true] {
        for (form, word) in forms {
            let archs = list(form, relocatable);
            if archs.is_empty() {
                continue;
            }
            let mut part = format!("{word}{archs}");
            if form == Form::Ptx {
                let isas: BTreeSet<_> = of(form, relocatable).filter_map(|a| a.isa).collect();
                if let Some(newest) = isas.last() {
                    part.push_str(&format!(" (ISA {newest})"));
                }
            }
            if relocatable {
                part.push_str(" (relocatable, not loadable by itself)");
            }
            parts.push(part);
        }
    }
    parts.join(" · ")
}
