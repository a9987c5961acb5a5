//! The dynamic loader, simulated over the merged tree of an image: which file each library name leads to, and by
//! which law. Nothing of the machine that scans is asked.
//!
//! [`wants`] and [`read`] take the loader's own files (`etc/ld.so.cache` and the like) while their layer flows by;
//! [`simulate`] runs glibc's or musl's search for every ELF file as a process of its own, as `ldd FILE` does, and
//! then looks into the processes that really load it: the Python of its environment, the frameworks beside it, and
//! the programs that need it.

mod cache;
mod capture;
mod conf;
mod expand;
mod glob;
mod law;
mod ldconfig;
mod process;
mod rows;
mod search;
mod sites;
mod symbols;
mod system;
mod table;

use crate::model::{ConfigFacts, ElfFacts, EvidenceFile, Gap, ImagePath, LdCache, Libc, Loads, Need};

pub use cache::{Cache, CacheEntry, Capability};
pub use capture::{Capture, Probe, read, wants};
pub use rows::simulate;

/// What a path leads to, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A directory; the number is the tree's own.
    Dir(u32),
    /// A file of the evidence, by its index there.
    File(usize),
    /// Anything else that can be opened; the number is the tree's own.
    Other(u32),
    /// Something stands there and leads nowhere: links in a circle, or below what is no directory.
    Barred,
}

/// The merged tree of an image.
pub trait Tree {
    /// The number of the root directory.
    fn root(&self) -> u32;

    /// Follows a path as the kernel does: every link within the root, `..` from where a link has led. A leading
    /// slash starts at the root, anything else in the directory `from`.
    fn look(&self, from: u32, path: &[u8]) -> Option<Place>;

    /// The names in a directory, and which of them are symbolic links.
    fn list(&self, dir: u32) -> Vec<(Vec<u8>, bool)>;

    /// The real path of a directory or of another thing.
    fn path(&self, number: u32) -> ImagePath;

    /// What was taken from the file that a path leads to.
    fn captured(&self, path: &[u8]) -> Option<&Capture>;
}

/// How a framework finds libraries that the loader does not find by itself. Paths are relative to the directory
/// that holds Python packages; `*` stands for part of one component.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    pub name: &'a str,
    /// The directory of the framework; without it the row says nothing.
    pub package: &'a str,
    /// What importing the framework loads.
    pub roots: &'a [String],
    /// Directories that it looks into, in this order.
    pub dirs: &'a [String],
    /// The libraries that it takes from there, `libcublas.so.*`.
    pub libraries: &'a [String],
    /// Those that it loads from there before all others, so that nothing else of their name is loaded later.
    pub first: &'a [String],
}

/// Libraries that a file opens by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opens {
    pub names: Vec<String>,
    pub told: Told,
}

/// Which of the names are told that are not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Each is needed.
    Always,
    /// One is enough: those that are missing are told where none is found.
    UnlessAnother,
    /// It does without.
    IfFound,
}

/// What is known about who loads what beyond the loader's laws.
pub trait Knowledge {
    /// Whether the NVIDIA container runtime brings a library of this name from the host's driver.
    fn is_driver(&self, library: &str) -> bool;
    fn lookups(&self) -> Vec<Lookup<'_>>;
    fn opens(&self, path: &ImagePath, elf: &ElfFacts) -> Vec<Opens>;
    /// The library that provides a symbol, by the symbol's name: `libcudnn` for `cudnnCreate`.
    fn family(&self, symbol: &str) -> Option<&str>;
}

/// The libraries of the driver that programs ask for first.
pub const DRIVER: [&str; 4] = ["libcuda.so.1", "libnvidia-ml.so.1", "libcuda.so", "libnvidia-ml.so"];

/// What is simulated.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Sorted by path.
    pub files: &'a [EvidenceFile],
    pub config: &'a ConfigFacts,
    pub tree: &'a dyn Tree,
    pub known: &'a dyn Knowledge,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Simulated {
    /// By file.
    pub loads: Vec<Loads>,
    /// [`DRIVER`], as a program without search paths of its own gets them.
    pub driver: Vec<Need>,
    pub libc: Option<Libc>,
    pub ld_cache: LdCache,
    pub gaps: Vec<Gap>,
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
