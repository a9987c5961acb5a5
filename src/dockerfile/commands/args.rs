//! Arguments of a command line: options with their values, and the rest.

use super::Setting;
use crate::dockerfile::shell::{Arg, Command};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Document;
use crate::dockerfile::value::{Text, Value};

/// One argument, or an option with its value.
#[derive(Debug, Clone)]
pub enum Item<'a> {
    /// With its dashes; a value where the option takes one or `=` gives one.
    Option(String, Option<OptionValue>),
    Operand(&'a Arg),
}

/// What an option was given.
#[derive(Debug, Clone, Default)]
pub struct OptionValue {
    pub text: Text,
    /// See [`Arg::partly`].
    pub partly: Option<String>,
    /// The value alone, without quotes around it.
    pub span: Span,
}

impl OptionValue {
    pub fn setting(self) -> Setting {
        Setting { text: self.text, span: self.span, file: None }
    }

    pub fn known_or_partly(&self) -> &str {
        self.text.value.all().next().or(self.partly.as_deref()).unwrap_or_default()
    }
}

/// Splits arguments the way GNU programs do; `valued` names the options that take the next word.
pub fn items<'a>(document: &Document, args: &'a [Arg], valued: &[&str]) -> Vec<Item<'a>> {
    let mut out = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.known_or_partly();
        if text == "--" {
            out.extend(rest.by_ref().map(Item::Operand));
            break;
        }
        if !text.starts_with('-') || text == "-" {
            out.push(Item::Operand(arg));
            continue;
        }
        if let Some((name, _)) = text.split_once('=').filter(|_| text.starts_with("--")) {
            out.push(Item::Option(name.to_owned(), Some(behind(document, arg, name.len() + 1))));
            continue;
        }
        if text.starts_with("--") || text.len() <= 2 {
            let value = valued.contains(&text).then(|| rest.next().map(|v| whole(document, v))).flatten();
            out.push(Item::Option(text.to_owned(), value));
            continue;
        }
        cluster(document, arg, &mut rest, valued, &mut out);
    }
    out
}

/// `-yq`, `-rfile`, `-qr file`.
fn cluster<'a>(
    document: &Document,
    arg: &'a Arg,
    rest: &mut std::slice::Iter<'a, Arg>,
    valued: &[&str],
    out: &mut Vec<Item<'a>>,
) {
    let text = arg.known_or_partly();
    for (at, char) in text.char_indices().skip(1) {
        let name = format!("-{char}");
        let behind_it = at + char.len_utf8();
        if valued.contains(&name.as_str()) {
            let value = if behind_it < text.len() {
                let equals = usize::from(text.as_bytes().get(behind_it) == Some(&b'='));
                Some(behind(document, arg, behind_it + equals))
            } else {
                rest.next().map(|v| whole(document, v))
            };
            out.push(Item::Option(name, value));
            return;
        }
        out.push(Item::Option(name, None));
    }
}

/// The words that are no options, when options are of no interest.
pub fn operands<'a>(document: &Document, args: &'a [Arg], valued: &[&str]) -> Vec<&'a Arg> {
    let operand = |i| match i {
        Item::Operand(arg) => Some(arg),
        Item::Option(..) => None,
    };
    items(document, args, valued).into_iter().filter_map(operand).collect()
}

/// A whole word as a value.
pub fn whole(document: &Document, arg: &Arg) -> OptionValue {
    OptionValue { text: arg.text.clone(), partly: arg.partly.clone(), span: bare(document, arg.span) }
}

/// What stands behind the first `skip` bytes of a word.
pub fn behind(document: &Document, arg: &Arg, skip: usize) -> OptionValue {
    let cut = |text: &str| text.get(skip..).unwrap_or_default().to_owned();
    let value = match &arg.text.value {
        Value::Known(text) => Value::Known(cut(text)),
        Value::OneOf(texts) => Value::one_of(texts.iter().map(|t| cut(t)).collect()),
        Value::Unknown => Value::Unknown,
    };
    let prefix = arg.known_or_partly().get(..skip).unwrap_or_default();
    let span = [arg.span, bare(document, arg.span)]
        .into_iter()
        .find(|s| document.slice(*s).starts_with(prefix))
        .map_or(arg.span, |s| bare(document, Span::new(s.start + skip, s.end)));
    let text = Text { value, trail: arg.text.trail.clone() };
    OptionValue { text, partly: arg.partly.as_deref().map(cut), span }
}

/// A span without the quotes around it.
pub fn bare(document: &Document, span: Span) -> Span {
    match document.slice(span).as_bytes() {
        [first @ (b'"' | b'\''), inner @ .., last] if first == last && !inner.contains(first) => {
            Span::new(span.start + 1, span.end - 1)
        }
        _ => span,
    }
}

/// The texts that a word may be: one where it is known, what is known of it where it is not. True: it is sure.
pub fn readings(arg: &Arg) -> Vec<(&str, bool)> {
    match &arg.text.value {
        Value::Known(text) => vec![(text, true)],
        Value::OneOf(texts) => texts.iter().map(|t| (t.as_str(), false)).collect(),
        Value::Unknown => vec![(arg.known_or_partly(), false)],
    }
}

/// A program's name without its folder, also where the folder is not known: `$VENV/bin/pip` is `pip`.
pub fn program(arg: &Arg) -> &str {
    let text = arg.known_or_partly();
    let name = text.rsplit(['/', '\\']).next().unwrap_or(text);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Whether it is a Python, or a variable that may be one.
pub fn is_python(name: &str) -> bool {
    let version = |v: &str| v.chars().all(|c| c.is_ascii_digit() || c == '.' || super::HOLE.contains(c));
    ["python", "pypy"].into_iter().any(|p| name.strip_prefix(p).is_some_and(version)) || name == super::HOLE
}

/// The module of `python -m module`, and the index of the word behind it.
pub fn python_module(command: &Command) -> Option<(&str, usize)> {
    if !is_python(program(command.words.first()?)) {
        return None;
    }
    let mut at = 1;
    loop {
        match command.words.get(at)?.known_or_partly() {
            "-m" => return Some((command.words.get(at + 1)?.known_or_partly(), at + 2)),
            "-W" | "-X" => at += 2,
            option if option.starts_with('-') => at += 1,
            _ => return None,
        }
    }
}
