//! Credential helpers: `docker-credential-X get`, the registry on its standard input, JSON on its standard output.
//! What a helper prints may be a secret, so none of it is ever told.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use super::Credential;

/// The longest a helper may take. Some ask the user, or a cloud.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The most that a helper may print.
const MAX_OUTPUT: u64 = 1 << 20;

/// How often a helper that has closed its output is looked at.
const PATIENCE: u32 = 100;

/// Credentials, none, or why it could not be asked.
pub type Answered = Result<Option<Credential>, String>;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

/// Asks a helper by its short name.
pub fn get(name: &str, server: &str) -> Answered {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if name.is_empty() || !plain {
        return Err("is no name of a helper".to_owned());
    }
    get_from(Path::new(&format!("docker-credential-{name}")), server, TIMEOUT)
}

pub fn get_from(program: &Path, server: &str, timeout: Duration) -> Answered {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => "is not installed; going on without it".to_owned(),
            _ => format!("cannot be started ({e})"),
        })?;
    let (pipe, output) = (child.stdin.take(), child.stdout.take());
    let server = server.to_owned();
    let (send, answer) = channel();
    // Apart from this thread: a helper that leaves its output open must not hold us up.
    thread::spawn(move || {
        if let Some(mut pipe) = pipe {
            // A helper that does not read knows what it needs.
            let _ = pipe.write_all(server.as_bytes());
        }
        let mut bytes = Vec::new();
        let read = output.map_or(Ok(0), |o| o.take(MAX_OUTPUT + 1).read_to_end(&mut bytes));
        // Nobody listens any more where time was up.
        let _ = send.send(read.map(|_| bytes));
    });
    let answered = answer.recv_timeout(timeout);
    let mut status = None;
    for _ in 0..PATIENCE {
        match child.try_wait() {
            Ok(None) if answered.is_ok() => thread::sleep(Duration::from_millis(10)),
            Ok(found) => {
                status = found;
                break;
            }
            Err(_) => break,
        }
    }
    if status.is_none() {
        // It may have ended by now, which is as good.
        let _ = child.kill();
        let _ = child.wait();
    }
    let bytes = match answered {
        Err(_) => return Err(format!("did not answer in time ({} s)", timeout.as_secs_f32())),
        Ok(Err(e)) => return Err(format!("could not be read ({e})")),
        Ok(Ok(bytes)) => bytes,
    };
    if bytes.len() as u64 > MAX_OUTPUT {
        return Err("says too long an answer".to_owned());
    }
    match status {
        Some(status) if status.success() => {}
        _ if is_not_found(&bytes) => return Ok(None),
        Some(status) => return Err(format!("failed ({status}); run it by hand to see why")),
        None => return Err("did not end".to_owned()),
    }
    let answer: Answer =
        serde_json::from_slice(&bytes).map_err(|_| "gave no answer that can be read".to_owned())?;
    Ok(match (answer.username, answer.secret) {
        (_, secret) if secret.is_empty() => None,
        (name, token) if name == "<token>" => {
            Some(Credential::Identity { token, username: name, password: String::new() })
        }
        (username, password) => Some(Credential::Password { username, password }),
    })
}

/// What helpers say where they have nothing.
fn is_not_found(output: &[u8]) -> bool {
    output.trim_ascii().starts_with(b"credentials not found")
}
