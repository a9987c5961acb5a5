//! What the fleet makes of a wheel.

use crate::catalog::compat::{Fit, Host, module_fit, on_tegra, sass_serves};
use crate::catalog::wheels::{TorchArchs, TorchWheel};
use crate::lint::dockerfile::Lint;
use crate::model::{Capability, CudaVersion, Device, Form, Item, SmArch, Target};

/// How a wheel's code serves a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Yes,
    /// From PTX, which the build was asked to keep.
    Jit,
    No,
    /// Jetson, and what nobody promises.
    Unknown,
}

pub fn service(archs: &TorchArchs, device: Device) -> Service {
    let item = |arch: &SmArch, form: Form| Item { kind: 2, ..Item::of(*arch, form) };
    let sass = archs.sass.iter().map(|a| item(a, Form::Sass));
    let items: Vec<Item> = sass.chain(archs.ptx.iter().map(|a| item(a, Form::Ptx))).collect();
    match module_fit(&items, &Host::bare(device)) {
        Fit::Native | Fit::Compatible => Service::Yes,
        Fit::Jit => Service::Jit,
        Fit::Uncertain(_) => Service::Unknown,
        _ => Service::No,
    }
}

/// The targets that wheels of PyTorch's are for, with the word that their CPU has in the tables. Jetsons have wheels of
/// their own.
pub fn discrete<'a>(lint: &'a Lint<'_>) -> impl Iterator<Item = (&'a Target, &'static str)> {
    let machine = |t: &Target| match t.platforms.is_empty() || t.platforms.iter().any(|p| p.architecture == "amd64")
    {
        true => "amd64",
        false => "arm64",
    };
    lint.targets.iter().filter(|t| !on_tegra(t)).map(move |t| (t, machine(t)))
}

/// Whether a target's lowest driver runs programs of a CUDA version. Nothing is known of it without a driver.
pub fn runs(lint: &Lint<'_>, target: &Target, cuda: CudaVersion) -> Option<bool> {
    let driver = &target.driver.as_ref()?.lowest;
    Some(lint.catalog.toolkits().floor_of(cuda)?.is_met_by(driver))
}

/// The builds of a version that serve some targets and that their drivers run, oldest CUDA first; of a later version
/// where there are none.
pub fn better(lint: &Lint<'_>, version: &str, targets: &[&Target], machine: &str) -> Vec<TorchWheel> {
    let capabilities: Vec<Capability> = targets.iter().filter_map(|t| t.capability()).collect();
    let covering = lint.catalog.wheels().torch_variants_covering(version, &capabilities, machine, &sass_serves);
    let driven = |wheel: &TorchWheel| targets.iter().all(|t| runs(lint, t, wheel.cuda) != Some(false));
    let same: Vec<_> = covering.same.into_iter().filter(driven).collect();
    if same.is_empty() { covering.later.into_iter().filter(driven).collect() } else { same }
}

/// "NVIDIA A100 (8.0) and NVIDIA H100 (9.0)".
pub fn labels(targets: &[&Target]) -> String {
    listed(targets.iter().map(|t| t.label()))
}

/// "NVIDIA A100 (8.0) with driver 535".
pub fn with_drivers(targets: &[&Target]) -> String {
    listed(targets.iter().map(|t| match &t.driver {
        Some(driver) => format!("{} with driver {}", t.label(), driver.text),
        None => t.label(),
    }))
}

fn listed(texts: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

pub fn names(targets: &[&Target]) -> Vec<String> {
    targets.iter().map(|t| t.name.clone()).collect()
}
