//! Files of NVIDIA's driver in the image: they come from the host, and those that stand in the image get in the way.

use std::collections::BTreeSet;

use super::libraries::{is_stub, versions};
use super::{Problem, Remedy, words};
use crate::model::{
    Change, Component, DriverVersion, Evidence, EvidenceFile, ImagePath, Law, Maker, Manager, Need, Outcome,
    Runtime, Target, Verdict, escape, package_name,
};
use crate::report::{Cost, StepKind};

/// What an image's driver files make of a target.
pub fn problems(target: &Target, evidence: &Evidence) -> Vec<Problem> {
    let mut out: Vec<Problem> = baked(evidence, Some(target)).into_iter().collect();
    out.extend(empty(evidence, Some(target)));
    out.extend(mount(target, evidence));
    out
}

/// What an image's driver files make of it without a target.
pub fn without_target(evidence: &Evidence) -> Vec<Problem> {
    baked(evidence, None).into_iter().chain(empty(evidence, None)).collect()
}

/// Driver files of no bytes: the mount points that a runtime left in a container that was committed.
fn empty(evidence: &Evidence, target: Option<&Target>) -> Option<Problem> {
    let first = evidence.empty_driver_files.first()?;
    let count = evidence.empty_driver_files.len();
    let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
    let wsl = target.is_some_and(|t| t.runtime == Runtime::Wsl);
    let (verdict, then) = match wsl {
        true => (Verdict::Fail, "on WSL2 the runtime cannot mount its own over them (\"file exists\")"),
        false => (
            Verdict::Warn,
            "where the host's driver has other files, they stay and the loader stumbles over them (\"file too short\")",
        ),
    };
    let message = format!(
        "`{first}`{more}: driver files of no bytes, left by a container that was committed while it ran: {then}"
    );
    let help = "delete them, or build the image from a Dockerfile instead of committing a container";
    Some(Problem { path: Some(first.clone()), ..Problem::new("driver-in-image", verdict, message, help) })
}

/// Where GKE mounts the driver.
pub const MOUNT: &str = "usr/local/nvidia/lib64";

/// On nodes that mount the driver as a folder, the loader must look there: nothing runs ldconfig.
fn mount(target: &Target, evidence: &Evidence) -> Option<Problem> {
    let gpu = evidence.files.iter().any(|f| f.facts.has_device_code() && f.facts.kind.loadable());
    if target.runtime != Runtime::Gke || !gpu {
        return None;
    }
    let path = evidence.image.config.var("LD_LIBRARY_PATH").unwrap_or_default();
    if path.split([':', ';']).any(|dir| ImagePath::new(dir) == ImagePath::new(MOUNT)) {
        return None;
    }
    let message = format!(
        "{} mounts the driver at /{MOUNT}, which is not in the image's LD_LIBRARY_PATH: libcuda.so.1 is not found, no GPU is seen",
        target.name
    );
    let help = format!("ENV LD_LIBRARY_PATH=/usr/local/nvidia/lib:/{MOUNT}:…, as NVIDIA's base images have it");
    Some(Problem {
        step: StepKind::Driver,
        ..Problem::new("driver-mount-not-on-path", Verdict::Cpu, message, help)
    })
}

/// The stub driver on the loader's path: wrong on any target.
pub fn stubs(evidence: &Evidence) -> Vec<Problem> {
    let asked = evidence.loads.iter().flat_map(|l| &l.needs).filter(|n| is_driver_name(&n.name));
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for need in evidence.driver.iter().filter(|n| n.name.ends_with(".1")).chain(asked) {
        let Outcome::Found { path, law } = &need.outcome else { continue };
        if !is_stub(path) || !seen.insert((path, need.name.as_str())) {
            continue;
        }
        // The host's driver comes in through the cache and the default directories.
        let first = matches!(law, Law::LibraryPath | Law::Preload | Law::Rpath(_) | Law::Runpath | Law::Path);
        let verdict = if first { Verdict::Fail } else { Verdict::Warn };
        let message = format!(
            "`{path}` is a stub for linking, and the loader takes it for {} by {law}: \"CUDA driver is a stub library\" (34)",
            need.name
        );
        let folder = path.parent();
        let help = match law {
            Law::LibraryPath => {
                format!("drop `/{folder}` from LD_LIBRARY_PATH; for linking, LIBRARY_PATH is enough")
            }
            _ => format!("remove `/{folder}` from the loader's path, or the link `{path}`"),
        };
        let entry = format!("/{folder}");
        let drop = (*law == Law::LibraryPath).then(|| {
            let change = Change::DropEntry { variable: "LD_LIBRARY_PATH".to_owned(), entry };
            Remedy::new(StepKind::Libraries, Cost::Setting, help.clone(), change)
        });
        out.push(Problem {
            path: Some(path.clone()),
            remedies: drop.into_iter().collect(),
            maker: Some(Maker::Nvidia),
            ..Problem::new("stub-driver-on-path", verdict, message, help)
        });
    }
    out
}

fn is_driver_name(name: &str) -> bool {
    name.starts_with("libcuda.so") || name.starts_with("libnvidia-")
}

/// Real files of a driver, not stubs and not the forward-compat packages.
fn driver_files(evidence: &Evidence) -> Vec<&EvidenceFile> {
    let driver = |f: &&EvidenceFile| {
        let name = f.path.file_name_lossy();
        let soname = f.facts.elf.as_ref().and_then(|e| e.soname.as_deref()).unwrap_or_default();
        let known =
            |n: &str| is_driver_name(n) || n.starts_with("libnvcuvid.so") || n.starts_with("libcudadebugger.so");
        let real = f.facts.kind.is_elf() && !is_stub(&f.path) && !is_compat(&f.path);
        (known(&name) || known(soname)) && !f.in_archive && real
    };
    evidence.files.iter().filter(driver).filter(|f| release(&f.path).is_some()).collect()
}

/// Whether a file is in a folder of a forward-compat package.
pub fn is_compat(path: &ImagePath) -> bool {
    path.parent().components().any(|part| part.starts_with(b"compat") || part == b"cuda-compat")
}

/// The release in a driver file's name: `libcuda.so.535.183.01`.
pub fn release(path: &ImagePath) -> Option<DriverVersion> {
    let name = path.file_name_lossy();
    let (_, suffix) = name.split_once(".so.")?;
    let numbers = versions::numbers(suffix);
    (numbers.len() > 1 && numbers[0] >= 100).then(|| suffix.parse().ok()).flatten()
}

/// Driver files in the image, against a target's driver; without a target, for the image as such.
pub fn baked(evidence: &Evidence, target: Option<&Target>) -> Option<Problem> {
    let files = driver_files(evidence);
    let first = *files.first()?;
    let baked = release(&first.path)?;
    let on_path = |n: &&Need| n.outcome.path().is_some_and(|p| files.iter().any(|f| f.path == *p));
    let taken = evidence.driver.iter().find(on_path);
    let driver = target.and_then(|t| t.driver.as_ref());
    // A bare branch may be that very release.
    let same = driver.is_some_and(|d| {
        let one = !d.text.contains(['<', '>', '=', ',']);
        one && (d.lowest == baked || (d.lowest.is_branch() && d.lowest.branch() == baked.branch()))
    });
    let owner = owners(evidence, &files);
    let more = if files.len() > 1 { format!(" and {} more files", files.len() - 1) } else { String::new() };
    let where_ = match taken {
        Some(need) => format!(", on the loader's path for {}", need.name),
        None => ", off the loader's path".to_owned(),
    };
    let (verdict, then) = match target {
        Some(t) if t.runtime == Runtime::Wsl => {
            (Verdict::Fail, ": on WSL2 the runtime cannot mount its own over it (\"file exists\")".to_owned())
        }
        Some(_) if taken.is_some() && same => {
            (Verdict::Warn, ": the host's version today, not after an update".to_owned())
        }
        Some(t) if taken.is_some() && driver.is_some() => (
            Verdict::Fail,
            format!(
                ", the host has {}: \"Failed to initialize NVML: Driver/library version mismatch\", or \
                 cudaErrorSystemDriverMismatch (803)",
                t.driver.as_ref().map(ToString::to_string).unwrap_or_default()
            ),
        ),
        _ => (Verdict::Warn, ": works only with hosts of the same driver".to_owned()),
    };
    let message = format!("driver {baked} is in the image: `{}`{more}{owner}{where_}{then}", first.path);
    let help = match chain(evidence, &files) {
        Some(chain) => format!("the driver comes from the host: remove {chain}"),
        None => "the driver comes from the host: remove its files from the image".to_owned(),
    };
    let path: Option<ImagePath> = Some(first.path.clone());
    let remedies = removal(evidence, &files, &help).into_iter().collect();
    Some(Problem { path, remedies, ..Problem::new("driver-in-image", verdict, message, help) })
}

/// The packages that brought the files, taken out: of one manager, and none of the files without an owner.
fn removal(evidence: &Evidence, files: &[&EvidenceFile], help: &str) -> Option<Remedy> {
    let owners: Vec<&Component> = packaged(evidence, files).collect();
    let manager = owners.first()?.manager;
    let all = files.iter().all(|f| f.component.is_some_and(|c| evidence.components[c].manager == manager));
    let names: BTreeSet<String> = owners.iter().map(|c| c.name.clone()).collect();
    let change = Change::RemovePackages { manager, names: names.into_iter().collect() };
    all.then(|| Remedy::new(StepKind::Libraries, Cost::Setting, help, change))
}

/// The packages that own files.
fn packaged<'a>(evidence: &'a Evidence, files: &'a [&EvidenceFile]) -> impl Iterator<Item = &'a Component> {
    let owners = files.iter().filter_map(|f| f.component).map(|c| &evidence.components[c]);
    owners.filter(|c| c.manager != Manager::Path)
}

fn owners(evidence: &Evidence, files: &[&EvidenceFile]) -> String {
    let names: BTreeSet<String> = packaged(evidence, files).map(words::component).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(" (of {})", names.into_iter().collect::<Vec<_>>().join(", "))
}

/// The packages that brought the files, and those that pulled them in: "libnvidia-compute-535, pulled in by
/// nvidia-opencl-dev".
fn chain(evidence: &Evidence, files: &[&EvidenceFile]) -> Option<String> {
    let owned: BTreeSet<&str> = packaged(evidence, files).map(|c| c.name.as_str()).collect();
    // Files without a list of owners: packages that are named after a driver.
    let by_name = evidence
        .packages
        .iter()
        .filter(|p| p.name.starts_with("libnvidia-") || p.name.starts_with("nvidia-driver"));
    let packages: BTreeSet<&str> =
        if owned.is_empty() { by_name.map(|p| p.name.as_str()).collect() } else { owned };
    if packages.is_empty() {
        return None;
    }
    let wanting: BTreeSet<String> = evidence
        .packages
        .iter()
        .filter(|p| !packages.contains(p.name.as_str()))
        .filter(|p| {
            p.wants_driver.iter().any(|w| packages.iter().any(|name| package_name(name) == package_name(w)))
        })
        .map(|p| escape(p.name.as_bytes()))
        .collect();
    let list = packages.iter().map(|n| escape(n.as_bytes())).collect::<Vec<_>>().join(", ");
    if wanting.is_empty() {
        return Some(list);
    }
    let wanting = wanting.into_iter().collect::<Vec<_>>().join(", ");
    Some(format!("{list} (pulled in by {wanting}; of OpenCL the loader package alone is enough)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::config::parse_target;
    use crate::lint::lab::{Lab, at};
    use crate::model::Package;

    fn image(on_path: bool) -> Lab {
        let file = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.183.01";
        let mut lab = Lab::new();
        lab.library(file, ("libnvidia-compute-535", "535.183.01"), "libnvidia-ml.so.1", false);
        lab.0.components[0].manager = Manager::Dpkg;
        let mut opencl = Package::new(Manager::Dpkg, "nvidia-opencl-dev", None);
        opencl.wants_driver = vec!["libnvidia-compute-535".into()];
        lab.0.packages.push(opencl);
        if on_path {
            let outcome = Outcome::Found { path: at(file), law: Law::Default };
            lab.0.driver.push(Need { name: "libnvidia-ml.so.1".into(), outcome });
        }
        lab
    }

    #[test]
    fn a_driver_in_the_image_against_the_hosts() {
        let verdict = |on_path: bool, target: &str, wsl: bool| {
            let mut target = parse_target(target, Catalog::embedded()).unwrap();
            if wsl {
                target.runtime = Runtime::Wsl;
            }
            let found = problems(&target, &image(on_path).0);
            assert_eq!(found.len(), 1);
            assert!(found[0].help.contains("nvidia-opencl-dev"), "{}", found[0].help);
            found[0].verdict
        };
        assert_eq!(verdict(true, "a100@535.183.01", false), Verdict::Warn);
        assert_eq!(verdict(true, "a100@535", false), Verdict::Warn);
        assert_eq!(verdict(true, "a100@570", false), Verdict::Fail);
        assert_eq!(verdict(false, "a100@570", false), Verdict::Warn);
        assert_eq!(verdict(true, "a100", false), Verdict::Warn);
        assert_eq!(verdict(false, "a100@535.183.01", true), Verdict::Fail);
        assert_eq!(baked(&image(true).0, None).map(|p| p.verdict), Some(Verdict::Warn));
    }

    #[test]
    fn stubs_compat_and_other_libraries_are_no_driver() {
        let mut lab = Lab::new();
        lab.library("usr/lib/libcudart.so.12.8.90", ("cuda", "12.8"), "libcudart.so.12", false);
        lab.library("usr/local/cuda/compat/libcuda.so.550.54.15", ("cuda-compat", "12.4"), "libcuda.so.1", false);
        lab.library("usr/local/cuda/lib64/stubs/libcuda.so", ("cuda", "12.8"), "libcuda.so.1", false);
        assert_eq!(baked(&lab.0, None), None);
    }
}
