//! Addresses of indexes and of the files that they link to.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ureq::http::Uri;

use super::super::http::{host_of as bare_host, is_loopback, origin};
use super::super::sources::{OpenOptions, shown};

/// The address of an index; its credentials are apart, and never shown.
#[derive(Clone)]
pub struct Address {
    /// Ends with a slash.
    base: String,
    uri: Uri,
    host: String,
    authorization: Option<String>,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").ok_or("its address has no scheme such as https://")?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "https" && scheme != "http" {
            return Err(format!("an index over {} is not supported, only https and http", shown(&scheme)));
        }
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let authorization = user.filter(|u| !u.is_empty()).map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let pair = [&unescape(name)[..], b":", &unescape(password)].concat();
            format!("Basic {}", BASE64_STANDARD.encode(&pair))
        });
        let base = format!("{scheme}://{host}{}/", escape(path.trim_end_matches('/')));
        let uri: Uri = base.parse().map_err(|_| "its address is not valid".to_owned())?;
        if uri.host().is_none_or(str::is_empty) {
            return Err("its address names no host".to_owned());
        }
        Ok(Self { base, uri, host: host.to_owned(), authorization })
    }

    /// With its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Without credentials.
    pub fn shown(&self) -> &str {
        self.base.trim_end_matches('/')
    }

    /// Without TLS only loopback is spoken to, and what the user named.
    pub fn may_be_spoken_to(&self, options: &OpenOptions) -> Result<(), String> {
        let name = bare_host(&self.host);
        let named = options.insecure.iter().any(|h| *h == self.host || h == name);
        match self.uri.scheme_str() == Some("https") || is_loopback(name) || named {
            true => Ok(()),
            false => Err(format!(
                "{} is not https; --insecure-registry {} lets it be spoken to without TLS",
                shown(self.shown()),
                shown(&self.host)
            )),
        }
    }

    /// The page of a package, by its normalised name.
    pub fn below(&self, name: &str) -> Uri {
        // A valid address with letters, digits, hyphens and a slash behind it is one as well.
        format!("{}{name}/", self.base).parse().unwrap_or_else(|_| self.uri.clone())
    }

    /// The index's credentials, where an address is of its origin.
    pub fn authorization_for(&self, url: &Uri) -> Option<&str> {
        self.authorization.as_deref().filter(|_| origin(url) == origin(&self.uri))
    }
}

/// The host with its port.
pub fn host_of(url: &Uri) -> String {
    let host = url.host().unwrap_or_default();
    url.port_u16().map_or(host.to_owned(), |port| format!("{host}:{port}"))
}

/// An address with something behind its path.
pub fn with_suffix(url: &Uri, suffix: &str) -> Option<Uri> {
    let (scheme, authority) = (url.scheme_str()?, url.authority()?);
    let query = url.query().map_or(String::new(), |q| format!("?{q}"));
    format!("{scheme}://{authority}{}{suffix}{query}", url.path()).parse().ok()
}

/// Where a link leads, and the fragment behind it. Credentials in it are dropped: they would be the index's choice.
pub fn link<'a>(base: &Uri, href: &'a str) -> Option<(Uri, &'a str)> {
    let href = href.trim();
    let (target, fragment) = href.split_once('#').unwrap_or((href, ""));
    let (scheme, authority) = (base.scheme_str()?, base.authority()?.as_str());
    let (scheme, authority, rest) = match target.split_once("://") {
        Some((s, rest)) if s.eq_ignore_ascii_case("https") || s.eq_ignore_ascii_case("http") => {
            let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            (s.to_ascii_lowercase(), authority, path.to_owned())
        }
        Some((s, _)) if s.bytes().all(|b| b.is_ascii_alphanumeric()) => return None,
        _ => match target.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                (scheme.to_owned(), authority, path.to_owned())
            }
            None if target.starts_with('/') => (scheme.to_owned(), authority, target.to_owned()),
            None if target.is_empty() || is_other_scheme(target) => return None,
            None => {
                let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                (scheme.to_owned(), authority, format!("{folder}/{target}"))
            }
        },
    };
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (path, query) = rest.split_once('?').map_or((rest.as_str(), None), |(p, q)| (p, Some(q)));
    let query = query.map_or(String::new(), |q| format!("?{}", escape(q)));
    let url: Uri = format!("{scheme}://{authority}{}{query}", escape(&without_dots(path))).parse().ok()?;
    url.host().is_some_and(|h| !h.is_empty()).then_some((url, fragment))
}

/// `mailto:x`, `javascript:x`.
fn is_other_scheme(target: &str) -> bool {
    let Some((scheme, _)) = target.split_once(':') else { return false };
    let letter = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    letter && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) && !scheme.contains('.')
}

/// RFC 3986, 5.2.4.
fn without_dots(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        match *part {
            "." | ".." => {
                if *part == ".." {
                    out.pop();
                }
                if last {
                    out.push("");
                }
            }
            part => out.push(part),
        }
    }
    format!("/{}", out.join("/"))
}

/// Bytes that no address may have become `%XX`; what is escaped stays so.
fn escape(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::with_capacity(text.len()), |mut out, b| {
        if b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b) {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
        out
    })
}

/// `%2B` as its byte; what is no escape stays.
pub fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        let hex = |i: usize| bytes.get(i).and_then(|&c| char::from(c).to_digit(16));
        match (b, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                // Two hexadecimal digits are at most 255.
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(b);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_apart_and_stay_with_their_origin() {
        let a = Address::parse("https://me%40x:p%3Aw@host.example:8443/simple?x#y").unwrap();
        assert_eq!((a.shown(), a.host()), ("https://host.example:8443/simple", "host.example:8443"));
        let page = a.below("torch");
        assert_eq!(page.to_string(), "https://host.example:8443/simple/torch/");
        // me@x:p:w
        assert_eq!(a.authorization_for(&page), Some("Basic bWVAeDpwOnc="));
        for other in ["https://host.example/f", "http://host.example:8443/f", "https://x.example:8443/f"] {
            assert_eq!(a.authorization_for(&other.parse().unwrap()), None, "{other}");
        }
        for wrong in ["", "host/simple", "file:///srv", "https://", "https:///x", "ftp://h/", "https://a b/"] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn plain_http_is_for_loopback_and_for_what_is_named() {
        let mut options = OpenOptions::default();
        let may = |url: &str, o: &OpenOptions| Address::parse(url).unwrap().may_be_spoken_to(o);
        assert!(may("http://127.0.0.1:1/simple", &options).is_ok());
        assert!(may("https://h.example/simple", &options).is_ok());
        assert!(may("http://u:secret@h.example/s", &options).is_err_and(|e| !e.contains("secret")));
        options.insecure.push("h.example".into());
        assert!(may("http://h.example/simple", &options).is_ok());
    }

    #[test]
    fn links_are_resolved() {
        let base: Uri = "https://h.example/simple/torch/".parse().unwrap();
        let to = |l: &str| link(&base, l).map(|(u, f)| format!("{u} {f}"));
        for (href, want) in [
            ("../../p/a-1.whl#sha256=ab", "https://h.example/p/a-1.whl sha256=ab"),
            ("a-1%2Bcu128.whl", "https://h.example/simple/torch/a-1%2Bcu128.whl "),
            ("/whl/a.whl?x=1", "https://h.example/whl/a.whl?x=1 "),
            ("//f.example/a b.whl", "https://f.example/a%20b.whl "),
            ("HTTP://u:p@f.example:81/../../a.whl", "http://f.example:81/a.whl "),
            ("./a.whl", "https://h.example/simple/torch/a.whl "),
        ] {
            assert_eq!(to(href).as_deref(), Some(want), "{href}");
        }
        for none in ["", "#x", "file:///etc/passwd", "mailto:a@b", "javascript:x", "https://"] {
            assert_eq!(to(none), None, "{none}");
        }
        assert_eq!(unescape("a%2Bb%2%zz"), b"a+b%2%zz");
    }
}
