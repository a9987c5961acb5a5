//! What a wheel on a package index holds, before it is installed: the facts that `inspect` would give for the file,
//! and only the bytes that they rest on are transferred.

mod built;
mod read;
mod subject;

use std::collections::BTreeMap;
use std::fmt::Write;

pub use self::built::built_of;
pub use self::subject::question;

use crate::catalog::Catalog;
use crate::image::ImageError;
use crate::image::index::{self, Index, IndexError, Opened, Question, Settings};
use crate::image::sources::OpenOptions;
use crate::model::{Arch, Digest, Evidence, EvidenceFile, Form};

/// How wheels are looked at.
#[derive(Clone)]
pub struct WheelOptions {
    pub settings: Settings,
    pub open: OpenOptions,
    /// The most bytes of one wheel that may be transferred.
    pub limit: u64,
    /// As of [`ScanOptions`](super::ScanOptions::catalog).
    pub catalog: &'static Catalog,
}

/// The most bytes of one wheel that are transferred, unless somebody says otherwise.
pub const LIMIT: u64 = 6 << 30;

impl WheelOptions {
    /// With pip's settings; `index_url` counts more than they do.
    pub fn new(index_url: Option<&str>, open: OpenOptions) -> Result<Self, IndexError> {
        Ok(Self { settings: index::settings(index_url)?, open, limit: LIMIT, catalog: Catalog::embedded() })
    }
}

/// How much of the file the index's digest was held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// The whole file was read, and it has the index's digest.
    Digest,
    /// The whole file was read; the index tells no digest.
    Whole,
    /// Only parts were read: the checksums of the members are right, the file's digest cannot be known.
    Members,
}

/// What a wheel holds.
#[derive(Debug, Clone)]
pub struct Checked {
    pub filename: String,
    /// `2.7.0+cu128`.
    pub version: String,
    /// Where it is, without credentials.
    pub url: String,
    /// The files as if the wheel were an image, as `inspect` sees it.
    pub evidence: Evidence,
    /// Its Requires-Dist lines: `nvidia-cublas-cu12==12.8.4.1; …`.
    pub requires: Vec<String>,
    /// The digest that the index tells.
    pub sha256: Option<Digest>,
    pub verified: Verified,
    /// Bytes of content that were transferred.
    pub fetched: u64,
    pub size: u64,
    /// Which interpreter runs the image could not be told; the wheel is for the newest there is.
    pub any_python: bool,
}

/// Why nothing is known of a wheel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotChecked {
    /// There is none that fits the image: an installer would find none either.
    #[error("{why}")]
    NoWheel { why: String },
    /// It could not be looked at.
    #[error("{why}")]
    Unread { why: String },
}

impl From<IndexError> for NotChecked {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::NoWheel { .. } => Self::NoWheel { why: error.to_string() },
            IndexError::Settings { .. } | IndexError::Image(_) => Self::Unread { why: error.to_string() },
        }
    }
}

impl From<ImageError> for NotChecked {
    fn from(error: ImageError) -> Self {
        Self::Unread { why: error.to_string() }
    }
}

/// Finds the wheel that an installer would take, and looks into it. `starts` is told its name and size before its
/// content is transferred.
pub fn check(
    question: &Question,
    options: &WheelOptions,
    starts: &dyn Fn(&str, u64),
) -> Result<Checked, NotChecked> {
    let index = Index::new(question, &options.settings, &options.open)?;
    let chosen = index.choose(question)?;
    let link = &chosen.link;
    let mut reading = read::Reading::new(&link.filename);
    let (size, fetched, verified) = match index.open(&chosen, options.limit)? {
        Opened::Ranges(remote) => {
            starts(&link.filename, remote.size());
            let verified = reading.parts(&remote, link.sha256.as_ref())?;
            (remote.size(), remote.fetched(), verified)
        }
        Opened::Whole(whole) => {
            let size = whole.size();
            starts(&link.filename, size);
            (size, size, reading.whole(whole, size, link.sha256.as_ref())?)
        }
    };
    let (evidence, inside) = reading.finish(size, options.catalog)?;
    // What lies beside the wheel is what installers go by; the wheel's own is the same, where it was read.
    let beside = index.metadata(&chosen).ok().flatten().map(|bytes| read::requires(&bytes));
    Ok(Checked {
        filename: link.filename.clone(),
        version: chosen.name.version.to_string(),
        url: link.url.to_string(),
        evidence,
        requires: beside.or(inside).unwrap_or_default(),
        sha256: link.sha256,
        verified,
        fetched,
        size,
        any_python: question.python.is_none() && chosen.name.pythons.iter().any(|t| t.starts_with("cp")),
    })
}

impl Checked {
    /// Modules that can be loaded, by the code that they hold.
    pub fn archs(&self) -> Archs {
        let mut out = Archs::default();
        for module in self.evidence.files.iter().filter(|f| is_loaded(f)).flat_map(|f| &f.facts.modules) {
            if module.relocatable {
                continue;
            }
            out.modules += module.count;
            let mut kinds: Vec<(Form, Arch)> = module.items.iter().map(|i| (i.item.form, i.item.arch)).collect();
            kinds.sort_unstable();
            kinds.dedup();
            for kind in kinds {
                *out.by_code.entry(kind).or_default() += module.count;
            }
        }
        out
    }

    /// How it was read, for a person.
    pub fn how(&self) -> &'static str {
        match self.verified {
            Verified::Digest => "read whole, its sha256 is the index's",
            Verified::Whole => "read whole, the index tells no sha256",
            Verified::Members => "checked by Range, digest not verified",
        }
    }
}

fn is_loaded(file: &EvidenceFile) -> bool {
    !file.in_archive && file.facts.kind.loadable()
}

/// Modules of a wheel, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Archs {
    pub modules: u64,
    /// Modules that have such code.
    pub by_code: BTreeMap<(Form, Arch), u64>,
}

impl Archs {
    /// `sm_80 sm_90 (331 of 340 modules), sm_90a (9)`; those that most modules have first.
    pub fn text(&self) -> String {
        let mut by_count: BTreeMap<std::cmp::Reverse<u64>, Vec<String>> = BTreeMap::new();
        for ((form, arch), count) in &self.by_code {
            let name = match form {
                Form::Ptx => arch.to_string().replacen("sm_", "compute_", 1),
                _ => arch.to_string(),
            };
            by_count.entry(std::cmp::Reverse(*count)).or_default().push(name);
        }
        if by_count.is_empty() {
            return "no device code".to_owned();
        }
        let mut out = String::new();
        for (place, (count, names)) in by_count.iter().enumerate() {
            let list = names.join(" ");
            let _ = match place {
                0 => write!(out, "{list} ({} of {} modules)", count.0, self.modules),
                _ => write!(out, ", {list} ({})", count.0),
            };
        }
        out
    }
}
