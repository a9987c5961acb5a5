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
    /// Why the instruction has an error.
    refusal: Option<Refusal>,
}

pub(super) fn read(line: Part<'_>, rules: Rules) -> Read {
    parse(line, rules, false)
}

/// `inner`: what is behind ONBUILD, where one more ONBUILD is not looked into.
fn parse(line: Part<'_>, rules: Rules, inner: bool) -> Read {
    let line = line.trim();
    let (word, rest) = line.split_blank();
    let (raw, args) = words::flags(rest.unwrap_or(line.from(line.text().len())), rules.escape);
    let args = args.trim();
    let keyword = Keyword::of(word.text());
    let (mut body, form) = body::read(keyword, args, rules);
    let mut heredocs = matches!(keyword, Keyword::Run | Keyword::Copy | Keyword::Add) && !is_json(&body);
    let mut refusal = form.or_else(|| content(keyword, word, &body, &raw, args));
    if keyword == Keyword::Onbuild && !inner && !args.is_empty() {
        let child = parse(args, rules, true);
        heredocs = child.heredocs;
        let form = child.refusal.filter(|why| matches!(why, Refusal::Form(_)));
        refusal = refusal.or_else(|| trigger(&child.instruction)).or(form);
        body = Body::Onbuild(Box::new(child.instruction));
    }
    let instruction = Instruction {
        keyword,
        keyword_span: word.span(),
        span: line.span(),
        flags: raw.iter().map(flag).collect(),
        body,
        heredocs: Vec::new(),
        error: refusal.clone().map(Refusal::error),
    };
    Read { instruction, heredocs, refusal }
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
        false => part.value(),
        // Written inside of quotes that began before: its text alone would be read wrongly.
        true => Word { text: value.to_owned(), literal: true, ..part.value() },
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
    let refuse = |what: String| Some(Refusal::content(word.span(), what));
    let name = keyword.name();
    let early = match (keyword, body) {
        (Keyword::Unknown, _) => Some(unknown(word)),
        (Keyword::Run | Keyword::Cmd | Keyword::Entrypoint, Body::Nothing) => None,
        (_, Body::Nothing) if args.is_empty() => refuse(format!("{name} has no {}", lack(keyword))),
        (Keyword::Add | Keyword::Copy, Body::Words(words)) if words.len() < 2 => {
            refuse(format!("{name} has no destination: write it behind the source"))
        }
        (Keyword::Shell, Body::Exec(words)) if words.is_empty() => {
            refuse(format!("SHELL has no {}", lack(keyword)))
        }
        (Keyword::Shell, Body::Shell(_)) => refuse(format!("SHELL has no JSON {}", lack(keyword))),
        (Keyword::Volume, Body::Words(words)) if words.is_empty() => {
            refuse(format!("VOLUME has no {}", lack(keyword)))
        }
        (Keyword::Volume, Body::Words(words)) => words
            .iter()
            .find(|w| w.text.trim().is_empty())
            .map(|w| Refusal::content(w.span, "a path of VOLUME is empty: write it or take it out")),
        _ => None,
    };
    early.or_else(|| flags::check(keyword, body, raw)).or_else(|| destination(keyword, body))
}

/// What an instruction without arguments does not have, and how to write it.
const fn lack(keyword: Keyword) -> &'static str {
    match keyword {
        Keyword::From => "image: write `FROM image` or `FROM image AS name`",
        Keyword::Add | Keyword::Copy => "source: write a source and a destination behind it",
        Keyword::Env | Keyword::Label => "name: write name=value behind it",
        Keyword::Arg => "name: write `ARG name` or `ARG name=value`",
        Keyword::Shell => "list of strings: write `SHELL [\"/bin/bash\", \"-c\"]`",
        Keyword::Healthcheck => "command: write `HEALTHCHECK CMD command` or `HEALTHCHECK NONE`",
        Keyword::Onbuild => "instruction: write one behind it",
        _ => "argument: write one behind it",
    }
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
    if let Some((at, c)) = word.text().char_indices().find(|(_, c)| c.is_whitespace()) {
        let what = format!("a blank that is no space (U+{:04X}): type a plain space", u32::from(c));
        return Refusal::content(word.sub(at, at + c.len_utf8()).span(), what);
    }
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
