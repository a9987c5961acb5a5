//! The section of one image.

use super::super::table::{self, Row};
use super::super::text::{bytes, clean, count};
use super::super::{Effect, Plan, Report, TargetReport};
use super::escape::{code, text};
use super::sheet::{Around, END_OF_DETAILS, Sheet, details};
use super::{cells, findings, mark};

/// Components that are columns of the matrix.
const COLUMNS: usize = 8;

/// Rows of the table of device code, where no target is judged.
const COVERED: usize = 30;

/// Steps of the plan, and gaps, that are told.
const LISTED: usize = 20;

/// Bytes that what stands below the section takes.
const FOOT: usize = 200;

/// Of at most `most` bytes, what stands below it counted.
pub(super) fn section(report: &Report, unread: bool, exit: Option<u8>, most: usize) -> String {
    let mut sheet = Sheet::new(most.saturating_sub(FOOT));
    let name = report.image.as_ref().map_or("files", |i| i.reference.as_str());
    sheet.put(&format!("## imagelint: {}\n", code(name)));
    if unread {
        let why = table::worst_gaps(report).first().map_or(String::new(), |g| format!(": {}", text(&g.why)));
        sheet.put(&format!("\n**The image could not be read**{why}\n"));
        return sheet.finish();
    }
    let fleet = table::fleet(report);
    match fleet.is_empty() {
        true => coverage(&mut sheet, report),
        false => matrix(&mut sheet, &fleet),
    }
    verdict(&mut sheet, report, &fleet, exit);
    findings::weakened(&mut sheet, report.policy.as_ref());
    findings::section(&mut sheet, &report.findings, &report.waived, report.known.as_deref().unwrap_or_default());
    if let Some(plan) = &report.plan {
        steps(&mut sheet, plan);
    }
    let told = table::worst_gaps(report)
        .into_iter()
        .map(|gap| format!("- {}: {}{}", code(&table::gap_place(gap)), text(&gap.why), table::reach(gap)));
    gaps(&mut sheet, &told.collect::<Vec<_>>(), 0);
    sheet.finish()
}

/// Targets down, components across.
fn matrix(sheet: &mut Sheet, fleet: &[&TargetReport]) {
    let (mut components, mut notes) = table::in_short(fleet);
    let left_out = components.len().saturating_sub(COLUMNS);
    components.truncate(COLUMNS);
    if left_out > 0 {
        notes.insert(0, format!("+ {}", count(left_out, "component", "components")));
    }
    let fixed = |words: [&'static str; 4]| words.into_iter().map(str::to_owned);
    let labels = components.iter().map(|c: &Row| text(&c.label));
    let heads =
        cells(fixed(["", "Target", "GPU", "Driver"]).chain(labels).chain(std::iter::once("Why".to_owned())));
    let rule =
        cells(fixed(["---"; 4]).chain(components.iter().map(|_| ":-:".to_owned())).chain(["---".to_owned()]));
    let row = |(column, target): (usize, &&TargetReport)| {
        let driver = target.driver.as_deref().map_or_else(|| "any".to_owned(), text);
        let first = [mark(target.verdict), text(&target.name), text(&table::gpu(target)), driver];
        let verdicts = components.iter().map(|c| c.cells.get(column).copied().flatten());
        let verdicts = verdicts.map(|v| v.map_or_else(|| "–".to_owned(), mark));
        cells(first.into_iter().chain(verdicts).chain([text(&table::why(target))]))
    };
    let rows: Vec<String> = fleet.iter().enumerate().map(row).collect();
    let before = format!("\n{heads}\n{rule}\n");
    let share = sheet.room() / 2;
    sheet.list(&Around { before: &before, after: "", what: "targets" }, &rows, share);
    if !notes.is_empty() {
        sheet.put(&format!("\n{}\n", text(&notes.join("; "))));
    }
}

fn coverage(sheet: &mut Sheet, report: &Report) {
    let rows = table::coverage(report);
    if rows.is_empty() {
        sheet.put("\nNo GPU code found.\n");
        return;
    }
    let row = |((name, not_judged), archs): (&(String, Option<&str>), &Vec<&super::super::ArchRow>)| {
        let why = not_judged.map_or(String::new(), |why| format!(" (not judged: {})", text(why)));
        cells([text(name), format!("{}{why}", text(&table::compact(archs)))].into_iter())
    };
    let all: Vec<String> = rows.iter().map(row).collect();
    let (shown, rest) = all.split_at(all.len().min(COVERED));
    let share = sheet.room() / 3;
    let before = "\n| Component | Device code |\n| --- | --- |\n";
    sheet.list(&Around { before, after: "", what: "components" }, shown, share);
    if !rest.is_empty() {
        sheet.put(&format!("\n… and {} more components\n", rest.len()));
    }
}

/// What it comes to, and what the image is.
fn verdict(sheet: &mut Sheet, report: &Report, fleet: &[&TargetReport], exit: Option<u8>) {
    let word = table::told_verdict(report).map_or(String::new(), |v| format!("**{}** · ", mark(v)));
    sheet.put(&format!("\n{word}{}\n", text(&table::sum(report, fleet, exit).join(" · "))));
    let Some(image) = &report.image else { return };
    let mut facts = Vec::new();
    facts.extend(image.platform.as_ref().map(|p| text(&p.to_string())));
    facts.push(match image.layers.len() {
        0 => bytes(image.size),
        n => format!("{} in {}", bytes(image.size), count(n, "layer", "layers")),
    });
    facts.extend(image.digest.as_ref().map(|d| code(&format!("sha256:{}", d.short()))));
    facts.extend(
        image
            .min_driver
            .as_ref()
            .map(|floor| text(&format!("driver {} or newer: {}", clean(&floor.version), clean(&floor.cause)))),
    );
    sheet.put(&format!("\n{}\n", facts.join(" · ")));
}

fn steps(sheet: &mut Sheet, plan: &Plan) {
    if plan.steps.is_empty() && plan.unresolved.is_empty() {
        return;
    }
    let steps = plan.steps.iter().map(|step| {
        let mut out = format!("1. {}", text(&step.summary));
        if let Some(command) = &step.command {
            out.push_str(&format!("<br>{}", code(command)));
        }
        for (name, value) in &step.env {
            out.push_str(&format!("<br>{}", code(&format!("{name}={value}"))));
        }
        for edit in &step.edits {
            out.push_str(&format!("<br>{}", code(edit)));
        }
        if let Some(effect) = &step.effect {
            out.push_str(&format!("<br>{}", told_effect(effect)));
        }
        out
    });
    let open = plan.unresolved.iter().map(|open| format!("- left open: {}", text(open)));
    let all: Vec<String> = steps.chain(open).collect();
    let (shown, rest) = all.split_at(all.len().min(LISTED));
    let share = sheet.room() / 2;
    sheet.list(&Around { before: "\n#### Plan\n\n", after: "", what: "steps" }, shown, share);
    if !rest.is_empty() {
        sheet.put(&format!("\n… and {} more; `imagelint plan` shows all\n", rest.len()));
    }
}

/// `predicted: edge-5090 fail → ok`.
fn told_effect(effect: &Effect) -> String {
    use super::super::Basis;
    let basis = match effect.basis {
        Basis::Measured => "measured",
        Basis::Predicted => "predicted",
    };
    let changes = effect.verdicts.iter().filter(|(_, (before, after))| before != after);
    let changes = changes.map(|(target, (before, after))| format!("{} {before} → {after}", text(target)));
    let told = changes.collect::<Vec<_>>().join(", ");
    if told.is_empty() { format!("{basis}: no other verdict") } else { format!("{basis}: {told}") }
}

/// `kept`: bytes that what follows takes.
pub(super) fn gaps(sheet: &mut Sheet, gaps: &[String], kept: usize) {
    if gaps.is_empty() {
        return;
    }
    let head = format!("{} not understood", count(gaps.len(), "place", "places"));
    let (shown, rest) = gaps.split_at(gaps.len().min(LISTED));
    let more = if rest.is_empty() { String::new() } else { format!("\n… and {} more\n", rest.len()) };
    let after = format!("{more}{END_OF_DETAILS}");
    let share = sheet.room().saturating_sub(kept);
    sheet.list(&Around { before: &details(&head), after: &after, what: "of these" }, shown, share);
}
