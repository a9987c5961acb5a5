//! Files that are made from the sources: fresh, whole, and their links lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fancy_regex::Regex;
use serde_json::Value;

use crate::common::{run, testdata};

fn root() -> PathBuf {
    testdata().parent().unwrap().to_owned()
}

#[test]
fn every_generated_file_is_fresh() {
    let ran = run(&["generate", "--check", "--root", root().to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "`cargo run -- generate` writes them anew: {ran:?}");
}

/// What it writes is what it checks; a file that somebody changed is told and made anew.
#[test]
fn what_is_stale_is_told_and_written() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let place = dir.path().to_str().unwrap();
    run(&["generate", "--root", place]).refused(&["is not the root of imagelint's own repository"]);
    for name in ["rules/data", "rules/lints", "rules/verdicts"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    fs::write(at("Cargo.toml"), "").unwrap();
    fs::write(at("rules/data/catalog.toml"), "").unwrap();
    let check = || run(&["generate", "--check", "--root", place]);
    let missing = check();
    assert_eq!(missing.code, 1);
    let written = run(&["generate", "--root", place]);
    assert_eq!(written.out, missing.out.replace("stale: ", "written: "));
    assert_eq!((check().code, check().out.as_str()), (0, ""));
    for line in written.out.lines() {
        let name = line.strip_prefix("written: ").unwrap();
        assert_eq!(fs::read(at(name)).unwrap(), fs::read(root().join(name)).unwrap(), "{name}");
    }
    fs::write(at("rules/verdicts/ok.md"), "# ok\n").unwrap();
    let stale = check();
    assert_eq!((stale.code, stale.out.as_str()), (1, "stale: rules/verdicts/ok.md\n"));
    assert!(stale.err.contains("cargo run -- generate"), "{stale:?}");
}

#[test]
fn every_schema_that_is_kept_is_generated() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["rules/data", "rules/lints", "rules/verdicts"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join("Cargo.toml"), "").unwrap();
    fs::write(dir.path().join("rules/data/catalog.toml"), "").unwrap();
    let written = run(&["generate", "--root", dir.path().to_str().unwrap()]).out;
    for entry in fs::read_dir(root().join("rules")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".schema.json") {
            assert!(written.contains(&format!("written: rules/{name}\n")), "{name} is not generated");
        }
    }
}

/// Relative links of the pages under rules/ lead to files that are there.
#[test]
fn links_of_the_pages_resolve() {
    let link = Regex::new(r"\]\(([^)#]+)(?:#[^)]*)?\)").unwrap();
    let mut count = 0;
    for folder in ["rules/data", "rules/lints", "rules/verdicts"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "md") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for found in link.captures_iter(&text) {
                let target = found.unwrap().get(1).unwrap().as_str().to_owned();
                if target.contains("://") {
                    continue;
                }
                count += 1;
                assert!(path.parent().unwrap().join(&target).is_file(), "{}: {target}", path.display());
            }
        }
    }
    assert!(count > 150, "only {count} links");
}

#[test]
fn the_index_has_every_rule_and_every_verdict_is_explained() {
    let index = fs::read_to_string(root().join("rules/lints/README.md")).unwrap();
    let rules = run(&["rules", "--format", "json"]).json();
    for rule in rules.as_array().unwrap() {
        let id = rule["id"].as_str().unwrap();
        assert!(index.contains(&format!("| [{id}]({id}.md) | {}", rule["severity"].as_str().unwrap())), "{id}");
    }
    for word in ["fail", "unknown", "blocked", "cpu", "slow", "warn", "ok"] {
        let ran = run(&["explain", word]);
        let kept = fs::read_to_string(root().join(format!("rules/verdicts/{word}.md"))).unwrap();
        assert_eq!((ran.code, ran.out), (0, kept));
    }
    run(&["explain", "blockd"]).refused(&["imagelint explain blocked"]);
}

/// What rules say of the cases is what the verdicts' pages say of the rules.
#[test]
fn pages_of_verdicts_name_the_rules_that_lead_there() {
    let rules = run(&["rules", "--format", "json"]).json();
    let of_images: BTreeSet<&str> = (rules.as_array().unwrap().iter())
        .filter(|r| r["judges"] == "image")
        .map(|r| r["id"].as_str().unwrap())
        .collect();
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    let mut collect = |report: &Value| {
        for finding in report["findings"].as_array().unwrap() {
            let (rule, verdict) = (finding["rule"].as_str().unwrap(), finding["verdict"].as_str().unwrap());
            if of_images.contains(rule) && verdict != "ok" {
                seen.insert((verdict.to_owned(), rule.to_owned()));
            }
        }
    };
    for entry in fs::read_dir(testdata().join("cases/images")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let fleet = format!("cases/fleets/{}", name.replace(".tar", ".toml"));
        collect(&run(&["scan", &format!("cases/images/{name}"), "--fleet", &fleet, "--format", "json"]).json());
    }
    assert!(seen.len() > 30, "{seen:?}");
    for (verdict, rule) in seen {
        let page = fs::read_to_string(root().join(format!("rules/verdicts/{verdict}.md"))).unwrap();
        assert!(page.contains(&format!("- [{rule}](../lints/{rule}.md)")), "{rule} leads to {verdict}");
    }
    assert!(Path::new(&root().join("rules/verdicts/README.md")).is_file());
}
