//! On a pull request, what is agreed counts, and not what the change says.

use std::fs;
use std::path::{Path, PathBuf};

use super::json;
use super::runner::{Done, Job};
use crate::common::{git, on_path, skipped, testdata};

/// What is agreed: the sample fails on one of three targets.
fn strict() -> String {
    fs::read_to_string(testdata().join("images/imagelint.toml")).unwrap()
}

const LENIENT: &str = "[[target]]\nname = \"training\"\ngpu = \"A100\"\ndriver = \"550\"\n";

const WAIVERS: &str =
    "[[waiver]]\nrule = \"no-device-code-for-target\"\nreason = \"trust me\"\nexpires = \"2999-01-01\"\n";

/// A repository with a branch `main`, and a change to it.
struct Hosted {
    dir: tempfile::TempDir,
    /// The commit of main that the event names.
    base: String,
}

impl Hosted {
    fn new(agreed: &[(&str, &str)], change: &[(&str, Option<&str>)]) -> Option<Self> {
        if !on_path("git") {
            skipped("no git to make a change with");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "main"]);
        let hosted = Self { dir, base: String::new() };
        hosted.commit(&[("README", Some("first"))]);
        hosted.commit(&agreed.iter().map(|(n, t)| (*n, Some(*t))).collect::<Vec<_>>());
        let base = git(hosted.path(), &["rev-parse", "HEAD"]);
        git(hosted.path(), &["checkout", "-q", "-b", "change"]);
        hosted.commit(change);
        git(hosted.path(), &["config", "uploadpack.allowAnySHA1InWant", "true"]);
        Some(Self { base, ..hosted })
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn commit(&self, files: &[(&str, Option<&str>)]) {
        for (name, text) in files {
            let path = self.path().join(name);
            match text {
                Some(text) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, text).unwrap();
                }
                None => fs::remove_file(path).unwrap(),
            }
        }
        git(self.path(), &["add", "-A"]);
        git(self.path(), &["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    /// As actions/checkout leaves it; `depth` 0: with all history.
    fn checked_out(&self, to: &Path, depth: usize) {
        git(to, &["init", "-q"]);
        git(to, &["remote", "add", "origin", &format!("file://{}", self.path().display())]);
        let depth = format!("--depth={depth}");
        let mut args = vec!["fetch", "-q", "--no-tags", "origin", "+refs/heads/change:refs/remotes/pull/1/merge"];
        if depth != "--depth=0" {
            args.push(&depth);
        }
        git(to, &args);
        git(to, &["checkout", "-q", "refs/remotes/pull/1/merge"]);
    }

    fn job(&self, inputs: &[(&str, &str)]) -> Job {
        let image = testdata().join("images/sample.tar").display().to_string();
        let mut job = Job::new(inputs);
        job.inputs.entry("image".into()).or_insert(image);
        job.context.set("github.event.pull_request.base.sha", &self.base);
        job.context.set("github.event.pull_request.base.ref", "main");
        job
    }
}

fn weakened(done: &Done) -> Vec<String> {
    let lines = json(done)["policy"]["weakened"].as_array().cloned().unwrap_or_default();
    lines.iter().map(|l| l.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_change_cannot_let_itself_pass() {
    let lenient = format!("{LENIENT}{WAIVERS}");
    let files = [("imagelint.toml", &*strict())];
    let Some(hosted) = Hosted::new(&files, &[("imagelint.toml", Some(&lenient))]) else { return };
    for depth in [1, 2, 0] {
        let job = hosted.job(&[]);
        hosted.checked_out(&job.work(), depth);
        let history = git(&job.work(), &["rev-list", "--count", "HEAD"]);
        let done = job.run();
        assert_eq!((done.code, done.outputs["result"].as_str()), (1, "findings"), "depth {depth}: {done:?}");
        assert!(!weakened(&done).is_empty(), "{done:?}");
        assert!(done.summary.contains("The policy counts, not what this change says"), "{}", done.summary);
        assert!(done.log.contains("::warning title=policy::The policy counts"), "{}", done.log);
        assert_eq!(git(&job.work(), &["rev-list", "--count", "HEAD"]), history, "depth {depth}: history is cut");

        // Pushed to main, the same file is what is agreed.
        let mut job = hosted.job(&[]);
        job.context = Default::default();
        hosted.checked_out(&job.work(), depth);
        let done = job.run();
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(json(&done).get("policy"), None);
    }
}

#[test]
fn a_merge_queue_is_a_change_too() {
    let Some(hosted) = Hosted::new(&[("imagelint.toml", &strict())], &[("imagelint.toml", Some(LENIENT))]) else {
        return;
    };
    let mut job = hosted.job(&[]);
    job.context = Default::default();
    job.context.set("github.event.merge_group.base_sha", &hosted.base);
    job.context.set("github.event.merge_group.base_ref", "refs/heads/main");
    hosted.checked_out(&job.work(), 1);
    assert_eq!(job.run().code, 1);
}

#[test]
fn what_main_has_by_now_counts() {
    let Some(hosted) = Hosted::new(&[("imagelint.toml", LENIENT)], &[("a", Some("b"))]) else { return };
    git(hosted.path(), &["checkout", "-q", "main"]);
    hosted.commit(&[("imagelint.toml", Some(&strict()))]);
    for depth in [1, 0] {
        let job = hosted.job(&[]);
        hosted.checked_out(&job.work(), depth);
        let done = job.run();
        assert_eq!(done.code, 1, "depth {depth}: {done:?}");
    }
}

#[test]
fn waivers_and_baselines_are_agreed_too() {
    let image = testdata().join("images/sample.tar").display().to_string();
    let first = Job::new(&[("image", &image)]);
    fs::write(first.work().join("imagelint.toml"), strict()).unwrap();
    let known = first.run();
    let baseline = fs::read_to_string(&known.outputs["json"]).unwrap();
    let agreed = [("imagelint.toml", &*strict())];
    let brought = [("ci/waivers.toml", WAIVERS), ("ci/baseline.json", &*baseline)];
    let change = brought.map(|(name, text)| (name, Some(text)));
    let Some(new) = Hosted::new(&agreed, &change) else { return };
    let both = [agreed[0], brought[0], brought[1]];
    let Some(old) = Hosted::new(&both, &[("x", Some("y"))]) else { return };
    for (input, path) in [("waivers", "ci/waivers.toml"), ("baseline", "./ci/baseline.json")] {
        let job = new.job(&[(input, path)]);
        new.checked_out(&job.work(), 1);
        let done = job.run();
        assert_eq!(done.code, 1, "{input}: {done:?}");
        assert!(done.log.contains("is new with this change: it does not count"), "{input}: {done:?}");

        let job = old.job(&[(input, path)]);
        old.checked_out(&job.work(), 1);
        assert_eq!(job.run().code, 0, "{input}");

        // A file that an earlier step has made is the workflow's.
        let job = old.job(&[(input, "made-here")]);
        old.checked_out(&job.work(), 1);
        fs::write(job.work().join("made-here"), if input == "waivers" { WAIVERS } else { &baseline }).unwrap();
        assert_eq!(job.run().code, 0, "{input}");
    }
}

#[test]
fn the_first_imagelint_toml_brings_its_targets_and_no_waivers() {
    let text = format!("{}{WAIVERS}", strict());
    let Some(hosted) = Hosted::new(&[("a", "b")], &[("imagelint.toml", Some(&text))]) else { return };
    let job = hosted.job(&[]);
    hosted.checked_out(&job.work(), 1);
    let done = job.run();
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.log.contains("is new with this change"), "{done:?}");
    assert_eq!(json(&done)["targets"].as_array().unwrap().len(), 3);
    assert!(weakened(&done).iter().any(|w| w.contains("is waived")), "{done:?}");
}

#[test]
fn a_deleted_file_counts_until_that_is_merged() {
    let Some(hosted) = Hosted::new(&[("imagelint.toml", &strict())], &[("imagelint.toml", None)]) else { return };
    let job = hosted.job(&[]);
    hosted.checked_out(&job.work(), 1);
    assert_eq!(job.run().code, 1);
}

#[test]
fn places_are_those_of_the_branch_whatever_the_change_puts_there() {
    let agreed = [("ci/imagelint.toml", &*strict()), ("examples/imagelint.toml", LENIENT)];
    let Some(hosted) = Hosted::new(&agreed, &[("ci/imagelint.toml", None)]) else { return };
    // A link from the one folder to the other.
    let link = hosted.path().join("ci");
    let _ = fs::remove_dir_all(&link);
    std::os::unix::fs::symlink("examples", &link).unwrap();
    hosted.commit(&[]);
    for config in ["ci/imagelint.toml", "./ci/imagelint.toml", "ci//imagelint.toml"] {
        let job = hosted.job(&[("config", config)]);
        hosted.checked_out(&job.work(), 1);
        let done = job.run();
        assert_ne!(done.code, 0, "{config}: {done:?}");
    }
    let job = hosted.job(&[("config", "examples/../ci/imagelint.toml")]);
    hosted.checked_out(&job.work(), 1);
    assert_eq!(job.run().code, 2);

    // By its whole name, and checked out into a folder of its own.
    let mut job = hosted.job(&[]);
    job.inputs.insert("config".into(), job.work().join("ci/imagelint.toml").display().to_string());
    hosted.checked_out(&job.work(), 1);
    assert_eq!(job.run().code, 1);
    let job = hosted.job(&[("config", "src/app/ci/imagelint.toml")]);
    let folder: PathBuf = job.work().join("src/app");
    fs::create_dir_all(&folder).unwrap();
    hosted.checked_out(&folder, 1);
    let done = job.run();
    assert_eq!(done.code, 1, "{done:?}");
    assert!(json(&done).get("policy").is_some());
}

#[test]
fn a_branch_that_cannot_be_read_is_no_answer() {
    let Some(hosted) = Hosted::new(&[("imagelint.toml", &strict())], &[("imagelint.toml", Some(LENIENT))]) else {
        return;
    };
    for (depth, code) in [(1, 2), (2, 1), (0, 1)] {
        let job = hosted.job(&[]);
        hosted.checked_out(&job.work(), depth);
        git(&job.work(), &["remote", "set-url", "origin", "file:///nosuch"]);
        let done = job.run();
        assert_eq!(done.code, code, "depth {depth}: {done:?}");
        if code == 2 {
            assert!(done.log.contains("fetch-depth: 0") && done.steps.last().unwrap().0 == "Scan", "{done:?}");
        }
    }
}
