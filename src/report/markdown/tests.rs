//! Golden documents. `UPDATE_GOLDEN=1 cargo test --lib report` writes them anew.

use super::super::{Report, sample};
use super::*;
use crate::model::{Finding, Gap};

fn golden(name: &str, text: &str) {
    lawful(text);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/golden/markdown_{name}.md"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "markdown_{name}.md differs; it is now:\n{text}");
}

/// What GitHub takes, and reads as it was meant.
fn lawful(text: &str) {
    assert!(text.len() <= MOST && text.ends_with('\n'), "{} bytes", text.len());
    let mut bare = text.to_owned();
    for tag in ["details", "summary", "code", "br", "sub"] {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let times = |what: &str| text.matches(what).count();
        assert!(tag == "br" || times(&open) == times(&close), "{tag} is not closed:\n{text}");
        bare = bare.replace(&open, "").replace(&close, "");
    }
    assert!(!bare.contains(['<', '>']), "a tag from outside:\n{bare}");
    let mut columns = None;
    for line in text.lines() {
        assert!(!line.contains(|c: char| c.is_control()), "control character: {line:?}");
        match (line.starts_with('|'), columns) {
            (false, _) => {
                assert!(!line.contains('|'), "a bar outside of tables: {line}");
                columns = None;
            }
            (true, None) => columns = Some(line.matches('|').count()),
            (true, Some(n)) => assert_eq!(line.matches('|').count(), n, "{line}"),
        }
    }
    for at in text.match_indices(['@', '#']).map(|(at, _)| at) {
        let apart = text[at + 1..].starts_with("&#8203;") || text[..at].ends_with('&');
        let head = text[..at].trim_end_matches('#').ends_with('\n') || text[..at].trim_end_matches('#').is_empty();
        let code = text[..at].rfind("<code>") > text[..at].rfind("</code>");
        assert!(apart || head || code, "mentions: {}", &text[at.saturating_sub(20)..at + 1]);
    }
}

fn one(report: &Report) -> String {
    let mut document = Document::new(false);
    document.add(report, false, Some(1));
    document.finish(Some(1))
}

fn named(report: Report, name: &str) -> Report {
    let mut report = report;
    report.image.as_mut().unwrap().reference = name.to_owned();
    report
}

/// What `scan` makes of an image that it cannot open.
fn unread(name: &str) -> Report {
    let mut report = named(sample::failing(), name);
    report.findings.clear();
    report.gaps = vec![Gap::image("h:5000/gone: not found")];
    report
}

#[test]
fn documents_look_like_this() {
    golden("failing", &one(&sample::failing()));
    golden("fleet", &one(&sample::wide()));
    golden("coverage", &one(&sample::untargeted()));
    golden("lint", &of_files(&sample::lint(), Some(1)));
    let mut images = Document::new(true);
    images.add(&named(sample::kinds(), "h:5000/fine:1"), false, Some(0));
    images.add(&named(sample::failing(), "h:5000/a|b:1"), false, Some(1));
    images.add(&unread("h:5000/gone"), true, Some(2));
    golden("images", &images.finish(Some(2)));
    golden("none", &Document::new(true).finish(Some(2)));
}

#[test]
fn nothing_from_outside_has_a_meaning() {
    let text = one(&sample::hostile());
    lawful(&text);
    let mut report = sample::failing();
    let evil = "a|b\n| c | <script>alert(1)</script> </details> <!-- `x` @someone fixes #12 ![i](https://h/i) ||";
    report.image.as_mut().unwrap().reference = evil.into();
    for target in report.targets.iter_mut().flatten() {
        target.name.push_str(evil);
        target.why = evil.into();
        target.driver = Some(evil.into());
        target.components.iter_mut().for_each(|c| c.name.push_str(evil));
    }
    for finding in &mut report.findings {
        finding.message = evil.into();
        finding.help = Some(evil.into());
        finding.rule = evil.into();
        finding.targets = vec![evil.into()];
    }
    report.plan.as_mut().unwrap().steps[0].command = Some(evil.into());
    report.plan.as_mut().unwrap().unresolved = vec![evil.into()];
    report.gaps[0].why = evil.into();
    let text = one(&report);
    lawful(&text);
    assert!(read(&text).contains("<script>alert(1)</script>"), "told, and not obeyed");
}

#[test]
fn it_is_bounded_and_says_what_it_leaves_out() {
    let mut report = sample::wide();
    let long = "x".repeat(3000);
    let finding = |n: usize| Finding {
        message: format!("number {n} {long}"),
        ..report.findings[if n.is_multiple_of(2) { 0 } else { 1 }].clone()
    };
    report.findings = (0..2000).map(finding).collect();
    let plan = report.plan.as_mut().unwrap();
    plan.steps = vec![plan.steps[0].clone(); 200];
    report.gaps = vec![Gap { why: long.clone(), ..report.gaps[0].clone() }; 500];
    let targets: Vec<_> = report.targets.iter().flatten().cloned().collect();
    report.targets = Some((0..40).flat_map(|_| targets.clone()).collect());
    let text = one(&report);
    lawful(&text);
    let rows = text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| ---")).count() - 1;
    assert!(text.contains(&format!("\n… and {} more targets\n", 1200 - rows)), "{rows} rows");
    for part in ["990 more errors and warnings", "1000 notes", "#### Plan", "500 places not understood"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.matches("… and ").count() >= 5);
}

#[test]
fn of_many_images_the_worst_are_told() {
    let mut document = Document::new(true);
    for n in 0..300 {
        let report = if n % 50 == 49 { sample::failing() } else { sample::untargeted() };
        document.add(&named(report, &format!("h:5000/app:{n}")), false, Some(0));
        let kept: usize = document.images.kept.iter().map(|section| section.text.len()).sum();
        assert!(kept <= MOST, "memory does not grow with the images");
    }
    let text = document.finish(Some(1));
    lawful(&text);
    for n in [49, 99, 149, 199, 249, 299] {
        assert!(text.contains(&format!("## imagelint: <code>h:5000/app:{n}</code>")), "{n}");
    }
    let sections = text.matches("## imagelint: <code>").count();
    assert!(
        text.contains(&format!("… and {} more images, of which only the table tells", 300 - sections)),
        "{text}"
    );
    assert!(text.contains("300 images: 6 fail"), "{text}");
}

#[test]
fn waived_and_known_findings_unfold() {
    let mut report = sample::lint();
    report.known = Some(vec![report.findings[1].clone()]);
    report.resolved = Some(2);
    let text = of_files(&report, None);
    lawful(&text);
    assert!(text.contains("<summary>1 ignored or waived</summary>"), "{text}");
    assert!(text.contains("<br>ignored by a comment: kernels are compiled at start"), "{text}");
    assert!(text.contains("<summary>1 known from the baseline</summary>"), "{text}");
    assert!(text.contains("1 known from the baseline, 2 resolved"), "{text}");
}
