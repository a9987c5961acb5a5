//! `--attest FILE`: what was found, as an in-toto statement about the image's manifest, to be signed. Its JSON schema
//! (`rules/attestation.schema.json`) is generated from these types. No time of day is in it: when it was signed is for
//! the signature to tell.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Report, Tool};
use crate::model::{Arch, Digest, Finding, GapEffect, Platform, Severity, Verdict, Virtualisation};

/// What statements are called by in-toto.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// What the predicate is called; another number where a reader of this one would be misled.
pub const PREDICATE_TYPE: &str = "urn:imagelint:attestation:v1";

/// An in-toto statement, version 1.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Statement {
    /// `https://in-toto.io/Statement/v1`.
    #[serde(rename = "_type")]
    pub kind: String,
    /// The manifests that were judged, one a platform.
    pub subject: Vec<Subject>,
    /// `urn:imagelint:attestation:v1`.
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    pub predicate: Predicate,
}

/// A manifest.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Subject {
    /// The image's repository; of images that are no registry's, what they were named by.
    pub name: String,
    /// Digests without their algorithm, by its name: `sha256`.
    pub digest: BTreeMap<String, String>,
}

/// What is attested.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Predicate {
    /// Who says so, resting on which facts.
    pub tool: Tool,
    /// By what exit status the run ended: 0, 1 or 2.
    pub result: Outcome,
    /// Findings of this severity and worse make the result `fail`: error, warning, note or never.
    pub fail_on: String,
    /// Gaps were let pass.
    pub allow_gaps: bool,
    /// The worst verdict over required targets.
    pub verdict: Verdict,
    /// The fleet, in its order.
    pub targets: Vec<Judged>,
    /// Only with `--policy`: the digest of the file that it was judged by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Digest>,
    pub findings: Findings,
    pub gaps: Gaps,
}

/// What the run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Exit status 0.
    Pass,
    /// Exit status 1.
    Fail,
    /// Exit status 2: it could not be answered.
    Unanswered,
}

/// A target and what became of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Judged {
    pub name: String,
    pub gpu: String,
    /// `sm_90`.
    pub arch: Arch,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtualisation: Option<Virtualisation>,
    /// Platform of the image that was judged for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// False: reported, never gates.
    pub required: bool,
    pub verdict: Verdict,
    /// One line.
    pub why: String,
}

/// How many there are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Findings {
    pub error: usize,
    pub warning: usize,
    pub note: usize,
    /// Those that a waiver or a comment accepts.
    pub waived: usize,
    /// Only with `--baseline`: those that were there before, and count no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<usize>,
}

/// How many there are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Gaps {
    /// Places that were not understood.
    pub all: usize,
    /// Of these, those that leave the image read in part only.
    pub image: usize,
}

/// How the run was asked to judge, and what it came to.
#[derive(Debug, Clone, Copy)]
pub struct Ran<'a> {
    pub status: u8,
    pub fail_on: &'a str,
    pub allow_gaps: bool,
}

impl Statement {
    /// About these manifests of a repository. A report without an image is about nothing.
    pub fn new(report: &Report, name: &str, manifests: &[Digest], ran: &Ran<'_>) -> Self {
        let subject = |digest: &Digest| Subject {
            name: name.to_owned(),
            digest: BTreeMap::from([("sha256".to_owned(), digest.hex())]),
        };
        Self {
            kind: STATEMENT.to_owned(),
            subject: manifests.iter().map(subject).collect(),
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: predicate(report, ran),
        }
    }
}

fn predicate(report: &Report, ran: &Ran<'_>) -> Predicate {
    let of = |severity| report.findings.iter().filter(|f: &&Finding| f.severity == severity).count();
    let targets = report.targets.iter().flatten().map(|t| Judged {
        name: t.name.clone(),
        gpu: t.gpu.clone(),
        arch: t.arch,
        driver: t.driver.clone(),
        virtualisation: t.virtualisation,
        platform: t.platform.clone(),
        required: t.required,
        verdict: t.verdict,
        why: t.why.clone(),
    });
    Predicate {
        tool: report.tool.clone(),
        result: match ran.status {
            0 => Outcome::Pass,
            1 => Outcome::Fail,
            _ => Outcome::Unanswered,
        },
        fail_on: ran.fail_on.to_owned(),
        allow_gaps: ran.allow_gaps,
        verdict: report.image.as_ref().map_or(Verdict::Unknown, |i| i.verdict),
        targets: targets.collect(),
        policy: report.policy.as_ref().map(|p| p.digest),
        findings: Findings {
            error: of(Severity::Error),
            warning: of(Severity::Warning),
            note: of(Severity::Note),
            waived: report.waived.len(),
            known: report.known.as_ref().map(Vec::len),
        },
        gaps: Gaps {
            all: report.gaps.len(),
            image: report.gaps.iter().filter(|g| g.effect == GapEffect::Image).count(),
        },
    }
}
