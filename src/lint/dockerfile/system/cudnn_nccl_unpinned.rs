//! Packages that name neither their version nor their CUDA, and take the newest of both.

use crate::catalog::system_packages::SystemKind;
use crate::lint::dockerfile::ask::Package;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let packages = lint.packages();
    let mut said = None;
    // `rpm -i libnvinfer*.rpm` installs files that were fetched.
    let named = |p: &&Package<'_>| !p.asked.name.contains(['*', '/']) && !p.asked.name.ends_with(".rpm");
    let floats = packages.iter().filter(|p| p.known.floats && p.known.kind == SystemKind::CudaLibrary);
    for package in floats.filter(named) {
        // Only where the base says which CUDA is meant.
        let Some(base) = lint.base(package.stage).filter(|b| b.sure && b.cuda.is_some()) else { continue };
        let Some(cuda) = base.cuda else { continue };
        if said.replace(package.command.span) == Some(package.command.span) {
            continue;
        }
        let same = packages.iter().filter(|p| p.known.floats && p.command.span == package.command.span);
        let names: Vec<String> = same.map(|p| format!("`{}`", p.asked.name)).collect();
        let verb = if names.len() == 1 { "names" } else { "name" };
        let message = format!(
            "{} {verb} no version: the newest in the repository is taken, which may be built for another CUDA than the base's \
             {cuda}",
            names.join(", ")
        );
        let help = match package.install.tool {
            crate::dockerfile::commands::SystemTool::Apt => {
                format!("pin it: {}=VERSION+cuda{cuda} (apt-cache madison {0} lists them)", package.asked.name)
            }
            _ => format!("pin it: {}-VERSION+cuda{cuda}", package.asked.name),
        };
        out.push(package.found(Severity::Note, message).label("any version").help(help).because(base.because));
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "cudnn-nccl-unpinned";

    fn file(base: &str, packages: &str) -> String {
        format!("FROM {base}\nRUN apt-get update && apt-get install -y {packages}\n")
    }

    const BASE: &str = "nvidia/cuda:12.4.1-runtime-ubuntu22.04";

    #[test]
    fn one_note_for_a_command() {
        assert_eq!(blamed(RULE, &file(BASE, "git libnccl2 libnccl-dev"), &[]), ["libnccl2"]);
        let found = lint(RULE, &file(BASE, "libcudnn8"), &[]);
        assert!(found[0].help.as_deref().unwrap().contains("+cuda12.4"), "{:?}", found[0].help);
    }

    #[test]
    fn silent_where_the_cuda_is_named_or_not_known() {
        for text in [
            file(BASE, "libnccl2=2.21.5-1+cuda12.4"),
            file(BASE, "libcudnn9-cuda-12"),
            file(BASE, "cuda-nvcc-12-4"),
            file("ubuntu:22.04", "libnccl2"),
            format!("FROM {BASE}\nRUN apt-mark hold libnccl2\n"),
        ] {
            assert!(lint(RULE, &text, &[]).is_empty(), "{text}");
        }
    }
}
