//! PyTorch's wheels: which indexes exist for a version, which architectures each holds. Table: `pytorch.toml`.
//!
//! Rows differ in worth: a wheel that was opened is a measurement; a build script's list is what was asked for, and
//! may carry PTX that the wheel lacks. Answers say which it was.

use serde::Deserialize;

use super::torch_index::{self, HostRow};
use super::wheel_cuda::WheelCuda;
use super::{CatalogError, Tables, Trust, names};
use crate::model::{Capability, CudaVersion, Feature, SmArch};

const FILE: &str = "pytorch.toml";

/// The wheel that PyPI serves for a version, opened: `[[default_wheel]]`. x86-64.
#[derive(Debug, Clone)]
pub struct DefaultWheel {
    pub torch: String,
    pub index: String,
    pub cuda: CudaVersion,
    /// torch.cuda.get_arch_list(); empty where it could not be read.
    pub archs: Vec<SmArch>,
    /// The Triton that it asks for.
    pub triton: Option<String>,
    trust: Trust,
}

/// What a wheel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TorchArchs {
    /// Machine code.
    pub sass: Vec<SmArch>,
    /// PTX, as the build script asks for it; wheels that were opened held none.
    pub ptx: Vec<SmArch>,
    /// Whether the wheel itself was opened.
    pub measured: bool,
    pub because: String,
}

/// A wheel that covers some GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TorchWheel {
    pub torch: String,
    /// Name of the index: "cu128".
    pub index: String,
    pub cuda: CudaVersion,
    pub archs: TorchArchs,
    /// The rows that say that the index exists for the version and what it holds.
    pub because: Vec<String>,
}

/// Wheels that cover some GPUs, oldest CUDA first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Covering {
    /// Of the same torch version.
    pub same: Vec<TorchWheel>,
    /// Of the nearest later torch version that has any; only when there is none of the same.
    pub later: Vec<TorchWheel>,
}

/// The Pythons that a release of torch has wheels for, `[[python]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TorchPython {
    /// CPython's minor versions, both inclusive: 3.9 to 3.13.
    pub first: CudaVersion,
    pub last: CudaVersion,
    /// The C library that its wheels ask for, where their platform tag says.
    pub glibc: Option<String>,
    pub because: String,
}

/// What another project's wheel holds, `[[package]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct PackageRow {
    pub package: String,
    /// A version, a range or words.
    pub version: String,
    pub what: String,
    pub sass: String,
    pub ptx: String,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl PackageRow {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &format!("{} {}", self.package, self.version))
    }

    /// Machine code and PTX; words that are no architectures are left out.
    pub fn archs(&self) -> (Vec<SmArch>, Vec<SmArch>) {
        let list = |text: &str| text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        (list(&self.sass), list(&self.ptx.replace("ptx_", "sm_")))
    }
}

/// All wheels.
#[derive(Debug)]
pub struct Wheels {
    defaults: Vec<DefaultWheel>,
    variants: Vec<RawVariant>,
    arch_lists: Vec<ArchList>,
    packages: Vec<PackageRow>,
    pythons: Vec<RawPython>,
    never_existed: Vec<String>,
    pub(super) hosts: Vec<HostRow>,
    pub(super) other: WheelCuda,
}

#[derive(Deserialize)]
struct RawDefault {
    torch: String,
    variant: String,
    cuda: CudaVersion,
    archs: Vec<SmArch>,
    #[serde(default)]
    triton: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Debug, Deserialize)]
struct RawPython {
    torch: String,
    machine: String,
    first: String,
    last: String,
    #[serde(default)]
    glibc: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Debug, Deserialize)]
struct RawVariant {
    torch: String,
    index: String,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Deserialize)]
struct RawArchList {
    torch: String,
    index: String,
    machine: String,
    value: String,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Debug)]
struct ArchList {
    text: String,
    /// First and last minor of torch, inclusive.
    torch: [Vec<u64>; 2],
    index: String,
    machine: String,
    sass: Vec<SmArch>,
    ptx: Vec<SmArch>,
    trust: Trust,
}

impl ArchList {
    fn read(raw: RawArchList) -> Result<Self, CatalogError> {
        let bad = |what: String| CatalogError::Row {
            file: FILE.to_owned(),
            row: format!("[[arch_list]] `{} {}`", raw.torch, raw.index),
            what,
        };
        let (first, last) = raw.torch.split_once('-').unwrap_or((&raw.torch, &raw.torch));
        let (mut sass, mut ptx) = (Vec::new(), Vec::new());
        for entry in raw.value.split([';', ' ']).filter(|e| !e.is_empty()) {
            let (number, with_ptx) = entry.strip_suffix("+PTX").map_or((entry, false), |n| (n, true));
            let capability: Capability = number.parse().map_err(|e| bad(format!("{e}")))?;
            sass.push(SmArch::from(capability));
            if with_ptx {
                ptx.push(SmArch::from(capability));
            }
        }
        let text = format!("torch {} {} {}", raw.torch, raw.index, raw.machine);
        let torch = [minor(first), minor(last)];
        Ok(Self { text, torch, index: raw.index, machine: raw.machine, sass, ptx, trust: raw.trust })
    }

    fn holds_for(&self, torch: &[u64], index: &str, machine: &str) -> bool {
        let index = match self.index.strip_suffix('x') {
            Some(family) => index.len() == family.len() + 1 && index.starts_with(family),
            None => index == self.index,
        };
        index && machine == self.machine && self.torch[0].as_slice() <= torch && torch <= self.torch[1].as_slice()
    }
}

/// Major and minor of a torch version. Not trimmed: 2.10 and 2.1 differ, and 2.0 is 2.0.
fn minor(version: &str) -> Vec<u64> {
    let mut parts = names::version(version);
    parts.resize(2, 0);
    parts
}

/// CUDA's version in an index's name: cu92 is 9.2, cu128 is 12.8.
pub fn index_cuda(index: &str) -> Option<CudaVersion> {
    let digits = index.strip_prefix("cu").filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    Some(CudaVersion::new(major.parse().ok()?, minor.parse().ok()?))
}

/// The machine's name in the table for an OCI architecture.
fn machine(architecture: &str) -> &str {
    match architecture {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

impl Wheels {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let never_existed = tables
            .get(FILE)?
            .get("rules")
            .and_then(|r| r.get("index_never_existed"))
            .and_then(toml::Value::as_array)
            .map(|list| list.iter().filter_map(|v| Some(v.as_str()?.to_owned())).collect())
            .unwrap_or_default();
        let default = |r: RawDefault| DefaultWheel {
            torch: r.torch,
            index: r.variant,
            cuda: r.cuda,
            archs: r.archs,
            triton: r.triton,
            trust: r.trust,
        };
        let lists = tables.rows::<RawArchList>(FILE, "arch_list")?;
        Ok(Self {
            defaults: tables.rows(FILE, "default_wheel")?.into_iter().map(default).collect(),
            variants: tables.rows(FILE, "variant")?,
            arch_lists: lists.into_iter().map(ArchList::read).collect::<Result<_, _>>()?,
            packages: tables.rows(FILE, "package")?,
            pythons: tables.rows(FILE, "python")?,
            never_existed,
            hosts: torch_index::read(tables)?,
            other: WheelCuda::read(tables)?,
        })
    }

    /// Wheels that PyPI serves, newest first.
    pub fn defaults(&self) -> &[DefaultWheel] {
        &self.defaults
    }

    /// Rows about another project's wheels.
    pub fn packages(&self, name: &str) -> impl Iterator<Item = &PackageRow> {
        let name = names::dist(name);
        self.packages.iter().filter(move |p| names::dist(&p.package) == name)
    }

    /// Whether an index of that name was never published (cu122, cu125 …).
    pub fn index_never_existed(&self, index: &str) -> bool {
        self.never_existed.iter().any(|i| i == index)
    }

    /// What the wheel of a torch version from an index holds. `architecture` is OCI's word: "amd64", "arm64".
    /// An opened wheel goes before a build script's list.
    pub fn torch_archs(&self, torch: &str, index: &str, architecture: &str) -> Option<TorchArchs> {
        let version = names::version(torch);
        let machine = machine(architecture);
        let opened = |w: &&DefaultWheel| {
            machine == "x86_64" && names::version(&w.torch) == version && w.index == index && !w.archs.is_empty()
        };
        if let Some(wheel) = self.defaults.iter().find(opened) {
            let because = wheel.trust.because(FILE, &format!("torch {} {}", wheel.torch, wheel.index));
            return Some(TorchArchs { sass: wheel.archs.clone(), ptx: Vec::new(), measured: true, because });
        }
        let minor = minor(torch);
        let list = self.arch_lists.iter().find(|l| l.holds_for(&minor, index, machine))?;
        Some(TorchArchs {
            sass: list.sass.clone(),
            ptx: list.ptx.clone(),
            measured: false,
            because: list.trust.because(FILE, &list.text),
        })
    }

    /// Indexes that exist for a torch version, with the row that says so. A version without rows of its own takes
    /// those of another patch of its minor, and the row's text shows which.
    pub fn torch_indexes(&self, torch: &str) -> Vec<(&str, String)> {
        let version = names::version(torch);
        let because = |v: &RawVariant| v.trust.because(FILE, &format!("torch {} {}", v.torch, v.index));
        let own: Vec<_> = self.variants.iter().filter(|v| names::version(&v.torch) == version).collect();
        let minor_of = minor(torch);
        let rows = if own.is_empty() {
            let alike: Vec<_> = self.variants.iter().filter(|v| minor(&v.torch) == minor_of).collect();
            // Of several patches the newest one's: 2.12.1 before 2.12.0.
            let newest = alike.iter().map(|v| names::version(&v.torch)).max();
            alike.into_iter().filter(|v| Some(names::version(&v.torch)) == newest).collect()
        } else {
            own
        };
        let mut indexes: Vec<_> = rows.into_iter().map(|v| (v.index.as_str(), because(v))).collect();
        indexes.sort_by_key(|(index, _)| index_cuda(index));
        indexes.dedup_by_key(|(index, _)| *index);
        indexes
    }

    /// Versions of torch that have rows of their own, oldest first.
    pub fn torch_versions(&self) -> Vec<&str> {
        let mut known: Vec<&str> = self.variants.iter().map(|v| v.torch.as_str()).collect();
        known.sort_by_key(|v| names::version(v));
        known.dedup();
        known
    }

    /// All CUDA wheels of a torch version whose content is known, oldest CUDA first.
    pub fn torch_wheels(&self, torch: &str, architecture: &str) -> Vec<TorchWheel> {
        let torch = torch.split('+').next().unwrap_or(torch);
        let wheel = |(index, exists): (&str, String)| {
            let archs = self.torch_archs(torch, index, architecture)?;
            let cuda = index_cuda(index)?;
            let because = vec![exists, archs.because.clone()];
            Some(TorchWheel { torch: torch.to_owned(), index: index.to_owned(), cuda, because, archs })
        };
        self.torch_indexes(torch).into_iter().filter_map(wheel).collect()
    }

    /// The Triton that a release of torch asks for, as the opened wheel of its minor says.
    pub fn torch_triton(&self, torch: &str) -> Option<&str> {
        let wheel = self.defaults.iter().find(|w| minor(&w.torch) == minor(torch));
        wheel?.triton.as_deref()
    }

    /// The Pythons that a torch version has wheels for.
    pub fn torch_python(&self, torch: &str, architecture: &str) -> Option<TorchPython> {
        let (version, machine) = (minor(torch), machine(architecture));
        let holds = |r: &&RawPython| {
            let (first, last) = r.torch.split_once('-').unwrap_or((&r.torch, &r.torch));
            r.machine == machine && minor(first) <= version && version <= minor(last)
        };
        let row = self.pythons.iter().find(holds)?;
        Some(TorchPython {
            first: row.first.parse().ok()?,
            last: row.last.parse().ok()?,
            glibc: row.glibc.clone(),
            because: row.trust.because(FILE, &format!("python of torch {}", row.torch)),
        })
    }

    /// Wheels whose machine code covers all `capabilities`: of the same torch version, else of the nearest later one
    /// that has any. `covers` is the law of coverage, which stands elsewhere.
    pub fn torch_variants_covering(
        &self,
        torch: &str,
        capabilities: &[Capability],
        architecture: &str,
        covers: &dyn Fn(SmArch, Capability) -> bool,
    ) -> Covering {
        let all = |w: &TorchWheel| capabilities.iter().all(|cc| w.archs.sass.iter().any(|a| covers(*a, *cc)));
        let of = |torch: &str| -> Vec<TorchWheel> {
            self.torch_wheels(torch, architecture).into_iter().filter(all).collect()
        };
        let torch = torch.split('+').next().unwrap_or(torch);
        let same = of(torch);
        if !same.is_empty() {
            return Covering { same, later: Vec::new() };
        }
        let version = names::version(torch);
        let newer =
            self.torch_versions().into_iter().filter(|v| names::version(v) > version && minor(v) != minor(torch));
        let later = newer.map(of).find(|wheels| !wheels.is_empty()).unwrap_or_default();
        Covering { same, later }
    }

    /// Capabilities that a wheel was built for, as torch writes them in TORCH_CUDA_ARCH_LIST.
    pub fn arch_list_text(archs: &[SmArch]) -> String {
        let one = |a: &SmArch| {
            a.capability().map(|c| format!("{c}{}", if a.feature == Feature::Plain { "" } else { a.suffix() }))
        };
        archs.iter().filter_map(one).collect::<Vec<_>>().join(";")
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    /// Same major, minor not above: enough for these tests.
    fn covers(arch: SmArch, cc: Capability) -> bool {
        arch.feature == Feature::Plain
            && arch.capability().is_some_and(|a| a.major == cc.major && a.minor <= cc.minor)
    }

    fn covering(torch: &str, caps: &[(u16, u16)], architecture: &str) -> (Vec<String>, Vec<String>) {
        let caps: Vec<_> = caps.iter().map(|(a, b)| Capability::new(*a, *b)).collect();
        let found = Catalog::embedded().wheels().torch_variants_covering(torch, &caps, architecture, &covers);
        let text = |w: Vec<TorchWheel>| w.into_iter().map(|w| format!("{} {}", w.torch, w.index)).collect();
        (text(found.same), text(found.later))
    }

    fn archs(torch: &str, index: &str, architecture: &str) -> Option<String> {
        let found = Catalog::embedded().wheels().torch_archs(torch, index, architecture)?;
        Some(Wheels::arch_list_text(&found.sass))
    }

    #[test]
    fn what_wheels_hold() {
        assert_eq!(archs("2.6.0+cu124", "cu124", "amd64").as_deref(), Some("5.0;6.0;7.0;7.5;8.0;8.6;9.0"));
        assert_eq!(archs("2.8.0", "cu128", "amd64").as_deref(), Some("7.0;7.5;8.0;8.6;9.0;10.0;12.0"));
        assert_eq!(archs("2.10.0", "cu130", "arm64").as_deref(), Some("8.0;9.0;10.0;11.0;12.0"));
        assert_eq!(archs("1.13.1", "cu116", "amd64").as_deref(), Some("3.7;5.0;6.0;7.0;7.5;8.0;8.6"));
        assert_eq!(archs("2.6.0", "cu122", "amd64"), None);
        assert_eq!(archs("2.1.2", "cu124", "amd64"), None);
        let measured = |v, i| Catalog::embedded().wheels().torch_archs(v, i, "amd64").unwrap().measured;
        assert!(measured("2.9.1", "cu128") && !measured("2.9.1", "cu130"));
    }

    #[test]
    fn indexes_that_exist() {
        let wheels = Catalog::embedded().wheels();
        let of = |v: &str| wheels.torch_indexes(v).into_iter().map(|(i, _)| i).collect::<Vec<_>>();
        assert_eq!(of("2.7.1"), ["cu118", "cu126", "cu128"]);
        assert_eq!(of("2.7.0"), ["cu118", "cu126", "cu128"]);
        assert_eq!(of("2.14.1"), ["cu126", "cu130", "cu132"]);
        assert_eq!(of("1.7.1"), ["cu92", "cu101", "cu102", "cu110"]);
        assert!(of("3.0").is_empty());
        assert!(wheels.torch_indexes("2.7.0")[0].1.contains("torch 2.7.1 cu118"));
        assert!(wheels.index_never_existed("cu122") && !wheels.index_never_existed("cu128"));
        assert_eq!(index_cuda("cu92"), Some(CudaVersion::new(9, 2)));
        assert_eq!(index_cuda("cu128"), Some(CudaVersion::new(12, 8)));
        for odd in ["cu", "cpu", "rocm6.4", "cuéé"] {
            assert_eq!(index_cuda(odd), None, "{odd}");
        }
    }

    #[test]
    fn wheels_that_cover_gpus() {
        let none = Vec::<String>::new();
        assert_eq!(covering("2.7.1+cu126", &[(12, 0)], "amd64"), (vec!["2.7.1 cu128".into()], none.clone()));
        assert_eq!(covering("2.6.0", &[(12, 0)], "amd64"), (none.clone(), vec!["2.7.1 cu128".into()]));
        assert_eq!(covering("2.11.0", &[(7, 0)], "amd64"), (vec!["2.11.0 cu126".into()], none.clone()));
        let (same, _) = covering("2.10.0", &[(7, 0), (12, 0)], "amd64");
        assert_eq!(same, ["2.10.0 cu128", "2.10.0 cu129"]);
        assert_eq!(covering("2.15.0", &[(3, 7)], "amd64"), (none.clone(), none.clone()));
        assert_eq!(covering("2.10.0", &[(11, 0)], "arm64"), (vec!["2.10.0 cu130".into()], none));
    }

    #[test]
    fn other_packages() {
        let wheels = Catalog::embedded().wheels();
        assert_eq!(wheels.packages("faiss_gpu_cu12").next().unwrap().sass, "sm_70 sm_80");
    }
}
