//! Golden tables. `UPDATE_GOLDEN=1 cargo test --lib report` writes them anew.

use super::super::text::columns;
use super::super::{Report, Style, sample};
use super::render;

/// Compares with testdata/golden/table_NAME.txt, and holds the laws of every table.
pub(in crate::report) fn golden(name: &str, text: &str, width: usize) {
    lawful(text, width);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/golden/table_{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "table_{name}.txt differs; it is now:\n{text}");
}

/// No line is too long, none ends in blanks, and nothing drives the terminal.
pub(in crate::report) fn lawful(text: &str, width: usize) {
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "ends in one line feed");
    assert!(!text.contains("\n\n\n"), "two empty lines:\n{text}");
    for line in text.lines() {
        assert!(columns(line) <= width, "{} columns of {width}: {line}", columns(line));
        assert_eq!(line, line.trim_end(), "blanks at the end");
        assert!(!line.contains(|c: char| c.is_control()), "control character: {line:?}");
    }
}

fn at(width: usize, verbose: u8) -> Style {
    Style { width, verbose, exit: Some(1), ..Style::default() }
}

fn all() -> Vec<(&'static str, Report)> {
    vec![("failing", sample::failing()), ("fleet", sample::wide()), ("coverage", sample::untargeted())]
}

#[test]
fn tables_look_like_this() {
    for (name, report) in all() {
        for width in [60, 100, 200] {
            golden(&format!("{name}_{width}"), &render(&report, &at(width, 0)), width);
        }
    }
    golden("kinds_60", &render(&sample::kinds(), &at(60, 0)), 60);
    golden("failing_verbose_100", &render(&sample::failing(), &at(100, 2)), 100);
    golden("failing_80", &render(&sample::failing(), &at(80, 0)), 80);
}

#[test]
fn the_laws_hold_at_every_width() {
    let reports = all().into_iter().map(|(_, r)| r).chain([sample::hostile()]);
    for report in reports {
        for width in (40..220).step_by(3) {
            for verbose in 0..3 {
                lawful(&render(&report, &at(width, verbose)), width);
            }
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    for (_, report) in all() {
        let plain = render(&report, &at(90, 1));
        let coloured = render(&report, &Style { colour: true, ..at(90, 1) });
        assert!(coloured.contains("\x1b["));
        assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
    }
}

#[test]
fn every_finding_and_target_is_told() {
    for (_, report) in all() {
        let text = render(&report, &at(200, 0));
        let whole = render(&report, &at(200, 1));
        for finding in &report.findings {
            let mark = format!("[{}]", finding.rule);
            assert!(whole.contains(&mark), "{}", finding.rule);
            // Notes are counted, and unfolded on request.
            let note = finding.severity == crate::model::Severity::Note;
            assert!(text.contains(&mark) || note && text.contains("-v shows them"), "{}", finding.rule);
        }
        for target in report.targets.iter().flatten() {
            assert!(text.contains(&target.name), "{}", target.name);
        }
    }
}

#[test]
fn long_lists_of_gaps_are_capped_and_unfolded() {
    let mut report = sample::failing();
    let gap = report.gaps[0].clone();
    report.gaps = vec![gap; 25];
    assert!(render(&report, &at(100, 0)).contains("… and 15 more (-v lists them)"));
    assert!(!render(&report, &at(100, 1)).contains("more (-v"));
}
