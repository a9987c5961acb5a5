//! What the labels of AMD's and Intel's own tools say of a GPU.

use std::collections::BTreeSet;

use super::{Apart, Expr, Op, code, expr, keys, lacks, sliced};
use crate::catalog::Catalog;
use crate::catalog::gpus::Gpu;
use crate::model::{Maker, Target};

/// Classes of devices that a GPU may be: a display, and one without an output.
const CLASSES: [&str; 2] = ["0300", "0380"];

/// Conditions, any of which finds nodes of the target. Their tools write nothing of slices, and a driver as one word,
/// which no range can be asked of; Intel's write none.
pub(super) fn terms(target: &Target, apart: &Apart, catalog: &Catalog) -> Vec<Vec<Expr>> {
    let maker = target.maker();
    if sliced(target).is_some() || !apart.branches.is_empty() {
        return Vec::new();
    }
    let driver = match &target.driver {
        None => None,
        Some(range) if maker == Maker::Amd && range.text.trim() == range.lowest.to_string() => {
            Some(expr(keys::AMD_DRIVER, Op::In, [range.lowest.to_string()]))
        }
        Some(_) => return Vec::new(),
    };
    let rows = rows(target, catalog);
    // An id that other products have too would find their nodes.
    let is_own = |id: &&String| {
        let mut all = catalog.gpus().all().iter().filter(|g| g.maker() == maker && g.pci.contains(id));
        all.all(|gpu| rows.iter().any(|row| row.name == gpu.name))
    };
    let ids: BTreeSet<String> = rows.iter().flat_map(|g| &g.pci).filter(is_own).cloned().collect();
    let products: BTreeSet<String> = rows.iter().flat_map(|g| labels(g)).collect();
    let mut out = Vec::new();
    match maker {
        Maker::Nvidia => {}
        Maker::Amd => {
            if !products.is_empty() {
                out.push(vec![expr(keys::AMD_PRODUCT, Op::In, products)]);
            }
            if !ids.is_empty() {
                out.push(vec![expr(keys::AMD_DEVICE, Op::In, ids), lacks(keys::AMD_PRODUCT)]);
            }
        }
        Maker::Intel => {
            if !products.is_empty() {
                out.push(vec![expr(keys::INTEL_PRODUCT, Op::In, products)]);
            }
            for (class, id) in CLASSES.iter().flat_map(|class| ids.iter().map(move |id| (class, id))) {
                let key = format!("{}{class}-{id}.present", keys::INTEL_DEVICE);
                out.push(vec![expr(key, Op::In, ["true"]), lacks(keys::INTEL_PRODUCT)]);
            }
        }
    }
    out.iter_mut().for_each(|term| term.extend(driver.clone()));
    out
}

/// Machine types with the GPU, of nodes that their maker's tool does not label.
pub fn of_clouds(target: &Target, catalog: &Catalog, notes: &mut Vec<String>) -> Vec<Vec<Expr>> {
    if target.driver.is_some() {
        return Vec::new();
    }
    let rows = catalog.instances().all().iter();
    let mut types: BTreeSet<String> = BTreeSet::new();
    for row in rows.filter(|row| row.gpu == target.gpu && row.virtualisation == target.virtualisation) {
        if row.types.is_empty() {
            notes.push(format!(
                "{}: nodes of {} that {}'s own tool does not label are not found: no list has the machine types",
                target.name,
                row.family,
                target.maker().name()
            ));
        }
        types.extend(row.types.iter().cloned());
    }
    if types.is_empty() {
        return Vec::new();
    }
    let not = match target.maker() {
        Maker::Amd => lacks(keys::AMD_PRODUCT),
        Maker::Intel => lacks(keys::INTEL_PRODUCT),
        Maker::Nvidia => lacks(keys::PRODUCT),
    };
    vec![vec![expr(keys::INSTANCE_TYPE, Op::In, types), not]]
}

/// The product, or all products of a bare architecture.
fn rows<'a>(target: &Target, catalog: &'a Catalog) -> Vec<&'a Gpu> {
    let all = || catalog.gpus().all().iter();
    match all().find(|g| g.name == target.gpu) {
        Some(own) => vec![own],
        None => all().filter(|g| g.device.arch() == code(target)).collect(),
    }
}

/// The product's name in labels: blanks as underscores; Intel's without its maker.
fn labels(gpu: &Gpu) -> Vec<String> {
    let spelt = |name: &str| name.replace(' ', "_");
    let names = std::iter::once(&gpu.name).chain(&gpu.aliases);
    let labels = names.filter_map(|name| match gpu.maker() {
        Maker::Amd => name.starts_with("AMD ").then(|| spelt(name)),
        Maker::Intel => {
            let bare = ["Intel Data Center GPU ", "Intel "].iter().find_map(|maker| name.strip_prefix(maker));
            bare.map(spelt)
        }
        Maker::Nvidia => None,
    });
    let fits = |label: &String| {
        label.len() <= 63 && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    labels.filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Op, Pool, select};
    use super::*;
    use crate::config::parse_target;
    use crate::model::Verdict;

    /// `KEY in A|B & KEY absent` of each term, and what is left out.
    fn found(gpu: &str) -> (Vec<String>, usize) {
        let target = parse_target(gpu, Catalog::embedded()).unwrap();
        let pool = Pool { target: &target, verdict: Verdict::Ok, why: "", platform: None, counts: true };
        let selection = select(&[pool], Catalog::embedded());
        let one = |e: &Expr| match e.op {
            Op::DoesNotExist => format!("{} absent", e.key),
            _ => format!("{} in {}", e.key, e.values.join("|")),
        };
        let text = |t: &super::super::Term| t.all.iter().map(one).collect::<Vec<_>>().join(" & ");
        (selection.terms.iter().map(text).collect(), selection.left_out.len())
    }

    #[test]
    fn nodes_of_amd_and_intel_are_found_by_their_own_labels() {
        let (terms, left) = found("MI300X");
        assert_eq!(left, 0);
        assert!(terms[0].starts_with("amd.com/gpu.product-name in AMD_Instinct_MI300X|"), "{terms:?}");
        assert!(terms[0].contains("|AMD_Instinct_MI300X_OAM"), "{terms:?}");
        assert!(terms[1].starts_with("amd.com/gpu.device-id in 74a1|"), "{terms:?}");
        assert!(terms[1].contains("amd.com/gpu.product-name absent"), "{terms:?}");
        // The id is that of other products too.
        assert_eq!(found("RX 6800 XT").0.len(), 1);
        let (terms, _) = found("gfx1030");
        assert!(
            terms.iter().any(|t| t.starts_with("amd.com/gpu.device-id in ") && t.contains("73bf")),
            "{terms:?}"
        );
        let (terms, _) = found("Max 1550");
        assert!(terms[0].starts_with("gpu.intel.com/product in Max_1550"), "{terms:?}");
        assert!(
            terms.iter().any(|t| t.starts_with("gpu.intel.com/device-id.0380-0bd5.present in true")),
            "{terms:?}"
        );
        let (terms, _) = found("MI300X@6.10.5");
        assert!(terms.iter().all(|t| t.contains("amd.com/gpu.driver-version in 6.10.5")), "{terms:?}");
        assert_eq!(found("MI300X@>=6.10.5"), (Vec::new(), 1));
        let (terms, left) = found("gfx909");
        assert_eq!((terms.len(), left), (0, 1), "{terms:?}");
    }
}
