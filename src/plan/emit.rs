//! The plan as text to read, or as lines for a shell.

use std::fmt::Write;

use crate::model::Verdict;
use crate::report::{Report, Step};

/// Forms of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emit {
    Text,
    Env,
}

/// Renders the plan of a report; ends with a newline.
pub fn emit(report: &Report, form: Emit) -> String {
    match form {
        Emit::Text => text(report),
        Emit::Env => env(report),
    }
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    let targets = report.targets.as_deref().unwrap_or_default();
    if targets.is_empty() {
        return "No targets: name some with --target or in imagelint.toml.\n".to_owned();
    }
    for target in targets {
        let _ = writeln!(out, "{:8} {}", target.verdict, target.name);
    }
    let Some(plan) = &report.plan else { return out };
    if plan.steps.is_empty() && plan.unresolved.is_empty() {
        let all = targets.iter().all(|t| t.verdict == Verdict::Ok);
        out.push_str(if all { "\nNothing to do.\n" } else { "\nNo step is known that would mend this.\n" });
        return out;
    }
    for (number, step) in plan.steps.iter().enumerate() {
        let _ = writeln!(out, "\n{}. {}", number + 1, step.summary);
        let _ = writeln!(out, "   for      {}", step.resolves.join(", "));
        for (name, value) in &step.env {
            let _ = writeln!(out, "   env      {name}={}", quote(value));
        }
        if let Some(command) = &step.command {
            let _ = writeln!(out, "   command  {command}");
        }
        for because in &step.because {
            let _ = writeln!(out, "   because  {because}");
        }
    }
    for left in &plan.unresolved {
        let _ = writeln!(out, "\nunresolved: {left}");
    }
    out.push_str("\nPredicted from tables and from this scan; only a scan of the rebuilt image proves it.\n");
    out
}

/// `export` lines that a build script can source; what is no variable is a comment.
fn env(report: &Report) -> String {
    let mut out = String::new();
    let Some(plan) = &report.plan else { return out };
    let mut seen: Vec<&(String, String)> = Vec::new();
    let comment = |out: &mut String, step: &Step| {
        let _ = writeln!(out, "# {}", step.summary);
        if let Some(command) = &step.command {
            let _ = writeln!(out, "#   {command}");
        }
    };
    for step in &plan.steps {
        comment(&mut out, step);
        for pair in step.env.iter().filter(|(name, _)| is_variable(name)) {
            if !seen.contains(&pair) {
                seen.push(pair);
                let _ = writeln!(out, "export {}={}", pair.0, quote(&pair.1));
            }
        }
    }
    for left in &plan.unresolved {
        let _ = writeln!(out, "# unresolved: {left}");
    }
    out
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Quoted for a POSIX shell: names of components come from the image.
fn quote(value: &str) -> String {
    format!("\"{}\"", value.replace(['"', '\\', '$', '`'], ""))
}
