//! Databases that rpm made, see testdata/inventory; what rpm says of them stands in rpm.txt.

use super::super::hash;
use super::*;
use crate::stream::{Plain, Stream};

fn testdata(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/testdata/inventory/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn database(name: &str) -> Vec<u8> {
    zstd::decode_all(&testdata(&format!("{name}.zst"))[..]).unwrap()
}

fn told(source: Source, file: &[u8]) -> Result<Option<Fact>, String> {
    read(source, &mut Stream::new(Plain(file), None))
}

fn packages(source: Source, file: &[u8]) -> Vec<Listed> {
    match told(source, file).unwrap().unwrap() {
        Fact::Packages { packages, unread: 0 } => packages,
        other => panic!("{other:?}"),
    }
}

/// `name version path …`, one package a line.
fn expected() -> Vec<Listed> {
    let text = String::from_utf8(testdata("rpm.txt")).unwrap();
    let row = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap();
        let mut package = Package::new(Manager::Rpm, word(), Some(word().to_owned()));
        if package.name == "demo-libs" {
            package.wants_driver = vec!["cuda-drivers".into(), "nvidia-driver-cuda-libs".into()];
        }
        let mut files = Files::default();
        words.for_each(|path| files.add(&ImagePath::new(path)));
        Listed { package, files: files.finish(0) }
    };
    text.lines().map(row).collect()
}

#[test]
fn every_container_tells_what_rpm_tells() {
    for (source, name) in [(Source::Sqlite, "rpmdb.sqlite"), (Source::Ndb, "Packages.db")] {
        let mut found = packages(source, &database(name));
        found.sort_by(|a, b| a.package.name.cmp(&b.package.name));
        assert_eq!(found, expected(), "{name}");
        let libs = found.iter().find(|l| l.package.name == "demo-libs").unwrap();
        assert_eq!(libs.package.version.as_deref(), Some("1:2.5-3.el9"));
        assert!(libs.files.hashes.contains(&hash(b"usr/lib64/demo/plugin.so")));
    }
}

#[test]
fn empty_files_say_nothing_and_others_why_they_are_not_read() {
    for source in [Source::Sqlite, Source::SqliteLog, Source::Ndb, Source::Berkeley] {
        assert_eq!(told(source, b""), Ok(None));
        assert!(told(source, &[7; 5000]).unwrap_err().contains("not read"));
    }
    let mut berkeley = vec![0; 4096];
    berkeley[12..16].copy_from_slice(&BERKELEY_HASH.to_le_bytes());
    assert!(told(Source::Berkeley, &berkeley).unwrap_err().starts_with("Berkeley DB rpm database is not read"));
}

#[test]
fn cut_databases_tell_less_and_never_more() {
    let whole = expected();
    for (source, name) in [(Source::Sqlite, "rpmdb.sqlite"), (Source::Ndb, "Packages.db")] {
        let file = database(name);
        for piece in 0..64 {
            match told(source, &file[..file.len() * piece / 64]) {
                Ok(Some(Fact::Packages { packages, unread })) => {
                    assert!(packages.iter().all(|p| whole.contains(p)));
                    assert!(unread > 0 || packages.len() == whole.len());
                }
                Ok(None) => assert_eq!(piece, 0),
                Ok(other) => panic!("{other:?}"),
                Err(why) => assert!(!why.is_empty()),
            }
        }
    }
}

#[test]
fn flipped_bytes_do_no_harm() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for (source, name) in [(Source::Sqlite, "rpmdb.sqlite"), (Source::Ndb, "Packages.db")] {
        let whole = database(name);
        for round in 0..400 {
            let mut hurt = whole.clone();
            // The first pages hold what the rest hangs on.
            let within = if round % 2 == 0 { 8192 } else { hurt.len() };
            for _ in 0..1 + random() % 4 {
                let at = random() % within;
                hurt[at] = random() as u8;
            }
            if let Ok(Some(Fact::Packages { packages, .. })) = told(source, &hurt) {
                assert!(packages.len() <= 1000);
            }
        }
    }
}

#[test]
fn pages_that_lead_in_circles_end() {
    let mut file = database("rpmdb.sqlite");
    let page = usize::from(u16::from_be_bytes([file[16], file[17]]));
    // Every page becomes an interior page whose children are pages 1 and 2.
    for start in (0..file.len()).step_by(page) {
        let at = if start == 0 { 100 } else { start };
        file[at..at + 12].copy_from_slice(&[5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2]);
        file[at + 12..at + 14].copy_from_slice(&200_u16.to_be_bytes());
        file[start + 200..start + 204].copy_from_slice(&1_u32.to_be_bytes());
    }
    assert!(told(Source::Sqlite, &file).is_err());
}
