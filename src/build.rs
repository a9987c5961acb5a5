//! Names the versions of what is cached by what makes it: the sources of each probe. So no change of a probe is forgotten,
//! and none of another makes its facts be read anew.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The catalog's table of AMD's processors; the readers of device code know their numbers from it.
const AMD_GPUS: &str = "rules/data/amd_gpus.toml";

/// What each kind of cached facts is made by, and the crates that it rests on most.
const MADE_BY: [(&str, &[&str], &[&str]); 4] = [
    ("DEVICE", &["src/device", "src/elf", "src/image/zip"], &["flate2", "goblin", "md-5", "rmp-serde", "zstd"]),
    ("INVENTORY", &["src/inventory"], &[]),
    ("LOADING", &["src/loader/capture.rs", "src/loader/cache.rs", "src/loader/conf.rs"], &[]),
    // Which entries there are, and how all of it is written down.
    (
        "ENTRIES",
        &["src/image/tar", "src/image/tar.rs", "src/model", "src/stream.rs", "src/scan/probe.rs"],
        &["tar"],
    ),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={AMD_GPUS}");
    let processors = processors(&fs::read_to_string(AMD_GPUS)?)?;
    let out = std::env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&out).join("amd_processors.rs"), &processors)?;
    let lock = fs::read_to_string("Cargo.lock").unwrap_or_default();
    for (name, places, crates) in MADE_BY {
        let mut files = Vec::new();
        for place in places {
            println!("cargo::rerun-if-changed={place}");
            collect(Path::new(place), &mut files)?;
        }
        files.sort();
        let mut hash = Fnv::new();
        for file in &files {
            hash.add(file.to_string_lossy().as_bytes());
            hash.add(&fs::read(file)?);
        }
        if name == "DEVICE" {
            hash.add(processors.as_bytes());
        }
        crates.iter().for_each(|c| hash.add(version_of(&lock, c).as_bytes()));
        println!("cargo::rustc-env=IMAGELINT_PROBE_{name}={:016x}", hash.0);
    }
    println!("cargo::rerun-if-changed=Cargo.lock");
    Ok(())
}

/// The rows with a processor's number, as a Rust list of (number, name). A test holds it against the table.
fn processors(table: &str) -> io::Result<String> {
    let mut rows = Vec::new();
    for list in table.split("\n[[") {
        let value = |key: &str| {
            let line = list.lines().find_map(|l| l.strip_prefix(key)?.trim_start().strip_prefix('='))?;
            Some(line.trim().trim_matches('"').to_owned())
        };
        if list.starts_with("isa]]") || list.starts_with("generic]]") {
            let row = value("mach").zip(value("target"));
            let (number, name) = row.ok_or_else(|| io::Error::other(format!("{AMD_GPUS}: [[{list}")))?;
            rows.push(format!("({number}, {name:?})"));
        }
    }
    Ok(format!("&[{}]", rows.join(", ")))
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !place.is_dir() {
        files.push(place.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        // What only tests compile makes nothing.
        if path.file_stem().is_none_or(|stem| stem != "tests" && stem != "testing") {
            collect(&path, files)?;
        }
    }
    Ok(())
}

/// The line behind the crate's name in the lock file.
fn version_of<'a>(lock: &'a str, name: &str) -> &'a str {
    let wanted = format!("name = \"{name}\"");
    let mut lines = lock.lines();
    lines.find(|l| *l == wanted).and_then(|_| lines.next()).unwrap_or_default()
}

/// FNV-1a, 64 bits; of each part its length as well, so that no two lists read alike.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for b in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
