//! A project with device code taken as its default branch is today.

use std::collections::BTreeMap;

use crate::dockerfile::commands::{Asked, GitClone};
use crate::dockerfile::shell::Command;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::{Found, Lint};

/// Clones that are looked at; a file has a few.
const MOST: usize = 64;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let built = |command: usize| lint.reading.commands.get(command).is_some_and(|c| lint.built(c.instruction));
    let extensions = lint.catalog.extensions();
    let known = lint
        .asks
        .clones
        .iter()
        .filter(|c| !c.pinned && built(c.command))
        .filter_map(|clone| Some((clone, extensions.find_repository(clone.url.value.known()?)?)));
    let folders: BTreeMap<&str, usize> =
        lint.asks.clones.iter().filter_map(|c| Some((c.dir.known()?.trim_end_matches('/'), c.command))).collect();
    for (clone, extension) in known.take(MOST).filter(|(clone, _)| !checked_out(lint, clone, &folders)) {
        out.push(found(clone.url_span, &extension.project, extension.because()));
    }
    for install in lint.asks.pip.iter().filter(|i| built(i.command)) {
        for requirement in &install.requirements {
            let (Some(url), Asked::Here(span)) = (&requirement.url, &requirement.asked) else { continue };
            if !url.contains("git+") || requirement.unsure || has_ref(url) {
                continue;
            }
            let known = extensions.find_repository(url);
            out.extend(known.map(|extension| found(*span, &extension.project, extension.because())));
        }
    }
}

/// Whether a later RUN goes to a commit or a branch that it names.
fn checked_out(lint: &Lint<'_>, clone: &GitClone, clones: &BTreeMap<&str, usize>) -> bool {
    let stage = lint.reading.commands.get(clone.command).and_then(|c| lint.stage_of(c.instruction)).map(|(s, _)| s);
    lint.build_commands().any(|(at, command)| {
        if at <= clone.command || command.program() != Some("git") {
            return false;
        }
        let mut words = command.args().iter().map(|a| a.text.value.known());
        let goes = words.any(|w| matches!(w, Some("checkout" | "switch" | "reset")));
        let to =
            words.any(|w| !matches!(w, Some("." | "--" | "master" | "main" | "--hard" | "HEAD" | "-f" | "-q")));
        goes && to && !elsewhere(clone, command, clones) && {
            let chain = lint.stage_of(command.instruction).map(|(s, _)| lint.chain(s)).unwrap_or_default();
            stage.is_some_and(|s| chain.contains(&s))
        }
    })
}

/// Where the folders are known, they say which clone a command works on.
fn elsewhere(clone: &GitClone, command: &Command, clones: &BTreeMap<&str, usize>) -> bool {
    let Some(dir) = command.dir.known() else { return false };
    if let Some(own) = clone.dir.known() {
        return !dir.starts_with(own.trim_end_matches('/'));
    }
    let mut above = std::path::Path::new(dir).ancestors().filter_map(|p| p.to_str());
    above.any(|p| clones.get(p).is_some_and(|other| *other != clone.command))
}

fn found(span: Span, project: &str, because: String) -> Found {
    Found::note(
        span,
        format!("{project} is taken as its default branch is on the day of the build: the next build compiles other code"),
    )
    .label("no tag, no commit")
    .help("name a tag or a commit")
    .because(because)
}

/// `…/name.git@v1`: behind the last slash, so that `git@github.com` is none.
fn has_ref(url: &str) -> bool {
    let path = url.split('#').next().unwrap_or(url);
    path.rsplit('/').next().is_some_and(|last| last.contains('@'))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::blamed;

    const RULE: &str = "git-clone-unpinned-cuda-ext";
    const URL: &str = "https://github.com/Dao-AILab/flash-attention.git";

    #[test]
    fn a_branch_as_it_is() {
        let file = |run: &str| format!("FROM python:3.12\nRUN {run}\n");
        assert_eq!(
            blamed(RULE, &file(&format!("git clone {URL} && cd flash-attention && pip install .")), &[]),
            [URL]
        );
        assert_eq!(blamed(RULE, &file(&format!("pip install git+{URL}")), &[]), [format!("git+{URL}")]);
        let other = format!("git clone {URL}\nRUN git clone https://x.example/y /y && cd /y && git checkout v1");
        assert_eq!(blamed(RULE, &file(&other), &[]), [URL]);
        for quiet in [
            format!("git clone -b v2.7.4 {URL}"),
            format!("git clone {URL} && cd flash-attention && git checkout v2.7.4"),
            format!("git clone {URL}\nARG REF\nRUN cd flash-attention && git checkout $REF && pip install ."),
            format!("pip install git+{URL}@v2.7.4"),
            "git clone https://github.com/me/project.git".to_owned(),
        ] {
            assert!(blamed(RULE, &file(&quiet), &[]).is_empty(), "{quiet}");
        }
    }
}
