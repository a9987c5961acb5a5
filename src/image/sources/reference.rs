//! Names of images: in a registry, and within a layout or an archive.

use std::fmt;
use std::path::PathBuf;

use oci_spec::distribution::Reference;

use super::super::ImageError;
use super::hosts;
use super::manifest::{malformed, shown};
use crate::model::Digest;

/// Which image of several: `:TAG`, `@sha256:…`, `:@2`, or both a tag and a digest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    pub tag: Option<String>,
    pub digest: Option<Digest>,
    pub number: Option<usize>,
}

impl Selector {
    /// Reads what follows the path; empty is no choice.
    pub fn parse(text: &str, place: &str) -> Result<Self, ImageError> {
        let (tag, after) = match text.split_once('@') {
            Some((tag, after)) => (tag, Some(after)),
            None => (text, None),
        };
        let tag = tag.strip_prefix(':').unwrap_or(tag);
        let mut out = Self { tag: (!tag.is_empty()).then(|| tag.to_owned()), ..Self::default() };
        match after {
            Some(n) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => out.number = n.parse().ok(),
            Some(digest) => {
                let parsed = digest.parse();
                out.digest =
                    Some(parsed.map_err(|_| malformed(place, format!("invalid digest `{}`", shown(digest))))?);
            }
            None => {}
        }
        Ok(out)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tag.as_deref().unwrap_or_default())?;
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        if let Some(number) = self.number {
            write!(f, "@{number}")?;
        }
        Ok(())
    }
}

/// Splits `PATH[:TAG][@DIGEST]` at the longest path that exists. `None`: no such path.
pub fn split_path(text: &str) -> Option<(PathBuf, &str)> {
    let cuts = text.char_indices().rev().filter(|(_, c)| matches!(c, ':' | '@')).map(|(i, _)| i);
    std::iter::once(text.len())
        .chain(cuts)
        .filter(|&i| i > 0)
        .find(|&i| std::fs::symlink_metadata(&text[..i]).is_ok())
        .map(|i| (PathBuf::from(&text[..i]), &text[i..]))
}

/// Whether a name written into an archive is the one asked for: equal once both are written in full, or a
/// tag alone, or a name without its registry.
pub fn same_image(name: &str, wanted: &str) -> bool {
    let full = |t: &str| t.parse::<Reference>().ok().map(|r| r.whole());
    let tag = name.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    name == wanted
        || tag == Some(wanted)
        || name.strip_suffix(wanted).is_some_and(|head| head.ends_with('/'))
        || full(name).is_some_and(|n| full(wanted) == Some(n))
}

/// An image in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryName {
    /// As it is shown, in full.
    pub shown: String,
    /// Its registry, as it is named: host and port.
    pub registry: String,
    /// No registry was named.
    pub is_short: bool,
    pub repository: String,
    pub tag: Option<String>,
    pub digest: Option<Digest>,
}

impl RegistryName {
    pub fn parse(text: &str) -> Result<Self, ImageError> {
        let bad = |why: String| malformed(&shown(text), why);
        if let Some((scheme @ ("http" | "https"), rest)) = text.split_once("://") {
            return Err(bad(format!("a reference has no {scheme}://; write {}", shown(rest))));
        }
        // The reference grammar knows no IPv6 hosts: parse the rest with a stand-in.
        let (ipv6, text) = match text.strip_prefix('[').and_then(|t| t.split_once(']')) {
            Some((address, rest)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                (Some(format!("[{address}]")), format!("ipv6.invalid{rest}"))
            }
            Some(_) => return Err(bad("not an image reference: no IPv6 address in the brackets".into())),
            None => (None, text.to_owned()),
        };
        let reference: Reference = text.parse().map_err(|e| bad(format!("not an image reference: {e}")))?;
        let digest = match reference.digest() {
            Some(d) => Some(d.parse().map_err(|_| bad(format!("only sha256 digests are known, not {d}")))?),
            None => None,
        };
        let put = |text: String| match &ipv6 {
            Some(host) => text.replacen("ipv6.invalid", host, 1),
            None => text,
        };
        let registry = hosts::canonical(&put(reference.registry().to_owned()));
        // The grammar's own rule for what is a host.
        let first = text.split('/').next().filter(|_| text.contains('/')).unwrap_or_default();
        let is_short = !first.contains(['.', ':']) && first != "localhost";
        Ok(Self {
            shown: put(reference.whole()),
            registry,
            is_short,
            repository: reference.repository().to_owned(),
            tag: reference.tag().map(str::to_owned),
            digest,
        })
    }

    /// What the manifest is asked for by: the digest where there is one.
    pub fn wanted(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_names_are_written_in_full() {
        let p = |t: &str| RegistryName::parse(t).unwrap();
        assert_eq!(p("ubuntu").shown, "docker.io/library/ubuntu:latest");
        assert_eq!(p("registry-1.docker.io/library/ubuntu").registry, "docker.io");
        assert!(p("ubuntu").is_short && p("a/b:c").is_short);
        assert!(!p("localhost/b").is_short && !p("r.io/b").is_short && !p("[::1]/x").is_short);
        assert_eq!(p("ubuntu").repository, "library/ubuntu");
        assert_eq!(p("127.0.0.1:5001/x/y:z").registry, "127.0.0.1:5001");
        let v6 = p("[::1]:5001/x:y");
        assert_eq!((v6.registry.as_str(), v6.shown.as_str()), ("[::1]:5001", "[::1]:5001/x:y"));
        let digest = format!("sha256:{}", "a".repeat(64));
        let both = p(&format!("r.io/x:tag@{digest}"));
        assert_eq!(both.tag.as_deref(), Some("tag"));
        assert_eq!(both.wanted(), digest);
        assert!(RegistryName::parse("https://r.io/x").unwrap_err().to_string().contains("write r.io/x"));
        for bad in ["", "r.io/UPPER", "a b", "x@sha256:12", "[zz]:1/x", "x:\n"] {
            assert!(RegistryName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn selectors() {
        let p = |t: &str| Selector::parse(t, "x").unwrap();
        assert_eq!(p(""), Selector::default());
        assert_eq!(p(":t:oci").tag.as_deref(), Some("t:oci"));
        assert_eq!(p(":@2").number, Some(2));
        assert!(Selector::parse("@sha256:../..", "x").is_err());
        assert!(same_image("docker.io/library/t:1", "t:1"));
        assert!(same_image("docker.io/library/t:1", "1"));
        assert!(!same_image("docker.io/library/at:1", "t:1"));
        assert!(!same_image("localhost/t:1", "t"));
    }
}
