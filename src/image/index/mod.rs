//! Package indexes (PEP 503, PEP 691): which wheel of a package an installer would take for an image, and its bytes,
//! by HTTP ranges. Nothing is downloaded whole and nothing is installed.

mod address;
mod choose;
mod page;
mod remote;
mod settings;
mod tags;
mod wheel_name;

use std::fmt;
use std::path::Path;

pub use self::choose::Chosen;
pub use self::page::Link;
pub use self::remote::{Hashed, Opened, Ranged, Remote, Whole};
pub use self::settings::Settings;
pub use self::tags::Python;
pub use self::wheel_name::WheelName;

use self::address::Address;
use super::ImageError;
use super::http::{Get, Hints, Wire};
use super::sources::{OpenOptions, shown};
use crate::model::{Digest, Libc, Platform, package_name};

/// The largest page of an index.
const MAX_PAGE: u64 = 64 << 20;

/// The largest metadata of a wheel.
pub const MAX_METADATA: u64 = 4 << 20;

const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

const HINTS: Hints = Hints {
    refused: "does a package index listen there?",
    tls: "public authorities are trusted, or those that PIP_CERT, pip.conf or SSL_CERT_FILE name",
    limited: "try again later",
};

/// Which wheel is asked for, and for what.
#[derive(Debug, Clone)]
pub struct Question {
    /// As the package is called, `torch`.
    pub package: String,
    /// `==2.7.0`, `>=0.48`; empty: the newest.
    pub specifier: String,
    /// The name and address of the index that it must come from, (`cu128`, `https://…`); absent: pip's own.
    pub index: Option<(String, String)>,
    /// Absent: not known, and any will do.
    pub python: Option<Python>,
    pub platform: Platform,
    pub libc: Option<Libc>,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", shown(&self.package), shown(&self.specifier))
    }
}

/// Why there is no wheel to look at.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The index was read, and has none that fits: an installer would find none either.
    #[error("{index} has {what}")]
    NoWheel { index: String, what: String },
    /// pip's settings or the index's address cannot be used.
    #[error("{place}: {what}")]
    Settings { place: String, what: String },
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// An index, ready to be asked.
pub struct Index {
    address: Address,
    wire: Wire,
    settings: Settings,
    open: OpenOptions,
}

impl Index {
    /// The index that a question names, else the one that pip's settings name.
    pub fn new(question: &Question, settings: &Settings, open: &OpenOptions) -> Result<Self, IndexError> {
        let (text, place) = match &question.index {
            Some((name, url)) => (url.as_str(), format!("index {}", shown(name))),
            None => (settings.url.as_str(), settings.told_by.clone()),
        };
        let wrong = |what: String| IndexError::Settings { place: place.clone(), what };
        let address = Address::parse(text).map_err(wrong)?;
        address.may_be_spoken_to(open).map_err(wrong)?;
        let wire = Wire::new(address.host(), &HINTS, open, settings.roots.as_ref());
        Ok(Self { address, wire, settings: settings.clone(), open: open.clone() })
    }

    /// Its address without credentials.
    pub fn shown(&self) -> &str {
        self.address.shown()
    }

    /// The file that an installer would take.
    pub fn choose(&self, question: &Question) -> Result<Chosen, IndexError> {
        let links = self.page(question)?;
        choose::choose(question, links).map_err(|what| IndexError::NoWheel { index: self.shown().to_owned(), what })
    }

    fn page(&self, question: &Question) -> Result<Vec<Link>, IndexError> {
        let name = package_name(&question.package);
        let missing = |what: String| IndexError::NoWheel { index: self.shown().to_owned(), what };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(missing(format!("no package {}, which is no valid name", shown(&question.package))));
        }
        let url = self.address.below(&name);
        let what = format!("the page of {name}");
        let authorization = self.address.authorization_for(&url);
        let get = Get { accept: Some(ACCEPT), authorization, what: &what, ..Get::default() };
        let document =
            self.wire.document(&what, MAX_PAGE, || self.wire.get(&what, || self.wire.follow(&url, get)))?;
        match document.status {
            200 => {}
            404 => return Err(missing(format!("no package {name}"))),
            status => return Err(refused(&self.wire, &what, status).into()),
        }
        page::read(&document.bytes, document.content_type.as_deref(), &document.at)
            .map_err(|why| self.wire.error(format!("{what}: {why}"), "is it a package index?").into())
    }

    /// A chosen wheel, ready to be read by ranges.
    pub fn open(&self, chosen: &Chosen, limit: u64) -> Result<Opened, ImageError> {
        let authorization = self.address.authorization_for(&chosen.link.url).map(str::to_owned);
        let wire = Wire::new(&address::host_of(&chosen.link.url), &HINTS, &self.open, self.settings.roots.as_ref());
        Remote::open(wire, &chosen.link, authorization, limit)
    }

    /// The wheel's metadata where the index has it beside the wheel (PEP 658); `None`: it has not.
    pub fn metadata(&self, chosen: &Chosen) -> Result<Option<Vec<u8>>, ImageError> {
        let Some(digest) = &chosen.link.metadata else { return Ok(None) };
        let Some(url) = address::with_suffix(&chosen.link.url, ".metadata") else { return Ok(None) };
        let wire = Wire::new(&address::host_of(&url), &HINTS, &self.open, self.settings.roots.as_ref());
        let what = format!("the metadata of {}", shown(&chosen.link.filename));
        let get = Get { authorization: self.address.authorization_for(&url), what: &what, ..Get::default() };
        let document = wire.document(&what, MAX_METADATA, || wire.get(&what, || wire.follow(&url, get)))?;
        if document.status != 200 {
            return Err(refused(&wire, &what, document.status));
        }
        let actual = Digest::of(&document.bytes);
        match digest {
            Some(expected) if *expected != actual => {
                Err(ImageError::DigestMismatch { place: what, expected: *expected, actual })
            }
            _ => Ok(Some(document.bytes)),
        }
    }
}

/// Words for an answer that is no content.
fn refused(wire: &Wire, what: &str, status: u16) -> ImageError {
    match status {
        401 | 403 => wire.error(
            format!("{what}: access denied (HTTP {status})"),
            "credentials go into the index's address, in PIP_INDEX_URL or pip.conf",
        ),
        _ => wire.error(format!("{what}: HTTP {status}"), ""),
    }
}

/// Where pip's settings stand on this machine.
pub fn settings(flag: Option<&str>) -> Result<Settings, IndexError> {
    settings::find(flag, &|name| std::env::var_os(name), Path::new("/etc"))
}
