//! Images cut off or with flipped bytes: no panic, a status of 0, 1 or 2, and never an answer from half an image.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::testdata;
use imagelint::catalog::Catalog;
use imagelint::config::{Date, Fleet, parse_targets};
use imagelint::image::sources::OpenOptions;
use imagelint::lint::{self, FailOn, JudgeOptions};
use imagelint::model::{Evidence, GapEffect};
use imagelint::scan::{ScanOptions, Session, Silent};

/// Scans and judges; `None` where the image is refused.
fn scan(image: &str) -> Option<Vec<Evidence>> {
    let options = ScanOptions { jobs: 1, ..ScanOptions::default() };
    let session = Session::new(options, None).unwrap();
    let scanned = session.scan(image, &OpenOptions::default(), &[], &Silent).ok()?;
    let catalog = Catalog::embedded();
    let targets = parse_targets(["a100@535", "RTX 5090@575", "Jetson Thor"], catalog).unwrap();
    for allow_gaps in [false, true] {
        let judge = JudgeOptions { allow_gaps, today: Date::today(), config: true };
        let report = lint::judge(&scanned.evidence, &Fleet::of_targets(targets.clone()), catalog, &judge);
        assert!(lint::exit_code(&report, FailOn::Error, allow_gaps) <= 2);
    }
    Some(scanned.evidence)
}

fn is_whole(evidence: &[Evidence]) -> bool {
    evidence.iter().all(|e| e.gaps.iter().all(|g| g.effect != GapEffect::Image))
}

/// What an answer rests on.
fn facts(evidence: &[Evidence]) -> String {
    let facts: Vec<_> = evidence.iter().map(|e| (&e.files, &e.packages, &e.links)).collect();
    serde_json::to_string(&facts).unwrap()
}

fn archives() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = ["images", "cases/images", "builders/images"]
        .iter()
        .flat_map(|dir| fs::read_dir(testdata().join(dir)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.is_file() && matches!(path.extension().and_then(|e| e.to_str()), Some("tar" | "gz" | "whl"))
        })
        .collect();
    all.sort();
    assert!(all.len() >= 38, "only {} archives", all.len());
    all
}

/// A tar of plain files has no digest: flipped bytes of a file are another file.
fn has_digests(path: &Path) -> bool {
    !path.file_name().unwrap().to_str().unwrap().starts_with("rootfs")
}

fn xorshift(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn cut_archives_are_refused_or_whole() {
    let dir = tempfile::tempdir().unwrap();
    for path in archives() {
        let whole = fs::read(&path).unwrap();
        let place = dir.path().join(path.file_name().unwrap());
        fs::write(&place, &whole).unwrap();
        let good = scan(place.to_str().unwrap()).map(|e| facts(&e));
        for piece in 1..40 {
            let cut = whole.len() * piece / 40 + piece % 3;
            fs::write(&place, &whole[..cut]).unwrap();
            let Some(evidence) = scan(place.to_str().unwrap()) else { continue };
            // Zeros at the end may be missing; a tar cut between two entries looks whole, and has no digest to tell.
            let undetectable = place.ends_with("rootfs.tar");
            let same = Some(facts(&evidence)) == good;
            assert!(same || !is_whole(&evidence) || undetectable, "{} cut at {cut}", path.display());
        }
    }
}

#[test]
fn flipped_bytes_are_noticed_or_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = xorshift(0x9e37_79b9_7f4a_7c15);
    for path in archives() {
        let whole = fs::read(&path).unwrap();
        let place = dir.path().join(path.file_name().unwrap());
        fs::write(&place, &whole).unwrap();
        let good = scan(place.to_str().unwrap()).map(|e| facts(&e));
        for _ in 0..60 {
            let mut hurt = whole.clone();
            for _ in 0..1 + random() % 4 {
                let at = random() as usize % hurt.len();
                hurt[at] = random() as u8;
            }
            fs::write(&place, &hurt).unwrap();
            let Some(evidence) = scan(place.to_str().unwrap()) else { continue };
            let same = Some(facts(&evidence)) == good;
            assert!(same || !is_whole(&evidence) || !has_digests(&path), "{}", path.display());
        }
    }
}
