//! The examples of testdata/deploy and what packages this program: each is run as its host would, or held against it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{self, git, on_path, skipped, testdata};

fn yaml(path: &str) -> Value {
    let path = testdata().parent().unwrap().join(path);
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A shell with this program on its path.
fn shell(dir: &Path, script: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_imagelint")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(std::iter::once(program).chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(dir).env("PATH", path).env("IMAGELINT_NO_CACHE", "1");
    command
}

#[test]
fn the_gitlab_job_gates_and_leaves_its_reports() {
    if !on_path("git") {
        skipped("no git to make a merge request with");
        return;
    }
    let job = yaml("testdata/deploy/gitlab-ci.yml")["imagelint"].clone();
    let script = job["script"][0].as_str().unwrap();
    let hosted = tempfile::tempdir().unwrap();
    let sample = testdata().join("images");
    git(hosted.path(), &["init", "-q", "-b", "main"]);
    fs::copy(sample.join("imagelint.toml"), hosted.path().join("imagelint.toml")).unwrap();
    fs::write(hosted.path().join("Dockerfile"), "FROM ubuntu:24.04\n").unwrap();
    git(hosted.path(), &["add", "-A"]);
    git(hosted.path(), &["commit", "-q", "-m", "agreed"]);
    // The change gives up a target.
    let work = tempfile::tempdir().unwrap();
    git(work.path(), &["clone", "-q", &format!("file://{}", hosted.path().display()), "."]);
    fs::write(work.path().join("imagelint.toml"), "[[target]]\ngpu = \"A100\"\n").unwrap();
    for (branch, code) in [("main", 1), ("", 0)] {
        let mut run = shell(work.path(), script);
        run.env("IMAGE", sample.join("sample.tar")).env("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", branch);
        let output = run.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{branch:?}: {output:?}");
        for report in [&job["artifacts"]["reports"]["codequality"], &job["artifacts"]["paths"][0]] {
            let text = fs::read_to_string(work.path().join(report.as_str().unwrap())).unwrap();
            serde_json::from_str::<Value>(&text).unwrap();
        }
        let junit = fs::read_to_string(work.path().join(job["artifacts"]["reports"]["junit"].as_str().unwrap()));
        let junit = junit.unwrap();
        let suites = roxmltree::Document::parse(&junit).unwrap();
        let failed = suites.descendants().filter(|n| n.has_tag_name("failure")).count();
        assert_eq!(failed > 0, code == 1, "{junit}");
    }
}

#[test]
fn the_jenkins_stage_runs_what_it_says_and_keeps_what_it_writes() {
    let text = fs::read_to_string(testdata().join("deploy/Jenkinsfile")).unwrap();
    let script = text.split("'''").nth(1).unwrap().replace("\\\\", "\\");
    let work = tempfile::tempdir().unwrap();
    fs::copy(testdata().join("images/imagelint.toml"), work.path().join("imagelint.toml")).unwrap();
    let output = shell(work.path(), &script).env("IMAGE", testdata().join("images/sample.tar")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for file in ["imagelint.xml", "imagelint.html", "imagelint.json"] {
        assert!(work.path().join(file).metadata().unwrap().len() > 500, "{file}");
    }
    let output = shell(work.path(), &script).env("IMAGE", "nosuch.tar").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// The hook's files are those that `lint` finds by itself, and its command takes them.
#[test]
fn the_hook_of_pre_commit_lints_what_lint_would() {
    let hooks = yaml(".pre-commit-hooks.yaml");
    let hook = &hooks[0];
    let example = yaml("testdata/deploy/pre-commit-config.yaml");
    assert_eq!(example["repos"][0]["hooks"][0]["id"], hook["id"]);
    let [files, not] = ["files", "exclude"].map(|k| fancy_regex::Regex::new(hook[k].as_str().unwrap()).unwrap());
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("docker")).unwrap();
    let names = [
        "Dockerfile",
        "dockerfile.gpu",
        "docker/Containerfile",
        "docker/gpu.Dockerfile",
        "docker/x.containerfile",
        "Dockerfile~",
        "Dockerfile.dockerignore",
        "Dockerfile.md",
        "Dockerfile.bak",
        "Dockerfile.j2",
        "Dockerfile.template",
        "docker/.dockerfile",
        "mydockerfile",
        "docker/.Dockerfile.swp",
        "docker/Dockerfiles",
        "README.md",
    ];
    for name in names {
        fs::write(dir.path().join(name), "FROM ubuntu:24.04\nINSTALL curl\n").unwrap();
    }
    let lint = |args: &[&str]| {
        let entry: Vec<&str> = hook["entry"].as_str().unwrap().split(' ').skip(1).collect();
        let ran =
            common::finish(common::program().current_dir(dir.path()).args(entry).args(["-f", "json"]).args(args));
        let report = ran.json();
        let found = report["findings"].as_array().unwrap();
        let mut found: Vec<String> =
            found.iter().filter_map(|f| f["dockerfile"]["file"].as_str()).map(str::to_owned).collect();
        found.dedup();
        (ran.code, found)
    };
    let matched: Vec<&str> =
        names.into_iter().filter(|n| files.is_match(n).unwrap() && !not.is_match(n).unwrap()).collect();
    let (code, by_hook) = lint(&matched);
    assert_eq!((code, by_hook.len()), (1, 5), "{by_hook:?}");
    assert_eq!((code, by_hook), lint(&[]));
}

/// The package's metadata is the crate's.
#[test]
fn the_wheel_is_of_this_crate() {
    let root = testdata().parent().unwrap().to_owned();
    let text = fs::read_to_string(root.join(".packaging/pyproject.toml")).unwrap();
    let package: toml::Table = text.parse().unwrap();
    let cargo: toml::Table = fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    assert_eq!(package["project"]["name"], cargo["package"]["name"]);
    assert_eq!(package["project"]["license"], cargo["package"]["license"]);
    let manifest = package["tool"]["maturin"]["manifest-path"].as_str().unwrap();
    assert!(root.join(".packaging").join(manifest).is_file());
}

/// Nothing that the image's build copies is missing, and this program has nothing against the file.
#[test]
fn the_image_of_this_program_is_built_of_what_there_is() {
    let root = testdata().parent().unwrap().to_owned();
    let file = root.join(".packaging/Containerfile");
    let text = fs::read_to_string(&file).unwrap();
    let copied: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("COPY "))
        .filter(|l| !l.starts_with("--from"))
        .flat_map(|l| l.split(' ').rev().skip(1).collect::<Vec<_>>())
        .collect();
    assert!(copied.contains(&"src") && copied.contains(&"Cargo.lock"), "{copied:?}");
    assert!(copied.iter().all(|path| root.join(path).exists()), "{copied:?}");
    let ran = common::run(&["lint", &file.display().to_string(), "--fail-on", "warning", "--target", "a100"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}
