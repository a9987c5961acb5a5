//! A framework built without a GPU in an image that is meant for one.

use crate::catalog::Catalog;
use crate::lint::{Problem, words};
use crate::model::{ClaimKind, Evidence, Manager, Package, Verdict, escape, package_name};
use crate::report::Role;

pub fn problems(evidence: &Evidence, roles: &[Role], catalog: &Catalog) -> Vec<Problem> {
    let Some(claim) = gpu_claim(evidence) else { return Vec::new() };
    // Another framework that has GPU code may be what the image is for.
    let other = roles.iter().position(|r| *r == Role::Core);
    let mut out = Vec::new();
    for row in catalog.libraries().cpu_builds() {
        let packages: Vec<&Package> = evidence.packages.iter().filter(|p| row.is_dist(&p.name)).collect();
        let reasons: Vec<(&Package, String)> =
            packages.iter().filter_map(|p| Some((*p, cpu_only(evidence, p)?))).collect();
        let Some((package, _)) = reasons.first() else { continue };
        let why = reasons.iter().map(|r| r.1.as_str()).collect::<Vec<_>>().join("; ");
        let framework = |index: usize| {
            let c = &evidence.components[index];
            catalog.components().framework_of_package(c.manager, &c.name).map(|r| r.name.as_str())
        };
        // A second copy (conda's and pip's) may be the one with GPU code.
        if (0..roles.len()).any(|i| roles[i] == Role::Core && framework(i) == Some(row.name.as_str())) {
            continue;
        }
        let component = evidence.component_named(&package.name);
        let label = match (component, &package.version) {
            (Some(_), _) => String::new(),
            (None, Some(version)) => {
                format!("{} {} is ", escape(package.name.as_bytes()), escape(version.as_bytes()))
            }
            (None, None) => format!("{} is ", escape(package.name.as_bytes())),
        };
        let verdict = if other.is_some() { Verdict::Ok } else { Verdict::Cpu };
        let beside = match other {
            Some(index) => format!(" ({} has GPU code)", words::component(&evidence.components[index])),
            None => String::new(),
        };
        let message = format!(
            "{label}a build without GPU support ({why}), in an image that {claim}{beside}: it runs on the CPU, \
             without an error"
        );
        out.push(Problem {
            because: vec![row.because()],
            path: evidence
                .claims
                .iter()
                .find(|c| c.kind == ClaimKind::CpuOnly && c.component == package.name)
                .map(|c| c.said_by.clone()),
            component,
            ..Problem::new("cpu-build-in-gpu-image", verdict, message, row.fix.clone())
        });
    }
    out
}

/// Why a package is known to be built without a GPU.
fn cpu_only(evidence: &Evidence, package: &Package) -> Option<String> {
    if package.manager == Manager::Conda
        && let Some(build) = package.build.as_deref().filter(|b| b.starts_with("cpu"))
    {
        let from = package.channel.as_ref().map(|c| format!(" of {}", escape(c.as_bytes())));
        return Some(format!("conda build {}{}", escape(build.as_bytes()), from.unwrap_or_default()));
    }
    let name = package_name(&package.name);
    let says = |kind: ClaimKind| evidence.claim(&name, kind);
    if says(ClaimKind::Cuda).is_some() || says(ClaimKind::Rocm).is_some() {
        return None;
    }
    if name.ends_with("-cpu") {
        return Some("its name says so".to_owned());
    }
    let claim = says(ClaimKind::CpuOnly)?;
    Some(format!("`{}` says {}", claim.said_by, escape(claim.value.as_bytes())))
}

/// What in the image says that it is meant for GPUs.
fn gpu_claim(evidence: &Evidence) -> Option<String> {
    let config = &evidence.image.config;
    if let Some(toolkit) = evidence.toolkits.first() {
        let (kind, version) = (toolkit.kind.name(), escape(toolkit.version.as_bytes()));
        return Some(format!("has {kind} {version} in `{}`", toolkit.path));
    }
    for name in ["NVIDIA_REQUIRE_CUDA", "CUDA_VERSION", "NVIDIA_VISIBLE_DEVICES"] {
        let value = config.var(name).filter(|v| !v.is_empty() && !matches!(*v, "void" | "none"));
        if value.is_some() {
            return Some(format!("sets {name}"));
        }
    }
    let label = config.labels.iter().find(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let says = |word: &str| name.split(['.', '-', '_', '/']).any(|part| part == word);
        (says("gpu") || says("cuda"))
            && !matches!(value.to_ascii_lowercase().as_str(), "" | "false" | "no" | "0" | "none")
    });
    if let Some((name, value)) = label {
        return Some(format!("is labelled {}={}", escape(name.as_bytes()), escape(value.as_bytes())));
    }
    let driver = evidence.packages.iter().find(|p| p.manager == Manager::Pip && p.name.starts_with("nvidia-cu"));
    driver.map(|p| format!("has {}", escape(p.name.as_bytes())))
}
