//! What changed: `diff` of two images, `--baseline`, and `--sizes`.

use crate::common;

use std::fs;

use common::{Ran, run, testdata};
use serde_json::Value;

const CU126: &str = "oci-archive:cases/images/s1.tar";
const CU128: &str = "oci-archive:cases/images/s2.tar";
const CU130: &str = "oci-archive:cases/images/s5.tar";

fn words(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn archs(component: &Value, key: &str) -> Vec<String> {
    let rows = component[key].as_array().into_iter().flatten();
    rows.map(|r| format!("{}/{}", r["arch"].as_str().unwrap(), r["form"].as_str().unwrap())).collect()
}

fn capabilities(component: &Value, key: &str) -> Vec<String> {
    let rows = component[key].as_array().into_iter().flatten();
    rows.map(|r| r["capability"].as_str().unwrap().to_owned()).collect()
}

fn diff(args: &[&str]) -> Ran {
    run(&[&["diff"], args].concat())
}

fn json(args: &[&str]) -> Value {
    diff(&[args, &["--format", "json", "-q"]].concat()).json()
}

#[test]
fn an_image_and_itself() {
    for more in [&[][..], &["--fail-on-loss"], &["-t", "a100@535", "-t", "RTX 5090@575", "--fail-on-loss"]] {
        let ran = diff(&[&[CU126, CU126], more].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.contains("no difference"), "{ran:?}");
    }
    let report = json(&[CU126, CU126]);
    assert_eq!((&report["equal"], &report["layers"]["shared"]), (&true.into(), &report["layers"]["new"]));
}

#[test]
fn the_architectures_that_differ_and_no_others() {
    let report = json(&[CU126, CU128]);
    let torch = report["components"].as_array().unwrap().iter().find(|c| c["name"] == "torch").unwrap();
    assert_eq!(archs(torch, "lost"), ["sm_50/sass", "sm_60/sass"]);
    assert_eq!(archs(torch, "won"), ["sm_100/sass", "sm_120/sass"]);
    assert_eq!(capabilities(torch, "served_worse"), ["5.0", "5.2", "6.0", "6.1"]);
    assert_eq!(capabilities(torch, "served_better"), ["10.0", "10.3", "10.7", "12.0", "12.1"]);
    assert_eq!(report["equal"], false);
    assert!(report.get("targets").is_none() && report.get("min_driver").is_none(), "one CUDA major, no targets");
    let lost = &report["losses"][0];
    assert_eq!((&lost["kind"], &lost["subject"]), (&"coverage".into(), &"torch".into()));
}

#[test]
fn a_loss_fails_only_where_it_is_asked_to() {
    assert_eq!(diff(&[CU126, CU128]).code, 0);
    let ran = diff(&[CU126, CU128, "--fail-on-loss"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("LOSSES") && ran.out.contains("exit 1: a loss"), "{ran:?}");
    // With targets their verdicts decide.
    assert_eq!(diff(&[CU126, CU128, "--fail-on-loss", "-t", "a100@535"]).code, 0);
    assert_eq!(diff(&[CU126, CU128, "--fail-on-loss", "-t", "p100@535", "-t", "a100@535"]).code, 1);
    let report = json(&[CU126, CU128, "-t", "p100@535", "-t", "RTX 5090@575"]);
    let rows: Vec<String> =
        report["targets"].as_array().unwrap().iter().map(|t| format!("{} {}", t["old"], t["new"])).collect();
    assert_eq!(rows, [r#""ok" "fail""#, r#""fail" "ok""#]);
}

#[test]
fn a_floor_that_rises_is_a_loss() {
    let report = json(&[CU128, CU130]);
    assert_eq!(report["min_driver"]["raised"], true);
    assert!(report["losses"].as_array().unwrap().iter().any(|l| l["kind"] == "driver-floor"), "{report}");
    let back = json(&[CU130, CU128]);
    assert_eq!(back["min_driver"]["raised"], false);
    assert!(!back["losses"].as_array().unwrap().iter().any(|l| l["kind"] == "driver-floor"), "{back}");
}

#[test]
fn saved_scans_stand_in_for_their_images() {
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("scan.json").to_str().unwrap().to_owned();
    let kept = run(&["scan", CU126, "--save-evidence", &saved, "-q"]);
    assert_eq!(kept.code, 0, "{kept:?}");
    for old in [saved.clone(), format!("evidence:{saved}")] {
        assert_eq!(json(&[&old, CU126])["equal"], true);
        assert_eq!(json(&[&old, CU128]), json(&[CU126, CU128]));
    }
    assert_eq!(json(&[CU128, &saved])["equal"], false);
    // What is no saved scan is told as that, and two images in one file are one too many.
    let report = dir.path().join("report.json").to_str().unwrap().to_owned();
    run(&["scan", CU126, "-o", &format!("json={report}"), "-q"]);
    diff(&[&report, CU126, "-q"]).refused(&["report.json is no saved scan", "--save-evidence"]);
    let two = dir.path().join("two.json").to_str().unwrap().to_owned();
    run(&["scan", CU126, CU128, "--save-evidence", &two, "-q"]);
    diff(&[&two, CU126, "-q"]).refused(&["two.json: holds 2 images"]);
    diff(&[&saved, CU126, "--platform", "linux/s390x", "-q"]).refused(&["linux/s390x"]);
    diff(&["evidence:nosuch.json", CU126, "-q"]).refused(&["nosuch.json"]);
}

#[test]
fn an_image_that_cannot_be_read_is_no_answer() {
    diff(&["./nosuch", CU126, "-q"]).refused(&["nosuch: not found"]);
    diff(&[CU126, "./nosuch", "-q"]).refused(&["nosuch: not found"]);
    let broken = run(&["diff", CU126]);
    assert!(broken.code == 2 && broken.err.contains("NEW"), "{broken:?}");
    assert_eq!(run(&["diff", CU126, CU128, "--format", "sarif"]).code, 2);
    // Device code that is cut off: which code there is, nobody knows.
    let (whole, cut) = ("file:corpus/cuda/bin/concat_padded.so", "file:corpus/cuda/bin/bad_so_truncated.so");
    assert_eq!(diff(&[whole, whole, "-q"]).code, 0);
    for more in [&[][..], &["-t", "h100"]] {
        let ran = diff(&[&[whole, cut, "-q", "--fail-on-loss"], more].concat());
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.starts_with("error: ") && ran.err.contains("could not be"), "{ran:?}");
        assert_ne!(diff(&[&[whole, cut, "-q", "--allow-gaps"], more].concat()).code, 2);
    }
}

#[test]
fn differences_match_the_kept_schema() {
    let kept = fs::read_to_string(testdata().join("../rules/diff.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&kept).unwrap()).unwrap();
    for args in [&[CU126, CU128][..], &[CU128, CU130, "-t", "h100@535"], &[CU126, "images/sample.tar"]] {
        let report = json(args);
        let errors: Vec<String> = validator.iter_errors(&report).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{args:?}: {errors:?}");
        assert_eq!(json(args), report, "the same again");
    }
}

#[test]
fn a_baseline_leaves_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let before = path("before.json");
    let first =
        run(&["scan", CU126, "-t", "RTX 5090@575", "-o", &format!("json={before}"), "-q", "--format", "json"]);
    assert_eq!(first.code, 1);
    let all = first.json()["findings"].as_array().unwrap().len();
    assert!(all > 0 && first.json().get("known").is_none() && first.json().get("resolved").is_none());

    let again = run(&["scan", CU126, "-t", "RTX 5090@575", "--baseline", &before, "-q", "--format", "json"]);
    let report = again.json();
    assert_eq!((again.code, &report["findings"]), (0, &Value::Array(Vec::new())));
    assert_eq!((report["known"].as_array().unwrap().len(), &report["resolved"]), (all, &0.into()));
    assert_eq!(report["targets"][0]["verdict"], "fail", "the verdict stays what it is");
    assert_eq!(
        run(&["scan", CU126, "-t", "RTX 5090@575", "--baseline", &before, "--fail-on", "note", "-q"]).code,
        0
    );
    let table = run(&["scan", CU126, "-t", "RTX 5090@575", "--baseline", &before, "-q"]);
    assert!(table.out.contains(&format!("{all} known from the baseline")), "{table:?}");

    // A target that the baseline does not know fails, and is all that is told.
    let more = run(&[
        "scan",
        CU126,
        "-t",
        "RTX 5090@575",
        "-t",
        "b200@575",
        "--baseline",
        &before,
        "-q",
        "--format",
        "json",
    ]);
    assert_eq!(more.code, 1);
    for finding in more.json()["findings"].as_array().unwrap() {
        assert_eq!(words(&finding["targets"]), ["b200@575"], "{finding}");
    }
    // The next build has the GPU's code: what was wrong is resolved.
    let next = run(&["scan", CU128, "-t", "RTX 5090@575", "--baseline", &before, "-q", "--format", "json"]);
    assert_eq!(next.code, 0);
    assert!(next.json()["resolved"].as_u64().unwrap() > 0, "{next:?}");
    // A baseline of a run with a baseline keeps what was known.
    let kept = path("kept.json");
    run(&["scan", CU126, "-t", "RTX 5090@575", "--baseline", &before, "-o", &format!("json={kept}"), "-q"]);
    assert_eq!(run(&["scan", CU126, "-t", "RTX 5090@575", "--baseline", &kept, "-q"]).code, 0);
    // An undecided question stays one.
    let cut = ["scan", "file:corpus/cuda/bin/bad_so_truncated.so", "-t", "h100", "-q"];
    assert_eq!(run(&[&cut[..], &["-o", &format!("json={kept}")]].concat()).code, 2);
    assert_eq!(run(&[&cut[..], &["--baseline", &kept]].concat()).code, 2);
}

#[test]
fn several_images_have_their_own_baselines() {
    let dir = tempfile::tempdir().unwrap();
    let lines = dir.path().join("lines.json").to_str().unwrap().to_owned();
    let scan = |more: &[&str]| {
        run(&[&["scan", CU126, CU128, "-t", "RTX 5090@575", "-t", "p100@535", "-q"], more].concat())
    };
    assert_eq!(scan(&["-o", &format!("json={lines}")]).code, 1);
    assert_eq!(fs::read_to_string(&lines).unwrap().lines().count(), 2);
    assert_eq!(scan(&["--baseline", &lines]).code, 0);
    // Another image has no part in it.
    let other = run(&["scan", CU126, CU130, "-t", "p100@580", "--baseline", &lines]);
    assert_eq!(other.code, 1);
    assert!(other.err.contains("the baseline has no report of") && other.err.contains("s5.tar"), "{other:?}");
}

#[test]
fn what_is_no_baseline_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let evidence = dir.path().join("evidence.json").to_str().unwrap().to_owned();
    run(&["scan", CU126, "--save-evidence", &evidence, "-q"]);
    let scan = |file: &str| run(&["scan", CU126, "--baseline", file, "-q"]);
    scan(&path("empty.json", "")).refused(&["empty.json is no baseline", "it is empty", "-o json=FILE"]);
    scan(&path("text.json", "hello")).refused(&["it is not JSON"]);
    scan(&path("list.json", "[]")).refused(&["JSON of another kind"]);
    scan(&evidence).refused(&["JSON of another kind"]);
    scan(&dir.path().join("none").display().to_string()).refused(&["none: No such file"]);
    let lint = dir.path().join("lint.json").to_str().unwrap().to_owned();
    fs::write(dir.path().join("Dockerfile"), "FROM scratch\n").unwrap();
    run(&["lint", dir.path().to_str().unwrap(), "-o", &format!("json={lint}"), "-q"]);
    scan(&lint).refused(&["a report of Dockerfiles"]);
    let newer = fs::read_to_string(&lint).unwrap().replacen("\"schema\": 1", "\"schema\": 7", 1);
    scan(&path("newer.json", &newer)).refused(&["it has schema 7, this program reads 1"]);
}

#[test]
fn lint_has_baselines_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("Dockerfile");
    let text = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"8.0\"\nRUN pip install --no-binary :all: flash-attn==2.8.3\n";
    fs::write(&file, text).unwrap();
    let (folder, kept) = (dir.path().to_str().unwrap(), dir.path().join("kept.json").to_str().unwrap().to_owned());
    let lint = |more: &[&str]| {
        run(&[&["lint", folder, "-t", "h100@550", "-q", "--format", "json", "--fail-on", "note"], more].concat())
    };
    let first = lint(&["-o", &format!("json={kept}")]);
    let all = first.json()["findings"].as_array().unwrap().len();
    assert!(first.code == 1 && all > 0, "{first:?}");
    // Lines above move nothing.
    fs::write(&file, format!("# a comment\n\n{text}")).unwrap();
    let again = lint(&["--baseline", &kept]);
    assert_eq!((again.code, again.json()["known"].as_array().unwrap().len()), (0, all), "{again:?}");
    let image = dir.path().join("image.json").to_str().unwrap().to_owned();
    run(&["scan", CU126, "-o", &format!("json={image}"), "-q"]);
    lint(&["--baseline", &image]).refused(&["a report of an image"]);
}

#[test]
fn sizes_are_told_when_they_are_asked_for() {
    let plain = run(&["scan", CU126, "-t", "a100@535", "--format", "json", "-q"]);
    assert!(plain.json().get("sizes").is_none());
    let report = run(&["scan", CU126, "-t", "a100@535", "--sizes", "--format", "json", "-q"]).json();
    let sizes = &report["sizes"];
    let listed =
        report["device_code"].as_array().unwrap().iter().map(|d| d["bytes"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sizes["bytes"], listed);
    let row = |arch: &str| sizes["archs"].as_array().unwrap().iter().find(|a| a["arch"] == arch).unwrap();
    assert_eq!((&row("sm_80")["unused"], &row("sm_50")["unused"]), (&0.into(), &row("sm_50")["bytes"]));
    let unused: u64 = sizes["archs"].as_array().unwrap().iter().map(|a| a["unused"].as_u64().unwrap()).sum();
    assert_eq!(sizes["unused"]["bytes"], unused);
    let untargeted = run(&["scan", CU126, "--sizes", "--format", "json", "-q"]).json();
    assert_eq!((&untargeted["sizes"]["bytes"], untargeted["sizes"].get("unused")), (&listed.into(), None));
    let table = run(&["scan", CU126, "-t", "a100@535", "--sizes", "-q"]).out;
    assert!(
        table.contains("SIZES") && table.contains("NO TARGET") && table.contains("a rebuild for these targets")
    );
}
