//! Zip archives (wheels, jars) read front to back in one pass, as they flow by inside a layer.
//!
//! Readers that can seek believe the central directory at the end; this one meets the local headers first. So
//! both are read and compared, and every disagreement is told: a member that only one of them names is how an
//! archive hides something from a scanner.

mod central;
mod header;
pub mod listed;
mod member;

use std::io;

use crate::model::{GapEffect, ImagePath};
use crate::stream::Body;

use central::Directory;
use header::{Local, Sizes};

/// Upper bounds on what an archive may ask for.
#[derive(Debug, Clone)]
pub struct ZipLimits {
    pub entries: u64,
    /// Bytes of one name.
    pub name: usize,
    /// Unpacked bytes of all members together.
    pub unpacked: u64,
    /// Unpacked bytes per stored byte of a member, once it has unpacked to more than `ratio_from`.
    pub ratio: u64,
    pub ratio_from: u64,
    /// Bytes before the first member (a self-extracting stub).
    pub prefix: usize,
    /// Problems kept; the rest are counted.
    pub problems: usize,
}

impl Default for ZipLimits {
    fn default() -> Self {
        Self {
            entries: 200_000,
            name: 4 << 10,
            unpacked: 256 << 30,
            ratio: 1000,
            ratio_from: 1 << 30,
            prefix: 64 << 10,
            problems: 64,
        }
    }
}

/// Something wrong that did not stop the reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipProblem {
    /// Within the archive.
    pub offset: u64,
    /// The member concerned, where there is one.
    pub member: Option<ImagePath>,
    pub what: String,
    /// `File`: content was not read or cannot be trusted; `None`: merely odd.
    pub effect: GapEffect,
}

/// What an archive held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZipSummary {
    /// Local headers seen, directories included.
    pub entries: u64,
    pub unpacked: u64,
    pub problems: Vec<ZipProblem>,
    /// Problems beyond [`ZipLimits::problems`].
    pub more_problems: u64,
}

/// Why an archive could not be read to its end.
#[derive(Debug, thiserror::Error)]
#[error("zip: {what} at offset {offset}")]
pub struct ZipError {
    /// Within the archive.
    pub offset: u64,
    pub what: String,
    /// What was read before, its problems included.
    pub before: Box<ZipSummary>,
    #[source]
    pub source: Option<io::Error>,
}

/// Takes one member: its normalised path, its declared unpacked size where known, its content.
pub type Visit<'a> = dyn FnMut(ImagePath, Option<u64>, &mut dyn Body) -> io::Result<()> + 'a;

/// Whether these first bytes (at least 4) look like a zip archive.
pub fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// Reads an archive from the body's position to its end, handing every regular member to `visit`.
///
/// A member that cannot be unpacked (encrypted, an unknown method, damage) is a problem, and the walk goes on
/// where its end is known. An error of `visit` that is not the member's own damage stops the walk.
pub fn walk(body: &mut dyn Body, limits: &ZipLimits, visit: &mut Visit<'_>) -> Result<ZipSummary, ZipError> {
    let base = body.position();
    let mut walker = Walker { body, base, limits, summary: ZipSummary::default(), directory: Directory::default() };
    match walker.run(visit) {
        Ok(()) => Ok(walker.summary),
        Err(stop) => Err(ZipError {
            offset: stop.offset,
            what: stop.what,
            before: Box::new(walker.summary),
            source: stop.source,
        }),
    }
}

/// An end of the walk.
struct Stop {
    offset: u64,
    what: String,
    source: Option<io::Error>,
}

struct Walker<'a> {
    body: &'a mut dyn Body,
    base: u64,
    limits: &'a ZipLimits,
    summary: ZipSummary,
    directory: Directory,
}

impl Walker<'_> {
    fn at(&self) -> u64 {
        self.body.position() - self.base
    }

    fn stop(&self, what: impl Into<String>) -> Stop {
        Stop { offset: self.at(), what: what.into(), source: None }
    }

    fn problem(&mut self, offset: u64, member: Option<&ImagePath>, effect: GapEffect, what: impl Into<String>) {
        if self.summary.problems.len() < self.limits.problems {
            let what = what.into();
            self.summary.problems.push(ZipProblem { offset, member: member.cloned(), what, effect });
        } else {
            self.summary.more_problems += 1;
        }
    }

    /// At least `min` bytes ahead, or a located truncation.
    fn need(&mut self, min: usize, what: &str) -> Result<&[u8], Stop> {
        let offset = self.at();
        match self.body.window(min) {
            Ok(window) if window.len() >= min => Ok(window),
            Ok(_) => Err(Stop { offset, what: format!("cut off in {what}"), source: None }),
            Err(e) => Err(Stop { offset, what: format!("{e} in {what}"), source: Some(e) }),
        }
    }

    /// Moves past `n` bytes, which must be there.
    fn pass(&mut self, n: u64, what: &str) -> Result<(), Stop> {
        let offset = self.at();
        match self.body.skip(n) {
            Ok(done) if done == n => Ok(()),
            Ok(_) => Err(Stop { offset: self.at(), what: format!("cut off in {what}"), source: None }),
            Err(e) => Err(Stop { offset, what: format!("{e} in {what}"), source: Some(e) }),
        }
    }

    fn run(&mut self, visit: &mut Visit<'_>) -> Result<(), Stop> {
        self.skip_prefix()?;
        loop {
            let signature = header::u32_at(self.need(4, "a header")?, 0);
            match signature {
                header::LOCAL => self.member(visit)?,
                header::EXTRA_DATA => {
                    let length = header::u32_at(self.need(8, "the extra data record")?, 4);
                    self.pass(8 + u64::from(length), "the extra data record")?;
                }
                header::CENTRAL | header::END | header::END64 => return central::read(self),
                other => {
                    return Err(self.stop(format!("no zip header but 0x{other:08x}")));
                }
            }
        }
    }

    /// Moves to the first header; a stub before it is allowed.
    fn skip_prefix(&mut self) -> Result<(), Stop> {
        let limit = self.limits.prefix.saturating_add(4).min(crate::stream::MAX_WINDOW);
        let window = self.body.window(4);
        if matches!(window, Ok(w) if is_zip(w)) {
            return Ok(());
        }
        let offset = self.at();
        let window = match self.body.window(limit) {
            Ok(window) => &window[..window.len().min(limit)],
            Err(e) => return Err(Stop { offset, what: e.to_string(), source: Some(e) }),
        };
        let Some(prefix) = memchr::memmem::find(window, b"PK\x03\x04") else {
            return Err(self.stop("not a zip archive"));
        };
        self.body.consume(prefix);
        self.directory.prefix = prefix as u64;
        Ok(())
    }

    /// One local header and its data.
    fn member(&mut self, visit: &mut Visit<'_>) -> Result<(), Stop> {
        let offset = self.at();
        let local = self.local_header(offset)?;
        self.summary.entries += 1;
        if self.summary.entries > self.limits.entries {
            return Err(self.stop(format!("more than {} members", self.limits.entries)));
        }
        let seen = self.unpack(&local, offset, visit)?;
        self.directory.saw(offset, &local, seen);
        Ok(())
    }

    fn local_header(&mut self, offset: u64) -> Result<Local, Stop> {
        let fixed = self.need(header::LOCAL_LEN, "a member's header")?;
        let whole = header::LOCAL_LEN + header::variable_len(fixed);
        let limit = self.limits.name;
        let window = self.need(whole, "a member's header")?;
        let (local, complaint) = Local::parse(&window[..whole], limit);
        self.body.consume(whole);
        if let Some(complaint) = complaint {
            self.problem(offset, Some(&local.path), GapEffect::None, complaint);
        }
        Ok(local)
    }

    /// Hands the member's content out, moves to its end and returns its true CRC and sizes, where known.
    fn unpack(&mut self, local: &Local, offset: u64, visit: &mut Visit<'_>) -> Result<Option<Sizes>, Stop> {
        let refused = if local.encrypted {
            Some("encrypted".to_owned())
        } else if local.oversized_name {
            Some(format!("its name is longer than {} bytes", self.limits.name))
        } else if !matches!(local.method, header::STORED | header::DEFLATED) {
            Some(format!("packed by method {}, which is not supported", local.method))
        } else {
            None
        };
        if let Some(why) = refused {
            self.problem(offset, Some(&local.path), GapEffect::File, format!("not read: {why}"));
            let Some(packed) = local.packed() else {
                return Err(self.stop(format!("a member that is {why} and whose end is unknown")));
            };
            self.pass(packed, "a member")?;
            if local.descriptor {
                self.descriptor(local, offset, None)?;
            }
            return Ok(None);
        }
        let empty = local.packed().is_none() && self.empty_descriptor_follows()?;
        if local.method == header::STORED && local.packed().is_none() && !empty {
            return Err(self.stop("a stored member whose size is told only after it"));
        }
        let out = member::read(self, local, empty, offset, visit)?;
        let Some(actual) = out else {
            // Damaged; its end was known, so that the walk goes on.
            if local.descriptor {
                self.descriptor(local, offset, None)?;
            }
            return Ok(None);
        };
        self.summary.unpacked = self.summary.unpacked.saturating_add(actual.unpacked);
        let told = if local.descriptor { self.descriptor(local, offset, Some(actual))? } else { local.sizes };
        if let Some(told) = told {
            if told.crc != actual.crc {
                let what = format!("CRC mismatch: 0x{:08x} told, 0x{:08x} found", told.crc, actual.crc);
                self.problem(offset, Some(&local.path), GapEffect::File, what);
            }
            if told.unpacked != actual.unpacked || told.packed != actual.packed {
                let what = format!(
                    "sizes mismatch: {} bytes in {} told, {} in {} found",
                    told.unpacked, told.packed, actual.unpacked, actual.packed
                );
                self.problem(offset, Some(&local.path), GapEffect::File, what);
            }
        }
        Ok(Some(actual))
    }

    /// Whether a descriptor of zeros comes next: Info-ZIP packs an empty file of unknown size to no bytes at
    /// all. Neither form of it starts a valid deflate stream.
    fn empty_descriptor_follows(&mut self) -> Result<bool, Stop> {
        let window = self.need(16, "a data descriptor")?;
        Ok(window.starts_with(b"PK\x07\x08\0\0\0\0\0\0\0\0\0\0\0\0") || window.starts_with(&[0; 12]))
    }

    /// Reads the data descriptor behind a member. Its layout (signature or none, 32 or 64 bits) is not told
    /// anywhere: the one whose values are right wins, else the one that ends at a header.
    fn descriptor(&mut self, local: &Local, offset: u64, actual: Option<Sizes>) -> Result<Option<Sizes>, Stop> {
        let at = self.at();
        let window = match self.body.window(28) {
            Ok(window) => window,
            Err(e) => return Err(Stop { offset: at, what: e.to_string(), source: Some(e) }),
        };
        match header::descriptor(window, actual) {
            Some((length, sizes)) => {
                self.body.consume(length);
                Ok(Some(sizes))
            }
            None if actual.is_none() && local.sizes.is_some() => {
                // Some writers set the flag, fill the header in afterwards and write no descriptor.
                Ok(None)
            }
            None => {
                self.problem(offset, Some(&local.path), GapEffect::File, "no data descriptor behind the member");
                Err(self.stop("no data descriptor"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
