//! Device code and linked libraries of single files: a readable `cuobjdump --list-elf --list-ptx`.

use std::collections::BTreeMap;

use super::paint::{Ink, Page, cell, span};
use super::text::{bytes, clean, columns, count};
use super::{ArchRow, DeviceCode, Library, Report, Style, table};
use crate::model::{Arch, Container, CudaVersion, FileKind, Form, ImagePath, Packing, PtxIsa};

/// Everything about the files, in the order of their paths, ending in a line feed.
pub fn render(report: &Report, style: &Style) -> String {
    let mut page = Page::new(style);
    let mut files: BTreeMap<&ImagePath, (Option<&Library>, Vec<&DeviceCode>)> = BTreeMap::new();
    for library in &report.libraries {
        files.entry(&library.path).or_default().0 = Some(library);
    }
    for code in &report.device_code {
        files.entry(&code.path).or_default().1.push(code);
    }
    for (path, (library, code)) in files {
        page.gap();
        page.flow(&[], 2, Ink::Strong, &path.to_string());
        if let Some(kind) = library.map(|l| l.kind).or_else(|| code.first().map(|c| c.format)) {
            page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Plain, &identity(kind, library));
        }
        if let Some(library) = library {
            linkage(&mut page, library);
        }
        if code.is_empty() {
            page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Dim, "no device code");
        }
        for code in code {
            device_code(&mut page, code);
        }
    }
    table::gap_section(&mut page, report);
    page.finish()
}

fn kind_word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::SharedObject => "shared object",
        FileKind::Executable => "executable",
        FileKind::Object => "relocatable object, not loaded at run time",
        FileKind::Archive => "static archive, not loaded at run time",
        FileKind::Fatbin => "fatbin",
        FileKind::Cubin => "cubin",
        FileKind::Ptx => "PTX text",
        FileKind::CodeObject => "AMD code object",
        FileKind::Bundle => "offload bundle",
        FileKind::Kpack => "kpack archive",
        FileKind::Zebin => "Intel GPU binary",
        FileKind::BrokenElf => "ELF with a damaged header",
    }
}

fn identity(kind: FileKind, library: Option<&Library>) -> String {
    let mut parts = vec![kind_word(kind).to_owned()];
    if let Some(library) = library {
        parts.extend(library.machine.as_deref().map(clean));
        parts.extend(library.soname.as_deref().map(|s| format!("soname {}", clean(s))));
    }
    parts.join(" · ")
}

fn linkage(page: &mut Page<'_>, library: &Library) {
    let needs: Vec<String> = library.needs.iter().map(|n| clean(&n.soname)).collect();
    let rows = [
        ("needs", (!needs.is_empty()).then(|| needs.join(" "))),
        ("rpath", library.rpath.as_deref().map(clean)),
        ("runpath", library.runpath.as_deref().map(clean)),
    ];
    for (word, text) in rows {
        if let Some(text) = text {
            page.flow(&[span(Ink::Plain, "  "), cell(Ink::Dim, word, 9)], 11, Ink::Plain, &text);
        }
    }
}

/// What rows are told apart by.
type Key = (u8, Arch, Option<PtxIsa>, Packing, Option<(Container, bool, Option<CudaVersion>)>);

fn device_code(page: &mut Page<'_>, code: &DeviceCode) {
    let modules = count(usize::try_from(code.modules).unwrap_or(usize::MAX), "module", "modules");
    let title = format!("{modules}, {} of device code", bytes(code.bytes));
    page.flow(&[span(Ink::Plain, "  ")], 4, Ink::Plain, &title);
    let fine = page.verbose() > 0;
    let mut sums: BTreeMap<Key, (u64, u64, &ArchRow)> = BTreeMap::new();
    for row in &code.archs {
        let detail = fine.then_some((row.container, row.relocatable, row.toolkit));
        // Forms in the order of the type: code that loads as it is comes first.
        let key = (row.form as u8, row.arch, row.isa, row.packing, detail);
        let sum = sums.entry(key).or_insert((0, 0, row));
        sum.0 = sum.0.saturating_add(row.entries);
        sum.1 = sum.1.saturating_add(row.bytes);
    }
    let mut lines: Vec<Vec<String>> = vec![heads(fine)];
    lines.extend(sums.values().map(|&(entries, size, row)| cells(row, entries, size, fine)));
    set(page, &lines);
}

fn heads(fine: bool) -> Vec<String> {
    let mut out = vec!["ARCH", "FORM", "ISA", "PACKING", "ENTRIES", "BYTES"];
    if fine {
        out.extend(["IN", "TOOLKIT"]);
    }
    out.into_iter().map(str::to_owned).collect()
}

fn cells(row: &ArchRow, entries: u64, size: u64, fine: bool) -> Vec<String> {
    let dash = || "-".to_owned();
    let mut out = vec![
        row.arch.to_string(),
        form_word(row),
        row.isa.map_or_else(dash, |i| i.to_string()),
        packing_word(row.packing).to_owned(),
        entries.to_string(),
        bytes(size),
    ];
    if fine {
        let holder = match row.container {
            Container::Fatbin => "fatbin",
            Container::Cubin => "cubin",
            Container::PtxText => "text",
            Container::Bundle => "bundle",
            Container::CompressedBundle => "CCOB bundle",
            Container::CodeObject => "code object",
            Container::OffloadBinary => "offload binary",
            Container::Kpack => "kpack",
            Container::Sycl => "SYCL image",
            Container::Zebin => "zebin",
        };
        out.push(if row.relocatable { format!("{holder}, relocatable") } else { holder.to_owned() });
        out.push(row.toolkit.map_or_else(dash, |t| t.to_string()));
    }
    out
}

fn form_word(row: &ArchRow) -> String {
    match row.form {
        Form::Sass => "sass".to_owned(),
        Form::Ptx => "ptx".to_owned(),
        Form::LtoIr => "lto-ir".to_owned(),
        Form::TileIr => "tile-ir".to_owned(),
        Form::CodeObject => "code-object".to_owned(),
        Form::Spirv => "spirv".to_owned(),
        Form::Native => "native".to_owned(),
        Form::Unknown => row.kind.map_or_else(|| "unknown".to_owned(), |k| format!("kind {k:#x}")),
    }
}

fn packing_word(packing: Packing) -> &'static str {
    match packing {
        Packing::None => "none",
        Packing::Lz4 => "lz4",
        Packing::Zlib => "zlib",
        Packing::Zstd => "zstd",
        Packing::Unknown => "unknown",
    }
}

/// Sets rows under their heads; numbers stand at the right of their column.
fn set(page: &mut Page<'_>, lines: &[Vec<String>]) {
    let count = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..count).map(|i| lines.iter().filter_map(|l| l.get(i)).map(|c| columns(c)).max().unwrap_or(0)).collect();
    for (number, line) in lines.iter().enumerate() {
        let ink = if number == 0 { Ink::Dim } else { Ink::Plain };
        let mut text = String::new();
        for (i, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let fill = " ".repeat(width - columns(cell));
            let right = i == 4 || i == 5;
            text.push_str(if i == 0 { "" } else { "  " });
            text.push_str(&if right { format!("{fill}{cell}") } else { format!("{cell}{fill}") });
        }
        let text = text.trim_end();
        if 4 + columns(text) <= page.width() {
            page.line(&[span(Ink::Plain, "    "), span(ink, text)]);
        } else {
            page.flow(&[span(Ink::Plain, "    ")], 6, ink, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{sample, table::tests::golden};
    use super::*;

    #[test]
    fn files_are_listed_like_this() {
        golden("inspect_80", &render(&sample::files(), &Style::default()), 80);
        golden(
            "inspect_verbose_100",
            &render(&sample::files(), &Style { width: 100, verbose: 1, ..Style::default() }),
            100,
        );
    }

    #[test]
    fn hostile_names_stay_harmless_at_every_width() {
        for width in [40, 60, 200] {
            let text = render(&sample::hostile(), &Style { width, verbose: 2, ..Style::default() });
            table::tests::lawful(&text, width);
        }
    }
}
