//! Libraries that one process loads together and that must be of one version; libraries that hide others.

use std::collections::{BTreeMap, BTreeSet};

use super::reach::Reach;
use super::versions;
use crate::catalog::Catalog;
use crate::catalog::libraries::{Same, Set};
use crate::lint::Problem;
use crate::model::{Confidence, Evidence, ImagePath, Law, Maker, Outcome, Verdict};

/// Files of one version: (as told, where).
type Members<'a> = Vec<(String, &'a ImagePath)>;

/// Sets of which a core component would load members of different versions.
pub fn mixed(evidence: &Evidence, reach: &Reach, catalog: &Catalog) -> Vec<Problem> {
    let mut out = Vec::new();
    for set in catalog.libraries().sets() {
        let mut by_core: BTreeMap<usize, BTreeMap<Vec<u64>, Members<'_>>> = BTreeMap::new();
        for (index, core) in reach.files() {
            let file = &evidence.files[index];
            let name = file.facts.elf.as_ref().and_then(|e| e.soname.clone());
            let name = name.unwrap_or_else(|| file.path.file_name_lossy().into_owned());
            if !set.has(&name) {
                continue;
            }
            let Some(version) = versions::of(evidence, file, catalog) else { continue };
            let Some(key) = key(set, &version) else { continue };
            by_core.entry(core).or_default().entry(key).or_default().push((version, &file.path));
        }
        for (core, versions) in by_core.into_iter().filter(|(_, v)| v.len() > 1) {
            let parts: Vec<String> = versions
                .values()
                .rev()
                .map(|files| {
                    let more =
                        if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
                    format!("{} (`{}`{more})", files[0].0, files[0].1)
                })
                .collect();
            let message =
                format!("{} of different versions would be loaded: {}: {}", set.name, parts.join(", "), set.breaks);
            let help =
                "keep one of them, from one package, and let nothing else stand before it on the loader's path";
            out.push(Problem {
                because: vec![set.because()],
                path: versions.values().next().map(|files| files[0].1.clone()),
                component: Some(core),
                maker: versions.values().flatten().find_map(|(_, path)| maker(evidence, path, catalog)),
                ..Problem::new("mixed-library-versions", Verdict::Fail, message, help)
            });
        }
    }
    out
}

fn key(set: &Set, version: &str) -> Option<Vec<u64>> {
    let numbers = versions::numbers(version);
    let most = match set.same {
        Same::Release => 3,
        Same::Minor => 2,
    };
    numbers.get(..most).map(<[u64]>::to_vec)
}

/// Libraries that stand before others of the same name and another version because of the environment.
pub fn shadowed(evidence: &Evidence, reach: &Reach, catalog: &Catalog) -> Vec<Problem> {
    let mut told: BTreeMap<&ImagePath, (String, usize, BTreeSet<&ImagePath>)> = BTreeMap::new();
    for (index, core) in reach.files() {
        let Some(loads) = evidence.loads_of(index) else { continue };
        for need in &loads.needs {
            let Outcome::Found { path, law: Law::LibraryPath | Law::Preload } = &need.outcome else { continue };
            if catalog.libraries().library(&need.name).is_none() {
                continue;
            }
            let Some(winner) = evidence.file(path) else { continue };
            let version = versions::of(evidence, winner, catalog);
            for other in evidence.files.iter().filter(|f| f.path != *path && !f.in_archive) {
                let same = other.facts.elf.as_ref().and_then(|e| e.soname.as_deref()) == Some(&need.name);
                if !same || is_stub(&other.path) {
                    continue;
                }
                let its = versions::of(evidence, other, catalog);
                if let (Some(a), Some(b)) = (&version, &its)
                    && versions::numbers(a) != versions::numbers(b)
                {
                    let text = format!("{} {a} from the environment's path, not {b}", need.name);
                    told.entry(path).or_insert((text, core, BTreeSet::new())).2.insert(&other.path);
                }
            }
        }
    }
    told.into_iter()
        .map(|(path, (text, core, others))| {
            let others = others.iter().map(|p| format!("`{p}`")).collect::<Vec<_>>().join(", ");
            let message = format!("loads {text}: `{path}` stands before {others}");
            let help = "drop the folder from LD_LIBRARY_PATH, unless that version is meant";
            Problem {
                path: Some(path.clone()),
                component: Some(core),
                maker: maker(evidence, path, catalog),
                confidence: Confidence::Medium,
                ..Problem::new("library-shadowed", Verdict::Ok, message, help)
            }
        })
        .collect()
}

/// Whose library a file is.
fn maker(evidence: &Evidence, path: &ImagePath, catalog: &Catalog) -> Option<Maker> {
    let soname = evidence.file(path)?.facts.elf.as_ref()?.soname.as_deref()?;
    catalog.libraries().library(soname).map(|l| l.maker)
}

/// A library for linking only.
pub fn is_stub(path: &ImagePath) -> bool {
    path.components().any(|part| part == b"stubs")
}
