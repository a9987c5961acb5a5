//! GPU products and what is known of each. Tables: `gpus.toml` (NVIDIA), `[[gpu]]` of `amd_gpus.toml`, `[[product]]` of
//! `intel_gpus.toml`. Finding one by what users write is in [`super::lookup`].

use std::collections::BTreeSet;

use serde::Deserialize;

use super::processors::{AMD, INTEL};
use super::{CatalogError, Tables, Trust};
use crate::model::{Capability, Device, GfxProcessor, GpuClass, IntelIp, Maker, Platform};

pub(super) const FILE: &str = "gpus.toml";

/// One product.
#[derive(Debug, Clone)]
pub struct Gpu {
    /// The catalog's name: "NVIDIA A100".
    pub name: String,
    pub device: Device,
    pub class: GpuClass,
    /// NVML's brand, as NVIDIA_REQUIRE conditions spell it; empty for other makers' GPUs.
    pub brand: String,
    pub aliases: Vec<String>,
    /// Names that the maker's tool prints: nvidia-smi's.
    pub smi: Vec<String>,
    /// PCI device ids, four hexadecimal digits in lower case.
    pub pci: Vec<String>,
    /// Platforms of its hosts, for products that are soldered to their CPU; empty: any, so the image's.
    pub platforms: Vec<Platform>,
    pub note: Option<String>,
    trust: Trust,
}

/// A row as it stands: one of the three architectures.
#[derive(Debug, Deserialize)]
struct RawGpu {
    name: String,
    cc: Option<Capability>,
    target: Option<GfxProcessor>,
    ip: Option<IntelIp>,
    class: GpuClass,
    #[serde(default)]
    brand: String,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    smi: Vec<String>,
    #[serde(default)]
    pci: Vec<String>,
    #[serde(default)]
    platforms: Vec<Platform>,
    #[serde(default)]
    note: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl RawGpu {
    fn typed(self, file: &str) -> Result<Gpu, CatalogError> {
        let bad =
            |what: &str| CatalogError::Row { file: file.to_owned(), row: self.name.clone(), what: what.to_owned() };
        let device = match (file, self.cc, self.target, self.ip) {
            (FILE, Some(cc), None, None) => Device::from(cc),
            (AMD, None, Some(target), None) => Device::from(target),
            (INTEL, None, None, Some(ip)) => Device::from(ip),
            _ => return Err(bad("needs `cc`, `target` or `ip`, as its table has it")),
        };
        let is_id =
            |id: &String| id.len() == 4 && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !self.pci.iter().all(is_id) {
            return Err(bad("`pci` is a list of four hexadecimal digits each"));
        }
        Ok(Gpu {
            device,
            name: self.name,
            class: self.class,
            brand: self.brand.to_ascii_lowercase(),
            aliases: self.aliases,
            smi: self.smi,
            pci: self.pci,
            platforms: self.platforms,
            note: self.note,
            trust: self.trust,
        })
    }
}

impl Gpu {
    /// Whether it is a Tegra (Jetson, Drive): an integrated GPU, whose machine code is not exchanged with discrete
    /// ones by promise.
    pub fn is_tegra(&self) -> bool {
        self.device.capability().is_some_and(super::compat::is_tegra)
            || (self.class == GpuClass::Embedded && self.maker() == Maker::Nvidia)
    }

    /// Where the row comes from, for reports.
    pub fn because(&self) -> String {
        let file = match self.maker() {
            Maker::Nvidia => FILE,
            Maker::Amd => AMD,
            Maker::Intel => INTEL,
        };
        self.trust.because(file, &self.name)
    }

    pub fn maker(&self) -> Maker {
        self.device.maker()
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

/// All products.
#[derive(Debug)]
pub struct Gpus {
    gpus: Vec<Gpu>,
    brands: Vec<Brands>,
}

impl Gpus {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let mut gpus = Vec::new();
        for (file, key) in [(FILE, "gpu"), (AMD, "gpu"), (INTEL, "product")] {
            for raw in tables.rows::<RawGpu>(file, key)? {
                gpus.push(raw.typed(file)?);
            }
        }
        let brands = tables.rows(FILE, "brands")?;
        Ok(Self { gpus, brands })
    }

    /// What NVML may call a GPU of that name or class, with the table's row; nothing where neither is known.
    pub fn brands(&self, name: &str, class: Option<GpuClass>) -> Option<(&[String], String)> {
        let brand = self.gpus.iter().find(|g| g.name == name).map(|g| g.brand.as_str());
        let named = self.brands.iter().find(|b| brand.is_some_and(|brand| b.of.iter().any(|o| o == brand)));
        let of_class = || self.brands.iter().find(|b| b.class.is_some() && b.class == class);
        let row = named.or_else(of_class)?;
        Some((&row.of, row.trust.because(FILE, &row.name)))
    }

    /// Products in the tables' order, NVIDIA's first.
    pub fn all(&self) -> &[Gpu] {
        &self.gpus
    }

    /// The architectures that there are products of, ascending.
    pub fn devices(&self) -> Vec<Device> {
        self.gpus.iter().map(|g| g.device).collect::<BTreeSet<_>>().into_iter().collect()
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
