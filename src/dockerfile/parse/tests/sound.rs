//! What holds of every document.

use crate::dockerfile::parse::json::{self, Json};
use crate::dockerfile::parse::lines::{BOM, cut_continuation};
use crate::dockerfile::parse::{MAX_FILE, parse};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Body, Document, Instruction, Joined, Keyword, Word};

pub(super) fn assert_sound(document: &Document) {
    assert_eq!(document.print(), document.source, "the file again");
    if document.source.len() > MAX_FILE {
        return;
    }
    assert_eq!(document.text.len(), document.source.len());
    let whole = Span::new(0, document.source.len());
    let own = document.errors.iter();
    let errors: Vec<_> = own.chain(document.instructions.iter().filter_map(|i| i.error.as_ref())).collect();
    for error in &errors {
        assert!(whole.contains(error.span) && error.span.start <= error.span.end, "{error:?}");
        assert!(error.what.contains(": ") && !error.what.contains(['\n', '\r']), "what, and what to do: {error:?}");
        assert!(error.what.len() < 400, "{error:?}");
    }
    let cut =
        errors.iter().any(|e| e.what.contains("UTF-16") || e.what.contains("NUL") || e.what.contains("not read"));
    let mut at = 0;
    for part in document.parts() {
        assert!(at <= part.start && part.start <= part.end && part.end <= whole.end, "{part:?} behind {at}");
        assert_gap(document, Span::new(at, part.start));
        at = part.end;
    }
    if !cut {
        assert_gap(document, Span::new(at, whole.end));
    }
    for comment in &document.comments {
        let text = document.slice(comment.span);
        assert!(text.starts_with('#') && !text.contains('\n'), "{comment:?}");
        assert_eq!(comment.text, text.trim_start_matches('#').trim());
    }
    for directive in &document.directives {
        assert!(document.slice(directive.span).ends_with(directive.value.trim_end()) || directive.value == " ");
    }
    for instruction in &document.instructions {
        assert_instruction(document, instruction);
    }
}

/// Nothing but blank lines stands between the parts.
fn assert_gap(document: &Document, gap: Span) {
    let text = document.text.get(gap.start..gap.end).expect("parts start and end between characters");
    let text = if gap.start == 0 { text.trim_start_matches(BOM) } else { text };
    assert_eq!(text.trim(), "", "{gap:?}");
}

fn assert_instruction(document: &Document, instruction: &Instruction) {
    let inside = |span: Span| {
        let text = document.text.get(span.start..span.end);
        assert!(instruction.span.contains(span) && text.is_some(), "{span:?} of {instruction:?}");
    };
    inside(instruction.keyword_span);
    let keyword = written(document, instruction.keyword_span);
    if instruction.keyword == Keyword::Unknown {
        assert!(instruction.error.is_some() && Keyword::of(&keyword) == Keyword::Unknown, "{instruction:?}");
    } else {
        assert_eq!(keyword.to_ascii_uppercase(), instruction.keyword.name());
    }
    let mut words: Vec<&Word> = Vec::new();
    for flag in &instruction.flags {
        inside(flag.span);
        assert!(written(document, flag.span).starts_with("--"), "{flag:?}");
        if let Some(value) = &flag.value {
            assert!(flag.span.contains(value.span), "{flag:?}");
            // A literal one is not written in one piece.
            words.extend(Some(value).filter(|v| !v.literal));
        }
    }
    match &instruction.body {
        Body::Nothing => {}
        Body::From { image, alias } => {
            words.push(image);
            words.extend(alias);
        }
        Body::Pairs(pairs) => {
            for pair in pairs {
                inside(pair.span);
                assert!(pair.span.contains(pair.key.span), "{pair:?}");
                words.push(&pair.key);
                words.extend(&pair.value);
            }
        }
        Body::Shell(joined) => assert_joined(document, joined, instruction.span),
        Body::Exec(all) | Body::Words(all) => words.extend(all),
        Body::Onbuild(inner) => {
            inside(inner.span);
            assert_instruction(document, inner);
        }
    }
    for word in words {
        inside(word.span);
        let text = written(document, word.span);
        if word.literal {
            let lossy = document.source.get(word.span.start..word.span.end) != Some(text.as_bytes());
            let Json::Strings(strings) = json::array(&format!("[{text}]"), lossy) else {
                panic!("{word:?}: {text}")
            };
            assert_eq!(strings.first().map(|(s, _)| s), Some(&word.text), "{text}");
        } else {
            assert_eq!(text, word.text);
        }
    }
    let mut at = instruction.keyword_span.end;
    for heredoc in &instruction.heredocs {
        inside(heredoc.opener);
        assert!(written(document, heredoc.opener).contains("<<"), "{heredoc:?}");
        assert!(at <= heredoc.body.start && heredoc.body.start <= heredoc.body.end, "{heredoc:?}");
        at = heredoc.body.end;
        if let Some(end) = heredoc.end {
            inside(end);
            assert_eq!(document.slice(end), heredoc.name);
            at = end.end;
        }
    }
}

/// Each piece stands where it says.
fn assert_joined(document: &Document, joined: &Joined, inside: Span) {
    let ends = joined.pieces.iter().skip(1).map(|(at, _)| *at).chain([joined.text.len()]);
    for ((at, file), end) in joined.pieces.iter().zip(ends) {
        let text = joined.text.get(*at..end).expect("pieces start between characters, and rise");
        let span = Span::new(*file, *file + text.len());
        assert_eq!(document.slice(span), text);
        assert!(inside.contains(span));
    }
    for (at, c) in joined.text.char_indices() {
        let span = joined.span(at..at + c.len_utf8());
        assert_eq!(document.slice(span).chars().collect::<Vec<_>>(), [c]);
    }
    assert_eq!(written(document, joined.span(0..joined.text.len())), joined.text);
}

/// What is written in a span, without continuations and the lines between them.
pub(super) fn written(document: &Document, span: Span) -> String {
    let lines: Vec<&str> = document.slice(span).split('\n').collect();
    let mut out = String::new();
    for (n, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let between = n > 0 && n + 1 < lines.len() && (bare.is_empty() || bare.starts_with('#'));
        if n + 1 == lines.len() {
            out.push_str(line);
        } else if !between {
            out.push_str(cut_continuation(line.trim_end_matches('\r'), document.escape).0);
        }
    }
    out
}

#[test]
fn what_is_unsound_is_seen() {
    let document = parse(b"FROM a\nRUN b \\\n c\n");
    assert_sound(&document);
    let unsound = |change: fn(&mut Document)| {
        let mut document = document.clone();
        change(&mut document);
        assert!(std::panic::catch_unwind(|| assert_sound(&document)).is_err());
    };
    unsound(|d| d.instructions[1].span.start -= 2);
    unsound(|d| d.instructions[1].span.end -= 1);
    unsound(|d| d.instructions[0].keyword_span.end += 1);
    unsound(|d| {
        d.instructions.pop();
    });
    unsound(|d| d.instructions[1].body = Body::Shell(Joined::at("b  c", 11)));
    unsound(|d| {
        if let Body::From { image, .. } = &mut d.instructions[0].body {
            image.span = Span::new(4, 5);
        }
    });
}
