//! A layer's tar put together again, byte for byte, from what the store kept of it.
//!
//! `ID.tar-split.gz` has, line by line, the tar's headers and padding, and in between the names of files whose bytes
//! lie in the layer's folder. The reader of layers then verifies the diff_id as it does for every other source.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use super::super::manifest::{malformed, shown};
use super::beneath::Beneath;
use crate::model::ImagePath;

/// The longest line: the headers of one file, or what pads an archive.
const MAX_LINE: u64 = 16 << 20;

/// How the layer's folder was filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It holds this layer's files alone.
    Diff,
    /// It is the root file system up to this layer, whose links were followed when files were put there.
    Whole,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: u8,
    name: Option<String>,
    /// A name that is not UTF-8, in base64.
    name_raw: Option<String>,
    #[serde(default)]
    size: u64,
    payload: Option<String>,
}

enum Now {
    Between,
    Raw(Vec<u8>, usize),
    File { file: File, left: u64, name: String },
    Done,
}

pub struct TarSplit {
    lines: BufReader<MultiGzDecoder<File>>,
    folder: Beneath,
    kind: Kind,
    place: String,
    now: Now,
}

impl TarSplit {
    /// `place`: the layer, for errors.
    pub fn new(lines: File, folder: Beneath, kind: Kind, place: String) -> Self {
        let lines = BufReader::with_capacity(64 << 10, MultiGzDecoder::new(lines));
        Self { lines, folder, kind, place, now: Now::Between }
    }

    fn wrong(&self, what: impl Into<String>) -> io::Error {
        io::Error::other(malformed(&self.place, what))
    }

    fn next(&mut self) -> io::Result<Now> {
        let mut line = Vec::new();
        let read = (&mut self.lines).take(MAX_LINE).read_until(b'\n', &mut line);
        let n = read.map_err(|e| self.wrong(format!("its tar-split cannot be read: {e}")))?;
        if n == 0 {
            return Ok(Now::Done);
        }
        if n as u64 == MAX_LINE {
            return Err(self.wrong("its tar-split has a line that is too long"));
        }
        let line: Line =
            serde_json::from_slice(&line).map_err(|e| self.wrong(format!("its tar-split cannot be read: {e}")))?;
        let decoded = |text: &str| {
            BASE64_STANDARD.decode(text).map_err(|_| self.wrong("its tar-split has what is no base64"))
        };
        match line.kind {
            2 => Ok(Now::Raw(decoded(line.payload.as_deref().unwrap_or_default())?, 0)),
            1 if line.size == 0 => Ok(Now::Between),
            1 => {
                let name = match (&line.name_raw, line.name) {
                    (Some(raw), _) if !raw.is_empty() => decoded(raw)?,
                    (_, Some(name)) => name.into_bytes(),
                    _ => return Err(self.wrong("its tar-split names no file")),
                };
                self.file(&name, line.size)
            }
            other => Err(self.wrong(format!("its tar-split has an entry of unknown type {other}"))),
        }
    }

    fn file(&self, name: &[u8], size: u64) -> io::Result<Now> {
        let named = shown(&String::from_utf8_lossy(name));
        // A NUL ends a name for the kernel; no tar of a real layer has one.
        if name.contains(&0) || name.split(|&b| b == b'/').any(|part| part == b"..") {
            return Err(self.wrong(format!("its tar-split names a file outside the layer: {named}")));
        }
        let path = ImagePath::new(name);
        let opened = match self.kind {
            Kind::Diff => self.folder.file(&path),
            Kind::Whole => self.folder.file_within(&path),
        };
        let file = opened.map_err(|e| self.wrong(unopened(&named, &e)))?;
        let there = file.metadata()?.len();
        if there != size {
            let what = format!("{named} has {there} bytes, and had {size} when it came: the store was changed");
            return Err(self.wrong(what));
        }
        Ok(Now::File { file, left: size, name: named })
    }
}

/// What is said of a file that cannot be opened.
pub fn unopened(named: &str, e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => format!("{named} is missing from the store; pull the image again"),
        io::ErrorKind::PermissionDenied => {
            format!(
                "{named}: permission denied; try `podman unshare imagelint scan …`, or as the user it belongs to"
            )
        }
        _ => format!("{named} cannot be opened as a file of the layer: {e}"),
    }
}

impl Read for TarSplit {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let n = match &mut self.now {
                Now::Done => return Ok(0),
                Now::Between => 0,
                Now::Raw(bytes, at) => {
                    let n = out.len().min(bytes.len() - *at);
                    out[..n].copy_from_slice(&bytes[*at..*at + n]);
                    *at += n;
                    n
                }
                Now::File { left: 0, .. } => 0,
                Now::File { file, left, name } => {
                    let most = (out.len() as u64).min(*left) as usize;
                    let n = file.read(&mut out[..most])?;
                    if n == 0 {
                        let what = format!("{name} became shorter while it was read");
                        return Err(self.wrong(what));
                    }
                    *left -= n as u64;
                    n
                }
            };
            if n > 0 {
                return Ok(n);
            }
            self.now = self.next()?;
        }
    }
}
