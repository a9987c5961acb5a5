//! Stores written here, and what can be wrong with one.

use std::fs;
use std::path::PathBuf;

use super::super::tests::{config, gz, tar};
use super::*;
use crate::image::Opened;
use crate::image::files::Node;

/// A store of one image with one layer.
struct Made {
    dir: tempfile::TempDir,
    driver: &'static str,
    layer: String,
    image: String,
    tar: Vec<u8>,
}

/// What tar-split keeps of a tar: everything but the files' bytes.
fn split(tar: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut at = 0;
    let mut raw = Vec::new();
    let raw_line = |raw: &mut Vec<u8>, lines: &mut Vec<String>| {
        let payload = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &*raw);
        lines.push(format!("{{\"type\":2,\"payload\":\"{payload}\",\"position\":{}}}", lines.len()));
        raw.clear();
    };
    while at + 512 <= tar.len() {
        let head = &tar[at..at + 512];
        raw.extend(head);
        at += 512;
        let size =
            std::str::from_utf8(&head[124..135]).ok().and_then(|t| u64::from_str_radix(t, 8).ok()).unwrap_or(0);
        if size == 0 {
            continue;
        }
        let name = head[..100].split(|&b| b == 0).next().unwrap();
        raw_line(&mut raw, &mut lines);
        lines.push(format!("{{\"type\":1,\"name\":\"{}\",\"size\":{size}}}", String::from_utf8_lossy(name)));
        at += size as usize;
        let padding = (512 - size as usize % 512) % 512;
        raw.extend(&tar[at..at + padding]);
        at += padding;
    }
    raw.extend(&tar[at..]);
    raw_line(&mut raw, &mut lines);
    gz(lines.join("\n").as_bytes())
}

impl Made {
    fn new(driver: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tar = tar(&[("opt/a.so", b"\x7fELF 1".to_vec()), ("opt/b", vec![7; 1000])]);
        let config = config("amd64", &[&tar]);
        let (diff_id, id) = (Digest::of(&tar), Digest::of(&config));
        let manifest = serde_json::to_vec(&serde_json::json!({
            "schemaVersion": 2,
            "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": id, "size": config.len() },
            "layers": [{ "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": diff_id, "size": tar.len() }],
        }))
        .unwrap();
        let digest = Digest::of(&manifest);
        let made = Self { dir, driver, layer: diff_id.hex(), image: id.hex(), tar };
        made.put(&format!("{driver}-images/{}/manifest", id.hex()), &manifest);
        let key = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, id.to_string());
        made.put(&format!("{driver}-images/{}/={key}", id.hex()), &config);
        let images = serde_json::json!([{
            "id": id.hex(), "digest": digest, "names": ["localhost/demo:1"], "layer": diff_id.hex(),
            "big-data-digests": { "manifest": digest },
        }]);
        made.put(&format!("{driver}-images/images.json"), images.to_string().as_bytes());
        let layers =
            serde_json::json!([{ "id": diff_id.hex(), "diff-digest": diff_id, "diff-size": made.tar.len() }]);
        made.put(&format!("{driver}-layers/layers.json"), layers.to_string().as_bytes());
        made.put(&made.split_name(), &split(&made.tar));
        fs::create_dir_all(made.folder()).unwrap();
        tar::Archive::new(&made.tar[..]).unpack(made.folder()).unwrap();
        made
    }

    fn split_name(&self) -> String {
        format!("{}-layers/{}.tar-split.gz", self.driver, self.layer)
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join(match self.driver {
            "vfs" => format!("vfs/dir/{}", self.layer),
            _ => format!("overlay/{}/diff", self.layer),
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn edit(&self, name: &str, from: &str, to: &str) {
        let path = self.dir.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    fn open(&self) -> Result<(Handle, Image), String> {
        self.named("demo:1")
    }

    fn named(&self, name: &str) -> Result<(Handle, Image), String> {
        let text = format!("[{}@{}+/run]{name}", self.driver, self.dir.path().display());
        let handle = open(&text).map_err(|e| e.to_string())?;
        let image = handle.image(None).map_err(|e| e.to_string())?;
        Ok((handle, image))
    }

    /// The layer's bytes.
    fn bytes(&self) -> Result<Vec<u8>, String> {
        let (_, image) = self.open()?;
        let Content::Blob(open) = &image.layers[0].content else { panic!("no blob") };
        let mut out = Vec::new();
        let mut reader = open().map_err(|e| e.to_string())?;
        io::Read::read_to_end(&mut reader, &mut out).map_err(|e| e.to_string())?;
        Ok(out)
    }

    /// The error, for which the tar-split has these lines.
    fn with_lines(&self, lines: &str) -> String {
        self.put(&self.split_name(), &gz(lines.as_bytes()));
        self.bytes().unwrap_err()
    }
}

#[test]
fn a_layer_is_put_together_byte_for_byte() {
    for driver in DRIVERS {
        let made = Made::new(driver);
        let (handle, image) = made.open().unwrap();
        assert_eq!(made.bytes().unwrap(), made.tar, "{driver}");
        assert!(handle.notices().is_empty());
        assert_eq!(image.platform.unwrap().to_string(), "linux/amd64");
        assert_eq!(image.layers[0].diff_id.unwrap(), Digest::of(&made.tar));
        assert_eq!(image.layers[0].created_by.as_deref().map(|c| c.starts_with("RUN")), Some(true));
        assert_eq!(image.config.env.len(), 1);
        for name in [made.image.clone(), made.image[..12].to_owned(), "localhost/demo:1".to_owned()] {
            made.named(&name).unwrap();
        }
        let wrong = handle.image(Some(&"linux/arm64".parse().unwrap())).err().unwrap().to_string();
        assert!(wrong.contains("has no image for linux/arm64"), "{wrong}");
        let told = made.named("nosuch").err().unwrap();
        assert!(told.contains("not found") && told.contains("localhost/demo:1"), "{told}");
    }
}

#[test]
fn a_changed_store_is_noticed() {
    let made = Made::new("overlay");
    fs::write(made.folder().join("opt/b"), vec![8; 1001]).unwrap();
    let told = made.bytes().unwrap_err();
    assert!(told.contains("opt/b has 1001 bytes, and had 1000"), "{told}");
    // Of the same size: the diff_id tells, as everywhere.
    fs::write(made.folder().join("opt/b"), vec![8; 1000]).unwrap();
    assert_ne!(Digest::of(&made.bytes().unwrap()), Digest::of(&made.tar));
    fs::remove_file(made.folder().join("opt/b")).unwrap();
    assert!(made.bytes().unwrap_err().contains("opt/b is missing from the store"));
    fs::remove_dir_all(made.folder()).unwrap();
    assert!(made.open().err().unwrap().contains("pull the image again"));

    let made = Made::new("overlay");
    made.edit("overlay-layers/layers.json", &made.layer, &"0".repeat(64));
    assert!(made.open().err().unwrap().contains("layer"));
    let made = Made::new("overlay");
    made.edit("overlay-layers/layers.json", "\"sha256:", "\"sha256:00");
    assert!(made.open().err().unwrap().contains("not the one that the image's config names"));
    for (file, from, to) in [
        ("overlay-images/images.json", made.layer.as_str(), "../../../../etc"),
        ("overlay-images/images.json", made.image.as_str(), "../../etc"),
        ("overlay-images/images.json", "[", "<"),
    ] {
        let made = Made::new("overlay");
        made.edit(file, from, to);
        assert!(made.open().is_err(), "{to}");
    }
    // A layer that is its own parent.
    let made = Made::new("overlay");
    made.edit("overlay-layers/layers.json", "\"diff-size\"", &format!("\"parent\":\"{}\",\"x\"", made.layer));
    assert!(made.open().err().unwrap().contains("damaged"));
    let made = Made::new("overlay");
    let manifest = format!("overlay-images/{}/manifest", made.image);
    made.edit(&manifest, "schemaVersion", "schemaversion");
    assert!(made.open().err().unwrap().contains("digest mismatch"));
    let made = Made::new("overlay");
    fs::create_dir(made.folder().parent().unwrap().join("composefs-data")).unwrap();
    assert!(made.open().err().unwrap().contains("composefs"));
}

#[test]
fn nothing_outside_a_layer_is_read() {
    for driver in DRIVERS {
        let made = Made::new(driver);
        fs::write(made.dir.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../../../secret", made.folder().join("leaf")).unwrap();
        std::os::unix::fs::symlink("/etc", made.folder().join("etc")).unwrap();
        std::os::unix::fs::symlink("../../..", made.folder().join("up")).unwrap();
        let file = |name: &str, size: u64| format!("{{\"type\":1,\"name\":\"{name}\",\"size\":{size}}}\n");
        for name in ["../../../secret", "opt/../../../../secret"] {
            let told = made.with_lines(&file(name, 6));
            assert!(told.contains("names a file outside the layer"), "{driver} {name}: {told}");
        }
        for name in ["leaf", "up/secret", "etc/passwd", "/etc/passwd", "opt", "a\\u0000b"] {
            let told = made.with_lines(&file(name, 6));
            assert!(!told.is_empty(), "{driver} {name}");
        }
        let raw = "{\"type\":1,\"name_raw\":\"Li4vLi4vc2VjcmV0\",\"size\":6}";
        assert!(made.with_lines(raw).contains("outside"));
    }
}

#[test]
fn a_link_of_a_lower_layer_is_followed_inside_a_whole_tree() {
    let made = Made::new("vfs");
    fs::create_dir_all(made.folder().join("usr")).unwrap();
    fs::rename(made.folder().join("opt"), made.folder().join("usr/opt")).unwrap();
    std::os::unix::fs::symlink("/usr/opt", made.folder().join("opt")).unwrap();
    assert_eq!(made.bytes().unwrap(), made.tar);
}

#[test]
fn damaged_splits_are_errors() {
    let made = Made::new("overlay");
    for (lines, word) in [
        ("{\"type\":1,\"size\":5}", "names no file"),
        ("{\"type\":9}", "unknown type 9"),
        ("{\"type\":2,\"payload\":\"*\"}", "no base64"),
        ("garbage", "cannot be read"),
    ] {
        let told = made.with_lines(lines);
        assert!(told.contains(word), "{told}");
    }
    assert!(made.with_lines(&"x".repeat(17 << 20)).contains("too long"));
    made.put(&made.split_name(), b"\x1f\x8bno gzip");
    assert!(made.bytes().unwrap_err().contains("cannot be read"));
    let half = split(&made.tar);
    made.put(&made.split_name(), &half[..half.len() / 2]);
    assert!(made.bytes().unwrap_err().contains("cannot be read"));
}

#[test]
fn without_a_split_the_folder_is_read() {
    let made = Made::new("overlay");
    fs::remove_file(made.dir.path().join(made.split_name())).unwrap();
    fs::write(made.folder().join("opt/.wh.gone"), "").unwrap();
    let (handle, image) = made.open().unwrap();
    assert!(handle.notices()[0].contains("1 of 1 layers have no tar-split"), "{:?}", handle.notices());
    let Content::Files(files) = &image.layers[0].content else { panic!("no files") };
    let entries = files.list(100).unwrap().entries;
    assert!(entries.iter().any(|(p, n)| p.to_string() == "opt/gone" && *n == Node::Whiteout));
    assert!(image.layers[0].diff_id.is_none() && !files.is_root());

    let made = Made::new("vfs");
    fs::remove_file(made.dir.path().join(made.split_name())).unwrap();
    let (handle, image) = made.open().unwrap();
    assert!(handle.notices()[0].contains("read as one root file system"));
    let Content::Files(files) = &image.layers[0].content else { panic!("no files") };
    assert!(files.is_root());
}

/// A list of images for platforms, of which the store has two.
#[test]
fn a_list_is_a_choice_of_what_is_there() {
    let made = Made::new("overlay");
    let own = fs::read(made.dir.path().join(format!("overlay-images/{}/manifest", made.image))).unwrap();
    let list = serde_json::to_vec(&serde_json::json!({
        "schemaVersion": 2, "mediaType": manifest::OCI_INDEX,
        "manifests": [
            { "mediaType": manifest::OCI_MANIFEST, "digest": Digest::of(b"absent"), "size": 1,
              "platform": { "os": "linux", "architecture": "arm64" } },
            { "mediaType": manifest::OCI_MANIFEST, "digest": Digest::of(&own), "size": own.len(),
              "platform": { "os": "linux", "architecture": "amd64" } },
        ],
    }))
    .unwrap();
    let id = "f".repeat(64);
    made.put(&format!("overlay-images/{id}/manifest"), &list);
    let row = format!("[{{\"id\":\"{id}\",\"names\":[\"localhost/list:1\"]}},");
    let path = made.dir.path().join("overlay-images/images.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen('[', &row, 1)).unwrap();
    let (handle, image) = made.named("list:1").unwrap();
    assert_eq!(handle.platforms().iter().map(ToString::to_string).collect::<Vec<_>>(), ["linux/amd64"]);
    assert_eq!(image.digest.unwrap(), Digest::of(&own));
    assert!(handle.image(Some(&"linux/arm64".parse().unwrap())).is_err());
}

#[test]
fn what_is_not_there_is_told_with_where_it_was_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let told = open(&format!("[vfs@{}]x", dir.path().display())).err().unwrap().to_string();
    assert!(told.contains("no store of vfs") && told.contains("sudo"), "{told}");
    let told = open(&format!("[btrfs@{}]x", dir.path().display())).err().unwrap().to_string();
    assert!(told.contains("driver btrfs") && told.contains("podman save"), "{told}");
    let made = Made::new("vfs");
    made.put("vfs-images/images.json", b"[]");
    assert!(made.open().err().unwrap().contains("there are no images in"));
}
