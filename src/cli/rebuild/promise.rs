//! What a build is to do for each target, and whether it did.

use std::collections::BTreeMap;

use crate::config::Fleet;
use crate::lint::FailOn;
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
    let all = || report.findings.iter().filter(|f| fails(f.severity));
    let mut out: Vec<String> =
        all().take(NAMED).map(|f| format!("{}[{}]: {}", f.severity, f.rule, f.message)).collect();
    if let Some(more) = all().count().checked_sub(NAMED).filter(|&n| n > 0) {
        out.push(format!("and {more} findings more"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::lint::JudgeOptions;
    use crate::model::{Change, DriverVersion, Evidence};
    use crate::report::{Step, StepKind};

    /// The report of an image without anything in it, with these verdicts.
    fn report(verdicts: &[(&str, Verdict)]) -> (Report, Fleet) {
        let catalog = crate::catalog::Catalog::embedded();
        let targets = config::parse_targets(verdicts.iter().map(|(name, _)| *name), catalog).unwrap();
        let fleet = Fleet::of_targets(targets);
        let options = JudgeOptions { allow_gaps: false, today: config::Date::today(), config: false };
        let mut report = crate::lint::judge(&[Evidence::default()], &fleet, catalog, &options);
        report.findings.clear();
        for (target, (_, verdict)) in report.targets.iter_mut().flatten().zip(verdicts) {
            target.verdict = *verdict;
        }
        (report, fleet)
    }

    fn step(change: Change, target: &str) -> Step {
        let resolves = vec![target.to_owned()];
        Step { change, resolves, ..Step::advice(StepKind::Rebuild, "x".into(), "y".into()) }
    }

    #[test]
    fn a_build_promises_what_it_can_do_by_itself() {
        let (before, fleet) = report(&[("h100", Verdict::Fail), ("t4", Verdict::Fail), ("a100", Verdict::Ok)]);
        let set = || Change::SetVariable { name: "A".into(), value: "b".into() };
        let least: DriverVersion = "580.65.06".parse().unwrap();
        let hosts = Change::Driver { targets: vec!["t4".into()], least };
        let ok = |name: &str| (name.to_owned(), (Verdict::Fail, Verdict::Ok));
        let plan = Plan {
            steps: vec![step(set(), "h100"), step(hosts, "t4")],
            effect: Some(Effect { basis: Basis::Predicted, verdicts: [ok("h100"), ok("t4")].into() }),
            ..Plan::default()
        };
        let promise = Promise::planned(&before, &plan, None, &[]);
        assert_eq!(promise.after, [("h100".to_owned(), Verdict::Ok)].into(), "the T4's driver is not built");
        assert!(Promise::planned(&before, &plan, None, &[0]).after.is_empty(), "the step is not in the file");
        let held = |verdicts: &[(&str, Verdict)]| promise.held(&report(verdicts).0, &fleet, FailOn::Error).broken;
        let (ok, fail, warn) = (Verdict::Ok, Verdict::Fail, Verdict::Warn);
        assert!(held(&[("h100", ok), ("t4", fail), ("a100", ok)]).is_empty());
        assert!(held(&[("h100", warn), ("t4", ok), ("a100", ok)])[0].starts_with("h100 is warn, ok was promised"));
        assert!(held(&[("h100", ok), ("t4", ok), ("a100", warn)])[0].starts_with("a100 is warn, and was ok"));
        assert!(held(&[("h100", ok), ("t4", ok)])[0].starts_with("a100: what was built says nothing"));
    }

    #[test]
    fn what_gets_no_better_is_not_promised() {
        let at =
            |all: &[(&str, Verdict)]| all.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect::<BTreeMap<_, _>>();
        let before = at(&[("a", Verdict::Fail), ("b", Verdict::Fail), ("c", Verdict::Warn)]);
        let promise = Promise::predicted(&before, &at(&[("a", Verdict::Fail), ("b", Verdict::Warn)]));
        assert_eq!(promise.after, at(&[("b", Verdict::Warn), ("c", Verdict::Ok)]));
        assert_eq!(promise.before.len(), 3);
    }
}
