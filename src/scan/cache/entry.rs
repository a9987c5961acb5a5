//! The facts of one layer as they are kept: which entries it has, and what each probe found in them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::super::ScanOptions;
use super::super::layer::LayerRead;
use super::super::probe::{Carried, Claim, Payload, Probe};
use crate::image::blob;
use crate::image::overlay::{Change, LayerEntry};
use crate::inventory::Fact;
use crate::loader::Capture;
use crate::model::{Digest, FileFacts, Gap, ImagePath};

/// Of the list of entries, and of how all of this is written down.
const VERSION: &str = env!("IMAGELINT_PROBE_ENTRIES");

/// `T`: the list of entries, its own when it was read, the layer's when it is written.
#[derive(Debug, Serialize, Deserialize)]
pub struct Entry<T = Vec<(ImagePath, Row<'static>)>> {
    version: String,
    diff_id: Digest,
    unpacked: u64,
    files: u64,
    /// In the order of the tar.
    tree: T,
    /// Of the tar itself.
    gaps: Vec<Gap>,
    device: Found<Code>,
    /// Of every file that the probe takes for its own, found or not.
    inventory: Found<Option<Arc<Fact>>>,
    loading: Found<Option<Arc<Capture>>>,
}

/// What one probe found, by the number of the entry.
#[derive(Debug, Serialize, Deserialize)]
struct Found<T> {
    version: String,
    gaps: Vec<Gap>,
    files: BTreeMap<u32, T>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Code {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    facts: Option<Arc<FileFacts>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members: Vec<(ImagePath, Arc<FileFacts>)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    empty_driver: bool,
}

/// A layer's entries, written as they stand: there may be millions.
pub struct Tree<'a>(&'a [LayerEntry<Payload>]);

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|entry| (&entry.path, Row::of(&entry.change))))
    }
}

/// What an entry is, without what a file carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Row<'a> {
    #[serde(rename = "d")]
    Dir,
    #[serde(rename = "f")]
    File,
    #[serde(rename = "l")]
    Symlink(Cow<'a, [u8]>),
    #[serde(rename = "h")]
    Hardlink(Cow<'a, ImagePath>),
    #[serde(rename = "s")]
    Special,
    #[serde(rename = "w")]
    Whiteout,
    #[serde(rename = "o")]
    Opaque,
}

impl<'a> Row<'a> {
    fn of(change: &'a Change<Payload>) -> Self {
        match change {
            Change::Dir => Self::Dir,
            Change::File(_) => Self::File,
            Change::Symlink(to) => Self::Symlink(to.into()),
            Change::Hardlink(to) => Self::Hardlink(Cow::Borrowed(to)),
            Change::Special => Self::Special,
            Change::Whiteout => Self::Whiteout,
            Change::Opaque => Self::Opaque,
        }
    }
}

impl<T> Found<T> {
    fn new(probe: Probe, noted: &[(Probe, Gap)]) -> Self {
        let gaps = noted.iter().filter(|(p, _)| *p == probe).map(|(_, gap)| gap.clone()).collect();
        Self { version: probe.version().to_owned(), gaps, files: BTreeMap::new() }
    }
}

impl<'a> Entry<Tree<'a>> {
    /// What was read of the layer.
    pub fn of(diff_id: Digest, read: &'a LayerRead) -> io::Result<Self> {
        let mut entry = Self {
            version: VERSION.to_owned(),
            diff_id,
            unpacked: read.unpacked,
            files: read.files,
            tree: Tree(&read.entries),
            gaps: read.gaps.clone(),
            device: Found::new(Probe::Device, &read.noted),
            inventory: Found::new(Probe::Inventory, &read.noted),
            loading: Found::new(Probe::Loading, &read.noted),
        };
        for (number, LayerEntry { path, change }) in read.entries.iter().enumerate() {
            if let Change::File(payload) = change {
                let number = u32::try_from(number).map_err(io::Error::other)?;
                entry.add(number, Claim::on(path).probe(), payload);
            }
        }
        Ok(entry)
    }

    fn add(&mut self, number: u32, probe: Probe, payload: &Payload) {
        let carried = payload.as_deref();
        match (probe, carried) {
            (Probe::Inventory, _) => {
                self.inventory.files.insert(number, carried.and_then(|c| c.package.clone()));
            }
            (Probe::Loading, _) => {
                self.loading.files.insert(number, carried.and_then(|c| c.loading.clone()));
            }
            (Probe::Device, None) => {}
            (Probe::Device, Some(c)) => {
                let (facts, members) = (c.facts.clone(), c.members.clone());
                self.device.files.insert(number, Code { facts, members, empty_driver: c.empty_driver });
            }
        }
    }
}

impl Entry {
    pub fn diff_id(&self) -> &Digest {
        &self.diff_id
    }

    pub fn unpacked(&self) -> u64 {
        self.unpacked
    }

    /// The probes that have changed since; all of them where the entries themselves may be other ones.
    pub fn stale(&self) -> Vec<Probe> {
        let version = |probe| match probe {
            Probe::Device => &self.device.version,
            Probe::Inventory => &self.inventory.version,
            Probe::Loading => &self.loading.version,
        };
        let is_stale = |probe: &Probe| self.version != VERSION || version(*probe) != probe.version();
        Probe::ALL.into_iter().filter(is_stale).collect()
    }

    /// Whether any of the facts still hold.
    pub fn is_of_use(&self) -> bool {
        self.stale().len() < Probe::ALL.len()
    }

    /// Whether reading it under these limits would come to an end.
    pub fn is_within(&self, stored: u64, options: &ScanOptions) -> bool {
        let limits = super::super::layer::limits(options);
        blob::is_within(self.unpacked, stored, limits) && self.tree.len() as u64 <= options.max_entries
    }

    /// The layer as it was read; `None` if the parts do not fit together.
    pub fn restore(self) -> Option<LayerRead> {
        if !self.fits() {
            return None;
        }
        let mut kept = Kept { entry: self, stale: Vec::new() };
        let tree = std::mem::take(&mut kept.entry.tree);
        let restored = |((path, row), number)| {
            let change = match row {
                Row::File => Change::File(kept.payload(number)),
                Row::Dir => Change::Dir,
                Row::Symlink(to) => Change::Symlink(to.into_owned()),
                Row::Hardlink(to) => Change::Hardlink(to.into_owned()),
                Row::Special => Change::Special,
                Row::Whiteout => Change::Whiteout,
                Row::Opaque => Change::Opaque,
            };
            LayerEntry { path, change }
        };
        let entries = tree.into_iter().zip(0u32..).map(restored).collect();
        let mut read = LayerRead { entries, ..LayerRead::default() };
        read.gaps.clone_from(&kept.entry.gaps);
        read.noted = kept.noted().collect();
        read.elfs = kept.elfs();
        read.files = kept.entry.files;
        read.unpacked = kept.entry.unpacked;
        read.diff_id = Some(kept.entry.diff_id);
        Some(read)
    }

    /// Whether every fact is one of a file, and of the probe whose file that is now.
    fn fits(&self) -> bool {
        let files = self.tree.iter().filter(|(_, row)| *row == Row::File).count() as u64;
        let is_file = |number: &u32| self.tree.get(*number as usize).is_some_and(|(_, row)| *row == Row::File);
        let numbers = || {
            let inventory = self.inventory.files.keys();
            self.device.files.keys().chain(inventory).chain(self.loading.files.keys())
        };
        files == self.files
            && numbers().all(is_file)
            && self.tree.iter().zip(0u32..).all(|((path, row), number)| {
                let (inventory, loading) =
                    (self.inventory.files.contains_key(&number), self.loading.files.contains_key(&number));
                let was = match (inventory, loading, self.device.files.contains_key(&number)) {
                    (true, false, false) => Probe::Inventory,
                    (false, true, false) => Probe::Loading,
                    (false, false, _) => Probe::Device,
                    _ => return false,
                };
                *row != Row::File || Claim::on(path).probe() == was
            })
    }
}

/// Facts that still hold, of a layer of which others do not.
pub struct Kept {
    entry: Entry,
    stale: Vec<Probe>,
}

impl Kept {
    /// `None` where nothing holds any more.
    pub fn new(entry: Entry, stale: Vec<Probe>) -> Option<Self> {
        (entry.is_of_use() && entry.fits()).then_some(Self { entry, stale })
    }

    /// Whether the entry of this number is that file.
    pub fn is(&self, number: usize, path: &ImagePath) -> bool {
        self.entry.tree.get(number).is_some_and(|(p, row)| p == path && *row == Row::File)
    }

    /// Whether what this probe found holds.
    pub fn holds(&self, probe: Probe) -> bool {
        !self.stale.contains(&probe)
    }

    /// The gaps of the probes that hold.
    pub fn noted(&self) -> impl Iterator<Item = (Probe, Gap)> {
        let of = |probe| match probe {
            Probe::Device => &self.entry.device.gaps,
            Probe::Inventory => &self.entry.inventory.gaps,
            Probe::Loading => &self.entry.loading.gaps,
        };
        let probes = Probe::ALL.into_iter().filter(|p| self.holds(*p));
        probes.flat_map(move |probe| of(probe).iter().map(move |gap| (probe, gap.clone())))
    }

    /// What the file of this number carries.
    pub fn payload(&self, number: u32) -> Payload {
        let code = self.entry.device.files.get(&number);
        let carried = Carried {
            facts: code.and_then(|c| c.facts.clone()),
            members: code.map_or_else(Vec::new, |c| c.members.clone()),
            empty_driver: code.is_some_and(|c| c.empty_driver),
            package: self.entry.inventory.files.get(&number).cloned().flatten(),
            loading: self.entry.loading.files.get(&number).cloned().flatten(),
        };
        (!carried.is_empty()).then(|| Arc::new(carried))
    }

    /// ELF files that the probe for device code found; none where that does not hold.
    pub fn elfs(&self) -> u64 {
        let codes = self.entry.device.files.values().filter(|_| self.holds(Probe::Device));
        let facts = codes.flat_map(|c| c.facts.iter().chain(c.members.iter().map(|(_, facts)| facts)));
        facts.filter(|facts| facts.kind.is_elf()).count() as u64
    }
}
