//! What can be wrong besides device code: the host, the libraries, the compilers, what is installed.

use crate::model::{Confidence, ImagePath, Target, Verdict};
use crate::report::StepKind;

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
        }
    }
}
