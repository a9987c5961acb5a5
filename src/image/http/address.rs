//! Addresses: who is at the other end, and where one may be sent from there.

use std::net::IpAddr;

use ureq::http::Uri;

use super::super::sources::shown;

/// A host without its port.
pub fn host_of(host: &str) -> &str {
    match host.find(']') {
        Some(end) => &host[..=end],
        None => host.split(':').next().unwrap_or(host),
    }
}

/// The host of an address, with its port where it names one.
pub fn place_of(url: &Uri) -> String {
    let host = url.host().unwrap_or_default();
    url.port_u16().map_or(host.to_owned(), |port| format!("{host}:{port}"))
}

/// The address behind a host's name, where it is one.
pub fn ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || ip(host).is_some_and(|ip| ip.is_loopback())
}

/// Addresses that only this machine's own link knows, where clouds serve their machines' secrets.
fn is_link_local(host: &str) -> bool {
    ip(host).is_some_and(|ip| match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    })
}

pub fn origin(url: &Uri) -> (Option<&str>, Option<&str>, Option<u16>) {
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    (url.scheme_str(), url.host(), url.port_u16().or(Some(default)))
}

/// Whether what `from` says may lead to `to`: not from TLS to none, and not from elsewhere to this machine or its
/// link.
pub fn is_safe_step(from: &Uri, to: &Uri) -> Result<(), String> {
    let host = to.host().unwrap_or_default();
    if to.scheme_str() != Some("https") && from.scheme_str() == Some("https") {
        return Err(format!("from https to plain HTTP ({})", shown(host)));
    }
    if is_loopback(host) && !from.host().is_some_and(is_loopback) {
        return Err(format!("to this machine ({})", shown(host)));
    }
    if is_link_local(host) && from.host() != Some(host) {
        return Err(format!("to an address of this machine's own link ({})", shown(host)));
    }
    Ok(())
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

    #[test]
    fn steps_must_be_safe() {
        let step = |from: &str, to: &str| is_safe_step(&from.parse().unwrap(), &to.parse().unwrap()).is_ok();
        assert!(step("https://r.io/", "https://cdn.io/x"));
        assert!(step("http://127.0.0.1:1/", "http://localhost:2/"));
        assert!(!step("https://r.io/", "http://r.io/"));
        assert!(!step("http://r.io/", "http://[::1]/"));
        assert!(!step("http://127.0.0.1/", "http://169.254.169.254/latest"));
        assert!(!step("https://r.io/", "https://[fe80::1]/"));
    }
}
