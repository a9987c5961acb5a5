//! What follows an instruction's keyword and flags.

use super::instruction::Rules;
use super::json::{self, Json};
use super::part::{Part, is_ascii_space};
use super::problem::{Refusal, shown};
use super::words;
use crate::dockerfile::syntax::{Body, Keyword, Pair, Word};

type Parsed = (Body, Option<Refusal>);

/// `args` is trimmed.
pub(super) fn read(keyword: Keyword, args: Part<'_>, rules: Rules) -> Parsed {
    if args.is_empty() {
        return (Body::Nothing, None);
    }
    match keyword {
        Keyword::From => from(args),
        Keyword::Env | Keyword::Label => pairs(keyword, args, rules),
        Keyword::Arg => arguments(args, rules),
        Keyword::Run | Keyword::Cmd | Keyword::Entrypoint | Keyword::Shell => command(args, rules),
        Keyword::Add | Keyword::Copy | Keyword::Volume => match json(args, rules) {
            Some(Ok(words)) => (Body::Words(words), None),
            Some(Err(refusal)) => (split(args), Some(refusal)),
            None => (split(args), None),
        },
        Keyword::Expose => (split(args), None),
        Keyword::User | Keyword::Workdir | Keyword::Stopsignal | Keyword::Maintainer => {
            (Body::Words(vec![args.word()]), None)
        }
        Keyword::Healthcheck => health(args, rules),
        // ONBUILD is read by who reads instructions.
        Keyword::Onbuild | Keyword::Unknown => (Body::Nothing, None),
    }
}

fn split(args: Part<'_>) -> Body {
    Body::Words(args.between_blanks().into_iter().map(Part::word).collect())
}

/// The words of the JSON form; none where it is not that.
fn json(args: Part<'_>, rules: Rules) -> Option<Result<Vec<Word>, Refusal>> {
    match json::array(args.text(), rules.replaced) {
        Json::No => None,
        Json::Strings(strings) => {
            let word = |(text, at): (String, std::ops::Range<usize>)| Word {
                text,
                span: args.sub(at.start, at.end).span(),
                literal: true,
            };
            Some(Ok(strings.into_iter().map(word).collect()))
        }
        Json::Mixed(at) => {
            let other = args.sub(at.start, at.end);
            let what = format!("{} is no string: put double quotes around it", shown(other.text()));
            Some(Err(Refusal::form(other.span(), what)))
        }
    }
}

/// RUN, CMD, ENTRYPOINT, SHELL, and the command of HEALTHCHECK.
fn command(args: Part<'_>, rules: Rules) -> Parsed {
    match json(args, rules) {
        Some(Ok(words)) => (Body::Exec(words), None),
        Some(Err(refusal)) => (Body::Shell(args.joined()), Some(refusal)),
        None => (Body::Shell(args.joined()), None),
    }
}

fn from(args: Part<'_>) -> Parsed {
    let words = args.between_blanks();
    let Some(image) = words.first() else {
        return (Body::Nothing, None);
    };
    let is_as = words.get(1).is_some_and(|w| w.text().eq_ignore_ascii_case("as"));
    let alias = words.get(2).filter(|_| is_as);
    let comment = words.iter().find(|w| w.text().starts_with('#'));
    let refusal = match (words.len(), alias) {
        (1, _) => None,
        (3, Some(name)) => bad_name(*name),
        (2, _) if is_as => {
            Some(Refusal::content(args.span(), "FROM has AS without a name: write `FROM image AS name`"))
        }
        _ => Some(match comment {
            Some(word) => Refusal::content(word.span(), "a comment behind FROM: give it a line of its own"),
            None => {
                let what = "FROM takes an image and a name: write `FROM image` or `FROM image AS name`";
                Refusal::content(args.span(), what)
            }
        }),
    };
    (Body::From { image: image.word(), alias: alias.map(|a| a.word()) }, refusal)
}

fn bad_name(name: Part<'_>) -> Option<Refusal> {
    let lower = name.text().to_lowercase();
    let good = lower.starts_with(|c: char| c.is_ascii_lowercase())
        && lower.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.'));
    let what = || {
        let name = shown(name.text());
        format!("{name} cannot name a stage: start with a letter, go on with letters, digits and `-_.`")
    };
    (!good).then(|| Refusal::content(name.span(), what()))
}

/// ENV and LABEL: `key=value …`, or `key value` with all that follows.
fn pairs(keyword: Keyword, args: Part<'_>, rules: Rules) -> Parsed {
    let words = words::quoted(args, rules.escape);
    let Some(first) = words.first() else {
        let what = format!("{} has no name: write name=value behind it", keyword.name());
        return (Body::Nothing, Some(Refusal::content(args.span(), what)));
    };
    if !first.text().contains('=') {
        let (key, value) = args.split_blank();
        let what = || format!("{} has no value: write it behind `=`", shown(key.text()));
        let refusal = value.is_none().then(|| Refusal::form(key.span(), what()));
        let pair = Pair { key: key.word(), value: value.map(Part::value), span: args.span() };
        return (Body::Pairs(vec![pair]), refusal);
    }
    let odd = words.iter().find(|w| !w.text().contains('='));
    let no_equals = odd.map(|word| {
        let what = format!(
            "{} has no `=`: write name=value, with quotes around a value that has blanks",
            shown(word.text())
        );
        Refusal::form(word.span(), what)
    });
    let refusal = no_equals.or_else(|| blank_name(keyword, &words));
    (Body::Pairs(words.into_iter().map(pair).collect()), refusal)
}

fn arguments(args: Part<'_>, rules: Rules) -> Parsed {
    let words = words::quoted(args, rules.escape);
    if words.is_empty() {
        return (
            Body::Nothing,
            Some(Refusal::content(args.span(), "ARG has no name: write `ARG name` or `ARG name=value`")),
        );
    }
    let refusal = blank_name(Keyword::Arg, &words);
    (Body::Pairs(words.into_iter().map(pair).collect()), refusal)
}

fn blank_name(keyword: Keyword, words: &[Part<'_>]) -> Option<Refusal> {
    let word = words.iter().find(|w| w.text().starts_with('='))?;
    let what = format!(
        "{} of {} has no name: write name=value, without blanks around `=`",
        shown(word.text()),
        keyword.name()
    );
    Some(Refusal::content(word.span(), what))
}

fn pair(word: Part<'_>) -> Pair {
    let Some((key, _)) = word.text().split_once('=') else {
        return Pair { key: word.word(), value: None, span: word.span() };
    };
    Pair { key: word.sub(0, key.len()).word(), value: Some(word.from(key.len() + 1).value()), span: word.span() }
}

fn health(args: Part<'_>, rules: Rules) -> Parsed {
    let text = args.text();
    let end = text.find(is_ascii_space).unwrap_or(text.len());
    let kind = args.sub(0, end);
    let rest = args.from(end).trim_ascii_start();
    let (body, refusal) = if rest.is_empty() { (Body::Nothing, None) } else { command(rest, rules) };
    let is = |name: &str| kind.text().eq_ignore_ascii_case(name);
    let empty = matches!(&body, Body::Nothing) || matches!(&body, Body::Exec(words) if words.is_empty());
    let refuse = |what: String| refusal.clone().or_else(|| Some(Refusal::content(kind.span(), what)));
    if is("NONE") {
        let refusal =
            if empty { refusal } else { refuse("HEALTHCHECK NONE takes nothing more: remove what follows".into()) };
        return (Body::Words(vec![kind.word()]), refusal);
    }
    if !is("CMD") {
        return (
            body,
            refuse(format!(
                "{} is no HEALTHCHECK: write CMD before the command, or NONE alone",
                shown(kind.text())
            )),
        );
    }
    let refusal =
        if empty { refuse("HEALTHCHECK CMD has no command: write one behind it".into()) } else { refusal };
    (body, refusal)
}
