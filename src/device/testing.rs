//! Small files of each format, for the tests beside their readers.

use super::{bundle, code_object, cubin};

/// A bundle of entries of (id, bytes), each on a boundary of `align` bytes.
pub(super) fn bundle(entries: &[(&str, &[u8])], align: usize) -> Vec<u8> {
    let table: usize = entries.iter().map(|e| 24 + e.0.len()).sum();
    let mut at = (32 + table).next_multiple_of(align);
    let mut out = bundle::MAGIC.to_vec();
    out.extend((entries.len() as u64).to_le_bytes());
    let mut places = Vec::new();
    for (id, bytes) in entries {
        for n in [at, bytes.len(), id.len()] {
            out.extend((n as u64).to_le_bytes());
        }
        out.extend(id.as_bytes());
        places.push(at);
        at = (at + bytes.len()).next_multiple_of(align);
    }
    for ((_, bytes), at) in entries.iter().zip(places) {
        out.resize(at, 0);
        out.extend(*bytes);
    }
    out
}

/// A code object of nothing but a header.
pub(super) fn code_object(version: u8, flags: u32) -> Vec<u8> {
    let mut head = vec![0; code_object::HEADER];
    head[..7].copy_from_slice(&cubin::MAGIC);
    head[7] = 64;
    head[8] = version - 2;
    head[16] = 3;
    head[18..20].copy_from_slice(&224u16.to_le_bytes());
    head[20] = 1;
    head[48..52].copy_from_slice(&flags.to_le_bytes());
    head[52] = 64;
    head[54] = 56;
    head[58] = 64;
    head
}

/// A zebin of a header and the note of its IP version.
pub(super) fn zebin(packed: u32) -> Vec<u8> {
    let mut out = code_object(2, 0);
    out[7..9].copy_from_slice(&[0, 0]);
    out[18] = 205;
    out.extend(b"\x08\0\0\0\x04\0\0\0\x06\0\0\0IntelGT\0");
    out.extend(packed.to_le_bytes());
    out
}

/// An archive of members of (name, bytes).
pub(super) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        out.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, bytes.len()).as_bytes());
        out.extend(*bytes);
        if bytes.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

/// A SPIR-V module of so many instructions of two words.
pub(super) fn spirv(instructions: usize) -> Vec<u8> {
    let words = [0x0723_0203u32, 0x0001_0400, 0, 10, 0];
    let body = [0x0002_0011u32, 6].repeat(instructions);
    words.into_iter().chain(body).flat_map(u32::to_le_bytes).collect()
}
