//! Python packages of an image that are built for one CUDA, and whether what they need is there.

use super::toolkit;
use super::torch::{self, environment};
use crate::catalog::bases::{BaseFamily, Flavour};
use crate::catalog::system_packages::SystemKind;
use crate::catalog::wheel_cuda::PackageCuda;
use crate::dockerfile::commands::{Asked, Requirement, surely};
use crate::dockerfile::shell::Command;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::Lint;

/// One requirement that surely is installed into the image.
pub struct Package<'a> {
    pub requirement: &'a Requirement,
    pub command: &'a Command,
    pub stage: usize,
    pub span: Span,
    /// The URL of the index it is asked of, where one is named.
    pub index: Option<&'a str>,
}

impl Package<'_> {
    pub fn known(&self, lint: &Lint<'_>) -> Option<PackageCuda> {
        let version = self.requirement.pinned().unwrap_or_default();
        lint.catalog.wheels().package_cuda_from(&self.requirement.name, version, self.index)
    }

    /// "onnxruntime-gpu 1.17.1".
    pub fn told(&self) -> String {
        match self.requirement.pinned() {
            Some(version) => format!("{} {version}", self.requirement.name),
            None => self.requirement.name.clone(),
        }
    }
}

pub fn installed<'a>(lint: &'a Lint<'_>) -> Vec<Package<'a>> {
    let mut out = Vec::new();
    for install in &lint.asks.pip {
        let Some(command) = lint.reading.commands.get(install.command).filter(|c| surely(c.when) && !c.guessed)
        else {
            continue;
        };
        let Some((stage, _)) = lint.stage_of(command.instruction).filter(|(s, _)| lint.ships_python(*s)) else {
            continue;
        };
        let dry = command.args().iter().any(|a| a.text.value.known() == Some("--dry-run"));
        let urls = install.index.iter().chain(&install.extra_indexes).chain(&install.find_links);
        let index = urls.filter_map(|s| s.text.value.known()).next();
        for requirement in install.requirements.iter().filter(|r| !r.unsure && r.marker.is_none() && !dry) {
            let span = match &requirement.asked {
                Asked::Here(span) => *span,
                Asked::File { .. } => command.span,
            };
            out.push(Package { requirement, command, stage, span, index });
        }
    }
    // What a later command removes or pins anew does not count.
    let replaced = |at: usize, package: &Package<'_>| {
        out.get(at + 1..).unwrap_or_default().iter().any(|later| {
            later.requirement.name == package.requirement.name
                && later.requirement.pinned().is_some_and(|v| package.requirement.pinned() != Some(v))
                && environment(later.command) == environment(package.command)
        }) || uninstalled(lint, package)
    };
    let keep: Vec<bool> = out.iter().enumerate().map(|(at, p)| !replaced(at, p)).collect();
    out.into_iter().zip(keep).filter_map(|(p, keep)| keep.then_some(p)).collect()
}

fn uninstalled(lint: &Lint<'_>, package: &Package<'_>) -> bool {
    lint.build_commands().any(|(_, c)| {
        let mut words = c.args().iter().filter_map(|a| a.text.value.known());
        c.span > package.command.span
            && words.clone().any(|w| w == "uninstall")
            && words.any(|w| w == package.requirement.name)
    })
}

/// Whether two packages come into one environment.
pub fn together(lint: &Lint<'_>, a: &Package<'_>, b: &Package<'_>) -> bool {
    let joined =
        a.stage == b.stage || lint.chain(a.stage).contains(&b.stage) || lint.chain(b.stage).contains(&a.stage);
    joined && environment(a.command) == environment(b.command)
}

/// The major of CUDA whose libraries a stage's base has, where they are surely the only ones.
pub fn base_major(lint: &Lint<'_>, stage: usize) -> Option<(u16, String, String)> {
    let (base, cuda) = toolkit::of_base(lint, stage)?;
    let libraries = matches!(base.flavour, Some(Flavour::Runtime | Flavour::Devel));
    libraries.then(|| (cuda.major, toolkit::name(&base), base.because.clone()))
}

/// Whether pip brings a library that a package wants: an extra named cuda, `nvidia-cublas-cu12`, torch, which has all of
/// its own CUDA.
pub fn brought_by_pip(
    lint: &Lint<'_>,
    packages: &[Package<'_>],
    package: &Package<'_>,
    library: &str,
    major: u16,
) -> bool {
    let extra = package.requirement.extras.iter().any(|e| e.starts_with("cuda") || e == "cudnn" || e == "ctk");
    let same = |p: &&Package<'_>| together(lint, package, p);
    let wheel = packages.iter().filter(same).any(|p| {
        let name = &p.requirement.name;
        name.starts_with("nvidia-") && name.contains(library) || lint.catalog.wheels().ever_wants(name, "torch")
    });
    let torch = torch::all(lint).iter().any(|t| {
        let here = lint.chain(package.stage).contains(&t.stage) || lint.chain(t.stage).contains(&package.stage);
        let same = environment(t.command) == environment(package.command);
        here && same && t.cuda(lint).is_none_or(|c| c.major == major)
    });
    // What a base has in Python is not known but for its torch.
    let base = match lint.base(package.stage) {
        Some(base) => !matches!(base.family, BaseFamily::NvidiaCuda | BaseFamily::Distro),
        None => true,
    };
    extra || wheel || torch || base
}

/// The cuDNN major of a package of the system's, where a stage installs one: none where it is not told.
pub fn system_cudnn(lint: &Lint<'_>, stage: usize) -> Option<Option<u32>> {
    let chain = lint.chain(stage);
    let here = |command: usize| {
        let command = lint.reading.commands.get(command);
        command.and_then(|c| lint.stage_of(c.instruction)).is_some_and(|(at, _)| chain.contains(&at))
    };
    let packages = lint.asks.system.iter().filter(|s| here(s.command)).flat_map(|s| &s.packages);
    let mut known = packages.filter_map(|p| {
        let known = lint.catalog.system_packages().classify(&p.name, p.version.as_deref())?;
        (known.kind == SystemKind::CudaLibrary && known.library.as_deref() == Some("cudnn")).then_some(known.major)
    });
    known.next_back()
}
