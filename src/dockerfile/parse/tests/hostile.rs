//! Files made to take long, or much: time and memory stay in proportion.

use std::time::{Duration, Instant};

use super::super::reader::LONGEST_INSTRUCTION;
use super::said;
use crate::dockerfile::parse::{MAX_FILE, parse};
use crate::dockerfile::syntax::{Body, Document};

/// What is not in proportion takes minutes here.
const LONGEST: Duration = Duration::from_secs(60);

fn quick(source: &str) -> Document {
    let start = Instant::now();
    let document = parse(source.as_bytes());
    assert!(document.print() == source.as_bytes());
    assert!(start.elapsed() < LONGEST, "{:?} for {} …", start.elapsed(), source.get(..30).unwrap_or_default());
    document
}

#[test]
fn files_too_large_are_not_read() {
    let document = quick(&format!("FROM a\nRUN {}", "x".repeat(100 << 20)));
    assert_eq!((document.instructions.len(), said(&document).len()), (0, 1));
    let mut source = format!("FROM a\n{}", " ".repeat(MAX_FILE - 7));
    assert_eq!(parse(source.as_bytes()).instructions.len(), 1);
    source.push(' ');
    assert_eq!(parse(source.as_bytes()).instructions.len(), 0);
}

#[test]
fn many_lines_are_read_in_proportion() {
    assert_eq!(quick(&"\n".repeat(300_000)).instructions.len(), 0);
    assert_eq!(quick(&format!("FROM a\nRUN b \\\n{}c", "\n".repeat(300_000))).instructions.len(), 2);
    assert_eq!(quick(&format!("FROM a\nRUN b{}", "\\\n".repeat(300_000))).instructions.len(), 2);
    let document = quick(&format!("FROM a\nRUN <<A\n{}A\nRUN b", "x\n".repeat(300_000)));
    assert_eq!((document.instructions.len(), said(&document).len()), (3, 0));
}

#[test]
fn many_heredocs_are_read_in_proportion() {
    assert_eq!(quick(&format!("FROM a\n{}", "RUN <<A\n".repeat(100_000))).instructions.len(), 2);
    assert_eq!(quick(&format!("FROM a\n{}", "RUN <<A\nA\n".repeat(100_000))).instructions.len(), 100_001);
    let openers = "<<A \\\n".repeat(100_000);
    let document = quick(&format!("FROM a\nRUN {openers}x\n{}", "A\n".repeat(100_000)));
    assert_eq!((document.instructions[1].heredocs.len(), said(&document).len()), (100_000, 0));
    let long = "A".repeat(60_000);
    assert_eq!(quick(&format!("FROM a\nRUN <<{long}\n{}{long}\n", "A\n".repeat(500_000))).instructions.len(), 2);
}

#[test]
fn depth_costs_no_recursion() {
    let document = quick(&format!("FROM a\n{}RUN x\n", "ONBUILD \\\n".repeat(100_000)));
    assert!(matches!(&document.instructions[1].body, Body::Onbuild(inner) if inner.body == Body::Nothing));
    assert_eq!(said(&document).len(), 1);
    quick(&format!("FROM a\nRUN <<A {}\nA\n", "${a:-\\\n".repeat(100_000)));
    quick(&format!("FROM a\nCMD {}\n", "[{\"a\":\\\n".repeat(100_000)));
}

#[test]
fn open_quotes_and_many_words_are_read_in_proportion() {
    for line in ["ENV a=\"", "RUN --mount='", "CMD [\"", "RUN <<A \"", "LABEL a='"] {
        quick(&format!("FROM a\n{}", format!("{line}{}\n", "x ".repeat(30_000)).repeat(20)));
    }
    let document = quick(&format!("FROM a\nCOPY {}\n", "a \\\n".repeat(100_000)));
    assert!(matches!(&document.instructions[1].body, Body::Words(words) if words.len() == 100_000));
    quick(&format!("FROM a\nENV {}\n", "a=b \\\n".repeat(100_000)));
    quick(&format!("FROM a\nCOPY {}a b\n", "--exclude=x \\\n".repeat(60_000)));
    quick(&format!("FROM a\nRUN --mount='\"{}\"' x\n", "\"\"".repeat(30_000)));
}

#[test]
fn a_document_has_so_many_parts_and_no_more() {
    for line in ["a\n", "#\n", "RUN \\\n#\n#\n#\n#\nx\n", &format!("COPY {}b\n", "a ".repeat(30_000))] {
        let document = quick(&line.repeat(500_000.min(MAX_FILE / line.len())));
        assert!(said(&document)[0].starts_with("the file is not read from here"), "{line}: {}", said(&document)[0]);
        assert!(document.comments.len() + document.instructions.len() < 500_000);
    }
    let many = quick(&format!("FROM a\nRUN x \\\n{}\n", "#\n".repeat(1_000_000)));
    assert!(many.comments.len() < 500_000);
}

#[test]
fn an_instruction_too_long_is_not_read_but_the_next_one_is() {
    let lines = format!("{}\\\n", "x".repeat(60_000)).repeat(LONGEST_INSTRUCTION / 60_000 + 1);
    let document = quick(&format!("FROM a\nRUN {lines}x\nRUN b\n"));
    assert_eq!((document.instructions.len(), said(&document).len()), (3, 1));
    assert_eq!(document.instructions[1].body, Body::Nothing);
}

#[test]
fn a_line_longer_than_buildkit_reads_is_an_error_of_the_file() {
    let document = quick(&format!("FROM a\nRUN {}\nRUN b\n", "x".repeat(70_000)));
    assert_eq!((document.instructions.len(), document.errors.len()), (3, 1));
    assert_eq!(document.lines.line(document.errors[0].span.start), 2);
}
