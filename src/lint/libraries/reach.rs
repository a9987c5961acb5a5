//! Which files an image's core components load: what is missing there keeps them from starting.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Catalog;
use crate::lint::roles::counts;
use crate::model::{Evidence, EvidenceFile, Maker, Outcome};
use crate::report::Role;

/// For each file that a core component loads: that component.
pub struct Reach(BTreeMap<usize, usize>);

impl Reach {
    pub fn new(evidence: &Evidence, roles: &[Role], catalog: &Catalog) -> Self {
        let mut of = BTreeMap::new();
        for (index, _) in roles.iter().enumerate().filter(|(_, role)| **role == Role::Core) {
            let mut todo = mains(evidence, index, catalog);
            while let Some(file) = todo.pop() {
                if of.contains_key(&file) {
                    continue;
                }
                of.insert(file, index);
                let Some(loads) = evidence.loads_of(file) else { continue };
                let next = loads.needs.iter().chain(&loads.opens).filter_map(|n| match &n.outcome {
                    Outcome::Found { path, .. } => evidence.file_at(path),
                    Outcome::Driver | Outcome::Missing { .. } => None,
                });
                todo.extend(next);
            }
        }
        Self(of)
    }

    /// The core component that loads a file.
    pub fn core(&self, file: usize) -> Option<usize> {
        self.0.get(&file).copied()
    }

    /// The files that a core component loads.
    pub fn files(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().map(|(file, component)| (*file, *component))
    }
}

/// The files with which a component starts: those that the table of frameworks names, else its Python extension
/// modules, else all that carry device code.
fn mains(evidence: &Evidence, component: usize, catalog: &Catalog) -> Vec<usize> {
    let own =
        |f: &&(usize, &EvidenceFile)| f.1.component == Some(component) && loads_at_all(evidence, f.1, catalog);
    let files: Vec<(usize, &EvidenceFile)> = evidence.files.iter().enumerate().collect();
    let pick = |starts: &dyn Fn(&EvidenceFile) -> bool| -> Vec<usize> {
        files.iter().filter(own).filter(|f| starts(f.1)).map(|f| f.0).collect()
    };
    let named = pick(&|f| catalog.components().framework_of_path(&f.path).is_some());
    if !named.is_empty() {
        return named;
    }
    let modules = pick(&|f| is_extension(&f.path.file_name_lossy()));
    if !modules.is_empty() {
        return modules;
    }
    files.iter().filter(own).filter(|f| counts(f.1, catalog) || f.1.facts.elf.is_some()).map(|f| f.0).collect()
}

/// Whether anything loads a file in the usual course.
pub fn loads_at_all(evidence: &Evidence, file: &EvidenceFile, catalog: &Catalog) -> bool {
    // Of a package's variants (bitsandbytes' libraries per CUDA release) one is loaded, and the others miss theirs.
    let variant = file
        .component
        .map(|c| &evidence.components[c])
        .is_some_and(|c| catalog.components().is_variant(&c.name, c.version.as_deref(), &file.path));
    !variant
        && file.facts.kind.is_elf()
        && file.facts.kind.loadable()
        && !file.in_archive
        && catalog.components().idle(&file.path).is_none()
        && !catalog.libraries().is_by_choice(&file.path)
}

/// Whose GPUs a file is about, by the libraries that it needs, else by its device code; `None`: all, or nobody's.
pub fn maker_of(file: &EvidenceFile, catalog: &Catalog) -> Option<Maker> {
    let needed = file.facts.elf.iter().flat_map(|e| &e.needed);
    let linked = needed.filter_map(|n| catalog.libraries().library(n)).map(|l| l.maker);
    let items = file.facts.modules.iter().flat_map(|m| &m.items);
    let one = |makers: BTreeSet<Maker>| makers.first().copied().filter(|_| makers.len() == 1);
    one(linked.collect()).or_else(|| one(items.filter_map(|i| i.item.arch.maker()).collect()))
}

/// A Python extension module.
fn is_extension(name: &str) -> bool {
    name.ends_with(".so") && (name.contains(".cpython-") || name.contains(".abi3."))
}

/// The role of the component of a file that no core component loads; `None`: what it misses says nothing. It is nobody's,
/// idle, or one of NVIDIA's own libraries.
pub fn unreached(evidence: &Evidence, file: &EvidenceFile, roles: &[Role], catalog: &Catalog) -> Option<Role> {
    let owner = file.component?;
    let component = &evidence.components[owner];
    let rows = catalog.components();
    let vendor = rows.vendor_of_package(component.manager, &component.name).is_some()
        || rows.vendor_of_path(&file.path).is_some();
    roles.get(owner).copied().filter(|role| *role != Role::Idle && !vendor)
}
