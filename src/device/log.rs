//! Regions as they are found, folded into modules of equal make-up once the sections are known.

use std::collections::HashMap;

use crate::model::{Container, Item, ItemCount, Module};

/// Regions and entries kept for one file; the largest real library has 24,454 of each.
const MAX_REGIONS: usize = 1 << 18;
const MAX_ENTRIES: usize = 1 << 20;

/// A size that a damaged header may state for one entry; sums of as many as are kept stay within 64 bits.
const MAX_BYTES: u64 = 1 << 42;

struct Region {
    offset: u64,
    make_up: u32,
    /// Index of this region's first count.
    counts: u32,
}

struct Start {
    offset: u64,
    container: Container,
    item: Option<Item>,
}

/// Where regions begin, and what is first in them.
pub(super) struct Starts(Vec<Start>);

impl Starts {
    fn within(&self, from: u64, size: u64) -> impl Iterator<Item = &Start> {
        let behind = self.0.partition_point(|s| s.offset < from);
        self.0.iter().skip(behind).take_while(move |s| s.offset - from < size)
    }

    /// Whether a region begins in a part of the file.
    pub(super) fn any_in(&self, from: u64, size: u64) -> bool {
        self.within(from, size).next().is_some()
    }

    /// How many bundles begin in a part of the file.
    pub(super) fn bundles_in(&self, from: u64, size: u64) -> u64 {
        let is_bundle = |s: &&Start| matches!(s.container, Container::Bundle | Container::CompressedBundle);
        self.within(from, size).filter(is_bundle).count() as u64
    }

    /// The first item of the region that begins at an offset.
    pub(super) fn item_at(&self, offset: u64) -> Option<Item> {
        self.within(offset, 1).next()?.item
    }
}

/// Everything found in one file.
#[derive(Default)]
pub(super) struct Log {
    regions: Vec<Region>,
    counts: Vec<(u32, u64)>,
    known: HashMap<(Container, Vec<Item>), u32>,
    make_ups: Vec<(Container, Vec<Item>)>,
    /// Regions left out because of the limits, and where the first was.
    pub(super) dropped: Option<(u64, u64)>,
    /// Well-formed regions without entries.
    pub(super) empty: u64,
}

impl Log {
    pub(super) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Adds one region; `entries` are (item, stored bytes) in file order.
    pub(super) fn add(&mut self, container: Container, offset: u64, entries: &mut Vec<(Item, u64)>) {
        if entries.is_empty() {
            return;
        }
        if self.regions.len() >= MAX_REGIONS || self.counts.len() + entries.len() > MAX_ENTRIES {
            let (_, count) = self.dropped.get_or_insert((offset, 0));
            *count += 1;
            entries.clear();
            return;
        }
        entries.sort_unstable_by_key(|e| e.0);
        let first = self.counts.len();
        let mut items: Vec<Item> = Vec::with_capacity(entries.len());
        for (item, bytes) in entries.drain(..) {
            if items.last() == Some(&item) {
                if let Some(last) = self.counts.last_mut() {
                    last.0 += 1;
                    last.1 += bytes.min(MAX_BYTES);
                }
            } else {
                items.push(item);
                self.counts.push((1, bytes.min(MAX_BYTES)));
            }
        }
        let next = self.make_ups.len() as u32;
        let make_up = *self.known.entry((container, items)).or_insert_with_key(|key| {
            self.make_ups.push(key.clone());
            next
        });
        self.regions.push(Region { offset, make_up, counts: first as u32 });
    }

    /// Where regions begin, to be looked up often.
    pub(super) fn starts(&self) -> Starts {
        let start = |region: &Region| {
            let (container, items) = &self.make_ups[region.make_up as usize];
            Start { offset: region.offset, container: *container, item: items.first().copied() }
        };
        let mut starts: Vec<Start> = self.regions.iter().map(start).collect();
        starts.sort_by_key(|s| s.offset);
        Starts(starts)
    }

    /// Folds regions of equal make-up and section. `place` tells a region's section and whether that section
    /// holds input for the device linker.
    pub(super) fn modules(self, place: impl Fn(u64) -> (Option<String>, bool)) -> Vec<Module> {
        let mut modules: Vec<Module> = Vec::new();
        let mut index: HashMap<(u32, Option<String>, bool), usize> = HashMap::new();
        for region in &self.regions {
            let (section, relocatable) = place(region.offset);
            let (container, items) = &self.make_ups[region.make_up as usize];
            let at = *index.entry((region.make_up, section.clone(), relocatable)).or_insert_with(|| {
                let items = items.iter().map(|&item| ItemCount { item, entries: 0, bytes: 0 }).collect();
                modules.push(Module {
                    container: *container,
                    section,
                    relocatable,
                    items,
                    count: 0,
                    first: region.offset,
                });
                modules.len() - 1
            });
            modules[at].count += 1;
            let counts = &self.counts[region.counts as usize..];
            for (row, (entries, bytes)) in modules[at].items.iter_mut().zip(counts) {
                row.entries += u64::from(*entries);
                row.bytes += bytes;
            }
        }
        modules
    }
}
