//! One image in the stores and the daemons of real tools, and in everything that these write, gives the evidence of
//! the layout that it was put there from.
//!
//! `podman`, `buildah`, `skopeo`, `umoci` and `mksquashfs` do the work, as root and in stores of their own; without
//! them the tests say so and check nothing.

use crate::common;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Ran, evidence, finish, on_path, program, skipped, testdata, without};
use serde_json::Value;

fn ready(tools: &[&str]) -> bool {
    if let Some(missing) = tools.iter().find(|t| !on_path(t)) {
        skipped(&format!("no {missing}"));
        return false;
    }
    if !rustix::process::geteuid().is_root() {
        skipped("not root, and the tools want namespaces otherwise");
        return false;
    }
    true
}

fn images() -> PathBuf {
    testdata().join("builders/images")
}

/// Runs a tool that must succeed.
fn tool(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

/// A store of its own, with the image in it.
struct Lab {
    dir: tempfile::TempDir,
    driver: &'static str,
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Only what podman left mounted keeps the folder from going away.
        if self.driver == "overlay" {
            let _ = Command::new("umount").arg(self.at("graph/overlay")).stderr(Stdio::null()).status();
        }
    }
}

const NAME: &str = "localhost/demo:1";

impl Lab {
    /// `None`: this machine has no such driver.
    fn new(driver: &'static str) -> Option<Self> {
        let lab = Self { dir: tempfile::tempdir().unwrap(), driver };
        let conf = format!(
            "[storage]\ndriver = {driver:?}\ngraphroot = {:?}\nrunroot = {:?}\n",
            lab.at("graph"),
            lab.at("run")
        );
        std::fs::write(lab.at("storage.conf"), conf).unwrap();
        let copied = lab
            .command("skopeo")
            .args(["copy", "--quiet", "--insecure-policy", "oci:skopeo-gzip.oci:latest"])
            .arg(format!("containers-storage:{NAME}"))
            .current_dir(images())
            .output()
            .unwrap();
        if !copied.status.success() {
            skipped(&format!("no {driver} here: {}", String::from_utf8_lossy(&copied.stderr).trim()));
            return None;
        }
        Some(lab)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).into_os_string().into_string().unwrap()
    }

    fn command(&self, tool: &str) -> Command {
        let mut command = Command::new(tool);
        command.env("CONTAINERS_STORAGE_CONF", self.at("storage.conf")).current_dir(self.dir.path());
        command.env("BUILDAH_ISOLATION", "chroot").env_remove("REGISTRY_AUTH_FILE");
        command
    }

    /// The program, seeing this store.
    fn scan(&self, image: &str, env: &[(&str, &str)]) -> Ran {
        let mut command = program();
        command.env("CONTAINERS_STORAGE_CONF", self.at("storage.conf")).current_dir(self.dir.path());
        for name in ["DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "CONTAINER_CONNECTION", "STORAGE_DRIVER"] {
            command.env_remove(name);
        }
        command.args(["scan", image, "--format", "json"]).args(TARGETS);
        finish(command.envs(env.iter().copied()))
    }

    /// Compares a way in with the layout that the image came from; how many layers it may have.
    fn same(&self, want: &Value, image: &str, env: &[(&str, &str)], layers: std::ops::RangeInclusive<usize>) {
        let ran = self.scan(image, env);
        assert_eq!(ran.code, 1, "{} {image}: {ran:?}", self.driver);
        let report = ran.json();
        assert!(evidence(&report) == *want, "{} {image}:\n{report:#}", self.driver);
        assert_eq!(report["gaps"].as_array().map(Vec::len), Some(0), "{image}");
        let count = report["image"]["layers"].as_array().map(Vec::len).unwrap_or_default();
        assert!(layers.contains(&count), "{image}: {count} layers");
        assert!(
            !ran.out.contains(self.dir.path().to_str().unwrap()) || image.contains('['),
            "{image}: a host path"
        );
    }
}

const TARGETS: [&str; 6] = ["--target", "a100@535", "--target", "RTX 5090@575", "--target", "Jetson Thor"];

fn wanted() -> Value {
    let mut command = program();
    command.args(["scan", "skopeo-gzip.oci", "--format", "json"]).args(TARGETS).current_dir(images());
    evidence(&finish(&mut command).json())
}

/// `podman system service`, ended when it is dropped.
struct Service {
    child: Child,
    socket: String,
}

impl Service {
    fn new(lab: &Lab) -> Self {
        let socket = lab.text("podman.sock");
        let child = lab
            .command("podman")
            .args(["system", "service", "--time=0"])
            .arg(format!("unix://{socket}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert!(start.elapsed() < Duration::from_secs(60), "podman does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { child, socket: format!("unix://{socket}") }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn stores_are_read_in_place() {
    if !ready(&["skopeo"]) {
        return;
    }
    let want = wanted();
    for lab in ["vfs", "overlay"].into_iter().filter_map(Lab::new) {
        let root = lab.text("graph");
        let list: Value = serde_json::from_str(
            &std::fs::read_to_string(lab.at(&format!("graph/{}-images/images.json", lab.driver))).unwrap(),
        )
        .unwrap();
        let id = list[0]["id"].as_str().unwrap();
        let digest = list[0]["digest"].as_str().unwrap();
        for name in [NAME, "demo:1", id, &id[..8], &format!("demo@{digest}"), &format!("@{id}")] {
            lab.same(&want, &format!("containers-storage:{name}"), &[], 2..=2);
        }
        lab.same(&want, &format!("containers-storage:[{}@{root}+/x]{NAME}", lab.driver), &[], 2..=2);
        lab.same(&want, &format!("containers-storage:[{root}]{NAME}"), &[], 2..=2);
        lab.scan("containers-storage:nosuch", &[]).refused(&["not found", NAME, "registry:nosuch"]);
        lab.scan("containers-storage:demo:1", &[("STORAGE_DRIVER", "btrfs")]).refused(&["btrfs", "podman save"]);
        // Other compressions in the store are the same bytes in the end.
        for (from, name) in [("oci:skopeo-zstd.oci:latest", "z:1"), ("docker-archive:docker-24.tar", "d:24")] {
            let to = format!("containers-storage:localhost/{name}");
            let mut copy = lab.command("skopeo");
            tool(copy.args(["copy", "--quiet", "--insecure-policy", from, &to]).current_dir(images()));
            lab.same(&want, &format!("containers-storage:{name}"), &[], 2..=2);
        }
        changed(&lab, &want);
    }
}

/// What was changed in a store is noticed.
fn changed(lab: &Lab, want: &Value) {
    let below = if lab.driver == "vfs" { "graph/vfs/dir" } else { "graph/overlay" };
    let found = Command::new("find").arg(lab.at(below)).args(["-name", "libkernels.so.1"]).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let files: Vec<&str> = found.lines().collect();
    assert!(!files.is_empty());
    let before = std::fs::read(files[0]).unwrap();
    for file in &files {
        let mut bytes = before.clone();
        bytes[900] ^= 1;
        std::fs::write(file, bytes).unwrap();
    }
    let ran = lab.scan("containers-storage:demo:1", &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.out.contains("diff_id mismatch"), "{ran:?}");
    for file in &files {
        std::fs::write(file, &before[1..]).unwrap();
    }
    let ran = lab.scan("containers-storage:demo:1", &[]);
    assert!(ran.code == 2 && ran.out.contains("the store was changed"), "{ran:?}");
    // Moved, not removed: other names are hard links to it.
    for file in &files {
        std::fs::write(file, &before).unwrap();
        std::fs::rename(file, format!("{file}.away")).unwrap();
    }
    let ran = lab.scan("containers-storage:demo:1", &[]);
    assert!(ran.code == 2 && ran.out.contains("is missing from the store"), "{ran:?}");
    for file in &files {
        std::fs::rename(format!("{file}.away"), file).unwrap();
    }
    lab.same(want, "containers-storage:demo:1", &[], 2..=2);
    // Without what the tars were split into, folders are read as they lie: the same, but for the diff_ids.
    for entry in std::fs::read_dir(lab.at(&format!("graph/{}-layers", lab.driver))).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().is_some_and(|p| p.ends_with(".tar-split.gz")) {
            std::fs::remove_file(path).unwrap();
        }
    }
    let ran = lab.scan("containers-storage:demo:1", &[]);
    assert!(ran.err.contains("2 of 2 layers have no tar-split"), "{ran:?}");
    let layers = if lab.driver == "vfs" { 1..=1 } else { 2..=2 };
    lab.same(want, "containers-storage:demo:1", &[], layers);
}

#[test]
fn daemons_are_asked_over_their_sockets() {
    if !ready(&["skopeo", "podman"]) {
        return;
    }
    let Some(lab) = Lab::new("vfs") else { return };
    let want = wanted();
    let service = Service::new(&lab);
    let socket = service.socket.clone();
    let docker = [("DOCKER_HOST", socket.as_str())];
    let podman = [("CONTAINER_HOST", socket.as_str())];
    for name in [NAME, "demo:1"] {
        lab.same(&want, &format!("docker:{name}"), &docker, 2..=2);
        lab.same(&want, &format!("docker-daemon:{name}"), &docker, 2..=2);
        lab.same(&want, &format!("podman:{name}"), &podman, 2..=2);
    }
    lab.scan("docker:nosuch:1", &docker).refused(&[
        "docker:nosuch:1: not found",
        "docker pull",
        "registry:nosuch:1",
    ]);
    lab.scan("podman:nosuch:1", &podman).refused(&["podman:nosuch:1: not found", "podman pull"]);
    drop(service);
    lab.scan("docker:demo:1", &docker).refused(&["podman.sock", "connection refused", "is docker running?"]);
    // Without a socket, podman's store is read.
    if !Path::new("/run/podman/podman.sock").exists() {
        let nowhere = [("XDG_RUNTIME_DIR", "/nonexistent")];
        lab.same(&want, "podman:demo:1", &nowhere, 2..=2);
        let ran = lab.scan("podman:demo:1", &nowhere);
        assert!(ran.err.contains("its store is read in place"), "{ran:?}");
        lab.scan("podman:nosuch", &nowhere).refused(&["not found", "no socket at /run/podman/podman.sock"]);
    }
    if !Path::new("/var/run/docker.sock").exists() {
        let home = [("HOME", "/nonexistent")];
        lab.scan("docker:demo:1", &home).refused(&[
            "/var/run/docker.sock",
            "is docker running?",
            "registry:docker:",
        ]);
    }
    let ssh = [("DOCKER_HOST", "ssh://me@far")];
    lab.scan("docker:demo:1", &ssh).refused(&["DOCKER_HOST", "ssh", "docker save"]);
}

/// podman's four formats, skopeo's five transports, buildah and umoci.
#[test]
fn what_the_tools_write_of_a_store_is_all_the_same() {
    if !ready(&["skopeo", "podman", "buildah", "umoci"]) {
        return;
    }
    let Some(lab) = Lab::new("vfs") else { return };
    let want = wanted();
    for format in ["docker-archive", "oci-archive", "oci-dir", "docker-dir"] {
        let out = format!("podman-{format}");
        tool(lab.command("podman").args(["save", "--quiet", "--format", format, "-o", &out, NAME]));
        lab.same(&want, &format!("./{out}"), &[], 2..=2);
        if format.ends_with("archive") {
            let piped = std::fs::read(lab.at(&out)).unwrap();
            let mut args = vec!["scan", "-", "--format", "json"];
            args.extend(TARGETS);
            assert!(evidence(&common::run_with_input(&args, &piped).json()) == want, "{format}, piped");
        }
    }
    let stored = format!("containers-storage:{NAME}");
    for (to, name) in [
        ("docker-archive:s.tar:localhost/s:1", "docker-archive:s.tar"),
        ("oci:s.oci:one", "oci:s.oci:one"),
        ("oci-archive:s-oci.tar:one", "oci-archive:s-oci.tar:one"),
        ("dir:s.dir", "dir:s.dir"),
        ("containers-storage:localhost/copy:2", "containers-storage:copy:2"),
    ] {
        tool(lab.command("skopeo").args(["copy", "--quiet", "--insecure-policy", &stored, to]));
        lab.same(&want, name, &[], 2..=2);
    }
    // buildah adds an empty layer of its own, or none.
    let container = tool(lab.command("buildah").args(["from", "--quiet", "--pull-never", NAME]));
    let container = container.trim();
    for (format, name) in [("oci", "localhost/built:oci"), ("docker", "localhost/built:docker")] {
        tool(lab.command("buildah").args(["commit", "--quiet", "--format", format, container, name]));
        lab.same(&want, &format!("containers-storage:{name}"), &[], 2..=3);
    }
    for to in ["oci:b.oci:one", "docker-archive:b.tar", "oci-archive:b-oci.tar:one", "dir:b.dir"] {
        tool(lab.command("buildah").args(["push", "--quiet", "localhost/built:oci", to]));
        lab.same(&want, to, &[], 2..=3);
    }
    // umoci unpacks, and packs again what it changed.
    tool(lab.command("umoci").args(["unpack", "--image", "s.oci:one", "bundle"]));
    std::fs::write(lab.at("bundle/rootfs/etc/more"), "more").unwrap();
    tool(lab.command("umoci").args(["repack", "--image", "s.oci:two", "bundle"]));
    lab.same(&want, "oci:s.oci:two", &[], 3..=3);
    lab.scan("s.oci", &[]).refused(&["several images", "one", "two"]);
    // Several images in each kind of archive are asked about, with how to choose.
    tool(lab.command("podman").args(["save", "--quiet", "-m", "-o", "many.tar", NAME, "localhost/built:oci"]));
    lab.scan("docker-archive:many.tar", &[]).refused(&["several images", ":TAG", NAME, "localhost/built:oci"]);
    lab.same(&want, &format!("docker-archive:many.tar:{NAME}"), &[], 2..=2);
    tool(Command::new("tar").args(["-C", "s.oci", "-cf", "many-oci.tar", "."]).current_dir(lab.dir.path()));
    lab.scan("oci-archive:many-oci.tar", &[]).refused(&["several images", ":TAG", "one", "two"]);
    lab.same(&want, "oci-archive:many-oci.tar:one", &[], 2..=2);
}

#[test]
fn squashfs_gives_the_evidence_of_its_root_file_system() {
    if !on_path("mksquashfs") {
        skipped("no mksquashfs");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let scan = |image: &str| {
        let mut command = program();
        command.args(["scan", image, "--format", "json"]).args(TARGETS).current_dir(dir.path());
        finish(&mut command)
    };
    let tree = images().join("rootfs");
    let want = scan(&format!("dir:{}", tree.display())).json();
    let same = |image: &str| {
        let ran = scan(image);
        assert_eq!(ran.code, 1, "{image}: {ran:?}");
        let report = ran.json();
        assert!(evidence(&report) == evidence(&want), "{image}:\n{report:#}");
        assert_eq!((&report["gaps"], &report["image"]["platform"]), (&want["gaps"], &want["image"]["platform"]));
        let stats = |r: &Value| without(&r["stats"], "seconds");
        assert_eq!(stats(&report)["files"], stats(&want)["files"], "{image}");
    };
    for codec in ["gzip", "lzo", "xz", "lz4", "zstd", "lzo -noD", "gzip -noI -noD -noF", "xz -Xbcj x86 -b 1M"] {
        let mut make = Command::new("mksquashfs");
        make.arg(&tree).arg(dir.path().join("x.sqsh")).args(["-noappend", "-quiet", "-no-progress", "-comp"]);
        tool(make.args(codec.split(' ')));
        same("x.sqsh");
        same("squashfs:x.sqsh");
    }
    // What enroot keeps of the image's own environment counts.
    let other = dir.path().join("root");
    tool(Command::new("cp").arg("-a").arg(&tree).arg(&other));
    std::fs::write(other.join("etc/environment"), "NVIDIA_REQUIRE_CUDA=cuda>=99.0\n").unwrap();
    tool(Command::new("mksquashfs").arg(&other).arg(dir.path().join("env.sqsh")).args(["-quiet", "-no-progress"]));
    let ran = scan("env.sqsh");
    assert!(ran.err.contains("the environment is taken from etc/environment"), "{ran:?}");
    assert!(ran.out.contains("cuda>=99.0"), "{ran:?}");
    // Cut and damaged files end in one line.
    let mut make = Command::new("mksquashfs");
    tool(make.arg(&tree).arg(dir.path().join("z.sqsh")).args(["-nopad", "-quiet", "-no-progress"]));
    let whole = std::fs::read(dir.path().join("z.sqsh")).unwrap();
    let put = |bytes: &[u8]| std::fs::write(dir.path().join("y.sqsh"), bytes).unwrap();
    for cut in [50, 96, 1000, whole.len() / 2, whole.len() - 1] {
        put(&whole[..cut]);
        let ran = scan("y.sqsh");
        ran.refused(&["y.sqsh"]);
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
    for at in [100, whole.len() - 300] {
        let mut hurt = whole.clone();
        hurt[at..at + 200].fill(0x55);
        put(&hurt);
        let ran = scan("y.sqsh");
        assert_eq!(ran.code, 2, "{at}: {ran:?}");
        assert!(ran.err.contains("error: "), "{at}: {ran:?}");
    }
}
