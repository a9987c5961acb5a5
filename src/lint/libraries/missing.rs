//! Libraries that are asked for and not there.

use std::collections::{BTreeMap, BTreeSet};

use super::reach::{Reach, loads_at_all, maker_of, unreached};
use crate::catalog::Catalog;
use crate::catalog::libraries::split_soname;
use crate::lint::{Problem, Remedy};
use crate::model::{
    Change, Confidence, Evidence, EvidenceFile, ImagePath, Libc, Maker, Manager, Outcome, Verdict, escape,
};
use crate::report::{Cost, Role, StepKind};

/// What one component misses.
#[derive(Default)]
struct Missing {
    /// Name, and the first file that asks for it.
    names: BTreeMap<String, ImagePath>,
    /// When those are opened that a file opens by itself.
    when: Option<String>,
    because: BTreeSet<String>,
    /// Whose GPUs the files that ask are about.
    makers: BTreeSet<Option<Maker>>,
}

/// What is told apart: whose, how bad, and why it is not found.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    verdict: Verdict,
    component: Option<usize>,
    kind: Kind,
    /// Whose library it is.
    maker: Option<Maker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// There are libraries of that name for another major version.
    OtherMajor,
    /// A GPU library that is not there.
    Gpu,
    /// A GPU library that a file opens by name.
    Opened,
    /// Any other library.
    System,
    /// ldconfig would find it.
    StaleCache,
    /// It is there, and cannot be loaded.
    Refused,
}

pub fn problems(evidence: &Evidence, roles: &[Role], reach: &Reach, catalog: &Catalog) -> Vec<Problem> {
    let sonames = Sonames::new(evidence);
    let mut found: BTreeMap<Key, Missing> = BTreeMap::new();
    for loads in &evidence.loads {
        let file = &evidence.files[loads.file];
        if !loads_at_all(evidence, file, catalog) {
            continue;
        }
        let core = reach.core(loads.file);
        let component = core.or(file.component);
        let needs = loads.needs.iter().map(|n| (n, false));
        for (need, opened) in needs.chain(loads.opens.iter().map(|n| (n, true))) {
            let Outcome::Missing { ldconfig, refused } = &need.outcome else { continue };
            // Packages bring variants for every maker's GPUs: what is there for AMD's and Intel's counts where it is
            // loaded.
            let library = catalog.libraries().library(&need.name);
            let gpu = library.is_some_and(|l| l.maker == Maker::Nvidia || core.is_some());
            let musl = matches!(evidence.libc, Some(Libc::Musl { .. }));
            let kind = if ldconfig.is_some() && !musl {
                Kind::StaleCache
            } else if refused.is_some() {
                Kind::Refused
            } else if !gpu {
                Kind::System
            } else if opened {
                Kind::Opened
            } else if sonames.other_majors(&need.name).next().is_none() {
                Kind::Gpu
            } else {
                Kind::OtherMajor
            };
            let Some(verdict) = word(evidence, roles, core, file, kind, gpu, catalog) else {
                continue;
            };
            let maker = library.map(|l| l.maker);
            let missing = found.entry(Key { verdict, component, kind, maker }).or_default();
            missing.makers.insert(maker.or_else(|| maker_of(file, catalog)));
            missing.names.entry(need.name.clone()).or_insert_with(|| file.path.clone());
            if let (true, Some(elf)) = (opened, &file.facts.elf)
                && let Some(row) = catalog.loading().opening(&file.path, elf, &need.name)
            {
                missing.when.get_or_insert_with(|| row.when.clone());
                missing.because.insert(row.because());
            }
        }
    }
    found.into_iter().filter_map(|(key, missing)| told(evidence, &sonames, key, missing, catalog)).collect()
}

/// What a missing library makes of the image; `None`: it says nothing.
fn word(
    evidence: &Evidence,
    roles: &[Role],
    core: Option<usize>,
    file: &EvidenceFile,
    kind: Kind,
    gpu: bool,
    catalog: &Catalog,
) -> Option<Verdict> {
    // A part of a system (packages without a C library) says nothing about the rest of it.
    if !gpu && evidence.libc.is_none() {
        return None;
    }
    if let Some(core) = core {
        if kind == Kind::StaleCache {
            return Some(Verdict::Warn);
        }
        let falls_back = gpu && catalog.libraries().falls_back(&evidence.components[core].name).is_some();
        return Some(if falls_back { Verdict::Cpu } else { Verdict::Fail });
    }
    unreached(evidence, file, roles, catalog)?;
    // Many packages bring plugins for what may not be there.
    Some(if gpu { Verdict::Warn } else { Verdict::Ok })
}

/// The libraries of an image by the part of their SONAME before ".so".
struct Sonames<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Sonames<'a> {
    fn new(evidence: &'a Evidence) -> Self {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for file in evidence.files.iter().filter(|f| !f.in_archive) {
            if let Some(soname) = file.facts.elf.as_ref().and_then(|e| e.soname.as_deref())
                && let Some((stem, _)) = split_soname(soname)
            {
                all.entry(stem).or_default().insert(soname);
            }
        }
        Self(all)
    }

    /// Those of the same name and another major version.
    fn other_majors(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let (stem, suffix) = split_soname(name).unwrap_or_default();
        let same = self.0.get(stem).into_iter().flatten().copied();
        same.filter(move |soname| split_soname(soname).is_some_and(|(_, major)| major != suffix))
    }
}

fn told(
    evidence: &Evidence,
    sonames: &Sonames<'_>,
    key: Key,
    missing: Missing,
    catalog: &Catalog,
) -> Option<Problem> {
    let names: Vec<&String> = missing.names.keys().collect();
    let (first, path) = missing.names.iter().next()?;
    let list = names.iter().map(|n| escape(n.as_bytes())).collect::<Vec<_>>().join(", ");
    let asks = match missing.names.values().collect::<BTreeSet<_>>().len() {
        1 => format!("`{path}` needs {list}"),
        n => format!("{n} files, `{path}` first, need {list}"),
    };
    let error = format!("\"{}: cannot open shared object file\"", escape(first.as_bytes()));
    let beside = evidence.file(path).and_then(|f| f.facts.elf.as_ref());
    let beside = beside.into_iter().flat_map(|e| &e.needed).map(String::as_str);
    let all = || names.iter().map(|n| n.as_str());
    let packages = catalog.libraries().packages_for(all(), beside.chain(all()));
    let component = key.component.map(|c| &evidence.components[c]);
    let fall_back = component.and_then(|c| catalog.libraries().falls_back(&c.name));
    let then = match (&fall_back, key.verdict) {
        (Some(row), Verdict::Cpu) => format!(": {}", row.how),
        _ => String::new(),
    };
    let install = format!("add what is missing ({packages})");
    let (rule, message, help) = match key.kind {
        Kind::OtherMajor => {
            let others: BTreeSet<String> = names
                .iter()
                .flat_map(|n| sonames.other_majors(n))
                .map(|soname| escape(soname.as_bytes()))
                .collect();
            let others = others.into_iter().collect::<Vec<_>>().join(", ");
            let built = component.and_then(|c| build_for(sonames, c, &names, catalog));
            (
                "library-of-other-major",
                format!("{asks}; the image has {others} instead: {error}{then}"),
                match built {
                    Some(build) => format!("{build}; or {install}"),
                    None => format!("take a build for the CUDA and cuDNN that are there, or {install}"),
                },
            )
        }
        Kind::Gpu => ("library-not-found", format!("{asks}, not in the image: {error}{then}"), install),
        Kind::Opened => {
            let asks = asks.replacen(" needs ", " opens ", 1).replacen(" need ", " open ", 1);
            let when = missing.when.as_ref().map(|w| format!(" {w}")).unwrap_or_default();
            ("opened-library-not-found", format!("{asks}{when}, not in the image: {error}{then}"), install)
        }
        Kind::System => {
            let musl = matches!(evidence.libc, Some(Libc::Musl { .. })) && names.iter().any(|n| *n == "libc.so.6");
            let why = if musl { " (the image's C library is musl, the file wants glibc)" } else { "" };
            let help = if musl {
                "use a glibc image (Debian, Ubuntu, a Red Hat UBI): NVIDIA's libraries do not run on musl"
                    .to_owned()
            } else {
                "install the distribution's package that has it".to_owned()
            };
            ("system-library-not-found", format!("{asks}, not in the image{why}: {error}"), help)
        }
        Kind::StaleCache => (
            "ld-cache-stale",
            format!(
                "{asks}: in a directory of ld.so.conf, but not in ld.so.cache, so the loader does not see it until \
                 ldconfig runs (the NVIDIA runtime runs it at start, others do not)"
            ),
            "run ldconfig in the layer that adds the libraries".to_owned(),
        ),
        Kind::Refused => {
            let refused = refusal(evidence, first);
            (
                "library-not-loadable",
                format!("{asks}; {refused} comes first on the loader's path, and the loader gives up on it"),
                "remove that file".to_owned(),
            )
        }
    };
    let mut because: Vec<String> = missing.because.into_iter().collect();
    if key.verdict == Verdict::Cpu {
        because.extend(fall_back.map(|row| row.because()));
    }
    let gpu = matches!(key.kind, Kind::Gpu | Kind::OtherMajor | Kind::Opened);
    let remedies = gpu.then(|| add(evidence, &names, key.kind, &packages, catalog)).into_iter().collect();
    let certain = matches!(key.verdict, Verdict::Fail | Verdict::Cpu);
    Some(Problem {
        because,
        path: Some(path.clone()),
        component: key.component,
        maker: missing.makers.first().copied().flatten().filter(|_| missing.makers.len() == 1),
        remedies,
        confidence: if certain { Confidence::High } else { Confidence::Medium },
        ..Problem::new(rule, key.verdict, message, help)
    })
}

/// The packages that bring the libraries, with the manager that the image has: pip where a Python is, else apt.
fn add(evidence: &Evidence, names: &[&String], kind: Kind, told: &str, catalog: &Catalog) -> Remedy {
    let has = |manager: Manager| evidence.packages.iter().any(|p| p.manager == manager);
    let all = || names.iter().map(|n| n.as_str());
    let of = |manager| catalog.libraries().package_names(all(), all(), manager == Manager::Pip);
    // A name with a star in it is none that a package manager takes.
    let whole = |manager: &Manager| !of(*manager).iter().any(|p| p.contains('*'));
    let usual = if has(Manager::Pip) { Manager::Pip } else { Manager::Dpkg };
    let manager = [usual, Manager::Dpkg].into_iter().find(whole).unwrap_or(usual);
    let packages = of(manager);
    let change = Change::AddPackages {
        manager,
        names: packages.iter().cloned().collect(),
        libraries: names.iter().map(|n| (*n).clone()).collect(),
    };
    // A second major beside the first costs more than a build for the first.
    let cost = if kind == Kind::OtherMajor { Cost::OtherVersion } else { Cost::Setting };
    let mut remedy = Remedy::new(StepKind::Libraries, cost, format!("add what is missing ({told})"), change);
    if packages.iter().any(|p| p.contains('*')) {
        remedy.review = Some("which release of the packages goes with the file is not known here".to_owned());
    }
    remedy
}

fn refusal(evidence: &Evidence, name: &str) -> String {
    let all = evidence.loads.iter().flat_map(|l| l.needs.iter().chain(&l.opens));
    let refused = all.filter(|n| n.name == name).find_map(|n| match &n.outcome {
        Outcome::Missing { refused: Some((path, why)), .. } => {
            Some(format!("`{path}` ({})", escape(why.as_bytes())))
        }
        _ => None,
    });
    refused.unwrap_or_else(|| "a file that cannot be read".to_owned())
}

/// "onnxruntime-gpu 1.18.1 is built for CUDA 11 and cuDNN 8; 1.19 and newer for CUDA 12 and cuDNN 9".
fn build_for(
    sonames: &Sonames<'_>,
    component: &crate::model::Component,
    names: &[&String],
    catalog: &Catalog,
) -> Option<String> {
    let there: BTreeSet<u16> = names
        .iter()
        .flat_map(|n| sonames.other_majors(n))
        .flat_map(|soname| {
            let library = catalog.libraries().library(soname)?;
            library.cuda_majors(split_soname(soname)?.1).last().copied()
        })
        .collect();
    let cuda = there.into_iter().next_back()?;
    let row = catalog.libraries().build_for(&component.name, cuda)?;
    let name = escape(component.name.as_bytes());
    Some(format!("take {name} {}, which is built for {}", row.versions, row.needs))
}
