//! Registries with several names, and who may get a registry's credentials.

use std::sync::LazyLock;

use serde::Deserialize;
use ureq::http::Uri;

use super::super::http::{host_of, is_loopback, place_of};

/// Rows of `rules/registries.toml`. A table that cannot be read is no table: tests see that it can.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("../../../rules/registries.toml")).unwrap_or_default());

#[derive(Default, Deserialize)]
struct Table {
    registry: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    #[serde(default)]
    also: Vec<String>,
    asked: Option<String>,
    login: Option<String>,
    #[serde(default)]
    token: Vec<String>,
}

fn row(host: &str) -> Option<&'static Row> {
    TABLE.registry.iter().find(|r| r.name == host || r.also.iter().any(|a| a == host))
}

/// The name that all names of a registry are taken for, in lower case.
pub fn canonical(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    row(&host).map_or(host, |r| r.name.clone())
}

/// Where requests go.
pub fn asked(host: &str) -> String {
    row(host).and_then(|r| r.asked.clone()).unwrap_or_else(|| host.to_owned())
}

/// What credential helpers know a registry by.
pub fn login_key(canonical: &str) -> String {
    row(canonical).and_then(|r| r.login.clone()).unwrap_or_else(|| canonical.to_owned())
}

/// Whether a token server may get the credentials of a registry: it is the same host, or one that the table or the
/// user (`allowed`) names, and nobody can listen in. Hosts are compared as they are written: `127.0.0.1` is not
/// `localhost`, since whoever may listen on one need not be whoever listens on the other.
pub fn may_have_credentials(registry: &Uri, realm: &Uri, allowed: &[String]) -> bool {
    let (Some(from), Some(to)) = (registry.host(), realm.host()) else { return false };
    let same = from.eq_ignore_ascii_case(to);
    let plain_as_well = registry.scheme_str() != Some("https") && (same || (is_loopback(from) && is_loopback(to)));
    if realm.scheme_str() != Some("https") && !plain_as_well {
        return false;
    }
    let place = place_of(realm);
    same || is_token_host(from, to)
        || allowed.iter().any(|host| host.eq_ignore_ascii_case(to) || host.eq_ignore_ascii_case(&place))
}

fn is_token_host(registry: &str, realm: &str) -> bool {
    let name = canonical(host_of(registry));
    let realm = realm.to_ascii_lowercase();
    TABLE.registry.iter().any(|row| {
        let Some(star) = matched(&row.name, &name) else { return false };
        row.token.iter().any(|host| host.replace('*', star) == realm)
    })
}

/// What the star of a pattern stands for, nothing where there is none; `None`: it does not match.
fn matched<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    let Some((head, tail)) = pattern.split_once('*') else { return (pattern == name).then_some("") };
    let star = name.strip_prefix(head)?.strip_suffix(tail)?;
    (!star.is_empty() && !star.contains('.')).then_some(star)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(registry: &str, realm: &str, allowed: &[&str]) -> bool {
        let allowed: Vec<String> = allowed.iter().map(|h| (*h).to_owned()).collect();
        may_have_credentials(&registry.parse().unwrap(), &realm.parse().unwrap(), &allowed)
    }

    #[test]
    fn the_table_is_read() {
        assert!(TABLE.registry.len() >= 3);
        for row in &TABLE.registry {
            assert!(!row.token.is_empty(), "{}", row.name);
            let stars = |t: &str| t.matches('*').count();
            assert!(row.token.iter().all(|t| stars(t) == stars(&row.name)), "{}", row.name);
        }
    }

    #[test]
    fn all_names_of_docker_hub_are_one() {
        for name in ["docker.io", "index.docker.io", "registry-1.docker.io", "Docker.IO"] {
            assert_eq!(canonical(name), "docker.io");
        }
        assert_eq!(asked("docker.io"), "registry-1.docker.io");
        assert_eq!(login_key("docker.io"), "https://index.docker.io/v1/");
        assert_eq!((asked("r.io:5000"), canonical("r.io:5000")), ("r.io:5000".into(), "r.io:5000".into()));
    }

    #[test]
    fn credentials_stay_where_they_belong() {
        // The same host, whatever the port.
        assert!(may("https://ghcr.io/v2/", "https://ghcr.io/token", &[]));
        assert!(may("https://r.example:5000/", "https://r.example/token", &[]));
        assert!(may("http://127.0.0.1:5004/", "http://127.0.0.1:5005/token", &[]));
        assert!(may("http://r.example/", "http://r.example:81/token", &[]), "spoken to without TLS already");
        // The table.
        assert!(may("https://registry-1.docker.io/", "https://auth.docker.io/token", &[]));
        assert!(may("https://registry.gitlab.com/", "https://gitlab.com/jwt/auth", &[]));
        assert!(may(
            "https://registry.cn-hangzhou.aliyuncs.com/",
            "https://dockerauth.cn-hangzhou.aliyuncs.com/auth",
            &[]
        ));
        for (registry, realm) in [
            ("https://evil.example/", "https://auth.docker.io/token"),
            ("https://registry-1.docker.io/", "https://auth.docker.io.evil.example/token"),
            ("https://registry-1.docker.io/", "http://auth.docker.io/token"),
            ("https://registry.cn-a.aliyuncs.com/", "https://dockerauth.cn-b.aliyuncs.com/auth"),
            ("https://registry.a.b.aliyuncs.com/", "https://dockerauth.a.b.aliyuncs.com/auth"),
            ("http://127.0.0.1:5006/", "http://localhost:5008/token"),
            ("http://localhost:5006/", "http://127.0.0.1:5008/token"),
            ("https://r.example/", "http://r.example/token"),
            ("https://r.example/", "https://token.r.example/"),
        ] {
            assert!(!may(registry, realm, &[]), "{registry} {realm}");
        }
        // What the user says, as long as nobody can listen in.
        assert!(may("https://r.example/", "https://auth.example/t", &["AUTH.example"]));
        assert!(may("https://r.example/", "https://auth.example:8443/t", &["auth.example:8443"]));
        assert!(!may("https://r.example/", "https://auth.example:8443/t", &["auth.example:1"]));
        assert!(!may("https://r.example/", "http://auth.example/t", &["auth.example"]));
        assert!(may("http://127.0.0.1:1/", "http://localhost:2/t", &["localhost"]));
    }
}
