//! A later install that takes another torch than the one that was chosen.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

use super::torch::{self, From, Torch};
use crate::catalog::wheels::index_cuda;
use crate::dockerfile::commands::{Asked, PipInstall, Requirement, surely};
use crate::lint::dockerfile::{Found, Lint};

/// Installs of torch that are followed; a file has a few.
const MOST: usize = 8;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let torches = torch::all(lint);
    let wants = |r: &Requirement| r.name == "torch" || lint.catalog.wheels().ever_wants(&r.name, "torch");
    let later: Vec<&PipInstall> = lint.asks.pip.iter().filter(|p| p.requirements.iter().any(wants)).collect();
    for torch in torches.iter().take(MOST) {
        // Only one that was chosen by its CUDA can lose it.
        let (From::Index { name, .. }, Some(version)) = (&torch.from, &torch.version) else { continue };
        if torch.is_moving() || torch.maybe() || index_cuda(name).is_none() {
            continue;
        }
        out.extend(replaced(lint, &later, torch, name, version));
    }
}

fn replaced(
    lint: &Lint<'_>,
    later: &[&PipInstall],
    torch: &Torch<'_>,
    index: &str,
    version: &str,
) -> Option<Found> {
    let have = Version::from_str(version).ok()?;
    for install in later {
        let Some(command) = lint.reading.commands.get(install.command) else { continue };
        let later = command.span > torch.command.span
            && surely(command.when)
            && torch::environment(command) == torch::environment(torch.command)
            && lint.stage_of(command.instruction).is_some_and(|(s, _)| lint.chain(s).contains(&torch.stage));
        if !later || install.no_deps || !install.constraints.is_empty() {
            continue;
        }
        for requirement in
            install.requirements.iter().filter(|r| !r.unsure && r.marker.is_none() && r.url.is_none())
        {
            let wants = match requirement.name.as_str() {
                "torch" => Some((requirement.specifiers.iter().map(|(o, v)| format!("{o}{v}")).collect(), None)),
                name => lint
                    .catalog
                    .wheels()
                    .wants(name, requirement.pinned().unwrap_or_default(), "torch")
                    .map(|w| (vec![w.specifier], Some(w.because))),
            };
            let Some((specifiers, because)): Option<(Vec<String>, Option<String>)> = wants else { continue };
            let Ok(range) = VersionSpecifiers::from_str(&specifiers.join(",")) else { continue };
            if range.contains(&have) {
                continue;
            }
            let span = match &requirement.asked {
                Asked::Here(span) => *span,
                Asked::File { .. } => command.span,
            };
            let message = format!(
                "{} wants torch{range}: pip takes away torch {version} of the index {index} and installs another, of \
                 the index that is in force here",
                requirement.name
            );
            let mut found = Found::warning(span, message)
                .label("replaces torch")
                .help(format!("pin torch=={version}+{index} in a constraints file (-c) for this install"))
                .also(torch.place(), format!("torch {version} is installed here"));
            found.because.extend(because);
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::blamed;

    const RULE: &str = "torch-replaced-later";
    const INDEX: &str = "https://download.pytorch.org/whl/cu124";

    #[test]
    fn a_later_pin_of_another_version() {
        let file = |later: &str| {
            format!("FROM python:3.12\nRUN pip install torch==2.6.0 --index-url {INDEX}\nRUN pip install {later}\n")
        };
        assert_eq!(blamed(RULE, &file("torch==2.5.1"), &[]), ["torch==2.5.1"]);
        for quiet in ["numpy", "torch==2.6.0", "torch>=2.5", "--no-deps torch==2.5.1", "-c c.txt torch==2.5.1"] {
            assert!(blamed(RULE, &file(quiet), &[]).is_empty(), "{quiet}");
        }
    }
}
