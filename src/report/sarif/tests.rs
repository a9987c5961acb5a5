use serde_json::Value;

use super::super::sample;
use super::{log, of_files, of_image, percent};

fn value(runs: Vec<super::model::Run>) -> Value {
    serde_json::from_slice(&log(runs).unwrap()).unwrap()
}

/// Against the schema, and what it does not say: regions name a line, rules are there.
fn lawful(log: &Value) {
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/sarif/sarif-2.1.0.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(log).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for run in log["runs"].as_array().unwrap() {
        let mut prints = std::collections::BTreeSet::new();
        for result in run["results"].as_array().unwrap() {
            if let Some(index) = result["ruleIndex"].as_u64() {
                let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
                assert_eq!(rules[usize::try_from(index).unwrap()]["id"], result["ruleId"]);
            }
            if result.get("suppressions").is_none() {
                assert!(prints.insert(result["partialFingerprints"].to_string()), "twice: {result}");
            }
        }
    }
}

#[test]
fn logs_match_the_schema() {
    lawful(&value(vec![of_files(&sample::lint(), Some(1))]));
    for report in [sample::failing(), sample::wide(), sample::untargeted(), sample::hostile()] {
        lawful(&value(vec![of_image(&report, Some(1), false), of_image(&report, None, true)]));
    }
    let nothing = value(vec![]);
    lawful(&nothing);
    let wrong = serde_json::json!({ "version": "2.1.0", "runs": [{ "results": [] }] });
    assert!(std::panic::catch_unwind(|| lawful(&wrong)).is_err(), "the schema refuses what has no tool");
}

#[test]
fn places_fixes_and_suppressions_are_told() {
    let mut report = sample::lint();
    report.base = "sub dir/".into();
    let log = value(vec![of_files(&report, Some(1))]);
    let run = &log["runs"][0];
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    assert_eq!(run["invocations"][0]["exitCode"], 1);
    let gap = &run["invocations"][0]["toolExecutionNotifications"][0];
    assert_eq!(gap["locations"][0]["physicalLocation"]["region"]["startLine"], 6);
    let result =
        |rule: &str| run["results"].as_array().unwrap().iter().find(|r| r["ruleId"] == rule).unwrap().clone();
    let archs = result("arch-list-misses-target");
    assert_eq!(archs["level"], "error");
    let place = &archs["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "sub%20dir/docker/Dockerfile.gpu");
    assert_eq!(
        place["region"],
        serde_json::json!({ "startLine": 4, "startColumn": 27, "endLine": 4, "endColumn": 34 })
    );
    assert_eq!(archs["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 9);
    let change = &archs["fixes"][0]["artifactChanges"][0];
    assert_eq!(change["replacements"][0]["insertedContent"]["text"], " 9.0");
    assert_eq!(change["replacements"][0]["deletedRegion"]["endColumn"], 34);
    assert_eq!(result("ld-path-overwrite")["level"], "warning");
    assert_eq!(result("waiver-unmatched")["level"], "note");
    let last = run["results"].as_array().unwrap().last().unwrap();
    assert_eq!(last["suppressions"][0]["kind"], "inSource");
    assert_eq!(last["suppressions"][0]["justification"], "kernels are compiled at start");
    let rule = &run["tool"]["driver"]["rules"][0];
    assert!(rule["help"]["markdown"].as_str().unwrap().starts_with("# "));
}

#[test]
fn an_image_s_findings_have_a_place_and_a_print_that_other_builds_share() {
    let mut report = sample::failing();
    let before = value(vec![of_image(&report, Some(1), true)]);
    for result in before["runs"][0]["results"].as_array().unwrap() {
        assert!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].is_string(), "{result}");
    }
    assert_eq!(before["runs"][0]["automationDetails"]["id"], "imagelint 127.0.0.1:5001/serve:2.7.0/");
    for finding in &mut report.findings {
        finding.layer = None;
        finding.message.push_str(" and more");
    }
    let after = value(vec![of_image(&report, Some(1), true)]);
    for (a, b) in
        before["runs"][0]["results"].as_array().unwrap().iter().zip(after["runs"][0]["results"].as_array().unwrap())
    {
        assert_eq!(a["partialFingerprints"], b["partialFingerprints"]);
    }
}

#[test]
fn uris_are_encoded() {
    assert_eq!(percent("a b/ü:#?%.so".as_bytes()), "a%20b/%C3%BC%3A%23%3F%25.so");
}
