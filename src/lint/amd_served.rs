//! Which of AMD's processors an image serves, whatever the targets: the intersection of its core code and data.

use std::collections::BTreeSet;

use super::case;
use crate::catalog::Catalog;
use crate::catalog::data_libraries::Lack;
use crate::model::{DataSet, Device, Evidence, GfxProcessor, Maker, Verdict};
use crate::report::{AmdData, AmdReport, Role};

/// Nothing where the image has neither code nor data for AMD.
pub fn served(evidence: &Evidence, roles: &[Role], catalog: &Catalog) -> Option<AmdReport> {
    let mut sets: Vec<BTreeSet<GfxProcessor>> = Vec::new();
    let known: Vec<GfxProcessor> = catalog.processors().isas().iter().map(|i| i.target).collect();
    for (index, role) in roles.iter().enumerate().filter(|(_, role)| **role == Role::Core) {
        let own = evidence.files.iter().filter(|f| f.component == Some(index));
        let items = own.flat_map(|f| &f.facts.modules).flat_map(|m| &m.items);
        if !items.map(|i| i.item.arch.maker()).any(|m| m == Some(Maker::Amd)) {
            continue;
        }
        let serves = |processor: &GfxProcessor| {
            let host = catalog.bare_host(Device::from(*processor));
            let case = case::component(index, *role, evidence, &host, catalog);
            case.is_some_and(|c| matches!(c.verdict, Verdict::Ok | Verdict::Slow))
        };
        sets.push(known.iter().copied().filter(serves).collect());
    }
    let needed = |set: &&DataSet| {
        let row = catalog.data_libraries().named(&set.library);
        !set.targets.is_empty() && row.is_some_and(|row| row.lack == Lack::Fail)
    };
    for set in evidence.data_sets.iter().filter(needed) {
        sets.push(known.iter().copied().filter(|p| set.covers((*p).into())).collect());
    }
    if sets.is_empty() && evidence.data_sets.is_empty() {
        return None;
    }
    let in_all = |p: &GfxProcessor| !sets.is_empty() && sets.iter().all(|set| set.contains(p));
    let any: BTreeSet<GfxProcessor> = sets.iter().flatten().copied().collect();
    let (all, in_parts) = any.into_iter().partition(in_all);
    let data = evidence.data_sets.iter().map(|set| AmdData {
        library: set.library.clone(),
        path: set.root.clone(),
        targets: set.targets.iter().map(|t| t.arch).collect(),
    });
    Some(AmdReport { all, in_parts, data: data.collect() })
}
