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

/// A family of cloud machines and its GPU, `[[instance]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct Instance {
    pub provider: String,
    /// "p5", "a2-highgpu", "Standard_NC*ads_A100_v4"; several, parted by " / ".
    pub family: String,
    pub gpu: String,
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
    instances: Vec<Instance>,
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
        Ok(Self { gpus, instances: tables.rows(FILE, "instance")?, foreign })
    }

    /// Products in the table's order.
    pub fn all(&self) -> &[Gpu] {
        &self.gpus
    }

    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    pub(super) fn foreign(&self) -> &[Foreign] {
        &self.foreign
    }
}
