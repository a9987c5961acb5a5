//! The members of a wheel that can hold anything, read where it lies.

use std::path::PathBuf;

use super::super::layer::LayerRead;
use super::super::probe::{self, Notes, Payload};
use super::super::{assemble, tree};
use super::{NotChecked, Verified};
use crate::catalog::Catalog;
use crate::image::index::{Hashed, MAX_METADATA, Remote};
use crate::image::overlay::{Change, LayerEntry};
use crate::image::zip::listed::{self, Listed};
use crate::image::zip::{self, ZipError, ZipLimits, ZipSummary};
use crate::image::{Content, Image, Layer};
use crate::model::{Digest, Evidence, GapEffect, ImagePath};
use crate::stream::{Body, Source, Stream};

/// Members that lie closer are read in one go: what is between them costs less than another request.
const NEAR: u64 = 512 << 10;

/// Of a hundred bytes of the file, those that must be wanted for all of them to be read: then its digest can be
/// verified for little.
const NEARLY_ALL: u64 = 95;

/// What was read so far.
pub struct Reading {
    filename: String,
    entries: Vec<LayerEntry<Payload>>,
    notes: Notes,
    unpacked: u64,
    requires: Option<Vec<String>>,
    read: LayerRead,
}

impl Reading {
    pub fn new(filename: &str) -> Self {
        Self {
            filename: filename.to_owned(),
            entries: Vec::new(),
            notes: Notes::default(),
            unpacked: 0,
            requires: None,
            read: LayerRead::default(),
        }
    }

    fn name(&self) -> ImagePath {
        ImagePath::new(self.filename.as_bytes())
    }

    fn unread(&self, why: impl std::fmt::Display) -> NotChecked {
        NotChecked::Unread { why: format!("{}: {why}", self.name()) }
    }

    fn member(&mut self, path: ImagePath, size: Option<u64>, data: &mut dyn Body) -> std::io::Result<()> {
        self.unpacked += size.unwrap_or(0);
        let payload = if is_metadata(&path) {
            // Read twice: for the package, and for what it requires.
            let bytes = data.read_all(MAX_METADATA as usize)?.unwrap_or_default();
            self.requires = Some(requires(&bytes));
            let length = bytes.len() as u64;
            probe::file(&path, &mut Stream::new(&bytes[..], Some(length)), &mut self.notes)?
        } else {
            probe::file(&path, data, &mut self.notes)?
        };
        self.entries.push(LayerEntry { path, change: Change::File(payload) });
        Ok(())
    }

    /// Reads all of it, front to back.
    pub fn whole<S: Source>(
        &mut self,
        source: S,
        size: u64,
        expected: Option<&Digest>,
    ) -> Result<Verified, NotChecked> {
        let mut body = Stream::new(Hashed::new(source), Some(size));
        let walked = zip::walk(&mut body, &ZipLimits::default(), &mut |p, s, data| self.member(p, s, data));
        self.told(walked);
        if body.skip(u64::MAX).is_err() || body.position() != size {
            return Err(self.unread("it could not be read to its end"));
        }
        let actual = body.into_source().finish();
        match expected {
            Some(expected) if *expected != actual => {
                Err(self.unread(format!("digest mismatch: expected {expected}, got {actual}")))
            }
            Some(_) => Ok(Verified::Digest),
            None => Ok(Verified::Whole),
        }
    }

    /// Reads the central directory, and of the members those that can hold anything.
    pub fn parts(&mut self, remote: &Remote, expected: Option<&Digest>) -> Result<Verified, NotChecked> {
        let size = remote.size();
        let limits = ZipLimits::default();
        let tail = remote.bytes(size.saturating_sub(listed::TAIL), size)?;
        let end = listed::end(&tail, size).map_err(|e| self.unread(e))?;
        remote.affords(end.length)?;
        let ends = end.at.checked_add(end.length).unwrap_or(size);
        let start = size - tail.len() as u64;
        let directory = match end.at.checked_sub(start) {
            // The last bytes have it already; it lies before them, and both are in memory.
            Some(at) => tail[at as usize..(ends - start) as usize].to_vec(),
            None => remote.bytes(end.at, ends)?,
        };
        drop(tail);
        let members = listed::members(&directory, &end, &limits).map_err(|e| self.unread(e))?;
        let (wanted, others): (Vec<&Listed>, Vec<&Listed>) =
            members.iter().filter(|m| !m.is_dir).partition(|m| probe::may_hold(&m.path));
        let runs = runs(&wanted);
        let bytes = runs.iter().map(|r| r.to - r.from).sum::<u64>();
        remote.affords(bytes)?;
        if bytes.saturating_mul(100) >= size.saturating_mul(NEARLY_ALL) && remote.affords(size).is_ok() {
            return self.whole(remote.range(0, size), size, expected);
        }
        for member in others {
            self.unpacked += member.unpacked;
            self.notes.files += 1;
            self.entries.push(LayerEntry { path: member.path.clone(), change: Change::File(None) });
        }
        let mut budget = limits.unpacked;
        for run in runs {
            let mut body = Stream::new(remote.range(run.from, run.to), Some(run.to - run.from));
            let limits = ZipLimits { unpacked: budget, ..limits.clone() };
            let walked = listed::read(&mut body, run.from, &wanted[run.members], &limits, &mut |p, s, d| {
                self.member(p, s, d)
            });
            budget = budget.saturating_sub(walked.as_ref().map_or(budget, |s| s.unpacked));
            let failed = walked.is_err();
            self.told(walked);
            if failed {
                break;
            }
        }
        Ok(Verified::Members)
    }

    fn told(&mut self, walked: Result<ZipSummary, ZipError>) {
        let name = self.name();
        tree::told(&name, walked, &mut self.read.gaps);
    }

    /// The evidence, and the lines of Requires-Dist if the wheel has metadata. A wheel that could not be read as it
    /// should is not evidence.
    pub fn finish(self, size: u64, catalog: &Catalog) -> Result<(Evidence, Option<Vec<String>>), NotChecked> {
        let Self { filename, mut entries, notes, unpacked, requires, mut read } = self;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        read.entries = entries;
        read.files = notes.files;
        read.elfs = notes.elfs;
        read.stored = size;
        read.unpacked = unpacked;
        read.gaps.extend(notes.into_gaps());
        if let Some(gap) = read.gaps.iter().find(|g| g.effect == GapEffect::Image) {
            let place = gap.path.as_ref().filter(|p| p.as_bytes() != filename.as_bytes());
            let place = place.map_or(String::new(), |p| format!("{p}: "));
            let name = ImagePath::new(filename.as_bytes());
            return Err(NotChecked::Unread { why: format!("{name}: {place}{}", gap.why) });
        }
        let layer = Layer {
            digest: None,
            diff_id: None,
            size: None,
            created_by: None,
            content: Content::File(PathBuf::from(&filename)),
        };
        let image = Image { digest: None, platform: None, config: Default::default(), layers: vec![layer] };
        Ok((assemble::evidence(&filename, image, vec![read], catalog), requires))
    }
}

/// Members that are read in one go.
struct Run {
    from: u64,
    to: u64,
    members: std::ops::Range<usize>,
}

/// By place, as the members are.
fn runs(wanted: &[&Listed]) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for (place, member) in wanted.iter().enumerate() {
        match out.last_mut().filter(|run| member.at - run.to <= NEAR) {
            Some(run) => {
                run.to = member.limit;
                run.members.end = place + 1;
            }
            None => out.push(Run { from: member.at, to: member.limit, members: place..place + 1 }),
        }
    }
    out
}

/// `NAME-VERSION.dist-info/METADATA` at the top.
fn is_metadata(path: &ImagePath) -> bool {
    let folder = path.as_bytes().strip_suffix(b".dist-info/METADATA");
    folder.is_some_and(|f| !f.is_empty() && !f.contains(&b'/'))
}

/// The Requires-Dist lines of a wheel's metadata, in order.
pub fn requires(metadata: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(metadata);
    let headers = text.lines().take_while(|l| !l.is_empty());
    let values = headers.filter_map(|l| {
        let (name, value) = l.split_once(':')?;
        name.eq_ignore_ascii_case("Requires-Dist").then(|| value.trim().to_owned())
    });
    values.filter(|v| !v.is_empty()).collect()
}
