//! One request and what can become of it: redirects, retries, limits, and words for what goes wrong. Whom is asked,
//! and for what, is its callers' matter: a registry, a package index.

use std::io::{self, Read};
use std::thread::sleep;
use std::time::Duration;

use ureq::http::{HeaderMap, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, BodyReader};

use super::ImageError;
use super::sources::OpenOptions;
use super::sources::shown;

/// How often a request is tried.
pub const TRIES: u32 = 3;

/// The most redirects followed.
const MAX_REDIRECTS: usize = 5;

/// The longest wait that a server may ask for.
const MAX_RETRY_AFTER: u64 = 60;

/// An answer, its body not read yet.
pub struct Answer {
    pub status: u16,
    /// Where it came from, redirects followed.
    pub at: Uri,
    pub headers: HeaderMap,
    pub body: BodyReader<'static>,
}

impl Answer {
    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn length(&self) -> Option<u64> {
        self.header(header::CONTENT_LENGTH)?.parse().ok()
    }

    pub fn into_body(self) -> BodyReader<'static> {
        self.body
    }
}

/// A whole answer.
pub struct Document {
    pub status: u16,
    pub at: Uri,
    pub bytes: Vec<u8>,
    pub content_type: Option<String>,
}

/// What is asked for, beside the address.
#[derive(Debug, Clone, Copy, Default)]
pub struct Get<'a> {
    pub accept: Option<&'a str>,
    /// `bytes=0-99`.
    pub range: Option<&'a str>,
    /// The validator of an answer that a part must be of.
    pub if_range: Option<&'a str>,
    /// Goes to the origin that is asked, and to none that it redirects to.
    pub authorization: Option<&'a str>,
    /// What it is, for errors.
    pub what: &'a str,
}

/// Speaks to one host, and follows where that leads.
pub struct Wire {
    agent: Agent,
    host: String,
    hints: &'static Hints,
}

/// What to try, by what was asked.
pub struct Hints {
    /// Nothing listens there.
    pub refused: &'static str,
    /// Its certificate is not trusted.
    pub tls: &'static str,
}

impl Wire {
    /// `host`: with its port, as errors name it; `roots`: the authorities to trust instead of the public ones.
    pub fn new(host: &str, hints: &'static Hints, options: &OpenOptions, roots: Option<&RootCerts>) -> Self {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(options.connect_timeout))
            .timeout_connect(Some(options.connect_timeout))
            .timeout_recv_response(Some(options.read_timeout))
            .timeout_per_read(Some(options.read_timeout))
            .user_agent(concat!("imagelint/", env!("CARGO_PKG_VERSION")));
        if let Some(roots) = roots {
            config = config.tls_config(TlsConfig::builder().root_certs(roots.clone()).build());
        }
        if is_loopback(host_of(host)) {
            config = config.proxy(None);
        }
        Self { agent: config.build().new_agent(), host: host.to_owned(), hints }
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn error(&self, what: impl Into<String>, hint: impl Into<String>) -> ImageError {
        ImageError::Network { host: self.host.clone(), what: what.into(), hint: hint.into() }
    }

    /// Asks until there is an answer that is no passing failure.
    pub fn get(&self, what: &str, once: impl Fn() -> Result<Answer, Failure>) -> Result<Answer, ImageError> {
        let mut tried = 1;
        loop {
            match once() {
                Ok(answer) if is_passing(answer.status) => {
                    if tried == TRIES {
                        let what = format!("{what}: HTTP {} after {TRIES} tries", answer.status);
                        return Err(self.error(what, "try again later"));
                    }
                    let asked = answer.header(header::RETRY_AFTER).and_then(|t| t.trim().parse::<u64>().ok());
                    let asked = asked.map(|s| Duration::from_secs(s.min(MAX_RETRY_AFTER)));
                    drop(answer);
                    sleep(asked.unwrap_or_default().max(back_off(tried)));
                }
                Ok(answer) => return Ok(answer),
                Err(Failure::Passing(_) | Failure::Garbled(_)) if tried < TRIES => sleep(back_off(tried)),
                Err(Failure::Passing(e) | Failure::Garbled(e) | Failure::Final(e)) => return Err(e),
            }
            tried += 1;
        }
    }

    /// A whole document of at most `cap` bytes; asked for again if it breaks off.
    pub fn document(
        &self,
        what: &str,
        cap: u64,
        get: impl Fn() -> Result<Answer, ImageError>,
    ) -> Result<Document, ImageError> {
        let too_large = || ImageError::TooLarge { place: self.host.clone(), what: what.to_owned(), limit: cap };
        let mut tried = 1;
        loop {
            let answer = get()?;
            let (status, length) = (answer.status, answer.length());
            if length.is_some_and(|n| n > cap) {
                return Err(too_large());
            }
            let content_type = answer.header(header::CONTENT_TYPE).map(media_type);
            let mut bytes = Vec::new();
            match answer.body.take(cap + 1).read_to_end(&mut bytes) {
                Ok(n) if n as u64 > cap => return Err(too_large()),
                Ok(n) if length.is_none_or(|l| l == n as u64) => {
                    return Ok(Document { status, at: answer.at, bytes, content_type });
                }
                _ if tried < TRIES => sleep(back_off(tried)),
                Ok(_) => return Err(self.error(format!("{what}: broke off {TRIES} times"), "")),
                Err(e) => return Err(self.io_words(&e, what)),
            }
            tried += 1;
        }
    }

    /// One request and its redirects.
    pub fn follow(&self, url: &Uri, ask: Get<'_>) -> Result<Answer, Failure> {
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.agent.get(&at);
            if let Some(accept) = ask.accept {
                request = request.header(header::ACCEPT, accept);
            }
            if let Some(range) = ask.range {
                request = request.header(header::RANGE, range);
            }
            if let Some(validator) = ask.if_range {
                request = request.header(header::IF_RANGE, validator);
            }
            if let Some(authorization) = ask.authorization.filter(|_| origin(&at) == origin(url)) {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            let (parts, body) = request.call().map_err(|e| self.failure(e, &at, ask.what))?.into_parts();
            let status = parts.status.as_u16();
            if ![301, 302, 303, 307, 308].contains(&status) {
                let body = body.into_with_config().limit(u64::MAX).reader();
                return Ok(Answer { status, at, headers: parts.headers, body });
            }
            let location = parts.headers.get(header::LOCATION).and_then(|l| l.to_str().ok());
            let refused = |why: &str| Failure::Final(self.error(format!("{}: redirected {why}", ask.what), ""));
            let next = location.and_then(|l| resolve(&at, l)).ok_or_else(|| refused("to no valid address"))?;
            is_safe_step(&at, &next).map_err(|why| refused(&why))?;
            at = next;
        }
        Err(Failure::Final(self.error(format!("{}: more than {MAX_REDIRECTS} redirects", ask.what), "")))
    }

    /// Words for a request that got no answer, and whether trying again may help.
    fn failure(&self, e: ureq::Error, at: &Uri, what: &str) -> Failure {
        let other = at.host().filter(|h| *h != host_of(&self.host));
        let what = match other {
            Some(host) => format!("{what} (from {})", shown(host)),
            None => what.to_owned(),
        };
        let tell = |why: &str, hint: &str| self.error(format!("{what}: {why}"), hint);
        match e {
            ureq::Error::HostNotFound => {
                Failure::Final(tell("no such host", "check the name, or the network's name server"))
            }
            ureq::Error::Timeout(_) => Failure::Passing(tell("no answer in time", "")),
            ureq::Error::Io(e) => match e.kind() {
                io::ErrorKind::ConnectionRefused => Failure::Final(self.io_words(&e, &what)),
                _ if e.to_string().contains("certificate") => Failure::Final(self.io_words(&e, &what)),
                _ if is_lookup(&e) => {
                    Failure::Final(tell("no such host", "check the name, or the network's name server"))
                }
                _ => Failure::Passing(self.io_words(&e, &what)),
            },
            ureq::Error::Rustls(e) => Failure::Final(tell(&format!("TLS: {e}"), self.hints.tls)),
            ureq::Error::Tls(e) => Failure::Final(tell(&format!("TLS: {e}"), self.hints.tls)),
            ureq::Error::Protocol(e) => Failure::Garbled(tell(&format!("no valid HTTP: {e}"), "")),
            e => Failure::Final(tell(&e.to_string(), "")),
        }
    }

    pub fn io_words(&self, e: &io::Error, what: &str) -> ImageError {
        let (why, hint) = match e.kind() {
            io::ErrorKind::ConnectionRefused => ("connection refused".to_owned(), self.hints.refused),
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                ("the connection was cut".to_owned(), "")
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ("no answer in time".to_owned(), ""),
            _ if e.to_string().contains("certificate") => (format!("TLS: {e}"), self.hints.tls),
            _ if e.to_string().starts_with("timeout") => ("no answer in time".to_owned(), ""),
            _ => (e.to_string(), ""),
        };
        self.error(format!("{what}: {why}"), hint)
    }
}

/// Whether what `from` says may lead to `to`: not from TLS to none, and not from elsewhere to this machine.
pub fn is_safe_step(from: &Uri, to: &Uri) -> Result<(), String> {
    let host = to.host().unwrap_or_default();
    if to.scheme_str() != Some("https") && from.scheme_str() == Some("https") {
        return Err(format!("from https to plain HTTP ({})", shown(host)));
    }
    if is_loopback(host) && !from.host().is_some_and(is_loopback) {
        return Err(format!("to this machine ({})", shown(host)));
    }
    Ok(())
}

/// Why there is no answer.
pub enum Failure {
    /// May go away.
    Passing(ImageError),
    /// The other side speaks no HTTP, or not here.
    Garbled(ImageError),
    Final(ImageError),
}

fn is_lookup(e: &io::Error) -> bool {
    e.to_string().contains("lookup address")
}

pub fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

fn back_off(tried: u32) -> Duration {
    Duration::from_millis(250 << tried.min(5))
}

/// How often in a row a transfer may break off without [`PROGRESS`] bytes in between.
const MAX_CUTS: u32 = 3;
const PROGRESS: u64 = 1 << 20;

/// The breaks of a transfer that is taken up again.
pub struct Cuts {
    count: u32,
    /// Where the last was.
    at: u64,
}

impl Cuts {
    /// Of a transfer that starts at this byte.
    pub fn from(at: u64) -> Self {
        Self { count: 0, at }
    }

    /// Whether enough has come since the last break.
    pub fn has_progress(&self, at: u64) -> bool {
        at - self.at >= PROGRESS
    }

    /// An end at this byte that is no break.
    pub fn pause(&mut self, at: u64) {
        self.at = at;
    }

    /// A break at this byte: waits until it may be taken up again; the problem, where there were too many.
    pub fn again(&mut self, at: u64, problem: ImageError) -> io::Result<()> {
        if self.has_progress(at) {
            self.count = 0;
        }
        self.at = at;
        self.count += 1;
        if self.count > MAX_CUTS {
            return Err(io::Error::other(problem));
        }
        sleep(back_off(self.count));
        Ok(())
    }
}

/// The type without its parameters.
pub fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A host without its port.
pub fn host_of(host: &str) -> &str {
    match host.find(']') {
        Some(end) => &host[..=end],
        None => host.split(':').next().unwrap_or(host),
    }
}

pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

pub fn origin(url: &Uri) -> (Option<&str>, Option<&str>, Option<u16>) {
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    (url.scheme_str(), url.host(), url.port_u16().or(Some(default)))
}

/// Where a `Location` leads.
pub fn resolve(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next()?;
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let text = if location.starts_with("http://") || location.starts_with("https://") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if location.is_empty() || location.contains("://") {
        return None;
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    text.parse::<Uri>().ok().filter(|u| u.host().is_some_and(|h| !h.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_resolved() {
        let base: Uri = "http://127.0.0.1:5006/v2/x/blobs/y".parse().unwrap();
        let to = |l: &str| resolve(&base, l).map(|u| u.to_string());
        assert_eq!(to("/a?b=c").unwrap(), "http://127.0.0.1:5006/a?b=c");
        assert_eq!(to("z").unwrap(), "http://127.0.0.1:5006/v2/x/blobs/z");
        assert_eq!(to("//cdn.example/z").unwrap(), "http://cdn.example/z");
        assert_eq!(to("https://cdn.example/z#f").unwrap(), "https://cdn.example/z");
        assert_eq!(to("file:///etc/passwd"), None);
        assert_eq!(to(""), None);
    }

    #[test]
    fn loopback_is_told_by_address() {
        for host in ["localhost", "127.0.0.1", "127.8.9.1", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "10.0.0.1", "128.0.0.1", "[::2]", ""] {
            assert!(!is_loopback(host), "{host}");
        }
        assert_eq!((host_of("[::1]:5000"), host_of("r.io:5000"), host_of("r.io")), ("[::1]", "r.io", "r.io"));
    }
}
