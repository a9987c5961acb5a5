//! GPU products and what is known of each. Tables: `gpus.toml`, and for telling other makers' GPUs apart,
//! `amd_gpus.toml` and `intel_gpus.toml`. Finding one by what users write is in [`super::lookup`].

use serde::Deserialize;

use super::{CatalogError, Tables, Trust};
use crate::model::{Capability, GpuClass, Platform};

pub(super) const FILE: &str = "gpus.toml";

/// One product, `[[gpu]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct Gpu {
    /// The catalog's name: "NVIDIA A100".
    pub name: String,
    #[serde(rename = "cc")]
    pub capability: Capability,
    pub class: GpuClass,
    /// NVML's brand, as NVIDIA_REQUIRE conditions spell it.
    pub brand: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Names that nvidia-smi prints.
    #[serde(default)]
    pub smi: Vec<String>,
    /// Platforms of its hosts, for products that are soldered to their CPU; empty: any, so the image's.
    #[serde(default)]
    pub platforms: Vec<Platform>,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl Gpu {
    /// Whether it is a Tegra (Jetson, Drive): an integrated GPU, whose machine code is not exchanged with discrete
    /// ones by promise.
    pub fn is_tegra(&self) -> bool {
        self.class == GpuClass::Embedded || super::compat::is_tegra(self.capability)
    }

    /// Where the row comes from, for reports.
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }

    pub fn status(&self) -> &str {
        &self.trust.status
    }

    pub fn source(&self) -> &str {
        &self.trust.source
    }

    /// All names it goes by: the catalog's, aliases, nvidia-smi's.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str())
            .chain(self.aliases.iter().map(String::as_str))
            .chain(self.smi.iter().map(String::as_str))
    }
}

/// Brands among which NVML's answer for a GPU is, `[[brands]]`.
#[derive(Debug, Clone, Deserialize)]
struct Brands {
    name: String,
    of: Vec<String>,
    /// GPUs of which only the class is known.
    class: Option<GpuClass>,
    #[serde(flatten)]
    trust: Trust,
}

/// A GPU of AMD or Intel: recognised, so that it can be said that it is not judged.
#[derive(Debug, Clone)]
pub(super) struct Foreign {
    pub maker: &'static str,
    pub name: String,
    pub target: String,
}

/// All products.
#[derive(Debug)]
pub struct Gpus {
    gpus: Vec<Gpu>,
    brands: Vec<Brands>,
    foreign: Vec<Foreign>,
}

#[derive(Deserialize)]
struct RawAmd {
    #[serde(default)]
    name: String,
    target: String,
}

#[derive(Deserialize)]
struct RawIntel {
    acronyms: Vec<String>,
    ip: String,
}

impl Gpus {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let mut foreign = Vec::new();
        for key in ["gpu", "isa", "generic"] {
            for raw in tables.rows::<RawAmd>("amd_gpus.toml", key)? {
                let name = if raw.name.is_empty() { raw.target.clone() } else { raw.name };
                foreign.push(Foreign { maker: "AMD", name, target: raw.target });
            }
        }
        for raw in tables.rows::<RawIntel>("intel_gpus.toml", "gpu")? {
            let row = |name| Foreign { maker: "Intel", name, target: raw.ip.clone() };
            foreign.extend(raw.acronyms.into_iter().map(row));
        }
        let mut gpus = tables.rows::<Gpu>(FILE, "gpu")?;
        for gpu in &mut gpus {
            gpu.brand.make_ascii_lowercase();
        }
        let brands = tables.rows(FILE, "brands")?;
        Ok(Self { gpus, brands, foreign })
    }

    /// What NVML may call a GPU of that name or class, with the table's row; nothing where neither is known.
    pub fn brands(&self, name: &str, class: Option<GpuClass>) -> Option<(&[String], String)> {
        let brand = self.gpus.iter().find(|g| g.name == name).map(|g| g.brand.as_str());
        let named = self.brands.iter().find(|b| brand.is_some_and(|brand| b.of.iter().any(|o| o == brand)));
        let of_class = || self.brands.iter().find(|b| b.class.is_some() && b.class == class);
        let row = named.or_else(of_class)?;
        Some((&row.of, row.trust.because(FILE, &row.name)))
    }

    /// Products in the table's order.
    pub fn all(&self) -> &[Gpu] {
        &self.gpus
    }

    pub(super) fn foreign(&self) -> &[Foreign] {
        &self.foreign
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    #[test]
    fn brands_by_name_and_by_class() {
        let gpus = Catalog::embedded().gpus();
        let brands = |name: &str, class| gpus.brands(name, class).map(|(b, _)| b.join(" "));
        assert_eq!(brands("NVIDIA L4", None).as_deref(), Some("tesla nvidia"));
        assert_eq!(brands("NVIDIA GeForce RTX 4090", None).as_deref(), Some("geforce geforcertx"));
        assert_eq!(brands("NVIDIA TITAN V", Some(GpuClass::Consumer)).as_deref(), Some("titan titanrtx"));
        assert_eq!(brands("sm_90", Some(GpuClass::Datacenter)).as_deref(), Some("tesla nvidia"));
        assert_eq!(brands("sm_90", None), None);
        assert_eq!(brands("Jetson AGX Orin", Some(GpuClass::Embedded)), None);
    }
}
