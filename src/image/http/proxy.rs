//! Proxies as the environment names them. Each scheme has its own variable, `ALL_PROXY` serves those that have none,
//! `NO_PROXY` names who is spoken to directly, and this machine always is.

use std::net::IpAddr;

use ureq::Proxy;
use ureq::http::Uri;

use super::super::sources::Machine;
use super::address::{ip, is_loopback};

/// A proxy, and the variable that names it.
#[derive(Clone)]
pub struct Via {
    pub proxy: Proxy,
    pub variable: &'static str,
}

/// The proxy for an address. The problem of a setting never quotes it: there may be a password in it.
pub fn of(url: &Uri, machine: &Machine) -> Result<Option<Via>, String> {
    let host = url.host().unwrap_or_default();
    let https = url.scheme_str() == Some("https");
    if is_loopback(host) || is_excepted(host, url.port_u16().unwrap_or(if https { 443 } else { 80 }), machine) {
        return Ok(None);
    }
    let own: &[&'static str] = if https { &["https_proxy", "HTTPS_PROXY"] } else { &["http_proxy", "HTTP_PROXY"] };
    let named = own.iter().chain(&["all_proxy", "ALL_PROXY"]).find_map(|v| Some((*v, machine.var(v)?)));
    // Set to nothing is a way to say none.
    let Some((variable, text)) = named.filter(|(_, text)| !text.trim().is_empty()) else { return Ok(None) };
    match Proxy::new(text.trim()) {
        Ok(proxy) => Ok(Some(Via { proxy, variable })),
        Err(_) => Err(format!("{variable} is not the address of a proxy")),
    }
}

fn is_excepted(host: &str, port: u16, machine: &Machine) -> bool {
    let list = machine.var("no_proxy").or_else(|| machine.var("NO_PROXY")).unwrap_or_default();
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    list.split([',', ' ']).map(str::trim).filter(|e| !e.is_empty()).any(|entry| covers(entry, &host, port))
}

/// `*`, `host`, `.domain`, `*.domain`, an address, a network such as `10.0.0.0/8`; each may end in a port.
fn covers(entry: &str, host: &str, port: u16) -> bool {
    let entry = entry.to_ascii_lowercase();
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        return match (ip(network), bits.parse(), ip(host)) {
            (Some(network), Ok(bits), Some(address)) => is_within(network, bits, address),
            _ => false,
        };
    }
    let (name, wanted) = match entry.rsplit_once(':') {
        // More colons are those of an IPv6 address without its brackets.
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse::<u16>().ok()),
        _ => (entry.as_str(), None),
    };
    if wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    if let (Some(named), Some(address)) = (ip(name), ip(host)) {
        return named == address;
    }
    let domain = name.trim_start_matches('*').trim_start_matches('.');
    !domain.is_empty()
        && (host.strip_suffix(domain).is_some_and(|head| head.ends_with('.'))
            || (host == domain && !name.starts_with(['.', '*'])))
}

fn is_within(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(n), IpAddr::V4(a)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            n.to_bits() & mask == a.to_bits() & mask
        }
        (IpAddr::V6(n), IpAddr::V6(a)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            n.to_bits() & mask == a.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(url: &str, vars: &[(&str, &str)]) -> Option<String> {
        let via = of(&url.parse().unwrap(), &Machine::with(vars)).unwrap();
        via.map(|v| format!("{} {}", v.variable, v.proxy.host()))
    }

    #[test]
    fn each_scheme_has_its_own() {
        let all = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "p:2"), ("ALL_PROXY", "socks5://a:3")];
        assert_eq!(host("https://r.io/", &all).unwrap(), "HTTPS_PROXY s");
        assert_eq!(host("http://r.io/", &all).unwrap(), "HTTP_PROXY p");
        assert_eq!(host("http://r.io/", &all[2..]).unwrap(), "ALL_PROXY a");
        assert_eq!(host("http://r.io/", &all[..1]), None);
        assert_eq!(host("https://r.io/", &[("https_proxy", "")]), None);
        for near in ["http://127.0.0.1:5000/", "https://localhost/", "https://[::1]:5000/"] {
            assert_eq!(host(near, &all), None, "{near}");
        }
    }

    #[test]
    fn a_bad_proxy_is_named_without_its_password() {
        let machine = Machine::with(&[("HTTPS_PROXY", "http://user:secret@")]);
        let Err(why) = of(&"https://r.io/".parse().unwrap(), &machine) else { panic!("taken") };
        assert!(why.contains("HTTPS_PROXY") && !why.contains("secret"), "{why}");
    }

    #[test]
    fn exceptions() {
        let direct = |entry: &str, url: &str| {
            host(url, &[("ALL_PROXY", "http://p:1"), ("NO_PROXY", &format!("x, {entry}"))]).is_none()
        };
        for (entry, url) in [
            ("*", "https://r.io/"),
            ("r.io", "https://R.io/"),
            ("r.io", "https://a.r.io/"),
            (".r.io", "https://a.r.io/"),
            ("*.r.io", "https://a.r.io/"),
            ("r.io:443", "https://r.io/"),
            ("10.0.0.0/8", "https://10.1.2.3:5000/"),
            ("10.1.2.3", "http://10.1.2.3/"),
            ("[fd00::1]:5000", "https://[fd00::1]:5000/"),
            ("fd00::1", "https://[fd00::1]:5000/"),
            ("fd00::/8", "https://[fd12::1]/"),
            ("0.0.0.0/0", "https://9.9.9.9/"),
        ] {
            assert!(direct(entry, url), "{entry} {url}");
        }
        for (entry, url) in [
            (".r.io", "https://r.io/"),
            ("r.io", "https://xr.io/"),
            ("r.io:5000", "https://r.io/"),
            ("10.0.0.0/8", "https://11.1.2.3/"),
            ("10.0.0.0/99", "https://10.1.2.3/"),
            ("10.0.0.0/8", "https://10.example/"),
            (".", "https://r.io/"),
            ("", "https://r.io/"),
        ] {
            assert!(!direct(entry, url), "{entry} {url}");
        }
    }
}
