//! Packages of apt, dnf and conda that have to do with GPUs: drivers, toolkits, CUDA's libraries, the container
//! toolkit; and sources of packages that have moved. Table: `system_packages.toml`.

use serde::Deserialize;

use super::components::Globs;
use super::{CatalogError, Tables, Trust};
use crate::model::CudaVersion;

pub(super) const FILE: &str = "system_packages.toml";

/// What a package is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemKind {
    /// The user-space driver, which the container runtime brings from the host.
    Driver,
    /// A kernel module or its source.
    KernelModule,
    /// Headers or stubs with a driver-like name that belong in images: `libnvidia-ml-dev`.
    Harmless,
    /// `cuda`, `cuda-12-4`: the toolkit and the driver.
    CudaMeta,
    /// `cuda-toolkit-12-4`, `cuda-nvcc-12-4`, `cuda-compiler-12-4`.
    Toolkit,
    /// The distribution's own toolkit: `nvidia-cuda-toolkit`.
    DistroToolkit,
    /// For hosts: `nvidia-container-toolkit`, `nvidia-docker2`.
    ContainerToolkit,
    /// A shared library of CUDA, or its headers: `libcublas-12-4`, `libcudnn9-cuda-12`, `libnccl2`.
    CudaLibrary,
    /// `cuda-compat-12-4`.
    Compat,
    /// `cuda-keyring`.
    Keyring,
    /// ROCm's user space.
    Rocm,
    /// `amdgpu-dkms`.
    RocmKernelModule,
    /// Level Zero, OpenCL and the rest of Intel's GPU runtime.
    IntelRuntime,
    /// What starts containers: an image with one is a host of its own.
    ContainerEngine,
    /// What kernel modules are built with.
    KernelHeaders,
}

/// What is known of a package by name and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPackage {
    pub kind: SystemKind,
    /// "cudnn", "nccl", "cublas" … for libraries.
    pub library: Option<String>,
    /// CUDA's version in name or version.
    pub cuda: Option<CudaVersion>,
    /// Only the major is said: `libcudnn9-cuda-12`.
    pub cuda_major: Option<u16>,
    /// The library's own major: 8 of `libcudnn8`.
    pub major: Option<u32>,
    /// A package that moves to another CUDA when its version is not pinned: `libnccl2`.
    pub floats: bool,
    /// What to install instead, where that is one thing.
    pub instead: Option<String>,
    pub because: String,
    pub sure: bool,
}

#[derive(Debug, Deserialize)]
struct RawPackage {
    name: String,
    /// Globs over names.
    globs: Vec<String>,
    kind: SystemKind,
    library: Option<String>,
    #[serde(default)]
    floats: bool,
    /// Without the CUDA version, which is that of the name.
    instead: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Debug, Deserialize)]
struct RawConda {
    name: String,
    globs: Vec<String>,
    kind: SystemKind,
    library: Option<String>,
    /// The package's version is CUDA's.
    #[serde(default)]
    cuda: bool,
    #[serde(flatten)]
    trust: Trust,
}

/// A source of packages, a key or a command that no longer does, `[[source]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct OldSource {
    pub name: String,
    pub kind: OldKind,
    /// Text that shows it, compared without case.
    pub text: String,
    /// Words right before it with which it is right: `apt-key del 7fa2af80` takes the key away.
    #[serde(default)]
    unless: Vec<String>,
    /// What to do instead.
    pub instead: String,
    /// Texts that show what has taken its place; the first may be written where `text` stands.
    #[serde(default)]
    pub successors: Vec<String>,
    /// Parts of URLs under which the first successor lies beside the old one.
    #[serde(default)]
    pub where_same: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl OldSource {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }

    pub fn is_sure(&self) -> bool {
        self.trust.is_sure()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OldKind {
    /// A signing key that was withdrawn.
    Key,
    /// A repository that is retired.
    Repository,
    /// A command that newer distributions lack: `apt-key`.
    Command,
}

/// All rows.
#[derive(Debug)]
pub struct SystemPackages {
    rows: Vec<(RawPackage, Globs)>,
    conda: Vec<(RawConda, Globs)>,
    sources: Vec<OldSource>,
}

impl SystemPackages {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let row = |raw: RawPackage| {
            let globs = Globs::new(FILE, &raw.name, &raw.globs, false)?;
            Ok((raw, globs))
        };
        let rows = tables.rows(FILE, "package")?.into_iter().map(row).collect::<Result<_, CatalogError>>()?;
        let conda = |raw: RawConda| {
            let globs = Globs::new(FILE, &raw.name, &raw.globs, false)?;
            Ok((raw, globs))
        };
        let conda = tables.rows(FILE, "conda")?.into_iter().map(conda).collect::<Result<_, CatalogError>>()?;
        Ok(Self { rows, conda, sources: tables.rows(FILE, "source")? })
    }

    /// What a package is. `version` is what stands behind `=`, or behind the name for rpm.
    pub fn classify(&self, name: &str, version: Option<&str>) -> Option<SystemPackage> {
        // `libcudnn8:amd64`, and `name-` or `name+` of apt.
        let name = name.split(':').next().unwrap_or(name).trim().to_ascii_lowercase();
        // Files are no packages: `libnvinfer.so.8`.
        let file = name.contains(".so");
        let (raw, _) = self.rows.iter().find(|(_, globs)| !file && globs.matches_name(&name))?;
        let cuda = dashed(&name).or_else(|| behind_plus(version?)).or_else(|| behind_plus(&name));
        let cuda_major = cuda.map(|c| c.major).or_else(|| major_of(&name));
        // The same of one version: `cuda-12-4` is `cuda-toolkit-12-4`.
        let of_version = match (cuda, cuda_major) {
            (Some(c), _) => format!("-{}-{}", c.major, c.minor),
            (None, Some(major)) => format!("-{major}"),
            (None, None) => String::new(),
        };
        let instead = raw.instead.as_ref().map(|name| format!("{name}{of_version}"));
        Some(SystemPackage {
            kind: raw.kind,
            library: raw.library.clone(),
            cuda,
            cuda_major,
            major: own_major(&name),
            floats: raw.floats && version.is_none() && cuda.is_none(),
            instead,
            because: raw.trust.because(FILE, &raw.name),
            sure: raw.trust.is_sure(),
        })
    }

    /// What a package of a conda channel is. `specification` is what stands behind the name: `=12.1`, `11.3.*`,
    /// `>=8.9,<9`.
    pub fn classify_conda(&self, name: &str, specification: Option<&str>) -> Option<SystemPackage> {
        // `nvidia/label/cuda-12.4.0::cuda-toolkit`.
        let (channel, name) = name.rsplit_once("::").map_or((None, name), |(c, n)| (Some(c), n));
        let name = name.trim().to_ascii_lowercase();
        let (raw, _) = self.conda.iter().find(|(_, globs)| globs.matches_name(&name))?;
        let version = specification.and_then(first_version);
        let labelled = channel.and_then(|c| c.rsplit_once("cuda-")).and_then(|(_, v)| first_version(v));
        let cuda = version.as_deref().filter(|_| raw.cuda).or(labelled.as_deref());
        let major = |v: &str| v.split('.').next().and_then(|m| m.parse().ok());
        Some(SystemPackage {
            kind: raw.kind,
            library: raw.library.clone(),
            cuda: cuda.filter(|c| c.contains('.')).and_then(|c| c.parse().ok()),
            cuda_major: cuda.and_then(|c| c.split('.').next()?.parse().ok()),
            major: version.as_deref().filter(|_| !raw.cuda).and_then(major),
            floats: version.is_none(),
            instead: None,
            because: raw.trust.because(FILE, &raw.name),
            sure: raw.trust.is_sure(),
        })
    }

    /// Keys, repositories and commands that no longer do.
    pub fn old_sources(&self) -> &[OldSource] {
        &self.sources
    }

    /// The old sources that a text holds, each with the byte at which it stands.
    pub fn old_sources_in(&self, text: &str) -> Vec<(usize, &OldSource)> {
        let lower = text.to_ascii_lowercase();
        let shown = |source: &OldSource| {
            let bad = |at: &usize| {
                let word = lower.get(..*at).and_then(|before| before.split_whitespace().next_back());
                !word.is_some_and(|w| source.unless.iter().any(|u| u == w))
            };
            lower.match_indices(&source.text.to_ascii_lowercase()).map(|(at, _)| at).find(bad)
        };
        self.sources.iter().filter_map(|s| Some((shown(s)?, s))).collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|(r, _)| r.name.as_str()).chain(self.conda.iter().map(|(r, _)| r.name.as_str()))
    }
}

/// The CUDA version in a name: `cuda-nvcc-12-4`, `libcublas-dev-12-4`, and of rpm `cuda-nvcc-12-8-12.8.93-1`.
fn dashed(name: &str) -> Option<CudaVersion> {
    let parts: Vec<Option<u16>> = name.split('-').map(|p| p.parse().ok()).collect();
    let pair = |pair: &[Option<u16>]| match *pair {
        [Some(major), Some(minor)] if (7..=99).contains(&major) && minor < 20 => {
            Some(CudaVersion::new(major, minor))
        }
        _ => None,
    };
    parts
        .windows(2)
        .skip(1)
        .find_map(pair)
        .or_else(|| name.starts_with("cuda-").then(|| parts.windows(2).find_map(pair))?)
}

/// The first version in a specification: 12.1 of `>=12.1,<13`.
fn first_version(text: &str) -> Option<String> {
    let at = text.find(|c: char| c.is_ascii_digit())?;
    let rest = text.get(at..)?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    Some(rest.get(..end)?.trim_end_matches('.').to_owned())
}

/// `8.9.2.26-1+cuda11.8`.
fn behind_plus(version: &str) -> Option<CudaVersion> {
    let (_, tail) = version.rsplit_once("+cuda").or_else(|| version.rsplit_once(".cuda"))?;
    let end = tail.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(tail.len());
    let text = tail.get(..end)?.trim_end_matches('.');
    text.contains('.').then(|| text.parse().ok()).flatten()
}

/// `libcudnn9-cuda-12`, `cudnn9-cuda-12`, `cuda-12`, `cuda-toolkit-12`.
fn major_of(name: &str) -> Option<u16> {
    let whole = || name.strip_prefix("cuda-toolkit-").or_else(|| name.strip_prefix("cuda-"));
    let tail = name.rsplit_once("-cuda-").map(|(_, t)| t).or_else(whole)?;
    tail.split('-').next()?.parse().ok()
}

/// 8 of `libcudnn8-dev`, 2 of `libnccl2`.
fn own_major(name: &str) -> Option<u32> {
    let word = name.split('-').next()?;
    let at = word.rfind(|c: char| !c.is_ascii_digit())? + 1;
    word.get(at..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    fn kind(name: &str) -> Option<SystemKind> {
        Catalog::embedded().system_packages().classify(name, None).map(|p| p.kind)
    }

    #[test]
    fn kinds_of_packages() {
        use SystemKind::*;
        for (name, want) in [
            ("nvidia-driver-535", Driver),
            ("nvidia-headless-550-server", Driver),
            ("libnvidia-compute-535", Driver),
            ("libnvidia-encode-535-server:i386", Driver),
            ("cuda-drivers", Driver),
            ("cuda-drivers-550", Driver),
            ("nvidia-dkms-535", KernelModule),
            ("libnvidia-ml-dev", Harmless),
            ("libnvidia-container1", ContainerToolkit),
            ("nvidia-container-toolkit", ContainerToolkit),
            ("nvidia-docker2", ContainerToolkit),
            ("cuda", CudaMeta),
            ("cuda-12-4", CudaMeta),
            ("cuda-toolkit-12-4", Toolkit),
            ("cuda-nvcc-12-4", Toolkit),
            ("nvidia-cuda-toolkit", DistroToolkit),
            ("cuda-compat-12-4", Compat),
            ("cuda-keyring", Keyring),
            ("libcublas-12-4", CudaLibrary),
            ("libcudnn9-cuda-12", CudaLibrary),
            ("libnccl2", CudaLibrary),
            ("libnccl-2.27.3-1+cuda12.9", CudaLibrary),
            ("cuda-12", CudaMeta),
            ("cuda-repo-ubuntu2204-12-4-local_12.4.1-550.54.15-1_amd64.deb", Keyring),
            ("amdgpu-dkms", RocmKernelModule),
        ] {
            assert_eq!(kind(name), Some(want), "{name}");
        }
        for none in ["git", "", "cudatext", "python3-dev", "libnv", "libnvinfer.so.8", "libcurl4"] {
            assert_eq!(kind(none), None, "{none}");
        }
    }

    #[test]
    fn versions_in_names_and_in_versions() {
        let packages = Catalog::embedded().system_packages();
        let of = |n: &str, v: Option<&str>| {
            let p = packages.classify(n, v).unwrap();
            (p.cuda.map(|c| c.to_string()), p.cuda_major, p.major, p.floats)
        };
        assert_eq!(of("libcublas-dev-12-4", None), (Some("12.4".into()), Some(12), None, false));
        assert_eq!(of("libcudnn8", Some("8.9.2.26-1+cuda11.8")), (Some("11.8".into()), Some(11), Some(8), false));
        assert_eq!(of("libcudnn8", None), (None, None, Some(8), true));
        assert_eq!(of("libcudnn9-cuda-12", None), (None, Some(12), Some(9), false));
        assert_eq!(of("libnccl-2.27.3-1+cuda12.9", None), (Some("12.9".into()), Some(12), None, false));
        assert_eq!(of("cuda-nvcc-12-8-12.8.93-1", None), (Some("12.8".into()), Some(12), None, false));
        assert_eq!(of("libcudnn9-cuda-12-9.8.0.87-1", None), (None, Some(12), Some(9), false));
        for (meta, toolkit) in
            [("cuda-12-4", "cuda-toolkit-12-4"), ("cuda-12", "cuda-toolkit-12"), ("cuda", "cuda-toolkit")]
        {
            let instead = packages.classify(meta, None).unwrap().instead;
            assert_eq!(instead.as_deref(), Some(toolkit), "{meta}");
        }
    }

    #[test]
    fn packages_of_conda() {
        let packages = Catalog::embedded().system_packages();
        let of = |n: &str, s: Option<&str>| {
            let p = packages.classify_conda(n, s)?;
            Some((p.kind, p.cuda.map(|c| c.to_string()), p.major))
        };
        let toolkit = |cuda: Option<&str>| Some((SystemKind::Toolkit, cuda.map(str::to_owned), None));
        assert_eq!(of("cudatoolkit", Some("=11.3")), toolkit(Some("11.3")));
        assert_eq!(of("pytorch-cuda", Some("12.1.*")), toolkit(Some("12.1")));
        assert_eq!(of("nvidia/label/cuda-12.4.0::cuda-toolkit", None), toolkit(Some("12.4")));
        assert_eq!(of("cuda", None), toolkit(None));
        assert_eq!(of("cudnn", Some(">=8.9,<9")), Some((SystemKind::CudaLibrary, None, Some(8))));
        assert_eq!(of("numpy", None), None);
    }

    #[test]
    fn old_keys() {
        let packages = Catalog::embedded().system_packages();
        let found = packages.old_sources_in("apt-key adv --fetch-keys https://x/7fa2af80.pub");
        assert!(found.iter().any(|(at, s)| s.kind == OldKind::Key && *at == 35), "{found:?}");
        let key = |text: &str| packages.old_sources_in(text).iter().any(|(_, s)| s.kind == OldKind::Key);
        assert!(!key("apt-key del 7fa2af80"), "takes it away");
        assert!(key("apt-key del 7FA2AF80 && apt-key adv --recv-keys F60F4B3D7FA2AF80"));
        assert!(packages.old_sources_in("apt-get update").is_empty());
        let repository =
            "deb https://developer.download.nvidia.com/compute/machine-learning/repos/ubuntu1804/x86_64 /";
        assert_eq!(packages.old_sources_in(repository)[0].1.kind, OldKind::Repository);
    }
}
