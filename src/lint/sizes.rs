//! How much device code an image holds, and how much of it no target of the fleet takes.

use std::collections::{BTreeMap, BTreeSet};

use super::{case, forward};
use crate::catalog::Catalog;
use crate::catalog::compat::{Host, taken};
use crate::catalog::verdict;
use crate::config::Fleet;
use crate::model::{Arch, Container, Evidence, EvidenceFile, Form, Item, Module, escape};
use crate::report::{ArchSize, ComponentSize, Sizes, Unused};

#[derive(Default, Clone, Copy)]
struct Sum {
    entries: u64,
    bytes: u64,
    unused: u64,
    not_judged: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.entries = self.entries.saturating_add(other.entries);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.unused = self.unused.saturating_add(other.unused);
        self.not_judged = self.not_judged.saturating_add(other.not_judged);
    }
}

/// By architecture, then form.
type Archs = BTreeMap<(Arch, Form), Sum>;

/// Name and version.
type Who = (String, Option<String>);

/// The bytes of an image (one evidence per platform) against a fleet; without targets, the bytes alone.
pub fn sizes(evidence: &[Evidence], fleet: &Fleet, catalog: &Catalog) -> Sizes {
    let targets = !fleet.targets.is_empty();
    let all: Vec<&Evidence> = evidence.iter().collect();
    let mut components: BTreeMap<Who, Archs> = BTreeMap::new();
    let (mut vendor, mut stored) = (0u64, 0u64);
    for (place, one) in evidence.iter().enumerate() {
        stored = stored.saturating_add(one.image.size);
        let takers = fleet.targets.iter().filter(|t| case::of_platform(t, &all) == place);
        let hosts: Vec<Host> =
            takers.map(|t| case::host_of(t, one, forward::compat(t, one, catalog).as_ref(), catalog)).collect();
        let loads = Loads::of(one, &hosts, catalog);
        for file in one.files.iter().filter(|f| f.facts.has_device_code()) {
            let counts = super::roles::counts(file, catalog);
            let hosts: Vec<&Host> =
                hosts.iter().enumerate().filter(|(n, _)| loads.has(*n, file)).map(|h| h.1).collect();
            let archs = components.entry(who(one, file)).or_default();
            let mut unused = 0u64;
            for module in &file.facts.modules {
                let judged = targets && counts && is_judged(module, file);
                for (item, sum) in weigh(module, judged.then_some(hosts.as_slice()), targets) {
                    unused = unused.saturating_add(sum.unused);
                    archs.entry((item.arch, item.form)).or_default().add(sum);
                }
            }
            if is_vendor(one, file, catalog) {
                vendor = vendor.saturating_add(unused);
            }
        }
    }
    finish(components, targets.then_some(vendor), stored)
}

/// Which files of the components each host loads.
struct Loads(Vec<BTreeSet<*const EvidenceFile>>);

impl Loads {
    fn of(evidence: &Evidence, hosts: &[Host], catalog: &Catalog) -> Self {
        let files = |host: &Host| {
            let all = 0..evidence.components.len();
            all.flat_map(|index| case::loaded(index, evidence, host, catalog).0).map(std::ptr::from_ref).collect()
        };
        Self(hosts.iter().map(files).collect())
    }

    fn has(&self, host: usize, file: &EvidenceFile) -> bool {
        self.0.get(host).is_some_and(|files| files.contains(&std::ptr::from_ref(file)))
    }
}

/// Whether the driver alone chooses among a module's items: input of linkers waits for these, and PTX that stands as
/// text in a library is a probe or a template.
fn is_judged(module: &Module, file: &EvidenceFile) -> bool {
    let probe = module.container == Container::PtxText && file.facts.kind.is_elf();
    !module.relocatable && !probe
}

/// The items of a module; `hosts`: those that may load it, where it is judged at all.
fn weigh<'a>(
    module: &'a Module,
    hosts: Option<&'a [&'a Host]>,
    targets: bool,
) -> impl Iterator<Item = (&'a Item, Sum)> {
    let items = || module.items.iter().map(|i| &i.item);
    let wanted: Vec<&Item> = hosts.into_iter().flatten().flat_map(|host| taken(items(), host)).collect();
    module.items.iter().map(move |count| {
        let mut sum = Sum { entries: count.entries, bytes: count.bytes, ..Sum::default() };
        let driver_s = verdict::loads(&count.item);
        if hosts.is_none() || !driver_s {
            sum.not_judged = if targets { count.bytes } else { 0 };
        } else if !wanted.iter().any(|item| std::ptr::eq(*item, &count.item)) {
            sum.unused = count.bytes;
        }
        (&count.item, sum)
    })
}

fn who(evidence: &Evidence, file: &EvidenceFile) -> Who {
    match file.component.map(|c| &evidence.components[c]) {
        Some(c) => (escape(c.name.as_bytes()), c.version.as_ref().map(|v| escape(v.as_bytes()))),
        None => (file.path.to_string(), None),
    }
}

/// NVIDIA's own, by its package or by its path in another's.
fn is_vendor(evidence: &Evidence, file: &EvidenceFile, catalog: &Catalog) -> bool {
    let rows = catalog.components();
    let package = file.component.map(|c| &evidence.components[c]);
    package.is_some_and(|c| rows.vendor_of_package(c.manager, &c.name).is_some())
        || rows.vendor_of_path(&file.path).is_some()
}

/// `vendor`: what of the unused bytes is NVIDIA's; `None`: there are no targets.
fn finish(components: BTreeMap<Who, Archs>, vendor: Option<u64>, stored: u64) -> Sizes {
    let targets = vendor.is_some();
    let mut all = Archs::new();
    let mut rows: Vec<ComponentSize> = Vec::new();
    for ((name, version), archs) in components {
        let mut sum = Sum::default();
        for (key, one) in &archs {
            all.entry(*key).or_default().add(*one);
            sum.add(*one);
        }
        let (bytes, not_judged) = (sum.bytes, sum.not_judged);
        let unused = targets.then_some(sum.unused);
        rows.push(ComponentSize { name, version, bytes, unused, not_judged, archs: listed(archs, targets) });
    }
    // By name already, so equal sizes stay in that order.
    rows.sort_by_key(|c| std::cmp::Reverse(c.bytes));
    let mut sum = Sum::default();
    all.values().for_each(|one| sum.add(*one));
    let unused = vendor.map(|vendor| {
        let rebuild = sum.unused.saturating_sub(vendor);
        let percent = (rebuild as f64 / stored as f64 * 1000.0).round() / 10.0;
        let rebuild_percent = Some(percent).filter(|_| stored > 0 && rebuild <= stored);
        Unused { bytes: sum.unused, rebuild, vendor, rebuild_percent }
    });
    Sizes { bytes: sum.bytes, archs: listed(all, targets), components: rows, unused }
}

fn listed(archs: Archs, targets: bool) -> Vec<ArchSize> {
    let row = |((arch, form), sum): ((Arch, Form), Sum)| ArchSize {
        arch,
        form,
        entries: sum.entries,
        bytes: sum.bytes,
        unused: targets.then_some(sum.unused),
        not_judged: sum.not_judged,
    };
    archs.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::parse_targets;
    use crate::lint::lab::Lab;
    use crate::model::{FileKind, ItemCount, Packing, PtxIsa};

    /// `sm_80:100` is an entry of 100 bytes; `compute_` makes PTX, `lto_` LTO-IR.
    fn module(items: &[&str]) -> Module {
        let item = |text: &&str| {
            let (arch, bytes) = text.split_once(':').unwrap();
            let form = match arch.split('_').next() {
                Some("compute") => Form::Ptx,
                Some("lto") => Form::LtoIr,
                _ => Form::Sass,
            };
            let isa = (form == Form::Ptx).then_some(PtxIsa::new(8, 0));
            let arch = arch.parse().unwrap();
            let item = Item { arch, form, kind: 2, isa, packing: Packing::None, toolkit: None };
            ItemCount { item, entries: 1, bytes: bytes.parse().unwrap() }
        };
        Module {
            container: Container::Fatbin,
            section: None,
            relocatable: false,
            items: items.iter().map(item).collect(),
            count: 1,
            first: 0,
        }
    }

    fn add(lab: &mut Lab, path: &str, package: &str, modules: Vec<Module>) {
        lab.library(path, (package, "1.0"), "lib.so", false);
        Arc::get_mut(&mut lab.0.files.last_mut().unwrap().facts).unwrap().modules = modules;
    }

    fn of(lab: &Lab, targets: &[&str]) -> Sizes {
        let catalog = Catalog::embedded();
        let fleet = Fleet::of_targets(parse_targets(targets.iter().copied(), catalog).unwrap());
        sizes(std::slice::from_ref(&lab.0), &fleet, catalog)
    }

    fn unused(archs: &[ArchSize]) -> Vec<String> {
        let word = |a: &ArchSize| format!("{} {:?} {} of {}", a.arch, a.form, a.unused.unwrap(), a.bytes);
        archs.iter().map(word).collect()
    }

    fn torch() -> Lab {
        let mut lab = Lab::new();
        lab.0.image.size = 10_000;
        let general = || module(&["sm_50:1", "sm_80:20", "sm_86:300", "sm_90:4000", "compute_90:50000"]);
        add(&mut lab, "SITE/torch/lib/libtorch_cuda.so", "torch", vec![general(), module(&["sm_90a:7"])]);
        lab
    }

    #[test]
    fn without_targets_there_are_bytes_alone() {
        let sizes = of(&torch(), &[]);
        assert_eq!((sizes.bytes, sizes.unused), (54_328, None));
        assert_eq!(sizes.components[0].archs.iter().map(|a| a.bytes).sum::<u64>(), 54_328);
        assert!(sizes.archs.iter().all(|a| a.unused.is_none() && a.not_judged == 0));
    }

    #[test]
    fn what_a_better_entry_stands_in_for_is_unused() {
        let sizes = of(&torch(), &["RTX 4090", "a100"]);
        let want = ["sm_50 Sass 1 of 1", "sm_80 Sass 0 of 20", "sm_86 Sass 0 of 300", "sm_90 Sass 4000 of 4000"];
        assert_eq!(unused(&sizes.archs)[..4], want);
        let without = of(&torch(), &["RTX 4090"]);
        assert_eq!(unused(&without.archs)[1], "sm_80 Sass 20 of 20", "8.9 takes sm_86");
        // Only the modules that lack machine code take PTX.
        let blackwell = of(&torch(), &["RTX 5090"]);
        assert_eq!(blackwell.unused.unwrap().bytes, 4_328);
    }

    #[test]
    fn modules_choose_by_themselves() {
        let mut lab = Lab::new();
        let modules = vec![module(&["sm_80:1", "sm_86:2"]), module(&["sm_80:10"])];
        add(&mut lab, "SITE/torch/lib/libtorch_cuda.so", "torch", modules);
        // sm_80 is unused in the first module and used in the second.
        assert_eq!(unused(&of(&lab, &["RTX 4090"]).archs), ["sm_80 Sass 1 of 11", "sm_86 Sass 0 of 2"]);
    }

    #[test]
    fn what_a_rebuild_saves_is_nobody_else_s_library() {
        let mut lab = Lab::new();
        lab.0.image.size = 2_000;
        let blas = "SITE/nvidia/cublas/lib/libcublasLt.so.12";
        add(&mut lab, blas, "nvidia-cublas-cu12", vec![module(&["sm_75:500"]), module(&["sm_90:600"])]);
        add(&mut lab, "SITE/torch/lib/libtorch_cuda.so", "torch", vec![module(&["sm_75:250", "sm_90:30"])]);
        let sizes = of(&lab, &["h100"]);
        let left = sizes.unused.clone().unwrap();
        assert_eq!((left.bytes, left.rebuild, left.vendor, left.rebuild_percent), (750, 250, 500, Some(12.5)));
        assert_eq!(sizes.components[0].name, "nvidia-cublas-cu12", "most bytes first");
        lab.0.image.size = 200;
        assert_eq!(of(&lab, &["h100"]).unused.unwrap().rebuild_percent, None, "compressed to less");
    }

    #[test]
    fn what_the_driver_does_not_choose_is_not_judged() {
        let mut lab = Lab::new();
        let linked = Module { relocatable: true, ..module(&["sm_50:8"]) };
        let modules = vec![module(&["sm_90:1", "lto_75:2"]), linked];
        add(&mut lab, "SITE/torch/lib/libtorch_cuda.so", "torch", modules);
        add(&mut lab, "SITE/torch/lib/libx.a", "torch", vec![module(&["sm_50:100"])]);
        Arc::get_mut(&mut lab.0.files[1].facts).unwrap().kind = FileKind::Archive;
        let sizes = of(&lab, &["h100"]);
        assert_eq!((sizes.bytes, sizes.components[0].not_judged), (111, 110));
        assert_eq!(sizes.unused.unwrap().bytes, 0);
    }

    #[test]
    fn the_image_s_own_settings_count() {
        let mut lab = torch();
        lab.env(&[("CUDA_FORCE_PTX_JIT", "1")]);
        let sizes = of(&lab, &["h100"]);
        assert_eq!(sizes.unused.unwrap().bytes, 4_328, "PTX alone is taken");
    }
}
