//! Requests to one registry: its scheme, its tokens.

use std::io::Read;
use std::sync::{Mutex, PoisonError};

use ureq::http::{Uri, header};

use super::super::ImageError;
use super::super::http::{Answer, Failure, Get, Hints, Wire, host_of, is_loopback, is_passing};
use super::OpenOptions;
use super::auth::{self, Challenge};

/// The largest token or error document.
const MAX_TOKEN: u64 = 1 << 20;

const HINTS: Hints = Hints {
    refused: "does a registry listen there?",
    tls: "only certificates of public authorities are trusted so far",
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
        Self {
            wire: Wire::new(host, &HINTS, options, None),
            repository: repository.to_owned(),
            state: Mutex::new(State { https: !plain, may_change: plain, token: None }),
        }
    }

    pub fn host(&self) -> &str {
        self.wire.host()
    }

    pub fn error(&self, what: impl Into<String>, hint: impl Into<String>) -> ImageError {
        self.wire.error(what, hint)
    }

    pub fn io_words(&self, e: &std::io::Error, what: &str) -> ImageError {
        self.wire.io_words(e, what)
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
        let state = self.state();
        let scheme = if state.https { "https" } else { "http" };
        let url = format!("{scheme}://{}/v2/{}/{}", self.wire.host(), self.repository, ask.path);
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
        let range = (ask.from > 0).then(|| format!("bytes={}-", ask.from));
        let token = token.map(|t| format!("Bearer {t}"));
        let get = Get {
            accept: ask.accept,
            range: range.as_deref(),
            authorization: token.as_deref(),
            what: ask.what,
            ..Get::default()
        };
        self.wire.follow(url, get)
    }

    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
