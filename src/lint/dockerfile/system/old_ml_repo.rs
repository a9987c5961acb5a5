//! NVIDIA's repository of machine-learning packages, which gets no more.

use crate::catalog::system_packages::{OldKind, OldSource};
use crate::dockerfile::shell::{Arg, Command, When};
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::ask::lower;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

/// Programs that look for the repository, or take it away.
const HARMLESS: &[&str] = &["rm", "sed", "grep", "awk", "perl", "find", "mv"];

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let of_it = |s: &&OldSource| s.kind == OldKind::Repository && s.text.contains("machine-learning");
    let rows: Vec<&OldSource> = lint.catalog.system_packages().old_sources().iter().filter(of_it).collect();
    let mut last = None;
    for (_, command) in lint.build_commands() {
        if command.program().is_none_or(|p| HARMLESS.contains(&p)) {
            continue;
        }
        let named = command.args().iter().find_map(|arg| {
            let text = arg.known_or_partly().to_ascii_lowercase();
            let row = rows.iter().find(|r| text.contains(&r.text.to_ascii_lowercase()))?;
            Some((arg, *row))
        });
        let Some((arg, row)) = named else { continue };
        // One word for an instruction: a key and a source belong together.
        if last.replace(command.instruction) == Some(command.instruction) {
            continue;
        }
        out.push(said(lint, command, arg, row));
    }
}

fn said(lint: &Lint<'_>, command: &Command, arg: &Arg, row: &OldSource) -> Found {
    let text = arg.known_or_partly();
    // A key alone brings no package.
    let key = text.ends_with(".pub") && !text.contains("deb ");
    let (severity, what) = match key {
        true => (Severity::Note, "the key is that of NVIDIA's machine-learning repository"),
        false => (Severity::Warning, "something is taken from NVIDIA's machine-learning repository"),
    };
    let severity = if command.when == When::Build && !command.guessed { severity } else { lower(severity) };
    let message = format!(
        "{what}, which is retired: it has nothing for newer distributions, and its cuDNN, NCCL and TensorRT are old"
    );
    Found { severity, ..Found::note(place(lint, arg, row), message) }
        .label("retired")
        .help(row.instead.clone())
        .because(row.because())
}

/// The text itself where the word has it as it is; a `deb` line is long.
fn place(lint: &Lint<'_>, arg: &Arg, row: &OldSource) -> Span {
    let written = lint.reading.document.slice(arg.span).to_ascii_lowercase();
    match written.find(&row.text.to_ascii_lowercase()) {
        Some(at) => Span::new(arg.span.start + at, arg.span.start + at + row.text.len()),
        None => arg.span,
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "old-ml-repo";
    const URL: &str = "https://developer.download.nvidia.com/compute/machine-learning/repos/ubuntu1804/x86_64";

    fn file(run: &str) -> String {
        format!("FROM nvidia/cuda:11.4.3-base-ubuntu18.04\nRUN {run}\n")
    }

    #[test]
    fn sources_and_keys() {
        let text =
            file(&format!("echo \"deb {URL} /\" > /etc/apt/sources.list.d/nvidia-ml.list && apt-get update"));
        assert_eq!(blamed(RULE, &text, &[]), ["compute/machine-learning/repos"]);
        assert_eq!(lint(RULE, &text, &[])[0].severity, Severity::Warning);
        let text = file(&format!("wget {URL}/nvidia-machine-learning-repo-ubuntu1804_1.0.0-1_amd64.deb"));
        assert_eq!(lint(RULE, &text, &[])[0].severity, Severity::Warning);
        let text = file(&format!("apt-key adv --fetch-keys {URL}/7fa2af80.pub"));
        assert_eq!(lint(RULE, &text, &[])[0].severity, Severity::Note);
    }

    #[test]
    fn silent_where_it_is_taken_away() {
        for run in [
            "rm -f /etc/apt/sources.list.d/nvidia-ml.list",
            "sed -i '/compute\\/machine-learning\\/repos/d' /etc/apt/sources.list.d/*",
            "sed -i '/compute.machine-learning.repos/d' /etc/apt/sources.list",
            "true # https://developer.download.nvidia.com/compute/machine-learning/repos/ubuntu1804",
            "apt-get update",
        ] {
            assert!(lint(RULE, &file(run), &[]).is_empty(), "{run}");
        }
        let builder =
            format!("FROM ubuntu AS unused\nRUN apt-key adv --fetch-keys {URL}/7fa2af80.pub\nFROM ubuntu\n");
        assert!(lint(RULE, &builder, &[]).is_empty());
    }
}
