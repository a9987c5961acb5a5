//! Where an image is looked for: mirrors first, then the place that its name says, or that `registries.conf` says
//! instead.

mod conf;

use std::str::FromStr;

use super::super::ImageError;
use super::OpenOptions;
use super::hosts;
use super::manifest::{malformed, shown};
use super::reference::RegistryName;

/// A place to look first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// Names that it serves: `host`, or `host/path`.
    pub prefix: String,
    /// What it puts in place of that: `host[:port]`, or that and a path.
    pub location: String,
    /// May be spoken to without TLS.
    pub insecure: bool,
}

impl FromStr for Mirror {
    type Err = String;

    /// `MIRROR` of Docker Hub, or `NAME=MIRROR`; a mirror's scheme may stand before it.
    fn from_str(text: &str) -> Result<Self, String> {
        let (prefix, location) = text.split_once('=').unwrap_or(("docker.io", text));
        let (insecure, location) = match location.split_once("://") {
            Some(("http", rest)) => (true, rest),
            Some(("https", rest)) => (false, rest),
            Some(_) => return Err("a mirror is spoken to by http:// or https://".to_owned()),
            None => (false, location),
        };
        let (prefix, location) = (prefix.trim_end_matches('/'), location.trim_end_matches('/'));
        let plain =
            |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:/[]".contains(&b));
        if !plain(prefix) || !plain(location) || prefix.contains("://") || location.starts_with('/') {
            return Err("give HOST[:PORT][/PATH], or NAME=HOST[:PORT][/PATH]".to_owned());
        }
        Ok(Self { prefix: prefix.to_owned(), location: location.to_owned(), insecure })
    }
}

/// One place to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// As it is named.
    pub registry: String,
    /// Host and port, where requests go.
    pub host: String,
    pub repository: String,
    pub insecure: bool,
    /// A mirror: what it does not have may be elsewhere.
    pub is_mirror: bool,
}

impl Route {
    fn new(name: &str, insecure: bool, is_mirror: bool) -> Option<Self> {
        let (registry, repository) = name.split_once('/')?;
        let registry = hosts::canonical(registry);
        let valid = !registry.is_empty() && !repository.is_empty() && !repository.starts_with('/');
        let host = hosts::asked(&registry);
        valid.then(|| Self { registry, host, repository: repository.to_owned(), insecure, is_mirror })
    }

    pub fn shown(&self) -> String {
        shown(&format!("{}/{}", self.registry, self.repository))
    }
}

/// Every place to look, and what is worth telling.
pub fn routes(name: &RegistryName, options: &OpenOptions) -> Result<(Vec<Route>, Vec<String>), ImageError> {
    let full = format!("{}/{}", name.registry, name.repository);
    let conf = conf::Conf::find(&options.machine)?;
    let mut out = Vec::new();
    for mirror in &options.mirrors {
        let prefix = with_canonical_host(&mirror.prefix);
        if let Some(rest) = below(&full, &prefix) {
            out.extend(Route::new(&format!("{}{rest}", mirror.location), mirror.insecure, true));
        }
    }
    let by_digest = name.digest.is_some();
    match conf.rule(&full) {
        Some(rule) => {
            if rule.blocked {
                return Err(malformed(&name.shown, format!("{} is blocked by {}", shown(&rule.prefix), rule.file)));
            }
            for mirror in rule.mirrors.iter().filter(|m| m.serves(by_digest, rule.mirror_by_digest_only)) {
                let place = rule.rewritten(&full, &mirror.location);
                let route = Route::new(&place, mirror.insecure, true);
                out.push(route.ok_or_else(|| malformed(&rule.file, "a mirror's location is no place"))?);
            }
            let place = rule.rewritten(&full, rule.location.as_deref().unwrap_or_default());
            let route = Route::new(&place, rule.insecure, false);
            out.push(route.ok_or_else(|| malformed(&rule.file, "a registry's location is no place"))?);
        }
        None => out.extend(Route::new(&full, false, false)),
    }
    let mut notices = conf.notices;
    if let (true, Some((hosts, file))) = (name.is_short, conf.unqualified) {
        notices.push(format!(
            "a short name is one of Docker Hub: {} is read, unqualified-search-registries of {file} ({}) is not followed",
            name.shown,
            shown(&hosts.join(", "))
        ));
    }
    Ok((out, notices))
}

/// What follows a prefix that ends where a part of the name ends.
fn below<'a>(full: &'a str, prefix: &str) -> Option<&'a str> {
    full.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Docker Hub has several names: they are all one.
fn with_canonical_host(name: &str) -> String {
    match name.split_once('/') {
        Some((host, path)) => format!("{}/{path}", hosts::canonical(host)),
        None => hosts::canonical(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_typed() {
        let m = |t: &str| t.parse::<Mirror>().map(|m| format!("{} {} {}", m.prefix, m.location, m.insecure));
        assert_eq!(m("mirror.gcr.io").unwrap(), "docker.io mirror.gcr.io false");
        assert_eq!(m("https://mirror.gcr.io/").unwrap(), "docker.io mirror.gcr.io false");
        assert_eq!(m("nvcr.io/nvidia=http://m:5000/nv").unwrap(), "nvcr.io/nvidia m:5000/nv true");
        assert_eq!(m("quay.io=[::1]:5000").unwrap(), "quay.io [::1]:5000 false");
        for bad in ["", "=", "a=", "=b", "ftp://x", "a b", "https://x=y", "x=/y", "x\n"] {
            assert!(m(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_mirrors_serve_ends_with_a_part_of_the_name() {
        let mut options = OpenOptions::default();
        options.machine = super::super::options::Machine::with(&[]);
        options.mirrors = ["m.example/hub", "index.docker.io/library=n.example", "q.io/a=http://o.example/b"]
            .map(|m| m.parse().unwrap())
            .into();
        let places = |name: &str| -> Vec<String> {
            let (routes, _) = routes(&RegistryName::parse(name).unwrap(), &options).unwrap();
            routes.iter().map(|r| format!("{}{}", r.shown(), if r.is_mirror { "*" } else { "" })).collect()
        };
        assert_eq!(
            places("ubuntu"),
            ["m.example/hub/library/ubuntu*", "n.example/ubuntu*", "docker.io/library/ubuntu"]
        );
        assert_eq!(places("q.io/a/x"), ["o.example/b/x*", "q.io/a/x"]);
        assert_eq!(places("q.io/ab/x"), ["q.io/ab/x"]);
    }
}
