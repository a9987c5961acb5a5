//! One law after the other.

use super::{one, read, read_bytes, refused, said};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Body, Document, Instruction, Keyword, Word};

fn shell(instruction: &Instruction) -> &str {
    match &instruction.body {
        Body::Shell(joined) => &joined.text,
        other => panic!("{other:?}"),
    }
}

fn texts(words: &[Word]) -> Vec<&str> {
    words.iter().map(|w| w.text.as_str()).collect()
}

fn words(instruction: &Instruction) -> Vec<&str> {
    match &instruction.body {
        Body::Words(words) | Body::Exec(words) => texts(words),
        other => panic!("{other:?}"),
    }
}

fn pairs(instruction: &Instruction) -> Vec<(&str, Option<&str>)> {
    match &instruction.body {
        Body::Pairs(pairs) => {
            pairs.iter().map(|p| (p.key.text.as_str(), p.value.as_ref().map(|v| v.text.as_str()))).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn keywords(document: &Document) -> Vec<Keyword> {
    document.instructions.iter().map(|i| i.keyword).collect()
}

#[test]
fn directives_stand_at_the_top_and_escape_is_heeded() {
    let document = read("# Escape = `\n#syntax=x\nFROM scratch\n# escape=\\\nRUN a `\n b\\\n");
    assert_eq!(document.escape, '`');
    assert_eq!(document.directives.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["escape", "syntax"]);
    assert_eq!(document.comments.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(), ["escape=\\"]);
    assert_eq!(shell(&document.instructions[1]), "a  b\\");
    let document = read("\n# escape=`\nFROM scratch\n");
    assert_eq!((document.escape, document.directives.len()), ('\\', 0));
    let document = read("# escape=x\n# escape=`\nFROM scratch\n");
    assert_eq!(said(&document).len(), 2);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    let document = read("\u{feff}FROM scratch\r\nRUN a\r\n");
    assert_eq!(said(&document), Vec::<&str>::new());
    assert_eq!(document.instructions[0].span, Span::new(3, 15));
    assert_eq!(read("\u{feff}# escape=`\nFROM scratch").escape, '`');
    assert_eq!(said(&read("FROM scratch\n\u{feff}RUN a")).len(), 1);
}

#[test]
fn continuations_join_lines_without_comments_and_blank_lines() {
    let text = "FROM scratch\nRUN a \\ \t\n  # one\n\n\t#two\n  b\\\r\n\r\nc\nRUN d\n";
    let document = read(text);
    let run = &document.instructions[1];
    assert_eq!(shell(run), "a   bc");
    assert_eq!(document.comments.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(document.slice(run.span), "RUN a \\ \t\n  # one\n\n\t#two\n  b\\\r\n\r\nc");
    assert_eq!(keywords(&document), [Keyword::From, Keyword::Run, Keyword::Run]);
    let Body::Shell(joined) = &run.body else { panic!() };
    assert_eq!(&text[joined.offset(4)..joined.offset(4) + 1], "b");
    assert_eq!(&text[joined.offset(5)..joined.offset(5) + 1], "c");
    assert_eq!(document.slice(joined.span(4..6)), "b\\\r\n\r\nc");
}

#[test]
fn a_continuation_at_the_end_of_the_file_ends() {
    let document = read("FROM scratch\nRUN a \\\n# c\n");
    assert_eq!(shell(&document.instructions[1]), "a");
    assert_eq!(said(&document), Vec::<&str>::new());
    assert_eq!(document.comments.len(), 1);
    let document = read("FROM scratch\n\\\n");
    assert_eq!(said(&document), ["a continuation with nothing that goes on: take it out"]);
    let document = read("FROM scratch\n\\\n  \\\nRUN a\n");
    assert_eq!(document.slice(document.instructions[1].keyword_span), "RUN");
    assert_eq!(document.lines.line(document.instructions[1].span.start), 2);
}

#[test]
fn flags_come_before_the_body() {
    let copy = one("COPY --from=base --chown=a:b \\\n --link a --b");
    assert_eq!(copy.flag("from").unwrap().value.as_ref().unwrap().text, "base");
    assert_eq!(copy.flags.len(), 3);
    assert_eq!(words(&copy), ["a", "--b"]);
    let run = one("RUN --mount=type=cache,from=x,target=\"/a b\" pip install");
    assert_eq!(run.flag("mount").unwrap().value.as_ref().unwrap().text, "type=cache,from=x,target=\"/a b\"");
    assert_eq!(shell(&run), "pip install");
    let run = one("RUN --\"mount=type=bind,source=a b\" c");
    let value = run.flag("mount").unwrap().value.clone().unwrap();
    assert_eq!((value.text.as_str(), value.literal), ("type=bind,source=a b", true));
    assert_eq!(one("RUN --network=none").body, Body::Nothing);
    // A value that is not there stands behind its `=`, not on a line that follows.
    let none = one("COPY --from=\\\n  \\\n a b");
    let flag = none.flag("from").unwrap();
    let value = flag.value.as_ref().unwrap();
    assert_eq!((value.text.as_str(), value.span), ("", Span::new(flag.span.end, flag.span.end)));
}

#[test]
fn from_has_an_image_and_a_name() {
    let document = read("FROM --platform=$P a:1@sha256:x As Base\n");
    let Body::From { image, alias } = &document.instructions[0].body else { panic!() };
    assert_eq!((image.text.as_str(), alias.as_ref().unwrap().text.as_str()), ("a:1@sha256:x", "Base"));
    assert_eq!(document.slice(image.span), "a:1@sha256:x");
    for bad in ["FROM", "FROM a b", "FROM a AS", "FROM a AS b c", "FROM a AS 1", "FROM a AS b/c", "FROM a # c"] {
        assert_eq!(said(&read(bad)).len(), 1, "{bad}");
    }
    let document = read("FROM a AS b # c\n");
    let Body::From { alias, .. } = &document.instructions[0].body else { panic!() };
    assert_eq!(alias.as_ref().unwrap().text, "b");
    assert!(said(&document)[0].starts_with("a comment behind FROM"));
}

#[test]
fn pairs_have_two_forms() {
    assert_eq!(pairs(&one("ENV a=b c=\"d e\" f=")), [("a", Some("b")), ("c", Some("\"d e\"")), ("f", Some(""))]);
    assert_eq!(pairs(&one("ENV a b=c  d")), [("a", Some("b=c  d"))]);
    assert_eq!(pairs(&one("LABEL \"a b\"=c")), [("\"a b\"", Some("c"))]);
    assert_eq!(pairs(&one("ARG a b=c")), [("a", None), ("b", Some("c"))]);
    assert_eq!(pairs(&one("ENV a=b\\\n=c \\\n d=e")), [("a", Some("b=c")), ("d", Some("e"))]);
    assert_eq!(pairs(&one("ENV a=b\\ c d=$x")), [("a", Some("b\\ c")), ("d", Some("$x"))]);
    // What could be read is there.
    let bad = one("ENV a=b c");
    assert_eq!(pairs(&bad), [("a", Some("b")), ("c", None)]);
    assert!(bad.error.unwrap().what.starts_with("`c` has no `=`"));
    assert_eq!(pairs(&one("ENV a")), [("a", None)]);
    for bad in ["ENV", "ENV a", "ENV a=b c", "ENV =b", "LABEL a", "LABEL", "ARG", "ARG =b", "ENV \\"] {
        assert!(refused(bad).is_some(), "{bad}");
    }
}

#[test]
fn json_forms_are_unescaped_and_others_are_shell() {
    let text = "FROM scratch\nCMD [\"a\\\"b\", \\\n  \"c d\"]\n";
    let document = read(text);
    let Body::Exec(all) = &document.instructions[1].body else { panic!() };
    assert_eq!(texts(all), ["a\"b", "c d"]);
    assert!(all.iter().all(|w| w.literal));
    assert_eq!(document.slice(all[0].span), "\"a\\\"b\"");
    assert_eq!(document.slice(all[1].span), "\"c d\"");
    assert_eq!(shell(&one("CMD ['a']")), "['a']");
    assert_eq!(shell(&one("RUN [ -f a ]")), "[ -f a ]");
    assert_eq!(words(&one("ENTRYPOINT []")), Vec::<&str>::new());
    assert_eq!(words(&one("COPY [\"a b\", \"c\"]")), ["a b", "c"]);
    assert_eq!(words(&one("COPY [a, b]")), ["[a,", "b]"]);
    let mixed = one("CMD [\"a\", {\"b\": 1}]");
    assert_eq!(mixed.error.as_ref().unwrap().what, "`{\"b\": 1}` is no string: put double quotes around it");
    assert_eq!(shell(&mixed), "[\"a\", {\"b\": 1}]");
    for bad in ["SHELL bash", "SHELL []", "SHELL", "VOLUME []", "VOLUME [\" \"]", "COPY [\"a\"]", "COPY [1, 2]"] {
        assert!(refused(bad).is_some(), "{bad}");
    }
}

#[test]
fn other_instructions_are_words_or_one_word() {
    assert_eq!(words(&one("WORKDIR  /a  b ")), ["/a  b"]);
    assert_eq!(words(&one("USER a:b")), ["a:b"]);
    assert_eq!(words(&one("EXPOSE 1 2/udp")), ["1", "2/udp"]);
    assert_eq!(words(&one("VOLUME /a\t/b")), ["/a", "/b"]);
    assert_eq!(words(&one("HEALTHCHECK none")), ["none"]);
    assert_eq!(shell(&one("HEALTHCHECK --retries=1 CMD  a b")), "a b");
    assert_eq!(words(&one("HEALTHCHECK CMD [\"a\"]")), ["a"]);
    for bare in ["RUN", "CMD", "ENTRYPOINT"] {
        assert_eq!((one(bare).body, refused(bare)), (Body::Nothing, None), "{bare}");
    }
    for bad in [
        "WORKDIR",
        "USER",
        "EXPOSE",
        "STOPSIGNAL",
        "MAINTAINER",
        "COPY",
        "ADD a",
        "HEALTHCHECK x",
        "HEALTHCHECK CMD",
    ] {
        assert!(refused(bad).is_some(), "{bad}");
    }
}

#[test]
fn heredocs_bring_their_lines() {
    let document = read("FROM scratch\nRUN a <<X | b <<-'Y' \\\n && c\nx\nX\n\ty $z\n\tY\nRUN d\n");
    let run = &document.instructions[1];
    assert_eq!(shell(run), "a <<X | b <<-'Y'  && c");
    let [x, y] = run.heredocs.as_slice() else { panic!() };
    assert_eq!(
        (document.slice(x.opener), document.slice(x.body), x.expand, x.strip_tabs),
        ("<<X", "x\n", true, false)
    );
    assert_eq!(
        (document.slice(y.opener), document.slice(y.body), y.expand, y.strip_tabs),
        ("<<-'Y'", "\ty $z\n", false, true)
    );
    assert_eq!(document.slice(y.end.unwrap()), "Y");
    assert!(document.slice(run.span).ends_with("\n\tY"));
    assert_eq!(keywords(&document), [Keyword::From, Keyword::Run, Keyword::Run]);
    assert_eq!(one("CMD a <<X").heredocs, []);
    assert_eq!(one("RUN [\"a\", \"<<X\"]").heredocs, []);
    assert!(refused("COPY a <<X\nX").unwrap().starts_with("the destination"));
}

#[test]
fn a_heredoc_without_an_end_takes_the_rest() {
    let document = read("FROM scratch\nRUN <<X\na\nRUN b\n");
    let run = &document.instructions[1];
    assert_eq!((run.heredocs[0].end, document.slice(run.heredocs[0].body)), (None, "a\nRUN b\n"));
    assert_eq!(said(&document).len(), 1);
    assert_eq!(document.slice(run.error.as_ref().unwrap().span), "<<X");
}

#[test]
fn onbuild_holds_an_instruction_and_its_heredocs() {
    let document = read("FROM scratch\nONBUILD RUN --network=none <<X\na\nX\nRUN b\n");
    let outer = &document.instructions[1];
    let Body::Onbuild(inner) = &outer.body else { panic!() };
    assert_eq!((inner.keyword, inner.flags.len(), inner.heredocs.len()), (Keyword::Run, 1, 1));
    assert_eq!((outer.heredocs.len(), outer.span.end), (0, inner.span.end));
    assert_eq!(said(&document), Vec::<&str>::new());
    // What only a build on the image would find.
    let outer = one("ONBUILD COPY --nonsense a b");
    let Body::Onbuild(inner) = &outer.body else { panic!() };
    assert!(outer.error.is_none() && inner.error.is_some());
    for bad in [
        "ONBUILD",
        "ONBUILD FROM a",
        "ONBUILD ONBUILD RUN a",
        "ONBUILD MAINTAINER a",
        "ONBUILD ENV a",
        "ONBUILD CMD [1]",
    ] {
        assert!(refused(bad).is_some(), "{bad}");
    }
}

#[test]
fn reading_goes_on_behind_an_error() {
    let document = read("FROM scratch\nRUNN a\nENV\nCOPY --nonsense a b\nFOO\\\nBAR x\nRUN b\n");
    assert_eq!(said(&document).len(), 4);
    assert_eq!(shell(&document.instructions[5]), "b");
    assert_eq!(words(&document.instructions[3]), ["a", "b"]);
    assert!(said(&document)[0].contains("did you mean RUN?"));
    assert_eq!(refused("RUN\u{a0}a").unwrap(), "a blank that is no space (U+00A0): type a plain space");
}

#[test]
fn only_arg_stands_before_from() {
    assert_eq!(said(&read("ARG a\nFROM $a\n")), Vec::<&str>::new());
    assert_eq!(
        said(&read("ARG a\nRUN b\nENV c=d\n")),
        ["RUN before the first FROM: start the stage with `FROM image`"]
    );
    for empty in ["", "\n", "# a\n", "\u{feff}"] {
        assert!(said(&read(empty))[0].starts_with("no instruction"), "{empty:?}");
    }
}

#[test]
fn bytes_that_are_no_utf8_are_told_once_unless_in_comments() {
    let document = read_bytes(b"FROM scratch\n# caf\xe9\nRUN a \\\n# \xe9\n b\n");
    assert_eq!(said(&document), Vec::<&str>::new());
    assert_eq!(document.comments[0].text, "caf\u{1a}");
    let document = read_bytes(b"FROM scratch\n# \xe9\nLABEL a=\xe9\nCMD [\"\xe9\"]\n");
    assert_eq!((said(&document).len(), document.errors[0].span), (1, Span::new(25, 26)));
    assert_eq!(words(&document.instructions[2]), ["\u{1a}"]);
}

#[test]
fn files_that_are_no_text_have_one_error_and_nothing_else() {
    for source in [&b"\xff\xfeF\0R\0"[..], b"F\0R\0O\0M\0", b"FROM a\nRUN \0\n", b"\x7fELF\0"] {
        let document = read_bytes(source);
        assert_eq!((said(&document).len(), document.instructions.len()), (1, 0), "{source:?}");
    }
}
