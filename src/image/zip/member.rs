//! The content of a member as a [`Body`], unpacked and summed as it is read.

use std::io::{self, Read};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::header::{DEFLATED, Local, Sizes};
use super::{Stop, Visit, Walker, ZipLimits};
use crate::model::GapEffect;
use crate::stream::{Body, Part, Source, Stream};

/// Hands one member out and drains it; `empty`: it has no bytes, not even those of an empty deflate stream.
/// `None`: it is damaged, and the walk stands behind it.
pub fn read(
    walker: &mut Walker<'_>,
    local: &Local,
    empty: bool,
    offset: u64,
    visit: &mut Visit<'_>,
) -> Result<Option<Sizes>, Stop> {
    let budget = walker.limits.unpacked.saturating_sub(walker.summary.unpacked);
    let limits = walker.limits;
    let packed = if empty { Some(0) } else { local.packed() };
    let inflate = local.method == DEFLATED && packed != Some(0);
    let done = match packed {
        // The header of a member with a descriptor may tell sizes; they are believed for the way only.
        Some(length) => {
            let mut part = Part::new(walker.body, length);
            let mut done = unpack(&mut part, local, inflate, budget, limits, visit);
            match part.finish() {
                Ok(0) => {}
                Ok(missing) => {
                    return Err(walker.stop(format!("cut off in a member, {missing} bytes are missing")));
                }
                Err(e) => {
                    let what = format!("{e} in a member");
                    return Err(Stop { offset: walker.at(), what, source: Some(e) });
                }
            }
            // What the header counts and the deflate stream does not use is told as a mismatch.
            if let Ok(sizes) = &done.result
                && inflate
                && sizes.packed != length
                && local.descriptor
            {
                done.result = Err(Damage::Content("data behind the end of the deflate stream".to_owned()));
            }
            done
        }
        None => unpack(walker.body, local, inflate, budget, limits, visit),
    };
    if let Some(e) = done.refused {
        return Err(Stop { offset: walker.at(), what: e.to_string(), source: Some(e) });
    }
    match done.result {
        Ok(sizes) => {
            if local.is_dir && sizes.unpacked > 0 {
                walker.problem(offset, Some(&local.path), GapEffect::None, "a directory with content");
            }
            Ok(Some(sizes))
        }
        Err(Damage::Content(what)) if packed.is_some() => {
            walker.problem(offset, Some(&local.path), GapEffect::File, what);
            Ok(None)
        }
        Err(Damage::Content(what) | Damage::Limit(what)) => Err(walker.stop(what)),
        Err(Damage::Io(e)) => {
            let what = format!("{e} in a member");
            Err(Stop { offset: walker.at(), what, source: Some(e) })
        }
    }
}

/// How reading a member ended.
struct Done {
    result: Result<Sizes, Damage>,
    /// An error of the visitor's own.
    refused: Option<io::Error>,
}

enum Damage {
    /// The member's bytes are wrong; its neighbours may be fine.
    Content(String),
    /// The archive asks for too much.
    Limit(String),
    /// The archive itself could not be read.
    Io(io::Error),
}

fn unpack(
    inner: &mut dyn Body,
    local: &Local,
    inflate: bool,
    budget: u64,
    limits: &ZipLimits,
    visit: &mut Visit<'_>,
) -> Done {
    let declared = local.sizes.map(|s| s.unpacked);
    let source = Unpack {
        inner,
        inflate: inflate.then(|| Box::new(Decompress::new(false))),
        crc: Crc::new(),
        packed: 0,
        unpacked: 0,
        budget,
        ratio: limits.ratio,
        ratio_from: limits.ratio_from,
        ended: false,
        damage: None,
    };
    let mut stream = Stream::new(source, declared);
    let mut refused = None;
    if !local.is_dir {
        refused = visit(local.path.clone(), declared, &mut stream).err();
    }
    if refused.is_none() || stream.source().damage.is_some() {
        // Fails as the visitor's reads did, if there is damage.
        let drained = stream.skip(u64::MAX);
        if drained.is_err() || stream.source().damage.is_some() {
            refused = None;
        }
    }
    let source = stream.into_source();
    let sum = Sizes { crc: source.crc.sum(), packed: source.packed, unpacked: source.unpacked };
    Done { result: source.damage.map_or(Ok(sum), Err), refused }
}

/// Unpacks, sums and counts. Takes exactly the packed bytes from `inner`.
struct Unpack<'a> {
    inner: &'a mut dyn Body,
    inflate: Option<Box<Decompress>>,
    crc: Crc,
    packed: u64,
    unpacked: u64,
    budget: u64,
    ratio: u64,
    ratio_from: u64,
    ended: bool,
    damage: Option<Damage>,
}

impl Unpack<'_> {
    fn fail(&mut self, damage: Damage) -> io::Error {
        let error = match &damage {
            Damage::Content(what) | Damage::Limit(what) => io::Error::new(io::ErrorKind::InvalidData, what.clone()),
            Damage::Io(e) => io::Error::new(e.kind(), e.to_string()),
        };
        self.damage = Some(damage);
        error
    }

    fn again(&self) -> io::Error {
        let what = match &self.damage {
            Some(Damage::Content(what) | Damage::Limit(what)) => what.clone(),
            Some(Damage::Io(e)) => e.to_string(),
            None => "damaged".to_owned(),
        };
        io::Error::new(io::ErrorKind::InvalidData, what)
    }

    /// Fills `buf`; 0 only at the end.
    fn fill(&mut self, buf: &mut [u8]) -> Result<usize, Damage> {
        loop {
            let window = self.inner.window(1).map_err(Damage::Io)?;
            let Some(inflate) = &mut self.inflate else {
                let n = window.len().min(buf.len());
                buf[..n].copy_from_slice(&window[..n]);
                self.inner.consume(n);
                self.packed += n as u64;
                return Ok(n);
            };
            let no_more = window.is_empty();
            let before = (inflate.total_in(), inflate.total_out());
            let status = inflate
                .decompress(window, buf, FlushDecompress::None)
                .map_err(|e| Damage::Content(format!("damaged deflate stream ({e})")))?;
            let taken = inflate.total_in() - before.0;
            let made = inflate.total_out() - before.1;
            self.inner.consume(taken as usize);
            self.packed += taken;
            self.ended = status == Status::StreamEnd;
            if made > 0 || self.ended {
                return Ok(made as usize);
            }
            if no_more || taken == 0 {
                return Err(Damage::Content("cut off in the deflate stream".to_owned()));
            }
        }
    }
}

impl Read for Unpack<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.damage.is_some() {
            return Err(self.again());
        }
        if self.ended || buf.is_empty() {
            return Ok(0);
        }
        let n = self.fill(buf).map_err(|damage| self.fail(damage))?;
        self.crc.update(&buf[..n]);
        self.unpacked += n as u64;
        if self.unpacked > self.budget {
            return Err(self.fail(Damage::Limit("the archive unpacks to more than its limit".to_owned())));
        }
        if self.unpacked > self.ratio_from && self.unpacked / self.ratio.max(1) > self.packed {
            let what = format!("a member unpacks to more than {} times its size", self.ratio);
            return Err(self.fail(Damage::Limit(what)));
        }
        Ok(n)
    }
}

impl Source for Unpack<'_> {}
