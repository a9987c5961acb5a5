//! The table of `diff` as it looks, and its laws at every width.

use super::super::diff::{
    FloorChange, Layers, LibraryChange, Loss, PackageChange, SettingChange, SideGap, SizeChange, ToolkitChange,
    VariableChange,
};
use super::super::json::diff_schema;
use super::super::table::tests::{golden, lawful};
use super::super::{MinDriver, sample};
use super::*;
use crate::model::{Arch, Digest, Form, ImagePath, Manager, Platform, ToolkitKind};

fn arch(text: &str) -> Arch {
    text.parse().unwrap()
}

fn lost(code: &str, form: Form, matters_for: &[&str], instead: &[(&str, Form)]) -> ArchChange {
    ArchChange {
        arch: arch(code),
        form,
        matters_for: matters_for.iter().map(|c| c.parse().unwrap()).collect(),
        instead: instead.iter().map(|(a, form)| Code { arch: arch(a), form: *form }).collect(),
    }
}

fn served(list: &[&str], old: Option<Verdict>, new: Option<Verdict>) -> Vec<ServedChange> {
    list.iter().map(|c| ServedChange { capability: c.parse().unwrap(), old, new }).collect()
}

fn component(change: Kind, name: &str, role: Role) -> ComponentChange {
    ComponentChange {
        change,
        name: name.into(),
        old_name: None,
        role,
        root: ImagePath::new("opt/v/lib/python3.12/site-packages"),
        old_root: None,
        old_version: (change != Kind::Added).then(|| "2.7.1+cu126".into()),
        new_version: (change != Kind::Removed).then(|| "2.8.0+cu128".into()),
        old_bytes: 822_400_000,
        new_bytes: 901_000_000,
        lost: Vec::new(),
        won: Vec::new(),
        fewer: Vec::new(),
        more: Vec::new(),
        served_worse: Vec::new(),
        served_better: Vec::new(),
    }
}

fn side(reference: &str, layers: usize) -> Side {
    Side {
        reference: reference.into(),
        digest: Some(Digest::of(reference.as_bytes())),
        platform: Some(Platform::default()),
        size: 3_437_000_000,
        layers,
    }
}

fn target(name: &str, old: Verdict, new: Verdict) -> TargetChange {
    TargetChange {
        name: name.into(),
        gpu: "NVIDIA GeForce RTX 5090".into(),
        arch: arch("sm_120"),
        driver: Some("575.51.03".into()),
        required: true,
        old,
        new,
        old_why: "torch 2.7.1+cu126: machine code made for it".into(),
        new_why: "torch 2.8.0+cu128: no device code for it: \"no kernel image is available\" (209)".into(),
    }
}

pub fn changed() -> DiffReport {
    let mut torch = component(Kind::Changed, "torch", Role::Core);
    torch.lost = vec![
        lost("sm_50", Form::Sass, &["5.0", "5.2"], &[]),
        lost("sm_60", Form::Sass, &["6.0", "6.1"], &[]),
        lost("sm_89", Form::Sass, &[], &[("sm_86", Form::Sass)]),
        lost("sm_90", Form::Ptx, &[], &[("sm_90", Form::Sass)]),
    ];
    torch.won = vec![lost("sm_100", Form::Sass, &["10.0"], &[]), lost("sm_120", Form::Ptx, &[], &[])];
    torch.fewer = vec![CountChange {
        arch: arch("sm_61"),
        form: Form::Sass,
        old: 500,
        new: 107,
        matters_for: vec!["6.1".parse().unwrap()],
    }];
    torch.served_worse = served(&["5.0", "5.2", "6.0", "6.1"], Some(Verdict::Ok), Some(Verdict::Fail));
    torch.served_better = served(&["10.0"], Some(Verdict::Fail), Some(Verdict::Ok));
    let mut blas = component(Kind::Changed, "nvidia-cublas", Role::Optional);
    (blas.old_name, blas.old_root) = (Some("nvidia-cublas-cu12".into()), Some(ImagePath::new("opt/old")));
    let floor = |version: &str| MinDriver { version: version.into(), cause: "torch: the floor of its CUDA".into() };
    let variable = |change, name: &str, old: Option<&str>, new: Option<&str>, masked| VariableChange {
        change,
        name: name.into(),
        old: old.map(Into::into),
        new: new.map(Into::into),
        masked,
    };
    let package = |n: usize| PackageChange {
        change: if n == 0 { Kind::Removed } else { Kind::Changed },
        manager: Manager::Pip,
        name: format!("package-{n}"),
        old_name: (n == 3).then(|| "package-3-cu12".into()),
        old: vec!["1.0".into()],
        new: if n == 0 { Vec::new() } else { vec!["2.0".into()] },
    };
    DiffReport {
        schema: 1,
        tool: sample::failing().tool,
        old: side("127.0.0.1:5001/serve:2.7", 5),
        new: side("127.0.0.1:5001/serve:2.8", 6),
        equal: false,
        undecided: Vec::new(),
        losses: vec![
            Loss {
                kind: LossKind::Coverage,
                subject: "torch".into(),
                what: "serves 5.0 5.2 worse, or no more".into(),
            },
            Loss { kind: LossKind::DriverFloor, subject: String::new(), what: "driver 580.65.06 or newer".into() },
        ],
        targets: None,
        components: vec![
            torch,
            blas,
            component(Kind::Added, "xformers", Role::Optional),
            component(Kind::Removed, "apex", Role::Idle),
        ],
        min_driver: Some(FloorChange {
            old: Some(floor("525.60.13")),
            new: Some(floor("580.65.06")),
            raised: true,
        }),
        libraries: vec![LibraryChange {
            change: Kind::Changed,
            name: "libcublas".into(),
            old: vec![LibraryVersion { soname: "libcublas.so.12".into(), version: Some("12.6.4.1".into()) }],
            new: vec![LibraryVersion { soname: "libcublas.so.13".into(), version: None }],
            other_soname: true,
        }],
        packages: (0..15).map(package).collect(),
        toolkits: vec![ToolkitChange {
            change: Kind::Removed,
            path: ImagePath::new("usr/local/cuda-12.6"),
            kind: ToolkitKind::Cuda,
            old: Some("12.6.3".into()),
            new: None,
        }],
        environment: vec![
            variable(Kind::Changed, "CUDA_VERSION", Some("12.6.3"), Some("12.8.1"), false),
            variable(Kind::Changed, "HF_TOKEN", Some("***"), Some("***"), true),
            variable(Kind::Added, "NVIDIA_REQUIRE_CUDA", None, Some("cuda>=12.8"), false),
        ],
        settings: vec![SettingChange { name: "user".into(), old: vec!["root".into()], new: Vec::new() }],
        size: SizeChange {
            old: 3_437_000_000,
            new: 4_437_000_000,
            old_device_code: 1 << 30,
            new_device_code: 1 << 29,
        },
        layers: Layers { old: 5, new: 6, shared: 2, shared_bytes: 1 << 28 },
        gaps: sample::failing().gaps.into_iter().map(|gap| SideGap { new: true, gap }).collect(),
    }
}

fn judged() -> DiffReport {
    let mut report = changed();
    report.targets = Some(vec![
        target("edge", Verdict::Fail, Verdict::Ok),
        target("steady", Verdict::Ok, Verdict::Ok),
        target("old", Verdict::Ok, Verdict::Fail),
    ]);
    report.components.truncate(1);
    report
}

fn equal() -> DiffReport {
    let mut report = changed();
    report.equal = true;
    report.losses.clear();
    report.components.clear();
    report.min_driver = None;
    report.libraries.clear();
    report.packages.clear();
    report.toolkits.clear();
    report.environment.clear();
    report.settings.clear();
    report.gaps.clear();
    report
}

#[test]
fn differences_look_like_this() {
    let style = |width, exit| Style { width, exit: Some(exit), ..Style::default() };
    for width in [60, 100, 200] {
        golden(&format!("diff_{width}"), &render(&changed(), &style(width, 1)), width);
    }
    golden("diff_targets_80", &render(&judged(), &style(80, 0)), 80);
    golden("diff_equal_80", &render(&equal(), &style(80, 0)), 80);
}

#[test]
fn equal_images_have_no_difference() {
    assert!(render(&equal(), &Style::default()).contains("no difference"));
    assert!(!render(&changed(), &Style::default()).contains("no difference"));
}

#[test]
fn the_laws_hold_at_every_width_whatever_the_names() {
    let evil = format!("\x1b[2J\u{202e}日本語{}", "x".repeat(200));
    let mut hostile = judged();
    hostile.old.reference = evil.clone();
    hostile.losses[0].what = evil.clone();
    hostile.components[0].name = evil.clone();
    hostile.components[0].lost[0].arch = format!("sm_{}", u32::MAX).parse().unwrap();
    hostile.components[0].old_root = Some(ImagePath::new(evil.as_bytes()));
    hostile.libraries[0].name = evil.clone();
    hostile.packages[0].name = evil.clone();
    hostile.environment[0].new = Some(evil.clone());
    hostile.settings[0].old = vec![evil.clone()];
    hostile.gaps[0].gap.why = evil;
    for report in [hostile, changed(), equal()] {
        for width in (40..220).step_by(7) {
            for verbose in 0..2 {
                lawful(&render(&report, &Style { width, verbose, ..Style::default() }), width);
            }
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let plain = render(&judged(), &Style::default());
    let coloured = render(&judged(), &Style { colour: true, ..Style::default() });
    assert!(coloured.contains("\x1b["));
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
}

#[test]
fn differences_match_their_schema() {
    let validator = jsonschema::validator_for(&serde_json::from_str(&diff_schema()).unwrap()).unwrap();
    for report in [changed(), judged(), equal()] {
        let mut out = Vec::new();
        report.write(true, &Style::default(), &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    assert!(!validator.is_valid(&serde_json::json!({ "schema": 1 })));
}
