//! The index that pip or uv takes torch from, of those that options, variables and files name.

use super::torch::{From, has};
use crate::catalog::torch_index::TorchIndex;
use crate::dockerfile::commands::{PipInstall, PythonTool, Setting};
use crate::dockerfile::shell::Command;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Keyword;
use crate::dockerfile::value::{Trail, Value};
use crate::lint::dockerfile::Lint;

/// A project may name an index for single packages, which is not known here.
pub fn of_project(lint: &Lint<'_>, install: &PipInstall, version: Option<&str>) -> From {
    let known = |s: &Setting| s.text.value.known().is_some_and(|u| lint.catalog.wheels().index_of_url(u).is_none());
    let plain = install.index.iter().chain(&install.extra_indexes).chain(&install.find_links).all(known);
    let locked = install.files.iter().any(|(file, _)| file.value.known().is_some_and(|f| f.ends_with(".lock")));
    if plain && locked && version.is_some() && install.torch_backend.is_none() { From::Pypi } else { From::Unknown }
}

/// Whether an index is named by a variable that is empty: whoever gives it another value takes another wheel.
pub fn is_left_out(install: &PipInstall, command: &Command) -> bool {
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

/// Where torch of a version comes from; the specifier narrows it where none is pinned.
pub fn source(
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
pub struct Configured {
    copied: bool,
    /// The first command that writes one.
    written: Option<Span>,
}

impl Configured {
    pub fn of(lint: &Lint<'_>) -> Self {
        let copied = lint.reading.document.instructions.iter().any(|i| {
            matches!(i.keyword, Keyword::Copy | Keyword::Add) && is_config(lint.reading.document.slice(i.span))
        });
        let output = |c: &Command| c.output.as_ref().and_then(|o| o.value.known()).is_some_and(is_config);
        let mut commands = lint.build_commands().map(|(_, c)| c);
        let written = commands.find(|c| output(c)).map(|c| c.span);
        Self { copied, written }
    }

    /// Whether one may be in force for a command.
    pub fn before(&self, lint: &Lint<'_>, command: &Command) -> bool {
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
