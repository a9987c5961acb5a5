//! Images in a registry, read over HTTP as they are needed. Nothing that a server says is believed: digests
//! and sizes are those of the bytes.

use std::io::{self, Read};
use std::sync::Arc;

use serde::Deserialize;
use ureq::BodyReader;
use ureq::http::header;

use super::super::http::{Cuts, is_silence};
use super::super::{Content, ImageError};
use super::files::{Stored, read_small, verify};
use super::http::{Ask, Client};
use super::manifest::{self, MAX_JSON, malformed, shown};
use super::mirrors::{self, Route};
use super::oci::{self, Root, Store};
use super::reference::RegistryName;
use super::{Handle, OpenOptions, credentials, with_hint};
use crate::model::Digest;

const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                      application/vnd.docker.distribution.manifest.list.v2+json, \
                      application/vnd.docker.distribution.manifest.v2+json";

pub fn open(text: &str, options: &OpenOptions) -> Result<Handle, ImageError> {
    let name = RegistryName::parse(text)?;
    credentials::claim_login(&name.registry, options)?;
    let (routes, mut notices) = mirrors::routes(&name, options)?;
    let mut tried: Vec<String> = Vec::new();
    let mut failed = None;
    for route in routes {
        let handle = match at(&route, &name, options, &mut notices) {
            Ok(handle) => handle,
            Err(e) if route.is_mirror => {
                notices.push(format!("the mirror {} does not serve it: {e}", shown(&route.host)));
                tried.push(shown(&route.host));
                failed = Some(e);
                continue;
            }
            Err(e) if tried.is_empty() => return Err(e),
            Err(e) => {
                let mirrors =
                    format!("the mirrors that were asked first do not serve it either: {}", tried.join(", "));
                return Err(with_hint(e, &mirrors));
            }
        };
        if route.is_mirror || name.registry != route.registry {
            notices.push(format!("{} is read from {}", name.shown, route.shown()));
        }
        if let (Some(tag), Some(_)) = (&name.tag, &name.digest) {
            notices.push(format!("{}: the digest counts, the tag {tag} is not looked up", name.shown));
        }
        return Ok(notices.into_iter().fold(handle, Handle::told));
    }
    Err(failed.unwrap_or_else(|| malformed(&name.shown, "there is no place to look for it")))
}

/// Looks in one place.
fn at(
    route: &Route,
    name: &RegistryName,
    options: &OpenOptions,
    notices: &mut Vec<String>,
) -> Result<Handle, ImageError> {
    let client = Arc::new(Client::new(route, options));
    let store = Registry { client: client.clone(), place: name.shown.clone() };
    let got = store.get_manifest(&name.wanted());
    notices.extend(client.notes());
    let (bytes, content_type) = got?;
    let digest = match &name.digest {
        Some(digest) => {
            verify(&bytes, digest, None, &format!("{}: manifest", name.shown))?;
            *digest
        }
        None => Digest::of(&bytes),
    };
    let document = manifest::parse(&bytes, content_type.as_deref(), &name.shown)?;
    oci::open(store, vec![Root::Read(digest, document)], name.shown.clone())
}

struct Registry {
    client: Arc<Client>,
    place: String,
}

impl Registry {
    fn get_manifest(&self, wanted: &str) -> Result<(Vec<u8>, Option<String>), ImageError> {
        let what = format!("manifest of {}", self.place);
        let path = format!("manifests/{wanted}");
        let ask = Ask { path: &path, accept: Some(ACCEPT), from: 0, what: &what };
        let (status, bytes, content_type) = self.client.document(ask, MAX_JSON)?;
        if status != 200 {
            return Err(refused(&self.client, &self.place, &what, status, &bytes));
        }
        if content_type.as_deref() == Some("text/html") || bytes.trim_ascii_start().starts_with(b"<") {
            return Err(web_page(&self.client, &what));
        }
        // Servers that know no types say text/plain or the like: then the document speaks for itself.
        let content_type = content_type.filter(|t| t.starts_with("application/vnd."));
        Ok((bytes, content_type))
    }
}

impl Store for Registry {
    fn place(&self) -> &str {
        &self.place
    }

    fn manifest(&self, digest: &Digest, size: Option<u64>) -> Result<(Vec<u8>, Option<String>), ImageError> {
        let (bytes, content_type) = self.get_manifest(&digest.to_string())?;
        verify(&bytes, digest, size, &format!("{}: manifest", self.place))?;
        Ok((bytes, content_type))
    }

    fn config(&self, digest: &Digest, size: Option<u64>) -> Result<Vec<u8>, ImageError> {
        let Some(size) = size else {
            return Err(malformed(&self.place, "the manifest gives no size of its config"));
        };
        let mut blob = Blob::new(self.client.clone(), "config", &self.place, *digest, size);
        blob.body = Some(blob.connect()?);
        let place = format!("{}: config", self.place);
        let bytes = read_small(blob, size, "the image config", &place)?;
        verify(&bytes, digest, None, &place)?;
        Ok(bytes)
    }

    fn layer(&self, digest: &Digest, size: Option<u64>) -> Result<Stored, ImageError> {
        let Some(size) = size else {
            return Err(malformed(&self.place, format!("the manifest gives no size of layer {digest}")));
        };
        let (client, place, digest) = (self.client.clone(), self.place.clone(), *digest);
        let content = Content::Blob(Box::new(move || {
            let mut blob = Blob::new(client.clone(), "layer", &place, digest, size);
            blob.body = Some(blob.connect()?);
            Ok(Box::new(blob))
        }));
        Ok(Stored { content, size, read: None })
    }

    fn has(&self, _: &Digest) -> bool {
        true
    }
}

/// A blob as it comes in; taken up again where it broke off.
struct Blob {
    client: Arc<Client>,
    place: String,
    path: String,
    what: String,
    size: u64,
    at: u64,
    cuts: Cuts,
    body: Option<BodyReader<'static>>,
}

impl Blob {
    fn new(client: Arc<Client>, kind: &str, place: &str, digest: Digest, size: u64) -> Self {
        let (path, what) = (format!("blobs/{digest}"), format!("{kind} {digest} of {place}"));
        let cuts = Cuts::from(0).paced(client.options().retry_delay);
        Self { client, place: place.to_owned(), path, what, size, at: 0, cuts, body: None }
    }

    fn connect(&self) -> Result<BodyReader<'static>, ImageError> {
        let ask = Ask { path: &self.path, accept: None, from: self.at, what: &self.what };
        let answer = self.client.get(ask)?;
        let wrong = |why: String| self.client.error(format!("{}: {why}", self.what), "");
        let starts = |range: &str| {
            range.strip_prefix("bytes ").and_then(|r| r.split('-').next()).and_then(|n| n.parse::<u64>().ok())
        };
        match answer.status {
            200 if answer.header(header::CONTENT_TYPE).is_some_and(|t| t.starts_with("text/html")) => {
                Err(web_page(&self.client, &self.what))
            }
            200 => {
                if let Some(length) = answer.length().filter(|&n| n != self.size) {
                    return Err(wrong(format!("{length} bytes, the manifest says {}", self.size)));
                }
                let mut body = answer.into_body();
                // A server that cannot resume sends it all again.
                let skipped = io::copy(&mut (&mut body).take(self.at), &mut io::sink());
                match skipped {
                    Ok(n) if n == self.at => Ok(body),
                    Ok(_) => Err(wrong("broke off".to_owned())),
                    Err(e) => Err(self.client.io_words(&e, &self.what)),
                }
            }
            206 if self.at > 0 => {
                let from = match answer.header(header::CONTENT_RANGE) {
                    Some(range) => starts(range),
                    // Not said: then the length must be that of what is missing.
                    None => answer.length().and_then(|n| self.size.checked_sub(n)),
                };
                if from != Some(self.at) {
                    return Err(wrong("the registry resumes at the wrong byte".to_owned()));
                }
                Ok(answer.into_body())
            }
            status => {
                let mut bytes = Vec::new();
                // Only for the error's words: half a body does as well.
                let _ = answer.into_body().take(64 << 10).read_to_end(&mut bytes);
                Err(refused(&self.client, &self.place, &self.what, status, &bytes))
            }
        }
    }
}

impl Read for Blob {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.size - self.at;
        if left == 0 || buf.is_empty() {
            return Ok(0);
        }
        let want = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        loop {
            let mut silent = false;
            let problem = match &mut self.body {
                Some(body) => match body.read(&mut buf[..want]) {
                    Ok(0) => self
                        .client
                        .error(format!("{}: broke off after {} bytes", self.what, self.at), "try again later"),
                    Ok(n) => {
                        self.at += n as u64;
                        return Ok(n);
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => {
                        silent = is_silence(&e);
                        self.client.io_words(&e, &format!("{} after {} bytes", self.what, self.at))
                    }
                },
                None => match self.connect() {
                    Ok(body) => {
                        self.body = Some(body);
                        continue;
                    }
                    // That was tried again already.
                    Err(e) => return Err(io::Error::other(e)),
                },
            };
            self.body = None;
            match silent {
                true => self.cuts.again_after_silence(self.at, problem)?,
                false => self.cuts.again(self.at, problem)?,
            }
        }
    }
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
}

fn web_page(client: &Client, what: &str) -> ImageError {
    let hint = "is it a registry, and is there a proxy or a login page in between?";
    client.error(format!("{what}: got a web page"), hint)
}

/// Words for an answer that is no content.
fn refused(client: &Client, place: &str, what: &str, status: u16, body: &[u8]) -> ImageError {
    let code = serde_json::from_slice::<Errors>(body).ok().and_then(|e| e.errors.into_iter().next());
    let code = code.map(|e| e.code).unwrap_or_default();
    let not_found = |reference: String, hint: String| ImageError::NotFound { reference, hint };
    match (status, code.as_str()) {
        (404, "NAME_UNKNOWN") => not_found(
            place.to_owned(),
            format!("name unknown: the registry {} has no such repository", client.host()),
        ),
        (404, "MANIFEST_UNKNOWN") => not_found(
            place.to_owned(),
            format!("manifest unknown: the registry {} has no such tag or digest", client.host()),
        ),
        (404, "BLOB_UNKNOWN") => not_found(
            what.to_owned(),
            format!("blob unknown: the image in {} is incomplete, push it again", client.host()),
        ),
        (404, _) if code.is_empty() => {
            not_found(what.to_owned(), format!("{} answers 404, is it a registry?", client.host()))
        }
        (404, _) => not_found(what.to_owned(), format!("{} says {}", client.host(), shown(&code))),
        (401 | 403, _) => client.denied(what, status),
        _ if code.is_empty() => client.error(format!("{what}: HTTP {status}"), "is it a registry?"),
        _ => client.error(format!("{what}: HTTP {status} ({})", shown(&code)), "is it a registry?"),
    }
}
