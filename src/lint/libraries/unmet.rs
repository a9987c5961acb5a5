//! Symbols and versions that the library which would be loaded does not have.

use std::collections::BTreeMap;

use super::reach::{Reach, loads_at_all, unreached};
use super::versions;
use crate::catalog::Catalog;
use crate::lint::{Problem, Remedy};
use crate::model::{
    Change, Confidence, Evidence, EvidenceFile, ImagePath, Law, Libc, Outcome, Unmet, UnmetKind, Verdict, escape,
};
use crate::report::{Cost, Role, StepKind};

/// What is told apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    verdict: Verdict,
    component: Option<usize>,
    provider: &'a ImagePath,
    kind: UnmetKind,
}

/// A file that asks, and what.
type Asked<'a> = (usize, &'a Unmet);

pub fn problems(evidence: &Evidence, roles: &[Role], reach: &Reach, catalog: &Catalog) -> Vec<Problem> {
    let mut found: BTreeMap<Key<'_>, Vec<Asked<'_>>> = BTreeMap::new();
    for loads in &evidence.loads {
        let file = &evidence.files[loads.file];
        if !loads_at_all(evidence, file, catalog) {
            continue;
        }
        let core = reach.core(loads.file);
        for unmet in &loads.unmet {
            let verdict = match core {
                Some(_) => Verdict::Fail,
                None => match word(evidence, file, roles, catalog) {
                    Some(verdict) => verdict,
                    None => continue,
                },
            };
            let component = core.or(file.component);
            let key = Key { verdict, component, provider: &unmet.provider, kind: unmet.kind };
            found.entry(key).or_default().push((loads.file, unmet));
        }
    }
    found.into_iter().map(|(key, asked)| told(evidence, &key, &asked, catalog)).collect()
}

/// What it makes of the image where no core component loads the file.
fn word(evidence: &Evidence, file: &EvidenceFile, roles: &[Role], catalog: &Catalog) -> Option<Verdict> {
    match unreached(evidence, file, roles, catalog)? {
        Role::Idle => None,
        // The image's own GPU code and packages with device code: whoever imports them fails. What has nothing to do
        // with GPUs is not ours to warn of.
        Role::Core => Some(Verdict::Warn),
        Role::Optional if file.facts.has_device_code() || wants_gpu(file, catalog) => Some(Verdict::Warn),
        Role::Optional => Some(Verdict::Ok),
    }
}

fn wants_gpu(file: &EvidenceFile, catalog: &Catalog) -> bool {
    file.facts.elf.iter().flat_map(|e| &e.needed).any(|n| catalog.libraries().library(n).is_some())
}

fn told(evidence: &Evidence, key: &Key<'_>, asked: &[Asked<'_>], catalog: &Catalog) -> Problem {
    let (first, unmet) = asked[0];
    let path = &evidence.files[first].path;
    let who = match asked.len() {
        1 => format!("`{path}` asks"),
        n => format!("{n} files, `{path}` first, ask"),
    };
    let provider = key.provider;
    let library = escape(unmet.library.as_bytes());
    let name = unmet.names.first().map_or_else(String::new, |n| escape(n.as_bytes()));
    let more = match unmet.count {
        0 | 1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let law = law_of(evidence, first, provider);
    let by = law.map(|l| format!(", taken by {l}")).unwrap_or_default();
    let mut remedies = Vec::new();
    let is_libc = key.kind == UnmetKind::Version && name.starts_with("GLIBC_");
    let (rule, message, help) = if is_libc {
        let newest = unmet.names.iter().max_by_key(|n| versions::numbers(n.trim_start_matches("GLIBC_")));
        let wanted = newest.map_or(name.clone(), |n| escape(n.as_bytes()));
        let has = match &evidence.libc {
            Some(Libc::Glibc { version: Some(version), .. }) => format!("glibc {version}"),
            _ => format!("`{provider}`"),
        };
        (
            "glibc-too-old",
            format!("{who} for {wanted}, the image has {has}: \"version `{wanted}' not found\""),
            "use a base image with a newer glibc, or a build for an older one (manylinux tag)".to_owned(),
        )
    } else {
        let has = evidence.file(provider).and_then(|f| versions::of(evidence, f, catalog));
        let has = has.map(|v| format!(" ({v})")).unwrap_or_default();
        let error = match key.kind {
            UnmetKind::Version => format!("\"version `{name}' not found\""),
            UnmetKind::Symbol => format!("\"undefined symbol: {name}\""),
        };
        let rule = match key.kind {
            UnmetKind::Version => "symbol-version-not-found",
            UnmetKind::Symbol => "undefined-symbol",
        };
        let message = format!("{who} {library} for {name}{more}; `{provider}`{has}{by}, does not have it: {error}");
        let (help, drop) = help(evidence, unmet, law, provider, catalog);
        remedies.extend(drop);
        (rule, message, help)
    };
    Problem {
        path: Some(path.clone()),
        component: key.component,
        maker: super::reach::maker_of(&evidence.files[first], catalog),
        remedies,
        confidence: if key.verdict == Verdict::Fail { Confidence::High } else { Confidence::Medium },
        ..Problem::new(rule, key.verdict, message, help)
    }
}

/// By which law a file gets that library.
fn law_of<'a>(evidence: &'a Evidence, file: usize, provider: &ImagePath) -> Option<&'a Law> {
    let loads = evidence.loads_of(file)?;
    loads.needs.iter().chain(&loads.opens).find_map(|n| match &n.outcome {
        Outcome::Found { path, law } if path == provider => Some(law),
        _ => None,
    })
}

/// Another library of the image that has what is asked for, and what keeps the loader from it.
fn help(
    evidence: &Evidence,
    unmet: &Unmet,
    law: Option<&Law>,
    provider: &ImagePath,
    catalog: &Catalog,
) -> (String, Option<Remedy>) {
    let has_all = |f: &&EvidenceFile| {
        let Some(elf) = f.facts.elf.as_ref().filter(|e| e.soname.as_deref() == Some(&unmet.library)) else {
            return false;
        };
        match unmet.kind {
            UnmetKind::Version => unmet.names.iter().all(|n| elf.defines.contains(n)),
            UnmetKind::Symbol => {
                let exports = elf.exports.as_ref();
                exports.is_some_and(|e| unmet.names.iter().all(|n| e.has(n, None)))
            }
        }
    };
    let better = evidence.files.iter().filter(|f| !f.in_archive && f.path != *provider).find(has_all);
    let folder = provider.parent();
    let words = match (better, law) {
        (Some(better), Some(Law::LibraryPath)) => {
            let help = format!(
                "drop `/{folder}` from LD_LIBRARY_PATH: then `{}`, which has it, can be found",
                better.path
            );
            let change = Change::DropEntry { variable: "LD_LIBRARY_PATH".to_owned(), entry: format!("/{folder}") };
            let review = "what else is taken from that directory was not looked at again".to_owned();
            let drop = Remedy::new(StepKind::Libraries, Cost::Setting, help.clone(), change);
            return (help, Some(Remedy { review: Some(review), ..drop }));
        }
        (Some(better), _) => format!("let the loader find `{}`, which has it, before `/{folder}`", better.path),
        (None, _) => {
            let name = || std::iter::once(unmet.library.as_str());
            let known = catalog.libraries().library(&unmet.library).is_some();
            let packages = known.then(|| catalog.libraries().packages_for(name(), name()));
            match packages {
                Some(packages) => {
                    format!("update the library ({packages}) to the release that the file was built with")
                }
                None => "update the library to the release that the file was built with".to_owned(),
            }
        }
    };
    (words, None)
}
