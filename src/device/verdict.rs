//! What was found in a file, held against its sections once they are known: which findings count, and what is missing.

use super::image;
use super::kpack;
use super::log::Starts;
use super::sink::Sink;
use super::target::{self, Target};
use crate::elf::{Section, Tables};
use crate::model::{Arch, Container, FileFacts, FileKind, Form, GapEffect, Item, Machine};

/// Sections that hold CUDA's device code.
const CUDA: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];

/// Beginning of the names of HIP's sections.
const HIP: &str = ".hip_fatbin";

/// Beginning of the names of sections that hold one image: kind, triple and target follow.
const BY_NAME: &str = "__CLANG_OFFLOAD_BUNDLE__";

/// Beginnings of the names of sections that hold offload containers.
const OFFLOAD: [&str; 3] = [HIP, ".llvm.offloading", BY_NAME];

/// Where newer SYCL compilers put all images.
const SYCL: &str = "OFFLOAD_DEVICE_CODE";

/// What programs with images of SYCL are linked to.
const SYCL_RUNTIME: &str = "libsycl.so.";

/// An image of this size stands for none.
const PLACEHOLDER: u64 = 8;

/// Bytes between images that align the next.
const ALIGNMENT: u64 = 4096;

fn is_offload(name: &str) -> bool {
    OFFLOAD.iter().any(|start| name.starts_with(start))
}

/// Whether a section holds SYCL's images for Intel's GPUs: those for other targets are what these have, those for a
/// processor are none for a GPU.
fn is_sycl(name: &str) -> bool {
    name == SYCL
        || matches!(
            name.strip_prefix(BY_NAME).and_then(|id| id.strip_prefix("sycl-")),
            Some("spir64" | "spir64_gen")
        )
        || name
            .strip_prefix(BY_NAME)
            .is_some_and(|id| id.starts_with("sycl-spir64-") || id.starts_with("sycl-spir64_gen-"))
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
            let elsewhere;
            (facts.kpack, elsewhere) = kpack::reference(&mut sink, &sections, tables);
            let starts = sink.log.starts();
            named(&mut sink, &sections, &starts);
            let links_sycl =
                facts.elf.as_ref().is_some_and(|e| e.needed.iter().any(|n| n.starts_with(SYCL_RUNTIME)));
            match sections.is_empty() && links_sycl {
                true => stripped_sycl(&mut sink, facts.size),
                false => sycl(&mut sink, &sections, &starts),
            }
            if facts.kind != FileKind::Object {
                registered(&mut sink, &sections, &starts, elsewhere);
            }
            missing(&mut sink, &sections, &starts, facts.kpack.is_some());
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
fn missing(sink: &mut Sink, sections: &[Section], starts: &Starts, elsewhere: bool) {
    let declared = sections.iter().find(|s| CUDA.contains(&s.name.as_str()) && s.size > 0);
    let cuda = declared.filter(|_| sink.log.is_empty() && sink.log.empty == 0);
    let hip = sections.iter().filter(|s| s.name.starts_with(HIP) && s.size > 0 && !elsewhere);
    let hip = hip.filter(|s| sink.log.empty == 0 && !starts.any_in(s.offset, s.size));
    for section in cuda.into_iter().chain(hip).collect::<Vec<_>>() {
        let why = format!("section {} holds nothing that can be read as device code", section.name);
        sink.damage(section.offset, why);
    }
}

/// A library registers each of its bundles by a wrapper: those that were not found are in a form that is not understood.
fn registered(sink: &mut Sink, sections: &[Section], starts: &Starts, elsewhere: u64) {
    let wrappers: u64 =
        sections.iter().filter(|s| s.name == kpack::SEGMENT).map(|s| s.size / kpack::RECORD as u64).sum();
    let hip = || sections.iter().filter(|s| s.name.starts_with(HIP) && s.size > 0);
    let found: u64 = hip().map(|s| starts.bundles_in(s.offset, s.size)).sum();
    let expected = wrappers.saturating_sub(elsewhere);
    if let Some(section) = hip().next()
        && found > 0
        && found.saturating_add(sink.log.empty) < expected
    {
        let why =
            format!("{expected} offload bundles are registered, but only {found} can be read in {}", section.name);
        sink.damage(section.offset, why);
    }
}

/// Sections of objects that hold one image each (`-fgpu-rdc`): their names say what it is for.
fn named(sink: &mut Sink, sections: &[Section], starts: &Starts) {
    for section in sections.iter().filter(|s| s.size > PLACEHOLDER) {
        let Some(id) = section.name.strip_prefix(BY_NAME).filter(|id| !id.starts_with("sycl-")) else { continue };
        let Target::Device(arch) = target::of_id(id) else { continue };
        if sink.bitcode.binary_search(&section.offset).is_ok() {
            let item = Item { form: Form::LtoIr, ..image::by_name(arch) };
            sink.add(Container::Bundle, section.offset, &mut vec![(item, section.size)]);
            continue;
        }
        match starts.item_at(section.offset).map(|i| i.arch) {
            Some(found) if found == arch || found == Arch::Unknown => {}
            Some(found) => {
                let why = format!("section {} is named for {arch}, but holds code for {found}", section.name);
                sink.damage(section.offset, why);
            }
            None if starts.any_in(section.offset, section.size) => {}
            None => {
                let why = format!("section {} holds nothing that can be read as device code", section.name);
                sink.damage(section.offset, why);
            }
        }
    }
}

/// Images count where sections say so, and these hold nothing else.
fn sycl(sink: &mut Sink, sections: &[Section], starts: &Starts) {
    let images = std::mem::take(&mut sink.images);
    let declared: Vec<&Section> = sections.iter().filter(|s| is_sycl(&s.name) && s.size > 0).collect();
    for (offset, why) in images.problems {
        if declared.iter().any(|s| s.holds(offset)) {
            sink.damage(offset, why);
        }
    }
    for section in declared {
        if images.dropped {
            sink.damage(section.offset, "more images of SYCL programs than are looked at in one file");
            continue;
        }
        let section_end = section.offset.saturating_add(section.size);
        let from = images.all.partition_point(|i| i.offset < section.offset);
        let to = images.all.partition_point(|i| i.offset < section_end);
        let mut at = section.offset;
        for index in from..to {
            let image = &images.all[index];
            let next = images.all.get(index + 1).map_or(section_end, |i| i.offset);
            let end = image.end.unwrap_or(next).min(section_end);
            hole(sink, section, starts, at, image.offset);
            sink.add(Container::Sycl, image.offset, &mut image.items(end));
            at = end;
        }
        hole(sink, section, starts, at, section_end);
    }
}

/// Without sections a program that needs SYCL's runtime is taken for one with images.
fn stripped_sycl(sink: &mut Sink, size: u64) {
    let images = std::mem::take(&mut sink.images);
    if images.dropped {
        sink.damage(0, "more images of SYCL programs than are looked at in one file");
    }
    images.problems.into_iter().for_each(|(offset, why)| sink.damage(offset, why));
    for (index, image) in images.all.iter().enumerate() {
        let end = image.end.unwrap_or_else(|| images.all.get(index + 1).map_or(size, |i| i.offset));
        sink.add(Container::Sycl, image.offset, &mut image.items(end));
    }
}

fn hole(sink: &mut Sink, section: &Section, starts: &Starts, from: u64, to: u64) {
    let size = to.saturating_sub(from);
    let whole = size == section.size;
    // Containers for other makers' GPUs are listed as what they are.
    if (size >= ALIGNMENT || whole) && !starts.any_in(from, size) {
        sink.damage(from, format!("{size} bytes of section {} are no image that is understood", section.name));
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
