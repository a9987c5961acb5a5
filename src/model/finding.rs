//! What rules say.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Digest, ImagePath};

/// The contract's seven words, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Will not run.
    Fail,
    /// Could not be decided.
    Unknown,
    /// A runtime gate refuses it; the code would run.
    Blocked,
    /// Starts, silently without the GPU.
    Cpu,
    /// Runs after JIT compilation at every cold start.
    Slow,
    /// May fail, depends on what is used.
    Warn,
    Ok,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Unknown => "unknown",
            Self::Blocked => "blocked",
            Self::Cpu => "cpu",
            Self::Slow => "slow",
            Self::Warn => "warn",
            Self::Ok => "ok",
        }
    }

    /// The severity of a finding that carries this verdict.
    pub fn severity(self) -> Severity {
        match self {
            Self::Fail | Self::Blocked | Self::Cpu => Severity::Error,
            Self::Unknown | Self::Slow | Self::Warn => Severity::Warning,
            Self::Ok => Severity::Note,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// How much a finding matters. Ordered: `Note < Warning < Error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Note,
    Warning,
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// How sure a finding is, apart from how much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// One thing a rule has to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Kebab-case id; `imagelint explain ID` prints its page.
    pub rule: String,
    pub severity: Severity,
    pub confidence: Confidence,
    /// The word that this finding alone gives its targets.
    pub verdict: Verdict,
    /// Names of the targets concerned, sorted; empty when it concerns all.
    pub targets: Vec<String>,
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub help: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub component: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<ImagePath>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layer: Option<Digest>,
    /// Facts it rests on: "gpus.toml `NVIDIA A100`: source, status", or measurements.
    pub because: Vec<String>,
}
