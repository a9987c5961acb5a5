//! Machine types of clouds, and the GPU names that node labels have. Table: `instances.toml`.

use serde::Deserialize;

use super::names::nearest;
use super::{CatalogError, Tables, Trust};
use crate::model::{Platform, Virtualisation};

pub(super) const FILE: &str = "instances.toml";

/// A family of cloud machines and its GPU, `[[instance]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct Instance {
    /// "aws", "gcp", "azure".
    pub provider: String,
    /// "p5", "a2-highgpu", "Standard_NC*ads_A100_v4"; several, parted by " / ".
    pub family: String,
    /// All machine types, where the source lists them.
    #[serde(default)]
    pub types: Vec<String>,
    /// As the catalog of GPUs names it; other makers' GPUs by their maker's words.
    pub gpu: String,
    /// Of machines that are not linux/amd64.
    #[serde(default)]
    pub platform: Option<Platform>,
    #[serde(default)]
    pub virtualisation: Virtualisation,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl Instance {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.family)
    }

    /// Whether somebody was seen to say so; other rows are from memory.
    pub fn is_sure(&self) -> bool {
        self.trust.is_sure()
    }

    /// Whether a machine's name is one of the family's, whatever its size.
    pub(super) fn is_of_family(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.family.split(" / ").any(|family| {
            let family = family.to_ascii_lowercase();
            if let Some((head, tail)) = family.split_once('*') {
                let middle = text.strip_prefix(head).and_then(|t| t.strip_suffix(tail));
                return middle.is_some_and(|m| !m.is_empty() && m.bytes().all(|b| b.is_ascii_digit()));
            }
            match text.strip_prefix(&family) {
                Some("") => true,
                Some(rest) => rest.starts_with('.') || (rest.starts_with('-') && self.provider == "gcp"),
                None => false,
            }
        })
    }

    fn is_type(&self, text: &str) -> bool {
        match self.types.as_slice() {
            [] => self.is_of_family(text),
            types => types.iter().any(|t| t.eq_ignore_ascii_case(text)),
        }
    }
}

/// What a node label calls a GPU, `[[accelerator]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct Accelerator {
    pub provider: String,
    pub name: String,
    pub gpu: String,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl Accelerator {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

/// All machine types.
#[derive(Debug)]
pub struct Instances {
    rows: Vec<Instance>,
    accelerators: Vec<Accelerator>,
}

impl Instances {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        Ok(Self { rows: tables.rows(FILE, "instance")?, accelerators: tables.rows(FILE, "accelerator")? })
    }

    pub fn all(&self) -> &[Instance] {
        &self.rows
    }

    pub fn accelerators(&self) -> &[Accelerator] {
        &self.accelerators
    }

    /// A machine type, in any case of letters: "g5.xlarge", "a2-highgpu-1g", "Standard_NC24ads_A100_v4". Of families
    /// whose types are listed, one of those only.
    pub fn find(&self, text: &str) -> Option<&Instance> {
        self.rows.iter().find(|row| row.is_type(text))
    }

    /// The family of a machine's name, also of a size that is not listed, or of the family's name alone.
    pub fn family(&self, text: &str) -> Option<&Instance> {
        self.rows.iter().find(|row| row.is_of_family(text))
    }

    pub fn accelerator(&self, provider: &str, name: &str) -> Option<&Accelerator> {
        self.accelerators.iter().find(|a| a.provider == provider && a.name.eq_ignore_ascii_case(name))
    }

    /// Machine types whose names are near: those of the family where there is one, with none that are far.
    pub fn near(&self, text: &str) -> Vec<String> {
        const SHOWN: usize = 3;
        let family = self.family(text).map(|row| row.types.iter().map(String::as_str).collect::<Vec<_>>());
        let mut near = match family {
            Some(types) => nearest(text, types.iter().copied(), SHOWN),
            None => nearest(text, self.rows.iter().flat_map(|r| &r.types).map(String::as_str), SHOWN),
        };
        if near.is_empty() {
            near = family_types(self.family(text), SHOWN);
        }
        if near.is_empty() {
            let families = self.rows.iter().filter(|r| r.types.is_empty());
            near = nearest(text, families.flat_map(|r| r.family.split(" / ")), SHOWN);
        }
        near.into_iter().map(str::to_owned).collect()
    }
}

fn family_types(row: Option<&Instance>, most: usize) -> Vec<&str> {
    row.into_iter().flat_map(|r| &r.types).map(String::as_str).take(most).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::Catalog;
    use super::*;

    fn instances() -> &'static Instances {
        Catalog::embedded().instances()
    }

    #[test]
    fn machine_types_have_their_gpu() {
        for (text, provider, gpu) in [
            ("g5.xlarge", "aws", "NVIDIA A10G"),
            ("p5.48xlarge", "aws", "NVIDIA H100"),
            ("P4D.24xlarge", "aws", "NVIDIA A100"),
            ("a2-highgpu-1g", "gcp", "NVIDIA A100"),
            ("g2-standard-12", "gcp", "NVIDIA L4"),
            ("Standard_NC24ads_A100_v4", "azure", "NVIDIA A100"),
            ("standard_nc80adis_h100_v5", "azure", "NVIDIA H100"),
            ("Standard_ND96isr_MI300X_v5", "azure", "AMD Instinct MI300X"),
        ] {
            let row = instances().find(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((row.provider.as_str(), row.gpu.as_str()), (provider, gpu), "{text}");
        }
        for none in ["", "m5.large", "g5", "g5.banana", "g5.xlarge.x", "a2-highgpu-3g", "Standard_NCads_A100_v4"] {
            assert!(instances().find(none).is_none(), "{none}");
        }
        assert_eq!(instances().find("g5g.xlarge").unwrap().platform, Some(Platform::linux("arm64")));
        assert_eq!(instances().find("Standard_NV36ads_A10_v5").unwrap().virtualisation, Virtualisation::Vgpu);
    }

    #[test]
    fn near_names_are_of_the_family_first() {
        assert!(instances().near("g5.xlrage").contains(&"g5.xlarge".to_owned()));
        assert!(instances().near("g5.banana").iter().all(|n| n.starts_with("g5.")));
        assert_eq!(instances().near("p5.48xlage").first().map(String::as_str), Some("p5.48xlarge"));
        assert!(!instances().near("Standard_NC24ads_A100_v5").is_empty());
        assert!(instances().near("zzzzzzzzzzzz").is_empty());
        assert!(instances().near(&"x".repeat(100_000)).is_empty());
    }

    #[test]
    fn rows_agree_with_the_catalog_of_gpus() {
        let catalog = Catalog::embedded();
        let gpus =
            instances().all().iter().map(|r| &r.gpu).chain(instances().accelerators().iter().map(|a| &a.gpu));
        for gpu in gpus {
            let found = catalog.gpu(gpu);
            let known = found.is_ok();
            assert!(known || gpu == "Tesla T4G", "{gpu}: {found:?}");
        }
        let mut seen = BTreeSet::new();
        for row in instances().all() {
            for name in &row.types {
                assert!(seen.insert(name.to_ascii_lowercase()), "{name} stands twice");
                assert!(row.is_of_family(name), "{name} is not of {}", row.family);
            }
            // What is soldered to an Arm processor is in no other machine.
            let platforms = catalog.gpu(&row.gpu).map(|g| g.platforms().to_vec()).unwrap_or_default();
            if !platforms.is_empty() {
                assert_eq!(row.platform.as_slice(), platforms, "{}", row.family);
            }
        }
        let mut seen = BTreeSet::new();
        assert!(instances().accelerators().iter().all(|a| seen.insert((&a.provider, &a.name))));
    }
}
