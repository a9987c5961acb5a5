use roxmltree::{Document, Node};

use super::super::sample;
use super::*;
use crate::model::Gap;

/// By the rules of the schema that Jenkins keeps (junit-10.xsd), and what it does not say: sums are right, names differ.
fn lawful(text: &str) -> Document<'_> {
    let document = Document::parse(text).unwrap_or_else(|e| panic!("{e}:\n{text}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    attributes(root, &["tests", "failures", "errors"], &["name"]);
    for suite in elements(root) {
        assert_eq!(suite.tag_name().name(), "testsuite");
        attributes(suite, &["name", "tests", "failures", "errors"], &["skipped", "time"]);
        let mut names = std::collections::BTreeSet::new();
        for case in elements(suite) {
            assert_eq!(case.tag_name().name(), "testcase");
            attributes(case, &["name", "classname"], &[]);
            assert!(names.insert((case.attribute("classname"), case.attribute("name"))), "twice: {case:?}");
            let inside: Vec<Node<'_, '_>> = elements(case).collect();
            for element in &inside {
                match element.tag_name().name() {
                    "failure" | "error" | "skipped" => attributes(*element, &["message", "type"], &[]),
                    "system-out" => attributes(*element, &[], &[]),
                    other => panic!("{other} in a testcase"),
                }
                assert_eq!(elements(*element).count(), 0);
            }
            assert!(inside.iter().filter(|e| e.tag_name().name() != "system-out").count() <= 1);
        }
        for (sum, element) in [("failures", "failure"), ("errors", "error"), ("skipped", "skipped")] {
            let found = elements(suite).flat_map(elements).filter(|e| e.has_tag_name(element)).count();
            assert_eq!(number(suite, sum), found, "{sum}");
        }
        assert_eq!(number(suite, "tests"), elements(suite).count());
    }
    for sum in ["tests", "failures", "errors"] {
        assert_eq!(number(root, sum), elements(root).map(|s| number(s, sum)).sum::<usize>(), "{sum}");
    }
    document
}

fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

fn attributes(node: Node<'_, '_>, required: &[&str], optional: &[&str]) {
    let names: Vec<&str> = node.attributes().map(|a| a.name()).collect();
    assert!(required.iter().all(|r| names.contains(r)), "{node:?}");
    assert!(names.iter().all(|n| required.contains(n) || optional.contains(n)), "{node:?}");
}

fn number(node: Node<'_, '_>, name: &str) -> usize {
    node.attribute(name).unwrap().parse().unwrap()
}

/// `class / name` of each case, with what it holds first.
fn cases(text: &str) -> Vec<(String, Option<String>)> {
    let document = lawful(text);
    let all = document.descendants().filter(|n| n.has_tag_name("testcase"));
    all.map(|c| {
        let name = format!("{} / {}", c.attribute("classname").unwrap(), c.attribute("name").unwrap());
        (name, elements(c).next().map(|e| e.tag_name().name().to_owned()))
    })
    .collect()
}

fn outcome_of(cases: &[(String, Option<String>)], name: &str) -> Option<String> {
    let found = cases.iter().find(|(n, _)| n == name);
    found.unwrap_or_else(|| panic!("no case {name:?}: {cases:?}")).1.clone()
}

#[test]
fn every_target_has_a_case_for_each_core_component() {
    let report = sample::failing();
    let text = document(&[of_image(&report, false)]);
    let cases = cases(&text);
    let of = |name: &str| outcome_of(&cases, name);
    assert_eq!(of("prod-a100 / torch 2.7.0+cu126 runs"), None);
    assert_eq!(of("edge-5090 / torch 2.7.0+cu126 runs").as_deref(), Some("failure"));
    assert_eq!(of("old-t4 / torch 2.7.0+cu126 runs"), None);
    // Its core runs, and what is optional does not.
    assert_eq!(of("old-t4 / the image runs").as_deref(), Some("skipped"));
    // What torch's case tells is told once.
    assert!(!cases.iter().any(|(n, _)| n.contains("findings / no-device-code-for-target: torch")), "{cases:?}");
    assert_eq!(text.matches("[no-device-code-for-target]").count(), 2, "{text}");
    assert_eq!(of("findings / compressed-device-code").as_deref(), Some("system-out"));
}

#[test]
fn what_does_not_gate_fails_nothing() {
    let mut report = sample::failing();
    for target in report.targets.iter_mut().flatten() {
        target.required = false;
        target.components[0].verdict = Verdict::Unknown;
    }
    report.findings.retain(|f| f.severity != Severity::Error);
    let text = document(&[of_image(&report, false)]);
    assert!(text.contains("failures=\"0\" errors=\"0\">"), "{text}");
    for target in report.targets.iter_mut().flatten() {
        target.required = true;
    }
    let text = document(&[of_image(&report, false)]);
    lawful(&text);
    assert!(text.contains("errors=\"3\" skipped="), "what is not known is no failure: {text}");
}

#[test]
fn any_report_is_well_formed() {
    let mut reports = vec![sample::failing(), sample::wide(), sample::untargeted(), sample::hostile()];
    let mut evil = sample::failing();
    evil.findings.iter_mut().for_each(|f| f.message = "]]></failure>\u{0}\u{1}\u{fffe}<x y='\"'>&amp;".into());
    evil.stats.seconds = Some(1.5);
    reports.push(evil);
    let suites: Vec<Suite> = reports.iter().map(|r| of_image(r, false)).collect();
    let text = document(&suites);
    let parsed = lawful(&text);
    assert_eq!(elements(parsed.root_element()).count(), reports.len());
    assert!(text.contains("time=\"1.500\""));
    lawful(&document(&[]));
}

#[test]
fn an_image_that_could_not_be_read_is_an_error() {
    let mut report = sample::untargeted();
    report.gaps = vec![Gap::image("h: not found")];
    let text = document(&[of_image(&report, true)]);
    assert!(text.contains("errors=\"1\" skipped=\"0\""), "{text}");
    assert!(text.contains("<error message=\"h: not found\" type=\"unread\"/>"), "{text}");
    lawful(&text);
}

#[test]
fn each_rule_is_a_case_of_each_file() {
    let mut report = sample::lint();
    report.sources.insert("other/Dockerfile".into(), "FROM scratch\n".into());
    report.base = "sub/".into();
    let text = document(&of_files(&report));
    let cases = cases(&text);
    let of = |file: &str, rule: &str| outcome_of(&cases, &format!("{file} / {rule}"));
    let file = "sub/docker/Dockerfile.gpu";
    assert_eq!(of(file, "arch-list-misses-target").as_deref(), Some("failure"));
    assert_eq!(of(file, "ld-path-overwrite").as_deref(), Some("skipped"));
    // A note that stands, and one that is ignored.
    assert_eq!(of(file, "devel-in-final-stage").as_deref(), Some("skipped"));
    assert_eq!(of("sub/other/Dockerfile", "arch-list-misses-target"), None);
    assert_eq!(of("findings", "waiver-unmatched").as_deref(), Some("system-out"));
    assert_eq!(cases.len(), 4 + 4 + 1);
    assert!(text.contains("in: sub/docker/Dockerfile.gpu:4"), "{text}");
}
