//! The plan: the cheapest steps that mend what is missing, each tried on a copy of the evidence and judged again.
//!
//! Needs are mended one after the other, frameworks first, each in the state that the steps before it leave. A step is
//! taken if the law says that it serves targets that were not served, and that no required target is worse off.
//! Everything here is predicted: only a scan of the built image is a measurement.

mod choices;
mod choose;
mod emit;
mod fresh;
mod need;
pub mod patch;
mod recode;
mod shell;
mod split;
mod state;
#[cfg(test)]
mod tests;

pub use emit::{Emit, EmitError, Emitted, Input, Written, emit, patched};

use std::collections::BTreeMap;

use self::choose::Chosen;
use self::state::{Outlook, State, outlook};
use crate::catalog::Catalog;
use crate::lint::{Subject, TargetCase};
use crate::model::{Change, DriverVersion, Manager, Verdict};
use crate::report::{Basis, Effect, Plan, Step};

/// Needs that are mended, at most: each may call for another.
const ROUNDS: usize = 24;

/// Alternatives that are kept.
const ALTERNATIVES: usize = 24;

/// Plans what would mend the judged targets.
pub fn plan(subject: &Subject<'_>, cases: &[TargetCase<'_>]) -> Plan {
    // Nothing to do is the usual answer.
    if cases.iter().all(|c| c.verdict == Verdict::Ok && c.problems.iter().all(|p| p.verdict == Verdict::Ok)) {
        return Plan::default();
    }
    let start = State::of(subject);
    let before = outlook(cases);
    let run = mend(&start, subject, &before);
    let mut plan = split::into_tags(run, &start, subject, &before);
    let failing = before.iter().filter(|(_, w)| w.required && w.verdict < Verdict::Slow).map(|(n, _)| n.clone());
    let failing: Vec<String> = failing.collect();
    if !failing.is_empty() {
        plan.alternatives.push(choices::host::give_up(failing));
    }
    plan.alternatives.sort_by_key(|s| s.cost);
    plan
}

/// What came of mending one image.
struct Mended {
    steps: Vec<Step>,
    alternatives: Vec<Step>,
    unresolved: Vec<String>,
    after: Outlook,
}

/// Mends what can be mended in one image.
fn mend(start: &State, subject: &Subject<'_>, before: &Outlook) -> Mended {
    let mut state = start.clone();
    let mut now = before.clone();
    let mut decided: Vec<need::Key> = Vec::new();
    let mut mended = false;
    let mut bettered: Vec<need::Key> = Vec::new();
    let mut out =
        Mended { steps: Vec::new(), alternatives: Vec::new(), unresolved: Vec::new(), after: now.clone() };
    for _ in 0..ROUNDS {
        let chosen = state
            .subject(subject)
            .cases(|cases| choose::next(cases, &state, subject, &now, &decided, mended, &bettered));
        let Some((key, chosen)) = chosen else { break };
        let Chosen { step, after, others, why } = chosen;
        for other in others {
            if out.alternatives.len() < ALTERNATIVES && !out.alternatives.iter().any(|a| a.summary == other.summary)
            {
                out.alternatives.push(other);
            }
        }
        for reason in why {
            if !out.unresolved.contains(&reason) {
                out.unresolved.push(reason);
            }
        }
        if let Some(step) = step {
            mended |= changes_framework(&step, subject.catalog);
            join(&mut out.steps, step);
        }
        match after {
            // What a step leaves of its need is looked at again: it bettered something, so this ends.
            Some((next, outlook)) => {
                bettered.push(key);
                (state, now) = (next, outlook);
            }
            None => decided.push(key),
        }
    }
    without_lesser_drivers(&mut out.steps);
    out.after = now;
    out
}

fn changes_framework(step: &Step, catalog: &Catalog) -> bool {
    let name = match &step.change {
        Change::Wheel { package, .. } => package,
        Change::Source { component, .. } => component,
        _ => return false,
    };
    catalog.components().framework_of_package(Manager::Pip, name).is_some()
}

/// Of two drivers that the same hosts should have the newer is enough.
fn without_lesser_drivers(steps: &mut Vec<Step>) {
    let all: Vec<(Vec<String>, DriverVersion)> = steps
        .iter()
        .filter_map(|s| match &s.change {
            Change::Driver { least, .. } => Some((s.resolves.clone(), least.clone())),
            _ => None,
        })
        .collect();
    steps.retain(|s| match &s.change {
        Change::Driver { least, .. } => {
            !s.resolves.iter().all(|t| all.iter().any(|(targets, more)| targets.contains(t) && more > least))
        }
        _ => true,
    });
}

/// Adds a step, or its targets to one that says the same.
fn join(steps: &mut Vec<Step>, step: Step) {
    match steps.iter_mut().find(|s| s.component == step.component && s.summary == step.summary) {
        Some(same) => {
            for target in step.resolves {
                if !same.resolves.contains(&target) {
                    same.resolves.push(target);
                }
            }
        }
        None => steps.push(step),
    }
}

/// Verdicts before and after, of the targets that are in both.
fn effect(before: &Outlook, after: &Outlook) -> Effect {
    let both = before.iter().filter_map(|(name, b)| Some((name.clone(), (b.verdict, after.get(name)?.verdict))));
    Effect { basis: Basis::Predicted, verdicts: both.collect::<BTreeMap<_, _>>() }
}
