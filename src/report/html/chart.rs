//! Bytes of device code by architecture, and what each component carries.

use std::collections::BTreeMap;

use super::super::table;
use super::super::text::{bytes, count};
use super::super::{DeviceCode, Report};
use super::page::Page;
use crate::model::{Arch, Form};

/// Bars, and components.
const SHOWN: usize = 80;

/// Forms that share a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Machine,
    Ptx,
    Other,
    /// Of files that count for no verdict.
    NotJudged,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Machine, Self::Ptx, Self::Other, Self::NotJudged];

    fn of(form: Form) -> Self {
        match form {
            Form::Sass | Form::CodeObject | Form::Native => Self::Machine,
            Form::Ptx | Form::Spirv => Self::Ptx,
            Form::LtoIr | Form::TileIr | Form::Unknown => Self::Other,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Ptx => "ptx",
            Self::Other => "other",
            Self::NotJudged => "idle",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Machine => "machine code",
            Self::Ptx => "compiled at load (PTX, SPIR-V)",
            Self::Other => "input of compilers",
            Self::NotJudged => "in files that nothing loads",
        }
    }
}

pub(super) fn section(page: &mut Page, report: &Report, prefix: &str) {
    let code = &report.device_code;
    let total: u64 = code.iter().map(|c| c.bytes).sum();
    let aside = match code.is_empty() {
        true => String::new(),
        false => format!("{} in {}", bytes(total), count(code.len(), "file", "files")),
    };
    page.section(&format!("{prefix}-code"), "Device code", &aside);
    if code.is_empty() {
        page.raw("<p>There is none: nothing here runs on a GPU by itself.</p></section>");
        return;
    }
    bars(page, code);
    if let Some(unused) = report.sizes.as_ref().and_then(|s| s.unused.as_ref()) {
        let told = format!(
            "No target takes {} of it; a build for these targets alone would save {}.",
            bytes(unused.bytes),
            bytes(unused.rebuild)
        );
        page.raw("<p>").text(&told).raw("</p>");
    }
    let rows = table::coverage(report);
    page.details(rows.len(), "component carries it", "components carry it");
    page.raw("<div class=\"scroll\"><table class=\"plain\"><thead><tr><th scope=\"col\">Component</th><th scope=\"col\">Architectures</th></tr></thead><tbody>");
    for ((name, not_judged), archs) in rows.iter().take(SHOWN) {
        page.raw("<tr><th scope=\"row\">").text(name).raw("</th><td>").text(&table::compact(archs));
        if let Some(why) = not_judged {
            page.raw(" <small>").text(&format!("not judged: {why}")).raw("</small>");
        }
        page.raw("</td></tr>");
    }
    page.raw("</tbody></table></div>");
    page.more(rows.len(), SHOWN, "components");
    page.raw("</details></section>");
}

fn bars(page: &mut Page, code: &[DeviceCode]) {
    let mut sums: BTreeMap<Arch, BTreeMap<Kind, u64>> = BTreeMap::new();
    for file in code {
        for row in &file.archs {
            let kind = if file.not_judged.is_some() { Kind::NotJudged } else { Kind::of(row.form) };
            *sums.entry(row.arch).or_default().entry(kind).or_default() += row.bytes;
        }
    }
    let most = sums.values().map(|kinds| kinds.values().sum::<u64>()).max().unwrap_or(0).max(1);
    page.raw("<ul class=\"legend\">");
    for kind in Kind::ALL.into_iter().filter(|kind| sums.values().any(|kinds| kinds.contains_key(kind))) {
        page.raw("<li><i class=\"swatch ").raw(kind.class()).raw("\" aria-hidden=\"true\"></i>").raw(kind.word());
        page.raw("</li>");
    }
    page.raw("</ul><dl class=\"bars\">");
    for (arch, kinds) in sums.iter().take(SHOWN) {
        let parts: Vec<String> = kinds.iter().map(|(kind, n)| format!("{} {}", bytes(*n), kind.word())).collect();
        page.raw("<dt>").text(&arch.to_string()).raw("</dt><dd>");
        bar(page, kinds.iter().map(|(kind, n)| (kind.class(), *n)), most);
        page.raw("<span>").text(&bytes(kinds.values().sum())).raw("<span class=\"away\">: ");
        page.text(&parts.join(", ")).raw("</span></span></dd>");
    }
    page.raw("</dl>");
    page.more(sums.len(), SHOWN, "architectures");
}

/// A bar of parts, as wide as their share of `most`. What there is at all can be seen.
pub(super) fn bar(page: &mut Page, parts: impl Iterator<Item = (&'static str, u64)>, most: u64) {
    page.raw("<svg class=\"bar\" aria-hidden=\"true\" preserveAspectRatio=\"none\" viewBox=\"0 0 1000 10\">");
    let mut x = 0;
    for (class, n) in parts.filter(|(_, n)| *n > 0) {
        let share = u128::from(n) * 1000 / u128::from(most.max(1));
        let width = share.clamp(2, 1000);
        page.raw(&format!("<rect class=\"{class}\" x=\"{x}\" y=\"0\" width=\"{width}\" height=\"10\"/>"));
        x += width;
    }
    page.raw("</svg>");
}
