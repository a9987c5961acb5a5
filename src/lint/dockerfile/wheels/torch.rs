//! Which build of PyTorch a `pip install` takes: its version, the index it comes from, and that index's CUDA.

use super::source::{Configured, is_left_out, of_project, source};
use crate::catalog::bases::BaseFamily;
use crate::catalog::wheels::index_cuda;
use crate::dockerfile::commands::{Asked, PipInstall, PythonTool, Requirement};
use crate::dockerfile::shell::{Command, When};
use crate::dockerfile::span::Span;
use crate::dockerfile::value::Trail;
use crate::lint::dockerfile::Lint;
use crate::model::CudaVersion;

/// The wheel of torch that one command installs.
pub struct Torch<'a> {
    pub install: &'a PipInstall,
    pub command: &'a Command,
    pub stage: usize,
    /// The version that is asked for, without the local part.
    pub version: Option<String>,
    /// What narrows it where it is not pinned: ">=2.4,<2.7", or nothing.
    pub specifier: String,
    pub from: From,
    /// The requirement's place.
    pub asked: Span,
    /// The package that decides the version, where it is not torch itself: "torchvision 0.21.0".
    pub through: Option<String>,
    /// The version names its index: "2.6.0+cu124".
    pub local: bool,
    /// Rows that this rests on.
    pub because: Vec<String>,
}

/// Where the wheel comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// An index of PyTorch's, named by an option, a variable or the version's local part.
    Index {
        name: String,
        span: Span,
        trail: Vec<Trail>,
        moving: bool,
    },
    /// PyPI, which has one build for each version.
    Pypi,
    Unknown,
}

impl Torch<'_> {
    /// "cu124", "cpu"; for PyPI that of its build, where the version is known.
    pub fn index(&self, lint: &Lint<'_>) -> Option<String> {
        match &self.from {
            From::Index { name, .. } => Some(name.clone()),
            From::Pypi => default_index(lint, self.version.as_deref()?),
            From::Unknown => None,
        }
    }

    pub fn cuda(&self, lint: &Lint<'_>) -> Option<CudaVersion> {
        index_cuda(&self.index(lint)?)
    }

    /// Nightly builds and release candidates, whose architectures no table knows.
    pub fn is_moving(&self) -> bool {
        let dev = self.version.as_deref().is_some_and(|v| v.contains("dev") || v.contains("rc") || v.contains('a'));
        dev || matches!(self.from, From::Index { moving: true, .. })
    }

    /// Whether the index has the version, as far as rows say.
    pub fn exists(&self, lint: &Lint<'_>) -> bool {
        let (Some(version), From::Index { name, .. }) = (&self.version, &self.from) else { return true };
        let known = lint.catalog.wheels().torch_indexes(version);
        known.is_empty() || known.iter().any(|(index, _)| index == name)
    }

    /// Runs perhaps, or not at all.
    pub fn maybe(&self) -> bool {
        self.command.when != When::Build || self.command.guessed
    }

    /// Which index pip takes it from is a matter of what is on them, and of what the base has.
    pub fn is_loose(&self, lint: &Lint<'_>) -> bool {
        let base = lint.base(self.stage);
        let known = base.is_some_and(|b| b.family != BaseFamily::Other);
        let named = self.install.index.as_ref().is_some_and(|i| Some(i.span) == self.index_span());
        !known && !self.local || self.version.is_none() && !named && matches!(self.from, From::Index { .. })
    }

    fn index_span(&self) -> Option<Span> {
        match &self.from {
            From::Index { span, .. } => Some(*span),
            From::Pypi | From::Unknown => None,
        }
    }

    /// What is to blame for the build that is taken.
    pub fn place(&self) -> Span {
        match &self.from {
            From::Index { span, .. } => *span,
            From::Pypi | From::Unknown => self.asked,
        }
    }

    /// "torch 2.6.0 of the index cu124, from ARG CUDA in line 3".
    pub fn told(&self, lint: &Lint<'_>) -> String {
        let version = self.version.as_deref().map_or(String::new(), |v| format!(" {v}"));
        let through = self.through.as_deref().map_or(String::new(), |t| format!(" (for {t})"));
        match &self.from {
            From::Index { name, trail, .. } => {
                format!("torch{version}{through} of the index {name}{}", lint.trail(trail))
            }
            From::Pypi => format!("torch{version}{through} of PyPI"),
            From::Unknown => format!("torch{version}{through}"),
        }
    }
}

/// The index whose build of a version PyPI has. Patches of one minor have the same.
pub fn default_index(lint: &Lint<'_>, version: &str) -> Option<String> {
    let minor = |v: &str| v.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    let rows = lint.catalog.wheels().defaults();
    let exact = rows.iter().find(|r| r.torch == version);
    exact.or_else(|| rows.iter().find(|r| minor(&r.torch) == minor(version))).map(|r| r.index.clone())
}

/// Installs of torch that are looked at; a file has a few.
const MOST: usize = 64;

/// All of them, in the order of the file.
pub fn all<'a>(lint: &'a Lint<'_>) -> Vec<Torch<'a>> {
    let configured = Configured::of(lint);
    lint.asks.pip.iter().filter_map(|install| of(lint, install, &configured)).take(MOST).collect()
}

/// Those that are in the image in the end: not replaced, not removed, not there before.
pub fn kept<'a>(lint: &'a Lint<'_>) -> Vec<Torch<'a>> {
    let all = all(lint);
    let shipped = lint.python_stages();
    let stays = |(at, torch): (usize, &Torch<'_>)| {
        let later = all.get(at + 1..).unwrap_or_default().iter();
        let replaced = later.filter(|o| follows(lint, torch, o)).any(|o| !is_there(lint, o, &all) && !o.maybe());
        let settled = torch.install.tool != PythonTool::Project && synced(lint, torch);
        shipped.contains(&torch.stage)
            && !replaced
            && !settled
            && !is_there(lint, torch, &all)
            && !removed(lint, torch)
    };
    let keep: Vec<bool> = all.iter().enumerate().map(stays).collect();
    all.into_iter().zip(keep).filter_map(|(torch, keep)| keep.then_some(torch)).collect()
}

/// Whether a project's lock file has the last word: `uv sync` takes away what it does not name.
fn synced(lint: &Lint<'_>, torch: &Torch<'_>) -> bool {
    let mut projects = lint.asks.pip.iter().filter(|p| p.tool == PythonTool::Project);
    projects.any(|p| {
        let command = lint.reading.commands.get(p.command);
        command.is_some_and(|c| c.span > torch.command.span && lint.built(c.instruction) && c.when != When::Start)
    })
}

/// Whether a later command works on the same packages.
pub fn follows(lint: &Lint<'_>, first: &Torch<'_>, later: &Torch<'_>) -> bool {
    later.command.span > first.command.span
        && lint.chain(later.stage).contains(&first.stage)
        && environment(first.command) == environment(later.command)
}

/// Whose packages a command changes: the folder that its program is named in; empty where PATH decides.
pub fn environment(command: &Command) -> &str {
    let word = command.words.first().and_then(|w| w.text.value.known()).unwrap_or_default();
    word.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Whether pip would find the requirement met already, or may.
fn is_there(lint: &Lint<'_>, torch: &Torch<'_>, all: &[Torch<'_>]) -> bool {
    let forced = |w: &str| matches!(w, "--force-reinstall" | "--ignore-installed" | "-I" | "--reinstall");
    if torch.install.upgrade || has(torch.command, forced) {
        return false;
    }
    let pinned = torch.version.is_some();
    if !pinned && all.iter().any(|o| follows(lint, o, torch)) {
        return true;
    }
    match lint.base(torch.stage) {
        Some(base) if base.torch.is_some() => !pinned || base.torch == torch.version,
        Some(base) if matches!(base.family, BaseFamily::NvidiaCuda | BaseFamily::Distro) => false,
        Some(base) if base.family == BaseFamily::NvidiaNgc => !pinned,
        // A base that may have it, in another build of the same version.
        _ => !pinned || torch.from == From::Pypi,
    }
}

fn removed(lint: &Lint<'_>, torch: &Torch<'_>) -> bool {
    let mut later = lint.build_commands().filter(|(_, c)| c.span > torch.command.span);
    later.any(|(_, c)| has(c, |w| w == "uninstall") && has(c, |w| w == "torch"))
}

/// Whether an argument is such.
pub(super) fn has(command: &Command, is: impl Fn(&str) -> bool) -> bool {
    command.args().iter().any(|a| a.text.value.known().is_some_and(&is))
}

fn of<'a>(lint: &'a Lint<'_>, install: &'a PipInstall, configured: &Configured) -> Option<Torch<'a>> {
    let command = lint.reading.commands.get(install.command)?;
    if command.when == When::Start
        || !lint.built(command.instruction)
        || install.no_binary.iter().any(|n| n == "torch" || n == ":all:")
        || has(command, |w| w == "--dry-run")
    {
        return None;
    }
    let (stage, _) = lint.stage_of(command.instruction)?;
    let mut named = install.requirements.iter().filter(|r| r.name == "torch");
    let (first, second) = (named.next(), named.next());
    let sure = |r: &Requirement| !r.unsure && r.marker.is_none();
    if second.is_some() || first.is_some_and(|r| !sure(r)) {
        return None;
    }
    let pinned = first.and_then(version_of);
    let mut because = Vec::new();
    let mut through = None;
    let mut version = pinned.as_deref().map(|v| v.split('+').next().unwrap_or(v).to_owned());
    let mut decider = first;
    if version.is_none() {
        let own = |r: &&Requirement| r.name != "torch" && sure(r) && r.url.is_none();
        for other in install.requirements.iter().filter(own).filter(|_| !install.no_deps) {
            let Some(pin) = other.pinned() else { continue };
            let Some(known) = lint.catalog.wheels().torch_of(&other.name, pin).filter(|k| k.sure) else { continue };
            version = Some(known.version);
            because.push(known.because);
            through = Some(format!("{} {pin}", other.name));
            decider = first.or(Some(other));
            break;
        }
    }
    let decider = decider?;
    // Constraints that could not be read may pin it.
    if version.is_none() && (!install.constraints.is_empty() || install.files.iter().any(|(_, read)| !read)) {
        return None;
    }
    let specifier: Vec<String> = decider.specifiers.iter().map(|(op, v)| format!("{op}{v}")).collect();
    let asked = match &decider.asked {
        Asked::Here(span) => *span,
        Asked::File { .. } => command.span,
    };
    let specifier = if decider.name == "torch" { specifier.join(",") } else { String::new() };
    let local = local_part(pinned.as_deref())
        .or_else(|| decider.pinned().filter(|_| decider.name != "torch").and_then(|v| local_part(Some(v))));
    let local_named = local.is_some();
    let from = match local {
        Some(name) => From::Index { name, span: asked, trail: Vec::new(), moving: false },
        None if decider.url.is_some() => From::Unknown,
        None if install.tool == PythonTool::Project => of_project(lint, install, version.as_deref()),
        None if configured.before(lint, command) || is_left_out(install, command) => From::Unknown,
        None => source(lint, install, command, version.as_deref(), &specifier),
    };
    Some(Torch { install, command, stage, version, specifier, from, asked, through, local: local_named, because })
}

/// "cu124" of "2.6.0+cu124", "cpu" of "2.6.0+cpu".
fn local_part(version: Option<&str>) -> Option<String> {
    let (_, local) = version?.split_once('+')?;
    Some(local.split('.').next().unwrap_or(local).to_ascii_lowercase())
}

/// The version that `==` names, or a wheel's file name.
fn version_of(requirement: &Requirement) -> Option<String> {
    if let Some(url) = &requirement.url {
        let file = url.split(['#', '?']).next()?.rsplit('/').next()?.strip_suffix(".whl")?;
        let version = file.strip_prefix("torch-")?.split('-').next()?;
        return Some(version.replace("%2B", "+").replace("%2b", "+"));
    }
    requirement.pinned().map(str::to_owned)
}
