//! `imagelint lint`: exit statuses, discovery, formats, comments, fixes, and files that mean harm.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Ran, finish, testdata, valid};
use serde_json::Value;

/// A folder with files, and the program run in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            folder.write(name, text.as_bytes());
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = common::program();
        command.current_dir(self.path()).arg("lint").args(args);
        command
    }

    fn lint(&self, args: &[&str]) -> Ran {
        finish(&mut self.command(args))
    }
}

const GOOD: &str = "FROM ubuntu:24.04\nRUN true\n";
/// One error, in line 2.
const BAD: &str = "FROM ubuntu:24.04\nINSTALL curl\n";
/// One note, in line 2.
const NOTE: &str = "FROM ubuntu:24.04\n# imagelint: ignore[dockerfile-syntax] there was one\nRUN true\n";

fn rules(report: &Value) -> Vec<String> {
    let text = |f: &Value| {
        let place = &f["dockerfile"];
        format!("{}:{} {}", place["file"].as_str().unwrap_or("-"), place["line"], f["rule"].as_str().unwrap())
    };
    report["findings"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn the_exit_status_tells() {
    let folder = Folder::new(&[("good/Dockerfile", GOOD), ("bad/Dockerfile", BAD), ("note/Dockerfile", NOTE)]);
    folder.write("empty/x.txt", b"");
    for (args, code) in [
        (&["good"][..], 0),
        (&["bad"], 1),
        (&["bad", "--fail-on", "never"], 0),
        (&["note"], 0),
        (&["note", "--fail-on", "note"], 1),
        (&["note", "--fail-on", "warning"], 0),
        (&["good", "bad"], 1),
        (&["bad", "--rule", "dockerfile-syntax=note"], 0),
        (&["bad", "--rule", "dockerfile-syntax=off", "--fail-on", "note"], 0),
        (&["note", "--rule", "ignore-unmatched=error"], 1),
        (&["empty"], 2),
        (&["nosuch"], 2),
        (&["good", "nosuch"], 2),
        (&["bad", "nosuch"], 2),
    ] {
        let ran = folder.lint(args);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
    }
    folder.lint(&["empty"]).refused(&["empty: there is no Dockerfile in it"]);
    folder.lint(&["nosuch"]).refused(&["nosuch: no such file or folder"]);
    let both = folder.lint(&["bad", "nosuch"]);
    assert!(both.out.contains("error[dockerfile-syntax]"), "one that is missing hides no other: {both:?}");
}

#[test]
fn dockerfiles_are_found_from_here() {
    let folder = Folder::new(&[
        ("Dockerfile", BAD),
        ("docker/gpu.Dockerfile", BAD),
        ("docker/Containerfile.rocm", BAD),
        ("docker/Dockerfile.dockerignore", "INSTALL"),
        ("docker/Dockerfile.swp", "INSTALL"),
        ("out/Dockerfile", BAD),
        (".gitignore", "out\n"),
        ("named-otherwise", BAD),
    ]);
    let ran = folder.lint(&["--format", "json"]);
    let all = [
        "Dockerfile:2 dockerfile-syntax",
        "docker/Containerfile.rocm:2 dockerfile-syntax",
        "docker/gpu.Dockerfile:2 dockerfile-syntax",
    ];
    assert_eq!(rules(&ran.json()), all);
    let here = folder.path().to_str().unwrap();
    let named =
        folder.lint(&["named-otherwise", &format!("{here}/Dockerfile"), "./Dockerfile", "--format", "json"]);
    assert_eq!(
        rules(&named.json()),
        ["Dockerfile:2 dockerfile-syntax", "named-otherwise:2 dockerfile-syntax"],
        "each once, and no path of this machine"
    );
    assert_eq!(rules(&folder.lint(&["--no-ignore", "--format", "json"]).json()).len(), 4);
}

#[test]
fn standard_input_is_a_dockerfile() {
    let ran = common::run_with_input(&["lint", "-", "--format", "json"], BAD.as_bytes());
    assert_eq!((ran.code, rules(&ran.json())), (1, vec!["<stdin>:2 dockerfile-syntax".to_owned()]));
    common::run_with_input(&["lint", "-", "--fix"], BAD.as_bytes()).refused(&["--fix", "--diff"]);
}

#[test]
fn every_format_tells_the_same() {
    let folder = Folder::new(&[("a/Dockerfile", BAD), ("b/Dockerfile", NOTE), (".git/HEAD", "")]);
    let ran = folder.lint(&["--format", "json", "-o", "sarif=r.sarif", "-o", "github=r.txt", "-o", "table=t.txt"]);
    let report = ran.json();
    valid(&testdata().join("../rules/lint.schema.json"), &report);
    assert_eq!(rules(&report), ["a/Dockerfile:2 dockerfile-syntax", "b/Dockerfile:2 ignore-unmatched"]);
    let sarif: Value = serde_json::from_str(&folder.text("r.sarif")).unwrap();
    valid(&testdata().join("sarif/sarif-2.1.0.schema.json"), &sarif);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let uri = |r: &Value| r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].clone();
    assert_eq!(results.iter().map(uri).collect::<Vec<_>>(), ["a/Dockerfile", "b/Dockerfile"]);
    let github = folder.text("r.txt");
    assert!(github.starts_with("::error file=a/Dockerfile,line=2,"), "{github}");
    assert!(github.contains("\n::notice file=b/Dockerfile,line=2,"), "{github}");
    let table = folder.text("t.txt");
    assert!(table.contains("--> a/Dockerfile:2:1\n") && table.contains("2 | INSTALL curl\n"), "{table}");
    assert!(table.contains("1 error, 1 note in 2 files"), "{table}");
    // From a folder below, code scanning still counts from the repository's root.
    let mut below = folder.command(&["--format", "github"]);
    let text = finish(below.current_dir(folder.path().join("a"))).out;
    assert!(text.starts_with("::error file=a/Dockerfile,"), "{text}");
}

#[test]
fn runs_are_alike_however_many_threads_there_are() {
    let names: Vec<String> = (0..40).map(|n| format!("{n}/Dockerfile")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), BAD)).collect();
    let folder = Folder::new(&files);
    let first = folder.lint(&["--format", "json", "--jobs", "1"]);
    assert_eq!(rules(&first.json()).len(), 40);
    for jobs in ["2", "7", "0"] {
        assert_eq!(folder.lint(&["--format", "json", "--jobs", jobs]).out, first.out, "{jobs}");
    }
}

#[test]
fn comments_and_waivers_accept_findings() {
    let ignored = "FROM ubuntu:24.04\n# imagelint: ignore[dockerfile-syntax] a frontend of ours\nINSTALL curl\n";
    let folder = Folder::new(&[("Dockerfile", ignored), ("old/Dockerfile", BAD)]);
    let waiver = "[[waiver]]\nrule = \"dockerfile-syntax\"\npath = \"old/**\"\nreason = \"not built any more\"\nexpires = \"2999-01-01\"\n";
    folder.write("imagelint.toml", waiver.as_bytes());
    let ran = folder.lint(&["--format", "json"]);
    assert_eq!((ran.code, rules(&ran.json()).len()), (0, 0), "{ran:?}");
    let waived: Vec<String> = ran.json()["waived"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| format!("{} {}", f["accepted"]["by"], f["accepted"]["reason"]))
        .collect();
    assert_eq!(waived, ["\"comment\" \"a frontend of ours\"", "\"waiver\" \"not built any more\""]);
    let text = folder.lint(&[]).out;
    assert!(text.ends_with("no findings in 2 files; 1 ignored; 1 waived\n"), "{text}");
    // A waiver of a file that is not looked at is not told to be idle; one of a file that is well is.
    assert_eq!(folder.lint(&["Dockerfile", "--fail-on", "note"]).code, 0);
    folder.write("old/Dockerfile", GOOD.as_bytes());
    let idle = folder.lint(&["--fail-on", "note"]);
    assert!(idle.code == 1 && idle.out.contains("note[waiver-unmatched]"), "{idle:?}");
}

#[test]
fn levels_come_from_the_fleet_file_and_then_the_flags() {
    let folder = Folder::new(&[("Dockerfile", BAD)]);
    folder.write("imagelint.toml", b"[rules]\n\"dockerfile-syntax\" = \"warning\"\n");
    assert_eq!(folder.lint(&[]).code, 0);
    assert_eq!(folder.lint(&["--fail-on", "warning"]).code, 1);
    assert_eq!(folder.lint(&["--rule", "dockerfile-syntax"]).code, 1, "at its own severity again");
    folder.lint(&["-q", "--rule", "dockerfile-sintax"]).refused(&["dockerfile-sintax", "--rule dockerfile-syntax"]);
    folder.lint(&["-q", "--rule", "jit-at-start"]).refused(&["rule of images"]);
    folder.lint(&["-q", "--rule", "dockerfile-syntax=loud"]).refused(&["off, note, warning"]);
}

#[test]
fn a_patch_applies_and_nothing_else_changes() {
    let latin = b"FROM a\n# caf\xe9\n# imagelint: ignore[dockerfile-syntax]\nRUN true";
    let folder = Folder::new(&[("sub dir/Dockerfile", &NOTE.replace('\n', "\r\n"))]);
    folder.write("Dockerfile", latin);
    let ran = folder.command(&["--diff"]).output().unwrap();
    let patch = ran.stdout;
    assert_eq!(folder.text("sub dir/Dockerfile"), NOTE.replace('\n', "\r\n"), "--diff changes nothing");
    let apply = |program: &str, args: &[&str]| {
        let mut child = Command::new(program)
            .args(args)
            .current_dir(folder.path())
            .env("GIT_CEILING_DIRECTORIES", folder.path().parent().unwrap())
            .stdin(Stdio::piped())
            .spawn()
            .expect("git is installed");
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &patch).unwrap();
        assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&patch));
    };
    apply("git", &["apply"]);
    assert_eq!(folder.text("sub dir/Dockerfile"), "FROM ubuntu:24.04\r\nRUN true\r\n");
    assert_eq!(fs::read(folder.path().join("Dockerfile")).unwrap(), b"FROM a\n# caf\xe9\nRUN true");
    assert_eq!(folder.lint(&["--diff"]).out, "", "nothing is left to change");
}

#[test]
fn an_edit_to_be_read_is_not_applied_unread() {
    let folder = Folder::new(&[("Dockerfile", NOTE)]);
    let ran = folder.lint(&["--fix", "--fail-on", "note"]);
    assert_eq!((ran.code, folder.text("Dockerfile").as_str()), (1, NOTE), "{ran:?}");
    assert!(ran.out.contains("to be read (--diff)"), "{ran:?}");
}

#[test]
fn files_that_mean_harm_do_none() {
    let long = [b"FROM a\nRUN ".to_vec(), vec![b'x'; 10 << 20]].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("newlines", vec![b'\n'; 100_000]),
        ("binary", (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
        ("zeros", vec![0; 100_000]),
        ("long", long),
        ("many", b"INSTALL x\n".repeat(200_000)),
        ("crlf", b"FROM a\r\nRUN \x1b[31m x \\\r\n  && y\r\nBAD \x1b]0;t\x07\r\n".to_vec()),
        ("bom", b"\xef\xbb\xbfFROM a\nBAD\n".to_vec()),
        ("latin", b"FROM a\nBAD caf\xe9 \xff\n".to_vec()),
        ("open", b"FROM a\nRUN <<EOF\nx".to_vec()),
        ("deep", format!("FROM a\nRUN {}\n", "$(".repeat(100_000)).into_bytes()),
        ("wide", "FROM a\n日本語 \u{202e}x\n".as_bytes().to_vec()),
        ("pragmas", b"# imagelint: ignore[a]\n".repeat(50_000)),
    ];
    for (name, bytes) in cases {
        let folder = Folder::new(&[]);
        folder.write("Dockerfile", &bytes);
        for args in [&["--width", "60", "-v"][..], &["--format", "json"], &["--format", "sarif"], &["--diff"]] {
            let started = Instant::now();
            let ran = folder.lint(args);
            assert!(started.elapsed() < Duration::from_secs(60), "{name}: {:?}", started.elapsed());
            assert!(ran.out.len() < 64 << 20, "{name}");
            if args[0] == "--width" {
                let wide = ran.out.lines().find(|l| unicode_width::UnicodeWidthStr::width(*l) > 60);
                assert!(wide.is_none() || name == "wide", "{name}: {wide:?}");
            }
        }
    }
    let folder = Folder::new(&[]);
    folder.write("Dockerfile", &vec![b'#'; (16 << 20) + 1]);
    folder.lint(&[]).refused(&["larger than 16 MiB"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = Folder::new(&[]);
    for n in 0..200 {
        folder.write(&format!("{n}/Dockerfile"), BAD.as_bytes());
    }
    let mut child = folder.command(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), out.stderr.len()), (Some(1), 0), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn colour_is_asked_for_or_found_out() {
    let folder = Folder::new(&[("Dockerfile", BAD)]);
    assert!(!folder.lint(&[]).out.contains('\x1b'), "no terminal");
    assert!(folder.lint(&["--color", "always"]).out.contains('\x1b'));
    let mut command = folder.command(&[]);
    assert!(!finish(command.env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1")).out.contains('\x1b'));
}

#[test]
fn a_dockerfile_joins_its_image() {
    let folder = Folder::new(&[("Dockerfile", BAD)]);
    let file = folder.path().join("Dockerfile");
    let scan = |format: &str| {
        let args = ["scan", "images/sample.tar", "--target", "a100@535", "--format", format, "--dockerfile"];
        common::run(&[&args[..], &[file.to_str().unwrap()]].concat())
    };
    let ran = scan("json");
    assert_eq!(ran.code, 1, "{ran:?}");
    let report = ran.json();
    valid(&testdata().join("../rules/report.schema.json"), &report);
    let of_file: Vec<&Value> =
        report["findings"].as_array().unwrap().iter().filter(|f| f.get("dockerfile").is_some()).collect();
    assert_eq!(of_file.len(), 1);
    assert_eq!((&of_file[0]["rule"], &of_file[0]["dockerfile"]["line"]), (&"dockerfile-syntax".into(), &2.into()));
    assert!(scan("table").out.contains("Dockerfile:2:1"));
    let sarif: Value = serde_json::from_str(&scan("sarif").out).unwrap();
    valid(&testdata().join("sarif/sarif-2.1.0.schema.json"), &sarif);
    assert!(scan("github").out.contains("line=2"));
}

#[test]
fn several_images_make_one_log() {
    let two =
        ["scan", "images/sample.tar", "builders/images/umoci.oci", "--target", "a100@535", "--format", "sarif"];
    let sarif: Value = serde_json::from_str(&common::run(&two).out).unwrap();
    valid(&testdata().join("sarif/sarif-2.1.0.schema.json"), &sarif);
    let runs = sarif["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_ne!(runs[0]["automationDetails"], runs[1]["automationDetails"]);
}
