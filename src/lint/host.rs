//! What can be wrong between an image and a host before any device code counts: the processor, the driver.

use std::collections::{BTreeMap, BTreeSet};

use super::case::ComponentCase;
use super::problem::{Problem, Remedy};
use super::words;
use crate::catalog::compat::Host;
use crate::catalog::verdict::GENERAL;
use crate::catalog::{Catalog, require};
use crate::model::{
    Change, Container, CudaVersion, DriverVersion, Evidence, EvidenceFile, ImagePath, Machine, Module, Platform,
    Target, Verdict,
};
use crate::report::{Cost, Role, StepKind};

/// An image, or a program in it, for another processor than the hosts'.
pub fn wrong_platform(target: &Target, evidence: &Evidence, components: &[ComponentCase<'_>]) -> Option<Problem> {
    let image = evidence.image.platform.as_ref();
    let problem = |what: String, path| {
        let help = "build or pull the image for the platform of the target's hosts";
        let because = vec![target.because.clone()];
        let step = StepKind::Platform;
        Some(Problem { step, because, path, ..Problem::new("wrong-platform", Verdict::Fail, what, help) })
    };
    let hosts = || target.platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    if let Some(image) = image
        && !target.platforms.is_empty()
        && !target.platforms.iter().any(|p| image.serves(p))
    {
        return problem(
            format!("the image is for {image}, {} hosts are {}: exec format error", target.gpu, hosts()),
            None,
        );
    }
    // What the config says and what the files are can differ.
    let runs_on: Vec<&Platform> =
        if target.platforms.is_empty() { image.into_iter().collect() } else { target.platforms.iter().collect() };
    let core = components.iter().filter(|c| c.role == Role::Core).flat_map(|c| &c.files);
    let entrypoint = entrypoint_file(evidence);
    for file in core.map(|f| f.file).chain(entrypoint) {
        let Some(machine) = file.facts.elf.as_ref().and_then(|e| Machine(e.machine).platform()) else { continue };
        if !runs_on.is_empty() && !runs_on.iter().any(|p| p.architecture == machine) {
            let hosts = runs_on.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
            return problem(
                format!("`{}` is for {machine}, the hosts are {hosts}: exec format error", file.path),
                Some(file.path.clone()),
            );
        }
    }
    None
}

/// The program that starts first, if it is an ELF file named by an absolute path.
pub fn entrypoint_file(evidence: &Evidence) -> Option<&EvidenceFile> {
    let config = &evidence.image.config;
    let program = config.entrypoint.first().or(config.cmd.first()).filter(|p| p.starts_with('/'))?;
    let path = ImagePath::new(program);
    let path = evidence.links.iter().find(|(l, _)| *l == path).map_or(&path, |(_, to)| to);
    evidence.files.iter().find(|f| f.path == *path)
}

/// Drivers that do not know the GPU: too old for it, or of a branch that dropped it.
pub fn driver_window(target: &Target, catalog: &Catalog) -> Option<Problem> {
    let driver = &target.driver.as_ref()?.lowest;
    // Jetsons have drivers of their own, numbered apart.
    let capability = target.capability()?;
    if crate::catalog::compat::is_tegra(capability) {
        return None;
    }
    let window = catalog.drivers().window(capability)?;
    let early = window.first_driver.filter(|first| driver.branch() < *first);
    let late = window.last_driver.filter(|last| driver.branch() > *last);
    let (what, help) = match (early, late) {
        (Some(first), _) => (
            format!("driver {driver} does not know {}: the first that does is R{first}", target.gpu),
            format!("use a driver of R{first} or newer on these hosts"),
        ),
        (_, Some(last)) => (
            format!("driver {driver} no longer supports {}: the last that does is R{last}", target.gpu),
            format!("stay on R{last} on these hosts"),
        ),
        _ => return None,
    };
    let verdict = if window.verified { Verdict::Fail } else { Verdict::Warn };
    let because = vec![window.because.clone()];
    let newer = early.map(|first| {
        let change = Change::Driver { targets: Vec::new(), least: DriverVersion::branch_floor(first) };
        Remedy::new(StepKind::Driver, Cost::Hosts, help.clone(), change)
    });
    Some(Problem {
        because,
        remedies: newer.into_iter().collect(),
        step: StepKind::Driver,
        ..Problem::new("driver-does-not-know-gpu", verdict, what, help)
    })
}

/// The CUDA runtime of a core component needs a driver of its major's floor or newer, the host's own or that of a
/// forward-compat library which serves.
pub fn cuda_major(
    target: &Target,
    host: &Host,
    evidence: &Evidence,
    components: &[ComponentCase<'_>],
    catalog: &Catalog,
) -> Option<Problem> {
    let own = target.driver.as_ref()?;
    let driver = host.driver.as_ref().unwrap_or(&own.lowest);
    let needed = required(evidence, components, catalog)?;
    let floor = catalog.toolkits().driver_floor(needed.cuda.major)?;
    if floor.is_met_by(driver) {
        return None;
    }
    let message = format!(
        "{} needs driver {} or newer, {} has {own}: \"CUDA driver version is insufficient for CUDA runtime version\" \
         (35){}",
        needed.cause,
        floor.driver,
        target.name,
        needed.against_declared(evidence)
    );
    let help = format!("use a driver of {} or newer, or a build for an older CUDA major", floor.driver);
    let because = vec![floor.because.clone()];
    let draft = Problem::new("driver-too-old-for-cuda", Verdict::Fail, message, help);
    let summary = format!("use a driver of {} or newer on {}", floor.driver, target.label());
    let change = Change::Driver { targets: Vec::new(), least: floor.driver.clone() };
    let remedies = vec![Remedy::new(StepKind::Driver, Cost::Hosts, summary, change)];
    let wants_driver = Some((needed.cuda, floor.driver.clone()));
    Some(Problem { because, path: needed.path, step: StepKind::Driver, remedies, wants_driver, ..draft })
}

/// Libraries whose SONAME ends in the CUDA major they belong to.
const MAJOR_IN_NAME: [&str; 5] =
    ["libcudart.so.", "libcublas.so.", "libcublasLt.so.", "libnvrtc.so.", "libnvJitLink.so."];

/// The highest CUDA that core components use.
pub struct Required {
    pub cuda: CudaVersion,
    /// Only the major is known.
    major_only: bool,
    /// "torch 2.10.0+cu130 (built for CUDA 13.0)".
    pub cause: String,
    /// The file that says or shows it.
    pub path: Option<ImagePath>,
}

impl Required {
    /// What the image declares, where that is a lower bar: majors count, for within one older drivers do.
    pub fn against_declared(&self, evidence: &Evidence) -> String {
        match require::declared_cuda(&evidence.image.config) {
            Some((variable, declared)) if declared.major < self.cuda.major => {
                let effective =
                    if self.major_only { format!("{}.x", self.cuda.major) } else { self.cuda.to_string() };
                let file = self.path.as_ref().map_or(String::new(), |p| format!(", by `{p}`"));
                format!("; declared {declared} ({variable}), effective {effective}{file}")
            }
            _ => String::new(),
        }
    }
}

/// The highest CUDA that the core components use, with who asks for it: what they say of their build, the runtime
/// libraries that they link, the toolkits that compiled their general machine code.
pub fn required(evidence: &Evidence, components: &[ComponentCase<'_>], catalog: &Catalog) -> Option<Required> {
    let mut found: BTreeMap<u16, Required> = BTreeMap::new();
    let mut add = |required: Required| {
        found.entry(required.cuda.major).or_insert(required);
    };
    for case in components.iter().filter(|c| c.role == Role::Core) {
        let component = &evidence.components[case.index];
        let label = words::component(component);
        if let Some((cuda, claim)) = evidence.cuda_claim(&component.name) {
            let cause = format!("{label} (built for CUDA {})", claim.value);
            let major_only = !claim.value.contains('.');
            add(Required { cuda, major_only, cause, path: Some(claim.said_by.clone()) });
        }
        for file in case.files.iter().map(|f| f.file) {
            let path = Some(file.path.clone());
            // What is opened by name counts where it is found: of several majors one is tried after the other.
            let loads = evidence.file_at(&file.path).and_then(|i| evidence.loads_of(i));
            let opened =
                loads.iter().flat_map(|l| &l.opens).filter(|n| n.outcome.path().is_some()).map(|n| &n.name);
            for needed in file.facts.elf.iter().flat_map(|e| &e.needed).chain(opened) {
                let major =
                    MAJOR_IN_NAME.iter().find_map(|n| needed.strip_prefix(n)?.split('.').next()?.parse().ok());
                if let Some(major) = major {
                    let cause = format!("{label} (links {needed})");
                    let cuda = CudaVersion::new(major, 0);
                    add(Required { cuda, major_only: true, cause, path: path.clone() });
                }
            }
            if let Some(cuda) = compiled_with(file) {
                let cause = format!("{label} (machine code made by CUDA {cuda})");
                add(Required { cuda, major_only: false, cause, path: path.clone() });
            }
            // With the runtime linked in, the PTX beside compressed machine code tells the toolkit.
            let ptx = file.facts.modules.iter().filter(|m| m.container == Container::Fatbin && !m.relocatable);
            let isa = ptx.flat_map(|m| &m.items).filter_map(|i| i.item.isa).max();
            if let Some((isa, cuda)) = isa.and_then(|isa| Some((isa, catalog.toolkits().of_ptx(isa)?))) {
                let cause = format!("{label} (PTX {isa}, which CUDA {cuda} writes)");
                add(Required { cuda, major_only: false, cause, path });
            }
        }
    }
    found.into_values().next_back()
}

/// The newest toolkit that made a file's general machine code, where that says so.
fn compiled_with(file: &EvidenceFile) -> Option<CudaVersion> {
    let general = |m: &&Module| {
        let archs: BTreeSet<_> = m.items.iter().map(|i| i.item.arch).collect();
        !m.relocatable && archs.len() >= GENERAL
    };
    file.facts.modules.iter().filter(general).flat_map(|m| &m.items).filter_map(|i| i.item.toolkit).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_target;
    use crate::lint::case::bare;
    use crate::lint::lab::{Lab, at};
    use crate::model::{Claim, ClaimKind, Form, Item, ItemCount, Packing};
    use std::sync::Arc;

    const KERNELS: &str = "SITE/torch/lib/libtorch_cuda.so";

    fn torch(version: &str, needed: &str, cuda: Option<&str>) -> Lab {
        let mut lab = Lab::new();
        lab.library(KERNELS, ("torch", version), "libtorch_cuda.so", true).needed = vec![needed.into()];
        let claim = |value: &str| Claim {
            component: "torch".into(),
            kind: ClaimKind::Cuda,
            value: value.into(),
            said_by: at("SITE/torch/version.py"),
        };
        lab.0.claims.extend(cuda.map(claim));
        lab
    }

    fn found(lab: &Lab, target: &str) -> Option<Problem> {
        let catalog = Catalog::embedded();
        let target = parse_target(target, catalog).unwrap();
        let cores = [bare(0, Role::Core, &lab.0, catalog)];
        let host = Host { driver: target.driver.as_ref().map(|d| d.lowest.clone()), ..Host::bare(target.device) };
        cuda_major(&target, &host, &lab.0, &cores, catalog)
    }

    #[test]
    fn the_bar_that_is_really_there_against_the_declared() {
        let mut lab = torch("2.10.0+cu130", "libcudart.so.13", Some("13.0"));
        lab.env(&[("NVIDIA_REQUIRE_CUDA", "cuda>=12.8"), ("CUDA_VERSION", "12.8.1")]);
        let problem = found(&lab, "rtx 4090@570").unwrap();
        for words in
            ["declared 12.8 (NVIDIA_REQUIRE_CUDA), effective 13.0", "torch/version.py", "580.65.06", "(35)"]
        {
            assert!(problem.message.contains(words), "{}", problem.message);
        }
        assert_eq!(found(&lab, "rtx 4090@580"), None);
        assert_eq!(found(&lab, "rtx 4090"), None);
        let linked = torch("2.10.0", "libcublas.so.13", None);
        let problem = found(&linked, "rtx 4090@570").unwrap();
        assert!(problem.message.contains("links libcublas.so.13") && !problem.message.contains("declared"));
    }

    #[test]
    fn minor_versions_are_no_bar() {
        let lab = torch("2.7.0+cu128", "libcudart.so.12", Some("12.8"));
        assert_eq!(found(&lab, "a100@525.60.13"), None);
        assert_eq!(found(&lab, "a100@525"), None);
        assert!(found(&lab, "a100@520").unwrap().message.contains("525.60.13"));
    }

    #[test]
    fn what_compiled_the_general_code_counts() {
        let code = |archs: &[&str]| {
            let mut lab = torch("2.4.0", "libcudart.so.11.0", None);
            let item = |arch: &&str| Item {
                arch: arch.parse().unwrap(),
                form: Form::Sass,
                kind: 2,
                isa: None,
                packing: Packing::None,
                toolkit: Some(CudaVersion::new(12, 4)),
            };
            let modules = vec![Module {
                container: Container::Fatbin,
                section: None,
                relocatable: false,
                items: archs.iter().map(|a| ItemCount { item: item(a), entries: 1, bytes: 1 }).collect(),
                count: 1,
                first: 0,
            }];
            Arc::get_mut(&mut lab.0.files[0].facts).unwrap().modules = modules;
            found(&lab, "a100@470").map(|p| p.message)
        };
        assert!(code(&["sm_70", "sm_80", "sm_90"]).unwrap().contains("machine code made by CUDA 12.4"));
        assert_eq!(code(&["sm_80"]), None);
    }
}
