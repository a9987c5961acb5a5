//! AMD's code objects: ELF files of machine 224. Their target is spread over `e_flags`, by the version that the ABI
//! byte gives (LLVM's AMDGPUUsage, "Header").

use std::io;

use goblin::elf::Elf;

use super::sink::Sink;
use super::{cubin, target};
use crate::model::{Arch, Container, Form, GfxArch, GfxMode, Item, Machine, Packing};
use crate::stream::Body;

/// Bytes of the header, all that is read.
pub(super) const HEADER: usize = 64;

/// `EI_OSABI` of code for AMD's HSA runtime, which ROCm is.
const OSABI_HSA: u8 = 64;

/// What `EI_ABIVERSION` counts from.
const FIRST_VERSION: u16 = 2;
const LAST_VERSION: u16 = 6;
/// The first whose flags tell "any" and "off" apart.
const FOUR_STATES: u16 = 4;

/// What a code object's header tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeObject {
    pub item: Item,
    /// Bytes of the whole: the end of its last table.
    pub size: u64,
    /// What is wrong with it, or not known.
    pub problem: Option<String>,
}

/// Decodes a header; `None` if these bytes are no code object of AMD.
pub(super) fn header(bytes: &[u8]) -> Option<CodeObject> {
    let head = bytes.get(..HEADER)?;
    if !head.starts_with(&cubin::MAGIC) {
        return None;
    }
    let h = Elf::parse_header(head).ok()?;
    if Machine(h.e_machine) != Machine::AMDGPU {
        return None;
    }
    let version = u16::from(head[8]) + FIRST_VERSION;
    let known = head[7] == OSABI_HSA && version <= LAST_VERSION;
    let processor = target::processor(h.e_flags as u8);
    let (arch, problem) = match processor {
        _ if head[7] != OSABI_HSA => {
            (Arch::Unknown, Some(format!("code object for another runtime than ROCm's (OS ABI {})", head[7])))
        }
        _ if version > LAST_VERSION => (Arch::Unknown, Some(format!("code object of unknown version {version}"))),
        // Newer than the table: told by what is listed.
        None => (Arch::Unknown, None),
        Some(processor) => {
            let (sramecc, xnack) = features(version, h.e_flags);
            let generic = processor.is_generic();
            let first = h.e_flags >> 24;
            let problem = (generic && (version < LAST_VERSION || first == 0))
                .then(|| format!("code object of version {version} for {processor} without a generic version"));
            (Arch::Gfx(GfxArch { processor, sramecc, xnack }), problem)
        }
    };
    let understood = known && arch != Arch::Unknown;
    let item = Item {
        arch,
        form: if understood { Form::CodeObject } else { Form::Unknown },
        kind: if understood { version } else { (h.e_flags & 0xff) as u16 },
        isa: None,
        packing: Packing::None,
        toolkit: None,
    };
    Some(CodeObject { item, size: cubin::end_of_tables(&h), problem })
}

/// sramecc and xnack. Version 2 has them in a note; version 3 says "on" or nothing.
fn features(version: u16, flags: u32) -> (GfxMode, GfxMode) {
    let four = |shift: u32| match flags >> shift & 3 {
        2 => GfxMode::Off,
        3 => GfxMode::On,
        // 0: the processor has no such feature. 1: any.
        _ => GfxMode::Any,
    };
    let two = |bit: u32| if flags & bit != 0 { GfxMode::On } else { GfxMode::Any };
    match version {
        FOUR_STATES.. => (four(10), four(8)),
        3 => (two(0x200), two(0x100)),
        _ => (GfxMode::Any, GfxMode::Any),
    }
}

/// Holds a header against the target under which a container lists it. Gives what both say together, or `None` where
/// they contradict each other.
pub(super) fn agreed(listed: GfxArch, found: &Item) -> Option<GfxArch> {
    let Some(header) = found.arch.gfx() else { return Some(listed) };
    let mode = |listed: GfxMode, header: GfxMode| match found.kind {
        FOUR_STATES.. => (listed == header).then_some(header),
        // What an older header does not say may be so or not.
        _ if header == GfxMode::Any || header == listed => Some(listed),
        _ if listed == GfxMode::Any => Some(header),
        _ => None,
    };
    if listed.processor != header.processor {
        return None;
    }
    Some(GfxArch {
        processor: listed.processor,
        sramecc: mode(listed.sramecc, header.sramecc)?,
        xnack: mode(listed.xnack, header.xnack)?,
    })
}

/// Reads the code object at the current position, whose header is `found`, and moves past it.
pub(super) fn read(sink: &mut Sink, body: &mut dyn Body, found: CodeObject) -> io::Result<()> {
    let start = body.position();
    let left = body.len().map_or(u64::MAX, |n| n.saturating_sub(start));
    if found.size > left {
        sink.damage(start, "code object runs past the end of the file");
    }
    if let Some(problem) = found.problem {
        sink.damage(start, problem);
    }
    sink.add(Container::CodeObject, start, &mut vec![(found.item, found.size.min(left))]);
    body.skip(if found.size <= left { found.size } else { HEADER as u64 })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::code_object;
    use super::*;

    fn arch(version: u8, flags: u32) -> String {
        header(&code_object(version, flags)).unwrap().item.arch.to_string()
    }

    #[test]
    fn flags_by_version() {
        assert_eq!(arch(6, 0x54c), "gfx942");
        assert_eq!(arch(5, 0xb3f), "gfx90a:sramecc-:xnack+");
        assert_eq!(arch(4, 0xe2f), "gfx906:sramecc+:xnack-");
        assert_eq!(arch(3, 0x22f), "gfx906:sramecc+");
        assert_eq!(arch(2, 0x32f), "gfx906");
        assert_eq!(arch(6, 0x0100_0054), "gfx11-generic");
        assert!(header(&code_object(6, 0x54)).unwrap().problem.unwrap().contains("gfx11-generic"));
        let newer = header(&code_object(6, 0xfe)).unwrap();
        assert_eq!((newer.item.arch, newer.item.form, newer.item.kind), (Arch::Unknown, Form::Unknown, 0xfe));
        let unknown = header(&code_object(7, 0x4c)).unwrap();
        assert_eq!((unknown.item.arch, unknown.problem.is_some()), (Arch::Unknown, true));
        let mut mesa = code_object(4, 0x4c);
        mesa[7] = 66;
        assert_eq!(header(&mesa).unwrap().item.form, Form::Unknown);
        mesa[18] = 62;
        assert_eq!(header(&mesa), None);
    }

    #[test]
    fn an_id_and_a_header_agree_or_not() {
        let agrees = |listed: &str, version: u8, flags: u32| {
            agreed(listed.parse().unwrap(), &header(&code_object(version, flags)).unwrap().item)
                .map(|a| a.to_string())
        };
        assert_eq!(agrees("gfx90a", 6, 0x53f).as_deref(), Some("gfx90a"));
        assert_eq!(agrees("gfx90a:xnack-", 6, 0x53f), None);
        assert_eq!(agrees("gfx908", 6, 0x53f), None);
        assert_eq!(agrees("gfx906:sramecc+:xnack-", 3, 0x22f).as_deref(), Some("gfx906:sramecc+:xnack-"));
        assert_eq!(agrees("gfx906", 3, 0x22f).as_deref(), Some("gfx906:sramecc+"));
        assert_eq!(agrees("gfx906:sramecc-", 3, 0x22f), None);
    }
}
