//! Findings that an earlier report has too: told, and not held against the image again.

use std::collections::HashMap;

use serde::Deserialize;

use crate::model::{Finding, Severity};
use crate::report::Report;
use crate::report::fingerprint::{self, repository};
use crate::report::lint::LintReport;

/// What no baseline covers: that the scan is not whole, and what is wrong with waivers.
const NEVER_KNOWN: [&str; 3] = ["scan-incomplete", "waiver-expired", "waiver-unmatched"];

/// Earlier reports, one per image or one of Dockerfiles.
#[derive(Debug, Clone)]
pub struct Baseline(Vec<Kept>);

#[derive(Debug, Clone, Deserialize)]
struct Kept {
    schema: u32,
    image: Option<KeptImage>,
    findings: Vec<Finding>,
    /// A baseline of the baseline: still known.
    #[serde(default)]
    known: Vec<Finding>,
}

#[derive(Debug, Clone, Deserialize)]
struct KeptImage {
    reference: String,
}

impl Baseline {
    /// Reads JSON reports, one or several in lines. The error says what else it is.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut all = Vec::new();
        for value in serde_json::Deserializer::from_slice(bytes).into_iter::<serde_json::Value>() {
            let value = value.map_err(|e| format!("it is not JSON ({e})"))?;
            let name = value.pointer("/tool/name").and_then(|n| n.as_str());
            if name != Some(env!("CARGO_PKG_NAME")) {
                return Err("it is JSON of another kind".to_owned());
            }
            let kept: Kept =
                serde_json::from_value(value).map_err(|e| format!("it is not as reports are ({e})"))?;
            if kept.schema != super::report::SCHEMA {
                return Err(format!("it has schema {}, this program reads {}", kept.schema, super::report::SCHEMA));
            }
            all.push(kept);
        }
        if all.is_empty() {
            return Err("it is empty".to_owned());
        }
        Ok(Self(all))
    }

    /// Whether it is of images, and not of Dockerfiles or single files.
    pub fn is_of_images(&self) -> bool {
        self.0.iter().all(|k| k.image.is_some())
    }

    /// Takes the findings that the baseline has out of an image's report. Of several images each takes the report of
    /// its own reference, or of its repository. False: there is none for this image, and all is new.
    pub fn apply(&self, report: &mut Report, several: bool) -> bool {
        let reference = report.image.as_ref().map_or("", |i| i.reference.as_str());
        let kept = self.of_image(reference, several);
        let targets: Option<Vec<&str>> =
            report.targets.as_ref().map(|all| all.iter().map(|t| t.name.as_str()).collect());
        let split = split(std::mem::take(&mut report.findings), kept, targets.as_deref());
        report.findings = split.new;
        (report.known, report.resolved) = (Some(split.known), Some(split.resolved));
        kept.is_some()
    }

    /// The same for a report of Dockerfiles. False: the baseline holds none of these.
    pub fn apply_to_files(&self, report: &mut LintReport) -> bool {
        let kept = self.0.iter().find(|k| k.image.is_none());
        let split = split(std::mem::take(&mut report.findings), kept, None);
        report.findings = split.new;
        (report.known, report.resolved) = (Some(split.known), Some(split.resolved));
        kept.is_some()
    }

    fn of_image(&self, reference: &str, several: bool) -> Option<&Kept> {
        if let ([only], false) = (self.0.as_slice(), several) {
            return Some(only);
        }
        let of = |wanted: &dyn Fn(&str) -> bool| {
            self.0.iter().find(|k| k.image.as_ref().is_some_and(|i| wanted(&i.reference)))
        };
        of(&|r| r == reference).or_else(|| of(&|r| repository(r) == repository(reference)))
    }
}

struct Split {
    new: Vec<Finding>,
    known: Vec<Finding>,
    resolved: usize,
}

/// One finding of the baseline for one target.
struct Entry {
    severity: Severity,
    /// Its finding's place.
    of: usize,
    used: bool,
}

/// A finding is known target by target, as often as the baseline has it, and only while it is no worse than there.
fn split(findings: Vec<Finding>, kept: Option<&Kept>, targets: Option<&[&str]>) -> Split {
    let before: Vec<&Finding> = kept.iter().flat_map(|k| k.findings.iter().chain(&k.known)).collect();
    let mut entries: HashMap<(String, String), Vec<Entry>> = HashMap::new();
    for (of, finding) in before.iter().enumerate() {
        let entry = |target: &str| {
            let key = (fingerprint::subject(finding), target.to_owned());
            (key, Entry { severity: finding.severity, of, used: false })
        };
        let each: Vec<&str> = if finding.targets.is_empty() {
            vec![""]
        } else {
            finding.targets.iter().map(String::as_str).collect()
        };
        for (key, entry) in each.into_iter().map(entry) {
            entries.entry(key).or_default().push(entry);
        }
    }
    let mut there = vec![false; before.len()];
    let (mut new, mut known) = (Vec::new(), Vec::new());
    for finding in findings {
        if NEVER_KNOWN.contains(&finding.rule.as_str()) {
            new.push(finding);
            continue;
        }
        let subject = fingerprint::subject(&finding);
        let mut has = |target: &str| {
            let Some(entries) = entries.get_mut(&(subject.clone(), target.to_owned())) else { return false };
            // What got worse is there still.
            entries.iter().for_each(|e| there[e.of] |= e.severity < finding.severity);
            let found = entries.iter_mut().find(|e| !e.used && e.severity >= finding.severity);
            found.is_some_and(|entry| {
                entry.used = true;
                there[entry.of] = true;
                true
            })
        };
        if finding.targets.is_empty() {
            if has("") {
                known.push(finding)
            } else {
                new.push(finding)
            }
            continue;
        }
        let (old, left): (Vec<String>, Vec<String>) = finding.targets.iter().cloned().partition(|t| has(t));
        if !old.is_empty() {
            known.push(Finding { targets: old, ..finding.clone() });
        }
        if !left.is_empty() {
            new.push(Finding { targets: left, ..finding });
        }
    }
    // Targets that were not judged this time tell nothing.
    let judged = |f: &Finding| {
        f.targets.is_empty() || targets.is_none_or(|all| f.targets.iter().any(|t| all.contains(&t.as_str())))
    };
    let gone = |(f, there): &(&&Finding, bool)| !there && judged(f) && !NEVER_KNOWN.contains(&f.rule.as_str());
    let resolved = before.iter().zip(there).filter(gone).count();
    Split { new, known, resolved }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FilePlace, Verdict};

    fn finding(rule: &str, severity: Severity, targets: &[&str]) -> Finding {
        let targets = targets.iter().map(|t| (*t).to_owned()).collect();
        Finding { targets, ..Finding::new(rule, severity, Verdict::Warn, "m") }
    }

    fn kept(findings: Vec<Finding>) -> Kept {
        Kept { schema: 1, image: Some(KeptImage { reference: "a:1".into() }), findings, known: Vec::new() }
    }

    fn held(now: Vec<Finding>, before: Vec<Finding>, targets: &[&str]) -> (Vec<String>, Vec<String>, usize) {
        let split = split(now, Some(&kept(before)), Some(targets));
        let names = |all: Vec<Finding>| {
            all.iter().map(|f| format!("{} {}", f.rule, f.targets.join("+"))).collect::<Vec<_>>()
        };
        (names(split.new), names(split.known), split.resolved)
    }

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    use Severity::{Error, Note, Warning};

    #[test]
    fn what_was_there_is_known_and_what_is_gone_is_counted() {
        let before = vec![finding("x", Error, &["a"]), finding("y", Error, &["a"]), finding("z", Note, &[])];
        let now = vec![finding("x", Error, &["a"]), finding("new", Warning, &[]), finding("z", Note, &[])];
        assert_eq!(held(now, before, &["a"]), (list(&["new "]), list(&["x a", "z "]), 1));
    }

    #[test]
    fn targets_are_known_one_by_one() {
        let before = vec![finding("x", Error, &["a", "b", "gone"])];
        let now = vec![finding("x", Error, &["b", "c"])];
        assert_eq!(held(now, before, &["a", "b", "c"]), (list(&["x c"]), list(&["x b"]), 0));
        // Not judged this time: not resolved.
        assert_eq!(held(Vec::new(), vec![finding("x", Error, &["gone"])], &["a"]).2, 0);
        assert_eq!(held(Vec::new(), vec![finding("x", Error, &["gone", "a"])], &["a"]).2, 1);
        // What was said of no target says nothing of one.
        let (new, known, _) = held(vec![finding("x", Error, &["a"])], vec![finding("x", Error, &[])], &["a"]);
        assert_eq!((new.len(), known.len()), (1, 0));
    }

    #[test]
    fn worse_is_new_and_better_is_known() {
        let (new, known, resolved) =
            held(vec![finding("x", Error, &["a"])], vec![finding("x", Warning, &["a"])], &["a"]);
        assert_eq!((new.len(), known.len(), resolved), (1, 0, 0), "it is not resolved either");
        let (new, known, _) = held(vec![finding("x", Note, &["a"])], vec![finding("x", Error, &["a"])], &["a"]);
        assert_eq!((new.len(), known.len()), (0, 1));
    }

    #[test]
    fn a_second_of_the_same_is_new() {
        let x = || finding("x", Error, &["a"]);
        assert_eq!(held(vec![x(), x()], vec![x()], &["a"]), (list(&["x a"]), list(&["x a"]), 0));
        assert_eq!(held(vec![x()], vec![x(), x()], &["a"]).2, 1);
    }

    #[test]
    fn some_rules_are_never_known() {
        let old = || vec![finding("scan-incomplete", Warning, &[]), finding("waiver-expired", Error, &[])];
        let (new, known, resolved) = held(old(), old(), &[]);
        assert_eq!((new.len(), known.len(), resolved), (2, 0, 0));
        assert_eq!(held(Vec::new(), old(), &[]).2, 0);
    }

    #[test]
    fn a_dockerfile_s_findings_are_known_by_file_and_print() {
        let at = |file: &str, print: &str| Finding {
            dockerfile: Some(FilePlace { file: file.into(), line: 1, column: 1, end_line: 1, end_column: 1 }),
            fingerprint: Some(print.into()),
            ..finding("x", Error, &[])
        };
        let (new, known, resolved) = held(vec![at("a", "1"), at("b", "1")], vec![at("a", "1"), at("c", "2")], &[]);
        assert_eq!((new.len(), known.len(), resolved), (1, 1, 1));
    }

    #[test]
    fn other_files_are_no_baseline() {
        let report = serde_json::json!({ "schema": 1, "tool": { "name": "imagelint" }, "findings": [] });
        let of =
            |value: &serde_json::Value| Baseline::parse(value.to_string().as_bytes()).map(|b| b.is_of_images());
        assert_eq!(of(&report), Ok(false));
        let mut image = report.clone();
        image["image"] = serde_json::json!({ "reference": "a" });
        assert_eq!(of(&image), Ok(true));
        let error = |text: &str| Baseline::parse(text.as_bytes()).unwrap_err();
        assert!(error("").contains("empty") && error(" \n").contains("empty"));
        assert!(error("nonsense").contains("not JSON") && error("{\"schema\": 1").contains("not JSON"));
        assert!(
            error("[1]").contains("another kind") && error("{\"version\": \"2.1.0\"}").contains("another kind")
        );
        let mut newer = report.clone();
        newer["schema"] = 2.into();
        assert!(of(&newer).unwrap_err().contains("schema 2"));
        let mut odd = report.clone();
        odd["findings"] = 3.into();
        assert!(of(&odd).unwrap_err().contains("not as reports are"));
    }

    #[test]
    fn each_of_several_images_has_its_own() {
        let of =
            |reference: &str| Kept { image: Some(KeptImage { reference: reference.into() }), ..kept(Vec::new()) };
        let all = Baseline(vec![of("h:5000/app:1"), of("h:5000/web@sha256:00"), of("tar:a.tar"), of("tar:b.tar")]);
        let found = |r: &str, several| all.of_image(r, several).map(|k| k.image.clone().unwrap().reference);
        assert_eq!(found("h:5000/app:2", true).as_deref(), Some("h:5000/app:1"));
        assert_eq!(found("h:5000/web:9", false).as_deref(), Some("h:5000/web@sha256:00"));
        assert_eq!(found("tar:b.tar", true).as_deref(), Some("tar:b.tar"));
        assert_eq!(found("tar:c.tar", true), None);
        assert_eq!(found("h:5000/app2:1", true), None);
        let one = Baseline(vec![of("app:1")]);
        assert!(one.of_image("renamed:1", false).is_some(), "the only one is meant");
        assert!(one.of_image("renamed:1", true).is_none());
    }
}
