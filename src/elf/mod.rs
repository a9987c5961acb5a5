//! ELF files read in one forward pass: the tables that name things are kept as they flow by.

mod dynamic;
mod harvest;
mod head;
mod keep;
mod marks;
mod places;
mod symbols;
#[cfg(test)]
mod tests;
mod vendor;

pub use dynamic::{Section, Tables};
pub use harvest::{Harvest, OVERLAP as OVERLAP_FOR_NAMES};
pub use keep::Keep;
pub use marks::Marks;

/// First bytes of any ELF file.
pub const MAGIC: [u8; 4] = [0x7f, b'E', b'L', b'F'];
