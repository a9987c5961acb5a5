//! What files say about versions: how components were built, which toolkits there are.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::super::tags::tags;
use super::super::{Said, oneapi, rocm, toolkit};
use super::facts::Facts;
use crate::model::{Claim, ClaimKind, ImagePath, Manager, Package, Toolkit, ToolkitKind};

/// Packages of conda that are a toolkit, or the libraries of one.
const CONDA_TOOLKITS: [&str; 3] = ["cuda-runtime", "cuda-toolkit", "cudatoolkit"];

/// Sorted, each once.
pub fn claims(facts: &Facts<'_>) -> Vec<Claim> {
    let mut claims = BTreeSet::new();
    let mut say = |component: &str, said: &Said, said_by: &ImagePath| {
        let Said { kind, value } = said.clone();
        claims.insert(Claim { component: component.to_owned(), kind, value, said_by: said_by.clone() });
    };
    for built in &facts.built {
        let dist = facts.dist_for(&built.site, built.import).map(|d| facts.dists[d].name.as_str());
        built.said.iter().for_each(|said| say(dist.unwrap_or(built.import), said, &built.said_by));
    }
    for dist in &facts.dists {
        dist.said.iter().for_each(|said| say(&dist.name, said, &dist.said_by));
    }
    for installed in facts.packages.iter().filter(|p| p.package.manager == Manager::Conda) {
        let build = installed.package.build.as_deref().unwrap_or_default();
        tags(build).iter().for_each(|said| say(&installed.package.name, said, &installed.said_by));
    }
    for (said_by, version) in &facts.cudnn {
        say("cudnn", &Said { kind: ClaimKind::Cudnn, value: (*version).to_owned() }, said_by);
    }
    let claims: Vec<Claim> = claims.into_iter().collect();
    let of_one = |a: &Claim, b: &Claim| a.component == b.component && a.kind == b.kind;
    claims.chunk_by(of_one).flat_map(distinct).cloned().collect()
}

/// Of claims of one component and kind, those that say more than others: `12` says nothing where `12.6` is known, nor
/// does a header that lies beside its copy.
fn distinct(peers: &[Claim]) -> impl Iterator<Item = &Claim> {
    let majors: HashSet<&str> =
        peers.iter().filter_map(|c| c.value.split_once('.')).map(|(major, _)| major).collect();
    let mut seen: HashSet<(&str, ImagePath)> = HashSet::new();
    let clear = peers.iter().filter(move |c| !majors.contains(c.value.as_str()));
    clear.filter(move |c| seen.insert((c.value.as_str(), c.said_by.parent())))
}

/// One per maker and directory, as the file says that knows best. Sorted.
pub fn toolkits(facts: &Facts<'_>) -> Vec<Toolkit> {
    let mut best: BTreeMap<(ImagePath, ToolkitKind), (u8, ImagePath, String)> = BTreeMap::new();
    let mut add = |root: ImagePath, kind: ToolkitKind, row: (u8, ImagePath, String)| {
        best.entry((root, kind)).and_modify(|old| *old = row.clone().min(old.clone())).or_insert(row);
    };
    for (said_by, kind, version) in &facts.toolkits {
        if let Some(root) = toolkit::root_of(said_by, |dir| facts.prefixes.contains(dir)) {
            add(root, *kind, (toolkit::rank(said_by), said_by.clone(), (*version).to_owned()));
        }
    }
    let system = facts.packages.iter().map(|p| {
        let Package { manager, name, version, .. } = p.package;
        (*manager, name.as_str(), version.as_deref(), &p.prefix, &p.said_by)
    });
    let pip =
        facts.dists.iter().map(|d| (Manager::Pip, d.name.as_str(), d.version.as_deref(), &d.site, &d.said_by));
    for (manager, name, version, prefix, said_by) in system.chain(pip) {
        let Some(version) = version else { continue };
        let cuda = manager == Manager::Conda && CONDA_TOOLKITS.contains(&name);
        let cuda = cuda.then(|| (prefix.clone(), version.to_owned()));
        for (kind, found) in [
            (ToolkitKind::Cuda, cuda),
            (ToolkitKind::Rocm, rocm::of_package(manager, name, version, prefix)),
            (ToolkitKind::Oneapi, oneapi::of_package(manager, name, version, prefix)),
        ] {
            if let Some((root, version)) = found {
                add(root, kind, (toolkit::RECORD, said_by.clone(), version));
            }
        }
    }
    let row = |((path, kind), (_, said_by, version))| Toolkit { path, kind, version, said_by };
    best.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests;
