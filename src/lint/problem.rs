//! What can be wrong besides device code: the host, the libraries, the compilers, what is installed.

use crate::model::{Change, Confidence, CudaVersion, DriverVersion, ImagePath, Maker, Target, Verdict};
use crate::report::{Cost, StepKind};

/// Something wrong with an image, or with an image on a target, that no component's code decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub rule: &'static str,
    /// What it makes of the image; `Ok` is a note.
    pub verdict: Verdict,
    pub confidence: Confidence,
    pub message: String,
    pub help: String,
    /// What kind of step the help is.
    pub step: StepKind,
    pub because: Vec<String>,
    pub path: Option<ImagePath>,
    /// Index into the evidence's components, where it is about one.
    pub component: Option<usize>,
    /// Whose GPUs it is about; `None`: all.
    pub maker: Option<Maker>,
    /// What would mend it, as data that the planner can try.
    pub remedies: Vec<Remedy>,
    /// It is about the driver: the CUDA that is wanted, and the lowest driver that carries it.
    pub wants_driver: Option<(CudaVersion, DriverVersion)>,
}

/// Something that would mend a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    pub kind: StepKind,
    pub cost: Cost,
    pub summary: String,
    pub change: Change,
    pub command: Option<String>,
    pub because: Vec<String>,
    /// Why a person should look.
    pub review: Option<String>,
}

impl Remedy {
    pub fn new(kind: StepKind, cost: Cost, summary: impl Into<String>, change: Change) -> Self {
        Self { kind, cost, summary: summary.into(), change, command: None, because: Vec::new(), review: None }
    }
}

impl Problem {
    /// A problem of the image as it is on one target: what a stale cache hides stays hidden where no runtime runs
    /// ldconfig.
    pub fn on(&self, target: &Target) -> Self {
        let mut here = self.clone();
        if self.rule == "ld-cache-stale" && self.verdict == Verdict::Warn && !target.runtime.runs_ldconfig() {
            here.verdict = Verdict::Fail;
        }
        here
    }

    pub fn new(rule: &'static str, verdict: Verdict, message: String, help: impl Into<String>) -> Self {
        Self {
            rule,
            verdict,
            confidence: Confidence::High,
            message,
            help: help.into(),
            step: StepKind::Libraries,
            because: Vec::new(),
            path: None,
            component: None,
            maker: None,
            remedies: Vec::new(),
            wants_driver: None,
        }
    }
}
