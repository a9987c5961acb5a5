//! A wheel built for a CUDA that a target's driver does not run.

use std::collections::BTreeSet;

use super::packages::{Installed, MOST_TOLD, Package};
use super::targets::{names, runs, with_drivers};
use super::torch::{self, From};
use crate::catalog::bases::BaseFamily;
use crate::catalog::compat::on_tegra;
use crate::catalog::forward::Eligible;
use crate::catalog::system_packages::SystemKind;
use crate::catalog::wheels::index_cuda;
use crate::dockerfile::commands::surely;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::{CudaVersion, DriverVersion, Runtime, Target};

/// Something of a known CUDA.
struct Wheel {
    told: String,
    span: Span,
    stage: usize,
    cuda: CudaVersion,
    /// A version is pinned or the index named; else it is the newest of PyPI.
    named: bool,
    maybe: bool,
    torch: bool,
    because: Vec<String>,
}

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let mut seen = BTreeSet::new();
    for wheel in torches(lint).into_iter().chain(others(lint)) {
        // One for each environment and major: companions of torch say nothing new.
        if seen.contains(&(wheel.stage, wheel.cuda.major)) {
            continue;
        }
        let judged = |t: &&Target| !on_tegra(t) && t.runtime != Runtime::Wsl && t.runtime != Runtime::Tegra;
        let low = |t: &&Target| runs(lint, t, wheel.cuda) == Some(false);
        let bad: Vec<&Target> = lint.targets.iter().filter(judged).filter(low).collect();
        let (helped, left): (Vec<&Target>, Vec<&Target>) = bad.into_iter().partition(|t| serves(lint, &wheel, t));
        for (targets, by_compat) in [(left, false), (helped, true)] {
            if let Some(found) = judge(lint, &wheel, &targets, by_compat) {
                seen.insert((wheel.stage, wheel.cuda.major));
                out.push(found);
            }
        }
    }
}

fn torches(lint: &Lint<'_>) -> Vec<Wheel> {
    let one = |torch: torch::Torch<'_>| {
        let (cuda, newest) = match torch.cuda(lint) {
            Some(cuda) => (cuda, None),
            None if torch.from == From::Pypi => {
                let newest = lint.catalog.wheels().newest_torch(&torch.specifier)?;
                let row = lint.catalog.wheels().defaults().iter().find(|d| d.torch == newest.version)?;
                (index_cuda(&row.index)?, Some((newest, row.index.clone())))
            }
            None => return None,
        };
        let told = match &newest {
            Some((newest, index)) => format!("the newest torch of PyPI, {} ({index}),", newest.version),
            None => torch.told(lint),
        };
        Some(Wheel {
            told,
            span: torch.place(),
            stage: torch.stage,
            cuda,
            named: newest.is_none(),
            maybe: torch.maybe(),
            torch: true,
            because: torch.because.iter().cloned().chain(newest.map(|(n, _)| n.because)).collect(),
        })
    };
    torch::kept(lint).into_iter().filter_map(one).collect()
}

/// Packages that say their CUDA in their name, and others that the tables know.
fn others(lint: &Lint<'_>) -> Vec<Wheel> {
    let installed = Installed::of(lint);
    let one = |package: &Package<'_>| {
        let requirement = package.requirement;
        if requirement.url.is_some() {
            return None;
        }
        let known = package.known(lint).filter(|k| k.sure)?;
        let major = known.cuda_major?;
        let base = lint.base(package.stage).and_then(|b| b.cuda);
        // Without libraries it runs on the CPU: where neither the base nor pip has them, that is what it is for.
        let says = requirement.name.contains("-cu") || !requirement.extras.is_empty();
        // A base that asks for the same driver is another rule's matter.
        if base.is_some_and(|b| b.major >= major) || !known.brings && !says && base.is_none() {
            return None;
        }
        Some(Wheel {
            told: package.told(),
            span: package.span,
            stage: package.stage,
            cuda: known.cuda.unwrap_or(CudaVersion::new(major, 0)),
            named: true,
            maybe: false,
            torch: false,
            because: vec![known.because],
        })
    };
    installed.packages.iter().filter_map(one).take(MOST_TOLD).collect()
}

fn judge(lint: &Lint<'_>, wheel: &Wheel, bad: &[&Target], by_compat: bool) -> Option<Found> {
    let first = bad.first()?;
    let floor = lint.catalog.toolkits().floor_of(wheel.cuda)?;
    let has = with_drivers(bad);
    let message = match (by_compat, wheel.torch) {
        (true, _) => format!(
            "{} is built for CUDA {}, which asks for driver {}: on {has} it runs only through a \
             forward-compat library of the base",
            wheel.told, wheel.cuda, floor.driver
        ),
        (false, true) => format!(
            "{} is built for CUDA {}, which asks for driver {}: on {has} torch finds no GPU (\"The NVIDIA driver on \
             your system is too old\")",
            wheel.told, wheel.cuda, floor.driver
        ),
        (false, false) => format!(
            "{} is built for CUDA {}, which asks for driver {}: on {has} it stops with \"CUDA driver version is insufficient \
             for CUDA runtime version\"",
            wheel.told, wheel.cuda.major, floor.driver
        ),
    };
    let mut found = match (wheel.named, by_compat || wheel.maybe) {
        (false, _) => Found::note(wheel.span, message),
        (true, true) => Found::warning(wheel.span, message),
        (true, false) => Found::error(wheel.span, message),
    };
    found =
        found.label(format!("CUDA {} asks for driver {}", wheel.cuda.major, floor.driver)).because(floor.because);
    found.because.extend(wheel.because.iter().cloned());
    let native = |t: &&&Target| t.driver.as_ref().and_then(|d| lint.catalog.drivers().native_cuda(&d.lowest));
    let below = bad.iter().filter_map(|t| native(&t)).min().or(native(&first));
    if let Some(below) = below {
        found = found.help(match wheel.torch {
            true => {
                format!("take an index of CUDA {} or older (cu{}x), or newer drivers", below.major, below.major)
            }
            false => format!("take a build for CUDA {} or older, or newer drivers", below.major),
        });
    }
    Some(found.on(names(bad)))
}

/// Whether a forward-compat library of the base brings the wheel's CUDA to a target, or may: of an unknown base.
fn serves(lint: &Lint<'_>, wheel: &Wheel, target: &Target) -> bool {
    let Some(host) = target.driver.as_ref().map(|d| &d.lowest) else { return false };
    let forward = lint.catalog.forward();
    if forward.eligible(target.class).is_none_or(|(e, _)| e == Eligible::No || e == Eligible::Own) {
        return false;
    }
    let stage = lint.reading.last.unwrap_or(wheel.stage);
    let Some(library) = compat_library(lint, stage) else { return lint.base(stage).is_none() };
    let native = lint.catalog.drivers().native_cuda(&library);
    let newer = native.is_some_and(|c| c.major >= wheel.cuda.major);
    newer && forward.serves(&library, host, None) && drives(lint, &library, target)
}

/// Whether a driver still drives the target's GPU: R590 no more Volta.
pub fn drives(lint: &Lint<'_>, library: &DriverVersion, target: &Target) -> bool {
    let window = target.capability().and_then(|cc| lint.catalog.drivers().window(cc));
    window.and_then(|w| w.last_driver).is_none_or(|last| library.branch() <= last)
}

/// The forward-compat library that a stage has, by its CUDA: of a package, or of NVIDIA's base.
pub fn compat_library(lint: &Lint<'_>, stage: usize) -> Option<DriverVersion> {
    let cuda = installed(lint, stage).or_else(|| {
        let base = lint.base(stage)?;
        base.cuda.filter(|_| matches!(base.family, BaseFamily::NvidiaCuda | BaseFamily::NvidiaNgc))
    })?;
    let name = format!("cuda-compat-{}-{}", cuda.major, cuda.minor);
    let package = lint.catalog.forward().packages().iter().find(|p| p.name == name);
    // Its libcuda is of the branch that came with that CUDA.
    let branch = package.map(|p| p.branch).or_else(|| {
        let branch = lint.catalog.drivers().min_branch_for_cuda(cuda)?;
        (branch.native_cuda == cuda).then_some(branch.branch)
    });
    branch.map(DriverVersion::branch_floor)
}

fn installed(lint: &Lint<'_>, stage: usize) -> Option<CudaVersion> {
    let chain = lint.chain(stage);
    let here = |command: usize| {
        let command = lint.reading.commands.get(command).filter(|c| surely(c.when));
        command.and_then(|c| lint.stage_of(c.instruction)).is_some_and(|(at, _)| chain.contains(&at))
    };
    let packages = lint.asks.system.iter().filter(|s| here(s.command)).flat_map(|s| &s.packages);
    let mut compat = packages.filter(|p| !p.unsure).filter_map(|p| {
        let known = lint.catalog.system_packages().classify(&p.name, p.version.as_deref())?;
        known.cuda.filter(|_| known.kind == SystemKind::Compat)
    });
    compat.next_back()
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "wheel-above-driver";
    const INDEX: &str = "https://download.pytorch.org/whl";

    fn file(base: &str, install: &str) -> String {
        format!("FROM {base}\nRUN pip install {install}\n")
    }

    #[test]
    fn an_index_above_the_driver() {
        let file = file("python:3.12-slim", &format!("torch --index-url {INDEX}/cu130"));
        assert_eq!(blamed(RULE, &file, &["RTX 4090@550"]), [format!("{INDEX}/cu130")]);
        let found = lint(RULE, &file, &["RTX 4090@550", "RTX 4090@580"]);
        assert_eq!((found[0].severity, found[0].targets.len()), (Severity::Error, 1));
        assert!(found[0].message.contains("580.65.06") && found[0].help.as_deref().unwrap().contains("CUDA 12"));
        assert!(lint(RULE, &file, &["RTX 4090@580"]).is_empty());
        assert!(lint(RULE, &file, &["RTX 4090"]).is_empty());
        // An unknown base may have the library, which GeForce does not take.
        let unknown =
            super::tests::file("example.com/x:1", &format!("torch==2.10.0+cu130 --extra-index-url {INDEX}/cu130"));
        let found = lint(RULE, &unknown, &["RTX 4090@550", "a100@550"]);
        let said: Vec<_> = found.iter().map(|f| (f.severity, f.targets.join(" "))).collect();
        assert_eq!(said, [(Severity::Warning, "a100@550".into()), (Severity::Error, "rtx-4090@550".into())]);
    }

    #[test]
    fn minor_versions_are_compatible() {
        let file = file("python:3.12-slim", &format!("torch==2.8.0 --index-url {INDEX}/cu128"));
        assert!(lint(RULE, &file, &["RTX 4090@535", "a100@535"]).is_empty());
        assert_eq!(lint(RULE, &file, &["a100@470"]).len(), 1);
    }

    #[test]
    fn forward_compat_serves_data_centre_gpus() {
        let base = "nvidia/cuda:13.0.2-runtime-ubuntu22.04";
        let file = file(base, &format!("torch --index-url {INDEX}/cu130"));
        assert_eq!(lint(RULE, &file, &["a100@550"])[0].severity, Severity::Warning);
        assert_eq!(lint(RULE, &file, &["RTX 4090@550"])[0].severity, Severity::Error);
        // The base's library is of CUDA 12.
        let base = "nvidia/cuda:12.4.1-runtime-ubuntu22.04";
        let file = super::tests::file(base, &format!("torch --index-url {INDEX}/cu130"));
        assert_eq!(lint(RULE, &file, &["a100@535"])[0].severity, Severity::Error);
    }

    #[test]
    fn packages_that_say_their_cuda() {
        let file = file("python:3.12-slim", "cupy-cuda13x");
        assert_eq!(blamed(RULE, &file, &["RTX 4090@550"]), ["cupy-cuda13x"]);
        assert!(lint(RULE, &super::tests::file("python:3.12", "cupy-cuda12x"), &["RTX 4090@550"]).is_empty());
    }

    #[test]
    fn the_newest_of_pypi_is_a_note() {
        let file = file("python:3.12-slim", "torch");
        assert_eq!(lint(RULE, &file, &["RTX 4090@550"])[0].severity, Severity::Note);
    }
}
