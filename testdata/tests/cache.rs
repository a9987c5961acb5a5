//! What was read before is not read again, whoever read it and however that ended; many images in one run.

use crate::common;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use common::{Ran, finish, program, testdata};
use imagelint::model::Digest;
use serde_json::{Value, json};

/// Bytes that do not compress, the same for the same seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut out: Vec<u8> = std::iter::repeat_with(&mut next).take(length / 8 + 1).flatten().collect();
    out.truncate(length);
    out
}

/// A layer with a real library and some bytes that nobody looks into.
fn layer(name: &str, seed: u64, length: usize) -> Vec<u8> {
    let library = testdata().join("builders/images/rootfs/opt/venv/lib/python3.11/site-packages/demo_kernels");
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |path: String, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, bytes).unwrap();
    };
    add(format!("opt/{name}/libkernels.so.1"), &fs::read(library.join("libkernels.so.1")).unwrap());
    add(format!("opt/{name}/data"), &noise(seed, length));
    add("etc/ld.so.conf".to_owned(), format!("/opt/{name}\n").as_bytes());
    add(format!("usr/lib/python3/dist-packages/{name}-1.{seed}.dist-info/METADATA"), b"Name: x\nVersion: 1\n");
    tar.into_inner().unwrap()
}

/// An OCI layout that grows image by image.
struct Layout {
    root: PathBuf,
    manifests: Vec<Value>,
    /// Digest and stored size of every blob that is a layer.
    layers: BTreeSet<(String, u64)>,
}

impl Layout {
    fn new(root: PathBuf) -> Self {
        fs::create_dir_all(root.join("blobs/sha256")).unwrap();
        fs::write(root.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        Self { root, manifests: Vec::new(), layers: BTreeSet::new() }
    }

    fn blob(&self, bytes: &[u8], kind: &str) -> Value {
        let digest = Digest::of(bytes);
        fs::write(self.root.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        json!({ "mediaType": kind, "digest": digest.to_string(), "size": bytes.len() })
    }

    fn image(&mut self, name: &str, layers: &[Vec<u8>]) {
        let mut descriptors = Vec::new();
        for tar in layers {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(tar).unwrap();
            let packed = packed.finish().unwrap();
            self.layers.insert((Digest::of(&packed).to_string(), packed.len() as u64));
            descriptors.push(self.blob(&packed, "application/vnd.oci.image.layer.v1.tar+gzip"));
        }
        let diff_ids: Vec<String> = layers.iter().map(|tar| Digest::of(tar).to_string()).collect();
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": {},
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        let config = self.blob(config.to_string().as_bytes(), "application/vnd.oci.image.config.v1+json");
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({ "schemaVersion": 2, "mediaType": kind, "config": config, "layers": descriptors });
        let mut manifest = self.blob(manifest.to_string().as_bytes(), kind);
        manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
        self.manifests.push(manifest);
        let index = json!({ "schemaVersion": 2, "manifests": self.manifests });
        fs::write(self.root.join("index.json"), index.to_string()).unwrap();
    }
}

/// Twenty images on four bases, and a list of them.
fn fleet_of_images(dir: &Path) -> (Layout, PathBuf) {
    let mut layout = Layout::new(dir.join("images"));
    let bases: Vec<Vec<u8>> = (0..4).map(|i| layer(&format!("base{i}"), i, 300_000)).collect();
    let middles: Vec<Vec<u8>> = (0..5).map(|i| layer(&format!("middle{i}"), 10 + i, 60_000)).collect();
    let mut list = String::from("# all of them\n");
    for i in 0..20 {
        let own = layer(&format!("own{i}"), 100 + i as u64, 5_000);
        layout.image(&format!("app-{i}"), &[bases[i % 4].clone(), middles[i % 5].clone(), own]);
        list.push_str(&format!("oci:{}:app-{i}\n", layout.root.display()));
    }
    let file = dir.join("images.txt");
    fs::write(&file, list).unwrap();
    (layout, file)
}

/// Runs with a cache of its own.
fn cached(cache: &Path, args: &[&str]) -> Ran {
    finish(program().env_remove("IMAGELINT_NO_CACHE").env("IMAGELINT_CACHE_DIR", cache).args(args))
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const TARGETS: [&str; 4] = ["--target", "a100@535", "--target", "rtx 5090@575"];

fn scan_list<'a>(list: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["scan", "--list", list.to_str().unwrap(), "--format", "json", "--fail-on", "never"];
    args.extend(TARGETS);
    args.extend(more);
    args
}

#[test]
fn layers_that_images_share_are_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let (layout, list) = fleet_of_images(dir.path());
    let union: u64 = layout.layers.iter().map(|(_, size)| size).sum();
    assert_eq!(layout.layers.len(), 29);
    let read = |reports: &[Value]| -> u64 {
        assert_eq!(reports.len(), 20);
        reports.iter().map(|r| r["stats"]["stored_bytes_read"].as_u64().unwrap()).sum()
    };
    let cache = dir.path().join("cache");
    for jobs in ["1", "8"] {
        // Without a cache that stays, one of the run's own serves.
        let none = finish(program().args(scan_list(&list, &["--stats", "--jobs", jobs])));
        assert_eq!(none.code, 0, "{none:?}");
        assert_eq!(read(&lines(&none)), union, "--no-cache --jobs {jobs}");
        fs::remove_dir_all(&cache).ok();
        let first = cached(&cache, &scan_list(&list, &["--stats", "--jobs", jobs]));
        assert_eq!(read(&lines(&first)), union, "--jobs {jobs}");
        assert_eq!(first.err, "", "{first:?}");
    }
    let again = cached(&cache, &scan_list(&list, &["--stats"]));
    assert_eq!(read(&lines(&again)), 0);
    for report in lines(&again) {
        for layer in report["image"]["layers"].as_array().unwrap() {
            assert_eq!(layer["cached"], true, "{report}");
        }
    }
    let size = cached(&cache, &["cache", "size"]);
    assert!(size.out.contains("29 layers"), "{size:?}");
}

#[test]
fn every_way_to_run_a_list_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (_, list) = fleet_of_images(dir.path());
    let cache = dir.path().join("cache");
    let whole = finish(program().args(scan_list(&list, &["--jobs", "1"])));
    assert_eq!((whole.code, whole.out.lines().count()), (0, 20), "{whole:?}");
    for (cached_, jobs) in [(false, "8"), (true, "8"), (true, "1"), (true, "2")] {
        let ran = match cached_ {
            true => cached(&cache, &scan_list(&list, &["--jobs", jobs])),
            false => finish(program().args(scan_list(&list, &["--jobs", jobs]))),
        };
        assert!(ran.out == whole.out, "cached: {cached_}, --jobs {jobs}");
    }
    // Parts together are the whole, also where the environment names them.
    let mut parts = Vec::new();
    for index in 0..3 {
        let shard = format!("{index}/3");
        let named = cached(&cache, &scan_list(&list, &["--shard", &shard]));
        let mut job = program();
        job.env("JOB_COMPLETION_INDEX", index.to_string()).args(scan_list(&list, &["--shard", "/3"]));
        assert_eq!(finish(&mut job).out, named.out);
        parts.extend(named.out.lines().map(str::to_owned));
    }
    let mut want: Vec<String> = whole.out.lines().map(str::to_owned).collect();
    assert_ne!(parts, want);
    parts.sort();
    want.sort();
    assert!(parts == want);
    // More parts than images: some have none, which is no error.
    let none = cached(&cache, &scan_list(&list, &["--shard", "20/21"]));
    assert_eq!((none.code, none.out.as_str()), (0, ""), "{none:?}");
}

#[test]
fn a_list_on_standard_input_and_its_table() {
    let dir = tempfile::tempdir().unwrap();
    let (layout, _) = fleet_of_images(dir.path());
    let list = format!("oci:{0}:app-1\noci:{0}:app-2 # b\nno/such.tar\n", layout.root.display());
    let args =
        |more: &[&'static str]| -> Vec<&'static str> { [&["scan", "--list", "-"][..], &TARGETS, more].concat() };
    let table = common::run_with_input(&args(&[]), list.as_bytes());
    assert_eq!(table.code, 2, "{table:?}");
    assert!(table.err.contains("error: no/such.tar: not found"), "{table:?}");
    let rows: Vec<&str> = table.out.lines().collect();
    assert!(rows[0].starts_with("IMAGES  3 images") && rows[2].contains("no/such.tar"), "{}", table.out);
    assert!(table.out.contains("1 could not be read") && table.out.ends_with("exit 2\n"), "{}", table.out);
    assert!(!table.out.contains("TARGETS"), "one row an image");
    // Each one's own with -v.
    let long = common::run_with_input(&args(&["-v"]), list.as_bytes());
    assert_eq!(long.out.matches("TARGETS").count(), 2, "{}", long.out);
    // Of an image that could not be read, JSON has a line as well.
    let json = common::run_with_input(&args(&["-f", "json", "--allow-gaps"]), list.as_bytes());
    let reports = lines(&json);
    assert_eq!((json.code, reports.len()), (2, 3));
    let unread = &reports[2];
    assert_eq!(
        (&unread["image"]["reference"], &unread["image"]["verdict"]),
        (&json!("no/such.tar"), &json!("unknown"))
    );
    assert!(unread["targets"].as_array().unwrap().iter().all(|t| t["verdict"] == "unknown"), "{unread}");
    assert!(unread["gaps"][0]["why"].as_str().unwrap().contains("not found"), "{unread}");
}

#[test]
fn wrong_lists_and_parts_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    fs::write(&empty, "# nothing\n").unwrap();
    let empty = empty.to_str().unwrap();
    common::run(&["scan", "--list", empty]).refused(&["names no image"]);
    common::run(&["scan", "--list", "no/such/list"]).refused(&["no/such/list"]);
    common::run(&["scan", "a", "--shard", "3/3"]).refused(&["--shard", "counted from 0"]);
    common::run(&["scan", "a", "--shard", "/3"]).refused(&["JOB_COMPLETION_INDEX is not set"]);
}

#[test]
fn files_of_several_images_are_written_as_they_come() {
    let dir = tempfile::tempdir().unwrap();
    let (_, list) = fleet_of_images(dir.path());
    let (json, sarif) = (dir.path().join("r.jsonl"), dir.path().join("r.sarif"));
    let evidence = dir.path().join("e.json");
    let outputs = [format!("json={}", json.display()), format!("sarif={}", sarif.display())];
    let more = ["-o", &outputs[0], "-o", &outputs[1], "--save-evidence", evidence.to_str().unwrap()];
    let ran = finish(program().args(scan_list(&list, &more)));
    assert_eq!(fs::read_to_string(&json).unwrap(), ran.out);
    let log: Value = serde_json::from_slice(&fs::read(&sarif).unwrap()).unwrap();
    assert_eq!(log["runs"].as_array().map(Vec::len), Some(20));
    assert_eq!(fs::read_to_string(&evidence).unwrap().lines().count(), 20);
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().ends_with(".tmp")), "{left:?}");
}

/// Killed at any moment, the next run is right, and what is in the cache is whole.
#[test]
fn a_killed_scan_leaves_a_sound_cache() {
    /// Of the list of images, each once.
    const LAYERS: u32 = 29;
    let dir = tempfile::tempdir().unwrap();
    let (_, list) = fleet_of_images(dir.path());
    let want = finish(program().args(scan_list(&list, &[])));
    let start = |cache: &Path| {
        let mut run = program();
        run.env_remove("IMAGELINT_NO_CACHE").env("IMAGELINT_CACHE_DIR", cache).args(scan_list(&list, &[]));
        run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let rounds: u32 = std::env::var("IMAGELINT_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let mut half_done = 0;
    for round in 0..rounds {
        let cache = dir.path().join(format!("cache-{round}"));
        // Two at once, for they share it.
        let mut runs = [start(&cache), start(&cache)];
        let kept = |name| fs::read_dir(cache.join(name)).map_or(0, |dir| dir.count());
        // Spread over what a run does, not over the time it takes beside other tests: by the layers that are kept, and
        // within the writing of the next.
        let done = usize::try_from(round * LAYERS / rounds).unwrap();
        while kept("layers") < done && runs.iter_mut().any(|run| run.try_wait().unwrap().is_none()) {
            sleep(Duration::from_micros(100));
        }
        sleep(Duration::from_micros(u64::from(round) * 618_034 % 1_000));
        for run in &mut runs {
            // SIGKILL; it may have ended by itself.
            let _ = run.kill();
            run.wait().unwrap();
        }
        half_done += usize::from((1..LAYERS as usize).contains(&kept("layers")));
        // Whatever is there by name is whole: nothing of it is of no use.
        if cache.join("layers").exists() {
            let pruned = cached(&cache, &["cache", "prune"]);
            assert!(pruned.out.starts_with("0 files"), "round {round}: {pruned:?}");
        }
        let next = cached(&cache, &scan_list(&list, &[]));
        assert!(next.out == want.out && next.err.is_empty(), "round {round}: {}", next.err);
        fs::remove_dir_all(&cache).unwrap();
    }
    assert!(half_done > 0 || rounds < 5, "no run was killed in the middle");
}

#[test]
fn a_cache_that_was_hardly_begun_is_a_cache() {
    let dir = tempfile::tempdir().unwrap();
    for folder in [&["layers"][..], &["layers", "blobs"], &["layers", "tmp"]] {
        let cache = dir.path().join(folder.concat());
        folder.iter().for_each(|name| fs::create_dir_all(cache.join(name)).unwrap());
        assert!(cached(&cache, &["cache", "prune"]).out.starts_with("0 files"));
        assert_eq!(cached(&cache, &["cache", "size"]).code, 0);
    }
}

#[test]
fn a_damaged_cache_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (_, list) = fleet_of_images(dir.path());
    let cache = dir.path().join("cache");
    let want = cached(&cache, &scan_list(&list, &[]));
    for folder in ["layers", "blobs"] {
        for (at, entry) in fs::read_dir(cache.join(folder)).unwrap().enumerate() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            match at % 4 {
                0 => bytes.truncate(bytes.len() / 2),
                1 => bytes.clear(),
                2 => *bytes.last_mut().unwrap() ^= 1,
                _ => continue,
            }
            fs::write(&path, bytes).unwrap();
        }
    }
    let again = cached(&cache, &scan_list(&list, &[]));
    assert!(again.out == want.out && again.err.is_empty(), "{}", again.err);
    let pruned = cached(&cache, &["cache", "prune"]);
    assert!(pruned.out.starts_with("0 files"), "all was mended: {pruned:?}");
}

#[test]
fn a_cache_that_cannot_be_written_is_told_and_done_without() {
    let dir = tempfile::tempdir().unwrap();
    let (layout, _) = fleet_of_images(dir.path());
    let image = format!("oci:{}:app-1", layout.root.display());
    let args = [&["scan", &image, "--format", "json", "--fail-on", "never"][..], &TARGETS].concat();
    let want = finish(program().args(&args));
    // A file where the folder would be: also root cannot make it.
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let ran = cached(&file.join("cache"), &args);
    assert_eq!((ran.code, &ran.out), (0, &want.out), "{ran:?}");
    assert!(ran.err.contains("note: no cache: ") && ran.err.lines().count() == 1, "{ran:?}");
    // Broken half-way: the folder for temporary files is gone.
    let cache = dir.path().join("cache");
    cached(&cache, &["scan", "--list", "-"]);
    assert_eq!(cached(&cache, &args).code, 0);
    fs::remove_dir_all(cache.join("tmp")).unwrap();
    fs::write(cache.join("tmp"), "").unwrap();
    fs::remove_dir_all(cache.join("layers")).unwrap();
    let ran = cached(&cache, &args);
    assert_eq!((ran.code, &ran.out), (0, &want.out), "{ran:?}");
    assert!(ran.err.contains("no cache"), "{ran:?}");
    // Nobody asked for one, and there is no place for it.
    let mut bare = program();
    bare.env_remove("IMAGELINT_NO_CACHE").env_remove("HOME").env_remove("XDG_CACHE_HOME").args(&args);
    let ran = finish(&mut bare);
    assert_eq!((ran.code, ran.err.as_str(), &ran.out), (0, "", &want.out));
    let mut path = program();
    path.env_remove("HOME").env_remove("XDG_CACHE_HOME").args(["cache", "path"]);
    finish(&mut path).refused(&["neither XDG_CACHE_HOME nor HOME", "--cache-dir"]);
}

#[test]
fn the_cache_is_looked_after() {
    let dir = tempfile::tempdir().unwrap();
    let (layout, _) = fleet_of_images(dir.path());
    let image = format!("oci:{}:app-1", layout.root.display());
    let mut home = program();
    home.env_remove("IMAGELINT_NO_CACHE").env_remove("XDG_CACHE_HOME").env("HOME", dir.path());
    assert_eq!(finish(home.args(["scan", &image])).code, 0);
    let cache = dir.path().join(".cache/imagelint");
    assert_eq!(fs::read_dir(cache.join("layers")).unwrap().count(), 3);
    assert_eq!(cached(&cache, &["cache", "path"]).out, format!("{}\n", cache.display()));
    for kept in [&["--unused-for", "1d"][..], &["--max-size", "1GiB"], &[]] {
        let ran = cached(&cache, &[&["cache", "prune"][..], kept].concat());
        assert!(ran.code == 0 && ran.out.starts_with("0 files"), "{ran:?}");
    }
    let most = cached(&cache, &["cache", "prune", "--max-size", "1"]);
    assert!(most.out.starts_with("6 files") && most.out.ends_with(", 0 B left\n"), "{most:?}");
    assert!(cached(&cache, &["cache", "prune", "--all"]).out.starts_with("0 files"));
    assert!(cached(&dir.path().join("none"), &["cache", "size"]).out.contains("no cache yet"));
    cached(&cache, &["cache", "prune", "--unused-for", "soon"]).refused(&["30d"]);
}

/// The Job of the documentation, run as its pods would run it.
#[test]
fn the_job_of_the_documentation_scans_the_whole_list() {
    let dir = tempfile::tempdir().unwrap();
    let (_, list) = fleet_of_images(dir.path());
    let (config, work) = (dir.path().join("config"), dir.path().join("work"));
    fs::create_dir(&config).unwrap();
    fs::create_dir(&work).unwrap();
    fs::copy(&list, config.join("images.txt")).unwrap();
    fs::copy(testdata().join("images/imagelint.toml"), config.join("imagelint.toml")).unwrap();
    let text = fs::read_to_string(testdata().join("deploy/scan-job.yaml")).unwrap();
    let (_, job) = text.split_once("\n---\n").unwrap();
    let job: Value = serde_saphyr::from_str(job).unwrap();
    let pods = job["spec"]["completions"].as_u64().unwrap();
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["imagelint"]));
    for pod in 0..pods {
        let there = |arg: &Value| {
            let arg = arg.as_str().unwrap().replace("$(JOB_COMPLETION_INDEX)", &pod.to_string());
            let at = |arg: String, from: &str, to: &Path| arg.replace(from, to.to_str().unwrap());
            at(at(arg, "/config", &config), "/work/", &work.join(""))
        };
        let args: Vec<String> = container["args"].as_array().unwrap().iter().map(there).collect();
        let mut run = program();
        run.env_remove("IMAGELINT_NO_CACHE").env("JOB_COMPLETION_INDEX", pod.to_string()).args(args);
        let ran = finish(&mut run);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    }
    let results = |pod| fs::read_to_string(work.join(format!("results-{pod}.jsonl"))).unwrap();
    let references: BTreeSet<String> = (0..pods)
        .flat_map(|pod| results(pod).lines().map(|l| serde_json::from_str::<Value>(l).unwrap()).collect::<Vec<_>>())
        .map(|report| report["image"]["reference"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(references.len(), 20, "{references:?}");
    assert_eq!(fs::read_dir(work.join("cache/layers")).unwrap().count(), 29);
}
