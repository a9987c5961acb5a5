//! What compiles device code while an image is built: pip from source, setup.py, CMake, make, nvcc; and which
//! variables it takes its architectures from.

use crate::catalog::arch_lists::{ArchVariable, ArchVariables, Grammar};
use crate::catalog::extensions::{Extension, Prebuilt};
use crate::dockerfile::commands::{Asked, BuildTool, GitClone, PipInstall, Requirement, SourceBuild};
use crate::dockerfile::shell::{Command, When};
use crate::dockerfile::span::Span;
use crate::dockerfile::value::Value;

use super::Lint;

/// Parts of a project's name that say it has kernels of its own.
const KERNELS: &[&str] = &[
    "cuda",
    "kernel",
    "ext",
    "exts",
    "ops",
    "raster",
    "rasterization",
    "attn",
    "attention",
    "gpu",
    "nvcc",
    "cutlass",
];

/// Variables that only builds of extensions read.
const BUILDERS: &[&str] = &["MAX_JOBS", "NVCC_THREADS", "FORCE_CUDA", "TORCH_NVCC_FLAGS", "NVCC_APPEND_FLAGS"];

/// What starts the compilers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// pip, from a source archive, a repository or a folder.
    Pip,
    Setuptools,
    Cmake,
    Make,
    Nvcc,
    Cargo,
    Bazel,
}

/// Something that is compiled, perhaps with device code in it.
pub struct Build<'a> {
    /// Index into the reading's commands.
    pub index: usize,
    pub command: &'a Command,
    pub stage: usize,
    /// The words that ask for it.
    pub span: Span,
    pub by: By,
    /// Where it is a known project with device code.
    pub project: Option<&'a Extension>,
    /// The repository, folder or package it comes from, as far as that is known; may be empty.
    pub origin: String,
    pub source: Option<&'a SourceBuild>,
    pub pip: Option<&'a PipInstall>,
}

/// Whether a build takes its architectures from a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    No,
    /// As most projects of its kind do.
    Probably,
    /// By what is known of the project or of the tool.
    Surely,
}

impl Build<'_> {
    /// How it is called in messages.
    pub fn label(&self) -> String {
        match (self.project, self.by) {
            (Some(project), _) => project.project.clone(),
            (None, _) if !self.origin.is_empty() => format!("`{}`", crate::model::escape(self.origin.as_bytes())),
            (None, By::Pip) => "the project".to_owned(),
            (None, By::Setuptools) => "setup.py's project".to_owned(),
            (None, By::Cmake) => "the CMake project".to_owned(),
            (None, By::Make) => "make's project".to_owned(),
            (None, By::Nvcc) => "nvcc's output".to_owned(),
            (None, By::Cargo) => "cargo's project".to_owned(),
            (None, By::Bazel) => "bazel's project".to_owned(),
        }
    }

    /// Whether it is told to build the part that has device code, where it must be.
    pub fn wants_cuda(&self, lint: &Lint<'_>) -> bool {
        self.project.is_none_or(|p| p.cuda_when.is_empty() || self.is_given(lint, &p.cuda_when))
    }

    /// Whether one of some options is given, on its command line or in variables: "GGML_CUDA=on".
    pub fn is_given(&self, lint: &Lint<'_>, options: &[String]) -> bool {
        let held = |holder: &str, word: &str| {
            lint.seen(self.command, holder)
                .is_some_and(|(v, _)| v.all().any(|v| v.to_ascii_lowercase().contains(word)))
        };
        let asks = |when: &String| {
            let word = when.to_ascii_lowercase();
            let given = when.split_once('=').is_some_and(|(name, value)| {
                lint.seen(self.command, name).is_some_and(|(v, _)| v.known() == Some(value))
            });
            given || self.speaks_of(&word) || ["CMAKE_ARGS", "SKBUILD_CMAKE_ARGS"].iter().any(|h| held(h, &word))
        };
        options.iter().any(asks)
    }

    /// Whether its name or the way it is built says that it has kernels of its own.
    pub fn looks_like_kernels(&self) -> bool {
        let name = self.origin.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let named = name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| KERNELS.contains(&part));
        // In the same RUN: in ENV they may be meant for another build.
        let builders = BUILDERS.iter().any(|name| self.command.assigned.get(*name).is_some_and(|a| a.exported));
        // A build that wants the environment's torch compiles against it; so does a setup.py that is run by itself.
        let isolated = self.pip.is_some_and(|p| !p.no_build_isolation);
        named || builders || !isolated || self.speaks_of("cuda_ext") || self.speaks_of("--cuda")
    }

    /// Whether an error may rest on it: it always runs, and what is known of the project was looked up.
    pub fn is_certain(&self) -> bool {
        let by_name = self.by == By::Pip && self.origin.is_empty();
        let sure = |p: &Extension| p.is_sure() && (!by_name || p.prebuilt_is_sure());
        self.is_sure() && self.project.is_none_or(sure)
    }

    /// Whether it always runs, should the build get that far.
    pub fn is_sure(&self) -> bool {
        self.command.when == When::Build && !self.command.guessed
    }

    /// Whether the build reads a variable of that name from its environment.
    pub fn reads(&self, variable: &ArchVariable, name: &str) -> Reads {
        let own = |v: &String| v == name || *v == variable.name || variable.aliases.contains(v);
        if let Some(project) = self.project {
            // An option of CMake's is no variable of the environment, but has one of its own.
            let named = |v: &String| v == name && (variable.environment.is_empty() || *v != variable.name);
            let by_tool = project.variables.iter().any(own) && variable.environment.iter().any(|n| n == name);
            // CMake below a known project takes its own variable whatever the project says of others.
            let cmake = self.by == By::Cmake && variable.grammar == Grammar::Cmake;
            let any = project.variables.iter().any(named)
                || by_tool
                || (cmake || variable.adds) && variable.environment.iter().any(|n| n == name);
            return match (any, project.is_sure()) {
                (true, true) => Reads::Surely,
                (true, false) => Reads::Probably,
                (false, _) => Reads::No,
            };
        }
        let by_tool = variable.general && variable.environment.iter().any(|n| n == name);
        match (self.by, variable.grammar) {
            _ if variable.adds => match variable.environment.iter().any(|n| n == name) {
                true => Reads::Surely,
                false => Reads::Probably,
            },
            (By::Pip, Grammar::Torch | Grammar::Cmake) if by_tool && self.looks_like_kernels() => Reads::Probably,
            (By::Setuptools, Grammar::Torch | Grammar::Cmake) if by_tool => Reads::Probably,
            (By::Cmake, Grammar::Cmake) if by_tool => Reads::Surely,
            (By::Cmake, Grammar::Torch) if by_tool && self.speaks_of("torch") => Reads::Probably,
            (By::Make, Grammar::Gencode) => Reads::Probably,
            (By::Make, Grammar::Torch) if by_tool && self.has_target() => Reads::Probably,
            (By::Cargo, Grammar::One) | (By::Bazel, Grammar::Bazel) => Reads::Probably,
            _ => Reads::No,
        }
    }

    /// Whether make is asked for something of the project's own: not what any Makefile has.
    fn has_target(&self) -> bool {
        let common = ["all", "install", "lib", "clean", "default"];
        let words = self.command.args().iter().filter_map(|w| w.text.value.known());
        words
            .filter(|w| !common.contains(w))
            .any(|w| w.starts_with(|c: char| c.is_ascii_alphabetic()) && !w.contains('='))
    }

    /// The variables that it reads from its environment, under the names that it reads.
    pub fn wants<'c>(&self, variables: &'c ArchVariables) -> Vec<(&'c ArchVariable, &'c str, Reads)> {
        let mut out = Vec::new();
        for variable in variables.all().iter().filter(|v| !v.adds) {
            let own = std::iter::once(&variable.name).chain(&variable.aliases).chain(&variable.environment);
            for name in own {
                let reads = self.reads(variable, name);
                let seen = |(_, n, _): &(&ArchVariable, &str, Reads)| *n == name.as_str();
                if reads != Reads::No && !out.iter().any(seen) {
                    out.push((variable, name.as_str(), reads));
                }
            }
        }
        out
    }

    /// Whether a word of its command, or of where it comes from, holds a text (in lower case).
    pub fn speaks_of(&self, text: &str) -> bool {
        let holds = |t: &str| t.to_ascii_lowercase().contains(text);
        holds(&self.origin) || self.command.words.iter().any(|w| w.text.value.all().any(holds))
    }
}

impl<'l> Lint<'l> {
    /// All that is compiled in stages that are built, in the file's order. Plain `pip install NAME` only where it is
    /// known to compile.
    pub fn builds(&self) -> Vec<Build<'l>> {
        let mut out = Vec::new();
        for pip in &self.asks.pip {
            self.of_pip(pip, &mut out);
        }
        for source in &self.asks.builds {
            let by = match source.tool {
                BuildTool::Setuptools => By::Setuptools,
                BuildTool::Cmake => By::Cmake,
                BuildTool::Make => By::Make,
                BuildTool::Nvcc => By::Nvcc,
                BuildTool::Cargo => By::Cargo,
                BuildTool::Bazel => By::Bazel,
            };
            let Some(mut build) = self.build(source.command, by) else { continue };
            build.source = Some(source);
            // `python path/setup.py` builds what stands beside the script.
            let mut scripts =
                build.command.words.iter().filter_map(|w| w.text.value.known()?.strip_suffix("/setup.py"));
            let beside = scripts.next_back().filter(|_| by == By::Setuptools);
            let dir = match (beside, build.command.dir.known()) {
                (Some(path), _) if path.starts_with('/') => Value::Known(path.to_owned()),
                (Some(path), Some(dir)) => Value::Known(joined(dir, path)),
                _ => source.dir.clone(),
            };
            self.comes_from(&dir, &mut build);
            out.push(build);
        }
        out.sort_by_key(|b| (b.index, b.span));
        out
    }

    fn build(&self, index: usize, by: By) -> Option<Build<'l>> {
        let command = self.reading.commands.get(index)?;
        let (stage, of) = self.stage_of(command.instruction)?;
        let (span, none) = (command.span, String::new());
        (of.built && command.when != When::Start).then_some(Build {
            index,
            command,
            stage,
            span,
            by,
            project: None,
            origin: none,
            source: None,
            pip: None,
        })
    }

    fn of_pip(&self, pip: &'l PipInstall, out: &mut Vec<Build<'l>>) {
        for wanted in &pip.requirements {
            let Some(mut build) = self.build(pip.command, By::Pip) else { return };
            build.pip = Some(pip);
            // A requirements file has no place here: its command has.
            if let Asked::Here(span) = wanted.asked {
                build.span = span;
            }
            match wanted.url.as_deref() {
                Some(url) if url.contains(".whl") => continue,
                Some(url) => {
                    build.project = self.catalog.extensions().find_repository(url);
                    build.origin = short(url).to_owned();
                }
                None => match self.compiled(pip, wanted) {
                    Some(project) => build.project = Some(project),
                    None => continue,
                },
            }
            out.push(build);
        }
        for local in &pip.local {
            let Some(mut build) = self.build(pip.command, By::Pip) else { return };
            build.pip = Some(pip);
            let path = match local.value.known() {
                Some(path) if path.ends_with(".whl") || path.contains(".whl[") => continue,
                Some(path) => path.split('[').next().unwrap_or(path),
                None => "",
            };
            let dir = match build.command.dir.known() {
                _ if path.starts_with('/') => Value::Known(path.to_owned()),
                Some(dir) if !path.is_empty() => Value::Known(joined(dir, path)),
                _ => Value::Unknown,
            };
            self.comes_from(&dir, &mut build);
            out.push(build);
        }
    }

    /// A package by name that pip compiles.
    fn compiled(&self, pip: &PipInstall, wanted: &Requirement) -> Option<&'l Extension> {
        let project = self.catalog.extensions().find_package(&wanted.name)?;
        // OpenMMLab's installer looks for wheels on its own pages first.
        let by_mim = self.reading.commands.get(pip.command).and_then(Command::program) == Some("mim");
        let forced = pip.no_binary.iter().any(|n| n == ":all:" || crate::catalog::names::dist(n) == wanted.name);
        let elsewhere =
            by_mim || pip.index.is_some() || !pip.extra_indexes.is_empty() || !pip.find_links.is_empty();
        let compiles = match project.prebuilt {
            Prebuilt::Source => !elsewhere,
            Prebuilt::OwnIndex => project.pip_compiles() && !elsewhere,
            Prebuilt::Downloads | Prebuilt::Wheels | Prebuilt::CpuWheels | Prebuilt::Jit | Prebuilt::Absent => {
                false
            }
        };
        (forced || compiles).then_some(project)
    }

    /// Which repository a folder is of: cloned there before, in this stage or one it is FROM.
    fn comes_from(&self, dir: &Value, build: &mut Build<'l>) {
        let Some(dir) = dir.known() else {
            // `git clone … && cd … && pip install .` where the folder that it starts in is not known.
            let same = |c: &&GitClone| {
                let at = self.reading.commands.get(c.command).map(|c| c.instruction);
                c.command < build.index && at == Some(build.command.instruction)
            };
            let last = self.asks.clones.iter().rfind(same).and_then(|c| c.url.value.known());
            build.project = last.and_then(|url| self.catalog.extensions().find_repository(url));
            build.origin = last.map_or(String::new(), |url| short(url).to_owned());
            return;
        };
        let stages = self.chain(build.stage);
        let before = |command: usize| {
            let at = self.reading.commands.get(command).and_then(|c| self.reading.stage_of(c.instruction));
            command < build.index && at.is_some_and(|s| stages.contains(&s))
        };
        let inside = |clone: &str| dir == clone || dir.strip_prefix(clone).is_some_and(|r| r.starts_with('/'));
        let clones = self.asks.clones.iter().filter(|c| before(c.command));
        let clone = clones
            .filter_map(|c| Some((c.dir.known().filter(|d| inside(d))?, c.url.value.known()?)))
            .max_by_key(|(dir, _)| dir.len());
        match clone {
            Some((_, url)) => {
                build.project = self.catalog.extensions().find_repository(url);
                build.origin = short(url).to_owned();
            }
            None => {
                let last = dir.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                // Copied from the context: a folder of a known project's name is that project's.
                let extensions = self.catalog.extensions();
                let named = extensions.find_repository(&format!("github.com/-/{last}"));
                build.project = named.or_else(|| extensions.find_package(last));
                // Names of places, which say nothing of what is there.
                if !["", ".", "app", "workspace", "build", "src", "opt", "root", "tmp", "code"].contains(&last) {
                    build.origin = last.to_owned();
                }
            }
        }
    }
}

/// A URL without its scheme and what stands behind the repository's name.
fn short(url: &str) -> &str {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let url = url.split(['#', '?']).next().unwrap_or(url);
    let url = url
        .rfind('@')
        .filter(|at| url.get(..*at).is_some_and(|u| u.contains('/')))
        .map_or(url, |at| url.get(..at).unwrap_or(url));
    url.strip_suffix(".git").unwrap_or(url)
}

/// A path in a folder.
fn joined(dir: &str, path: &str) -> String {
    let mut parts: Vec<&str> = dir.split('/').filter(|p| !p.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    format!("/{}", parts.join("/"))
}
