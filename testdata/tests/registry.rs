//! Images pulled from a real registry on loopback give the same evidence as the layouts they were pushed from.
//!
//! `IMAGELINT_TEST_REGISTRY=HOST:PORT` names a registry to use. Otherwise one is started, if `docker-registry` and
//! `skopeo` are there; without them the tests say so and check nothing.

mod common;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use common::{evidence, run, testdata};
use serde_json::Value;

/// A registry, stopped when it is dropped.
struct Registry {
    address: String,
    served: Option<(Child, tempfile::TempDir)>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.served {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Tells it once, past the harness, which keeps what passing tests print.
fn skipped(why: &str) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| drop(writeln!(std::io::stderr(), "registry tests skipped: {why}")));
}

fn registry() -> Option<Registry> {
    if !on_path("skopeo") {
        skipped("no skopeo to push images with");
        return None;
    }
    if let Ok(address) = std::env::var("IMAGELINT_TEST_REGISTRY") {
        return Some(Registry { address, served: None });
    }
    if !on_path("docker-registry") {
        skipped("no docker-registry, and IMAGELINT_TEST_REGISTRY names none");
        return None;
    }
    let store = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let config = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: {address}}}\n",
        store.path().join("images").display()
    );
    let file = store.path().join("config.yml");
    std::fs::write(&file, config).unwrap();
    let child = Command::new("docker-registry")
        .arg("serve")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let registry = Registry { address, served: Some((child, store)) };
    let start = Instant::now();
    while TcpStream::connect(&registry.address).is_err() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "docker-registry does not answer on {}",
            registry.address
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(registry)
}

/// Pushes byte for byte: skopeo compresses plain layers anew, so those are left to the other tests.
fn push(registry: &Registry, from: &str, name: &str) {
    let output = Command::new("skopeo")
        .args(["copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false", from])
        .arg(format!("docker://{}/{name}", registry.address))
        .current_dir(testdata().join("builders/images"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{from}: {}", String::from_utf8_lossy(&output.stderr));
}

fn scan(image: &str) -> Value {
    let ran = run(&["scan", image, "--target", "a100@535", "--target", "Jetson Thor", "--format", "json"]);
    assert_eq!(ran.code, 1, "{image}: {ran:?}");
    ran.json()
}

#[test]
fn images_pulled_from_a_registry_give_the_evidence_they_were_pushed_with() {
    let Some(registry) = registry() else { return };
    let images = [
        ("oci:buildah-oci.oci:latest", "test/buildah:oci"),
        ("oci:skopeo-gzip.oci:latest", "test/skopeo:gzip"),
        ("oci:skopeo-zstd.oci:latest", "test/skopeo:zstd"),
        ("oci:skopeo-zstd-chunked.oci:latest", "test/skopeo:chunked"),
        ("oci:umoci.oci:latest", "test/umoci/deep/name:1.0"),
        ("dir:podman-docker-dir", "test/podman:v2s2"),
        ("docker-archive:docker-24.tar", "test/docker:24"),
    ];
    let want = evidence(&scan("builders/images/umoci.oci"));
    for (from, name) in images {
        push(&registry, from, name);
        let full = format!("{}/{name}", registry.address);
        let bare = scan(&full);
        assert!(evidence(&bare) == want, "{from} as {full}:\n{bare:#}");
        assert_eq!(bare["gaps"].as_array().map(Vec::len), Some(0), "{from}");
        // By digest, and by every word for a registry.
        let digest = bare["image"]["digest"].as_str().unwrap();
        let repository = full.rsplit_once(':').unwrap().0;
        for named in [
            format!("{repository}@{digest}"),
            format!("{full}@{digest}"),
            format!("registry:{full}"),
            format!("docker://{full}"),
        ] {
            let report = scan(&named);
            assert!(evidence(&report) == want, "{named}:\n{report:#}");
            assert_eq!(report["image"]["digest"], digest, "{named}");
        }
    }
    what_is_not_there(&registry);
}

/// Answers of a real registry to what it does not have.
fn what_is_not_there(registry: &Registry) {
    let address = &registry.address;
    for name in ["test/skopeo:nosuch", "test/nosuch:latest", "nosuch"] {
        let ran = run(&["scan", &format!("{address}/{name}"), "--target", "a100"]);
        ran.refused(&[name, "not found"]);
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
    let unknown = format!("{address}/test/skopeo@sha256:{}", "0".repeat(64));
    run(&["scan", &unknown]).refused(&["not found"]);
}

/// A blob damaged in the registry's store is noticed, named, and no answer.
#[test]
fn a_blob_that_was_changed_in_the_store_is_noticed() {
    let Some(registry) = registry() else { return };
    let Some((_, store)) = &registry.served else {
        skipped("the store of a registry that was not started here is not at hand");
        return;
    };
    push(&registry, "oci:umoci.oci:latest", "test/hurt:1");
    let image = format!("{}/test/hurt:1", registry.address);
    let layers = scan(&image);
    let layer = layers["image"]["layers"][0]["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let kept = store.path().join("images/docker/registry/v2/blobs/sha256");
    let blob = kept.join(&layer[..2]).join(layer).join("data");
    change(&blob, |bytes| bytes[100] ^= 1);
    let ran = run(&["scan", &image, "--target", "a100", "--format", "json"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains(&layer[..12]), "{ran:?}");
}

fn change(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    edit(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}
