//! Bytes of device code: per component and architecture, and what of them no target takes.

use super::super::paint::{Ink, Page, cell, span};
use super::super::text::{bytes, clean, code, columns, cut};
use super::super::{ArchSize, ComponentSize, Sizes, Unused};

/// Components that are listed without `-v`.
const LISTED: usize = 10;

/// Columns that a list of architectures needs to be worth its lines.
const LIST: usize = 24;

/// Columns of a number with its unit, as in `1023.9 MiB`.
const NUMBER: usize = 10;

pub(super) fn section(page: &mut Page<'_>, sizes: &Sizes) {
    page.heading("SIZES", &format!("{} of device code, as its files store it", bytes(sizes.bytes)));
    if sizes.bytes == 0 {
        return;
    }
    let fine = page.verbose() > 0;
    let listed = if fine { sizes.components.len() } else { LISTED };
    let label = |c: &ComponentSize| match &c.version {
        Some(version) => clean(&format!("{} {version}", c.name)),
        None => clean(&c.name),
    };
    let mut rows: Vec<Row> = Vec::new();
    for one in sizes.components.iter().take(listed) {
        rows.push(Row::new(label(one), Ink::Strong, one.bytes, one.unused, &one.archs));
        let archs = one.archs.iter().filter(|_| fine);
        rows.extend(
            archs.map(|a| Row::new(format!("  {}", code(a.arch, a.form)), Ink::Plain, a.bytes, a.unused, &[])),
        );
    }
    if let Some(more) = sizes.components.len().checked_sub(listed).filter(|&n| n > 0) {
        let rest = sizes.components.iter().skip(listed);
        let sum = |of: &dyn Fn(&ComponentSize) -> u64| rest.clone().map(of).fold(0, u64::saturating_add);
        let unused = sizes.unused.as_ref().map(|_| sum(&|c| c.unused.unwrap_or(0)));
        rows.push(Row::new(format!("{more} more (-v)"), Ink::Dim, sum(&|c| c.bytes), unused, &[]));
    }
    // One component is the whole.
    if !fine || sizes.components.len() > 1 {
        rows.push(Row::new("all".into(), Ink::Strong, sizes.bytes, sizes.unused.as_ref().map(|u| u.bytes), &[]));
        rows.extend(
            sizes
                .archs
                .iter()
                .map(|a| Row::new(format!("  {}", code(a.arch, a.form)), Ink::Plain, a.bytes, a.unused, &[])),
        );
    }
    table(page, &rows, sizes.unused.is_some());
    if let Some(unused) = &sizes.unused {
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Plain, &saving(unused));
        let open = sizes.archs.iter().map(|a| a.not_judged).fold(0, u64::saturating_add);
        if open > 0 {
            let text = format!("{} are not judged: linker input, archives, what nothing loads", bytes(open));
            page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Dim, &text);
        }
    }
}

struct Row {
    label: String,
    ink: Ink,
    bytes: u64,
    unused: Option<u64>,
    /// Architectures of which something is for no target.
    archs: String,
}

impl Row {
    fn new(label: String, ink: Ink, bytes: u64, unused: Option<u64>, archs: &[ArchSize]) -> Self {
        let some = archs.iter().filter(|a| a.unused.is_some_and(|n| n > 0));
        let archs = some.map(|a| code(a.arch, a.form)).collect::<Vec<_>>().join(" ");
        Self { label, ink, bytes, unused, archs }
    }
}

fn table(page: &mut Page<'_>, rows: &[Row], targets: bool) {
    let columns_ = if targets { 2 * (NUMBER + 2) } else { NUMBER + 2 };
    let widest = rows.iter().map(|r| columns(&r.label)).max().unwrap_or(0);
    let room = page.width().saturating_sub(2 + columns_);
    let name = widest.min((page.width() / 3).max(20)).min(room);
    let right = |text: &str| format!("  {}{text}", " ".repeat(NUMBER.saturating_sub(columns(text))));
    let mut head = vec![cell(Ink::Plain, "", 2 + name), span(Ink::Dim, right("BYTES"))];
    if targets {
        head.push(span(Ink::Dim, right("NO TARGET")));
    }
    page.line(&head);
    for row in rows {
        let label = cell(row.ink, &cut(&row.label, name), name);
        let mut lead = vec![span(Ink::Plain, "  "), label, span(Ink::Plain, right(&bytes(row.bytes)))];
        if targets {
            let none = row.unused.is_none_or(|n| n == 0);
            let text = row.unused.filter(|_| !none).map_or_else(|| "-".to_owned(), bytes);
            lead.push(span(if none { Ink::Dim } else { Ink::Caution }, right(&text)));
        }
        let used = 2 + name + columns_ + 2;
        // What finds no place here stands in the rows below.
        if row.archs.is_empty() || page.width().saturating_sub(used) < LIST {
            page.line(&lead);
        } else {
            lead.push(span(Ink::Plain, "  "));
            page.flow(&lead, used, Ink::Dim, &row.archs);
        }
    }
}

fn saving(unused: &Unused) -> String {
    if unused.bytes == 0 {
        return "every target's code is all there is: a rebuild for these targets saves nothing".to_owned();
    }
    let percent = unused.rebuild_percent.map_or(String::new(), |p| format!(", {p:.1}% of the image"));
    let mut text = match unused.rebuild {
        0 => "a rebuild for these targets alone saves nothing".to_owned(),
        n => format!(
            "a rebuild for these targets alone saves {}{percent} (stored bytes; compressed layers shrink by less)",
            bytes(n)
        ),
    };
    if unused.vendor > 0 {
        text.push_str(&format!(
            "; {} for no target are in NVIDIA's own libraries, which nobody else builds",
            bytes(unused.vendor)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::{golden, lawful};
    use super::super::{Report, Style, render};
    use super::*;
    use crate::model::Form;
    use crate::report::sample;

    fn arch(arch: &str, form: Form, bytes: u64, unused: Option<u64>) -> ArchSize {
        ArchSize { arch: arch.parse().unwrap(), form, entries: 240, bytes, unused, not_judged: 0 }
    }

    fn sized(targets: bool) -> Report {
        let mut report = sample::failing();
        if !targets {
            report = sample::untargeted();
        }
        let of = |n: u64| targets.then_some(n);
        let archs = |scale: u64| {
            vec![
                arch("sm_50", Form::Sass, 90_000 * scale, of(90_000 * scale)),
                arch("sm_80", Form::Sass, 110_000 * scale, of(0)),
                arch("sm_90a", Form::Sass, 7_000 * scale, of(1_000 * scale)),
                arch("sm_90", Form::Ptx, 20_000 * scale, of(0)),
            ]
        };
        let component = |n: u64| ComponentSize {
            name: if n == 0 { "torch".into() } else { format!("nvidia-library-{n}-cu12") },
            version: Some("2.7.0+cu126".into()),
            bytes: 227_000 * (20 - n),
            unused: of(91_000 * (20 - n)),
            not_judged: 0,
            archs: archs(20 - n),
        };
        report.sizes = Some(Sizes {
            bytes: 227_000 * 180,
            archs: archs(180),
            components: (0..12).map(component).collect(),
            unused: targets.then_some(Unused {
                bytes: 91_000 * 180,
                rebuild: 91_000 * 20,
                vendor: 91_000 * 160,
                rebuild_percent: Some(12.5),
            }),
        });
        report
    }

    #[test]
    fn sizes_look_like_this() {
        for width in [60, 100] {
            let style = Style { width, ..Style::default() };
            golden(&format!("sizes_{width}"), &render(&sized(true), &style), width);
        }
        golden("sizes_untargeted_80", &render(&sized(false), &Style::default()), 80);
    }

    #[test]
    fn the_laws_hold_at_every_width() {
        let mut report = sized(true);
        if let Some(sizes) = &mut report.sizes {
            sizes.components[0].name = format!("\x1b[2J\u{202e}{}", "x".repeat(300));
            sizes.components[1].archs[0].arch = format!("sm_{}", u32::MAX).parse().unwrap();
            sizes.components[1].archs[0].bytes = u64::MAX;
        }
        for width in (40..220).step_by(7) {
            for verbose in 0..2 {
                lawful(&render(&report, &Style { width, verbose, ..Style::default() }), width);
            }
        }
    }

    #[test]
    fn known_findings_are_counted_and_shown_on_request() {
        let mut report = sample::failing();
        report.known = Some(std::mem::take(&mut report.findings));
        report.resolved = Some(2);
        let text = |verbose| render(&report, &Style { verbose, width: 120, ..Style::default() });
        assert!(text(0).contains("no findings, 3 known"), "{}", text(0));
        assert!(text(0).contains("3 known from the baseline, 2 resolved"), "{}", text(0));
        assert!(!text(0).contains("error[") && text(1).contains("(known)"));
    }
}
