//! Facts joined: packages, components, and who owns which file.

mod claims;
mod facts;
mod owners;

use std::collections::BTreeSet;

use super::{Fact, normalise};
use crate::model::{Claim, Component, Gap, ImagePath, Manager, Package, Toolkit};
use facts::Facts;

/// Names for files that projects are known by: `flash_attn_2_cuda*.so` belongs to `flash_attn`.
pub trait Naming {
    fn component_for(&self, path: &ImagePath) -> Option<String>;
}

/// Knows no names.
#[derive(Debug, Clone, Copy)]
pub struct NoNaming;
impl Naming for NoNaming {
    fn component_for(&self, _: &ImagePath) -> Option<String> {
        None
    }
}

/// What is installed, and who owns what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Sorted, without duplicates.
    pub packages: Vec<Package>,
    /// Components that own at least one of the files; sorted by name, then root.
    pub components: Vec<Component>,
    /// For each file, its component.
    pub owner: Vec<Option<usize>>,
    /// Sorted.
    pub claims: Vec<Claim>,
    /// Sorted.
    pub toolkits: Vec<Toolkit>,
    /// Metadata that was read in part.
    pub gaps: Vec<Gap>,
}

/// Joins the facts of the merged image; `facts` go with the path they were read from, `files` are the files
/// that want an owner. The order of `facts` does not matter.
pub fn assemble(facts: &[(ImagePath, &Fact)], files: &[ImagePath], naming: &dyn Naming) -> Inventory {
    let facts = Facts::gather(facts);
    let keys = owners::keys(&facts, files, naming);
    let (components, owner) = owners::components(&facts, files, &keys);
    let pip = facts.dists.iter().map(|d| Package::new(Manager::Pip, normalise(&d.name), d.version.clone()));
    let packages: BTreeSet<Package> = pip.chain(facts.packages.iter().map(|p| p.package.clone())).collect();
    Inventory {
        packages: packages.into_iter().collect(),
        components,
        owner,
        claims: claims::claims(&facts),
        toolkits: claims::toolkits(&facts),
        gaps: facts.gaps,
    }
}

#[cfg(test)]
mod tests;
