//! Runs the built program and reads what it says.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod registry;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

pub fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Tells it once for each reason, past the harness, which keeps what passing tests print.
pub fn skipped(why: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().unwrap().insert(why.to_owned()) {
        // Nobody is left to tell where standard error is closed.
        let _ = writeln!(std::io::stderr(), "tests skipped: {why}");
    }
}

/// Git in a folder, with none of the caller's settings; what it prints.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What a run has left.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }

    /// Exit 2, nothing on standard output, and a reason that has all these words.
    pub fn refused(&self, words: &[&str]) -> &Self {
        assert_eq!(self.out, "", "{self:?}");
        assert!(self.err.starts_with("error: "), "{self:?}");
        self.says(words)
    }

    /// The same of what stands beside the report, which is there.
    pub fn lacking(&self, words: &[&str]) -> &Self {
        assert_ne!(self.out, "", "{self:?}");
        assert!(self.err.lines().any(|line| line.starts_with("error: ")), "{self:?}");
        self.says(words)
    }

    fn says(&self, words: &[&str]) -> &Self {
        assert_eq!(self.code, 2, "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "lacks {word:?}: {self:?}");
        }
        self
    }
}

/// What the caller's environment may say of terminals, servers and logins.
const SETTINGS: [&str; 25] = [
    "IMAGELINT_RULES",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
    "COLUMNS",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "DOCKER_CONFIG",
    "DOCKER_AUTH_CONFIG",
    "REGISTRY_AUTH_FILE",
    "CONTAINERS_REGISTRIES_CONF",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CURL_CA_BUNDLE",
];

/// A day on which the embedded catalog is fresh.
pub const TODAY: &str = "2026-12-01";

/// The program, run in testdata with none of the caller's settings.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imagelint"));
    command.current_dir(testdata()).stdin(Stdio::null());
    for name in SETTINGS {
        command.env_remove(name);
    }
    // What one test reads must not be what another is told.
    command.env("IMAGELINT_NO_CACHE", "1");
    // Tests judge alike for as long as they are kept: waivers and the catalog do not age.
    command.env("IMAGELINT_TODAY", TODAY);
    command
}

pub fn run(args: &[&str]) -> Ran {
    finish(program().args(args))
}

pub fn run_with_input(args: &[&str], input: &[u8]) -> Ran {
    let mut child = program()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe was asked for");
    std::thread::scope(|scope| {
        // The program may stop reading before the end.
        scope.spawn(move || drop(pipe.write_all(input)));
        ran(child.wait_with_output().expect("the program ends"))
    })
}

pub fn finish(command: &mut Command) -> Ran {
    ran(command.output().expect("the program starts"))
}

fn ran(output: std::process::Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    let code = output.status.code().unwrap_or_else(|| panic!("ended by a signal: {:?}", output.status));
    let ran = Ran { code, out: text(output.stdout), err: text(output.stderr) };
    assert!((0..=2).contains(&ran.code), "{ran:?}");
    assert!(!ran.err.contains("panicked"), "{ran:?}");
    let raw = |text: &str| text.chars().any(|c| c.is_control() && c != '\n' && c != '\t' && c != '\x1b');
    assert!(!raw(&ran.out) && !raw(&ran.err), "control characters: {ran:?}");
    ran
}

/// Holds a document against a schema that is kept.
pub fn valid(schema: &Path, value: &Value) {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// What must not depend on how an image is stored: all but the layers' digests.
pub fn evidence(report: &Value) -> Value {
    let keys = ["device_code", "libraries", "packages", "targets"];
    Value::Object(keys.iter().map(|key| ((*key).to_owned(), without(&report[key], "layer"))).collect())
}

pub fn without(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter().filter(|(k, _)| *k != key).map(|(k, v)| (k.clone(), without(v, key))).collect(),
        ),
        Value::Array(list) => list.iter().map(|v| without(v, key)).collect(),
        other => other.clone(),
    }
}

/// `NAME VERDICT` of each target.
pub fn verdicts(report: &Value) -> Vec<String> {
    let text = |v: &Value| v.as_str().unwrap_or("?").to_owned();
    let targets = report["targets"].as_array().into_iter().flatten();
    targets.map(|t| format!("{} {}", text(&t["name"]), text(&t["verdict"]))).collect()
}
