//! Where no single image serves the fleet: the fewest that do.

use super::state::{Outlook, State};
use super::{Mended, effect, mend};
use crate::lint::Subject;
use crate::model::{Change, Verdict};
use crate::report::{Basis, Effect, Plan, Step, Tag};

/// Images that one plan asks for, at most.
const TAGS: usize = 6;

/// The plan of one image, or of several where targets are left that another image would serve.
pub fn into_tags(first: Mended, start: &State, subject: &Subject<'_>, before: &Outlook) -> Plan {
    let mut runs = vec![first];
    let mut served = served_by(&runs[0].after);
    while runs.len() < TAGS {
        let left: Vec<String> = before.keys().filter(|n| !served.contains(n)).cloned().collect();
        // One image for a part of the fleet helps only if it is another than one for all.
        if left.is_empty() || (runs.len() == 1 && left.len() == before.len()) {
            break;
        }
        let mut part = start.clone();
        part.targets.retain(|t| left.contains(&t.name));
        let was: Outlook =
            before.iter().filter(|(n, _)| left.contains(n)).map(|(n, w)| (n.clone(), w.clone())).collect();
        let run = mend(&part, subject, &was);
        let more: Vec<String> = served_by(&run.after);
        let of_the_image = run.steps.iter().any(|s| s.change.is_of_the_image());
        if more.is_empty() || !of_the_image {
            break;
        }
        served.extend(more);
        runs.push(run);
    }
    if runs.len() == 1 {
        let Some(only) = runs.pop() else { return Plan::default() };
        let effect = Some(effect(before, &only.after));
        return Plan {
            steps: only.steps,
            alternatives: only.alternatives,
            tags: Vec::new(),
            effect,
            unresolved: only.unresolved,
            patch: None,
        };
    }
    of_several(runs, before)
}

fn served_by(after: &Outlook) -> Vec<String> {
    after.iter().filter(|(_, w)| w.verdict >= Verdict::Slow).map(|(n, _)| n.clone()).collect()
}

fn of_several(runs: Vec<Mended>, before: &Outlook) -> Plan {
    let mut plan = Plan::default();
    let mut verdicts = std::collections::BTreeMap::new();
    let mut taken: Vec<String> = Vec::new();
    for run in runs {
        let name = unique(name_of(&run.steps), &plan.tags);
        let targets: Vec<String> = served_by(&run.after).into_iter().filter(|t| !taken.contains(t)).collect();
        for (target, word) in &run.after {
            let mine = targets.contains(target) || !taken.contains(target);
            if let (true, Some(was)) = (mine, before.get(target)) {
                verdicts.insert(target.clone(), (was.verdict, word.verdict));
            }
        }
        taken.extend(targets.iter().cloned());
        for mut step in run.steps {
            step.resolves.retain(|t| targets.contains(t) || !step.change.is_of_the_image());
            if step.resolves.is_empty() {
                continue;
            }
            step.tag = Some(name.clone());
            plan.steps.push(step);
        }
        for other in run.alternatives {
            if !plan.alternatives.iter().any(|a| a.summary == other.summary) {
                plan.alternatives.push(other);
            }
        }
        let why = run.unresolved.first().cloned().unwrap_or_default();
        for reason in run.unresolved {
            if !plan.unresolved.contains(&reason) {
                plan.unresolved.push(reason);
            }
        }
        plan.tags.push(Tag { name, targets, why });
    }
    plan.alternatives.sort_by_key(|s| s.cost);
    plan.effect = Some(Effect { basis: Basis::Predicted, verdicts });
    plan
}

/// What tells an image from its siblings: the index of its wheels, or its architectures.
fn name_of(steps: &[Step]) -> String {
    let index = steps.iter().find_map(|s| match &s.change {
        Change::Wheel { index: Some((name, _)), .. } => Some(name.clone()),
        _ => None,
    });
    let built = || {
        steps.iter().find_map(|s| match &s.change {
            Change::Source { built, .. } => {
                let sass = built.sass.iter().map(ToString::to_string);
                Some(sass.chain(built.gfx.iter().map(ToString::to_string)).collect::<Vec<_>>())
            }
            _ => None,
        })
    };
    let archs = || built().map(|archs| archs.join("-").replace("sm_", "sm"));
    index.or_else(archs).unwrap_or_else(|| "as-it-is".to_owned())
}

fn unique(name: String, tags: &[Tag]) -> String {
    let taken = |n: &str| tags.iter().any(|t| t.name == n);
    if !taken(&name) {
        return name;
    }
    let mut number = 2;
    while taken(&format!("{name}-{number}")) {
        number += 1;
    }
    format!("{name}-{number}")
}
