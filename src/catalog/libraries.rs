//! GPU libraries by SONAME, sets of one version, fall-backs, run-time compilers. Table: `libraries.toml`.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::components::Globs;
use super::gfx_compilers::GfxCompiler;
use super::gpu_library;
pub use super::gpu_library::{Library, split_soname};
use super::{CatalogError, Tables, Trust, names};
use crate::model::{Capability, ImagePath};

pub(super) const FILE: &str = "libraries.toml";

/// Libraries that must be of one version within a process.
#[derive(Debug)]
pub struct Set {
    pub name: String,
    files: Globs,
    pub same: Same,
    /// What is seen otherwise.
    pub breaks: String,
    trust: Trust,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Same {
    Release,
    Minor,
}

impl Set {
    pub fn has(&self, file_name: &str) -> bool {
        self.files.matches_name(file_name)
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

/// Who goes on without a GPU.
#[derive(Debug)]
pub struct FallBack {
    dists: Vec<String>,
    pub how: String,
    trust: Trust,
    name: String,
}

impl FallBack {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

/// Files that are loaded by choice only.
#[derive(Debug)]
struct ByChoice {
    files: Globs,
}

/// A run-time compiler that a package brings.
#[derive(Debug)]
pub struct BroughtCompiler {
    name: String,
    dists: Vec<String>,
    file: Globs,
    from: Option<Vec<u64>>,
    below: Option<Vec<u64>>,
    from_cc: Option<Capability>,
    below_cc: Option<Capability>,
    /// The variable that names another one.
    pub env: Option<String>,
    /// That it does not know a GPU is no failure: the package goes by PTX of an older one.
    pub told: bool,
    trust: Trust,
}

impl BroughtCompiler {
    pub fn is_file(&self, path: &ImagePath) -> bool {
        self.file.matches(path)
    }

    fn holds(&self, version: Option<&str>, capability: Capability) -> bool {
        // Without a version the newest rules hold.
        let version = version.map(names::version);
        let from = match (&version, &self.from) {
            (Some(version), Some(from)) => version >= from,
            _ => true,
        };
        let below = match (&version, &self.below) {
            (Some(version), Some(below)) => version < below,
            (None, Some(_)) => false,
            _ => true,
        };
        from && below
            && self.from_cc.is_none_or(|cc| capability >= cc)
            && self.below_cc.is_none_or(|cc| capability < cc)
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

/// A package that compiles when it runs.
#[derive(Debug, Deserialize)]
pub struct Jit {
    pub name: String,
    dists: Vec<String>,
    /// Of each group one is enough.
    pub needs: Vec<Vec<String>>,
    /// What each group is called.
    pub what: Vec<String>,
    /// The need is sure only beside one of these packages.
    #[serde(default)]
    pub only_with: Vec<String>,
    /// A package that makes compiling needless.
    #[serde(default)]
    pub unless: Vec<String>,
    /// A variable that names another compiler.
    #[serde(default)]
    pub unless_env: Vec<String>,
    /// The error that is seen without each group.
    pub symptoms: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl Jit {
    /// Whether nvcc itself is among its needs.
    pub fn needs_nvcc(&self) -> bool {
        self.needs.iter().flatten().any(|n| n == "nvcc")
    }

    pub fn is_dist(&self, name: &str) -> bool {
        has_dist(&self.dists, name)
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

/// A framework that has builds without a GPU under the same name.
#[derive(Debug, Deserialize)]
pub struct CpuBuild {
    pub name: String,
    dists: Vec<String>,
    pub fix: String,
    #[serde(flatten)]
    trust: Trust,
}

impl CpuBuild {
    pub fn is_dist(&self, name: &str) -> bool {
        has_dist(&self.dists, name)
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

/// Which versions of a package are built for a CUDA major.
#[derive(Debug, Deserialize)]
pub struct BuildRow {
    dists: Vec<String>,
    cuda: u16,
    /// "1.19 to 1.27".
    pub versions: String,
    /// "CUDA 12 and cuDNN 9".
    pub needs: String,
}

fn has_dist(dists: &[String], name: &str) -> bool {
    dists.contains(&names::dist(name))
}

/// All rows about linked libraries and compilers.
#[derive(Debug)]
pub struct Libraries {
    libraries: Vec<Library>,
    sets: Vec<Set>,
    fall_backs: Vec<FallBack>,
    by_choice: Vec<ByChoice>,
    gfx_compilers: Vec<GfxCompiler>,
    compilers: Vec<BroughtCompiler>,
    jits: Vec<Jit>,
    cpu_builds: Vec<CpuBuild>,
    builds: Vec<BuildRow>,
}

#[derive(Deserialize)]
struct RawSet {
    name: String,
    files: Vec<String>,
    same: Same,
    breaks: String,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Deserialize)]
struct RawFallBack {
    name: String,
    dists: Vec<String>,
    how: String,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Deserialize)]
struct RawByChoice {
    name: String,
    files: Vec<String>,
}

#[derive(Deserialize)]
struct RawCompiler {
    name: String,
    dists: Vec<String>,
    file: String,
    from: Option<String>,
    below: Option<String>,
    from_cc: Option<Capability>,
    below_cc: Option<Capability>,
    env: Option<String>,
    #[serde(default)]
    told: bool,
    #[serde(flatten)]
    trust: Trust,
}

impl Libraries {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let libraries = gpu_library::read(tables)?;
        let mut sets = Vec::new();
        for raw in tables.rows::<RawSet>(FILE, "set")? {
            let files = Globs::new(FILE, &raw.name, &raw.files, true)?;
            sets.push(Set { name: raw.name, files, same: raw.same, breaks: raw.breaks, trust: raw.trust });
        }
        let mut by_choice = Vec::new();
        for raw in tables.rows::<RawByChoice>(FILE, "by_choice")? {
            by_choice.push(ByChoice { files: Globs::new(FILE, &raw.name, &raw.files, true)? });
        }
        let mut compilers = Vec::new();
        for raw in tables.rows::<RawCompiler>(FILE, "compiler")? {
            let version = |v: Option<String>| v.map(|v| names::version(&v));
            compilers.push(BroughtCompiler {
                file: Globs::new(FILE, &raw.name, std::slice::from_ref(&raw.file), true)?,
                name: raw.name,
                dists: raw.dists,
                from: version(raw.from),
                below: version(raw.below),
                from_cc: raw.from_cc,
                below_cc: raw.below_cc,
                env: raw.env,
                told: raw.told,
                trust: raw.trust,
            });
        }
        let fall_backs = tables.rows::<RawFallBack>(FILE, "falls_back")?;
        Ok(Self {
            libraries,
            sets,
            fall_backs: fall_backs
                .into_iter()
                .map(|r| FallBack { dists: r.dists, how: r.how, trust: r.trust, name: r.name })
                .collect(),
            by_choice,
            gfx_compilers: GfxCompiler::read(tables)?,
            compilers,
            jits: tables.rows(FILE, "jit")?,
            cpu_builds: tables.rows(FILE, "cpu_build")?,
            builds: tables.rows(FILE, "build")?,
        })
    }

    /// The GPU library that a SONAME or file name names.
    pub fn library(&self, name: &str) -> Option<&Library> {
        let (stem, _) = split_soname(name)?;
        self.libraries.iter().find(|l| l.soname.matches_name(stem))
    }

    /// The packages that bring some libraries, as a sentence: "pip: a, b; apt: c, d". `beside`: all that a file
    /// needs; what of it belongs to one CUDA major says which is wanted of the rest.
    pub fn packages_for<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        beside: impl Iterator<Item = &'n str>,
    ) -> String {
        let cuda = self.cuda_of(beside);
        let (pip, apt) = self.names_for(names, cuda);
        let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(", ");
        let managers = [("pip", pip), ("apt", apt)].into_iter().filter(|(_, set)| !set.is_empty());
        managers.map(|(manager, set)| format!("{manager}: {}", list(set))).collect::<Vec<_>>().join("; ")
    }

    /// The same as names, of PyPI or of NVIDIA's Debian repository; a `*` stands where the release is not known.
    pub fn package_names<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        beside: impl Iterator<Item = &'n str>,
        pip: bool,
    ) -> BTreeSet<String> {
        let cuda = self.cuda_of(beside);
        let (of_pip, of_apt) = self.names_for(names, cuda);
        if pip { of_pip } else { of_apt }
    }

    fn names_for<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        cuda: Option<u16>,
    ) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut pip, mut apt) = (BTreeSet::new(), BTreeSet::new());
        for name in names {
            if let (Some(library), Some((_, suffix))) = (self.library(name), split_soname(name)) {
                let (a, b) = library.packages(suffix, cuda);
                pip.extend(Some(a).filter(|a| !a.is_empty()));
                apt.extend(Some(b).filter(|b| !b.is_empty()));
            }
        }
        (pip, apt)
    }

    /// The CUDA major that all of these libraries can belong to, if there is just one.
    fn cuda_of<'n>(&self, names: impl Iterator<Item = &'n str>) -> Option<u16> {
        let mut common: Option<BTreeSet<u16>> = None;
        for name in names {
            let majors = self.library(name).zip(split_soname(name)).map(|(l, (_, suffix))| l.cuda_majors(suffix));
            let Some(majors) = majors.filter(|m| !m.is_empty()) else { continue };
            let majors: BTreeSet<u16> = majors.iter().copied().collect();
            common = Some(match common {
                Some(before) => before.intersection(&majors).copied().collect(),
                None => majors,
            });
        }
        common.filter(|c| c.len() == 1)?.first().copied()
    }

    pub fn sets(&self) -> &[Set] {
        &self.sets
    }

    /// Whether a package goes on without a GPU when its libraries are missing.
    pub fn falls_back(&self, dist: &str) -> Option<&FallBack> {
        self.fall_backs.iter().find(|r| has_dist(&r.dists, dist))
    }

    /// Whether a file is loaded only when its other half is there.
    pub fn is_by_choice(&self, path: &ImagePath) -> bool {
        self.by_choice.iter().any(|r| r.files.matches(path))
    }

    /// Packages that compile for AMD's GPUs when they run.
    pub fn gfx_compilers(&self) -> &[GfxCompiler] {
        &self.gfx_compilers
    }

    /// The compiler that a package takes for a capability.
    pub fn compiler_for(
        &self,
        dist: &str,
        version: Option<&str>,
        capability: Capability,
    ) -> Option<&BroughtCompiler> {
        self.compilers.iter().find(|c| has_dist(&c.dists, dist) && c.holds(version, capability))
    }

    pub fn jits(&self) -> &[Jit] {
        &self.jits
    }

    /// The versions of a package that are built for a CUDA major.
    pub fn build_for(&self, dist: &str, cuda: u16) -> Option<&BuildRow> {
        self.builds.iter().find(|b| b.cuda == cuda && has_dist(&b.dists, dist))
    }

    pub fn cpu_builds(&self) -> &[CpuBuild] {
        &self.cpu_builds
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    #[test]
    fn libraries_by_soname() {
        let c = Catalog::embedded().libraries();
        let name = |n: &str| c.library(n).map(|l| l.name.as_str());
        assert_eq!(name("libcublasLt.so.12"), Some("cuBLASLt"));
        assert_eq!(name("libcudnn_ops_infer.so.8"), Some("cuDNN"));
        assert_eq!(name("libcurl.so.4"), None);
        assert_eq!(name("libcudf.so"), None);
        let cufft = c.library("libcufft.so.11").unwrap();
        assert_eq!(cufft.cuda_majors("11"), [12]);
        assert_eq!(cufft.packages("11", None), ("nvidia-cufft-cu12".to_owned(), "libcufft-12-*".to_owned()));
        let ort = ["libcublas.so.11", "libcurand.so.10", "libcudnn.so.8"];
        assert_eq!(
            c.packages_for(ort.into_iter(), ort.into_iter()),
            "pip: nvidia-cublas-cu11, nvidia-cudnn-cu11, nvidia-curand-cu11; apt: libcublas-11-*, libcudnn8, libcurand-11-*"
        );
        let new = ["libcublas.so.13", "libcudnn.so.9"];
        assert_eq!(
            c.packages_for(new.into_iter(), new.into_iter()),
            "pip: nvidia-cublas, nvidia-cudnn-cu13; apt: libcublas-13-*, libcudnn9-cuda-13"
        );
        assert_eq!(split_soname("libtorch.so"), Some(("libtorch", "")));
        assert_eq!(split_soname("libx.sox"), None);
    }

    #[test]
    fn triton_takes_its_compiler_by_version_and_capability() {
        let c = Catalog::embedded().libraries();
        let file = |version: &str, cc: &str| {
            let row = c.compiler_for("triton", Some(version), cc.parse().unwrap()).unwrap();
            let blackwell = ImagePath::new("x/triton/backends/nvidia/bin/ptxas-blackwell");
            if row.is_file(&blackwell) { "blackwell" } else { "plain" }
        };
        assert_eq!(file("3.9.0", "9.0"), "blackwell");
        assert_eq!(file("3.9.0", "8.9"), "plain");
        assert_eq!(file("3.6.0", "9.0"), "plain");
        assert_eq!(file("3.7.1", "12.1"), "blackwell");
        assert_eq!(file("3.5.1", "12.1"), "plain");
        assert_eq!(file("3.3.1", "10.0"), "blackwell");
        assert_eq!(file("2.1.0", "8.0"), "plain");
        let newest = c.compiler_for("triton", None, "9.0".parse().unwrap()).unwrap();
        assert!(newest.is_file(&ImagePath::new("x/triton/backends/nvidia/bin/ptxas-blackwell")));
    }
}
