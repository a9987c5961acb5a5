//! Device code of AMD, of clang's offloading and of SYCL: the corpus in testdata/rocm.

use std::collections::BTreeSet;
use std::path::PathBuf;

use imagelint::device::{self, Options};
use imagelint::model::{FileFacts, FileKind, Form, GapEffect, ImagePath};
use imagelint::stream::{Body, Stream};

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

/// Formats that are not read yet.
const LATER: [&str; 9] = [
    "rdc.o",
    "omp.o",
    "il_gfx803.kpack",
    "il_gfx1150.kpack",
    "hipk_zeroed.so",
    "sycl_aot_jit.so",
    "bad_kpack_toc.kpack",
    "bad_kpack_trunc.kpack",
    "bad_wrapper_magic.so",
];

#[test]
fn all_samples_are_listed() {
    let mut wrong = Vec::new();
    for row in rows().into_iter().filter(|r| !LATER.contains(&r.name.as_str())) {
        let facts = read(&row.name);
        let found: Vec<String> = targets(&facts).into_iter().collect();
        let mut expected: Vec<&str> = match row.expected.as_str() {
            "NONE" => Vec::new(),
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
    for (name, left) in DAMAGED.into_iter().filter(|d| !LATER.contains(&d.0)) {
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
