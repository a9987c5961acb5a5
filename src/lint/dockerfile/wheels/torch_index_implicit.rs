//! torch without a version and without an index: its CUDA moves with each release.

use super::torch::{self, From};
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for torch in torch::kept(lint) {
        if torch.from != From::Pypi || torch.version.is_some() {
            continue;
        }
        let Some(newest) = lint.catalog.wheels().newest_torch(&torch.specifier) else { continue };
        let row = lint.catalog.wheels().defaults().iter().find(|d| d.torch == newest.version);
        let today = row.map_or(String::new(), |r| {
            format!(" (on {} that was {} for CUDA {})", lint.catalog.as_of(), newest.version, r.cuda)
        });
        out.push(
            Found::note(
                torch.asked,
                format!(
                    "torch comes from PyPI as it is on the day of the build, for the CUDA of that release{today}"
                ),
            )
            .label("no version, no index")
            .help("pin torch, or name the index of one CUDA: --index-url https://download.pytorch.org/whl/cuNNN")
            .because(newest.because),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::blamed;

    const RULE: &str = "torch-index-implicit";

    #[test]
    fn neither_version_nor_index() {
        let file = |install: &str| format!("FROM python:3.12-slim\nRUN {install}\n");
        assert_eq!(blamed(RULE, &file("pip install torch numpy"), &[]), ["torch"]);
        for quiet in [
            "pip install torch==2.6.0",
            "pip install torch --index-url https://download.pytorch.org/whl/cu126",
            "pip install numpy",
            "pip install -c constraints.txt torch",
        ] {
            assert!(blamed(RULE, &file(quiet), &[]).is_empty(), "{quiet}");
        }
        let base = "FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime\nRUN pip install torch\n";
        assert!(blamed(RULE, base, &[]).is_empty());
    }
}
