//! Registries that want to know who asks, whom one is to trust, that are elsewhere, or that misbehave. Real ones,
//! where `docker-registry`, `skopeo` and `openssl` are there; and one that serves what a test wants it to.

use crate::common;
use crate::served;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use common::{Ran, finish, program};
use served::layout::{Served, serve};
use served::{Reply, Request, Server};

mod real;

const IMAGE: &str = "skopeo-gzip.oci";

/// A user's home, and runs in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn with(self, name: &str, text: &str) -> Self {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// With a login in docker's file.
    fn with_login(self, key: &str, login: &str) -> Self {
        let auth = BASE64_STANDARD.encode(login);
        self.with(".docker/config.json", &format!(r#"{{"auths":{{"{key}":{{"auth":"{auth}"}}}}}}"#))
    }

    fn command(&self, image: &str, more: &[&str]) -> Command {
        let mut command = program();
        command
            .env("HOME", self.path())
            .args(["scan", image, "--target", "a100@535", "--format", "json"])
            .args(more);
        command
    }

    fn scan(&self, image: &str, more: &[&str]) -> Ran {
        finish(&mut self.command(image, more))
    }
}

fn scan(served: &Served, more: &[&str]) -> Ran {
    Home::new().scan(&served.image(), more)
}

/// It was scanned.
fn succeeds(ran: &Ran) -> &Ran {
    assert!(ran.code < 2, "{ran:?}");
    assert!(!ran.json()["device_code"].as_array().unwrap().is_empty(), "{ran:?}");
    ran
}

/// Refused in one line that has all these words and not the password.
fn refuses(ran: &Ran, words: &[&str]) {
    ran.refused(words);
    let lines: Vec<&str> = ran.err.lines().filter(|l| !l.starts_with("note: ")).collect();
    assert_eq!(lines.len(), 1, "{ran:?}");
    assert!(!ran.err.contains("s3cret"), "{ran:?}");
}

fn is_layer(served: &[String], request: &Request) -> bool {
    served.iter().any(|digest| request.path.ends_with(digest.as_str()))
}

/// The digests of the layers of [`IMAGE`].
fn layers() -> Vec<String> {
    serve(IMAGE, |_, _, honest| honest).layers
}

#[test]
fn what_passes_is_tried_again() {
    let retried = |change: fn(usize, Reply) -> Reply| {
        let served = serve(IMAGE, move |_, before, honest| change(before, honest));
        let ran = scan(&served, &[]);
        succeeds(&ran);
        let manifest = served.server.log().iter().filter(|r| r.path.contains("/manifests/")).count();
        assert!(manifest > 1, "{ran:?}");
    };
    retried(|n, honest| if n < 1 { Reply::status(429).with("retry-after", "1") } else { honest });
    retried(|n, honest| if n < 2 { Reply::status(503) } else { honest });
    retried(|n, honest| if n < 1 { Reply::status(408) } else { honest });
    retried(|n, honest| if n < 1 { honest.cut(0) } else { honest });
    let dated = httpdate::fmt_http_date(std::time::SystemTime::now() + Duration::from_secs(1));
    let served = serve(IMAGE, move |request, n, honest| match request.path.contains("/manifests/") && n == 0 {
        true => Reply::status(503).with("retry-after", &dated),
        false => honest,
    });
    succeeds(&scan(&served, &[]));
}

#[test]
fn what_does_not_pass_is_given_up_with_its_reason() {
    let always = serve(IMAGE, |_, _, _| Reply::status(429).with("retry-after", "0"));
    refuses(&scan(&always, &[]), &[&always.image(), "manifest", "HTTP 429 after 4 tries", "log in"]);
    assert_eq!(always.server.log().len(), 4);
    let not = serve(IMAGE, |_, _, _| Reply::status(501));
    refuses(&scan(&not, &[]), &["HTTP 501"]);
    assert_eq!(not.server.log().len(), 1);
    let forbidden = serve(IMAGE, |_, _, _| Reply::status(403));
    refuses(&scan(&forbidden, &[]), &["access denied (HTTP 403)", "docker login", "~/.docker/config.json"]);
}

#[test]
fn a_cut_blob_is_taken_up_where_it_broke_off() {
    let digests = layers();
    let cut = {
        let digests = digests.clone();
        move |request: &Request, before: usize, honest: Reply| match is_layer(&digests, request) && before == 0 {
            true => {
                let half = honest.body.len() / 2;
                honest.cut(half)
            }
            false => honest,
        }
    };
    let served = serve(IMAGE, cut.clone());
    succeeds(&scan(&served, &[]));
    let resumed = served.server.log().into_iter().filter(|r| r.range.is_some_and(|(from, _)| from > 0));
    assert_eq!(resumed.count(), digests.len());
    // A server that knows no ranges sends it all again.
    let whole = serve(IMAGE, move |request, before, honest| match request.range {
        Some((from, _)) if before > 0 => {
            let rest = [vec![0; from], honest.body].concat();
            let head: Vec<u8> = std::fs::read(blob(&request.path)).unwrap();
            assert_eq!(rest.len(), head.len());
            Reply::ok(head)
        }
        _ => cut(request, before, honest),
    });
    succeeds(&scan(&whole, &[]));
    // Another server goes on at the wrong byte.
    let wrong = serve(IMAGE, move |request, _, honest| match request.range {
        Some(_) => honest.with("content-range", "bytes 1-2/3"),
        None if is_layer(&digests, request) => honest.cut(5),
        None => honest,
    });
    let ran = scan(&wrong, &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("wrong byte") && ran.err.contains(&wrong.server.address()), "{ran:?}");
}

/// Where a blob is in the layout.
fn blob(path: &str) -> std::path::PathBuf {
    let digest = path.rsplit('/').next().unwrap().split('?').next().unwrap();
    common::testdata().join("builders/images").join(IMAGE).join("blobs").join(digest.replace(':', "/"))
}

#[test]
fn a_blob_that_never_comes_whole_is_given_up() {
    let digests = layers();
    let silent = serve(IMAGE, move |request, _, honest| match is_layer(&digests, request) {
        true => Reply { pause: Duration::from_secs(8), ..honest.cut(10) },
        false => honest,
    });
    let start = Instant::now();
    let ran = scan(&silent, &["--read-timeout", "1"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("nothing came for too long") && ran.err.contains("sha256:"), "{ran:?}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let digests = layers();
    let cut = serve(IMAGE, move |request, _, honest| match is_layer(&digests, request) {
        true => honest.cut(1),
        false => honest,
    });
    let ran = scan(&cut, &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("broke off after") || ran.err.contains("cut"), "{ran:?}");
}

#[test]
fn what_is_no_answer_is_named() {
    let config = serve(IMAGE, |request, _, mut honest| {
        if request.path.contains("/blobs/") {
            let middle = honest.body.len() / 2;
            honest.body[middle] ^= 1;
        }
        honest
    });
    refuses(&scan(&config, &[]), &["digest mismatch", &config.image()]);
    let digests = layers();
    let layer = serve(IMAGE, move |request, _, mut honest| {
        if is_layer(&digests, request) {
            let middle = honest.body.len() / 2;
            honest.body[middle] ^= 1;
        }
        honest
    });
    let ran = scan(&layer, &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("sha256:") || ran.err.contains("damaged"), "{ran:?}");
    let html = serve(IMAGE, |_, _, _| Reply::page("text/html", "<html>log in</html>"));
    refuses(&scan(&html, &[]), &["got a web page", "login page"]);
    let huge = serve(IMAGE, |_, _, _| Reply::ok(vec![b' '; 5 << 20]).with("content-type", "application/json"));
    refuses(&scan(&huge, &[]), &["manifest", "larger than the limit of 4194304 bytes"]);
    let schema1 = serve(IMAGE, |_, _, _| Reply::page("application/json", r#"{"schemaVersion":1,"fsLayers":[]}"#));
    refuses(&scan(&schema1, &[]), &["schema 1"]);
    let weird = "application/vnd.example.weird+json";
    let other = serve(IMAGE, |_, _, _| Reply::page(weird, r#"{"schemaVersion":2,"layers":[]}"#));
    refuses(&scan(&other, &[]), &[weird]);
    let lost = serve(IMAGE, |request, _, honest| match request.path.contains("/blobs/") {
        true => Reply::status(404),
        false => honest,
    });
    refuses(&scan(&lost, &[]), &["config sha256:", "not found"]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refuses(&Home::new().scan(&format!("{free}/x:1"), &[]), &["connection refused", &free.to_string()]);
    refuses(&Home::new().scan("nosuch.invalid/x:1", &[]), &["nosuch.invalid", "no such host"]);
}

#[test]
fn redirects_are_followed_without_credentials_and_not_for_ever() {
    let digests = layers();
    let elsewhere = serve(IMAGE, |_, _, honest| honest);
    let target = elsewhere.server.address().replace("127.0.0.1", "localhost");
    let away = serve(IMAGE, move |request, _, honest| {
        if request.header("authorization").is_none() {
            Reply::status(401).with("www-authenticate", "Basic realm=\"r\"")
        } else if is_layer(&digests, request) {
            Reply::status(307).with("location", &format!("http://{target}{}", request.path))
        } else {
            honest
        }
    });
    let home = Home::new().with_login(&away.server.address(), "alice:s3cret");
    succeeds(&home.scan(&away.image(), &[]));
    assert!(!elsewhere.server.log().is_empty());
    assert!(elsewhere.authorizations().iter().all(|(_, who)| who.is_none()), "{:?}", elsewhere.authorizations());
    // What is elsewhere is not asked who one is.
    let asks = serve(IMAGE, |_, _, _| Reply::status(401).with("www-authenticate", "Basic realm=\"r\""));
    let target = asks.server.address().replace("127.0.0.1", "localhost");
    let tricked = serve(IMAGE, move |request, _, honest| match request.path.contains("/blobs/") {
        true => Reply::status(307).with("location", &format!("http://{target}{}", request.path)),
        false => honest,
    });
    let home = Home::new().with_login(&tricked.server.address(), "alice:s3cret");
    refuses(&home.scan(&tricked.image(), &[]), &["access denied"]);
    assert!(asks.authorizations().iter().all(|(_, who)| who.is_none()), "{:?}", asks.authorizations());
    let round = serve(IMAGE, |request, _, _| Reply::status(307).with("location", &request.path));
    refuses(&scan(&round, &[]), &["more than 5 redirects"]);
    let file = serve(IMAGE, |_, _, _| Reply::status(307).with("location", "file:///etc/passwd"));
    refuses(&scan(&file, &[]), &["redirected to no valid address"]);
    let cloud = serve(IMAGE, |_, _, _| Reply::status(307).with("location", "http://169.254.169.254/latest"));
    refuses(&scan(&cloud, &[]), &["169.254.169.254"]);
}

/// A server of tokens: `t1`, `t2`, …, each good for a time; `None`: refuses.
fn tokens(gives: impl Fn(&Request) -> bool + Send + Sync + 'static, expires_in: u64) -> Server {
    let given = std::sync::atomic::AtomicUsize::new(0);
    Server::start(move |request| {
        if !gives(request) {
            return Reply::status(401);
        }
        let n = given.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        Reply::page("application/json", format!(r#"{{"token":"t{n}","expires_in":{expires_in}}}"#))
    })
}

/// A registry that lets in whoever shows a token that `takes` it for this request.
fn wants_token(realm: String, takes: impl Fn(&Request, &str) -> bool + Send + Sync + 'static) -> Served {
    serve(IMAGE, move |request, _, honest| {
        let token = request.header("authorization").and_then(|a| a.strip_prefix("Bearer "));
        match token.is_some_and(|t| takes(request, t)) {
            true => honest,
            false => Reply::status(401)
                .with("www-authenticate", &format!("Basic realm=\"b\", Bearer realm=\"{realm}\",service=\"s\"")),
        }
    })
}

fn basic(login: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(login))
}

#[test]
fn a_token_server_of_the_same_host_gets_the_credentials() {
    let server = tokens(|r| r.header("authorization") == Some(&basic("alice:s3cret")), 60);
    let served = wants_token(server.url("/token?a=b"), |_, _| true);
    let home = Home::new().with_login(&served.server.address(), "alice:s3cret");
    succeeds(&home.scan(&served.image(), &[]));
    let asked = server.log();
    assert_eq!(asked.len(), 1, "one token for all layers: {asked:?}");
    assert!(asked[0].path.contains("a=b&service=s&scope=repository:a/b:pull&account=alice"), "{asked:?}");
    // The registry itself never sees the password, nor a request to who it is before it asked.
    assert!(served.authorizations().iter().all(|(_, who)| who.as_deref().is_none_or(|w| w == "Bearer t1")));
    assert_eq!(served.authorizations()[0].1, None);
    // Wrong ones are refused, and so named.
    let home = Home::new().with_login(&served.server.address(), "alice:wrong");
    let words = ["credentials of ~/.docker/config.json are refused", "docker login"];
    refuses(&home.scan(&served.image(), &[]), &words);
    refuses(&Home::new().scan(&served.image(), &[]), &["without credentials", "~/.docker/config.json"]);
    // What is traced has no secrets.
    let ran = Home::new().with_login(&served.server.address(), "alice:s3cret").scan(&served.image(), &["-vv"]);
    assert!(ran.err.contains("http: GET") && ran.err.contains("/token?… 200"), "{ran:?}");
    for secret in ["s3cret", "alice", "t1", "t2", "t3", "scope="] {
        assert!(!ran.err.contains(secret), "{secret}: {ran:?}");
    }
}

#[test]
fn a_token_server_of_another_host_gets_them_only_where_the_user_says_so() {
    let thief = tokens(|r| r.header("authorization").is_some(), 60);
    let realm = thief.url("/token").replace("127.0.0.1", "localhost");
    let served = wants_token(realm, |_, _| true);
    let home = Home::new().with_login(&served.server.address(), "alice:s3cret");
    let host = thief.address().replace("127.0.0.1", "localhost");
    refuses(&home.scan(&served.image(), &[]), &["were not sent to", &host, &format!("--allow-auth-host {host}")]);
    assert!(!thief.log().is_empty(), "an anonymous token is tried");
    assert!(thief.log().iter().all(|r| r.header("authorization").is_none() && !r.path.contains("alice")));
    succeeds(&home.scan(&served.image(), &["--allow-auth-host", &host]));
    assert_eq!(thief.log().last().unwrap().header("authorization"), Some(basic("alice:s3cret").as_str()));
    // One that gives a token to anybody, which the registry does not take.
    let anybody = tokens(|_| true, 60);
    let served = wants_token(anybody.url("/t").replace("127.0.0.1", "localhost"), |_, _| false);
    let home = Home::new().with_login(&served.server.address(), "alice:s3cret");
    refuses(&home.scan(&served.image(), &[]), &["were not sent to"]);
    assert!(anybody.log().iter().all(|r| r.header("authorization").is_none()));
}

#[test]
fn an_identity_token_is_exchanged_by_post_or_else_shown() {
    let login = |served: &Served| {
        let auth = BASE64_STANDARD.encode("00000000-0000-0000-0000-000000000000:");
        let entry = format!(r#"{{"auth":"{auth}","identitytoken":"id/s3cret"}}"#);
        let text = format!(r#"{{"auths":{{"{}":{entry}}}}}"#, served.server.address());
        Home::new().with(".docker/config.json", &text)
    };
    let server = tokens(|r| r.body.contains("refresh_token=id/s3cret") && r.method == "POST", 60);
    let served = wants_token(server.url("/oauth2/token"), |_, _| true);
    succeeds(&login(&served).scan(&served.image(), &[]));
    let body = &server.log()[0].body;
    assert!(body.contains("grant_type=refresh_token") && body.contains("scope=repository:a/b:pull"), "{body}");
    assert!(!server.log()[0].path.contains("s3cret"));
    // A server that knows no POST.
    let zeros = basic("00000000-0000-0000-0000-000000000000:id/s3cret");
    let server = tokens(move |r| r.method == "GET" && r.header("authorization") == Some(&zeros), 60);
    let served = wants_token(server.url("/token"), |_, _| true);
    succeeds(&login(&served).scan(&served.image(), &[]));
    // A token of the registry itself needs no server.
    let served = wants_token("http://127.0.0.1:1/token".to_owned(), |_, token| token == "reg");
    let text = format!(r#"{{"auths":{{"{}":{{"registrytoken":"reg"}}}}}}"#, served.server.address());
    succeeds(&Home::new().with(".docker/config.json", &text).scan(&served.image(), &[]));
}

#[test]
fn a_token_that_runs_out_is_renewed_once_for_all_layers() {
    let server = tokens(|_| true, 60);
    let digests = layers();
    // The first token is for the manifest and the config, and breaks off a layer's transfer.
    let served = wants_token(server.url("/token"), move |r, token| token != "t1" || !is_layer(&digests, r));
    succeeds(&scan(&served, &[]));
    assert_eq!(server.log().len(), 2, "{:?}", server.log());
    // It runs out within a blob: what is resumed is asked for with another.
    let (server, digests) = (tokens(|_| true, 60), layers());
    let registry = {
        let realm = server.url("/token");
        serve(IMAGE, move |request, _, honest| {
            let token = request.header("authorization").unwrap_or_default().to_owned();
            let resumed = request.range.is_some();
            if token.is_empty() || (resumed && token == "Bearer t1") {
                return Reply::status(401).with("www-authenticate", &format!("Bearer realm=\"{realm}\""));
            }
            match is_layer(&digests, request) && !resumed {
                true => honest.cut(7),
                false => honest,
            }
        })
    };
    succeeds(&scan(&registry, &[]));
    assert_eq!(server.log().len(), 2, "{:?}", server.log());
}

#[test]
fn a_token_is_renewed_before_it_is_refused() {
    let server = tokens(|_| true, 1);
    let digests = layers();
    let served = serve(IMAGE, {
        let realm = server.url("/token");
        move |request, _, honest| match request.header("authorization") {
            None => Reply::status(401).with("www-authenticate", &format!("Bearer realm=\"{realm}\"")),
            // The config comes late.
            Some(_) if !is_layer(&digests, request) && request.path.contains("/blobs/") => {
                std::thread::sleep(Duration::from_millis(1200));
                honest
            }
            Some(_) => honest,
        }
    });
    succeeds(&scan(&served, &[]));
    assert!(server.log().len() >= 2, "{:?}", server.log());
    let refused = served.authorizations().iter().filter(|(_, who)| who.is_none()).count();
    assert_eq!(refused, 1);
}

#[test]
fn token_servers_that_misbehave_are_named() {
    let says = |reply: Reply, words: &[&str]| {
        let server = Server::start(move |_| reply.clone());
        let served = wants_token(server.url("/token"), |_, _| true);
        refuses(&scan(&served, &[]), &[words, &[&server.address()]].concat());
    };
    says(Reply::page("text/html", "<html>"), &["gives none"]);
    says(Reply::ok(vec![b' '; (1 << 20) + 1]), &["more than 1 MiB"]);
    says(Reply::page("application/json", r#"{"token":"a\nb"}"#), &["gives none"]);
    says(Reply::status(404), &["HTTP 404"]);
    for (realm, words) in [("http://elsewhere.invalid/token", "not https"), ("", "access denied")] {
        let served = serve(IMAGE, move |_, _, _| {
            Reply::status(401).with("www-authenticate", &format!("Bearer realm=\"{realm}\""))
        });
        refuses(&scan(&served, &[]), &[words]);
    }
}

#[test]
fn logins_are_found_by_repository_and_from_everywhere() {
    let served = serve(IMAGE, |request, _, honest| match request.header("authorization") {
        Some(who) if who == basic("alice:s3cret") => honest,
        _ => Reply::status(401).with("www-authenticate", "Basic realm=\"r\""),
    });
    let (image, host) = (served.image(), served.server.address());
    let entry = |key: &str, login: &str| format!(r#""{key}":{{"auth":"{}"}}"#, BASE64_STANDARD.encode(login));
    let auths = |entries: &[String]| format!(r#"{{"auths":{{{}}}}}"#, entries.join(","));
    let good = auths(&[entry(&host, "alice:s3cret")]);
    // The longest key counts.
    let longest = auths(&[entry(&host, "a:b"), entry(&format!("{host}/a/b"), "alice:s3cret")]);
    succeeds(&Home::new().with(".docker/config.json", &longest).scan(&image, &[]));
    // Every place; one that was named is the only one.
    for place in [".docker/config.json", ".config/containers/auth.json"] {
        succeeds(&Home::new().with(place, &good).scan(&image, &[]));
    }
    let home =
        Home::new().with("auth.json", &good).with("empty.json", "{}").with("run/containers/auth.json", &good);
    let file = home.path().join("auth.json");
    succeeds(&home.scan(&image, &["--authfile", file.to_str().unwrap()]));
    succeeds(&finish(home.command(&image, &[]).env("REGISTRY_AUTH_FILE", &file)));
    succeeds(&finish(home.command(&image, &[]).env("DOCKER_AUTH_CONFIG", &good)));
    succeeds(&finish(home.command(&image, &[]).env("XDG_RUNTIME_DIR", home.path().join("run"))));
    let empty = home.path().join("empty.json");
    let ran =
        finish(home.command(&image, &["--authfile", empty.to_str().unwrap()]).env("REGISTRY_AUTH_FILE", &file));
    refuses(&ran, &["none for", "~/empty.json"]);
    refuses(&home.scan(&image, &["--authfile", "/nonexistent/auth.json"]), &["/nonexistent/auth.json"]);
    // Broken files.
    let broken = Home::new().with(".docker/config.json", r#"{"auths":{"x":{"auth":"s3cret"#);
    refuses(&broken.scan(&image, &[]), &["~/.docker/config.json", "line 1"]);
    // A helper that is not there is told, and one goes on without.
    let lacking = Home::new().with(".docker/config.json", r#"{"credsStore":"nosuch-of-this-test"}"#);
    refuses(
        &lacking.scan(&image, &[]),
        &["docker-credential-nosuch-of-this-test", "not installed", "docker login"],
    );
    let open = serve(IMAGE, |_, _, honest| honest);
    succeeds(&lacking.scan(&open.image(), &[]));
}

#[test]
fn a_login_is_typed_and_helpers_are_asked() {
    let served = serve(IMAGE, |request, _, honest| match request.header("authorization") {
        Some(who) if who == basic("alice:s3cret") => honest,
        _ => Reply::status(401).with("www-authenticate", "Basic realm=\"r\""),
    });
    let (image, host) = (served.image(), served.server.address());
    let typed = |home: &Home, image: &[&str], password: &str| {
        let mut args = vec!["scan", "--username", "alice", "--password-stdin", "--target", "a100@535"];
        args.extend(["--format", "json"]);
        args.extend(image);
        let mut child = program()
            .env("HOME", home.path())
            .args(&args)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // It may end without reading.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), password.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
        Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    };
    let home = Home::new();
    succeeds(&typed(&home, &[&image], "s3cret\n"));
    refuses(&typed(&home, &[&image], "wrong"), &["credentials of --username are refused"]);
    refuses(&typed(&home, &[&image], ""), &["password", "empty"]);
    refuses(&typed(&home, &["-"], "s3cret"), &["--password-stdin has read it"]);
    // One password is for one registry.
    let other = serve(IMAGE, |_, _, _| Reply::status(401).with("www-authenticate", "Basic realm=\"r\""));
    let ran = typed(&home, &[&image, &other.image()], "s3cret");
    assert!(ran.code == 2 && ran.err.contains("is for one registry"), "{ran:?}");
    assert_eq!(other.server.log().len(), 0);
    // A mirror does not get it.
    let mirror = serve(IMAGE, |_, _, _| Reply::status(401).with("www-authenticate", "Basic realm=\"r\""));
    let mirrored = format!("{host}={}", mirror.server.address());
    let ran = typed(&home, &[&image, "--mirror", &mirrored], "s3cret");
    succeeds(&ran);
    assert!(ran.err.contains("does not serve it") && !mirror.server.log().is_empty(), "{ran:?}");
    assert!(mirror.authorizations().iter().all(|(_, who)| who.is_none()));
    // A helper.
    let home = Home::new().with("bin/docker-credential-fake", HELPER);
    let home = home.with(".docker/config.json", &format!(r#"{{"credHelpers":{{"{host}":"fake"}}}}"#));
    use std::os::unix::fs::PermissionsExt;
    let helper = home.path().join("bin/docker-credential-fake");
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.path().join("bin").display(), std::env::var("PATH").unwrap());
    succeeds(&finish(home.command(&image, &[]).env("PATH", path)));
    assert_eq!(std::fs::read_to_string(home.path().join("asked")).unwrap(), host);
}

const HELPER: &str = "#!/bin/sh\n[ \"$1\" = get ] || exit 9\ncat >\"$HOME/asked\"\n\
                      printf '{\"ServerURL\":\"x\",\"Username\":\"alice\",\"Secret\":\"s3cret\"}'\n";

#[test]
fn mirrors_come_first_and_are_told() {
    let origin = serve(IMAGE, |_, _, honest| honest);
    let mirror = serve(IMAGE, |_, _, honest| honest);
    let (host, at) = (origin.server.address(), mirror.server.address());
    let ran = Home::new().scan(&origin.image(), &["--mirror", &format!("{host}=http://{at}/copy")]);
    assert!(succeeds(&ran).err.contains(&format!("is read from {at}/copy/a/b")), "{ran:?}");
    assert_eq!(origin.server.log().len(), 0);
    assert!(mirror.server.log().iter().all(|r| r.path.starts_with("/v2/copy/a/b/")));
    // One that is not there, one that lies of a digest, and then the place itself.
    let digest = ran.json()["image"]["digest"].as_str().unwrap().to_owned();
    let liar = serve("umoci.oci", |request, _, honest| match request.path.contains("/manifests/") {
        true => Reply::page("application/vnd.oci.image.manifest.v1+json", r#"{"schemaVersion":2}"#),
        false => honest,
    });
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let conf = format!(
        "[[registry]]\nprefix = \"{host}\"\nlocation = \"{host}\"\n[[registry.mirror]]\nlocation = \"{free}\"\n\
         [[registry.mirror]]\nlocation = \"{}\"\n",
        liar.server.address()
    );
    let home = Home::new().with(".config/containers/registries.conf", &conf);
    let ran = home.scan(&format!("{host}/a/b@{digest}"), &[]);
    let err = &succeeds(&ran).err;
    assert!(err.contains("connection refused") && err.contains("digest mismatch"), "{ran:?}");
    assert!(!origin.server.log().is_empty());
    let blocked = format!("[[registry]]\nprefix = \"{host}/a\"\nblocked = true\n");
    let home = Home::new().with(".config/containers/registries.conf", &blocked);
    refuses(&home.scan(&origin.image(), &[]), &["is blocked by ~/.config/containers/registries.conf"]);
    let broken = Home::new().with("r.conf", "[[registry]\n");
    let ran = finish(
        broken.command(&origin.image(), &[]).env("CONTAINERS_REGISTRIES_CONF", broken.path().join("r.conf")),
    );
    refuses(&ran, &["~/r.conf", "line 1"]);
    Home::new().scan("x", &["--mirror", "ftp://x"]).refused(&["http://"]);
    // Where nobody has it, everybody who was asked is told.
    let (gone, lacking) = (serve(IMAGE, |_, _, _| Reply::status(404)), serve(IMAGE, |_, _, _| Reply::status(404)));
    let (host, at) = (gone.server.address(), lacking.server.address());
    let ran = Home::new().scan(&gone.image(), &["--mirror", &format!("{host}={at}")]);
    refuses(&ran, &["not found", "do not serve it either", &at]);
}
