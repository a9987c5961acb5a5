//! What the words of a script come to: quotes taken away, variables put in.

use std::ops::Range;

use super::build::{Builder, Field};
use super::scan::{ansi_end, closing, is_name, single_end};
use super::vars::{Found, Variable};
use super::walk::Walk;
use super::{Arg, HOLE};
use crate::dockerfile::syntax::Joined;
use crate::dockerfile::value::{Text, Value};

/// Expansions inside each other that are followed.
const MOST_DEPTH: usize = 16;

/// About what one of several words takes.
const FIELD_BYTES: usize = 256;

/// Words of an array that are kept.
const MOST_ITEMS: usize = 512;

impl Walk<'_> {
    /// The words that one of the script comes to: several where a variable holds a list, none where it is empty.
    pub fn word(&mut self, source: &Joined, range: Range<usize>) -> Vec<Arg> {
        let span = source.span(range.clone());
        if let Some(items) = self.whole_array(source, &range).filter(|i| self.spend(i.len() * FIELD_BYTES)) {
            return items.into_iter().map(|item| Arg { span, ..item }).collect();
        }
        let mut builder = Builder::new(true);
        self.expand(source, range, false, 0, &mut builder);
        let fields = builder.fields();
        if fields.len() > 1 && !self.spend(fields.len() * FIELD_BYTES) {
            return vec![Arg { text: Text::default(), partly: Some(HOLE.to_owned()), span }];
        }
        fields.into_iter().map(|f| Arg { text: f.text, partly: f.partly, span }).collect()
    }

    /// The same as one word, nothing divided: an assignment's value, a redirection's target.
    pub fn single(&mut self, source: &Joined, range: Range<usize>) -> Field {
        let mut builder = Builder::new(false);
        self.expand(source, range, false, 0, &mut builder);
        builder.field()
    }

    /// A pattern, with a backslash before what is quoted.
    pub fn pattern(&mut self, source: &Joined, range: Range<usize>, depth: usize) -> Text {
        let mut builder = Builder::pattern();
        self.expand(source, range, false, depth, &mut builder);
        builder.field().text
    }

    /// `${A[@]}` and `"${A[@]}"` alone: the words of the array.
    fn whole_array(&self, source: &Joined, range: &Range<usize>) -> Option<Vec<Arg>> {
        let text = source.text.get(range.clone())?;
        let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        let name =
            text.strip_prefix("${")?.strip_suffix("[@]}").or(text.strip_prefix("${")?.strip_suffix("[*]}"))?;
        is_name(name.as_bytes()).then(|| self.variables.get(name)?.items.clone()).flatten()
    }

    /// Adds what a range of the script comes to.
    pub fn expand(&mut self, source: &Joined, range: Range<usize>, quoted: bool, depth: usize, out: &mut Builder) {
        if depth > MOST_DEPTH || !self.spend(range.len()) {
            out.push_unknown();
            return;
        }
        let Some(text) = source.text.get(..range.end) else { return };
        let bytes = text.as_bytes();
        let mut at = range.start;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => at = escape(text, at, quoted, out),
                b'\'' if !quoted => {
                    out.start();
                    let end = single_end(bytes, at + 1).unwrap_or(bytes.len());
                    out.push(text.get(at + 1..end).unwrap_or_default(), true);
                    at = end + 1;
                }
                b'"' if !quoted => at = self.double(source, text, at, depth, out),
                b'$' => at = self.dollar(source, text, at, quoted, depth, out),
                b'`' => {
                    let end = closing(text, at).unwrap_or(bytes.len());
                    match self.backquoted(source, at + 1..end.saturating_sub(1)) {
                        Some(output) => out.push_text(&output, None, quoted),
                        None => out.push_unknown(),
                    }
                    at = end;
                }
                b'<' | b'>' if !quoted && bytes.get(at + 1) == Some(&b'(') => {
                    at = self.substitution(source, text, at).0;
                    out.push_unknown();
                }
                _ => {
                    let special = |b: &u8| matches!(b, b'\\' | b'\'' | b'"' | b'$' | b'`' | b'<' | b'>');
                    let rest = bytes.get(at + 1..).unwrap_or_default();
                    let end = rest.iter().position(special).map_or(bytes.len(), |n| at + 1 + n);
                    out.push(text.get(at..end).unwrap_or_default(), quoted);
                    at = end;
                }
            }
        }
    }

    /// `"…"` at `at`.
    fn double(&mut self, source: &Joined, text: &str, at: usize, depth: usize, out: &mut Builder) -> usize {
        out.start();
        let end = closing(text, at).unwrap_or(text.len() + 1);
        let inner = (at + 1).min(text.len())..(end - 1).min(text.len());
        self.expand(source, inner, true, depth + 1, out);
        end
    }

    /// What a `$` begins; gives the place behind it.
    fn dollar(
        &mut self,
        source: &Joined,
        text: &str,
        at: usize,
        quoted: bool,
        depth: usize,
        out: &mut Builder,
    ) -> usize {
        let bytes = text.as_bytes();
        match bytes.get(at + 1) {
            Some(b'\'') if !quoted => {
                out.start();
                let end = ansi_end(bytes, at + 2).unwrap_or(bytes.len());
                out.push(&ansi(text.get(at + 2..end).unwrap_or_default()), true);
                end + 1
            }
            Some(b'"') if !quoted => self.double(source, text, at + 1, depth, out),
            Some(b'(') => {
                let (end, output) = self.substitution(source, text, at);
                match output {
                    Some(output) => out.push_text(&output, None, quoted),
                    None => out.push_unknown(),
                }
                end
            }
            Some(b'{') => {
                let end = closing(text, at).unwrap_or(text.len() + 1);
                self.parameter(source, at + 2..(end - 1).min(text.len()), quoted, depth + 1, out);
                end
            }
            Some(b) if b.is_ascii_alphabetic() || *b == b'_' => {
                let rest = bytes.get(at + 1..).unwrap_or_default();
                let length = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
                let end = at + 1 + length;
                self.plain_variable(text.get(at + 1..end).unwrap_or_default(), quoted, out);
                end
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                out.push_unknown();
                at + 2
            }
            _ => {
                out.push("$", quoted);
                at + 1
            }
        }
    }

    /// `$NAME`.
    pub fn plain_variable(&mut self, name: &str, quoted: bool, out: &mut Builder) {
        let text = match self.variables.find(name, self.input.scope) {
            Found::Set(text) | Found::Unset(text) | Found::NotGiven(text) => text,
            Found::Nowhere => Text::default(),
        };
        if self.spend(text.value.all().map(str::len).sum()) {
            out.push_text(&text, None, quoted);
        } else {
            out.push_unknown();
        }
    }

    /// Reads the commands of `$(…)` or `<(…)` at `at`; gives the place behind it, and what they print if that is
    /// known.
    fn substitution(&mut self, source: &Joined, text: &str, at: usize) -> (usize, Option<Text>) {
        let end = closing(text, at).unwrap_or(text.len() + 1);
        let inner = at + 2..(end - 1).min(text.len());
        let arithmetic = text.get(at..).is_some_and(|t| t.starts_with("$(("));
        let output = if arithmetic { None } else { self.nested(&slice(source, inner)) };
        (end.min(text.len()), output)
    }

    /// The commands of `` `…` ``, where a backslash stands before inner backquotes.
    fn backquoted(&mut self, source: &Joined, range: Range<usize>) -> Option<Text> {
        let text = source.text.get(range.clone()).unwrap_or_default();
        let mut inner = Joined::default();
        let mut from = 0;
        for (index, _) in text.match_indices('\\') {
            let escaped = matches!(text.as_bytes().get(index + 1), Some(b'`' | b'$' | b'\\'));
            if escaped && index >= from {
                inner.push(text.get(from..index).unwrap_or_default(), source.offset(range.start + from));
                from = index + 1;
            }
        }
        inner.push(text.get(from..).unwrap_or_default(), source.offset(range.start + from));
        self.nested(&inner)
    }

    /// Takes an assignment, `NAME=value` in any of its forms.
    pub fn assign(&mut self, source: &Joined, range: Range<usize>, exported: bool) -> Option<(String, Variable)> {
        let text = source.text.get(range.clone())?;
        let (name, value) = text.split_once('=')?;
        let from = range.start + name.len() + 1;
        let (name, append) = name.strip_suffix('+').map_or((name, false), |n| (n, true));
        let (name, element) = name.split_once('[').map_or((name, false), |(n, _)| (n, true));
        let span = source.span(range.clone());
        let value_span = source.span(from..range.end);
        let mut items = None;
        let mut result = if let Some(list) = value.strip_prefix('(').and_then(|v| v.strip_suffix(')')) {
            let (all, text) = self.array(source, from + 1..from + 1 + list.len());
            items = Some(all);
            text
        } else {
            self.single(source, from..range.end).text
        };
        let known = self.variables.get(name);
        if append {
            items = known.and_then(|v| v.items.clone()).zip(items).map(|(mut old, new)| {
                old.extend(new);
                old
            });
            let separator = if items.is_some() { " " } else { "" };
            let before = match self.variables.find(name, self.input.scope) {
                Found::Set(text) | Found::Unset(text) | Found::NotGiven(text) => text,
                Found::Nowhere => Text::default(),
            };
            let mut builder = Builder::new(false);
            builder.push_text(&before, None, true);
            builder.push(separator, true);
            builder.push_text(&result, None, true);
            result = builder.field().text;
        }
        if element {
            result = Text::default();
        }
        let exported = exported
            || known.is_some_and(|v| v.exported)
            || (known.is_none() && self.input.scope.contains_key(name));
        Some((name.to_owned(), Variable { text: result, span, value_span, exported, items, gone: false }))
    }

    /// The words of `(…)`, and all of them in one text.
    fn array(&mut self, source: &Joined, range: Range<usize>) -> (Vec<Arg>, Text) {
        let inner = slice(source, range);
        let tokens = super::lex::tokens(&inner.text);
        let mut items = Vec::new();
        for token in tokens.tokens {
            if token.kind == super::lex::Kind::Word && items.len() < MOST_ITEMS {
                items.extend(self.word(&inner, token.range));
            }
        }
        let mut builder = Builder::new(false);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                builder.push(" ", true);
            }
            builder.push_text(&item.text, item.partly.as_deref(), true);
        }
        (items, builder.field().text)
    }
}

/// A part of a text, with its places.
pub fn slice(source: &Joined, range: Range<usize>) -> Joined {
    let mut out = Joined::default();
    let Some(text) = source.text.get(range.clone()) else { return out };
    let first = source.pieces.partition_point(|(at, _)| *at <= range.start);
    out.pieces.push((0, source.offset(range.start)));
    let more = source.pieces.get(first..).unwrap_or_default();
    out.pieces
        .extend(more.iter().take_while(|(at, _)| *at < range.end).map(|(at, file)| (at - range.start, *file)));
    text.clone_into(&mut out.text);
    out
}

/// A word without its quotes, its variables still in it: the text of a script inside of a script.
pub fn unquoted(source: &Joined, range: Range<usize>) -> Joined {
    let mut out = Joined::default();
    let Some(text) = source.text.get(..range.end) else { return out };
    let bytes = text.as_bytes();
    let mut at = range.start;
    let mut double = false;
    let mut from = at;
    let keep = |out: &mut Joined, from: usize, to: usize| {
        if let Some(text) = text.get(from..to).filter(|t| !t.is_empty()) {
            out.push(text, source.offset(from));
            // Pieces of the source that start inside of this one.
            let first = source.pieces.partition_point(|(at, _)| *at <= from);
            let base = out.text.len() - text.len();
            for (at, file) in source.pieces.get(first..).unwrap_or_default().iter().take_while(|(at, _)| *at < to) {
                out.pieces.push((base + at - from, *file));
            }
        }
    };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\'' if !double => {
                keep(&mut out, from, at);
                let end = single_end(bytes, at + 1).unwrap_or(bytes.len());
                keep(&mut out, at + 1, end);
                at = end + 1;
                from = at;
            }
            b'"' => {
                keep(&mut out, from, at);
                double = !double;
                at += 1;
                from = at;
            }
            b'\\' => {
                let escapes = !double || matches!(bytes.get(at + 1), Some(b'"' | b'$' | b'`' | b'\\' | b'\n'));
                if escapes {
                    keep(&mut out, from, at);
                    from = at + 1;
                }
                at += 2;
            }
            b'$' | b'`' => match closing(text, at)
                .filter(|_| *byte == b'`' || matches!(bytes.get(at + 1), Some(b'(' | b'{')))
            {
                Some(end) => at = end,
                None => at += 1,
            },
            _ => at += 1,
        }
    }
    keep(&mut out, from, range.end);
    out
}

/// A backslash at `at`; gives the place behind what it escapes.
fn escape(text: &str, at: usize, quoted: bool, out: &mut Builder) -> usize {
    let Some(next) = text.get(at + 1..).and_then(|t| t.chars().next()) else {
        out.push("\\", true);
        return at + 1;
    };
    match next {
        '\n' => {}
        '$' | '`' | '"' | '\\' => out.push(next.encode_utf8(&mut [0; 4]), true),
        _ if quoted => {
            out.push("\\", true);
            out.push(next.encode_utf8(&mut [0; 4]), true);
        }
        _ => out.push(next.encode_utf8(&mut [0; 4]), true),
    }
    at + 1 + next.len_utf8()
}

/// The text of `$'…'`.
fn ansi(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(other @ ('\'' | '"' | '\\')) => out.push(other),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    out
}

/// A value with a change made to each text that it may be; unknown where one of them cannot be changed.
pub fn map_values(value: &Value, mut change: impl FnMut(&str) -> Option<String>) -> Value {
    if *value == Value::Unknown {
        return Value::Unknown;
    }
    value.all().map(&mut change).collect::<Option<Vec<String>>>().map_or(Value::Unknown, Value::one_of)
}
