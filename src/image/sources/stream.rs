//! An archive that cannot be read twice: standard input, or a compressed archive of an image.
//!
//! One pass, no copy: manifests come before or behind the layers they name, so every member that may be a layer
//! is read as it passes, and at the end the manifest picks from what was seen.

use std::collections::HashMap;
use std::io::{self, Cursor, Read};

use super::super::blob::decompress;
use super::super::{BlobSink, Content, Image, ImageError, Layer, Streamed};
use super::archive::{MAX_HOPS, MAX_MEMBERS, MAX_NAMES};
use super::files::{Files, ReadDigests, Stored, io_error};
use super::headers::{self, CLASSIFY, Holds, Kind};
use super::manifest::{MAX_JSON, malformed, shown};
use super::reference::Selector;
use super::{Handle, open_files};
use crate::model::{ConfigFacts, ImagePath};
use crate::stream::{Body, BodyReader, Part, Plain, Stream};

/// What standard input is called.
pub const STANDARD_INPUT: &str = "standard input";

/// The most bytes of manifests and configs that are kept.
const MAX_KEPT: usize = 64 << 20;

/// The most bytes behind the end of an archive that are read for its checksum and the writer's sake.
const MAX_TAIL: u64 = 64 << 20;

enum Slot {
    Json(Vec<u8>),
    Blob(Streamed),
    Link(ImagePath),
}

struct Seen {
    place: String,
    members: HashMap<ImagePath, Slot>,
}

impl Seen {
    fn find(&self, name: &str) -> Option<&Slot> {
        let mut name = ImagePath::new(name);
        for _ in 0..=MAX_HOPS {
            match self.members.get(&name)? {
                Slot::Link(target) => name = target.clone(),
                slot => return Some(slot),
            }
        }
        None
    }
}

impl Files for Seen {
    fn place(&self) -> &str {
        &self.place
    }

    fn small(&self, name: &str) -> Result<Option<Vec<u8>>, ImageError> {
        match self.find(name) {
            Some(Slot::Json(bytes)) => Ok(Some(bytes.clone())),
            Some(Slot::Blob(_)) => {
                Err(malformed(&self.place, format!("{} is no JSON of at most 4 MiB", shown(name))))
            }
            _ => Ok(None),
        }
    }

    fn layer(&self, name: &str) -> Result<Option<Stored>, ImageError> {
        let no_tar = || malformed(&self.place, format!("layer {} is no tar", shown(name)));
        match self.find(name) {
            Some(Slot::Blob(blob)) => Ok(Some(Stored {
                content: Content::Streamed(blob.number.ok_or_else(no_tar)?),
                size: blob.size,
                read: Some(ReadDigests { digest: blob.digest, diff_id: blob.diff_id }),
            })),
            Some(Slot::Json(_)) => Err(no_tar()),
            _ => Ok(None),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// The first bytes of a stream, and what a tar in it holds.
pub fn peek(reader: &mut dyn Read) -> io::Result<(Vec<u8>, Holds)> {
    let mut head = Vec::new();
    reader.take(CLASSIFY as u64).read_to_end(&mut head)?;
    let holds = headers::classify(&unpacked(&head));
    Ok((head, holds))
}

/// The first bytes, decompressed as far as they go.
fn unpacked(head: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(reader) = decompress(Box::new(head)) {
        // The head is cut off: what came before the error is what counts.
        let _ = reader.take(CLASSIFY as u64).read_to_end(&mut out);
    }
    out
}

/// Compression that no image has but some archives do, by magic.
pub fn foreign_packing(head: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 4] =
        [(b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2"), (b"\x04\x22\x4d\x18", "lz4"), (b"7z\xbc\xaf", "7-Zip")];
    known.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| *name)
}

/// Reads a stream to its end: the archive of an image, or a root file system, compressed or not.
pub fn open(
    mut reader: Box<dyn Read + Send + '_>,
    selector: &Selector,
    reference: String,
    place: &str,
    sink: &mut dyn BlobSink,
) -> Result<Handle, ImageError> {
    let (head, holds) = peek(&mut reader).map_err(|e| io_error(place, e))?;
    let (empty, foreign) = (head.is_empty(), foreign_packing(&head));
    let mut whole = Cursor::new(head).chain(reader);
    match holds {
        Holds::NoTar if empty => Err(malformed(place, "no bytes; did the command before the pipe fail?")),
        Holds::NoTar => {
            let what = match foreign {
                Some(name) => format!("compressed with {name}, which is not supported; unpack it first"),
                None => "neither the archive of an image nor a root file system's tar".to_owned(),
            };
            Err(malformed(place, what))
        }
        Holds::Files => {
            let streamed = sink.layer(&mut whole).map_err(|e| io_error(place, e))?;
            let Some(number) = streamed.number else {
                return Err(malformed(place, "the tar cannot be read"));
            };
            Ok(Handle::new(reference, Vec::new(), move |_| Ok(root_file_system(&streamed, number))))
        }
        Holds::Image => {
            let reader = decompress(Box::new(whole)).map_err(|e| io_error(place, e))?;
            open_files(pass(reader, place, sink)?, selector, reference)
        }
    }
}

fn root_file_system(streamed: &Streamed, number: usize) -> Image {
    let layer = Layer {
        digest: None,
        diff_id: None,
        size: Some(streamed.size),
        created_by: None,
        content: Content::Streamed(number),
    };
    Image { digest: None, platform: None, config: ConfigFacts::default(), layers: vec![layer] }
}

/// Gives all blobs of an archive to the sink and keeps the manifests.
fn pass(reader: Box<dyn Read + Send + '_>, place: &str, sink: &mut dyn BlobSink) -> Result<Seen, ImageError> {
    let failed = |e| io_error(place, e);
    let mut body = Stream::new(Plain(reader), None);
    let mut seen = Seen { place: place.to_owned(), members: HashMap::new() };
    let (mut kept, mut names) = (0, 0);
    while let Some(member) = headers::next(&mut body).map_err(failed)? {
        names += member.name.as_bytes().len() + member.link.len();
        if seen.members.len() >= MAX_MEMBERS || names > MAX_NAMES {
            return Err(malformed(place, "too many members for the archive of an image"));
        }
        let mut part = Part::new(&mut body, member.size);
        if member.kind == Kind::File {
            let slot = slot(&mut part, member.size, sink)
                .map_err(|e| io_error(&format!("{place}: {}", member.name), e))?;
            if let Slot::Json(bytes) = &slot {
                kept += bytes.len();
            }
            if kept > MAX_KEPT {
                let what = "the manifests in the archive".to_owned();
                return Err(ImageError::TooLarge { place: place.to_owned(), what, limit: MAX_KEPT as u64 });
            }
            seen.members.insert(member.name.clone(), slot);
        } else if let Some(target) = member.target() {
            seen.members.insert(member.name.clone(), Slot::Link(target));
        }
        if part.finish().map_err(failed)? > 0 {
            return Err(malformed(place, format!("cut short in the middle of {}", member.name)));
        }
        body.skip(member.padding()).map_err(failed)?;
    }
    io::copy(&mut BodyReader(&mut body).take(MAX_TAIL), &mut io::sink()).map_err(failed)?;
    Ok(seen)
}

fn slot(part: &mut Part<'_>, size: u64, sink: &mut dyn BlobSink) -> io::Result<Slot> {
    if size > MAX_JSON {
        return sink.layer(&mut BodyReader(part)).map(Slot::Blob);
    }
    let mut bytes = Vec::with_capacity(size as usize);
    BodyReader(part).read_to_end(&mut bytes)?;
    if is_json(&bytes) {
        return Ok(Slot::Json(bytes));
    }
    sink.layer(&mut &bytes[..]).map(Slot::Blob)
}

/// Whether bytes look like a JSON document; a tar has NULs and binary formats are no UTF-8.
fn is_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first().is_some_and(|b| b"{[".contains(b))
        && !bytes.contains(&0)
        && std::str::from_utf8(bytes).is_ok()
}
