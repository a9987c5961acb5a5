//! Packages that compile for AMD's GPUs when they run: whether the compiler in the image knows the GPU.

use super::Problem;
use super::compilers::newer;
use crate::catalog::Catalog;
use crate::catalog::gfx_compilers::GfxCompiler;
use crate::model::{Evidence, EvidenceFile, GfxProcessor, Target, Verdict, escape};
use crate::report::{Role, StepKind};

/// Packages whose compiler does not know the GPU; and those whose compiler does: index of the component, and how.
pub fn judged(
    gpu: GfxProcessor,
    target: &Target,
    evidence: &Evidence,
    roles: &[Role],
    catalog: &Catalog,
) -> (Vec<Problem>, Vec<(usize, String)>) {
    let (mut problems, mut served) = (Vec::new(), Vec::new());
    for package in &evidence.packages {
        let rows = catalog.libraries().gfx_compilers();
        let Some(row) = rows.iter().find(|r| r.is_dist(&package.name)) else { continue };
        let Some(file) = compiler(row, evidence) else { continue };
        let component = evidence.component_named(&package.name);
        if file.facts.compiles_gfx.contains(&gpu) {
            let how = format!("compiles at run time with `{}`, which knows {gpu}", file.path);
            served.extend(component.map(|index| (index, how)));
            continue;
        }
        let core = component.is_some_and(|c| roles.get(c) == Some(&Role::Core));
        let name = escape(package.name.as_bytes());
        let whose = if component.is_some() { String::new() } else { format!("{name}: ") };
        let message = format!(
            "{whose}compiles at run time with `{}`, whose compiler does not know {} ({gpu}): \"{}\"",
            file.path, target.gpu, row.symptom
        );
        let help = format!("take a newer {name}");
        problems.push(Problem {
            because: vec![row.because()],
            path: Some(file.path.clone()),
            component,
            step: StepKind::Compiler,
            remedies: vec![newer(
                package,
                &help,
                "no row says which processors the compiler of a newer release knows",
            )],
            ..Problem::new(
                "compiler-too-old-for-target",
                if core { Verdict::Fail } else { Verdict::Warn },
                message,
                help,
            )
        });
    }
    (problems, served)
}

/// The library that a package compiles with, where it says which processors it knows.
fn compiler<'a>(row: &GfxCompiler, evidence: &'a Evidence) -> Option<&'a EvidenceFile> {
    evidence.files.iter().find(|f| !f.in_archive && row.is_file(&f.path) && !f.facts.compiles_gfx.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::parse_target;
    use crate::lint::lab::{Lab, at};
    use crate::model::{FileFacts, FileKind};

    fn image(package: &str, file: &str, known: &[&str]) -> Lab {
        let mut lab = Lab::new();
        let component = lab.component(package, "3.5.0");
        let mut facts = FileFacts::new(FileKind::SharedObject, 1);
        facts.compiles_gfx = known.iter().map(|k| k.parse().unwrap()).collect();
        lab.0.files.push(EvidenceFile {
            path: at(file),
            layer: None,
            facts: Arc::new(facts),
            component: Some(component),
            in_archive: false,
        });
        lab
    }

    fn found(lab: &Lab, gpu: &str) -> (Vec<Problem>, Vec<(usize, String)>) {
        let catalog = Catalog::embedded();
        let target = parse_target(gpu, catalog).unwrap();
        judged(target.device.gfx().unwrap().processor, &target, &lab.0, &[Role::Optional], catalog)
    }

    #[test]
    fn the_compiler_must_know_the_gpu() {
        let lab = image("triton", "SITE/triton/_C/libtriton.so", &["gfx90a", "gfx942"]);
        let (problems, served) = found(&lab, "MI300X");
        assert!(problems.is_empty() && served[0].1.contains("knows gfx942"), "{served:?}");
        let (problems, served) = found(&lab, "RX 9070");
        assert!(served.is_empty());
        assert_eq!((problems[0].rule, problems[0].verdict), ("compiler-too-old-for-target", Verdict::Warn));
        assert!(problems[0].message.contains("gfx1201"), "{}", problems[0].message);
        // What says nothing is not judged, nor is a library that is another's.
        assert_eq!(found(&image("triton", "SITE/triton/_C/libtriton.so", &[]), "MI300X"), (vec![], vec![]));
        assert_eq!(found(&image("triton", "SITE/x/libother.so", &["gfx90a"]), "MI300X"), (vec![], vec![]));
        let cupy = image("cupy-rocm-7-0", "opt/rocm/lib/libamd_comgr.so.3", &["gfx942"]);
        assert_eq!(found(&cupy, "MI300X").1.len(), 1);
    }
}
