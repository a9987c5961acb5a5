//! Image references, taken apart as registries do it: host, repository, tag, digest.

/// Where Docker Hub keeps its official images, all and by architecture.
const OFFICIAL: &[&str] =
    &["library/", "amd64/", "arm64v8/", "arm32v7/", "i386/", "ppc64le/", "s390x/", "riscv64/"];

/// `registry.example:5000/team/cuda:12.4.1@sha256:…` in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// `docker.io` where none is written.
    pub host: String,
    /// Without the host, `library/` dropped: "nvidia/cuda", "ubuntu".
    pub repository: String,
    pub tag: Option<String>,
    /// Pinned by a digest.
    pub digest: bool,
}

impl Reference {
    /// `None` where the text is no reference: empty, blanks, or a variable in it.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text.contains(|c: char| c.is_whitespace() || matches!(c, '$' | '{' | '}')) {
            return None;
        }
        let (name, digest) = match text.split_once('@') {
            Some((name, _)) => (name, true),
            None => (text, false),
        };
        // A colon behind the last slash parts the tag; before it, a port.
        let slash = name.rfind('/').map_or(0, |at| at + 1);
        let (name, tag) = match name.get(slash..)?.split_once(':') {
            Some((last, tag)) => (name.get(..slash + last.len())?, Some(tag).filter(|t| !t.is_empty())),
            None => (name, None),
        };
        let (host, path) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => ("docker.io", name),
        };
        let host = if matches!(host, "index.docker.io" | "registry-1.docker.io") { "docker.io" } else { host };
        let official = OFFICIAL.iter().find_map(|p| path.strip_prefix(p)).filter(|p| !p.contains('/'));
        let path = official.filter(|_| host == "docker.io").unwrap_or(path);
        if path.is_empty() || path.starts_with('/') || path.ends_with('/') {
            return None;
        }
        Some(Self {
            host: host.to_ascii_lowercase(),
            repository: path.to_ascii_lowercase(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// Whether it is that repository, given as "host/path": there, or on another host whose path ends in it (a
    /// mirror). Repositories of one part have no mirrors: any team's `ubuntu` may be anything.
    pub fn is(&self, known: &str) -> Option<Place> {
        let (host, path) = known.split_once('/')?;
        if self.host == host && self.repository == path {
            return Some(Place::Home);
        }
        let before = self.repository.strip_suffix(path);
        let mirrored = match path.contains('/') {
            true => before.is_some_and(|b| b.is_empty() || b.ends_with('/')),
            // Mirrors of Docker Hub keep `library/` before what has one part.
            false => before.is_some_and(|b| b.ends_with("library/")),
        };
        (mirrored && self.host != host).then_some(Place::Mirror)
    }
}

/// Where a known repository was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Home,
    /// A copy, by its name.
    Mirror,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_reference() {
        for (text, host, repository, tag, digest) in [
            ("ubuntu", "docker.io", "ubuntu", None, false),
            ("docker.io/library/ubuntu:22.04", "docker.io", "ubuntu", Some("22.04"), false),
            ("arm64v8/ubuntu:24.04", "docker.io", "ubuntu", Some("24.04"), false),
            ("index.docker.io/nvidia/cuda:12", "docker.io", "nvidia/cuda", Some("12"), false),
            ("localhost/x:1", "localhost", "x", Some("1"), false),
            ("reg.local:5000/a/b", "reg.local:5000", "a/b", None, false),
            ("reg.local:5000/a/b:t@sha256:00", "reg.local:5000", "a/b", Some("t"), true),
            ("NVIDIA/cuda@sha256:00", "docker.io", "nvidia/cuda", None, true),
        ] {
            let got = Reference::parse(text).unwrap();
            assert_eq!((got.host.as_str(), got.repository.as_str()), (host, repository), "{text}");
            assert_eq!((got.tag.as_deref(), got.digest), (tag, digest), "{text}");
        }
        for none in ["", "  ", "a b", "$BASE", "nvidia/cuda:${V}", "docker.io/", "/x"] {
            assert_eq!(Reference::parse(none), None, "{none:?}");
        }
    }

    #[test]
    fn mirrors_are_known_by_their_path() {
        let is = |text: &str, known: &str| Reference::parse(text).unwrap().is(known);
        assert_eq!(is("nvidia/cuda:1", "docker.io/nvidia/cuda"), Some(Place::Home));
        assert_eq!(is("mirror.corp:5000/hub/nvidia/cuda:1", "docker.io/nvidia/cuda"), Some(Place::Mirror));
        assert_eq!(is("docker.io/me/cuda", "docker.io/nvidia/cuda"), None);
        assert_eq!(is("quay.io/me/ubuntu", "docker.io/ubuntu"), None);
        assert_eq!(is("public.ecr.aws/docker/library/ubuntu", "docker.io/ubuntu"), Some(Place::Mirror));
    }
}
