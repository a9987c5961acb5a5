//! A root file system on disk, a single file, a wheel: read as if each were one layer.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::probe::{self, Notes, Payload, Probe};
use super::{Observer, ScanOptions, file_gap, layer::LayerRead};
use crate::device;
use crate::image::files::{FileTree, Node};
use crate::image::overlay::{Change, LayerEntry};
use crate::image::zip::{self, ZipError, ZipLimits, ZipSummary};
use crate::model::{Gap, GapEffect, ImagePath};
use crate::stream::{Source, Stream};

/// Unpacked bytes after which the ratio limit counts, as for layers.
const RATIO_FROM: u64 = 1 << 30;

/// Files that cannot be read and are listed one by one.
const MAX_UNREADABLE: u64 = 1_000;

/// Reads a directory tree; its own symbolic links are never followed on the way.
pub fn read(index: usize, root: &Path, observer: &dyn Observer) -> LayerRead {
    let mut read = LayerRead::default();
    let mut files: Vec<(ImagePath, PathBuf, u64)> = Vec::new();
    let mut dirs = vec![(ImagePath::default(), root.to_path_buf())];
    while let Some((path, dir)) = dirs.pop() {
        let listed = fs::read_dir(&dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let listed = match listed {
            Ok(listed) => listed,
            Err(e) => {
                read.gaps.push(unreadable(&path, &e));
                continue;
            }
        };
        for item in listed {
            let below = path.join(item.file_name().as_bytes());
            let change = match item.metadata() {
                Ok(m) if m.is_dir() => {
                    dirs.push((below.clone(), item.path()));
                    Change::Dir
                }
                Ok(m) if m.is_file() => {
                    files.push((below, item.path(), m.len()));
                    continue;
                }
                Ok(m) if m.is_symlink() => match fs::read_link(item.path()) {
                    Ok(to) => Change::Symlink(to.into_os_string().into_vec()),
                    Err(e) => {
                        read.gaps.push(unreadable(&below, &e));
                        continue;
                    }
                },
                Ok(_) => Change::Special,
                Err(e) => {
                    read.gaps.push(unreadable(&below, &e));
                    continue;
                }
            };
            read.entries.push(LayerEntry { path: below, change });
        }
    }
    read.probe(files, |path, place, size, notes| {
        let payload = Stream::open(place).and_then(|mut body| probe::file(path, &mut body, notes));
        observer.bytes(index, size);
        payload
    });
    read
}

/// Reads a tree that lies in a file, or in the store of a container engine. What it unpacks to is bounded as a
/// layer is.
pub fn read_files(index: usize, tree: &dyn FileTree, options: &ScanOptions, observer: &dyn Observer) -> LayerRead {
    let listing = match tree.list(options.max_entries) {
        Ok(listing) => listing,
        Err(e) => return LayerRead::failed(e.to_string()),
    };
    let mut read = LayerRead::default();
    let mut files = Vec::new();
    for (path, node) in listing.entries {
        let change = match node {
            Node::File { size, id } => {
                files.push((path, id, size));
                continue;
            }
            Node::Dir => Change::Dir,
            Node::Symlink(to) => Change::Symlink(to),
            Node::Special => Change::Special,
            Node::Whiteout => Change::Whiteout,
            Node::Opaque => Change::Opaque,
        };
        read.entries.push(LayerEntry { path, change });
    }
    let trouble = |(path, why)| Gap { why, ..unreadable(&path, &io::ErrorKind::Other.into()) };
    read.gaps.extend(listing.troubles.into_iter().map(trouble));
    let spent = AtomicU64::new(0);
    let stored = tree.stored();
    let most = stored.map_or(options.max_layer_bytes, |stored| {
        let by_ratio = stored.saturating_mul(options.max_ratio).max(RATIO_FROM);
        by_ratio.min(options.max_layer_bytes)
    });
    let total = files.iter().map(|(.., size)| u128::from(*size)).sum::<u128>().max(1);
    read.probe(files, |path, id, size, notes| {
        let source = Metered { inner: tree.open(path, *id)?, spent: &spent, most };
        let payload = probe::file(path, &mut Stream::new(source, Some(size)), notes);
        // Progress counts in stored bytes.
        let share = stored.map_or(u128::from(size), |stored| u128::from(stored) * u128::from(size) / total);
        observer.bytes(index, share as u64);
        payload
    });
    if let Some(stored) = stored {
        read.stored = stored;
    }
    read
}

/// Counts what is unpacked, and ends it.
struct Metered<'a> {
    inner: Box<dyn Source + Send + 'a>,
    spent: &'a AtomicU64,
    most: u64,
}

impl Read for Metered<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        if self.spent.fetch_add(n as u64, Ordering::Relaxed) > self.most {
            let what = format!(
                "the whole unpacks to more than {} bytes: taken for a decompression bomb (raise --max-ratio or \
                 --max-layer-size to read on)",
                self.most
            );
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, what));
        }
        Ok(n)
    }
}

impl Source for Metered<'_> {
    fn seeks(&self) -> bool {
        self.inner.seeks()
    }

    fn skip(&mut self, n: u64) -> io::Result<u64> {
        self.inner.skip(n)
    }
}

impl LayerRead {
    /// Looks into files side by side, and puts all entries into a fixed order: what is reported must not depend on
    /// the file system's.
    fn probe<T: Ord + Send + Sync>(
        &mut self,
        mut files: Vec<(ImagePath, T, u64)>,
        look: impl Fn(&ImagePath, &T, u64, &mut Notes) -> io::Result<Payload> + Sync,
    ) {
        files.sort();
        let results: Vec<_> = files
            .into_par_iter()
            .map(|(path, place, size)| {
                let mut notes = Notes::default();
                let payload = look(&path, &place, size, &mut notes);
                (path, payload, notes, size)
            })
            .collect();
        let mut unread: u64 = 0;
        for (path, payload, mut notes, size) in results {
            let payload = payload.unwrap_or_else(|e| {
                unread += 1;
                if unread <= MAX_UNREADABLE {
                    notes.gaps.push((Probe::Device, unreadable(&path, &e)));
                }
                None
            });
            self.add(path, payload, notes, size);
        }
        if unread > MAX_UNREADABLE {
            self.gaps.push(Gap::image(format!("{} more files cannot be read", unread - MAX_UNREADABLE)));
        }
        self.entries.sort_by(|a, b| a.path.cmp(&b.path));
    }

    fn add(&mut self, path: ImagePath, payload: Payload, notes: Notes, size: u64) {
        self.files += notes.files;
        self.elfs += notes.elfs;
        self.unpacked += size;
        self.stored += size;
        self.gaps.extend(notes.into_gaps());
        self.entries.push(LayerEntry { path, change: Change::File(payload) });
    }
}

fn unreadable(path: &ImagePath, error: &io::Error) -> Gap {
    Gap {
        path: Some(path.clone()),
        layer: None,
        offset: None,
        why: format!("cannot be read: {error}"),
        effect: GapEffect::Image,
    }
}

/// Reads one file by itself; it goes by its file name.
pub fn read_file(path: &Path, options: device::Options) -> LayerRead {
    let name = ImagePath::new(path.file_name().unwrap_or(path.as_os_str()).as_bytes());
    let mut read = LayerRead::default();
    let mut notes = Notes { options, ..Notes::default() };
    let opened = Stream::open(path).map(|body| {
        let size = crate::stream::Body::len(&body).unwrap_or(0);
        (body, size)
    });
    match opened.and_then(|(mut body, size)| Ok((probe::file(&name, &mut body, &mut notes)?, size))) {
        Ok((payload, size)) => {
            if payload.is_none() && notes.gaps.is_empty() && !is_known(path) {
                let mut gap = Gap::note(
                    name.clone(),
                    "is no ELF file, no device code (fatbin, cubin, PTX, offload bundle, kpack) and no static archive",
                );
                gap.effect = GapEffect::Image;
                notes.gaps.push((Probe::Device, gap));
            }
            read.add(name, payload, notes, size);
        }
        Err(e) => read.gaps.push(unreadable(&name, &e)),
    }
    read
}

/// Whether a file is of a kind that is looked into, though it held nothing.
fn is_known(path: &Path) -> bool {
    let known = |mut body: Stream<crate::stream::DiskFile>| {
        crate::stream::Body::window(&mut body, device::HEAD).map(|head| device::kind_of(head).is_some())
    };
    Stream::open(path).and_then(known).unwrap_or(false)
}

/// Reads a wheel (or another zip) as a root file system of its members.
pub fn read_zip(path: &Path, options: device::Options) -> LayerRead {
    let name = ImagePath::new(path.file_name().unwrap_or(path.as_os_str()).as_bytes());
    let mut read = LayerRead::default();
    let mut notes = Notes { options, ..Notes::default() };
    let mut entries = Vec::new();
    let mut unpacked = 0;
    let opened = fs::metadata(path).and_then(|m| Ok((m.len(), Stream::open(path)?)));
    let (stored, mut body) = match opened {
        Ok(opened) => opened,
        Err(e) => {
            read.gaps.push(unreadable(&name, &e));
            return read;
        }
    };
    let walked = zip::walk(&mut body, &ZipLimits::default(), &mut |member, size, data| {
        unpacked += size.unwrap_or(0);
        let payload = probe::file(&member, data, &mut notes)?;
        entries.push(LayerEntry { path: member, change: Change::File(payload) });
        Ok(())
    });
    read.entries = entries;
    read.files = notes.files;
    read.elfs = notes.elfs;
    read.stored = stored;
    read.unpacked = unpacked;
    read.gaps = notes.into_gaps().collect();
    told(&name, walked, &mut read.gaps);
    read
}

/// What a zip's reader tells, as gaps.
pub fn told(name: &ImagePath, walked: Result<ZipSummary, ZipError>, gaps: &mut Vec<Gap>) {
    match walked {
        // A wheel is scanned for its own sake: what its directory hides or its checksums deny is not shown whole.
        Ok(summary) => gaps.extend(summary.problems.into_iter().map(|p| Gap {
            path: Some(p.member.unwrap_or_else(|| name.clone())),
            layer: None,
            offset: Some(p.offset),
            why: p.what,
            effect: if p.effect == GapEffect::None { GapEffect::None } else { GapEffect::Image },
        })),
        Err(e) => {
            let mut gap = file_gap(name, e.to_string());
            gap.effect = GapEffect::Image;
            gaps.push(gap);
        }
    }
}
