//! onnxruntime-gpu built for another CUDA major than the base's libraries.

use super::packages::{Installed, MOST_TOLD, base_major};
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let installed = Installed::of(lint);
    for package in installed.packages.iter().filter(|p| p.requirement.name == "onnxruntime-gpu").take(MOST_TOLD) {
        let Some(known) = package.known(lint).filter(|k| !k.brings) else { continue };
        let Some(major) = known.cuda_major else { continue };
        let Some((base, name, because)) = base_major(lint, package.stage).filter(|(base, ..)| *base != major)
        else {
            continue;
        };
        if installed.brings(lint, package, "cublas", major) {
            continue;
        }
        let message = format!(
            "{} is built for CUDA {major}, and {name} has the libraries of CUDA {base}: \"Failed to create \
             CUDAExecutionProvider\", and the model runs on the CPU",
            package.told()
        );
        let found =
            if known.sure { Found::error(package.span, message) } else { Found::warning(package.span, message) };
        let fitting = lint.catalog.libraries().build_for("onnxruntime-gpu", base);
        out.push(
            found
                .label(format!("for CUDA {major}"))
                .help(match fitting {
                    Some(row) => format!("take onnxruntime-gpu {} or a base of CUDA {major}", row.versions),
                    None => format!("take a version for CUDA {base}, or a base of CUDA {major}"),
                })
                .because(known.because)
                .because(because),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "onnxruntime-cuda-major";

    fn file(base: &str, packages: &str) -> String {
        format!("FROM {base}\nRUN pip install {packages}\n")
    }

    #[test]
    fn another_major_than_the_base_s() {
        let cuda12 = "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04";
        let wrong = file(cuda12, "onnxruntime-gpu==1.17.1");
        assert_eq!(blamed(RULE, &wrong, &[]), ["onnxruntime-gpu==1.17.1"]);
        assert_eq!(lint(RULE, &wrong, &[])[0].severity, Severity::Error);
        let eleven = file("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "onnxruntime-gpu==1.20.1");
        assert_eq!(blamed(RULE, &eleven, &[]).len(), 1);
        for quiet in [
            file(cuda12, "onnxruntime-gpu==1.20.1"),
            file("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "onnxruntime-gpu==1.17.1"),
            // Any version, and any base.
            file(cuda12, "onnxruntime-gpu"),
            file("example.com/base:1", "onnxruntime-gpu==1.17.1"),
            file("python:3.12-slim", "onnxruntime-gpu==1.17.1"),
            // The libraries come by pip.
            file(cuda12, "onnxruntime-gpu==1.17.1 nvidia-cublas-cu11"),
            file(cuda12, "onnxruntime-gpu[cuda,cudnn]==1.17.1"),
            // A base without libraries.
            file("nvidia/cuda:12.4.1-base-ubuntu22.04", "onnxruntime-gpu==1.17.1"),
            file(cuda12, "onnxruntime==1.17.1"),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
