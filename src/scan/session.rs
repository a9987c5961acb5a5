//! Scans that share their worker threads and what they know of layers.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};

use super::cache::Cache;
use super::layer::{self, LayerRead, Streamer};
use super::{Observer, ScanOptions, Scanned, assemble, tree};
use crate::image::sources::{self, OpenOptions};
use crate::image::{Content, Image, ImageError, Layer, Opened};
use crate::model::{Digest, Platform};

/// Reads images, one or many at a time; a layer that several have is read once.
pub struct Session {
    pool: rayon::ThreadPool,
    options: ScanOptions,
    cache: Option<Cache>,
    /// The diff_ids of layers that are being read.
    busy: Mutex<BTreeSet<Digest>>,
    freed: Condvar,
}

/// A layer that nobody else reads meanwhile.
struct Busy<'a> {
    session: &'a Session,
    diff_id: Option<Digest>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if let Some(diff_id) = &self.diff_id {
            self.session.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(diff_id);
            self.session.freed.notify_all();
        }
    }
}

impl Session {
    /// Without a cache, what is read is known to this image alone.
    pub fn new(options: ScanOptions, cache: Option<Cache>) -> Result<Self, ImageError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.jobs)
            .build()
            .map_err(|e| ImageError::Io { place: "worker threads".to_owned(), source: std::io::Error::other(e) })?;
        Ok(Self { pool, options, cache, busy: Mutex::default(), freed: Condvar::new() })
    }

    /// The number of worker threads.
    pub fn jobs(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The first failure to write to the cache since it was last asked for.
    pub fn trouble(&self) -> Option<String> {
        self.cache.as_ref().and_then(Cache::trouble)
    }

    /// Opens a reference, reads its layers and merges them. `platforms`: those wanted of an index; empty: linux/amd64,
    /// or the only one there is.
    pub fn scan(
        &self,
        reference: &str,
        open: &OpenOptions,
        platforms: &[Platform],
        observer: &dyn Observer,
    ) -> Result<Scanned, ImageError> {
        let mut streamer = Streamer::new(&self.options, observer);
        // One platform that is wanted may be asked for; of several, the first that is there will do.
        let only = if let [only] = platforms { Some(only.clone()) } else { None };
        let open = OpenOptions { platform: only, ..open.clone() };
        let opened = sources::open(reference, &open, &mut streamer)?;
        let streamed: Vec<Mutex<Option<LayerRead>>> =
            streamer.into_layers().into_iter().map(|l| Mutex::new(Some(l))).collect();
        let mut scanned = Scanned {
            taken_for: opened.taken_for().map(str::to_owned),
            notices: opened.notices().to_vec(),
            ..Scanned::default()
        };
        for platform in wanted(&*opened, platforms) {
            let image = opened.image(platform.as_ref())?;
            let layers = self.read_layers(&image, observer, &streamed);
            scanned.runs.push(layers.iter().map(LayerRead::run).collect());
            scanned.evidence.push(assemble::evidence(opened.reference(), image, layers, self.options.catalog));
        }
        Ok(scanned)
    }

    fn read_layers(
        &self,
        image: &Image,
        observer: &dyn Observer,
        streamed: &[Mutex<Option<LayerRead>>],
    ) -> Vec<LayerRead> {
        let results: Vec<Mutex<Option<LayerRead>>> = image.layers.iter().map(|_| Mutex::new(None)).collect();
        // Largest first, so that the last one running is a small one.
        let mut order: Vec<usize> = (0..image.layers.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(image.layers[i].size.unwrap_or(u64::MAX)));
        while !order.is_empty() {
            let claimed = self.claim(&mut order, &image.layers);
            self.pool.scope_fifo(|scope| {
                for (index, busy) in claimed {
                    let (layer, result) = (&image.layers[index], &results[index]);
                    scope.spawn_fifo(move |_| {
                        let read = self.read_layer(index, layer, observer, streamed);
                        drop(busy);
                        if let Ok(mut slot) = result.lock() {
                            *slot = Some(read);
                        }
                    });
                }
            });
        }
        results
            .into_iter()
            .map(|slot| {
                let read = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
                read.unwrap_or_else(|| LayerRead::failed("layer was not read"))
            })
            .collect()
    }

    /// Takes those of the layers that nobody is reading; waits until there is one.
    fn claim(&self, order: &mut Vec<usize>, layers: &[Layer]) -> Vec<(usize, Busy<'_>)> {
        // Without a cache nobody can take over what another has read.
        let diff_id = |index: usize| layers[index].diff_id.filter(|_| self.cache.is_some());
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut claimed = Vec::new();
            order.retain(|&index| {
                let is_free = diff_id(index).is_none_or(|diff_id| busy.insert(diff_id));
                if is_free {
                    claimed.push((index, Busy { session: self, diff_id: diff_id(index) }));
                }
                !is_free
            });
            if !claimed.is_empty() {
                return claimed;
            }
            busy = self.freed.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn read_layer(
        &self,
        index: usize,
        layer: &Layer,
        observer: &dyn Observer,
        streamed: &[Mutex<Option<LayerRead>>],
    ) -> LayerRead {
        let on_disk = |read: &dyn Fn() -> LayerRead| {
            observer.layer_started(index, layer.digest.as_ref(), layer.size);
            let read = read();
            observer.layer_done(index);
            read
        };
        match &layer.content {
            Content::Blob(open) => {
                layer::read_blob(index, layer, open, &self.options, self.cache.as_ref(), observer)
            }
            Content::Tree(root) => on_disk(&|| tree::read(index, root, observer)),
            Content::Files(files) => on_disk(&|| tree::read_files(index, &**files, &self.options, observer)),
            Content::File(path) => on_disk(&|| tree::read_file(path, Default::default())),
            Content::Zip(path) => on_disk(&|| tree::read_zip(path, Default::default())),
            Content::Streamed(number) => match streamed.get(*number) {
                Some(slot) => layer::take_streamed(slot, layer, self.cache.as_ref()),
                None => LayerRead::failed("layer is missing from the stream"),
            },
        }
    }
}

/// Which of an index's platforms to read: those asked for that it has; otherwise one.
fn wanted(opened: &dyn Opened, asked: &[Platform]) -> Vec<Option<Platform>> {
    let there = opened.platforms();
    if there.len() <= 1 && asked.len() != 1 {
        return vec![None];
    }
    let mut found: Vec<Option<Platform>> = Vec::new();
    for want in asked {
        let has = there.iter().any(|p| p.serves(want));
        // A single platform asked for and not there is the source's error to tell.
        if (has || asked.len() == 1) && !found.contains(&Some(want.clone())) {
            found.push(Some(want.clone()));
        }
    }
    if found.is_empty() {
        found.push(None);
    }
    found
}
