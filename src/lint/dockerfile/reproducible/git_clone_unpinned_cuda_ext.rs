//! A project with device code taken as its default branch is today.

use crate::dockerfile::commands::Asked;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let built = |command: usize| lint.reading.commands.get(command).is_some_and(|c| lint.built(c.instruction));
    let extensions = lint.catalog.extensions();
    for clone in lint.asks.clones.iter().filter(|c| !c.pinned && built(c.command)) {
        let known = clone.url.value.known().and_then(|url| extensions.find_repository(url));
        out.extend(known.map(|extension| found(clone.url_span, &extension.project, extension.because())));
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
        for quiet in [
            format!("git clone -b v2.7.4 {URL}"),
            format!("git clone {URL} && cd flash-attention && git checkout v2.7.4"),
            format!("pip install git+{URL}@v2.7.4"),
            "git clone https://github.com/me/project.git".to_owned(),
        ] {
            assert!(blamed(RULE, &file(&quiet), &[]).is_empty(), "{quiet}");
        }
    }
}
