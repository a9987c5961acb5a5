use super::*;
use crate::model::{Change, Verdict};
use crate::report::{Basis, Cost, Effect, Step, StepKind, Tag};

fn step(summary: &str, change: Change) -> Step {
    Step { change, ..Step::advice(StepKind::Rebuild, "x".into(), summary.into()) }
}

fn effect(basis: Basis, rows: &[(&str, Verdict, Verdict)]) -> Option<Effect> {
    let verdicts = rows.iter().map(|(name, before, after)| ((*name).to_owned(), (*before, *after))).collect();
    Some(Effect { basis, verdicts })
}

/// A report of two targets, `a` and `b`.
fn report(plan: Plan) -> Report {
    let mut report = crate::report::sample::failing();
    let targets = report.targets.get_or_insert_default();
    targets.truncate(2);
    for (target, name) in targets.iter_mut().zip(["a", "b"]) {
        target.name = name.to_owned();
        target.verdict = Verdict::Fail;
    }
    report.plan = Some(plan);
    report
}

fn emitted(plan: Plan, tag: Option<&str>, form: Emit) -> (String, Vec<String>) {
    let report = report(plan);
    let input = Input { report: &report, config: None, dockerfile: None, tag };
    let emitted = emit(&input, form).unwrap();
    (String::from_utf8(emitted.bytes).unwrap(), emitted.notes)
}

fn knob(value: &str, tag: Option<&str>) -> Step {
    Step {
        env: vec![("ARCHS".into(), value.into())],
        tag: tag.map(str::to_owned),
        ..step("build it", Change::Advice)
    }
}

fn two_tags() -> Plan {
    let tag = |name: &str, target: &str| Tag { name: name.into(), targets: vec![target.into()], why: "w".into() };
    Plan {
        steps: vec![knob("70", Some("old")), knob("120", Some("new"))],
        tags: vec![tag("old", "a"), tag("new", "b")],
        ..Plan::default()
    }
}

#[test]
fn text_tells_verdicts_first_and_never_a_guess_as_proved() {
    let (fail, ok) = (Verdict::Fail, Verdict::Ok);
    let mut first = step("take cu128", Change::Advice);
    first.effect = effect(Basis::Predicted, &[("a", fail, ok)]);
    first.review = Some("the row is from memory".into());
    first.edits = vec!["Dockerfile:2:5: \"cu126\" -> \"cu128\"".into()];
    let other = |summary: &str, cost| Step { cost, ..step(summary, Change::Advice) };
    let plan = Plan {
        steps: vec![first],
        alternatives: vec![other("drop it", Cost::Target), other("other version", Cost::OtherVersion)],
        effect: effect(Basis::Predicted, &[("a", fail, ok), ("b", fail, fail)]),
        unresolved: vec!["b: nothing\u{1b}[0m fits".into()],
        patch: None,
        ..Plan::default()
    };
    let (text, _) = emitted(plan.clone(), None, Emit::Text);
    assert!(text.starts_with("fail -> ok   a  (predicted)\nfail -> fail b  (predicted)\n"), "{text}");
    for words in [
        "1. take cu128",
        "   effect   a: fail -> ok (predicted)",
        "   edit     Dockerfile:2:5",
        "to be reviewed: the row",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let (cheap, dear) = (text.find("- other version").unwrap(), text.find("- drop it").unwrap());
    assert!(text.find("1. take").unwrap() < cheap && cheap < dear, "{text}");
    assert!(!text.contains('\u{1b}') && text.contains("only a scan of the rebuilt image proves it"), "{text}");
    let measured = Plan { effect: effect(Basis::Measured, &[("a", fail, ok)]), ..plan };
    assert!(emitted(measured, None, Emit::Text).0.contains("fail -> ok a  (measured)"));
    assert!(emitted(Plan::default(), None, Emit::Text).0.ends_with("\nNo step is known that would mend this.\n"));
}

#[test]
fn variables_of_two_tags_are_never_in_force_together() {
    let (text, notes) = emitted(two_tags(), None, Emit::Env);
    assert!(!text.lines().any(|l| l.starts_with("export")) && text.contains("#   export ARCHS='70'"), "{text}");
    assert!(notes[0].contains("--tag"), "{notes:?}");
    let (text, notes) = emitted(two_tags(), Some("new"), Emit::Env);
    assert!(text.contains("\nexport ARCHS='120'\n") && !text.contains("70") && notes.is_empty(), "{text}");
    // Two builds that want other values cannot share one environment.
    let plan = Plan { steps: vec![knob("70", None), knob("120", None)], ..Plan::default() };
    let (text, _) = emitted(plan, None, Emit::Env);
    assert_eq!(text.lines().filter(|l| l.starts_with("export")).count(), 1, "{text}");
    let report = report(two_tags());
    let input = Input { report: &report, config: None, dockerfile: None, tag: Some("x") };
    assert!(matches!(emit(&input, Emit::Env), Err(EmitError::NoSuchTag(..))));
}

#[test]
fn of_several_tags_the_first_is_written_and_that_is_told() {
    let (text, notes) = emitted(two_tags(), None, Emit::Dockerfile);
    assert!(notes[0].contains("old, new; this is old"), "{notes:?}");
    assert!(text.contains("FROM "), "{text}");
    assert!(emitted(two_tags(), Some("new"), Emit::Dockerfile).1.is_empty());
    let report = report(two_tags());
    let input = Input { report: &report, config: None, dockerfile: None, tag: None };
    assert_eq!(emit(&input, Emit::Diff), Err(EmitError::NoDockerfile));
}

#[test]
fn json_is_the_plan_with_its_schema() {
    let (text, _) = emitted(two_tags(), None, Emit::Json);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], 1);
    assert_eq!(value["steps"].as_array().unwrap().len(), 2);
    assert_eq!(value["tags"][1]["name"], "new");
}
