//! Every way to name an image, on archives and layouts written here.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use super::super::{Streamed, blob};
use super::*;
use crate::image::Content;
use crate::model::Digest;

/// A sink that reads blobs and tells tars by their first header.
#[derive(Default)]
pub(super) struct Sink(pub Vec<Vec<u8>>);

impl BlobSink for Sink {
    fn layer(&mut self, stored: &mut dyn Read) -> io::Result<Streamed> {
        let (mut bytes, mut tar) = (Vec::new(), Vec::new());
        stored.read_to_end(&mut bytes)?;
        blob::decompress(Box::new(&bytes[..]))?.read_to_end(&mut tar)?;
        let is_tar = headers::classify(&tar) != headers::Holds::NoTar;
        let (digest, diff_id, size) = (Digest::of(&bytes), Digest::of(&tar), bytes.len() as u64);
        let number = is_tar.then_some(self.0.len());
        self.0.push(tar);
        Ok(Streamed { number, digest, diff_id: is_tar.then_some(diff_id), size })
    }
}

pub(super) fn tar(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = tar::Builder::new(Vec::new());
    for (name, data) in entries {
        let mut h = tar::Header::new_gnu();
        if let Some(target) = name.split_once(" -> ") {
            h.set_entry_type(tar::EntryType::Symlink);
            h.set_size(0);
            out.append_link(&mut h, target.0, target.1).unwrap();
        } else {
            h.set_size(data.len() as u64);
            out.append_data(&mut h, name, &data[..]).unwrap();
        }
    }
    out.into_inner().unwrap()
}

pub(super) fn gz(data: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    e.write_all(data).unwrap();
    e.finish().unwrap()
}

pub(super) fn layer() -> Vec<u8> {
    tar(&[("opt/a.so", b"\x7fELF".to_vec())])
}

pub(super) fn config(architecture: &str, layers: &[&[u8]]) -> Vec<u8> {
    let ids: Vec<_> = layers.iter().map(|l| Digest::of(l).to_string()).collect();
    serde_json::to_vec(&serde_json::json!({
        "architecture": architecture, "os": "linux", "config": { "Env": ["A=b"] },
        "rootfs": { "type": "layers", "diff_ids": ids },
        "history": ids.iter().map(|i| serde_json::json!({ "created_by": format!("RUN {i}") })).collect::<Vec<_>>(),
    }))
    .unwrap()
}

pub(super) type Blobs = Vec<(String, Vec<u8>)>;

fn put(blobs: &mut Blobs, media_type: &str, bytes: Vec<u8>) -> serde_json::Value {
    let digest = Digest::of(&bytes);
    let out = serde_json::json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() });
    blobs.push((format!("blobs/sha256/{}", digest.hex()), bytes));
    out
}

/// An image of one gzip layer in blobs; its descriptor.
pub(super) fn image(blobs: &mut Blobs, architecture: &str) -> serde_json::Value {
    let (plain, packed) = (layer(), gz(&layer()));
    let layer = put(blobs, "application/vnd.oci.image.layer.v1.tar+gzip", packed);
    let config = put(blobs, "application/vnd.oci.image.config.v1+json", config(architecture, &[plain.as_slice()]));
    let m = serde_json::json!({ "schemaVersion": 2, "config": config, "layers": [layer] });
    put(blobs, manifest::OCI_MANIFEST, serde_json::to_vec(&m).unwrap())
}

pub(super) fn layout(mut blobs: Blobs, manifests: &[serde_json::Value]) -> Blobs {
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": manifests });
    blobs.push(("index.json".into(), serde_json::to_vec(&index).unwrap()));
    blobs.push(("oci-layout".into(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()));
    blobs
}

fn write(dir: &Path, files: &Blobs) {
    for (name, bytes) in files {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

pub(super) fn archive(files: &Blobs) -> Vec<u8> {
    let entries: Vec<_> = files.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
    tar(&entries)
}

fn try_open(reference: &str, platform: Option<&str>) -> Result<(Box<dyn Opened>, Image, Sink), String> {
    let mut sink = Sink::default();
    let opened = open(reference, &OpenOptions::default(), &mut sink).map_err(|e| e.to_string())?;
    let platform = platform.map(|p| p.parse().unwrap());
    let image = opened.image(platform.as_ref()).map_err(|e| e.to_string())?;
    Ok((opened, image, sink))
}

fn error(reference: &str) -> String {
    try_open(reference, None).err().unwrap()
}

/// The unpacked tars of an image's layers.
fn tars(image: &Image, sink: &Sink) -> Vec<Vec<u8>> {
    let tar = |l: &crate::image::Layer| match &l.content {
        Content::Blob(open) => {
            let mut out = Vec::new();
            blob::decompress(open().unwrap()).unwrap().read_to_end(&mut out).unwrap();
            out
        }
        Content::Streamed(n) => sink.0[*n].clone(),
        _ => panic!("no blob"),
    };
    image.layers.iter().map(tar).collect()
}

#[test]
fn one_image_reads_the_same_from_every_place() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let mut blobs = Vec::new();
    let descriptor = image(&mut blobs, "amd64");
    let files = layout(blobs, std::slice::from_ref(&descriptor));
    write(&dir.path().join("layout"), &files);
    std::fs::write(at("a.tar"), archive(&files)).unwrap();
    std::fs::write(at("a.tar.gz"), gz(&archive(&files))).unwrap();
    let mut digests = Vec::new();
    for (scheme, name) in
        [("oci:", "layout"), ("", "layout"), ("oci-archive:", "a.tar"), ("", "a.tar"), ("", "a.tar.gz")]
    {
        let (opened, image, sink) = try_open(&format!("{scheme}{}", at(name)), None).unwrap();
        assert!(!opened.reference().contains(dir.path().to_str().unwrap()), "{}", opened.reference());
        assert_eq!(tars(&image, &sink), [layer()], "{scheme}{name}");
        assert_eq!(image.platform.unwrap().to_string(), "linux/amd64");
        assert_eq!(image.layers[0].diff_id, Some(Digest::of(&layer())));
        assert_eq!(image.layers[0].size, Some(gz(&layer()).len() as u64));
        assert!(image.layers[0].created_by.as_deref().unwrap().starts_with("RUN"));
        assert_eq!(image.config.var("A"), Some("b"));
        digests.push((image.digest.unwrap(), image.layers[0].digest.unwrap()));
    }
    digests.dedup();
    assert_eq!(digests.len(), 1);
}

#[test]
fn docker_archives_of_all_ages() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let config = config("amd64", &[&layer(), &layer()]);
    let hex = Digest::of(&config).hex();
    let manifest = |config: &str, layers: [&str; 2]| {
        let m = serde_json::json!([{ "Config": config, "RepoTags": ["t:1"], "Layers": layers }]);
        serde_json::to_vec(&m).unwrap()
    };
    let json = format!("{hex}.json");
    let legacy = tar(&[
        ("aaa/VERSION", b"1.0".to_vec()),
        ("aaa/layer.tar", layer()),
        ("bbb/layer.tar -> ../aaa/layer.tar", Vec::new()),
        (&json, config.clone()),
        ("manifest.json", manifest(&json, ["aaa/layer.tar", "bbb/layer.tar"])),
    ]);
    let kaniko_config = format!("sha256:{hex}");
    let kaniko = tar(&[
        (&kaniko_config, config.clone()),
        ("f.tar.gz", gz(&layer())),
        ("manifest.json", manifest(&kaniko_config, ["f.tar.gz", "f.tar.gz"])),
    ]);
    for (name, bytes) in [("legacy.tar", &legacy), ("kaniko.tar", &kaniko)] {
        std::fs::write(at(name), bytes).unwrap();
        std::fs::write(at(&format!("{name}.gz")), gz(bytes)).unwrap();
        for tag in ["", ":t:1", ":1", ":@0"] {
            for name in [name.to_owned(), format!("{name}.gz")] {
                let (_, image, sink) = try_open(&format!("docker-archive:{}{tag}", at(&name)), None).unwrap();
                assert_eq!(tars(&image, &sink), [layer(), layer()], "{name}{tag}");
            }
        }
    }
    assert!(error(&format!("docker-archive:{}:u:2", at("legacy.tar"))).contains("it has t:1"));
    // The config is named by its digest.
    let changed = String::from_utf8(config).unwrap().replace("A=b", "A=c");
    let lying = tar(&[
        ("aaa/layer.tar", layer()),
        (&json, changed.into()),
        ("manifest.json", manifest(&json, ["aaa/layer.tar"; 2])),
    ]);
    std::fs::write(at("lying.tar"), lying).unwrap();
    assert!(error(&at("lying.tar")).contains("digest mismatch"));
    std::fs::write(at("cut.tar"), &legacy[..2000]).unwrap();
    assert!(error(&at("cut.tar")).contains("cut short"), "{}", error(&at("cut.tar")));
}

#[test]
fn platforms_are_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let at = format!("oci:{}", dir.path().display());
    let mut blobs = Vec::new();
    // Two bare manifests under one name: only their configs tell.
    let both = [image(&mut blobs, "arm64"), image(&mut blobs, "amd64")];
    write(dir.path(), &layout(blobs, &both));
    let (opened, image, _) = try_open(&at, None).unwrap();
    assert_eq!(opened.platforms().len(), 2);
    assert_eq!(image.platform.unwrap().to_string(), "linux/amd64");
    let (_, image, _) = try_open(&at, Some("linux/arm64/v8")).unwrap();
    assert_eq!(image.platform.unwrap().to_string(), "linux/arm64");
    let none = try_open(&at, Some("linux/riscv64")).err().unwrap();
    assert!(none.ends_with("has no image for linux/riscv64; it has linux/arm64, linux/amd64"), "{none}");
}

#[test]
fn damage_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let at = format!("oci:{}", dir.path().display());
    let mut blobs = Vec::new();
    let descriptor = image(&mut blobs, "amd64");
    let files = layout(blobs, std::slice::from_ref(&descriptor));
    write(dir.path(), &files);
    let (layer_name, layer_bytes) = files[0].clone();
    std::fs::write(dir.path().join(&layer_name), &layer_bytes[1..]).unwrap();
    assert!(error(&at).contains("the manifest says"));
    std::fs::remove_file(dir.path().join(&layer_name)).unwrap();
    assert!(error(&at).contains("not found; the layout is incomplete"));
    std::fs::write(dir.path().join(&layer_name), &layer_bytes).unwrap();
    std::fs::write(dir.path().join(&files[1].0), "{}").unwrap();
    assert!(error(&at).contains("digest mismatch"));
    // The same in a stream, where layers have been read by then.
    let mut swapped = files;
    swapped[0].1 = gz(b"other").iter().copied().chain(layer_bytes).take(swapped[0].1.len()).collect();
    let mut sink = Sink::default();
    let bytes = archive(&swapped);
    let opened = stream::open(Box::new(Cursor::new(bytes)), &Selector::default(), "-".into(), "in", &mut sink);
    let failed = opened.and_then(|o| o.image(None).map(drop)).err().unwrap().to_string();
    assert!(failed.contains("is no tar") || failed.contains("in: blobs"), "{failed}");
}

#[test]
fn streams_of_all_kinds() {
    let from = |bytes: Vec<u8>| {
        let mut sink = Sink::default();
        let reader = Box::new(Cursor::new(bytes));
        let opened = stream::open(reader, &Selector::default(), "-".into(), "in", &mut sink);
        let image = opened.and_then(|o| o.image(None)).map_err(|e| e.to_string())?;
        Ok::<_, String>(tars(&image, &sink))
    };
    let rootfs = tar(&[("bin/", Vec::new()), ("bin/sh", b"x".to_vec())]);
    assert_eq!(from(rootfs.clone()).unwrap(), std::slice::from_ref(&rootfs));
    assert_eq!(from(gz(&rootfs)).unwrap(), [rootfs]);
    let mut blobs = Vec::new();
    let descriptor = image(&mut blobs, "amd64");
    let mut files = layout(blobs, std::slice::from_ref(&descriptor));
    assert_eq!(from(archive(&files)).unwrap(), [layer()]);
    files.reverse();
    assert_eq!(from(gz(&archive(&files))).unwrap(), [layer()]);
    assert!(from(Vec::new()).unwrap_err().contains("no bytes"));
    assert!(from(b"hello".repeat(300)).unwrap_err().contains("neither"));
    assert!(from(tar(&[("manifest.json", b"[]".to_vec())])).unwrap_err().contains("empty archive"));
    let whole = archive(&files);
    for cut in (0..whole.len()).step_by(97) {
        let _ = from(whole[..cut].to_vec());
    }
}

#[test]
fn words_are_paths_only_if_they_exist() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("x.whl"), b"PK\x03\x04").unwrap();
    std::fs::write(at("l.so"), b"\x7fELF").unwrap();
    std::fs::write(at("note.txt"), b"hello").unwrap();
    std::fs::create_dir(at("root")).unwrap();
    std::fs::write(at("root/manifest.json"), b"{}").unwrap();
    let content = |name: &str| {
        let (opened, image, _) = try_open(name, None).unwrap();
        assert_eq!(opened.taken_for().is_none(), name.starts_with("file:"));
        image.layers.into_iter().next().unwrap().content
    };
    assert!(matches!(content(&at("x.whl")), Content::Zip(_)));
    assert!(matches!(content(&at("l.so")), Content::File(_)));
    assert!(matches!(content(&format!("file:{}", at("note.txt"))), Content::File(_)));
    assert!(matches!(content(&at("root")), Content::Tree(_)));
    assert!(error(&at("note.txt")).contains("file:PATH"));
    for typo in
        ["./nope", "/nope/x", "nope.tar", "nope.whl", "lib/libx.so.1", "dir:nope", "docker-archive:nope.tar"]
    {
        assert!(error(typo).contains("no such file"), "{typo}: {}", error(typo));
    }
    assert!(error(&format!("squashfs:{}", at("l.so"))).contains("a single file, not squashfs"));
    std::fs::write(at("x.sqsh"), b"hsqs and no more").unwrap();
    for named in [at("x.sqsh"), format!("squashfs:{}", at("x.sqsh"))] {
        assert!(error(&named).contains("x.sqsh: no squashfs: shorter than its first block"), "{}", error(&named));
    }
    assert!(error(&format!("{}:1", at("x.sqsh"))).contains("holds no images to choose from"));
    assert!(error("127.0.0.1:1/x:y").contains("connection refused"));
    assert!(error("https://r.example/x").contains("write r.example/x"));
    std::fs::write(at("r.tar.xz"), b"\xfd7zXZ\0...").unwrap();
    assert!(error(&at("r.tar.xz")).contains("compressed with xz"));
    assert!(error("").contains("empty reference"));
}

/// What a client says before the body.
pub(super) fn head_of(stream: &mut impl Read) -> Vec<u8> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
        head.push(byte[0]);
    }
    head
}

/// A registry for one test: answers each request with what `answer` makes of its head, raw.
fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = head_of(&mut stream);
            let _ = stream.write_all(&answer(&String::from_utf8_lossy(&head).to_ascii_lowercase()));
        }
    });
    host
}

fn http(status: &str, headers: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

#[test]
fn a_registry_with_tokens_redirects_and_cuts() {
    let mut blobs = Vec::new();
    let m = image(&mut blobs, "amd64");
    let digest = m["digest"].as_str().unwrap().to_owned();
    let content: std::collections::HashMap<String, Vec<u8>> =
        blobs.into_iter().map(|(n, b)| (n.replace("blobs/sha256/", "sha256:"), b)).collect();
    // Where blobs really are: another origin, which must not see the token and cuts each body once.
    let blobs = content.clone();
    let cdn = serve(move |head| {
        assert!(!head.contains("authorization"), "the token left its host");
        let name = head.split([' ', '/']).find(|p| p.starts_with("sha256:")).unwrap();
        let body = &blobs[name];
        let range = head.split("range: bytes=").nth(1).and_then(|r| r.split('-').next()?.parse::<usize>().ok());
        match range {
            None => http("200 OK", "", body.len(), &body[..body.len() / 2]),
            Some(from) => {
                let range = format!("content-range: bytes {from}-{}/{}\r\n", body.len() - 1, body.len());
                http("206 Partial Content", &range, body.len() - from, &body[from..])
            }
        }
    });
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let host = serve(move |head| {
        if head.contains("/token?") {
            assert!(head.contains("scope=repository:x/y:pull"));
            let token = br#"{"token":"t0ken"}"#;
            return http("200 OK", "", token.len(), token);
        }
        if !head.contains("authorization: bearer t0ken") {
            let host = head.split("host: ").nth(1).unwrap().split("\r\n").next().unwrap();
            let realm = format!("www-authenticate: Bearer realm=\"http://{host}/token\",service=\"s\"\r\n");
            return http("401 Unauthorized", &realm, 0, b"");
        }
        if head.contains("/manifests/none") {
            let body = br#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#;
            return http("404 Not Found", "", body.len(), body);
        }
        if head.contains("/manifests/") {
            if tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
                return http("503 Service Unavailable", "", 0, b"");
            }
            let body = &content[&digest];
            return http("200 OK", "content-type: text/plain\r\n", body.len(), body);
        }
        let name = head.split([' ', '/']).find(|p| p.starts_with("sha256:")).unwrap();
        http("307 Temporary Redirect", &format!("location: http://{cdn}/{name}\r\n"), 0, b"")
    });
    let (opened, image, sink) = try_open(&format!("docker://{host}/x/y:z"), None).unwrap();
    assert!(opened.taken_for().unwrap().contains("skopeo"));
    assert_eq!(image.digest.unwrap().to_string(), m["digest"].as_str().unwrap());
    assert_eq!(tars(&image, &sink), [layer()]);
    let unknown = error(&format!("{host}/x/y:none"));
    assert!(unknown.contains("manifest unknown"), "{unknown}");
}

#[test]
fn a_hostile_registry_is_refused_in_one_line() {
    let refused = |answer: Vec<u8>| {
        let host = serve(move |_| answer.clone());
        let text = error(&format!("registry:{host}/x"));
        assert!(!text.contains('\n'));
        text
    };
    let html = b"<html>login</html>";
    assert!(refused(http("200 OK", "content-type: text/html\r\n", html.len(), html)).contains("web page"));
    assert!(refused(http("200 OK", "", 200 << 20, b"{")).contains("larger than the limit"));
    let away = "location: http://elsewhere.invalid/\r\n";
    assert!(refused(http("307 Temporary Redirect", away, 0, b"")).contains("elsewhere.invalid"));
    assert!(refused(http("307 Temporary Redirect", "location: /v2/\r\n", 0, b"")).contains("redirects"));
    let realm = "www-authenticate: Bearer realm=\"http://elsewhere.invalid/token\"\r\n";
    assert!(refused(http("401 Unauthorized", realm, 0, b"")).contains("is not https"));
    assert!(refused(http("403 Forbidden", "", 0, b"")).contains("access denied"));
    let weird = br#"{"mediaType":"application/vnd.example+json"}"#;
    assert!(refused(http("200 OK", "", weird.len(), weird)).contains("application/vnd.example+json"));
}
