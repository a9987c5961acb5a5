//! A base whose toolkit cannot compile for a target, where something is compiled with it.

use std::collections::BTreeMap;

use super::from::{Image, images};
use crate::catalog::arch_lists::Grammar;
use crate::catalog::bases::BaseFamily;
use crate::catalog::compat::{Fit, on_tegra, sass_serves};
use crate::catalog::extensions::{Prebuilt, Unset};
use crate::lint::dockerfile::archs::{Archs, fit, in_force};
use crate::lint::dockerfile::builds::{Build, By};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::{Severity, Target};

/// Builds on one base that are asked for their toolkit.
const MOST_BUILDS: usize = 16;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let archs = Archs::of(lint);
    // Builds by the stage whose base they stand on.
    let mut builds: BTreeMap<usize, Vec<&Build<'_>>> = BTreeMap::new();
    for build in archs.builds.iter().filter(|b| b.is_sure() && is_cuda(b)) {
        let Some(stage) = lint.reading.stages.get(build.stage) else { continue };
        let own = builds.entry(stage.root.1).or_default();
        if own.len() < MOST_BUILDS {
            own.push(build);
        }
    }
    for image in images(lint) {
        let Some(builds) = builds.get(&image.stage) else { continue };
        let Some((build, toolkit)) = builds.iter().find_map(|b| Some((*b, in_force(lint, b.stage)?))) else {
            continue;
        };
        let cuda = toolkit.toolkit.cuda;
        let missing: Vec<&Target> = lint
            .targets
            .iter()
            .filter(|t| {
                !on_tegra(t)
                    && t.capability().is_some_and(|cc| !toolkit.toolkit.sm.iter().any(|a| sass_serves(*a, cc)))
            })
            .collect();
        let Some(first) = missing.first() else { continue };
        let wanted = first.capability().and_then(|cc| lint.catalog.toolkits().toolkits_for(cc));
        // Newer toolkits drop old GPUs altogether; older ones can write PTX that a newer GPU's driver compiles.
        let too_old = wanted.is_some_and(|(first, _)| first > cuda);
        let lists: Vec<_> =
            archs.settings.iter().filter(|s| archs.readers(s).any(|r| r.index == build.index)).collect();
        let isa = Some(toolkit.toolkit.ptx_isa);
        let by_list = |target: &Target| {
            let own = lists.iter().filter(|s| !s.variable.adds && s.variable.grammar != Grammar::DottedPtx);
            let all = own.flat_map(|s| s.lists().into_iter().map(|l| archs.with_ptx(s, l)));
            all.filter(|l| l.is_closed()).map(|l| fit(lint, &l, isa, target)).max()
        };
        let (mut bad, mut certain) = (Vec::new(), true);
        for target in missing {
            match by_list(target) {
                Some(Fit::Missing | Fit::Blocked(_)) => bad.push(target),
                Some(_) => {}
                // What compilers take by themselves has PTX in it, which newer GPUs' drivers compile.
                None if too_old && by_default(build, &image) => {}
                None => {
                    certain &= !too_old;
                    bad.push(target);
                }
            }
        }
        if bad.is_empty() {
            continue;
        }
        let sure = certain && toolkit.sure && image.all.len() == 1 && bad.iter().any(|t| t.required);
        let severity = if sure { Severity::Error } else { Severity::Warning };
        let mut labels: Vec<String> = bad.iter().map(|t| t.label()).collect();
        labels.dedup();
        let names = labels.join(", ");
        let then = match too_old && !certain {
            true => "it can only leave PTX for it, if it is told to",
            false => "\"no kernel image is available for execution on the device\"",
        };
        let message = format!(
            "CUDA {cuda} of `{}`{} cannot compile for {names}, and {} is compiled with it: {then}",
            toolkit.image,
            lint.trail(&image.text.trail),
            build.label()
        );
        let help = match wanted {
            Some((first, _)) if first > cuda => format!("take a base of CUDA {first} or newer"),
            Some((_, last)) => format!("take a base of CUDA {last} or older"),
            None => "take a base whose toolkit knows it".to_owned(),
        };
        let found = image
            .found(severity, message)
            .label(format!("CUDA {cuda}"))
            .help(help)
            .because(toolkit.because.clone())
            .because(toolkit.toolkit.because())
            .also(build.span, "compiled here")
            .on(bad.iter().map(|t| t.name.clone()).collect());
        out.push(found);
    }
}

/// Whether a build without any list leaves PTX for newer GPUs, or its list is not that of a project known to have one.
fn by_default(build: &Build<'_>, image: &Image<'_>) -> bool {
    match (build.by, build.project) {
        (By::Nvcc | By::Cmake | By::Make, _) | (_, None) => true,
        // NVIDIA's frameworks set TORCH_CUDA_ARCH_LIST, with PTX at its end.
        (_, Some(project)) => {
            let ngc = image.all.iter().any(|(_, b)| b.as_ref().is_some_and(|b| b.family == BaseFamily::NvidiaNgc));
            // What sees no GPU compiles nothing, or stops: that is told elsewhere.
            (ngc && project.reads_torch_list()) || project.unset != Unset::OwnList
        }
    }
}

/// Whether a build surely compiles device code.
fn is_cuda(build: &Build<'_>) -> bool {
    // It takes wheels of its own index where there are.
    if build.command.words.iter().any(|w| w.text.value.known() == Some("mim")) {
        return false;
    }
    match build.by {
        By::Nvcc => true,
        By::Cmake | By::Make => {
            build.speaks_of("cuda=on") || build.speaks_of("cuda=1") || build.speaks_of("cuda_architectures")
        }
        By::Pip | By::Setuptools => build
            .project
            .is_some_and(|p| p.cuda_when.is_empty() && p.unset != Unset::Unknown && p.prebuilt != Prebuilt::Jit),
        By::Cargo | By::Bazel => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "base-without-target-arch";

    fn file(base: &str, rest: &str) -> String {
        format!("FROM {base}\n{rest}\n")
    }

    const OLD: &str = "nvidia/cuda:12.4.1-devel-ubuntu22.04";
    const BUILD: &str = "RUN nvcc -gencode arch=compute_90,code=sm_90 -o x x.cu";

    #[test]
    fn a_toolkit_that_does_not_know_the_gpu() {
        let text = file(OLD, BUILD);
        assert_eq!(blamed(RULE, &text, &["rtx 5090"]), [OLD]);
        assert_eq!(lint(RULE, &text, &["rtx 5090"])[0].severity, Severity::Error);
        assert!(lint(RULE, &text, &["rtx 5090"])[0].help.as_deref().unwrap().contains("12.8"));
        let volta = file("nvidia/cuda:13.0.1-devel-ubuntu22.04", "RUN nvcc -o x x.cu");
        assert!(lint(RULE, &volta, &["v100"])[0].help.as_deref().unwrap().contains("12.9 or older"));
        let unlisted = file(OLD, "RUN pip install flash-attn --no-binary flash-attn");
        assert_eq!(lint(RULE, &unlisted, &["rtx 5090"])[0].severity, Severity::Warning);
    }

    #[test]
    fn silent_where_nothing_is_compiled_or_another_toolkit_is_there() {
        for text in [
            file(OLD, "RUN pip install numpy"),
            file("nvidia/cuda:12.8.1-devel-ubuntu22.04", BUILD),
            // Code for 8.6 serves 8.9.
            file("ubuntu:22.04", BUILD),
            // PTX, which the driver compiles: asked for, or as the compiler does by itself.
            file(OLD, "RUN nvcc -gencode arch=compute_90,code=compute_90 -o x x.cu"),
            file(OLD, "RUN nvcc -arch=sm_90 -o x x.cu"),
            file(OLD, "RUN nvcc -o x x.cu"),
            file("nvcr.io/nvidia/pytorch:24.07-py3", "RUN pip install git+https://github.com/NVIDIA/apex.git"),
            format!("FROM {OLD} AS unused\n{BUILD}\nFROM ubuntu\n"),
            file(OLD, &format!("RUN apt-get install -y cuda-toolkit-12-8\n{BUILD}")),
        ] {
            assert!(lint(RULE, &text, &["rtx 5090"]).is_empty(), "{text}");
        }
        let ada = file("nvidia/cuda:11.6.2-devel-ubuntu20.04", "RUN nvcc -o x x.cu");
        assert!(lint(RULE, &ada, &["rtx 4090"]).is_empty());
    }
}
