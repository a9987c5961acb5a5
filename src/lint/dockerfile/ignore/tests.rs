use super::*;
use crate::dockerfile::parse::parse as parse_file;
use crate::dockerfile::reading::{Inputs, read};

const KNOWN: &[&str] = &["rule-a", "rule-b", "rule-c"];

fn reading(text: &str) -> Reading {
    read(parse_file(text.as_bytes()), &Inputs::default())
}

/// The reason with which a rule is ignored at the first place of some words.
fn covered(text: &str, rule: &str, words: &str) -> Option<String> {
    let reading = reading(text);
    let at = reading.document.text.find(words).expect("the words are there");
    let covered = Ignores::read(&reading).cover(&reading, rule, Span::new(at, at + words.len()));
    covered.map(|c| c.reason)
}

/// What is said of comments when nothing is found.
fn complaints(text: &str) -> Vec<String> {
    let reading = reading(text);
    let all = Ignores::read(&reading).complaints(&reading.document, KNOWN, &|rule| rule != "rule-c");
    let tell =
        |(id, found): &(&str, Found)| format!("{id} {:?}: {}", reading.document.slice(found.span), found.message);
    all.iter().map(tell).collect()
}

#[test]
fn a_comment_is_for_the_next_instruction() {
    let text = "FROM a\n# imagelint: ignore[rule-a] why not\n\n# another\nRUN x\nRUN y\n";
    assert_eq!(covered(text, "rule-a", "RUN x").as_deref(), Some("why not"));
    assert_eq!(covered(text, "rule-b", "RUN x"), None);
    assert_eq!(covered(text, "rule-a", "RUN y"), None);
    assert_eq!(covered(text, "rule-a", "FROM a"), None);
    for comment in [
        "imagelint: ignore[rule-b, rule-a]",
        "imagelint:ignore[ RULE-A ]# x",
        "Imagelint: ignore",
        "# imagelint: ignore all",
    ] {
        assert!(covered(&format!("FROM a\r\n  #{comment}\r\nRUN x\r\n"), "rule-a", "RUN x").is_some(), "{comment}");
    }
}

#[test]
fn a_comment_between_lines_is_for_their_instruction() {
    let text =
        "FROM a\nRUN one && \\\n    # imagelint: ignore[rule-a] because\n    two && \\\n    three\nRUN one\n";
    assert_eq!(covered(text, "rule-a", "two").as_deref(), Some("because"));
    assert_eq!(covered(text, "rule-a", "one").as_deref(), Some("because"));
    let text = "FROM a\nRUN <<EOF\n# imagelint: ignore[rule-a] script\nnvcc x\nEOF\nRUN nvcc y\n";
    assert_eq!(covered(text, "rule-a", "nvcc x").as_deref(), Some("script"));
    assert_eq!(covered(text, "rule-a", "nvcc y"), None);
}

#[test]
fn stages_and_files_are_covered_whole() {
    let text = "ARG V=1\n# imagelint: stage ignore[rule-a] first\nFROM a\nRUN x\n# imagelint: stage ignore[rule-b] second\nFROM b\nRUN y\n";
    assert_eq!(covered(text, "rule-a", "RUN x").as_deref(), Some("first"));
    assert_eq!(covered(text, "rule-a", "FROM a").as_deref(), Some("first"));
    assert_eq!(covered(text, "rule-a", "RUN y"), None);
    assert_eq!(covered(text, "rule-b", "RUN x"), None);
    assert_eq!(covered(text, "rule-b", "RUN y").as_deref(), Some("second"));
    let text = "FROM a\nRUN x\n# imagelint: stage ignore[rule-a]\nRUN z\nFROM b\nRUN y\n";
    assert_eq!(covered(text, "rule-a", "RUN x").as_deref(), Some(""));
    assert_eq!(covered(text, "rule-a", "RUN y"), None);
    let text = "FROM a\nRUN x\n# imagelint: file ignore[rule-a] everywhere\n";
    assert_eq!(covered(text, "rule-a", "FROM a").as_deref(), Some("everywhere"));
    let text = "# imagelint: file ignore wide\nFROM a\n# imagelint: ignore[rule-a] narrow\nRUN x\n";
    assert_eq!(covered(text, "rule-a", "RUN x").as_deref(), Some("narrow"), "the nearest comment speaks");
}

#[test]
fn what_is_not_understood_is_told() {
    for (comment, what) in [
        ("ignore=rule-a", "brackets"),
        ("ignore[rule-a", "`]` is missing"),
        ("ignore[]", "names no rule"),
        ("ignore[ , ]", "names no rule"),
        ("global ignore[rule-a]", "`global`"),
        ("stage", "`ignore` is missing"),
        ("", "`ignore` is missing"),
        ("ignored[rule-a]", "`ignored[rule-a]`"),
    ] {
        let all = complaints(&format!("FROM a\n# imagelint: {comment}\nRUN x\n"));
        assert!(
            all.len() == 1 && all[0].starts_with("ignore-malformed") && all[0].contains(what),
            "{comment}: {all:?}"
        );
    }
    for silent in [
        "# imagelint finds this",
        "# see imagelint: docs",
        "# hadolint ignore=DL3006",
        "#",
        "# imagelint",
        "# ïmagelint:é",
    ] {
        assert!(complaints(&format!("FROM a\n{silent}\nRUN x\n")).is_empty(), "{silent}");
    }
}

#[test]
fn what_covers_nothing_is_told_where_it_could_have() {
    let all = complaints("FROM a\n# imagelint: ignore[rule-a, rule-x, rule-c] r\nRUN x\n");
    assert_eq!(
        all,
        [
            "ignore-unmatched \"rule-a\": `rule-a` is ignored here, and not found",
            "ignore-unknown-rule \"rule-x\": there is no rule `rule-x`",
        ],
        "rule-c did not run"
    );
    assert!(complaints("FROM a\n# imagelint: ignore everything\n")[0].starts_with("ignore-unmatched"));
    let reading = reading("FROM a\n# imagelint: ignore[rule-d]\nRUN x\n# imagelint: file ignore[rule-b]\n");
    let all = Ignores::read(&reading).complaints(&reading.document, KNOWN, &|_| true);
    assert!(all[0].1.help.as_deref().unwrap().contains("did you mean `rule-"), "{all:?}");
    let edit = &all[1].1.fix.as_ref().unwrap().edits[0];
    assert_eq!(reading.document.slice(edit.span), "# imagelint: file ignore[rule-b]\n");
}

#[test]
fn hostile_comments_do_no_harm() {
    let many = format!("FROM a\n# imagelint: ignore[{}]\nRUN x\n", "a,".repeat(50_000));
    assert!(complaints(&many)[0].contains("more than"));
    let many = format!("FROM a\n{}RUN x\n", "# imagelint: ignore[rule-c]\n".repeat(5_000));
    assert!(complaints(&many)[0].contains("later comments are not read"));
    for text in
        ["", "# imagelint: stage ignore", "# imagelint: ignore[\u{1a}]\n", "RUN <<A\n# imagelint: file ignore\n"]
    {
        let _ = complaints(text);
    }
}
