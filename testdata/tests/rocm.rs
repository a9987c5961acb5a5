//! Device code of AMD, of clang's offloading and of SYCL: the corpus in testdata/rocm.

use std::collections::BTreeSet;
use std::path::PathBuf;

use imagelint::device::{self, Options};
use imagelint::model::{FileFacts, FileKind, Form, GapEffect, ImagePath, Kpack};
use imagelint::stream::{Body, Stream};
use proptest::prelude::*;

fn dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/rocm")
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(dir().join(name)).unwrap()
}

fn read_with(name: &str, bytes: &[u8], options: Options) -> Option<FileFacts> {
    let mut body = Stream::new(bytes, Some(bytes.len() as u64));
    let kind = device::kind_of(body.window(device::HEAD).unwrap())?;
    Some(device::read_with(kind, &ImagePath::new(name), &mut body, options).unwrap())
}

fn read(name: &str) -> FileFacts {
    read_with(name, &sample(name), Options::default()).unwrap_or_else(|| FileFacts::new(FileKind::Ptx, 0))
}

/// Targets of code that can be loaded, or linked.
fn targets(facts: &FileFacts) -> BTreeSet<String> {
    let items = facts.modules.iter().flat_map(|m| &m.items).map(|i| i.item);
    items.filter(|i| i.form != Form::Unknown).map(|i| i.arch.to_string()).collect()
}

fn is_damaged(facts: &FileFacts) -> bool {
    facts.gaps.iter().any(|g| g.effect == GapEffect::File && g.offset.is_some() && !g.why.is_empty())
}

struct Row {
    name: String,
    expected: String,
}

fn rows() -> Vec<Row> {
    let list = String::from_utf8(sample("index.tsv")).unwrap();
    let rows: Vec<Row> = list
        .lines()
        .skip(1)
        .map(|line| {
            let mut fields = line.split('\t');
            let name = fields.next().unwrap().to_owned();
            Row { name, expected: fields.nth(2).unwrap().to_owned() }
        })
        .collect();
    assert_eq!(rows.len(), 49);
    rows
}

#[test]
fn all_samples_are_listed() {
    let mut wrong = Vec::new();
    for row in rows() {
        let facts = read(&row.name);
        let found: Vec<String> = targets(&facts).into_iter().collect();
        let mut expected: Vec<&str> = match row.expected.as_str() {
            "NONE" => Vec::new(),
            // The list has the names of the images' targets; the one for `spir64_gen` has code for two GPUs.
            "spir64,spir64_gen" => vec!["intel_gpu_12_60_7", "intel_gpu_20_1_0", "spir64"],
            "ERROR" | "WARN" => continue,
            targets => targets.split(',').collect(),
        };
        expected.sort_unstable();
        if found != expected || !facts.gaps.is_empty() {
            wrong.push(format!("{}: {found:?}, not {expected:?}; {:?}", row.name, facts.gaps));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What can still be told of damaged files: of bundles without a table the code objects within.
const DAMAGED: [(&str, &[&str]); 16] = [
    ("bad_ccob_hash.bin", &["gfx1100", "gfx906"]),
    ("bad_ccob_method.bin", &[]),
    ("bad_ccob_rawsize.bin", &["gfx1100", "gfx906"]),
    ("bad_ccob_total.bin", &["gfx1100", "gfx906"]),
    ("bad_ccob_trunc.bin", &[]),
    ("bad_ccob_version.bin", &[]),
    ("bad_count_huge.bin", &["gfx1100", "gfx906"]),
    ("bad_entry_idlen.bin", &["gfx1100", "gfx906"]),
    ("bad_entry_off.bin", &["gfx1100", "gfx906"]),
    ("bad_kpack_toc.kpack", &[]),
    ("bad_kpack_trunc.kpack", &[]),
    ("bad_magic_in_text.bin", &[]),
    ("bad_so_trunc.so", &["gfx1032", "gfx908"]),
    ("bad_trunc_half.bin", &["gfx1100", "gfx906"]),
    ("bad_trunc_header.bin", &[]),
    ("bad_wrapper_magic.so", &["gfx1032", "gfx908"]),
];

#[test]
fn damage_is_told_and_what_is_left_is_listed() {
    let named: BTreeSet<String> = rows().into_iter().map(|r| r.name).filter(|n| n.starts_with("bad_")).collect();
    assert_eq!(named, DAMAGED.iter().map(|d| d.0.to_owned()).collect());
    let mut wrong = Vec::new();
    for (name, left) in DAMAGED {
        let facts = read(name);
        // Text that has the magics in it is no device code.
        let damaged = name != "bad_magic_in_text.bin";
        let expected: BTreeSet<String> = left.iter().map(|t| (*t).to_owned()).collect();
        if is_damaged(&facts) != damaged || targets(&facts) != expected {
            wrong.push(format!("{name}: {:?} {:?}", targets(&facts), facts.gaps));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Programs that handle these formats have their magics among their strings and constants.
#[test]
fn constants_of_programs_are_no_device_code() {
    let clean = sample("host_only.so");
    let facts = read_with("libclang.so", &clean, Options::default()).unwrap();
    assert!(facts.modules.is_empty() && facts.gaps.is_empty(), "{facts:?}");
    // Over the compiler's name, in a section that declares nothing.
    let at = memchr::memmem::find(&clean, b"Debian clang").unwrap();
    let marks: [&[u8]; 9] = [
        b"__CLANG_OFFLOAD_BUNDLE__host-",
        b"CCOB\0\0\0\0",
        b"CCOB is compressed",
        b"\x10\xff\x10\xad\x01\0\0\0",
        b"HIPK\x01\0\0\0",
        b"\x03\x02\x23\x07\0\0\x01\0\0\0\0\0\x09\0\0\0\0\0\0\0",
        b"\x28\xb5\x2f\xfd\x04",
        b"!<arch>\n",
        b"\xabkernel_name\xa1x",
    ];
    for mark in marks {
        let mut bytes = clean.clone();
        bytes[at..at + mark.len()].copy_from_slice(mark);
        let facts = read_with("libclang.so", &bytes, Options::default()).unwrap();
        assert!(facts.modules.is_empty() && facts.gaps.is_empty() && facts.kpack.is_none(), "{mark:?} {facts:?}");
    }
}

#[test]
fn kernels_that_lie_in_other_files_are_referred_to() {
    let facts = read("hipk_zeroed.so");
    assert!(facts.modules.is_empty());
    assert_eq!(facts.kpack, Some(Kpack::Reference { kernel: None, paths: vec![], indices: vec![0] }));
    let binaries = vec![("lib/libil.so#0".to_owned(), vec!["gfx803".parse().unwrap()])];
    assert_eq!(read("il_gfx803.kpack").kpack, Some(Kpack::Archive { binaries }));
    // A zeroed section without a reference is damage.
    let mut bytes = sample("hipk_zeroed.so");
    let at = memchr::memmem::find(&bytes, b"HIPK").unwrap();
    bytes[at..at + 4].copy_from_slice(b"FPIH");
    assert!(is_damaged(&read_with("x.so", &bytes, Options::default()).unwrap()));
}

#[test]
fn an_entry_that_holds_another_targets_code_is_told() {
    let mut bytes = sample("dev_bundle.co");
    let at = memchr::memmem::find(&bytes, b"gfx1100").unwrap();
    bytes[at..at + 7].copy_from_slice(b"gfx1101");
    let facts = read_with("x.co", &bytes, Options::default()).unwrap();
    let told: Vec<&str> = facts.gaps.iter().map(|g| g.why.as_str()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("gfx1101") && told[0].contains("gfx1100"), "{told:?}");
    assert!(!targets(&facts).contains("gfx1101"));
}

#[test]
fn what_is_stripped_of_sections_gives_the_same_modules() {
    let modules = |name: &str| {
        let mut modules = read(name).modules;
        modules.iter_mut().for_each(|m| m.section = None);
        modules
    };
    assert_eq!(modules("hip_plain.so").iter().map(|m| m.count).sum::<u64>(), 2);
    assert_eq!(modules("hip_plain.so"), modules("hip_noshdr.so"));
}

/// Where sections are stripped their names may be left, and nothing says that SPIR-V is SYCL's.
#[test]
fn names_of_stripped_sections_are_no_damage() {
    let mut bytes = sample("sycl_aot_jit.so");
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    let facts = read_with("x.so", &bytes, Options::default()).unwrap();
    assert!(facts.modules.is_empty() && facts.gaps.is_empty(), "{facts:?}");
}

#[test]
fn a_bundle_that_is_registered_but_not_found_is_told() {
    let whole = sample("hip_plain.so");
    let second = memchr::memmem::find_iter(&whole, b"__CLANG_OFFLOAD_BUNDLE__").nth(1).unwrap();
    let mut bytes = whole.clone();
    bytes[second] = b'-';
    let facts = read_with("x.so", &bytes, Options::default()).unwrap();
    assert!(facts.gaps.iter().any(|g| g.why.contains("registered")), "{:?}", facts.gaps);
}

#[test]
fn all_of_it_verified_is_the_same() {
    for row in rows() {
        let verified = read_with(&row.name, &sample(&row.name), Options { verify: true });
        assert_eq!(verified.unwrap_or_else(|| FileFacts::new(FileKind::Ptx, 0)), read(&row.name), "{}", row.name);
    }
}

/// Any two readings of the same bytes agree, and a stream that knows no length gives the same modules.
#[test]
fn cut_and_flipped_samples_are_read_to_their_end() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for row in rows() {
        let whole = sample(&row.name);
        // Cut everywhere where something is; in larger files at every few bytes.
        let step = (whole.len() / 600).max(1);
        for cut in (0..whole.len()).step_by(step) {
            if let Some(facts) = read_with(&row.name, &whole[..cut], Options::default()) {
                assert_eq!(facts.size, cut as u64, "{} cut at {cut}", row.name);
            }
        }
        for _ in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..=random() % 4 {
                let at = random() as usize % bytes.len();
                bytes[at] ^= 1 << (random() % 8);
            }
            if let Some(facts) = read_with(&row.name, &bytes, Options { verify: random() % 4 == 0 }) {
                assert_eq!(facts.size, bytes.len() as u64, "{}", row.name);
                let entries: u64 = facts.modules.iter().map(|m| m.entries()).sum();
                assert!(entries <= 200 && facts.gaps.len() <= 40, "{}: {entries}", row.name);
            }
        }
    }
}

/// What is cut off is never taken for whole: a cut within device code leaves a gap.
#[test]
fn a_cut_bundle_has_a_gap() {
    for name in ["dev_bundle.co", "dev_ccob.co", "ccob_v3_zstd.bin", "ccob_v1_zlib.bin", "il_gfx803.kpack"] {
        let whole = sample(name);
        for cut in 40..whole.len() {
            let facts = read_with(name, &whole[..cut], Options::default()).unwrap();
            assert!(is_damaged(&facts), "{name} cut at {cut} of {}: {facts:?}", whole.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever stands behind a magic, it is read to the end of the file.
    #[test]
    fn anything_behind_a_magic(
        magic in prop::sample::select(vec![
            &b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0"[..],
            b"CCOB\x01\0\x01\0", b"CCOB\x03\0\0\0", b"\x10\xff\x10\xad\x02\0\0\0", b"KPAK\x01\0\0\0\x10\0\0\0\0\0\0\0",
            b"!<arch>\n64.12.60.7/     0           0     0     644     360       `\n",
            b"\x7fELF\x02\x01\x01\x40\x04\0\0\0\0\0\0\0\x03\0\xe0\0\x01\0\0\0",
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xcd\0\x01\0\0\0",
        ]),
        small in prop::collection::vec(0u8..4, 0..200),
        wild in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = [magic, &small, &wild].concat();
        if let Some(facts) = read_with("x", &bytes, Options { verify: true }) {
            prop_assert_eq!(facts.size, bytes.len() as u64);
        }
        // The same within a program.
        let mut program = sample("sycl_aot_jit.so");
        let room = program.len() - 0x350;
        program[0x350..0x350 + room.min(bytes.len())].copy_from_slice(&bytes[..room.min(bytes.len())]);
        let facts = read_with("x.so", &program, Options::default()).unwrap();
        prop_assert_eq!(facts.size, program.len() as u64);
    }
}
