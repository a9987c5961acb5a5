//! Python packages of an image that are built for one CUDA, and whether what they need is there.

use std::collections::BTreeMap;

use super::toolkit;
use super::torch::{self, Torch, environment};
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

/// Requirements that are looked at; lock files hold some hundreds.
const MOST: usize = 4096;

/// Packages that a rule speaks of.
pub const MOST_TOLD: usize = 64;

fn installed<'a>(lint: &'a Lint<'_>) -> Vec<Package<'a>> {
    let shipped = lint.python_stages();
    let mut out = Vec::new();
    for install in &lint.asks.pip {
        let Some(command) = lint.reading.commands.get(install.command).filter(|c| surely(c.when) && !c.guessed)
        else {
            continue;
        };
        let stage = lint.stage_of(command.instruction).map(|(s, _)| s);
        let Some(stage) = stage.filter(|s| shipped.contains(s) && out.len() < MOST) else { continue };
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
    out.truncate(MOST);
    let removals = removals(lint);
    // What a later command removes or pins anew does not count.
    let mut last: BTreeMap<(&str, &str), Option<&str>> = BTreeMap::new();
    let mut keep = vec![true; out.len()];
    for (package, keep) in out.iter().zip(&mut keep).rev() {
        let key = (package.requirement.name.as_str(), environment(package.command));
        let pin = package.requirement.pinned();
        let anew = last.get(&key).is_some_and(|later| later.is_some() && *later != pin);
        let removed = removals.get(key.0).is_some_and(|span| *span > package.command.span);
        *keep = !anew && !removed;
        if pin.is_some() || !last.contains_key(&key) {
            last.insert(key, pin);
        }
    }
    out.into_iter().zip(keep).filter_map(|(p, keep)| keep.then_some(p)).collect()
}

/// Packages that are uninstalled, with the last place where they are.
fn removals<'a>(lint: &'a Lint<'_>) -> BTreeMap<&'a str, Span> {
    let mut out = BTreeMap::new();
    for (_, command) in lint.build_commands() {
        let mut words = command.args().iter().filter_map(|a| a.text.value.known());
        if words.any(|w| w == "uninstall") {
            out.extend(words.map(|w| (w, command.span)));
        }
    }
    out
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

/// What pip puts into a file's environments.
pub struct Installed<'a> {
    pub packages: Vec<Package<'a>>,
    torches: Vec<Torch<'a>>,
}

impl<'a> Installed<'a> {
    pub fn of(lint: &'a Lint<'_>) -> Self {
        Self { packages: installed(lint), torches: torch::all(lint) }
    }

    /// Whether pip brings a library that a package wants: an extra named cuda, `nvidia-cublas-cu12`, torch, which has
    /// all of its own CUDA (of the major that is wanted, where one is).
    pub fn brings(
        &self,
        lint: &Lint<'_>,
        package: &Package<'_>,
        library: &str,
        major: impl Into<Option<u16>>,
    ) -> bool {
        let major = major.into();
        let extra = package.requirement.extras.iter().any(|e| e.starts_with("cuda") || e == "cudnn" || e == "ctk");
        let wheel = || {
            self.packages.iter().any(|p| {
                let name = &p.requirement.name;
                let brings = name.starts_with("nvidia-") && name.contains(library)
                    || lint.catalog.wheels().ever_wants(name, "torch");
                brings && together(lint, package, p)
            })
        };
        let torch = || {
            self.torches.iter().any(|t| {
                let here =
                    lint.chain(package.stage).contains(&t.stage) || lint.chain(t.stage).contains(&package.stage);
                let same = environment(t.command) == environment(package.command);
                here && same && t.cuda(lint).is_none_or(|c| major.is_none_or(|m| c.major == m))
            })
        };
        // What a base has in Python is not known but for its torch.
        let base = match lint.base(package.stage) {
            Some(base) => !matches!(base.family, BaseFamily::NvidiaCuda | BaseFamily::Distro),
            None => true,
        };
        extra || base || torch() || wheel()
    }
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
