//! What a registry asks for before it answers, and what its token server says.

use std::time::Duration;

use serde::Deserialize;
use ureq::http::{HeaderMap, Uri, header};

use super::super::http::is_loopback;
use super::manifest::shown;

/// How long a token holds that does not say so.
const LIFETIME: Duration = Duration::from_secs(60);

/// The longest that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// The most challenges of one answer.
const MAX_CHALLENGES: usize = 16;

/// One way to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    Basic,
    Bearer(Bearer),
}

/// `Bearer realm="…",service="…",scope="…"`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bearer {
    pub realm: String,
    pub service: Option<String>,
    pub scope: Option<String>,
}

impl Challenge {
    /// Every challenge that is understood, in all headers, tokens first: they are what the others stand in for.
    pub fn all(headers: &HeaderMap) -> Vec<Self> {
        let texts = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|h| h.to_str().ok());
        let mut out: Vec<Self> = texts.flat_map(parse).take(MAX_CHALLENGES).collect();
        out.sort_by_key(|c| matches!(c, Self::Basic));
        out
    }
}

/// The challenges of one header: `SCHEME key=value, key="value", SCHEME …`.
fn parse(header: &str) -> Vec<Challenge> {
    let mut out: Vec<(String, Bearer)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            break;
        }
        let Some(value) = after.trim_start().strip_prefix('=') else {
            out.push((word.to_ascii_lowercase(), Bearer::default()));
            rest = after;
            continue;
        };
        let Some((value, after)) = value_of(value.trim_start()) else { break };
        rest = after;
        let Some((_, challenge)) = out.last_mut() else { continue };
        match word.to_ascii_lowercase().as_str() {
            "realm" => challenge.realm = value,
            "service" => challenge.service = Some(value),
            "scope" => challenge.scope = Some(value),
            _ => {}
        }
    }
    let known = out.into_iter().filter_map(|(scheme, bearer)| match scheme.as_str() {
        "basic" => Some(Challenge::Basic),
        "bearer" if !bearer.realm.is_empty() => Some(Challenge::Bearer(bearer)),
        _ => None,
    });
    known.collect()
}

/// A value, quoted or not, and what follows it; `None`: its end is missing.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

impl Bearer {
    /// Its token server. One is https, or on this machine like the registry itself: a foreign registry must not make
    /// us talk to what listens here.
    pub fn realm(&self, registry: &Uri) -> Result<Uri, String> {
        let text = self.realm.split('#').next().unwrap_or_default();
        let realm: Uri = text.parse().map_err(|_| "its token server has no valid address".to_owned())?;
        let host = realm.host().unwrap_or_default();
        let near = is_loopback(host) && registry.host().is_some_and(is_loopback);
        let same = registry.host() == Some(host) && registry.scheme() == realm.scheme();
        if host.is_empty() || (realm.scheme_str() != Some("https") && !near && !same) {
            return Err(format!("its token server {} is not https", shown(host)));
        }
        if is_loopback(host) && !near {
            return Err(format!("its token server {} would be this machine", shown(host)));
        }
        Ok(realm)
    }

    /// What a token is asked for with.
    pub fn query(&self, repository: &str) -> String {
        let scope = self.scope.clone().unwrap_or_else(|| format!("repository:{repository}:pull"));
        let service = self.service.as_ref().map(|s| ("service", s.clone()));
        form(service.into_iter().chain([("scope", scope)]))
    }
}

/// An address with more to its query.
pub fn with_query(url: &Uri, query: &str) -> Option<Uri> {
    let mark = if url.query().is_some() { '&' } else { '?' };
    format!("{url}{mark}{query}").parse().ok()
}

/// `key=value&key=value`, as queries and forms are written.
pub fn form(fields: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{key}={}", percent(&value))).collect();
    fields.join("&")
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
    expires_in: Option<f64>,
}

/// A token, and how long it holds.
pub struct Token {
    pub value: String,
    pub lifetime: Duration,
}

/// The token in a token server's answer; `None` if there is none that fits into a header.
pub fn token(answer: &[u8]) -> Option<Token> {
    let answer: Answer = serde_json::from_slice(answer).ok()?;
    let value = [answer.token, answer.access_token].into_iter().flatten().find(|t| !t.is_empty())?;
    let told = answer.expires_in.filter(|s| *s > 0.0).and_then(|s| Duration::try_from_secs_f64(s).ok());
    let lifetime = told.unwrap_or(LIFETIME).min(MAX_LIFETIME);
    value.bytes().all(|b| b.is_ascii_graphic()).then_some(Token { value, lifetime })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(header: &str) -> Option<Bearer> {
        parse(header).into_iter().find_map(|c| match c {
            Challenge::Bearer(bearer) => Some(bearer),
            Challenge::Basic => None,
        })
    }

    #[test]
    fn challenges() {
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/ubuntu:pull,push""#;
        let c = bearer(hub).unwrap();
        assert_eq!(c.scope.as_deref(), Some("repository:library/ubuntu:pull,push"));
        assert_eq!(
            c.query("library/ubuntu"),
            "service=registry.docker.io&scope=repository:library/ubuntu:pull%2Cpush"
        );
        assert_eq!(bearer("bearer realm=x , service=y").unwrap().service.as_deref(), Some("y"));
        assert_eq!(bearer(r#"Bearer realm="a\"b""#).unwrap().realm, "a\"b");
        for none in ["Bearer", "Bearer service=\"x\"", "Bearer realm=\"x", "realm=x", "Negotiate abc==", ", ,=", ""]
        {
            assert_eq!(parse(none), [], "{none}");
        }
        assert_eq!(parse("Basic realm=\"x\""), [Challenge::Basic]);
        assert_eq!(parse("Basic"), [Challenge::Basic]);
    }

    #[test]
    fn several_challenges_in_one_header_or_many() {
        let both = r#"Basic realm="x, y", Bearer realm="https://t",service="s", Digest realm=z"#;
        assert_eq!(bearer(both).unwrap().service.as_deref(), Some("s"));
        let mut headers = HeaderMap::new();
        headers.append(header::WWW_AUTHENTICATE, "Negotiate".parse().unwrap());
        headers.append(header::WWW_AUTHENTICATE, "Basic realm=\"x\"".parse().unwrap());
        headers.append(header::WWW_AUTHENTICATE, "Bearer realm=\"https://t\"".parse().unwrap());
        let all = Challenge::all(&headers);
        assert!(matches!(&all[..], [Challenge::Bearer(_), Challenge::Basic]), "{all:?}");
    }

    #[test]
    fn realms_must_be_safe() {
        let realm = |realm: &str, registry: &str| {
            let c = Bearer { realm: realm.into(), ..Bearer::default() };
            c.realm(&registry.parse().unwrap())
        };
        assert!(realm("http://127.0.0.1:5005/token", "http://localhost:5004/").is_ok());
        assert!(realm("http://127.0.0.1:5005/token", "https://r.example/").is_err());
        assert!(realm("https://127.0.0.1:5005/token", "https://r.example/").is_err());
        assert!(realm("http://elsewhere.example/token", "https://r.example/").is_err());
        assert!(realm("/token", "https://r.example/").is_err());
        let kept = realm("https://r.example/token?a=b#c", "https://r.example/").unwrap();
        assert_eq!(with_query(&kept, "scope=x").unwrap().to_string(), "https://r.example/token?a=b&scope=x");
        assert_eq!(form([("a", "b&c=d e".to_owned())]), "a=b%26c%3Dd%20e");
    }

    #[test]
    fn tokens() {
        let get = |text: &str| token(text.as_bytes()).map(|t| (t.value, t.lifetime.as_secs()));
        assert_eq!(get(r#"{"token":"","access_token":"b"}"#), Some(("b".into(), 60)));
        assert_eq!(get(r#"{"token":"a","expires_in":300}"#), Some(("a".into(), 300)));
        assert_eq!(get(r#"{"token":"a","expires_in":-3}"#), Some(("a".into(), 60)));
        assert_eq!(get(r#"{"token":"a","expires_in":1e300}"#), Some(("a".into(), 60)));
        assert_eq!(get(r#"{"token":"a\r\nX: y"}"#), None);
        assert_eq!(get("<html>"), None);
    }
}
