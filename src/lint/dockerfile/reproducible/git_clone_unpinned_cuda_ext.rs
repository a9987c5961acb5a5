//! A project with device code taken as its default branch is today.

use crate::dockerfile::commands::{Asked, GitClone};
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
    for (clone, extension) in known.take(MOST).filter(|(clone, _)| !checked_out(lint, clone)) {
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
fn checked_out(lint: &Lint<'_>, clone: &GitClone) -> bool {
    let stage = lint.reading.commands.get(clone.command).and_then(|c| lint.stage_of(c.instruction)).map(|(s, _)| s);
    let later = lint.build_commands().filter(|(at, c)| {
        *at > clone.command
            && lint
                .stage_of(c.instruction)
                .is_some_and(|(s, _)| stage.is_some_and(|of| lint.chain(s).contains(&of)))
    });
    later.into_iter().any(|(_, command)| {
        let inside = |of: &GitClone| {
            let (of, dir) = (of.dir.known()?, command.dir.known()?);
            Some(dir.starts_with(of.trim_end_matches('/')))
        };
        // Where the folders are known, they say which clone it is.
        let of_another = lint.asks.clones.iter().any(|o| o.command != clone.command && inside(o) == Some(true));
        let elsewhere = inside(clone).map_or(of_another, |here| !here);
        let mut words = command.args().iter().map(|a| a.text.value.known());
        let goes = words.any(|w| matches!(w, Some("checkout" | "switch" | "reset")));
        let to =
            words.any(|w| !matches!(w, Some("." | "--" | "master" | "main" | "--hard" | "HEAD" | "-f" | "-q")));
        command.program() == Some("git") && goes && to && !elsewhere
    })
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
