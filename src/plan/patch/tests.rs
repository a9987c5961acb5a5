use super::*;
use crate::dockerfile::commands::asks;
use crate::lint::dockerfile::lab::{Beside, target};
use crate::model::{Built, KnobForm, Manager};
use crate::report::StepKind;

mod images;
mod pip;
mod sources;

const CUDA: &str = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n";
const INDEX: &str = "https://download.pytorch.org/whl";

/// A plan of these changes.
pub fn plan_of(changes: impl IntoIterator<Item = Change>) -> Plan {
    let step = |change| Step { change, ..Step::advice(StepKind::Rebuild, "x".into(), "x".into()) };
    Plan { steps: changes.into_iter().map(step).collect(), ..Plan::default() }
}

/// The file after the plan, and what each step left.
fn after(
    dockerfile: &str,
    files: &[(&str, &str)],
    plan: &Plan,
    tag: Option<&str>,
) -> (String, Vec<Option<String>>) {
    let base = |reference: &str| Catalog::embedded().bases().find(reference).map(|b| b.env).unwrap_or_default();
    let inputs = Inputs { base_env: Some(&base), platform: Some("linux/amd64".to_owned()), ..Inputs::default() };
    let reading = read(parse(dockerfile.as_bytes()), &inputs);
    let asks = asks(&reading, &Beside(files));
    let targets = [target("RTX 5090@575")];
    let lint = Lint::new(&reading, &asks, &targets, Catalog::embedded(), None);
    let patch = patch(&lint, plan, tag);
    let new = String::from_utf8(patch.apply(dockerfile.as_bytes())).unwrap();
    only_in_place(dockerfile, &new, &patch.edits);
    (new, patch.steps.into_iter().map(|s| s.left).collect())
}

/// Outside of the edits' places no byte is another.
fn only_in_place(old: &str, new: &str, edits: &[Edit]) {
    let (mut at, mut rest) = (0, new);
    for edit in edits {
        let kept = &old[at..edit.span.start];
        rest = rest.strip_prefix(kept).unwrap_or_else(|| panic!("{kept:?} is gone from {new}"));
        rest = rest.strip_prefix(edit.text.as_str()).unwrap();
        at = edit.span.end;
    }
    assert_eq!(&old[at..], rest);
}

/// The file after one change of which nothing is left.
#[track_caller]
fn done(dockerfile: &str, change: Change) -> String {
    let (new, left) = after(dockerfile, &[], &plan_of([change]), None);
    assert_eq!(left, [None], "{new}");
    assert_ne!(new, dockerfile);
    new
}

/// Why a change was not written at all.
#[track_caller]
fn left(dockerfile: &str, change: Change) -> String {
    let (new, left) = after(dockerfile, &[], &plan_of([change]), None);
    assert_eq!(new, dockerfile, "it was changed");
    left[0].clone().expect("a step that does nothing says why")
}

/// The lines that differ.
#[track_caller]
fn lines<'t>(old: &str, new: &'t str) -> Vec<&'t str> {
    new.lines().filter(|l| !old.lines().any(|o| o == *l)).collect()
}

#[test]
fn steps_of_another_tag_are_not_made() {
    let file = format!("{CUDA}RUN pip install torch==2.7.0 --index-url {INDEX}/cu126\n");
    let mut plan = plan_of([pip::torch("2.7.0", "cu128"), pip::torch("2.7.0", "cu118")]);
    plan.steps[0].tag = Some("new".into());
    plan.steps[1].tag = Some("old".into());
    assert!(after(&file, &[], &plan, Some("new")).0.contains("whl/cu128\n"));
    assert!(after(&file, &[], &plan, Some("old")).0.contains("whl/cu118\n"));
    assert_eq!(after(&file, &[], &plan, None).0, file);
}

#[test]
fn what_is_not_of_the_file_is_neither_made_nor_left() {
    let file = format!("{CUDA}RUN true\n");
    let plan = plan_of([Change::Advice, Change::DropTargets { targets: vec!["a".into()] }]);
    assert_eq!(after(&file, &[], &plan, None), (file, Vec::new()));
}

#[test]
fn of_two_that_change_the_same_words_the_first_is_made() {
    let file = format!("{CUDA}RUN pip install torch==2.7.0 --index-url {INDEX}/cu126\n");
    let plan = plan_of([pip::torch("2.7.0", "cu128"), pip::torch("2.8.0", "cu129")]);
    let (new, left) = after(&file, &[], &plan, None);
    assert!(new.contains("torch==2.7.0 --index-url https://download.pytorch.org/whl/cu128\n"), "{new}");
    assert!(left[0].is_none() && left[1].as_deref().unwrap().contains("another step"), "{left:?}");
}

#[test]
fn steps_are_told_where_they_change_what() {
    let file = format!("{CUDA}RUN pip install torch==2.7.0 --index-url {INDEX}/cu126\n");
    let reading = read(parse(file.as_bytes()), &Inputs::default());
    let asks = asks(&reading, &Beside(&[]));
    let lint = Lint::new(&reading, &asks, &[], Catalog::embedded(), None);
    let mut plan = plan_of([
        pip::torch("2.7.0", "cu128"),
        Change::SetVariable { name: "A".into(), value: "b".into() },
        Change::UnsetVariable { name: "NOT_THERE".into() },
    ]);
    tell(&mut plan, &lint, "docker/Dockerfile");
    assert_eq!(plan.steps[0].edits, ["docker/Dockerfile:2:75: \"cu126\" -> \"cu128\""]);
    assert_eq!(plan.steps[1].edits, ["docker/Dockerfile:2:80: + ENV A=\"b\""]);
    let review = plan.steps[2].review.as_deref().unwrap();
    assert!(review.starts_with("docker/Dockerfile: no ENV of the file sets NOT_THERE"), "{review}");
    assert_eq!(plan.steps[2].disposition, Disposition::Review);
}

#[test]
fn texts_from_outside_do_nothing_but_stand_there() {
    let bad = ["a\nRUN evil", "a\";RUN evil;\"", "$(evil)", "`evil`", "a\\", "\u{1b}[0m", "a' b"];
    let file = format!(
        "{CUDA}ENV NAME=x LD_LIBRARY_PATH=/a:/b\nRUN pip install torch==2.7.0 numpy\nRUN apt-get install -y curl wget\n"
    );
    for bad in bad {
        let text = || bad.to_owned();
        for change in [
            Change::Wheel {
                package: "torch".into(),
                version: Some(text()),
                specifier: format!("=={bad}"),
                index: Some((text(), text())),
                built: None,
                cuda: None,
            },
            Change::Base { from: "nvidia/cuda:12.4.1-devel-ubuntu22.04".into(), to: text() },
            Change::SetVariable { name: text(), value: text() },
            Change::UnsetVariable { name: text() },
            Change::DropEntry { variable: text(), entry: text() },
            Change::AddPackages { manager: Manager::Pip, names: vec![text()], libraries: Vec::new() },
            Change::AddPackages { manager: Manager::Dpkg, names: vec![text()], libraries: Vec::new() },
            Change::RemovePackages { manager: Manager::Dpkg, names: vec![text()] },
            sources::source(&text(), KnobForm::Env, &text(), &text(), ""),
        ] {
            let (new, left) = after(&file, &[], &plan_of([change.clone()]), None);
            assert_eq!(new, file, "{change:?}");
            assert!(!left[0].as_deref().unwrap().contains(['\n', '\u{1b}']), "{change:?}");
        }
    }
    // A value is quoted as a whole.
    let (new, _) =
        after(&file, &[], &plan_of([Change::SetVariable { name: "N".into(), value: "a\"$b\\".into() }]), None);
    assert!(new.ends_with("ENV N=\"a\\\"\\$b\\\\\"\n"), "{new}");
}

/// Prints what made-up plans do to all files of a folder: `LINT_CORPUS=DIR cargo test patches_of -- --ignored --nocapture`.
#[test]
#[ignore = "for reading; needs LINT_CORPUS"]
fn patches_of_a_corpus() {
    let mut files: Vec<_> =
        std::fs::read_dir(std::env::var("LINT_CORPUS").unwrap()).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files {
        let source = std::fs::read(&path).unwrap();
        let Ok(text) = String::from_utf8(source.clone()) else { continue };
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let base = |reference: &str| Catalog::embedded().bases().find(reference).map(|b| b.env).unwrap_or_default();
        let inputs =
            Inputs { base_env: Some(&base), platform: Some("linux/amd64".to_owned()), ..Inputs::default() };
        let reading = read(parse(&source), &inputs);
        let asks = asks(&reading, &Beside(&[]));
        let targets = [target("RTX 5090@575")];
        let catalog = Catalog::embedded();
        let lint = Lint::new(&reading, &asks, &targets, catalog, None);
        let from = reading.last.and_then(|last| match &reading.stages[last].root.0 {
            crate::dockerfile::reading::Base::Image(text) => text.value.known().map(str::to_owned),
            _ => None,
        });
        let list = ("TORCH_CUDA_ARCH_LIST", "8.0;12.0");
        let torch_list = |c: &str| sources::source(c, KnobForm::Env, list.0, list.1, "sm_80 sm_120");
        let names = |n: &[&str]| n.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let changes = [
            pip::torch("2.7.0", "cu128"),
            torch_list("xformers"),
            torch_list("apex"),
            torch_list("detectron2"),
            torch_list("the-project"),
            sources::source("flash_attn", KnobForm::Env, "FLASH_ATTN_CUDA_ARCHS", "80;120", "sm_80 sm_120"),
            sources::source(
                "llama.cpp",
                KnobForm::Cmake,
                "CMAKE_CUDA_ARCHITECTURES",
                "80-real;120-real",
                "sm_80 sm_120",
            ),
            Change::Base {
                from: from.unwrap_or_default(),
                to: "nvidia/cuda:12.8.1-cudnn-devel-ubuntu22.04".into(),
            },
            Change::DropEntry { variable: "LD_LIBRARY_PATH".into(), entry: "/usr/local/cuda/lib64".into() },
            Change::SetVariable { name: "NVIDIA_DRIVER_CAPABILITIES".into(), value: "compute,utility".into() },
            Change::UnsetVariable { name: "NVIDIA_VISIBLE_DEVICES".into() },
            Change::RemovePackages { manager: Manager::Pip, names: names(&["onnxruntime", "numpy"]) },
            Change::RemovePackages { manager: Manager::Dpkg, names: names(&["wget", "libcudnn8"]) },
            Change::AddPackages { manager: Manager::Dpkg, names: names(&["libgomp1"]), libraries: Vec::new() },
            Change::AddPackages {
                manager: Manager::Pip,
                names: names(&["nvidia-cudnn-cu12>=9"]),
                libraries: Vec::new(),
            },
        ];
        for change in changes {
            let plan = plan_of([change]);
            let patch = patch(&lint, &plan, None);
            let new = String::from_utf8(patch.apply(&source)).unwrap();
            only_in_place(&text, &new, &patch.edits);
            let step = &patch.steps[0];
            assert!(
                !step.edits.is_empty() || step.left.is_some(),
                "{name}: {:?} does nothing",
                plan.steps[0].change
            );
            let kind = format!("{:?}", plan.steps[0].change);
            let kind = kind.split([' ', '{']).next().unwrap_or_default().to_owned();
            match &step.left {
                Some(left) => println!("## {name} {kind} left: {left}"),
                None => println!("## {name} {kind} done"),
            }
            let diff = crate::report::unified::patch(&name, &source, new.as_bytes());
            let changed = |l: &&str| l.starts_with(['+', '-']) && !l.starts_with("+++") && !l.starts_with("---");
            for line in String::from_utf8_lossy(&diff).lines().filter(changed) {
                println!("{line}");
            }
        }
    }
}
