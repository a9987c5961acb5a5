//! For AMD's GPUs: a build from source with the project's own knob for them.

use std::collections::BTreeSet;

use super::{Choice, Cx, gpus};
use crate::catalog::knobs::{Knob, KnobKind};
use crate::lint::ComponentCase;
use crate::model::{Built, Change, Device, GfxProcessor, KnobForm, Maker, escape};
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
    let wanted: BTreeSet<GfxProcessor> = cx.fleet().iter().filter_map(|d| d.gfx()).map(|g| g.processor).collect();
    let wanted: Vec<GfxProcessor> = wanted.into_iter().collect();
    let info = &need.evidence().components[component.index];
    let paths: Vec<_> = component.files.iter().map(|f| &f.file.path).collect();
    let knob = cx.catalog.knobs().knob_of_maker(&info.name, &paths, Maker::Amd, cx.catalog.arch_variables());
    let (form, variable) = match knob {
        Some(knob) => (form(knob), knob.first_variable()),
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

fn form(knob: &Knob) -> KnobForm {
    match knob.kind {
        KnobKind::Cmake => KnobForm::Cmake,
        KnobKind::Arg => KnobForm::Arg,
        KnobKind::Make => KnobForm::Make,
        KnobKind::Flag => KnobForm::Flag,
        KnobKind::Env | KnobKind::Auto | KnobKind::Jit => KnobForm::Env,
    }
}
