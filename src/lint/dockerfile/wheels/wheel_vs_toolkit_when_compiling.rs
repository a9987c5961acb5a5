//! An extension of torch compiled by a toolkit of another CUDA major than torch's own.

use std::collections::{BTreeMap, BTreeSet};

use super::toolkit;
use super::torch::{self, Torch};
use crate::catalog::extensions::Extension;
use crate::lint::dockerfile::builds::{Build, By};
use crate::lint::dockerfile::{Found, Lint};

/// Stages with builds of torch's extensions; a file has a few.
const MOST_STAGES: usize = 64;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let mut told = BTreeSet::new();
    let mut bases = BTreeMap::new();
    let torches = torch::all(lint);
    for build in lint.builds() {
        let Some(sure) = by_torch(lint, &build) else { continue };
        let before = |t: &&Torch<'_>| {
            t.command.span < build.command.span
                && lint.chain(build.stage).contains(&t.stage)
                && same_environment(t, &build)
        };
        // The last one before it counts.
        let Some(torch) = torches.iter().rfind(before) else { continue };
        // What a stage's toolkit is takes a look at all of the file.
        if bases.len() >= MOST_STAGES && !bases.contains_key(&build.stage) {
            return;
        }
        let base = bases.entry(build.stage).or_insert_with(|| toolkit::of_base(lint, build.stage));
        let Some((base, toolkit)) = base.as_ref().filter(|(b, _)| b.compiler == Some(true)) else { continue };
        let Some(cuda) = torch.cuda(lint).filter(|c| c.major != toolkit.major) else { continue };
        // One for each torch; and a version that its index never had is another trouble.
        if told.contains(&torch.command.span) || !torch.exists(lint) {
            continue;
        }
        told.insert(torch.command.span);
        let message = format!(
            "{} is compiled by the base's CUDA {toolkit} for {}, which is built for CUDA {cuda}: torch stops with \"The \
             detected CUDA version ({toolkit}) mismatches the version that was used to compile PyTorch ({cuda})\"",
            build.label(),
            torch.told(lint)
        );
        let maybe = torch.maybe() || !build.is_sure() || !sure;
        let mut found =
            if maybe { Found::warning(torch.place(), message) } else { Found::error(torch.place(), message) };
        found = found
            .label(format!("CUDA {cuda}, the toolkit is {toolkit}"))
            .help(format!(
                "take torch of an index of CUDA {}, or a devel base of CUDA {}",
                toolkit.major, cuda.major
            ))
            .because(base.because.clone())
            .also(build.span, "compiled here");
        if let Some(stage) = lint.reading.stages.get(lint.reading.stages.get(build.stage).map_or(0, |s| s.root.1)) {
            found = found.also(stage.from, format!("CUDA {toolkit} comes from here"));
        }
        found.because.extend(build.project.map(Extension::because));
        out.push(found);
    }
}

/// A build by setup.py is done by the Python that PATH names, most often.
fn same_environment(torch: &Torch<'_>, build: &Build<'_>) -> bool {
    torch::environment(torch.command) == torch::environment(build.command)
}

/// Whether a build goes through torch's cpp_extension, and whether that is sure.
fn by_torch(lint: &Lint<'_>, build: &Build<'_>) -> Option<bool> {
    if !matches!(build.by, By::Pip | By::Setuptools) {
        return None;
    }
    match build.project {
        Some(project) => (project.imports_torch && project.cuda_when.is_empty()).then_some(project.is_sure()),
        // The list that only builds of torch's extensions read; in a build that sees torch.
        None => {
            let isolated = build.pip.is_some_and(|p| !p.no_build_isolation);
            (!isolated && lint.seen(build.command, "TORCH_CUDA_ARCH_LIST").is_some()).then_some(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "wheel-vs-toolkit-when-compiling";
    const INDEX: &str = "https://download.pytorch.org/whl";
    const BUILD: &str =
        "RUN pip install --no-build-isolation git+https://github.com/facebookresearch/detectron2.git\n";

    fn file(base: &str, index: &str, build: &str) -> String {
        format!("FROM {base}\nRUN pip install torch --index-url {INDEX}/{index}\n{build}")
    }

    #[test]
    fn another_major() {
        let file = file("nvidia/cuda:12.1.1-devel-ubuntu22.04", "cu118", BUILD);
        assert_eq!(blamed(RULE, &file, &[]), [format!("{INDEX}/cu118")]);
        let found = lint(RULE, &file, &[]);
        assert_eq!(found[0].severity, Severity::Error);
        assert!(found[0].message.contains("(12.1)") && found[0].message.contains("(11.8)"), "{}", found[0].message);
        assert_eq!(found[0].also.len(), 2);
    }

    #[test]
    fn what_torch_takes() {
        let devel = "nvidia/cuda:12.1.1-devel-ubuntu22.04";
        let url = "RUN pip install https://x.example/detectron2-0.6-cp310-cp310-linux_x86_64.whl\n";
        for quiet in [
            // Another minor: torch only warns.
            file(devel, "cu124", BUILD),
            // No compiler in the base.
            file("nvidia/cuda:12.1.1-runtime-ubuntu22.04", "cu118", BUILD),
            // Nothing is compiled.
            file(devel, "cu118", ""),
            file(devel, "cu118", url),
            file(devel, "cu118", "RUN pip install transformers\n"),
            // A toolkit of torch's major is put beside it.
            file(devel, "cu118", &format!("RUN apt-get install -y cuda-nvcc-11-8\n{BUILD}")),
            file(devel, "cu118", &format!("ENV CUDA_HOME=/usr/local/cuda-11.8\n{BUILD}")),
            // Before torch.
            format!("FROM {devel}\n{BUILD}RUN pip install torch --index-url {INDEX}/cu118\n"),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
