//! Golden texts of linted Dockerfiles. `UPDATE_GOLDEN=1 cargo test --lib report` writes them anew.

use std::sync::Arc;

use super::super::sample;
use super::super::table::tests::{golden, lawful};
use super::render;
use crate::model::{Confidence, FilePlace, Related};
use crate::report::Style;

fn at(width: usize, verbose: u8) -> Style {
    Style { width, verbose, exit: Some(1), ..Style::default() }
}

#[test]
fn findings_look_like_this() {
    for width in [60, 100] {
        golden(&format!("lint_{width}"), &render(&sample::lint(), &at(width, 0)), width);
    }
    golden("lint_verbose_100", &render(&sample::lint(), &at(100, 1)), 100);
}

#[test]
fn the_laws_hold_at_every_width_and_place() {
    let base = sample::lint();
    let texts = [
        String::new(),
        "FROM a".to_owned(),
        "FROM a\r\nRUN \t\u{1b}[31m b\t\r\n".to_owned(),
        "日本語 日本語 \u{202e}\u{1a}\n\u{301}\u{301}e\u{301}\n".repeat(9),
        format!("RUN {}\n", "x".repeat(3_000)),
        format!("RUN {}\n", "日\u{1b}\t".repeat(700)),
        "\u{301}".repeat(2_000),
        "\n\n\n".to_owned(),
    ];
    for text in texts {
        for (line, column, end_line, end_column) in [
            (1, 1, 1, 1),
            (1, 1, 1, 9),
            (2, 5, 2, 7),
            (1, 3, 9, 2),
            (1, 2_000, 1, 2_500),
            (99, 99, 0, 0),
            (3, 1, 3, 1),
        ] {
            let mut report = base.clone();
            let place =
                FilePlace { line, column, end_line, end_column, ..report.findings[0].dockerfile.clone().unwrap() };
            report.sources.insert(place.file.clone(), Arc::from(text.as_str()));
            let finding = &mut report.findings[0];
            finding.confidence = Confidence::Low;
            finding.label = "a label\u{1b}[2J that is not short, as some are".into();
            let far = FilePlace { line: line + 1, ..place.clone() };
            finding.related = vec![Related { place: far, message: "an\nother".into() }; 5];
            finding.dockerfile = Some(place);
            for width in [40, 60, 61, 80, 200] {
                lawful(&render(&report, &at(width, 1)), width);
            }
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let plain = render(&sample::lint(), &at(90, 1));
    let coloured = render(&sample::lint(), &Style { colour: true, ..at(90, 1) });
    assert!(coloured.contains("\x1b["));
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
}

#[test]
fn long_lines_are_cut_around_the_words() {
    let mut report = sample::lint();
    report.findings.truncate(1);
    let text = format!("RUN {} TORCH_CUDA_ARCH_LIST=8.0 {}\n", "a".repeat(5_000), "b".repeat(5_000));
    let place = FilePlace {
        line: 1,
        column: 5_006,
        end_line: 1,
        end_column: 5_026,
        ..report.findings[0].dockerfile.clone().unwrap()
    };
    report.findings[0].related.clear();
    report.findings[0].fix = None;
    report.sources.insert(place.file.clone(), Arc::from(text.as_str()));
    report.findings[0].dockerfile = Some(place);
    let out = render(&report, &at(80, 0));
    let lines: Vec<&str> = out.lines().collect();
    let caret = lines.iter().position(|l| l.contains('^')).unwrap();
    let from = lines[caret].chars().position(|c| c == '^').unwrap();
    let under: String = lines[caret - 1].chars().skip(from).take(20).collect();
    assert_eq!(under, "TORCH_CUDA_ARCH_LIST", "{out}");
    assert!(out.contains(":1:5006"), "the place is told as it is: {out}");
}
