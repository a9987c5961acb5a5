//! How platforms give containers their GPUs. Table: `presets.toml`.

use serde::Deserialize;

use super::{Catalog, CatalogError, Tables, Trust};
use crate::model::{GpuClass, Runtime, Start, Virtualisation};

const FILE: &str = "presets.toml";

/// The settings of a platform's targets, `[[preset]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct Preset {
    pub name: String,
    /// The platform, in a few words.
    pub what: String,
    pub runtime: Runtime,
    #[serde(default)]
    pub start: Start,
    #[serde(default)]
    pub virtualisation: Virtualisation,
    /// Whose machine types have its GPUs.
    #[serde(default)]
    pub provider: Option<String>,
    /// The class of its GPUs, where that says which they are.
    #[serde(default)]
    pub class: Option<GpuClass>,
    #[serde(default)]
    pub gpu: Vec<PresetGpu>,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

/// A GPU with the driver that a platform was seen to have.
#[derive(Debug, Clone, Deserialize)]
pub struct PresetGpu {
    pub gpu: String,
    #[serde(default)]
    pub driver: Option<String>,
    #[serde(default)]
    pub source: String,
}

impl Preset {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }

    /// All GPUs that the platform is known to have, each once, by name.
    pub fn gpus(&self, catalog: &Catalog) -> Vec<PresetGpu> {
        let of = |gpu: &str, source: String| PresetGpu { gpu: gpu.to_owned(), driver: None, source };
        let mut out = self.gpu.clone();
        if let Some(provider) = &self.provider {
            let rows = catalog.instances().all().iter().filter(|r| r.provider == *provider);
            out.extend(rows.map(|r| of(&r.gpu, r.because())));
            let named = catalog.instances().accelerators().iter().filter(|a| a.provider == *provider);
            out.extend(named.map(|a| of(&a.gpu, a.because())));
        }
        if let Some(class) = self.class {
            let rows = catalog.gpus().all().iter().filter(|g| g.class == class);
            out.extend(rows.map(|g| of(&g.name, g.because())));
        }
        out.sort_by(|a, b| a.gpu.cmp(&b.gpu));
        out.dedup_by(|a, b| a.gpu == b.gpu);
        out
    }
}

/// All presets.
#[derive(Debug)]
pub struct Presets(Vec<Preset>);

impl Presets {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        Ok(Self(tables.rows(FILE, "preset")?))
    }

    pub fn all(&self) -> &[Preset] {
        &self.0
    }

    pub fn find(&self, name: &str) -> Option<&Preset> {
        self.0.iter().find(|p| p.name.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_settings_of_their_platforms() {
        let catalog = Catalog::embedded();
        let preset = |name: &str| catalog.presets().find(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(preset("GKE").runtime, Runtime::Gke);
        assert_eq!(preset("eks").runtime, Runtime::Toolkit);
        assert_eq!(preset("jetson").runtime, Runtime::Tegra);
        assert_eq!(preset("wsl2").runtime, Runtime::Wsl);
        let gpus = |name: &str| preset(name).gpus(catalog).into_iter().map(|g| g.gpu).collect::<Vec<_>>();
        assert!(gpus("gke").contains(&"Tesla T4".to_owned()));
        assert!(gpus("eks").contains(&"NVIDIA A10G".to_owned()));
        assert!(gpus("jetson").iter().any(|g| g.contains("Orin")));
        assert!(gpus("wsl2").is_empty());
        for gpu in catalog.presets().all().iter().flat_map(|p| &p.gpu) {
            assert!(catalog.gpu(&gpu.gpu).is_ok() && !gpu.source.is_empty(), "{gpu:?}");
        }
    }
}
