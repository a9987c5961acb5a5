//! Cubins: ELF files of machine 190. Their architecture is spread over `e_flags`, the ABI version and, from
//! CUDA 13.0 on, an attribute of the `.nv.compat` section.

use std::io;

use goblin::elf::{Elf, Header};

use super::sink::Sink;
use crate::model::{Arch, Container, CudaVersion, Feature, Form, Item, Packing, SmArch};
use crate::stream::{Body, MAX_WINDOW};

/// Start of a 64-bit little-endian ELF of the current version: what every cubin begins with.
pub const MAGIC: [u8; 7] = [0x7f, b'E', b'L', b'F', 2, 1, 1];

pub const HEADER: usize = 64;

/// Largest cubin that is read whole to learn its suffix and toolkit.
const WHOLE: u64 = (MAX_WINDOW / 2) as u64;

/// `.nv.compat` attribute that is 1 for architecture-specific code.
const ATTRIBUTE_ARCH_SPECIFIC: u8 = 9;

/// What a cubin's ELF header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cubin {
    pub item: Item,
    /// Bytes of the whole cubin: the end of its last table.
    pub size: u64,
    /// Whether the suffix must be looked up in the sections.
    pub suffix_in_sections: bool,
}

/// Decodes the header of a cubin; `None` if these bytes are no cubin.
pub fn header(bytes: &[u8]) -> Option<Cubin> {
    let head = bytes.get(..HEADER)?;
    if !head.starts_with(&MAGIC) {
        return None;
    }
    let h = Elf::parse_header(head).ok()?;
    if h.e_machine != crate::model::Machine::CUDA.0 {
        return None;
    }
    let (osabi, abi) = (head[7], head[8]);
    let new_abi = abi >= 8 || osabi == 0x41;
    let number = if new_abi { (h.e_flags >> 8) & 0xff } else { h.e_flags & 0xff };
    // Old ABI: the bit is also set on some sm_60 stubs, where it means nothing.
    let arch_specific = if new_abi { h.e_flags & 0x8 != 0 } else { number == 90 && h.e_flags & 0x800 != 0 };
    let feature = if arch_specific { Feature::Arch } else { Feature::Plain };
    let item = Item {
        arch: SmArch::new(number, feature).into(),
        form: Form::Sass,
        kind: 2,
        isa: None,
        packing: Packing::None,
        toolkit: if new_abi { None } else { toolkit_of(h.e_version) },
    };
    Some(Cubin { item, size: end_of_tables(&h), suffix_in_sections: new_abi && !arch_specific })
}

/// 124 means 12.4. Old-ABI cubins carry it as `e_version`.
fn toolkit_of(number: u32) -> Option<CudaVersion> {
    (90..1000).contains(&number).then(|| CudaVersion::new((number / 10) as u16, (number % 10) as u16))
}

pub(super) fn end_of_tables(h: &Header) -> u64 {
    let end = |at: u64, size: u16, count: u16| at.saturating_add(u64::from(size) * u64::from(count));
    end(h.e_shoff, h.e_shentsize, h.e_shnum).max(end(h.e_phoff, h.e_phentsize, h.e_phnum)).max(HEADER as u64)
}

/// Completes a decoded header from the whole cubin.
pub fn complete(mut item: Item, bytes: &[u8]) -> Item {
    let Ok(elf) = Elf::parse(bytes) else { return item };
    for section in &elf.section_headers {
        let Some(name) = elf.shdr_strtab.get_at(section.sh_name) else { continue };
        let range = section.file_range().and_then(|r| bytes.get(r)).unwrap_or_default();
        match name {
            ".nv.compat" if attribute(range, ATTRIBUTE_ARCH_SPECIFIC) == Some(1) => {
                item.arch = with_suffix(item.arch)
            }
            ".note.nv.cuinfo" if item.toolkit.is_none() => item.toolkit = cuinfo_toolkit(range),
            _ => {}
        }
    }
    item
}

fn with_suffix(arch: Arch) -> Arch {
    match arch {
        Arch::Sm(arch) => Arch::Sm(SmArch { feature: Feature::Arch, ..arch }),
        other => other,
    }
}

/// Records of one format byte, one attribute byte and a 16-bit value; format 4 carries bytes of that length.
fn attribute(mut records: &[u8], wanted: u8) -> Option<u16> {
    while let [format, attribute, low, high, rest @ ..] = records {
        let value = u16::from_le_bytes([*low, *high]);
        if *format == 4 {
            records = rest.get(usize::from(value)..)?;
            continue;
        }
        if *attribute == wanted {
            return Some(if *format == 2 { value & 0xff } else { value });
        }
        records = rest;
    }
    None
}

/// The note's description: two 16-bit numbers, then the toolkit as 0x87 for 13.5.
fn cuinfo_toolkit(note: &[u8]) -> Option<CudaVersion> {
    let name_size = u32::from_le_bytes(note.get(..4)?.try_into().ok()?) as usize;
    let description = 12 + name_size.checked_next_multiple_of(4)?;
    let field = note.get(description.checked_add(4)?..description.checked_add(8)?)?;
    toolkit_of(u32::from_le_bytes(field.try_into().ok()?))
}

/// Reads the cubin at the current position, whose header is `found`, and moves past it.
pub(super) fn read(sink: &mut Sink, body: &mut dyn Body, found: Cubin) -> io::Result<()> {
    let start = body.position();
    let left = body.len().map_or(u64::MAX, |n| n.saturating_sub(start));
    let whole = found.size <= left;
    if !whole {
        sink.damage(start, "cubin runs past the end of the file");
    }
    let item = if whole { whole_cubin(found, body)? } else { found.item };
    sink.add(Container::Cubin, start, &mut vec![(item, found.size.min(left))]);
    body.skip(if whole { found.size } else { HEADER as u64 })?;
    Ok(())
}

/// The cubin at the current position with what its sections add; does not move.
fn whole_cubin(found: Cubin, body: &mut dyn Body) -> io::Result<Item> {
    if !found.suffix_in_sections || found.size > WHOLE {
        return Ok(found.item);
    }
    let window = body.window(found.size as usize)?;
    Ok(match window.get(..found.size as usize) {
        Some(bytes) => complete(found.item, bytes),
        None => found.item,
    })
}
