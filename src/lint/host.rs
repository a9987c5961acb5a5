//! What can be wrong between an image and a host before any device code counts: the processor, the driver.

use std::collections::BTreeMap;

use super::case::ComponentCase;
use super::problem::Problem;
use super::words;
use crate::catalog::Catalog;
use crate::model::{Evidence, EvidenceFile, ImagePath, Machine, Platform, Target, Verdict};
use crate::report::{Role, StepKind};

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
fn entrypoint_file(evidence: &Evidence) -> Option<&EvidenceFile> {
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
    if crate::catalog::compat::is_tegra(target.capability) {
        return None;
    }
    let window = catalog.drivers().window(target.capability)?;
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
    Some(Problem {
        because,
        step: StepKind::Driver,
        ..Problem::new("driver-does-not-know-gpu", verdict, what, help)
    })
}

/// The CUDA runtime of a core component needs a driver of its major's floor or newer.
pub fn cuda_major(
    target: &Target,
    evidence: &Evidence,
    components: &[ComponentCase<'_>],
    catalog: &Catalog,
) -> Option<Problem> {
    let driver = &target.driver.as_ref()?.lowest;
    let (major, cause, path) = required_major(evidence, components)?;
    let floor = catalog.toolkits().driver_floor(major)?;
    if floor.is_met_by(driver) {
        return None;
    }
    let compat = evidence.files.iter().find(|f| {
        let text = f.path.to_string();
        text.contains("/compat") && f.path.file_name_lossy().starts_with("libcuda.so")
    });
    let verdict = if compat.is_some() { Verdict::Warn } else { Verdict::Fail };
    let unless = match compat {
        Some(file) => format!(", unless the forward-compat library `{}` is used", file.path),
        None => String::new(),
    };
    let message = format!(
        "{cause} needs driver {} or newer, {} has {driver}: \"CUDA driver version is insufficient for CUDA runtime \
         version\" (35){unless}",
        floor.driver, target.name
    );
    let help = format!("use a driver of {} or newer, or a build for an older CUDA major", floor.driver);
    let because = vec![floor.because.clone()];
    let draft = Problem::new("driver-too-old-for-cuda", verdict, message, help);
    Some(Problem { because, path, step: StepKind::Driver, ..draft })
}

/// Libraries whose SONAME ends in the CUDA major they belong to.
const MAJOR_IN_NAME: [&str; 5] =
    ["libcudart.so.", "libcublas.so.", "libcublasLt.so.", "libnvrtc.so.", "libnvJitLink.so."];

/// The highest CUDA major that the core components use, with who asks for it.
pub fn required_major(
    evidence: &Evidence,
    components: &[ComponentCase<'_>],
) -> Option<(u16, String, Option<ImagePath>)> {
    let mut found: BTreeMap<u16, (String, Option<ImagePath>)> = BTreeMap::new();
    for case in components.iter().filter(|c| c.role == Role::Core) {
        let component = &evidence.components[case.index];
        let label = words::component(component);
        if let Some((cuda, claim)) = evidence.cuda_claim(&component.name) {
            found.entry(cuda.major).or_insert_with(|| (format!("{label} (built for CUDA {})", claim.value), None));
        }
        for file in &case.files {
            for needed in file.file.facts.elf.iter().flat_map(|e| &e.needed) {
                let major =
                    MAJOR_IN_NAME.iter().find_map(|n| needed.strip_prefix(n)?.split('.').next()?.parse().ok());
                if let Some(major) = major {
                    let who = || (format!("{label} (links {needed})"), Some(file.file.path.clone()));
                    found.entry(major).or_insert_with(who);
                }
            }
        }
    }
    found.into_iter().next_back().map(|(major, (cause, path))| (major, cause, path))
}
