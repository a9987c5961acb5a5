//! `--rules DIR`: rows merged over the embedded ones.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{finish, program, run, testdata, valid};

/// A folder of rules with these files.
fn rules(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn path(dir: &TempDir) -> &str {
    dir.path().to_str().unwrap()
}

const GPU: &str = r#"# Of our lab.
[[gpu]]
name = "Lab GPU 9"
cc = "9.0"
class = "datacenter"
brand = "nvidia"
smi = ["NVIDIA Lab GPU 9"]
source = "lab inventory"
status = "measured"
"#;

const SAMPLE: [&str; 2] = ["scan", "docker-archive:images/sample.tar"];

#[test]
fn a_row_of_ones_own_is_a_target() {
    let dir = rules(&[("gpus.toml", GPU), ("README.md", "ours"), (".hidden", "x")]);
    let scan =
        |rest: &[&str]| run(&[&SAMPLE[..], &["--target", "lab-gpu-9@535", "--format", "json"], rest].concat());
    scan(&[]).refused(&["lab-gpu-9"]);
    let ran = scan(&["--rules", path(&dir)]);
    assert!(ran.err.contains("1 row added to the catalog, 0 replaced (gpus.toml)"), "{ran:?}");
    let report = ran.json();
    valid(&testdata().join("../rules/report.schema.json"), &report);
    assert_eq!(report["targets"][0]["gpu"], "Lab GPU 9");
    assert_eq!(report["targets"][0]["arch"], "sm_90");
    let catalog = &report["tool"]["catalog"];
    assert_eq!(catalog["rules"], serde_json::json!({ "files": ["gpus.toml"], "added": 1, "replaced": 0 }));
    // The same verdict as of the product that it is like; another catalog.
    let like = run(&[&SAMPLE[..], &["--target", "h100@535", "--format", "json"]].concat()).json();
    assert_eq!(report["targets"][0]["verdict"], like["targets"][0]["verdict"]);
    assert_ne!(catalog["digest"], like["tool"]["catalog"]["digest"]);
    assert!(like["tool"]["catalog"].get("rules").is_none());
}

#[test]
fn every_command_takes_the_rows() {
    let dir = rules(&[("gpus.toml", GPU)]);
    let ran = finish(program().args(["gpus"]).env("IMAGELINT_RULES", dir.path()));
    assert!(ran.out.contains("Lab GPU 9"), "{ran:?}");
    assert!(!run(&["gpus"]).out.contains("Lab GPU 9"));
    let dockerfile = "FROM ubuntu:24.04\n";
    fs::write(dir.path().join("README.md"), dockerfile).unwrap();
    let file = dir.path().join("README.md");
    let file = file.to_str().unwrap();
    let lint = |rest: &[&str]| run(&[&["lint", file, "--target", "lab-gpu-9", "--format", "json"], rest].concat());
    lint(&[]).refused(&["lab-gpu-9"]);
    assert_eq!(lint(&["--rules", path(&dir)]).json()["tool"]["catalog"]["rules"]["added"], 1);
    let plan = ["plan", SAMPLE[1], "--target", "lab-gpu-9", "--emit", "json", "--rules", path(&dir)];
    assert_eq!(run(&plan).code, run(&["plan", SAMPLE[1], "--target", "h100", "--emit", "json"]).code);
    let markdown = run(&[&SAMPLE[..], &["--rules", path(&dir), "--format", "markdown"]].concat());
    assert!(markdown.out.contains("with --rules: 1 rows added"), "{markdown:?}");
}

#[test]
fn a_row_of_the_same_name_replaces_the_embedded_one() {
    // A driver branch that our nodes' vendor has patched to know more CUDA.
    let listed = run(&["toolkits", "--format", "json"]).json();
    let newest = listed.as_array().unwrap().last().unwrap()["cuda"].as_str().unwrap().to_owned();
    let text = format!(
        "[[toolkit]]\ncuda = \"{newest}\"\nptx_isa = \"99.9\"\nsm = [\"sm_90\", \"sm_100\", \"sm_103\", \"sm_110\", \"sm_120\", \"sm_121\"]\nsource = \"ours\"\n"
    );
    let dir = rules(&[("toolkits.toml", &text)]);
    let ran = run(&["toolkits", "--format", "json", "--rules", path(&dir)]);
    assert!(ran.err.contains("0 rows added to the catalog, 1 replaced (toolkits.toml)"), "{ran:?}");
    let rows = ran.json();
    assert_eq!(rows.as_array().unwrap().len(), listed.as_array().unwrap().len());
    assert_eq!(rows.as_array().unwrap().last().unwrap()["ptx_isa"], "99.9");
}

/// Where the message points, in the user's file, with the line and a caret.
#[test]
fn errors_point_into_the_user_s_file() {
    let refused = |name: &str, text: &str, words: &[&str]| {
        let dir = rules(&[(name, text)]);
        let ran = run(&["gpus", "--rules", path(&dir)]);
        ran.refused(words);
        ran.err
    };
    let err = refused(
        "gpus.toml",
        &GPU.replace("class =", "clss ="),
        &["gpus.toml:5:1: unknown key `clss`", "did you mean `class`?"],
    );
    assert!(err.contains("5 | clss = \"datacenter\"\n  | ^^^^\n"), "{err}");
    refused(
        "gpus.toml",
        &GPU.replace("9.0", "66.6"),
        &["gpus.toml:4:6:", "no toolkit compiles for 66.6", "^^^^^^"],
    );
    refused(
        "gpus.toml",
        &GPU.replace("source", "status")
            .replace("status = \"measured\"\n", "")
            .replace("status = \"lab inventory\"\n", ""),
        &["gpus.toml:2:1:", "says neither its source nor its status"],
    );
    refused("gpus.toml", "[[gpu]]\nname = \"x\"\nname", &["gpus.toml:3:"]);
    refused("gpus.toml", "[[gup]]\n", &["gpus.toml:1:3: unknown list or value `gup`", "did you mean `gpu`?"]);
    refused("catalog.toml", "as_of = \"soon\"\n", &["catalog.toml:1:1: `as_of` is not a day"]);
    refused("gpu.toml", GPU, &["no table is called so; did you mean gpus.toml?"]);
    refused("notes.txt", "", &["no table is called so; there are", "wheel_indexes.toml"]);
    // A name that another product has.
    let text = GPU.replace("brand =", "aliases = [\"H100\"]\nbrand =");
    refused("gpus.toml", &text, &["gpus.toml:2:1: [[gpu]] `Lab GPU 9`: `h100` is a name of"]);
    // The table as a whole: the only toolkit that compiles for a product is taken from it.
    let dir = rules(&[]);
    run(&["gpus", "--rules", path(&dir)]).refused(&["holds no tables; it may hold amd_gpus.toml"]);
    run(&["gpus", "--rules", "no/such"]).refused(&["no/such: cannot be read"]);
}

#[test]
fn what_is_no_plain_file_is_not_read() {
    let dir = rules(&[]);
    fs::create_dir(dir.path().join("gpus.toml")).unwrap();
    run(&["gpus", "--rules", path(&dir)]).refused(&["gpus.toml: cannot be read: is no regular file"]);
    let dir = rules(&[]);
    fs::write(dir.path().join("gpus.toml"), b"\xff\xfe").unwrap();
    run(&["gpus", "--rules", path(&dir)]).refused(&["gpus.toml: cannot be read"]);
    let dir = rules(&[]);
    let file = fs::File::create(dir.path().join("gpus.toml")).unwrap();
    file.set_len(9 << 20).unwrap();
    run(&["gpus", "--rules", path(&dir)]).refused(&["larger than 8 MiB"]);
}

/// What the cache keeps of a layer holds no fact of the catalog: rows count for layers that were read without them.
#[test]
fn rows_count_for_cached_layers() {
    let dir = rules(&[("gpus.toml", GPU)]);
    let cache = tempfile::tempdir().unwrap();
    let scan = |rules: Option<&Path>| {
        let mut command = program();
        command.env_remove("IMAGELINT_NO_CACHE").env("IMAGELINT_CACHE_DIR", cache.path());
        command.args(SAMPLE).args(["--target", "h100@535", "--stats", "--format", "json"]);
        rules.map(|dir| command.arg("--rules").arg(dir));
        finish(&mut command).json()
    };
    scan(None);
    let mut warm = scan(Some(dir.path()));
    assert!(warm["image"]["layers"].as_array().unwrap().iter().all(|l| l["cached"] == true), "{warm}");
    assert_eq!(warm["tool"]["catalog"]["rules"]["added"], 1);
    let mut cold =
        run(&[&SAMPLE[..], &["--target", "h100@535", "--format", "json", "--rules", path(&dir)]].concat()).json();
    for report in [&mut warm, &mut cold] {
        report["stats"] = serde_json::Value::Null;
        for layer in report["image"]["layers"].as_array_mut().unwrap() {
            layer.as_object_mut().unwrap().remove("cached");
        }
    }
    assert_eq!(warm, cold);
}

/// Findings of `catalog-stale` in a JSON report.
fn stale(report: &serde_json::Value, list: &str) -> usize {
    let all = report[list].as_array().unwrap();
    all.iter().filter(|f| f["rule"] == "catalog-stale").count()
}

#[test]
fn an_old_catalog_is_told_and_gates_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let dockerfile = dir.path().join("Dockerfile");
    fs::write(&dockerfile, "FROM ubuntu:24.04\n").unwrap();
    let dockerfile = dockerfile.to_str().unwrap();
    let scan = ["scan", "docker-archive:images/sample.tar", "--target", "t4@580", "--fail-on"];
    let on = |day: &str, args: &[&str]| finish(program().args(args).env("IMAGELINT_TODAY", day));
    let scan_json = [&scan[..], &["never", "--format", "json"]].concat();
    let lint_json = ["lint", dockerfile, "--format", "json"].to_vec();
    let beside = [&scan[..], &["never", "--dockerfile", dockerfile, "--format", "json"]].concat();
    for args in [&scan_json, &lint_json, &beside] {
        let fresh = on("2027-05-29", args);
        assert_eq!(stale(&fresh.json(), "findings"), 0, "{fresh:?}");
        // But for the note, a day changes nothing.
        let old = on("2027-05-30", args);
        let mut report = old.json();
        assert_eq!(stale(&report, "findings"), 1, "{old:?}");
        report["findings"].as_array_mut().unwrap().retain(|f| f["rule"] != "catalog-stale");
        assert_eq!(report, fresh.json());
        assert_eq!(old.code, fresh.code);
    }
    assert_eq!(on("2027-05-30", &["lint", dockerfile, "--fail-on", "warning"]).code, 0);
    assert_eq!(on("2027-05-30", &["lint", dockerfile, "--fail-on", "note"]).code, 1);
    assert_eq!(on("2027-05-29", &["lint", dockerfile, "--fail-on", "note"]).code, 0);
    let text = on("2027-05-30", &["lint", dockerfile]);
    assert!(text.out.contains("the catalog is of 2026-11-30, 181 days ago"), "{text:?}");
    // Newer rows with their day make it fresh; a waiver accepts it; a level silences it.
    fs::write(dir.path().join("catalog.toml"), "as_of = \"2027-05-01\"\n").unwrap();
    let rules = rules(&[("catalog.toml", "as_of = \"2027-05-01\"\n")]);
    let newer = on("2027-05-30", &[&lint_json[..], &["--rules", path(&rules)]].concat());
    assert_eq!(stale(&newer.json(), "findings"), 0, "{newer:?}");
    let fleet = dir.path().join("fleet.toml");
    let waiver = "[[waiver]]\nrule = \"catalog-stale\"\nreason = \"frozen\"\nexpires = \"2027-12-31\"\n";
    for (text, waived) in [(waiver, 1), ("[rules]\ncatalog-stale = \"off\"\n", 0)] {
        fs::write(&fleet, text).unwrap();
        let ran = on("2027-05-30", &[&lint_json[..], &["--fleet", fleet.to_str().unwrap()]].concat()).json();
        assert_eq!((stale(&ran, "findings"), stale(&ran, "waived")), (0, waived), "{ran}");
    }
}
