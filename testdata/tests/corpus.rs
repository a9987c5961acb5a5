//! Every file of testdata/corpus gives what index.tsv says: kind, architecture, packing and PTX ISA of each entry,
//! as measured with NVIDIA's own tools. Damaged files give the same and a located gap.

use std::collections::BTreeMap;
use std::path::Path;

use imagelint::device;
use imagelint::model::{Container, FileFacts, Form, GapEffect, ImagePath, Packing};
use imagelint::stream::{Body, Stream};

type Rows = BTreeMap<(String, String, String, String), u64>;

fn corpus() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/corpus/cuda"))
}

fn expected() -> BTreeMap<String, Rows> {
    let text = std::fs::read_to_string(corpus().join("index.tsv")).unwrap();
    let mut files: BTreeMap<String, Rows> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let rows = files.entry(cells[0].to_owned()).or_default();
        let [_, _, _, section, kind, arch, packing, version, ..] = cells[..] else { continue };
        // The index gives no ISA for loose files and headers found by scanning cubins.
        let isa = if kind == "ptx" && !section.starts_with("(raw ptx") { version } else { "" };
        *rows.entry((kind.into(), arch.into(), packing.into(), isa.into())).or_default() += 1;
    }
    // The reference walker behind the index looks for no PTX text within other files, and reads no sections of
    // cubins outside fatbins; both files were made from code for sm_90a.
    let text = ("ptx".into(), "compute_90a".into(), "none".into(), String::new());
    files.get_mut("odd_ptx_in_rodata.so").unwrap().insert(text, 1);
    let cubin = ("elf".into(), "sm_90a".into(), "none".into(), String::new());
    *files.get_mut("odd_cubin_in_rodata.so").unwrap() = Rows::from([(cubin, 1)]);
    files
}

fn read(bytes: &[u8], name: &str) -> Option<FileFacts> {
    let mut body = Stream::new(bytes, Some(bytes.len() as u64));
    let kind = device::kind_of(body.window(device::HEAD).unwrap())?;
    Some(device::read(kind, &ImagePath::new(name), &mut body).unwrap())
}

fn found(facts: &FileFacts) -> Rows {
    let mut rows = Rows::new();
    for module in &facts.modules {
        for row in &module.items {
            let (kind, prefix) = match row.item.form {
                Form::Sass => ("elf".to_owned(), "sm_"),
                Form::Ptx => ("ptx".to_owned(), "compute_"),
                Form::LtoIr => ("nvvm".to_owned(), "lto_"),
                Form::TileIr => ("tileir".to_owned(), "sm_"),
                _ => (format!("kind{}", row.item.kind), "sm_"),
            };
            let packing = match row.item.packing {
                Packing::None => "none",
                Packing::Lz4 => "lz4",
                Packing::Zlib => "zlib",
                Packing::Zstd => "zstd",
                Packing::Unknown => "unknown",
            };
            let isa = match (module.container, row.item.isa) {
                (Container::Fatbin, Some(isa)) => isa.to_string(),
                _ => String::new(),
            };
            let arch = row.item.arch.to_string().replace("sm_", prefix);
            *rows.entry((kind, arch, packing.into(), isa)).or_default() += row.entries;
        }
    }
    rows
}

#[test]
fn every_file_gives_what_the_index_says() {
    let expected = expected();
    assert!(expected.len() >= 97, "the corpus is not whole: {} files", expected.len());
    let mut wrong = Vec::new();
    for (name, want) in &expected {
        let bytes = std::fs::read(corpus().join("bin").join(name)).unwrap();
        let got = read(&bytes, name).map(|f| found(&f)).unwrap_or_default();
        if &got != want {
            wrong.push(format!("{name}\n  want {want:?}\n  got  {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files whose damage lies where only a decoder of payloads would look; headers are whole.
const DAMAGE_OUT_OF_SIGHT: [&str; 5] = [
    "bad_so_zstd_payload.so",
    "bad_unknown_flags.fatbin",
    "bad_entry_kind_999.fatbin",
    "bad_entry_arch_0.fatbin",
    "bad_entry_arch_huge.fatbin",
];

#[test]
fn damage_is_located_and_whole_files_have_none() {
    for name in expected().keys() {
        let bytes = std::fs::read(corpus().join("bin").join(name)).unwrap();
        let Some(facts) = read(&bytes, name) else { continue };
        let gaps = facts.gaps.iter().filter(|g| g.effect == GapEffect::File && g.offset.is_some()).count();
        let damaged = name.starts_with("bad_") && !DAMAGE_OUT_OF_SIGHT.contains(&name.as_str());
        assert_eq!(gaps > 0, damaged, "{name}: {:?}", facts.gaps);
    }
}

/// Hands out at most a few bytes at a time, so that every boundary is met.
struct Drip<'a>(&'a [u8], usize);

impl std::io::Read for Drip<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.1.min(self.0.len()).min(buf.len());
        buf[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}
impl imagelint::stream::Source for Drip<'_> {}

#[test]
fn a_stream_of_any_grain_gives_the_same_facts() {
    for name in ["cu135_so_two_tus.so", "concat_padded.so", "cu135_so_lld.so", "odd_fatbin_in_lrodata.so"] {
        let bytes = std::fs::read(corpus().join("bin").join(name)).unwrap();
        // Between other bytes, so that regions stand at odd offsets and across chunks.
        for pad in [0, 1, 4095, 65_500, 65_536] {
            let mut long = bytes.clone();
            long.extend(vec![0u8; pad]);
            long.extend(&bytes);
            let whole = read(&long, name).unwrap();
            let mut body = Stream::new(Drip(&long, 977), None);
            body.window(1).unwrap();
            let dripped = device::read(imagelint::model::FileKind::SharedObject, &ImagePath::new(name), &mut body);
            assert_eq!(found(&whole), found(&dripped.unwrap()), "{name} + {pad}");
        }
    }
}

#[test]
fn truncation_and_flipped_bytes_never_panic_and_never_grow() {
    for entry in std::fs::read_dir(corpus().join("bin")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = std::fs::read(&path).unwrap();
        let step = (bytes.len() / 60).max(1);
        for cut in (0..bytes.len()).step_by(step) {
            read(&bytes[..cut], &name);
        }
        let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ bytes.len() as u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..60 {
            let mut hurt = bytes.clone();
            if hurt.is_empty() {
                continue;
            }
            for _ in 0..1 + random() % 8 {
                let at = random() as usize % hurt.len();
                hurt[at] = random() as u8;
            }
            if let Some(facts) = read(&hurt, &name) {
                let entries: u64 = facts.modules.iter().map(|m| m.entries()).sum();
                assert!(entries <= bytes.len() as u64 / 64 + 64, "{name}: {entries} entries");
            }
        }
    }
}
