use super::*;
use crate::dockerfile::edit::Edit;
use crate::dockerfile::parse::parse;

/// The finding of a rule at the first place of some words.
fn told(text: &str, words: &str, found: impl Fn(Span) -> Found) -> Finding {
    let document = parse(text.as_bytes());
    let at = document.text.find(words).expect("the words are there");
    Teller { name: "Dockerfile", document: &document }.finding("rule-a", &found(Span::new(at, at + words.len())))
}

fn print(text: &str, words: &str) -> String {
    told(text, words, |span| Found::error(span, "m")).fingerprint.unwrap()
}

#[test]
fn a_fingerprint_stays_when_lines_move() {
    let first = print("FROM a\nRUN one && two\n", "two");
    assert_eq!(first, print("# more\n\nARG X\nFROM a\nRUN one \\\n    && \\\n    two\n", "two"));
    assert_eq!(first, print("FROM a\r\nRUN   one && two\r\n", "one"), "of the instruction, not of the words");
    assert_ne!(first, print("FROM a\nRUN one && three\n", "three"));
    assert_ne!(first, print("FROM a\nRUN one && two\n", "FROM a"));
    let alike = told("FROM a\n", "FROM a", |span| Found::error(span, "m"));
    let both = numbered(vec![(Span::new(0, 1), alike.clone()), (Span::new(2, 3), alike)]);
    assert_eq!(both[1].fingerprint, both[0].fingerprint.as_ref().map(|p| format!("{p}:2")));
}

#[test]
fn places_are_lines_and_columns_of_characters() {
    let finding = told("FROM a\n# é\nRUN é x \\\n  y\n", "x \\\n  y", |span| Found::note(span, "m"));
    let place = finding.dockerfile.unwrap();
    assert_eq!((place.line, place.column, place.end_line, place.end_column), (3, 7, 4, 4));
}

#[test]
fn fixes_are_told_as_they_can_be_applied() {
    let fix = |text: &str, edits: &dyn Fn(Span) -> Vec<Edit>| {
        told(text, "RUN", |span| Found::note(span, "m").suggest("s", edits(span))).fix
    };
    let above = |span: Span| vec![Edit::new(Span::new(span.start, span.start), "ENV A=1\n")];
    assert_eq!(fix("FROM a\nRUN x\n", &above).unwrap().edits[0].text, "ENV A=1\n");
    assert_eq!(
        fix("FROM a\r\nRUN x\r\n", &above).unwrap().edits[0].text,
        "ENV A=1\r\n",
        "line ends are the file's"
    );
    let two = |span: Span| vec![Edit::new(span, "b"), Edit::new(Span::new(0, 4), "a")];
    assert_eq!(fix("FROM a\nRUN x\n", &two).unwrap().edits[0].text, "a", "in the file's order");
    let overlapping =
        |span: Span| vec![Edit::new(span, "b"), Edit::new(Span::new(span.start + 1, span.end + 1), "a")];
    assert_eq!(fix("FROM a\nRUN x\n", &overlapping), None);
    let outside = |_: Span| vec![Edit::new(Span::new(5, 5_000), "b")];
    assert_eq!(fix("FROM a\nRUN x\n", &outside), None);
    let inside_a_letter = |_: Span| vec![Edit::new(Span::new(6, 7), "b")];
    assert_eq!(fix("FROM é\nRUN x\n", &inside_a_letter), None);
}
