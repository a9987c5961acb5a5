//! What changed between two images, as a person reads it: losses first, then what is behind them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::diff::{
    ArchChange, Code, ComponentChange, CountChange, DiffReport, Kind, LibraryVersion, LossKind, ServedChange, Side,
    TargetChange,
};
use super::paint::{Ink, Page, cell, span};
use super::text::{bytes, clean, code, count};
use super::{Role, Style};
use crate::model::{Device, GapEffect, Verdict};

/// Rows of a list of packages, libraries or gaps without `-v`.
const LISTED: usize = 12;

/// Columns of the words before what a component lost and won.
const WORD: usize = 10;

/// The whole table, ending in a line feed.
pub fn render(report: &DiffReport, style: &Style) -> String {
    let mut page = Page::new(style);
    side(&mut page, "OLD", &report.old);
    side(&mut page, "NEW", &report.new);
    losses(&mut page, report);
    targets(&mut page, report);
    components(&mut page, report);
    floor(&mut page, report);
    lists(&mut page, report);
    sizes(&mut page, report);
    gaps(&mut page, report);
    summary(&mut page, report);
    page.finish()
}

fn side(page: &mut Page<'_>, word: &str, side: &Side) {
    let mut facts: Vec<String> = side.platform.iter().map(|p| clean(&p.to_string())).collect();
    facts.push(match side.layers {
        0 => bytes(side.size),
        n => format!("{} in {}", bytes(side.size), count(n, "layer", "layers")),
    });
    facts.extend(side.digest.as_ref().map(|d| format!("sha256:{}", d.short())));
    page.flow(&[span(Ink::Dim, format!("{word}  "))], 5, Ink::Strong, &clean(&side.reference));
    page.flow(&[span(Ink::Plain, "     ")], 5, Ink::Dim, &facts.join(" · "));
}

fn losses(page: &mut Page<'_>, report: &DiffReport) {
    if report.losses.is_empty() {
        return;
    }
    page.heading("LOSSES", &report.losses.len().to_string());
    for loss in &report.losses {
        let subject = match loss.kind {
            LossKind::DriverFloor => "driver".to_owned(),
            LossKind::Verdict | LossKind::Coverage => clean(&loss.subject),
        };
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Bad, &format!("{subject}: {}", clean(&loss.what)));
    }
}

fn targets(page: &mut Page<'_>, report: &DiffReport) {
    let Some(targets) = &report.targets else { return };
    let of = |wanted: std::cmp::Ordering| targets.iter().filter(|t| t.new.cmp(&t.old) == wanted).count();
    use std::cmp::Ordering::{Equal, Greater, Less};
    let parts = [(of(Less), "worse"), (of(Greater), "better"), (of(Equal), "as before")];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, w)| format!("{n} {w}")).collect();
    page.heading("TARGETS", &parts.join(", "));
    let mut sorted: Vec<&TargetChange> = targets.iter().collect();
    sorted.sort_by_key(|t| (t.new.cmp(&t.old), t.new));
    for t in sorted {
        let lead = [
            span(Ink::Plain, "  "),
            cell(t.old, t.old.word(), 8),
            span(Ink::Plain, "→ "),
            cell(t.new, t.new.word(), 9),
        ];
        let driver = t.driver.as_ref().map_or_else(|| "any driver".to_owned(), |d| format!("driver {d}"));
        let optional = if t.required { "" } else { " (not required)" };
        let title = format!("{}: {} ({}), {driver}{optional}", t.name, t.gpu, t.arch);
        page.flow(&lead, 21, Ink::Strong, &clean(&title));
        if t.old != t.new || page.verbose() > 0 {
            page.flow(&[span(Ink::Plain, " ".repeat(21))], 21, Ink::Plain, &clean(&t.new_why));
        }
    }
}

fn mark(kind: Kind) -> (Ink, &'static str) {
    match kind {
        Kind::Removed => (Ink::Bad, "  - "),
        Kind::Changed => (Ink::Caution, "  ~ "),
        Kind::Added => (Ink::Good, "  + "),
    }
}

/// `2 changed, 1 added`.
fn tally(kinds: impl Iterator<Item = Kind> + Clone) -> String {
    let of = |kind: Kind| kinds.clone().filter(|k| *k == kind).count();
    let parts = [(of(Kind::Changed), "changed"), (of(Kind::Added), "added"), (of(Kind::Removed), "removed")];
    parts.iter().filter(|(n, _)| *n > 0).map(|(n, w)| format!("{n} {w}")).collect::<Vec<_>>().join(", ")
}

/// `2.6.0 → 2.7.1`, `2.7.1`, or what one side lacks.
fn from_to(old: Option<&str>, new: Option<&str>) -> String {
    match (old, new) {
        (Some(old), Some(new)) if old == new => old.to_owned(),
        (None, None) => String::new(),
        (old, new) => format!("{} → {}", old.unwrap_or("none"), new.unwrap_or("none")),
    }
}

fn renamed(name: &str, old: Option<&str>) -> String {
    old.map_or_else(|| name.to_owned(), |old| format!("{name} (was {old})"))
}

fn components(page: &mut Page<'_>, report: &DiffReport) {
    if report.components.is_empty() {
        return;
    }
    page.heading("COMPONENTS", &format!("with device code: {}", tally(report.components.iter().map(|c| c.change))));
    for component in &report.components {
        one(page, component);
    }
}

fn one(page: &mut Page<'_>, c: &ComponentChange) {
    let (ink, sign) = mark(c.change);
    let versions = match c.change {
        Kind::Changed => from_to(c.old_version.as_deref(), c.new_version.as_deref()),
        Kind::Removed => c.old_version.clone().unwrap_or_default(),
        Kind::Added => c.new_version.clone().unwrap_or_default(),
    };
    let name = renamed(&c.name, c.old_name.as_deref());
    let role = match c.role {
        Role::Core => " (core)",
        Role::Optional => "",
        Role::Idle => " (idle)",
    };
    page.flow(&[span(ink, sign)], 6, Ink::Strong, &clean(&format!("{name} {versions}{role}")));
    if let Some(old) = &c.old_root {
        line(page, Ink::Plain, "moved", &format!("{old} → {}", c.root));
    }
    let (lost, replaced): (Vec<&ArchChange>, Vec<_>) = c.lost.iter().partition(|a| !a.matters_for.is_empty());
    if !lost.is_empty() {
        line(page, Ink::Bad, "lost", &codes(lost.iter().map(|a| Code { arch: a.arch, form: a.form })));
    }
    let instead = |a: &&ArchChange| {
        let code = codes(std::iter::once(Code { arch: a.arch, form: a.form }));
        match a.instead.is_empty() {
            true => code,
            false => format!("{code} (now {})", codes(a.instead.iter().copied())),
        }
    };
    if !replaced.is_empty() {
        let list: Vec<String> = replaced.iter().map(instead).collect();
        line(page, Ink::Plain, "no loss", &list.join(", "));
    }
    if !c.won.is_empty() {
        line(page, Ink::Good, "won", &codes(c.won.iter().map(|a| Code { arch: a.arch, form: a.form })));
    }
    for (ink, word, list) in [(Ink::Bad, "fewer", &c.fewer), (Ink::Good, "more", &c.more)] {
        let row = |c: &CountChange| {
            let code = codes(std::iter::once(Code { arch: c.arch, form: c.form }));
            format!("{code} in {} → {} modules", c.old, c.new)
        };
        if !list.is_empty() {
            line(page, ink, word, &list.iter().map(row).collect::<Vec<_>>().join(", "));
        }
    }
    for (ink, word, list) in [(Ink::Bad, "worse", &c.served_worse), (Ink::Good, "better", &c.served_better)] {
        for text in served(list) {
            line(page, ink, word, &text);
        }
    }
    if c.old_bytes != c.new_bytes {
        line(page, Ink::Dim, "bytes", &format!("{} → {}", bytes(c.old_bytes), bytes(c.new_bytes)));
    }
}

fn line(page: &mut Page<'_>, ink: Ink, word: &str, text: &str) {
    let lead = [span(Ink::Plain, "      "), cell(ink, word, WORD)];
    page.flow(&lead, 6 + WORD, Ink::Plain, text);
}

/// `sm_80 sm_90a · ptx 90`.
fn codes(list: impl Iterator<Item = Code>) -> String {
    let mut list: Vec<Code> = list.collect();
    list.sort_by_key(|c| (c.form, c.arch));
    let mut out: Vec<String> = Vec::new();
    for (at, one) in list.iter().enumerate() {
        let first = at == 0 || list[at - 1].form != one.form;
        out.push(format!("{}{}", if first && at > 0 { "· " } else { "" }, code(one.arch, one.form)));
    }
    out.join(" ")
}

/// `5.0 5.2 6.0: ok → fail`, one line for each change of words.
fn served(list: &[ServedChange]) -> Vec<String> {
    let mut groups: BTreeMap<(Option<Verdict>, Option<Verdict>), Vec<Device>> = BTreeMap::new();
    for change in list {
        groups.entry((change.old, change.new)).or_default().push(change.capability);
    }
    let word = |w: Option<Verdict>| w.map_or("no code", Verdict::word);
    let text = |((old, new), all): ((Option<Verdict>, Option<Verdict>), Vec<Device>)| {
        let list: Vec<String> = all.iter().map(Device::to_string).collect();
        format!("{}: {} → {}", list.join(" "), word(old), word(new))
    };
    groups.into_iter().map(text).collect()
}

fn floor(page: &mut Page<'_>, report: &DiffReport) {
    let Some(floor) = &report.min_driver else { return };
    let version = |f: &Option<super::MinDriver>| f.as_ref().map(|f| f.version.clone());
    let change = from_to(version(&floor.old).as_deref(), version(&floor.new).as_deref());
    page.heading("DRIVER", &clean(&format!("{change}{}", if floor.raised { ", raised" } else { "" })));
    for (word, side) in [("old", &floor.old), ("new", &floor.new)] {
        let Some(side) = side else { continue };
        let lead = [span(Ink::Plain, "  "), cell(Ink::Dim, word, 5)];
        page.flow(&lead, 7, Ink::Plain, &clean(&format!("{} or newer: {}", side.version, side.cause)));
    }
}

/// A row of a list: what happened, the name, what to what.
type Row = (Kind, String, String);

fn lists(page: &mut Page<'_>, report: &DiffReport) {
    let versions = |all: &[LibraryVersion]| {
        let one = |v: &LibraryVersion| match &v.version {
            Some(version) => format!("{} ({version})", v.soname),
            None => v.soname.clone(),
        };
        (!all.is_empty()).then(|| all.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    let several = |all: &[String]| (!all.is_empty()).then(|| all.join(", "));
    let change = |kind: Kind, old: Option<String>, new: Option<String>| match kind {
        Kind::Changed => from_to(old.as_deref(), new.as_deref()),
        Kind::Removed => old.unwrap_or_default(),
        Kind::Added => new.unwrap_or_default(),
    };
    let libraries = report.libraries.iter().map(|l| {
        let note = if l.other_soname { "; other SONAME" } else { "" };
        (l.change, l.name.clone(), format!("{}{note}", change(l.change, versions(&l.old), versions(&l.new))))
    });
    list(page, "LIBRARIES", libraries.collect());
    let packages = report.packages.iter().map(|p| {
        let name = renamed(&p.name, p.old_name.as_deref());
        (p.change, name, change(p.change, several(&p.old), several(&p.new)))
    });
    list(page, "PACKAGES", packages.collect());
    let toolkits = report
        .toolkits
        .iter()
        .map(|t| (t.change, t.path.to_string(), change(t.change, t.old.clone(), t.new.clone())));
    list(page, "TOOLKITS", toolkits.collect());
    let variables = report.environment.iter().map(|v| {
        let text = match (v.masked, v.change) {
            (true, Kind::Changed) => "another value, not shown".to_owned(),
            (true, Kind::Added | Kind::Removed) => "value not shown".to_owned(),
            (false, kind) => change(kind, v.old.clone(), v.new.clone()),
        };
        (v.change, v.name.clone(), text)
    });
    list(page, "ENVIRONMENT", variables.collect());
    let quoted = |words: &[String]| (!words.is_empty()).then(|| words.join(" "));
    let settings = report
        .settings
        .iter()
        .map(|s| (Kind::Changed, s.name.clone(), from_to(quoted(&s.old).as_deref(), quoted(&s.new).as_deref())));
    list(page, "SETTINGS", settings.collect());
}

fn list(page: &mut Page<'_>, title: &str, rows: Vec<Row>) {
    if rows.is_empty() {
        return;
    }
    page.heading(title, &tally(rows.iter().map(|r| r.0)));
    let listed = if page.verbose() > 0 { rows.len() } else { LISTED };
    for (kind, name, text) in rows.iter().take(listed) {
        let (ink, sign) = mark(*kind);
        page.flow(
            &[span(ink, sign)],
            6,
            Ink::Plain,
            &clean(&if text.is_empty() { name.clone() } else { format!("{name}: {text}") }),
        );
    }
    if let Some(more) = rows.len().checked_sub(listed).filter(|&n| n > 0) {
        page.flow(&[span(Ink::Plain, "    ")], 6, Ink::Dim, &format!("… and {more} more (-v lists them)"));
    }
}

fn sizes(page: &mut Page<'_>, report: &DiffReport) {
    let grown = |old: u64, new: u64| match (old, new) {
        (old, new) if old == new => bytes(new),
        (old, new) if new > old => format!("{} → {} (+{})", bytes(old), bytes(new), bytes(new - old)),
        (old, new) => format!("{} → {} (-{})", bytes(old), bytes(new), bytes(old - new)),
    };
    let size = &report.size;
    let mut parts = vec![
        format!("image {}", grown(size.old, size.new)),
        format!("device code {}", grown(size.old_device_code, size.new_device_code)),
    ];
    let layers = &report.layers;
    if layers.old + layers.new > 0 {
        let of = if layers.old == layers.new {
            layers.new.to_string()
        } else {
            format!("{} and {}", layers.old, layers.new)
        };
        parts.push(format!("{} of {of} layers shared ({})", layers.shared, bytes(layers.shared_bytes)));
    }
    page.heading("SIZE", &parts.join(" · "));
}

fn gaps(page: &mut Page<'_>, report: &DiffReport) {
    if report.gaps.is_empty() {
        return;
    }
    let places = count(report.gaps.len(), "place", "places");
    page.heading("GAPS", &format!("{places} could not be read or understood"));
    let listed = if page.verbose() > 0 { report.gaps.len() } else { LISTED };
    let mut sorted: Vec<_> = report.gaps.iter().collect();
    sorted.sort_by_key(|g| std::cmp::Reverse(g.gap.effect));
    for one in sorted.iter().take(listed) {
        let place = one.gap.path.as_ref().map_or_else(|| "image".to_owned(), ToString::to_string);
        let ink = if one.gap.effect == GapEffect::Image { Ink::Bad } else { Ink::Plain };
        let lead = [span(Ink::Plain, "  "), cell(Ink::Dim, if one.new { "new" } else { "old" }, 5)];
        page.flow(&lead, 7, ink, &format!("{place}: {}", clean(&one.gap.why)));
    }
    if let Some(more) = sorted.len().checked_sub(listed).filter(|&n| n > 0) {
        page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Dim, &format!("… and {more} more (-v lists them)"));
    }
}

/// The last line: the sum, and the exit status.
fn summary(page: &mut Page<'_>, report: &DiffReport) {
    page.gap();
    let losses = match report.losses.len() {
        0 => "no loss".to_owned(),
        n => count(n, "loss", "losses"),
    };
    let mut parts = match report.equal {
        true => vec!["no difference in device code, libraries, packages and settings".to_owned()],
        false => vec![losses],
    };
    if !report.undecided.is_empty() {
        parts.push(format!("{} open", count(report.undecided.len(), "question", "questions")));
    }
    parts.extend(page.exit().map(|status| match status {
        0 => "exit 0".to_owned(),
        1 => "exit 1: a loss".to_owned(),
        n => format!("exit {n}: the question could not be answered"),
    }));
    page.flow(&[], 2, Ink::Plain, &parts.join(" · "));
}
