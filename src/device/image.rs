//! What one image in a container is, by its first bytes, held against the target under which it is listed.

use super::sink::Sink;
use super::{ccob, code_object, cubin, fatbin, ptx};
use crate::model::{Arch, Form, Item};

/// Bytes of an image that are looked at.
pub(super) const LOOK: usize = ptx::LOOK * 2;

/// First word of a SPIR-V module, little-endian.
pub(super) const SPIRV: [u8; 4] = 0x0723_0203u32.to_le_bytes();

const ELF: &[u8] = b"\x7fELF";

/// LLVM bitcode, plain and in a wrapper.
pub(super) const BITCODE: [[u8; 4]; 2] = [*b"BC\xc0\xde", 0x0b17_c0deu32.to_le_bytes()];

/// Whether an image is LLVM bitcode.
pub(super) fn is_bitcode(head: &[u8]) -> bool {
    BITCODE.iter().any(|magic| head.starts_with(magic))
}

/// An item as its name alone tells it, where the code itself is not looked at. Code objects have the version 0 then.
pub(super) fn by_name(arch: Arch) -> Item {
    let form = match arch {
        Arch::Gfx(_) => Form::CodeObject,
        Arch::AmdSpirv | Arch::Spir64 => Form::Spirv,
        Arch::Intel(_) => Form::Native,
        // Machine code or PTX: the name does not tell.
        Arch::Sm(_) | Arch::Unknown => Form::Unknown,
    };
    Item::of(arch, form)
}

/// What is wrong with an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// What it is cannot be told.
    Damage(String),
    /// Its name is believed.
    Note(String),
}

impl Trouble {
    /// Tells of it, behind a name.
    pub(super) fn tell(self, sink: &mut Sink, at: u64, whose: &str) {
        match self {
            Self::Damage(why) => sink.damage(at, format!("{whose}: {why}")),
            Self::Note(why) => sink.note(at, format!("{whose}: {why}")),
        }
    }
}

/// What is in an image that is listed for `listed`, and what is wrong with it.
pub(super) fn judge(listed: Arch, head: &[u8]) -> (Item, Option<Trouble>) {
    // Images that were put together by hand, for tests of what chooses by names, hold no code of any kind. Damage in
    // the first bytes of a code object is told by the digest of whatever holds the file.
    let by_hand =
        head.len() >= ELF.len() && !head.starts_with(ELF) && !head.starts_with(ccob::MAGIC) && !is_bitcode(head);
    if matches!(listed, Arch::Gfx(_)) && by_hand && cubin::header(head).is_none() {
        return (
            by_name(listed),
            Some(Trouble::Note("does not begin as a code object, its name is believed".to_owned())),
        );
    }
    let (item, problem) = read(listed, head);
    (item, problem.map(Trouble::Damage))
}

fn read(listed: Arch, head: &[u8]) -> (Item, Option<String>) {
    let plain = by_name(listed);
    let unknown = Item { form: Form::Unknown, ..plain };
    if is_bitcode(head) {
        return (Item { form: Form::LtoIr, ..plain }, None);
    }
    if let Some(found) = code_object::header(head) {
        return match listed {
            Arch::Gfx(gfx) => match code_object::agreed(gfx, &found.item) {
                // Of a processor that no table knows neither the name nor the number covers a GPU.
                Some(_) if found.item.form == Form::Unknown => (found.item, found.problem),
                Some(arch) => (Item { arch: arch.into(), ..found.item }, found.problem),
                None => (unknown, Some(format!("listed for {gfx}, but its header says {}", found.item.arch))),
            },
            Arch::Unknown => (Item { arch: listed, form: Form::Unknown, ..found.item }, found.problem),
            Arch::Sm(_) | Arch::AmdSpirv | Arch::Intel(_) | Arch::Spir64 => {
                (unknown, Some(format!("listed for {listed}, but its header says {}", found.item.arch)))
            }
        };
    }
    if let Some(found) = cubin::header(head) {
        let same = listed.sm().zip(found.item.arch.sm()).is_some_and(|(a, b)| a.number == b.number);
        if same {
            // The suffix is in the sections, which are not kept: the name has it.
            return (Item { arch: listed, ..found.item }, None);
        }
        return (unknown, Some(format!("listed for {listed}, but its header says {}", found.item.arch)));
    }
    match listed {
        Arch::AmdSpirv | Arch::Spir64 if head.starts_with(&SPIRV) => (plain, None),
        Arch::Sm(_) => match ptx_item(head) {
            Some(item) => (item, None),
            None if head.starts_with(&fatbin::MAGIC) => (unknown, None),
            None => (unknown, Some(format!("what is listed for {listed} cannot be read"))),
        },
        Arch::Gfx(_) | Arch::AmdSpirv | Arch::Intel(_) | Arch::Spir64 => {
            let what = if ccob::is_start(head) { "is compressed once more" } else { "cannot be read" };
            (unknown, Some(format!("what is listed for {listed} {what}")))
        }
        Arch::Unknown => (unknown, None),
    }
}

fn ptx_item(head: &[u8]) -> Option<Item> {
    ptx::directive(&head[ptx::file_start(head)?..])
}

#[cfg(test)]
mod tests {
    use super::super::testing::code_object;
    use super::*;

    #[test]
    fn images_and_their_names() {
        let told = |listed: &str, head: &[u8]| {
            let (item, problem) = judge(listed.parse().unwrap(), head);
            (item.arch.to_string(), item.form, problem.is_some())
        };
        let gfx942 = code_object(6, 0x54c);
        assert_eq!(told("gfx942", &gfx942), ("gfx942".into(), Form::CodeObject, false));
        assert_eq!(told("gfx90a", &gfx942), ("gfx90a".into(), Form::Unknown, true));
        assert_eq!(told("unknown", &gfx942), ("unknown".into(), Form::Unknown, false));
        assert_eq!(told("sm_70", &gfx942), ("sm_70".into(), Form::Unknown, true));
        assert_eq!(told("gfx942", &code_object(6, 0xfe)), ("unknown".into(), Form::Unknown, false));
        assert_eq!(told("gfx942", b"BC\xc0\xde5\x14"), ("gfx942".into(), Form::LtoIr, false));
        assert_eq!(told("gfx942", b"CCOB"), ("gfx942".into(), Form::Unknown, true));
        assert_eq!(told("gfx942", b""), ("gfx942".into(), Form::Unknown, true));
        assert_eq!(told("gfx942", &gfx942[..40]), ("gfx942".into(), Form::Unknown, true));
        let by_hand = judge("gfx942".parse().unwrap(), b"kernels of gfx942");
        assert!(matches!(by_hand, (Item { form: Form::CodeObject, .. }, Some(Trouble::Note(_)))), "{by_hand:?}");
        assert_eq!(
            told("amdgcnspirv", b"\x03\x02\x23\x07\0\x06\x01\0"),
            ("amdgcnspirv".into(), Form::Spirv, false)
        );
        assert_eq!(told("sm_70", b"// x\n.version 8.0\n.target sm_70\n"), ("sm_70".into(), Form::Ptx, false));
    }
}
