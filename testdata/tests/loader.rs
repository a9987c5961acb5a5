//! The laws of the dynamic loader: what the real ones answered about small trees (testdata/loader), held without them.

use crate::common;

use std::collections::BTreeMap;

use common::{run, testdata};
use serde_json::Value;

/// By file, then by name: (found, why).
type Needs = BTreeMap<String, BTreeMap<String, (Option<String>, String)>>;

fn needs(image: &str) -> Needs {
    let ran = run(&["scan", image, "--format", "json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut out = Needs::new();
    for library in ran.json()["libraries"].as_array().unwrap() {
        let row = out.entry(library["path"].as_str().unwrap().to_owned()).or_default();
        for need in library["needs"].as_array().unwrap() {
            let found = need["found"].as_str().map(str::to_owned);
            let why = need["why"].as_str().unwrap_or_default().to_owned();
            row.insert(need["soname"].as_str().unwrap().to_owned(), (found, why));
        }
    }
    out
}

#[test]
fn answers_are_those_of_the_real_loaders() {
    let dir = tempfile::tempdir().unwrap();
    let packed = std::fs::File::open(testdata().join("loader/cases.tar.zst")).unwrap();
    tar::Archive::new(zstd::stream::Decoder::new(packed).unwrap()).unpack(dir.path()).unwrap();
    let layout = dir.path().join("oci").to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(testdata().join("loader/expect.json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    assert!(expected.len() >= 40);
    let mut wrong = Vec::new();
    for (case, expected) in &expected {
        let needs = needs(&format!("oci:{layout}:{case}"));
        for (path, names) in expected["needs"].as_object().unwrap() {
            for (name, real) in names.as_object().unwrap() {
                let (found, why) = &needs[path][name];
                let elsewhere = expected["elsewhere"][path][name].as_str();
                let same = match real.as_str() {
                    // A file stands in the way, and its path is told.
                    Some("refused") => found.is_none() && why.contains('/'),
                    Some(real) => found.as_deref() == Some(real),
                    None => found.as_deref() == elsewhere,
                };
                if !same {
                    wrong.push(format!("{case}: {path} {name}: {found:?} ({why}), not {real} {elsewhere:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
