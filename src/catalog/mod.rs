//! Facts about GPUs, toolkits, drivers, wheels and components, from the tables in `rules/data`, and the laws that
//! are built on them. A row is a fact with its source; [`laws`] refuses tables that contradict themselves.

mod arch_gencode;
mod arch_grammar;
pub mod arch_lists;
pub mod arch_text;
pub mod bases;
mod build_laws;
pub mod compat;
pub mod components;
pub mod cuda_tags;
pub mod data_libraries;
mod data_names;
pub mod distros;
pub mod drivers;
pub mod extensions;
pub mod forward;
pub mod gfx_compilers;
mod gpu_library;
pub mod gpus;
pub mod instances;
pub mod intel_runtimes;
pub mod knobs;
pub mod laws;
pub mod libraries;
pub mod loading;
pub mod lookup;
pub mod merge;
pub mod names;
pub mod presets;
pub mod processors;
pub mod reference;
pub mod require;
pub mod rocm;
pub mod system_packages;
mod tag_words;
pub mod toolkits;
pub mod torch_index;
pub mod uses;
pub mod variants;
pub mod verdict;
pub mod wheel_cuda;
pub mod wheels;

use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::model::{Digest, DriverVersion, PtxIsa};
use arch_lists::ArchVariables;
use bases::Bases;
use components::Components;
use cuda_tags::CudaTags;
use data_libraries::DataLibraries;
use distros::Distros;
use drivers::Drivers;
use extensions::Extensions;
use forward::Forward;
use gpus::Gpus;
use instances::Instances;
use intel_runtimes::IntelRuntimes;
use knobs::Knobs;
use libraries::Libraries;
use loading::Loading;
use merge::Merged;
use presets::Presets;
use processors::Processors;
use rocm::Rocm;
use system_packages::SystemPackages;
use toolkits::Toolkits;
use uses::Uses;
use wheels::Wheels;

/// The tables that are compiled in, by file name. All count for the digest and for the law of sources; which of
/// them are read into types is in [`Catalog::parse`].
pub const FILES: &[(&str, &str)] = &[
    ("amd_gpus.toml", include_str!("../../rules/data/amd_gpus.toml")),
    ("arch_variables.toml", include_str!("../../rules/data/arch_variables.toml")),
    ("base_images.toml", include_str!("../../rules/data/base_images.toml")),
    ("build_knobs.toml", include_str!("../../rules/data/build_knobs.toml")),
    ("catalog.toml", include_str!("../../rules/data/catalog.toml")),
    ("components.toml", include_str!("../../rules/data/components.toml")),
    ("cuda_tags.toml", include_str!("../../rules/data/cuda_tags.toml")),
    ("cudnn.toml", include_str!("../../rules/data/cudnn.toml")),
    ("data_libraries.toml", include_str!("../../rules/data/data_libraries.toml")),
    ("distros.toml", include_str!("../../rules/data/distros.toml")),
    ("dockerfile_uses.toml", include_str!("../../rules/data/dockerfile_uses.toml")),
    ("drivers.toml", include_str!("../../rules/data/drivers.toml")),
    ("extensions.toml", include_str!("../../rules/data/extensions.toml")),
    ("forward_compat.toml", include_str!("../../rules/data/forward_compat.toml")),
    ("gpus.toml", include_str!("../../rules/data/gpus.toml")),
    ("instances.toml", include_str!("../../rules/data/instances.toml")),
    ("intel_gpus.toml", include_str!("../../rules/data/intel_gpus.toml")),
    ("libraries.toml", include_str!("../../rules/data/libraries.toml")),
    ("loading.toml", include_str!("../../rules/data/loading.toml")),
    ("presets.toml", include_str!("../../rules/data/presets.toml")),
    ("pytorch.toml", include_str!("../../rules/data/pytorch.toml")),
    ("require_vectors.toml", include_str!("../../rules/data/require_vectors.toml")),
    ("rocm.toml", include_str!("../../rules/data/rocm.toml")),
    ("system_packages.toml", include_str!("../../rules/data/system_packages.toml")),
    ("toolkits.toml", include_str!("../../rules/data/toolkits.toml")),
    ("wheel_cuda.toml", include_str!("../../rules/data/wheel_cuda.toml")),
    ("wheel_indexes.toml", include_str!("../../rules/data/wheel_indexes.toml")),
];

/// Why tables could not become a catalog.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// A table that the catalog needs was not given.
    #[error("the catalog has no {file}")]
    NoFile { file: &'static str },
    /// Not TOML.
    #[error("{file}: {source}")]
    Syntax { file: String, source: Box<toml::de::Error> },
    /// TOML, but a row lacks a key, has a wrong type or an impossible value.
    #[error("{file}, {row}: {what}")]
    Row { file: String, row: String, what: String },
    /// Well-formed rows that contradict each other.
    #[error("{file}, {row}: {law}")]
    Law { file: &'static str, row: String, law: String },
}

/// How a row is known, in the words of the tables' key `status` or `verified`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Trust {
    #[serde(alias = "verified", default)]
    pub status: String,
    #[serde(default)]
    pub source: String,
}

impl Trust {
    /// Whether the row rests on more than memory: an error may be built on it.
    pub fn is_sure(&self) -> bool {
        !self.status.is_empty() && !["memory", "inferred", "guess"].contains(&self.status.as_str())
    }

    /// "gpus.toml `NVIDIA A100`: source (status)".
    pub fn because(&self, file: &str, row: &str) -> String {
        match (self.source.as_str(), self.status.as_str()) {
            ("", status) => format!("{file} `{row}`: {status}"),
            (source, "") => format!("{file} `{row}`: {source}"),
            (source, status) => format!("{file} `{row}`: {} ({status})", source.trim_end()),
        }
    }
}

/// All facts, checked.
#[derive(Debug)]
pub struct Catalog {
    as_of: String,
    digest: Digest,
    merged: Option<Merged>,
    gpus: Gpus,
    instances: Instances,
    intel_runtimes: IntelRuntimes,
    presets: Presets,
    processors: Processors,
    toolkits: Toolkits,
    drivers: Drivers,
    knobs: Knobs,
    wheels: Wheels,
    components: Components,
    libraries: Libraries,
    loading: Loading,
    forward: Forward,
    bases: Bases,
    cuda_tags: CudaTags,
    data_libraries: DataLibraries,
    distros: Distros,
    extensions: Extensions,
    arch_variables: ArchVariables,
    rocm: Rocm,
    system_packages: SystemPackages,
    uses: Uses,
}

impl Catalog {
    /// The catalog that is compiled in; read at the first call.
    pub fn embedded() -> &'static Self {
        static CATALOG: OnceLock<Catalog> = OnceLock::new();
        CATALOG
            .get_or_init(|| Self::parse(FILES).expect("the tables compiled in keep their laws, a test holds that"))
    }

    /// Reads tables, given as (file name, text), and checks their laws.
    pub fn parse(files: &[(&str, &str)]) -> Result<Self, CatalogError> {
        Self::of(Tables::read(files)?, digest(files))
    }

    fn of(mut tables: Tables, digest: Digest) -> Result<Self, CatalogError> {
        laws::rows_say_how_they_are_known(&tables.0)?;
        let as_of = tables
            .get("catalog.toml")?
            .get("as_of")
            .and_then(Value::as_str)
            .ok_or_else(|| CatalogError::Row {
                file: "catalog.toml".into(),
                row: "as_of".into(),
                what: "no date".into(),
            })?
            .to_owned();
        let toolkits = Toolkits::read(&mut tables)?;
        let drivers = Drivers::read(&mut tables, &toolkits)?;
        let processors = Processors::read(&mut tables)?;
        let catalog = Self {
            as_of,
            digest,
            merged: None,
            data_libraries: DataLibraries::read(&mut tables, &processors)?,
            rocm: Rocm::read(&mut tables, &processors)?,
            processors,
            gpus: Gpus::read(&mut tables)?,
            instances: Instances::read(&mut tables)?,
            intel_runtimes: IntelRuntimes::read(&mut tables)?,
            presets: Presets::read(&mut tables)?,
            toolkits,
            drivers,
            knobs: Knobs::read(&mut tables)?,
            wheels: Wheels::read(&mut tables)?,
            components: Components::read(&mut tables)?,
            libraries: Libraries::read(&mut tables)?,
            loading: Loading::read(&mut tables)?,
            forward: Forward::read(&mut tables)?,
            bases: Bases::read(&mut tables)?,
            cuda_tags: CudaTags::read(&mut tables)?,
            distros: Distros::read(&mut tables)?,
            extensions: Extensions::read(&mut tables)?,
            arch_variables: ArchVariables::read(&mut tables)?,
            system_packages: SystemPackages::read(&mut tables)?,
            uses: Uses::read(&mut tables)?,
        };
        laws::check(&catalog)?;
        Ok(catalog)
    }

    /// The day the facts were gathered, `YYYY-MM-DD`.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// Digest over all tables, names and texts, in the order of their names.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What was merged over the embedded rows, if anything was.
    pub fn merged(&self) -> Option<&Merged> {
        self.merged.as_ref()
    }

    pub fn gpus(&self) -> &Gpus {
        &self.gpus
    }

    pub fn instances(&self) -> &Instances {
        &self.instances
    }

    pub fn intel_runtimes(&self) -> &IntelRuntimes {
        &self.intel_runtimes
    }

    pub fn presets(&self) -> &Presets {
        &self.presets
    }

    pub fn processors(&self) -> &Processors {
        &self.processors
    }

    pub fn toolkits(&self) -> &Toolkits {
        &self.toolkits
    }

    pub fn drivers(&self) -> &Drivers {
        &self.drivers
    }

    pub fn knobs(&self) -> &Knobs {
        &self.knobs
    }

    pub fn wheels(&self) -> &Wheels {
        &self.wheels
    }

    pub fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    pub fn components(&self) -> &Components {
        &self.components
    }

    pub fn loading(&self) -> &Loading {
        &self.loading
    }

    pub fn forward(&self) -> &Forward {
        &self.forward
    }

    pub fn bases(&self) -> &Bases {
        &self.bases
    }

    pub fn cuda_tags(&self) -> &CudaTags {
        &self.cuda_tags
    }

    pub fn data_libraries(&self) -> &DataLibraries {
        &self.data_libraries
    }

    pub fn distros(&self) -> &Distros {
        &self.distros
    }

    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    pub fn arch_variables(&self) -> &ArchVariables {
        &self.arch_variables
    }

    pub fn rocm(&self) -> &Rocm {
        &self.rocm
    }

    pub fn system_packages(&self) -> &SystemPackages {
        &self.system_packages
    }

    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    /// The newest PTX ISA that a driver's JIT knows; see [`Drivers::ptx_isa`].
    pub fn ptx_isa(&self, driver: &DriverVersion) -> Option<PtxIsa> {
        self.drivers.ptx_isa(driver)
    }
}

fn digest(files: &[(&str, &str)]) -> Digest {
    let mut sorted = files.to_vec();
    sorted.sort_unstable();
    let mut all = Vec::new();
    for (name, text) in sorted {
        all.extend_from_slice(format!("{name} {}\n", text.len()).as_bytes());
        all.extend_from_slice(text.as_bytes());
    }
    Digest::of(&all)
}

/// Tables read but not yet typed.
pub(crate) struct Tables(Vec<(String, Table)>);

impl Tables {
    fn read(files: &[(&str, &str)]) -> Result<Self, CatalogError> {
        let read = |&(name, text): &(&str, &str)| match text.parse::<Table>() {
            Ok(table) => Ok((name.to_owned(), table)),
            Err(source) => Err(CatalogError::Syntax { file: name.to_owned(), source: Box::new(source) }),
        };
        Ok(Self(files.iter().map(read).collect::<Result<_, _>>()?))
    }

    pub(crate) fn get(&mut self, file: &'static str) -> Result<&mut Table, CatalogError> {
        self.0.iter_mut().find(|(n, _)| n == file).map(|(_, t)| t).ok_or(CatalogError::NoFile { file })
    }

    /// Takes the rows `[[key]]` of a file, typed. An absent key is no rows.
    pub(crate) fn rows<T: DeserializeOwned>(
        &mut self,
        file: &'static str,
        key: &str,
    ) -> Result<Vec<T>, CatalogError> {
        let bad = |row: String, what: String| CatalogError::Row { file: file.to_owned(), row, what };
        let rows = match self.get(file)?.remove(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(rows)) => rows,
            Some(_) => return Err(bad(key.to_owned(), "not a list of rows".to_owned())),
        };
        let typed = |(index, value): (usize, Value)| {
            let name = row_name(key, index, &value);
            value.try_into::<T>().map_err(|e| bad(name, e.message().to_owned()))
        };
        rows.into_iter().enumerate().map(typed).collect()
    }
}

/// How a row is named in messages: "[[gpu]] `NVIDIA A100`".
fn row_name(key: &str, index: usize, value: &Value) -> String {
    let naming =
        ["name", "project", "package", "cuda", "version", "branch", "cuda_major", "torch", "family", "target"];
    let text = |k: &&str| match value.get(*k) {
        Some(Value::String(s)) => Some(s.clone()),
        Some(Value::Integer(i)) => Some(i.to_string()),
        _ => None,
    };
    match naming.iter().find_map(text) {
        Some(name) => format!("[[{key}]] `{name}`"),
        None => format!("[[{key}]] number {}", index + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_tables_keep_their_laws() {
        let catalog = Catalog::parse(FILES).unwrap();
        assert_eq!(catalog.as_of(), "2026-11-30");
        assert_eq!(catalog.digest(), Catalog::embedded().digest());
    }

    #[test]
    fn the_digest_does_not_depend_on_the_order_of_files_but_on_every_byte() {
        let mut files = FILES.to_vec();
        files.reverse();
        assert_eq!(digest(&files), digest(FILES));
        files[0].1 = "";
        assert_ne!(digest(&files), digest(FILES));
    }

    #[test]
    fn every_table_in_the_folder_is_compiled_in() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("rules/data");
        for entry in std::fs::read_dir(dir).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name == "README.md" || FILES.iter().any(|(f, _)| *f == name), "{name} is not in FILES");
        }
    }
}
