//! `${…}`: a variable, and what is done to its value.

use std::ops::Range;

use super::build::Builder;
use super::pattern::Pattern;
use super::scan::{closing, is_name, single_end};
use super::vars::{Found, Variable};
use super::walk::Walk;
use super::word::map_values;
use crate::dockerfile::syntax::Joined;
use crate::dockerfile::value::{Text, Value};

impl Walk<'_> {
    /// What stands between `${` and `}`.
    pub fn parameter(
        &mut self,
        source: &Joined,
        range: Range<usize>,
        quoted: bool,
        depth: usize,
        out: &mut Builder,
    ) {
        let inner = source.text.get(range.clone()).unwrap_or_default().to_owned();
        if let Some(name) = inner.strip_prefix('#').filter(|n| is_name(n.as_bytes())) {
            let text = self.value_of(name);
            let value = map_values(&text.value, |v| Some(v.chars().count().to_string()));
            out.push_text(&Text { value, trail: text.trail }, None, quoted);
            return;
        }
        if let Some(name) = inner.strip_prefix('!').filter(|n| is_name(n.as_bytes())) {
            match self.value_of(name).value.known().map(str::to_owned) {
                Some(name) if is_name(name.as_bytes()) => self.plain_variable(&name, quoted, out),
                _ => out.push_unknown(),
            }
            return;
        }
        let length = inner.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let name = inner.get(..length).unwrap_or_default();
        if !is_name(name.as_bytes()) {
            out.push_unknown();
            return;
        }
        let mut at = length;
        let mut found = self.variables.find(name, self.input.scope);
        if let Some(index) = inner.get(at..).and_then(|t| t.strip_prefix('[')) {
            let Some((index, _)) = index.split_once(']') else {
                out.push_unknown();
                return;
            };
            found = self.element(name, index, found);
            at += index.len() + 2;
        }
        let from = range.start + at;
        let operation = Operation { source, name, depth, quoted, word: from..range.end };
        self.operate(operation, found, out);
    }

    fn value_of(&self, name: &str) -> Text {
        match self.variables.find(name, self.input.scope) {
            Found::Set(text) | Found::Unset(text) | Found::NotGiven(text) => text,
            Found::Nowhere => Text::default(),
        }
    }

    /// One word of an array, or all of them.
    fn element(&self, name: &str, index: &str, found: Found) -> Found {
        if matches!(index, "@" | "*") {
            return found;
        }
        let items = self.variables.get(name).and_then(|v| v.items.as_ref());
        let item = items.zip(index.parse::<usize>().ok()).and_then(|(items, index)| items.get(index));
        match item {
            Some(item) => Found::Set(item.text.clone()),
            // Of what is no array, the first is the whole.
            None if index == "0" && items.is_none() => found,
            None => Found::Nowhere,
        }
    }

    fn operate(&mut self, mut operation: Operation<'_>, found: Found, out: &mut Builder) {
        let text = operation.source.text.get(operation.word.clone()).unwrap_or_default();
        let cost = match &found {
            Found::Set(text) => text.value.all().map(str::len).sum::<usize>(),
            _ => 0,
        };
        if !self.spend(cost) {
            out.push_unknown();
            return;
        }
        let colon = text.starts_with(':');
        let mut rest = text.bytes().skip(usize::from(colon));
        let first = rest.next();
        match first {
            None if !colon => match found {
                Found::Set(text) | Found::Unset(text) | Found::NotGiven(text) => {
                    out.push_text(&text, None, operation.quoted);
                }
                Found::Nowhere => out.push_unknown(),
            },
            Some(operator @ (b'-' | b'=' | b'+' | b'?')) => {
                operation.word.start += usize::from(colon) + 1;
                self.default_or_other(&operation, found, operator, colon, out);
            }
            _ => self.changed(operation, found, text, out),
        }
    }

    /// `:-`, `:=`, `:+`, `:?` and the same without the colon.
    fn default_or_other(
        &mut self,
        operation: &Operation<'_>,
        found: Found,
        operator: u8,
        colon: bool,
        out: &mut Builder,
    ) {
        let (value, trail, surely_unset) = match found {
            Found::Set(text) => (text.value, text.trail, false),
            Found::Unset(text) | Found::NotGiven(text) => (Value::Unknown, text.trail, true),
            Found::Nowhere => (Value::Unknown, Vec::new(), false),
        };
        let empty = |v: &str| colon && v.is_empty();
        // All that it may be are set, or none is.
        let set = if surely_unset {
            Some(false)
        } else if value == Value::Unknown {
            None
        } else if value.all().all(|v| !empty(v)) {
            Some(true)
        } else if value.all().all(empty) {
            Some(false)
        } else {
            None
        };
        let quoted = operation.quoted;
        match (operator, set) {
            (b'+', Some(false)) => out.push_text(&Text { value: Value::Known(String::new()), trail }, None, quoted),
            (b'+', Some(true)) | (b'-' | b'=', Some(false)) => {
                if operator == b'=' {
                    self.assign_default(operation);
                }
                out.push_text(&Text { value: Value::Known(String::new()), trail }, None, quoted);
                self.expand(operation.source, operation.word.clone(), quoted, operation.depth, out);
            }
            (b'-' | b'=' | b'?', Some(true)) => out.push_text(&Text { value, trail }, None, quoted),
            // The build stops here unless it is given.
            (b'?', _) => out.push_text(&Text { value: Value::Unknown, trail }, None, quoted),
            (_, None) => {
                let mut builder = Builder::new(false);
                self.expand(operation.source, operation.word.clone(), true, operation.depth, &mut builder);
                let word = builder.field();
                let merged = if operator == b'+' {
                    let mut all: Vec<Value> = Vec::new();
                    for v in value.all() {
                        all.push(if empty(v) { Value::Known(String::new()) } else { word.text.value.clone() });
                    }
                    all.into_iter().reduce(|a, b| a.or(&b)).unwrap_or_default()
                } else {
                    let kept: Vec<String> = value.all().filter(|v| !empty(v)).map(str::to_owned).collect();
                    if kept.is_empty() { Value::Unknown } else { Value::one_of(kept).or(&word.text.value) }
                };
                let mut text = Text { value: merged, trail };
                super::vars::add_trail(&mut text.trail, &word.text.trail);
                // `torch${V:+==$V}`: where nothing is known of V, the text is one that it may be.
                let known = word.partly.or_else(|| word.text.value.known().map(str::to_owned));
                out.push_text(&text, known.as_deref().filter(|_| operator == b'+'), quoted);
            }
            _ => out.push_unknown(),
        }
    }

    /// `${X:=value}` sets the variable too.
    fn assign_default(&mut self, operation: &Operation<'_>) {
        let mut builder = Builder::new(false);
        self.expand(operation.source, operation.word.clone(), true, operation.depth, &mut builder);
        let text = builder.field().text;
        let span = operation.source.span(operation.word.clone());
        let exported = self.input.scope.contains_key(operation.name);
        let variable = Variable { text, span, value_span: span, exported, items: None, gone: false };
        self.variables.set(operation.name, variable);
    }

    /// `#`, `%`, `/`, `:1:2`, `^`, `,`.
    fn changed(&mut self, operation: Operation<'_>, found: Found, text: &str, out: &mut Builder) {
        let (Found::Set(value) | Found::Unset(value)) = found else {
            out.push_unknown();
            return;
        };
        let change = match text.as_bytes() {
            [b'#', b'#', ..] => self.cut(&operation, 2, Cut::Start, true),
            [b'#', ..] => self.cut(&operation, 1, Cut::Start, false),
            [b'%', b'%', ..] => self.cut(&operation, 2, Cut::End, true),
            [b'%', ..] => self.cut(&operation, 1, Cut::End, false),
            [b'/', ..] => self.replacement(&operation, text),
            [b':', ..] => substring(text),
            b"^^" => Some(Change::Case { upper: true, all: true }),
            b"^" => Some(Change::Case { upper: true, all: false }),
            b",," => Some(Change::Case { upper: false, all: true }),
            b"," => Some(Change::Case { upper: false, all: false }),
            _ => None,
        };
        let Some(change) = change else {
            out.push_unknown();
            return;
        };
        let work: usize = value.value.all().map(|v| change.work(v)).sum();
        if !self.work(work) {
            out.push_unknown();
            return;
        }
        let changed = map_values(&value.value, |v| change.apply(v));
        out.push_text(&Text { value: changed, trail: value.trail }, None, operation.quoted);
    }

    fn cut(&mut self, operation: &Operation<'_>, skip: usize, end: Cut, longest: bool) -> Option<Change> {
        let range = operation.word.start + skip..operation.word.end;
        let pattern = self.pattern(operation.source, range, operation.depth).value;
        Some(Change::Cut { pattern: Pattern::new(pattern.known()?), end, longest })
    }

    fn replacement(&mut self, operation: &Operation<'_>, text: &str) -> Option<Change> {
        let all = text.starts_with("//");
        let from = 1 + usize::from(all);
        let slash = unquoted_slash(text, from);
        let pattern_end = slash.unwrap_or(text.len());
        let base = operation.word.start;
        let anchor = text.as_bytes().get(from).copied().filter(|b| !all && matches!(b, b'#' | b'%'));
        let from = from + usize::from(anchor.is_some());
        let pattern = self.pattern(operation.source, base + from..base + pattern_end, operation.depth).value;
        let mut builder = Builder::new(false);
        if let Some(slash) = slash {
            let range = base + slash + 1..operation.word.end;
            self.expand(operation.source, range, false, operation.depth, &mut builder);
        }
        let by = builder.field().text.value.known()?.to_owned();
        Some(Change::Replace { pattern: Pattern::new(pattern.known()?), by, all, anchor })
    }
}

/// `${name…}`: where the operator and its word stand.
struct Operation<'s> {
    source: &'s Joined,
    name: &'s str,
    depth: usize,
    quoted: bool,
    word: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Start,
    End,
}

/// Something done to a value.
enum Change {
    Cut { pattern: Pattern, end: Cut, longest: bool },
    Replace { pattern: Pattern, by: String, all: bool, anchor: Option<u8> },
    Part { from: i64, length: Option<i64> },
    Case { upper: bool, all: bool },
}

impl Change {
    fn work(&self, text: &str) -> usize {
        match self {
            Self::Cut { pattern, .. } | Self::Replace { pattern, .. } => pattern.work(text),
            Self::Part { .. } | Self::Case { .. } => text.len(),
        }
    }

    fn apply(&self, text: &str) -> Option<String> {
        match self {
            Self::Cut { pattern, end: Cut::Start, longest } => pattern.cut_start(text, *longest),
            Self::Cut { pattern, end: Cut::End, longest } => pattern.cut_end(text, *longest),
            Self::Replace { pattern, by, anchor: Some(b'#'), .. } => {
                let rest = pattern.cut_start(text, true)?;
                Some(if rest.len() < text.len() { format!("{by}{rest}") } else { rest })
            }
            Self::Replace { pattern, by, anchor: Some(_), .. } => {
                let rest = pattern.cut_end(text, true)?;
                Some(if rest.len() < text.len() { format!("{rest}{by}") } else { rest })
            }
            Self::Replace { pattern, by, all, anchor: None } => pattern.replace(text, by, *all),
            Self::Part { from, length } => {
                let chars: Vec<char> = text.chars().collect();
                let count = i64::try_from(chars.len()).ok()?;
                let start = if *from < 0 { count + from } else { *from }.clamp(0, count);
                let end = match length {
                    None => count,
                    Some(length) if *length < 0 => count + length,
                    Some(length) => start.saturating_add(*length),
                };
                let range = usize::try_from(start).ok()?..usize::try_from(end.clamp(start, count)).ok()?;
                Some(chars.get(range)?.iter().collect())
            }
            Self::Case { upper, all } => {
                let change =
                    |c: char| if *upper { c.to_uppercase().to_string() } else { c.to_lowercase().to_string() };
                let changed =
                    text.char_indices().map(|(i, c)| if *all || i == 0 { change(c) } else { c.to_string() });
                Some(changed.collect())
            }
        }
    }
}

/// `:from` or `:from:length`, numbers only.
fn substring(text: &str) -> Option<Change> {
    let text = text.strip_prefix(':')?;
    let (from, length) = text.split_once(':').map_or((text, None), |(f, l)| (f, Some(l)));
    let number = |t: &str| t.trim().trim_start_matches('(').trim_end_matches(')').parse::<i64>().ok();
    Some(Change::Part { from: number(from)?, length: length.map(number).map_or(Some(None), |n| n.map(Some))? })
}

/// The slash between a pattern and its replacement.
fn unquoted_slash(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    // A slash right at the start is one of the pattern.
    let start = at;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'\'' => at = single_end(bytes, at + 1)? + 1,
            b'"' | b'`' => at = closing(text, at)?,
            b'$' if matches!(bytes.get(at + 1), Some(b'{' | b'(')) => at = closing(text, at)?,
            b'/' if at > start => return Some(at),
            _ => at += 1,
        }
    }
}
