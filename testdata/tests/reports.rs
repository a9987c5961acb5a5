//! The formats of reports, as the program writes them.

use crate::common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::{Ran, finish, program, run, testdata};
use serde_json::Value;

const FORMATS: [&str; 7] = ["table", "json", "sarif", "github", "markdown", "junit", "gitlab"];

const SAMPLE: [&str; 4] = ["scan", "images/sample.tar", "--fleet", "images/imagelint.toml"];

/// What is not there, behind two that are.
const THREE: [&str; 6] =
    ["scan", "images/sample.tar", "builders/images/umoci.oci", "dir:no/such/folder", "-t", "5090@575"];

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn schema(log: &Value) {
    common::valid(&testdata().join("sarif/sarif-2.1.0.schema.json"), log);
}

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Ran {
    run(&[args, more].concat())
}

/// The sums of the document and of its suites, as they are written and as they are.
fn junit(text: &str) -> Vec<(String, [usize; 4])> {
    let document = roxmltree::Document::parse(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let count =
        |node: roxmltree::Node<'_, '_>, name: &str| node.descendants().filter(|n| n.has_tag_name(name)).count();
    let suites = document.descendants().filter(|n| n.has_tag_name("testsuite")).map(|suite| {
        let told = ["tests", "failures", "errors", "skipped"].map(|n| suite.attribute(n).unwrap().parse().unwrap());
        let found = ["testcase", "failure", "error", "skipped"].map(|n| count(suite, n));
        assert_eq!(told, found, "{text}");
        (suite.attribute("name").unwrap().to_owned(), told)
    });
    suites.collect()
}

#[test]
fn all_formats_are_written_at_once_and_tell_as_much() {
    let dir = tempfile::tempdir().unwrap();
    let file = |format: &str| dir.path().join(format);
    let outputs: Vec<String> = FORMATS.iter().map(|f| format!("{f}={}", file(f).display())).collect();
    let flags: Vec<&str> = outputs.iter().flat_map(|o| ["-o", o.as_str()]).collect();
    assert_eq!(with(&SAMPLE, &flags).code, 1);
    for format in FORMATS {
        let shown = with(&SAMPLE, &["-f", format]);
        assert_eq!(shown.code, 1, "{format}");
        assert_eq!(shown.out, fs::read_to_string(file(format)).unwrap(), "{format}");
    }
    let findings = json(&file("json"))["findings"].as_array().unwrap().len();
    assert!(findings > 3);
    let log = json(&file("sarif"));
    schema(&log);
    assert_eq!(log["runs"][0]["results"].as_array().unwrap().len(), findings);
    assert_eq!(json(&file("gitlab")).as_array().unwrap().len(), findings);
    let text = |format: &str| fs::read_to_string(file(format)).unwrap();
    assert_eq!(text("github").lines().filter(|l| l.starts_with("::")).count(), findings);
    assert_eq!(text("markdown").lines().filter(|l| l.starts_with("- **")).count(), findings);
    let suites = junit(&text("junit"));
    assert_eq!(suites.len(), 1);
    assert_eq!(suites[0].1[1], 1, "torch does not run on one of three targets: {suites:?}");
    let matrix = text("markdown");
    let verdicts: Vec<&str> = matrix.lines().filter(|l| l.starts_with("| ❌") || l.starts_with("| ✅")).collect();
    assert_eq!(verdicts.len(), 3, "{matrix}");
    assert!(
        matrix.find("| ❌ fail | new-workstations |").unwrap() < matrix.find("**❌ fail**").unwrap(),
        "{matrix}"
    );
}

#[test]
fn several_images_are_one_document() {
    let of = |format: &str| {
        let ran = with(&THREE, &["-f", format]);
        assert_eq!(ran.code, 2, "{ran:?}");
        ran.out
    };
    let markdown = of("markdown");
    assert!(markdown.starts_with("## imagelint: 3 images\n"), "{markdown}");
    assert!(markdown.contains("| ❌ unread | <code>dir:no/such/folder</code> |"), "{markdown}");
    assert!(markdown.contains("**The image could not be read**: "), "{markdown}");
    assert_eq!(markdown.matches("\n## imagelint: <code>").count(), 3);
    let suites = junit(&of("junit"));
    let names: Vec<&str> = suites.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["images/sample.tar", "builders/images/umoci.oci", "dir:no/such/folder"]);
    assert_eq!(suites[2].1, [1, 0, 1, 0], "what is unread is an error");
    let issues: Value = serde_json::from_str(&of("gitlab")).unwrap();
    let prints: Vec<&str> = issues.as_array().unwrap().iter().map(|i| i["fingerprint"].as_str().unwrap()).collect();
    assert_eq!(prints.iter().collect::<BTreeSet<_>>().len(), prints.len(), "each issue has its own");
    let github = of("github");
    let images: Vec<&str> = github.lines().filter(|l| l.starts_with("- ")).collect();
    assert_eq!(images[0], "- images/sample.tar: fail");
    assert_eq!((images.len(), images[2]), (3, "- dir:no/such/folder: could not be read"));
    assert!(
        github
            .lines()
            .filter(|l| l.starts_with("::"))
            .all(|l| l.contains("::images/") || l.contains("::builders/"))
    );
    let log: Value = serde_json::from_str(&of("sarif")).unwrap();
    schema(&log);
    assert_eq!(log["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn one_image_that_cannot_be_read_leaves_valid_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = |format: &str| dir.path().join(format);
    let outputs = ["sarif", "markdown", "junit", "gitlab"].map(|f| format!("{f}={}", file(f).display()));
    let flags: Vec<&str> = outputs.iter().flat_map(|o| ["-o", o.as_str()]).collect();
    with(&["scan", "dir:no/such/folder", "-t", "a100"], &flags).refused(&["no/such/folder"]);
    schema(&json(&file("sarif")));
    assert_eq!(json(&file("gitlab")), serde_json::json!([]));
    assert!(junit(&fs::read_to_string(file("junit")).unwrap()).is_empty());
    assert!(fs::read_to_string(file("markdown")).unwrap().contains("No image was judged"));
}

#[test]
fn every_rule_is_listed_with_its_page() {
    let log: Value = serde_json::from_str(&with(&SAMPLE, &["-f", "sarif"]).out).unwrap();
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    let ids: BTreeSet<&str> = rules.iter().map(|r| r["id"].as_str().unwrap()).collect();
    for id in ["no-device-code-for-target", "scan-incomplete", "library-not-found", "waiver-expired"] {
        assert!(ids.contains(id), "{id}");
    }
    assert!(rules.iter().all(|r| r["help"]["markdown"].as_str().unwrap().starts_with("# ")));
    assert!(!ids.contains("arch-list-misses-target"), "no Dockerfile was looked at");
    let known = run(&["rules", "-f", "json"]).json();
    let all: BTreeSet<&str> = known.as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect();
    assert!(ids.is_subset(&all));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("Dockerfile");
    fs::write(&file, "FROM ubuntu:24.04\n").unwrap();
    let fleet = dir.path().join("imagelint.toml");
    fs::write(&fleet, "[rules]\n\"dockerfile-syntax\" = \"off\"\n").unwrap();
    let args = ["lint", file.to_str().unwrap(), "--fleet", fleet.to_str().unwrap(), "-f", "sarif"];
    let log: Value = serde_json::from_str(&run(&args).out).unwrap();
    schema(&log);
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    assert!(rules.len() > 20 && rules.iter().all(|r| r["id"] != "dockerfile-syntax"), "what is off is not run");
}

/// The layers' lines are found by what the image's history says, and named from the repository's root.
#[test]
fn places_are_the_lines_that_made_the_layers() {
    let dir = tempfile::tempdir().unwrap();
    let sub = dir.path().join("images/app");
    fs::create_dir_all(&sub).unwrap();
    fs::create_dir(dir.path().join(".git")).unwrap();
    let evidence = dir.path().join("evidence.json");
    with(&SAMPLE, &["--save-evidence", evidence.to_str().unwrap()]);
    let mut saved = json(&evidence);
    let steps = ["pip install torch", "pip install flash-attn", "rm -rf /tmp/x"];
    let layers = saved.pointer_mut("/image/layers").unwrap().as_array_mut().unwrap();
    assert_eq!(layers.len(), steps.len());
    for (layer, step) in layers.iter_mut().zip(steps) {
        layer["created_by"] = format!("RUN /bin/sh -c {step} # buildkit").into();
    }
    fs::write(&evidence, saved.to_string()).unwrap();
    fs::write(
        sub.join("Dockerfile"),
        format!("FROM scratch\n\nRUN {}\nRUN {}\n\nRUN {}\n", steps[0], steps[1], steps[2]),
    )
    .unwrap();
    let fleet = testdata().join("images/imagelint.toml");
    let scan = |format: &str| {
        let mut command = program();
        command.current_dir(&sub).args(["scan", "--from-evidence", evidence.to_str().unwrap(), "-f", format]);
        command.args(["--fleet", fleet.to_str().unwrap(), "--dockerfile", "Dockerfile"]);
        finish(&mut command).out
    };
    let report: Value = serde_json::from_str(&scan("json")).unwrap();
    let torch = report["findings"].as_array().unwrap().iter().find(|f| f["component"] == "torch").unwrap();
    let line = torch["dockerfile"]["line"].as_u64().unwrap();
    assert!([3, 4, 6].contains(&line), "{torch}");
    let log: Value = serde_json::from_str(&scan("sarif")).unwrap();
    schema(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|r| r["message"]["text"].as_str().unwrap().starts_with("torch ")).unwrap();
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "images/app/Dockerfile");
    assert_eq!(place["region"]["startLine"], line);
    assert!(result["properties"]["path"].as_str().unwrap().ends_with("libtorch_cuda.so"), "{result}");
    let issues: Value = serde_json::from_str(&scan("gitlab")).unwrap();
    let issue = issues
        .as_array()
        .unwrap()
        .iter()
        .find(|i| i["description"].as_str().unwrap().starts_with("torch "))
        .unwrap();
    assert_eq!(
        issue["location"],
        serde_json::json!({ "path": "images/app/Dockerfile", "lines": { "begin": line } })
    );
    assert!(scan("github").contains(&format!("file=images/app/Dockerfile,line={line},")));
    assert!(scan("markdown").contains(&format!("<br>in: <code>Dockerfile:{line}</code>")));
    assert!(scan("junit").contains(&format!("in: images/app/Dockerfile:{line}\n")));
}

#[test]
fn dockerfiles_have_the_same_formats() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("Dockerfile"), "FROM ubuntu:24.04\nINSTALL | <b>@curl\n").unwrap();
    fs::write(dir.path().join("good.Dockerfile"), "FROM ubuntu:24.04\nRUN true\n").unwrap();
    let lint = |format: &str| {
        let ran = finish(program().current_dir(dir.path()).args(["lint", "-f", format]));
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.out
    };
    let markdown = lint("markdown");
    assert!(markdown.starts_with("## imagelint: 2 Dockerfiles\n"), "{markdown}");
    assert!(markdown.contains("- **error** <code>dockerfile-syntax</code>: "), "{markdown}");
    assert!(markdown.contains("<br>in: <code>Dockerfile:2</code>"), "{markdown}");
    assert!(!markdown.contains("<b>"), "{markdown}");
    let suites = junit(&lint("junit"));
    let failures: Vec<(&str, usize)> = suites.iter().map(|(name, sums)| (name.as_str(), sums[1])).collect();
    assert_eq!(failures, [("Dockerfile", 1), ("good.Dockerfile", 0)]);
    assert!(suites.iter().all(|(_, sums)| sums[0] > 20), "a case for each rule: {suites:?}");
    let issues: Value = serde_json::from_str(&lint("gitlab")).unwrap();
    assert_eq!(issues[0]["check_name"], "dockerfile-syntax");
    assert_eq!(issues[0]["location"], serde_json::json!({ "path": "Dockerfile", "lines": { "begin": 2 } }));
}

#[test]
fn other_formats_are_refused_with_a_list() {
    run(&["scan", "x.tar", "-o", "xml=f"]).refused(&["there are table, json, sarif, github"]);
}
