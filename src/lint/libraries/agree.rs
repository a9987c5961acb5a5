//! What an image says about its CUDA, side by side, when parts of it do not go together.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Catalog;
use crate::lint::Problem;
use crate::model::{
    Claim, ClaimKind, Confidence, CudaVersion, Evidence, Maker, Manager, Package, ToolkitKind, Verdict, escape,
};

/// NVIDIA libraries whose SONAME is the same for every CUDA major: of these only the package tells.
const SAME_SONAME: [&str; 4] = ["nvidia-cudnn", "nvidia-nccl", "nvidia-cusparselt", "nvidia-nvshmem"];

/// At most one problem that shows all statements.
pub fn problems(evidence: &Evidence, catalog: &Catalog) -> Vec<Problem> {
    let mut reasons: Vec<(Verdict, String)> = Vec::new();
    let mut path = None;
    for (component, claims) in claims(evidence) {
        let said: BTreeSet<CudaVersion> = claims.iter().filter_map(|c| c.value.parse().ok()).collect();
        let (Some(low), Some(high)) = (said.first(), said.last()) else { continue };
        // "12" (a package's name) agrees with every 12.x.
        let both = claims.iter().filter(|c| c.value.contains('.')).count() > 1;
        if low.major != high.major || (both && low != high && low.minor != 0) {
            let sides: Vec<String> = claims.iter().map(|c| format!("{} says {}", c.said_by, c.value)).collect();
            reasons.push((
                Verdict::Warn,
                format!(
                    "{}'s own files disagree about its CUDA ({})",
                    escape(component.as_bytes()),
                    sides.join(", ")
                ),
            ));
            path = path.or_else(|| claims.first().map(|c| c.said_by.clone()));
        }
    }
    let torch = evidence.cuda_of("torch");
    for base in SAME_SONAME {
        let brought = brought(evidence, base);
        let majors: BTreeSet<u16> = brought.keys().copied().collect();
        if majors.len() > 1 {
            let names: Vec<String> = brought.values().map(|p| escape(p.name.as_bytes())).collect();
            reasons.push((
                Verdict::Warn,
                format!(
                    "{} install the same files, one over the other: which CUDA they are for is a matter of chance",
                    names.join(" and ")
                ),
            ));
        } else if let (Some(torch), Some((major, package))) = (torch, brought.iter().next())
            && torch.major != *major
        {
            reasons.push((
                Verdict::Warn,
                format!("torch is built for CUDA {torch}, {} is for CUDA {major}", escape(package.name.as_bytes())),
            ));
        }
    }
    if let Some(torch) = torch {
        let nvcc = |p: &&crate::model::ImagePath| p.file_name() == b"nvcc";
        let toolkit = evidence.toolkits_of(ToolkitKind::Cuda).find(|t| {
            let inside = |p: &&crate::model::ImagePath| p.as_bytes().starts_with(t.path.as_bytes());
            evidence.landmarks.iter().filter(nvcc).any(|p| inside(&p))
        });
        if let Some(toolkit) = toolkit
            && let Ok(version) = toolkit.version.parse::<CudaVersion>()
            && version.major != torch.major
        {
            let users = evidence.packages.iter().any(|p| {
                let jits = catalog.libraries().jits();
                p.manager == Manager::Pip && jits.iter().any(|j| j.needs_nvcc() && j.is_dist(&p.name))
            });
            let verdict = if users { Verdict::Warn } else { Verdict::Ok };
            reasons.push((
                verdict,
                format!(
                    "nvcc in `{}` is of CUDA {version}, torch is built for {torch}: extensions compiled here stop with \
                     \"The detected CUDA version mismatches the version that was used to compile PyTorch\"",
                    toolkit.path
                ),
            ));
        }
    }
    let Some(worst) = reasons.iter().map(|(verdict, _)| *verdict).min() else { return Vec::new() };
    let message = reasons.into_iter().map(|(_, what)| what).collect::<Vec<_>>().join("; ");
    let help = "make them one: install the framework and its nvidia-* packages anew from one index";
    vec![Problem {
        because: statements(evidence),
        path,
        confidence: Confidence::Medium,
        maker: Some(Maker::Nvidia),
        ..Problem::new("versions-disagree", worst, message, help)
    }]
}

/// CUDA claims by component.
fn claims(evidence: &Evidence) -> BTreeMap<&str, Vec<&Claim>> {
    let mut out: BTreeMap<&str, Vec<&Claim>> = BTreeMap::new();
    for claim in evidence.claims.iter().filter(|c| c.kind == ClaimKind::Cuda) {
        out.entry(&claim.component).or_default().push(claim);
    }
    out
}

/// Packages of one NVIDIA library by the CUDA major they are for.
fn brought<'a>(evidence: &'a Evidence, base: &str) -> BTreeMap<u16, &'a Package> {
    let pip = evidence.packages.iter().filter(|p| p.manager == Manager::Pip);
    pip.filter_map(|p| {
        let major = p.name.strip_prefix(base)?.strip_prefix("-cu")?;
        Some((major.parse().ok()?, p))
    })
    .collect()
}

/// Everything that names a CUDA release.
fn statements(evidence: &Evidence) -> Vec<String> {
    let mut out = Vec::new();
    for claim in &evidence.claims {
        let what = match claim.kind {
            ClaimKind::Cuda => "CUDA",
            ClaimKind::Cudnn => "cuDNN",
            ClaimKind::Rocm => "ROCm",
            ClaimKind::Xpu => "SYCL",
            ClaimKind::CpuOnly => continue,
        };
        // What only the name of one of NVIDIA's packages says is listed with those that matter.
        if claim.component.starts_with("nvidia-") && !claim.value.contains('.') {
            continue;
        }
        let (component, value) = (escape(claim.component.as_bytes()), escape(claim.value.as_bytes()));
        out.push(format!("{component}: {what} {value} ({})", claim.said_by));
    }
    for toolkit in &evidence.toolkits {
        let (kind, version) = (toolkit.kind.name(), escape(toolkit.version.as_bytes()));
        out.push(format!("{}: {kind} {version} ({})", toolkit.path, toolkit.said_by));
    }
    for name in ["CUDA_VERSION", "NVIDIA_REQUIRE_CUDA", "NV_CUDNN_VERSION", "NCCL_VERSION"] {
        if let Some(value) = evidence.image.config.var(name) {
            out.push(format!("{name}={} (image config)", escape(value.as_bytes())));
        }
    }
    for base in SAME_SONAME {
        for package in brought(evidence, base).values() {
            let version = package.version.as_deref().unwrap_or("?");
            out.push(format!("{} {}", escape(package.name.as_bytes()), escape(version.as_bytes())));
        }
    }
    out
}
