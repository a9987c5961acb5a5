//! Intel's GPU binaries: zebins, which are ELF files of machine 205, and the archives of them that ocloc makes for
//! several GPUs. Note 6 of a zebin tells the GPU (compute-runtime, `zebin_elf.h`).

use std::io;

use goblin::elf::Elf;

use super::sink::Sink;
use super::{cubin, image};
use crate::model::{Arch, Container, Form, IntelIp, Item, Machine, Packing};
use crate::stream::{Body, Part};

/// Start of an archive, and of each member: name, numbers, size, end mark.
pub(super) const ARCHIVE: &[u8; 8] = b"!<arch>\n";
const MEMBER: usize = 60;
const MEMBER_END: &[u8] = b"`\n";

/// Members of one archive; the largest known has 10 or so.
const MAX_MEMBERS: usize = 4096;

/// Bytes of an ELF header.
const ELF_HEADER: usize = 64;

/// ELF type of a `generic_ir` member: SPIR-V for any other GPU.
const ET_GENERIC: u16 = 0xff02;

/// A note of 4 bytes and type 6, owner `IntelGT`: the packed IP version follows.
const PRODUCT: &[u8] = b"\x08\0\0\0\x04\0\0\0\x06\0\0\0IntelGT\0";

const CHUNK: usize = 64 << 10;

/// Whether these bytes begin a zebin; gives its size by its tables.
pub(super) fn header(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..ELF_HEADER)?;
    let h = Elf::parse_header(head).ok()?;
    (head.starts_with(&cubin::MAGIC) && Machine(h.e_machine) == Machine::INTELGT).then(|| cubin::end_of_tables(&h))
}

/// Whether a file that begins so is an archive of ocloc's: its first member is called `64.12.60.7/` or is there to align
/// the next.
pub(super) fn is_archive(head: &[u8]) -> bool {
    let Some(member) = head.strip_prefix(ARCHIVE).filter(|m| member_size(m).is_some()) else { return false };
    let name = member[..16].trim_ascii_end();
    let bits = name.strip_prefix(b"64.").or_else(|| name.strip_prefix(b"32."));
    bits.is_some_and(|rest| !rest.ends_with(b".o/")) || name.starts_with(b"pad_") || name.starts_with(b"generic_ir")
}

/// The size in a member's header; `None`: it is none.
fn member_size(header: &[u8]) -> Option<u64> {
    let header = header.get(..MEMBER).filter(|h| h.ends_with(MEMBER_END))?;
    std::str::from_utf8(&header[48..58]).ok()?.trim_end().parse().ok()
}

/// Whether a member begins behind the archive's magic.
pub(super) fn begins_archive(bytes: &[u8]) -> bool {
    bytes.strip_prefix(ARCHIVE).is_some_and(|m| member_size(m).is_some())
}

/// Reads the zebin that a body is, to its end.
fn zebin(body: &mut dyn Body) -> io::Result<Arch> {
    let mut found = Arch::Unknown;
    loop {
        let window = body.window(CHUNK)?;
        if window.is_empty() {
            return Ok(found);
        }
        let last = window.len() < CHUNK;
        if found == Arch::Unknown
            && let Some(at) = memchr::memmem::find(window, PRODUCT)
            && let Some(packed) = window[at + PRODUCT.len()..].first_chunk()
        {
            found = Arch::Intel(IntelIp::from_packed(u32::from_le_bytes(*packed)));
        }
        let n = if last { window.len() } else { window.len() - PRODUCT.len() - 4 };
        body.consume(n);
    }
}

/// The items of one image, with the bytes of each.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub items: Vec<(Item, u64)>,
    /// What could not be read.
    pub problem: Option<String>,
}

impl Found {
    fn add(&mut self, arch: Arch, bytes: u64, packing: Packing) {
        let form = match arch {
            Arch::Intel(_) => Form::Native,
            Arch::Spir64 => Form::Spirv,
            Arch::Unknown | Arch::Sm(_) | Arch::Gfx(_) | Arch::AmdSpirv => Form::Unknown,
        };
        if form == Form::Unknown {
            self.problem.get_or_insert_with(|| "Intel GPU binary that does not say for which GPU it is".to_owned());
        }
        self.items.push((Item { form, packing, ..image::by_name(arch) }, bytes));
    }
}

/// Reads the zebin at the current position, `size` bytes, and moves past it.
pub(super) fn read(body: &mut dyn Body, size: u64, packing: Packing) -> io::Result<Found> {
    let mut found = Found::default();
    let mut part = Part::new(body, size);
    let arch = zebin(&mut part)?;
    found.add(arch, size, packing);
    if part.finish()? > 0 {
        found.problem = Some("Intel GPU binary is cut off by the end".to_owned());
    }
    Ok(found)
}

/// Reads the archive at the current position and moves past its last member.
pub(super) fn read_archive(body: &mut dyn Body, packing: Packing) -> io::Result<Found> {
    let mut found = Found::default();
    body.skip(ARCHIVE.len() as u64)?;
    for _ in 0..MAX_MEMBERS {
        let Some(size) = member_size(body.window(MEMBER)?) else { return Ok(found) };
        body.skip(MEMBER as u64)?;
        let left = body.len().map_or(u64::MAX, |n| n.saturating_sub(body.position()));
        if size > left {
            found.problem = Some("member of an archive of Intel GPU binaries runs past the end".to_owned());
            return Ok(found);
        }
        let mut part = Part::new(body, size);
        let head = part.window(ELF_HEADER)?;
        if header(head).is_some() {
            let arch = zebin(&mut part)?;
            found.add(arch, size, packing);
        } else if is_generic(head) || head.starts_with(&image::SPIRV) {
            found.add(Arch::Spir64, size, packing);
        }
        if part.finish()? > 0 {
            found.problem = Some("archive of Intel GPU binaries is cut off by the end".to_owned());
            return Ok(found);
        }
        if size % 2 == 1 && body.window(1)?.first() == Some(&b'\n') {
            body.skip(1)?;
        }
    }
    found.problem = Some(format!("archive of Intel GPU binaries with more than {MAX_MEMBERS} members"));
    Ok(found)
}

/// An ELF file around SPIR-V.
fn is_generic(head: &[u8]) -> bool {
    let parsed = head.get(..ELF_HEADER).and_then(|h| Elf::parse_header(h).ok());
    head.starts_with(&cubin::MAGIC) && parsed.is_some_and(|h| h.e_type == ET_GENERIC && h.e_machine == 0)
}

/// Reads a file that is a zebin or an archive of them.
pub(super) fn read_file(sink: &mut Sink, body: &mut dyn Body) -> io::Result<()> {
    let head = body.window(ARCHIVE.len().max(ELF_HEADER))?;
    let is_archive = head.starts_with(ARCHIVE);
    let by_tables = header(head);
    let size = body.len().or(by_tables).unwrap_or(u64::MAX);
    let mut found = if is_archive { read_archive(body, Packing::None)? } else { read(body, size, Packing::None)? };
    if found.items.is_empty() {
        found.problem.get_or_insert_with(|| "archive without Intel GPU binaries".to_owned());
    }
    if let Some(problem) = found.problem {
        sink.damage(0, problem);
    }
    sink.add(Container::Zebin, 0, &mut found.items);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{archive, zebin};
    use super::*;
    use crate::stream::Stream;

    fn told(bytes: &[u8]) -> (Vec<String>, Option<String>) {
        let mut body = Stream::new(bytes, Some(bytes.len() as u64));
        let found = read_archive(&mut body, Packing::None).unwrap();
        (found.items.iter().map(|i| i.0.arch.to_string()).collect(), found.problem)
    }

    #[test]
    fn archives_of_several() {
        let mut generic = zebin(0);
        generic[16..20].copy_from_slice(&[2, 0xff, 0, 0]);
        let bytes = archive(&[
            ("pad_0/", &[0; 7]),
            ("64.12.60.7/", &zebin(0x030f_0007)),
            ("64.bmg/", &[zebin(0x0500_4000), vec![0; 200_000]].concat()),
            ("generic_ir/", &generic),
        ]);
        assert!(is_archive(&bytes) && begins_archive(&bytes));
        let all = ["intel_gpu_12_60_7", "intel_gpu_20_1_0", "spir64"];
        assert_eq!(told(&bytes), (all.map(str::to_owned).to_vec(), None));
        assert_eq!(told(&[&bytes[..], b"\0\0\0\0 something else"].concat()).0.len(), 3);
        let (cut, why) = told(&bytes[..bytes.len() - 10]);
        assert_eq!((cut.len(), why.is_some()), (2, true));
        // A static library is none of ocloc's.
        assert!(!is_archive(&archive(&[("/", b""), ("foo.o/", b"")])));
        assert!(!is_archive(&archive(&[("64.o/", b"")])) || !is_archive(b"!<arch>\n"));
    }

    #[test]
    fn a_zebin_without_its_note_is_not_understood() {
        let (archs, why) = told(&archive(&[("64.x/", &zebin(0)[..ELF_HEADER])]));
        assert_eq!((archs, why.is_some()), (vec!["unknown".to_owned()], true));
    }
}
