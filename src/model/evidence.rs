//! What scanning an image yields: plain data, without judgement. Can be saved and judged again.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::version::{ParseVersionError, serde_as_text};
use super::{
    Claim, ClaimKind, CudaVersion, DataSet, Digest, FileFacts, Gap, ImagePath, LdCache, Libc, Loads, Need, Toolkit,
    ToolkitKind,
};

/// An OCI platform, `linux/arm64/v8`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    pub os: String,
    pub architecture: String,
    pub variant: Option<String>,
}

impl Platform {
    pub fn linux(architecture: &str) -> Self {
        Self { os: "linux".into(), architecture: architecture.into(), variant: None }
    }

    /// Whether an image for `self` runs on a host of `other`: equal but for variants, which count only when
    /// both name one (`linux/arm64` is `linux/arm64/v8`).
    pub fn serves(&self, other: &Self) -> bool {
        self.os == other.os
            && self.architecture == other.architecture
            && match (&self.variant, &other.variant) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            }
    }
}

impl Default for Platform {
    fn default() -> Self {
        Self::linux("amd64")
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(v) => write!(f, "/{v}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Platform {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParseVersionError::new(text, "a platform such as linux/amd64");
        let mut parts = text.split('/').map(str::to_owned);
        let (Some(os), Some(architecture)) = (parts.next(), parts.next()) else { return Err(err()) };
        let variant = parts.next();
        if os.is_empty() || architecture.is_empty() || parts.next().is_some() {
            return Err(err());
        }
        let architecture = match architecture.as_str() {
            "x86_64" | "x86-64" => "amd64".to_owned(),
            "aarch64" => "arm64".to_owned(),
            _ => architecture,
        };
        Ok(Self { os, architecture, variant })
    }
}
serde_as_text!(Platform, "Platform");

/// The image config, as far as anything judges it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConfigFacts {
    /// `NAME=value`, in order.
    pub env: Vec<(String, String)>,
    pub entrypoint: Vec<String>,
    pub cmd: Vec<String>,
    pub working_dir: String,
    pub user: String,
    pub labels: Vec<(String, String)>,
}

impl ConfigFacts {
    /// The value of an environment variable.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// One layer, as the report shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerSummary {
    /// Absent where the source has no digests (a rootfs).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diff_id: Option<Digest>,
    /// Bytes as stored (compressed).
    pub size: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub created_by: Option<String>,
    /// Its facts came from the cache. In reports, with `--stats` only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cached: Option<bool>,
}

/// The image as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImageFacts {
    /// As named by the user, without absolute host paths.
    pub reference: String,
    /// Manifest digest, where there is a manifest.
    pub digest: Option<Digest>,
    pub platform: Option<Platform>,
    /// Sum of the layers' stored sizes.
    pub size: u64,
    pub config: ConfigFacts,
    pub layers: Vec<LayerSummary>,
    /// A single file or wheel: what stands around it is not known.
    #[serde(default)]
    pub alone: bool,
}

/// Who installed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Manager {
    Pip,
    Dpkg,
    Rpm,
    Apk,
    Conda,
    /// No package manager knows it; named after its folder or file.
    Path,
}

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Package {
    pub manager: Manager,
    /// For pip: the normalised name, `flash-attn`.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// Conda: the build string, `cpu_generic_py311_h1`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub build: Option<String>,
    /// Conda: where it came from, `conda-forge`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub channel: Option<String>,
    /// The packages of NVIDIA's driver that it depends on.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub wants_driver: Vec<String>,
}

impl Package {
    pub fn new(manager: Manager, name: impl Into<String>, version: Option<String>) -> Self {
        Self { manager, name: name.into(), version, build: None, channel: None, wants_driver: Vec::new() }
    }
}

/// A group of files that a user recognises as one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    pub name: String,
    pub version: Option<String>,
    pub manager: Manager,
    /// The directory it is installed in (site-packages, the package folder), for messages.
    pub root: ImagePath,
}

/// A file of the merged image that carries device code or is ELF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFile {
    pub path: ImagePath,
    /// Index into the image's layers.
    pub layer: Option<usize>,
    pub facts: Arc<FileFacts>,
    /// Index into the evidence's components.
    pub component: Option<usize>,
    /// It is a member of a wheel, jar or zip that lies in the image, and not installed.
    #[serde(default)]
    pub in_archive: bool,
}

/// Counters of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Unpacked bytes that went by.
    pub bytes_read: u64,
    /// Regular files seen, in all layers.
    pub files: u64,
    pub elfs: u64,
}

/// Everything known about an image, before anything is judged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    pub schema: u32,
    pub image: ImageFacts,
    /// Sorted by path.
    pub files: Vec<EvidenceFile>,
    pub packages: Vec<Package>,
    pub components: Vec<Component>,
    /// What files say about how components were built. Sorted.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Sorted.
    #[serde(default)]
    pub toolkits: Vec<Toolkit>,
    /// Programs and headers that run-time compilers need, where the image has them: `usr/bin/cc`,
    /// `usr/local/cuda/include/curand.h`. Links count. Sorted.
    #[serde(default)]
    pub landmarks: Vec<ImagePath>,
    /// Libraries' device code and databases that lie in data files. Sorted by root, then library.
    #[serde(default)]
    pub data_sets: Vec<DataSet>,
    /// What the loader would do, one row per ELF file that loads something, by file.
    #[serde(default)]
    pub loads: Vec<Loads>,
    /// Files of no bytes that are named as the driver's libraries: what a runtime's mounts leave when a container is
    /// committed. Sorted.
    #[serde(default)]
    pub empty_driver_files: Vec<ImagePath>,
    /// What a program without search paths of its own gets for the names of the driver's libraries.
    #[serde(default)]
    pub driver: Vec<Need>,
    #[serde(default)]
    pub libc: Option<Libc>,
    #[serde(default)]
    pub ld_cache: LdCache,
    /// Symbolic links that lead to files above: (link, path). Only links whose name looks like a library or
    /// program matter to the loader.
    pub links: Vec<(ImagePath, ImagePath)>,
    pub gaps: Vec<Gap>,
    pub stats: Stats,
}

impl Evidence {
    /// Version of this format; older and newer ones are refused.
    pub const SCHEMA: u32 = 2;

    /// The CUDA release that a component was built with (`torch.version.cuda`), as a file of it says.
    pub fn cuda_of(&self, component: &str) -> Option<CudaVersion> {
        self.cuda_claim(component).map(|(version, _)| version)
    }

    /// What a file of a component says about it.
    pub fn claim(&self, component: &str, kind: ClaimKind) -> Option<&Claim> {
        self.claims_of(component, kind).next()
    }

    fn claims_of(&self, component: &str, kind: ClaimKind) -> impl Iterator<Item = &Claim> {
        let name = super::package_name(component);
        self.claims.iter().filter(move |c| c.kind == kind && super::package_name(&c.component) == name)
    }

    /// The same, with the claim: of some only the major is known.
    pub fn cuda_claim(&self, component: &str) -> Option<(CudaVersion, &Claim)> {
        self.claims_of(component, ClaimKind::Cuda).find_map(|c| Some((c.value.parse().ok()?, c)))
    }

    /// The toolkits of one maker.
    pub fn toolkits_of(&self, kind: ToolkitKind) -> impl Iterator<Item = &Toolkit> {
        self.toolkits.iter().filter(move |t| t.kind == kind)
    }

    /// What the loader does for a file.
    pub fn loads_of(&self, file: usize) -> Option<&Loads> {
        self.loads.binary_search_by_key(&file, |l| l.file).ok().map(|i| &self.loads[i])
    }

    /// The index of the file at a path (not a link).
    pub fn file_at(&self, path: &ImagePath) -> Option<usize> {
        self.files.binary_search_by(|f| f.path.cmp(path)).ok()
    }

    /// The file at a path (not a link).
    pub fn file(&self, path: &ImagePath) -> Option<&EvidenceFile> {
        self.file_at(path).map(|i| &self.files[i])
    }

    /// The index of the component that a package is, where it has files.
    pub fn component_named(&self, package: &str) -> Option<usize> {
        let name = super::package_name(package);
        self.components.iter().position(|c| super::package_name(&c.name) == name)
    }

    /// Whether every index names something: evidence that was saved may have been changed since.
    pub fn is_consistent(&self) -> bool {
        self.files.iter().all(|f| {
            f.layer.is_none_or(|l| l < self.image.layers.len())
                && f.component.is_none_or(|c| c < self.components.len())
        }) && self.data_sets.iter().all(|d| {
            d.layer.is_none_or(|l| l < self.image.layers.len())
                && d.component.is_none_or(|c| c < self.components.len())
        }) && self.loads.iter().all(|l| l.file < self.files.len())
            && self.loads.is_sorted_by(|a, b| a.file < b.file)
            && self.files.is_sorted_by(|a, b| a.path <= b.path)
    }
}
