//! Whole scripts.

mod forms;

use super::*;
use crate::dockerfile::span::LineIndex;
use crate::dockerfile::value::{Origin, Variable};

fn document(text: &str) -> Document {
    Document {
        source: text.as_bytes().to_vec(),
        text: text.to_owned(),
        lines: LineIndex::new(text),
        escape: '\\',
        directives: Vec::new(),
        comments: Vec::new(),
        instructions: Vec::new(),
        errors: Vec::new(),
    }
}

fn parsed_in(text: &str, scope: &Scope, kind: ShellKind) -> Parsed {
    let document = document(text);
    let joined = Joined::at(text, 0);
    super::commands(&Input {
        instruction: 0,
        body: Script::Text(&joined),
        scope,
        dir: &Value::Known("/w".into()),
        kind,
        when: When::Build,
        document: &document,
        heredocs: &[],
        budget: &Budget::default(),
    })
}

/// The commands of a script in a scope.
pub fn commands_in(text: &str, scope: &Scope) -> Vec<Command> {
    let parsed = parsed_in(text, scope, ShellKind::Posix);
    assert!(parsed.unparsed.is_empty(), "{text}");
    // All spans stand in the text, and those of plain words hold them.
    for arg in parsed.commands.iter().flat_map(|c| &c.words) {
        let slice = text.get(arg.span.start..arg.span.end).expect("a span of the text");
        if !slice.is_empty() && !slice.contains(['\'', '"', '$', '\\', '`']) {
            assert_eq!(arg.text.value.known(), Some(slice), "{text}");
        }
    }
    parsed.commands
}

pub fn commands(text: &str) -> Vec<Command> {
    commands_in(text, &Scope::new())
}

fn words(command: &Command) -> String {
    command.words.iter().map(Arg::known_or_partly).collect::<Vec<_>>().join(" ")
}

/// Each command in one line; a question mark where it may not run.
fn lines(text: &str) -> Vec<String> {
    let mark = |c: &Command| if c.when == When::Build { "" } else { "? " };
    commands(text).iter().map(|c| format!("{}{}", mark(c), words(c))).collect()
}

fn scope(pairs: &[(&str, Value)]) -> Scope {
    pairs
        .iter()
        .map(|(name, value)| {
            let origin = Origin::Env(Span::new(0, 0));
            let variable = Variable { value: value.clone(), origin, arg: false, unset: false, trail: Vec::new() };
            ((*name).to_owned(), variable)
        })
        .collect()
}

fn known(text: &str) -> Value {
    Value::Known(text.into())
}

/// What the last command's last word may be.
fn last(text: &str, scope: &Scope) -> Vec<String> {
    let commands = commands_in(text, scope);
    let arg = commands.last().and_then(|c| c.words.last()).expect("a word");
    arg.text.value.all().map(str::to_owned).collect()
}

#[test]
fn lists_run_in_order() {
    assert_eq!(lines("a && b; c\nd & e | f || g && h"), ["a", "b", "c", "d", "e", "f", "? g", "h"]);
    assert_eq!(lines("if a; then b; elif c; then d; else e; fi; f"), ["a", "? c", "? b", "? d", "? e", "f"]);
    assert_eq!(lines("case $x in a) b;; *) c;; esac; d"), ["? b", "? c", "d"]);
    assert_eq!(lines("for i in 1 2; do a $i; done; while b; do c; done"), ["? a 1", "b", "? c"]);
    assert_eq!(lines("f() { a; }; f; (b; c); { d; }"), ["? a", "f", "b", "c", "d"]);
    assert_eq!(lines("[ -f x ] && a; [[ -n $x ]] && b || c; d"), ["[ -f x ]", "? a", "? b", "? c", "d"]);
}

#[test]
fn variables_are_put_in() {
    let env =
        scope(&[("V", known("12.4.1")), ("L", known("a b")), ("M", Value::OneOf(vec!["x".into(), "y".into()]))]);
    for (text, expected) in [
        ("e \"$V\"", vec!["12.4.1"]),
        ("e '$V'", vec!["$V"]),
        ("e ${V%.*}", vec!["12.4"]),
        ("e ${V%%.*}", vec!["12"]),
        ("e ${V//./-}", vec!["12-4-1"]),
        ("e ${V/./}", vec!["124.1"]),
        ("e ${V:0:4}", vec!["12.4"]),
        ("e ${#V}", vec!["6"]),
        ("e ${V:-x}${NO:+y}z", vec![]),
        ("e \"$L\"", vec!["a b"]),
        ("e $L", vec!["b"]),
        ("e a$M", vec!["ax", "ay"]),
        ("A=1; e $A", vec!["1"]),
        ("A=1; A+=2; e $A", vec!["12"]),
        ("A=1; unset A; e ${A:-none}", vec!["none"]),
        ("A=1 true; e \"${A:-x}\"", vec![]),
        ("export A=$V; e $A", vec!["12.4.1"]),
        ("A=$(date); e $A", vec![]),
        ("A=$(echo $V | cut -d. -f1,2 | tr -d .); e cu$A", vec!["cu124"]),
        ("if t; then A=1; else A=2; fi; e $A", vec!["1", "2"]),
        ("A=0; if t; then A=1; fi; e $A", vec!["0", "1"]),
        ("if t; then A=1; fi; e $A", vec![]),
        ("A=0; t || A=1; e $A", vec!["0", "1"]),
        ("A=0; (A=1); e $A", vec!["0"]),
        ("A=0; t | A=1; e $A", vec!["0"]),
        ("for i in a b; do e $i; done", vec!["a", "b"]),
        ("A=(a b); e \"${A[@]}\"", vec!["b"]),
        ("A=(a b); e ${A[0]}", vec!["a"]),
        ("A=V; e ${!A}", vec!["12.4.1"]),
        ("unset A; : ${A:=5}; e $A", vec!["5"]),
        (": ${A:=5}; e $A", vec![]),
        ("case x in a) A=1;; b) A=2;; esac; e $A", vec![]),
        ("A=3; case x in a) A=1;; b) A=2;; esac; e $A", vec!["1", "2", "3"]),
        ("case x in a) A=1;; *) exit 1;; esac; e $A", vec!["1"]),
        ("read A; e $A", vec![]),
        ("A=$'x\\ty'; e \"$A\"", vec!["x\ty"]),
        ("e $UNKNOWN", vec![]),
        ("e a\\ b", vec!["a b"]),
        ("e \"a\\\"b\\n\"", vec!["a\"b\\n"]),
    ] {
        assert_eq!(last(text, &env), expected, "{text}");
    }
}

#[test]
fn what_is_known_in_part_is_kept() {
    let partly = |text: &str| commands(text).last().and_then(|c| c.words.last().map(words_of));
    assert_eq!(partly("e torch==$V"), Some("torch==\u{fffc}".into()));
    assert_eq!(partly("e torch${V:+==$V}"), Some("torch==\u{fffc}".into()));
    assert_eq!(partly("e \"$(x)/y\""), Some("\u{fffc}/y".into()));
}

fn words_of(arg: &Arg) -> String {
    arg.known_or_partly().to_owned()
}

#[test]
fn trails_name_what_a_word_was_made_of() {
    let env = scope(&[("V", known("1"))]);
    let commands = commands_in("A=x$V; e $A", &env);
    let trail: Vec<&str> = commands[0].words[1].text.trail.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(trail, ["A", "V"]);
    assert_eq!(commands[0].words[1].text.trail[0].origin, Origin::Shell(Span::new(0, 5)));
}

#[test]
fn commands_see_what_was_assigned() {
    let env = scope(&[("E", known("1"))]);
    let commands = commands_in("A=1; export B=2; E=3; C='4 5' cmd; A=2 other", &env);
    let cmd = &commands[1];
    assert_eq!(words(cmd), "cmd");
    let seen: Vec<(&str, &str, bool)> =
        cmd.assigned.iter().map(|(n, a)| (n.as_str(), a.text.value.known().unwrap_or("?"), a.exported)).collect();
    assert_eq!(seen, [("A", "1", false), ("B", "2", true), ("C", "4 5", true), ("E", "3", true)]);
    assert_eq!(cmd.assigned["C"].value_span, Span::new(24, 29));
    assert_eq!(cmd.span, Span::new(22, 33));
    assert_eq!(commands[2].assigned["A"].text.value, known("2"));
    assert!(!commands[2].assigned.contains_key("C"));
}

#[test]
fn wrappers_are_looked_through() {
    for (text, expected) in [
        ("sudo -E -u x apt-get install y", vec!["apt-get install y"]),
        ("env -i A=1 nice -n 5 make", vec!["make"]),
        ("exec time -p make", vec!["make"]),
        ("timeout 10 a b", vec!["a b"]),
        ("cat x | xargs -n 1 pip install", vec!["cat x", "pip install \u{fffc}"]),
        ("conda run -n e --no-capture-output pip install a", vec!["pip install a"]),
        ("micromamba run -n base a", vec!["a"]),
        ("uv run --with x python y", vec!["uv run --with x python y", "python y"]),
        ("bash -c 'a && b \"c d\"'", vec!["a", "b c d"]),
        ("bash -exo pipefail -c \"a $x; b\"", vec!["a \u{fffc}", "b"]),
        ("/bin/sh -lc \"a \\\"b c\\\"\" && d", vec!["a b c", "d"]),
        ("su - user -c 'a b'", vec!["a b"]),
        ("eval \"a b\"; c", vec!["a b", "c"]),
        ("eval \"$(a b)\"", vec!["a b", "\u{fffc}"]),
        ("x $(a; b) `c`", vec!["a", "b", "c", "x \u{fffc} \u{fffc}"]),
        ("bash <<E\na b\nE\nc", vec!["a b", "c"]),
        ("bash script.sh", vec!["bash script.sh"]),
        ("env", vec!["env"]),
        ("scl enable gcc-toolset-9 'make -j'", vec!["make -j"]),
        ("sudo bash -c 'a'", vec!["a"]),
    ] {
        assert_eq!(lines(text), expected, "{text}");
    }
    let commands = commands("env A=1 sudo B=2 make");
    assert_eq!(commands[0].assigned.keys().collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(commands[0].assigned["A"].value_span, Span::new(6, 7));
}

#[test]
fn directories_are_followed() {
    let dirs = |text: &str| -> Vec<String> {
        let all = commands(text);
        all.iter().filter(|c| words(c) == "x").map(|c| c.dir.known().unwrap_or("?").to_owned()).collect()
    };
    assert_eq!(dirs("x; cd a; x; cd ../b/./c && x; cd /; x; cd -; x"), ["/w", "/w/a", "/w/b/c", "/", "/w/b/c"]);
    assert_eq!(dirs("(cd a; x); x; pushd b; x; popd; x; cd $y; x; cd; x"), ["/w/a", "/w", "/w/b", "/w", "?", "?"]);
}

#[test]
fn directories_are_followed_from_one_that_is_not_known() {
    let document = document("cd a && x; cd /b; x; cd $c; x");
    let joined = Joined::at(&*document.text, 0);
    let parsed = super::commands(&Input {
        instruction: 0,
        body: Script::Text(&joined),
        scope: &Scope::new(),
        dir: &Value::Unknown,
        kind: ShellKind::Posix,
        when: When::Build,
        document: &document,
        heredocs: &[],
        budget: &Budget::default(),
    });
    let places: Vec<Option<&str>> =
        parsed.commands.iter().filter(|c| words(c) == "x").map(Command::place).collect();
    assert_eq!(places, [Some("/\u{fffc}/a"), Some("/b"), None]);
}

#[test]
fn outputs_and_heredocs_are_noted() {
    let output = |text: &str| {
        let all = commands(text);
        all[0].output.as_ref().and_then(|t| t.value.known().map(str::to_owned))
    };
    assert_eq!(output("echo a > /x"), Some("/x".into()));
    assert_eq!(output("echo a >> x 2>&1"), Some("x".into()));
    assert_eq!(output("echo a 2> x"), None);
    assert_eq!(output("echo a | sudo tee -a /x"), Some("/x".into()));
    assert_eq!(output("{ echo a; } > /y"), Some("/y".into()));
    let text = "cat <<E > f && python - <<'P'\na $b\nE\nimport x\nP\n";
    let all = commands(text);
    let bodies: Vec<&str> = all.iter().filter_map(|c| c.heredoc).map(|s| &text[s.start..s.end]).collect();
    assert_eq!(bodies, ["a $b\n", "import x\n"]);
    assert_eq!(lines(text), ["cat", "python -"]);
}

#[test]
fn spans_go_back_to_the_file() {
    // As a RUN of two lines is joined.
    let file = "RUN é a \\\n    'b c' dd \\\n && bash -c \"x \\\"y\\\" z\"";
    let mut joined = Joined::default();
    joined.push("é a ", 4);
    joined.push("    'b c' dd ", file.find("    'b").unwrap());
    joined.push(" && bash -c \"x \\\"y\\\" z\"", file.find(" && b").unwrap());
    let document = document(file);
    let scope = Scope::new();
    let parsed = super::commands(&Input {
        instruction: 3,
        body: Script::Text(&joined),
        scope: &scope,
        dir: &Value::Unknown,
        kind: ShellKind::Posix,
        when: When::Start,
        document: &document,
        heredocs: &[],
        budget: &Budget::default(),
    });
    let slices: Vec<Vec<&str>> =
        parsed.commands.iter().map(|c| c.words.iter().map(|w| document.slice(w.span)).collect()).collect();
    assert_eq!(slices, [vec!["é", "a", "'b c'", "dd"], vec!["x", "\"y\\\"", "z"]]);
    assert_eq!(document.slice(parsed.commands[0].span), "é a \\\n    'b c' dd");
    assert_eq!(parsed.commands[0].instruction, 3);
    assert_eq!(parsed.commands[0].when, When::Start);
}
