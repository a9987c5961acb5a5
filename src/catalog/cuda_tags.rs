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

    /// The live tag nearest to one that is not: of the same flavour, on the same distribution if that has one, with
    /// the nearest CUDA not below it, else the nearest below. `None` where the tag is not understood.
    pub fn nearest(&self, tag: &str) -> Option<NearTag> {
        let read = words(tag);
        let cuda = read.number.as_deref()?;
        let wanted = names::numbers(cuda);
        let (_, flavour, distro) = parts(tag).unwrap_or((cuda, "base", read.distro.as_deref().unwrap_or_default()));
        let flavour = plain(flavour);
        let mut live: Vec<(&TagRow, &str, &str)> = Vec::new();
        for row in self.rows.iter().filter(|r| r.state == TagState::Live) {
            for f in row.flavours.iter().filter(|f| plain(f) == flavour) {
                live.extend(row.distros.iter().filter(|d| !d.is_empty()).map(|d| (row, f.as_str(), d.as_str())));
            }
        }
        let rank = |(row, _, on): &(&TagRow, &str, &str)| {
            let version = names::numbers(&row.cuda);
            let (major, minor) = (version.first() != wanted.first(), version.get(1) != wanted.get(1));
            let below = version < wanted;
            // Ahead of the wanted version the lowest is best, behind it the highest; of one minor the newest patch.
            let step = |v: &[u64]| v.iter().take(2).copied().collect::<Vec<_>>();
            let far = if below {
                std::cmp::Reverse(step(&version)).0.iter().map(|n| u64::MAX - n).collect()
            } else {
                step(&version)
            };
            (
                major,
                minor,
                *on != distro,
                family(on) != family(distro),
                below,
                far,
                std::cmp::Reverse(version),
                newest_first(on),
            )
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

fn family(distro: &str) -> &str {
    distro.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn newest_first(distro: &str) -> Vec<u64> {
    let number = distro.trim_start_matches(|c: char| !c.is_ascii_digit());
    names::numbers(number).into_iter().map(|n| u64::MAX - n).collect()
}
