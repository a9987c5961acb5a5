//! One instruction from its joined line: keyword, flags, body, and why BuildKit would refuse it.

use super::body;
use super::flags;
use super::heredoc;
use super::part::Part;
use super::problem::{Refusal, meant, shown};
use super::words::{self, RawFlag};
use crate::dockerfile::syntax::{Body, Flag, Instruction, Keyword, SyntaxError, Word};

/// What the file says of all its instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) escape: char,
    /// U+001A stands for bytes that are no UTF-8.
    pub(super) replaced: bool,
}

/// An instruction without its heredocs.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) instruction: Instruction,
    /// Openers of heredocs are looked for: RUN, COPY or ADD in shell form, also behind ONBUILD.
    pub(super) heredocs: bool,
}

pub(super) fn read(line: Part<'_>, rules: Rules) -> Read {
    let (instruction, _, heredocs) = parse(line, rules, false);
    Read { instruction, heredocs }
}

fn parse(line: Part<'_>, rules: Rules, inner: bool) -> (Instruction, Option<Refusal>, bool) {
    let line = line.trim();
    let (word, rest) = line.split_blank();
    let (raw, args) = words::flags(rest.unwrap_or(line.from(line.text().len())), rules.escape);
    let args = args.trim();
    let keyword = Keyword::of(word.text());
    let (mut body, form) = body::read(keyword, args, rules);
    let mut heredocs = matches!(keyword, Keyword::Run | Keyword::Copy | Keyword::Add) && !is_json(&body);
    let refused = form.or_else(|| content(keyword, word, &body, &raw, args));
    let refused = match keyword {
        Keyword::Onbuild if !inner && !args.is_empty() => {
            let (child, why, child_heredocs) = parse(args, rules, true);
            heredocs = child_heredocs;
            let not_allowed = trigger(&child);
            body = Body::Onbuild(Box::new(child));
            let form = why.filter(|why| matches!(why, Refusal::Form(_)));
            refused.or(not_allowed).or(form)
        }
        _ => refused,
    };
    let instruction = Instruction {
        keyword,
        keyword_span: word.span(),
        span: line.span(),
        flags: raw.iter().map(flag).collect(),
        body,
        heredocs: Vec::new(),
        error: refused.clone().map(Refusal::error),
    };
    (instruction, refused, heredocs)
}

fn is_json(body: &Body) -> bool {
    match body {
        Body::Exec(_) => true,
        Body::Words(words) => words.first().is_some_and(|w| w.literal),
        _ => false,
    }
}

fn flag(raw: &RawFlag<'_>) -> Flag {
    let text = raw.text.strip_prefix("--").unwrap_or(&raw.text);
    let (name, value) = text.split_once('=').map_or((text, ""), |(name, value)| (name, value));
    let word = |(part, open): (Part<'_>, bool)| match open {
        false => part.word(),
        // Written inside of quotes that began before: its text alone would be read wrongly.
        true => Word { text: value.to_owned(), literal: true, ..part.word() },
    };
    Flag { name: name.to_owned(), value: raw.value.map(word), span: raw.part.span() }
}

/// What may not stand behind ONBUILD.
fn trigger(child: &Instruction) -> Option<Refusal> {
    let what = match child.keyword {
        Keyword::Onbuild => "ONBUILD inside ONBUILD is not allowed: write one of them".to_owned(),
        Keyword::From | Keyword::Maintainer => {
            format!("{} is not allowed behind ONBUILD: take it out", child.keyword.name())
        }
        _ => return None,
    };
    Some(Refusal::content(child.keyword_span, what))
}

/// What is wrong with words that could be read.
fn content(keyword: Keyword, word: Part<'_>, body: &Body, raw: &[RawFlag<'_>], args: Part<'_>) -> Option<Refusal> {
    let name = keyword.name();
    let none = |words: &[Word]| words.is_empty();
    let few = |how: &str| Some(Refusal::content(word.span(), format!("{name} needs {how}")));
    let blank = |words: &[Word]| words.iter().find(|w| w.text.trim().is_empty()).map(|w| w.span);
    let early = match (keyword, body) {
        (Keyword::Unknown, _) => Some(unknown(word)),
        (_, Body::Nothing) if args.is_empty() => match keyword {
            Keyword::Run | Keyword::Cmd | Keyword::Entrypoint => None,
            Keyword::From => few("an image: write `FROM image` or `FROM image AS name`"),
            Keyword::Add | Keyword::Copy => few("a source and a destination"),
            Keyword::Env | Keyword::Label => few("name=value"),
            Keyword::Shell => few(r#"a list of strings: write `SHELL ["/bin/bash", "-c"]`"#),
            Keyword::Healthcheck => few("CMD with a command, or NONE"),
            Keyword::Onbuild => few("an instruction"),
            _ => few("an argument"),
        },
        (Keyword::Add | Keyword::Copy, Body::Words(words)) if words.len() < 2 => {
            few("a source and a destination: only one is given")
        }
        (Keyword::Volume, Body::Words(words)) if none(words) => few("a path"),
        (Keyword::Shell, Body::Exec(words)) if none(words) => few("at least one string in its list"),
        (Keyword::Shell, Body::Shell(_)) => {
            few(r#"a JSON list of strings, with double quotes: write `SHELL ["/bin/bash", "-c"]`"#)
        }
        (Keyword::Volume, Body::Words(words)) => {
            blank(words).map(|span| Refusal::content(span, "a path of VOLUME is empty: write it or take it out"))
        }
        _ => None,
    };
    early.or_else(|| flags::check(keyword, body, raw)).or_else(|| destination(keyword, body))
}

fn destination(keyword: Keyword, body: &Body) -> Option<Refusal> {
    let (Keyword::Add | Keyword::Copy, Body::Words(words)) = (keyword, body) else {
        return None;
    };
    let last = words.last()?;
    let is_heredoc = matches!(heredoc::opener(&last.text), Ok(Some(_)));
    let what = || format!("the destination of {} is a heredoc: write a path behind it", keyword.name());
    is_heredoc.then(|| Refusal::content(last.span, what()))
}

fn unknown(word: Part<'_>) -> Refusal {
    let names = Keyword::ALL.map(Keyword::name);
    let what = match (word.is_empty(), meant(word.text(), names)) {
        (true, _) => "a continuation with nothing that goes on: take it out".to_owned(),
        (_, Some(name)) => format!("{} is no instruction: did you mean {name}?", shown(word.text())),
        _ => format!(
            "{} is no instruction: if the line before goes on here, end that one with the escape character",
            shown(word.text())
        ),
    };
    Refusal::content(word.span(), what)
}

/// An instruction whose lines together are too many to be read.
pub(super) fn too_long(line: Part<'_>, most: usize) -> Instruction {
    let line = line.trim();
    let (word, _) = line.split_blank();
    let what =
        format!("an instruction of more than {most} bytes is not read: put its text into a file or a heredoc");
    Instruction {
        keyword: Keyword::of(word.text()),
        keyword_span: word.span(),
        span: line.span(),
        flags: Vec::new(),
        body: Body::Nothing,
        heredocs: Vec::new(),
        error: Some(SyntaxError { span: word.span(), what }),
    }
}
