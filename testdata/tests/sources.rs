//! One image from every builder and in every layout gives the same evidence, whatever way it comes in.

use crate::common;

use std::collections::BTreeSet;

use common::{evidence, program, run, run_with_input, testdata, without};
use serde_json::Value;

/// What is in builders/images and how it is named: the words of the contract, each for what it fits.
const IMAGES: [(&str, &[&str]); 20] = [
    ("buildah-docker.dir", &["", "dir:"]),
    ("buildah-oci.oci", &["", "oci:"]),
    ("docker-24.tar", &["", "docker-archive:"]),
    ("docker-25.tar", &["", "docker-archive:", "oci-archive:"]),
    ("docker-25.tar.gz", &["", "docker-archive:"]),
    ("kaniko.tar", &["", "docker-archive:"]),
    ("podman-docker-archive.tar", &["", "docker-archive:"]),
    ("podman-docker-dir", &["", "dir:"]),
    ("podman-oci-archive.tar", &["", "oci-archive:"]),
    ("podman-oci-dir", &["", "oci:"]),
    ("podman-two-images.tar:localhost/demo:docker", &["", "docker-archive:"]),
    ("skopeo-docker-archive.tar", &["", "docker-archive:"]),
    ("skopeo-docker.dir", &["", "dir:"]),
    ("skopeo-gzip.oci", &["", "oci:"]),
    ("skopeo-oci-archive.tar", &["", "oci-archive:"]),
    ("skopeo-oci-gzip.dir", &["", "dir:"]),
    ("skopeo-plain.oci", &["", "oci:"]),
    ("skopeo-zstd-chunked.oci", &["", "oci:"]),
    ("skopeo-zstd.oci:latest", &["oci:"]),
    ("umoci.oci", &["", "oci:"]),
];

const TREES: [(&str, &[&str]); 3] =
    [("rootfs", &["", "dir:"]), ("rootfs.tar", &["", "tar:"]), ("rootfs.tar.gz", &["", "tar:"])];

const WHEEL: &str = "demo_kernels-1.2.0-cp311-cp311-linux_x86_64.whl";

const TARGETS: [&str; 6] = ["--target", "a100@535", "--target", "RTX 5090@575", "--target", "Jetson Thor"];

fn images() -> std::path::PathBuf {
    testdata().join("builders/images")
}

fn scan(image: &str) -> Value {
    let mut args = vec!["scan", image, "--format", "json"];
    args.extend(TARGETS);
    let ran = common::finish(program().args(args).current_dir(images()));
    assert_eq!(ran.code, 1, "{image}: {ran:?}");
    ran.json()
}

/// The same from standard input; a tag goes with the dash.
fn piped(name: &str) -> Value {
    let (file, tag) = name.split_once(':').unwrap_or((name, ""));
    let dash = if tag.is_empty() { "-".to_owned() } else { format!("-:{tag}") };
    let mut args = vec!["scan", "--format", "json"];
    args.extend(TARGETS);
    args.extend(["--", &dash]);
    let ran = run_with_input(&args, &std::fs::read(images().join(file)).unwrap());
    assert_eq!(ran.code, 1, "{name}, piped: {ran:?}");
    ran.json()
}

fn file_of(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

/// Every way to read these: (how, what the report says).
fn read(table: &[(&str, &[&str])]) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (name, schemes) in table {
        all.extend(schemes.iter().map(|s| (format!("{s}{name}"), scan(&format!("{s}{name}")))));
        if images().join(file_of(name)).is_file() {
            all.push((format!("{name}, piped"), piped(name)));
        }
    }
    all
}

#[test]
fn every_builder_and_every_way_in_give_the_same_evidence() {
    let all = read(&IMAGES);
    assert!(all.len() >= 49, "only {} ways", all.len());
    let (first, want) = (&all[0].0, evidence(&all[0].1));
    for (how, report) in &all {
        assert!(evidence(report) == want, "{how} differs from {first}:\n{report:#}");
        assert_eq!(report["image"]["layers"].as_array().map(Vec::len), Some(2), "{how}");
        assert_eq!(report["image"]["verdict"], all[0].1["image"]["verdict"], "{how}");
        assert_eq!(report["gaps"].as_array().map(Vec::len), Some(0), "{how}");
        let text = report.to_string();
        assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{how}: an absolute path of this machine");
    }
}

#[test]
fn the_evidence_is_what_was_put_in() {
    let report = scan("buildah-oci.oci");
    let site = "opt/venv/lib/python3.11/site-packages/demo_kernels";
    let paths: Vec<&str> =
        report["device_code"].as_array().unwrap().iter().map(|d| d["path"].as_str().unwrap()).collect();
    assert_eq!(paths, [format!("{site}/libkernels.so.1"), format!("{site}/libsame.so")], "not the leftover");
    let archs = report["device_code"][0]["archs"].as_array().unwrap();
    let archs: Vec<String> =
        archs.iter().map(|a| format!("{} {}", a["arch"], a["form"]).replace('"', "")).collect();
    assert_eq!(archs, ["sm_50 sass", "sm_70 sass", "sm_80 sass", "sm_90 ptx", "sm_90a sass"]);
    assert_eq!(report["packages"][0]["name"], "demo-kernels");
    assert_eq!(report["packages"][0]["version"], "1.2.0");
    assert_eq!(common::verdicts(&report), ["a100@535 ok", "rtx-5090@575 slow", "jetson-thor fail"]);
}

#[test]
fn a_root_file_system_gives_the_same_as_folder_and_tar() {
    // A bare tree has no config, so nothing says its platform.
    let evidence = |report: &Value| without(&evidence(report), "platform");
    let all = read(&TREES);
    assert_eq!(all.len(), 8);
    let image = scan("umoci.oci");
    for key in ["device_code", "libraries", "packages"] {
        assert_eq!(evidence(&all[0].1)[key], evidence(&image)[key], "{key} of the tree and of an image");
    }
    for (how, report) in &all {
        assert!(evidence(report) == evidence(&all[0].1), "{how} differs from {}:\n{report:#}", all[0].0);
    }
}

#[test]
fn a_wheel_gives_the_same_device_code_under_its_own_paths() {
    let image = scan("buildah-oci.oci");
    let site = "opt/venv/lib/python3.11/site-packages/";
    for scheme in ["", "file:"] {
        let report = scan(&format!("{scheme}{WHEEL}"));
        let want = evidence(&image)["device_code"].to_string().replace(site, "");
        assert_eq!(evidence(&report)["device_code"].to_string(), want, "{scheme}{WHEEL}");
        assert_eq!(report["packages"], image["packages"]);
    }
}

#[test]
fn no_image_is_forgotten() {
    let there: BTreeSet<String> =
        std::fs::read_dir(images()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let named = IMAGES.iter().chain(&TREES).map(|(name, _)| file_of(name).to_owned());
    assert_eq!(there, named.chain([WHEEL.to_owned()]).collect());
}

/// `ctr images export -` writes a layout with both manifests and names of its own.
#[test]
fn what_containerd_exports_is_read_from_a_pipe() {
    let from = images().join("skopeo-gzip.oci");
    let read = |name: &str| std::fs::read(from.join(name)).unwrap();
    let mut index: Value = serde_json::from_slice(&read("index.json")).unwrap();
    let digest = index["manifests"][0]["digest"].as_str().unwrap().replace(':', "/");
    index["manifests"][0]["annotations"] = serde_json::json!({
        "io.containerd.image.name": "docker.io/library/demo:1", "org.opencontainers.image.ref.name": "1",
    });
    let manifest: Value = serde_json::from_slice(&read(&format!("blobs/{digest}"))).unwrap();
    let blob = |d: &Value| format!("blobs/{}", d["digest"].as_str().unwrap().replace(':', "/"));
    let layers: Vec<String> = manifest["layers"].as_array().unwrap().iter().map(blob).collect();
    let config = blob(&manifest["config"]);
    let docker = serde_json::json!([{
        "Config": config, "RepoTags": ["docker.io/library/demo:1"], "Layers": layers,
    }]);
    let mut files =
        vec![(config.clone(), read(&config)), (format!("blobs/{digest}"), read(&format!("blobs/{digest}")))];
    files.extend(layers.iter().map(|l| (l.clone(), read(l))));
    files.push(("index.json".to_owned(), index.to_string().into_bytes()));
    files.push(("manifest.json".to_owned(), docker.to_string().into_bytes()));
    files.push(("oci-layout".to_owned(), read("oci-layout")));
    let mut out = tar::Builder::new(Vec::new());
    for (name, data) in &files {
        let mut header = tar::Header::new_ustar();
        header.set_size(data.len() as u64);
        header.set_mode(0o444);
        out.append_data(&mut header, name, &data[..]).unwrap();
    }
    let archive = out.into_inner().unwrap();
    let want = evidence(&scan("skopeo-gzip.oci"));
    for name in ["-", "-:demo:1", "-:docker.io/library/demo:1", "-:1"] {
        let mut args = vec!["scan", "--format", "json"];
        args.extend(TARGETS);
        args.extend(["--", name]);
        let ran = run_with_input(&args, &archive);
        assert_eq!(ran.code, 1, "{name}: {ran:?}");
        assert!(evidence(&ran.json()) == want, "{name}");
    }
    run_with_input(&["scan", "--", "-:demo:2"], &archive).refused(&["demo:2", "docker.io/library/demo:1"]);
}

#[test]
fn the_image_of_several_must_be_chosen() {
    let archive = "builders/images/podman-two-images.tar";
    run(&["scan", archive]).refused(&["localhost/demo:one", "localhost/demo:docker", ":TAG"]);
    let bytes = std::fs::read(testdata().join(archive)).unwrap();
    run_with_input(&["scan", "-"], &bytes).refused(&["localhost/demo:one", "write -- -:TAG"]);
    run(&["scan", &format!("{archive}:nosuch")]).refused(&["nosuch", "localhost/demo:one"]);
    let one = run(&["scan", &format!("docker-archive:{archive}:localhost/demo:one"), "--format", "json"]);
    assert_eq!(one.json()["image"]["layers"].as_array().map(Vec::len), Some(1));
}

/// Workers and time change nothing: whole reports, byte for byte.
#[test]
fn any_number_of_workers_and_any_run_give_the_same_bytes() {
    let inputs = ["podman-docker-archive.tar", "skopeo-zstd.oci", "rootfs", "docker-25.tar.gz", WHEEL];
    let inputs = inputs.map(|name| format!("builders/images/{name}"));
    for image in inputs.iter().map(String::as_str).chain(["images/sample.tar"]) {
        for format in ["json", "table"] {
            let with = |jobs: &str| {
                let mut args = vec!["scan", image, "--format", format, "--jobs", jobs, "-vv"];
                args.extend(TARGETS);
                run(&args)
            };
            let one = with("1");
            assert!(!one.out.is_empty());
            for (jobs, again) in [("8", with("8")), ("0", with("0")), ("1", with("1"))] {
                assert!(
                    one.out == again.out && one.code == again.code,
                    "{image} as {format}: --jobs {jobs} differs"
                );
            }
        }
    }
}

#[test]
fn several_images_are_json_lines_in_the_order_given() {
    let names = ["builders/images/umoci.oci", "images/sample.tar", "builders/images/kaniko.tar"];
    let args: Vec<&str> = ["scan", "--format", "json", "--target", "a100@535"].into_iter().chain(names).collect();
    let ran = run(&args);
    let references: Vec<String> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["image"]["reference"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((references.as_slice(), ran.code), (&names.map(str::to_owned)[..], 0));
    // One that cannot be read does not keep the others from being judged.
    let ran = run(&["scan", names[0], "nosuch.tar", names[2], "--format", "json"]);
    let verdicts: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["image"]["verdict"].clone())
        .collect();
    assert_eq!((verdicts.len(), ran.code), (3, 2));
    assert!(verdicts[1] == "unknown" && verdicts[0] != "unknown" && verdicts[2] != "unknown", "{verdicts:?}");
    assert!(ran.err.contains("nosuch.tar: not found"));
}
