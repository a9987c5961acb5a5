//! An extension of torch compiled by a toolkit of another CUDA major than torch's own.

use super::toolkit;
use super::torch::{self, Torch};
use crate::catalog::extensions::{Extension, Prebuilt};
use crate::dockerfile::commands::{Asked, BuildTool, Requirement};
use crate::dockerfile::shell::Command;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::{Found, Lint};

/// A build that goes through torch's cpp_extension.
struct Build<'a> {
    command: &'a Command,
    stage: usize,
    span: Span,
    what: String,
    sure: bool,
    because: Option<String>,
}

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let torches = torch::all(lint);
    for build in builds(lint) {
        let before = |t: &&Torch<'_>| {
            t.command.span < build.command.span
                && lint.chain(build.stage).contains(&t.stage)
                && torch::environment(t.command) == torch::environment(build.command)
        };
        // The last one before it counts.
        let Some(torch) = torches.iter().rfind(before) else { continue };
        let Some((base, toolkit)) = toolkit::of_base(lint, build.stage).filter(|(b, _)| b.compiler == Some(true))
        else {
            continue;
        };
        let Some(cuda) = torch.cuda(lint).filter(|c| c.major != toolkit.major) else { continue };
        let message = format!(
            "{} is compiled by the base's CUDA {toolkit} for {}, which is built for CUDA {cuda}: torch stops with \"The \
             detected CUDA version ({toolkit}) mismatches the version that was used to compile PyTorch ({cuda})\"",
            build.what,
            torch.told(lint)
        );
        let maybe =
            torch.maybe() || build.command.guessed || build.command.when != torch.command.when || !build.sure;
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
        found.because.extend(build.because);
        out.push(found);
    }
}

fn builds<'a>(lint: &'a Lint<'_>) -> Vec<Build<'a>> {
    let mut out = Vec::new();
    let extensions = lint.catalog.extensions();
    let of = |command: usize| {
        let command = lint.reading.commands.get(command)?;
        let (stage, _) = lint.stage_of(command.instruction).filter(|(_, s)| s.built)?;
        Some((command, stage))
    };
    for install in &lint.asks.pip {
        let Some((command, stage)) = of(install.command) else { continue };
        for requirement in &install.requirements {
            let Some(extension) = compiled(lint, requirement, &install.no_binary) else { continue };
            let span = match &requirement.asked {
                Asked::Here(span) => *span,
                Asked::File { .. } => command.span,
            };
            let because = Some(extension.because());
            let sure = extension.is_sure();
            out.push(Build { command, stage, span, what: extension.project.clone(), sure, because });
        }
        // The project's own extension: only a build that sees torch goes through it.
        let torch_build = install.no_build_isolation && says_archs(lint, command);
        if !install.local.is_empty() && torch_build {
            let what = "the extension".to_owned();
            out.push(Build { command, stage, span: command.span, what, sure: false, because: None });
        }
    }
    for build in lint.asks.builds.iter().filter(|b| b.tool == BuildTool::Setuptools) {
        let Some((command, stage)) = of(build.command) else { continue };
        let cloned = lint.asks.clones.iter().filter(|c| c.dir.known().is_some() && c.dir == build.dir);
        let extension = cloned.filter_map(|c| extensions.find_repository(c.url.value.known()?)).next_back();
        match extension.filter(|e| e.imports_torch) {
            Some(extension) => out.push(Build {
                command,
                stage,
                span: command.span,
                what: extension.project.clone(),
                sure: extension.is_sure(),
                because: Some(extension.because()),
            }),
            None if says_archs(lint, command) => {
                let what = "the extension".to_owned();
                out.push(Build { command, stage, span: command.span, what, sure: false, because: None });
            }
            None => {}
        }
    }
    out
}

/// The list that only builds of torch's extensions read.
fn says_archs(lint: &Lint<'_>, command: &Command) -> bool {
    lint.seen(command, "TORCH_CUDA_ARCH_LIST").is_some()
}

fn compiled<'a>(lint: &'a Lint<'_>, requirement: &Requirement, no_binary: &[String]) -> Option<&'a Extension> {
    if requirement.unsure || requirement.marker.is_some() {
        return None;
    }
    let extensions = lint.catalog.extensions();
    let extension = match &requirement.url {
        // A wheel's URL is no source.
        Some(url) if url.contains(".whl") => return None,
        Some(url) => extensions.find_repository(url)?,
        None => extensions.find_package(&requirement.name)?,
    };
    let forced = no_binary.iter().any(|n| n == ":all:" || *n == requirement.name);
    let source = requirement.url.is_some() || forced || extension.prebuilt == Prebuilt::Source;
    (extension.imports_torch && source && extension.cuda_when.is_empty()).then_some(extension)
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
