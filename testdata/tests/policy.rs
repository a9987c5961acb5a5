//! What is judged by a policy cannot make itself easier.

use crate::{common, served};

use std::fs;
use std::path::Path;

use common::{Ran, finish, program, testdata};
use imagelint::model::Digest;
use serde_json::{Value, json};
use served::{Reply, Server};

/// A change: its own imagelint.toml, which lets everything pass, and a Dockerfile whose comments do.
fn change() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let fleet = r#"
[[target]]
name = "training"
gpu = "A100"
driver = "550"
[[target]]
name = "new-workstations"
gpu = "RTX 5090"
driver = "575.57.08"
required = false
[rules]
"no-device-code-for-target" = "off"
[[waiver]]
rule = "libraries-of-other-sets"
path = "opt/**"
reason = "trust me"
expires = "2999-01-01"
"#;
    fs::write(dir.path().join("imagelint.toml"), fleet).unwrap();
    let dockerfile = "FROM ubuntu:24.04\n# imagelint: ignore[dockerfile-syntax] trust me\nINSTALL curl\n";
    fs::write(dir.path().join("Dockerfile"), dockerfile).unwrap();
    dir
}

fn policy() -> String {
    testdata().join("images/imagelint.toml").display().to_string()
}

fn within(dir: &Path, args: &[&str]) -> Ran {
    finish(program().current_dir(dir).args(args))
}

fn weakened(report: &Value) -> Vec<String> {
    let lines = report["policy"]["weakened"].as_array().unwrap();
    lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_image_is_judged_by_the_policy_alone() {
    let dir = change();
    let image = testdata().join("images/sample.tar").display().to_string();
    let own = within(dir.path(), &["scan", &image, "--format", "json"]);
    assert_eq!(own.code, 0, "its own file lets it pass: {own:?}");
    assert_eq!(own.json().get("policy"), None);
    let judged = within(dir.path(), &["scan", &image, "--format", "json", "--policy", &policy()]);
    assert_eq!(judged.code, 1, "{judged:?}");
    let report = judged.json();
    let digest = Digest::of(&fs::read(policy()).unwrap());
    assert_eq!(report["policy"]["digest"], json!(digest.to_string()));
    let told = weakened(&report).join("\n");
    for what in [
        "the target training has 550, not 535.183.01",
        "the target workstations is left out",
        "the target new-workstations is not required",
        "no-device-code-for-target is set to off, not error",
        "libraries-of-other-sets is waived in line",
    ] {
        assert!(told.contains(what), "{what}: {told}");
    }
    assert_eq!(judged.err.matches("note: the policy counts, not what is beside the change").count(), 5);
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["waived"], json!([]));
    // The same where the change's file is named.
    let named = within(
        dir.path(),
        &["scan", &image, "--format", "json", "--policy", &policy(), "--fleet", "imagelint.toml"],
    );
    assert_eq!((named.code, named.out), (1, judged.out));
    // Where nothing was made easier, nothing is told.
    let same =
        within(testdata().join("images").as_path(), &["scan", &image, "--format", "json", "--policy", &policy()]);
    assert_eq!(weakened(&same.json()), [""; 0]);
}

#[test]
fn comments_in_what_is_judged_do_not_count() {
    let dir = change();
    assert_eq!(within(dir.path(), &["lint", "--format", "json"]).code, 0);
    let judged = within(dir.path(), &["lint", "--format", "json", "--policy", &policy()]);
    assert_eq!(judged.code, 1, "{judged:?}");
    let report = judged.json();
    let finding = &report["findings"][0];
    assert_eq!(finding["rule"], "dockerfile-syntax", "{report:#}");
    assert!(finding["because"].to_string().contains("the comment in line 2"), "{finding}");
    assert_eq!(report["waived"], json!([]));
    assert!(
        weakened(&report).contains(&"Dockerfile:2: a comment accepts dockerfile-syntax".to_owned()),
        "{report:#}"
    );
    // Beside an image as well.
    let image = testdata().join("images/sample.tar").display().to_string();
    let args = ["scan", &image, "--dockerfile", "Dockerfile", "--format", "json", "--policy", &policy()];
    let report = within(dir.path(), &args).json();
    assert!(report["findings"].as_array().unwrap().iter().any(|f| f["rule"] == "dockerfile-syntax"), "{report:#}");
}

#[test]
fn a_file_of_the_change_that_cannot_be_read_stops_nothing() {
    let dir = change();
    fs::write(dir.path().join("imagelint.toml"), "[[target]\n").unwrap();
    let image = testdata().join("images/sample.tar").display().to_string();
    let judged = within(dir.path(), &["scan", &image, "--format", "json", "--policy", &policy()]);
    assert_eq!(judged.code, 1, "{judged:?}");
    assert!(weakened(&judged.json())[0].contains("cannot be read"), "{judged:?}");
}

#[test]
fn a_policy_of_rules_alone_leaves_the_targets_open() {
    let dir = change();
    fs::write(dir.path().join("rules.toml"), "[rules]\n\"jit-at-start\" = \"error\"\n").unwrap();
    let image = testdata().join("images/sample.tar").display().to_string();
    let judged = within(dir.path(), &["scan", &image, "--format", "json", "--policy", "rules.toml", "-t", "t4"]);
    assert_eq!(judged.json()["targets"].as_array().map(Vec::len), Some(1), "{judged:?}");
    let judged = within(dir.path(), &["scan", &image, "--format", "json", "--policy", "rules.toml"]);
    assert_eq!(judged.json()["targets"].as_array().map(Vec::len), Some(2), "{judged:?}");
}

#[test]
fn waivers_may_stand_in_a_file_of_their_own() {
    let dir = change();
    let image = testdata().join("images/sample.tar").display().to_string();
    let waiver = "[[waiver]]\nrule = \"no-device-code-for-target\"\ntargets = [\"new-workstations\"]\n\
                  reason = \"next quarter\"\nexpires = \"2999-01-01\"\n";
    fs::write(dir.path().join("waivers.toml"), waiver).unwrap();
    let scan = |file: &str| {
        let args = ["scan", &image, "--format", "json", "--policy", &policy(), "--waivers", file];
        within(dir.path(), &args)
    };
    let waived = scan("waivers.toml");
    assert_eq!(waived.code, 0, "{waived:?}");
    assert!(!waived.json()["waived"].as_array().unwrap().is_empty());
    let write = |text: &str| fs::write(dir.path().join("wrong.toml"), text).unwrap();
    write(&waiver.replace("new-workstations", "new-workstation"));
    scan("wrong.toml").refused(&["wrong.toml:3", "did you mean `new-workstations`?"]);
    write(&format!("{waiver}[rules]\n\"jit-at-start\" = \"off\"\n"));
    scan("wrong.toml").refused(&["wrong.toml:7", "holds no levels of rules", "--fleet or --policy"]);
    scan("none.toml").refused(&["none.toml"]);
    // The same of Dockerfiles.
    fs::write(
        dir.path().join("w.toml"),
        waiver
            .replace("no-device-code-for-target", "dockerfile-syntax")
            .replace("targets = [\"new-workstations\"]\n", ""),
    )
    .unwrap();
    let lint = within(dir.path(), &["lint", "--policy", &policy(), "--waivers", "w.toml", "--format", "json"]);
    assert_eq!(lint.code, 0, "{lint:?}");
}

#[test]
fn a_policy_may_be_on_a_server() {
    let text = fs::read(policy()).unwrap();
    let server = Server::start(move |request| match request.path.as_str() {
        "/policy.toml" => Reply::ok(text.clone()),
        "/large" => Reply::ok(vec![b'#'; 5 << 20]),
        "/moved" => Reply::status(302).with("location", "http://elsewhere.invalid/policy.toml"),
        "/broken" => Reply::page("text/plain", "[[target]\n"),
        _ => Reply::status(404),
    });
    let dir = change();
    let image = testdata().join("images/sample.tar").display().to_string();
    let scan = |url: &str| within(dir.path(), &["scan", &image, "--format", "json", "--policy", url]);
    let there = scan(&server.url("/policy.toml"));
    assert_eq!(there.code, 1, "{there:?}");
    assert_eq!(there.json()["policy"]["digest"], json!(Digest::of(&fs::read(policy()).unwrap()).to_string()));
    scan(&server.url("/none")).refused(&["/none", "not found"]);
    scan(&server.url("/large")).refused(&["larger than the limit"]);
    scan(&server.url("/moved")).refused(&["elsewhere.invalid"]);
    scan(&server.url("/broken")).refused(&["/broken"]);
    scan("http://policy.example/p.toml").refused(&["is not https", "--insecure-registry"]);
    let secret = scan("https://user:secret@policy.example/p.toml");
    secret.refused(&["name and password in an address"]);
    assert!(!secret.err.contains("secret"), "{secret:?}");
    scan("no/such.toml").refused(&["no/such.toml"]);
}
