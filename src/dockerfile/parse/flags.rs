//! Which flags an instruction takes, and what their values may be.

use super::problem::{Refusal, meant, shown};
use super::values;
use super::words::RawFlag;
use crate::dockerfile::syntax::{Body, Keyword};

/// What a flag's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// May be left out.
    Bool,
    Text,
    /// A text; the flag may be given more than once.
    Texts,
    Mount,
    Device,
    Duration,
    /// One of these.
    OneOf(&'static [&'static str]),
    Count,
}

const RUN: &[(&str, Kind)] = &[
    ("mount", Kind::Mount),
    ("network", Kind::OneOf(&["default", "none", "host"])),
    ("security", Kind::OneOf(&["insecure", "sandbox"])),
    ("device", Kind::Device),
];
const COPY: &[(&str, Kind)] = &[
    ("from", Kind::Text),
    ("chown", Kind::Text),
    ("chmod", Kind::Text),
    ("link", Kind::Bool),
    ("parents", Kind::Bool),
    ("exclude", Kind::Texts),
];
const ADD: &[(&str, Kind)] = &[
    ("chown", Kind::Text),
    ("chmod", Kind::Text),
    ("link", Kind::Bool),
    ("keep-git-dir", Kind::Bool),
    ("checksum", Kind::Text),
    ("unpack", Kind::Bool),
    ("exclude", Kind::Texts),
];
const FROM: &[(&str, Kind)] = &[("platform", Kind::Text)];
const HEALTHCHECK: &[(&str, Kind)] = &[
    ("interval", Kind::Duration),
    ("timeout", Kind::Duration),
    ("start-period", Kind::Duration),
    ("start-interval", Kind::Duration),
    ("retries", Kind::Count),
];

/// None: whatever is written is let be.
fn taken(keyword: Keyword, body: &Body) -> Option<&'static [(&'static str, Kind)]> {
    match keyword {
        Keyword::Run => Some(RUN),
        Keyword::Copy => Some(COPY),
        Keyword::Add => Some(ADD),
        Keyword::From => Some(FROM),
        Keyword::Healthcheck if matches!(body, Body::Words(_)) => None,
        Keyword::Healthcheck => Some(HEALTHCHECK),
        Keyword::Arg | Keyword::Stopsignal | Keyword::Unknown => None,
        _ => Some(&[]),
    }
}

/// The first flag that BuildKit would refuse.
pub(super) fn check(keyword: Keyword, body: &Body, flags: &[RawFlag<'_>]) -> Option<Refusal> {
    let taken = taken(keyword, body)?;
    let mut seen: Vec<&str> = Vec::new();
    for flag in flags {
        let name = name(flag);
        let refuse = |what: String| Some(Refusal::content(flag.part.span(), what));
        let Some((_, kind)) = taken.iter().find(|(known, _)| *known == name) else {
            return refuse(unknown(keyword, name, taken));
        };
        let many = matches!(kind, Kind::Texts | Kind::Mount | Kind::Device);
        if !many && seen.contains(&name) {
            return refuse(format!("a second `--{name}`: {} takes one, remove the other", keyword.name()));
        }
        seen.push(name);
        if let Err(what) = value(flag, *kind) {
            return refuse(format!("`--{name}` {what}"));
        }
    }
    None
}

fn name<'a>(flag: &'a RawFlag<'_>) -> &'a str {
    let text = flag.text.strip_prefix("--").unwrap_or(&flag.text);
    text.split_once('=').map_or(text, |(name, _)| name)
}

fn unknown(keyword: Keyword, name: &str, taken: &[(&'static str, Kind)]) -> String {
    let flag = shown(&format!("--{name}"));
    let keyword = keyword.name();
    let names = || taken.iter().map(|(name, _)| *name);
    if taken.is_empty() {
        return format!("{keyword} takes no flags: remove {flag}, or write `--` before it if it is no flag");
    }
    match meant(name, names()) {
        Some(near) => format!("{keyword} has no flag {flag}: did you mean `--{near}`?"),
        None => {
            let all: Vec<String> = names().map(|name| format!("--{name}")).collect();
            format!("{keyword} has no flag {flag}: it takes {}", all.join(", "))
        }
    }
}

/// What is wrong with the value, to be read behind the flag's name.
fn value(flag: &RawFlag<'_>, kind: Kind) -> Result<(), String> {
    let Some((_, value)) = flag.text.split_once('=') else {
        return if kind == Kind::Bool { Ok(()) } else { Err("has no value: write it behind a `=`".to_owned()) };
    };
    match kind {
        Kind::Text | Kind::Texts => Ok(()),
        Kind::Bool if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") => Ok(()),
        Kind::Bool => Err(format!("is {}: write true or false, or nothing at all", shown(value))),
        Kind::OneOf(all) if all.contains(&value) => Ok(()),
        Kind::OneOf(all) => Err(format!("is {}: write one of {}", shown(value), all.join(", "))),
        Kind::Mount => values::mount(value),
        Kind::Device => values::device(value),
        Kind::Duration => values::interval(value),
        Kind::Count if value.is_empty() || value.parse::<i32>().is_ok_and(|n| n >= 0) => Ok(()),
        Kind::Count => Err(format!("is {}: write a number that is not negative", shown(value))),
    }
}

#[cfg(test)]
mod tests {
    use crate::dockerfile::parse::tests::refused;

    fn ok(line: &str) {
        assert_eq!(refused(line), None, "{line}");
    }

    fn bad(line: &str, why: &str) {
        let said = refused(line).unwrap_or_default();
        assert!(said.contains(why), "{line}: {said}");
    }

    #[test]
    fn flags_are_those_of_the_instruction() {
        ok("COPY --from=a --chown=b --chmod=1 --link --parents --exclude=x --exclude=y a b");
        ok("ADD --keep-git-dir --checksum=sha256:x --unpack=false --link=TRUE a b");
        ok("RUN --mount=type=cache,target=/x --mount=type=bind --network=none --security=insecure --device=a x");
        bad("COPY --keep-git-dir a b", "no flag `--keep-git-dir`");
        bad("ADD --from=x a b", "no flag");
        bad("RUN --mont=type=cache x", "did you mean `--mount`");
        bad("ENV --a b=c", "takes no flags");
        bad("WORKDIR ---x /", "takes no flags");
        bad("SHELL --x [\"a\"]", "takes no flags");
        bad("ONBUILD --x RUN y", "takes no flags");
        // BuildKit does not look at these.
        ok("ARG --x a");
        ok("STOPSIGNAL --x 9");
        ok("HEALTHCHECK --x NONE");
        ok("ENV -- --a=b");
    }

    #[test]
    fn flags_are_given_once_and_with_values() {
        bad("COPY --from=a --from=b a b", "a second `--from`");
        bad("COPY --link --link=false a b", "a second `--link`");
        bad("COPY --from a b", "has no value");
        bad("COPY --link= a b", "true or false");
        bad("COPY --link=1 a b", "true or false");
        ok("COPY --from= a b");
        bad("RUN --network=bridge x", "one of default, none, host");
        bad("RUN --network= x", "one of");
        bad("RUN --security=x y", "one of");
        bad("HEALTHCHECK --retries=-1 CMD x", "not negative");
        bad("HEALTHCHECK --retries=x CMD y", "not negative");
        bad("HEALTHCHECK --retries=99999999999 CMD y", "not negative");
        ok("HEALTHCHECK --retries=+3 --interval=5m30s --timeout= CMD y");
    }
}
