use std::sync::Arc;

use super::super::probe::{Carried, Probe};
use super::*;
use crate::image::Content;
use crate::image::overlay::{Change, LayerEntry};
use crate::inventory::Fact;
use crate::loader::Capture;
use crate::model::{FileFacts, FileKind, Gap, ImagePath};

fn file(path: &str, carried: Carried) -> LayerEntry<super::super::probe::Payload> {
    let payload = (!carried.is_empty()).then(|| Arc::new(carried));
    LayerEntry { path: ImagePath::new(path), change: Change::File(payload) }
}

/// A layer with an entry of every kind, and a fact of every probe.
fn layer() -> LayerRead {
    let facts = Arc::new(FileFacts::new(FileKind::SharedObject, 7));
    let member = (ImagePath::new("a.whl!x.so"), facts.clone());
    let cudnn = Arc::new(Fact::Cudnn { version: "9.1".into() });
    let preload = Arc::new(Capture::Preload(vec!["/x.so".into()]));
    let other = |path: &str, change| LayerEntry { path: ImagePath::new(path), change };
    LayerRead {
        entries: vec![
            other("usr", Change::Dir),
            file("usr/a.so", Carried { facts: Some(facts), ..Carried::default() }),
            file("a.whl", Carried { members: vec![member], ..Carried::default() }),
            file("usr/libcuda.so.1", Carried { empty_driver: true, ..Carried::default() }),
            file("usr/include/cudnn_version.h", Carried { package: Some(cudnn), ..Carried::default() }),
            file("etc/ld.so.preload", Carried { loading: Some(preload), ..Carried::default() }),
            file("etc/ld.so.conf", Carried::default()),
            other("usr/\u{fffd}\\l", Change::Symlink(vec![0xff, b'\n', b'/'])),
            other("h", Change::Hardlink(ImagePath::new(b"usr/\xff"))),
            other("null", Change::Special),
            other("gone", Change::Whiteout),
            other("usr/new", Change::Opaque),
        ],
        gaps: vec![Gap::note(ImagePath::new("usr"), "odd")],
        noted: vec![(Probe::Device, Gap::file(ImagePath::new("usr/a.so"), 4, "cut"))],
        stored: 100,
        unpacked: 4096,
        files: 6,
        elfs: 2,
        digest: Some(Digest::of(b"blob")),
        diff_id: Some(Digest::of(b"tar")),
        cached: false,
    }
}

/// What an image says of the layer.
fn named(digest: Option<&[u8]>, size: u64) -> Layer {
    Layer {
        digest: digest.map(Digest::of),
        diff_id: Some(Digest::of(b"tar")),
        size: Some(size),
        created_by: None,
        content: Content::Streamed(0),
    }
}

fn whole(found: Found) -> Option<LayerRead> {
    match found {
        Found::Whole(read) => Some(*read),
        Found::Part(_) | Found::Nothing => None,
    }
}

fn cache() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(&folder.path().join("deep/er")).unwrap();
    (folder, cache)
}

#[test]
fn what_was_read_comes_back_as_it_was() {
    let (_folder, cache) = cache();
    let options = ScanOptions::default();
    assert!(whole(cache.find(&named(Some(b"blob"), 100), &options)).is_none());
    cache.keep(&layer());
    assert_eq!(cache.trouble(), None);
    let back = whole(cache.find(&named(Some(b"blob"), 100), &options)).unwrap();
    let was = layer();
    assert_eq!((&back.entries, &back.gaps, &back.noted), (&was.entries, &was.gaps, &was.noted));
    let numbers = |r: &LayerRead| (r.stored, r.unpacked, r.files, r.elfs, r.digest, r.diff_id);
    assert_eq!(numbers(&back), numbers(&was));
    // An archive of docker's has no digests of blobs.
    let nameless = whole(cache.find(&named(None, 4096), &options)).unwrap();
    assert_eq!((nameless.digest, nameless.stored), (None, 4096));
}

#[test]
fn a_blob_that_was_never_seen_to_be_the_layer_is_not_believed() {
    let (_folder, cache) = cache();
    let options = ScanOptions::default();
    cache.keep(&layer());
    assert!(whole(cache.find(&named(Some(b"another"), 100), &options)).is_none());
    assert!(whole(cache.find(&named(Some(b"blob"), 101), &options)).is_none());
    // Seen to be another layer.
    cache.keep(&LayerRead { diff_id: Some(Digest::of(b"other tar")), ..layer() });
    assert!(whole(cache.find(&named(Some(b"blob"), 100), &options)).is_none());
    // A plain tar is its own diff_id.
    assert!(whole(cache.find(&named(Some(b"tar"), 4096), &options)).is_some());
}

#[test]
fn limits_hold_for_what_was_read_without_them() {
    let (_folder, cache) = cache();
    cache.keep(&LayerRead { unpacked: 3 << 30, ..layer() });
    let find = |options: &ScanOptions| whole(cache.find(&named(Some(b"blob"), 100), options)).is_some();
    let roomy = ScanOptions { max_ratio: 1 << 40, ..ScanOptions::default() };
    assert!(find(&roomy));
    assert!(!find(&ScanOptions::default()), "a bomb by its ratio");
    assert!(!find(&ScanOptions { max_layer_bytes: 1 << 30, ..roomy.clone() }));
    assert!(!find(&ScanOptions { max_entries: 11, ..roomy }));
}

#[test]
fn whatever_is_cut_or_flipped_is_not_believed() {
    let (_folder, cache) = cache();
    cache.keep(&layer());
    let find = || whole(cache.find(&named(Some(b"blob"), 100), &ScanOptions::default())).is_some();
    for path in [cache.layer_path(&Digest::of(b"tar")), cache.blob_path(&Digest::of(b"blob"))] {
        let good = fs::read(&path).unwrap();
        for cut in 0..good.len() {
            fs::write(&path, &good[..cut]).unwrap();
            assert!(!find(), "cut at {cut}");
        }
        for at in 0..good.len() {
            let mut hurt = good.clone();
            hurt[at] ^= 1 << (at % 8);
            fs::write(&path, &hurt).unwrap();
            assert!(!find(), "flipped at {at}");
        }
        fs::write(&path, &good).unwrap();
        assert!(find());
    }
    // The facts of another layer, whole and under a name that is not theirs.
    fs::copy(cache.layer_path(&Digest::of(b"tar")), cache.layer_path(&Digest::of(b"stranger"))).unwrap();
    let stranger = Layer { diff_id: Some(Digest::of(b"stranger")), ..named(None, 1) };
    assert!(whole(cache.find(&stranger, &ScanOptions::default())).is_none());
}

/// Changes the kept facts as text, and seals them anew.
fn rewrite(cache: &Cache, edit: impl Fn(&mut serde_json::Value)) {
    let path = cache.layer_path(&Digest::of(b"tar"));
    let mut value: serde_json::Value = sealed::read(&path, MAX_FACTS_FILE, MAX_FACTS).unwrap();
    edit(&mut value);
    sealed::write(&path, &cache.temporary(), &value).unwrap();
}

#[test]
fn one_changed_probe_leaves_the_others_facts() {
    let (_folder, cache) = cache();
    let options = ScanOptions::default();
    let part = || match cache.find(&named(Some(b"blob"), 100), &options) {
        Found::Part(kept) => Some(kept),
        Found::Whole(_) => panic!("stale facts were believed"),
        Found::Nothing => None,
    };
    cache.keep(&layer());
    rewrite(&cache, |v| v["inventory"]["version"] = "older".into());
    let kept = part().unwrap();
    assert_eq!([Probe::Device, Probe::Inventory, Probe::Loading].map(|p| kept.holds(p)), [true, false, true]);
    assert!(kept.is(1, &ImagePath::new("usr/a.so")) && !kept.is(2, &ImagePath::new("usr/a.so")));
    assert!(kept.payload(1).unwrap().facts.is_some());
    assert_eq!((kept.elfs(), kept.noted().count()), (2, 1));
    rewrite(&cache, |v| v["device"]["version"] = "older".into());
    assert_eq!((part().unwrap().elfs(), part().unwrap().noted().count()), (0, 0));
    rewrite(&cache, |v| v["loading"]["version"] = "older".into());
    assert!(part().is_none(), "nothing is left");
    cache.keep(&layer());
    rewrite(&cache, |v| v["version"] = "older".into());
    assert!(part().is_none(), "the entries themselves may be others");
}

#[test]
fn facts_that_do_not_fit_together_are_not_believed() {
    let (_folder, cache) = cache();
    let options = ScanOptions::default();
    type Edit = fn(&mut serde_json::Value);
    let edits: [(&str, Edit); 4] = [
        ("a fact of no entry", |v| v["device"]["files"]["99"] = serde_json::json!({"empty_driver": true})),
        ("a fact of a folder", |v| v["device"]["files"]["0"] = serde_json::json!({"empty_driver": true})),
        ("a file of two probes", |v| v["loading"]["files"]["1"] = serde_json::Value::Null),
        ("a file less", |v| drop(v["tree"].as_array_mut().unwrap().remove(1))),
    ];
    for (what, edit) in edits {
        cache.keep(&layer());
        assert!(whole(cache.find(&named(Some(b"blob"), 100), &options)).is_some());
        rewrite(&cache, edit);
        assert!(matches!(cache.find(&named(Some(b"blob"), 100), &options), Found::Nothing), "{what}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_told_once() {
    let (folder, cache) = cache();
    // Also root may not write below a file.
    fs::remove_dir(cache.temporary()).unwrap();
    fs::write(cache.temporary(), "").unwrap();
    cache.keep(&layer());
    cache.keep(&layer());
    let trouble = cache.trouble().unwrap();
    assert!(trouble.contains("cannot be written"), "{trouble}");
    assert_eq!(cache.trouble(), None);
    drop(folder);
}

#[test]
fn pruning_takes_what_is_of_no_use() {
    let (_folder, cache) = cache();
    let aged = |path: &Path, days: u64| {
        let past = SystemTime::now() - Duration::from_secs(days * 86_400);
        fs::File::options().write(true).open(path).unwrap().set_modified(past).unwrap();
    };
    let of = |name: &str| {
        let (digest, diff_id) = (Digest::of(format!("blob {name}").as_bytes()), Digest::of(name.as_bytes()));
        LayerRead { digest: Some(digest), diff_id: Some(diff_id), ..layer() }
    };
    let path = |name: &str| cache.layer_path(&Digest::of(name.as_bytes()));
    for (name, days) in [("new", 0), ("older", 10), ("old", 40)] {
        cache.keep(&of(name));
        aged(&path(name), days);
    }
    let size = cache.size().unwrap();
    assert_eq!((size.layers, size.blobs), (3, 3));
    assert_eq!(cache.prune(&Keep::default()).unwrap(), Pruned::default());
    // What a killed process left, what nobody wrote here, and what is damaged.
    fs::write(cache.temporary().join(".tmpX"), "x").unwrap();
    fs::write(cache.temporary().join(".tmpY"), "y").unwrap();
    aged(&cache.temporary().join(".tmpY"), 1);
    fs::write(cache.root().join("layers/notes.txt"), "mine").unwrap();
    fs::write(path("older"), "damaged").unwrap();
    let pruned = cache.prune(&Keep::default()).unwrap();
    assert_eq!(pruned.files, 3, "the damaged layer with its blob, the old temporary file");
    assert!(cache.root().join("layers/notes.txt").exists());
    assert!(cache.temporary().join(".tmpX").exists());
    let keep = Keep { used_within: Some(Duration::from_secs(30 * 86_400)), ..Keep::default() };
    assert_eq!(cache.prune(&keep).unwrap().files, 2);
    assert!(path("new").exists() && !path("old").exists());
    // By size, the last used stays.
    cache.keep(&of("second"));
    aged(&path("new"), 1);
    let size = |name: &str| fs::metadata(path(name)).unwrap().len();
    let room = size("new") + size("second") - 1;
    cache.prune(&Keep { max_bytes: Some(room), ..Keep::default() }).unwrap();
    assert!(path("second").exists() && !path("new").exists());
    cache.clear().unwrap();
    assert_eq!(cache.size().unwrap(), Size::default());
    assert!(cache.root().join("CACHEDIR.TAG").exists());
}

#[test]
fn a_use_is_noted() {
    let (_folder, cache) = cache();
    cache.keep(&layer());
    let path = cache.layer_path(&Digest::of(b"tar"));
    let past = SystemTime::now() - 2 * NOTED_FOR;
    fs::File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
    assert!(whole(cache.find(&named(Some(b"blob"), 100), &ScanOptions::default())).is_some());
    assert!(fs::metadata(&path).unwrap().modified().unwrap() > past + NOTED_FOR);
}

/// Of a real image: whichever probes have changed, reading for these alone gives what reading for all gives.
#[test]
fn what_is_read_for_changed_probes_alone_is_what_is_read_for_all() {
    use super::super::{Session, Silent};
    use crate::image::sources::OpenOptions;
    let folder = tempfile::tempdir().unwrap();
    let image = format!("{}/testdata/builders/images/umoci.oci", env!("CARGO_MANIFEST_DIR"));
    let scan = |cache: bool| {
        let cache = cache.then(|| Cache::open(folder.path()).unwrap());
        let session = Session::new(ScanOptions::default(), cache).unwrap();
        let scanned = session.scan(&image, &OpenOptions::default(), &[], &Silent).unwrap();
        let cached = scanned.runs.concat().iter().filter(|run| run.cached).count();
        (scanned.evidence, cached, scanned.runs.concat().len())
    };
    let (want, ..) = scan(false);
    let (first, cached, layers) = scan(true);
    assert!(first == want && cached == 0 && layers > 1);
    assert!(want[0].stats.elfs > 0 && !want[0].packages.is_empty());
    let cache = Cache::open(folder.path()).unwrap();
    let age = |parts: &[&str]| {
        for entry in fs::read_dir(folder.path().join("layers")).unwrap() {
            let path = entry.unwrap().path();
            let mut value: serde_json::Value = sealed::read(&path, MAX_FACTS_FILE, MAX_FACTS).unwrap();
            for part in parts {
                value[part]["version"] = "older".into();
                // What is of another version is not looked at, whatever it says.
                let files = value[part]["files"].as_object_mut().unwrap();
                files
                    .values_mut()
                    .filter(|v| *part != "device" && !v.is_null())
                    .for_each(|v| *v = serde_json::Value::Null);
            }
            sealed::write(&path, &cache.temporary(), &value).unwrap();
        }
    };
    for parts in [&["device"][..], &["inventory"], &["loading"], &["device", "loading"], &["inventory", "loading"]]
    {
        age(parts);
        let (got, cached, _) = scan(true);
        assert!(got == want && cached == 0, "{parts:?}");
        let (got, cached, _) = scan(true);
        assert!(got == want && cached == layers, "{parts:?}: kept anew");
    }
}
