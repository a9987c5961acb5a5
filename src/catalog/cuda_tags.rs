//! Which tags of `nvidia/cuda` there are, were, and never were. Table: `cuda_tags.toml`, true on its day.
//!
//! Tags are deleted, so that a `FROM` that built last year fails today. A tag that is in no row is judged only where
//! the rows list all tags of its CUDA version; else it is not known.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Value;

use super::tag_words::words;
use super::{CatalogError, Tables, Trust, names};
use crate::model::CudaVersion;

pub(super) const FILE: &str = "cuda_tags.toml";

/// What has become of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TagState {
    /// Listed as supported.
    Live,
    /// No more mended, but there: it may be deleted any day.
    Outdated,
    /// Was there and has been deleted.
    Removed,
    /// No such tag was ever published.
    Never,
    /// The rows do not tell.
    Unknown,
}

/// A tag's state and how it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagFact {
    pub state: TagState,
    pub because: String,
    /// By a list that was read; else no error may rest on it.
    pub sure: bool,
}

/// A tag to take instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearTag {
    pub tag: String,
    pub because: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct TagRow {
    /// As tags write it: "12.4.1", "10.2".
    pub cuda: String,
    pub state: TagState,
    /// What stands between the version and the distribution: "cudnn-devel", "base".
    pub flavours: Vec<String>,
    /// "" for tags that end with the flavour: `10.2-devel`.
    pub distros: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

/// CUDA versions of which the rows list every tag, or of which none was published.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ReleaseRow {
    pub cuda: String,
    /// All tags are listed: what is not, never was.
    #[serde(default)]
    pub complete: bool,
    /// No image of this version was published.
    #[serde(default)]
    pub never: bool,
    #[serde(flatten)]
    trust: Trust,
}

/// All tags.
#[derive(Debug)]
pub struct CudaTags {
    as_of: String,
    rows: Vec<TagRow>,
    releases: Vec<ReleaseRow>,
}

impl CudaTags {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let as_of = tables.get(FILE)?.get("as_of").and_then(Value::as_str).map(str::to_owned);
        let as_of = as_of.ok_or_else(|| CatalogError::Row {
            file: FILE.to_owned(),
            row: "as_of".to_owned(),
            what: "no date".to_owned(),
        })?;
        Ok(Self { as_of, rows: tables.rows(FILE, "tag")?, releases: tables.rows(FILE, "release")? })
    }

    /// The day on which the lists were true, `YYYY-MM-DD`.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// What has become of a tag of `nvidia/cuda`.
    pub fn state(&self, tag: &str) -> TagFact {
        let fact = |state, trust: &Trust, row: &str| TagFact {
            state,
            because: format!("{} (as of {})", trust.because(FILE, row), self.as_of),
            sure: trust.is_sure(),
        };
        let unknown = || TagFact {
            state: TagState::Unknown,
            because: format!("{FILE} has no row of it (as of {})", self.as_of),
            sure: false,
        };
        let Some((cuda, flavour, distro)) = parts(tag) else {
            // `latest`, or no tag at all, which asks for it.
            let latest = |r: &&ReleaseRow| r.cuda == "latest" && tag == "latest";
            return match self.releases.iter().find(latest) {
                Some(row) => fact(TagState::Removed, &row.trust, "latest"),
                None => unknown(),
            };
        };
        let same = |r: &&TagRow| {
            r.cuda == cuda && r.flavours.iter().any(|f| f == flavour) && r.distros.iter().any(|d| d == distro)
        };
        if let Some(row) = self.rows.iter().find(same) {
            return fact(row.state, &row.trust, tag);
        }
        match self.releases.iter().find(|r| r.cuda == cuda) {
            Some(row) if row.complete || row.never => fact(TagState::Never, &row.trust, cuda),
            _ => unknown(),
        }
    }

    /// The newest patch of a CUDA minor that has a live tag: "12.4.1" for 12.4.
    pub fn newest_patch(&self, cuda: CudaVersion) -> Option<&str> {
        let line = |r: &&TagRow| r.state == TagState::Live && r.cuda.parse() == Ok(cuda);
        let rows = self.rows.iter().filter(line);
        rows.max_by_key(|r| names::numbers(&r.cuda)).map(|r| r.cuda.as_str())
    }

    /// The live tag nearest to one that is not: of the same flavour; of the same CUDA minor if it has one, else of the
    /// nearest minor above, else of the newest minor of the nearest other major; on the same distribution if that has
    /// one. Only tags that a list names are proposed. `None` where the tag is not understood.
    pub fn nearest(&self, tag: &str) -> Option<NearTag> {
        let read = words(tag);
        let cuda = read.number.as_deref()?;
        let (_, flavour, distro) = parts(tag).unwrap_or((cuda, "base", read.distro.as_deref().unwrap_or_default()));
        let flavour = plain(flavour);
        let mut live: Vec<(&TagRow, &str, &str)> = Vec::new();
        for row in self.rows.iter().filter(|r| r.state == TagState::Live && r.trust.is_sure()) {
            for f in row.flavours.iter().filter(|f| plain(f) == flavour) {
                live.extend(row.distros.iter().filter(|d| !d.is_empty()).map(|d| (row, f.as_str(), d.as_str())));
            }
        }
        let rank = |(row, _, on): &(&TagRow, &str, &str)| {
            (far(&row.cuda, cuda), *on != distro, family(on) != family(distro), newest_first(on))
        };
        let (row, flavour, distro) = live.into_iter().min_by_key(rank)?;
        Some(NearTag {
            tag: format!("{}-{flavour}-{distro}", row.cuda),
            because: format!("{} (as of {})", row.trust.because(FILE, &row.cuda), self.as_of),
        })
    }

    pub(super) fn rows(&self) -> &[TagRow] {
        &self.rows
    }

    /// CUDA versions, tags and states, for whoever wants to count them.
    pub fn versions(&self) -> BTreeSet<&str> {
        self.rows.iter().map(|r| r.cuda.as_str()).collect()
    }
}

/// `12.4.1-cudnn-devel-ubuntu22.04` in version, flavour and distribution.
fn parts(tag: &str) -> Option<(&str, &str, &str)> {
    let (cuda, rest) = tag.split_once('-')?;
    if !cuda.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match rest.rsplit_once('-') {
        Some((flavour, distro)) if super::tag_words::distro(distro).is_some() => Some((cuda, flavour, distro)),
        _ if super::tag_words::distro(rest).is_some() => Some((cuda, "", rest)),
        _ => Some((cuda, rest, "")),
    }
}

/// A flavour without cuDNN's major: cudnn8-devel and cudnn-devel are one.
fn plain(flavour: &str) -> String {
    flavour.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// How far a CUDA version is from a wanted one, nearest least: majors above before those below; within another major
/// its newest minor; within the same the next above, then the next below; of a minor its newest patch.
fn far(version: &str, wanted: &str) -> (u64, bool, u64, u64) {
    let part = |text: &str, at: usize| names::numbers(text).get(at).copied().unwrap_or(0);
    let (major, minor, patch) = (part(version, 0), part(version, 1), part(version, 2));
    let (old_major, old_minor) = (part(wanted, 0), part(wanted, 1));
    let below = if major == old_major { minor < old_minor } else { major < old_major };
    let step = if major == old_major { minor.abs_diff(old_minor) } else { u64::MAX - minor };
    (major.abs_diff(old_major), below, step, u64::MAX - patch)
}

fn family(distro: &str) -> &str {
    distro.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn newest_first(distro: &str) -> Vec<u64> {
    let number = distro.trim_start_matches(|c: char| !c.is_ascii_digit());
    names::numbers(number).into_iter().map(|n| u64::MAX - n).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    #[test]
    fn what_became_of_tags() {
        let tags = Catalog::embedded().cuda_tags();
        for (tag, state, sure) in [
            ("12.4.1-cudnn-devel-ubuntu22.04", TagState::Live, true),
            ("12.6.3-base-amzn2023", TagState::Live, true),
            ("12.4.0-devel-ubuntu22.04", TagState::Outdated, true),
            ("11.0.3-cudnn8-devel-ubuntu16.04", TagState::Outdated, true),
            ("10.2-devel-ubuntu18.04", TagState::Removed, true),
            ("10.2-devel", TagState::Removed, true),
            ("11.0-base-ubuntu20.04", TagState::Removed, true),
            ("11.7.0-runtime-ubuntu22.04", TagState::Removed, true),
            ("11.6.1-devel-ubuntu18.04", TagState::Removed, true),
            ("latest", TagState::Removed, true),
            // cuDNN came with 12.4.1.
            ("12.4.0-cudnn-devel-ubuntu22.04", TagState::Never, true),
            ("12.4.1-cudnn8-devel-ubuntu22.04", TagState::Never, true),
            ("12.4.1-devel-ubuntu24.04", TagState::Never, true),
            ("12.7.0-devel-ubuntu22.04", TagState::Never, true),
            ("12.4-devel-ubuntu22.04", TagState::Never, true),
            ("13.2.1-cudnn-devel-ubuntu24.04", TagState::Live, true),
            ("13.2.1-runtime-ubuntu24.04", TagState::Live, false),
            ("13.2.1-runtime-ubi9", TagState::Unknown, false),
            ("14.0.0-devel-ubuntu26.04", TagState::Unknown, false),
            ("", TagState::Unknown, false),
            ("-", TagState::Unknown, false),
            ("devel", TagState::Unknown, false),
        ] {
            let fact = tags.state(tag);
            assert_eq!((fact.state, fact.sure), (state, sure), "{tag}: {}", fact.because);
        }
        assert!(tags.state("10.2-devel").because.contains("as of 2025-12-15"));
    }

    #[test]
    fn tags_to_take_instead() {
        let tags = Catalog::embedded().cuda_tags();
        let near = |tag: &str| tags.nearest(tag).map(|n| n.tag);
        for (tag, want) in [
            ("12.4.0-devel-ubuntu22.04", "12.4.1-devel-ubuntu22.04"),
            ("12.4-devel-ubuntu22.04", "12.4.1-devel-ubuntu22.04"),
            ("12.4.0-cudnn8-devel-ubuntu22.04", "12.4.1-cudnn-devel-ubuntu22.04"),
            ("12.7.0-base-ubuntu24.04", "12.8.1-base-ubuntu24.04"),
            ("11.3.1-cudnn8-devel-ubuntu18.04", "11.4.3-cudnn8-devel-ubuntu18.04"),
            ("11.3.1-cudnn8-devel-ubuntu16.04", "11.4.3-cudnn8-devel-ubuntu20.04"),
            ("10.2-devel-ubuntu18.04", "11.8.0-devel-ubuntu18.04"),
            ("10.2-devel", "11.8.0-devel-ubuntu22.04"),
            ("10.0-cudnn7-devel-centos7", "11.8.0-cudnn8-devel-centos7"),
            ("13.9.0-base-ubuntu24.04", "13.1.0-base-ubuntu24.04"),
        ] {
            assert_eq!(near(tag).as_deref(), Some(want), "{tag}");
            assert_eq!(tags.state(want).state, TagState::Live);
        }
        assert_eq!(near("latest"), None);
        assert_eq!(near("12.4.1-nonsense-ubuntu22.04"), None);
        assert_eq!(tags.newest_patch(CudaVersion::new(12, 4)), Some("12.4.1"));
        assert_eq!(tags.newest_patch(CudaVersion::new(10, 2)), None);
    }
}
