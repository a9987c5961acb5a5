use std::sync::Arc;

use super::plan;
use crate::catalog::Catalog;
use crate::config::parse_target;
use crate::lint::Subject;
use crate::lint::lab::{Lab, at};
use crate::model::*;
use crate::report::{Basis, Cost, Disposition, Plan, Step, StepKind};

const TORCH: &str = "SITE/torch/lib/libtorch_cuda.so";

/// "sm_80", or "ptx_80@8.8".
fn item(word: &str) -> Item {
    let (form, word) = match word.strip_prefix("ptx_") {
        Some(rest) => (Form::Ptx, format!("sm_{rest}")),
        None => (Form::Sass, word.to_owned()),
    };
    let (arch, isa) = word.split_once('@').map_or((word.as_str(), None), |(a, i)| (a, Some(i)));
    Item {
        arch: arch.parse().unwrap(),
        form,
        kind: 2,
        isa: isa.map(|i| i.parse().unwrap()),
        packing: Packing::None,
        toolkit: None,
    }
}

/// A library whose one module holds what is listed.
fn library(lab: &mut Lab, path: &str, package: (&str, &str), code: &[&str]) {
    lab.library(path, package, path.rsplit('/').next().unwrap(), true);
    let facts = Arc::get_mut(&mut lab.0.files.last_mut().unwrap().facts).unwrap();
    facts.modules[0].items = code.iter().map(|c| ItemCount { item: item(c), entries: 1, bytes: 1 }).collect();
}

fn torch(version: &str, cuda: &str, code: &[&str]) -> Lab {
    let mut lab = Lab::new();
    library(&mut lab, TORCH, ("torch", version), code);
    lab.0.claims.push(Claim {
        component: "torch".into(),
        kind: ClaimKind::Cuda,
        value: cuda.into(),
        said_by: at("SITE/torch/version.py"),
    });
    lab
}

const CU126: &[&str] = &["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"];
const CU128: &[&str] = &["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"];

fn planned(lab: &Lab, targets: &[&str]) -> Plan {
    let catalog = Catalog::embedded();
    let targets: Vec<Target> = targets.iter().map(|t| parse_target(t, catalog).unwrap()).collect();
    let evidence = std::slice::from_ref(&lab.0);
    let subject = Subject { evidence, targets: &targets, required: &[], catalog, allow_gaps: false };
    subject.cases(|cases| plan(&subject, cases))
}

/// The verdicts of one target before and after all steps.
fn turns(plan: &Plan, target: &str) -> (Verdict, Verdict) {
    let effect = plan.effect.as_ref().unwrap();
    assert_eq!(effect.basis, Basis::Predicted, "nothing was built");
    effect.verdicts[target]
}

fn index(step: &Step) -> &str {
    match &step.change {
        Change::Wheel { index: Some((name, _)), .. } => name,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_to_do_is_no_plan() {
    let plan = planned(&torch("2.7.0+cu126", "12.6", CU126), &["rtx 4090@575"]);
    assert!(plan.steps.is_empty() && plan.alternatives.is_empty() && plan.unresolved.is_empty());
}

#[test]
fn another_index_of_the_same_release_goes_before_all_else() {
    let plan = planned(&torch("2.7.0+cu126", "12.6", CU126), &["rtx 5090@575", "rtx 4090@575"]);
    let [step] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
    assert_eq!((index(step), step.cost, step.kind), ("cu128", Cost::SameVersion, StepKind::ChangeWheel));
    assert_eq!(turns(&plan, "rtx-5090@575"), (Verdict::Fail, Verdict::Ok));
    assert_eq!(turns(&plan, "rtx-4090@575"), (Verdict::Ok, Verdict::Ok));
    assert_eq!(step.resolves, ["rtx-5090@575"]);
    assert!(step.because.iter().any(|b| b.starts_with("pytorch.toml")), "{:?}", step.because);
    // All others are told, cheapest first, the build from source and the target given up among them.
    assert!(plan.alternatives.is_sorted_by_key(|s| s.cost));
    let costs: Vec<Cost> = plan.alternatives.iter().map(|s| s.cost).collect();
    assert!(costs.contains(&Cost::SourceBuild) && costs.contains(&Cost::Target), "{costs:?}");
    assert!(plan.tags.is_empty());
}

#[test]
fn a_list_that_was_not_measured_is_to_be_reviewed() {
    let plan = planned(&torch("2.8.0+cu128", "12.8", CU128), &["gtx 1080@580", "rtx 3090@580"]);
    assert_eq!(index(&plan.steps[0]), "cu126");
    assert_eq!(plan.steps[0].disposition, Disposition::Review);
    assert!(plan.steps[0].review.as_ref().unwrap().contains("not opened"), "{:?}", plan.steps[0].review);
}

#[test]
fn two_tags_where_no_wheel_serves_all() {
    let plan = planned(&torch("2.8.0+cu128", "12.8", CU128), &["gtx 1080@580", "rtx 5090@580"]);
    let names: Vec<(&str, &[String])> = plan.tags.iter().map(|t| (t.name.as_str(), &t.targets[..])).collect();
    assert_eq!(
        names,
        [("as-it-is", &["rtx-5090@580".to_owned()][..]), ("cu126", &["gtx-1080@580".to_owned()][..])]
    );
    let [step] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
    assert_eq!((step.tag.as_deref(), index(step)), (Some("cu126"), "cu126"));
    assert_eq!(turns(&plan, "gtx-1080@580"), (Verdict::Fail, Verdict::Ok));
    assert_eq!(turns(&plan, "rtx-5090@580"), (Verdict::Ok, Verdict::Ok));
    assert!(plan.unresolved.iter().any(|u| u.contains("two tags")), "{:?}", plan.unresolved);
}

#[test]
fn the_python_of_the_image_is_kept() {
    let mut lab = torch("1.13.1+cu117", "11.7", &["sm_70", "sm_75", "sm_80", "sm_86"]);
    let root = at("opt/v/lib/python3.8/site-packages");
    lab.0.components[0].root = root;
    let plan = planned(&lab, &["rtx 5090@575"]);
    let wheels = plan.steps.iter().chain(&plan.alternatives);
    assert!(
        !wheels.clone().any(|s| matches!(&s.change, Change::Wheel { version: Some(v), .. } if v.starts_with("2.")))
    );
    assert!(
        plan.unresolved.iter().any(|u| u.contains("has wheels for Python") && u.contains("3.8")),
        "{:?}",
        plan.unresolved
    );
}

#[test]
fn the_c_library_of_the_image_is_kept() {
    let mut lab = torch("2.6.0+cu124", "12.4", CU126);
    lab.0.libc = Some(Libc::Glibc { path: at("lib/libc.so.6"), version: Some("2.27".into()) });
    let plan = planned(&lab, &["rtx 5090@575"]);
    let newer = |s: &&Step| matches!(&s.change, Change::Wheel { package, .. } if package == "torch");
    assert_eq!(plan.steps.iter().chain(&plan.alternatives).filter(newer).count(), 0);
    assert!(plan.unresolved.iter().any(|u| u.contains("glibc 2.28")), "{:?}", plan.unresolved);
}

#[test]
fn an_older_cuda_or_a_newer_driver() {
    let lab = torch("2.10.0+cu130", "13.0", &["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]);
    let plan = planned(&lab, &["a100@570", "a100@580"]);
    assert!(index(&plan.steps[0]).starts_with("cu12"), "{:?}", plan.steps);
    assert_eq!(turns(&plan, "a100@570"), (Verdict::Fail, Verdict::Ok));
    let driver = plan.alternatives.iter().find(|s| matches!(s.change, Change::Driver { .. })).unwrap();
    assert!(driver.summary.contains("580.65.06") && driver.cost == Cost::Hosts, "{driver:?}");
    assert_eq!(driver.effect.as_ref().unwrap().verdicts["a100@570"], (Verdict::Fail, Verdict::Ok));
    // Data-centre GPUs may take the forward-compat package, others may not.
    let compat = |p: &Plan| p.alternatives.iter().any(|s| s.summary.contains("cuda-compat-13"));
    assert!(compat(&plan));
    assert!(!compat(&planned(&lab, &["rtx 4090@570"])));
}

#[test]
fn extensions_are_built_with_their_own_knob_after_the_framework() {
    let mut lab = Lab::new();
    library(&mut lab, "SITE/flash_attn_2_cuda.so", ("flash_attn", "2.8.3"), &["sm_80", "sm_90"]);
    library(&mut lab, TORCH, ("torch", "2.8.0+cu128"), CU128);
    lab.0.claims.push(Claim {
        component: "torch".into(),
        kind: ClaimKind::Cuda,
        value: "12.8".into(),
        said_by: at("SITE/torch/version.py"),
    });
    let plan = planned(&lab, &["rtx 5060 ti@575", "t4@570", "l40s@570"]);
    let step = &plan.steps[0];
    assert_eq!(step.env, [("FLASH_ATTN_CUDA_ARCHS".to_owned(), "80;120".to_owned())]);
    assert_eq!(step.resolves, ["rtx-5060-ti@575"], "7.5 is not built by the project");
    assert_eq!(turns(&plan, "rtx-5060-ti@575"), (Verdict::Warn, Verdict::Ok));
    assert_eq!(turns(&plan, "t4@570"), (Verdict::Warn, Verdict::Warn));
    assert!(plan.unresolved.iter().any(|u| u.contains("sm_75")), "{:?}", plan.unresolved);
}

#[test]
fn ptx_that_is_too_new_has_three_ways() {
    let mut lab = Lab::new();
    library(&mut lab, "SITE/vllm/_moe_C.so", ("vllm", "0.9.2"), &["ptx_80@8.8"]);
    let plan = planned(&lab, &["h200@570", "h200@575"]);
    assert_eq!(plan.steps[0].cost, Cost::SourceBuild);
    assert!(plan.steps[0].env[0].1.contains("9.0"), "{:?}", plan.steps[0].env);
    assert_eq!(turns(&plan, "h200@570"), (Verdict::Fail, Verdict::Ok));
    let said: Vec<&str> = plan.alternatives.iter().map(|s| s.summary.as_str()).collect();
    assert!(said.iter().any(|s| s.contains("CUDA 12.8 or older")), "{said:?}");
    assert!(said.iter().any(|s| s.contains("R575")), "{said:?}");
}

#[test]
fn a_toolkit_that_compiles_all_or_two_builds() {
    let mut lab = Lab::new();
    library(&mut lab, "SITE/own/kernels.so", ("own", "1.0"), &["sm_80", "sm_86", "sm_90"]);
    let both = planned(&lab, &["gtx 1080@580", "rtx 5090@580"]);
    let step = &both.steps[0];
    assert_eq!(step.disposition, Disposition::Review, "nobody knows how it is built");
    assert!(step.review.as_ref().unwrap().contains("no row of build_knobs.toml"));
    assert_eq!(turns(&both, "rtx-5090@580"), (Verdict::Fail, Verdict::Ok));
    // 12.9 is the last that writes Maxwell, 13.0 the first that knows Thor as 11.0.
    let apart = planned(&lab, &["gtx 980@580", "sm_110@580"]);
    assert_eq!(apart.tags.len(), 2, "{:?}", apart.tags);
    assert!(apart.unresolved.iter().any(|u| u.contains("no CUDA release compiles both")), "{:?}", apart.unresolved);
    let after = &apart.effect.as_ref().unwrap().verdicts;
    assert!(after.len() == 2 && after.values().all(|(_, after)| *after == Verdict::Ok), "{after:?}");
}

#[test]
fn a_path_that_leads_astray_is_dropped() {
    let mut lab = torch("2.7.0+cu126", "12.6", CU126);
    lab.env(&[("LD_LIBRARY_PATH", "/usr/local/cuda-12.1/lib64:/opt/lib")]);
    let provider = at("usr/local/cuda-12.1/lib64/libnvJitLink.so.12");
    lab.finds(TORCH, "libnvJitLink.so.12", "usr/local/cuda-12.1/lib64/libnvJitLink.so.12", Law::LibraryPath);
    lab.loads(TORCH).unmet.push(Unmet {
        library: "libnvJitLink.so.12".into(),
        provider,
        kind: UnmetKind::Version,
        names: vec!["libnvJitLink.so.12".into()],
        count: 1,
    });
    lab.library("SITE/zz/libnvJitLink.so.12", ("zz", "1"), "libnvJitLink.so.12", false).defines =
        vec!["libnvJitLink.so.12".into()];
    let plan = planned(&lab, &["a100@570"]);
    let drop = plan.steps.iter().find(|s| matches!(s.change, Change::DropEntry { .. })).unwrap();
    let Change::DropEntry { variable, entry } = &drop.change else { unreachable!() };
    assert_eq!((variable.as_str(), entry.as_str()), ("LD_LIBRARY_PATH", "/usr/local/cuda-12.1/lib64"));
    assert_eq!(turns(&plan, "a100@570"), (Verdict::Fail, Verdict::Ok));
}

#[test]
fn words_promise_nothing() {
    let mut lab = torch("2.7.0+cu126", "12.6", CU126);
    lab.0.packages.push(Package::new(Manager::Pip, "triton", Some("3.4.0".into())));
    lab.misses(TORCH, "libweird.so.9");
    let plan = planned(&lab, &["a100@570"]);
    let step = plan.steps.iter().find(|s| s.summary.contains("distribution's package")).unwrap();
    assert!(step.effect.is_none() && step.review.is_some() && step.disposition == Disposition::Review);
    assert_eq!(turns(&plan, "a100@570"), (Verdict::Fail, Verdict::Fail), "unknown is not mended");
}

#[test]
fn targets_that_are_not_required_are_no_reason_to_harm_others() {
    let catalog = Catalog::embedded();
    let lab = torch("2.8.0+cu128", "12.8", CU128);
    let mut targets: Vec<Target> =
        ["gtx 1080@580", "rtx 5090@580"].iter().map(|t| parse_target(t, catalog).unwrap()).collect();
    targets[0].required = false;
    let evidence = std::slice::from_ref(&lab.0);
    let subject = Subject { evidence, targets: &targets, required: &[], catalog, allow_gaps: false };
    let plan = subject.cases(|cases| plan(&subject, cases));
    let in_place = plan.steps.iter().filter(|s| s.tag.as_deref() != Some("cu126"));
    assert_eq!(in_place.count(), 0, "{:?}", plan.steps);
}

#[test]
fn torch_brings_its_triton() {
    let mut lab = torch("2.6.0+cu124", "12.4", CU126);
    library(&mut lab, "SITE/triton/backends/nvidia/bin/ptxas", ("triton", "3.2.0"), &["sm_80"]);
    let facts = Arc::get_mut(&mut lab.0.files.last_mut().unwrap().facts).unwrap();
    facts.modules.clear();
    facts.tool = Some(ToolFacts { kind: ToolKind::Ptxas, cuda: Some(CudaVersion::new(12, 4)), newest: None });
    let plan = planned(&lab, &["rtx 5090@575"]);
    // The old one's compiler does not know the GPU; what the new one's knows is not said.
    let [step] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
    assert!(matches!(&step.change, Change::Wheel { package, .. } if package == "torch"), "{step:?}");
    assert_eq!(turns(&plan, "rtx-5090@575"), (Verdict::Fail, Verdict::Ok));
    // A build of torch from source leaves it as it is.
    let source = plan.alternatives.iter().find(|s| s.cost == Cost::SourceBuild).unwrap();
    assert_eq!(source.effect.as_ref().unwrap().verdicts["rtx-5090@575"], (Verdict::Fail, Verdict::Warn));
}

#[test]
fn what_other_libraries_of_nvidia_said_is_no_harm() {
    // torch of CUDA 13 with its packages, on a host for CUDA 12 beside one for both.
    let mut lab = torch("2.11.0+cu130", "13.0", &["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]);
    lab.0.packages.push(Package::new(Manager::Pip, "nvidia-cudnn-cu13", Some("9.19.0.56".into())));
    lab.0.packages.push(Package::new(Manager::Pip, "nvidia-nccl-cu13", Some("2.28.9".into())));
    let (path, said_by) = (at("SITE/nvidia/cu13"), at("SITE/nvidia/cu13/include/cuda.h"));
    lab.0.toolkits.push(Toolkit { path, kind: ToolkitKind::Cuda, version: "13.0".into(), said_by });
    let plan = planned(&lab, &["rtx 5090@575", "h100@580"]);
    assert_eq!((plan.steps.len(), index(&plan.steps[0])), (1, "cu128"), "{:?}", plan.steps);
    assert_eq!(turns(&plan, "rtx-5090@575"), (Verdict::Fail, Verdict::Ok));
    assert_eq!(turns(&plan, "h100@580"), (Verdict::Ok, Verdict::Ok));
    assert!(plan.tags.is_empty() && plan.unresolved.is_empty(), "{:?}", plan.unresolved);
}

#[test]
fn a_warning_beside_a_failure_buys_no_other_release() {
    let mut lab = torch("2.15.0+cu132", "13.2", &["sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]);
    let facts = Arc::get_mut(&mut lab.0.files[0].facts).unwrap();
    let mut with = facts.modules[0].clone();
    with.items.push(ItemCount { item: item("sm_75"), entries: 1, bytes: 1 });
    with.count = 4;
    facts.modules.push(with);
    // 7.5 lacks one module of five, 7.0 all of them.
    let plan = planned(&lab, &["t4@580", "v100@580"]);
    let releases = plan.steps.iter().filter(|s| s.cost == Cost::OtherVersion && s.resolves == ["t4@580"]);
    assert_eq!(releases.count(), 0, "{:?}", plan.steps);
    assert_eq!(turns(&plan, "v100@580"), (Verdict::Fail, Verdict::Ok));
}

#[test]
fn failures_go_apart_by_a_wheel_whatever_a_warning_wants() {
    // As torch 2.11 is: 7.5 lacks a module of five, 7.0 and 6.1 all.
    let mut lab = torch("2.11.0+cu130", "13.0", &["sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]);
    let facts = Arc::get_mut(&mut lab.0.files[0].facts).unwrap();
    let mut with = facts.modules[0].clone();
    with.items.push(ItemCount { item: item("sm_75"), entries: 1, bytes: 1 });
    with.count = 4;
    facts.modules.push(with);
    let plan = planned(&lab, &["v100@580", "t4@580", "gtx 1080@580", "rtx 5090@580", "a100@535", "rtx 5090@575"]);
    let second = plan.tags.iter().find(|t| t.name == "cu126").unwrap_or_else(|| panic!("{plan:?}"));
    for target in ["v100@580", "gtx-1080@580"] {
        assert!(second.targets.iter().any(|t| t == target), "{:?}", plan.tags);
    }
    assert!(!plan.steps.iter().any(|s| s.cost == Cost::SourceBuild), "{:?}", plan.steps);
    for (_, after) in plan.effect.as_ref().unwrap().verdicts.values() {
        assert!(*after >= Verdict::Slow, "{:?}", plan.effect);
    }
}
