//! What the parts of an image are: frameworks, vendor libraries, profilers, idle files. Table: `components.toml`.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use super::variants::Variant;
use super::{CatalogError, Tables, Trust, names};
use crate::model::{Capability, ImagePath, Maker, Manager};

pub(super) const FILE: &str = "components.toml";

/// Compiled globs. Paths are matched as text, with bytes that are not UTF-8 replaced.
#[derive(Debug)]
pub struct Globs(GlobSet);

impl Globs {
    /// `paths`: `*` stays within a folder, and case matters.
    pub(super) fn new(file: &str, row: &str, globs: &[String], paths: bool) -> Result<Self, CatalogError> {
        let bad = |e: globset::Error| CatalogError::Row {
            file: file.to_owned(),
            row: format!("`{row}`"),
            what: e.to_string(),
        };
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            set.add(GlobBuilder::new(glob).literal_separator(paths).case_insensitive(!paths).build().map_err(bad)?);
        }
        Ok(Self(set.build().map_err(bad)?))
    }

    pub fn matches(&self, path: &ImagePath) -> bool {
        self.0.is_match(&*String::from_utf8_lossy(path.as_bytes()))
    }

    pub(super) fn matches_name(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// A row that is recognised by packages and paths.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    /// Python packages, as the table gives them.
    pub dists: Vec<String>,
    dist_globs: Globs,
    package_globs: Globs,
    path_globs: Globs,
    trust: Trust,
}

impl Row {
    /// Whether a package of that manager and name is it.
    pub fn is_package(&self, manager: Manager, name: &str) -> bool {
        match manager {
            Manager::Pip => self.dist_globs.matches_name(&names::dist(name)),
            Manager::Conda => {
                self.package_globs.matches_name(name) || self.dist_globs.matches_name(&names::dist(name))
            }
            Manager::Dpkg | Manager::Rpm | Manager::Apk => self.package_globs.matches_name(name),
            Manager::Path => false,
        }
    }

    pub(super) fn recognises_nothing(&self) -> bool {
        [&self.dist_globs, &self.package_globs, &self.path_globs].iter().all(|g| g.0.is_empty())
    }

    /// Whether a file at that path is of it.
    pub fn is_path(&self, path: &ImagePath) -> bool {
        self.path_globs.matches(path)
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

#[derive(Deserialize)]
struct RawRow {
    name: String,
    #[serde(default)]
    dists: Vec<String>,
    #[serde(default)]
    packages: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

/// All rows about components.
#[derive(Debug)]
pub struct Components {
    frameworks: Vec<Row>,
    vendors: Vec<Row>,
    profilers: Vec<Row>,
    unions: Vec<Row>,
    idle: Vec<Row>,
    variants: Vec<Variant>,
    floors: Vec<(Row, Capability)>,
}

#[derive(Deserialize)]
struct RawFloor {
    capability: Capability,
    #[serde(flatten)]
    row: RawRow,
}

impl Components {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let typed = |raw: RawRow| {
            Ok(Row {
                dist_globs: Globs::new(FILE, &raw.name, &raw.dists, false)?,
                package_globs: Globs::new(FILE, &raw.name, &raw.packages, false)?,
                path_globs: Globs::new(FILE, &raw.name, &raw.paths, true)?,
                name: raw.name,
                dists: raw.dists,
                trust: raw.trust,
            })
        };
        let floors = tables.rows::<RawFloor>(FILE, "floor")?;
        let floors = floors.into_iter().map(|f| Ok((typed(f.row)?, f.capability)));
        let floors = floors.collect::<Result<_, CatalogError>>()?;
        let mut rows = |key| -> Result<Vec<Row>, CatalogError> {
            tables.rows::<RawRow>(FILE, key)?.into_iter().map(typed).collect()
        };
        Ok(Self {
            frameworks: rows("framework")?,
            vendors: rows("vendor")?,
            profilers: rows("profiler")?,
            unions: rows("union")?,
            idle: rows("idle")?,
            variants: Variant::read(tables)?,
            floors,
        })
    }

    pub fn frameworks(&self) -> &[Row] {
        &self.frameworks
    }

    /// The framework that a package is: what an image is built around, so its verdict is the image's.
    pub fn framework_of_package(&self, manager: Manager, name: &str) -> Option<&Row> {
        self.frameworks.iter().find(|r| r.is_package(manager, name))
    }

    /// The framework that a file belongs to, where no metadata says it.
    pub fn framework_of_path(&self, path: &ImagePath) -> Option<&Row> {
        self.frameworks.iter().find(|r| r.is_path(path))
    }

    /// NVIDIA's own libraries: never the image's own GPU code.
    pub fn vendor_of_package(&self, manager: Manager, name: &str) -> Option<&Row> {
        self.vendors.iter().find(|r| r.is_package(manager, name))
    }

    pub fn vendor_of_path(&self, path: &ImagePath) -> Option<&Row> {
        self.vendors.iter().find(|r| r.is_path(path))
    }

    /// Profilers' libraries: the cubins inside are instrumentation stubs and never count.
    pub fn profiler(&self, path: &ImagePath) -> Option<&Row> {
        self.profilers.iter().find(|r| r.is_path(path))
    }

    /// Libraries whose modules hold one architecture each by design: judged by the union over the file.
    pub fn union(&self, path: &ImagePath) -> Option<&Row> {
        self.unions.iter().find(|r| r.is_path(path))
    }

    /// Files that a running image neither resolves nor imports.
    pub fn idle(&self, path: &ImagePath) -> Option<&Row> {
        self.idle.iter().find(|r| r.is_path(path))
    }

    /// Whether a library serves only newer GPUs than one of that capability, so that nothing calls it there.
    pub fn is_below_floor(&self, path: &ImagePath, capability: Capability) -> bool {
        self.floors.iter().any(|(row, floor)| capability < *floor && row.is_path(path))
    }

    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// The row about a package's variants for a maker's GPUs that holds for its version; without a version, the newest
    /// row.
    pub fn variant_for(&self, dist: &str, version: Option<&str>, maker: Maker) -> Option<&Variant> {
        let name = names::dist(dist);
        let mut rows = self.variants.iter().filter(|v| v.dists.contains(&name) && v.maker() == maker);
        match version {
            Some(version) => rows.find(|v| v.holds_for(version)),
            None => rows.next_back(),
        }
    }

    /// Whether a file of a package is one of its variants, of any maker or none (CPU).
    pub fn is_variant(&self, dist: &str, version: Option<&str>, path: &ImagePath) -> bool {
        let rows = Maker::ALL.into_iter().filter_map(|maker| self.variant_for(dist, version, maker));
        rows.into_iter().any(|row| row.is_variant(path) || row.is_other(path))
    }

    pub(super) fn tables(&self) -> [(&'static str, &[Row]); 5] {
        [
            ("framework", &self.frameworks),
            ("vendor", &self.vendors),
            ("profiler", &self.profilers),
            ("union", &self.unions),
            ("idle", &self.idle),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    const SITE: &str = "usr/local/lib/python3.11/site-packages";

    fn at(path: &str) -> ImagePath {
        ImagePath::new(format!("{SITE}/{path}"))
    }

    #[test]
    fn frameworks_by_package_and_by_file() {
        let c = Catalog::embedded().components();
        let package = |n: &str| c.framework_of_package(Manager::Pip, n).map(|r| r.name.as_str());
        assert_eq!(package("torch"), Some("torch"));
        assert_eq!(package("jax_cuda13_plugin"), Some("jax"));
        assert_eq!(package("onnxruntime-gpu"), Some("onnxruntime"));
        assert_eq!(package("llama_cpp_python"), Some("llama.cpp"));
        assert_eq!(package("torchvision"), None);
        assert_eq!(package("flash-attn"), None);
        assert_eq!(c.framework_of_package(Manager::Conda, "pytorch").map(|r| r.name.as_str()), Some("torch"));
        let path = |p: &str| c.framework_of_path(&at(p)).map(|r| r.name.as_str());
        assert_eq!(path("torch/lib/libtorch_cuda.so"), Some("torch"));
        assert_eq!(path("torchvision/_C.so"), None);
        let bare = ImagePath::new("app/libggml-cuda.so");
        assert_eq!(c.framework_of_path(&bare).map(|r| r.name.as_str()), Some("llama.cpp"));
    }

    #[test]
    fn vendor_libraries_profilers_and_idle_files() {
        let c = Catalog::embedded().components();
        assert!(c.vendor_of_package(Manager::Pip, "nvidia-cublas-cu12").is_some());
        assert!(c.vendor_of_package(Manager::Dpkg, "libcublas-12-8").is_some());
        assert!(c.vendor_of_package(Manager::Pip, "torch").is_none());
        assert!(c.vendor_of_path(&ImagePath::new("usr/local/cuda-12.8/lib64/libcublasLt.so.12.8.4.1")).is_some());
        assert!(c.vendor_of_path(&at("torchvision.libs/libnvjpeg.4a0b5c81.so.13")).is_some());
        assert!(c.vendor_of_path(&at("torch/lib/libtorch_cuda.so")).is_none());
        assert!(c.profiler(&at("triton/backends/nvidia/lib/cupti/libcupti.so.12")).is_some());
        assert!(c.profiler(&at("torch/lib/libtorch_cuda.so")).is_none());
        assert!(c.union(&at("nvidia/cublas/lib/libcublasLt.so.12")).is_some());
        assert!(c.union(&at("nvidia/cublas/lib/libcublas.so.12")).is_none());
        assert!(c.union(&at("nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9")).is_some());
        assert!(c.union(&at("nvidia/cudnn/lib/libcudnn_adv.so.9")).is_none());
        assert!(c.idle(&at("torch/bin/nvfuser_tests")).is_some());
        assert!(c.idle(&at("torch/lib/libtorch_cuda.so")).is_none());
        assert!(c.idle(&ImagePath::new("usr/local/cuda-12.2/extras/CUPTI/lib64/libcupti.so.12")).is_some());
    }

    #[test]
    fn paths_that_are_not_text_are_matched_all_the_same() {
        let c = Catalog::embedded().components();
        assert!(c.profiler(&ImagePath::new(b"opt/\xff/libcupti.so")).is_some());
    }
}
