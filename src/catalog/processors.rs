//! AMD's processors and Intel's IP versions, and which code each takes besides its own: `[[isa]]` and `[[generic]]` of
//! `amd_gpus.toml`, `[[gpu]]` of `intel_gpus.toml`.

use serde::Deserialize;

use super::compat::Host;
use super::laws::broken;
use super::{Catalog, CatalogError, Tables, Trust};
use crate::model::{Arch, Device, GfxProcessor, IntelIp};

pub(super) const AMD: &str = "amd_gpus.toml";
pub(super) const INTEL: &str = "intel_gpus.toml";

/// One of AMD's processors.
#[derive(Debug, Clone, Deserialize)]
pub struct Isa {
    pub target: GfxProcessor,
    /// It retries page faults where the process asks for it.
    pub xnack: bool,
    pub sramecc: bool,
    /// Every GPU of it has its memory's ECC on.
    #[serde(default)]
    pub always_ecc: bool,
    /// The generic target whose code it takes.
    #[serde(default, deserialize_with = "some_processor")]
    pub generic: Option<GfxProcessor>,
    #[serde(flatten)]
    trust: Trust,
}

impl Isa {
    pub fn because(&self) -> String {
        self.trust.because(AMD, &self.target.to_string())
    }
}

/// An empty text is none.
fn some_processor<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<GfxProcessor>, D::Error> {
    let text = String::deserialize(d)?;
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(serde::de::Error::custom) }
}

/// One of Intel's IP versions.
#[derive(Debug, Clone, Deserialize)]
pub struct Ip {
    pub ip: IntelIp,
    /// What ocloc calls it: `pvc`, `bmg-g21`.
    pub acronyms: Vec<String>,
    /// IPs that accept its code.
    #[serde(default)]
    compat: Vec<IntelIp>,
    #[serde(flatten)]
    trust: Trust,
}

impl Ip {
    pub fn because(&self) -> String {
        let name = self.acronyms.first().cloned().unwrap_or_else(|| self.ip.dotted());
        self.trust.because(INTEL, &name)
    }
}

/// All of both.
#[derive(Debug)]
pub struct Processors {
    isas: Vec<Isa>,
    ips: Vec<Ip>,
}

impl Processors {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let this = Self { isas: tables.rows(AMD, "isa")?, ips: tables.rows(INTEL, "gpu")? };
        #[derive(Deserialize)]
        struct Generic {
            target: GfxProcessor,
            members: Vec<GfxProcessor>,
        }
        // The two lists say the same thing from both ends.
        for generic in tables.rows::<Generic>(AMD, "generic")? {
            let mut named: Vec<GfxProcessor> =
                this.isas.iter().filter(|i| i.generic == Some(generic.target)).map(|i| i.target).collect();
            let mut members = generic.members;
            named.sort_unstable();
            members.sort_unstable();
            if named != members {
                let law = "its members and the rows of [[isa]] that name it differ";
                return Err(broken(AMD, generic.target.to_string(), law));
            }
        }
        Ok(this)
    }

    /// AMD's processors in the table's order.
    pub fn isas(&self) -> &[Isa] {
        &self.isas
    }

    /// Intel's IP versions in the table's order.
    pub fn ips(&self) -> &[Ip] {
        &self.ips
    }

    pub fn isa(&self, processor: GfxProcessor) -> Option<&Isa> {
        self.isas.iter().find(|i| i.target == processor)
    }

    pub fn ip(&self, ip: IntelIp) -> Option<&Ip> {
        self.ips.iter().find(|i| i.ip == ip)
    }

    /// What a device takes besides code of its own.
    fn also(&self, device: Device) -> Vec<Arch> {
        match device {
            Device::Nvidia(_) => Vec::new(),
            Device::Amd(arch) => {
                let generic = self.isa(arch.processor).and_then(|i| i.generic);
                generic.map(|g| Arch::Gfx(g.into())).into_iter().collect()
            }
            Device::Intel(ip) => {
                self.ips.iter().filter(|row| row.compat.contains(&ip)).map(|row| row.ip.into()).collect()
            }
        }
    }
}

impl Catalog {
    /// A host of which only the GPU is known, with what the tables say of that.
    pub fn bare_host(&self, device: Device) -> Host {
        let always_ecc =
            device.gfx().and_then(|g| self.processors().isa(g.processor)).is_some_and(|i| i.always_ecc);
        Host { also: self.processors().also(device), always_ecc, ..Host::bare(device) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_take_what_the_tables_say() {
        let catalog = Catalog::embedded();
        let also = |device: &str| {
            let host = catalog.bare_host(device.parse().unwrap());
            host.also.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(also("gfx942"), "gfx9-4-generic");
        assert_eq!(also("gfx950"), "gfx9-4-generic");
        assert_eq!(also("gfx1103"), "gfx11-generic");
        // Neither has a generic target.
        assert_eq!([also("gfx90a"), also("gfx908")], ["", ""]);
        assert_eq!(also("12.56.5"), "intel_gpu_12_55_8");
        assert_eq!([also("12.60.7"), also("9.0")], ["", ""]);
        assert!(catalog.bare_host("gfx90a".parse().unwrap()).always_ecc);
        assert!(!catalog.bare_host("gfx906".parse().unwrap()).always_ecc);
    }
}
