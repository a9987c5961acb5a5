//! `imagelint rebuild`: the flow, exit statuses and what is left behind, with builders that only seem to build. Real ones
//! are in testdata/rebuild.

use crate::common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Ran, finish, testdata};
use sha2::{Digest, Sha256};

const DOCKERFILE: &str = "FROM ubuntu:24.04 AS final\nRUN pip install torch\nENV TORCH_CUDA_ARCH_LIST=\"8.0 9.0\"\n\
                          RUN pip install --no-build-isolation ./csrc\n";
const FIXED: &str = "ENV TORCH_CUDA_ARCH_LIST=\"7.5;8.0;9.0\"";
/// What the file as it stands would build: 8.0 and 9.0.
const NARROW: &str = "cu135_so_compress_none.so";
/// What it should: 7.5 too.
const WIDE: &str = "cu135_so_all_major.so";

const FLEET: [&str; 4] = ["--target", "t4@580", "--target", "a100@580"];

/// Tells its version, notes how it is called, prints, and gives the archive that fits the Dockerfile.
const FAKE: &str = r##"#!/bin/sh
echo "$(basename "$0") $*" >>"$FAKE/calls"
build() {
    while [ $# -gt 1 ]; do [ "$1" = -f ] && file=$2; shift; done
    cp "$file" "$FAKE/built"
    ls "$(dirname "$file")" >"$FAKE/beside"
    echo "STEP 1/2: with token $API_TOKEN"
    printf '\033[32mcolour\033[0m\n' >&2
    case $FAKE_BUILD in
    fails) i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo "line $i"; done; echo "nvcc: error 7" >&2; exit 3 ;;
    waits) sleep 300 & echo $! >"$FAKE/pid"; wait ;;
    esac
    if [ "$FAKE_BUILD" != narrow ] && grep -q '7\.5' "$file"; then cp "$FAKE/wide.tar" "$FAKE/image"
    else cp "$FAKE/narrow.tar" "$FAKE/image"; fi
}
case "$1 $2" in
"version --format") [ "$FAKE_DAEMON" = yes ] && echo 28.2.2 || exit 1 ;;
"--version "*) echo "buildah version 1.28.2 (image-spec 1.1.0)" ;;
"buildx version") [ "$FAKE_BUILDX" = yes ] && echo "github.com/docker/buildx v0.14.0 171fcbe" || exit 1 ;;
"build "* | "buildx build") build "$@" ;;
"save -q") cp "$FAKE/image" "$6" ;;
"push -q") cp "$FAKE/image" "${4#oci-archive:}" ;;
"save -o") cp "$FAKE/image" "$3" ;;
"push "*) [ "$FAKE_BUILD" != unpushed ] || { echo "denied" >&2; exit 125; } ;;
*) echo "what is $*?" >&2; exit 99 ;;
esac
"##;

struct Bench(tempfile::TempDir);

impl Bench {
    /// With a project, archives, and builders of these names.
    fn new(builders: &[&str]) -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        for folder in ["bin", "fake", "tmp", "project"] {
            fs::create_dir(bench.at(folder)).unwrap();
        }
        for name in builders {
            let path = bench.at("bin").join(name);
            fs::write(&path, FAKE).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for tool in ["sh", "cp", "ls", "cat", "sleep", "grep", "basename", "dirname"] {
            std::os::unix::fs::symlink(program_of(tool), bench.at("bin").join(tool)).unwrap();
        }
        archive(&bench.at("fake/narrow.tar"), NARROW);
        archive(&bench.at("fake/wide.tar"), WIDE);
        fs::write(bench.at("project/Dockerfile"), DOCKERFILE).unwrap();
        bench
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_default()
    }

    /// The program in the folder above the project, with no other builders than those of the bench.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = common::program();
        command.current_dir(self.0.path()).arg("rebuild").args(args).args(FLEET);
        command.env("PATH", self.at("bin")).env("TMPDIR", self.at("tmp")).env("FAKE", self.at("fake"));
        command
    }

    fn rebuild(&self, args: &[&str], how: &[(&str, &str)]) -> Ran {
        let ran = finish(self.command(args).envs(how.iter().copied()));
        assert_eq!(fs::read_dir(self.at("tmp")).unwrap().count(), 0, "nothing temporary is left: {ran:?}");
        ran
    }

    fn untouched(&self) -> &Self {
        assert_eq!(self.text("project/Dockerfile"), DOCKERFILE);
        assert_eq!(fs::read_dir(self.at("project")).unwrap().count(), 1);
        self
    }
}

fn program_of(tool: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|dir| dir.join(tool)).find(|p| p.is_file()).unwrap()
}

/// An OCI archive of one layer with a library in it.
fn archive(path: &Path, library: &str) {
    let code = fs::read(testdata().join("corpus/cuda/bin").join(library)).unwrap();
    let mut layer = tar::Builder::new(Vec::new());
    add(&mut layer, "opt/ext/libaxpy.so", &code);
    let layer = layer.into_inner().unwrap();
    let mut out = tar::Builder::new(fs::File::create(path).unwrap());
    let mut blob = |bytes: &[u8]| {
        let hex: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
        add(&mut out, &format!("blobs/sha256/{hex}"), bytes);
        (format!("sha256:{hex}"), bytes.len())
    };
    let (diff, layer_size) = blob(&layer);
    let config = serde_json::json!({ "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": { "type": "layers", "diff_ids": [diff] } });
    let (config, config_size) = blob(config.to_string().as_bytes());
    let oci = "application/vnd.oci.image";
    let manifest = serde_json::json!({ "schemaVersion": 2, "mediaType": format!("{oci}.manifest.v1+json"),
        "config": { "mediaType": format!("{oci}.config.v1+json"), "digest": config, "size": config_size },
        "layers": [{ "mediaType": format!("{oci}.layer.v1.tar"), "digest": diff, "size": layer_size }] });
    let (manifest, size) = blob(manifest.to_string().as_bytes());
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [
        { "mediaType": format!("{oci}.manifest.v1+json"), "digest": manifest, "size": size }] });
    add(&mut out, "index.json", index.to_string().as_bytes());
    add(&mut out, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#);
    out.finish().unwrap();
}

fn add<W: std::io::Write>(tar: &mut tar::Builder<W>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, bytes).unwrap();
}

const FILE: [&str; 2] = ["--dockerfile", "project/Dockerfile"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&FILE[..], more].concat()
}

#[test]
fn a_promise_that_is_kept() {
    let bench = Bench::new(&["buildah"]);
    let ran = bench.rebuild(&FILE, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in [
        "project/Dockerfile:3: add 7.5 (arch-list-misses-target)",
        "+ENV TORCH_CUDA_ARCH_LIST=",
        "with buildah 1.28.2",
        "(predicted) -> ok",
        "the promise was kept",
        "localhost/imagelint-rebuild:",
    ] {
        assert!(ran.out.contains(words), "lacks {words}: {ran:?}");
    }
    let place = |text: &str| ran.out.find(text).unwrap();
    assert!(place("+ENV") < place("BUILT"), "the change is shown before it is built");
    assert!(ran.err.contains("STEP 1/2") && ran.err.contains("\u{1b}[32mcolour"), "as it comes: {ran:?}");
    let built = bench.untouched().text("fake/built");
    assert!(built.contains("7.5") && built != DOCKERFILE, "{built}");
    let calls = bench.text("fake/calls");
    let context = fs::canonicalize(bench.at("project")).unwrap();
    let build = calls.lines().find(|l| l.starts_with("buildah build")).unwrap();
    assert!(build.contains("/Dockerfile -t localhost/imagelint-rebuild:"), "{calls}");
    assert!(build.ends_with(context.to_str().unwrap()), "{calls}");
    assert!(!calls.lines().any(|l| l.starts_with("buildah push l")), "nobody asked for a push: {calls}");
    let quiet = bench.rebuild(&with(&["--quiet"]), &[]);
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""));
}

#[test]
fn the_file_is_written_once_the_promise_is_kept() {
    let bench = Bench::new(&["buildah"]);
    let ran = bench.rebuild(&with(&["--write"]), &[("FAKE_BUILD", "narrow")]);
    assert_eq!(ran.code, 1, "{ran:?}");
    bench.untouched();
    let ran = bench.rebuild(&with(&["--write"]), &[("FAKE_BUILD", "fails")]);
    assert_eq!(ran.code, 2, "{ran:?}");
    bench.untouched();
    let ran = bench.rebuild(&with(&["--write"]), &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let written = bench.text("project/Dockerfile");
    assert_eq!(written, bench.text("fake/built"));
    let list = written.lines().find(|l| l.starts_with("ENV")).unwrap();
    assert!(list.contains("7.5") && list.len() <= FIXED.len(), "{list}");
    let again = bench.rebuild(&with(&["--write"]), &[]);
    assert_eq!((again.code, bench.text("project/Dockerfile")), (0, written));
    assert!(again.out.contains("No edit of project/Dockerfile is known"), "{again:?}");
}

#[test]
fn a_promise_that_is_not_kept() {
    let bench = Bench::new(&["buildah"]);
    let ran = bench.rebuild(&with(&["--tag", "r/app:2", "--push"]), &[("FAKE_BUILD", "narrow")]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for words in ["(predicted) -> fail", "! t4@580 is fail, ok was promised", "was not kept", "r/app:2"] {
        assert!(ran.out.contains(words), "lacks {words}: {ran:?}");
    }
    assert!(!bench.untouched().text("fake/calls").contains("buildah push r/app:2"), "what fails is not pushed");
    let lenient = bench.rebuild(&with(&["--fail-on", "never"]), &[("FAKE_BUILD", "narrow")]);
    assert_eq!(lenient.code, 1, "a promise counts whatever findings do: {lenient:?}");
}

#[test]
fn a_build_that_fails_leaves_its_last_lines() {
    let bench = Bench::new(&["buildah"]);
    let ran = bench.rebuild(&with(&["--quiet"]), &[("FAKE_BUILD", "fails")]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.starts_with("error: buildah could not build project/Dockerfile (exit status 3)"), "{ran:?}");
    assert!(ran.err.contains("\n  line 40\n") && ran.err.contains("nvcc: error 7"), "{ran:?}");
    assert!(!ran.err.contains("line 10\n") && ran.err.lines().count() < 25, "{ran:?}");
    bench.untouched();
}

#[test]
fn without_a_builder_the_change_is_shown_and_what_to_install_said() {
    let bench = Bench::new(&[]);
    let ran = bench.rebuild(&FILE, &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("no builder runs here") && ran.err.contains("installing buildah"), "{ran:?}");
    assert!(ran.out.contains("+ENV"), "{ran:?}");
    let asked = bench.rebuild(&with(&["--builder", "podman"]), &[]);
    assert!(asked.code == 2 && asked.err.contains("podman does not run here"), "{asked:?}");
    bench.untouched();
}

#[test]
fn the_first_builder_that_runs_is_taken() {
    let bench = Bench::new(&["docker", "buildah", "podman"]);
    let with_builder = |more: &[&str], how: &[(&str, &str)]| {
        let ran = bench.rebuild(&with(more), how);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out.lines().find(|l| l.starts_with("BUILT")).unwrap().rsplit("with ").next().unwrap().to_owned()
    };
    assert_eq!(with_builder(&[], &[("FAKE_DAEMON", "yes"), ("FAKE_BUILDX", "yes")]), "docker buildx 0.14.0");
    assert!(bench.text("fake/calls").contains("docker buildx build --load -f "));
    assert_eq!(with_builder(&[], &[("FAKE_DAEMON", "yes")]), "docker 28.2.2");
    assert_eq!(with_builder(&[], &[("FAKE_BUILDX", "yes")]), "buildah 1.28.2", "docker has no daemon");
    assert_eq!(with_builder(&["--builder", "podman"], &[("FAKE_DAEMON", "yes")]), "podman 1.28.2");
}

#[test]
fn of_an_image_the_verdicts_before_are_measured() {
    let bench = Bench::new(&["buildah"]);
    let args = with(&["fake/narrow.tar", "--format", "json", "--tag", "r/app:2"]);
    let ran = bench.rebuild(&args, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let json = ran.json();
    let built = &json["builds"][0];
    assert_eq!((json["kept"].as_bool(), built["name"].as_str()), (Some(true), Some("r/app:2")));
    assert_eq!(built["effect"]["basis"], "measured");
    assert_eq!(built["effect"]["verdicts"]["t4@580"], serde_json::json!(["fail", "ok"]));
    assert_eq!(built["effect"]["verdicts"]["a100@580"], serde_json::json!(["ok", "ok"]));
    assert_eq!(built["report"]["image"]["reference"], "r/app:2", "no temporary path");
    assert!(built["diff"].as_str().unwrap().starts_with("--- a/project/Dockerfile\n"), "{built}");
    assert!(!ran.out.contains(bench.0.path().to_str().unwrap()), "no absolute path: {ran:?}");
    let schema = fs::read(testdata().join("../rules/rebuild.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_slice(&schema).unwrap()).unwrap();
    assert!(validator.is_valid(&json));
    // What serves the fleet already is not built.
    fs::remove_file(bench.at("fake/calls")).unwrap();
    fs::write(bench.at("project/Dockerfile"), DOCKERFILE.replace("8.0 9.0", "7.5 8.0 9.0")).unwrap();
    let fine = bench.rebuild(&with(&["fake/wide.tar"]), &[]);
    assert_eq!((fine.code, bench.text("fake/calls").as_str()), (0, ""), "{fine:?}");
}

#[test]
fn what_no_dockerfile_that_starts_from_the_image_can_mend_is_not_built() {
    let bench = Bench::new(&["buildah"]);
    let ran = bench.rebuild(&["fake/narrow.tar", "--format", "json"], &[]);
    assert_eq!((ran.code, bench.text("fake/calls").as_str()), (1, ""), "{ran:?}");
    assert!(ran.err.contains("no step of the plan"), "{ran:?}");
    let json = ran.json();
    assert_eq!((&json["kept"], &json["builds"]), (&false.into(), &serde_json::json!([])));
    assert!(json["plan"]["steps"].is_array(), "{json}");
}

#[test]
fn it_is_pushed_last() {
    let bench = Bench::new(&["buildah"]);
    let args = with(&["--tag", "r/app:2", "--push", "--build-arg", "A=b", "--stage", "final"]);
    let args = [&args[..], &["--platform", "linux/amd64"]].concat();
    let ran = bench.rebuild(&args, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("pushed: r/app:2"), "{ran:?}");
    let calls = bench.text("fake/calls");
    assert!(calls.ends_with("buildah push r/app:2\n"), "{calls}");
    assert!(calls.contains("-t r/app:2 --target final --platform linux/amd64 --build-arg A=b "), "{calls}");
    let denied = bench.rebuild(&with(&["--tag", "r/app:2", "--push"]), &[("FAKE_BUILD", "unpushed")]);
    assert!(denied.code == 2 && denied.err.contains("could not push r/app:2"), "{denied:?}");
    assert!(denied.err.contains("\n  denied\n"), "{denied:?}");
}

#[test]
fn secrets_are_not_seen() {
    let bench = Bench::new(&["buildah"]);
    let args = with(&["--build-arg", "API_TOKEN", "--build-arg", "B_PASSWORD=hunter22"]);
    for how in ["", "fails"] {
        let ran = bench.rebuild(&args, &[("API_TOKEN", "xyzzy-plugh"), ("FAKE_BUILD", how)]);
        assert!(ran.err.contains("with token ***"), "{ran:?}");
        assert!(!format!("{ran:?}").contains("xyzzy") && !format!("{ran:?}").contains("hunter"), "{ran:?}");
    }
    assert!(bench.text("fake/calls").contains("--build-arg API_TOKEN --build-arg B_PASSWORD=hunter22"));
}

#[test]
fn what_stands_beside_the_file_and_behind_the_dashes_reaches_the_builder() {
    let bench = Bench::new(&["buildah"]);
    fs::create_dir(bench.at("docker")).unwrap();
    fs::rename(bench.at("project/Dockerfile"), bench.at("docker/gpu.Dockerfile")).unwrap();
    fs::write(bench.at("docker/gpu.Dockerfile.dockerignore"), "secret").unwrap();
    let mut command = bench.command(&["--dockerfile", "docker/gpu.Dockerfile", "--context", "project"]);
    let ran = finish(command.args(["--", "--isolation", "chroot"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(bench.text("fake/beside"), "gpu.Dockerfile\ngpu.Dockerfile.dockerignore\n");
    let calls = bench.text("fake/calls");
    let context = fs::canonicalize(bench.at("project")).unwrap();
    assert!(calls.contains(&format!(" --isolation chroot {}\n", context.to_str().unwrap())), "{calls}");
}

#[test]
fn an_image_that_cannot_be_read_is_no_answer() {
    let bench = Bench::new(&["buildah"]);
    fs::write(bench.at("fake/wide.tar"), "no archive").unwrap();
    let ran = bench.rebuild(&with(&["--write"]), &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("error: "), "{ran:?}");
    bench.untouched();
}

#[test]
fn a_signal_ends_the_build_and_cleans_up() {
    let bench = Bench::new(&["buildah"]);
    for signal in ["INT", "TERM"] {
        let mut command = bench.command(&with(&["--write"]));
        command.env("FAKE_BUILD", "waits").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        let builder = loop {
            if let Ok(pid) = bench.text("fake/pid").trim().parse::<u32>() {
                break pid;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "the builder was not started");
            sleep(Duration::from_millis(20));
        };
        let id = child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
        let status = child.wait().unwrap();
        let number = if signal == "INT" { 2 } else { 15 };
        assert_eq!(status.signal(), Some(number), "ended as the signal ends it: {status:?}");
        assert_eq!(fs::read_dir(bench.at("tmp")).unwrap().count(), 0, "{signal}");
        let alive = || Path::new(&format!("/proc/{builder}/cmdline")).exists() && !is_dead(builder);
        let waited = Instant::now();
        while alive() && waited.elapsed() < Duration::from_secs(5) {
            sleep(Duration::from_millis(20));
        }
        assert!(!alive(), "what the builder started has ended too");
        bench.untouched();
        fs::remove_file(bench.at("fake/pid")).unwrap();
    }
}

/// Waiting to be reaped by whoever inherited it.
fn is_dead(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| s.rsplit(") ").next().unwrap().starts_with('Z'))
}

#[test]
fn usage_errors_say_what_was_meant() {
    let bench = Bench::new(&["buildah"]);
    let told = |args: &[&str], words: &[&str]| {
        bench.rebuild(args, &[]).refused(words);
    };
    told(&with(&["--push"]), &["--tag"]);
    told(&["fake/narrow.tar", "--write"], &["--dockerfile"]);
    told(&["--dockerfile", "nosuch"], &["nosuch"]);
    told(&with(&["--context", "nosuch"]), &["nosuch"]);
    let mut bare = common::program();
    bare.current_dir(bench.0.path()).args(["rebuild", "--dockerfile", "project/Dockerfile"]);
    finish(&mut bare).refused(&["no targets", "--target"]);
    assert_eq!(bench.text("fake/calls"), "", "nothing was run");
}
