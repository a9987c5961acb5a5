//! Finding a GPU by what users and machines call it: the catalog's name, an alias, nvidia-smi's name, a GPU Feature
//! Discovery label, a PCI device id, an architecture (`sm_80`, `gfx942`, `pvc`), a compute capability (`8.0`).

use super::Catalog;
use super::gpus::Gpu;
use super::names::{key, nearest, words};
use crate::model::{
    Capability, Device, Feature, GfxArch, GfxProcessor, GpuClass, IntelIp, Maker, Platform, SmArch,
};

/// What a user's words for a GPU mean.
#[derive(Debug, Clone)]
pub struct FoundGpu<'a> {
    /// The product; absent for a bare architecture.
    pub gpu: Option<&'a Gpu>,
    pub device: Device,
    because: String,
}

impl FoundGpu<'_> {
    /// As shown: the product's name, or `sm_90`, `gfx942`.
    pub fn name(&self) -> String {
        self.gpu.map_or_else(|| self.device.arch().to_string(), |g| g.name.clone())
    }

    pub fn class(&self) -> Option<GpuClass> {
        self.gpu.map(|g| g.class)
    }

    pub fn brand(&self) -> Option<&str> {
        self.gpu.map(|g| g.brand.as_str()).filter(|b| !b.is_empty())
    }

    /// Platforms of the hosts; empty when nothing binds the GPU to one.
    pub fn platforms(&self) -> &[Platform] {
        self.gpu.map_or(&[], |g| &g.platforms)
    }

    /// The row it comes from, with source and trust.
    pub fn because(&self) -> &str {
        &self.because
    }
}

/// Why words name no GPU that can be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    #[error("no GPU is named")]
    Empty,
    #[error("`{text}` is no GPU that the catalog knows{}", did_you_mean(near))]
    Unknown { text: String, near: Vec<String> },
    #[error("`{text}` may be any of: {}", list(names))]
    Ambiguous { text: String, names: Vec<String> },
    #[error("`{text}` names code, not a GPU; write `{plain}` for the GPUs it was made for")]
    CodeSuffix { text: String, plain: String },
    #[error("no GPU and no toolkit that the catalog knows has compute capability {capability} (`{text}`)")]
    UnknownCapability { text: String, capability: Capability },
    #[error("no GPU that the catalog knows has the target {processor} (`{text}`)")]
    UnknownProcessor { text: String, processor: GfxProcessor },
    #[error("no GPU that the catalog knows has IP version {} (`{text}`)", ip.dotted())]
    UnknownIp { text: String, ip: IntelIp },
    #[error("`{text}` asks for a feature that {processor} does not have")]
    NoSuchFeature { text: String, processor: GfxProcessor },
    #[error("`{text}` is a machine type of {provider}, not a GPU; its GPU is `{gpu}`")]
    Instance { text: String, provider: String, gpu: String },
}

fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => "; `imagelint gpus` lists them".to_owned(),
        near => format!("; did you mean {}?", near.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")),
    }
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// Makers' and families' words that people leave out, longest first.
const PREFIXES: &[&str] = &[
    "inteldatacentergpu",
    "nvidiageforce",
    "datacentergpu",
    "amdinstinct",
    "nvidiatesla",
    "amdradeon",
    "instinct",
    "geforce",
    "nvidia",
    "radeon",
    "intel",
    "tesla",
    "amd",
];

/// Words that alone name no product.
const COMMON: &[&str] = &[
    "nvidia",
    "geforce",
    "tesla",
    "quadro",
    "rtx",
    "gtx",
    "titan",
    "jetson",
    "pro",
    "ada",
    "generation",
    "blackwell",
    "laptop",
    "gpu",
    "edition",
    "server",
    "workstation",
    "max",
    "q",
    "ti",
    "super",
    "pcie",
    "sxm",
    "sxm2",
    "sxm4",
    "sxm5",
    "sxm6",
    "nvl",
    "hbm3",
    "hbm3e",
    "agx",
    "nx",
    "nano",
    "d",
    "x",
    "v2",
    "sff",
    "active",
    "lc",
    "ac",
    "amd",
    "radeon",
    "rx",
    "instinct",
    "intel",
    "arc",
    "data",
    "center",
    "igpu",
    "xt",
    "xtx",
    "gre",
    "oam",
    "flex",
];

/// A key without makers' words.
fn bare(key: &str) -> &str {
    PREFIXES.iter().find_map(|p| key.strip_prefix(p).filter(|rest| !rest.is_empty())).unwrap_or(key)
}

/// A label's name without what GPU Feature Discovery appends for time slicing and MIG.
fn without_sharing(text: &str) -> &str {
    let lower = text.to_ascii_lowercase();
    let end = lower.find("-mig-").or_else(|| lower.find(" mig ")).unwrap_or(text.len());
    let text = text.get(..end).unwrap_or(text);
    let cut = lower.get(..end).and_then(|l| l.strip_suffix("-shared")).map_or(text.len(), str::len);
    text.get(..cut).unwrap_or(text)
}

fn memory_size(word: &str) -> bool {
    ["gb", "g"].iter().any(|u| word.strip_suffix(u).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit())))
}

impl Catalog {
    /// Finds a GPU. A name that several products share is resolved to the first of them when they have the same
    /// capability, and is an error when they have not.
    pub fn gpu(&self, text: &str) -> Result<FoundGpu<'_>, GpuError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(GpuError::Empty);
        }
        if let Some(found) = self.bare_arch(text) {
            return found;
        }
        if let Some(found) = self.other_arch(text) {
            return found;
        }
        let name = without_sharing(text);
        let wanted = key(name);
        let exact: Vec<&Gpu> = self.gpus().all().iter().filter(|g| g.names().any(|n| key(n) == wanted)).collect();
        if !exact.is_empty() {
            return one_of(text, &exact);
        }
        let short = bare(&wanted);
        let exact: Vec<&Gpu> =
            self.gpus().all().iter().filter(|g| g.names().any(|n| bare(&key(n)) == short)).collect();
        if !exact.is_empty() {
            return one_of(text, &exact);
        }
        if let Some(error) = self.not_a_gpu(text) {
            return Err(error);
        }
        let wanted = words(name);
        let naming = |w: &String| !COMMON.contains(&w.as_str()) && !memory_size(w);
        if wanted.iter().any(naming) {
            let holds = |known: &str| {
                let known = words(known);
                wanted.iter().all(|w| known.contains(w))
            };
            let partial: Vec<&Gpu> = self.gpus().all().iter().filter(|g| g.names().any(holds)).collect();
            if !partial.is_empty() {
                return one_of(text, &partial);
            }
        }
        let known = self.gpus().all().iter().flat_map(|g| [g.name.as_str(), bare_words(&g.name)]);
        let known = known.chain(self.gpus().all().iter().flat_map(|g| g.aliases.iter().map(String::as_str)));
        let near = nearest(name, known, 3).into_iter().map(str::to_owned).collect();
        Err(GpuError::Unknown { text: text.to_owned(), near })
    }

    /// `sm_80`, `compute_80`, `8.0`.
    fn bare_arch(&self, text: &str) -> Option<Result<FoundGpu<'_>, GpuError>> {
        let lower = text.to_ascii_lowercase().replace('-', "_");
        let capability = match lower.parse::<Capability>() {
            // 10.1 was renamed 11.0, as `sm_101` was.
            Ok(capability) => SmArch::from(capability).capability()?,
            Err(_) => {
                let number = ["sm_", "compute_", "sm", "cc_", "cc"].iter().find_map(|p| lower.strip_prefix(p))?;
                if !number.starts_with(|c: char| c.is_ascii_digit()) {
                    return None;
                }
                let arch = match number.parse::<Capability>() {
                    Ok(capability) => SmArch::from(capability),
                    Err(_) => number.parse::<SmArch>().ok()?,
                };
                if arch.feature != Feature::Plain {
                    let plain = SmArch::new(arch.number, Feature::Plain).to_string();
                    return Some(Err(GpuError::CodeSuffix { text: text.to_owned(), plain }));
                }
                match arch.capability() {
                    Some(capability) => capability,
                    None => return Some(Err(GpuError::Unknown { text: text.to_owned(), near: Vec::new() })),
                }
            }
        };
        let row = self.gpus().all().iter().find(|g| g.device == Device::from(capability));
        let because = match (self.toolkits().toolkits_for(capability), row) {
            (Some((first, last)), _) => {
                format!("toolkits.toml: compute capability {capability} is a target of CUDA {first} to {last}")
            }
            (None, Some(row)) => row.because(),
            (None, None) => {
                return Some(Err(GpuError::UnknownCapability { text: text.to_owned(), capability }));
            }
        };
        Some(Ok(FoundGpu { gpu: None, device: capability.into(), because }))
    }

    /// AMD's target ids, Intel's IP versions and what ocloc calls them, PCI device ids.
    fn other_arch(&self, text: &str) -> Option<Result<FoundGpu<'_>, GpuError>> {
        let lower = text.to_ascii_lowercase();
        let bare = |device: Device, because: String| Some(Ok(FoundGpu { gpu: None, device, because }));
        if let Ok(arch) = lower.parse::<GfxArch>() {
            if arch.processor.is_generic() {
                let members = self.processors().isas().iter().filter(|i| i.generic == Some(arch.processor));
                let plain = members.map(|i| i.target.to_string()).next().unwrap_or_default();
                return Some(Err(GpuError::CodeSuffix { text: text.to_owned(), plain }));
            }
            let Some(isa) = self.processors().isa(arch.processor) else {
                let processor = arch.processor;
                return Some(Err(GpuError::UnknownProcessor { text: text.to_owned(), processor }));
            };
            let any = |mode| mode == crate::model::GfxMode::Any;
            if !(isa.xnack || any(arch.xnack)) || !(isa.sramecc || any(arch.sramecc)) {
                return Some(Err(GpuError::NoSuchFeature { text: text.to_owned(), processor: arch.processor }));
            }
            return bare(Device::Amd(arch), isa.because());
        }
        let word = lower.strip_prefix("intel_gpu_").map(|w| w.replace('_', "-"));
        let word = word.as_deref().unwrap_or(&lower);
        if let Some(row) = self.processors().ips().iter().find(|r| r.acronyms.iter().any(|a| a == word)) {
            return bare(row.ip.into(), row.because());
        }
        if let Ok(ip) = lower.parse::<IntelIp>() {
            return match self.processors().ip(ip) {
                Some(row) => bare(ip.into(), row.because()),
                None => Some(Err(GpuError::UnknownIp { text: text.to_owned(), ip })),
            };
        }
        let (vendor, id) = lower.split_once(':').unwrap_or(("", &lower));
        let id = id.strip_prefix("0x").unwrap_or(id);
        let told = match vendor.strip_prefix("0x").unwrap_or(vendor) {
            "1002" => Some(Maker::Amd),
            "8086" => Some(Maker::Intel),
            "10de" => Some(Maker::Nvidia),
            // `56a0` alone could be a word; with its 0x it is meant as a number.
            "" if lower.starts_with("0x") => None,
            _ => return None,
        };
        let of = |g: &&Gpu| g.pci.iter().any(|p| p == id) && told.is_none_or(|maker| g.maker() == maker);
        let rows: Vec<&Gpu> = self.gpus().all().iter().filter(of).collect();
        (!rows.is_empty()).then(|| one_of(text, &rows))
    }

    /// Names of machines.
    fn not_a_gpu(&self, text: &str) -> Option<GpuError> {
        let instance = self.instances().family(text)?;
        Some(GpuError::Instance {
            text: text.to_owned(),
            provider: instance.provider.clone(),
            gpu: instance.gpu.clone(),
        })
    }
}

fn one_of<'a>(text: &str, gpus: &[&'a Gpu]) -> Result<FoundGpu<'a>, GpuError> {
    match gpus {
        [first, rest @ ..] if rest.iter().all(|g| g.device == first.device) => {
            Ok(FoundGpu { gpu: Some(first), device: first.device, because: first.because() })
        }
        _ => {
            let names = gpus.iter().map(|g| format!("{} ({})", g.name, g.device)).collect();
            Err(GpuError::Ambiguous { text: text.to_owned(), names })
        }
    }
}

/// "GeForce RTX 5090" without "NVIDIA " and the like.
fn bare_words(name: &str) -> &str {
    let name = ["NVIDIA ", "AMD Instinct ", "AMD Radeon ", "AMD ", "Intel Data Center GPU ", "Intel Arc "]
        .iter()
        .find_map(|p| name.strip_prefix(p))
        .unwrap_or(name);
    name.strip_prefix("GeForce ").or_else(|| name.strip_prefix("Tesla ")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Result<(String, String), GpuError> {
        Catalog::embedded().gpu(text).map(|f| (f.name(), f.device.to_string()))
    }

    #[track_caller]
    fn is(text: &str, name: &str, capability: &str) {
        assert_eq!(find(text), Ok((name.to_owned(), capability.to_owned())), "{text}");
    }

    #[test]
    fn every_form_of_the_contract_is_understood() {
        for text in ["A100", "a100", "NVIDIA A100", "A100-SXM4-80GB", "a100-80gb", "NVIDIA-A100-SXM4-40GB"] {
            is(text, "NVIDIA A100", "8.0");
        }
        for text in ["NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "NVIDIA-A100-SXM4-80GB-SHARED", "A100 80GB PCIe"] {
            is(text, "NVIDIA A100", "8.0");
        }
        for text in ["RTX 5090", "rtx5090", "rtx_5090", "GeForce RTX 5090", "NVIDIA GeForce RTX 5090", "5090"] {
            is(text, "NVIDIA GeForce RTX 5090", "12.0");
        }
        is("h100", "NVIDIA H100", "9.0");
        is("H100 SXM", "NVIDIA H100", "9.0");
        is("NVIDIA-H100-80GB-HBM3", "NVIDIA H100", "9.0");
        is("L40S", "NVIDIA L40S", "8.9");
        is("NVIDIA-L4-SHARED", "NVIDIA L4", "8.9");
        is("Tesla-T4", "Tesla T4", "7.5");
        is("T4", "Tesla T4", "7.5");
        is("V100", "Tesla V100", "7.0");
        is("Tesla-V100-SXM2-16GB", "Tesla V100", "7.0");
        is("DGX Spark", "NVIDIA GB10", "12.1");
        is("GB10", "NVIDIA GB10", "12.1");
        is("Jetson Thor", "Jetson T5000 (AGX Thor)", "11.0");
        is("Thor", "Jetson T5000 (AGX Thor)", "11.0");
        is("Orin", "Jetson AGX Orin", "8.7");
        is("Jetson Orin Nano", "Jetson Orin Nano", "8.7");
        is("Xavier", "Jetson AGX Xavier", "7.2");
        is("1080 Ti", "NVIDIA GeForce GTX 1080 Ti", "6.1");
        is("RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation", "8.9");
    }

    #[test]
    fn bare_architectures_are_gpus_without_a_product() {
        for text in ["sm_80", "SM_80", "sm80", "compute_80", "8.0"] {
            is(text, "sm_80", "8.0");
        }
        is("sm_101", "sm_110", "11.0");
        is("10.1", "sm_110", "11.0");
        is("8.8", "sm_88", "8.8");
        let found = Catalog::embedded().gpu("9.0").unwrap();
        assert!(found.gpu.is_none() && found.class().is_none() && found.platforms().is_empty());
        assert!(found.because().contains("CUDA 11.8 to 13.5"), "{}", found.because());
        assert!(matches!(find("sm_90a"), Err(GpuError::CodeSuffix { plain, .. }) if plain == "sm_90"));
        assert!(matches!(find("compute_100f"), Err(GpuError::CodeSuffix { .. })));
        assert!(matches!(find("4.2"), Err(GpuError::UnknownCapability { .. })));
        assert!(matches!(find("sm_42"), Err(GpuError::UnknownCapability { .. })));
        assert!(find("sm_4294967295").is_err());
        assert!(find("sm_99999999999999").is_err());
    }

    #[test]
    fn names_of_gpus_that_differ_are_refused_with_a_list() {
        let Err(GpuError::Ambiguous { names, .. }) = find("RTX 6000") else { panic!("{:?}", find("RTX 6000")) };
        assert!(names.contains(&"Quadro RTX 6000 (7.5)".to_owned()), "{names:?}");
        assert!(names.contains(&"NVIDIA RTX 6000 Ada Generation (8.9)".to_owned()), "{names:?}");
        for text in ["RTX", "80GB", "Blackwell", "NVIDIA", "Jetson", "Laptop GPU"] {
            assert!(matches!(find(text), Err(GpuError::Unknown { .. })), "{text}: {:?}", find(text));
        }
    }

    #[test]
    fn misspelt_names_bring_near_ones() {
        let Err(GpuError::Unknown { near, .. }) = find("RTX 5900") else { panic!("{:?}", find("RTX 5900")) };
        assert!(near.len() <= 3 && near.iter().any(|n| n.to_lowercase().contains("5090")), "{near:?}");
        let text = find("H10O").unwrap_err().to_string();
        assert!(text.contains("`H100`"), "{text}");
        assert_eq!(find("  "), Err(GpuError::Empty));
        assert!(find("🦀").is_err());
        assert!(find(&"x".repeat(100_000)).is_err());
    }

    #[test]
    fn gpus_of_other_makers() {
        for text in ["MI300X", "AMD Instinct MI300X", "instinct-mi300x", "AMD_Instinct_MI300X"] {
            is(text, "AMD Instinct MI300X", "gfx942");
        }
        for text in ["RX 7900 XTX", "Radeon RX 7900 XTX", "7900 XTX", "AMD Radeon RX 7900 XTX"] {
            is(text, "AMD Radeon RX 7900 XTX", "gfx1100");
        }
        is("RX 7600", "AMD Radeon RX 7600", "gfx1102");
        is("RX 9070", "AMD Radeon RX 9070", "gfx1201");
        is("Steam Deck", "AMD Van Gogh iGPU", "gfx1033");
        is("gfx942", "gfx942", "gfx942");
        is("GFX90A:xnack+", "gfx90a:xnack+", "gfx90a:xnack+");
        for text in ["Max 1550", "Intel Data Center GPU Max 1550", "GPU Max 1550", "8086:0bd5", "0x0BD5"] {
            is(text, "Intel Data Center GPU Max 1550", "12.60.7");
        }
        for text in ["Arc B580", "B580", "Intel Arc B580", "0xe20b"] {
            is(text, "Intel Arc B580", "20.1.0");
        }
        for text in ["pvc", "PVC", "intel_gpu_pvc", "12.60.7"] {
            is(text, "intel_gpu_12_60_7", "12.60.7");
        }
        is("bmg-g21", "intel_gpu_20_1_0", "20.1.0");
        is("intel_gpu_bmg_g21", "intel_gpu_20_1_0", "20.1.0");
        assert!(matches!(find("gfx9-4-generic"), Err(GpuError::CodeSuffix { plain, .. }) if plain == "gfx942"));
        assert!(matches!(find("gfx9999"), Err(GpuError::UnknownProcessor { .. } | GpuError::Unknown { .. })));
        assert!(matches!(find("gfx1030:xnack+"), Err(GpuError::NoSuchFeature { .. })));
        assert!(matches!(find("99.1.1"), Err(GpuError::UnknownIp { .. })));
        assert!(matches!(find("Radeon"), Err(GpuError::Unknown { .. })), "{:?}", find("Radeon"));
        let Err(GpuError::Unknown { near, .. }) = find("MI3000X") else { panic!("{:?}", find("MI3000X")) };
        assert!(near.iter().any(|n| n.contains("MI300X")), "{near:?}");
    }

    #[test]
    fn machines_are_told_apart() {
        let machines = [
            ("p5.48xlarge", "NVIDIA H100"),
            ("g5", "NVIDIA A10G"),
            ("g6e.xlarge", "NVIDIA L40S"),
            ("a2-highgpu-1g", "NVIDIA A100"),
            ("Standard_NC24ads_A100_v4", "NVIDIA A100"),
        ];
        for (text, gpu) in machines {
            let found = find(text);
            assert!(matches!(&found, Err(GpuError::Instance { gpu: g, .. }) if g == gpu), "{text}: {found:?}");
        }
    }

    #[test]
    fn products_carry_their_hosts_platforms() {
        let catalog = Catalog::embedded();
        for text in
            ["GH200", "GB200", "GB300", "DGX Spark", "Jetson Thor", "Orin", "Xavier", "Jetson TX2", "Jetson Nano"]
        {
            assert_eq!(catalog.gpu(text).unwrap().platforms(), [Platform::linux("arm64")], "{text}");
        }
        for text in ["H100", "H200", "B200", "RTX 5090", "sm_121", "8.7"] {
            assert!(catalog.gpu(text).unwrap().platforms().is_empty(), "{text}");
        }
    }

    #[test]
    fn every_name_in_the_table_finds_a_gpu_of_its_capability() {
        let catalog = Catalog::embedded();
        for gpu in catalog.gpus().all() {
            for name in gpu.names() {
                for form in [name.to_owned(), name.to_uppercase(), name.replace(' ', "-"), format!("{name}-SHARED")]
                {
                    let found = catalog.gpu(&form).map(|f| f.device);
                    assert_eq!(found, Ok(gpu.device), "{form}");
                }
            }
        }
    }
}
