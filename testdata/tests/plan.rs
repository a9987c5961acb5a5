//! Plans in the forms that other programs read: patches for git, bake files, Dockerfiles, lines for a shell.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{run, testdata};
use imagelint::catalog::Catalog;
use imagelint::config::parse_target;
use imagelint::dockerfile::commands::{Files, asks};
use imagelint::dockerfile::parse::parse;
use imagelint::dockerfile::reading::{Inputs, read};
use imagelint::lint::dockerfile::Lint;
use imagelint::model::{Built, Change, ConfigFacts, KnobForm, Manager};
use imagelint::plan::{Emit, Emitted, Input, Written, emit};
use imagelint::report::{Plan, Report, Step, StepKind, Tag};

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Option<Result<Vec<u8>, String>> {
        None
    }
}

fn step(change: Change, tag: Option<&str>) -> Step {
    Step {
        change,
        tag: tag.map(str::to_owned),
        ..Step::advice(StepKind::Rebuild, "x".into(), "do \"it\"\nRUN evil ${x} %{y}".into())
    }
}

fn torch(index: &str) -> Change {
    Change::Wheel {
        package: "torch".into(),
        version: Some("2.7.0".into()),
        specifier: "==2.7.0".into(),
        index: Some((index.into(), format!("https://download.pytorch.org/whl/{index}"))),
        built: None,
        cuda: None,
    }
}

fn list() -> Change {
    let sass = ["sm_80", "sm_120"].iter().map(|a| a.parse().unwrap()).collect();
    Change::Source {
        component: "csrc".into(),
        project: None,
        form: KnobForm::Env,
        setting: ("TORCH_CUDA_ARCH_LIST".into(), "8.0;12.0".into()),
        built: Built { sass, ..Built::default() },
        install: String::new(),
    }
}

fn image(reference: &str, plan: Plan) -> Report {
    let judged = testdata().join("images/sample.tar");
    let program =
        common::program().args(["scan", "--format", "json", "-t", "a100@535"]).arg(judged).output().unwrap();
    let value: serde_json::Value = serde_json::from_slice(&program.stdout).unwrap();
    assert_eq!(value["schema"], 1);
    let digest = value["image"]["digest"].as_str().unwrap();
    let mut report = imagelint::lint::judge(
        &[evidence(reference, digest)],
        &imagelint::config::Fleet::default(),
        Catalog::embedded(),
        &imagelint::lint::JudgeOptions { allow_gaps: true, today: imagelint::config::Date::today(), config: false },
    );
    report.plan = Some(plan);
    report
}

fn evidence(reference: &str, digest: &str) -> imagelint::model::Evidence {
    use imagelint::model::{Evidence, ImageFacts, LayerSummary, Platform};
    let layer = |by: &str| LayerSummary {
        digest: None,
        diff_id: None,
        size: 1,
        created_by: Some(by.to_owned()),
        cached: None,
    };
    let image = ImageFacts {
        reference: reference.to_owned(),
        digest: Some(digest.parse().unwrap()),
        platform: Some(Platform::linux("amd64")),
        layers: vec![layer("RUN a\nRUN evil"), layer("COPY x /y\u{1b}[0m"), layer(&"z".repeat(9000))],
        ..ImageFacts::default()
    };
    Evidence { schema: Evidence::SCHEMA, image, ..Evidence::default() }
}

const REGISTRY: &str = "registry.example/team/app:1.2";

/// The plan in a form, for a Dockerfile of that path, or for none.
fn emitted(
    plan: Plan,
    reference: &str,
    dockerfile: Option<(&str, &str)>,
    tag: Option<&str>,
    form: Emit,
) -> Emitted {
    let report = image(reference, plan);
    let config = ConfigFacts {
        env: vec![("LD_LIBRARY_PATH".into(), "/a:/b".into())],
        user: "app".into(),
        ..ConfigFacts::default()
    };
    let catalog = Catalog::embedded();
    let targets = [parse_target("RTX 5090@575", catalog).unwrap()];
    let base = |reference: &str| catalog.bases().find(reference).map(|b| b.env).unwrap_or_default();
    let inputs = Inputs { base_env: Some(&base), ..Inputs::default() };
    let reading = read(parse(dockerfile.map_or("", |(_, t)| t).as_bytes()), &inputs);
    let asks = asks(&reading, &NoFiles);
    let lint = Lint::new(&reading, &asks, &targets, catalog, None);
    let written = dockerfile.map(|(path, _)| Written { lint: &lint, path });
    emit(&Input { report: &report, config: Some(&config), dockerfile: written, tag }, form).unwrap()
}

fn text(emitted: &Emitted) -> String {
    String::from_utf8(emitted.bytes.clone()).unwrap()
}

const FILE: &str = "ARG CU=cu126\nFROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nARG CU\n\
    RUN pip install torch==2.6.0 --index-url https://download.pytorch.org/whl/${CU}\n\
    ENV A=\"%{if x}\" B=\"${CU}\"\nRUN pip install --no-build-isolation ./csrc\nCMD [\"x\"]\n";

fn plan() -> Plan {
    let set = Change::SetVariable { name: "NAME".into(), value: "a \"$b\" %{c}".into() };
    Plan { steps: vec![step(torch("cu128"), None), step(list(), None), step(set, None)], ..Plan::default() }
}

#[test]
fn git_applies_the_patches() {
    let folder = tempfile::tempdir().unwrap();
    let plain = FILE.replace(" B=\"${CU}\"", "");
    let crlf = plain.replace('\n', "\r\n");
    let cut = plain.trim_end().trim_end_matches("CMD [\"x\"]").trim_end().to_owned();
    for (path, file) in [("Dockerfile", &plain), ("docker/gpu image/Dockerfile.x", &crlf), ("d/D", &cut)] {
        let dockerfile = Some((path, file.as_str()));
        let patched = emitted(plan(), REGISTRY, dockerfile, None, Emit::Dockerfile);
        assert!(patched.notes.is_empty(), "{patched:?}");
        let diff = emitted(plan(), REGISTRY, dockerfile, None, Emit::Diff);
        let place = folder.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, file).unwrap();
        fs::write(folder.path().join("patch"), &diff.bytes).unwrap();
        let git = Command::new("git")
            .args(["apply", "--verbose", "patch"])
            .current_dir(folder.path())
            .env("GIT_CEILING_DIRECTORIES", folder.path())
            .output()
            .unwrap();
        assert!(git.status.success(), "{}\n{}", String::from_utf8_lossy(&git.stderr), text(&diff));
        assert_eq!(fs::read(&place).unwrap(), patched.bytes, "{path}");
        for words in
            ["ARG CU=cu128", "torch==2.7.0 --index-url", "ARG TORCH_CUDA_ARCH_LIST=\"8.0;12.0\"", "ENV NAME="]
        {
            assert!(text(&patched).contains(words), "{}", text(&patched));
        }
    }
}

#[test]
fn what_is_left_is_told_beside() {
    let emitted = emitted(plan(), REGISTRY, Some(("Dockerfile", FILE)), None, Emit::Dockerfile);
    assert!(emitted.notes[0].contains("CU is used in line 5 too"), "{emitted:?}");
    assert!(text(&emitted).contains("torch==2.6.0"), "a version without its index is another wheel");
}

/// The targets of a bake file: name and attributes, evaluated.
fn targets(bake: &str) -> Vec<(String, serde_json::Map<String, serde_json::Value>)> {
    let mut body = hcl::parse(bake).unwrap_or_else(|e| panic!("{e}\n{bake}"));
    hcl::eval::Evaluate::evaluate_in_place(&mut body, &hcl::eval::Context::new()).unwrap();
    let block = |b: &hcl::Block| {
        assert!(matches!(b.identifier(), "group" | "target"), "{bake}");
        let name = b.labels()[0].as_str().to_owned();
        let value: serde_json::Value = hcl::from_body(b.body().clone()).unwrap();
        (b.identifier() == "target").then(|| (name, value.as_object().unwrap().clone()))
    };
    body.blocks().filter_map(block).collect()
}

#[test]
fn bake_files_parse_and_their_templates_do_not_fire() {
    let plain = FILE.replace(" B=\"${CU}\"", "");
    let signs = "# $${x} %${y} $%{z} $$${a}\tb\u{1}\r\n";
    for file in [
        format!("{plain}{signs}"),
        plain.clone(),
        plain.replace('\n', "\r\n"),
        format!("{plain}# EOT\n# $${{x}} %%{{y}} $%{{z}} %${{a}} $$${{b}} $$ {{ $\nEOT x\n"),
    ] {
        let dockerfile = Some(("docker/Dockerfile", file.as_str()));
        let patched = text(&emitted(plan(), REGISTRY, dockerfile, None, Emit::Dockerfile));
        let bake = text(&emitted(plan(), REGISTRY, dockerfile, None, Emit::Bake));
        let all = targets(&bake);
        assert_eq!(all.len(), 1, "{bake}");
        let (name, values) = &all[0];
        assert_eq!(name, "app");
        assert_eq!(values["dockerfile-inline"].as_str().unwrap(), patched, "{bake}");
        assert_eq!(values["tags"][0], "registry.example/team/app:1.2-rebuilt");
        assert_eq!(values["platforms"][0], "linux/amd64");
    }
    // A file that nothing changes is named.
    let bake = text(&emitted(Plan::default(), REGISTRY, Some(("d/D", "FROM a\n")), None, Emit::Bake));
    assert_eq!(targets(&bake)[0].1["dockerfile"], "d/D");
    // An argument that the file does not declare.
    let arg = Change::Source {
        component: "y".into(),
        project: None,
        form: KnobForm::Arg,
        setting: ("MY_ARCHS".into(), "%${8.0} \"12.0\"\\".into()),
        built: Built::default(),
        install: String::new(),
    };
    let plan = Plan { steps: vec![step(arg, None)], ..Plan::default() };
    let bake = text(&emitted(plan, REGISTRY, Some(("D", "FROM a\n")), None, Emit::Bake));
    assert_eq!(targets(&bake)[0].1["args"]["MY_ARCHS"], "%${8.0} \"12.0\"\\");
}

fn two_tags() -> Plan {
    let tag = |name: &str| Tag { name: name.into(), ..Tag::default() };
    Plan {
        steps: vec![step(torch("cu126"), Some("cu126")), step(torch("cu128"), Some("cu128/\u{1b}"))],
        tags: vec![tag("cu126"), tag("cu128/\u{1b}")],
        ..Plan::default()
    }
}

#[test]
fn each_tag_is_a_target() {
    let file = "FROM a\nRUN pip install torch==2.6.0 -i https://download.pytorch.org/whl/cu124\n";
    let bake = text(&emitted(two_tags(), REGISTRY, Some(("D", file)), None, Emit::Bake));
    let all = targets(&bake);
    assert_eq!(all.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["cu126", "cu128"]);
    assert!(all[0].1["dockerfile-inline"].as_str().unwrap().contains("whl/cu126"), "{bake}");
    assert!(all[1].1["dockerfile-inline"].as_str().unwrap().contains("whl/cu128"), "{bake}");
    assert_eq!(all[1].1["tags"][0], "registry.example/team/app:1.2-cu128");
    let of_one = text(&emitted(two_tags(), REGISTRY, Some(("D", file)), Some("cu126"), Emit::Bake));
    assert_eq!(targets(&of_one).len(), 1);
}

#[test]
#[ignore = "needs docker buildx"]
fn buildx_reads_the_bake_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = FILE.replace(" B=\"${CU}\"", "");
    let patched = text(&emitted(plan(), REGISTRY, Some(("D", &file)), None, Emit::Dockerfile));
    let bake = emitted(plan(), REGISTRY, Some(("D", &file)), None, Emit::Bake);
    fs::write(folder.path().join("bake.hcl"), &bake.bytes).unwrap();
    let ran = Command::new("docker")
        .args(["buildx", "bake", "--print", "-f", "bake.hcl"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let value: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(value["target"]["app"]["dockerfile-inline"].as_str().unwrap(), patched);
}

#[test]
fn a_new_dockerfile_starts_from_the_image() {
    let packages = |manager, add: bool, names: &[&str]| {
        let names = names.iter().map(|n| (*n).to_owned()).collect();
        if add {
            Change::AddPackages { manager, names, libraries: Vec::new() }
        } else {
            Change::RemovePackages { manager, names }
        }
    };
    let mut all = plan();
    for change in [
        Change::Base { from: "a".into(), to: "b\nRUN evil".into() },
        Change::DropEntry { variable: "LD_LIBRARY_PATH".into(), entry: "/a".into() },
        Change::UnsetVariable { name: "X".into() },
        packages(Manager::Pip, false, &["onnxruntime", "a;evil"]),
        packages(Manager::Dpkg, true, &["libgomp1"]),
        packages(Manager::Rpm, true, &["-evil"]),
        Change::DropTargets { targets: vec!["t4".into()] },
    ] {
        all.steps.push(step(change, None));
    }
    for reference in
        [REGISTRY, "oci:dir", "../x.tar", "a b\nRUN evil", "host.d/-x", "docker-archive:y/z.d:1", "escape=x"]
    {
        let file = emitted(all.clone(), reference, None, None, Emit::Dockerfile);
        let written = text(&file);
        let document = parse(&file.bytes);
        assert!(document.errors.is_empty(), "{:?}\n{written}", document.errors);
        assert!(document.instructions.iter().all(|i| i.error.is_none()), "{written}");
        let from: Vec<&str> = written.lines().filter(|l| l.starts_with("FROM ")).collect();
        match reference {
            REGISTRY => assert!(from[0].starts_with("FROM registry.example/team/app:1.2@sha256:"), "{written}"),
            _ => assert_eq!(from, ["FROM ${IMAGE}"], "{written}"),
        }
        assert!(
            !written.lines().any(|l| l.contains("evil") && !l.starts_with('#') && !l.contains("'a;evil'")),
            "{written}"
        );
        assert!(written.lines().all(|l| l.chars().count() <= 200), "{written}");
        for words in [
            "RUN pip install --no-cache-dir --upgrade torch==2.7.0+cu128 --extra-index-url https://download.pytorch.org/whl/cu128\n",
            "ARG TORCH_CUDA_ARCH_LIST=\"8.0;12.0\"\n",
            "ENV NAME=\"a \\\"\\$b\\\" %{c}\"\n",
            "ENV LD_LIBRARY_PATH=\"/b\"\n",
            "RUN pip uninstall -y onnxruntime 'a;evil'\n",
            "USER root\n",
            "USER app\n",
            "# not in the image: ",
            "# RUN a\\x0aRUN evil\n",
        ] {
            assert!(written.contains(words), "lacks {words:?}: {written}");
        }
        let bake = text(&emitted(all.clone(), reference, None, None, Emit::Bake));
        assert_eq!(targets(&bake)[0].1["dockerfile-inline"].as_str().unwrap(), written);
    }
}

#[test]
fn a_shell_takes_the_variables_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("evil");
    let evil = format!("touch '{}'", marker.display());
    let mut steps = Vec::new();
    for bad in [
        format!("$({evil})"),
        format!("`{evil}`"),
        format!("';{evil};'"),
        format!("x\n{evil}"),
        format!("\";{evil};\""),
    ] {
        let hostile = Step {
            env: vec![(bad.clone(), "x".into()), ("GOOD".into(), bad.clone()), ("A=b;x".into(), "x".into())],
            command: Some(bad.clone()),
            summary: bad.clone(),
            review: Some(bad),
            ..step(Change::Advice, None)
        };
        steps.push(hostile);
    }
    steps.push(Step { env: vec![("LIST".into(), "8.0;it's".into())], ..step(Change::Advice, None) });
    let plan = Plan { steps, unresolved: vec![format!("x\n{evil}")], ..Plan::default() };
    let lines = emitted(plan, REGISTRY, None, None, Emit::Env);
    let script = folder.path().join("env.sh");
    fs::write(&script, &lines.bytes).unwrap();
    let sh = |args: &[&str]| Command::new("sh").args(args).current_dir(folder.path()).output().unwrap();
    assert!(sh(&["-n", "env.sh"]).status.success(), "{}", text(&lines));
    let ran = sh(&["-c", "eval \"$(cat env.sh)\"; printf %s \"$LIST\""]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "8.0;it's", "{}", text(&lines));
    assert!(!marker.exists() && !Path::new("evil").exists(), "{}", text(&lines));
}

#[test]
fn the_command_line_says_what_it_cannot_print() {
    let sample = "images/sample.tar";
    run(&["plan", sample, "-t", "a100", "--emit", "diff", "--quiet"]).refused(&["no Dockerfile", "--dockerfile"]);
    run(&["plan", sample, "-t", "a100", "--emit", "env", "--tag", "x", "--quiet"]).refused(&["no tag `x`"]);
    run(&["plan", sample, sample, "-t", "a100", "--emit", "bake", "--quiet"]).refused(&["one image"]);
    let json = run(&["plan", sample, "-t", "t4@470", "--emit", "json", "--fail-on", "never"]).json();
    assert_eq!(json["schema"], 1);
    assert!(json["steps"].is_array() && json["unresolved"].is_array(), "{json}");
    let file = run(&["plan", sample, "-t", "t4@470", "--emit", "dockerfile", "--fail-on", "never"]);
    assert!(file.out.contains("ARG IMAGE\n") && parse(file.out.as_bytes()).errors.is_empty(), "{file:?}");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Dockerfile"), "FROM ubuntu:24.04\nRUN true\n").unwrap();
    let place = folder.path().join("Dockerfile");
    let args = ["plan", sample, "-t", "t4@470", "--emit", "dockerfile", "--fail-on", "never", "--dockerfile"];
    let file = run(&[&args[..], &[place.to_str().unwrap()]].concat());
    assert_eq!(file.out, "FROM ubuntu:24.04\nRUN true\n", "{file:?}");
    assert_eq!(fs::read_to_string(place).unwrap(), "FROM ubuntu:24.04\nRUN true\n");
}
