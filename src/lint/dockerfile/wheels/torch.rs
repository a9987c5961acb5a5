//! Which build of PyTorch a `pip install` takes: its version, the index it comes from, and that index's CUDA.

use crate::catalog::bases::BaseFamily;
use crate::catalog::torch_index::TorchIndex;
use crate::catalog::wheels::index_cuda;
use crate::dockerfile::commands::{Asked, PipInstall, PythonTool, Requirement, Setting};
use crate::dockerfile::shell::{Command, When};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Keyword;
use crate::dockerfile::value::{Trail, Value};
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
fn default_index(lint: &Lint<'_>, version: &str) -> Option<String> {
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

fn has(command: &Command, is: impl Fn(&str) -> bool) -> bool {
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

/// A project may name an index for single packages, which is not known here.
fn of_project(lint: &Lint<'_>, install: &PipInstall, version: Option<&str>) -> From {
    let known = |s: &Setting| s.text.value.known().is_some_and(|u| lint.catalog.wheels().index_of_url(u).is_none());
    let plain = install.index.iter().chain(&install.extra_indexes).chain(&install.find_links).all(known);
    let locked = install.files.iter().any(|(file, _)| file.value.known().is_some_and(|f| f.ends_with(".lock")));
    if plain && locked && version.is_some() && install.torch_backend.is_none() { From::Pypi } else { From::Unknown }
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

/// Whether an index is named by a variable that is empty: whoever gives it another value takes another wheel.
fn is_left_out(install: &PipInstall, command: &Command) -> bool {
    let named = |w: &str| matches!(w, "--index-url" | "-i" | "--default-index") || w.starts_with("--index-url=");
    install.index.is_none() && install.tool != PythonTool::Project && has(command, named)
}

/// What one URL is.
#[derive(Debug)]
enum Kind {
    Torch(TorchIndex, Span, Vec<Trail>),
    Pypi,
    /// An index of something else.
    Other,
    Unknown,
}

fn kind(lint: &Lint<'_>, setting: &Setting) -> Kind {
    let Value::Known(url) = &setting.text.value else { return Kind::Unknown };
    if let Some(index) = lint.catalog.wheels().index_of_url(url) {
        return Kind::Torch(index, setting.span, setting.text.trail.clone());
    }
    // PyPI and its mirrors: https://pypi.tuna.tsinghua.edu.cn/simple.
    let is_pypi = url.contains("pypi") && url.trim_end_matches('/').ends_with("/simple");
    if is_pypi { Kind::Pypi } else { Kind::Other }
}

fn source(
    lint: &Lint<'_>,
    install: &PipInstall,
    command: &Command,
    version: Option<&str>,
    specifier: &str,
) -> From {
    if let Some(backend) = &install.torch_backend {
        return match backend.text.value.known() {
            Some(name) if name != "auto" => From::Index {
                name: name.to_owned(),
                span: backend.span,
                trail: backend.text.trail.clone(),
                moving: false,
            },
            _ => From::Unknown,
        };
    }
    let main = install.index.as_ref().map_or(Kind::Pypi, |s| kind(lint, s));
    let extras: Vec<Kind> = install.extra_indexes.iter().map(|s| kind(lint, s)).collect();
    let links: Vec<Kind> = install.find_links.iter().map(|s| kind(lint, s)).collect();
    let best = |w: &str| w.contains("unsafe-best-match");
    let by_order = install.tool == PythonTool::UvPip
        && !has(command, best)
        && !lint.seen(command, "UV_INDEX_STRATEGY").is_some_and(|(v, _)| v.known().is_none_or(best));
    if links.iter().any(|k| matches!(k, Kind::Unknown)) {
        return From::Unknown;
    }
    if by_order && links.is_empty() {
        // uv asks its extra indexes before the main one, and takes the first that has the package.
        return first_of(extras.into_iter().chain([main]));
    }
    best_of(lint, extras.into_iter().chain([main]).chain(links), version, specifier)
}

/// Configuration files of pip's and uv's, which may name other indexes.
struct Configured {
    copied: bool,
    /// The first command that writes one.
    written: Option<Span>,
}

impl Configured {
    fn of(lint: &Lint<'_>) -> Self {
        let copied = lint.reading.document.instructions.iter().any(|i| {
            matches!(i.keyword, Keyword::Copy | Keyword::Add) && is_config(lint.reading.document.slice(i.span))
        });
        let output = |c: &Command| c.output.as_ref().and_then(|o| o.value.known()).is_some_and(is_config);
        let mut commands = lint.build_commands().map(|(_, c)| c);
        let written = commands.find(|c| output(c)).map(|c| c.span);
        Self { copied, written }
    }

    fn before(&self, lint: &Lint<'_>, command: &Command) -> bool {
        let mount = lint.reading.instruction(command.instruction).is_some_and(|i| {
            i.flags.iter().any(|f| f.name == "mount" && f.value.as_ref().is_some_and(|v| is_config(&v.text)))
        });
        self.copied || mount || self.written.is_some_and(|w| w < command.span)
    }
}

fn is_config(text: &str) -> bool {
    text.contains("pip.conf") || text.contains("uv.toml") || text.contains(".config/pip")
}

fn first_of(kinds: impl Iterator<Item = Kind>) -> From {
    for kind in kinds {
        match kind {
            Kind::Torch(index, span, trail) if !index.name.is_empty() => {
                return From::Index { moving: index.nightly || index.test, name: index.name, span, trail };
            }
            Kind::Pypi => return From::Pypi,
            Kind::Torch(..) | Kind::Unknown => return From::Unknown,
            // An index without torch, most likely.
            Kind::Other => {}
        }
    }
    From::Unknown
}

/// pip looks at all of them, and takes the highest version; of the same, that with a local part.
fn best_of(lint: &Lint<'_>, kinds: impl Iterator<Item = Kind>, version: Option<&str>, specifier: &str) -> From {
    let (mut pypi, mut other, mut found) = (false, false, Vec::new());
    for kind in kinds {
        match kind {
            Kind::Torch(index, span, trail) => found.push((index, span, trail)),
            Kind::Pypi => pypi = true,
            Kind::Other => other = true,
            Kind::Unknown => return From::Unknown,
        }
    }
    let mut found = found.into_iter();
    let Some((index, span, trail)) = found.next() else {
        return if pypi && !other { From::Pypi } else { From::Unknown };
    };
    if found.any(|(o, ..)| o.name != index.name) || index.name.is_empty() {
        return From::Unknown;
    }
    let moving = index.nightly || index.test;
    let name = index.name;
    let taken = From::Index { name: name.clone(), span, trail, moving };
    if !pypi || moving {
        return if other && version.is_none() { From::Unknown } else { taken };
    }
    let wheels = lint.catalog.wheels();
    match version {
        Some(version) => {
            let known = wheels.torch_indexes(version);
            match known.iter().any(|(i, _)| *i == name) || name == "cpu" {
                true => taken,
                false if known.is_empty() => From::Unknown,
                false => From::Pypi,
            }
        }
        None => {
            let (there, here) = (wheels.newest_torch_on(&name, specifier), wheels.newest_torch(specifier));
            match (there, here) {
                (Some(there), Some(here)) if there.version == here.version => taken,
                (Some(_), Some(_)) => From::Pypi,
                _ => From::Unknown,
            }
        }
    }
}
