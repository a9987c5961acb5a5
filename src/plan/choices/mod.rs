//! What could be done about a need, cheapest first. Whether it helps is for the law to say, on a copy.

mod amd;
pub mod host;
mod problem;
mod source;
mod wheel;

use std::collections::BTreeSet;

use super::need::{Need, What};
use super::state::Place;
use crate::catalog::Catalog;
use crate::lint::TargetCase;
use crate::model::{Capability, Change, Device, DriverVersion};
use crate::report::{Cost, Disposition, Step, StepKind};

/// One thing that could be done.
pub struct Choice {
    pub step: Step,
    /// The component that it is about.
    pub at: Option<Place>,
    /// What the programs of its targets see as their driver afterwards.
    pub driver: Option<DriverVersion>,
    /// More must be done than the step says: what comes of it is not told.
    pub open: bool,
    /// It takes an older release.
    pub older: bool,
}

/// What choices are made with.
pub struct Cx<'c, 'a> {
    pub cases: &'c [TargetCase<'a>],
    pub catalog: &'c Catalog,
}

impl Cx<'_, '_> {
    /// The GPUs of all targets that the image must serve; of all, where none must.
    fn fleet(&self) -> BTreeSet<Device> {
        let of = |required: bool| -> BTreeSet<Device> {
            let cases = self.cases.iter().filter(|c| !c.is_foreign() && (c.target.required || !required));
            cases.map(|c| c.target.device).collect()
        };
        let required = of(true);
        if required.is_empty() { of(false) } else { required }
    }

    /// The compute capabilities among them.
    fn capabilities(&self) -> BTreeSet<Capability> {
        self.fleet().iter().filter_map(|d| d.capability()).collect()
    }
}

/// All choices for a need, cheapest first; and why some that one would think of are none.
pub fn choices(need: &Need<'_, '_>, cx: &Cx<'_, '_>) -> (Vec<Choice>, Vec<String>) {
    let mut found = Vec::new();
    let mut why = Vec::new();
    match &need.what {
        What::Code { component, missing, blocks } => {
            let nvidia: BTreeSet<Capability> = missing.iter().filter_map(|d| d.capability()).collect();
            if !nvidia.is_empty() {
                wheel::choices(need, &nvidia, cx, &mut found, &mut why);
                source::choices(need, component, &nvidia, blocks, cx, &mut found, &mut why);
            }
            amd::choices(need, component, missing, cx, &mut found);
            host::for_blocks(need, blocks, cx, &mut found);
        }
        What::Problem(problem) => problem::choices(need, problem, cx, &mut found),
    }
    // Of one price that first which rests on what was seen.
    found.sort_by_key(|c| (c.step.cost, c.step.review.is_some()));
    (found, why)
}

impl Choice {
    fn new(kind: StepKind, cost: Cost, need: &Need<'_, '_>, summary: String, change: Change) -> Self {
        let step = Step {
            cost,
            resolves: need.targets.clone(),
            disposition: Disposition::Safe,
            change,
            ..Step::advice(kind, need.label.clone(), summary)
        };
        Self { step, at: need.place().cloned(), driver: None, open: false, older: false }
    }

    /// A person should look, for this reason.
    fn review(mut self, why: impl Into<String>) -> Self {
        let why = why.into();
        self.step.disposition = Disposition::Review;
        self.step.review = Some(match self.step.review.take() {
            Some(before) => format!("{before}; {why}"),
            None => why,
        });
        self
    }

    fn because(mut self, rows: impl IntoIterator<Item = String>) -> Self {
        for row in rows.into_iter().filter(|r| !r.is_empty()) {
            if !self.step.because.contains(&row) {
                self.step.because.push(row);
            }
        }
        self
    }
}

/// "RTX 5090 (12.0), Tesla T4 (7.5)".
fn gpus(need: &Need<'_, '_>) -> String {
    need.gpus.join(", ")
}
