//! Words for what goes wrong on the way to an answer.

use std::io;

use ureq::http::Uri;

use super::super::ImageError;
use super::super::sources::shown;
use super::address::host_of;
use super::retry::is_silence;
use super::{Failure, Wire};

const CHECK_NAME: &str = "check the name, or the network's name server";
const CHECK_PROXY: &str = "check the proxy's address, or name the host in NO_PROXY";

impl Wire {
    /// Words for a request that got no answer, and whether trying again may help. `via`: the variable that names the
    /// proxy in between.
    pub(super) fn failure(&self, e: ureq::Error, at: &Uri, via: Option<&str>, what: &str) -> Failure {
        let other = at.host().filter(|h| *h != host_of(self.host()));
        let what = match (via, other) {
            (Some(variable), _) => format!("{what} (through the proxy of {variable})"),
            (None, Some(host)) => format!("{what} (from {})", shown(host)),
            (None, None) => what.to_owned(),
        };
        let tell = |why: &str, hint: &str| {
            let hint = if hint.is_empty() && via.is_some() { CHECK_PROXY } else { hint };
            self.error(format!("{what}: {why}"), hint)
        };
        match e {
            ureq::Error::HostNotFound => Failure::Final(tell("no such host", CHECK_NAME)),
            ureq::Error::Timeout(_) => {
                Failure::Passing(tell("no answer in time", "is the host reachable from here, perhaps by a proxy?"))
            }
            ureq::Error::ConnectProxyFailed(why) => {
                Failure::Final(tell(&format!("the proxy refuses: {}", shown(&why)), CHECK_PROXY))
            }
            ureq::Error::Io(e) => match (e.kind(), tls(&e)) {
                (_, Some(tls)) => self.tls_failure(tls, &what),
                (io::ErrorKind::ConnectionRefused, _) if via.is_some() => {
                    Failure::Final(tell("connection refused", CHECK_PROXY))
                }
                (io::ErrorKind::ConnectionRefused, _) => Failure::Refused(self.io_words(&e, &what)),
                _ if is_lookup(&e) => Failure::Final(tell("no such host", CHECK_NAME)),
                _ => Failure::Passing(self.io_words(&e, &what)),
            },
            ureq::Error::Rustls(e) => self.tls_failure(&e, &what),
            ureq::Error::Tls(e) => Failure::Final(tell(&format!("TLS: {e}"), self.hints.tls)),
            ureq::Error::Protocol(e) => Failure::Garbled(tell(&format!("no valid HTTP: {e}"), "")),
            e => Failure::Final(tell(&shown(&e.to_string()), "")),
        }
    }

    fn tls_failure(&self, e: &rustls::Error, what: &str) -> Failure {
        let told = self.error(format!("{what}: TLS: {}", tls_words(e)), self.tls_hint(e));
        match e {
            rustls::Error::InvalidMessage(_) => Failure::Garbled(told),
            _ => Failure::Final(told),
        }
    }

    fn tls_hint(&self, e: &rustls::Error) -> &'static str {
        match e {
            rustls::Error::AlertReceived(_) => {
                "a registry that wants a client's certificate finds it in certs.d/HOST, *.cert and *.key"
            }
            rustls::Error::InvalidMessage(_) => "does it speak TLS? --insecure-registry HOST allows plain HTTP",
            _ => self.hints.tls,
        }
    }

    pub fn io_words(&self, e: &io::Error, what: &str) -> ImageError {
        let (why, hint) = match e.kind() {
            _ if tls(e).is_some() => {
                let told = tls(e).map(|e| (tls_words(e), self.tls_hint(e)));
                let (why, hint) = told.unwrap_or_default();
                (format!("TLS: {why}"), hint)
            }
            io::ErrorKind::ConnectionRefused => ("connection refused".to_owned(), self.hints.refused),
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                ("the connection was cut".to_owned(), "try again later")
            }
            _ if is_silence(e) => {
                ("nothing came for too long".to_owned(), "try again later, or raise --read-timeout")
            }
            _ => (shown(&e.to_string()), ""),
        };
        self.error(format!("{what}: {why}"), hint)
    }
}

/// What TLS has to say of an error.
fn tls(e: &io::Error) -> Option<&rustls::Error> {
    e.get_ref()?.downcast_ref()
}

fn tls_words(e: &rustls::Error) -> String {
    use rustls::CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer,
    };
    match e {
        rustls::Error::InvalidCertificate(UnknownIssuer) => {
            "its certificate is of an authority that is not trusted here (UnknownIssuer)".to_owned()
        }
        rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. }) => {
            "its certificate has expired".to_owned()
        }
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            "its certificate is of another host".to_owned()
        }
        e => shown(&e.to_string()),
    }
}

fn is_lookup(e: &io::Error) -> bool {
    e.to_string().contains("lookup address")
}
