//! Small file systems of mksquashfs, whole and damaged (testdata/stores/squashfs.sh makes them).

use std::io::Read;
use std::path::PathBuf;

use super::*;

const IMAGES: [&str; 6] = ["gzip", "lzo", "xz", "lz4", "zstd", "enroot"];

fn image(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/stores").join(format!("{name}.sqsh"))
}

/// Every path and what it holds, in order.
fn read(path: &Path) -> io::Result<Vec<(String, String)>> {
    let fs = Squashfs::open(path)?;
    let mut out = Vec::new();
    for (path, node) in fs.list(1000)?.entries {
        let what = match node {
            Node::File { size, id } => {
                let mut bytes = Vec::new();
                fs.open(&path, id)?.read_to_end(&mut bytes)?;
                assert_eq!(bytes.len() as u64, size, "{path}");
                crate::model::Digest::of(&bytes).hex()
            }
            other => format!("{other:?}"),
        };
        out.push((path.to_string(), what));
    }
    out.sort();
    Ok(out)
}

#[test]
fn every_codec_gives_the_same_tree() {
    let want = read(&image("gzip")).unwrap();
    assert_eq!(want.len(), 55);
    let at = |name: &str| &want.iter().find(|(path, _)| path == name).unwrap().1;
    let numbers: String = (1..=2000).map(|n| format!("{n}\n")).collect();
    assert_eq!(*at("usr/lib/numbers"), crate::model::Digest::of(numbers.as_bytes()).hex());
    assert_eq!(at("usr/lib/deep/same"), at("usr/lib/numbers"));
    assert_eq!(*at("usr/lib/zeros"), crate::model::Digest::of(&[0; 20480]).hex());
    assert_eq!(*at("usr/lib/nothing"), crate::model::Digest::of(b"").hex());
    assert_eq!(*at("usr/lib/link"), format!("{:?}", Node::Symlink(b"../lib/numbers".to_vec())));
    assert_eq!((at("usr/null").as_str(), at("usr/lib/pipe").as_str()), ("Special", "Special"));
    assert_eq!(at("empty"), "Dir");
    for name in IMAGES {
        assert_eq!(read(&image(name)).unwrap(), want, "{name}");
    }
}

#[test]
fn a_file_is_skipped_block_by_block() {
    let numbers: String = (1..=2000).map(|n| format!("{n}\n")).collect();
    for name in IMAGES {
        let fs = Squashfs::open(&image(name)).unwrap();
        let listing = fs.list(1000).unwrap();
        let find = |name: &str| listing.entries.iter().find(|(p, _)| p.to_string() == name).unwrap().clone();
        let (path, Node::File { id, size }) = find("usr/lib/numbers") else { panic!("no file") };
        for skip in [0, 1, 4095, 4096, 4097, 8192, 8500, size - 1, size, size + 1] {
            let mut reader = fs.open(&path, id).unwrap();
            assert_eq!(reader.skip(skip).unwrap(), skip.min(size), "{name} {skip}");
            let mut rest = String::new();
            reader.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, numbers[skip.min(size) as usize..], "{name} {skip}");
        }
    }
}

#[test]
fn small_files_are_found_by_their_path() {
    let fs = Squashfs::open(&image("zstd")).unwrap();
    let small = |path: &str, cap| fs.small(&ImagePath::new(path), cap).unwrap();
    assert!(small("etc/environment", 1000).unwrap().starts_with(b"PATH="));
    assert_eq!(small("etc/environment", 10), None);
    for none in ["etc/none", "etc/environment/x", "usr", "usr/lib/link", ""] {
        assert_eq!(small(none, 1000), None, "{none}");
    }
    assert!(fs.list(10).unwrap_err().to_string().contains("names"));
}

/// Every byte changed and every length cut: an error, or a tree that is bounded; never a panic.
#[test]
fn damage_is_an_error_or_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sqsh");
    for name in IMAGES {
        let whole = std::fs::read(image(name)).unwrap();
        for cut in (0..whole.len()).step_by(37) {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(read(&path).is_err(), "{name} cut to {cut}");
        }
        // The data is long and its damage is all alike; the tables behind it are not.
        let tables = u64::from_le_bytes(array(&whole[64..]).unwrap()) as usize;
        let places = (0..96).chain((96..tables).step_by(97)).chain((tables..whole.len()).step_by(2));
        for at in places {
            for flip in [0x01, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                std::fs::write(&path, &bytes).unwrap();
                let Ok(fs) = Squashfs::open(&path) else { continue };
                let Ok(listing) = fs.list(1000) else { continue };
                for (path, node) in listing.entries {
                    let Node::File { id, .. } = node else { continue };
                    let Ok(file) = fs.open(&path, id) else { continue };
                    // A damaged size promises more than is there.
                    let _ = file.take(1 << 20).read_to_end(&mut Vec::new());
                }
            }
        }
    }
}

#[test]
fn superblocks_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sqsh");
    let whole = std::fs::read(image("gzip")).unwrap();
    let with = |at: usize, new: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        std::fs::write(&path, bytes).unwrap();
        read(&path).unwrap_err().to_string()
    };
    assert!(with(0, b"sqsh").contains("no squashfs"));
    assert!(with(12, &[0xff; 4]).contains("block size"));
    assert!(with(20, &[2, 0]).contains("lzma"));
    assert!(with(28, &[3, 0]).contains("squashfs 3.0"));
    assert!(with(40, &[0xff; 8]).contains("cut short"));
    assert!(with(64, &[0xff; 8]).contains("place") || with(64, &[0xff; 8]).contains("end"));
    with(72, &[0xff; 8]);
}
