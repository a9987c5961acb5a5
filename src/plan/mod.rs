//! The rebuild plan, first cut: for each component that misses a target, the wheel or the list of architectures
//! that would serve the fleet.

mod emit;
mod fresh;
pub mod patch;
mod shell;

pub use emit::{Emit, EmitError, Emitted, Input, Written, emit};

use std::collections::BTreeSet;

use crate::catalog::Catalog;
use crate::catalog::arch_text as archs;
use crate::catalog::compat::{Block, sass_serves};
use crate::catalog::knobs::Knob;
use crate::catalog::verdict::Cause;
use crate::lint::{ComponentCase, ComponentCause, TargetCase, component_label};
use crate::model::{Capability, CudaVersion, Feature, SmArch, Verdict};
use crate::report::{Plan, Role, Step, StepKind};

/// What a component needs, over all targets.
struct Need<'c, 'a> {
    label: String,
    case: &'c TargetCase<'a>,
    component: &'c ComponentCase<'a>,
    /// Targets that miss it, by name.
    targets: Vec<String>,
    gpus: Vec<String>,
    missing: BTreeSet<Capability>,
}

/// Plans what would mend the judged targets.
pub fn plan(cases: &[TargetCase<'_>], catalog: &Catalog) -> Plan {
    let mut plan = Plan::default();
    // Hosts that cannot start the image at all need another image, not other code in this one.
    let cases: Vec<&TargetCase<'_>> = cases.iter().collect();
    let (foreign, cases): (Vec<_>, Vec<_>) = cases.into_iter().partition(|c| c.is_foreign());
    let mut needs = code_needs(&cases);
    // What decides comes first: frameworks, then what is built against them.
    needs.sort_by_key(|n| n.component.role);
    let framework = needs.iter().any(|n| n.component.role == Role::Core);
    for need in needs {
        if is_vendor(&need, catalog) && framework {
            continue;
        }
        code_step(&need, &cases, catalog, &mut plan);
    }
    for case in foreign.iter().chain(&cases) {
        for component in case.components.iter().filter(|c| c.role != Role::Idle && !case.is_foreign()) {
            driver_step(case, component, catalog, &mut plan);
        }
        for problem in &case.problems {
            if problem.verdict == Verdict::Ok {
                continue;
            }
            let component = problem.component.map(|c| component_label(&case.evidence.components[c]));
            let summary = match (&component, problem.step) {
                (Some(label), _) => format!("{label}: {}", problem.help),
                (None, StepKind::Libraries) => problem.help.clone(),
                (None, _) => format!("{}: {}", case.target.label(), problem.help),
            };
            let because = problem.because.join("; ");
            push(&mut plan, problem.step, component.unwrap_or_default(), summary, &case.target.name, &because);
        }
    }
    plan
}

/// NVIDIA's own libraries are closed, and come with the framework that asks for them.
fn is_vendor(need: &Need<'_, '_>, catalog: &Catalog) -> bool {
    let info = &need.case.evidence.components[need.component.index];
    let rows = catalog.components();
    rows.vendor_of_package(info.manager, &info.name).is_some()
        || need.component.files.iter().all(|f| rows.vendor_of_path(&f.file.path).is_some())
}

/// Components that lack machine code for some target.
fn code_needs<'c, 'a>(cases: &[&'c TargetCase<'a>]) -> Vec<Need<'c, 'a>> {
    let mut needs: Vec<Need<'c, 'a>> = Vec::new();
    for case in cases {
        for component in case.components.iter().filter(|c| c.role != Role::Idle) {
            let wants = match &component.cause {
                ComponentCause::Code(cause) => matches!(
                    cause,
                    Cause::NoImage
                        | Cause::Partly { .. }
                        | Cause::MostlySpecial { .. }
                        | Cause::Uncertain(_)
                        | Cause::Jit { .. }
                        | Cause::Refused(Block::PtxTooNew(_) | Block::JitDisabled)
                ),
                ComponentCause::NoVariant { .. } => true,
                ComponentCause::VariantUnknown(_) => false,
            };
            if !wants || component.verdict == Verdict::Ok {
                continue;
            }
            let info = &case.evidence.components[component.index];
            let label = component_label(info);
            let root = &info.root;
            let same =
                |n: &Need<'_, '_>| n.label == label && n.case.evidence.components[n.component.index].root == *root;
            let at = needs.iter().position(same).unwrap_or(needs.len());
            if at == needs.len() {
                needs.push(Need {
                    label,
                    case,
                    component,
                    targets: Vec::new(),
                    gpus: Vec::new(),
                    missing: BTreeSet::new(),
                });
            }
            let need = &mut needs[at];
            need.targets.push(case.target.name.clone());
            let gpu = case.target.label();
            if !need.gpus.contains(&gpu) {
                need.gpus.push(gpu);
            }
            need.missing.insert(case.target.capability);
        }
    }
    needs
}

fn code_step(need: &Need<'_, '_>, cases: &[&TargetCase<'_>], catalog: &Catalog, plan: &mut Plan) {
    let info = &need.case.evidence.components[need.component.index];
    let fleet: BTreeSet<Capability> = cases.iter().map(|c| c.target.capability).collect();
    if crate::inventory::same_component(&info.name, "torch")
        && let Some(version) = &info.version
        && torch_wheel(need, version, &fleet, cases, catalog, plan)
    {
        return;
    }
    let paths: Vec<_> = need.component.files.iter().map(|f| &f.file.path).collect();
    if is_vendor(need, catalog) {
        plan.steps.push(Step {
            kind: StepKind::ChangeWheel,
            component: need.label.clone(),
            summary: format!("take a version of {} that supports {}", need.label, need.gpus.join(", ")),
            resolves: need.targets.clone(),
            env: Vec::new(),
            command: None,
            because: vec!["it is distributed in binary form only".to_owned()],
            ..Step::advice(StepKind::Rebuild, String::new(), String::new())
        });
        return;
    }
    let knob = catalog.knobs().knob_for(&info.name, paths.iter().copied()).filter(|k| k.can_be_set());
    let wanted = wanted_archs(need, &fleet);
    let toolkit = toolkit_of(need);
    let limits = toolkit_note(&wanted, toolkit, catalog);
    match (knob, limits) {
        (_, Err(why)) => plan.unresolved.push(format!("{}: {why}", need.label)),
        (Some(knob), Ok(note)) => {
            let (archs, left) = knob.builds(&wanted, &sass_serves);
            if !archs.is_empty() && left.len() < need.missing.len() {
                plan.steps.push(rebuild(need, knob, &archs, note));
            }
            for arch in left {
                plan.unresolved.push(format!("{}: {} does not build it for {arch}", need.label, knob.project));
            }
        }
        (None, Ok(note)) => {
            let list = wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let note = note.map_or(String::new(), |n| format!("; {n}"));
            plan.steps.push(Step {
                kind: StepKind::ChangeWheel,
                component: need.label.clone(),
                summary: format!(
                    "take a build of {} that has {list} (for {}), or build it for them{note}",
                    need.label,
                    need.gpus.join(", ")
                ),
                resolves: need.targets.clone(),
                env: vec![
                    ("TORCH_CUDA_ARCH_LIST".to_owned(), archs::torch(&wanted)),
                    ("CMAKE_CUDA_ARCHITECTURES".to_owned(), archs::cmake(&wanted)),
                ],
                command: None,
                because: vec!["no row of build_knobs.toml names this component".to_owned()],
                ..Step::advice(StepKind::Rebuild, String::new(), String::new())
            });
        }
    }
}

/// The fleet's architectures; a suffix is kept where the present build has code of that capability only with it.
fn wanted_archs(need: &Need<'_, '_>, fleet: &BTreeSet<Capability>) -> Vec<SmArch> {
    let present: BTreeSet<SmArch> = need
        .component
        .files
        .iter()
        .flat_map(|f| &f.file.facts.modules)
        .flat_map(|m| m.items.iter().map(|i| i.item.arch))
        .collect();
    fleet
        .iter()
        .map(|cc| {
            let plain = SmArch::from(*cc);
            let own = present.iter().filter(|a| a.capability() == Some(*cc));
            match own.clone().any(|a| a.feature == Feature::Plain) {
                true => plain,
                false => own.max_by_key(|a| a.feature).map_or(plain, |a| SmArch::new(plain.number, a.feature)),
            }
        })
        .collect()
}

/// The toolkit that the image's framework was built with, which extensions must be built with too.
fn toolkit_of(need: &Need<'_, '_>) -> Option<CudaVersion> {
    need.case.evidence.cuda_of("torch")
}

/// Whether one toolkit compiles all of them; what to say if it is not the image's own. `Err`: none does.
fn toolkit_note(wanted: &[SmArch], own: Option<CudaVersion>, catalog: &Catalog) -> Result<Option<String>, String> {
    let toolkits = catalog.toolkits();
    let mut first = CudaVersion::new(0, 0);
    let mut last = CudaVersion::new(u16::MAX, 0);
    let mut newest: Option<SmArch> = None;
    let mut oldest: Option<SmArch> = None;
    for arch in wanted {
        let Some((from, to)) = toolkits.toolkits_that_compile(*arch) else { continue };
        if from > first {
            (first, newest) = (from, Some(*arch));
        }
        if to < last {
            (last, oldest) = (to, Some(*arch));
        }
    }
    if first > last
        && let (Some(newest), Some(oldest)) = (newest, oldest)
    {
        return Err(format!(
            "no CUDA release compiles both {newest} (from {first} on) and {oldest} (up to {last}): two builds, two tags"
        ));
    }
    let too_old = own.filter(|own| *own < first);
    let too_new = own.filter(|own| *own > last);
    Ok(match (too_old, too_new, newest) {
        (Some(own), _, Some(newest)) => Some(format!("{newest} needs CUDA {first} or newer, the image has {own}")),
        (_, Some(own), _) => {
            oldest.map(|oldest| format!("{oldest} was dropped after CUDA {last}, the image has {own}"))
        }
        _ => None,
    })
}

fn rebuild(need: &Need<'_, '_>, knob: &Knob, wanted: &[SmArch], note: Option<String>) -> Step {
    let value = archs::like(&knob.variable, &knob.example, wanted);
    let mut summary =
        format!("build {} with {}=\"{value}\" (for {})", need.label, knob.variable, need.gpus.join(", "));
    if let Some(note) = &note {
        summary.push_str(&format!("; {note}"));
    }
    Step {
        kind: StepKind::Rebuild,
        component: need.label.clone(),
        summary,
        resolves: need.targets.clone(),
        env: vec![(knob.variable.clone(), value)],
        command: (!knob.install.is_empty()).then(|| knob.install.clone()),
        because: vec![knob.because()],
        ..Step::advice(StepKind::Rebuild, String::new(), String::new())
    }
}

/// Another official wheel of torch. False where no row knows one.
fn torch_wheel(
    need: &Need<'_, '_>,
    version: &str,
    fleet: &BTreeSet<Capability>,
    cases: &[&TargetCase<'_>],
    catalog: &Catalog,
    plan: &mut Plan,
) -> bool {
    let machine = need.case.evidence.image.platform.as_ref().map_or("amd64", |p| p.architecture.as_str());
    let own_index = version.split_once('+').map(|(_, tag)| tag.to_owned());
    let carries = |cuda: CudaVersion, names: &[String]| {
        let floor = catalog.toolkits().driver_floor(cuda.major);
        let mut drivers =
            cases.iter().filter(|c| names.contains(&c.target.name)).filter_map(|c| c.target.driver.as_ref());
        floor.is_none_or(|f| drivers.all(|d| f.is_met_by(&d.lowest)))
    };
    let everyone: Vec<String> = cases.iter().map(|c| c.target.name.clone()).collect();
    let missing: Vec<Capability> = need.missing.iter().copied().collect();
    let all: Vec<Capability> = fleet.iter().copied().collect();
    for (capabilities, names, whole) in [(&all, &everyone, true), (&missing, &need.targets, false)] {
        let found = catalog.wheels().torch_variants_covering(version, capabilities, machine, &sass_serves);
        let fits = |w: &&crate::catalog::wheels::TorchWheel| {
            carries(w.cuda, names)
                && (Some(&w.index) != own_index.as_ref() || w.torch != version.split('+').next().unwrap_or(version))
        };
        let wheel = found
            .same
            .iter()
            .find(fits)
            .map(|w| (w, true))
            .or_else(|| found.later.iter().find(fits).map(|w| (w, false)));
        let Some((wheel, same)) = wheel else { continue };
        let name = if same {
            format!("the {} build of the same release", wheel.index)
        } else {
            format!("torch {} from {}", wheel.torch, wheel.index)
        };
        let scope = match (whole, same) {
            (true, true) => String::new(),
            (true, false) => {
                format!(", since no build of {} covers the fleet", version.split('+').next().unwrap_or(version))
            }
            (false, _) => format!(" as a second tag for {}", need.gpus.join(", ")),
        };
        plan.steps.push(Step {
            kind: StepKind::ChangeWheel,
            component: need.label.clone(),
            summary: format!("take {name}{scope} (torch {} {}: CUDA {})", wheel.torch, wheel.index, wheel.cuda),
            resolves: need.targets.clone(),
            env: Vec::new(),
            command: Some(format!(
                "pip install torch=={} --index-url https://download.pytorch.org/whl/{}",
                wheel.torch, wheel.index
            )),
            because: wheel.because.clone(),
            ..Step::advice(StepKind::Rebuild, String::new(), String::new())
        });
        return true;
    }
    false
}

fn driver_step(case: &TargetCase<'_>, component: &ComponentCase<'_>, catalog: &Catalog, plan: &mut Plan) {
    let block = match &component.cause {
        ComponentCause::Code(Cause::Refused(b) | Cause::Partly { block: Some(b), .. }) => *b,
        _ => return,
    };
    let label = component_label(&case.evidence.components[component.index]);
    let gpu = case.target.label();
    let (summary, because) = match block {
        Block::PtxTooNew(isa) => {
            let Some(branch) = catalog.drivers().min_branch_for_ptx(isa) else { return };
            (
                format!("or use driver R{branch} or newer on {gpu}, the first that compiles PTX {isa}"),
                format!("drivers.toml R{branch}, toolkits.toml PTX {isa}"),
            )
        }
        Block::Compressed if case.is_settled_by_host("compressed-code-needs-newer-driver") => return,
        Block::Compressed => (
            format!("use driver 550.54.14 or newer on {gpu}, or build without zstd (nvcc --compress-mode=speed)"),
            "NVCC manual, --compress-mode: needs a driver of CUDA 12.4 or newer".to_owned(),
        ),
        Block::JitDisabled => (
            "remove CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT from the image's environment".to_owned(),
            "CUDA Programming Guide, environment variables".to_owned(),
        ),
    };
    push(plan, StepKind::Driver, label, summary, &case.target.name, &because);
}

/// Adds a step, or a target to an equal one.
fn push(plan: &mut Plan, kind: StepKind, component: String, summary: String, target: &str, because: &str) {
    if let Some(step) = plan.steps.iter_mut().find(|s| s.component == component && s.summary == summary) {
        if !step.resolves.iter().any(|t| t == target) {
            step.resolves.push(target.to_owned());
        }
        return;
    }
    plan.steps.push(Step {
        kind,
        component,
        summary,
        resolves: vec![target.to_owned()],
        env: Vec::new(),
        command: None,
        because: vec![because.to_owned()],
        ..Step::advice(StepKind::Rebuild, String::new(), String::new())
    });
}
