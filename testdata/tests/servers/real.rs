//! Real registries: anonymous, by password, by token, by TLS, with a client's certificate, behind a proxy.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

use super::common::registry::{HTPASSWD, Registry, can_start};
use super::common::{Ran, evidence, finish};
use super::served::{Reply, Server};
use super::{Home, refuses, succeeds};

fn openssl(dir: &Path, args: &str) {
    let output = Command::new("openssl").args(args.split(' ')).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An authority, a server's certificate and a client's, all in one folder.
fn certificates(dir: &Path) {
    let names = "subjectAltName=DNS:localhost,DNS:registry.test,IP:127.0.0.1\n";
    std::fs::write(dir.join("names"), names).unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(dir, &format!("req -x509 {key} -days 30 -subj /CN=ca -keyout ca.key -out ca.crt"));
    for name in ["server", "client"] {
        openssl(dir, &format!("req {key} -subj /CN={name} -keyout {name}.key -out {name}.csr"));
        let by = "-CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile names";
        openssl(dir, &format!("x509 -req -in {name}.csr {by} -out {name}.crt"));
    }
}

/// A server of tokens as docker-registry takes them, signed by a key in the folder.
fn token_server(dir: PathBuf) -> Server {
    openssl(&dir, "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=issuer -keyout token.key -out token.crt");
    let pem = std::fs::read_to_string(dir.join("token.crt")).unwrap();
    let certificate: String = pem.lines().filter(|l| !l.starts_with('-')).collect();
    Server::start(move |request| {
        let who = match request.header("authorization") {
            Some(h) if h == format!("Basic {}", BASE64_STANDARD.encode("alice:s3cret")) => "alice",
            Some(_) => return Reply::status(401),
            None if request.body.contains("refresh_token=idtok-alice") => "alice",
            None => "",
        };
        let asked = format!("{}&{}", request.path, request.body);
        let scope = asked.split(['?', '&']).find_map(|p| p.strip_prefix("scope=repository:")).unwrap_or_default();
        let (name, _) = scope.rsplit_once(':').unwrap_or_default();
        let may = !who.is_empty() || !name.starts_with("private/");
        let actions = if may { "[\"pull\"]" } else { "[]" };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let head = format!(r#"{{"typ":"JWT","alg":"RS256","x5c":["{certificate}"]}}"#);
        let body = format!(
            r#"{{"iss":"issuer","sub":"{who}","aud":"test","exp":{},"nbf":{},"iat":{now},"jti":"{now}",
                "access":[{{"type":"repository","name":"{name}","actions":{actions}}}]}}"#,
            now + 60,
            now - 10
        );
        let text = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(head), BASE64_URL_SAFE_NO_PAD.encode(body));
        let signature = sign(&dir.join("token.key"), &text);
        let token = format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
        Reply::page("application/json", format!(r#"{{"token":"{token}","expires_in":60}}"#))
    })
}

fn sign(key: &Path, text: &str) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(["dgst", "-sha256", "-sign"])
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap().stdout
}

/// A proxy that knows one host, and the hosts it was asked for.
fn proxy(host: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = log.clone();
            std::thread::spawn(move || tunnel(stream, host, &log));
        }
    });
    (address, asked)
}

fn tunnel(mut client: TcpStream, host: &str, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(client.try_clone()?).lines();
    let first = lines.next().unwrap_or(Ok(String::new()))?;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    log.lock().unwrap().push(first.clone());
    let target = first.strip_prefix("CONNECT ").and_then(|t| t.split(' ').next()).unwrap_or_default();
    let Some(port) = target.strip_prefix(host).and_then(|t| t.strip_prefix(':')) else {
        return client.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n");
    };
    let mut server = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut up, mut down) = (client.try_clone()?, server.try_clone()?);
    let sent = std::thread::spawn(move || std::io::copy(&mut up, &mut down).and(down.shutdown(Shutdown::Write)));
    std::io::copy(&mut server, &mut client)?;
    // Either side may be gone.
    drop(sent);
    client.shutdown(Shutdown::Both)
}

#[test]
fn the_matrix_of_real_registries() {
    if !can_start() {
        return;
    }
    let open = Registry::start(None, "", "");
    open.push("oci:skopeo-zstd.oci:latest", "a/b:1");
    open.push("oci:skopeo-gzip.oci:latest", "private/b:1");
    let want = evidence(&succeeds(&Home::new().scan(&format!("{}/a/b:1", open.address), &[])).json());
    let same = |ran: Ran| assert!(evidence(&succeeds(&ran).json()) == want, "{ran:?}");
    let dir = tempfile::tempdir().unwrap();
    certificates(dir.path());
    std::fs::write(dir.path().join("htpasswd"), HTPASSWD).unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let store = open.store();

    let auth = format!("auth: {{htpasswd: {{realm: test, path: {}}}}}", file("htpasswd"));
    let by_password = Registry::start(store, "", &auth);
    let image = format!("{}/a/b:1", by_password.address);
    same(Home::new().with_login(&by_password.address, "alice:s3cret").scan(&image, &[]));
    refuses(&Home::new().scan(&image, &[]), &["without credentials", &by_password.address]);
    let wrong = Home::new().with_login(&by_password.address, "alice:wrong");
    refuses(&wrong.scan(&image, &[]), &["credentials of ~/.docker/config.json are refused"]);

    let server = token_server(dir.path().to_owned());
    let auth = format!(
        "auth: {{token: {{realm: '{}', service: test, issuer: issuer, rootcertbundle: {}}}}}",
        server.url("/token"),
        file("token.crt")
    );
    let by_token = Registry::start(store, "", &auth);
    let private = format!("{}/private/b:1", by_token.address);
    same(Home::new().scan(&format!("{}/a/b:1", by_token.address), &[]));
    refuses(&Home::new().scan(&private, &[]), &["without credentials"]);
    same(Home::new().with_login(&by_token.address, "alice:s3cret").scan(&private, &[]));
    let entry = format!(r#"{{"auths":{{"{}":{{"identitytoken":"idtok-alice"}}}}}}"#, by_token.address);
    same(Home::new().with(".docker/config.json", &entry).scan(&private, &[]));

    let tls = format!(", tls: {{certificate: {}, key: {}}}", file("server.crt"), file("server.key"));
    let by_tls = Registry::start(store, &tls, "");
    let image = format!("localhost:{}/a/b:1", by_tls.port());
    refuses(&Home::new().scan(&image, &[]), &["TLS", "not trusted", "--ca-file"]);
    same(Home::new().scan(&image, &["--ca-file", &file("ca.crt")]));
    same(Home::new().scan(&image, &["--insecure-registry", &format!("localhost:{}", by_tls.port())]));
    same(finish(Home::new().command(&image, &[]).env("SSL_CERT_FILE", file("ca.crt"))));
    let ca = std::fs::read_to_string(dir.path().join("ca.crt")).unwrap();
    let certs_d = format!(".config/containers/certs.d/localhost:{}", by_tls.port());
    same(Home::new().with(&format!("{certs_d}/ca.crt"), &ca).scan(&image, &[]));
    let broken = Home::new().with(&format!("{certs_d}/ca.crt"), "nothing");
    refuses(&broken.scan(&image, &[]), &["ca.crt", "no certificate"]);
    refuses(&Home::new().scan(&image, &["--ca-file", "/nonexistent.pem"]), &["/nonexistent.pem"]);

    behind_a_proxy(&by_tls, &open, &file("ca.crt"), &same);

    let tls = format!(
        ", tls: {{certificate: {}, key: {}, clientcas: [{}]}}",
        file("server.crt"),
        file("server.key"),
        file("ca.crt")
    );
    let by_client = Registry::start(store, &tls, "");
    let image = format!("localhost:{}/a/b:1", by_client.port());
    refuses(&Home::new().scan(&image, &["--ca-file", &file("ca.crt")]), &["TLS", "certs.d"]);
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let certs_d = format!(".config/containers/certs.d/localhost:{}", by_client.port());
    let home = |key: &str| {
        let home = Home::new().with(&format!("{certs_d}/ca.crt"), &ca);
        let home = home.with(&format!("{certs_d}/client.cert"), &read("client.crt"));
        if key.is_empty() { home } else { home.with(&format!("{certs_d}/client.key"), &read(key)) }
    };
    same(home("client.key").scan(&image, &[]));
    refuses(&home("server.key").scan(&image, &[]), &["client.cert", "does not belong"]);
    refuses(&home("").scan(&image, &[]), &["client.cert", "no .key"]);
}

/// Only the proxy knows where `registry.test` is.
fn behind_a_proxy(registry: &Registry, plain: &Registry, ca: &str, same: &dyn Fn(Ran)) {
    let (address, asked) = proxy("registry.test");
    let image = format!("registry.test:{}/a/b:1", registry.port());
    let run = |image: &str, vars: &[(&str, &str)]| {
        let home = Home::new();
        let mut command = home.command(image, &["--ca-file", ca]);
        finish(command.envs(vars.iter().copied()))
    };
    let through = format!("http://{address}");
    same(run(&image, &[("HTTPS_PROXY", &through)]));
    let first = format!("CONNECT registry.test:{} HTTP/1.1", registry.port());
    assert!(asked.lock().unwrap().iter().all(|line| *line == first), "{asked:?}");
    asked.lock().unwrap().clear();
    same(run(&image, &[("ALL_PROXY", &through)]));
    assert!(!asked.lock().unwrap().is_empty());
    asked.lock().unwrap().clear();
    refuses(&run(&image, &[("HTTPS_PROXY", &through), ("NO_PROXY", "x, .test")]), &["no such host"]);
    refuses(&run(&image, &[("HTTP_PROXY", &through)]), &["no such host"]);
    same(run(&format!("localhost:{}/a/b:1", registry.port()), &[("HTTPS_PROXY", &through)]));
    assert!(asked.lock().unwrap().is_empty(), "{asked:?}");
    refuses(&run("other.test/x:1", &[("HTTPS_PROXY", &through)]), &["other.test", "proxy refuses", "NO_PROXY"]);
    // Away from this machine, what is insecure is asked by TLS first, and then without.
    let host = format!("registry.test:{}", plain.port());
    let image = format!("{host}/a/b:1");
    refuses(&run(&image, &[("ALL_PROXY", &through)]), &["TLS", "--insecure-registry"]);
    let home = Home::new();
    same(finish(home.command(&image, &["--insecure-registry", &host]).env("ALL_PROXY", &through)));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let image = format!("registry.test:{}/a/b:1", registry.port());
    let gone = format!("http://u:s3cret@{free}");
    refuses(&run(&image, &[("HTTPS_PROXY", &gone)]), &["proxy of HTTPS_PROXY", "connection refused"]);
}
