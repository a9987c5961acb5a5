//! Images of the Docker daemon and of podman's: the Docker Engine API over a socket. An image is read as it streams
//! by; nothing is put on disk here.

mod client;
mod endpoint;
mod unix;

use std::io::{self, Cursor, Read};
use std::path::Path;

use serde::Deserialize;
use ureq::BodyReader;

use super::super::{BlobSink, ImageError};
use super::manifest::{json, malformed, shown};
use super::reference::Selector;
use super::{Handle, OpenOptions, containers, stream};
use client::{Answer, Client, Words};
use endpoint::{Chosen, Surroundings, Tried};

/// The first API that lets one platform be asked for.
const PLATFORM_SINCE: (u32, u32) = (1, 48);

const DOCKER: Words =
    Words { name: "docker", denied: "join the group docker, or use sudo", refused: "is docker running?" };

const PODMAN: Words = Words {
    name: "podman",
    denied: "the socket of another user: use sudo, or start one with `systemctl --user start podman.socket`",
    refused: "is podman.socket started? containers-storage:NAME reads podman's store without it",
};

pub fn docker(name: &str, options: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let hub = || format!("an image of Docker Hub that is named docker is registry:docker:{}", shown(name));
    let chosen = match surroundings(|s| s.docker())? {
        Ok(chosen) => chosen,
        Err(tried) => {
            let what = format!("no Docker daemon listens: there is no {}", listed(&tried));
            let hint = format!("is docker running? DOCKER_HOST names another socket; {}", hub());
            return Err(ImageError::Network { host: format!("docker:{}", shown(name)), what, hint });
        }
    };
    let none = |name: &str| format!("docker pull {name}, or scan registry:{name}; {}", hub());
    fetch(&chosen, DOCKER, "docker:", name, &none, options, sink)
}

pub fn podman(name: &str, options: &OpenOptions, sink: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    let chosen = match surroundings(|s| s.podman())? {
        Ok(chosen) => chosen,
        Err(tried) => return in_store(name, &tried),
    };
    let none = |name: &str| format!("podman pull {name}, or scan registry:{name}");
    fetch(&chosen, PODMAN, "podman:", name, &none, options, sink)
}

fn surroundings<T>(ask: impl Fn(&Surroundings) -> T) -> T {
    let env = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let uid = rustix::process::geteuid().as_raw();
    ask(&Surroundings { env: &env, uid, root: Path::new("/") })
}

fn listed(tried: &Tried) -> String {
    tried.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Podman needs no daemon: what it has can be read without one.
fn in_store(name: &str, tried: &Tried) -> Result<Handle, ImageError> {
    let told = format!("podman's socket is not there ({}): its store is read in place", listed(tried));
    containers::podman(name).map(|handle| handle.told(told)).map_err(|e| match e {
        ImageError::NotFound { reference, hint } => {
            ImageError::NotFound { reference, hint: format!("no socket at {} either; {hint}", listed(tried)) }
        }
        e => e,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    id: String,
    repo_tags: Option<Vec<String>>,
}

fn fetch(
    chosen: &Chosen,
    words: Words,
    scheme: &str,
    name: &str,
    none: &dyn Fn(&str) -> String,
    options: &OpenOptions,
    sink: &mut dyn BlobSink,
) -> Result<Handle, ImageError> {
    let reference = format!("{scheme}{}", shown(name));
    let odd = |c: char| c.is_control() || c.is_whitespace();
    if name.is_empty() || name.contains(odd) || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(malformed(&reference, "the name of an image must follow"));
    }
    let client = Client::new(chosen, words, options.connect_timeout, options.read_timeout)?;
    let versions = versions(&client)?;
    let path = versions.inspect(name);
    let answer = client.get(&path, &format!("looking for {}", shown(name)))?;
    let inspected: Inspected = match answer.status {
        200 => {
            json(&client.document(answer, "what it says of the image")?, "what it says of the image", &client.host)?
        }
        404 => {
            let hint = format!("{} at {} has no such image; {}", words.name, client.host, none(&shown(name)));
            return Err(ImageError::NotFound { reference, hint });
        }
        _ => return Err(client.error(format!("looking for {}: {}", shown(name), client.told(answer)), "")),
    };
    let wanted = options.platform.as_ref().filter(|_| versions.api >= PLATFORM_SINCE);
    let query = wanted.map(|p| format!("?platform={}", escaped(&platform(p)))).unwrap_or_default();
    let what = format!("fetching {}", shown(name));
    let answer = client.get_slow(&format!("/images/{}/get{query}", escaped(one(name, &inspected))), &what)?;
    match answer.status {
        200 => {}
        404 if wanted.is_some() => {
            let told = client.told(answer);
            return Err(client.error(format!("{what}: {told}"), "leave --platform out to scan what there is"));
        }
        _ => return Err(client.error(format!("{what}: {}", client.told(answer)), "")),
    }
    let place = format!("{} from {}", reference, client.host);
    let archive = Archive::new(client, answer, what)?;
    stream::open(Box::new(archive), &Selector::default(), reference, &place, sink)
}

/// By which word one image comes: a name without a tag would bring all of its tags.
fn one<'a>(name: &'a str, inspected: &'a Inspected) -> &'a str {
    let last = name.rsplit('/').next().unwrap_or(name);
    let id = inspected.id.as_str();
    let safe = !id.is_empty() && id.len() <= 80 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b':');
    let tagged = last.contains([':', '@']) && inspected.repo_tags.iter().flatten().any(|t| t == name);
    if tagged || !safe { name } else { id }
}

/// What a daemon speaks.
struct Versions {
    api: (u32, u32),
    /// Podman's own, `4.3.1`, where it is podman.
    libpod: Option<String>,
}

impl Versions {
    /// Where an image is asked for by its name: podman's own way knows short names of other registries.
    fn inspect(&self, name: &str) -> String {
        match &self.libpod {
            Some(version) => format!("/v{version}/libpod/images/{}/json", escaped(name)),
            None => format!("/images/{}/json", escaped(name)),
        }
    }
}

fn versions(client: &Client) -> Result<Versions, ImageError> {
    let answer = client.get("/_ping", "asking for its version")?;
    let header = |name: &str| answer.headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let (api, libpod) = (header("api-version"), header("libpod-api-version"));
    if answer.status != 200 {
        return Err(client.error(client.told(answer), "is that the socket of a daemon?"));
    }
    let api = api.unwrap_or_default();
    let numbers = api.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let plain = |v: &String| v.len() <= 20 && v.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    Ok(Versions { api: numbers.unwrap_or_default(), libpod: libpod.filter(plain) })
}

fn platform(p: &crate::model::Platform) -> String {
    let mut object = serde_json::Map::new();
    object.insert("os".to_owned(), p.os.clone().into());
    object.insert("architecture".to_owned(), p.architecture.clone().into());
    if let Some(variant) = &p.variant {
        object.insert("variant".to_owned(), variant.clone().into());
    }
    serde_json::Value::Object(object).to_string()
}

/// For the path and the query of an address; slashes part names, and stay.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b':' | b'@' | b'.' | b'-' | b'_' | b'~' => {
                out.push(b.into());
            }
            _ => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

/// The bytes of an image as they come, with the daemon's own words where it has an error instead.
struct Archive {
    start: Cursor<Vec<u8>>,
    body: BodyReader<'static>,
    client: Client,
    what: String,
}

/// What is looked at first: an error in place of an archive is told by its first byte.
const START: u64 = 512;

/// How much of an error is read.
const MAX_SAID: u64 = 64 << 10;

impl Archive {
    fn new(client: Client, answer: Answer, what: String) -> Result<Self, ImageError> {
        let mut body = answer.body;
        let mut start = Vec::new();
        (&mut body).take(START).read_to_end(&mut start).map_err(|e| client.cut(&e, &what))?;
        if matches!(start.trim_ascii_start().first(), Some(b'{' | b'<')) {
            // What follows an error that breaks off is of no matter.
            let _ = (&mut body).take(MAX_SAID).read_to_end(&mut start);
            return Err(client.error(format!("{what}: {}", client::said(&start)), ""));
        }
        Ok(Self { start: Cursor::new(start), body, client, what })
    }
}

impl Read for Archive {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.start.read(out)?;
        if n > 0 || out.is_empty() {
            return Ok(n);
        }
        self.body.read(out).map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => e,
            _ => io::Error::other(self.client.cut(&e, &self.what)),
        })
    }
}

#[cfg(test)]
mod tests;
