//! Wheels on an index that runs here are looked into by ranges, and what is said of them is what `inspect` says of
//! the file; servers that cut, lie, change or redirect get no other answer.

use crate::common;
use crate::served;

use std::sync::atomic::{AtomicUsize, Ordering};

use imagelint::catalog::Catalog;
use imagelint::image::index::{Python, Question};
use imagelint::image::sources::OpenOptions;
use imagelint::lint;
use imagelint::model::{Digest, Libc, Platform};
use imagelint::scan::wheel::{self, Checked, NotChecked, Verified, WheelOptions};

use common::testdata;
use served::{Reply, Request, Server, Zip, part};

const NAME: &str = "demo-1.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl";

/// Text that no compressor makes smaller.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b'!' + ((state >> 33) % 90) as u8
    };
    (0..length).map(step).collect()
}

fn library(name: &str) -> Vec<u8> {
    std::fs::read(testdata().join("corpus/cuda/bin").join(name)).unwrap()
}

/// A wheel with device code at both ends of much that holds none.
fn wheel_file() -> Vec<u8> {
    let mut zip = Zip::default();
    zip.add("demo/_C.so", &library("cu135_so_all_major.so"), true);
    zip.add("demo/__init__.py", b"import demo\n", true);
    zip.add("demo/data.txt", &noise(2 << 20), false);
    zip.add("demo/lib/libx.so", &library("cu135_so_two_tus.so"), true);
    zip.add("demo/lib/plain.so", &library("cu135_so_ptx_only.so"), false);
    let metadata = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0+cu128\nRequires-Dist: nvidia-cublas-cu12==12.8.4.1\n\
                    Requires-Dist: torch==2.8.0\n\nRequires-Dist: of-the-text\n";
    zip.add("demo-1.0+cu128.dist-info/METADATA", metadata.as_bytes(), true);
    zip.add("demo-1.0+cu128.dist-info/RECORD", b"demo/_C.so,,\ndemo/lib/libx.so,,\ndemo/lib/plain.so,,\n", true);
    zip.finish()
}

fn page(links: &str) -> Reply {
    Reply::page("text/html; charset=utf-8", format!("<!DOCTYPE html><html><body>{links}</body></html>"))
}

fn one_link() -> Reply {
    page("<a href='/files/demo-1.0%2Bcu128-cp312-cp312-manylinux_2_28_x86_64.whl'>demo</a>")
}

fn question() -> Question {
    Question {
        package: "Demo".into(),
        specifier: "==1.0".into(),
        index: None,
        python: Python::parse("3.12"),
        platform: Platform::linux("amd64"),
        libc: None,
    }
}

fn ask(server: &Server, question: &Question) -> Result<Checked, NotChecked> {
    ask_within(&server.url("/simple"), question, wheel::LIMIT)
}

fn ask_within(url: &str, question: &Question, limit: u64) -> Result<Checked, NotChecked> {
    let mut options = WheelOptions::new(Some(url), OpenOptions::default()).unwrap();
    options.limit = limit;
    wheel::check(question, &options, &|_, _| ())
}

/// Serves a wheel behind a page of one link.
fn serve(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |r| if r.path.starts_with("/simple/demo/") { one_link() } else { answer(r) })
}

fn unread(result: Result<Checked, NotChecked>) -> String {
    match result {
        Err(NotChecked::Unread { why }) => why,
        other => panic!("not unread: {other:?}"),
    }
}

fn no_wheel(result: Result<Checked, NotChecked>) -> String {
    match result {
        Err(NotChecked::NoWheel { why }) => why,
        other => panic!("there is a wheel: {other:?}"),
    }
}

/// What `inspect` says of a wheel on disk, and of one that was looked into.
fn assert_like_inspect(checked: &Checked, bytes: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(NAME);
    std::fs::write(&file, bytes).unwrap();
    let ran = common::run(&["inspect", file.to_str().unwrap(), "--format", "json"]);
    let (want, report) = (ran.json(), lint::inspect(std::slice::from_ref(&checked.evidence), Catalog::embedded()));
    let have = serde_json::to_value(&report).unwrap();
    for key in ["device_code", "libraries", "gaps"] {
        assert_eq!(have[key], want[key], "{key}");
    }
    assert!(!want["device_code"].as_array().unwrap().is_empty());
}

#[test]
fn parts_of_a_wheel_say_what_inspect_says_of_it_whole() {
    let wheel = wheel_file();
    let bytes = wheel.clone();
    let server = serve(move |r| part(r, &bytes, Some("\"v1\"")));
    let checked = ask(&server, &question()).unwrap();
    assert_like_inspect(&checked, &wheel);
    assert_eq!((checked.filename.as_str(), checked.version.as_str()), (NAME, "1.0+cu128"));
    assert_eq!(checked.requires, ["nvidia-cublas-cu12==12.8.4.1", "torch==2.8.0"]);
    assert_eq!((checked.verified, checked.size), (Verified::Members, wheel.len() as u64));
    // What lies between holds nothing and is left where it is.
    assert!(checked.fetched < 600 << 10, "{}", checked.fetched);
    assert!(checked.how().contains("digest not verified"));
    let text = checked.archs().text();
    assert!(text.contains("sm_90") && text.contains("modules)"), "{text}");
    // Every part is asked for as a part of the file that was opened.
    let log = server.log();
    let parts: Vec<&Request> = log.iter().filter(|r| r.range.is_some()).collect();
    assert!(parts.len() >= 4, "{parts:?}");
    assert!(parts[1..].iter().all(|r| r.header("if-range") == Some("\"v1\"")), "{parts:?}");
}

#[test]
fn json_pages_bring_digests_and_metadata() {
    let wheel = wheel_file();
    let metadata = b"Name: demo\nRequires-Dist: beside\n".to_vec();
    let digest = |b: &[u8]| Digest::of(b).hex();
    let file = |metadata_digest: String| {
        serde_json::json!({ "meta": { "api-version": "1.1" }, "files": [{
            "filename": NAME, "url": "../../files/demo.whl", "size": wheel.len(),
            "hashes": { "sha256": digest(&wheel) }, "core-metadata": { "sha256": metadata_digest },
        }]})
    };
    for (told, want) in
        [(digest(&metadata), vec!["beside"]), (digest(b"x"), vec!["nvidia-cublas-cu12==12.8.4.1", "torch==2.8.0"])]
    {
        let (page, bytes, metadata) = (file(told), wheel.clone(), metadata.clone());
        let server = Server::start(move |r| match r.path.as_str() {
            "/simple/demo/" => {
                assert!(r.header("accept").unwrap().contains("application/vnd.pypi.simple.v1+json"));
                Reply::page("application/vnd.pypi.simple.v1+json", page.to_string())
            }
            "/files/demo.whl.metadata" => Reply::ok(metadata.clone()),
            "/files/demo.whl" => part(r, &bytes, None),
            _ => Reply::status(404),
        });
        // Metadata that is not what the index says is not believed: the wheel has its own.
        let checked = ask(&server, &question()).unwrap();
        assert_eq!(checked.requires, want);
        assert_eq!(checked.sha256, Some(Digest::of(&wheel)));
    }
    // A wheel of another size than the index says is not that wheel.
    let (mut page, bytes) = (file(digest(&metadata)), wheel.clone());
    page["files"][0]["size"] = 77.into();
    let server = Server::start(move |r| match r.path.as_str() {
        "/simple/demo/" => Reply::page("application/json", page.to_string()),
        _ => part(r, &bytes, None),
    });
    assert!(unread(ask(&server, &question())).contains("the index says 77"));
}

#[test]
fn a_server_without_ranges_is_read_in_one_go_and_the_digest_counts() {
    let wheel = wheel_file();
    for (digest, right) in [(Digest::of(&wheel), true), (Digest::of(b"x"), false)] {
        let bytes = wheel.clone();
        let link = format!("<a href='/f/{NAME}#sha256={}'>x</a>", digest.hex()).replace('+', "%2B");
        let server = Server::start(move |r| match r.path.starts_with("/simple/") {
            true => page(&link),
            false => Reply::ok(bytes.clone()),
        });
        let result = ask(&server, &question());
        if right {
            let checked = result.unwrap();
            assert_like_inspect(&checked, &wheel);
            assert_eq!((checked.verified, checked.fetched), (Verified::Digest, wheel.len() as u64));
        } else {
            assert!(unread(result).contains("digest mismatch"));
        }
        // Not a byte more than is allowed.
        let why = unread(ask_within(&server.url("/simple"), &question(), 1 << 20));
        assert!(why.contains("limit of 1048576 bytes"), "{why}");
    }
}

#[test]
fn where_nearly_all_is_wanted_all_is_read_and_verified() {
    let mut zip = Zip::default();
    zip.add("demo/_C.so", &library("cu135_so_all_major.so"), false);
    zip.add("demo/b.so", &library("cu135_so_two_tus.so"), false);
    zip.add("demo-1.0.dist-info/METADATA", b"Name: demo\nVersion: 1.0\n", true);
    let wheel = zip.finish();
    let bytes = wheel.clone();
    let link = format!("<a href='/f/{NAME}#sha256={}'>x</a>", Digest::of(&wheel).hex()).replace('+', "%2B");
    let server = Server::start(move |r| if r.path.starts_with("/s") { page(&link) } else { part(r, &bytes, None) });
    let checked = ask(&server, &question()).unwrap();
    assert_eq!(checked.verified, Verified::Digest);
    assert_like_inspect(&checked, &wheel);
}

#[test]
fn what_is_cut_is_taken_up_again_and_at_last_told() {
    let wheel = wheel_file();
    let (bytes, cuts) = (wheel.clone(), AtomicUsize::new(0));
    let server = serve(move |r| {
        let mut reply = part(r, &bytes, Some("\"v1\""));
        // Every other body of some length breaks off in the middle.
        if reply.body.len() > 1000 && cuts.fetch_add(1, Ordering::Relaxed) % 2 == 0 {
            reply.cut = Some(reply.body.len() / 2);
        }
        reply
    });
    assert_like_inspect(&ask(&server, &question()).unwrap(), &wheel);
    let bytes = wheel.clone();
    let server = serve(move |r| Reply { cut: Some(2), ..part(r, &bytes, None) });
    let why = unread(ask(&server, &question()));
    assert!(why.contains("broke off") || why.contains("cut"), "{why}");
    // Passing failures pass.
    let (bytes, count) = (wheel.clone(), AtomicUsize::new(0));
    let server = serve(move |r| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::status(503),
        _ => part(r, &bytes, None),
    });
    assert_like_inspect(&ask(&server, &question()).unwrap(), &wheel);
    // Ranges may come in smaller pieces than asked for, as long as they are no crumbs.
    let bytes = wheel;
    let server = serve(move |r| {
        let crumb = Request { range: r.range.map(|(from, to)| (from, to.min(from + 9))), ..r.clone() };
        part(&crumb, &bytes, None)
    });
    assert!(unread(ask(&server, &question())).contains("too small"));
}

#[test]
fn a_wheel_that_changes_while_it_is_read_is_no_answer() {
    let wheel = wheel_file();
    let changed = |how: fn(&Request, &[u8]) -> Reply| {
        let (bytes, count) = (wheel.clone(), AtomicUsize::new(0));
        let server = serve(move |r| match count.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => part(r, &bytes, Some("\"v1\"")),
            _ => how(r, &bytes),
        });
        unread(ask(&server, &question()))
    };
    // Another ETag; all of another file, as If-Range asks for; another size; a range that is gone.
    for how in [
        (|r, b| part(r, b, Some("\"v2\""))) as fn(&Request, &[u8]) -> Reply,
        |_, b| Reply::ok(b.to_vec()),
        |r, b| part(r, &[b, &[0]].concat(), None),
        |_, _| Reply::status(416),
    ] {
        let why = changed(how);
        assert!(why.contains("changed while it was read"), "{why}");
    }
}

#[test]
fn ranges_that_are_not_what_was_asked_for_are_refused() {
    let wheel = wheel_file();
    let lying = |from: usize, how: fn(Reply) -> Reply| {
        let (bytes, count) = (wheel.clone(), AtomicUsize::new(0));
        let server = serve(move |r| {
            let reply = part(r, &bytes, None);
            if count.fetch_add(1, Ordering::Relaxed) < from { reply } else { how(reply) }
        });
        unread(ask(&server, &question()))
    };
    assert!(lying(1, |r| r.with("content-range", "bytes 5-9/100000")).contains("changed"));
    assert!(lying(1, |r| Reply { headers: Vec::new(), ..r }).contains("without saying which"));
    assert!(lying(0, |r| Reply { headers: Vec::new(), ..r }).contains("without saying which"));
    assert!(lying(1, |r| r.with("content-encoding", "gzip")).contains("packs"));
    assert!(lying(0, |_| Reply::status(403)).contains("access denied"));
    assert!(lying(0, |_| Reply::status(404)).contains("404"));
    let shifted = lying(1, |r| {
        let header = r.headers.iter().find(|h| h.0 == "content-range").unwrap().1.clone();
        let (range, total) = header.trim_start_matches("bytes ").split_once('/').unwrap();
        let (first, last) = range.split_once('-').unwrap();
        let next = |t: &str| t.parse::<u64>().unwrap() - 1;
        let text = format!("bytes {}-{}/{total}", next(first), next(last));
        r.with("content-range", &text)
    });
    assert!(shifted.contains("another range"), "{shifted}");
}

#[test]
fn damaged_members_and_hostile_directories_are_no_answer() {
    let wheel = wheel_file();
    let damaged = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = wheel.clone();
        edit(&mut bytes);
        let server = serve(move |r| part(r, &bytes, None));
        unread(ask(&server, &question()))
    };
    let end = wheel.len() - 22;
    let directory = u32::from_le_bytes(wheel[end + 16..end + 20].try_into().unwrap()) as usize;
    let put = |at: usize, value: u32| move |b: &mut Vec<u8>| b[at..at + 4].copy_from_slice(&value.to_le_bytes());
    // Of the first member: its CRC, its packed size, its place, its name.
    assert!(damaged(&put(directory + 16, 7)).contains("another CRC or size"));
    assert!(damaged(&put(directory + 20, u32::MAX - 1)).contains("outside the archive, or in another member"));
    assert!(damaged(&put(directory + 20, 3)).contains("another CRC or size"));
    assert!(damaged(&put(directory + 42, u32::MAX - 1)).contains("outside the archive"));
    assert!(damaged(&put(directory + 42, 5)).contains("no member is where"));
    assert!(damaged(&|b| b[directory + 46] = b'x').contains("another name"));
    assert!(damaged(&|b| b[40] ^= 0x55).contains("demo"));
    // Of the archive: the count, the directory's length and place, the end record itself.
    assert!(damaged(&|b| b[end + 10] = 200).contains("members"));
    assert!(damaged(&|b| b[end + 10] = 2).contains("lists"));
    assert!(damaged(&put(end + 12, u32::MAX)).contains("longer than the archive"));
    assert!(damaged(&put(end + 16, u32::MAX)).contains("outside the archive"));
    assert!(damaged(&|b| b[end] = 0).contains("the record that ends one is missing"));
    assert!(damaged(&|b| b[end + 4] = 1).contains("split"));
    assert!(damaged(&|b| b.truncate(10)).contains("too short"));
    // Two members that share their bytes.
    let second = directory + wheel[directory..].windows(4).skip(1).position(|w| w == b"PK\x01\x02").unwrap() + 1;
    let first_at: [u8; 4] = wheel[directory + 42..directory + 46].try_into().unwrap();
    let overlap = damaged(&|b| b[second + 42..second + 46].copy_from_slice(&first_at));
    assert!(overlap.contains("in another member"), "{overlap}");
}

#[test]
fn no_byte_of_a_directory_makes_it_panic() {
    let wheel = wheel_file();
    let end = wheel.len() - 22;
    let directory = u32::from_le_bytes(wheel[end + 16..end + 20].try_into().unwrap()) as usize;
    let current = std::sync::Arc::new(std::sync::Mutex::new(wheel.clone()));
    let served = current.clone();
    let server = serve(move |r| part(r, &served.lock().unwrap(), None));
    for at in (directory..wheel.len()).step_by(7) {
        let mut bytes = wheel.clone();
        bytes[at] ^= 0x81;
        *current.lock().unwrap() = bytes;
        // Either it is no matter, or it is told.
        if let Ok(checked) = ask(&server, &question()) {
            assert!(!checked.archs().by_code.is_empty(), "byte {at}");
        }
    }
}

#[test]
fn credentials_stay_with_their_host() {
    let wheel = wheel_file();
    let bytes = wheel.clone();
    let other = Server::start(move |r| part(r, &bytes, None));
    let target = other.url("/moved/demo.whl");
    let direct = other.url(&format!("/direct/{}", NAME.replace('+', "%2B")));
    for link in [format!("/files/{}", NAME.replace('+', "%2B")), direct] {
        let (to, link) = (target.clone(), format!("<a href=\"{link}\">x</a>"));
        let index = Server::start(move |r| match r.path.starts_with("/simple/") {
            true if r.header("authorization").is_none() => Reply::status(401),
            true => page(&link),
            false => Reply::status(302).with("location", &to),
        });
        let with_password = index.url("/simple").replace("http://", "http://user:s3cret@");
        let checked = ask_within(&with_password, &question(), wheel::LIMIT).unwrap();
        assert_like_inspect(&checked, &wheel);
        assert!(!checked.url.contains("s3cret"));
        let own = index.log();
        assert!(own.iter().all(|r| r.header("authorization") == Some("Basic dXNlcjpzM2NyZXQ=")), "{own:?}");
        let foreign = other.log();
        assert!(!foreign.is_empty() && foreign.iter().all(|r| r.header("authorization").is_none()), "{foreign:?}");
        // Without them the index refuses, and the words do not tell a password.
        let why = unread(ask(&index, &question()));
        assert!(why.contains("access denied") && why.contains("PIP_INDEX_URL"), "{why}");
    }
}

#[test]
fn the_wheel_is_the_one_that_pip_would_take() {
    let names = [
        "demo-1.0-cp312-cp312-manylinux_2_28_aarch64.whl",
        "demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl",
        "demo-1.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl",
        "demo-1.0+cu128-1-cp312-cp312-manylinux2014_x86_64.whl",
        "demo-1.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl",
        "demo-1.0+cu128-cp312-cp312-win_amd64.whl",
        "demo-1.0.tar.gz",
        "demo-1.1rc1-cp312-cp312-manylinux_2_28_x86_64.whl",
        "demo-1.2-cp39-abi3-manylinux_2_34_x86_64.whl",
        "demo-1.3-cp312-cp312-manylinux_2_28_x86_64.whl",
        "other-9-py3-none-any.whl",
    ];
    let mut links: String =
        names.iter().map(|n| format!("<a href='/f/{}'>{n}</a>", n.replace('+', "%2B"))).collect();
    links = links.replace(
        "demo-1.3-cp312-cp312-manylinux_2_28_x86_64.whl'>",
        "demo-1.3-cp312-cp312-manylinux_2_28_x86_64.whl' data-yanked=''>",
    );
    let bytes = wheel_file();
    let server = Server::start(move |r| match r.path.as_str() {
        "/simple/demo/" => page(&links),
        "/simple/sources/" => page("<a href=sources-1.tar.gz>x</a>"),
        p if p.starts_with("/f/") => part(r, &bytes, None),
        _ => Reply::status(404),
    });
    let glibc = |v: &str| Some(Libc::Glibc { path: Default::default(), version: Some(v.into()) });
    let base = question;
    let took = |q: Question| ask(&server, &q).unwrap().filename;
    assert_eq!(took(Question { libc: glibc("2.31"), ..base() }), NAME);
    assert_eq!(took(Question { libc: glibc("2.17"), ..base() }), names[3]);
    assert_eq!(took(Question { specifier: "==1.0+cu128".into(), ..base() }), NAME);
    assert_eq!(took(Question { specifier: ">=1.0".into(), ..base() }), names[8]);
    assert_eq!(took(Question { specifier: ">=1.0".into(), libc: glibc("2.28"), ..base() }), NAME);
    assert_eq!(took(Question { specifier: ">=1.1rc0,<1.2".into(), ..base() }), names[7]);
    assert_eq!(took(Question { python: Python::parse("cp311"), ..base() }), names[4]);
    assert_eq!(took(Question { platform: Platform::linux("arm64"), ..base() }), names[0]);
    let newest = ask(&server, &Question { python: None, ..base() }).unwrap();
    assert_eq!((newest.filename.as_str(), newest.any_python), (NAME, true));

    let refused = |q: Question| no_wheel(ask(&server, &q));
    let arm = Platform::linux("arm64");
    let why = refused(Question { python: Python::parse("3.13"), platform: arm, ..base() });
    assert!(why.contains("no cp313 wheel of Demo==1.0 for aarch64; there are cp312"), "{why}");
    let why = refused(Question { libc: glibc("2.12"), ..base() });
    assert!(why.contains("the image has glibc 2.12") && why.contains("manylinux2014_x86_64"), "{why}");
    let why = refused(Question { libc: Some(Libc::Musl { path: Default::default() }), ..base() });
    assert!(why.contains("musl"), "{why}");
    let why = refused(Question { platform: Platform::linux("s390x"), ..base() });
    assert!(why.contains("no wheel of Demo==1.0 for s390x"), "{why}");
    let why = refused(Question { specifier: "==1.3".into(), ..base() });
    assert!(why.contains("yanked"), "{why}");
    let why = refused(Question { specifier: "==7".into(), ..base() });
    assert!(why.contains("no wheel of Demo==7; there are 1.3, 1.2"), "{why}");
    assert!(refused(Question { specifier: "one".into(), ..base() }).contains("no valid specifier"));
    assert!(refused(Question { package: "nosuch".into(), ..base() }).contains("no package nosuch"));
    assert!(refused(Question { package: "sources".into(), ..base() }).contains("only source archives"));
    assert!(refused(Question { package: "../x?y".into(), ..base() }).contains("no valid name"));
    // A step's own index counts more than pip's.
    let named = Some(("cu128".to_owned(), server.url("/nothing")));
    assert!(refused(Question { index: named, ..base() }).contains("/nothing has no package demo"));
}

#[test]
fn indexes_that_are_none_are_told() {
    let server = Server::start(|r| match r.path.as_str() {
        "/simple/demo/" => Reply::page("text/plain", "login please"),
        _ => Reply::status(500),
    });
    assert!(unread(ask(&server, &question())).contains("is it a package index?"));
    let why = unread(ask(&server, &Question { package: "x".into(), ..question() }));
    assert!(why.contains("HTTP 500"), "{why}");
    let refused = |url: &str| unread(ask_within(url, &question(), 1));
    assert!(refused("http://index.example/simple").contains("not https"));
    assert!(refused("file:///srv/simple").contains("not supported"));
    assert!(refused("http://127.0.0.1:1/simple").contains("does a package index listen there?"));
}

/// A root file system with a package that has code for sm_90a alone.
fn rootfs(dir: &std::path::Path) {
    let site = dir.join("usr/lib/python3.12/site-packages");
    let put = |name: &str, bytes: &[u8]| {
        let file = site.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    };
    put("demo/_C.so", &library("cu135_so_sm90a_only.so"));
    put("demo-1.0.dist-info/METADATA", b"Name: demo\nVersion: 1.0\n");
    put("demo-1.0.dist-info/RECORD", b"demo/_C.so,,\n");
}

/// The plan for an A100 when the index has this library in a later version.
fn planned(library_name: &str, filename: &str, by_flag: bool) -> serde_json::Value {
    let mut zip = Zip::default();
    zip.add("demo/_C.so", &library(library_name), true);
    zip.add("demo/data.txt", &noise(1 << 20), false);
    zip.add("demo-2.0.dist-info/METADATA", b"Name: demo\nVersion: 2.0\n", true);
    zip.add("demo-2.0.dist-info/RECORD", b"demo/_C.so,,\n", true);
    let (bytes, link) = (zip.finish(), format!("<a href='/f/{filename}'>x</a>"));
    let server =
        Server::start(move |r| if r.path == "/simple/demo/" { page(&link) } else { part(r, &bytes, None) });
    let dir = tempfile::tempdir().unwrap();
    rootfs(dir.path());
    let (image, file) = (format!("dir:{}", dir.path().display()), dir.path().join("report.json"));
    let mut command = common::program();
    command.args(["plan", &image, "--target", "a100@580", "--check-wheels", "--fail-on", "never"]);
    command.arg("-o").arg(format!("json={}", file.display()));
    let url = server.url("/simple");
    match by_flag {
        true => command.args(["--index-url", &url]),
        false => command.env("PIP_INDEX_URL", &url),
    };
    let ran = common::finish(&mut command);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    report["plan"].clone()
}

#[test]
fn a_plan_tells_what_the_wheels_of_its_steps_hold() {
    let good = "demo-2.0-cp312-cp312-manylinux_2_28_x86_64.whl";
    for by_flag in [true, false] {
        let plan = planned("cu135_so_all_major.so", good, by_flag).to_string();
        assert!(plan.contains(&format!("checked: {good} holds")) && plan.contains("sm_80"), "{plan}");
        assert!(plan.contains("digest not verified"), "{plan}");
    }
    let plan = planned("cu135_so_sm90a_only.so", good, true).to_string();
    assert!(plan.contains("a100@580 cannot run it"), "{plan}");
    let plan = planned("cu135_so_all_major.so", "demo-2.0-cp313-cp313-manylinux_2_28_x86_64.whl", true).to_string();
    assert!(plan.contains("no cp312 wheel of demo>1.0 for x86_64; there are cp313"), "{plan}");
    common::run(&["plan", "x", "--index-url", "https://h.example"]).refused(&["--check-wheels"]);
}
