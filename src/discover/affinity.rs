//! By which labels a scheduler finds the nodes of targets: what [`labels`](super::labels) reads, asked for.
//!
//! Never wider than what was judged: where labels cannot tell a target that counts from one that does not, it is left
//! out, and said so.

mod driver;
mod others;
mod yaml;

use std::borrow::Cow;

use super::keys;
use crate::catalog::Catalog;
use crate::model::{Arch, Device, Maker, Platform, Runtime, Target, Verdict, Virtualisation};

pub use yaml::{compatibility, node_affinity};

/// A target, and what became of it.
#[derive(Debug, Clone, Copy)]
pub struct Pool<'a> {
    pub target: &'a Target,
    pub verdict: Verdict,
    /// One line.
    pub why: &'a str,
    /// Of the image that was judged for it.
    pub platform: Option<&'a Platform>,
    /// Its nodes are wanted.
    pub counts: bool,
}

/// How a label is held against values. A label that is not there is `NotIn` whatever is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// As numbers; one value.
    Gt,
    Lt,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    pub key: Cow<'static, str>,
    pub op: Op,
    pub values: Vec<String>,
}

/// Conditions that all hold for a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Names of the targets whose nodes these are.
    pub targets: Vec<String>,
    pub all: Vec<Expr>,
}

/// Which nodes are wanted: those for which any of the terms holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    pub terms: Vec<Term>,
    /// Targets that are not among them, and why.
    pub left_out: Vec<(String, String)>,
    /// Nodes of targets that are, which no label finds.
    pub notes: Vec<String>,
}

fn expr(key: impl Into<Cow<'static, str>>, op: Op, values: impl IntoIterator<Item = impl Into<String>>) -> Expr {
    Expr { key: key.into(), op, values: values.into_iter().map(Into::into).collect() }
}

fn has(key: &'static str) -> Expr {
    Expr { key: key.into(), op: Op::Exists, values: Vec::new() }
}

fn lacks(key: &'static str) -> Expr {
    Expr { key: key.into(), op: Op::DoesNotExist, values: Vec::new() }
}

/// Chooses by which labels the nodes of those that count are found.
pub fn select(pools: &[Pool<'_>], catalog: &Catalog) -> Selection {
    let mut out = Selection::default();
    let (wanted, others): (Vec<&Pool<'_>>, Vec<&Pool<'_>>) = pools.iter().partition(|p| p.counts);
    for pool in &others {
        out.left_out.push((pool.target.name.clone(), format!("{}: {}", pool.verdict, pool.why)));
    }
    for pool in wanted {
        let terms = match apart(pool, &others) {
            Ok(apart) => terms(pool, &apart, catalog, &mut out.notes),
            Err(why) => {
                out.left_out.push((pool.target.name.clone(), why));
                continue;
            }
        };
        if terms.is_empty() {
            let why = "no label is known by which its nodes could be found".to_owned();
            out.left_out.push((pool.target.name.clone(), why));
        }
        for all in terms {
            match out.terms.iter_mut().find(|t| t.all == all) {
                Some(term) => term.targets.push(pool.target.name.clone()),
                None => out.terms.push(Term { targets: vec![pool.target.name.clone()], all }),
            }
        }
    }
    out
}

/// What keeps a target's nodes from being taken for others'.
#[derive(Default)]
struct Apart {
    /// Branches of drivers that are another's.
    branches: Vec<String>,
    /// The same GPU stands in Google's nodes, and does not count there.
    not_gke: bool,
    /// The same GPU in slices does not count.
    not_mixed: bool,
    /// Nor as vGPUs.
    not_vgpu: bool,
}

fn apart(pool: &Pool<'_>, others: &[&Pool<'_>]) -> Result<Apart, String> {
    let mut apart = Apart::default();
    let own = pool.target;
    for other in others {
        let that = other.target;
        let by_capability = by_capability(own) || by_capability(that);
        let alike = own.gpu == that.gpu || (by_capability && code(own) == code(that));
        if !alike || matches!((architecture(pool), architecture(other)), (Some(a), Some(b)) if a != b) {
            continue;
        }
        if own.driver.is_some() && that.driver.is_some() && !driver::overlap(own, that) {
            continue;
        }
        if sliced(own) != sliced(that) {
            apart.not_mixed |= sliced(that) == Some(Virtualisation::Mig);
            apart.not_vgpu |= sliced(that) == Some(Virtualisation::Vgpu);
            continue;
        }
        match (own.runtime == Runtime::Gke, that.runtime == Runtime::Gke) {
            (true, false) => continue,
            (false, true) => {
                apart.not_gke = true;
                continue;
            }
            (true, true) | (false, false) => {}
        }
        match (&own.driver, that.driver.as_ref().map(driver::branches)) {
            // The nodes of those that tell their driver are told by it.
            (Some(_), None) => {}
            (None, Some(Some(branches))) => apart.branches.extend(branches),
            (Some(_), Some(_)) | (None, None | Some(None)) => {
                let name = &that.name;
                return Err(format!("no label tells its nodes from those of {name}, which is {}", other.verdict));
            }
        }
    }
    apart.branches.sort();
    apart.branches.dedup();
    Ok(apart)
}

/// Whether a target's nodes are found by their compute capability: no list has all labels of slices and vGPUs.
fn by_capability(target: &Target) -> bool {
    sliced(target).is_some() || target.gpu == target.device.to_string() || target.gpu == code(target).to_string()
}

/// What its nodes are told apart by in the end; no label says in which mode a GPU of AMD runs.
fn code(target: &Target) -> Arch {
    match target.device {
        Device::Amd(arch) => Arch::Gfx(arch.processor.into()),
        Device::Nvidia(_) | Device::Intel(_) => target.device.arch(),
    }
}

fn sliced(target: &Target) -> Option<Virtualisation> {
    match target.virtualisation {
        Virtualisation::None | Virtualisation::Passthrough => None,
        other @ (Virtualisation::Mig | Virtualisation::Vgpu) => Some(other),
    }
}

fn architecture<'a>(pool: &Pool<'a>) -> Option<&'a str> {
    let platform = pool.target.platforms.first().or(pool.platform)?;
    Some(platform.architecture.as_str())
}

fn terms(pool: &Pool<'_>, apart: &Apart, catalog: &Catalog, notes: &mut Vec<String>) -> Vec<Vec<Expr>> {
    let target = pool.target;
    let mut common = Vec::new();
    common.extend(architecture(pool).map(|arch| expr(keys::ARCH, Op::In, [arch])));
    let mut out = Vec::new();
    match target.maker() {
        Maker::Nvidia => {}
        Maker::Amd | Maker::Intel => {
            let mut found = others::terms(target, apart, catalog);
            found.extend(others::of_clouds(target, catalog, notes));
            return found.into_iter().map(|term| [term, common.clone()].concat()).collect();
        }
    }
    let gke = match (target.runtime == Runtime::Gke, apart.not_gke) {
        (true, _) => {
            let own = keys::NOT_GKES_OWN.map(|key| expr(key, Op::NotIn, ["true"]));
            common.extend(own);
            vec![has(keys::GKE_ACCELERATOR)]
        }
        (false, true) => vec![lacks(keys::GKE_ACCELERATOR)],
        (false, false) => Vec::new(),
    };
    for gpu in discovered(target, apart, catalog) {
        for driver in drivers(target, apart) {
            out.push([gpu.clone(), driver, gke.clone(), common.clone()].concat());
        }
    }
    // Nodes without GPU Feature Discovery tell no driver.
    if target.driver.is_none() {
        for cloud in of_clouds(target, catalog, notes) {
            out.push([cloud, vec![lacks(keys::PRODUCT)], common.clone()].concat());
        }
    }
    out
}

/// What GPU Feature Discovery says of the GPU.
fn discovered(target: &Target, apart: &Apart, catalog: &Catalog) -> Vec<Vec<Expr>> {
    let capability = target.device.to_string();
    let (major, minor) = capability.split_once('.').unwrap_or((&capability, "0"));
    let capability =
        || vec![expr(keys::COMPUTE_MAJOR, Op::In, [major]), expr(keys::COMPUTE_MINOR, Op::In, [minor])];
    let products = products(target, catalog);
    match sliced(target) {
        Some(Virtualisation::Mig) => {
            let mut out = vec![[capability(), vec![has(keys::MIG_SLICES)]].concat()];
            // Whole GPUs and slices on one node: its label is that of the whole ones.
            if !products.is_empty() {
                let mixed = expr(keys::MIG_STRATEGY, Op::In, ["mixed"]);
                out.push(vec![expr(keys::PRODUCT, Op::In, products), mixed]);
            }
            out
        }
        Some(_) => vec![[capability(), vec![expr(keys::VGPU_PRESENT, Op::In, ["true"])]].concat()],
        None => {
            let mut all =
                if products.is_empty() { capability() } else { vec![expr(keys::PRODUCT, Op::In, products)] };
            if apart.not_mixed {
                all.push(expr(keys::MIG_STRATEGY, Op::NotIn, ["mixed"]));
                all.push(lacks(keys::MIG_SLICES));
            }
            if apart.not_vgpu {
                all.push(expr(keys::VGPU_PRESENT, Op::NotIn, ["true"]));
            }
            vec![all]
        }
    }
}

/// The labels of a product, shared or not; none of a bare architecture.
fn products(target: &Target, catalog: &Catalog) -> Vec<String> {
    let row = catalog.gpus().all().iter().find(|g| g.name == target.gpu);
    let names = row.iter().flat_map(|row| std::iter::once(&row.name).chain(&row.smi));
    let mut labels: Vec<String> = names.map(|name| name.replace(' ', "-")).collect();
    labels.extend(labels.clone().iter().map(|label| format!("{label}-SHARED")));
    // Longer ones, and those with other characters, are no labels.
    let fits = |label: &String| {
        label.len() <= 63 && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    labels.retain(fits);
    labels.sort();
    labels.dedup();
    labels
}

fn drivers(target: &Target, apart: &Apart) -> Vec<Vec<Expr>> {
    match &target.driver {
        Some(range) => [keys::DRIVER, keys::DRIVER_BEFORE].iter().flat_map(|k| driver::terms(range, k)).collect(),
        None if apart.branches.is_empty() => vec![Vec::new()],
        None => {
            let not = |key| expr(key, Op::NotIn, apart.branches.clone());
            vec![vec![not(keys::DRIVER[0]), not(keys::DRIVER_BEFORE[0])]]
        }
    }
}

/// What clouds say of the GPUs in their nodes.
fn of_clouds(target: &Target, catalog: &Catalog, notes: &mut Vec<String>) -> Vec<Vec<Expr>> {
    let accelerators = |provider: &str| {
        let rows = catalog.instances().accelerators().iter();
        let rows = rows.filter(|row| row.provider == provider && row.gpu == target.gpu);
        rows.map(|row| row.name.clone()).collect::<Vec<String>>()
    };
    if target.runtime == Runtime::Gke {
        let names = accelerators("gcp");
        let partition = match sliced(target) {
            Some(Virtualisation::Mig) => has(keys::GKE_PARTITION),
            Some(_) => return Vec::new(),
            None => lacks(keys::GKE_PARTITION),
        };
        let some = !names.is_empty();
        return some.then(|| vec![expr(keys::GKE_ACCELERATOR, Op::In, names), partition]).into_iter().collect();
    }
    let mut types = Vec::new();
    // Google's nodes have their own runtime.
    for row in catalog.instances().all().iter().filter(|row| row.gpu == target.gpu && row.provider != "gcp") {
        if row.virtualisation != target.virtualisation {
            continue;
        }
        if row.types.is_empty() {
            notes.push(format!(
                "{}: nodes of {} that have no label of GPU Feature Discovery are not found: no list has the machine types",
                target.name, row.family
            ));
        }
        types.extend(row.types.iter().cloned());
    }
    let mut lists = vec![(keys::INSTANCE_TYPE, types)];
    if sliced(target).is_none() {
        // Cluster autoscaler's values are spelt as Google's.
        lists.push((keys::EKS_ACCELERATOR, accelerators("gcp")));
        lists.push((keys::KARPENTER_GPU, accelerators("aws")));
    }
    lists.into_iter().filter(|(_, values)| !values.is_empty()).map(|(key, v)| vec![expr(key, Op::In, v)]).collect()
}
