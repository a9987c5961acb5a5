//! What is a script and what is not.

use super::super::lex::tokens;
use super::*;

fn error(text: &str) -> Option<usize> {
    parse(text, &tokens(text)).1
}

#[test]
fn scripts_are_taken() {
    for text in [
        "",
        "# nothing",
        "a",
        "a;",
        "a && b || c; d & e",
        "a | b |& c",
        "! a",
        "A=1 B=2",
        "A=1 b >c 2>&1 </dev/null",
        "( a; b ) > c",
        "{ a; b; } | c",
        "if a; then b; elif c; then d; else e; fi > f",
        "if a\nthen\nb\nfi",
        "while read x; do echo $x; done < f",
        "until a; do b; done",
        "for x in a b c; do d; done",
        "for x; do d; done",
        "for ((i=0;i<3;i++)); do d; done",
        "case $x in a|b) c;; (d) e ;; *) f; esac",
        "case $x in\n a)\n  b\n  ;;\n esac && c",
        "case x in esac",
        "f() { a; }; f",
        "function f { a; }",
        "function f() ( a )",
        "f ()\n{\n a\n}",
        "[[ a == b ]] && c",
        "(( i++ ))",
        "cat <<E\nx\nE\n",
        "cat <<E | b && c\nx\nE\nd",
        "a &&\n b ||\n c |\n d",
        "time -p a",
        "time ( a; b )",
        "time",
        "A=(1 2 3); echo ${A[@]}",
        "echo fi done } then",
        "a > b c",
        "diff <(a) <(b)",
    ] {
        assert_eq!(error(text), None, "{text}");
    }
}

#[test]
fn what_is_no_script_is_told() {
    for text in [
        "a )",
        "( a",
        "{ a; ",
        "if a; then b",
        "fi",
        "case x in a) b",
        "a | ",
        "a && ",
        "for x in a b",
        "&& a",
        "a >",
        "a ;; b",
        "f( a",
        "while a; b",
    ] {
        assert!(error(text).is_some(), "{text}");
    }
}

#[test]
fn nothing_is_lost_behind_an_error() {
    let text = "a ) b; fi; c";
    let (list, error) = parse(text, &tokens(text));
    assert_eq!(error, Some(2));
    assert_eq!(list.items.len(), 3);
}

#[test]
fn depth_is_bounded() {
    for open in ["(", "{ ", "if ", "if a; then ", "while ", "case x in y) ", "f() ", "for x in y; do "] {
        let text = open.repeat(20_000);
        assert!(error(&text).is_some(), "{open}");
    }
}
