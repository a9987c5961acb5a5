//! What a new user meets: exit statuses, the words of errors, formats, files, pipes.

use crate::common;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use common::{finish, program, run, run_with_input, testdata, verdicts};
use serde_json::Value;

const SAMPLE: [&str; 4] = ["scan", "images/sample.tar", "--fleet", "images/imagelint.toml"];

fn sample(more: &[&str]) -> common::Ran {
    run(&[&SAMPLE[..], more].concat())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[test]
fn fail_on_decides_the_exit_status() {
    for (level, code) in [("error", 1), ("warning", 1), ("note", 1), ("never", 0)] {
        assert_eq!(sample(&["--fail-on", level]).code, code, "{level}");
    }
    let served = |level| run(&["scan", "images/sample.tar", "--target", "a100@535", "--fail-on", level]).code;
    assert_eq!(["error", "warning", "note", "never"].map(served), [0, 0, 1, 0]);
    assert_eq!(run(&["scan", "images/sample.tar"]).code, 0, "no target: nothing is judged");
}

#[test]
fn a_path_that_is_wrong_is_told_as_a_path() {
    run(&["scan", "images/smaple.tar"]).refused(&["images/smaple.tar: not found", "no such file or folder"]);
    run(&["scan", "./nosuch"]).refused(&["./nosuch: not found"]);
    run(&["scan", "docker-archive:nosuch.tar"]).refused(&["nosuch.tar: not found"]);
    run(&["scan", "oci:nosuch"]).refused(&["oci:nosuch: not found"]);
    run(&["inspect", "nosuch.so"]).refused(&["nosuch.so: cannot be read"]);
    run(&["scan", "--from-evidence", "nosuch.json"]).refused(&["nosuch.json"]);
}

#[test]
fn what_is_no_image_is_told_as_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("empty.tar"), "").unwrap();
    fs::write(path("notes.txt"), "hello").unwrap();
    fs::create_dir(path("folder")).unwrap();
    run(&["scan", &path("empty.tar")]).refused(&["empty.tar: the file is empty"]);
    run(&["scan", &path("notes.txt")]).refused(&["neither an image, an archive nor device code"]);
    run(&["scan", &format!("docker-archive:{}", path("notes.txt"))]).refused(&["not the archive of an image"]);
    run(&["scan", &format!("oci:{}", path("folder"))]).refused(&["index.json: not found", "no OCI layout"]);
    run_with_input(&["scan", "-"], b"").refused(&["standard input: no bytes"]);
    run_with_input(&["scan", "-"], b"hello").refused(&["standard input"]);
    run(&["scan", "images/sample.tar", "--platform", "linux/arm64"])
        .refused(&["no image for linux/arm64", "linux/amd64"]);
    run(&["scan", "squashfs:x"]).refused(&["squashfs:x: not found"]);
    let daemon =
        |image: &str, name: &str| finish(program().env(name, "unix:///no/such.sock").args(["scan", image]));
    daemon("docker:x", "DOCKER_HOST").refused(&["/no/such.sock", "DOCKER_HOST", "is docker running?"]);
    run(&["scan", "https://r.io/x"]).refused(&["write r.io/x"]);
}

#[test]
fn archives_that_end_early_are_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    for (image, places) in [("images/sample.tar", 12), ("builders/images/docker-25.tar.gz", 12)] {
        let mut whole = fs::read(testdata().join(image)).unwrap();
        // The zeros at the end may be missing.
        whole.truncate(whole.iter().rposition(|&b| b != 0).unwrap() + 1);
        for place in 1..places {
            let cut = &whole[..whole.len() * place / places];
            let path = dir.path().join("cut.tar");
            fs::write(&path, cut).unwrap();
            let by_path = run(&["scan", path.to_str().unwrap(), "--target", "a100"]);
            by_path.refused(&["cut.tar"]);
            assert_eq!(by_path.err.lines().count(), 1, "{by_path:?}");
            run_with_input(&["scan", "-", "--target", "a100"], cut).refused(&["standard input"]);
        }
    }
}

/// Some lines on standard error may be notes; the last tells why.
fn reason(ran: &common::Ran) -> &str {
    ran.err.lines().last().unwrap_or_default()
}

#[test]
fn a_damaged_layer_answers_nothing_unless_gaps_are_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let layout = dir.path().join("layout");
    copy(&testdata().join("builders/images/umoci.oci"), &layout);
    let blobs = fs::read_dir(layout.join("blobs/sha256")).unwrap().map(|e| e.unwrap().path());
    let layer = blobs.max_by_key(|p| fs::metadata(p).unwrap().len()).unwrap();
    let whole = fs::read(&layer).unwrap();
    let image = format!("oci:{}", layout.to_str().unwrap());
    let mut hurt = whole.clone();
    hurt[whole.len() / 2] ^= 0x55;
    fs::write(&layer, &hurt).unwrap();
    let args = ["scan", &image, "--target", "a100@535", "--format", "json"];
    let ran = run(&args);
    assert_eq!((ran.code, verdicts(&ran.json())), (2, vec!["a100@535 unknown".to_owned()]), "{ran:?}");
    assert!(reason(&ran).contains("could not be read whole"), "{ran:?}");
    let named = format!("sha256:{}", layer.file_name().unwrap().to_str().unwrap());
    assert!(ran.json()["gaps"].to_string().contains(&named), "{ran:?}");
    assert_eq!(run(&[&args[..], &["--allow-gaps"]].concat()).code, 0);
    fs::write(&layer, &whole[..whole.len() - 20]).unwrap();
    assert_eq!(run(&args).code, 2);
    fs::remove_file(&layer).unwrap();
    assert_eq!(run(&args).code, 2);
    fs::write(&layer, &whole).unwrap();
    assert_eq!(run(&args).code, 0, "mended");
}

#[test]
fn a_file_that_cannot_be_listed_whole_leaves_its_component_unknown() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(testdata().join("corpus/cuda/bin/bad_so_truncated.so"), dir.path().join("lib.so")).unwrap();
    let image = format!("dir:{}", dir.path().to_str().unwrap());
    let ran = run(&["scan", &image, "--target", "a100@535", "--format", "json"]);
    assert_eq!((ran.code, verdicts(&ran.json())), (2, vec!["a100@535 unknown".to_owned()]));
    assert_eq!(run(&["scan", &image, "--target", "a100@535", "--allow-gaps"]).code, 0);
}

#[test]
fn a_gpu_that_nobody_knows_is_told_its_neighbours() {
    run(&["scan", "images/sample.tar", "--target", "RTX 5091"]).refused(&["RTX 5091", "did you mean", "RTX 5090"]);
    run(&["scan", "images/sample.tar", "-t", "h1000@535"]).refused(&["h1000", "H100"]);
    run(&["scan", "images/sample.tar", "-t", "a100@9999x"]).refused(&["9999x", "535.183.01"]);
    run(&["scan", "images/sample.tar", "-t", "a100@<570"]).refused(&["no lower bound"]);
    run(&["scan", "images/sample.tar", "-t", "t4", "-t", "t4"]).refused(&["given twice"]);
}

#[test]
fn usage_errors_say_what_was_meant() {
    run(&["scan", "x.tar", "--frmat", "json"]).refused(&["--frmat", "--format"]);
    run(&["scan", "x.tar", "-o", "report.json"]).refused(&["json=report.json"]);
    run(&["scan"]).refused(&["<IMAGE>"]);
    run(&["scann", "x"]).refused(&["scan"]);
    run(&["images/sample.tar"]).refused(&["there is no command", "imagelint scan images/sample.tar"]);
    run(&["diff", "x.tar"]).refused(&["<NEW>"]);
    run(&["rebuild"]).refused(&["neither an image", "--dockerfile"]);
    run(&["explain", "no-device-code"]).refused(&["there is no rule"]);
    run(&["scan", "x.tar", "--from-evidence", "e"]).refused(&["cannot be used with"]);
}

#[test]
fn a_fleet_file_s_errors_point_into_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet.toml");
    let told = |text: &str| {
        fs::write(&path, text).unwrap();
        let ran = run(&["scan", "images/sample.tar", "--fleet", path.to_str().unwrap()]);
        ran.refused(&["fleet.toml:"]);
        ran.err
    };
    let error = told("[[target]]\nname = \"a\"\ngpu = \"A1000x\"\n");
    assert!(error.contains("fleet.toml:3:7: `A1000x`") && error.contains("3 | gpu = \"A1000x\""), "{error}");
    assert!(error.contains("  |       ^^^^^^^^\n"), "{error}");
    let error = told("[[target]]\nnmae = \"a\"\ngpu = \"a100\"\n");
    assert!(error.contains(":2:1:") && error.contains("name") && error.contains("^^^^"), "{error}");
    assert!(told("[[target]]\nname = \"a\"\n").contains("gpu"));
    assert!(told("[[target]\n").contains(":1:"));
    assert!(told("[[target]]\nname = \"a\"\ngpu = \"a100\"\ndriver = \"<570\"\n").contains(":4:10:"));
    let nowhere = run(&["scan", "images/sample.tar", "--fleet", "nosuch.toml"]);
    nowhere.refused(&["nosuch.toml: cannot be read"]);
}

#[test]
fn a_fleet_file_is_found_upward_and_targets_stand_in_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    fs::copy(testdata().join("images/imagelint.toml"), dir.path().join("imagelint.toml")).unwrap();
    let image = testdata().join("images/sample.tar");
    let scan = |more: &[&str]| {
        let args = ["scan", image.to_str().unwrap(), "--format", "json"];
        finish(program().args(args).args(more).current_dir(&below))
    };
    let found = scan(&[]);
    assert_eq!(verdicts(&found.json()).len(), 3);
    assert!(found.err.contains("imagelint.toml"), "{found:?}");
    assert_eq!(verdicts(&scan(&["--target", "t4@535"]).json()), ["t4@535 warn"]);
    assert_eq!(found.json()["image"]["reference"], "sample.tar", "no absolute path in a report");
}

/// A registry that is not there: quick, one line, exit 2.
#[test]
fn an_unreachable_registry_is_one_line() {
    let ran = run(&["scan", "127.0.0.1:1/team/image:tag", "--target", "a100"]);
    ran.refused(&["127.0.0.1:1", "connection refused"]);
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [&["man"][..], &["gpus"], &["completions", "zsh"], &["--help"], &SAMPLE] {
        let mut child = program().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code().is_some_and(|c| c < 2), "{args:?}: {:?} {told}", output.status);
        assert!(told.lines().all(|l| l.starts_with("note: ")), "{args:?}: {told}");
    }
    // Also after the first bytes.
    let mut child = program().args(["gpus", "--format", "json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut [0; 16]).unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success());
}

#[test]
fn colour_is_for_terminals_and_those_who_ask() {
    assert!(!sample(&[]).out.contains('\x1b'), "piped");
    let asked = sample(&["--color", "always"]);
    assert!(asked.out.contains("\x1b["));
    let forced_off = finish(program().args(SAMPLE).args(["--color", "never"]).env("CLICOLOR_FORCE", "1"));
    assert!(!forced_off.out.contains('\x1b'));
    let no_colour = finish(program().args(SAMPLE).env("NO_COLOR", "1"));
    assert!(!no_colour.out.contains('\x1b'));
    let plain = anstream_free(&asked.out);
    assert_eq!(plain, sample(&[]).out, "colour changes no word");
}

/// Without the escape sequences that set colours.
fn anstream_free(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn no_line_is_wider_than_asked() {
    for width in [40, 60, 80, 100, 200] {
        let asked = width.to_string();
        for verbose in [&[][..], &["-vv"]] {
            let ran = sample(&[&["--width", &asked][..], verbose].concat());
            for line in ran.out.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
    assert_eq!(run(&["scan", "x.tar", "--width", "20"]).code, 2);
}

#[test]
fn every_word_of_the_table_is_there_at_any_width() {
    let words = |width: &str| {
        let out = sample(&["--width", width]).out;
        ["new-workstations", "training", "workstations", "no-device-code-for-target", "cu128"]
            .map(|w| out.contains(w))
    };
    for width in ["40", "60", "80", "200"] {
        assert_eq!(words(width), [true; 5], "{width}");
    }
}

#[test]
fn reports_go_to_files_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let ran = sample(&["-o", &format!("json={}", path("a.json")), "-o", &format!("table={}", path("a.txt"))]);
    assert_eq!(fs::read_to_string(path("a.txt")).unwrap(), ran.out);
    assert_eq!(fs::read_to_string(path("a.json")).unwrap(), sample(&["--format", "json"]).out);
    let nowhere = sample(&["-o", &format!("json={}", path("no/such/folder.json"))]);
    assert_eq!(nowhere.code, 2);
    assert!(reason(&nowhere).contains("cannot be written"), "{nowhere:?}");
}

#[test]
fn a_saved_scan_gives_the_same_report_without_the_image() {
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("scan.json");
    let saved = saved.to_str().unwrap();
    for image in
        ["images/sample.tar", "builders/images/kaniko.tar", "builders/images/rootfs", "cases/images/s3.tar"]
    {
        for format in ["json", "table"] {
            let targets = ["--target", "a100@535", "--target", "RTX 5090@575", "--format", format, "-v"];
            let first = run(&[&["scan", image, "--save-evidence", saved][..], &targets].concat());
            let again = run(&[&["scan", "--from-evidence", saved][..], &targets].concat());
            assert!(first.out == again.out && first.code == again.code, "{image} as {format}");
            let other = run(&["scan", "--from-evidence", saved, "--target", "b200@580", "--format", "json"]);
            assert_eq!(verdicts(&other.json()).len(), 1, "another fleet");
        }
    }
    fs::write(saved, "{}").unwrap();
    run(&["scan", "--from-evidence", saved]).refused(&["no saved scan", "--save-evidence"]);
}

#[test]
fn quiet_leaves_standard_error_empty() {
    assert!(sample(&[]).err.starts_with("note: "));
    assert_eq!(sample(&["--quiet"]).err, "");
    assert_ne!(run(&["scan", "nosuch.tar", "--quiet"]).err, "", "but for errors");
}

#[test]
fn json_matches_the_schema_and_tells_no_time() {
    let schema = fs::read_to_string(testdata().join("../rules/report.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let mut reports: Vec<(String, Value)> = Vec::new();
    for entry in fs::read_dir(testdata().join("cases/images")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let fleet = format!("cases/fleets/{}", name.replace(".tar", ".toml"));
        let ran = run(&["scan", &format!("cases/images/{name}"), "--fleet", &fleet, "--format", "json"]);
        reports.push((name, ran.json()));
    }
    for image in ["builders/images/rootfs", "builders/images/umoci.oci", "images/sample.tar"] {
        reports.push((image.into(), run(&["scan", image, "--format", "json"]).json()));
    }
    for file in ["cu135_so_two_tus.so", "bad_so_truncated.so", "cu124_raw_sm90a.cubin", "bad_empty.so"] {
        let path = format!("corpus/cuda/bin/{file}");
        reports.push((file.into(), run(&["inspect", &path, "--format", "json"]).json()));
    }
    for (name, report) in &reports {
        let errors: Vec<String> =
            validator.iter_errors(report).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert_eq!(report["stats"].get("seconds"), None, "{name}");
    }
    let timed = sample(&["--stats", "--format", "json"]).json();
    assert!(timed["stats"]["seconds"].is_number());
    assert!(validator.is_valid(&timed));
}

#[test]
fn the_other_commands_answer() {
    let answers = |args: &[&str], words: &[&str]| {
        let ran = run(args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        for word in words {
            assert!(ran.out.contains(word), "{args:?} lacks {word}: {}", ran.out);
        }
        ran
    };
    answers(&["--version"], &["imagelint 0."]);
    answers(&["--help"], &["scan", "plan", "inspect", "Exit status"]);
    answers(&["lint", "--help"], &["--target", "--fix", "imagelint: ignore[", "stage ignore"]);
    answers(&["scan", "--help"], &["--target", "docker-archive:", "--fail-on"]);
    answers(&["rules"], &["no-device-code-for-target", "wrong-platform"]);
    answers(&["gpus"], &["NVIDIA A100", "sm_120", "Jetson"]);
    answers(&["toolkits"], &["12.8", "sm_"]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        answers(&["completions", shell], &["imagelint", "no-cache", "no-ignore"]);
    }
    answers(&["man"], &[".TH imagelint 1", "scan", "lint"]);
    let rules: Value = answers(&["rules", "--format", "json"], &[]).json();
    for rule in rules.as_array().unwrap() {
        let id = rule["id"].as_str().unwrap();
        answers(&["explain", id], &[&format!("# {id}")]);
    }
    assert!(answers(&["gpus", "--format", "json"], &[]).json().as_array().unwrap().len() > 100);
    assert!(answers(&["toolkits", "--format", "json"], &[]).json().is_array());
    answers(&["inspect", "corpus/cuda/bin/cu124_wrapped.so"], &["sm_90a", "sass", "ptx"]);
}

#[test]
fn the_plan_names_what_to_build() {
    let plan = |emit: &str| run(&["plan", "images/sample.tar", "--fleet", "images/imagelint.toml", "--emit", emit]);
    let text = plan("text");
    assert_eq!(text.code, 1, "{text:?}");
    assert!(text.out.contains("flash_attn 2.8.3") && text.out.contains("torch 2.7.1"), "{text:?}");
    let env = plan("env");
    assert!(env.out.contains("export FLASH_ATTN_CUDA_ARCHS="), "{env:?}");
    // What the shell is to evaluate is comments and assignments, nothing else.
    assert!(env.out.lines().all(|l| l.is_empty() || l.starts_with('#') || l.starts_with("export ")), "{env:?}");
    assert_eq!(run(&["plan", "images/sample.tar", "--target", "a100@535"]).code, 0);
}

#[test]
fn the_readme_shows_what_its_command_prints() {
    let readme = std::fs::read_to_string(testdata().join("../README.md")).unwrap();
    let block = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```\n").next()).unwrap();
    let mut command = common::program();
    command.current_dir(testdata().join(".."));
    let scan = ["scan", "testdata/images/sample.tar", "--fleet", "testdata/images/imagelint.toml"];
    let ran = common::finish(command.args(scan));
    assert_eq!((ran.code, ran.out.as_str()), (1, block), "put the new output into README.md");
}
