//! What a registry asks for before it answers: for now, a token that anybody may have.

use serde::Deserialize;
use ureq::http::Uri;

use super::super::http::is_loopback;

/// `WWW-Authenticate: Bearer realm="…",service="…",scope="…"`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Challenge {
    pub realm: String,
    pub service: Option<String>,
    pub scope: Option<String>,
}

impl Challenge {
    /// `None`: another scheme (Basic), or no realm.
    pub fn parse(header: &str) -> Option<Self> {
        let (scheme, mut rest) = header.trim_start().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let mut out = Self::default();
        while let Some((key, after)) = rest.split_once('=') {
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => after.split_at(after.find(',').unwrap_or(after.len())),
            };
            match key.trim().trim_start_matches(',').trim().to_ascii_lowercase().as_str() {
                "realm" => out.realm = value.to_owned(),
                "service" => out.service = Some(value.to_owned()),
                "scope" => out.scope = Some(value.to_owned()),
                _ => {}
            }
            rest = after;
        }
        (!out.realm.is_empty()).then_some(out)
    }

    /// Where the token is asked for. A realm is https, or on this machine like the registry itself: a foreign
    /// registry must not make us talk to what listens here.
    pub fn url(&self, repository: &str, registry: &Uri) -> Result<Uri, String> {
        let realm: Uri = self.realm.parse().map_err(|_| "its token server has no valid address".to_owned())?;
        let host = realm.host().unwrap_or_default();
        let near = is_loopback(host) && registry.host().is_some_and(is_loopback);
        let same = registry.host() == Some(host) && registry.scheme() == realm.scheme();
        if host.is_empty() || (realm.scheme_str() != Some("https") && !near && !same) {
            return Err(format!("its token server {} is not https", super::manifest::shown(host)));
        }
        let scope = self.scope.clone().unwrap_or_else(|| format!("repository:{repository}:pull"));
        let mut url = self.realm.split('#').next().unwrap_or_default().to_owned();
        let mut add = |key: &str, value: &str| {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(key);
            url.push('=');
            url.push_str(&percent(value));
        };
        if let Some(service) = &self.service {
            add("service", service);
        }
        add("scope", &scope);
        url.parse().map_err(|_| "its token server has no valid address".to_owned())
    }
}

fn percent(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut out, b| {
        if b.is_ascii_alphanumeric() || b"-._~:/".contains(&b) {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
        out
    })
}

#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
}

/// The token in a token server's answer; `None` if there is none that fits into a header.
pub fn token(answer: &[u8]) -> Option<String> {
    let answer: Answer = serde_json::from_slice(answer).ok()?;
    let token = [answer.token, answer.access_token].into_iter().flatten().find(|t| !t.is_empty())?;
    token.bytes().all(|b| b.is_ascii_graphic()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges() {
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/ubuntu:pull,push""#;
        let c = Challenge::parse(hub).unwrap();
        assert_eq!(c.scope.as_deref(), Some("repository:library/ubuntu:pull,push"));
        let registry: Uri = "https://registry-1.docker.io/v2/".parse().unwrap();
        let url = c.url("library/ubuntu", &registry).unwrap().to_string();
        let query = "service=registry.docker.io&scope=repository:library/ubuntu:pull%2Cpush";
        assert_eq!(url, format!("https://auth.docker.io/token?{query}"));
        assert_eq!(Challenge::parse("bearer realm=x , service=y").unwrap().service.as_deref(), Some("y"));
        for none in ["Basic realm=\"x\"", "Bearer", "Bearer service=\"x\"", "Bearer realm=\"x", ""] {
            assert_eq!(Challenge::parse(none), None, "{none}");
        }
    }

    #[test]
    fn realms_must_be_safe() {
        let url = |realm: &str, registry: &str| {
            let c = Challenge { realm: realm.into(), ..Challenge::default() };
            c.url("x", &registry.parse().unwrap())
        };
        assert!(url("http://127.0.0.1:5005/token", "http://localhost:5004/").is_ok());
        assert!(url("http://127.0.0.1:5005/token", "https://r.example/").is_err());
        assert!(url("http://elsewhere.example/token", "https://r.example/").is_err());
        assert!(url("/token", "https://r.example/").is_err());
        assert!(
            url("https://r.example/token?a=b", "https://r.example/").unwrap().to_string().contains("?a=b&scope")
        );
    }

    #[test]
    fn tokens() {
        assert_eq!(token(br#"{"token":"","access_token":"b"}"#).as_deref(), Some("b"));
        assert_eq!(token(br#"{"token":"a\r\nX: y"}"#), None);
        assert_eq!(token(b"<html>"), None);
    }
}
