//! A nightly build of torch, as it is on the day of the build.

use std::collections::BTreeSet;

use crate::dockerfile::commands::{PipInstall, surely};
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let mut told: BTreeSet<(Option<usize>, &str)> = BTreeSet::new();
    for install in &lint.asks.pip {
        let Some(command) = lint.reading.commands.get(install.command) else { continue };
        // A choice among several may well be a nightly one.
        if !lint.built(command.instruction) || !surely(command.when) || install.requirements.is_empty() {
            continue;
        }
        let settings = install.index.iter().chain(&install.extra_indexes).chain(&install.find_links);
        let mut nightly = settings.filter_map(|setting| {
            let index = lint.catalog.wheels().index_of_url(setting.text.value.known()?)?;
            (index.nightly && !index.dated).then_some((setting, index))
        });
        let Some((setting, index)) = nightly.find(|(s, _)| s.file.is_none()) else { continue };
        if is_pinned(install) {
            continue;
        }
        // Packages that are installed one after the other come from one index.
        let here = (lint.reading.stage_of(command.instruction), setting.text.value.known().unwrap_or_default());
        if !told.insert(here) {
            continue;
        }
        let trail = lint.trail(&setting.text.trail);
        let name = if index.name.is_empty() { String::new() } else { format!(" {}", index.name) };
        out.push(
            Found::warning(
                setting.span,
                format!(
                    "the nightly index{name}{trail} has another build every day and keeps each for some weeks only: the same \
                     file builds another image tomorrow"
                ),
            )
            .label("moves every day")
            .help("pin the day (torch==X.Y.Z.devYYYYMMDD), or take a release")
            .because(index.because),
        );
    }
}

/// Whether one of the packages names its day: the others follow.
fn is_pinned(install: &PipInstall) -> bool {
    install.requirements.iter().any(|r| r.pinned().is_some_and(|v| v.contains("dev")) || r.url.is_some())
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::blamed;

    const RULE: &str = "nightly-index-unpinned";
    const INDEX: &str = "https://download.pytorch.org/whl/nightly/cu128";

    #[test]
    fn a_build_of_today() {
        let file = |install: &str| format!("FROM python:3.12\nRUN {install}\n");
        assert_eq!(blamed(RULE, &file(&format!("pip install --pre torch --index-url {INDEX}")), &[]), [INDEX]);
        for quiet in [
            format!("pip install --pre torch==2.8.0.dev20250318+cu128 --index-url {INDEX}"),
            "pip install torch --index-url https://download.pytorch.org/whl/cu128".to_owned(),
            format!("if [ -n \"$N\" ]; then pip install --pre torch --index-url {INDEX}; fi"),
        ] {
            assert!(blamed(RULE, &file(&quiet), &[]).is_empty(), "{quiet}");
        }
    }
}
