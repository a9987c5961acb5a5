//! Packages of CUDA of another version than the base image's.

use crate::catalog::bases::BaseFamily;
use crate::catalog::system_packages::SystemKind;
use crate::lint::dockerfile::ask::Package;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::{CudaVersion, Severity};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let mut said = None;
    for package in lint.packages() {
        if !matches!(package.known.kind, SystemKind::Toolkit | SystemKind::CudaMeta | SystemKind::CudaLibrary) {
            continue;
        }
        let base = lint.base(package.stage).filter(|b| {
            b.sure
                && matches!(b.family, BaseFamily::NvidiaCuda | BaseFamily::NvidiaNgc)
                && b.repository != "nvidia/tensorrt"
        });
        let Some((base, cuda)) = base.and_then(|b| Some((b.clone(), b.cuda?))) else { continue };
        let Some((of, harm)) = differs(&package, cuda) else { continue };
        // Beside a base without a compiler, a compiler of another minor is the only one: often torch's.
        let only = package.known.cuda_major == Some(cuda.major) && base.compiler != Some(true);
        let severity = if only { Severity::Note } else { Severity::Warning };
        // One word for a command: what is installed together was meant together.
        if said.replace(package.command.span) == Some(package.command.span) {
            continue;
        }
        let name = &package.asked.name;
        let image = base.tag.as_deref().map_or(base.repository.clone(), |t| format!("{}:{t}", base.repository));
        let message = format!("`{name}` is of CUDA {of}, and {image} has CUDA {cuda}: {harm}");
        let help = match package.known.cuda {
            Some(_) => format!("install the package of CUDA {cuda}, or take a base of CUDA {of}"),
            None => format!("install the build for CUDA {}, or take a base of CUDA {of}", cuda.major),
        };
        out.push(package.found(severity, message).label(format!("CUDA {of}")).help(help).because(base.because));
    }
}

/// The CUDA of a package, where it goes badly with the base's, and why.
fn differs(package: &Package<'_>, base: CudaVersion) -> Option<(String, &'static str)> {
    let known = &package.known;
    // Libraries that are built once for a major: of cuDNN and its like only that counts.
    let of_major = known.library.is_some() || known.cuda.is_none();
    match (known.cuda, known.cuda_major) {
        (Some(cuda), _) if cuda.major != base.major => {
            Some((cuda.to_string(), "it needs libraries that are not there"))
        }
        (None, Some(major)) if major != base.major => {
            Some((major.to_string(), "it needs libraries that are not there"))
        }
        (Some(cuda), _) if cuda != base && !of_major => {
            Some((cuda.to_string(), "two versions of one toolkit come into builds and onto the loader's path"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "apt-cuda-vs-base";

    fn file(base: &str, packages: &str) -> String {
        format!("FROM {base}\nRUN apt-get update && apt-get install -y {packages}\n")
    }

    const BASE: &str = "nvidia/cuda:12.4.1-runtime-ubuntu22.04";

    #[test]
    fn another_version_than_the_base() {
        assert_eq!(blamed(RULE, &file(BASE, "git cuda-nvcc-11-8"), &[]), ["cuda-nvcc-11-8"]);
        assert_eq!(blamed(RULE, &file(BASE, "libcublas-dev-12-1 cuda-nvcc-12-1"), &[]), ["libcublas-dev-12-1"]);
        assert_eq!(blamed(RULE, &file(BASE, "libcudnn9-cuda-13"), &[]), ["libcudnn9-cuda-13"]);
        assert_eq!(blamed(RULE, &file(BASE, "libcudnn8=8.9.2.26-1+cuda11.8"), &[]).len(), 1);
        assert_eq!(lint(RULE, &file(BASE, "cuda-nvcc-12-1"), &[])[0].severity, Severity::Note);
        let devel = file("nvidia/cuda:12.4.1-devel-ubuntu22.04", "cuda-nvcc-12-1");
        assert_eq!(lint(RULE, &devel, &[])[0].severity, Severity::Warning);
        let found = lint(RULE, &file(BASE, "cuda-nvcc-11-8"), &[]);
        assert!(found[0].message.contains("nvidia/cuda:12.4.1-runtime-ubuntu22.04 has CUDA 12.4"));
    }

    #[test]
    fn silent_on_the_same_and_on_what_fits_a_major() {
        for text in [
            file(BASE, "cuda-nvcc-12-4 libcublas-12-4"),
            file(BASE, "libcudnn9-cuda-12 libnccl2=2.21.5-1+cuda12.2"),
            file(BASE, "cuda-compat-12-8 cuda-keyring git"),
            file(BASE, "cuda-nvcc-$V"),
            file("ubuntu:22.04", "cuda-nvcc-11-8"),
            "ARG B\nFROM $B\nRUN apt-get install -y cuda-nvcc-11-8\n".to_owned(),
            format!("FROM {BASE}\nRUN apt-get remove -y cuda-nvcc-11-8\n"),
        ] {
            assert!(lint(RULE, &text, &[]).is_empty(), "{text}");
        }
    }
}
