//! One document from a web server.

use ureq::http::Uri;

use super::ImageError;
use super::http::{Get, Hints, Wire, host_of, is_loopback, place_of};
use super::sources::{OpenOptions, shown};

const HINTS: Hints = Hints {
    refused: "does a server listen there?",
    tls: "--ca-file FILE adds an authority",
    limited: "try again later",
};

/// Fetches a document of at most `most` bytes. Without TLS only loopback is spoken to, and what the user named: who can
/// change it on its way decides what it says. `what`: how errors call it.
pub fn fetch(url: &str, most: u64, what: &str, options: &OpenOptions) -> Result<Vec<u8>, ImageError> {
    let malformed = |why: &str| ImageError::Malformed { place: shown(url), what: why.to_owned() };
    let uri: Uri = url.parse().map_err(|_| malformed("not a valid address"))?;
    let host = uri.host().filter(|h| !h.is_empty()).ok_or_else(|| malformed("an address without a host"))?;
    if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
        return Err(ImageError::Malformed {
            place: format!("{what} on {}", shown(host)),
            what: "a name and password in an address are not used; put it where none is needed".to_owned(),
        });
    }
    let place = place_of(&uri);
    if uri.scheme_str() != Some("https") && !is_loopback(host_of(host)) && !options.is_insecure(&place) {
        return Err(malformed("is not https; --insecure-registry HOST lets it be spoken to without TLS"));
    }
    let wire = Wire::new(&place, &HINTS, options, None);
    let get = Get { what, ..Get::default() };
    let document = wire.document(what, most, || wire.get(what, || wire.follow(&uri, get)))?;
    match document.status {
        200 => Ok(document.bytes),
        404 => Err(ImageError::NotFound { reference: shown(url), hint: format!("is that where {what} is?") }),
        status => Err(wire.error(format!("{what}: HTTP {status}"), "")),
    }
}
