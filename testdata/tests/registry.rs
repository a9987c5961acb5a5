//! Images pulled from a real registry on loopback give the same evidence as the layouts they were pushed from.
//!
//! `IMAGELINT_TEST_REGISTRY=HOST:PORT` names a registry to use. Otherwise one is started, if `docker-registry` and
//! `skopeo` are there; without them the tests say so and check nothing.

use crate::common;

use std::path::Path;

use common::registry::{Registry, registry};
use common::{evidence, run, skipped};
use serde_json::Value;

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
        registry.push(from, name);
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
    let Some(store) = registry.store() else {
        skipped("the store of a registry that was not started here is not at hand");
        return;
    };
    registry.push("oci:umoci.oci:latest", "test/hurt:1");
    let image = format!("{}/test/hurt:1", registry.address);
    let layers = scan(&image);
    let layer = layers["image"]["layers"][0]["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let kept = store.join("docker/registry/v2/blobs/sha256");
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
