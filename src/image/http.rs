//! One request and what can become of it: redirects, retries, limits, and words for what goes wrong. Whom is asked,
//! and for what, is its callers' matter: a registry, a package index.

mod address;
mod agents;
mod proxy;
mod retry;
mod trust;
mod words;

use std::io::Read;
use std::thread::sleep;
use std::time::SystemTime;

use ureq::http::{HeaderMap, Uri, header};
use ureq::tls::RootCerts;
use ureq::{BodyReader, RequestBuilder};

use super::ImageError;
use super::sources::OpenOptions;

pub use self::address::{host_of, is_loopback, is_safe_step, origin, place_of, resolve};
use self::agents::Agents;
pub use self::agents::Pool;
pub use self::retry::{Cuts, DELAY, TRIES, is_passing, is_silence};
use self::retry::{back_off, retry_after};
pub use self::trust::Roots;

/// The most redirects followed.
const MAX_REDIRECTS: usize = 5;

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
    agents: Agents,
    host: String,
    hints: &'static Hints,
}

/// What to try, by what was asked.
pub struct Hints {
    /// Nothing listens there.
    pub refused: &'static str,
    /// Its certificate is not trusted.
    pub tls: &'static str,
    /// Too many requests.
    pub limited: &'static str,
}

/// Why there is no answer.
pub enum Failure {
    /// May go away.
    Passing(ImageError),
    /// The other side speaks no HTTP, or not here.
    Garbled(ImageError),
    /// Nothing listens there.
    Refused(ImageError),
    Final(ImageError),
}

impl Wire {
    /// `host`: with its port, as errors name it; `roots`: the authorities to trust instead of all others.
    pub fn new(host: &str, hints: &'static Hints, options: &OpenOptions, roots: Option<&RootCerts>) -> Self {
        Self { agents: Agents::new(options, roots), host: host.to_owned(), hints }
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn options(&self) -> &OpenOptions {
        self.agents.options()
    }

    pub fn error(&self, what: impl Into<String>, hint: impl Into<String>) -> ImageError {
        ImageError::Network { host: self.host.clone(), what: what.into(), hint: hint.into() }
    }

    /// Asks until there is an answer that is no passing failure.
    pub fn get(&self, what: &str, once: impl Fn() -> Result<Answer, Failure>) -> Result<Answer, ImageError> {
        let delay = self.options().retry_delay;
        let mut tried = 1;
        loop {
            match once() {
                Ok(answer) if is_passing(answer.status) => {
                    if tried == TRIES {
                        let hint = if answer.status == 429 { self.hints.limited } else { "try again later" };
                        let what = format!("{what}: HTTP {} after {TRIES} tries", answer.status);
                        return Err(self.error(what, hint));
                    }
                    let asked = answer.header(header::RETRY_AFTER).and_then(|t| retry_after(t, SystemTime::now()));
                    let pause = asked.unwrap_or_default().max(back_off(delay, tried));
                    if let Some(trace) = &self.options().trace {
                        let (status, seconds) = (answer.status, pause.as_secs_f32());
                        trace.tell(&format!("{what}: HTTP {status}, tried again in {seconds:.1} s"));
                    }
                    drop(answer);
                    sleep(pause);
                }
                Ok(answer) => return Ok(answer),
                Err(Failure::Passing(_) | Failure::Garbled(_)) if tried < TRIES => sleep(back_off(delay, tried)),
                Err(Failure::Passing(e) | Failure::Garbled(e) | Failure::Refused(e) | Failure::Final(e)) => {
                    return Err(e);
                }
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
                // Silence costs its whole time-out: once is enough to see that it was no accident.
                Err(e) if is_silence(&e) && tried > 1 => return Err(self.io_words(&e, what)),
                _ if tried < TRIES => sleep(back_off(self.options().retry_delay, tried)),
                Ok(_) => return Err(self.error(format!("{what}: broke off {TRIES} times"), "try again later")),
                Err(e) => return Err(self.io_words(&e, what)),
            }
            tried += 1;
        }
    }

    /// One request and its redirects.
    pub fn follow(&self, url: &Uri, ask: Get<'_>) -> Result<Answer, Failure> {
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let spoken = self.agents.of(&at).map_err(Failure::Final)?;
            let mut request = spoken.agent.get(&at);
            let authorization = ask.authorization.filter(|_| origin(&at) == origin(url));
            for (name, value) in [
                (header::ACCEPT, ask.accept),
                (header::RANGE, ask.range),
                (header::IF_RANGE, ask.if_range),
                (header::AUTHORIZATION, authorization),
            ] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            let answer = request.call().map_err(|e| self.failure(e, &at, spoken.via, ask.what));
            let answer = self.told("GET", &at, answer)?;
            if ![301, 302, 303, 307, 308].contains(&answer.status) {
                return Ok(answer);
            }
            let refused = |why: &str| Failure::Final(self.error(format!("{}: redirected {why}", ask.what), ""));
            let next = answer.header(header::LOCATION).and_then(|l| resolve(&at, l));
            let next = next.ok_or_else(|| refused("to no valid address"))?;
            is_safe_step(&at, &next).map_err(|why| refused(&why))?;
            at = next;
        }
        let what = format!("{}: more than {MAX_REDIRECTS} redirects", ask.what);
        Err(Failure::Final(self.error(what, "is there a login page or a misconfigured proxy in between?")))
    }

    /// One request with a form, whose answer is taken as it is: what is in the form goes nowhere else.
    pub fn post(&self, url: &Uri, form: &str, what: &str) -> Result<Answer, Failure> {
        let spoken = self.agents.of(url).map_err(Failure::Final)?;
        let request: RequestBuilder<_> = spoken.agent.post(url);
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let answer = request.send(form.as_bytes()).map_err(|e| self.failure(e, url, spoken.via, what));
        self.told("POST", url, answer)
    }

    /// Tells whoever wants to know what was asked and what came. Of a query nothing is told, nor of any header but
    /// the length: there may be secrets in it.
    fn told(
        &self,
        method: &str,
        at: &Uri,
        answer: Result<ureq::http::Response<ureq::Body>, Failure>,
    ) -> Result<Answer, Failure> {
        let trace = |end: &str| {
            if let Some(trace) = &self.options().trace {
                let (scheme, query) =
                    (at.scheme_str().unwrap_or("?"), if at.query().is_some() { "?…" } else { "" });
                trace.tell(&format!("{method} {scheme}://{}{}{query} {end}", place_of(at), at.path()));
            }
        };
        let answer = answer.inspect_err(|_| trace("failed"))?;
        let (parts, body) = answer.into_parts();
        let body = body.into_with_config().limit(u64::MAX).reader();
        let answer = Answer { status: parts.status.as_u16(), at: at.clone(), headers: parts.headers, body };
        match answer.length() {
            Some(length) => trace(&format!("{} {length} bytes", answer.status)),
            None => trace(&answer.status.to_string()),
        }
        Ok(answer)
    }
}

/// The type without its parameters.
pub fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
