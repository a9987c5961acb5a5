//! Who loads libraries beyond the dynamic loader's own laws: frameworks that look them up themselves, libraries that
//! open others by name, the host's driver. Table: `loading.toml`.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use super::components::Globs;
use super::{CatalogError, Tables, Trust, names as package_names};
use crate::model::{ElfFacts, ImagePath, Package};

const FILE: &str = "loading.toml";

/// How a framework finds libraries; paths are relative to the directory of Python packages.
#[derive(Debug, Deserialize)]
pub struct Lookup {
    pub name: String,
    /// The directory that must be there.
    pub package: String,
    /// Globs of the files that importing it loads.
    #[serde(default)]
    pub roots: Vec<String>,
    /// Globs of the directories that it looks into, in this order.
    #[serde(default)]
    pub dirs: Vec<String>,
    /// Globs of the library names that it looks for.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// Globs of those that it loads before all others.
    #[serde(default)]
    pub first: Vec<String>,
    /// The version of the package from which on it does.
    first_since: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl Lookup {
    /// Whether the version that is installed loads some libraries before all others.
    pub fn loads_first(&self, packages: &[Package]) -> bool {
        let Some(since) = self.first_since.as_deref().map(package_names::version) else {
            return !self.first.is_empty();
        };
        let versions = packages
            .iter()
            .filter(|p| package_names::dist(&p.name) == self.package)
            .filter_map(|p| p.version.as_deref());
        versions.map(package_names::version).any(|v| v >= since)
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

/// How much depends on what is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// Each of the names.
    Each,
    /// One of them is enough.
    Any,
    /// It goes on without.
    Optional,
}

/// What a file opens by name.
#[derive(Debug)]
pub struct Opens {
    pub name: String,
    /// "at the first convolution".
    pub when: String,
    pub need: Need,
    explicit: Vec<String>,
    /// Of the names in the file's own strings.
    mentioned: Globs,
    /// What it puts behind such a name.
    suffix: String,
    /// Names in the file's strings without which the row does not hold.
    only_if: Option<Globs>,
    trust: Trust,
}

/// In an explicit name: the number behind `libcudart.so.` among what the file needs.
const CUDART: &str = "{cudart}";

impl Opens {
    /// The names that a file of this row opens, in the table's order, then in that of its strings.
    pub fn names(&self, elf: &ElfFacts) -> Vec<String> {
        let cudart = elf.needed.iter().find_map(|n| n.strip_prefix("libcudart.so."));
        // CUDA 11's libraries do not share one number.
        let cudart = cudart.filter(|v| v.bytes().all(|b| b.is_ascii_digit()));
        let mut names: Vec<String> = Vec::new();
        for name in &self.explicit {
            match (name.contains(CUDART), cudart) {
                (true, Some(number)) => names.push(name.replace(CUDART, number)),
                (true, None) => {}
                (false, _) => names.push(name.clone()),
            }
        }
        for mention in elf.mentions.iter().filter(|m| self.mentioned.matches_name(m)) {
            let name = format!("{mention}{}", self.suffix);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn holds_for(&self, elf: &ElfFacts) -> bool {
        self.only_if.as_ref().is_none_or(|globs| elf.mentions.iter().any(|m| globs.matches_name(m)))
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

#[derive(Deserialize)]
struct RawOpens {
    name: String,
    files: Vec<String>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    mentions: Vec<String>,
    #[serde(default)]
    suffix: String,
    #[serde(default)]
    only_if: Vec<String>,
    when: String,
    need: Need,
    #[serde(flatten)]
    trust: Trust,
}

/// A library of the driver, which the container runtime brings.
#[derive(Debug)]
pub struct Driver {
    pub name: String,
    /// The value in NVIDIA_DRIVER_CAPABILITIES without which it may be left out.
    pub capability: Option<String>,
    libraries: Globs,
    trust: Trust,
}

impl Driver {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

#[derive(Deserialize)]
struct RawDriver {
    name: String,
    capability: Option<String>,
    libraries: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

/// A value of NVIDIA_DRIVER_CAPABILITIES.
#[derive(Debug, Deserialize)]
pub struct Capability {
    pub name: String,
    /// What an image gets that does not set it.
    #[serde(default)]
    pub default: bool,
    /// CUDA programs that open its libraries go on without.
    #[serde(default)]
    pub soft: bool,
}

/// A library and how its symbols begin.
#[derive(Debug, Deserialize)]
struct Family {
    name: String,
    prefixes: Vec<String>,
}

/// All rows.
#[derive(Debug)]
pub struct Loading {
    lookups: Vec<Lookup>,
    opens: Vec<Opens>,
    /// All globs of `opens`, and the row of each.
    files: GlobSet,
    rows: Vec<usize>,
    drivers: Vec<Driver>,
    capabilities: Vec<Capability>,
    families: Vec<Family>,
}

impl Loading {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let lookups = tables.rows::<Lookup>(FILE, "lookup")?;
        let families = tables.rows::<Family>(FILE, "family")?;
        let capabilities = tables.rows::<Capability>(FILE, "capability")?;
        let drivers = tables.rows::<RawDriver>(FILE, "driver")?.into_iter().map(|raw| {
            let libraries = names(&raw.name, &raw.libraries)?;
            Ok(Driver { libraries, name: raw.name, capability: raw.capability, trust: raw.trust })
        });
        let drivers = drivers.collect::<Result<_, CatalogError>>()?;
        let mut set = GlobSetBuilder::new();
        let (mut opens, mut rows) = (Vec::new(), Vec::new());
        for raw in tables.rows::<RawOpens>(FILE, "opens")? {
            for glob in &raw.files {
                let built = GlobBuilder::new(glob).literal_separator(true).build();
                set.add(built.map_err(|e| bad(&raw.name, e.to_string()))?);
                rows.push(opens.len());
            }
            if raw.names.is_empty() && raw.mentions.is_empty() {
                return Err(bad(&raw.name, "opens nothing"));
            }
            let mentioned = self::names(&raw.name, &raw.mentions)?;
            let only_if = if raw.only_if.is_empty() { None } else { Some(self::names(&raw.name, &raw.only_if)?) };
            let RawOpens { name, names, suffix, when, need, trust, .. } = raw;
            opens.push(Opens { name, when, need, explicit: names, mentioned, suffix, only_if, trust });
        }
        let files = set.build().map_err(|e| bad("opens", e.to_string()))?;
        Ok(Self { lookups, opens, files, rows, drivers, capabilities, families })
    }

    pub fn lookups(&self) -> &[Lookup] {
        &self.lookups
    }

    /// What a file is known to open: the rows that have its path, in the table's order.
    pub fn opens_of<'a>(&'a self, path: &ImagePath, elf: &ElfFacts) -> impl Iterator<Item = &'a Opens> + use<'a> {
        let text = String::from_utf8_lossy(path.as_bytes());
        let mut rows: Vec<usize> = self.files.matches(&*text).into_iter().map(|glob| self.rows[glob]).collect();
        rows.sort_unstable();
        rows.dedup();
        rows.retain(|row| self.opens[*row].holds_for(elf));
        rows.into_iter().map(|row| &self.opens[row])
    }

    /// The row by which a file opens a library.
    pub fn opening(&self, path: &ImagePath, elf: &ElfFacts, library: &str) -> Option<&Opens> {
        self.opens_of(path, elf).find(|row| row.names(elf).iter().any(|n| n == library))
    }

    /// The values that NVIDIA_DRIVER_CAPABILITIES may have, but for `all`.
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// Whether CUDA programs that open libraries of a capability go on without.
    pub fn is_soft(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|c| c.name == capability && c.soft)
    }

    /// The row of the driver that has a library of this name.
    pub fn driver(&self, library: &str) -> Option<&Driver> {
        self.drivers.iter().find(|d| d.libraries.matches_name(library))
    }

    /// The library that provides a symbol, `libcublasLt` for `cublasLtMatmul`: the longest prefix decides.
    pub fn family(&self, symbol: &str) -> Option<&str> {
        let fits = |f: &Family| f.prefixes.iter().filter(|p| begins(symbol, p)).map(String::len).max();
        let rows = self.families.iter().filter_map(|f| Some((fits(f)?, f)));
        rows.max_by_key(|(length, _)| *length).map(|(_, f)| f.name.as_str())
    }
}

/// A symbol begins with a prefix where no lower-case letter follows: `cudaMalloc` with `cuda`, `cudartX` not.
fn begins(symbol: &str, prefix: &str) -> bool {
    symbol.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()))
}

fn names(row: &str, globs: &[String]) -> Result<Globs, CatalogError> {
    // Library names have no slash, and their case matters.
    Globs::new(FILE, row, globs, true)
}

fn bad(row: &str, what: impl Into<String>) -> CatalogError {
    CatalogError::Row { file: FILE.to_owned(), row: format!("`{row}`"), what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    /// Names with their rows' needs.
    fn opens(path: &str, needed: &[&str], mentions: &[&str]) -> Vec<(String, Need)> {
        let owned = |list: &[&str]| list.iter().map(|m| (*m).to_owned()).collect();
        let elf = ElfFacts { needed: owned(needed), mentions: owned(mentions), ..ElfFacts::default() };
        let rows = Catalog::embedded().loading().opens_of(&ImagePath::new(path), &elf);
        rows.flat_map(|row| row.names(&elf).into_iter().map(|n| (n, row.need))).collect()
    }

    #[test]
    fn the_driver_s_libraries() {
        let loading = Catalog::embedded().loading();
        let driver = |n: &str| loading.driver(n).map(|d| d.name.as_str());
        for name in [
            "libcuda.so.1",
            "libcuda.so",
            "libnvidia-ml.so.1",
            "libnvidia-ptxjitcompiler.so.1",
            "libnvcuvid.so.1",
            "libcudadebugger.so.1",
            "libnvoptix.so.1",
            "libGLX_nvidia.so.0",
            "libvdpau_nvidia.so",
        ] {
            assert!(driver(name).is_some(), "{name}");
        }
        for name in ["libcudart.so.12", "libcudnn.so.9", "libnvrtc.so.12", "libnvToolsExt.so.1", "libGL.so.1"] {
            assert_eq!(driver(name), None, "{name}");
        }
    }

    #[test]
    fn families_of_symbols() {
        let family = |s: &str| Catalog::embedded().loading().family(s);
        assert_eq!(family("cudnnCreate"), Some("libcudnn"));
        assert_eq!(family("cublasCreate_v2"), Some("libcublas"));
        assert_eq!(family("cublasLtMatmul"), Some("libcublasLt"));
        assert_eq!(family("cusparseLtInit"), Some("libcusparseLt"));
        assert_eq!(family("ncclAllReduce"), Some("libnccl"));
        assert_eq!(family("cudaMalloc"), Some("libcudart"));
        assert_eq!(family("__cudaRegisterFatBinary"), Some("libcudart"));
        assert_eq!(family("cuInit"), None, "of the driver");
        assert_eq!(family("malloc"), None);
    }

    #[test]
    fn what_is_opened_by_name() {
        let has = |path: &str, needed: &[&str], mentions: &[&str], name: &str, need: Need| {
            let opens = opens(path, needed, mentions);
            assert!(opens.contains(&(name.to_owned(), need)), "{path}: {opens:?}");
        };
        let cudnn = "opt/s/nvidia/cudnn/lib/libcudnn.so.9";
        has(cudnn, &[], &[], "libcudnn_ops.so.9", Need::Each);
        has(cudnn, &[], &["libcudnn_ext.so"], "libcudnn_ext.so.9", Need::Each);
        assert!(!opens(cudnn, &[], &[]).iter().any(|(n, _)| n == "libcudnn_ext.so.9"));
        let hashed = "opt/s/ctranslate2.libs/libcudnn-74a4c495.so.8.9.7";
        has(hashed, &[], &[], "libcudnn_ops_infer.so.8", Need::Each);
        let nvrtc = "usr/local/cuda/lib64/libnvrtc.so.12.4.127";
        has(nvrtc, &[], &["libnvrtc-builtins.so.12.4", "libx.so"], "libnvrtc-builtins.so.12.4", Need::Each);
        has("s/torch/lib/libtorch_cuda.so", &["libcudart.so.12"], &[], "libnvrtc.so.12", Need::Optional);
        assert!(opens("s/torch/lib/libtorch_cuda.so", &["libcudart.so.11.0"], &[]).is_empty());
        let tf = "s/tensorflow/libtensorflow_framework.so.2";
        has(tf, &[], &["libcuda.so.1"], "libcudnn.so.9", Need::Any);
        assert!(opens(tf, &[], &[]).is_empty(), "built for processors alone");
        assert!(opens("usr/lib/libfoo.so", &[], &[]).is_empty());
        let elf = ElfFacts::default();
        let row = Catalog::embedded().loading().opening(&ImagePath::new(cudnn), &elf, "libcudnn_cnn.so.9");
        assert!(row.unwrap().when.contains("first"), "{row:?}");
    }

    #[test]
    fn every_row_says_when_and_why() {
        let loading = Catalog::embedded().loading();
        assert!(loading.opens.iter().all(|o| !o.when.is_empty() && o.because().len() > 40));
        assert!(loading.lookups().iter().all(|l| l.because().len() > 40));
    }
}
