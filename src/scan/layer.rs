//! One layer read once: stored bytes, digests, tar, probes.

use std::io::{self, Read};
use std::sync::Mutex;

use super::cache::{Cache, Found, Kept};
use super::probe::{self, Claim, Notes, Payload, Probe};
use super::{LayerRun, Observer, ScanOptions};
use crate::image::blob::{self, BlobLimits, BlobSummary};
use crate::image::overlay::{Change, LayerEntry};
use crate::image::tar::{self, EntryKind};
use crate::image::{BlobSink, Layer, OpenBlob, Streamed};
use crate::model::{Digest, Gap, GapEffect, ImagePath};
use crate::stream::Body;

/// Oddities listed for one layer; a hostile one can have millions.
const MAX_NOTES: usize = 1_000;

/// What reading a layer gave.
#[derive(Debug, Clone, Default)]
pub struct LayerRead {
    pub entries: Vec<LayerEntry<Payload>>,
    /// Of the layer itself.
    pub gaps: Vec<Gap>,
    /// What the probes could not read.
    pub noted: Vec<(Probe, Gap)>,
    /// From the cache, whole: nothing was read of the image.
    pub cached: bool,
    pub stored: u64,
    pub unpacked: u64,
    pub files: u64,
    pub elfs: u64,
    pub digest: Option<Digest>,
    pub diff_id: Option<Digest>,
}

impl LayerRead {
    pub fn failed(why: impl Into<String>) -> Self {
        Self { gaps: vec![Gap::image(why)], ..Self::default() }
    }

    /// Compares what was read with what the manifest and the config promise. Bytes that are not what they
    /// should be are not evidence.
    fn verify(&mut self, layer: &Layer) -> bool {
        let mut wrong = Vec::new();
        let mut check = |what: &str, want: Option<Digest>, got: Option<Digest>| {
            if let (Some(want), Some(got)) = (want, got)
                && want != got
            {
                wrong.push(format!("{what} mismatch: expected {want}, got {got}"));
            }
        };
        check("digest", layer.digest, self.digest);
        check("diff_id", layer.diff_id, self.diff_id);
        if let Some(size) = layer.size
            && size != self.stored
            && self.digest.is_some()
        {
            wrong.push(format!("size mismatch: the manifest says {size} bytes, there are {}", self.stored));
        }
        let is_right = wrong.is_empty();
        if !is_right {
            self.entries.clear();
            self.gaps.clear();
            self.noted.clear();
            self.gaps.extend(wrong.into_iter().map(Gap::image));
        }
        is_right
    }

    /// What reading it took.
    pub fn run(&self) -> LayerRun {
        LayerRun { cached: self.cached, read: if self.cached { 0 } else { self.stored } }
    }

    /// All gaps, whoever found them.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        let noted = std::mem::take(&mut self.noted).into_iter().map(|(_, gap)| gap);
        std::mem::take(&mut self.gaps).into_iter().chain(noted).collect()
    }
}

pub fn limits(options: &ScanOptions) -> BlobLimits {
    BlobLimits { max_bytes: options.max_layer_bytes, max_ratio: options.max_ratio }
}

/// Reads a layer's blob; every failure is a gap of the whole image. What a cache has is taken from there, and what
/// was read goes there.
pub fn read_blob(
    index: usize,
    layer: &Layer,
    open: &OpenBlob,
    options: &ScanOptions,
    cache: Option<&Cache>,
    observer: &dyn Observer,
) -> LayerRead {
    let mut kept = match cache.map_or(Found::Nothing, |cache| cache.find(layer, options)) {
        Found::Whole(read) => return LayerRead { cached: true, ..*read },
        Found::Part(kept) => Some(kept),
        Found::Nothing => None,
    };
    let told = |n: u64| observer.bytes(index, n);
    observer.layer_started(index, layer.digest.as_ref(), layer.size);
    let mut read = LayerRead::default();
    let is_read = loop {
        let stored = match open() {
            Ok(reader) => reader,
            Err(e) => break Err(e.to_string()),
        };
        match read_stream(stored, options, layer.diff_id.is_some(), Some(&told), kept.as_deref(), &mut read) {
            Ok(true) => break Ok(()),
            Err(e) => break Err(e.to_string()),
            // The cache tells of other entries than there are: then it tells nothing.
            Ok(false) => (kept, read) = (None, LayerRead::default()),
        }
    };
    observer.layer_done(index);
    match is_read {
        Err(why) => read.gaps.push(Gap::image(why)),
        Ok(()) if read.verify(layer) => {
            if let Some(cache) = cache {
                cache.keep(&read);
            }
        }
        Ok(()) => {}
    }
    read
}

/// Whether the layer has the entries that are kept of it.
fn read_stream<'a>(
    stored: Box<dyn Read + 'a>,
    options: &ScanOptions,
    diff_id: bool,
    told: Option<&'a (dyn Fn(u64) + Sync)>,
    kept: Option<&Kept>,
    read: &mut LayerRead,
) -> io::Result<bool> {
    let mut body = blob::open(stored, limits(options), diff_id, told)?;
    let is_alike = walk(&mut body, options, kept, read)?;
    read.end(blob::finish(body)?);
    Ok(is_alike)
}

impl LayerRead {
    fn end(&mut self, summary: BlobSummary) {
        self.digest = Some(summary.digest);
        self.diff_id = summary.diff_id;
        self.stored = summary.stored;
        self.unpacked = summary.unpacked;
    }
}

/// Reads a tar's entries. `kept`: facts that are taken as they are. Whether they are of these entries.
fn walk(body: &mut dyn Body, options: &ScanOptions, kept: Option<&Kept>, read: &mut LayerRead) -> io::Result<bool> {
    let mut notes = Notes::default();
    let mut oddities = Oddities::default();
    let mut is_alike = true;
    let entries = &mut read.entries;
    let walked = tar::walk(body, options.max_entries, &mut |entry, data| {
        for note in entry.notes {
            oddities.add(&entry.path, note);
        }
        let change = match entry.kind {
            EntryKind::File => {
                let claim = Claim::on(&entry.path);
                match kept.filter(|kept| kept.holds(claim.probe())) {
                    Some(kept) => {
                        is_alike &= kept.is(entries.len(), &entry.path);
                        notes.files += 1;
                        Change::File(kept.payload(entries.len() as u32))
                    }
                    None => Change::File(probe::claimed(&claim, &entry.path, data, &mut notes)?),
                }
            }
            EntryKind::Dir => Change::Dir,
            EntryKind::Symlink(to) => Change::Symlink(to),
            EntryKind::Hardlink(to) => Change::Hardlink(to),
            EntryKind::Special => Change::Special,
            EntryKind::Whiteout => Change::Whiteout,
            EntryKind::Opaque => Change::Opaque,
            EntryKind::Ignored => return Ok(()),
        };
        entries.push(LayerEntry { path: entry.path, change });
        Ok(())
    });
    read.files = notes.files;
    read.elfs = notes.elfs;
    read.noted.append(&mut notes.gaps);
    if let Some(kept) = kept {
        read.noted.extend(kept.noted());
        read.elfs += kept.elfs();
    }
    read.gaps.append(&mut oddities.into_gaps());
    walked.map_err(|e| match e {
        tar::TarError::Io(e) => e,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    })?;
    Ok(is_alike)
}

/// Things that were mended or passed over: told, but no answer rests on them.
#[derive(Default)]
pub struct Oddities {
    gaps: Vec<Gap>,
    more: u64,
}

impl Oddities {
    pub fn add(&mut self, path: &ImagePath, why: String) {
        if self.gaps.len() < MAX_NOTES {
            self.gaps.push(Gap::note(path.clone(), why));
        } else {
            self.more += 1;
        }
    }

    pub fn into_gaps(mut self) -> Vec<Gap> {
        if self.more > 0 {
            let mut gap = Gap::image(format!("{} more oddities of this layer are not listed", self.more));
            gap.effect = GapEffect::None;
            self.gaps.push(gap);
        }
        self.gaps
    }
}

/// Takes layers in passing from a stream.
pub struct Streamer<'a> {
    options: &'a ScanOptions,
    observer: &'a dyn Observer,
    layers: Vec<LayerRead>,
}

impl<'a> Streamer<'a> {
    pub fn new(options: &'a ScanOptions, observer: &'a dyn Observer) -> Self {
        Self { options, observer, layers: Vec::new() }
    }

    pub fn into_layers(self) -> Vec<LayerRead> {
        self.layers
    }
}

impl BlobSink for Streamer<'_> {
    fn layer(&mut self, stored: &mut dyn Read) -> io::Result<Streamed> {
        let index = self.layers.len();
        let observer = self.observer;
        observer.layer_started(index, None, None);
        let told = |n: u64| observer.bytes(index, n);
        let mut read = LayerRead::default();
        let mut body = blob::open(Box::new(stored), limits(self.options), true, Some(&told))?;
        let is_tar = tar::looks_like_tar(body.window(1024)?) || body.window(1)?.is_empty();
        let walked = if is_tar { walk(&mut body, self.options, None, &mut read).map(drop) } else { Ok(()) };
        let summary = match walked.and_then(|()| blob::finish(body)) {
            Ok(summary) => summary,
            Err(e) if is_tar => {
                // The blob may be of no interest; whether it is shows when the manifest is read.
                read.gaps.push(Gap::image(e.to_string()));
                return Err(e);
            }
            Err(e) => return Err(e),
        };
        observer.layer_done(index);
        read.end(summary);
        let number = is_tar.then(|| {
            self.layers.push(read);
            index
        });
        Ok(Streamed { number, digest: summary.digest, diff_id: summary.diff_id, size: summary.stored })
    }
}

/// A layer that was read as it streamed by; the same blob may stand for several layers of an image.
pub fn take_streamed(slot: &Mutex<Option<LayerRead>>, layer: &Layer, cache: Option<&Cache>) -> LayerRead {
    let Ok(held) = slot.lock() else { return LayerRead::failed("layer could not be read") };
    let Some(read) = held.as_ref() else { return LayerRead::failed("layer is missing from the stream") };
    let mut copy = read.clone();
    // The digest of what has none of its own says nothing about the next that has it.
    if copy.verify(layer)
        && let Some(cache) = cache.filter(|_| layer.diff_id.is_some())
    {
        cache.keep(&copy);
    }
    copy
}

/// Tells a layer's gaps whose they are.
pub fn label(gaps: &mut [Gap], digest: Option<Digest>) {
    for gap in gaps {
        gap.layer = gap.layer.or(digest);
    }
}
