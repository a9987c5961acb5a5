//! Packages that bring the driver along with the toolkit: `cuda`, `cuda-12-4`.

use super::hosts::plays_host;
use crate::catalog::system_packages::SystemKind;
use crate::dockerfile::edit::Edit;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    if plays_host(lint) {
        return;
    }
    for package in lint.packages().iter().filter(|p| p.known.kind == SystemKind::CudaMeta) {
        let name = &package.asked.name;
        // In a stage that is not in the image the driver costs time and space only.
        let (severity, then) = match package.in_image {
            true => (
                Severity::Warning,
                "in the image it clashes with the one that is mounted from the host (\"Driver/library version mismatch\")",
            ),
            false => (Severity::Note, "which no build needs"),
        };
        let message = format!("`{name}` installs the driver with the toolkit: {then}");
        let mut found = package.found(severity, message).label("brings the driver");
        if let Some(instead) = &package.known.instead {
            found = found.help(format!("install {instead}, which is the toolkit alone"));
            if lint.reading.document.slice(package.asked.span) == name {
                found = found.suggest(format!("install {instead}"), vec![Edit::new(package.asked.span, instead)]);
            }
        } else {
            found = found.help("install cuda-toolkit-X-Y, which is the toolkit alone");
        }
        out.push(found);
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "cuda-metapackage";

    fn file(run: &str) -> String {
        format!("FROM ubuntu:22.04\nRUN {run}\n")
    }

    #[test]
    fn the_toolkit_alone_is_suggested() {
        let text = file("apt-get install -y cuda-12-4 git");
        assert_eq!(blamed(RULE, &text, &[]), ["cuda-12-4"]);
        assert_eq!(mended(RULE, &text, &[]), file("apt-get install -y cuda-toolkit-12-4 git"));
        assert_eq!(blamed(RULE, &file("apt install cuda"), &[]), ["cuda"]);
        assert_eq!(blamed(RULE, &file("dnf install -y cuda-runtime-12-4"), &[]), ["cuda-runtime-12-4"]);
        let builder = "FROM ubuntu AS b\nRUN apt-get install -y cuda\nFROM ubuntu\nCOPY --from=b /x /x\n";
        assert_eq!(lint(RULE, builder, &[])[0].severity, Severity::Note);
    }

    #[test]
    fn silent_on_parts_and_on_conda() {
        for run in [
            "apt-get install -y cuda-toolkit-12-4 cuda-nvcc-12-4 cuda-compat-12-4 cuda-libraries-12-4",
            "conda install -y -c nvidia cuda=12.4",
            "poetry install --extras cuda",
            "apt-get remove -y cuda",
            "apt-get install -y cuda docker-ce",
        ] {
            assert!(lint(RULE, &file(run), &[]).is_empty(), "{run}");
        }
    }
}
