//! Images put together by hand, compared.

use std::sync::Arc;

use super::*;
use crate::config::{Date, Fleet, parse_targets};
use crate::lint::JudgeOptions;
use crate::lint::lab::Lab;
use crate::model::{
    Claim, ClaimKind, Container, Digest, Form, Gap, ImagePath, Item, ItemCount, Module, Packing, PtxIsa,
};
use crate::report::diff::{ArchChange, ComponentChange};

const TORCH: &str = "SITE/torch/lib/libtorch_cuda.so";

/// A library with one module of these; `compute_` is PTX.
fn add(lab: &mut Lab, path: &str, package: (&str, &str), code: &[&str]) {
    lab.library(path, package, "lib.so", false);
    let item = |arch: &&str| {
        let ptx = arch.starts_with("compute_");
        let form = if ptx { Form::Ptx } else { Form::Sass };
        let isa = ptx.then_some(PtxIsa::new(8, 0));
        let item = Item { arch: arch.parse().unwrap(), form, kind: 2, isa, packing: Packing::None, toolkit: None };
        ItemCount { item, entries: 1, bytes: 100 }
    };
    let module = Module {
        container: Container::Fatbin,
        section: None,
        relocatable: false,
        items: code.iter().map(item).collect(),
        count: 1,
        first: 0,
    };
    Arc::get_mut(&mut lab.0.files.last_mut().unwrap().facts).unwrap().modules = vec![module];
}

fn torch(version: &str, code: &[&str]) -> Lab {
    let mut lab = Lab::new();
    add(&mut lab, TORCH, ("torch", version), code);
    lab
}

fn fleet(targets: &[&str]) -> Fleet {
    Fleet::of_targets(parse_targets(targets.iter().copied(), Catalog::embedded()).unwrap())
}

fn compared(old: &Lab, new: &Lab, fleet: &Fleet) -> DiffReport {
    let catalog = Catalog::embedded();
    let options = JudgeOptions { allow_gaps: false, today: "2026-12-01".parse::<Date>().unwrap(), config: false };
    let judged = |lab: &Lab| lint::judge(std::slice::from_ref(&lab.0), fleet, catalog, &options);
    let (before, after) = (judged(old), judged(new));
    let image = |lab, report| Image { evidence: lab, report };
    compare(image(&old.0, &before), image(&new.0, &after), &[], catalog)
}

fn diff(old: &Lab, new: &Lab) -> DiffReport {
    compared(old, new, &Fleet::default())
}

fn archs(list: &[ArchChange]) -> Vec<String> {
    let list = list.iter().map(|a| {
        let matters: Vec<String> = a.matters_for.iter().map(ToString::to_string).collect();
        let instead: Vec<String> = a.instead.iter().map(|c| c.arch.to_string()).collect();
        format!("{} {:?} [{}] {}", a.arch, a.form, matters.join(" "), instead.join(" "))
    });
    list.collect()
}

fn only(report: &DiffReport) -> &ComponentChange {
    assert_eq!(report.components.len(), 1, "{:?}", report.components);
    &report.components[0]
}

fn kinds(report: &DiffReport) -> Vec<(LossKind, &str)> {
    report.losses.iter().map(|l| (l.kind, l.subject.as_str())).collect()
}

const GENERAL: [&str; 4] = ["sm_75", "sm_80", "sm_86", "sm_90"];

#[test]
fn an_image_does_not_differ_from_itself() {
    let mut lab = torch("2.7.0+cu126", &GENERAL);
    lab.env(&[("A", "b")]);
    let report = diff(&lab, &lab);
    assert!(report.equal && report.losses.is_empty() && report.undecided.is_empty());
    assert!(compared(&lab, &lab, &fleet(&["a100@535", "RTX 5090@575"])).equal);
    let mut other = torch("2.7.0+cu126", &GENERAL);
    other.env(&[("A", "c")]);
    assert!(!diff(&lab, &other).equal);
}

#[test]
fn code_that_other_code_stands_in_for_is_no_loss() {
    let old = torch("2.6.0", &["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]);
    let report = diff(&old, &torch("2.6.0", &GENERAL));
    let change = only(&report);
    assert_eq!(archs(&change.lost), ["sm_89 Sass [] sm_86", "sm_90a Sass [] sm_90"]);
    assert_eq!((change.old_bytes, change.new_bytes), (600, 400));
    assert!(change.served_worse.is_empty() && report.losses.is_empty());
}

#[test]
fn code_that_nothing_stands_in_for_is_a_loss() {
    let report = diff(
        &torch("2.6.0", &["sm_60", "sm_75", "sm_80", "sm_90"]),
        &torch("2.7.0", &["sm_75", "sm_80", "sm_90", "sm_120"]),
    );
    let change = only(&report);
    assert_eq!(archs(&change.lost), ["sm_60 Sass [6.0 6.1] "]);
    assert_eq!(archs(&change.won), ["sm_120 Sass [12.0 12.1] "]);
    assert_eq!((change.old_version.as_deref(), change.new_version.as_deref()), (Some("2.6.0"), Some("2.7.0")));
    assert_eq!(kinds(&report), [(LossKind::Coverage, "torch")]);
    // The way back loses the other.
    let back = diff(
        &torch("2.7.0", &["sm_75", "sm_80", "sm_90", "sm_120"]),
        &torch("2.6.0", &["sm_60", "sm_75", "sm_80", "sm_90"]),
    );
    assert!(back.losses[0].what.contains("12.0 12.1") && !back.losses[0].what.contains("6.0"));
}

#[test]
fn code_that_stays_in_few_modules_is_told() {
    let with = |modules: &[&[&str]]| {
        let mut lab = torch("1", modules[0]);
        for (at, code) in modules.iter().enumerate().skip(1) {
            let mut other = torch("1", code);
            let more = Arc::get_mut(&mut other.0.files[0].facts).unwrap().modules.remove(0);
            let file = Arc::get_mut(&mut lab.0.files[0].facts).unwrap();
            file.modules.push(Module { first: at as u64, ..more });
        }
        lab
    };
    let old = with(&[&["sm_60", "sm_80", "sm_90"], &["sm_60", "sm_75", "sm_80", "sm_90"]]);
    let new = with(&[&["sm_60", "sm_80", "sm_90"], &["sm_75", "sm_80", "sm_90"]]);
    let report = diff(&old, &new);
    let change = only(&report);
    assert!(change.lost.is_empty(), "it is there still");
    let rows: Vec<_> = change.fewer.iter().map(|c| (c.arch.to_string(), c.old, c.new)).collect();
    assert_eq!(rows, [("sm_60".to_owned(), 2, 1)]);
    assert_eq!(kinds(&report), [(LossKind::Coverage, "torch")]);
    assert_eq!(only(&diff(&new, &old)).more.len(), 1);
    // Fewer modules in all that serve as before are no matter.
    let fewer = with(&[&["sm_60", "sm_80", "sm_90"]]);
    assert!(only(&diff(&old, &fewer)).fewer.is_empty());
}

#[test]
fn a_suffix_is_no_detail() {
    // sm_90a does for 9.0 what sm_90 does; sm_100a does not do for 10.3 what sm_100 does.
    let report = diff(&torch("1", &["sm_90"]), &torch("1", &["sm_90a"]));
    assert!(report.losses.is_empty() && archs(&only(&report).lost) == ["sm_90 Sass [] sm_90a"]);
    let report = diff(&torch("1", &["sm_100"]), &torch("1", &["sm_100a"]));
    assert_eq!(archs(&only(&report).lost), ["sm_100 Sass [10.3 10.7] sm_100a"]);
    let report = diff(&torch("1", &["sm_100"]), &torch("1", &["sm_100f"]));
    assert!(report.losses.is_empty(), "{:?}", report.losses);
}

#[test]
fn ptx_is_counted_apart() {
    let with = torch("1", &["sm_75", "sm_80", "sm_90", "compute_90"]);
    let report = diff(&with, &torch("1", &["sm_75", "sm_80", "sm_90"]));
    let lost = archs(&only(&report).lost);
    assert!(lost[0].starts_with("sm_90 Ptx [10.0 ") && lost[0].ends_with("12.1] sm_90"), "{lost:?}");
    assert!(report.losses[0].what.contains("12.0"), "what ran after JIT runs no more");
    // Machine code that goes where PTX stays: slower starts.
    let report = diff(
        &torch("1", &["sm_75", "sm_80", "sm_90", "compute_80"]),
        &torch("1", &["sm_75", "sm_80", "compute_80"]),
    );
    let worse = &only(&report).served_worse;
    let words: Vec<_> = worse.iter().map(|s| (s.capability.to_string(), s.old, s.new)).collect();
    assert_eq!(words, [("9.0".to_owned(), Some(Verdict::Ok), Some(Verdict::Slow))]);
}

#[test]
fn without_targets_only_core_components_lose() {
    let mut old = torch("1", &GENERAL);
    add(&mut old, "SITE/zz/x.so", ("flash-attn", "1"), &["sm_80", "sm_90"]);
    let mut new = torch("1", &GENERAL);
    add(&mut new, "SITE/zz/x.so", ("flash-attn", "1"), &["sm_90"]);
    let report = diff(&old, &new);
    assert!(!only(&report).served_worse.is_empty() && report.losses.is_empty());
    // All of it gone.
    let report = diff(&old, &torch("1", &GENERAL));
    assert_eq!((only(&report).change, report.losses.len()), (Kind::Removed, 0));
    let report = diff(&torch("1", &GENERAL), &Lab::new());
    assert_eq!(only(&report).change, Kind::Removed);
    assert!(report.losses[0].what.contains("it is gone") && report.losses[0].what.contains("9.0"));
    let report = diff(&Lab::new(), &torch("1", &GENERAL));
    assert_eq!((only(&report).change, report.losses.len()), (Kind::Added, 0));
}

#[test]
fn packages_are_paired_wherever_they_are_and_by_their_family() {
    let mut old = torch("1", &GENERAL);
    add(&mut old, "SITE/zz/libcublasLt.so.12", ("nvidia-cublas-cu12", "12.6"), &["sm_80"]);
    let mut new = torch("1", &GENERAL);
    add(&mut new, "SITE/zz/libcublasLt.so.13", ("nvidia-cublas", "13.0"), &["sm_80"]);
    new.0.components[0].root = ImagePath::new("usr/lib/python3.12");
    let report = diff(&old, &new);
    let rows: Vec<_> = report
        .components
        .iter()
        .map(|c| (c.name.as_str(), c.old_name.as_deref(), c.change, c.old_root.is_some()))
        .collect();
    assert_eq!(
        rows,
        [("torch", None, Kind::Changed, true), ("nvidia-cublas", Some("nvidia-cublas-cu12"), Kind::Changed, false)]
    );
}

fn built_for(lab: &mut Lab, cuda: &str) {
    let claim = Claim {
        component: "torch".into(),
        kind: ClaimKind::Cuda,
        value: cuda.into(),
        said_by: ImagePath::new("version.py"),
    };
    lab.0.claims.push(claim);
}

#[test]
fn a_higher_floor_is_a_loss_and_a_lower_one_is_none() {
    let (mut old, mut new) = (torch("1", &GENERAL), torch("1", &GENERAL));
    built_for(&mut old, "12.6");
    built_for(&mut new, "13.0");
    let report = diff(&old, &new);
    assert!(report.min_driver.as_ref().unwrap().raised);
    assert_eq!(kinds(&report), [(LossKind::DriverFloor, "")]);
    let back = diff(&new, &old);
    assert!(back.min_driver.is_some_and(|f| !f.raised) && back.losses.is_empty());
    // Within one major, older drivers do.
    let mut minor = torch("1", &GENERAL);
    built_for(&mut minor, "12.8");
    assert!(diff(&old, &minor).min_driver.is_none());
    // With targets, their drivers decide.
    assert!(compared(&old, &new, &fleet(&["a100@580"])).losses.is_empty());
    let report = compared(&old, &new, &fleet(&["a100@550", "h100@580"]));
    assert_eq!(kinds(&report), [(LossKind::Verdict, "a100@550")]);
}

#[test]
fn with_targets_verdicts_decide() {
    let (old, new) = (torch("1", &["sm_60", "sm_80", "sm_90"]), torch("1", &["sm_80", "sm_90", "sm_120"]));
    let report = compared(&old, &new, &fleet(&["p100", "RTX 5090", "a100"]));
    let rows: Vec<_> = report.targets.iter().flatten().map(|t| (t.name.as_str(), t.old, t.new)).collect();
    let (fail, ok) = (Verdict::Fail, Verdict::Ok);
    assert_eq!(rows, [("p100", ok, fail), ("rtx-5090", fail, ok), ("a100", ok, ok)]);
    assert_eq!(kinds(&report), [(LossKind::Verdict, "p100")]);
    assert!(compared(&old, &new, &fleet(&["a100"])).losses.is_empty(), "nobody runs it on 6.0");
    let mut relaxed = fleet(&["p100"]);
    relaxed.targets[0].required = false;
    assert!(compared(&old, &new, &relaxed).losses.is_empty());
}

#[test]
fn what_was_not_read_whole_is_no_answer() {
    let (old, mut new) = (torch("1", &GENERAL), torch("1", &["sm_90"]));
    let file = &mut Arc::get_mut(&mut new.0.files[0].facts).unwrap();
    file.gaps.push(Gap::file(ImagePath::new("x"), 0, "damaged"));
    for fleet in [Fleet::default(), fleet(&["a100"])] {
        let report = compared(&old, &new, &fleet);
        assert!(report.losses.is_empty() && !report.undecided.is_empty(), "{report:?}");
    }
    let mut unread = torch("1", &GENERAL);
    unread.0.gaps.push(Gap::image("a layer is missing"));
    let report = diff(&old, &unread);
    assert!(report.undecided[0].contains("could not be read whole"), "{:?}", report.undecided);
}

#[test]
fn layers_are_shared_by_content() {
    let layer = |name: &str, size| LayerSummary {
        digest: Some(Digest::of(format!("{name}{size}").as_bytes())),
        diff_id: Some(Digest::of(name.as_bytes())),
        size,
        created_by: None,
        cached: None,
    };
    let shared =
        layers(&[layer("a", 1), layer("b", 2), layer("a", 1)], &[layer("a", 7), layer("c", 3), layer("a", 7)]);
    assert_eq!((shared.shared, shared.shared_bytes), (2, 14));
    let none = LayerSummary { digest: None, diff_id: None, size: 5, created_by: None, cached: None };
    let folder = [none];
    assert_eq!(layers(&folder, &folder).shared, 0, "of a folder nothing is known");
}
