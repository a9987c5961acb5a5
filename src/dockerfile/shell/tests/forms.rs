//! Heredocs, JSON forms, other shells, and texts that are no scripts.

use super::super::*;
use super::{document, known, parsed_in, scope, words};

#[test]
fn docker_heredocs_are_scripts() {
    let file = "RUN <<EOF\npip install a\nif x; then\n b\nfi\nEOF\n";
    let heredoc = |file: &str, opener: &str| {
        let start = file.find('\n').unwrap() + 1;
        let end = file.rfind("EOF").unwrap();
        Heredoc {
            name: "EOF".into(),
            expand: true,
            strip_tabs: false,
            opener: Span::new(file.find(opener).unwrap(), file.find('\n').unwrap()),
            body: Span::new(start, end),
            end: Some(Span::new(end, end + 3)),
        }
    };
    let run = |file: &str| {
        let document = document(file);
        let first = file.lines().next().unwrap();
        let joined = Joined::at(&first[4..], 4);
        let scope = Scope::new();
        let parsed = commands(&Input {
            instruction: 0,
            body: Script::Text(&joined),
            scope: &scope,
            dir: &Value::Unknown,
            kind: ShellKind::Posix,
            when: When::Build,
            document: &document,
            heredocs: &[heredoc(file, "<<")],
            budget: &Budget::default(),
        });
        assert!(parsed.unparsed.is_empty());
        parsed
            .commands
            .iter()
            .map(|c| {
                let slices: Vec<&str> = c.words.iter().map(|w| document.slice(w.span)).collect();
                let body = c.heredoc.map_or("", |h| document.slice(h));
                format!("{} {body}", slices.join(" "))
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(file), ["pip install a ", "x ", "b "]);
    assert_eq!(run("RUN bash <<EOF && c\na b\nEOF\n"), ["a b ", "c "]);
    assert_eq!(run("RUN cat <<EOF >f\na b\nEOF\n"), ["cat a b\n"]);
    assert_eq!(
        run("RUN <<EOF\n#!/usr/bin/env python3\nimport x\nEOF\n"),
        ["/usr/bin/env python3 #!/usr/bin/env python3\nimport x\n"]
    );
    assert_eq!(run("RUN <<EOF\n#!/bin/bash\na\nEOF\n"), ["a "]);
}

#[test]
fn json_forms_are_commands() {
    let file = r#"CMD ["bash", "-c", "a \"b c\" d"]"#;
    let document = document(file);
    let word = |written: &str, text: &str| {
        let start = file.find(written).unwrap();
        Word { text: text.into(), span: Span::new(start, start + written.len()), literal: true }
    };
    let words = [word("\"bash\"", "bash"), word("\"-c\"", "-c"), word(r#""a \"b c\" d""#, "a \"b c\" d")];
    let scope = Scope::new();
    let parsed = commands(&Input {
        instruction: 0,
        body: Script::Exec(&words),
        scope: &scope,
        dir: &Value::Unknown,
        kind: ShellKind::Posix,
        when: When::Start,
        document: &document,
        heredocs: &[],
        budget: &Budget::default(),
    });
    let slices: Vec<&str> = parsed.commands[0].words.iter().map(|w| document.slice(w.span)).collect();
    assert_eq!(slices, ["a", r#""b c\""#, "d"]);
}

#[test]
fn broken_scripts_are_guessed() {
    let parsed = parsed_in("a 'b && pip install c; if", &Scope::new(), ShellKind::Posix);
    assert_eq!(parsed.unparsed, [Span::new(0, 25)]);
    assert!(parsed.commands.iter().all(|c| c.guessed));
    assert_eq!(parsed.commands.iter().map(words).collect::<Vec<_>>(), ["a b", "pip install c"]);
    let parsed = parsed_in("Write-Host $x ; pip install c", &Scope::new(), ShellKind::Other);
    assert!(parsed.unparsed.is_empty());
    assert_eq!(parsed.commands.iter().map(words).collect::<Vec<_>>(), ["Write-Host \u{fffc}", "pip install c"]);
}

#[test]
fn hostile_scripts_end() {
    for text in [
        "a=$a$a$a$a; ".repeat(5000),
        "$(".repeat(20_000),
        format!("{}a{}", "$(".repeat(20_000), ")".repeat(20_000)),
        format!("e {}x{}", "${a:-".repeat(20_000), "}".repeat(20_000)),
        "(".repeat(50_000),
        "if a; then ".repeat(50_000),
        "a=1; if b; then c=2; fi; ".repeat(10_000),
        "x=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; ".to_owned() + &"e ${x//*a*a*a*/y}; ".repeat(5000),
        (0..20_000).map(|n| format!("v{n}={n}; ")).collect::<String>() + &"c;".repeat(10_000),
        "L='a b c d e f g h'; L=\"$L $L $L $L $L $L $L\"; L=\"$L $L $L $L $L\"; ".to_owned()
            + &"$L ".repeat(10_000),
        "eval ".repeat(10_000),
        "bash -c \"".repeat(10_000),
        "sudo ".repeat(50_000),
        "'".repeat(100_001),
        "\" ".repeat(100_001),
        "cat <<A ".repeat(20_000) + "\n",
        "[[ ".repeat(50_000),
        "9".repeat(100) + ">x",
        "a".repeat(3 << 20),
    ] {
        let start = std::time::Instant::now();
        let parsed = parsed_in(&text, &Scope::new(), ShellKind::Posix);
        parsed_in(&text, &Scope::new(), ShellKind::Other);
        assert!(start.elapsed().as_secs() < 10, "{}", &text[..20]);
        assert!(parsed.commands.len() <= 1 << 17);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(parts in proptest::collection::vec(piece(), 0..40)) {
        let text: String = parts.concat();
        for kind in [ShellKind::Posix, ShellKind::Other] {
            let parsed = parsed_in(&text, &scope(&[("V", known("a b"))]), kind);
            for command in &parsed.commands {
                assert!(!command.words.is_empty());
                assert!(text.get(command.span.start..command.span.end).is_some(), "{text:?} {:?}", command.span);
                for arg in &command.words {
                    assert!(text.get(arg.span.start..arg.span.end).is_some(), "{text:?} {:?}", arg.span);
                }
            }
        }
    }
}

/// Pieces that scripts are made of, and what breaks them.
fn piece() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let known = proptest::sample::select(vec![
        " ",
        "\n",
        "a",
        "é",
        "'",
        "\"",
        "$",
        "${",
        "}",
        "$(",
        ")",
        "(",
        "((",
        "))",
        "`",
        "\\",
        "&&",
        "||",
        "|",
        ";",
        ";;",
        "&",
        "<",
        ">",
        "<<E",
        "\nE\n",
        "<<<",
        "if ",
        "then ",
        "fi",
        "for x in ",
        "do ",
        "done",
        "case x in ",
        "esac",
        "{ ",
        "V",
        "=",
        "A=",
        "[[ ",
        " ]]",
        "#",
        "#x",
        "%%",
        "//",
        ":-",
        "[0]",
        "@",
        "*",
        "eval ",
        "bash -c ",
        "sudo ",
        "cd ",
        "export ",
        "$V",
        "\r\n",
        "\t",
        "$'",
        "unset ",
        "xargs ",
        "2>&1",
        "99999999999>",
        "!",
        "~",
    ]);
    prop_oneof![8 => known.prop_map(str::to_owned), 1 => any::<char>().prop_map(|c| c.to_string())]
}

#[test]
fn a_file_of_many_bodies_costs_no_more_than_its_bounds() {
    let list = "a ".repeat(15_000);
    let text = format!("FROM x\nENV L=\"{list}\"\n{}", "RUN e $L $L $L\nRUN e ${L//a*a/b}\n".repeat(2000));
    let reading = crate::dockerfile::reading::read(
        crate::dockerfile::parse::parse(text.as_bytes()),
        &crate::dockerfile::reading::Inputs::default(),
    );
    let words: usize = reading.commands.iter().map(|c| c.words.len()).sum();
    assert!(words < 500_000, "{words}");
    assert!(!reading.commands.is_empty());
}
