//! The GitHub Action: its steps, run as a runner does.

mod expression;
mod gate;
mod runner;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

use serde_json::Value;

use self::runner::{Action, Done, Job};
use crate::common::registry::{HTPASSWD, Registry, can_start};
use crate::common::{self, testdata};
use crate::served::{Reply, Server};

const FLEET: (&str, &str) = ("targets", "A100@535.183.01\nRTX 4090@550.54.15\r\n\n  \nRTX 5090@575.57.08\n");

fn sample() -> String {
    testdata().join("images/sample.tar").display().to_string()
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&fs::read_to_string(&done.outputs["json"]).unwrap()).unwrap()
}

/// What every run holds to.
fn told(done: &Done) {
    let result = match done.outputs["exit-code"].as_str() {
        "0" => "clean",
        "1" => "findings",
        "2" => "unanswered",
        other => panic!("exit {other}: {done:?}"),
    };
    assert_eq!(done.outputs["result"], result, "{done:?}");
}

#[test]
fn an_image_that_the_fleet_runs_passes() {
    let image = sample();
    let job =
        Job::new(&[("image", &image), ("targets", "A100@535.183.01"), ("output", "sub.json\nmarkdown=r.md\n")]);
    let mut job = job;
    job.inputs.insert("format".into(), "json".into());
    let done = job.run();
    told(&done);
    assert_eq!((done.code, done.outputs["result"].as_str()), (0, "clean"), "{done:?}");
    let report = json(&done);
    assert_eq!(done.outputs["digest"], report["image"]["digest"].as_str().unwrap());
    assert_eq!(done.outputs["errors"], "0");
    let sarif: Value = serde_json::from_str(&fs::read_to_string(&done.outputs["sarif"]).unwrap()).unwrap();
    common::valid(&testdata().join("sarif/sarif-2.1.0.schema.json"), &sarif);
    assert!(done.summary.contains("| ✅ ok |") && done.summary.contains("A100"), "{}", done.summary);
    let written: Value = serde_json::from_str(&fs::read_to_string(job.work().join("sub.json")).unwrap()).unwrap();
    assert_eq!(written, report, "a file without a format is in the log's");
    assert_eq!(fs::read_to_string(job.work().join("r.md")).unwrap(), done.summary);
}

#[test]
fn an_image_that_it_does_not_run_fails() {
    let image = sample();
    let mut job = Job::new(&[("image", &image), FLEET]);
    let done = job.run();
    told(&done);
    assert_eq!((done.code, done.outputs["result"].as_str()), (1, "findings"), "{done:?}");
    let findings = json(&done)["findings"].as_array().unwrap().clone();
    let of = |severity: &str| findings.iter().filter(|f| f["severity"] == severity).count().to_string();
    assert_eq!(done.outputs["findings"], findings.len().to_string());
    assert_eq!(done.outputs["errors"], of("error"));
    assert_eq!(done.outputs["warnings"], of("warning"));
    assert_ne!(done.outputs["errors"], "0");
    assert!(done.log.contains("\n::error title=no-device-code-for-target::"), "{}", done.log);
    // The table is there for people; nothing in it is a command.
    let (_, rest) = done.log.split_once("::stop-commands::").unwrap();
    let (token, rest) = rest.split_once('\n').unwrap();
    assert_eq!(token.len(), 32);
    let (table, after) = rest.split_once(&format!("\n::{token}::\n")).unwrap();
    assert!(table.contains("RTX 5090") && !after.contains("RTX 5090  "), "{}", done.log);

    // Those who only want to know.
    for (name, value, code) in [("fail-on", "never", 0), ("fail-build", "false", 0)] {
        job.inputs.insert(name.into(), value.into());
        let done = job.run();
        assert_eq!((done.code, done.outputs["errors"].as_str()), (code, of("error").as_str()), "{name}: {done:?}");
        job.inputs.remove(name);
    }
    for (name, value) in [("annotations", "false"), ("summary", "false")] {
        job.inputs.insert(name.into(), value.into());
    }
    let done = job.run();
    assert_eq!((done.code, done.summary.as_str()), (1, ""));
    assert!(!done.log.contains("::error title"), "{}", done.log);
}

#[test]
fn what_could_not_be_looked_at_is_no_answer() {
    let mut job = Job::new(&[("image", "oci:nosuch"), ("targets", "A100")]);
    for fail_build in ["true", "false"] {
        job.inputs.insert("fail-build".into(), fail_build.into());
        let done = job.run();
        told(&done);
        assert_eq!((done.code, done.outputs["result"].as_str()), (2, "unanswered"), "{done:?}");
        assert!(done.log.contains("nosuch") && done.summary.contains("could not be answered"), "{done:?}");
        assert!(
            done.log.ends_with("::error title=imagelint::the question could not be answered: the log says why\n")
        );
        let none = ["json", "sarif", "digest", "findings"].map(|name| done.outputs[name].as_str());
        assert_eq!(none, [""; 4], "{done:?}");
    }
}

#[test]
fn dockerfiles_are_linted_and_joined_with_their_image() {
    let job =
        Job::new(&[("dockerfile", "docker\nDockerfile"), ("targets", "RTX 5090@575"), ("upload-sarif", "true")]);
    let mut job = job;
    job.inputs.insert("fail-on".into(), "warning".into());
    let dockerfile = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=8.0\nRUN pip install flash-attn --no-build-isolation\n";
    fs::create_dir(job.work().join("docker")).unwrap();
    fs::write(job.work().join("docker/Dockerfile.gpu"), dockerfile).unwrap();
    fs::write(job.work().join("Dockerfile"), "FROM ubuntu:24.04\n").unwrap();
    let done = job.run();
    told(&done);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.log.contains("::warning file=docker/Dockerfile.gpu,line=2,"), "{}", done.log);
    assert_eq!((done.outputs["digest"].as_str(), done.outputs["warnings"].as_str()), ("", "1"), "{done:?}");
    // Code scanning gets the report though the step failed.
    let sarif = &done.given["Hand findings to code scanning"]["sarif_file"];
    assert_eq!(*sarif, done.outputs["sarif"]);
    assert!(!done.given.contains_key("Keep known layers"));

    let image = sample();
    let job = Job::new(&[("input", "here is/it.tar"), ("dockerfile", "Dockerfile"), ("targets", "A100@535")]);
    fs::create_dir(job.work().join("here is")).unwrap();
    fs::copy(image, job.work().join("here is/it.tar")).unwrap();
    fs::write(job.work().join("Dockerfile"), "FROM ubuntu:24.04\nENV LD_LIBRARY_PATH=/opt\n").unwrap();
    let done = job.run();
    told(&done);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(json(&done)["image"]["reference"], "./here is/it.tar");
    assert!(!done.given.contains_key("Hand findings to code scanning"));
}

/// Every input is text for the program, whatever it looks like.
#[test]
fn hostile_inputs_are_words() {
    let words = [
        "a b'c\"$(touch pwned)`touch pwned`; touch pwned # \\ ${IFS} ${{ github.token }}",
        "x\n::set-env name=A::b\nfindings=99\n%0A::error::x",
        "--help",
        "*",
    ];
    let action = Action::read();
    let switches = ["fail-build", "annotations", "summary", "upload-sarif", "cache"];
    for name in action.inputs.keys() {
        for word in words {
            let image = sample();
            let mut job = Job::new(&[("image", &image), ("targets", "A100@535.183.01")]);
            job.inputs.insert(name.clone(), word.into());
            let done = job.run();
            let files: Vec<_> = fs::read_dir(job.work()).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert!(!files.iter().any(|f| f == "pwned"), "{name}={word}: {done:?}");
            let refused = done.outputs["exit-code"].is_empty();
            if switches.contains(&name.as_str()) || name == "version" || (name == "input" && done.code == 2) {
                assert!(refused && done.code == 2, "{name}={word}: {done:?}");
                continue;
            }
            told(&done);
            // What has no say in the verdict, what takes anything, and what asks for help.
            let harmless = matches!(name.as_str(), "registry-username" | "registry-password");
            let help = name == "args" && matches!(word, "--help" | "*");
            assert!(done.code == 2 || harmless || help || name == "output", "{name}={word}: {done:?}");
            let commands = done.log.lines().filter(|l| l.starts_with("::set-env") || l.starts_with("::error::x"));
            let inert = done.log.split_once("::stop-commands::").map_or("", |(_, rest)| rest);
            for command in commands {
                let token = inert.lines().next().unwrap();
                let end = inert.find(&format!("\n::{token}::\n")).unwrap();
                assert!(inert[..end].contains(command), "{name}={word}: {done:?}");
            }
            assert_ne!(done.outputs["findings"], "99", "{name}={word}: {done:?}");
        }
    }
}

#[test]
fn inputs_that_contradict_each_other_are_refused_before_anything_is_installed() {
    let image = sample();
    for (inputs, why) in [
        (&[][..], "nothing to judge"),
        (&[("image", "x"), ("input", image.as_str())], "both given"),
        (&[("image", image.as_str()), ("cache", "yes")], "true or false"),
        (&[("image", image.as_str()), ("version", "latest")], "a name that moves is not installed"),
        (&[("image", image.as_str()), ("version", "v0.0.1")], "no checksum of that version"),
    ] {
        let done = Job::new(inputs).run();
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.log.starts_with("::error title=imagelint::") && done.log.contains(why), "{done:?}");
        assert_eq!(done.steps.len(), 1, "{done:?}");
    }
    let done = Job::new(&[("input", "registry.example/app:1")]).run();
    assert_eq!(done.code, 2);
    assert!(done.log.contains("input is no file or folder"), "{done:?}");
}

#[test]
fn what_is_known_of_layers_is_kept_when_there_is_more() {
    let image = sample();
    let mut job = Job::new(&[("image", &image), ("targets", "A100@535.183.01")]);
    let done = job.run();
    let key = done.given["Keep known layers"]["key"].clone();
    assert!(key.starts_with("imagelint-layers-Linux-") && key.len() > 60, "{done:?}");
    // The next run was given that: nothing is new, and nothing is kept.
    job.context.set("steps.layers.outputs.cache-matched-key", &key);
    let done = job.run();
    assert_eq!(done.code, 0);
    assert!(!done.given.contains_key("Keep known layers"), "{done:?}");
    job.inputs.insert("cache".into(), "false".into());
    let done = job.run();
    assert!(done.given.is_empty(), "{done:?}");
}

/// A release's archive, with a program that says which it is.
fn release(version: &str) -> Vec<u8> {
    let script = format!("#!/bin/bash\nif [ \"$1\" = scan ]; then echo \"release {version}\"; fi\n");
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut tar = tar::Builder::new(gzip);
    let mut header = tar::Header::new_gnu();
    header.set_size(script.len() as u64);
    header.set_mode(0o755);
    header.set_cksum();
    tar.append_data(&mut header, "imagelint", script.as_bytes()).unwrap();
    tar.into_inner().unwrap().finish().unwrap()
}

#[test]
fn a_release_is_installed_by_its_checksum_alone() {
    let archive = release("9.8.7");
    let sum = imagelint::model::Digest::of(&archive).to_string();
    let served = archive.clone();
    let server = Server::start(move |request| match request.path.as_str() {
        "/me/imagelint/releases/download/v9.8.7/imagelint-9.8.7-x86_64-unknown-linux-musl.tar.gz" => {
            Reply::ok(served.clone())
        }
        _ => Reply::status(404),
    });
    for (sum, works) in [(sum.trim_start_matches("sha256:").to_owned(), true), ("0".repeat(64), false)] {
        let folder = tempfile::tempdir().unwrap();
        let root = testdata().parent().unwrap().to_owned();
        for file in ["Cargo.toml", "Cargo.lock"] {
            fs::copy(root.join(file), folder.path().join(file)).unwrap();
        }
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::create_dir(folder.path().join("rules")).unwrap();
        let mut table = fs::File::create(folder.path().join("rules/releases.txt")).unwrap();
        writeln!(table, "# a comment\n9.8.7 aarch64-unknown-linux-musl 11\n9.8.7 x86_64-unknown-linux-musl {sum}")
            .unwrap();
        let mut job = Job::new(&[("image", "x"), ("version", "9.8.7")]);
        job.action = folder.path().to_owned();
        job.program("cargo", "#!/bin/bash\nexit 1\n");
        job.env.insert("GITHUB_SERVER_URL".into(), server.url(""));
        job.env.insert("GITHUB_ACTION_REPOSITORY".into(), "me/imagelint".into());
        let done = job.run();
        if works {
            assert_eq!((done.code, done.log.contains("\nrelease 9.8.7\n")), (0, true), "{done:?}");
        } else {
            assert_eq!((done.code, done.log.contains("release 9.8.7")), (2, false), "{done:?}");
            assert!(done.log.contains("it was not run"), "{done:?}");
        }
        assert!(!done.given.contains_key("Look for a built imagelint"));
    }
}

#[test]
fn a_password_reaches_the_registry_and_nothing_else() {
    if !can_start() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("htpasswd");
    fs::write(&file, HTPASSWD).unwrap();
    let store = dir.path().join("store");
    let open = Registry::start(Some(&store), "", "");
    open.push("oci:umoci.oci:latest", "app:1");
    let auth = format!("auth: {{htpasswd: {{realm: r, path: {}}}}}", file.display());
    let closed = Registry::start(Some(&store), "", &auth);
    let image = format!("{}/app:1", closed.address);
    let mut job = Job::new(&[("image", &image), ("targets", "A100@535"), ("fail-on", "never")]);
    let done = job.run();
    assert_eq!(done.code, 2, "{done:?}");
    job.inputs.insert("registry-username".into(), "alice".into());
    job.inputs.insert("registry-password".into(), "s3cret".into());
    let done = job.run();
    assert_eq!((done.code, done.outputs["result"].as_str()), (0, "clean"), "{done:?}");
    assert!(!format!("{done:?}").contains("s3cret"), "{done:?}");
}

#[test]
fn other_actions_are_pinned_and_all_inputs_are_told() {
    let action = Action::read();
    assert_eq!(action.runs.using, "composite");
    let pinned = |uses: &str| {
        let (_, commit) = uses.split_once('@').unwrap_or_default();
        commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit())
    };
    for step in &action.runs.steps {
        assert!(step.run.is_some() != step.uses.is_some(), "{}", step.name);
        assert!(step.uses.as_deref().is_none_or(pinned), "{}", step.name);
    }
    let root = testdata().parent().unwrap().to_owned();
    for workflow in fs::read_dir(root.join(".github/workflows")).unwrap() {
        let path = workflow.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let _: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        for line in text.lines().filter_map(|l| l.trim().trim_start_matches("- ").strip_prefix("uses: ")) {
            let uses = line.split_whitespace().next().unwrap();
            assert!(uses == "./" || pinned(uses), "{}: {uses}", path.display());
        }
    }
    assert!(action.inputs.values().all(|i| i.description.ends_with('.') && i.default.is_some()));
    assert!(action.outputs.values().all(|o| o.description.ends_with('.')));
    // Each output is one that a step sets.
    let all: BTreeMap<&str, &str> = action.outputs.iter().map(|(n, o)| (n.as_str(), o.value.as_str())).collect();
    for (name, value) in all {
        assert_eq!(value, format!("${{{{ steps.scan.outputs.{name} }}}}"));
    }
}
