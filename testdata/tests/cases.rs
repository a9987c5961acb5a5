//! The field cases: small real images, and the verdict and the words that each target must get (cases/expect.tsv).

use crate::common;

use std::collections::{BTreeMap, BTreeSet};

use common::{run, testdata};
use fancy_regex::Regex;
use serde_json::Value;

/// A line of expect.tsv.
struct Row {
    case: String,
    target: String,
    image: String,
    component: String,
    word: String,
    must: String,
    must_not: String,
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(testdata().join("cases/expect.tsv")).unwrap();
    let lines = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    lines
        .map(|line| {
            let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
            let [case, target, image, component, word, must, must_not, _origin] =
                cells.try_into().expect("eight cells");
            Row { case, target, image, component, word, must, must_not }
        })
        .collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Names of packages, as PyPI compares them.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

fn ends(path: &str, name: &str) -> bool {
    path == name || path.ends_with(&format!("/{name}"))
}

fn concerns(finding: &Value, target: &str) -> bool {
    let targets = list(finding, "targets");
    targets.is_empty() || targets.iter().any(|t| t == target)
}

/// The verdict of a component, by its name, or of a file, by the end of its path.
fn word_of<'a>(report: &'a Value, target: &'a Value, name: &str) -> Option<&'a str> {
    let components = || list(target, "components").iter();
    let by_name = components().find(|c| plain(text(c, "name")) == plain(name));
    let mut files = components().flat_map(|c| list(c, "by_file"));
    if let Some(found) = by_name.or_else(|| files.find(|f| ends(text(f, "path"), name))) {
        return Some(text(found, "verdict"));
    }
    list(report, "device_code").iter().any(|d| ends(text(d, "path"), name)).then_some("ok")
}

/// All that is said of a target.
fn said(report: &Value, target: &Value) -> String {
    let mut parts = vec![text(target, "why").to_owned()];
    for finding in list(report, "findings").iter().filter(|f| concerns(f, text(target, "name"))) {
        parts.extend([text(finding, "message").to_owned(), text(finding, "help").to_owned()]);
        parts.extend(list(finding, "because").iter().map(Value::to_string));
    }
    for steps in ["steps", "alternatives"] {
        parts.extend(list(&report["plan"], steps).iter().map(|s| text(s, "summary").to_owned()));
    }
    parts.extend(list(&report["plan"], "unresolved").iter().map(Value::to_string));
    parts.join("\n")
}

fn finds(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).expect("a regular expression").is_match(text).expect("a short match")
}

fn wrong(row: &Row, report: &Value) -> Vec<String> {
    let Some(target) = list(report, "targets").iter().find(|t| t["name"] == row.target.as_str()) else {
        return vec!["the target is absent".into()];
    };
    let mut wrong = Vec::new();
    let verdict = text(target, "verdict");
    if !row.image.split('|').any(|w| w == verdict) {
        wrong.push(format!("the image is {verdict}, not {}", row.image));
    }
    if row.component != "-" {
        let got = word_of(report, target, &row.component);
        if row.word != "-" && !row.word.split('|').any(|w| Some(w) == got) {
            wrong.push(format!("{} is {got:?}, not {}", row.component, row.word));
        }
    }
    let said = said(report, target);
    if row.must != "-" && !finds(&row.must, &said) {
        wrong.push(format!("lacks /{}/", row.must));
    }
    if row.must_not != "-" && finds(&row.must_not, &said) {
        wrong.push(format!("says /{}/", row.must_not));
    }
    if !wrong.is_empty() {
        wrong.push(format!("why: {}", text(target, "why")));
    }
    wrong
}

#[test]
fn every_case_gets_its_verdicts_and_its_words() {
    let mut by_case: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows() {
        by_case.entry(row.case.clone()).or_default().push(row);
    }
    let (mut held, mut problems) = (0, Vec::new());
    for (case, rows) in by_case {
        let image = format!("oci-archive:cases/images/{case}.tar");
        assert!(testdata().join(&image["oci-archive:".len()..]).exists(), "the archive of {case} is missing");
        let ran = run(&["scan", &image, "--fleet", &format!("cases/fleets/{case}.toml"), "--format", "json"]);
        let report = ran.json();
        let verdicts: BTreeSet<&str> = list(&report, "targets").iter().map(|t| text(t, "verdict")).collect();
        let bad = ["fail", "blocked", "cpu"].iter().any(|w| verdicts.contains(w));
        let status = if verdicts.contains("unknown") { 2 } else { i32::from(bad) };
        assert_eq!(ran.code, status, "{case}: the verdicts are {verdicts:?}; {}", ran.err);
        for row in rows {
            let wrong = wrong(&row, &report);
            match wrong.is_empty() {
                true => held += 1,
                false => problems.push(format!("{case} {}: {}", row.target, wrong.join("; "))),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(held >= 190, "only {held} rows were compared");
}

#[test]
fn of_the_sample_s_three_targets_exactly_one_fails() {
    let ran = run(&["scan", "images/sample.tar", "--fleet", "images/imagelint.toml", "--format", "json"]);
    let report = ran.json();
    assert_eq!(common::verdicts(&report), ["training ok", "workstations ok", "new-workstations fail"]);
    assert_eq!(ran.code, 1);
    let archs: Vec<&str> = list(&report["image"], "arch_list").iter().filter_map(Value::as_str).collect();
    assert_eq!(archs, ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]);
}
