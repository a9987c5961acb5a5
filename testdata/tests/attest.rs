//! `--attest`: an in-toto statement, and the policy that lets images in by it.

use std::fs;
use std::rc::Rc;

use jmespath::functions::{ArgumentType, CustomFunction, Signature};
use jmespath::{Runtime, Variable};
use serde_json::{Value, json};

use crate::common::{Ran, TODAY, finish, program, run, testdata, valid};

const SAMPLE: &str = "docker-archive:images/sample.tar";

/// The statement of a scan, held against its schema, and the run.
fn attest(args: &[&str]) -> (Value, Ran) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("statement.json");
    let ran = run(&[&["scan"], args, &["--attest", file.to_str().unwrap()]].concat());
    let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    let statement = serde_json::from_str(&text).unwrap();
    valid(&testdata().join("../rules/attestation.schema.json"), &statement);
    (statement, ran)
}

#[test]
fn a_statement_is_of_the_manifest_and_says_what_the_report_says() {
    let args = [SAMPLE, "--fleet", "images/imagelint.toml", "--format", "json"];
    let (statement, ran) = attest(&args);
    let report = ran.json();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "urn:imagelint:attestation:v1");
    let digest = report["image"]["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    assert_eq!(statement["subject"], json!([{ "name": "images/sample.tar", "digest": { "sha256": digest } }]));
    let predicate = &statement["predicate"];
    assert_eq!(predicate["tool"], report["tool"]);
    assert_eq!(predicate["verdict"], report["image"]["verdict"]);
    assert_eq!((predicate["result"].as_str(), predicate["fail_on"].as_str()), (Some("fail"), Some("error")));
    assert_eq!(ran.code, 1);
    let targets = report["targets"].as_array().unwrap();
    assert!(targets.len() > 1);
    for (attested, judged) in predicate["targets"].as_array().unwrap().iter().zip(targets) {
        for (key, value) in attested.as_object().unwrap() {
            assert_eq!(value, &judged[key], "{key}");
        }
    }
    let count = |severity: &str| {
        report["findings"].as_array().unwrap().iter().filter(|f| f["severity"] == severity).count()
    };
    for severity in ["error", "warning", "note"] {
        assert_eq!(predicate["findings"][severity], count(severity), "{severity}");
    }
    assert_eq!(predicate["findings"]["waived"], report["waived"].as_array().unwrap().len());
    assert!(predicate["findings"].get("known").is_none() && predicate.get("policy").is_none());
    // The same again, byte by byte: nothing of the day or the machine is in it.
    assert_eq!(attest(&args).0.to_string(), statement.to_string());
    assert!(!statement.to_string().contains(env!("CARGO_MANIFEST_DIR")));
}

#[test]
fn how_it_was_judged_is_in_it() {
    let (never, _) = attest(&[SAMPLE, "--target", "a100", "--fail-on", "never", "--allow-gaps"]);
    assert_eq!(never["predicate"]["result"], "pass");
    assert_eq!(
        (&never["predicate"]["fail_on"], &never["predicate"]["allow_gaps"]),
        (&json!("never"), &json!(true))
    );
    let (policy, _) = attest(&[SAMPLE, "--policy", "images/imagelint.toml"]);
    let report = run(&["scan", SAMPLE, "--policy", "images/imagelint.toml", "--format", "json"]).json();
    assert_eq!(policy["predicate"]["policy"], report["policy"]["digest"]);
    assert!(policy["predicate"]["policy"].as_str().unwrap().starts_with("sha256:"));
    let rules = tempfile::tempdir().unwrap();
    fs::write(rules.path().join("catalog.toml"), "as_of = \"2025-01-01\"\n").unwrap();
    let (old, _) = attest(&[SAMPLE, "--target", "a100", "--rules", rules.path().to_str().unwrap()]);
    assert_eq!(old["predicate"]["tool"]["catalog"]["as_of"], "2025-01-01");
    assert_eq!(old["predicate"]["tool"]["catalog"]["rules"]["replaced"], 1);
}

/// An image of several platforms is judged platform by platform: each manifest is a subject.
#[test]
fn every_platform_s_manifest_is_a_subject() {
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("scan.json");
    let saved = saved.to_str().unwrap();
    run(&["scan", SAMPLE, "--save-evidence", saved]);
    let amd: Value = serde_json::from_str(&fs::read_to_string(saved).unwrap()).unwrap();
    let mut arm = amd.clone();
    arm["image"]["digest"] = json!(format!("sha256:{}", "a".repeat(64)));
    arm["image"]["platform"] = json!("linux/arm64");
    fs::write(saved, format!("{amd}\n{arm}\n")).unwrap();
    let args = ["--from-evidence", saved, "--target", "a100", "--target", "gh200", "--fail-on", "never"];
    let (statement, _) = attest(&args);
    let subjects: Vec<&str> =
        statement["subject"].as_array().unwrap().iter().map(|s| s["digest"]["sha256"].as_str().unwrap()).collect();
    let own = amd["image"]["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let mut expected = [own, &"a".repeat(64)].map(str::to_owned);
    expected.sort();
    assert_eq!(subjects, expected);
    let targets = &statement["predicate"]["targets"];
    assert_eq!((&targets[0]["platform"], &targets[1]["platform"]), (&json!("linux/amd64"), &json!("linux/arm64")));
    // One that has no digest leaves nothing to be said of the whole.
    arm["image"].as_object_mut().unwrap().remove("digest");
    fs::write(saved, format!("{amd}\n{arm}\n")).unwrap();
    let file = dir.path().join("s.json");
    run(&[&["scan"], &args[..], &["--attest", file.to_str().unwrap()]].concat()).lacking(&["has no manifest"]);
    assert!(!file.exists());
}

#[test]
fn what_has_no_manifest_or_is_several_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.json");
    let attest = ["--attest", file.to_str().unwrap(), "--target", "a100"];
    for image in ["dir:builders/images/rootfs", "docker-archive:builders/images/docker-24.tar"] {
        let ran = run(&[&["scan", image], &attest[..]].concat());
        ran.lacking(&["has no manifest, so no digest", "pushing it, and scanning what the registry has"]);
    }
    let ran = run(&[&["scan", SAMPLE, "oci:builders/images/umoci.oci"], &attest[..]].concat());
    ran.lacking(&["a statement is about one image", "one run an image"]);
    run(&[&["scan", "no-such.tar"], &attest[..]].concat()).refused(&["no-such.tar"]);
    assert!(!file.exists());
    let ran = run(&["scan", SAMPLE, "--target", "a100", "--attest", "no/such/folder/s.json"]);
    ran.lacking(&["no/such/folder/s.json cannot be written"]);
}

/// Hours between two days, as Kyverno's `time_since` writes a duration.
fn hours_since(day: &str) -> String {
    let days = |day: &str| {
        let parts: Vec<i64> = day.split('-').map(|p| p.parse().unwrap()).collect();
        // Days by civil calendar, from the first of March of year 0.
        let (y, m) = if parts[1] <= 2 { (parts[0] - 1, parts[1] + 9) } else { (parts[0], parts[1] - 3) };
        365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + parts[2]
    };
    format!("{}h0m0s", 24 * (days(TODAY) - days(day)))
}

/// JMESPath as Kyverno has it, with the function that the policy takes.
fn runtime() -> Runtime {
    let mut runtime = Runtime::new();
    runtime.register_builtin_functions();
    let text = || ArgumentType::String;
    let since = CustomFunction::new(
        Signature::new(vec![text(), text(), text()], None),
        Box::new(|args, _| {
            let arg = |at: usize| args[at].as_string().unwrap().as_str();
            assert_eq!((arg(0), arg(2)), ("2006-01-02", ""), "a day, until now");
            Ok(Rc::new(Variable::String(hours_since(arg(1)))))
        }),
    );
    runtime.register_function("time_since", Box::new(since));
    runtime
}

/// A value of the policy with its `{{ JMESPath }}` resolved; a path that leads nowhere is no condition.
fn resolved(value: &Value, predicate: &Value) -> Value {
    let Some(path) = value.as_str().and_then(|t| t.strip_prefix("{{")?.strip_suffix("}}")) else {
        return value.clone();
    };
    let runtime = runtime();
    let found =
        runtime.compile(path.trim()).unwrap().search(Variable::from_serializable(predicate).unwrap()).unwrap();
    let found = serde_json::to_value(&*found).unwrap();
    assert!(!found.is_null(), "{path} leads nowhere");
    found
}

fn hours(duration: &Value) -> u64 {
    duration.as_str().unwrap().split('h').next().unwrap().parse().unwrap()
}

/// Which conditions of the policy an attestation does not meet, by their keys.
fn unmet(policy: &Value, statement: &Value) -> Vec<String> {
    let attestation = &policy["spec"]["rules"][0]["verifyImages"][0]["attestations"][0];
    assert_eq!(attestation["type"], statement["predicateType"]);
    let mut unmet = Vec::new();
    for condition in attestation["conditions"][0]["all"].as_array().unwrap() {
        let key = resolved(&condition["key"], &statement["predicate"]);
        let value = resolved(&condition["value"], &statement["predicate"]);
        let holds = match condition["operator"].as_str().unwrap() {
            "Equals" => key == value,
            "AllIn" => key.as_array().unwrap().iter().all(|k| value.as_array().unwrap().contains(k)),
            "LessThanOrEquals" => hours(&key) <= hours(&value),
            other => panic!("{other} is not evaluated here"),
        };
        if !holds {
            unmet.push(condition["key"].to_string());
        }
    }
    unmet
}

#[test]
fn the_policy_lets_in_what_runs_and_nothing_else() {
    let text = fs::read_to_string(testdata().join("deploy/kyverno-require-imagelint.yaml")).unwrap();
    let policy: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(
        (policy["apiVersion"].as_str(), policy["kind"].as_str()),
        (Some("kyverno.io/v1"), Some("ClusterPolicy"))
    );
    let conditions = &policy["spec"]["rules"][0]["verifyImages"][0]["attestations"][0]["conditions"][0]["all"];
    assert_eq!(conditions.as_array().unwrap().len(), 5);
    // An image without GPU code runs anywhere.
    let rootfs = "oci:builders/images/umoci.oci";
    let fleet = |names: &[(&str, &str)]| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("fleet.toml");
        let rows = names.iter().map(|(name, gpu)| format!("[[target]]\nname = \"{name}\"\ngpu = \"{gpu}\"\n"));
        fs::write(&file, rows.collect::<String>()).unwrap();
        (dir, file.to_str().unwrap().to_owned())
    };
    let (_dir, ours) = fleet(&[("a100", "A100"), ("t4", "T4")]);
    let (good, ran) = attest(&[SAMPLE, "--fleet", &ours, "--fail-on", "never"]);
    let verdicts: Vec<&str> =
        good["predicate"]["targets"].as_array().unwrap().iter().map(|t| t["verdict"].as_str().unwrap()).collect();
    let runs = verdicts.iter().all(|v| ["ok", "warn", "slow"].contains(v));
    let names = |unmet: &[String], part: &str| unmet.iter().any(|key| key.contains(part));
    assert_eq!(names(&unmet(&policy, &good), "required"), !runs, "{verdicts:?} {ran:?}");
    // One that is good for all of them.
    let (good, ran) = attest(&[rootfs, "--fleet", &ours, "--fail-on", "never"]);
    assert_eq!(good["predicate"]["result"], "pass", "{ran:?}");
    let mut passing = good.clone();
    for target in passing["predicate"]["targets"].as_array_mut().unwrap() {
        target["verdict"] = json!("slow");
    }
    assert_eq!(unmet(&policy, &passing), Vec::<String>::new());
    // What each condition is for.
    let (_dir, others) = fleet(&[("a100", "A100"), ("h100", "H100")]);
    let (other, _) = attest(&[rootfs, "--fleet", &others, "--fail-on", "never"]);
    assert!(names(&unmet(&policy, &other), "t4"), "not judged for the T4");
    for verdict in ["fail", "unknown", "blocked", "cpu"] {
        let mut bad = passing.clone();
        bad["predicate"]["targets"][0]["verdict"] = json!(verdict);
        assert_eq!(unmet(&policy, &bad).len(), 1, "{verdict}");
        bad["predicate"]["targets"][0]["required"] = json!(false);
        assert_eq!(unmet(&policy, &bad).len(), 0, "{verdict} of a target that is not required");
    }
    for (pointer, value) in [
        ("/predicate/result", json!("unanswered")),
        ("/predicate/allow_gaps", json!(true)),
        ("/predicate/tool/catalog/as_of", json!("2026-06-03")),
    ] {
        let mut bad = passing.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert_eq!(unmet(&policy, &bad).len(), 1, "{pointer}");
    }
    let mut fresh = passing.clone();
    *fresh.pointer_mut("/predicate/tool/catalog/as_of").unwrap() = json!("2026-06-04");
    assert_eq!(unmet(&policy, &fresh), Vec::<String>::new());
}

#[test]
fn the_statement_is_written_beside_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.json");
    for format in ["table", "markdown", "sarif"] {
        let mut command = program();
        command.args(["scan", SAMPLE, "--target", "a100", "--format", format, "--attest"]).arg(&file);
        assert!(finish(&mut command).code < 2);
        fs::remove_file(&file).unwrap();
    }
}
