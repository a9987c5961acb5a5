//! What was found in a file, held against its sections once they are known: which findings count, and what is missing.

use super::sink::Sink;
use crate::elf::{Section, Tables};
use crate::model::{FileFacts, FileKind, GapEffect, Machine};

/// Sections that hold CUDA's device code.
const CUDA: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];

/// Beginnings of the names of sections that hold offload containers.
const OFFLOAD: [&str; 4] = [".hip_fatbin", ".llvm.offloading", "__CLANG_OFFLOAD_BUNDLE__", "OFFLOAD_DEVICE_CODE"];

fn is_offload(name: &str) -> bool {
    OFFLOAD.iter().any(|start| name.starts_with(start))
}

/// Fills in the modules and the gaps.
pub(super) fn fill(facts: &mut FileFacts, mut sink: Sink, tables: Option<&Tables>) {
    if let Some((offset, count)) = sink.log.dropped {
        sink.damage(offset, format!("{count} device code regions are over the limit for one file"));
    }
    let sections = tables.map(Tables::sections).unwrap_or_default();
    if let Some(tables) = tables {
        let expected = tables.expected_size();
        if expected > facts.size {
            sink.damage(facts.size, format!("ELF file is cut off: its tables end at byte {expected}"));
        }
        if Machine(tables.machine()) != Machine::CUDA {
            missing(&mut sink, &sections);
        }
    }
    suspects(&mut sink, &sections, tables);
    doubts(&mut sink, &sections, facts.kind, tables);
    let object = facts.kind == FileKind::Object;
    facts.modules = sink.log.modules(|offset| {
        let holder = sections.iter().find(|s| s.holds(offset));
        let relocatable = holder.is_some_and(|s| s.name.contains("nv_relfatbin"));
        (holder.map(|s| s.name.clone()), relocatable && !object)
    });
    facts.gaps = sink.gaps;
}

/// Declared, but nothing well-formed was found: damage, or a format that is not understood.
fn missing(sink: &mut Sink, sections: &[Section]) {
    let declared = sections.iter().find(|s| CUDA.contains(&s.name.as_str()) && s.size > 0);
    let cuda = declared.filter(|_| sink.log.is_empty() && sink.log.empty == 0);
    let hip = sections.iter().filter(|s| s.name.starts_with(".hip_fatbin") && s.size > 0);
    let hip = hip.filter(|s| sink.log.empty == 0 && !sink.log.any_in(s.offset, s.size));
    for section in cuda.into_iter().chain(hip).collect::<Vec<_>>() {
        let why = format!("section {} holds nothing that can be read as device code", section.name);
        sink.damage(section.offset, why);
    }
}

/// A suspect within machine code of the host is a constant of a program that handles fatbins.
fn suspects(sink: &mut Sink, sections: &[Section], tables: Option<&Tables>) {
    for (offset, why) in std::mem::take(&mut sink.suspects) {
        let in_code = match sections.iter().find(|s| s.holds(offset)) {
            Some(section) => section.executable,
            None => tables.is_some_and(|t| t.is_code(offset)),
        };
        if !in_code {
            sink.damage(offset, why);
        }
    }
}

/// A doubt counts where device code is declared, and in files that are nothing else. A program's sections may be
/// stripped: then it counts wherever the program has data.
fn doubts(sink: &mut Sink, sections: &[Section], kind: FileKind, tables: Option<&Tables>) {
    let counts = |offset: u64| match kind {
        FileKind::Bundle => true,
        FileKind::SharedObject | FileKind::Executable | FileKind::Object => match sections.is_empty() {
            true => tables.is_some_and(|t| !t.is_code(offset)),
            false => sections.iter().any(|s| s.holds(offset) && is_offload(&s.name)),
        },
        FileKind::BrokenElf
        | FileKind::Archive
        | FileKind::Fatbin
        | FileKind::Cubin
        | FileKind::Ptx
        | FileKind::CodeObject
        | FileKind::Kpack
        | FileKind::Zebin => false,
    };
    let dropped = std::mem::take(&mut sink.doubts_dropped) && sections.iter().any(|s| is_offload(&s.name));
    for (offset, why) in std::mem::take(&mut sink.doubts) {
        if counts(offset) {
            sink.damage(offset, why);
        }
    }
    if dropped && !sink.gaps.iter().any(|g| g.effect == GapEffect::File) {
        sink.damage(0, "more marks of offload containers than are looked at in one file");
    }
}
