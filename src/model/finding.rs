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
    /// All of them, worst first.
    pub const ALL: [Self; 7] =
        [Self::Fail, Self::Unknown, Self::Blocked, Self::Cpu, Self::Slow, Self::Warn, Self::Ok];

    /// The one of that word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }

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
    /// The words of a Dockerfile that it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dockerfile: Option<FilePlace>,
    /// A few words that stand at the caret under these.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub label: String,
    /// Facts it rests on: "gpus.toml `NVIDIA A100`: source, status", or measurements.
    pub because: Vec<String>,
    /// Other places that belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub related: Vec<Related>,
    /// Edits that mend it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fix: Option<FixReport>,
    /// Of a finding that is waived: who accepted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub accepted: Option<Accepted>,
    /// Stays the same when lines move: of rule and instruction, and a number where several are alike.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fingerprint: Option<String>,
}

impl Finding {
    /// A finding about everything, with high confidence; the caller fills in what it knows.
    pub fn new(rule: impl Into<String>, severity: Severity, verdict: Verdict, message: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            severity,
            confidence: Confidence::High,
            verdict,
            targets: Vec::new(),
            message: message.into(),
            help: None,
            component: None,
            path: None,
            layer: None,
            dockerfile: None,
            label: String::new(),
            because: Vec::new(),
            related: Vec::new(),
            fix: None,
            accepted: None,
            fingerprint: None,
        }
    }
}

/// Why a finding does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    pub by: AcceptedBy,
    /// Line of that comment or waiver.
    pub line: usize,
    /// As it was written; a comment may give none.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AcceptedBy {
    /// `# imagelint: ignore[…]` in the file.
    Comment,
    /// A waiver of the fleet file.
    Waiver,
}

/// A stretch of a text file. Lines and columns count from 1, columns in characters; the end is behind the last
/// character.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FilePlace {
    /// As it was named or found, with `/` between folders; odd characters are escaped as in paths of an image.
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
}

/// A place that belongs to a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Related {
    #[serde(flatten)]
    pub place: FilePlace,
    /// What it has to do with it, in a few words.
    pub message: String,
}

/// Edits of the finding's file that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixReport {
    /// In the imperative.
    pub what: String,
    /// May be applied without being read.
    pub safe: bool,
    /// In the order of the file; none overlaps another.
    pub edits: Vec<EditReport>,
}

/// Text that takes the place of a stretch of the file, which may be empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct EditReport {
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
    pub text: String,
}
