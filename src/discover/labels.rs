//! The GPUs of one node, from its labels and its capacity: GPU Feature Discovery, the device plugins', clouds'.

use std::collections::BTreeSet;

use super::keys;
use super::nodes::Node;
use super::product::{Product, product};
use super::{Kind, Left, Seen, Sharing, judged, other};
use crate::catalog::Catalog;
use crate::catalog::instances::Instance;
use crate::model::{Capability, DriverVersion, GpuClass, Maker, Platform, Runtime, SmArch, Virtualisation};

/// What a node has; nothing where it has no GPU.
pub(super) fn seen(node: &Node, catalog: &Catalog) -> Vec<Seen> {
    let mut out = nvidia(node, catalog);
    out.extend(amd(node, catalog));
    out.extend(intel(node, catalog));
    if node.label("kubernetes.io/os").is_some_and(|os| os != "linux") {
        for seen in &mut out {
            if let Seen::Gpu { kind, .. } = seen {
                let why = "a node of another system than Linux starts no images of Linux".to_owned();
                *seen = Seen::LeftOut(Left { what: kind.gpu.clone(), why, gpu: None });
            }
        }
    }
    out
}

impl Node {
    fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(|v| v.trim()).filter(|v| !v.is_empty())
    }

    fn is(&self, key: &str) -> bool {
        self.label(key) == Some("true")
    }

    fn count(&self, resource: &str) -> Option<u64> {
        self.capacity.get(resource).and_then(|v| v.trim().parse().ok())
    }

    /// Devices of a vendor that Node Feature Discovery found, of a display or accelerator class where it tells the
    /// class: `pci-0302_10de`, `pci-10de`.
    fn has_pci(&self, vendor: &str) -> bool {
        self.pci(vendor).next().is_some()
    }

    fn pci<'a>(&'a self, vendor: &'a str) -> impl Iterator<Item = &'a str> {
        self.labels.keys().filter(|k| self.is(k)).filter_map(move |key| {
            let device = key.strip_prefix("feature.node.kubernetes.io/pci-")?.strip_suffix(".present")?;
            let mut parts = device.split('_');
            let class = parts.clone().find(|p| p.len() == 4 && ["03", "12"].iter().any(|c| p.starts_with(c)));
            parts.any(|p| p == vendor).then(|| class.unwrap_or_default())
        })
    }

    fn instance_type(&self) -> Option<&str> {
        self.label(keys::INSTANCE_TYPE).or_else(|| self.label("beta.kubernetes.io/instance-type"))
    }

    fn platform(&self) -> Option<Platform> {
        let arch = self.label(keys::ARCH).or_else(|| self.label("beta.kubernetes.io/arch"))?;
        // A word such as amd64; anything else is no processor's name.
        let word =
            !arch.is_empty() && arch.len() <= 16 && arch.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        word.then(|| format!("linux/{arch}").parse().ok()).flatten()
    }

    /// The first of these labels that is there, with its name.
    fn first<'a>(&'a self, keys: &[&'static str]) -> Option<(&'static str, &'a str)> {
        keys.iter().find_map(|key| Some((*key, self.label(key)?)))
    }
}

/// Whether a GPU is known, and not NVIDIA's.
fn is_others(gpu: &str, catalog: &Catalog) -> bool {
    catalog.gpu(gpu).is_ok_and(|found| found.device.maker() != Maker::Nvidia)
}

/// Where a node's GPU is named, and what is known of it there.
struct Named {
    product: Product,
    /// As a row would name it.
    gpu: Result<String, Left>,
    remark: String,
}

fn nvidia(node: &Node, catalog: &Catalog) -> Vec<Seen> {
    let slices = slices(node);
    let machine = node.instance_type().and_then(|t| catalog.instances().find(t));
    let machine = machine.filter(|row| !is_others(&row.gpu, catalog));
    let Some(named) = named(node, machine, catalog) else {
        let resources = node.capacity.iter().filter(|(k, v)| k.starts_with("nvidia.com/") && v.as_str() != "0");
        let mut what: Vec<String> = resources.map(|(key, count)| format!("{key}: {count}")).collect();
        if what.is_empty() && (node.is("nvidia.com/gpu.present") || node.has_pci("10de")) {
            what.push("a GPU of NVIDIA".to_owned());
        }
        if what.is_empty() {
            return Vec::new();
        }
        let why = "no label names the product; GPU Feature Discovery writes nvidia.com/gpu.product".to_owned();
        return vec![Seen::LeftOut(Left { what: what.join(", "), why, gpu: None })];
    };
    let gpu = match &named.gpu {
        Ok(gpu) => gpu.clone(),
        Err(left) => return vec![Seen::LeftOut(left.clone())],
    };
    if named.product.profile.as_deref() == Some("INVALID") {
        let why = "its MIG is set up in a way that the device plugin refuses (MIG-INVALID)".to_owned();
        return vec![Seen::LeftOut(Left { what: gpu, why, gpu: None })];
    }
    let mut remarks = vec![named.remark];
    let mut kind = Kind { platform: node.platform(), ..Kind::of(gpu) };
    match driver(node) {
        Ok(driver) => kind.driver = Some(driver),
        Err(remark) => remarks.push(remark),
    }
    kind.runtime = runtime(node, &kind.gpu, catalog);
    kind.sharing = sharing(node, &named.product);
    let vgpu = node.is(keys::VGPU_PRESENT)
        || named.product.virtualisation == Virtualisation::Vgpu
        || machine.is_some_and(|m| m.virtualisation == Virtualisation::Vgpu);
    if vgpu {
        kind.virtualisation = Virtualisation::Vgpu;
    }
    let mut profiles: BTreeSet<String> = named.product.profile.into_iter().collect();
    let single = named.product.virtualisation == Virtualisation::Mig;
    if let Some(size) = node.label(keys::GKE_PARTITION) {
        profiles.insert(size.to_owned());
    }
    let all_sliced = single || !profiles.is_empty();
    profiles.extend(slices);
    let mut out = Vec::new();
    // With the mixed strategy a node may have whole GPUs and slices side by side.
    let whole = || match node.count("nvidia.com/gpu").or_else(|| node.label("nvidia.com/gpu.count")?.parse().ok()) {
        Some(count) => count > 0,
        None => profiles.is_empty(),
    };
    if !all_sliced && (profiles.is_empty() || whole()) {
        out.push(Seen::Gpu { kind: kind.clone(), remarks: remarks.clone() });
    }
    if all_sliced || !profiles.is_empty() {
        if !profiles.is_empty() {
            remarks.push(format!("MIG profiles: {}", profiles.into_iter().collect::<Vec<_>>().join(", ")));
        }
        let kind = Kind { virtualisation: Virtualisation::Mig, ..kind };
        out.push(Seen::Gpu { kind, remarks });
    }
    out
}

/// MIG profiles that the device plugin's mixed strategy offers: `nvidia.com/mig-1g.10gb`.
fn slices(node: &Node) -> BTreeSet<String> {
    let offered = node.capacity.iter().filter(|(_, count)| count.as_str() != "0");
    let offered = offered.filter_map(|(key, _)| key.strip_prefix("nvidia.com/mig-"));
    let counted = node.labels.iter().filter(|(_, count)| count.as_str() != "0");
    let counted = counted.filter_map(|(key, _)| key.strip_prefix("nvidia.com/mig-")?.strip_suffix(".count"));
    let clean = |p: &str| p.trim_end_matches(".shared").to_owned();
    offered.chain(counted).map(clean).filter(|p| p.starts_with(|c: char| c.is_ascii_digit())).collect()
}

fn named(node: &Node, machine: Option<&Instance>, catalog: &Catalog) -> Option<Named> {
    let capability = capability(node);
    let plain = |gpu: Result<String, Left>, remark: String| Named { product: product(""), gpu, remark };
    if let Some(label) = node.label(keys::PRODUCT) {
        let product = product(label);
        let (gpu, remark) = by_product(&product.name, capability, catalog);
        return Some(Named {
            remark: remark.unwrap_or_else(|| format!("nvidia.com/gpu.product: {label}")),
            gpu,
            product,
        });
    }
    let clouds = [
        ("gcp", keys::GKE_ACCELERATOR),
        ("aws", keys::KARPENTER_GPU),
        // Cluster autoscaler's label, whose values are spelt as Google's.
        ("gcp", keys::EKS_ACCELERATOR),
    ];
    let label = clouds.iter().find_map(|(provider, key)| Some((*provider, *key, node.label(key)?)));
    if let Some((provider, key, label)) = label {
        let row = catalog.instances().accelerator(provider, label);
        let gpu = judged(catalog, row.map_or(label, |row| &row.gpu));
        if !gpu.as_ref().is_ok_and(|gpu| is_others(gpu, catalog)) {
            return Some(plain(gpu, format!("{key}: {label}")));
        }
    }
    if let (Some(row), Some(name)) = (machine, node.instance_type()) {
        return Some(plain(judged(catalog, &row.gpu), format!("machine type {name}; {}", row.because())));
    }
    let capability = capability?;
    let text = capability.to_string();
    Some(plain(judged(catalog, &text), format!("no product's name, but compute capability {text}")))
}

/// The catalog's name of a product; where it knows none, or its compute capability is another, the architecture.
fn by_product(
    name: &str,
    capability: Option<Capability>,
    catalog: &Catalog,
) -> (Result<String, Left>, Option<String>) {
    let arch = |c: Capability| SmArch::from(c).to_string();
    match (catalog.gpu(name), capability) {
        (Ok(found), Some(told)) if found.device != told.into() => {
            let remark = format!("{name}: the node tells compute capability {told}, the catalog {}", found.device);
            (judged(catalog, &arch(told)), Some(remark))
        }
        (Ok(found), _) => (Ok(found.name()), None),
        (Err(_), Some(told)) if catalog.gpu(&arch(told)).is_ok() => {
            let remark = format!("{name}: no product that the catalog knows, but compute capability {told}");
            (Ok(arch(told)), Some(remark))
        }
        (Err(_), _) => (judged(catalog, name), None),
    }
}

fn capability(node: &Node) -> Option<Capability> {
    let (major, minor) = (node.label(keys::COMPUTE_MAJOR)?, node.label(keys::COMPUTE_MINOR)?);
    format!("{major}.{minor}").parse().ok()
}

/// The driver's version, or what is to be said of its absence.
fn driver(node: &Node) -> Result<String, String> {
    let parts = |keys: [&str; 3]| {
        let [major, minor, last] = keys.map(|key| node.label(key));
        let last = last.map(|l| format!(".{l}")).unwrap_or_default();
        Some(format!("{}.{}{last}", major?, minor?))
    };
    let full = node.label(keys::DRIVER_FULL).map(str::to_owned);
    let (newer, older) = (|| parts(keys::DRIVER), || parts(keys::DRIVER_BEFORE));
    let Some(text) = full.or_else(newer).or_else(older) else {
        let set = node.label("cloud.google.com/gke-gpu-driver-version");
        let set = set.map(|s| format!(" (GKE's label says {s}, which is no version)")).unwrap_or_default();
        return Err(format!("driver: no label tells it{set}"));
    };
    match text.parse::<DriverVersion>() {
        Ok(version) => Ok(version.to_string()),
        Err(_) => Err(format!("driver: the label's {text} is no version of one")),
    }
}

fn runtime(node: &Node, gpu: &str, catalog: &Catalog) -> Runtime {
    let gke = node.labels.keys().any(|k| k.starts_with("cloud.google.com/gke-"));
    // NVIDIA's operator brings its toolkit in place of Google's device plugin.
    let operator = keys::NOT_GKES_OWN.iter().any(|key| node.is(key));
    if gke && !operator {
        return Runtime::Gke;
    }
    match catalog.gpu(gpu).ok().and_then(|g| g.class()) {
        Some(GpuClass::Embedded) => Runtime::Tegra,
        Some(GpuClass::Datacenter | GpuClass::Workstation | GpuClass::Consumer) | None => Runtime::Toolkit,
    }
}

fn sharing(node: &Node, product: &Product) -> Option<Sharing> {
    let told = node.first(&["nvidia.com/gpu.sharing-strategy", "cloud.google.com/gke-gpu-sharing-strategy"]);
    match told.map(|(_, value)| value) {
        Some("time-slicing" | "time-sharing") => return Some(Sharing::TimeSlicing),
        Some("mps") => return Some(Sharing::Mps),
        _ => {}
    }
    let several = node.label("nvidia.com/gpu.replicas").and_then(|r| r.parse::<u64>().ok()).is_some_and(|r| r > 1);
    let renamed = node.count("nvidia.com/gpu.shared").is_some_and(|n| n > 0);
    product.sharing.or((several || renamed).then_some(Sharing::Shared))
}

/// AMD's node labeller: `amd.com/gpu.product-name`, and `beta.amd.com/gpu.product-name.NAME` = count.
fn amd(node: &Node, catalog: &Catalog) -> Vec<Seen> {
    let values = |what: &str| -> BTreeSet<String> {
        let (plain, beta) = (format!("amd.com/gpu.{what}"), format!("beta.amd.com/gpu.{what}"));
        let told = [node.label(&plain), node.label(&beta)].into_iter().flatten().map(str::to_owned);
        let counted = node.labels.iter().filter(|(_, count)| count.as_str() != "0");
        let counted = counted.filter_map(|(k, _)| Some(k.strip_prefix(&beta)?.strip_prefix('.')?.to_owned()));
        told.chain(counted).collect()
    };
    let products = values("product-name");
    // The kernel's own module has no version, and the label then what is no number.
    let driver = values("driver-version").into_iter().find(|d| DriverVersion::of_amd(d).is_ok());
    let seen = |gpu: String, remark: String| {
        let kind = Kind { driver: driver.clone(), platform: node.platform(), ..Kind::of(gpu) };
        Seen::Gpu { kind, remarks: vec![remark] }
    };
    let of = |product: &str, remark: String| {
        judged(catalog, product).map_or_else(Seen::LeftOut, |gpu| seen(gpu, remark))
    };
    if !products.is_empty() {
        let known: BTreeSet<String> = products.iter().map(|p| other::shortest_known(catalog, p)).collect();
        return known.iter().map(|p| of(p, format!("amd.com/gpu.product-name: {p}"))).collect();
    }
    if let Some(row) =
        node.instance_type().and_then(|t| catalog.instances().find(t)).filter(|r| r.gpu.starts_with("AMD"))
    {
        return vec![of(&row.gpu, row.because())];
    }
    let devices: Vec<String> = values("device-id").into_iter().collect();
    let found = devices.iter().map(|id| (id, judged(catalog, &format!("1002:{id}"))));
    let found: Vec<Seen> =
        found.filter_map(|(id, gpu)| Some(seen(gpu.ok()?, format!("amd.com/gpu.device-id: {id}")))).collect();
    if !found.is_empty() && found.len() == devices.len() {
        return found;
    }
    let count = node.count("amd.com/gpu").filter(|n| *n > 0);
    let what = match (devices.is_empty(), count) {
        (false, _) => format!("AMD device {}", devices.join(", ")),
        (true, Some(count)) => format!("amd.com/gpu: {count}"),
        (true, None) if node.is("feature.node.kubernetes.io/amd-gpu") || node.has_pci("1002") => {
            "a GPU of AMD".into()
        }
        (true, None) => return Vec::new(),
    };
    let why = "no label names the product; AMD's node labeller writes amd.com/gpu.product-name".to_owned();
    vec![Seen::LeftOut(Left { what, why, gpu: None })]
}

/// Intel's rules for Node Feature Discovery: `gpu.intel.com/product`, and of every display device
/// `…/device-id.0380-0bd5.present`.
fn intel(node: &Node, catalog: &Catalog) -> Vec<Seen> {
    let seen = |gpu: String, remark: String| Seen::Gpu {
        kind: Kind { platform: node.platform(), ..Kind::of(gpu) },
        remarks: vec![remark],
    };
    if let Some(product) = node.label(keys::INTEL_PRODUCT) {
        let remark = format!("{}: {product}", keys::INTEL_PRODUCT);
        let found = judged(catalog, &other::intel_product(catalog, product));
        return vec![found.map_or_else(Seen::LeftOut, |gpu| seen(gpu, remark))];
    }
    let device = |key: &String| {
        let id = key.strip_prefix(keys::INTEL_DEVICE)?;
        Some(id.strip_suffix(".present").or_else(|| id.strip_suffix(".count"))?.to_owned())
    };
    let devices: BTreeSet<String> = node.labels.keys().filter_map(device).collect();
    let left = |what: String, why: &str| vec![Seen::LeftOut(Left { what, why: why.to_owned(), gpu: None })];
    if !devices.is_empty() {
        let all = devices.iter().map(|device| {
            // The class stands before the id.
            let id = device.rsplit('-').next().unwrap_or(device);
            match judged(catalog, &format!("8086:{id}")) {
                Ok(gpu) => seen(gpu, format!("{}{device}", keys::INTEL_DEVICE)),
                Err(_) => {
                    let why = "the catalog knows no GPU of that device id".to_owned();
                    Seen::LeftOut(Left { what: format!("Intel device {device}"), why, gpu: None })
                }
            }
        });
        return all.collect();
    }
    let offered = ["gpu.intel.com/xe", "gpu.intel.com/i915"].iter().any(|r| node.count(r).is_some_and(|n| n > 0));
    let unnamed =
        "no label names the product; Intel's rules for Node Feature Discovery write gpu.intel.com/product";
    if offered || node.is("intel.feature.node.kubernetes.io/gpu") {
        return left("a GPU of Intel".into(), unnamed);
    }
    // Without a class it may be any device; as a display it is mostly the processor's own.
    match node.pci("8086").find(|class| !class.is_empty()) {
        Some(_) => left("a GPU of Intel, perhaps the processor's own".into(), unnamed),
        None => Vec::new(),
    }
}
