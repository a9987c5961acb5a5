//! Compilers that run where the image runs: whether they know the target, and whether they are there at all.

use super::{Problem, Remedy};
use crate::catalog::Catalog;
use crate::catalog::libraries::BroughtCompiler;
use crate::model::{
    Capability, Change, Confidence, Evidence, EvidenceFile, ImagePath, Package, SmArch, Target, Verdict, escape,
    package_name,
};
use crate::report::{Cost, Role, StepKind};

/// Compilers that a package brings and that do not know the target.
pub fn too_old(target: &Target, evidence: &Evidence, roles: &[Role], catalog: &Catalog) -> Vec<Problem> {
    let mut out = Vec::new();
    let Some(cc) = target.capability() else { return out };
    for package in &evidence.packages {
        let version = package.version.as_deref();
        let Some(row) = catalog.libraries().compiler_for(&package.name, version, cc) else {
            continue;
        };
        let file = taken(row, evidence).filter(|_| !row.told);
        let Some((file, newest)) = file.and_then(|f| Some((f, newest_target(f, catalog)?))) else { continue };
        if compiles(file, cc, catalog) != Some(false) {
            continue;
        }
        let component = evidence.component_named(&package.name);
        let core = component.is_some_and(|c| roles.get(c) == Some(&Role::Core));
        let verdict = if core { Verdict::Fail } else { Verdict::Warn };
        let cuda = file.facts.tool.and_then(|t| t.cuda);
        let release = cuda.map(|c| format!(" of CUDA {c}")).unwrap_or_default();
        let message = format!(
            "compiles at run time with `{}`{release}, whose newest target is {newest}: it does not know {} ({cc}, sm_{}{}): \
             \"Value 'sm_{}{}' is not defined for option 'gpu-name'\"",
            file.path, target.gpu, cc.major, cc.minor, cc.major, cc.minor
        );
        let first = catalog.toolkits().toolkits_for(cc).map(|(first, _)| first);
        let from = first.map(|v| format!(" of CUDA {v} or newer")).unwrap_or_default();
        let help = match &row.env {
            Some(env) => format!(
                "take a newer {}, or put a ptxas{from} into the image and name it in {env}",
                escape(package.name.as_bytes())
            ),
            None => format!("take a newer {}", escape(package.name.as_bytes())),
        };
        // Without a component of its own the package is named in the text.
        let message = match component {
            Some(_) => message,
            None => format!("{}: {message}", escape(package.name.as_bytes())),
        };
        out.push(Problem {
            because: vec![row.because()],
            path: Some(file.path.clone()),
            component,
            step: StepKind::Compiler,
            remedies: vec![newer(package, &help, UNKNOWN_CUDA)],
            ..Problem::new("compiler-too-old-for-target", verdict, message, help)
        });
    }
    out
}

/// What no table says of a newer release that brings a compiler of its own.
const UNKNOWN_CUDA: &str = "no row says which CUDA the compiler of a newer release is of, and a framework that pins this \
                            one must be changed with it";

/// A newer release of the package that brings the compiler; `review`: what of it is not known.
pub(super) fn newer(package: &Package, help: &str, review: &str) -> Remedy {
    let change = Change::Wheel {
        package: package_name(&package.name),
        version: None,
        specifier: package.version.as_ref().map(|v| format!(">{v}")).unwrap_or_default(),
        index: None,
        built: None,
        cuda: None,
    };
    Remedy { review: Some(review.to_owned()), ..Remedy::new(StepKind::Compiler, Cost::OtherVersion, help, change) }
}

/// Packages that compile at run time with a compiler of their own that knows the target: index of the component, and how.
pub fn served(target: &Target, evidence: &Evidence, catalog: &Catalog) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let Some(cc) = target.capability() else { return out };
    for (index, component) in evidence.components.iter().enumerate() {
        let version = component.version.as_deref();
        let Some(row) = catalog.libraries().compiler_for(&component.name, version, cc) else {
            continue;
        };
        let Some(file) = taken(row, evidence) else { continue };
        if compiles(file, cc, catalog) == Some(true) {
            let cuda = file.facts.tool.and_then(|t| t.cuda).map(|c| format!(" of CUDA {c}")).unwrap_or_default();
            out.push((index, format!("compiles at run time with `{}`{cuda}, which knows {cc}", file.path)));
        }
    }
    out
}

/// The compiler that a package takes: what the image's environment names, else its own.
fn taken<'a>(row: &BroughtCompiler, evidence: &'a Evidence) -> Option<&'a EvidenceFile> {
    let named = row.env.as_deref().and_then(|name| evidence.image.config.var(name)).filter(|p| !p.is_empty());
    match named {
        Some(path) => {
            let path = ImagePath::new(path);
            let real = evidence.links.iter().find(|(link, _)| *link == path).map_or(&path, |(_, to)| to);
            evidence.file(real)
        }
        None => evidence.files.iter().find(|f| row.is_file(&f.path) && !f.in_archive),
    }
}

/// The newest target of a compiler: what its strings say, else what its release knows.
pub fn newest_target(file: &EvidenceFile, catalog: &Catalog) -> Option<SmArch> {
    let tool = file.facts.tool?;
    let known = || catalog.toolkits().get(tool.cuda?)?.sm.iter().next_back().copied();
    tool.newest.or_else(known)
}

/// Whether a compiler writes code for a capability.
fn compiles(file: &EvidenceFile, capability: Capability, catalog: &Catalog) -> Option<bool> {
    let tool = file.facts.tool?;
    let arch = SmArch::from(capability);
    let by_release = tool.cuda.and_then(|cuda| catalog.toolkits().compiles(cuda, arch));
    by_release.or_else(|| Some(tool.newest? >= arch))
}

/// Packages that compile when they run, in images without what they need for it.
pub fn missing(evidence: &Evidence, catalog: &Catalog) -> Vec<Problem> {
    let has = |name: &str| {
        let is = |p: &ImagePath| {
            let file = p.file_name();
            let numbered = |rest: &[u8]| rest.iter().all(|b| b.is_ascii_digit() || *b == b'-' || *b == b'.');
            file == name.as_bytes() || file.strip_prefix(name.as_bytes()).is_some_and(numbered)
        };
        evidence.landmarks.iter().any(is)
    };
    let installed = |name: &String| evidence.packages.iter().any(|p| package_name(&p.name) == *name);
    let mut out = Vec::new();
    for package in &evidence.packages {
        let Some(row) = catalog.libraries().jits().iter().find(|j| j.is_dist(&package.name)) else { continue };
        let spared = row.unless.iter().any(installed)
            || row.unless_env.iter().any(|name| evidence.image.config.var(name).is_some());
        if spared {
            continue;
        }
        let groups = row.needs.iter().zip(&row.what).zip(&row.symptoms);
        let (lacking, symptoms): (Vec<&str>, Vec<&str>) = groups
            .filter(|((group, _), _)| !group.iter().any(|name| has(name)))
            .map(|((_, what), symptom)| (what.as_str(), symptom.as_str()))
            .unzip();
        let Some(symptom) = symptoms.first() else { continue };
        // What only may compile is a note.
        let torch = evidence.packages.iter().any(|p| package_name(&p.name) == "torch");
        let sure = row.only_with.is_empty() || !torch || row.only_with.iter().any(installed);
        let verdict = if sure { Verdict::Warn } else { Verdict::Ok };
        let component = evidence.component_named(&package.name);
        let name = match (&component, &package.version) {
            (Some(_), _) => String::new(),
            (None, Some(version)) => {
                format!("{} {}: ", escape(package.name.as_bytes()), escape(version.as_bytes()))
            }
            (None, None) => format!("{}: ", escape(package.name.as_bytes())),
        };
        let what = lacking.join(", ");
        let message = format!(
            "{name}compiles at run time, and the image has no {}: \"{symptom}\"",
            lacking.iter().map(|w| bare(w)).collect::<Vec<_>>().join(", no ")
        );
        out.push(Problem {
            because: vec![row.because()],
            component,
            step: StepKind::Compiler,
            confidence: if sure { Confidence::High } else { Confidence::Low },
            ..Problem::new("jit-compiler-missing", verdict, message, format!("add {what} to the image"))
        });
    }
    out
}

/// Without its article: "no C compiler".
fn bare(what: &str) -> &str {
    what.strip_prefix("a ").or(what.strip_prefix("the ")).unwrap_or(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_target;
    use crate::lint::lab::Lab;
    use crate::model::{FileFacts, FileKind, ToolFacts, ToolKind};

    fn image(triton: &str, files: &[(&str, &str)]) -> Lab {
        let mut lab = Lab::new();
        let component = lab.component("triton", triton);
        for (path, cuda) in files {
            let mut facts = FileFacts::new(FileKind::Executable, 1);
            facts.tool = Some(ToolFacts { kind: ToolKind::Ptxas, cuda: cuda.parse().ok(), newest: None });
            lab.0.files.push(EvidenceFile {
                path: ImagePath::new(format!("v/{path}")),
                layer: None,
                facts: facts.into(),
                component: Some(component),
                in_archive: false,
            });
        }
        lab
    }

    fn found(lab: &Lab, target: &str) -> Vec<Problem> {
        let catalog = Catalog::embedded();
        let target = parse_target(target, catalog).unwrap();
        too_old(&target, &lab.0, &[Role::Optional], catalog)
    }

    const PTXAS: &str = "triton/backends/nvidia/bin/ptxas";
    const BLACKWELL: &str = "triton/backends/nvidia/bin/ptxas-blackwell";

    #[test]
    fn the_compiler_that_is_taken_must_know_the_target() {
        let old = image("3.5.0", &[(PTXAS, "12.8")]);
        let problems = found(&old, "sm_121");
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].verdict, Verdict::Warn);
        assert!(problems[0].message.contains("CUDA 12.8") && problems[0].message.contains("sm_121"));
        assert!(problems[0].help.contains("TRITON_PTXAS_PATH") && problems[0].help.contains("12.9"));
        assert!(found(&old, "b200").is_empty());
        let two = image("3.9.0", &[(PTXAS, "12.8"), (BLACKWELL, "13.1")]);
        assert!(found(&two, "sm_121").is_empty());
        // A capability that the newer compiler dropped, which takes the older one.
        assert!(found(&two, "v100").is_empty());
    }

    #[test]
    fn a_variable_may_name_another_compiler() {
        let mut lab = image("3.5.0", &[("other/ptxas", "13.0"), (PTXAS, "12.8")]);
        lab.0.image.config.env.push(("TRITON_PTXAS_PATH".into(), "/v/other/ptxas".into()));
        assert!(found(&lab, "sm_121").is_empty());
    }
}
