//! A build that starts a compiler for every core, each of which takes gigabytes.

use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::builds::By;
use crate::lint::dockerfile::{Found, Lint};

/// What bounds PyTorch's extension builds.
const BOUND: &str = "MAX_JOBS";

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for build in lint.builds() {
        let Some(project) = build.project.filter(|p| p.hungry) else { continue };
        let by_torch = matches!(build.by, By::Pip | By::Setuptools) && project.imports_torch;
        if !by_torch || !build.is_sure() || lint.seen(build.command, BOUND).is_some() {
            continue;
        }
        let Some(start) = lint.reading.instruction(build.command.instruction).map(|i| i.span.start) else {
            continue;
        };
        let message = format!(
            "{} is compiled without MAX_JOBS: one compiler for each core may take more memory than the machine has, \
             and is killed",
            project.project
        );
        out.push(
            Found::note(build.span, message)
                .label("as many compilers as cores")
                .help("put `ENV MAX_JOBS=4` before this RUN, or as many as the memory allows")
                .because(project.because())
                .suggest("bound the compilers", vec![Edit::new(Span::new(start, start), "ENV MAX_JOBS=4\n")]),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "jobs-unbounded";
    const BASE: &str = "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\n";

    #[test]
    fn a_hungry_build() {
        let file = format!("{BASE}RUN pip install --no-binary flash-attn flash-attn\n");
        assert_eq!(blamed(RULE, &file, &[]), ["flash-attn"]);
        assert!(mended(RULE, &file, &[]).contains("ENV MAX_JOBS=4\nRUN"));
    }

    #[test]
    fn bounded_or_a_wheel() {
        for run in [
            "ENV MAX_JOBS=2\nRUN pip install --no-binary flash-attn flash-attn",
            "RUN MAX_JOBS=2 pip install --no-binary flash-attn flash-attn",
            "RUN pip install flash-attn --no-build-isolation",
            "RUN pip install requests",
        ] {
            assert!(lint(RULE, &format!("{BASE}{run}\n"), &[]).is_empty(), "{run}");
        }
    }
}
