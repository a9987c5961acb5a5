//! Build steps that want a GPU.

use super::fatal::is_fatal;
use super::python::{Asks, asks};
use crate::dockerfile::shell::Command;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Keyword;
use crate::lint::dockerfile::{Found, Lint};

/// Commands of a file that are looked at: each asks what its whole instruction does.
const MOST: usize = 64;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let asking = |c: &Command| c.program().is_some_and(|p| p == "nvidia-smi" || is_python(p));
    for (_, command) in lint.build_commands().filter(|(_, c)| asking(c)).take(MOST) {
        match command.program() {
            Some("nvidia-smi") if is_fatal(lint, command) && !is_looked_up(lint, command) => {
                let message = "nvidia-smi runs during the build, where there is no GPU and no driver: it ends with \
                               \"not found\" or \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA \
                               driver\", and the build with it";
                out.push(
                    Found::error(command.span, message)
                        .label("no GPU here")
                        .help("run it when the container starts: in its entrypoint or a health check"),
                );
            }
            Some(program) if is_python(program) => {
                out.extend(script(lint, command).and_then(|(text, span)| python(lint, command, &text, span)));
            }
            _ => {}
        }
    }
}

fn is_python(program: &str) -> bool {
    program.starts_with("python") || program.starts_with("pypy")
}

/// `command -v nvidia-smi` asks where it is.
fn is_looked_up(lint: &Lint<'_>, command: &Command) -> bool {
    let program = command.words.first().map_or(command.span.start, |w| w.span.start);
    let before = lint.reading.document.slice(Span::new(command.span.start, program));
    before.split_whitespace().any(|w| w.starts_with("-v") || w.starts_with("-V"))
}

/// The script that a command gives Python, with its place.
fn script(lint: &Lint<'_>, command: &Command) -> Option<(String, Span)> {
    let args = command.args();
    let flag = args.iter().position(|a| {
        a.text.value.known().is_some_and(|t| t.starts_with('-') && !t.starts_with("--") && t.ends_with('c'))
    });
    match flag.and_then(|at| args.get(at + 1)) {
        Some(text) => Some((text.known_or_partly().to_owned(), text.span)),
        None => {
            let body = command.heredoc?;
            Some((lint.reading.document.slice(body).to_owned(), body))
        }
    }
}

fn python(lint: &Lint<'_>, command: &Command, text: &str, span: Span) -> Option<Found> {
    let given = lint.reading.instruction(command.instruction)?;
    if given.keyword != Keyword::Run || given.flag("device").is_some() {
        return None;
    }
    let help = "check it when the container starts; what a build can check is torch.version.cuda";
    match asks(text)? {
        Asks::Fails if is_fatal(lint, command) => {
            let message = "a script of the build wants a GPU, and there is none while an image is built: it ends with an \
                           error, and the build with it";
            Some(Found::error(span, message).label("no GPU here").help(help))
        }
        Asks::Prints => {
            let message = "a script of the build prints whether there is a GPU: during a build that is always no";
            Some(Found::note(span, message).label("always False here").help(help))
        }
        Asks::Fails => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "gpu-query-at-build";

    fn file(run: &str) -> String {
        format!("FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN {run}\n")
    }

    #[test]
    fn queries_that_fail_the_build() {
        assert_eq!(blamed(RULE, &file("nvidia-smi"), &[]), ["nvidia-smi"]);
        assert_eq!(blamed(RULE, &file("apt-get update && nvidia-smi -L && true"), &[]), ["nvidia-smi -L"]);
        assert_eq!(blamed(RULE, &file("[\"nvidia-smi\"]"), &[]).len(), 1);
        assert_eq!(blamed(RULE, &file("set -eux; nvidia-smi; true"), &[]).len(), 1);
        let text = file("python3 -c 'import torch; assert torch.cuda.is_available()'");
        assert_eq!(lint(RULE, &text, &[])[0].severity, Severity::Error);
        let text = file("python - <<EOF\nimport torch\nassert torch.cuda.is_available()\nEOF");
        assert_eq!(lint(RULE, &text, &[])[0].severity, Severity::Error);
    }

    #[test]
    fn a_print_is_a_note() {
        let text = file("python -c \"import torch; print(torch.cuda.is_available())\"");
        assert_eq!(lint(RULE, &text, &[])[0].severity, Severity::Note);
    }

    #[test]
    fn silent_where_no_gpu_is_an_answer() {
        for run in [
            "nvidia-smi || true",
            "nvidia-smi && echo yes || echo no",
            "if nvidia-smi; then echo yes; fi",
            "nvidia-smi | head -1",
            "nvidia-smi; true",
            "N=$(nvidia-smi -L) ; echo $N",
            "--device=nvidia.com/gpu=all nvidia-smi",
            "which nvidia-smi",
            "command -v nvidia-smi",
            "type nvidia-smi",
            "echo nvidia-smi",
            "[ -x /usr/bin/nvidia-smi ] && nvidia-smi",
            "python -c 'import torch; assert torch.cuda.is_available()' || true",
            "python -c 'import torch; print(torch.__version__)'",
            "python check.py",
        ] {
            assert!(lint(RULE, &file(run), &[]).is_empty(), "{run}: {:?}", lint(RULE, &file(run), &[]));
        }
        for text in [
            "FROM ubuntu\nCMD nvidia-smi\n",
            "FROM ubuntu\nHEALTHCHECK CMD nvidia-smi\n",
            "FROM ubuntu\n# RUN nvidia-smi\nRUN true\n",
            "FROM ubuntu AS t\nRUN nvidia-smi\nFROM ubuntu\n",
        ] {
            assert!(lint(RULE, text, &[]).is_empty(), "{text}");
        }
    }
}
