//! What a build is to do for each target, and whether it did.

use std::collections::BTreeMap;

use crate::config::Fleet;
use crate::lint::{self, FailOn};
use crate::model::{Severity, Verdict};
use crate::report::rebuild::{Known, TargetChange};
use crate::report::{Basis, Effect, Plan, Report};

/// Findings that are named; of more their number.
const NAMED: usize = 10;

/// By target.
#[derive(Debug, Clone, Default)]
pub struct Promise {
    before: BTreeMap<String, Known>,
    after: BTreeMap<String, Verdict>,
}

/// A build held against its promise.
#[derive(Debug)]
pub struct Outcome {
    pub targets: Vec<TargetChange>,
    pub effect: Effect,
    /// Why it was not kept; empty where it was.
    pub broken: Vec<String>,
}

impl Promise {
    /// What a Dockerfile lets expect, before it is changed and after. What does not get better is not promised.
    pub fn predicted(before: &BTreeMap<String, Verdict>, after: &BTreeMap<String, Verdict>) -> Self {
        let known = |v: &Verdict| Known { verdict: *v, basis: Basis::Predicted };
        let after = |name: &String| after.get(name).copied().unwrap_or(Verdict::Ok);
        let better = before.iter().filter(|(name, was)| after(name) > **was);
        Self {
            before: before.iter().map(|(name, v)| (name.clone(), known(v))).collect(),
            after: better.map(|(name, _)| (name.clone(), after(name))).collect(),
        }
    }

    /// What a scan has measured, and what its plan says of the targets that the build is to serve: not of those for which
    /// hosts have to change too, or for which a step is left out of the Dockerfile. `tag`: of several images, the one that
    /// is built.
    pub fn planned(report: &Report, plan: &Plan, tag: Option<&str>, left: &[usize]) -> Self {
        let measured = |verdict| Known { verdict, basis: Basis::Measured };
        let before = report.targets.iter().flatten().map(|t| (t.name.clone(), measured(t.verdict))).collect();
        let ours = || plan.steps.iter().enumerate().filter(|(_, s)| s.tag.is_none() || s.tag.as_deref() == tag);
        let lacks = |name: &String| {
            ours().any(|(at, s)| s.resolves.contains(name) && (!s.change.is_of_the_image() || left.contains(&at)))
        };
        let effect = plan.effect.iter().flat_map(|e| &e.verdicts);
        let after = effect.filter(|(name, _)| !lacks(name)).map(|(name, (_, after))| (name.clone(), *after));
        Self { before, after: after.collect() }
    }

    /// Promises too what a change of the Dockerfile is expected to mend.
    pub fn and(mut self, other: Self) -> Self {
        for (name, verdict) in other.after {
            self.after.entry(name).or_insert(verdict);
        }
        self
    }

    /// Holds the report of what was built, judged for `fleet`, against it.
    pub fn held(&self, report: &Report, fleet: &Fleet, fail_on: FailOn) -> Outcome {
        let mut outcome = Outcome {
            targets: Vec::new(),
            effect: Effect { basis: Basis::Measured, verdicts: BTreeMap::new() },
            broken: Vec::new(),
        };
        for target in report.targets.iter().flatten() {
            let before = self.before.get(&target.name).copied();
            let promised = self.after.get(&target.name).copied();
            if let Some(known) = before {
                outcome.effect.verdicts.insert(target.name.clone(), (known.verdict, target.verdict));
            }
            let (name, after) = (&target.name, target.verdict);
            let was = before.filter(|known| known.basis == Basis::Measured).map(|known| known.verdict);
            match (promised, was) {
                (Some(promised), _) if target.required && after < promised => {
                    outcome.broken.push(format!("{name} is {after}, {promised} was promised: {}", target.why));
                }
                (_, Some(was)) if target.required && after < was => {
                    outcome.broken.push(format!("{name} is {after}, and was {was}: {}", target.why));
                }
                _ => {}
            }
            outcome.targets.push(TargetChange {
                name: name.clone(),
                required: target.required,
                before,
                promised,
                after,
                why: target.why.clone(),
            });
        }
        // A target that no platform of the image is for has no verdict; it is not served either.
        for target in fleet.targets.iter().filter(|t| t.required) {
            if !outcome.targets.iter().any(|t| t.name == target.name) {
                outcome.broken.push(format!("{}: what was built says nothing of it", target.name));
            }
        }
        outcome.broken.extend(standing(report, fail_on));
        outcome
    }
}

/// Findings that had to be gone.
fn standing(report: &Report, fail_on: FailOn) -> Vec<String> {
    let fails = |severity: Severity| match fail_on {
        FailOn::Never => false,
        FailOn::Error => severity >= Severity::Error,
        FailOn::Warning => severity >= Severity::Warning,
        FailOn::Note => severity >= Severity::Note,
    };
    debug_assert_eq!(
        lint::exit_code_of(&report.findings, fail_on) == 1,
        report.findings.iter().any(|f| fails(f.severity))
    );
    let all = || report.findings.iter().filter(|f| fails(f.severity));
    let mut out: Vec<String> =
        all().take(NAMED).map(|f| format!("{}[{}]: {}", f.severity, f.rule, f.message)).collect();
    if let Some(more) = all().count().checked_sub(NAMED).filter(|&n| n > 0) {
        out.push(format!("and {more} findings more"));
    }
    out
}
