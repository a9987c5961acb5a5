//! cuDNN and NCCL from the distribution's packages beside those of PyTorch's wheels.

use crate::catalog::system_packages::SystemKind;
use crate::dockerfile::commands::{Asked, Requirement};
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let wheels = wheels(lint);
    // What is compiled may link to the system's, and so may wheels that bring none.
    if lint.builds().iter().any(|b| lint.in_image(b.command.instruction))
        || wheels.iter().any(|(r, _)| opens(lint, r))
    {
        return;
    }
    let packages = lint.packages();
    // Headers are there to compile with, now or in a container.
    let headers = |library: &str| {
        packages.iter().any(|p| p.asked.name.contains("-dev") && p.known.library.as_deref() == Some(library))
    };
    for package in packages.iter().filter(|p| p.in_image && p.known.kind == SystemKind::CudaLibrary) {
        let Some(library) = package.known.library.as_deref().filter(|l| ["cudnn", "nccl"].contains(l)) else {
            continue;
        };
        let name = &package.asked.name;
        if headers(library) {
            continue;
        }
        let own = format!("nvidia-{library}-cu");
        let brings = |r: &Requirement| r.name == "torch" || r.name.starts_with(&own);
        let Some((wheel, span)) = wheels.iter().find(|(r, _)| brings(r)) else { continue };
        let message = format!(
            "`{name}` is installed, and the wheel of {} brings a {library} of its own, which it loads: the package takes space, \
             or gets mixed with it through LD_LIBRARY_PATH",
            wheel.name
        );
        let mut found = package
            .found(crate::model::Severity::Note, message)
            .label("a second one")
            .help("leave the package out, unless another program needs it");
        if let Some(span) = span {
            found = found.also(*span, "brings its own");
        }
        out.push(found);
    }
}

/// Requirements of the image, with their places where these are in the file. None where torch is the CPU's.
fn wheels<'a>(lint: &'a Lint<'_>) -> Vec<(&'a Requirement, Option<Span>)> {
    let mut out = Vec::new();
    for pip in &lint.asks.pip {
        let here = lint.reading.commands.get(pip.command).is_some_and(|c| lint.in_image(c.instruction));
        let indexes = pip.index.iter().chain(&pip.extra_indexes).chain(&pip.find_links);
        let cpu =
            indexes.filter_map(|i| i.text.value.known()).any(|url| url.contains("/cpu") || url.contains("/rocm"));
        if !here || cpu {
            continue;
        }
        out.extend(pip.requirements.iter().map(|r| {
            let span = match r.asked {
                Asked::Here(span) => Some(span),
                Asked::File { .. } => None,
            };
            (r, span)
        }));
    }
    out
}

/// Whether a wheel loads the system's cuDNN.
fn opens(lint: &Lint<'_>, requirement: &Requirement) -> bool {
    let version = requirement.pinned().unwrap_or_default();
    let known = lint.catalog.wheels().package_cuda(&requirement.name, version);
    let named =
        ["ctranslate2", "faster-whisper", "onnxruntime-gpu", "tensorflow", "paddlepaddle-gpu", "jax", "cupy"];
    known.is_some_and(|k| !k.brings) || named.iter().any(|n| requirement.name.starts_with(n))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "apt-and-wheel-duplicate";

    fn file(apt: &str, pip: &str) -> String {
        format!("FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN apt-get install -y {apt}\nRUN pip install {pip}\n")
    }

    #[test]
    fn both_are_told_at_the_package() {
        assert_eq!(blamed(RULE, &file("libcudnn9-cuda-12 git", "torch"), &[]), ["libcudnn9-cuda-12"]);
        assert_eq!(blamed(RULE, &file("libnccl2", "nvidia-nccl-cu12"), &[]), ["libnccl2"]);
        assert_eq!(lint(RULE, &file("libnccl2", "torch"), &[])[0].also.len(), 1);
    }

    #[test]
    fn silent_where_the_system_s_is_wanted() {
        for text in [
            file("libcudnn9-cuda-12", "torch ctranslate2"),
            file("libcudnn9-cuda-12", "torch onnxruntime-gpu==1.20.1"),
            file("libcudnn9-cuda-12", "numpy"),
            file("libcudnn9-dev-cuda-12", "torch"),
            file("libnccl2 libnccl-dev", "torch"),
            file("libcudnn9-cuda-12", "torch --index-url https://download.pytorch.org/whl/cpu"),
            file("git", "torch"),
            file("libcublas-12-4", "torch"),
            file("libnccl2", "torch && python setup.py install"),
        ] {
            assert!(lint(RULE, &text, &[]).is_empty(), "{text}");
        }
    }
}
