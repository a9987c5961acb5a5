//! Another wheel: the same version from another index, or another version.

use std::collections::BTreeSet;

use super::{Choice, Cx, gpus};
use crate::catalog::compat::sass_serves;
use crate::catalog::names;
use crate::catalog::wheels::{TorchPython, TorchWheel};
use crate::inventory::same_component;
use crate::model::{
    Built, Capability, Change, CudaVersion, Evidence, Libc, Manager, SmArch, escape, first_two, package_name,
};
use crate::plan::need::{Need, is_vendor};
use crate::report::{Cost, StepKind};

/// Later and earlier releases that are looked at, each with all its indexes.
const RELEASES: usize = 2;

/// Wheels for a component that lacks code.
pub fn choices(
    need: &Need<'_, '_>,
    missing: &BTreeSet<Capability>,
    cx: &Cx<'_, '_>,
    found: &mut Vec<Choice>,
    why: &mut Vec<String>,
) {
    let Some(place) = need.place() else { return };
    let evidence = need.evidence();
    let Some(component) = place.index(evidence).map(|index| &evidence.components[index]) else { return };
    if same_component(&component.name, "torch") && component.version.is_some() {
        let serves = |w: &TorchWheel| missing.iter().any(|cc| covers(&w.archs.sass, *cc));
        torch(need, cx, &serves, found, why);
        return;
    }
    let rows: Vec<_> = cx.catalog.wheels().packages(&component.name).collect();
    let version = component.version.as_deref();
    let newer: Vec<_> = rows.iter().filter(|r| Some(r.version.as_str()) != version).collect();
    let other = |row: &crate::catalog::wheels::PackageRow| {
        // A version, not a range or words.
        let number = row.version.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
        number && missing.iter().any(|cc| covers(&row.archs().0, *cc) || covers(&row.archs().1, *cc))
    };
    for row in newer.into_iter().filter(|r| other(r)) {
        let (sass, ptx) = row.archs();
        let cuda = cx.catalog.wheels().package_cuda(&row.package, &row.version).and_then(|c| c.cuda);
        let change = Change::Wheel {
            package: package_name(&component.name),
            version: Some(row.version.clone()),
            specifier: format!("=={}", row.version),
            index: None,
            built: Some(Built { sass, ptx, toolkit: cuda, ..Built::default() }),
            cuda,
        };
        let summary =
            format!("take {} {}, which has {} (for {})", component.name, row.version, row.sass, gpus(need));
        let mut choice = Choice::new(StepKind::ChangeWheel, Cost::OtherVersion, need, summary, change);
        choice.step.command = Some(format!("pip install {}=={}", component.name, row.version));
        choice = choice.because([row.because()]);
        if rows.iter().filter(|r| r.version == row.version).count() > 1 {
            choice = choice
                .review(format!("the row is of its {}: which library is loaded depends on torch's CUDA", row.what));
        }
        found.push(choice);
    }
    let pip = component.manager == Manager::Pip;
    if pip && found.is_empty() && (is_vendor(need, cx.catalog) || version.is_some()) {
        let closed = is_vendor(need, cx.catalog);
        let name = escape(component.name.as_bytes());
        let change = Change::Wheel {
            package: package_name(&component.name),
            version: None,
            specifier: version.map(|v| format!(">{v}")).unwrap_or_default(),
            index: None,
            built: None,
            cuda: None,
        };
        let summary = format!("take another version of {name} that supports {}", gpus(need));
        let choice = Choice::new(StepKind::ChangeWheel, Cost::OtherVersion, need, summary, change);
        let unknown = match closed {
            true => "it is distributed in binary form only, and no row says what other versions hold",
            false => "no row says what other versions hold (--check-wheels looks)",
        };
        found.push(choice.review(unknown));
    }
}

/// Whether machine code or PTX of these serves a GPU.
fn covers(archs: &[SmArch], cc: Capability) -> bool {
    archs.iter().any(|a| sass_serves(*a, cc))
}

/// Wheels of torch, of the same version and of the releases beside it.
pub fn torch(
    need: &Need<'_, '_>,
    cx: &Cx<'_, '_>,
    serves: &dyn Fn(&TorchWheel) -> bool,
    found: &mut Vec<Choice>,
    why: &mut Vec<String>,
) {
    let evidence = need.evidence();
    let Some(component) = evidence.component_named("torch").map(|i| &evidence.components[i]) else { return };
    let Some(version) = component.version.as_deref() else { return };
    let bare = version.split('+').next().unwrap_or(version);
    let machine = evidence.image.platform.as_ref().map_or("amd64", |p| p.architecture.as_str());
    let wheels = cx.catalog.wheels();
    let own = version.split_once('+').map(|(_, tag)| tag.to_owned()).or_else(|| own_index(evidence));
    let same: Vec<TorchWheel> = wheels
        .torch_wheels(bare, machine)
        .into_iter()
        .filter(|w| Some(&w.index) != own.as_ref() && serves(w))
        .collect();
    let fleet = cx.capabilities();
    let whole = |w: &TorchWheel| fleet.iter().all(|cc| covers(&w.archs.sass, *cc));
    let alone = !same.iter().any(whole);
    for wheel in same {
        found.extend(of_torch(need, cx, wheel, Cost::SameVersion, version));
    }
    // Other releases where this one has no wheel for all.
    let key = names::version(bare);
    let others = |later: bool| {
        let mut known: Vec<&str> = wheels.torch_versions();
        known.retain(|v| (names::version(v) > key) == later && first_two(v) != first_two(bare));
        if !later {
            known.reverse();
        }
        known
    };
    let python = python_of(component);
    let mut refused: BTreeSet<String> = BTreeSet::new();
    for later in [true, false] {
        let mut taken: Vec<&str> = Vec::new();
        // Where a wheel of this release is enough, the next is told all the same.
        let most = if alone { RELEASES } else { usize::from(later) };
        for torch in others(later) {
            if taken.len() == most || taken.contains(&first_two(torch)) {
                continue;
            }
            let fits: Vec<TorchWheel> =
                wheels.torch_wheels(torch, machine).into_iter().filter(|w| serves(w)).collect();
            if fits.is_empty() {
                continue;
            }
            if let Some(reason) =
                wheels.torch_python(torch, machine).and_then(|row| unfit(torch, &row, python, evidence))
            {
                refused.insert(reason);
                continue;
            }
            taken.push(first_two(torch));
            // Where a wheel serves the whole fleet, those that do not are not told.
            let all = fits.iter().any(whole);
            for wheel in fits.into_iter().filter(|w| !all || whole(w)) {
                let choice = of_torch(need, cx, wheel, Cost::OtherVersion, version);
                found.extend(choice.map(|choice| Choice { older: !later, ..choice }));
            }
        }
    }
    why.extend(refused);
}

/// Why no wheel of a release can be installed in the image: its Python or its C library.
fn unfit(torch: &str, row: &TorchPython, python: Option<CudaVersion>, evidence: &Evidence) -> Option<String> {
    if let Some(python) = python.filter(|p| *p < row.first || *p > row.last) {
        let (first, last) = (row.first, row.last);
        return Some(format!("torch {torch} has wheels for Python {first} to {last}, the image has {python}"));
    }
    let asked = row.glibc.as_deref()?;
    match &evidence.libc {
        Some(Libc::Glibc { version: Some(has), .. }) if names::numbers(has) < names::numbers(asked) => {
            Some(format!("torch {torch} has wheels for glibc {asked} and newer, the image has {has}"))
        }
        Some(Libc::Musl { .. }) => {
            Some(format!("torch {torch} has wheels for glibc, the image's C library is musl"))
        }
        _ => None,
    }
}

/// The index of the wheel that PyPI serves, by the CUDA that the installed one names.
fn own_index(evidence: &crate::model::Evidence) -> Option<String> {
    let cuda = evidence.cuda_of("torch")?;
    Some(format!("cu{}{}", cuda.major, cuda.minor))
}

/// The CPython that a package is installed for: `…/python3.11/site-packages`.
fn python_of(component: &crate::model::Component) -> Option<CudaVersion> {
    let root = String::from_utf8_lossy(component.root.as_bytes()).into_owned();
    root.split('/').find_map(|part| part.strip_prefix("python")?.parse().ok())
}

fn of_torch(need: &Need<'_, '_>, cx: &Cx<'_, '_>, wheel: TorchWheel, cost: Cost, version: &str) -> Option<Choice> {
    let same = cost == Cost::SameVersion;
    let evidence = need.evidence();
    let name = match same {
        true => format!("the {} build of the same release", wheel.index),
        false => format!("torch {} from {}", wheel.torch, wheel.index),
    };
    let summary = format!("take {name} (torch {} {}: CUDA {})", wheel.torch, wheel.index, wheel.cuda);
    let holds = format!("torch {} {} holds machine code for {}", wheel.torch, wheel.index, list(&wheel.archs.sass));
    let url = cx.catalog.wheels().torch_index_url(&wheel.index)?;
    // They pin torch, and are published with it.
    let beside: Vec<&str> = ["torchvision", "torchaudio"]
        .into_iter()
        .filter(|n| evidence.packages.iter().any(|p| p.manager == Manager::Pip && same_component(&p.name, n)))
        .collect();
    let more: String = beside.iter().map(|n| format!(" {n}")).collect();
    let change = Change::Wheel {
        package: "torch".to_owned(),
        version: Some(wheel.torch.clone()),
        specifier: format!("=={}", wheel.torch),
        index: Some((wheel.index.clone(), url.clone())),
        built: Some(Built { sass: wheel.archs.sass.clone(), toolkit: Some(wheel.cuda), ..Built::default() }),
        cuda: Some(wheel.cuda),
    };
    let mut choice = Choice::new(StepKind::ChangeWheel, cost, need, summary, change);
    choice.at = evidence.component_named("torch").map(|i| crate::plan::state::Place::of(evidence, i));
    // With the index's own version: pip takes another build of the same release for the same.
    choice.step.command =
        Some(format!("pip install torch=={}+{}{more} --index-url {url}", wheel.torch, wheel.index));
    let mut choice = choice.because(std::iter::once(holds).chain(wheel.because.clone()));
    if !wheel.archs.measured {
        choice = choice.review("its architectures are those that the release's build script asks for: the wheel was not opened (--check-wheels looks)");
    }
    let triton = cx.catalog.wheels().torch_triton(&wheel.torch);
    let has =
        evidence.packages.iter().find(|p| same_component(&p.name, "triton")).and_then(|p| p.version.as_deref());
    if let (Some(triton), Some(has)) = (triton, has)
        && triton != has
    {
        choice = choice.review(format!("triton {triton} comes with it, whose compiler was not looked at"));
    }
    let own = evidence.cuda_of("torch").map(|c| c.major);
    let bound = bound_to_torch(need, cx, if same { own != Some(wheel.cuda.major) } else { true });
    if !bound.is_empty() {
        choice = choice.review(format!(
            "{} {} built against torch {}: take {} for the new one",
            bound.join(", "),
            if bound.len() == 1 { "is" } else { "are" },
            escape(version.as_bytes()),
            if bound.len() == 1 { "its build" } else { "their builds" }
        ));
    }
    Some(choice)
}

/// Packages whose binaries link torch's, where the change breaks them.
fn bound_to_torch(need: &Need<'_, '_>, cx: &Cx<'_, '_>, breaks: bool) -> Vec<String> {
    if !breaks {
        return Vec::new();
    }
    let evidence = need.evidence();
    let links = |f: &&crate::model::EvidenceFile| {
        let needed = f.facts.elf.iter().flat_map(|e| &e.needed);
        needed.clone().any(|n| n.starts_with("libtorch") || n.starts_with("libc10"))
    };
    let own = |c: usize| {
        let name = &evidence.components[c].name;
        ["torch", "torchvision", "torchaudio"].iter().any(|n| same_component(name, n))
            || cx.catalog.components().vendor_of_package(evidence.components[c].manager, name).is_some()
    };
    let names: BTreeSet<usize> =
        evidence.files.iter().filter(links).filter_map(|f| f.component).filter(|c| !own(*c)).collect();
    names.into_iter().map(|c| escape(evidence.components[c].name.as_bytes())).collect()
}

/// "7.5, 8.0, 9.0a".
pub fn list(archs: &[SmArch]) -> String {
    let one = |a: &SmArch| match a.capability() {
        Some(cc) => format!("{cc}{}", a.suffix()),
        None => a.to_string(),
    };
    archs.iter().map(one).collect::<Vec<_>>().join(", ")
}
