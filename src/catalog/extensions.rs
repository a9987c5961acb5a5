//! Projects with device code of their own that a Dockerfile installs: whether pip finds a wheel or compiles, and what
//! tells the build which GPUs to compile for. Table: `extensions.toml`.

use std::collections::HashMap;

use serde::Deserialize;

use super::components::Globs;
use super::{CatalogError, Tables, Trust, names};

pub(super) const FILE: &str = "extensions.toml";

/// What `pip install NAME` brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prebuilt {
    /// A source archive: it is compiled.
    Source,
    /// A source archive whose build downloads a wheel made for this torch and CUDA, where there is one.
    Downloads,
    /// Wheels with device code in them.
    Wheels,
    /// Wheels without any device code: for a GPU it must be compiled.
    CpuWheels,
    /// Wheels without device code, which is compiled where it runs.
    Jit,
    /// Nothing: it is not on PyPI under that name.
    Absent,
    /// Wheels from an index or a page of its own only; PyPI has the source.
    OwnIndex,
}

/// What a build without any list of architectures compiles for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unset {
    /// The GPUs of the building machine; without one it stops, or leaves the device code out.
    VisibleGpu,
    /// A list of the project's own.
    OwnList,
    /// What the compiler or CMake takes by default: one old architecture.
    CompilerDefault,
    /// All that the toolkit knows.
    All,
    Unknown,
}

/// One project, `[[extension]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct Extension {
    pub project: String,
    /// Names on PyPI, normalised; `*` allowed.
    #[serde(default)]
    pub pip: Vec<String>,
    /// "owner/name" on GitHub, lower case; the first is the project's own.
    #[serde(default)]
    pub repositories: Vec<String>,
    /// Names of repositories that are this project whoever owns them. Without any, forks count where the project's own
    /// name is one that nothing else has.
    #[serde(default)]
    names: Vec<String>,
    pub prebuilt: Prebuilt,
    /// How `prebuilt` is known: "registry", "source", "memory".
    prebuilt_by: String,
    /// Variables that tell it the architectures, the decisive one first; empty: nothing does.
    #[serde(default)]
    pub variables: Vec<String>,
    /// TORCH_CUDA_ARCH_LIST changes nothing.
    #[serde(default)]
    pub ignores_torch_list: bool,
    /// Members of the list that it does not know, or its toolkit cannot compile, are dropped without an error.
    #[serde(default)]
    pub clamps: bool,
    pub unset: Unset,
    /// Options with which a build without any list takes one of the project's own: "GGML_NATIVE=OFF".
    #[serde(default)]
    pub own_list_when: Vec<String>,
    /// Variables that make it build device code where no GPU is seen: "FORCE_CUDA=1".
    #[serde(default)]
    pub force: Vec<String>,
    /// Compilers by the dozen: without MAX_JOBS a build may eat all memory.
    #[serde(default)]
    pub hungry: bool,
    /// Imports torch while it is built: needs `--no-build-isolation`, and torch before it.
    #[serde(default)]
    pub imports_torch: bool,
    /// Compiled for CUDA only where something asks for it: "GGML_CUDA=on".
    #[serde(default)]
    pub cuda_when: Vec<String>,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl Extension {
    /// Whether a plain `pip install NAME` compiles device code.
    pub fn pip_compiles(&self) -> bool {
        matches!(self.prebuilt, Prebuilt::Source | Prebuilt::OwnIndex)
    }

    /// Whether what PyPI has was looked up, not remembered.
    pub fn prebuilt_is_sure(&self) -> bool {
        self.prebuilt_by != "memory"
    }

    /// Whether TORCH_CUDA_ARCH_LIST decides.
    pub fn reads_torch_list(&self) -> bool {
        !self.ignores_torch_list && self.variables.iter().any(|v| v == "TORCH_CUDA_ARCH_LIST")
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.project)
    }

    /// Read in the project's source or on PyPI: an error may rest on it.
    pub fn is_sure(&self) -> bool {
        self.trust.is_sure()
    }
}

/// All projects.
#[derive(Debug)]
pub struct Extensions {
    rows: Vec<Extension>,
    /// The rows whose names are patterns.
    patterns: Vec<(usize, Globs)>,
    /// Rows by package, by "owner/name" and by a repository's name alone.
    packages: HashMap<String, usize>,
    repositories: HashMap<String, usize>,
    forks: HashMap<String, usize>,
}

impl Extensions {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let rows: Vec<Extension> = tables.rows(FILE, "extension")?;
        let mut all = Self {
            rows: Vec::new(),
            patterns: Vec::new(),
            packages: HashMap::new(),
            repositories: HashMap::new(),
            forks: HashMap::new(),
        };
        for (at, row) in rows.iter().enumerate() {
            let starred: Vec<String> = row.pip.iter().filter(|p| p.contains('*')).cloned().collect();
            if !starred.is_empty() {
                all.patterns.push((at, Globs::new(FILE, &row.project, &starred, false)?));
            }
            // The first row of a name has it.
            let telling =
                row.repositories.iter().filter_map(|r| Some(r.split_once('/')?.1)).filter(|n| is_telling(n));
            let forks = row.names.iter().map(String::as_str).chain(telling).map(str::to_owned);
            for (index, names) in [
                (&mut all.packages, row.pip.clone()),
                (&mut all.repositories, row.repositories.clone()),
                (&mut all.forks, forks.collect()),
            ] {
                for name in names {
                    index.entry(name).or_insert(at);
                }
            }
        }
        all.rows = rows;
        Ok(all)
    }

    pub fn all(&self) -> &[Extension] {
        &self.rows
    }

    /// The project of a package, by the name that pip is given.
    pub fn find_package(&self, pip_name: &str) -> Option<&Extension> {
        let name = names::dist(pip_name);
        let pattern = || self.patterns.iter().find(|(_, globs)| globs.matches_name(&name)).map(|(at, _)| at);
        let at = self.packages.get(&name).or_else(pattern)?;
        self.rows.get(*at)
    }

    /// The project of a repository: `https://github.com/NVIDIA/apex.git`, `git+ssh://git@github.com/…@v1`, an archive
    /// or a raw file of it, a mirror's URL with such a URL in it. Forks count where they keep the name.
    pub fn find_repository(&self, url: &str) -> Option<&Extension> {
        let (owner, name) = github(url)?;
        let full = format!("{owner}/{name}");
        let at = self.repositories.get(&full).or_else(|| self.forks.get(&name))?;
        self.rows.get(*at)
    }
}

/// Whether a repository's name is hardly that of another project: `flash-attention` is, `mamba` and `vision` are not.
fn is_telling(name: &str) -> bool {
    name.len() > 8 || (name.len() > 5 && name.contains(|c: char| !c.is_ascii_alphabetic()))
}

/// Owner and name, lower case, of the last GitHub or GitLab repository in a URL.
fn github(url: &str) -> Option<(String, String)> {
    let lower = url.trim().to_ascii_lowercase();
    let hosts = ["github.com/", "github.com:", "gitlab.com/", "gitlab.com:"];
    let at = hosts.iter().filter_map(|h| Some(lower.rfind(h)? + h.len())).max()?;
    let mut parts = lower.get(at..)?.split('/').filter(|p| !p.is_empty());
    let owner = parts.next()?;
    let name = parts.next()?.split(['@', '#', '?', '&']).next()?;
    let name = name.strip_suffix(".git").unwrap_or(name);
    (!owner.is_empty() && !name.is_empty()).then(|| (owner.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    #[test]
    fn projects_by_package_and_by_repository() {
        let all = Catalog::embedded().extensions();
        let pip = |n: &str| all.find_package(n).map(|e| e.project.as_str());
        assert_eq!(pip("Flash_Attn"), Some("flash-attn"));
        assert_eq!(pip("spconv-cu120"), Some("spconv"));
        assert_eq!(pip("requests"), None);
        let git = |u: &str| all.find_repository(u).map(|e| e.project.as_str());
        for url in [
            "https://github.com/NVIDIA/apex",
            "git+https://github.com/NVIDIA/apex.git@master",
            "git@github.com:NVIDIA/apex.git",
            "https://ghproxy.com/https://github.com/nvidia/apex.git",
            "https://github.com/NVIDIA/apex/archive/refs/heads/master.zip",
        ] {
            assert_eq!(git(url), Some("apex"), "{url}");
        }
        assert_eq!(git("https://github.com/me/flash-attention#subdirectory=csrc"), Some("flash-attn"));
        assert_eq!(git("https://github.com/somebody/apex.git"), Some("apex"));
        assert_eq!(git("https://github.com/mamba-org/mamba"), None, "the installer");
        for none in ["", "https://example.org/NVIDIA/apex", "https://github.com/NVIDIA", "github.com/"] {
            assert_eq!(git(none), None, "{none}");
        }
    }

    #[test]
    fn what_builds_are_told_by() {
        let all = Catalog::embedded().extensions();
        let flash = all.find_package("flash-attn").unwrap();
        assert_eq!(flash.prebuilt, Prebuilt::Downloads);
        assert!(!flash.reads_torch_list() && flash.hungry && flash.is_sure());
        let detectron = all.find_repository("https://github.com/facebookresearch/detectron2").unwrap();
        assert!(detectron.reads_torch_list());
        assert_eq!((detectron.unset, detectron.prebuilt), (Unset::VisibleGpu, Prebuilt::Absent));
    }
}
