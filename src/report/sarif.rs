//! SARIF 2.1.0, as code scanning reads it.

mod model;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::model::{
    ArtifactChange, ArtifactLocation, Automation, Configuration, Content, Driver, Fix, Invocation, Location, Log,
    LogicalLocation, Message, Notification, PhysicalLocation, Properties, Region, Replacement, Result, Rule,
    RuleProperties, Suppression, Text, Tool,
};

pub use self::model::Run;
use super::fingerprint::Prints;
use super::lint::LintReport;
use super::text::rooted;
use super::{Report, RuleText};
use crate::model::{AcceptedBy, EditReport, FilePlace, Finding, ImagePath, Severity};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// One run of the log, of Dockerfiles.
pub fn of_files(report: &LintReport, exit: Option<u8>) -> Run {
    let gaps = report.gaps.iter().map(|gap| Notification {
        level: "note",
        message: Text::new(&gap.why),
        locations: vec![Location {
            physical_location: Some(PhysicalLocation {
                artifact_location: artifact(&report.base, &gap.path),
                region: Some(Region { start_line: gap.line, ..Region::default() }),
            }),
            ..Location::default()
        }],
    });
    run(&report.tool, &report.rules, &report.findings, &report.waived, gaps.collect(), exit, &|f| {
        place(f, &report.base, None)
    })
}

/// One run of the log, of an image. Of several in one log each has its own category.
pub fn of_image(report: &Report, exit: Option<u8>, several: bool) -> Run {
    let reference = report.image.as_ref().map_or("", |i| i.reference.as_str());
    let gaps = report.gaps.iter().map(|gap| {
        let location = gap.path.as_ref().map(|path| Location {
            physical_location: Some(PhysicalLocation { artifact_location: in_image(path), region: None }),
            ..Location::default()
        });
        let level = if gap.effect == crate::model::GapEffect::Image { "error" } else { "note" };
        Notification { level, message: Text::new(&gap.why), locations: location.into_iter().collect() }
    });
    let place = |f: &Finding| place(f, &report.base, Some(reference));
    // Of many images, each telling all rules would take most of the log.
    let named: BTreeSet<&str> = report.findings.iter().chain(&report.waived).map(|f| f.rule.as_str()).collect();
    let rules: Vec<RuleText> = report.rules.iter().filter(|r| !several || named.contains(r.id)).copied().collect();
    let mut run = run(&report.tool, &rules, &report.findings, &report.waived, gaps.collect(), exit, &place);
    run.automation_details = several.then(|| Automation { id: format!("imagelint {reference}/") });
    run
}

/// The log of one run or more, indented, ending in a line feed.
pub fn log(runs: Vec<Run>) -> std::io::Result<Vec<u8>> {
    let mut out = serde_json::to_vec_pretty(&Log { schema: SCHEMA, version: "2.1.0", runs })?;
    out.push(b'\n');
    Ok(out)
}

fn run(
    tool: &super::Tool,
    rules: &[RuleText],
    findings: &[Finding],
    waived: &[Finding],
    notifications: Vec<Notification>,
    exit: Option<u8>,
    place: &dyn Fn(&Finding) -> Location,
) -> Run {
    let mut prints = Prints::default();
    let results = findings.iter().chain(waived).map(|f| result(f, rules, place(f), &mut prints)).collect();
    Run {
        tool: Tool {
            driver: Driver {
                name: tool.name.clone(),
                version: tool.version.clone(),
                semantic_version: tool.version.clone(),
                rules: rules.iter().map(rule).collect(),
            },
        },
        automation_details: None,
        column_kind: "unicodeCodePoints",
        invocations: vec![Invocation {
            execution_successful: exit != Some(2),
            exit_code: exit,
            tool_execution_notifications: notifications,
        }],
        results,
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn rule(rule: &RuleText) -> Rule {
    Rule {
        id: rule.id,
        short_description: Text::new(rule.summary),
        full_description: Text::new(rule.summary),
        help: Message { text: rule.page.to_owned(), markdown: Some(rule.page.to_owned()) },
        default_configuration: Configuration { level: level(rule.severity) },
        properties: RuleProperties { tags: vec!["gpu", "container"] },
    }
}

fn result(finding: &Finding, rules: &[RuleText], location: Location, prints: &mut Prints) -> Result {
    let mut text = finding.message.clone();
    // Where the place is a Dockerfile's line, what it made is told.
    if let (Some(_), Some(path)) = (&finding.dockerfile, &finding.path) {
        text.push_str(&format!("\nAt {path}"));
    }
    if let Some(help) = &finding.help {
        text.push_str(&format!("\nHelp: {help}"));
    }
    let base = location.physical_location.as_ref().map(|p| p.artifact_location.clone());
    let related = finding.related.iter().zip(1..).filter_map(|(related, id)| {
        let artifact_location = base.clone()?;
        Some(Location {
            id: Some(id),
            message: Some(Text::new(&related.message)),
            physical_location: Some(PhysicalLocation { artifact_location, region: Some(region(&related.place)) }),
            ..Location::default()
        })
    });
    let fix = finding.fix.as_ref().zip(base.clone()).map(|(fix, artifact_location)| Fix {
        description: Text::new(&fix.what),
        artifact_changes: vec![ArtifactChange {
            artifact_location,
            replacements: fix.edits.iter().map(replacement).collect(),
        }],
    });
    let suppression = finding.accepted.as_ref().map(|accepted| Suppression {
        kind: match accepted.by {
            AcceptedBy::Comment => "inSource",
            AcceptedBy::Waiver => "external",
        },
        justification: Some(accepted.reason.clone()).filter(|r| !r.is_empty()),
    });
    let print = prints.beside_file(finding);
    Result {
        rule_id: finding.rule.clone(),
        rule_index: rules.iter().position(|r| r.id == finding.rule),
        level: level(finding.severity),
        message: Text { text },
        related_locations: related.collect(),
        locations: vec![location],
        partial_fingerprints: BTreeMap::from([
            ("imagelint/v1", print.clone()),
            // The name by which GitHub knows alerts again.
            ("primaryLocationLineHash", print),
        ]),
        fixes: fix.into_iter().collect(),
        suppressions: suppression.into_iter().collect(),
        properties: Properties {
            confidence: finding.confidence,
            verdict: finding.verdict,
            targets: finding.targets.clone(),
            because: finding.because.clone(),
            path: finding.path.as_ref().map(ToString::to_string),
        },
    }
}

/// Where a finding is: in a Dockerfile, at a path of the image, or the image itself.
fn place(finding: &Finding, base: &str, image: Option<&str>) -> Location {
    let mut logical = Vec::new();
    if let Some(name) = &finding.component {
        logical.push(LogicalLocation { name: name.clone(), kind: "package" });
    }
    if let Some(reference) = image {
        logical.push(LogicalLocation { name: reference.to_owned(), kind: "image" });
    }
    let physical = match (&finding.dockerfile, &finding.path) {
        (Some(place), _) => {
            Some(PhysicalLocation { artifact_location: artifact(base, &place.file), region: Some(region(place)) })
        }
        // Code scanning takes no result without a file and a line.
        (None, Some(path)) => {
            Some(PhysicalLocation { artifact_location: in_image(path), region: Some(Region::first_line()) })
        }
        (None, None) => image.map(|reference| PhysicalLocation {
            artifact_location: artifact("", reference),
            region: Some(Region::first_line()),
        }),
    };
    Location { physical_location: physical, logical_locations: logical, ..Location::default() }
}

fn region(place: &FilePlace) -> Region {
    Region {
        start_line: place.line,
        start_column: Some(place.column),
        end_line: Some(place.end_line),
        end_column: Some(place.end_column),
    }
}

fn replacement(edit: &EditReport) -> Replacement {
    Replacement {
        deleted_region: Region {
            start_line: edit.line,
            start_column: Some(edit.column),
            end_line: Some(edit.end_line),
            end_column: Some(edit.end_column),
        },
        inserted_content: (!edit.text.is_empty()).then(|| Content { text: edit.text.clone() }),
    }
}

fn artifact(base: &str, file: &str) -> ArtifactLocation {
    let file = rooted(base, file);
    let scheme = if file.starts_with('/') { "file://" } else { "" };
    ArtifactLocation { uri: format!("{scheme}{}", percent(file.as_bytes())) }
}

fn in_image(path: &ImagePath) -> ArtifactLocation {
    ArtifactLocation { uri: percent(path.as_bytes()) }
}

/// A path as a URI reference: what is neither a letter, a digit nor harmless is percent-encoded.
fn percent(path: &[u8]) -> String {
    path.iter()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(*b).to_string()
            }
            b => format!("%{b:02X}"),
        })
        .collect()
}
