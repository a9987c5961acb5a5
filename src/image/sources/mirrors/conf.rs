//! `registries.conf`, version 2, as podman and its kin read it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::super::super::ImageError;
use super::super::manifest::malformed;
use super::super::options::Machine;
use super::{below, with_canonical_host};

/// The largest file of settings, and the most files of a folder.
const MAX_CONF: u64 = 1 << 20;
const MAX_FILES: usize = 256;

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Text {
    unqualified_search_registries: Option<Vec<String>>,
    registry: Vec<RegistryText>,
    /// Version 1.
    registries: Option<toml::Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct RegistryText {
    prefix: Option<String>,
    location: Option<String>,
    insecure: bool,
    blocked: bool,
    mirror_by_digest_only: bool,
    mirror: Vec<MirrorText>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct MirrorText {
    pub location: String,
    pub insecure: bool,
    pull_from_mirror: Option<String>,
}

impl MirrorText {
    /// Whether it is asked for what is named by a digest, or by a tag.
    pub fn serves(&self, by_digest: bool, digest_only: bool) -> bool {
        match self.pull_from_mirror.as_deref() {
            Some("digest-only") => by_digest,
            Some("tag-only") => !by_digest,
            _ => by_digest || !digest_only,
        }
    }
}

/// What is said of names that begin in one way.
pub struct Rule {
    pub prefix: String,
    pub location: Option<String>,
    pub insecure: bool,
    pub blocked: bool,
    pub mirror_by_digest_only: bool,
    pub mirrors: Vec<MirrorText>,
    /// The file that says so.
    pub file: String,
}

impl Rule {
    /// How much of a name it covers; `None`: not this name.
    fn covers(&self, full: &str) -> Option<usize> {
        let host = full.split('/').next().unwrap_or_default();
        match self.prefix.strip_prefix('*') {
            // A wildcard stands for hosts, never for a path.
            Some(suffix) if suffix.starts_with('.') => host.ends_with(suffix).then_some(suffix.len()),
            Some(_) => None,
            None => below(full, &self.prefix).map(|_| self.prefix.len()),
        }
    }

    /// The name with a location in the place of the prefix.
    pub fn rewritten(&self, full: &str, location: &str) -> String {
        if location.is_empty() {
            return full.to_owned();
        }
        let rest = match self.prefix.starts_with('*') {
            true => full.split_once('/').map(|(_, path)| format!("/{path}")),
            false => below(full, &self.prefix).map(str::to_owned),
        };
        format!("{}{}", location.trim_end_matches('/'), rest.unwrap_or_default())
    }
}

/// All files together.
#[derive(Default)]
pub struct Conf {
    rules: Vec<Rule>,
    /// Where short names would be looked for, and the file that says so.
    pub unqualified: Option<(Vec<String>, String)>,
    pub notices: Vec<String>,
}

impl Conf {
    pub fn find(machine: &Machine) -> Result<Self, ImageError> {
        let mut out = Self::default();
        for path in files(machine) {
            out.add(&path, machine)?;
        }
        Ok(out)
    }

    /// The rule with the longest prefix.
    pub fn rule(&self, full: &str) -> Option<&Rule> {
        let covering = self.rules.iter().filter_map(|r| Some((r.covers(full)?, r)));
        covering.max_by_key(|(length, _)| *length).map(|(_, rule)| rule)
    }

    fn add(&mut self, path: &Path, machine: &Machine) -> Result<(), ImageError> {
        let file = machine.shown(path);
        let mut bytes = Vec::new();
        match File::open(path).and_then(|f| f.take(MAX_CONF + 1).read_to_end(&mut bytes)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(ImageError::Io { place: file, source }),
            Ok(n) if n as u64 > MAX_CONF => return Err(malformed(&file, "too large for a registries.conf")),
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&bytes);
        let parsed: Text = toml::from_str(&text).map_err(|e| {
            let line = e.span().map_or(0, |s| text.get(..s.start).map_or(0, |t| t.matches('\n').count())) + 1;
            malformed(&file, format!("no valid registries.conf: {} (line {line})", super::shown(e.message())))
        })?;
        if parsed.registries.is_some() {
            self.notices.push(format!("{file} is in the old format of registries.conf, and is not followed"));
        }
        if let Some(hosts) = parsed.unqualified_search_registries {
            let other = hosts.iter().any(|h| super::hosts::canonical(h) != "docker.io");
            self.unqualified = other.then(|| (hosts, file.clone()));
        }
        for text in parsed.registry {
            let Some(prefix) = text.prefix.filter(|p| !p.is_empty()).or_else(|| text.location.clone()) else {
                return Err(malformed(&file, "a registry with neither prefix nor location"));
            };
            let prefix = with_canonical_host(prefix.trim_end_matches('/'));
            // A later file's word on the same names counts.
            self.rules.retain(|r| r.prefix != prefix || r.file == file);
            self.rules.push(Rule {
                prefix,
                location: text.location.filter(|l| !l.is_empty()),
                insecure: text.insecure,
                blocked: text.blocked,
                mirror_by_digest_only: text.mirror_by_digest_only,
                mirrors: text.mirror,
                file: file.clone(),
            });
        }
        Ok(())
    }
}

/// The main file, the user's before the system's, and the pieces of both folders, which count more.
fn files(machine: &Machine) -> Vec<PathBuf> {
    let system = machine.etc.join("containers");
    let user = machine.config_home().map(|c| c.join("containers"));
    let own = user.as_ref().map(|u| u.join("registries.conf")).filter(|p| p.is_file());
    let main = machine.path("CONTAINERS_REGISTRIES_CONF").or(own).unwrap_or_else(|| system.join("registries.conf"));
    let mut out = vec![main];
    for folder in [Some(system), user].into_iter().flatten() {
        let Ok(entries) = folder.join("registries.conf.d").read_dir() else { continue };
        let paths = entries.filter_map(|e| Some(e.ok()?.path()));
        let mut pieces: Vec<PathBuf> =
            paths.filter(|p| p.extension().is_some_and(|e| e == "conf")).take(MAX_FILES).collect();
        pieces.sort();
        out.extend(pieces);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::OpenOptions;
    use super::super::super::reference::RegistryName;
    use super::super::routes;
    use super::*;

    fn options(files: &[(&str, &str)]) -> (tempfile::TempDir, OpenOptions) {
        let etc = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = etc.path().join("containers").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut options = OpenOptions { machine: Machine::with(&[]), ..OpenOptions::default() };
        options.machine.etc = etc.path().to_owned();
        (etc, options)
    }

    fn places(name: &str, options: &OpenOptions) -> Result<Vec<String>, String> {
        let (routes, _) = routes(&RegistryName::parse(name).unwrap(), options).map_err(|e| e.to_string())?;
        let mark = |r: &super::super::Route| {
            format!("{}{}{}", r.shown(), if r.is_mirror { "*" } else { "" }, if r.insecure { "!" } else { "" })
        };
        Ok(routes.iter().map(mark).collect())
    }

    const MAIN: &str = r#"
        unqualified-search-registries = ["fedora.example", "docker.io"]
        short-name-mode = "permissive"
        [[registry]]
        prefix = "docker.io"
        location = "hub.example/hub"
        [[registry.mirror]]
        location = "m.example:5000/hub"
        insecure = true
        [[registry.mirror]]
        location = "n.example"
        pull-from-mirror = "digest-only"
        [[registry]]
        prefix = "docker.io/secret"
        blocked = true
        [[registry]]
        prefix = "*.corp.example"
        location = "all.example/corp"
        [[registry]]
        location = "old.example"
        mirror-by-digest-only = true
        [[registry.mirror]]
        location = "new.example"
    "#;

    #[test]
    fn the_longest_prefix_counts_and_mirrors_come_first() {
        let (_etc, options) = options(&[("registries.conf", MAIN)]);
        let p = |name: &str| places(name, &options);
        assert_eq!(p("ubuntu").unwrap(), ["m.example:5000/hub/library/ubuntu*!", "hub.example/hub/library/ubuntu"]);
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(p(&format!("ubuntu@{digest}")).unwrap()[1], "n.example/library/ubuntu*");
        let blocked = p("secret/x").unwrap_err();
        assert!(blocked.contains("docker.io/secret is blocked by"), "{blocked}");
        assert_eq!(p("secrets/x").unwrap().len(), 2);
        assert_eq!(p("a.corp.example/x/y").unwrap(), ["all.example/corp/x/y"]);
        assert_eq!(p("corp.example/x").unwrap(), ["corp.example/x"]);
        assert_eq!(p("old.example/x").unwrap(), ["old.example/x"]);
        assert_eq!(p(&format!("old.example/x@{digest}")).unwrap(), ["new.example/x*", "old.example/x"]);
    }

    #[test]
    fn pieces_count_more_and_short_names_are_told() {
        let piece = "[[registry]]\nprefix = \"docker.io\"\nlocation = \"piece.example\"\n";
        let (_etc, options) = options(&[("registries.conf", MAIN), ("registries.conf.d/9.conf", piece)]);
        assert_eq!(places("ubuntu", &options).unwrap(), ["piece.example/library/ubuntu"]);
        let notices = |name: &str| routes(&RegistryName::parse(name).unwrap(), &options).unwrap().1;
        assert!(notices("ubuntu")[0].contains("fedora.example"), "{:?}", notices("ubuntu"));
        assert_eq!(notices("docker.io/ubuntu"), [""; 0]);
    }

    #[test]
    fn broken_files_are_named() {
        let (_etc, broken) = options(&[("registries.conf", "\n[[registry]]\nprefix = 7\n")]);
        let error = places("x", &broken).unwrap_err();
        assert!(error.contains("registries.conf") && error.contains("line 3"), "{error}");
        assert_eq!(error.lines().count(), 1);
        let (_etc, neither) = options(&[("registries.conf", "[[registry]]\nblocked = true\n")]);
        assert!(places("x", &neither).unwrap_err().contains("neither"));
    }
}
