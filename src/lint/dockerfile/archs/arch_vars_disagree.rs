//! Two variables of one stage that name different GPUs.

use crate::catalog::arch_lists::{ArchList, Serves, serves};
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::{ArchSetting, How};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::{Capability, SmArch};

use super::lists::{self, Archs, Use};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(archs) = Archs::set(lint) else { return };
    // Variables that hold for all of a stage: what stands in front of one build is meant for that one.
    let stage_wide = |s: &&ArchSetting<'_>| {
        s.variable.general
            && s.inside.is_none()
            && matches!((s.how, &s.value), (How::Env | How::Arg, Value::Known(_)))
            && archs.usage(lint, s) == Use::Read
    };
    let settings: Vec<&ArchSetting<'_>> = archs.settings.iter().filter(stage_wide).collect();
    for (at, second) in settings.iter().enumerate() {
        let stage = second.stage;
        let others = settings.iter().take(at);
        let mut others = others.filter(|f| f.stage == stage && f.variable.name != second.variable.name);
        let Some((first, missing)) = others.find_map(|first| Some((*first, differ(first, second)?))) else {
            continue;
        };
        let message = format!(
            "{} while {}: what is built with one of them has no code for {}",
            lists::said(lint, second),
            lists::said(lint, first),
            lists::list_of(&missing)
        );
        let found = Found::warning(second.place.span, message)
            .label(format!("they differ in {}", lists::list_of(&missing)))
            .also(first.place.span, "the other list")
            .because(first.variable.because())
            .because(second.variable.because())
            .help("name the same architectures in both, or say in a comment why not");
        out.push(found);
    }
}

/// Capabilities that one of two lists names and the other has no code for.
fn differ(first: &ArchSetting<'_>, second: &ArchSetting<'_>) -> Option<Vec<Capability>> {
    let list = |s: &ArchSetting<'_>| s.lists().into_iter().next().filter(ArchList::is_closed);
    let (first, second) = (list(first)?, list(second)?);
    let lacks = |has: &ArchList, other: &ArchList| -> Vec<Capability> {
        let named = has.sass.iter().filter_map(|a: &SmArch| a.capability());
        named.filter(|c| serves(other, *c) == Serves::No).collect()
    };
    let mut missing = lacks(&first, &second);
    missing.extend(lacks(&second, &first));
    missing.sort_unstable();
    missing.dedup();
    (!missing.is_empty()).then_some(missing)
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "arch-vars-disagree";
    const BUILDS: &str = "RUN cmake -B b . && pip install --no-build-isolation ./csrc\n";

    #[test]
    fn lists_that_serve_different_gpus() {
        let file = format!(
            "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"8.0;9.0\" CUDAARCHS=80-real\n{BUILDS}"
        );
        assert_eq!(blamed(RULE, &file, &[]), ["80-real"]);
        assert!(lint(RULE, &file, &[])[0].message.contains("has no code for 9.0"));
    }

    #[test]
    fn lists_that_serve_the_same() {
        for env in [
            "TORCH_CUDA_ARCH_LIST=\"8.0;9.0\" CUDAARCHS=\"80-real;90-real\"",
            // 8.0 runs on 8.6.
            "TORCH_CUDA_ARCH_LIST=\"8.0;8.6\" CUDAARCHS=80-real",
            "TORCH_CUDA_ARCH_LIST=\"8.0;9.0\" CUDAARCHS=all-major",
            "TORCH_CUDA_ARCH_LIST=\"8.0;9.0\" NVTE_CUDA_ARCHS=90",
        ] {
            let file = format!("FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nENV {env}\n{BUILDS}");
            assert!(lint(RULE, &file, &[]).is_empty(), "{env}");
        }
    }
}
