//! Where the readers of one file put what they find: modules, and what could not be read.

use super::kpack::Seen;
use super::log::Log;
use super::sycl::Images;
use crate::model::{Container, Gap, GapEffect, Item};

/// Gaps kept for one file; damage that repeats says nothing new. Of those that no answer rests on fewer, so that they
/// crowd nothing out.
const MAX_GAPS: usize = 32;
const MAX_NOTES: usize = 8;

/// Doubts kept, until the sections tell which of them count.
const MAX_DOUBTS: usize = 4096;

/// Bytes that may be inflated of one file, all its containers together: of what the listing needs, and of all.
const INFLATE: u64 = 128 << 20;
const INFLATE_TO_VERIFY: u64 = 16 << 30;
/// Of Intel's binaries all must be: what a binary is for stands at its end.
const INFLATE_IMAGES: u64 = 4 << 30;

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Inflate compressed bundles whole (up to 16 GiB a file) and check sizes, hashes and code objects. Otherwise
    /// only small ones are, of others the table of entries.
    pub verify: bool,
}

/// What one file yields.
pub(super) struct Sink {
    pub log: Log,
    pub gaps: Vec<Gap>,
    notes: usize,
    /// Fatbin headers that no fatbin follows: damage, or a constant in the code of a program that handles fatbins.
    pub suspects: Vec<(u64, String)>,
    /// Marks of offload containers that nothing well-formed follows. Compilers and runtimes have them among their
    /// strings, so they count only where sections say that device code is.
    pub doubts: Vec<(u64, String)>,
    pub doubts_dropped: bool,
    /// Parts of references to kernels in other files.
    pub kpack: Seen,
    /// What looks like images of SYCL programs.
    pub images: Images,
    /// Where bitcode begins that no container holds.
    pub bitcode: Vec<u64>,
    pub options: Options,
    inflate: u64,
    pub inflate_images: u64,
}

impl Sink {
    pub(super) fn new(options: Options) -> Self {
        Self {
            log: Log::default(),
            gaps: Vec::new(),
            notes: 0,
            suspects: Vec::new(),
            doubts: Vec::new(),
            doubts_dropped: false,
            kpack: Seen::default(),
            images: Images::default(),
            bitcode: Vec::new(),
            options,
            inflate_images: INFLATE_IMAGES,
            inflate: if options.verify { INFLATE_TO_VERIFY } else { INFLATE },
        }
    }

    /// Adds a module; `entries` are drained.
    pub(super) fn add(&mut self, container: Container, offset: u64, entries: &mut Vec<(Item, u64)>) {
        self.log.add(container, offset, entries);
    }

    pub(super) fn suspect(&mut self, offset: u64, why: impl Into<String>) {
        if self.suspects.len() < MAX_GAPS {
            self.suspects.push((offset, why.into()));
        }
    }

    pub(super) fn doubt(&mut self, offset: u64, why: impl Into<String>) {
        if self.doubts.len() < MAX_DOUBTS {
            self.doubts.push((offset, why.into()));
        } else {
            self.doubts_dropped = true;
        }
    }

    /// The listing of the file is incomplete.
    pub(super) fn damage(&mut self, offset: u64, why: impl Into<String>) {
        if self.gaps.len() < MAX_GAPS + self.notes {
            let effect = GapEffect::File;
            self.gaps.push(Gap { path: None, layer: None, offset: Some(offset), why: why.into(), effect });
        }
    }

    /// Told, but no answer rests on it.
    pub(super) fn note(&mut self, offset: u64, why: impl Into<String>) {
        if self.notes < MAX_NOTES {
            self.notes += 1;
            let effect = GapEffect::None;
            self.gaps.push(Gap { path: None, layer: None, offset: Some(offset), why: why.into(), effect });
        }
    }

    /// Notes bitcode: sections whose names say what it is for are known later.
    pub(super) fn bitcode(&mut self, offset: u64) {
        if self.bitcode.len() < MAX_DOUBTS {
            self.bitcode.push(offset);
        }
    }

    /// Bytes that may still be inflated.
    pub(super) fn may_inflate(&self) -> u64 {
        self.inflate
    }

    pub(super) fn inflated(&mut self, bytes: u64) {
        self.inflate = self.inflate.saturating_sub(bytes);
    }
}
