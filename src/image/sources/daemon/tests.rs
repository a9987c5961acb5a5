//! Daemons that answer as they should, and daemons that lie.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::tests::{Blobs, Sink, archive, config, gz, head_of, image, layer, layout};
use super::*;
use crate::image::Opened;

/// What was asked for, in order.
type Asked = Arc<Mutex<Vec<String>>>;

/// A daemon for one test: each request's path goes to `answer`, which writes what it likes.
struct Daemon {
    folder: tempfile::TempDir,
    asked: Asked,
}

impl Daemon {
    fn new(answer: impl Fn(&str, &mut UnixStream) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("sock")).unwrap();
        let asked = Asked::default();
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let head = String::from_utf8(head_of(&mut stream)).unwrap();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                log.lock().unwrap().push(path.clone());
                answer(&path, &mut stream);
            }
        });
        Self { folder, asked }
    }

    fn open(&self, name: &str, platform: Option<&str>) -> Result<(Handle, Sink), String> {
        let chosen =
            Chosen { endpoint: endpoint::Endpoint::Unix(self.folder.path().join("sock")), by: String::new() };
        let options = OpenOptions {
            platform: platform.map(|p| p.parse().unwrap()),
            read_timeout: Duration::from_secs(2),
            ..OpenOptions::default()
        };
        let mut sink = Sink::default();
        let none = |name: &str| format!("docker pull {name}");
        let handle = fetch(&chosen, DOCKER, "docker:", name, &none, &options, &mut sink);
        handle.map(|h| (h, sink)).map_err(|e| e.to_string())
    }

    fn error(&self, name: &str) -> String {
        let told = self.open(name, None).err().expect("the daemon lied");
        assert!(!told.contains(|c: char| c.is_control()), "{told:?}");
        assert!(told.len() < 600, "{told}");
        told
    }
}

fn ok(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

fn status(code: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {code} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut out = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for part in body.chunks(1000) {
        out.extend(format!("{:x}\r\n", part.len()).bytes());
        out.extend(part);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\n\r\n");
    out
}

const PING: &[u8] = b"HTTP/1.1 200 OK\r\nApi-Version: 1.51\r\nContent-Length: 2\r\n\r\nOK";
const PING_OLD: &[u8] = b"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 2\r\n\r\nOK";
const PING_PODMAN: &[u8] =
    b"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nLibpod-Api-Version: 5.2.1\r\nContent-Length: 2\r\n\r\nOK";

fn id() -> String {
    format!("sha256:{}", "ab".repeat(32))
}

fn inspected() -> Vec<u8> {
    ok(format!("{{\"Id\":\"{}\",\"RepoTags\":[\"demo:1\"],\"Os\":\"linux\"}}", id()).as_bytes())
}

/// An image as `docker save` has it since version 25.
fn saved() -> Vec<u8> {
    let mut blobs = Blobs::new();
    let one = image(&mut blobs, "amd64");
    archive(&layout(blobs, &[one]))
}

/// A daemon that has `get` to say for the image itself.
fn says(get: impl Fn(&mut UnixStream) + Send + 'static) -> Daemon {
    Daemon::new(move |path, stream| {
        let bytes = match path {
            "/_ping" => PING.to_vec(),
            path if path.ends_with("/json") => inspected(),
            _ => return get(stream),
        };
        let _ = stream.write_all(&bytes);
    })
}

fn answers(bytes: Vec<u8>) -> Daemon {
    says(move |stream| drop(stream.write_all(&bytes)))
}

#[test]
fn an_image_comes_whole_whatever_its_framing() {
    let closed = [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".as_slice(), &saved()].concat();
    for (how, answer) in [("chunked", chunked(&saved())), ("length", ok(&saved())), ("closed", closed)] {
        let daemon = answers(answer);
        let (handle, sink) = daemon.open("demo:1", None).unwrap_or_else(|e| panic!("{how}: {e}"));
        let image = handle.image(None).unwrap();
        assert_eq!(handle.reference(), "docker:demo:1", "{how}");
        assert_eq!((image.layers.len(), image.config.env.len()), (1, 1), "{how}");
        assert!(sink.0.contains(&layer()), "{how}");
    }
    // As an old Docker and podman save.
    let old = archive(&vec![
        ("manifest.json".into(), br#"[{"Config":"c.json","RepoTags":null,"Layers":["l/layer.tar"]}]"#.to_vec()),
        ("c.json".into(), config("amd64", &[&layer()])),
        ("l/layer.tar".into(), layer()),
    ]);
    assert_eq!(answers(chunked(&old)).open("demo:1", None).unwrap().0.image(None).unwrap().layers.len(), 1);
    let packed = answers(ok(&gz(&saved())));
    assert_eq!(packed.open("demo:1", None).unwrap().0.image(None).unwrap().layers.len(), 1);
}

#[test]
fn it_is_asked_for_by_what_means_one_image() {
    let daemon = |ping: &'static [u8]| {
        Daemon::new(move |path, stream| {
            let bytes = match path {
                "/_ping" => ping.to_vec(),
                path if path.ends_with("/json") => inspected(),
                _ => ok(&saved()),
            };
            let _ = stream.write_all(&bytes);
        })
    };
    let asked = |ping, name: &str, platform| {
        let daemon = daemon(ping);
        daemon.open(name, platform).unwrap();
        daemon.asked.lock().unwrap().clone()
    };
    let by_id = format!("/images/{}/get", id());
    assert_eq!(asked(PING, "demo:1", None), ["/_ping", "/images/demo:1/json", "/images/demo:1/get"]);
    assert_eq!(asked(PING, "demo", None)[2], by_id, "and not all tags of demo");
    assert_eq!(asked(PING, "abab", None)[2], by_id);
    assert_eq!(asked(PING_PODMAN, "demo", None)[1], "/v5.2.1/libpod/images/demo/json");
    let query = "?platform=%7B%22architecture%22:%22amd64%22%2C%22os%22:%22linux%22%7D";
    assert_eq!(asked(PING, "demo", Some("linux/amd64"))[2], format!("{by_id}{query}"));
    assert_eq!(asked(PING_OLD, "demo", Some("linux/amd64"))[2], by_id, "older APIs do not know it");
    for bad in ["", "a b", "a\nb", "../containers/x", "a//b", "/a"] {
        assert!(daemon(PING).open(bad, None).is_err(), "{bad:?}");
    }
    // An ID that is none does not become part of an address.
    let lying = Daemon::new(|path, stream| {
        let bytes = match path {
            "/_ping" => PING.to_vec(),
            path if path.ends_with("/json") => ok(br#"{"Id":"../../containers/x?"}"#),
            _ => ok(&saved()),
        };
        let _ = stream.write_all(&bytes);
    });
    lying.open("demo", None).unwrap();
    assert_eq!(lying.asked.lock().unwrap()[2], "/images/demo/get");
}

#[test]
fn another_platform_than_the_one_asked_for_is_told() {
    let daemon = answers(ok(&saved()));
    let (handle, _) = daemon.open("demo:1", Some("linux/arm64")).unwrap();
    let told = handle.image(Some(&"linux/arm64".parse().unwrap())).err().unwrap().to_string();
    assert!(told.contains("has no image for linux/arm64; it has linux/amd64"), "{told}");
    let message = r#"{"message":"image does not provide the specified platform"}"#;
    let told = answers(status(404, message)).open("demo:1", Some("linux/arm64")).err().unwrap();
    assert!(told.contains("the specified platform") && told.contains("--platform"), "{told}");
}

#[test]
fn what_breaks_off_is_no_image() {
    let whole = saved();
    for part in [0, 100, 600, whole.len() / 2, whole.len() - 1500] {
        let short = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", whole.len());
        let told = answers([short.as_bytes(), &whole[..part]].concat()).error("demo:1");
        assert!(told.contains("broke off") || told.contains("cut"), "{part}: {told}");
        let end = b"0\r\n\r\n".len();
        let framed = chunked(&whole[..part]);
        let told = answers(framed[..framed.len() - end].to_vec()).error("demo:1");
        assert!(told.contains("broke off") || told.contains("cut"), "{part}: {told}");
    }
    // Framed as if it were whole.
    for part in [0, 100, 600, whole.len() / 2, whole.len() - 3000] {
        answers(chunked(&whole[..part])).error("demo:1");
    }
}

#[test]
fn lies_are_errors() {
    let whole = saved();
    let bad_chunk = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".as_slice(), &whole].concat();
    answers(bad_chunk).error("demo:1");
    let huge_chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx".to_vec();
    answers(huge_chunk).error("demo:1");
    let short_chunk = {
        let mut out = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n".to_vec();
        out.extend(&whole);
        out
    };
    answers(short_chunk).error("demo:1");
    let told = answers(ok(br#"{"message":"no space left\u001b[31m on device"}"#)).error("demo:1");
    assert!(told.contains("no space left") && told.contains("sock: fetching demo:1"), "{told}");
    let middle = [&whole[..1024], br#"{"message":"disk failed"}"#].concat();
    answers(chunked(&middle)).error("demo:1");
    assert!(answers(ok(b"<html>hello</html>")).error("demo:1").contains("a page in HTML"));
    assert!(answers(ok(b"")).error("demo:1").contains("no bytes"));
    assert!(answers(status(500, &"x".repeat(100_000))).error("demo:1").contains("HTTP 500: xxx"));
    assert!(answers(status(301, "")).error("demo:1").contains("HTTP 301"));
    answers(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec()).error("demo:1");
}

#[test]
fn what_has_no_end_is_not_waited_for() {
    let endless = |line: &'static [u8]| {
        Daemon::new(move |_, stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
            while stream.write_all(line).is_ok() {}
        })
    };
    endless(b"X-Header: x\r\n").error("demo:1");
    endless(b"xxxxxxxxxxxxxxxx").error("demo:1");
    let large = Daemon::new(|path, stream| {
        if path == "/_ping" {
            let _ = stream.write_all(PING);
            return;
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b' '; 4096]).is_ok() {}
    });
    assert!(large.error("demo:1").contains("larger than the limit"));
    let silent = Daemon::new(|_, _| std::thread::sleep(Duration::from_secs(10)));
    let told = silent.error("demo:1");
    assert!(told.contains("no answer in time") && told.contains("is docker running?"), "{told}");
}

#[test]
fn each_failure_has_its_words() {
    let missing = Daemon::new(|path, stream| {
        let bytes = if path == "/_ping" { PING.to_vec() } else { status(404, r#"{"message":"No such image"}"#) };
        let _ = stream.write_all(&bytes);
    });
    let told = missing.error("demo:9");
    assert!(told.contains("docker:demo:9: not found") && told.contains("docker pull demo:9"), "{told}");
    let other = Daemon::new(|_, stream| drop(stream.write_all(&status(403, "not here"))));
    let told = other.error("demo:9");
    assert!(told.contains("HTTP 403: not here") && told.contains("the socket of a daemon"), "{told}");
    // A socket that nobody listens on any more, and one that is not there.
    let gone = Daemon::new(|_, _| {});
    let path = gone.folder.path().join("sock");
    std::fs::remove_file(&path).unwrap();
    assert!(gone.error("demo:1").contains("no such socket"));
    drop(UnixListener::bind(&path).unwrap());
    assert!(gone.error("demo:1").contains("connection refused; is docker running?"));
}
