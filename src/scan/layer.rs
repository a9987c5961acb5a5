//! One layer read once: stored bytes, digests, tar, probes.

use std::io::{self, Read};
use std::sync::Mutex;

use super::probe::{self, Notes, Payload};
use super::{Observer, ScanOptions};
use crate::image::blob::{self, BlobLimits, BlobSummary};
use crate::image::overlay::{Change, LayerEntry};
use crate::image::tar::{self, EntryKind};
use crate::image::{BlobSink, Layer, OpenBlob, Streamed};
use crate::model::{Digest, Gap, GapEffect, ImagePath};
use crate::stream::Body;

/// Oddities listed for one layer; a hostile one can have millions.
const MAX_NOTES: usize = 1_000;

/// What reading a layer gave.
#[derive(Debug, Default)]
pub struct LayerRead {
    pub entries: Vec<LayerEntry<Payload>>,
    pub gaps: Vec<Gap>,
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
    fn verify(&mut self, layer: &Layer) {
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
        if !wrong.is_empty() {
            self.entries.clear();
            self.gaps.clear();
            self.gaps.extend(wrong.into_iter().map(Gap::image));
        }
    }
}

fn limits(options: &ScanOptions) -> BlobLimits {
    BlobLimits { max_bytes: options.max_layer_bytes, max_ratio: options.max_ratio }
}

/// Reads a layer's blob; every failure is a gap of the whole image.
pub fn read_blob(
    index: usize,
    layer: &Layer,
    open: &OpenBlob,
    options: &ScanOptions,
    observer: &dyn Observer,
) -> LayerRead {
    let stored = match open() {
        Ok(reader) => reader,
        Err(e) => return LayerRead::failed(e.to_string()),
    };
    let told = |n: u64| observer.bytes(index, n);
    let mut read = LayerRead::default();
    if let Err(e) = read_stream(stored, options, layer.diff_id.is_some(), Some(&told), &mut read) {
        read.gaps.push(Gap::image(e.to_string()));
        return read;
    }
    read.verify(layer);
    read
}

fn read_stream<'a>(
    stored: Box<dyn Read + 'a>,
    options: &ScanOptions,
    diff_id: bool,
    told: Option<&'a (dyn Fn(u64) + Sync)>,
    read: &mut LayerRead,
) -> io::Result<()> {
    let mut body = blob::open(stored, limits(options), diff_id, told)?;
    walk(&mut body, options, read)?;
    read.end(blob::finish(body)?);
    Ok(())
}

impl LayerRead {
    fn end(&mut self, summary: BlobSummary) {
        self.digest = Some(summary.digest);
        self.diff_id = summary.diff_id;
        self.stored = summary.stored;
        self.unpacked = summary.unpacked;
    }
}

/// Reads a tar's entries.
pub fn walk(body: &mut dyn Body, options: &ScanOptions, read: &mut LayerRead) -> io::Result<()> {
    let mut notes = Notes::default();
    let mut oddities = Oddities::default();
    let entries = &mut read.entries;
    let walked = tar::walk(body, options.max_entries, &mut |entry, data| {
        for note in entry.notes {
            oddities.add(&entry.path, note);
        }
        let change = match entry.kind {
            EntryKind::File => Change::File(probe::file(&entry.path, data, &mut notes)?),
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
    read.gaps.append(&mut notes.gaps);
    read.gaps.append(&mut oddities.into_gaps());
    walked.map_err(|e| match e {
        tar::TarError::Io(e) => e,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    })
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
        let walked = if is_tar { walk(&mut body, self.options, &mut read) } else { Ok(()) };
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
pub fn take_streamed(slot: &Mutex<Option<LayerRead>>, layer: &Layer) -> LayerRead {
    let Ok(held) = slot.lock() else { return LayerRead::failed("layer could not be read") };
    let Some(read) = held.as_ref() else { return LayerRead::failed("layer is missing from the stream") };
    let mut copy = LayerRead {
        entries: read.entries.clone(),
        gaps: read.gaps.clone(),
        digest: read.digest,
        diff_id: read.diff_id,
        ..*read
    };
    copy.verify(layer);
    copy
}

/// Tells a layer's gaps whose they are.
pub fn label(gaps: &mut [Gap], digest: Option<Digest>) {
    for gap in gaps {
        gap.layer = gap.layer.or(digest);
    }
}
