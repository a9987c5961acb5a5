//! Formats that are one document, however many images there are: each is added as it comes, and kept as what is
//! written of it.

use std::io;

use super::github::Annotations;
use super::gitlab::Issue;
use super::junit::Suite;
use super::text::clean;
use super::{Format, Report, gitlab, junit, sarif, table};
use super::{html, markdown};

/// A document of reports.
pub struct Gathered {
    several: bool,
    empty: bool,
    parts: Parts,
}

enum Parts {
    Sarif(Vec<sarif::Run>),
    Github { all: Annotations, aside: String },
    Markdown(markdown::Document),
    Html(html::Document),
    Junit(Vec<Suite>),
    Gitlab(Vec<Issue>),
}

impl Gathered {
    /// None: the format is written report by report.
    pub fn new(format: Format, several: bool) -> Option<Self> {
        let parts = match format {
            Format::Table | Format::Json => return None,
            Format::Sarif => Parts::Sarif(Vec::new()),
            Format::Github => Parts::Github { all: Annotations::default(), aside: String::new() },
            Format::Markdown => Parts::Markdown(markdown::Document::new(several)),
            Format::Html => Parts::Html(html::Document::new(several)),
            Format::Junit => Parts::Junit(Vec::new()),
            Format::Gitlab => Parts::Gitlab(Vec::new()),
        };
        Some(Self { several, empty: true, parts })
    }

    /// Adds a report; `exit`: the status that it alone would give. `unread`: the image could not be looked at.
    pub fn add(&mut self, report: &Report, unread: bool, exit: Option<u8>) {
        match &mut self.parts {
            // A run without results would close the image's alerts.
            Parts::Sarif(_) if unread => return,
            // Its error is told elsewhere.
            Parts::Github { all, .. } if unread => {
                let name = report.image.as_ref().map_or("", |i| i.reference.as_str());
                all.tell(&format!("{}: could not be read", clean(name)));
                return;
            }
            Parts::Sarif(runs) => runs.push(sarif::of_image(report, exit, self.several)),
            Parts::Github { all, aside } => annotate(all, aside, report, self.several),
            Parts::Markdown(document) => document.add(report, unread, exit),
            Parts::Html(document) => document.add(report, unread, exit),
            Parts::Junit(suites) => suites.push(junit::of_image(report, unread)),
            Parts::Gitlab(issues) => issues.extend(gitlab::of_image(report)),
        }
        self.empty = false;
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// The document; `exit`: the status of the whole run.
    pub fn finish(self, exit: Option<u8>) -> io::Result<Vec<u8>> {
        match self.parts {
            Parts::Sarif(runs) => sarif::log(runs),
            Parts::Github { all, aside } => Ok(all.finish(&aside).into_bytes()),
            Parts::Markdown(document) => Ok(document.finish(exit).into_bytes()),
            Parts::Html(document) => Ok(document.finish(exit).into_bytes()),
            Parts::Junit(suites) => Ok(junit::document(&suites).into_bytes()),
            Parts::Gitlab(issues) => gitlab::document(&issues),
        }
    }
}

fn annotate(all: &mut Annotations, aside: &mut String, report: &Report, several: bool) {
    let image = report.image.as_ref();
    let mut told = image.map_or(String::new(), |i| format!("{}: {}", clean(&i.reference), i.verdict));
    let baseline = table::against_baseline(report.known.as_deref(), report.resolved);
    if !baseline.is_empty() {
        told.push_str(&format!("; {baseline}"));
    }
    all.policy(report.policy.as_ref());
    let name = image.map(|i| i.reference.as_str()).filter(|_| several);
    all.add(&report.findings, &report.base, name);
    if several {
        all.tell(&told);
    } else {
        *aside = told;
    }
}
