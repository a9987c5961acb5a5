//! The evidence and the fleet as they would be after some steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::recode;
use crate::catalog::Catalog;
use crate::lint::{Subject, TargetCase};
use crate::model::{
    Built, Change, ClaimKind, Component, CudaVersion, DriverRange, DriverVersion, Evidence, ImagePath, Manager,
    Outcome, Target, Verdict, package_name,
};

/// Which component of an image is meant: its normalised name and where it is installed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub name: String,
    pub root: ImagePath,
}

impl Place {
    pub fn of(evidence: &Evidence, component: usize) -> Self {
        let component = &evidence.components[component];
        Self { name: package_name(&component.name), root: component.root.clone() }
    }

    /// Where it is in an image's evidence, if it is there.
    pub fn index(&self, evidence: &Evidence) -> Option<usize> {
        evidence.components.iter().position(|c| c.root == self.root && package_name(&c.name) == self.name)
    }
}

/// A copy that steps are applied to.
#[derive(Clone)]
pub struct State {
    pub evidence: Vec<Evidence>,
    pub targets: Vec<Target>,
}

/// What is judged of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub verdict: Verdict,
    pub required: bool,
    /// The words of components, by their code alone.
    pub code: BTreeMap<Place, Verdict>,
    /// Everything else, by its rule and the component it is about.
    pub problems: BTreeMap<(&'static str, Option<Place>), Verdict>,
}

/// All targets, by name.
pub type Outlook = BTreeMap<String, Word>;

impl State {
    pub fn of(subject: &Subject<'_>) -> Self {
        Self { evidence: subject.evidence.to_vec(), targets: subject.targets.to_vec() }
    }

    /// This state, judged.
    pub fn subject<'a>(&'a self, like: &Subject<'a>) -> Subject<'a> {
        Subject { evidence: &self.evidence, targets: &self.targets, ..*like }
    }

    /// With a step done; `None`: what comes of it cannot be told. `at`: the component that it is about; `driver`: what
    /// its targets' programs see as their driver afterwards.
    pub fn after(
        &self,
        change: &Change,
        at: Option<&Place>,
        driver: Option<(&[String], &DriverVersion)>,
        catalog: &Catalog,
    ) -> Option<Self> {
        let mut next = can_be_told(change, driver.is_some()).then(|| self.clone())?;
        match change {
            Change::Wheel { package, version, built, cuda, index: index_name, .. } => {
                let place = at?;
                for evidence in &mut next.evidence {
                    wheel(evidence, place, package, version.as_deref(), *cuda, catalog);
                    if let (Some(built), Some(index)) = (built, place.index(evidence)) {
                        if !built.gfx.is_empty() {
                            for_rocm(evidence, index, package, index_name.as_ref().map(|(name, _)| name.as_str()));
                        }
                        recode::component(evidence, index, built, catalog);
                    }
                }
            }
            Change::Source { built, .. } => {
                let place = at?;
                for evidence in &mut next.evidence {
                    framework_of(evidence, place, built, catalog);
                    if let Some(index) = place.index(evidence) {
                        recode::component(evidence, index, built, catalog);
                    }
                }
            }
            Change::Driver { targets, least } => next.set_driver(targets, least),
            Change::DropTargets { targets } => next.targets.retain(|t| !targets.contains(&t.name)),
            Change::SetVariable { name, value } => {
                for evidence in &mut next.evidence {
                    let env = &mut evidence.image.config.env;
                    env.retain(|(n, _)| n != name);
                    env.push((name.clone(), value.clone()));
                }
            }
            Change::UnsetVariable { name } => {
                for evidence in &mut next.evidence {
                    evidence.image.config.env.retain(|(n, _)| n != name);
                }
            }
            Change::RemovePackages { names, .. } => {
                for evidence in &mut next.evidence {
                    remove(evidence, names);
                }
            }
            Change::AddPackages { libraries, .. } => {
                for evidence in &mut next.evidence {
                    bring(evidence, libraries);
                }
            }
            Change::DropEntry { variable, entry } => {
                for evidence in &mut next.evidence {
                    drop_entry(evidence, variable, entry);
                }
            }
            Change::Base { .. } | Change::Advice => {}
        }
        if let Some((targets, least)) = driver {
            next.set_driver(targets, least);
        }
        Some(next)
    }

    fn set_driver(&mut self, targets: &[String], least: &DriverVersion) {
        for target in self.targets.iter_mut().filter(|t| targets.contains(&t.name)) {
            if target.driver.as_ref().is_none_or(|d| d.lowest < *least) {
                target.driver = Some(DriverRange { lowest: least.clone(), below: None, text: least.to_string() });
            }
        }
    }
}

/// Not of a wheel that no row describes, of packages of which nobody says what they bring, or of a base before it is built.
fn can_be_told(change: &Change, driver: bool) -> bool {
    match change {
        Change::Wheel { built, cuda, .. } => built.is_some() || cuda.is_some(),
        Change::AddPackages { libraries, .. } => driver || !libraries.is_empty(),
        Change::Base { .. } | Change::Advice => false,
        _ => true,
    }
}

/// The component comes from another wheel: its version, what it says of CUDA, and the libraries that it pins, which
/// come with it.
fn wheel(
    evidence: &mut Evidence,
    place: &Place,
    package: &str,
    version: Option<&str>,
    cuda: Option<CudaVersion>,
    catalog: &Catalog,
) {
    let Some(index) = place.index(evidence) else { return };
    if let Some(version) = version {
        evidence.components[index].version = Some(version.to_owned());
        for own in evidence.packages.iter_mut().filter(|p| package_name(&p.name) == package) {
            own.version = Some(version.to_owned());
        }
    }
    for claim in evidence.claims.iter_mut().filter(|c| package_name(&c.component) == package) {
        if let (ClaimKind::Cuda, Some(cuda)) = (claim.kind, cuda) {
            claim.value = cuda.to_string();
        }
    }
    // What else it says, of cuDNN or of no GPU at all, another build need not.
    evidence.claims.retain(|c| c.kind == ClaimKind::Cuda || package_name(&c.component) != package);
    // Its libraries are asked for by a build that is not here: what it finds is the package's own business.
    let own: Vec<usize> =
        (0..evidence.files.len()).filter(|&f| evidence.files[f].component == Some(index)).collect();
    for &file in &own {
        if let Some(elf) = &mut Arc::make_mut(&mut evidence.files[file].facts).elf {
            elf.needed.clear();
        }
    }
    evidence.loads.retain(|l| own.binary_search(&l.file).is_err());
    if catalog.components().framework_of_package(Manager::Pip, package).is_some() {
        without_pinned(evidence, place, catalog);
    }
    if let Some(triton) = version.filter(|_| package == "torch").and_then(|v| catalog.wheels().torch_triton(v)) {
        other_triton(evidence, place, triton);
    }
}

/// A build for ROCm says so, is of no CUDA, and brings data files of its own.
fn for_rocm(evidence: &mut Evidence, index: usize, package: &str, name: Option<&str>) {
    let own = |c: &crate::model::Claim| package_name(&c.component) == package;
    evidence.claims.retain(|c| !(own(c) && c.kind == ClaimKind::Cuda));
    if let Some(release) = name.and_then(|n| n.strip_prefix("rocm")) {
        let said_by = evidence.components[index].root.clone();
        evidence.claims.push(crate::model::Claim {
            component: package.to_owned(),
            kind: ClaimKind::Rocm,
            value: release.to_owned(),
            said_by,
        });
        evidence.claims.sort();
    }
    evidence.data_sets.retain(|d| d.component != Some(index));
}

/// Another Triton comes with torch: nothing is known of the compiler in it.
fn other_triton(evidence: &mut Evidence, place: &Place, version: &str) {
    let is = |name: &str| package_name(name) == "triton";
    let same = |p: &crate::model::Package| is(&p.name) && p.version.as_deref() != Some(version);
    let mut found = evidence.packages.iter_mut().filter(|p| same(p)).peekable();
    if found.peek().is_none() {
        return;
    }
    found.for_each(|p| p.version = Some(version.to_owned()));
    without(evidence, |c| is(&c.name) && c.root == place.root);
}

/// NVIDIA's packages beside a framework come anew with it, and what their files said goes with them.
fn without_pinned(evidence: &mut Evidence, place: &Place, catalog: &Catalog) {
    let rows = catalog.components();
    let vendor = |manager, name: &str| manager == Manager::Pip && rows.vendor_of_package(manager, name).is_some();
    without(evidence, |c| c.root == place.root && vendor(c.manager, &c.name));
    evidence.packages.retain(|p| !vendor(p.manager, &p.name));
    let inside = |path: &ImagePath| path.as_bytes().starts_with(place.root.join("nvidia").as_bytes());
    evidence.toolkits.retain(|t| !inside(&t.path));
}

/// Drops components: their files, and what is claimed of them. Indexes stay as they are.
fn without(evidence: &mut Evidence, gone: impl Fn(&Component) -> bool) {
    let gone: Vec<bool> = evidence.components.iter().map(gone).collect();
    recode::without_files(evidence, |f| f.component.is_some_and(|c| gone[c]));
    let names: Vec<String> =
        evidence.components.iter().zip(&gone).filter(|(_, g)| **g).map(|(c, _)| package_name(&c.name)).collect();
    evidence.claims.retain(|c| !names.contains(&package_name(&c.component)));
}

/// A framework that is built with another toolkit takes the libraries of that.
fn framework_of(evidence: &mut Evidence, place: &Place, built: &Built, catalog: &Catalog) {
    let Some(toolkit) = built.toolkit else { return };
    let framework = catalog.components().framework_of_package(Manager::Pip, &place.name).is_some();
    let other = evidence.cuda_of(&place.name).is_some_and(|own| own != toolkit);
    if !framework || !other || place.index(evidence).is_none() {
        return;
    }
    for claim in evidence.claims.iter_mut().filter(|c| package_name(&c.component) == place.name) {
        if claim.kind == ClaimKind::Cuda {
            claim.value = toolkit.to_string();
        }
    }
    without_pinned(evidence, place, catalog);
}

/// Packages and their files are gone.
fn remove(evidence: &mut Evidence, names: &[String]) {
    let named = |c: &Component| names.iter().any(|n| package_name(n) == package_name(&c.name));
    let owned = evidence.files.iter().filter(|f| f.component.is_some_and(|c| named(&evidence.components[c])));
    let paths: Vec<ImagePath> = owned.map(|f| f.path.clone()).collect();
    without(evidence, named);
    evidence.packages.retain(|p| !names.contains(&p.name));
    let from_host = |outcome: &mut Outcome| {
        if outcome.path().is_some_and(|p| paths.contains(p)) {
            *outcome = Outcome::Driver;
        }
    };
    evidence.driver.iter_mut().for_each(|n| from_host(&mut n.outcome));
}

/// Libraries that were missing are there.
fn bring(evidence: &mut Evidence, libraries: &[String]) {
    let there =
        |n: &crate::model::Need| matches!(n.outcome, Outcome::Missing { .. }) && libraries.contains(&n.name);
    for loads in &mut evidence.loads {
        loads.needs.retain(|n| !there(n));
        loads.opens.retain(|n| !there(n));
    }
}

/// A directory is searched no more: what was wrong with the libraries taken from it is not wrong with them.
fn drop_entry(evidence: &mut Evidence, variable: &str, entry: &str) {
    let dir = ImagePath::new(entry);
    for (_, value) in evidence.image.config.env.iter_mut().filter(|(n, _)| n == variable) {
        let stays: Vec<&str> =
            value.split([':', ';']).filter(|e| e.is_empty() || ImagePath::new(e) != dir).collect();
        *value = stays.join(":");
    }
    let from_there = |path: &ImagePath| path.parent() == dir;
    for loads in &mut evidence.loads {
        loads.unmet.retain(|u| !from_there(&u.provider));
        for need in loads.needs.iter_mut().chain(&mut loads.opens) {
            if let Outcome::Missing { refused, .. } = &mut need.outcome
                && refused.as_ref().is_some_and(|(path, _)| from_there(path))
            {
                *refused = None;
            }
        }
    }
    let stub = |outcome: &Outcome| matches!(outcome, Outcome::Found { path, .. } if from_there(path));
    evidence.driver.iter_mut().filter(|n| stub(&n.outcome)).for_each(|n| n.outcome = Outcome::Driver);
}

/// What each target is now.
pub fn outlook(cases: &[TargetCase<'_>]) -> Outlook {
    let word = |case: &TargetCase<'_>| {
        let code = case.components.iter().filter(|c| c.has_code());
        let code = code.map(|c| (Place::of(case.evidence, c.index), c.verdict)).collect();
        let mut problems = BTreeMap::new();
        for problem in &case.problems {
            let key = (problem.rule, problem.component.map(|c| Place::of(case.evidence, c)));
            let worst = problems.entry(key).or_insert(problem.verdict);
            *worst = problem.verdict.min(*worst);
        }
        Word { verdict: case.verdict, required: case.target.required, code, problems }
    };
    cases.iter().map(|c| (c.target.name.clone(), word(c))).collect()
}
