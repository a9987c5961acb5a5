use std::sync::Arc;

use super::*;
use crate::catalog::Catalog;
use crate::model::*;
use crate::report::{Basis, Effect, StepKind};
use crate::scan::wheel::Verified;

fn arch(text: &str) -> SmArch {
    text.parse().unwrap()
}

/// A wheel of one library with modules for these architectures.
fn wheel(archs: &[&str]) -> Checked {
    let item = |a: &&str| {
        let item = Item {
            arch: arch(a).into(),
            form: Form::Sass,
            kind: 2,
            isa: None,
            packing: Packing::None,
            toolkit: None,
        };
        ItemCount { item, entries: 1, bytes: 8 }
    };
    let mut facts = FileFacts::new(FileKind::SharedObject, 100);
    facts.elf = Some(ElfFacts { machine: 62, ..ElfFacts::default() });
    if !archs.is_empty() {
        facts.modules.push(Module {
            container: Container::Fatbin,
            section: None,
            relocatable: false,
            items: archs.iter().map(item).collect(),
            count: 4,
            first: 0,
        });
    }
    let component = Component {
        name: "demo".into(),
        version: Some("1.0".into()),
        manager: Manager::Pip,
        root: ImagePath::default(),
    };
    let file = EvidenceFile {
        path: ImagePath::new("demo/_C.so"),
        layer: Some(0),
        facts: Arc::new(facts),
        component: Some(0),
        in_archive: false,
    };
    let layer = LayerSummary { digest: None, diff_id: None, size: 100, created_by: None, cached: None };
    let image = ImageFacts { layers: vec![layer], alone: true, ..ImageFacts::default() };
    Checked {
        filename: "demo-1.0-py3-none-any.whl".into(),
        version: "1.0".into(),
        url: "https://host.example/demo.whl".into(),
        evidence: Evidence { image, files: vec![file], components: vec![component], ..Evidence::default() },
        requires: Vec::new(),
        sha256: None,
        verified: Verified::Members,
        fetched: 90,
        size: 100,
        any_python: false,
    }
}

fn step(claimed: &[&str], version: &str) -> Step {
    let mut step = Step::advice(StepKind::ChangeWheel, "demo".into(), "take demo 1.0".into());
    let verdicts =
        [("new".to_owned(), (Verdict::Fail, Verdict::Ok)), ("old".to_owned(), (Verdict::Ok, Verdict::Ok))];
    step.effect = Some(Effect { basis: Basis::Predicted, verdicts: verdicts.into() });
    step.resolves = vec!["new".into()];
    step.disposition = Disposition::Safe;
    step.change = Change::Wheel {
        package: "demo".into(),
        version: Some(version.into()),
        specifier: String::new(),
        index: None,
        built: Some(Built { sass: claimed.iter().map(|a| arch(a)).collect(), ..Built::default() }),
        cuda: None,
    };
    step
}

fn fleet() -> Fleet {
    let target = |text: &str, name: &str| {
        let mut target = crate::config::parse_target(text, Catalog::embedded()).unwrap();
        target.name = name.into();
        target
    };
    Fleet::of_targets(vec![target("rtx5090", "new"), target("a100", "old")])
}

/// The plan after its wheels were looked into, and how often an index was asked.
fn checked(mut plan: Plan, result: &Result<Checked, NotChecked>) -> (Plan, usize) {
    let image = Evidence {
        image: ImageFacts { platform: Some(Platform::default()), ..ImageFacts::default() },
        ..Evidence::default()
    };
    let fleet = fleet();
    let options = lint::JudgeOptions { allow_gaps: true, today: crate::config::Date::today(), config: false };
    let report = lint::judge(std::slice::from_ref(&image), &fleet, Catalog::embedded(), &options);
    let count = std::cell::Cell::new(0);
    let ask = |_: &Evidence, change: &Change| {
        assert!(matches!(change, Change::Wheel { .. }));
        count.set(count.get() + 1);
        Some(result.clone())
    };
    Checks { evidence: &[image], fleet: &fleet, report: &report, known: Vec::new() }.all(&mut plan, &ask);
    (plan, count.get())
}

fn plan(steps: Vec<Step>, alternatives: Vec<Step>) -> Plan {
    let effect = steps.first().and_then(|s| s.effect.clone());
    Plan { steps, alternatives, effect, ..Plan::default() }
}

#[test]
fn a_wheel_that_is_what_the_table_says_is_told_as_checked() {
    let (plan, asked) =
        checked(plan(vec![step(&["sm_80", "sm_120"], "1")], Vec::new()), &Ok(wheel(&["sm_80", "sm_120"])));
    assert_eq!(asked, 1);
    let step = &plan.steps[0];
    let said = "checked: demo-1.0-py3-none-any.whl holds sm_80 sm_120 (4 of 4 modules); \
                checked by Range, digest not verified";
    assert_eq!(step.because, [said]);
    assert_eq!((step.disposition, step.review.as_deref()), (Disposition::Safe, None));
    // What an index holds is no measurement of an image.
    assert_eq!(step.effect.as_ref().map(|e| e.basis), Some(Basis::Predicted));
    assert!(plan.unresolved.is_empty() && plan.effect.is_some());
}

#[test]
fn a_wheel_without_the_target_s_code_contradicts_its_step() {
    for held in [&["sm_80", "sm_90"][..], &[]] {
        let steps = vec![step(&["sm_80", "sm_120"], "1")];
        let (plan, _) = checked(plan(steps, vec![step(&["sm_80", "sm_120"], "2")]), &Ok(wheel(held)));
        assert!(plan.steps.is_empty() && plan.effect.is_none(), "{held:?}");
        let why = &plan.unresolved[0];
        assert!(why.contains("take demo 1.0") && why.contains("the table says") && why.contains("sm_120"), "{why}");
        // Alternatives stay listed, with the reason not to take them.
        let other = &plan.alternatives[0];
        assert!(other.review.as_ref().is_some_and(|r| r.starts_with("contradicted: ")) && other.effect.is_none());
    }
    // The other targets must stay served.
    let (plan, _) = checked(plan(vec![step(&["sm_120"], "1")], Vec::new()), &Ok(wheel(&["sm_120"])));
    assert!(plan.steps.is_empty() && plan.unresolved[0].contains("old cannot run it"), "{plan:?}");
}

#[test]
fn less_than_the_table_says_is_to_be_reviewed() {
    let steps = vec![step(&["sm_70", "sm_80", "sm_120"], "1")];
    let (plan, _) = checked(plan(steps, Vec::new()), &Ok(wheel(&["sm_80", "sm_120"])));
    let step = &plan.steps[0];
    assert_eq!(step.disposition, Disposition::Review);
    assert!(step.review.as_ref().is_some_and(|r| r.contains("sm_70")), "{step:?}");
    let Change::Wheel { built: Some(built), .. } = &step.change else { panic!("{step:?}") };
    assert_eq!(built.sass, [arch("sm_80"), arch("sm_120")]);
}

#[test]
fn what_was_not_known_is_no_reason_once_it_was_looked_at() {
    for (before, after, disposition) in [
        ("no row says it (--check-wheels looks)", None, Disposition::Safe),
        (
            "no row says it (--check-wheels looks); x is built against it",
            Some("x is built against it"),
            Disposition::Review,
        ),
    ] {
        let mut unseen = step(&["sm_80", "sm_120"], "1");
        (unseen.disposition, unseen.review) = (Disposition::Review, Some(before.into()));
        let (plan, _) = checked(plan(vec![unseen], Vec::new()), &Ok(wheel(&["sm_80", "sm_120"])));
        assert_eq!((plan.steps[0].review.as_deref(), plan.steps[0].disposition), (after, disposition));
    }
}

#[test]
fn no_wheel_contradicts_and_no_answer_does_not() {
    let same = || vec![step(&["sm_120"], "1"), step(&["sm_120", "sm_80"], "1")];
    let none = Err(NotChecked::NoWheel { why: "the index has no cp313 wheel of demo==1 for aarch64".into() });
    let (left, asked) = checked(plan(same(), Vec::new()), &none);
    assert!(left.steps.is_empty() && left.unresolved.iter().all(|u| u.contains("no cp313 wheel")), "{left:?}");
    assert_eq!(asked, 1, "what two steps mean is asked for once");
    let cut = Err(NotChecked::Unread { why: "the connection was cut".into() });
    let (left, _) = checked(plan(same(), Vec::new()), &cut);
    assert_eq!(left.steps.len(), 2);
    assert!(
        left.steps
            .iter()
            .all(|s| s.disposition == Disposition::Review && s.because[0].starts_with("not checked: "))
    );
    // Steps that are of no wheel are left alone.
    let other = plan(vec![Step::advice(StepKind::Driver, "x".into(), "y".into())], Vec::new());
    let (left, asked) = checked(other, &cut);
    assert_eq!((left.steps.len(), asked), (1, 0));
}
