//! The plan to be read.

use std::fmt::Write;

use super::shell::quoted;
use crate::model::Verdict;
use crate::report::text::clean;
use crate::report::{Basis, Cost, Effect, Plan, Report, Step, TargetReport};

pub fn text(report: &Report, plan: &Plan, tag: Option<&str>) -> String {
    let mut out = String::new();
    let targets = report.targets.as_deref().unwrap_or_default();
    if targets.is_empty() {
        return "No targets: name some with --target or in imagelint.toml.\n".to_owned();
    }
    verdicts(&mut out, targets, plan);
    if plan.steps.is_empty() && plan.unresolved.is_empty() {
        let all = targets.iter().all(|t| t.verdict == Verdict::Ok);
        out.push_str(if all { "\nNothing to do.\n" } else { "\nNo step is known that would mend this.\n" });
        return out;
    }
    for tag in &plan.tags {
        let _ = writeln!(out, "\ntag {}: {}", clean(&tag.name), clean(&tag.targets.join(", ")));
        if !tag.why.is_empty() {
            let _ = writeln!(out, "   {}", clean(&tag.why));
        }
    }
    let shown = |s: &&Step| tag.is_none() || s.tag.is_none() || s.tag.as_deref() == tag;
    for (number, one) in plan.steps.iter().enumerate().filter(|(_, s)| shown(s)) {
        step(&mut out, &format!("{}.", number + 1), one, report);
    }
    let mut others: Vec<&Step> = plan.alternatives.iter().filter(shown).collect();
    others.sort_by_key(|s| s.cost);
    if !others.is_empty() {
        out.push_str("\nInstead, cheapest first, each by itself:\n");
        for one in others {
            short(&mut out, one, report);
        }
    }
    for left in &plan.unresolved {
        let _ = writeln!(out, "\nunresolved: {}", clean(left));
    }
    let measured = plan.effect.as_ref().is_some_and(|e| e.basis == Basis::Measured);
    if measured {
        out.push_str("\nMeasured: the image was built and scanned.\n");
    } else {
        let _ = writeln!(
            out,
            "\nPredicted from tables of {} and from this scan; only a scan of the rebuilt image proves it.",
            report.tool.catalog.as_of
        );
    }
    out
}

/// Another choice in a few lines; JSON has all of it.
fn short(out: &mut String, step: &Step, report: &Report) {
    let _ = writeln!(out, "\n- {}", clean(&step.summary));
    let mut line = cost(step.cost).to_owned();
    if let Some(effect) = &step.effect {
        for (name, (before, after)) in in_order(effect, report) {
            let _ = write!(line, "; {name}: {before} -> {after}");
        }
        if !effect.verdicts.is_empty() {
            let _ = write!(line, " ({})", word(effect));
        }
    }
    let _ = writeln!(out, "   {}", clean(&line));
    if let Some(review) = &step.review {
        let _ = writeln!(out, "   to be reviewed: {}", clean(review));
    }
}

/// What an effect says of each target, in the report's order.
fn in_order<'e>(
    effect: &'e Effect,
    report: &'e Report,
) -> impl Iterator<Item = (&'e String, &'e (Verdict, Verdict))> {
    report.targets.iter().flatten().filter_map(|t| effect.verdicts.get_key_value(&t.name))
}

/// The verdict of each target, and what it is to become.
fn verdicts(out: &mut String, targets: &[TargetReport], plan: &Plan) {
    let change = |target: &TargetReport| {
        let effect = plan.effect.as_ref()?;
        let (before, after) = effect.verdicts.get(&target.name)?;
        Some(format!("{before} -> {after}"))
    };
    let width = targets.iter().filter_map(change).map(|c| c.len()).max().unwrap_or(0).max(8);
    let basis = plan.effect.as_ref().map_or(String::new(), |e| format!("  ({})", word(e)));
    for target in targets {
        let (verdict, basis) = match change(target) {
            Some(change) => (change, basis.as_str()),
            None => (target.verdict.to_string(), ""),
        };
        let _ = writeln!(out, "{verdict:width$} {}{basis}", clean(&target.name));
    }
}

fn word(effect: &Effect) -> &'static str {
    match effect.basis {
        Basis::Measured => "measured",
        Basis::Predicted => "predicted",
    }
}

fn cost(cost: Cost) -> &'static str {
    match cost {
        Cost::Setting => "a setting of the image",
        Cost::SameVersion => "another build of the same version",
        Cost::OtherVersion => "another version",
        Cost::SourceBuild => "a build from source",
        Cost::BaseImage => "another base image",
        Cost::Hosts => "another driver on hosts",
        Cost::Target => "a target less",
    }
}

fn step(out: &mut String, mark: &str, step: &Step, report: &Report) {
    let mut rows: Vec<(&str, String)> = Vec::new();
    rows.extend(step.tag.iter().map(|t| ("tag", t.clone())));
    rows.push(("cost", cost(step.cost).to_owned()));
    if !step.resolves.is_empty() {
        rows.push(("for", step.resolves.join(", ")));
    }
    rows.extend(step.env.iter().map(|(name, value)| ("env", format!("{name}={}", quoted(value)))));
    rows.extend(step.command.iter().map(|c| ("command", c.clone())));
    rows.extend(step.edits.iter().map(|e| ("edit", e.clone())));
    rows.extend(step.because.iter().map(|b| ("because", b.clone())));
    if let Some(effect) = &step.effect {
        for (name, (before, after)) in in_order(effect, report) {
            rows.push(("effect", format!("{name}: {before} -> {after} ({})", word(effect))));
        }
    }
    let _ = writeln!(out, "\n{mark} {}", clean(&step.summary));
    for (name, text) in rows {
        let _ = writeln!(out, "   {name:8} {}", clean(&text));
    }
    if let Some(review) = &step.review {
        let _ = writeln!(out, "   to be reviewed: {}", clean(review));
    }
}
