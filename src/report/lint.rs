//! What `imagelint lint` has to say of Dockerfiles: what `--format json` prints, and what every other format renders.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::table::against_baseline;
use super::text::count;
use super::{
    Format, PolicyReport, RuleText, Style, Tool, github, gitlab, html, junit, lint_table, markdown, sarif,
};
use crate::model::Finding;

/// The whole report of a run over Dockerfiles.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LintReport {
    /// Version of this schema: 1.
    pub schema: u32,
    pub tool: Tool,
    /// In the order of file, place and rule; last those of no place.
    pub findings: Vec<Finding>,
    /// Findings that a comment in the file or a waiver covers.
    pub waived: Vec<Finding>,
    /// Only with `--baseline`: findings that the baseline has too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<Vec<Finding>>,
    /// Only with `--baseline`: how many of its findings are there no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<usize>,
    pub gaps: Vec<LintGap>,
    /// Only with `--policy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyReport>,
    /// Comments that the policy does not let count.
    #[serde(skip)]
    pub overruled: Vec<String>,
    /// The text of each file, by its name.
    #[serde(skip)]
    pub sources: BTreeMap<String, Arc<str>>,
    /// What goes before names of files where they are read from the repository's root: empty, or `docker/`.
    #[serde(skip)]
    pub base: String,
    /// The rules that files were held against, and those that findings name, by id.
    #[serde(skip)]
    pub rules: Vec<RuleText>,
}

/// What of a file was not understood, or could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct LintGap {
    pub path: String,
    /// From 1.
    pub line: usize,
    /// In bytes.
    pub offset: usize,
    pub why: String,
}

impl LintReport {
    pub fn write(&self, format: Format, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Table => out.write_all(lint_table::render(self, style).as_bytes()),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                out.write_all(b"\n")
            }
            Format::Sarif => out.write_all(&sarif::log(vec![sarif::of_files(self, style.exit)])?),
            Format::Github => out.write_all(
                github::render(&self.findings, &self.base, self.policy.as_ref(), &self.aside()).as_bytes(),
            ),
            Format::Markdown => out.write_all(markdown::of_files(self, style.exit).as_bytes()),
            Format::Html => out.write_all(html::of_files(self, style.exit).as_bytes()),
            Format::Junit => out.write_all(junit::document(&junit::of_files(self)).as_bytes()),
            Format::Gitlab => out.write_all(&gitlab::document(&gitlab::of_files(self))?),
        }
    }

    /// What a tally of findings leaves out.
    fn aside(&self) -> String {
        let mut parts = Vec::new();
        if !self.waived.is_empty() {
            parts.push(format!("{} ignored or waived", self.waived.len()));
        }
        parts.extend(Some(against_baseline(self.known.as_deref(), self.resolved)).filter(|t| !t.is_empty()));
        if !self.gaps.is_empty() {
            parts.push(count(self.gaps.len(), "gap", "gaps"));
        }
        parts.join("; ")
    }
}
