use super::*;
use crate::dockerfile::span::Span;
use crate::dockerfile::value::{Origin, Variable};

fn variable(value: Value) -> Variable {
    Variable { value, origin: Origin::Given, arg: true, unset: false, trail: Vec::new() }
}

fn scope() -> Scope {
    let known = |text: &str| variable(Value::Known(text.to_owned()));
    let set = |texts: &[&str]| variable(Value::one_of(texts.iter().map(|t| (*t).to_owned()).collect()));
    let mut scope = Scope::new();
    scope.insert("CUDA".into(), known("12.4.1"));
    scope.insert("EMPTY".into(), known(""));
    scope.insert("PATHS".into(), known("/opt/a/lib:/opt/b/lib"));
    scope.insert("STAR".into(), known("*.4"));
    scope.insert("ARCH".into(), set(&["amd64", "arm64"]));
    scope.insert("OS".into(), set(&["", "jammy"]));
    scope.insert("SECRET".into(), variable(Value::Unknown));
    scope.insert("UNSET".into(), Variable { unset: true, ..variable(Value::Unknown) });
    scope
}

fn text(word: &str, closed: bool) -> Text {
    let (scope, work) = (scope(), Work::default());
    let expander = Expander { scope: &scope, closed, escape: '\\', work: &work };
    expander.word(&Word { text: word.into(), span: Span::default(), literal: false })
}

fn known(word: &str) -> Option<String> {
    text(word, true).value.known().map(str::to_owned)
}

#[track_caller]
fn same(cases: &[(&str, &str)]) {
    for (word, value) in cases {
        assert_eq!(known(word).as_deref(), Some(*value), "{word}");
    }
}

#[test]
fn plain_names() {
    same(&[
        ("a$CUDA", "a12.4.1"),
        ("${CUDA}-x", "12.4.1-x"),
        ("$CUDA.$CUDA", "12.4.1.12.4.1"),
        ("cost: $", "cost: $"),
        ("$-$1$@x", "x"),
        ("$NOBODY|", "|"),
    ]);
}

#[test]
fn quotes_and_escapes() {
    same(&[
        (r#""$CUDA"'$CUDA'"#, "12.4.1$CUDA"),
        (r"\$CUDA", "$CUDA"),
        (r#""\$CUDA \n""#, r"$CUDA \n"),
        (r"a\ b\", "a b"),
        (r#"'it"s' "it's""#, r#"it"s it's"#),
    ]);
    for wrong in ["'a", "\"a", "\"a\\", "${CUDA", "${}", "${:-a}", "${{a}}", "${CUDA:a}", "${CUDA=a}", "${CUDA^}"] {
        assert_eq!(text(wrong, true).value, Value::Unknown, "{wrong}");
    }
}

#[test]
fn the_escape_character_is_the_files_own() {
    let (scope, work) = (scope(), Work::default());
    let expander = Expander { scope: &scope, closed: true, escape: '`', work: &work };
    assert_eq!(expander.body(r"C:\x`$CUDA").value.known(), Some(r"C:\x$CUDA"));
}

#[test]
fn defaults_and_alternatives() {
    same(&[
        ("${CUDA:-x}${CUDA-x}", "12.4.112.4.1"),
        ("${EMPTY:-x}${EMPTY-x}", "x"),
        ("${NOBODY:-x}${NOBODY-${CUDA}}", "x12.4.1"),
        ("${CUDA:+-cu$CUDA}", "-cu12.4.1"),
        ("${EMPTY:+x}${EMPTY+y}${NOBODY+z}", "y"),
        ("${CUDA:?none}${EMPTY?none}", "12.4.1"),
    ]);
    assert_eq!(known("${EMPTY:?none}"), None);
    assert_eq!(known("${NOBODY?none}"), None);
}

#[test]
fn an_arg_nobody_gave_takes_defaults_but_has_no_value() {
    same(&[("${UNSET:-x}", "x"), ("${UNSET-x}", "x"), ("${UNSET:+x}", "")]);
    assert_eq!(known("$UNSET"), None);
    assert_eq!(known("${UNSET:?give it}"), None);
    assert_eq!(known("${UNSET#v}"), None);
}

#[test]
fn what_the_base_may_set_is_unknown() {
    for word in ["$NOBODY", "${NOBODY:-x}", "${NOBODY:+x}"] {
        assert_eq!(text(word, false).value, Value::Unknown, "{word}");
        assert_ne!(text(word, true).value, Value::Unknown, "{word}");
    }
}

#[test]
fn ends_are_trimmed() {
    same(&[
        ("${CUDA#12.}", "4.1"),
        ("${CUDA%.*}", "12.4"),
        ("${CUDA%%.*}", "12"),
        ("${CUDA#*.}", "4.1"),
        ("${CUDA##*.}", "1"),
        ("${CUDA#?}", "2.4.1"),
        ("${CUDA%$STAR}", "12.4.1"),
        ("${CUDA%${STAR}.1}|${CUDA%%${STAR}.1}", "12|"),
        ("${CUDA#x}${EMPTY#*}${NOBODY%x}", "12.4.1"),
        (r"${CUDA%\*}", "12.4.1"),
    ]);
    assert_eq!(known(r"${CUDA#\x}"), None, "no escape that BuildKit has");
    assert_eq!(known("${CUDA:#x}"), None);
}

#[test]
fn parts_are_replaced() {
    same(&[
        ("cu${CUDA//./}", "cu1241"),
        ("cuda-${CUDA/./-}", "cuda-12-4.1"),
        ("${PATHS/opt\\/?/x}", "/x/lib:/opt/b/lib"),
        ("${PATHS//\\/lib/}", "/opt/a:/opt/b"),
        ("${CUDA/*/x}", "x"),
        ("${CUDA//x/y}", "12.4.1"),
        ("${EMPTY///-}|${CUDA///-}", "-|-1-2-.-4-.-1-"),
    ]);
    assert_eq!(known("${CUDA/a}"), None);
}

#[test]
fn sets_multiply_and_agree_with_themselves() {
    assert_eq!(text("l-$ARCH", true).value, Value::OneOf(vec!["l-amd64".into(), "l-arm64".into()]));
    assert_eq!(text("$ARCH$ARCH", true).value.all().count(), 2);
    assert_eq!(text("$ARCH${OS:+-$OS}", true).value.all().count(), 4);
    assert_eq!(known("${ARCH:+x}").as_deref(), Some("x"));
    assert_eq!(text("${SECRET}$ARCH", true).value, Value::Unknown);
}

#[test]
fn too_many_values_are_none() {
    let mut scope = Scope::new();
    for name in ["A", "B", "C", "D", "E", "F", "G", "H", "I"] {
        scope.insert(name.into(), variable(Value::one_of(vec!["0".into(), "1".into()])));
    }
    let work = Work::default();
    let expander = Expander { scope: &scope, closed: true, escape: '\\', work: &work };
    assert_eq!(expander.body("$A$B$C$D$E").value.all().count(), 32);
    assert_eq!(expander.body("$A$B$C$D$E$F").value, Value::Unknown);
    assert_eq!(expander.body("$A$B$C$D$E$F$G$H$I").value, Value::Unknown);
    assert_eq!(expander.body("${A}${B:+}${C:+}${D:+}").value.all().count(), 2);
}

#[test]
fn the_trail_has_what_was_used() {
    let mut scope = scope();
    let given = Trail { name: "CUDA".into(), origin: Origin::Given };
    let tag = Variable { trail: vec![given], ..variable(Value::Known("12".into())) };
    scope.insert("TAG".into(), tag);
    let work = Work::default();
    let expander = Expander { scope: &scope, closed: true, escape: '\\', work: &work };
    let names = |text: &str| -> Vec<String> { expander.body(text).trail.into_iter().map(|t| t.name).collect() };
    assert_eq!(names("$TAG$TAG"), ["TAG", "CUDA"]);
    assert_eq!(names("${CUDA:-$TAG}"), ["CUDA"]);
    assert_eq!(names("${EMPTY:-$PATHS}"), ["EMPTY", "PATHS"]);
    assert_eq!(names("${OS:-$CUDA}"), ["OS", "CUDA"], "in one of the choices");
    assert!(names("$NOBODY").is_empty());
}

#[test]
fn pieces_of_a_word_that_is_known_in_part() {
    let (scope, work) = (scope(), Work::default());
    let expander = Expander { scope: &scope, closed: false, escape: '\\', work: &work };
    let pieces = |text: &str| {
        let word = Word { text: text.into(), span: Span::default(), literal: false };
        let pieces = expander.partly(&word).into_iter();
        pieces.map(|piece| if let Piece::Known(text) = piece { text } else { "?".to_owned() }).collect::<Vec<_>>()
    };
    assert_eq!(pieces("\"/cuda-$CUDA/stubs:$LD_LIBRARY_PATH\""), ["/cuda-12.4.1/stubs:", "?"]);
    assert_eq!(pieces("$SECRET${NOBODY:+:$NOBODY}/a$ARCH"), ["?", "?", "/a", "?"]);
    assert_eq!(pieces("${UNSET:-x}/$UNSET"), ["x/", "?"]);
    assert_eq!(pieces("$CUDA"), ["12.4.1"]);
    assert_eq!(pieces("'"), ["?"]);
    assert!(pieces("").is_empty());
}

#[test]
fn a_json_word_has_no_quotes() {
    let (scope, work) = (scope(), Work::default());
    let expander = Expander { scope: &scope, closed: true, escape: '\\', work: &work };
    let word = Word { text: "it's $CUDA".into(), span: Span::default(), literal: true };
    assert_eq!(expander.word(&word).value.known(), Some("it's 12.4.1"));
}

#[test]
fn length_depth_and_work_are_bounded() {
    assert_eq!(known(&"$CUDA".repeat(MOST_TEXT)), None);
    assert_eq!(known(&"a".repeat(MOST_TEXT + 1)), None);
    assert!(known(&"a".repeat(MOST_TEXT)).is_some());
    let deep = |n: usize| format!("{}x{}", "${NOBODY:-".repeat(n), "}".repeat(n));
    assert_eq!(known(&deep(30)).as_deref(), Some("x"));
    assert_eq!(known(&deep(100_000)), None);

    let (mut scope, work) = (scope(), Work::default());
    scope.insert("LONG".into(), variable(Value::Known("a".repeat(MOST_TEXT))));
    let expander = Expander { scope: &scope, closed: true, escape: '\\', work: &work };
    let hard = format!("${{LONG//{}b/}}", "a*".repeat(2000));
    assert_eq!(expander.body(&hard).value, Value::Unknown);
    assert_eq!(expander.body("$CUDA").value, Value::Unknown, "all work was spent");
}
