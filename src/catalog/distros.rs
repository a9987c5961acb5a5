//! When distributions stop being mended. Table: `distros.toml`.

use serde::Deserialize;

use super::reference::Reference;
use super::tag_words::{self, words};
use super::{CatalogError, Tables, Trust};

pub(super) const FILE: &str = "distros.toml";

/// The end of a release's standard support.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eol {
    /// As a person names it: "Ubuntu 18.04".
    pub name: String,
    /// `YYYY-MM-DD`, the last day.
    pub date: String,
    /// The last day of what comes without a contract after that: Debian's LTS.
    pub free_until: Option<String>,
    pub because: String,
    pub sure: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct DistroRow {
    /// "ubuntu", as tags write it.
    pub name: String,
    /// Other ways to write the name: "amzn" for "amazonlinux", paths of repositories.
    #[serde(default)]
    pub aliases: Vec<String>,
    pub version: String,
    pub title: String,
    pub eol: String,
    #[serde(default)]
    pub free_until: Option<String>,
    /// Whole words of tags: "bionic", "stream8".
    #[serde(default)]
    codename: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

/// All releases of distributions.
#[derive(Debug)]
pub struct Distros {
    rows: Vec<DistroRow>,
}

impl Distros {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        Ok(Self { rows: tables.rows(FILE, "distro")? })
    }

    /// When the support of a distribution ends or ended, given as a tag of CUDA writes it (`ubuntu18.04`, `ubi7`) or
    /// as a reference (`ubuntu:18.04`, `debian:buster-slim`, `quay.io/centos/centos:stream8`). `None`: not known.
    pub fn eol(&self, distro: &str) -> Option<Eol> {
        let row = self.row(distro)?;
        Some(Eol {
            name: row.title.clone(),
            date: row.eol.clone(),
            free_until: row.free_until.clone(),
            because: row.trust.because(FILE, &row.title),
            sure: row.trust.is_sure(),
        })
    }

    /// The same, where nobody got updates without a contract any more on a day (`YYYY-MM-DD`).
    pub fn ended(&self, distro: &str, on: &str) -> Option<Eol> {
        self.eol(distro).filter(|eol| eol.free_until.as_ref().unwrap_or(&eol.date).as_str() < on)
    }

    pub(super) fn rows(&self) -> &[DistroRow] {
        &self.rows
    }

    fn row(&self, distro: &str) -> Option<&DistroRow> {
        let text = distro.trim().to_ascii_lowercase();
        if let Some(word) = tag_words::distro(&text)
            && let Some(row) = self.by_word(&word)
        {
            return Some(row);
        }
        let reference = Reference::parse(&text)?;
        let tag = reference.tag?;
        let named = |row: &&DistroRow| {
            let mut names = std::iter::once(&row.name).chain(&row.aliases);
            names.any(|n| *n == reference.repository)
        };
        let read = words(&tag);
        let of = |row: &&DistroRow| {
            // Releases that are told by their tag alone: `centos:8` and `centos:stream8` are two.
            let mut whole = row.codename.iter().chain(&row.tags);
            whole.any(|c| read.all.iter().any(|w| w == c))
                || (row.tags.is_empty() && read.number.as_deref().is_some_and(|n| is_of(n, &row.version)))
        };
        // The longest version first, so that 15.5 is not taken for 15.
        let found = self.rows.iter().filter(named).filter(of).max_by_key(|r| r.version.len());
        // `python:3.8-buster`: the tag names another image's distribution.
        found.or_else(|| self.by_word(read.distro.as_deref()?)).or_else(|| {
            // `ubi9/ubi-minimal`: the release is in the path.
            reference.repository.split('/').filter_map(tag_words::distro).find_map(|word| self.by_word(&word))
        })
    }

    /// A row by a word such as `ubuntu18.04` or `amzn2023`.
    fn by_word(&self, word: &str) -> Option<&DistroRow> {
        let at = word.find(|c: char| c.is_ascii_digit())?;
        let (name, number) = word.split_at_checked(at)?;
        let named = |r: &&DistroRow| r.name == name || r.aliases.iter().any(|a| a == name);
        let rows = self.rows.iter().filter(named).filter(|r| is_of(number, &r.version));
        rows.max_by_key(|r| r.version.len())
    }
}

/// Whether a version is that release or a point release of it: 7.9 is 7, 18.04 is not 18.0.
fn is_of(version: &str, release: &str) -> bool {
    version.strip_prefix(release).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;

    #[test]
    fn ends_of_support() {
        let distros = Catalog::embedded().distros();
        let name = |d: &str| distros.eol(d).map(|e| e.name);
        for (asked, want) in [
            ("ubuntu18.04", "Ubuntu 18.04"),
            ("ubuntu:18.04", "Ubuntu 18.04"),
            ("ubuntu:bionic", "Ubuntu 18.04"),
            ("docker.io/library/ubuntu:bionic-20230530", "Ubuntu 18.04"),
            ("centos7", "CentOS 7"),
            ("centos:7.9.2009", "CentOS 7"),
            ("centos:centos7", "CentOS 7"),
            ("quay.io/centos/centos:stream8", "CentOS Stream 8"),
            ("centos:8", "CentOS 8"),
            ("opensuse/leap:15.5", "openSUSE Leap 15.5"),
            ("registry.access.redhat.com/ubi8/ubi-minimal:8.9", "Red Hat UBI 8"),
            ("debian:buster-slim", "Debian 10"),
            ("python:3.8-slim-buster", "Debian 10"),
            ("debian:12.5", "Debian 12"),
            ("rockylinux9", "Rocky Linux 9"),
            ("amazonlinux:2", "Amazon Linux 2"),
            ("amzn2023", "Amazon Linux 2023"),
            ("alpine:3.15.4", "Alpine 3.15"),
        ] {
            assert_eq!(name(asked).as_deref(), Some(want), "{asked}");
        }
        for unknown in ["ubuntu", "ubuntu:latest", "scratch", "", "ubuntu:1", "$X", "node:20"] {
            assert_eq!(name(unknown), None, "{unknown}");
        }
        assert!(distros.ended("centos7", "2026-11-30").is_some_and(|e| e.sure));
        // Debian 12 is mended by its LTS team; Debian 10 is not.
        for mended in ["ubuntu24.04", "debian:12", "rockylinux8"] {
            assert!(distros.ended(mended, "2026-11-30").is_none(), "{mended}");
        }
        assert!(distros.ended("debian10", "2026-11-30").is_some());
    }
}
