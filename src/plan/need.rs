//! What is missing: the components and problems that keep targets from being served.

use std::collections::BTreeSet;

use super::state::Place;
use crate::catalog::Catalog;
use crate::catalog::compat::Block;
use crate::catalog::verdict::Cause;
use crate::lint::{ComponentCase, ComponentCause, Problem, TargetCase, component_label};
use crate::model::{Device, Evidence, Verdict};
use crate::report::Role;

/// One thing to mend.
pub struct Need<'c, 'a> {
    pub key: Key,
    /// "torch 2.7.0+cu126"; empty where no component is to blame.
    pub label: String,
    /// One of the targets, judged.
    pub case: &'c TargetCase<'a>,
    pub what: What<'c, 'a>,
    /// Targets that miss it, by name.
    pub targets: Vec<String>,
    /// As messages name them.
    pub gpus: Vec<String>,
}

/// What tells needs apart from one state to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Code(Place),
    Problem(&'static str, Option<Place>, String),
}

pub enum What<'c, 'a> {
    /// A component lacks code that the targets can load.
    Code {
        component: &'c ComponentCase<'a>,
        missing: BTreeSet<Device>,
        blocks: BTreeSet<Block>,
    },
    Problem(&'c Problem),
}

impl<'a> Need<'_, 'a> {
    pub fn evidence(&self) -> &'a Evidence {
        self.case.evidence
    }

    pub fn place(&self) -> Option<&Place> {
        match &self.key {
            Key::Code(place) => Some(place),
            Key::Problem(_, place, _) => place.as_ref(),
        }
    }
}

/// All of them: what decides comes first, frameworks and then what is built against them.
/// `mended`: a step before this changed the framework, and NVIDIA's libraries come with that.
pub fn needs<'c, 'a>(cases: &'c [TargetCase<'a>], mended: bool, catalog: &Catalog) -> Vec<Need<'c, 'a>> {
    let mut needs: Vec<Need<'c, 'a>> = Vec::new();
    // Hosts that cannot start the image at all need another image, not other code in this one.
    for case in cases.iter().filter(|c| !c.is_foreign()) {
        // A driver that is too old for all of it is a need of its own.
        let settled = case.is_settled_by_host("compressed-code-needs-newer-driver");
        let packed = |c: &&ComponentCase<'_>| {
            settled && matches!(c.cause, ComponentCause::Code(Cause::Refused(Block::Compressed)))
        };
        let wants = |c: &&ComponentCase<'_>| c.role != Role::Idle && wants_code(c) && !packed(c);
        for component in case.components.iter().filter(wants) {
            add_code(&mut needs, case, component);
        }
    }
    let role = |n: &Need<'_, '_>| match &n.what {
        What::Code { component, .. } => component.role,
        What::Problem(_) => Role::Idle,
    };
    needs.sort_by_key(role);
    let framework = mended || needs.iter().any(|n| role(n) == Role::Core && !is_vendor(n, catalog));
    if framework {
        // NVIDIA's own libraries are closed, and come with the framework that asks for them.
        needs.retain(|n| !is_vendor(n, catalog));
    }
    for case in cases {
        for problem in case.problems.iter().filter(|p| p.verdict < Verdict::Ok) {
            let place = problem.component.map(|c| Place::of(case.evidence, c));
            let key = Key::Problem(problem.rule, place, problem.help.clone());
            match needs.iter_mut().find(|n| n.key == key) {
                Some(need) => join(need, case),
                None => needs.push(Need {
                    key,
                    label: problem
                        .component
                        .map(|c| component_label(&case.evidence.components[c]))
                        .unwrap_or_default(),
                    case,
                    what: What::Problem(problem),
                    targets: vec![case.target.name.clone()],
                    gpus: vec![case.target.label()],
                }),
            }
        }
    }
    needs
}

fn wants_code(component: &ComponentCase<'_>) -> bool {
    let wants = match &component.cause {
        ComponentCause::Code(cause) => matches!(
            cause,
            Cause::NoImage
                | Cause::OtherMakers
                | Cause::Partly { .. }
                | Cause::MostlySpecial { .. }
                | Cause::Uncertain(_)
                | Cause::Jit { .. }
                | Cause::Refused(_)
        ),
        ComponentCause::NoVariant { .. } => true,
        ComponentCause::VariantUnknown(_) => false,
    };
    wants && component.verdict != Verdict::Ok
}

fn add_code<'c, 'a>(needs: &mut Vec<Need<'c, 'a>>, case: &'c TargetCase<'a>, component: &'c ComponentCase<'a>) {
    let key = Key::Code(Place::of(case.evidence, component.index));
    let at = needs.iter().position(|n| n.key == key).unwrap_or_else(|| {
        needs.push(Need {
            key,
            label: component_label(&case.evidence.components[component.index]),
            case,
            what: What::Code { component, missing: BTreeSet::new(), blocks: BTreeSet::new() },
            targets: Vec::new(),
            gpus: Vec::new(),
        });
        needs.len() - 1
    });
    let need = &mut needs[at];
    join(need, case);
    if let What::Code { missing, blocks, .. } = &mut need.what {
        missing.insert(case.target.device);
        if let ComponentCause::Code(Cause::Refused(block) | Cause::Partly { block: Some(block), .. }) =
            &component.cause
        {
            blocks.insert(*block);
        }
    }
}

fn join(need: &mut Need<'_, '_>, case: &TargetCase<'_>) {
    if !need.targets.contains(&case.target.name) {
        need.targets.push(case.target.name.clone());
    }
    let gpu = case.target.label();
    if !need.gpus.contains(&gpu) {
        need.gpus.push(gpu);
    }
}

/// NVIDIA's own libraries.
pub fn is_vendor(need: &Need<'_, '_>, catalog: &Catalog) -> bool {
    let What::Code { component, .. } = &need.what else { return false };
    let info = &need.evidence().components[component.index];
    let rows = catalog.components();
    rows.vendor_of_package(info.manager, &info.name).is_some()
        || component.files.iter().all(|f| rows.vendor_of_path(&f.file.path).is_some())
}
