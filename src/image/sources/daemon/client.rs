//! Requests to one daemon.

use std::io::{self, Read};
use std::time::Duration;

use serde::Deserialize;
use ureq::http::HeaderMap;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, BodyReader};

use super::super::super::ImageError;
use super::super::manifest::{malformed, shown};
use super::endpoint::{Certificates, Chosen, Endpoint};
use super::unix::{NoLookup, UnixConnector};

/// The largest answer that is no archive.
const MAX_ANSWER: u64 = 4 << 20;

/// How much of an error's answer is read.
const MAX_ERROR: u64 = 64 << 10;

/// A daemon may write the whole image to its disk before it sends the first byte.
const PREPARING: Duration = Duration::from_secs(30 * 60);

/// The longest silence in the middle of an image.
const SILENCE: Duration = Duration::from_secs(5 * 60);

/// What to try where a certificate is not trusted.
const TRUST: &str = "ca.pem in DOCKER_CERT_PATH says whom to trust";

/// Words that differ between daemons.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// `docker`, `podman`.
    pub name: &'static str,
    /// What to try where its socket may not be opened.
    pub denied: &'static str,
    /// What to try where nobody answers.
    pub refused: &'static str,
}

pub struct Client {
    agent: Agent,
    /// `http://localhost`
    base: String,
    /// The socket or the host, as errors name it.
    pub host: String,
    words: Words,
    quick: Duration,
}

/// An answer of any status, its body not read yet.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: BodyReader<'static>,
}

#[derive(Deserialize)]
struct Told {
    message: Option<String>,
    cause: Option<String>,
}

impl Client {
    /// `quick`: the longest wait for an answer that needs no work.
    pub fn new(chosen: &Chosen, words: Words, connect: Duration, quick: Duration) -> Result<Self, ImageError> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(connect))
            .timeout_connect(Some(connect))
            .max_idle_connections(0)
            .proxy(None)
            .user_agent(concat!("imagelint/", env!("CARGO_PKG_VERSION")));
        let by = if chosen.by.is_empty() { String::new() } else { format!(" ({})", chosen.by) };
        Ok(match &chosen.endpoint {
            Endpoint::Unix(path) => Self {
                agent: Agent::with_parts(config.build(), UnixConnector(path.clone()), NoLookup),
                base: "http://localhost".to_owned(),
                host: format!("{}{by}", path.display()),
                words,
                quick,
            },
            Endpoint::Tcp { authority, tls } => {
                let config = match tls {
                    Some(certificates) => config.tls_config(tls_config(certificates, authority)?),
                    None => config,
                };
                let scheme = if tls.is_some() { "https" } else { "http" };
                Self {
                    agent: Agent::with_parts(config.build(), DefaultConnector::new(), DefaultResolver::default()),
                    base: format!("{scheme}://{authority}"),
                    host: format!("{authority}{by}"),
                    words,
                    quick,
                }
            }
        })
    }

    pub fn error(&self, what: impl Into<String>, hint: impl Into<String>) -> ImageError {
        ImageError::Network { host: self.host.clone(), what: what.into(), hint: hint.into() }
    }

    /// Asks for what is there at once.
    pub fn get(&self, path: &str, what: &str) -> Result<Answer, ImageError> {
        self.ask(path, what, self.quick, self.quick)
    }

    /// Asks for what has to be made first.
    pub fn get_slow(&self, path: &str, what: &str) -> Result<Answer, ImageError> {
        self.ask(path, what, PREPARING, SILENCE)
    }

    fn ask(&self, path: &str, what: &str, first: Duration, silence: Duration) -> Result<Answer, ImageError> {
        let request = self.agent.get(format!("{}{path}", self.base)).config();
        let request = request.timeout_recv_response(Some(first)).timeout_per_read(Some(first.max(silence)));
        let (parts, body) = request.build().call().map_err(|e| self.failure(e, what))?.into_parts();
        let body = body.into_with_config().limit(u64::MAX).reader();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// A small answer as a whole.
    pub fn document(&self, answer: Answer, what: &str) -> Result<Vec<u8>, ImageError> {
        let mut bytes = Vec::new();
        answer.body.take(MAX_ANSWER + 1).read_to_end(&mut bytes).map_err(|e| self.cut(&e, what))?;
        if bytes.len() as u64 > MAX_ANSWER {
            let place = self.host.clone();
            return Err(ImageError::TooLarge { place, what: what.to_owned(), limit: MAX_ANSWER });
        }
        Ok(bytes)
    }

    /// What the daemon says went wrong, safe to print.
    pub fn told(&self, answer: Answer) -> String {
        let status = answer.status;
        let mut bytes = Vec::new();
        // An error that breaks off is still an error.
        let _ = answer.body.take(MAX_ERROR).read_to_end(&mut bytes);
        let words = said(&bytes);
        if words.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {words}") }
    }

    fn failure(&self, e: ureq::Error, what: &str) -> ImageError {
        let tell = |why: &str, hint: &str| self.error(format!("{what}: {why}"), hint);
        match e {
            ureq::Error::Io(e) => match e.kind() {
                io::ErrorKind::PermissionDenied => tell("permission denied", self.words.denied),
                io::ErrorKind::ConnectionRefused => tell("connection refused", self.words.refused),
                io::ErrorKind::NotFound => tell("no such socket", self.words.refused),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                    tell("the connection was cut", self.words.refused)
                }
                _ if e.to_string().contains("certificate") => {
                    tell(&format!("TLS: {}", shown(&e.to_string())), TRUST)
                }
                _ => tell(&shown(&e.to_string()), ""),
            },
            ureq::Error::Rustls(e) => tell(&format!("TLS: {}", shown(&e.to_string())), TRUST),
            ureq::Error::HostNotFound => tell("no such host", "check the name"),
            ureq::Error::Timeout(_) => tell("no answer in time", self.words.refused),
            ureq::Error::Protocol(e) => {
                tell(&format!("no valid HTTP: {}", shown(&e.to_string())), "is that the socket of a daemon?")
            }
            e => tell(&shown(&e.to_string()), ""),
        }
    }

    /// Words for an answer that breaks off.
    pub fn cut(&self, e: &io::Error, what: &str) -> ImageError {
        let why = match e.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "nothing came for too long".to_owned(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => "the answer broke off".to_owned(),
            _ => format!("the answer broke off ({})", shown(&e.to_string())),
        };
        self.error(format!("{what}: {why}"), format!("{}'s log says why", self.words.name))
    }
}

/// The message of an error's answer: JSON as the API has it, or whatever else there is, cut short.
pub fn said(bytes: &[u8]) -> String {
    let text = match serde_json::from_slice::<Told>(bytes) {
        Ok(told) => told.message.or(told.cause).unwrap_or_default(),
        Err(_) if bytes.trim_ascii_start().starts_with(b"<") => {
            "a page in HTML: no daemon answers there".to_owned()
        }
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    };
    shown(text.trim())
}

fn tls_config(certificates: &Certificates, authority: &str) -> Result<TlsConfig, ImageError> {
    let bad = |what: &str| malformed(authority, format!("{what} is no PEM that can be used"));
    let mut config = TlsConfig::builder();
    if let Some(pem) = &certificates.authority {
        let roots = ureq::tls::parse_pem(pem).filter_map(|item| match item {
            Ok(ureq::tls::PemItem::Certificate(c)) => Some(c),
            _ => None,
        });
        let roots: Vec<Certificate<'static>> = roots.collect();
        if roots.is_empty() {
            return Err(bad("ca.pem"));
        }
        config = config.root_certs(RootCerts::new_with_certs(&roots));
    }
    if let Some((certificate, key)) = &certificates.own {
        let certificate = Certificate::from_pem(certificate).map_err(|_| bad("cert.pem"))?;
        let key = PrivateKey::from_pem(key).map_err(|_| bad("key.pem"))?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&[certificate], key)));
    }
    Ok(config.build())
}
