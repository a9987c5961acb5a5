//! For AMD's GPUs: PyTorch's wheels for ROCm, and a build from source with the project's own knob.

use std::collections::BTreeSet;

use super::{Choice, Cx, gpus};
use crate::inventory::same_component;
use crate::lint::ComponentCase;
use crate::model::{Built, Change, Device, GfxProcessor, KnobForm, Maker, Manager, escape, first_two};
use crate::plan::need::Need;
use crate::report::{Cost, StepKind};

/// What the build of an extension or of a CMake project of HIP reads where no row says otherwise.
const USUAL: &str = "PYTORCH_ROCM_ARCH";
const USUAL_OF_CMAKE: &str = "CMAKE_HIP_ARCHITECTURES";

pub fn choices(
    need: &Need<'_, '_>,
    component: &ComponentCase<'_>,
    missing: &BTreeSet<Device>,
    cx: &Cx<'_, '_>,
    found: &mut Vec<Choice>,
) {
    if !missing.iter().any(|d| d.maker() == Maker::Amd) {
        return;
    }
    torch(need, missing, cx, found);
    let wanted: BTreeSet<GfxProcessor> = cx.fleet().iter().filter_map(|d| d.gfx()).map(|g| g.processor).collect();
    let wanted: Vec<GfxProcessor> = wanted.into_iter().collect();
    let info = &need.evidence().components[component.index];
    let paths: Vec<_> = component.files.iter().map(|f| &f.file.path).collect();
    let knob = cx.catalog.knobs().knob_of_maker(&info.name, &paths, Maker::Amd, cx.catalog.arch_variables());
    let (form, variable) = match knob {
        Some(knob) => (knob.kind.form().unwrap_or(KnobForm::Env), knob.first_variable()),
        None => (KnobForm::Env, USUAL),
    };
    let list: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    let separator = cx.catalog.arch_variables().variable(variable).and_then(|v| v.separators.first());
    let value = list.join(separator.map_or(";", String::as_str));
    let name = escape(info.name.as_bytes());
    let change = Change::Source {
        component: if knob.is_some() { info.name.clone() } else { name.clone() },
        project: knob.map(|k| k.project.clone()),
        form,
        setting: (variable.to_owned(), value.clone()),
        built: Built { gfx: wanted, ..Built::default() },
        install: String::new(),
    };
    let summary = format!("build {} for AMD with {variable}=\"{value}\" (for {})", need.label, gpus(need));
    let mut choice = Choice::new(StepKind::Rebuild, Cost::SourceBuild, need, summary, change);
    choice.step.env = vec![(variable.to_owned(), value.clone())];
    let choice = match knob {
        Some(knob) => {
            choice.step.command = (!knob.install.is_empty()).then(|| knob.install.clone());
            let choice = choice.because([knob.because()]);
            if knob.is_sure() { choice } else { choice.review("the knob's row rests on memory") }
        }
        None => {
            choice.step.env.push((USUAL_OF_CMAKE.to_owned(), value));
            choice.review("no row of build_knobs.toml says which setting its build for AMD reads")
        }
    };
    found.push(choice);
}

/// PyTorch's own builds for ROCm: of the same release, else of the first later one that has the code.
fn torch(need: &Need<'_, '_>, missing: &BTreeSet<Device>, cx: &Cx<'_, '_>, found: &mut Vec<Choice>) {
    let evidence = need.evidence();
    let Some(component) = need.place().and_then(|p| p.index(evidence)).map(|i| &evidence.components[i]) else {
        return;
    };
    let version = component.version.as_deref().filter(|_| component.manager == Manager::Pip);
    let Some(version) = version.filter(|_| same_component(&component.name, "torch")) else { return };
    let wanted: Vec<GfxProcessor> = missing.iter().filter_map(|d| d.gfx()).map(|g| g.processor).collect();
    let bare = version.split('+').next().unwrap_or(version);
    let release = first_two(bare);
    let number = |torch: &str| torch.split('.').filter_map(|p| p.parse().ok()).collect::<Vec<u32>>();
    let own = version.split_once('+').map(|(_, tag)| tag);
    let rows = cx.catalog.rocm().torches_for(&wanted);
    let fit =
        rows.iter().find(|(torch, index, ..)| number(torch) >= number(release) && own != Some(index.as_str()));
    let Some((torch, index, build, because)) = fit else { return };
    let Some(url) = cx.catalog.wheels().torch_index_url(index) else { return };
    let same = *torch == release;
    let (cost, specifier) = match same {
        true => (Cost::SameVersion, format!("=={bare}")),
        false => (Cost::OtherVersion, format!("=={torch}.*")),
    };
    let list: Vec<String> = build.arch.iter().map(ToString::to_string).collect();
    let summary = match same {
        true => format!("take the {index} build of the same release (torch {bare} {index})"),
        false => format!("take torch {torch} from {index}"),
    };
    let change = Change::Wheel {
        package: "torch".to_owned(),
        version: same.then(|| bare.to_owned()),
        specifier: specifier.clone(),
        index: Some((index.clone(), url.clone())),
        built: Some(Built { gfx: build.arch.clone(), ..Built::default() }),
        cuda: None,
    };
    let mut choice = Choice::new(StepKind::ChangeWheel, cost, need, summary, change);
    choice.step.command = Some(format!("pip install \"torch{specifier}\" --index-url {url}"));
    let holds = format!("{index} is built for {}", list.join(" "));
    let choice = choice.because([holds, build.because(), because.clone()]);
    found.push(choice.review(
        "its architectures are those that the release's build script asks for, and its rocBLAS may have data for fewer: \
         the wheel was not opened",
    ));
}
