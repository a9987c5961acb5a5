//! What each component is to its image: core, optional or idle.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Catalog;
use crate::inventory::same_component;
use crate::model::{Component, Evidence, EvidenceFile, ImagePath};
use crate::report::Role;

/// One role per component of the evidence, and whether the image has a framework with device code.
pub fn roles(evidence: &Evidence, catalog: &Catalog, required: &[String]) -> Vec<Role> {
    let rows = catalog.components();
    let files_of = |index: usize| evidence.files.iter().filter(move |f| f.component == Some(index));
    let has_code = |index: usize| files_of(index).any(|f| counts(f, catalog));
    let reached = reached_by_entrypoint(evidence);
    let named = |c: &Component| required.iter().any(|r| same_component(r, &c.name));
    let mut roles = vec![Role::Optional; evidence.components.len()];
    let mut core = false;
    for (index, component) in evidence.components.iter().enumerate() {
        let code = has_code(index);
        let framework = rows.framework_of_package(component.manager, &component.name).is_some()
            || files_of(index).any(|f| rows.framework_of_path(&f.path).is_some());
        let has_files = files_of(index).next().is_some();
        roles[index] = if named(component) || (code && (framework || reached.contains(&index))) {
            core |= code;
            Role::Core
        } else if has_files && !code && files_of(index).any(|f| f.facts.has_device_code()) {
            Role::Idle
        } else {
            Role::Optional
        };
    }
    if core {
        return roles;
    }
    // No framework: the image is its own GPU code. Vendor libraries are that only where there is nothing else.
    let is_vendor = |index: usize| {
        let c = &evidence.components[index];
        rows.vendor_of_package(c.manager, &c.name).is_some()
            || files_of(index).filter(|f| counts(f, catalog)).all(|f| rows.vendor_of_path(&f.path).is_some())
    };
    let with_code: Vec<usize> = (0..roles.len()).filter(|&i| has_code(i)).collect();
    let own: Vec<usize> = with_code.iter().copied().filter(|&i| !is_vendor(i)).collect();
    for index in if own.is_empty() { with_code } else { own } {
        roles[index] = Role::Core;
    }
    roles
}

/// Whether a file's device code counts: it can be loaded, is no profiler's stub and no idle leftover.
pub fn counts(file: &EvidenceFile, catalog: &Catalog) -> bool {
    let rows = catalog.components();
    let damaged = file.facts.gaps.iter().any(|g| g.effect == crate::model::GapEffect::File);
    (file.facts.has_device_code() || damaged)
        && file.facts.kind.loadable()
        && rows.profiler(&file.path).is_none()
        && rows.idle(&file.path).is_none()
        && !file.in_archive
}

/// Components of the files that the entrypoint's program needs, directly or not.
fn reached_by_entrypoint(evidence: &Evidence) -> BTreeSet<usize> {
    let config = &evidence.image.config;
    let Some(program) = config.entrypoint.first().or(config.cmd.first()) else { return BTreeSet::new() };
    let by_path: BTreeMap<&ImagePath, usize> =
        evidence.files.iter().enumerate().map(|(i, f)| (&f.path, i)).collect();
    let links: BTreeMap<&ImagePath, &ImagePath> = evidence.links.iter().map(|(l, t)| (l, t)).collect();
    let find = |path: &ImagePath| by_path.get(links.get(path).copied().unwrap_or(path)).copied();
    let places: Vec<ImagePath> = if program.contains('/') {
        vec![ImagePath::new(if program.starts_with('/') {
            program.clone()
        } else {
            format!("{}/{program}", config.working_dir)
        })]
    } else {
        let path = config.var("PATH").unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        path.split(':').map(|dir| ImagePath::new(dir).join(program.as_bytes())).collect()
    };
    let mut names: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for (i, file) in evidence.files.iter().enumerate() {
        names.entry(file.path.file_name().to_vec()).or_default().push(i);
        if let Some(soname) = file.facts.elf.as_ref().and_then(|e| e.soname.as_ref()) {
            names.entry(soname.clone().into_bytes()).or_default().push(i);
        }
    }
    for (link, to) in &evidence.links {
        if let Some(&i) = by_path.get(to) {
            names.entry(link.file_name().to_vec()).or_default().push(i);
        }
    }
    let mut todo: Vec<usize> = places.iter().find_map(find).into_iter().collect();
    let mut seen: BTreeSet<usize> = todo.iter().copied().collect();
    while let Some(i) = todo.pop() {
        let needed = evidence.files[i].facts.elf.iter().flat_map(|e| &e.needed);
        for other in needed.flat_map(|n| names.get(n.as_bytes()).into_iter().flatten()) {
            if seen.insert(*other) {
                todo.push(*other);
            }
        }
    }
    seen.into_iter().filter_map(|i| evidence.files[i].component).collect()
}
