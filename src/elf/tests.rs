//! Whole files: those of testdata/elf, damaged ones, and large ones whose tables stand far apart.

use super::{OVERLAP_FOR_NAMES, Tables};
use crate::model::{ElfFacts, Exports, Import};

/// Shows a file as a stream would: chunks of `step` bytes, each with an overlap.
fn read_by(bytes: &[u8], name: &str, step: usize) -> Option<(ElfFacts, Vec<String>)> {
    let mut tables = Tables::new(&bytes[..bytes.len().min(4096)]).ok()?;
    for at in (0..bytes.len()).step_by(step) {
        tables.see(at as u64, &bytes[at..bytes.len().min(at + step + OVERLAP_FOR_NAMES)]);
    }
    Some(tables.facts(name.as_bytes()))
}

fn read(bytes: &[u8], name: &str) -> (ElfFacts, Vec<String>) {
    read_by(bytes, name, 60 << 10).unwrap()
}

const USERS: [&str; 6] =
    ["user.so", "user-sysv-hash.so", "user-lld.so", "user-separate.so", "user-patchelf.so", "user-moved.so"];
const VENDORS: [&str; 2] = ["libcudart.so.12", "libcudart-9335f6a2.so.12"];

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/testdata/elf/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn import(name: &str, version: Option<(&str, &str)>, weak: bool) -> Import {
    let version = version.map(|(of, version)| (of.to_owned(), version.to_owned()));
    Import { name: name.to_owned(), version, weak }
}

fn asks(facts: &ElfFacts) -> Vec<String> {
    let mut all: Vec<String> =
        facts.asks.iter().flat_map(|a| a.versions.iter().map(|v| format!("{}@{}", a.of, v.name))).collect();
    all.sort();
    all
}

#[test]
fn users_of_a_versioned_library() {
    for name in USERS {
        let (facts, notes) = read(&fixture(name), name);
        let cudart = if name == "user-patchelf.so" { "libcudart-9335f6a2.so.12" } else { "libcudart.so.12" };
        assert_eq!(notes, Vec::<String>::new(), "{name}");
        assert_eq!(facts.needed, [cudart, "libcuda.so.1", "libc.so.6"], "{name}");
        assert_eq!(facts.asks[0].of, cudart, "{name}");
        let versions = [format!("{cudart}@libcudart.so.12")];
        let libc = ["libc.so.6@GLIBC_2.2.5", "libc.so.6@GLIBC_2.34"].map(str::to_owned);
        assert_eq!(asks(&facts), [&libc[..], &versions].concat(), "{name}");
        let versioned = Some((cudart, "libcudart.so.12"));
        let imports = [
            import("cuInit", None, false),
            import("cudaFree", versioned, false),
            import("cudaMalloc", versioned, false),
            import("cudnnCreate", None, true),
            import("nvmlInit_v2", None, true),
        ];
        assert_eq!(facts.imports, imports, "{name}");
        assert_eq!(facts.exports, None, "{name}");
        assert_eq!(facts.mentions, ["libcudnn.so.9", "libnvidia-ml.so.1"], "{name}");
        let closed = ["user.so", "user-patchelf.so", "user-moved.so"].contains(&name);
        assert_eq!(facts.no_default_dirs, closed, "{name}");
    }
}

#[test]
fn a_vendors_library_tells_its_symbols() {
    let defined: [(&[u8], Option<&[u8]>); 6] = [
        (b"cudaFree", Some(b"libcudart.so.11")),
        (b"cudaFree", Some(b"libcudart.so.12")),
        (b"cudaFreeOld", None),
        (b"cudaMalloc", Some(b"libcudart.so.12")),
        (b"libcudart.so.11", None),
        (b"libcudart.so.12", None),
    ];
    for name in VENDORS {
        let (facts, notes) = read(&fixture(name), name);
        assert_eq!(notes, Vec::<String>::new(), "{name}");
        assert_eq!(facts.soname.as_deref(), Some(name));
        assert_eq!(facts.defines, ["libcudart.so.11", "libcudart.so.12"], "{name}");
        assert_eq!(facts.exports, Some(Exports::new(defined)), "{name}");
        assert_eq!(facts.mentions, Vec::<String>::new(), "{name}");
        // By its SONAME alone too, not under another one.
        assert!(read(&fixture(name), "x.so").0.exports.is_some());
    }
    assert!(read(&fixture("user.so"), "libnccl.so.2").0.exports.unwrap().has("run", None));
}

#[test]
fn how_a_file_is_cut_into_chunks_does_not_matter() {
    for name in USERS.iter().chain(&VENDORS) {
        let bytes = fixture(name);
        let whole = read(&bytes, name);
        for step in [97, 512, 1000, 4096, 5000] {
            assert_eq!(read_by(&bytes, name, step).as_ref(), Some(&whole), "{name} by {step}");
        }
    }
}

/// A cheap generator of numbers that look random.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

#[test]
fn damage_gives_less_but_never_panics() {
    for name in USERS.iter().chain(&VENDORS) {
        let whole = fixture(name);
        for end in (64..whole.len()).step_by(37) {
            read_by(&whole[..end], name, 1 << 16);
        }
        let mut next = numbers(whole.len() as u64);
        for round in 0..1500 {
            let mut bytes = whole.clone();
            for _ in 0..=round % 8 {
                // Half of the damage falls on the tables at the front.
                let within = if next(2) == 0 { bytes.len() } else { bytes.len().min(1600) };
                let at = 16 + next(within - 16);
                bytes[at] = match next(3) {
                    0 => 0xff,
                    1 => 0,
                    _ => bytes[at] ^ 1 << next(8),
                };
            }
            read_by(&bytes, name, [512, 1 << 16][round % 2]);
        }
    }
}

/// A library with `count` C++ names and a few others, in the order of an `Order`.
struct Large {
    bytes: Vec<u8>,
    imports: Vec<Import>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// Symbols, names, versions at the front: GNU ld.
    Front,
    /// As auditwheel leaves it: the names behind everything.
    NamesLast,
    /// Symbols and names behind everything.
    SymbolsLast,
}

fn large(order: Order, count: usize) -> Large {
    let mut names = vec![0u8];
    let mut add = |text: &str| {
        let at = names.len() as u32;
        names.extend_from_slice(text.as_bytes());
        names.push(0);
        at
    };
    let mut symbols = vec![0u8; 24];
    let mut versions: Vec<u16> = vec![0];
    let mut imports = Vec::new();
    for i in 0..count {
        let (name, version, defined) = match i % 100 {
            3 => (format!("cudaCall{i}"), 2, false),
            7 => (format!("cuCall{i}"), 1, false),
            11 => (format!("__errno{i}"), 3, false),
            _ => (format!("_ZN2at6native{i}some_kernel_with_a_long_nameERKNS_6TensorE"), 1, i % 3 == 0),
        };
        match i % 100 {
            3 => imports.push(import(&name, Some(("libcudart.so.12", "libcudart.so.12")), false)),
            7 => imports.push(import(&name, None, false)),
            _ => {}
        }
        let mut entry = [0u8; 24];
        entry[..4].copy_from_slice(&add(&name).to_le_bytes());
        entry[4] = 0x12;
        if defined {
            (entry[6], entry[10], entry[16]) = (9, 7, 40);
        }
        symbols.extend_from_slice(&entry);
        versions.push(version);
    }
    imports.sort();
    let (cudart, libc) = (add("libcudart.so.12"), add("libc.so.6"));
    let (glibc, soname) = (add("GLIBC_2.34"), add("libbig.so"));
    let mut needs = Vec::new();
    for (file, version, number, next) in [(cudart, cudart, 2u16, 32u32), (libc, glibc, 3, 0)] {
        needs.extend_from_slice(&[1u16, 1].map(u16::to_le_bytes).concat());
        needs.extend_from_slice(&[file, 16, next, 0].map(u32::to_le_bytes).concat());
        needs.extend_from_slice(&[0u16, number].map(u16::to_le_bytes).concat());
        needs.extend_from_slice(&[version, 0].map(u32::to_le_bytes).concat());
    }
    let versym: Vec<u8> = versions.iter().flat_map(|v| v.to_le_bytes()).collect();
    let code = b"\xf3\x0f\x1e\xfa\x48\x8b\x05\x01\x02\x03\x90\xc3".repeat(400_000);
    let dynamic = vec![0u8; 16 * 12];
    let parts: [(&str, &[u8]); 6] = match order {
        Order::Front => [
            ("symbols", &symbols),
            ("names", &names),
            ("versym", &versym),
            ("needs", &needs),
            ("code", &code),
            ("dynamic", &dynamic),
        ],
        Order::NamesLast => [
            ("symbols", &symbols),
            ("versym", &versym),
            ("needs", &needs),
            ("code", &code),
            ("dynamic", &dynamic),
            ("names", &names),
        ],
        Order::SymbolsLast => [
            ("versym", &versym),
            ("needs", &needs),
            ("code", &code),
            ("dynamic", &dynamic),
            ("symbols", &symbols),
            ("names", &names),
        ],
    };
    let mut bytes = vec![0u8; 64 + 2 * 56];
    // The first table does not begin on a page, and late enough to be behind what is kept whole.
    bytes.resize(1_100_008, 0x77);
    let mut at = std::collections::HashMap::new();
    for (name, part) in parts {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        at.insert(name, bytes.len() as u64);
        bytes.extend_from_slice(part);
    }
    let entries = [
        (1, u64::from(cudart)),
        (1, u64::from(libc)),
        (14, u64::from(soname)),
        (5, at["names"]),
        (10, names.len() as u64),
        (6, at["symbols"]),
        (11, 24),
        (0x6fff_fff0, at["versym"]),
        (0x6fff_fffe, at["needs"]),
        (0x6fff_ffff, 2),
        // Where the code's relocations would be: the end of the last table.
        (23, at["code"]),
        (0, 0),
    ];
    let start = at["dynamic"] as usize;
    for (i, (tag, value)) in entries.into_iter().enumerate() {
        bytes[start + 16 * i..start + 16 * i + 16].copy_from_slice(&[tag, value].map(u64::to_le_bytes).concat());
    }
    bytes[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    bytes[16..24].copy_from_slice(&[3, 0, 62, 0, 1, 0, 0, 0]);
    bytes[32] = 64;
    bytes[52..58].copy_from_slice(&[64, 0, 56, 0, 2, 0]);
    let length = bytes.len() as u64;
    for (i, (kind, flags, at, size)) in
        [(1u32, 5u32, 0, length), (2, 6, at["dynamic"], dynamic.len() as u64)].into_iter().enumerate()
    {
        let header = &mut bytes[64 + 56 * i..64 + 56 * (i + 1)];
        header[..8].copy_from_slice(&[kind, flags].map(u32::to_le_bytes).concat());
        header[8..].copy_from_slice(&[at, at, at, size, size, 8].map(u64::to_le_bytes).concat());
    }
    Large { bytes, imports }
}

#[test]
fn large_tables_wherever_they_stand() {
    for (order, count) in
        [(Order::Front, 60_000), (Order::Front, 9_000), (Order::NamesLast, 60_000), (Order::SymbolsLast, 30_000)]
    {
        let file = large(order, count);
        let (facts, notes) = read(&file.bytes, "libbig.so");
        assert_eq!(notes, Vec::<String>::new(), "{order:?} {count}");
        assert_eq!(facts.soname.as_deref(), Some("libbig.so"), "{order:?} {count}");
        assert_eq!(asks(&facts), ["libc.so.6@GLIBC_2.34", "libcudart.so.12@libcudart.so.12"], "{order:?} {count}");
        assert_eq!(facts.imports.len(), count / 50, "{order:?} {count}");
        assert_eq!(facts.imports, file.imports, "{order:?} {count}");
    }
}

#[test]
fn damage_to_large_tables() {
    for order in [Order::Front, Order::NamesLast, Order::SymbolsLast] {
        let whole = large(order, 9_000).bytes;
        let mut next = numbers(9);
        for round in 0..12 {
            let mut bytes = whole.clone();
            for _ in 0..400 {
                let at = 64 + next(bytes.len() - 64);
                bytes[at] ^= 1 << next(8);
            }
            // The end of the dynamic section, or of the tables at the end.
            let dynamic = memchr::memmem::rfind(&whole, &[11, 0, 0, 0, 0, 0, 0, 0, 24]).unwrap();
            bytes[dynamic - 90 + next(180)] = next(256) as u8;
            bytes.truncate(whole.len() - round * 100_000);
            let (facts, _) = read(&bytes, "libcudart.so.12");
            assert!(facts.imports.len() <= 180, "{order:?}: damage adds no symbols");
        }
    }
}
