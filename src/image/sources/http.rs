//! Requests to one registry: its scheme, and what it wants to see.

use std::io::Read;
use std::sync::{Mutex, PoisonError};

use ureq::http::Uri;

use super::super::ImageError;
use super::super::http::{Answer, Failure, Get, Hints, Wire, host_of, is_loopback, origin};
use super::OpenOptions;
use super::auth::Challenge;
use super::gate::Gate;
use super::mirrors::Route;

/// The largest error document that is looked into.
const MAX_ERROR: u64 = 64 << 10;

const HINTS: Hints = Hints {
    refused: "does a registry listen there?",
    tls: "--ca-file FILE or certs.d adds an authority, --insecure-registry HOST does without",
    limited: "the registry limits requests: log in, which mostly allows more, or try again later",
};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Below `/v2/REPOSITORY/`.
    pub path: &'a str,
    pub accept: Option<&'a str>,
    /// Leave out that many bytes.
    pub from: u64,
    /// What it is, for errors.
    pub what: &'a str,
}

pub struct Client {
    wire: Wire,
    repository: String,
    scheme: Mutex<Scheme>,
    gate: Gate,
}

#[derive(Clone, Copy)]
struct Scheme {
    https: bool,
    /// Whether it is still a guess.
    may_change: bool,
}

impl Client {
    pub fn new(route: &Route, options: &OpenOptions) -> Self {
        let mut options = options.clone();
        if route.insecure {
            options.insecure.push(route.host.clone());
        }
        // Where anything goes, TLS comes first, as others could listen in; on this machine it is the exception.
        let near = is_loopback(host_of(&route.host));
        let scheme = Scheme { https: !near, may_change: near || options.is_insecure(&route.host) };
        Self {
            gate: Gate::new(&route.registry, &route.repository, !route.is_mirror),
            wire: Wire::new(&route.host, &HINTS, &options, None),
            repository: route.repository.clone(),
            scheme: Mutex::new(scheme),
        }
    }

    pub fn host(&self) -> &str {
        self.wire.host()
    }

    pub fn options(&self) -> &OpenOptions {
        self.wire.options()
    }

    pub fn error(&self, what: impl Into<String>, hint: impl Into<String>) -> ImageError {
        self.wire.error(what, hint)
    }

    pub fn io_words(&self, e: &std::io::Error, what: &str) -> ImageError {
        self.wire.io_words(e, what)
    }

    /// Words for an answer of 401 or 403.
    pub fn denied(&self, what: &str, status: u16) -> ImageError {
        let (why, hint) = self.gate.denied(status, &self.wire);
        self.error(format!("{what}: {why}"), hint)
    }

    /// What is worth telling of how one came in.
    pub fn notes(&self) -> Vec<String> {
        self.gate.notes()
    }

    /// Asks until there is an answer that is no passing failure.
    pub fn get(&self, ask: Ask<'_>) -> Result<Answer, ImageError> {
        self.wire.get(ask.what, || self.once(ask))
    }

    /// A whole document of at most `cap` bytes with its content type; asked for again if it breaks off.
    pub fn document(&self, ask: Ask<'_>, cap: u64) -> Result<(u16, Vec<u8>, Option<String>), ImageError> {
        let document = self.wire.document(ask.what, cap, || self.get(ask))?;
        Ok((document.status, document.bytes, document.content_type))
    }

    fn once(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        let scheme = self.scheme();
        match self.asked(ask, scheme) {
            Err(Failure::Garbled(e)) if scheme.may_change => self.with_other_scheme(ask, e),
            // What knows no TLS may just hang up.
            Err(Failure::Refused(e) | Failure::Passing(e)) if scheme.may_change && scheme.https => {
                self.with_other_scheme(ask, e)
            }
            other => other,
        }
    }

    fn asked(&self, ask: Ask<'_>, Scheme { https, may_change }: Scheme) -> Result<Answer, Failure> {
        let scheme = if https { "https" } else { "http" };
        let url = format!("{scheme}://{}/v2/{}/{}", self.wire.host(), self.repository, ask.path);
        let url: Uri = url.parse().map_err(|_| Failure::Final(self.error(ask.what, "its address is not valid")))?;
        let pass = self.gate.pass(&self.wire, &url, ask.what)?;
        let answer = self.follow(&url, ask, pass.header.as_deref())?;
        if answer.status == 400 && may_change && !https {
            let mut text = Vec::new();
            // An unreadable body does not say HTTPS either.
            let _ = answer.into_body().take(MAX_ERROR).read_to_end(&mut text);
            let plain = self.error(format!("{}: HTTP 400", ask.what), "is it a registry?");
            return Err(match text.windows(5).any(|w| w.eq_ignore_ascii_case(b"https")) {
                true => Failure::Garbled(plain),
                false => Failure::Final(plain),
            });
        }
        self.set(Scheme { https, may_change: false });
        // Only the registry itself is asked who one is; elsewhere, its word does not count.
        if answer.status != 401 || origin(&answer.at) != origin(&url) {
            return Ok(answer);
        }
        let challenges = Challenge::all(&answer.headers);
        match self.gate.renew(&pass, challenges, &self.wire, &url, ask.what)? {
            Some(pass) => {
                drop(answer);
                self.follow(&url, ask, pass.header.as_deref())
            }
            None => Ok(answer),
        }
    }

    /// Asks again with TLS, where plain HTTP may be spoken but is not understood, or the other way round. Without
    /// success nothing changes, and the first failure counts unless the second is a better one.
    fn with_other_scheme(&self, ask: Ask<'_>, first: ImageError) -> Result<Answer, Failure> {
        let before = self.scheme();
        let other = Scheme { https: !before.https, may_change: before.https };
        self.set(other);
        match self.asked(ask, other) {
            Err(Failure::Garbled(_) | Failure::Refused(_)) => {
                self.set(before);
                Err(Failure::Passing(first))
            }
            answer => answer,
        }
    }

    /// One request and its redirects.
    fn follow(&self, url: &Uri, ask: Ask<'_>, authorization: Option<&str>) -> Result<Answer, Failure> {
        let range = (ask.from > 0).then(|| format!("bytes={}-", ask.from));
        let get =
            Get { accept: ask.accept, range: range.as_deref(), authorization, what: ask.what, ..Get::default() };
        self.wire.follow(url, get)
    }

    fn scheme(&self) -> Scheme {
        *self.scheme.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, scheme: Scheme) {
        *self.scheme.lock().unwrap_or_else(PoisonError::into_inner) = scheme;
    }
}
