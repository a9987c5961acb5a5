//! A project that builds its device code only where it sees a GPU, or is told to.

use crate::catalog::extensions::Unset;
use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::builds::Build;
use crate::lint::dockerfile::{Found, Lint};

use super::toolkit::Stages;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let stages = Stages::of(lint);
    for build in lint.builds() {
        out.extend(told(lint, &stages, &build));
    }
}

fn told<'a>(lint: &Lint<'a>, stages: &Stages<'a>, build: &Build<'_>) -> Option<Found> {
    let project = build.project.filter(|p| p.unset == Unset::VisibleGpu)?;
    let first = project.force.first()?;
    let has_device = lint.reading.instruction(build.command.instruction)?.flag("device").is_some();
    if !build.is_sure() || has_device || !stages.has_compiler(lint, build.stage) {
        return None;
    }
    let names = || project.force.iter().filter_map(|f| f.split('=').next());
    let given =
        |name: &str| lint.seen(build.command, name).is_some() || build.speaks_of(&name.to_ascii_lowercase());
    if names().any(given) {
        return None;
    }
    let name = names().next()?;
    // Exported in a RUN that ended, or set behind: the value is there, but not seen.
    let elsewhere = lint.reading.commands.iter().find_map(|c| c.assigned.get(name));
    let message = format!(
        "{} is built without {first}: no GPU is visible while an image is built, so its device code is left out and \
         its GPU functions fail when they are called",
        project.project
    );
    let mut found = Found::warning(build.span, message).label(format!("without {first}"));
    found = found.because(project.because());
    if let Some(elsewhere) = elsewhere.filter(|a| !build.command.span.contains(a.span)) {
        found = found.also(elsewhere.span, "not seen by the build");
    }
    // An option of its setup.py.
    if first.starts_with('-') {
        return Some(found.help(format!("give it `{first}`")));
    }
    let start = lint.reading.instruction(build.command.instruction)?.span.start;
    found = found.help(format!("put `ENV {first}` before this RUN"));
    Some(found.suggest(format!("set {first}"), vec![Edit::new(Span::new(start, start), format!("ENV {first}\n"))]))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "force-cuda-missing";
    const BASE: &str = "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\n";
    const BUILD: &str = "RUN pip install git+https://github.com/facebookresearch/detectron2\n";

    #[test]
    fn built_without_a_gpu() {
        let file = format!("{BASE}{BUILD}");
        assert_eq!(blamed(RULE, &file, &[]), ["git+https://github.com/facebookresearch/detectron2"]);
        assert!(mended(RULE, &file, &[]).contains("ENV FORCE_CUDA=1\nRUN pip"));
        let file = format!("{BASE}RUN export FORCE_CUDA=1\n{BUILD}");
        assert_eq!(lint(RULE, &file, &[]).len(), 1);
    }

    #[test]
    fn told_to_or_not_of_the_kind() {
        for file in [
            format!("{BASE}ENV FORCE_CUDA=1\n{BUILD}"),
            format!("{BASE}ARG FORCE_CUDA\n{BUILD}"),
            format!("{BASE}RUN FORCE_CUDA=1 pip install git+https://github.com/facebookresearch/detectron2\n"),
            format!("FROM ubuntu:24.04\n{BUILD}"),
            format!("FROM nvidia/cuda:12.8.1-runtime-ubuntu22.04\n{BUILD}"),
            format!("{BASE}RUN pip install git+https://github.com/huggingface/transformers\n"),
            format!("{BASE}RUN if true; then pip install git+https://github.com/facebookresearch/detectron2; fi\n"),
            // Its wheels come from its own page.
            format!("{BASE}RUN pip install torch-scatter -f https://data.pyg.org/whl/torch-2.6.0+cu124.html\n"),
        ] {
            assert!(lint(RULE, &file, &[]).is_empty(), "{file}");
        }
    }
}
