//! GitLab's Code Quality report: an array of issues, each at a line of a file.

use serde::Serialize;

use super::Report;
use super::fingerprint::{Prints, repository};
use super::lint::LintReport;
use super::text::{clean, rooted};
use super::told::details;
use crate::model::{Finding, Severity, Verdict};

/// One issue. GitLab takes those of one fingerprint for one, within a report and between two.
#[derive(Debug, Serialize)]
pub struct Issue {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Debug, Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Debug, Serialize)]
struct Lines {
    begin: usize,
}

/// The findings of an image that stand.
pub fn of_image(report: &Report) -> Vec<Issue> {
    let reference = report.image.as_ref().map_or("files", |i| i.reference.as_str());
    issues(&report.findings, &report.base, repository(reference), &clean(reference))
}

/// Those of Dockerfiles; what is about none of them is about the fleet file.
pub fn of_files(report: &LintReport) -> Vec<Issue> {
    issues(&report.findings, &report.base, "", "imagelint.toml")
}

/// The report, ending in a line feed.
pub fn document(issues: &[Issue]) -> std::io::Result<Vec<u8>> {
    let mut out = serde_json::to_vec_pretty(issues)?;
    out.push(b'\n');
    Ok(out)
}

/// `of`: what all of them are about, in another run as in this one. `nowhere`: the path of what has none.
fn issues(findings: &[Finding], base: &str, of: &str, nowhere: &str) -> Vec<Issue> {
    let mut prints = Prints::default();
    let issue = |finding: &Finding| Issue {
        description: describe(finding, base),
        check_name: clean(&finding.rule),
        fingerprint: prints.within(of, finding),
        severity: severity(finding),
        location: location(finding, base, nowhere),
    };
    findings.iter().map(issue).collect()
}

fn describe(finding: &Finding, base: &str) -> String {
    // It is shown on one line, beside the place.
    std::iter::once(clean(&finding.message)).chain(details(finding, base)).collect::<Vec<_>>().join(" · ")
}

fn severity(finding: &Finding) -> &'static str {
    match (finding.severity, finding.verdict) {
        (Severity::Error, Verdict::Fail) => "critical",
        (Severity::Error, _) => "major",
        (Severity::Warning, _) => "minor",
        (Severity::Note, _) => "info",
    }
}

fn location(finding: &Finding, base: &str, nowhere: &str) -> Location {
    let (path, begin) = match (&finding.dockerfile, &finding.path) {
        (Some(place), _) => (rooted(base, &clean(&place.file)), place.line),
        (None, Some(path)) => (path.to_string(), 1),
        (None, None) => (nowhere.to_owned(), 1),
    };
    // Paths are relative to the repository, and do not start with `./`.
    let path = path.trim_start_matches("./").to_owned();
    Location { path, lines: Lines { begin } }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::super::sample;
    use super::*;

    fn value(issues: &[Issue]) -> Vec<Value> {
        serde_json::from_slice(&document(issues).unwrap()).unwrap()
    }

    /// What GitLab asks of each issue.
    fn lawful(issues: &[Value]) {
        let mut prints = BTreeSet::new();
        for issue in issues {
            let keys: Vec<&String> = issue.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["check_name", "description", "fingerprint", "location", "severity"]);
            assert!(
                ["info", "minor", "major", "critical", "blocker"].contains(&issue["severity"].as_str().unwrap())
            );
            let path = issue["location"]["path"].as_str().unwrap();
            assert!(!path.is_empty() && !path.starts_with("./"), "{path}");
            assert!(issue["location"]["lines"]["begin"].as_u64().unwrap() > 0);
            assert!(!issue["description"].as_str().unwrap().contains('\n'));
            assert!(prints.insert(issue["fingerprint"].as_str().unwrap()), "twice: {issue}");
        }
    }

    #[test]
    fn issues_are_as_gitlab_reads_them() {
        for report in [sample::failing(), sample::wide(), sample::untargeted(), sample::hostile()] {
            let issues = value(&of_image(&report));
            assert_eq!(issues.len(), report.findings.len());
            lawful(&issues);
        }
        lawful(&value(&of_files(&sample::lint())));
        assert_eq!(document(&[]).unwrap(), b"[]\n");
    }

    #[test]
    fn places_are_the_dockerfile_s_line_or_the_path() {
        let mut report = sample::lint();
        report.base = "sub/".into();
        let issues = value(&of_files(&report));
        let of = |rule: &str| issues.iter().find(|i| i["check_name"] == rule).unwrap();
        let archs = of("arch-list-misses-target");
        assert_eq!(
            archs["location"],
            serde_json::json!({ "path": "sub/docker/Dockerfile.gpu", "lines": { "begin": 4 } })
        );
        assert_eq!(archs["severity"], "critical");
        assert_eq!(of("waiver-unmatched")["location"]["path"], "imagelint.toml");
        let image = value(&of_image(&sample::failing()));
        assert!(image[0]["location"]["path"].as_str().unwrap().ends_with("libtorch_cuda.so"), "{image:?}");
        assert_eq!(image[1]["location"]["path"], "127.0.0.1:5001/serve:2.7.0");
        assert!(image[0]["description"].as_str().unwrap().contains(" · targets: edge-5090 · "), "{image:?}");
    }

    #[test]
    fn another_build_s_issues_are_the_same_and_another_image_s_are_not() {
        let prints = |report: &Report| of_image(report).into_iter().map(|i| i.fingerprint).collect::<Vec<_>>();
        let mut report = sample::failing();
        // Two that are alike in all but their wording.
        report.findings.push(Finding { message: "again".into(), ..report.findings[1].clone() });
        let before = prints(&report);
        let named = |report: &mut Report, name: &str| report.image.as_mut().unwrap().reference = name.into();
        named(&mut report, "127.0.0.1:5001/serve:2.8.0");
        for finding in &mut report.findings {
            finding.layer = None;
            finding.message.push_str(" and more");
        }
        assert_eq!(prints(&report), before);
        named(&mut report, "127.0.0.1:5001/train:2.8.0");
        assert!(prints(&report).iter().all(|p| !before.contains(p)));
    }
}
