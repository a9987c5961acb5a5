//! Requests to one registry: retries, redirects, tokens, limits and words for what goes wrong.

use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use ureq::http::{HeaderMap, Uri, header};
use ureq::{Agent, BodyReader};

use super::super::ImageError;
use super::OpenOptions;
use super::auth::{self, Challenge};
use super::manifest::shown;

/// How often a request is tried.
const TRIES: u32 = 3;

/// The most redirects followed.
const MAX_REDIRECTS: usize = 5;

/// The longest wait that a server may ask for.
const MAX_RETRY_AFTER: u64 = 60;

/// The largest token or error document.
const MAX_TOKEN: u64 = 1 << 20;

/// An answer, its body not read yet.
pub struct Answer {
    pub status: u16,
    headers: HeaderMap,
    body: BodyReader<'static>,
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
    agent: Agent,
    host: String,
    repository: String,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    https: bool,
    /// Whether the scheme is still a guess.
    may_change: bool,
    token: Option<String>,
}

impl Client {
    pub fn new(host: &str, repository: &str, options: &OpenOptions) -> Self {
        let name = host_of(host);
        let plain = is_loopback(name) || options.insecure.iter().any(|h| h == host || h == name);
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(options.connect_timeout))
            .timeout_connect(Some(options.connect_timeout))
            .timeout_recv_response(Some(options.read_timeout))
            .timeout_per_read(Some(options.read_timeout))
            .user_agent(concat!("imagelint/", env!("CARGO_PKG_VERSION")));
        if is_loopback(name) {
            config = config.proxy(None);
        }
        Self {
            agent: config.build().new_agent(),
            host: host.to_owned(),
            repository: repository.to_owned(),
            state: Mutex::new(State { https: !plain, may_change: plain, token: None }),
        }
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn error(&self, what: impl Into<String>, hint: impl Into<String>) -> ImageError {
        ImageError::Network { host: self.host.clone(), what: what.into(), hint: hint.into() }
    }

    /// Asks until there is an answer that is no passing failure.
    pub fn get(&self, ask: Ask<'_>) -> Result<Answer, ImageError> {
        let mut tried = 1;
        loop {
            match self.once(ask) {
                Ok(answer) if is_passing(answer.status) => {
                    if tried == TRIES {
                        let what = format!("{}: HTTP {} after {TRIES} tries", ask.what, answer.status);
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

    /// A whole document of at most `cap` bytes with its content type; asked for again if it breaks off.
    pub fn document(&self, ask: Ask<'_>, cap: u64) -> Result<(u16, Vec<u8>, Option<String>), ImageError> {
        let too_large = || ImageError::TooLarge { place: self.host.clone(), what: ask.what.to_owned(), limit: cap };
        let mut tried = 1;
        loop {
            let answer = self.get(ask)?;
            let (status, length) = (answer.status, answer.length());
            if length.is_some_and(|n| n > cap) {
                return Err(too_large());
            }
            let content_type = answer.header(header::CONTENT_TYPE).map(media_type);
            let mut bytes = Vec::new();
            match answer.body.take(cap + 1).read_to_end(&mut bytes) {
                Ok(n) if n as u64 > cap => return Err(too_large()),
                Ok(n) if length.is_none_or(|l| l == n as u64) => return Ok((status, bytes, content_type)),
                _ if tried < TRIES => sleep(back_off(tried)),
                Ok(_) => return Err(self.error(format!("{}: broke off {TRIES} times", ask.what), "")),
                Err(e) => return Err(self.io_words(&e, ask.what)),
            }
            tried += 1;
        }
    }

    fn once(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        let state = self.state();
        let scheme = if state.https { "https" } else { "http" };
        let url = format!("{scheme}://{}/v2/{}/{}", self.host, self.repository, ask.path);
        let url: Uri = url.parse().map_err(|_| Failure::Final(self.error(ask.what, "its address is not valid")))?;
        let answer = match self.follow(&url, ask, state.token.as_deref()) {
            Err(Failure::Garbled(e)) if state.may_change => return self.with_https(ask, e),
            other => other?,
        };
        if answer.status == 400 && state.may_change {
            let mut text = Vec::new();
            // An unreadable body does not say HTTPS either.
            let _ = answer.body.take(MAX_TOKEN).read_to_end(&mut text);
            let plain = self.error(format!("{}: HTTP 400", ask.what), "");
            if text.windows(5).any(|w| w.eq_ignore_ascii_case(b"https")) {
                return self.with_https(ask, plain);
            }
            return Err(Failure::Final(plain));
        }
        self.set(|s| s.may_change = false);
        if answer.status != 401 {
            return Ok(answer);
        }
        let challenge = answer
            .headers
            .get_all(header::WWW_AUTHENTICATE)
            .iter()
            .filter_map(|h| h.to_str().ok())
            .find_map(Challenge::parse);
        let Some(challenge) = challenge else { return Ok(answer) };
        drop(answer);
        let token = self.token(&challenge, &url, ask.what)?;
        self.set(|s| s.token = Some(token.clone()));
        self.follow(&url, ask, Some(&token))
    }

    /// Asks again with TLS, where plain HTTP may be spoken but is not understood. Without success nothing
    /// changes, and the first failure counts unless TLS has a better one.
    fn with_https(&self, ask: Ask<'_>, plain: ImageError) -> Result<Answer, Failure> {
        let change = |https| {
            self.set(|s| {
                s.https = https;
                s.may_change = !https;
            })
        };
        change(true);
        match self.once(ask) {
            Err(Failure::Garbled(_)) => {
                change(false);
                Err(Failure::Passing(plain))
            }
            other => other,
        }
    }

    fn token(&self, challenge: &Challenge, registry: &Uri, what: &str) -> Result<String, Failure> {
        let failed = |why: String| {
            let why = format!("{what}: the registry wants a token, but {why}");
            Failure::Final(self.error(why, "credentials are not supported yet"))
        };
        let url = challenge.url(&self.repository, registry).map_err(failed)?;
        let ask = Ask { path: "", accept: None, from: 0, what: "the token server" };
        let answer = self.follow(&url, ask, None)?;
        if is_passing(answer.status) {
            let what = format!("{what}: the token server answers HTTP {}", answer.status);
            return Err(Failure::Passing(self.error(what, "try again later")));
        }
        if answer.status != 200 {
            return Err(failed(format!("its token server answers HTTP {}", answer.status)));
        }
        let mut bytes = Vec::new();
        let read = answer.body.take(MAX_TOKEN + 1).read_to_end(&mut bytes);
        match read {
            Err(e) => Err(Failure::Passing(self.io_words(&e, "the token server"))),
            Ok(n) if n as u64 > MAX_TOKEN => Err(failed("its token server's answer is over 1 MiB".to_owned())),
            Ok(_) => auth::token(&bytes).ok_or_else(|| failed("its token server gives none".to_owned())),
        }
    }

    /// One request and its redirects. The token stays with the origin it was made for.
    fn follow(&self, url: &Uri, ask: Ask<'_>, token: Option<&str>) -> Result<Answer, Failure> {
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.agent.get(&at);
            if let Some(accept) = ask.accept {
                request = request.header(header::ACCEPT, accept);
            }
            if ask.from > 0 {
                request = request.header(header::RANGE, format!("bytes={}-", ask.from));
            }
            if let Some(token) = token.filter(|_| origin(&at) == origin(url)) {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            let (parts, body) = request.call().map_err(|e| self.failure(e, &at, ask.what))?.into_parts();
            let status = parts.status.as_u16();
            if ![301, 302, 303, 307, 308].contains(&status) {
                let body = body.into_with_config().limit(u64::MAX).reader();
                return Ok(Answer { status, headers: parts.headers, body });
            }
            let location = parts.headers.get(header::LOCATION).and_then(|l| l.to_str().ok());
            let refused = |why: &str| Failure::Final(self.error(format!("{}: redirected {why}", ask.what), ""));
            let next = location.and_then(|l| resolve(&at, l)).ok_or_else(|| refused("to no valid address"))?;
            let host = next.host().unwrap_or_default();
            if next.scheme_str() != Some("https") && at.scheme_str() == Some("https") {
                return Err(refused(&format!("from https to plain HTTP ({})", shown(host))));
            }
            if is_loopback(host) && !at.host().is_some_and(is_loopback) {
                return Err(refused(&format!("to this machine ({})", shown(host))));
            }
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
            ureq::Error::Rustls(e) => Failure::Final(tell(&format!("TLS: {e}"), TLS_HINT)),
            ureq::Error::Tls(e) => Failure::Final(tell(&format!("TLS: {e}"), TLS_HINT)),
            ureq::Error::Protocol(e) => Failure::Garbled(tell(&format!("no valid HTTP: {e}"), "")),
            e => Failure::Final(tell(&e.to_string(), "")),
        }
    }

    pub fn io_words(&self, e: &io::Error, what: &str) -> ImageError {
        let (why, hint) = match e.kind() {
            io::ErrorKind::ConnectionRefused => ("connection refused".to_owned(), "does a registry listen there?"),
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                ("the connection was cut".to_owned(), "")
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ("no answer in time".to_owned(), ""),
            _ if e.to_string().contains("certificate") => (format!("TLS: {e}"), TLS_HINT),
            _ if e.to_string().starts_with("timeout") => ("no answer in time".to_owned(), ""),
            _ => (e.to_string(), ""),
        };
        self.error(format!("{what}: {why}"), hint)
    }

    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

const TLS_HINT: &str = "only certificates of public authorities are trusted so far";

enum Failure {
    /// May go away.
    Passing(ImageError),
    /// The other side speaks no HTTP, or not here.
    Garbled(ImageError),
    Final(ImageError),
}

fn is_lookup(e: &io::Error) -> bool {
    e.to_string().contains("lookup address")
}

fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

pub fn back_off(tried: u32) -> Duration {
    Duration::from_millis(250 << tried.min(5))
}

/// The type without its parameters.
fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A host without its port.
fn host_of(host: &str) -> &str {
    match host.find(']') {
        Some(end) => &host[..=end],
        None => host.split(':').next().unwrap_or(host),
    }
}

pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn origin(url: &Uri) -> (Option<&str>, Option<&str>, Option<u16>) {
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    (url.scheme_str(), url.host(), url.port_u16().or(Some(default)))
}

/// Where a `Location` leads.
fn resolve(base: &Uri, location: &str) -> Option<Uri> {
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
