//! A base of a CUDA that the targets' drivers are too old for.

use std::collections::BTreeMap;

use super::from::{Image, images, is_cuda};
use super::gate::{Gate, Refusal};
use crate::catalog::bases::{Base, BaseFamily, Flavour};
use crate::catalog::forward::{Activation, Eligible};
use crate::lint::dockerfile::ask::lower;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::{CudaVersion, DriverVersion, GpuClass, Runtime, Severity, Target};

/// What becomes of the image on a target. Ordered, worst last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// The runtime's check may refuse it, by what NVML calls the GPU, or by the runtime's mode.
    Refused(Refusal),
    /// Through the base's forward-compat library alone.
    Compat(DriverVersion),
    /// Below the floor of the CUDA major, on a GPU that forward compatibility does not serve.
    NotServed(DriverVersion),
    Below(DriverVersion),
}

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(last) = lint.reading.last else { return };
    let Some(root) = lint.reading.stages.get(last).map(|s| s.root.1) else { return };
    let Some(image) = images(lint).into_iter().find(|i| i.stage == root) else { return };
    let gate = Gate::of(lint, last);
    let mut by_fate: BTreeMap<(Severity, Fate), Vec<&Target>> = BTreeMap::new();
    for target in &lint.targets {
        let judged = image.every(|_, base| judge(lint, base.filter(|b| b.sure)?, &gate, target));
        let Some(((severity, fate), _, one_of)) = judged else { continue };
        let severity = if one_of || !target.required { lower(severity) } else { severity };
        by_fate.entry((severity, fate)).or_default().push(target);
    }
    let native = |t: &&Target| lint.catalog.drivers().native_cuda(&t.driver.as_ref()?.lowest);
    let Some(oldest) = by_fate.values().flatten().filter_map(native).min() else { return };
    for ((severity, fate), targets) in by_fate.iter().rev() {
        out.extend(said(lint, &image, (*severity, fate), targets, oldest));
    }
}

fn judge(lint: &Lint<'_>, base: &Base, gate: &Gate, target: &Target) -> Option<(Severity, Fate)> {
    let cuda = base.cuda?;
    let host = &target.driver.as_ref()?.lowest;
    // Jetsons count their drivers apart, and have a package of their own.
    if target.runtime == Runtime::Tegra || target.class == Some(GpuClass::Embedded) {
        return None;
    }
    let floor = lint.catalog.toolkits().floor_of(cuda)?;
    if floor.is_met_by(host) {
        let refusal = gate.refuses(lint, base, target)?;
        let severity =
            if target.runtime == Runtime::Legacy && refusal.sure { Severity::Error } else { Severity::Warning };
        return Some((severity, Fate::Refused(refusal)));
    }
    let floor = floor.driver;
    let brings = is_cuda(base) || base.family == BaseFamily::NvidiaNgc;
    let library = library(lint, cuda).filter(|_| brings && !gate.compat_removed);
    let eligible = lint.catalog.forward().eligible(target.class).map(|(e, _)| e);
    let forward = lint.catalog.forward();
    let active = library.as_ref().map(|l| forward.activation(l, host, None, target.runtime));
    Some(match (active, eligible) {
        (Some(Activation::Yes | Activation::ByMode), Some(Eligible::No)) => {
            (Severity::Error, Fate::NotServed(floor))
        }
        (Some(Activation::Yes | Activation::ByMode), Some(Eligible::Yes | Eligible::Note))
            if library.as_ref().is_some_and(|l| forward.serves(l, host, None) && knows(lint, l, target)) =>
        {
            (Severity::Warning, Fate::Compat(floor))
        }
        // Its devel images stand on NVIDIA's, which have the library.
        _ if base.family == BaseFamily::Pytorch && base.flavour == Some(Flavour::Devel) => {
            (Severity::Warning, Fate::Below(floor))
        }
        // Of a bare architecture it is not known whether forward compatibility serves it; Windows' drivers count
        // their own way.
        (Some(Activation::Yes | Activation::ByMode), None) => (Severity::Warning, Fate::Below(floor)),
        _ if target.runtime == Runtime::Wsl => (Severity::Warning, Fate::Below(floor)),
        _ => (Severity::Error, Fate::Below(floor)),
    })
}

/// Whether a driver still drives the target's GPU: R590 no more Volta.
fn knows(lint: &Lint<'_>, library: &DriverVersion, target: &Target) -> bool {
    let window = target.capability().and_then(|cc| lint.catalog.drivers().window(cc));
    window.and_then(|w| w.last_driver).is_none_or(|last| library.branch() <= last)
}

/// The forward-compat library of a CUDA's images.
fn library(lint: &Lint<'_>, cuda: CudaVersion) -> Option<DriverVersion> {
    let name = format!("cuda-compat-{}-{}", cuda.major, cuda.minor);
    let package = lint.catalog.forward().packages().iter().find(|p| p.name == name).map(|p| p.branch);
    let branch = package.or_else(|| lint.catalog.drivers().min_branch_for_cuda(cuda).map(|b| b.branch))?;
    Some(DriverVersion::branch_floor(branch))
}

fn said(
    lint: &Lint<'_>,
    image: &Image<'_>,
    (severity, fate): (Severity, &Fate),
    targets: &[&Target],
    oldest: CudaVersion,
) -> Option<Found> {
    let (reference, base) = image.all.first()?;
    let base = base.as_ref()?;
    let cuda = base.cuda?;
    let trail = lint.trail(&image.text.trail);
    let on = together(targets);
    let insufficient = "\"CUDA driver version is insufficient for CUDA runtime version\" (35)";
    let message = match fate {
        Fate::Below(floor) => format!(
            "`{reference}`{trail} has CUDA {cuda}, which asks for driver {floor}: on {on} it stops with {insufficient}"
        ),
        Fate::NotServed(floor) => format!(
            "`{reference}`{trail} has CUDA {cuda}, which asks for driver {floor}, and {on} cannot use its forward-compat library: \
             {insufficient}, or \"forward compatibility was attempted on non supported HW\" (804)"
        ),
        Fate::Compat(floor) => format!(
            "`{reference}`{trail} has CUDA {cuda}, which asks for driver {floor}: on {on} it runs only through the base's \
             forward-compat library"
        ),
        Fate::Refused(refusal) => {
            format!("`{reference}`{trail} asks for {}: {}", refusal.asked, refusal.then(&on, targets))
        }
    };
    let mut found = image.found(severity, message).label(format!("CUDA {cuda}"));
    found = found.on(targets.iter().map(|t| t.name.clone()).collect()).because(base.because.clone());
    let toolkits = lint.catalog.toolkits();
    match fate {
        Fate::Refused(refusal) => found = found.because(refusal.because.clone()),
        Fate::Below(_) | Fate::NotServed(_) | Fate::Compat(_) => {
            found.because.extend(toolkits.floor_of(cuda).map(|f| f.because));
        }
    }
    let branch =
        lint.catalog.drivers().min_branch_for_cuda(cuda).map(|b| format!(", or drivers of R{} or newer", b.branch));
    let near = nearest(lint, base, oldest);
    let what = match (&near, fate) {
        (Some(tag), _) => format!("take `{}:{tag}`", base.repository),
        (None, Fate::Refused(_)) => format!("take a base of CUDA {oldest}"),
        (None, _) => format!("take a base of CUDA {} or older", oldest.major),
    };
    let escape = match fate {
        Fate::Refused(_) => {
            "; where the programs run on that driver all the same, start with NVIDIA_DISABLE_REQUIRE=1"
        }
        Fate::Below(_) | Fate::NotServed(_) | Fate::Compat(_) => "",
    };
    found = found.help(format!("{what}{}{escape}", branch.unwrap_or_default()));
    if let (Some(new), Some(old)) = (near, base.tag.as_deref())
        && let Some(edits) = image.retag(lint, old, &new)
    {
        found = found.suggest(format!("take the tag {new}"), edits);
    }
    Some(found)
}

/// The live tag of the newest CUDA that the driver knows itself, of the same flavour and distribution.
fn nearest(lint: &Lint<'_>, base: &Base, most: CudaVersion) -> Option<String> {
    let tag = base.tag.as_deref().filter(|_| is_cuda(base))?;
    let tags = lint.catalog.cuda_tags();
    let (_, rest) = tag.split_once('-')?;
    let lines = lint.catalog.toolkits().all().iter().rev().map(|t| t.cuda).filter(|c| *c <= most);
    lines.take(8).find_map(|cuda| {
        let new = format!("{}-{rest}", tags.newest_patch(cuda)?);
        (tags.state(&new).state == crate::catalog::cuda_tags::TagState::Live).then_some(new)
    })
}

/// "NVIDIA A100 (8.0) with driver 535".
fn together(targets: &[&Target]) -> String {
    let mut all: Vec<String> = Vec::new();
    for target in targets {
        let driver = target.driver.as_ref().map_or(String::new(), |d| format!(" with driver {d}"));
        let words = format!("{}{driver}", target.label());
        if !all.contains(&words) {
            all.push(words);
        }
    }
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "base-cuda-above-driver";
    const THIRTEEN: &str = "FROM nvidia/cuda:13.0.1-runtime-ubuntu22.04\n";
    const TWELVE: &str = "FROM nvidia/cuda:12.8.1-runtime-ubuntu22.04\n";

    fn severity(file: &str, target: &str) -> Option<Severity> {
        lint(RULE, file, &[target]).first().map(|f| f.severity)
    }

    #[test]
    fn below_the_floor_of_the_major() {
        assert_eq!(blamed(RULE, THIRTEEN, &["RTX 4090@550"]), ["nvidia/cuda:13.0.1-runtime-ubuntu22.04"]);
        assert_eq!(severity(THIRTEEN, "RTX 4090@550"), Some(Severity::Error));
        assert_eq!(severity(THIRTEEN, "a100@535"), Some(Severity::Warning));
        assert_eq!(severity(THIRTEEN, "a100@580"), None);
        // Not on the list of the library, and no library in pytorch/pytorch.
        assert_eq!(severity(THIRTEEN, "a100@470"), Some(Severity::Error));
        assert_eq!(
            severity("FROM pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime\n", "a100@535"),
            Some(Severity::Error)
        );
        let newer = "FROM nvidia/cuda:13.1.0-runtime-ubuntu22.04\n";
        assert_eq!(severity(newer, "a100@535"), Some(Severity::Warning));
        assert_eq!(severity(newer, "v100@535"), Some(Severity::Error));
        let without = format!("{THIRTEEN}RUN apt-get purge -y cuda-compat-13-0\n");
        assert_eq!(severity(&without, "a100@535"), Some(Severity::Error));
    }

    #[test]
    fn a_newer_minor_is_refused_where_the_image_s_conditions_do_not_let_it_through() {
        assert_eq!(severity(TWELVE, "RTX 4090@550"), Some(Severity::Warning));
        assert_eq!(severity(TWELVE, "a100@535"), None);
        assert_eq!(severity(TWELVE, "RTX 4090@570"), None);
        // Up to CUDA 12.4 GeForce was let through.
        assert_eq!(severity("FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n", "RTX 4090@535"), None);
        assert_eq!(
            severity("FROM nvidia/cuda:12.6.3-runtime-ubuntu22.04\n", "RTX 4090@535"),
            Some(Severity::Warning)
        );
        let off = format!("{TWELVE}ENV NVIDIA_DISABLE_REQUIRE=1\n");
        assert_eq!(severity(&off, "RTX 4090@550"), None);
        let own = format!("{TWELVE}ENV NVIDIA_REQUIRE_CUDA=cuda>=12.0\n");
        assert_eq!(severity(&own, "RTX 4090@550"), None);
        // Nothing is checked without NVIDIA's own variables.
        assert_eq!(severity("FROM pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime\n", "RTX 4090@550"), None);
    }

    #[test]
    fn the_final_image_counts_and_the_arg_is_mended() {
        let builder = format!("{}FROM ubuntu:22.04\nCOPY --from=b /x /x\n", THIRTEEN.replace('\n', " AS b\n"));
        assert_eq!(severity(&builder, "RTX 4090@550"), None);
        assert_eq!(severity("ARG C\nFROM nvidia/cuda:${C}-base-ubuntu22.04\n", "RTX 4090@550"), None);
        let file = "ARG CUDA=13.0.1\nFROM nvidia/cuda:${CUDA}-runtime-ubuntu22.04\n";
        let found = lint(RULE, file, &["RTX 4090@550", "a100@580"]);
        assert!(found[0].message.contains("from ARG CUDA in line 1") && found[0].targets.len() == 1, "{found:?}");
        assert!(mended(RULE, file, &["RTX 4090@550"]).starts_with("ARG CUDA=12.4.1\n"));
    }
}
