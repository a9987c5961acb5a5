//! A builder asks for GPUs, and the last stage, on a plain base, does not.

use std::collections::{BTreeMap, BTreeSet};

use super::last_stage::{self, VARIABLES};
use crate::catalog::bases::BaseFamily;
use crate::dockerfile::reading::Base;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Word;
use crate::lint::dockerfile::copies::StageCopy;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Start;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(plain) = last_stage::plain(lint) else { return };
    let Some((copy, asks)) = source(lint) else { return };
    let strict: Vec<String> =
        lint.targets.iter().filter(|t| t.start == Start::Env).map(|t| t.name.clone()).collect();
    let who =
        if strict.is_empty() { "with the nvidia runtime and without --gpus" } else { "by its variables alone" };
    let message = format!(
        "the stage that this one copies from asks for GPUs by NVIDIA_VISIBLE_DEVICES, and this one, on a plain base, does not: \
         started {who}, the container gets no GPU"
    );
    let mut found =
        if strict.is_empty() { Found::warning(plain.from, message) } else { Found::error(plain.from, message) };
    found = found
        .label("asks for no GPU")
        .help(last_stage::LINES.replace(" \\\n   ", ""))
        .also(copy, "copied from there")
        .also(asks, "asked for here")
        .on(strict);
    if let Some(edits) = last_stage::edits(lint, &plain) {
        found = found.suggest("ask for GPUs in the last stage too", edits);
    }
    out.push(found);
}

/// A copy into the image from a stage that asks for GPUs, and the place where it does.
fn source(lint: &Lint<'_>) -> Option<(Span, Span)> {
    let copies: Vec<StageCopy<'_>> =
        lint.stage_copies().into_iter().filter(|c| c.paths.iter().any(may_use_gpus)).collect();
    let mut sources: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for copy in &copies {
        sources.entry(copy.into).or_default().push(copy.from);
    }
    let mut asking: BTreeMap<usize, Span> = BTreeMap::new();
    for set in lint.sets(false).into_iter().filter(|s| VARIABLES.contains(&s.name)) {
        if let Some(stage) = set.stage {
            asking.entry(stage).or_insert(set.pair.span);
        }
    }
    // Each stage is looked at once: where the first copy found nothing, neither will the next.
    let mut seen = BTreeSet::new();
    let into_image = copies.iter().filter(|c| lint.reading.stages.get(c.into).is_some_and(|s| s.in_image));
    for copy in into_image {
        // The stage itself, what it is FROM, and what it copies in turn.
        let mut open = vec![copy.from];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            if let Some(asks) = asking.get(&at).copied().or_else(|| by_base(lint, at)) {
                return Some((lint.reading.instruction(copy.instruction)?.span, asks));
            }
            open.extend(sources.get(&at).into_iter().flatten());
            if let Some(Base::Stage(below)) = lint.reading.stages.get(at).map(|s| &s.base) {
                open.push(*below);
            }
        }
    }
    None
}

/// Texts, scripts and pages use none.
fn may_use_gpus(path: &Word) -> bool {
    let path = path.text.trim_matches(['"', '\'']);
    let plain = [".txt", ".toml", ".json", ".yaml", ".yml", ".md", ".sh", ".html", ".conf", ".lock", "/uv", "/uvx"];
    !plain.iter().any(|end| path.ends_with(end))
}

/// The FROM of a plain CUDA base. Framework images serve as tool boxes too.
fn by_base(lint: &Lint<'_>, stage: usize) -> Option<Span> {
    let this = lint.reading.stages.get(stage).filter(|s| matches!(s.base, Base::Image(_)))?;
    let base = lint.base(stage).filter(|b| b.sure && b.family == BaseFamily::NvidiaCuda)?;
    base.env(VARIABLES.first()?)?;
    Some(this.from)
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, lint_on, mended, target};
    use crate::model::{Severity, Start};

    const RULE: &str = "nvidia-env-lost-in-last-stage";
    const BUILD: &str = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS b\nRUN make\n";

    #[test]
    fn lost_on_a_plain_base() {
        let file = format!("{BUILD}FROM debian:12-slim\nCOPY --from=b /app /app\nCMD /app\n");
        assert_eq!(blamed(RULE, &file, &[]), ["debian:12-slim"]);
        assert_eq!(lint(RULE, &file, &[])[0].severity, Severity::Warning);
        assert!(mended(RULE, &file, &[]).contains("FROM debian:12-slim\nENV NVIDIA_VISIBLE_DEVICES=all \\\n"));
        let own = "FROM ubuntu AS b\nENV NVIDIA_VISIBLE_DEVICES=all\nFROM debian:12\nCOPY --from=0 /app /app\n";
        assert_eq!(lint(RULE, own, &[])[0].also.len(), 2);
        // Through a stage between.
        let two =
            format!("{BUILD}FROM ubuntu:22.04 AS m\nCOPY --from=b /a /a\nFROM debian:12\nCOPY --from=m /a /a\n");
        assert_eq!(blamed(RULE, &two, &[]).len(), 1);
    }

    #[test]
    fn it_is_an_error_where_the_variables_start_it() {
        let file = format!("{BUILD}FROM debian:12-slim\nCOPY --from=b /app /app\n");
        let by_flag = target("a10@570");
        let mut by_env = target("l4@570");
        by_env.start = Start::Env;
        let found = lint_on(RULE, &file, &[by_flag.clone(), by_env], &[]);
        assert_eq!((found[0].severity, found[0].targets.join(" ")), (Severity::Error, "l4@570".to_owned()));
        assert_eq!(lint_on(RULE, &file, &[by_flag], &[])[0].severity, Severity::Warning);
    }

    #[test]
    fn what_asks_itself_or_takes_nothing() {
        for quiet in [
            format!("{BUILD}FROM debian:12\nENV NVIDIA_VISIBLE_DEVICES=all\nCOPY --from=b /app /app\n"),
            format!("{BUILD}FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nCOPY --from=b /app /app\n"),
            format!("{BUILD}FROM example.com/base:1\nCOPY --from=b /app /app\n"),
            format!("{BUILD}FROM debian:12\nCOPY --from=b /app/requirements.txt /\n"),
            format!("{BUILD}FROM debian:12\nCOPY app /app\n"),
            // Files for somebody else.
            format!("{BUILD}FROM scratch\nCOPY --from=b /dist /\n"),
            "FROM nvcr.io/nvidia/tritonserver:24.05-py3-sdk AS b\nFROM debian:12\nCOPY --from=b /x /x\n".to_owned(),
            "FROM ubuntu AS b\nFROM debian:12\nCOPY --from=b /app /app\n".to_owned(),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
