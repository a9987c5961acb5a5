//! Words of a Dockerfile changed where they are written out: in place, or in the ARG, ENV or assignment that they are
//! made of.

use std::ops::Range;

use crate::dockerfile::edit::Edit;
use crate::dockerfile::shell::Command;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Body, Keyword, Pair};
use crate::dockerfile::value::{Origin, Variable};
use crate::lint::dockerfile::Lint;
use crate::model::escape;

/// Variables that are followed, one through another.
const DEEPEST: usize = 8;

/// Characters that a shell takes for itself outside of quotes.
const SHELL: &[char] = &['<', '>', ';', '&', '|', '(', ')', '*', '?', '[', ']', '#', '~', '{', '}', '!', ' '];

/// Where a text stands, and what gives its variables their values.
#[derive(Clone, Copy)]
pub struct Spot<'a> {
    pub span: Span,
    pub instruction: usize,
    /// A word of a command; none: of the Dockerfile's own.
    pub command: Option<&'a Command>,
}

/// A Dockerfile whose words are changed.
pub struct Words<'l, 'a> {
    pub lint: &'l Lint<'a>,
    /// Places that are meant to change with a variable that they share.
    pub together: Vec<Span>,
}

/// One part of a word as it is written.
struct Piece<'t> {
    /// Bytes of the written text.
    raw: Range<usize>,
    kind: PieceKind<'t>,
    quoted: bool,
}

#[derive(Clone, Copy)]
enum PieceKind<'t> {
    Text(&'t str),
    Variable(&'t str),
}

impl<'l, 'a> Words<'l, 'a> {
    pub fn new(lint: &'l Lint<'a>) -> Self {
        Self { lint, together: Vec::new() }
    }

    /// Edits that make the text at a place, which comes to `old`, come to `new`; or why there are none.
    pub fn change(&self, spot: Spot<'_>, old: &str, new: &str) -> Result<Vec<Edit>, String> {
        self.at(spot, old, new, &mut Vec::new())
    }

    /// The line of a place, from 1.
    pub fn line(&self, span: Span) -> usize {
        self.lint.line(span)
    }

    /// The instruction that a place is in.
    pub fn instruction_at(&self, span: Span) -> Option<usize> {
        let instructions = &self.lint.reading.document.instructions;
        let at = instructions.partition_point(|i| i.span.start <= span.start).checked_sub(1)?;
        instructions.get(at).filter(|i| i.span.contains(span)).map(|_| at)
    }

    fn at(&self, spot: Spot<'_>, old: &str, new: &str, way: &mut Vec<Span>) -> Result<Vec<Edit>, String> {
        if old == new {
            return Ok(Vec::new());
        }
        if !is_plain(new) {
            return Err(format!("`{}` cannot be written there as it is", escape(new.as_bytes())));
        }
        if way.len() >= DEEPEST {
            return Err("it is made of too many variables".to_owned());
        }
        way.push(spot.span);
        let line = self.line(spot.span);
        let raw = self.lint.reading.document.slice(spot.span);
        let pieces = pieces(raw).map_err(|what| format!("{what} in line {line}"))?;
        let mut texts = Vec::new();
        for piece in &pieces {
            texts.push(match piece.kind {
                PieceKind::Text(text) => text.to_owned(),
                PieceKind::Variable(name) => self.value(spot, name)?,
            });
        }
        if texts.concat() != old {
            return Err(format!("line {line} does not spell it out"));
        }
        let (from, to, middle) = difference(old, new);
        let mut start = 0;
        let mut fits: Option<(&Piece<'_>, usize, &str)> = None;
        for (piece, text) in pieces.iter().zip(&texts) {
            let end = start + text.len();
            // Of two that meet where something is put in, what is written out goes first.
            let better = fits.is_none_or(|(p, ..)| matches!(p.kind, PieceKind::Variable(_)));
            if from >= start && to <= end && better {
                fits = Some((piece, start, text));
            }
            start = end;
        }
        let Some((piece, start, text)) = fits else {
            return Err(format!("line {line} puts it together of several parts"));
        };
        match piece.kind {
            PieceKind::Variable(name) => {
                let value = replaced(text, from - start..to - start, middle);
                self.variable(spot, name, text, &value, way)
            }
            PieceKind::Text(_) => self.literal(spot, raw, piece, text, from - start..to - start, middle),
        }
    }

    /// A part of what is written out, replaced.
    fn literal(
        &self,
        spot: Spot<'_>,
        raw: &str,
        piece: &Piece<'_>,
        text: &str,
        range: Range<usize>,
        middle: &str,
    ) -> Result<Vec<Edit>, String> {
        let wide = widened(text, range.clone());
        let (Some(head), Some(tail)) = (text.get(wide.start..range.start), text.get(range.end..wide.end)) else {
            return Err("it holds other than plain letters".to_owned());
        };
        let new = format!("{head}{middle}{tail}");
        let at = |offset: usize| spot.span.start + piece.raw.start + offset;
        let special = |t: &str| match spot.command {
            Some(_) => t.contains(SHELL),
            None => t.contains(char::is_whitespace),
        };
        let needs = special(middle) && !piece.quoted && !self.is_quoted(spot.span);
        if !needs {
            return Ok(vec![Edit::new(Span::new(at(wide.start), at(wide.end)), new)]);
        }
        if self.is_inside_quotes(spot) {
            return Err(format!("line {} has it inside of other quotes", self.line(spot.span)));
        }
        if raw.len() == piece.raw.len() {
            return Ok(vec![Edit::new(spot.span, format!("\"{}\"", replaced(text, range, middle)))]);
        }
        Ok(vec![Edit::new(Span::new(at(wide.start), at(wide.end)), format!("\"{new}\""))])
    }

    /// Whether quotes stand right around a span.
    fn is_quoted(&self, span: Span) -> bool {
        let text = &self.lint.reading.document.text;
        let before = text.get(..span.start).and_then(|t| t.chars().next_back());
        let after = text.get(span.end..).and_then(|t| t.chars().next());
        before.is_some_and(|c| matches!(c, '"' | '\'')) && before == after
    }

    /// Whether the place is a part of a text in double quotes: `bash -c "pip install torch"`.
    fn is_inside_quotes(&self, spot: Spot<'_>) -> bool {
        let Some(instruction) = self.lint.reading.instruction(spot.instruction) else { return true };
        let before = self.lint.reading.document.slice(Span::new(instruction.span.start, spot.span.start));
        let mut open = false;
        let mut escaped = false;
        for c in before.chars() {
            match c {
                '\\' => escaped = !escaped,
                '"' if !escaped => open = !open,
                _ => {}
            }
            escaped &= c == '\\';
        }
        open
    }

    /// What a variable comes to at a place.
    fn value(&self, spot: Spot<'_>, name: &str) -> Result<String, String> {
        let assigned = spot.command.and_then(|c| c.assigned.get(name)).map(|a| a.text.value.known());
        let known = assigned.unwrap_or_else(|| self.variable_at(spot, name).and_then(|v| v.value.known()));
        known.map(str::to_owned).ok_or_else(|| format!("what {name} comes to is not known"))
    }

    fn variable_at(&self, spot: Spot<'_>, name: &str) -> Option<&'l Variable> {
        self.lint.reading.scopes.get(spot.instruction)?.get(name)
    }

    /// A variable, as it is seen at a place, changed where it is set.
    pub fn set(&self, spot: Spot<'_>, name: &str, old: &str, new: &str) -> Result<Vec<Edit>, String> {
        self.variable(spot, name, old, new, &mut Vec::new())
    }

    /// The variable's value changed where it is set.
    fn variable(
        &self,
        spot: Spot<'_>,
        name: &str,
        old: &str,
        new: &str,
        way: &mut Vec<Span>,
    ) -> Result<Vec<Edit>, String> {
        if let Some(assigned) = spot.command.and_then(|c| c.assigned.get(name)) {
            let inner = Spot { span: assigned.value_span, ..spot };
            way.push(assigned.span);
            if let Some(line) = self.other_use(name, Some(spot.instruction), None, way) {
                return Err(format!("{name} is used in line {line} too"));
            }
            return self.at(inner, old, new, way);
        }
        let origin = self.variable_at(spot, name).map(|v| v.origin);
        let (pair, instruction) = match origin {
            Some(Origin::Arg(span) | Origin::Env(span)) => {
                self.pair(span).ok_or_else(|| format!("where {name} is set is not known"))?
            }
            Some(Origin::Given) => return Err(format!("{name} is given by a build argument or a file of builds")),
            Some(Origin::Base) => return Err(format!("{name} comes from the base image")),
            Some(Origin::Shell(_) | Origin::Predefined) | None => {
                return Err(format!("{name} is not set in the file"));
            }
        };
        let Some(value) = &pair.value else { return Err(format!("{name} has no default in the file")) };
        way.push(pair.span);
        if let Some(line) = self.other_use(name, None, origin, way) {
            return Err(format!("{name} is used in line {line} too"));
        }
        self.at(Spot { span: value.span, instruction, command: None }, old, new, way)
    }

    /// The ENV or ARG pair at a span.
    fn pair(&self, span: Span) -> Option<(&'l Pair, usize)> {
        let at = self.instruction_at(span)?;
        let Body::Pairs(pairs) = &self.lint.reading.instruction(at)?.body else { return None };
        pairs.iter().find(|p| p.span == span).map(|p| (p, at))
    }

    /// The line of a use of a variable that should not change with it.
    fn other_use(&self, name: &str, within: Option<usize>, origin: Option<Origin>, way: &[Span]) -> Option<usize> {
        let document = &self.lint.reading.document;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for (at, _) in document.text.match_indices(name) {
            let before = document.text.get(..at)?;
            let after = document.text.get(at + name.len()..)?;
            let refers = before.ends_with('$') || before.ends_with("${") || before.ends_with("${#");
            let span = Span::new(at, at + name.len());
            if !refers || after.starts_with(is_name) || document.comments.iter().any(|c| c.span.contains(span)) {
                continue;
            }
            let Some(instruction) = self.instruction_at(span) else { continue };
            if within.is_some_and(|w| w != instruction) {
                continue;
            }
            let same = |v: &Variable| origin.is_none_or(|o| o == v.origin);
            let here = Spot { span, instruction, command: None };
            let shares = within.is_some() || self.variable_at(here, name).is_none_or(same);
            let meant = way.iter().chain(&self.together).any(|s| s.contains(span));
            if shares && !meant {
                return Some(document.lines.line(at));
            }
        }
        None
    }

    /// A new line before an instruction.
    pub fn before(&self, instruction: usize, line: &str) -> Option<Edit> {
        let at = self.lint.reading.instruction(instruction)?.span.start;
        Some(Edit::new(Span::new(at, at), format!("{line}{}", self.line_end())))
    }

    /// A new line behind an instruction.
    pub fn behind(&self, instruction: usize, line: &str) -> Option<Edit> {
        let at = self.lint.reading.instruction(instruction)?.span.end;
        Some(Edit::new(Span::new(at, at), format!("{}{line}", self.line_end())))
    }

    fn line_end(&self) -> &'static str {
        if self.lint.reading.document.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// `ENV NAME="value"`; none where the name is no variable's or the value holds a line end.
    pub fn assignment(&self, keyword: Keyword, name: &str, value: &str) -> Option<String> {
        assignment(keyword, name, value, self.lint.reading.document.escape)
    }
}

/// `ENV NAME="value"` in a file with that escape character; none where it cannot be written.
pub fn assignment(keyword: Keyword, name: &str, value: &str, escape: char) -> Option<String> {
    (is_variable(name) && !value.chars().any(char::is_control))
        .then(|| format!("{} {name}=\"{}\"", keyword.name(), escaped(value, escape)))
}

/// A value for within double quotes of ENV or ARG.
pub fn escaped(value: &str, escape: char) -> String {
    let mut out = String::new();
    for c in value.chars() {
        if matches!(c, '"' | '$') || c == escape {
            out.push(escape);
        }
        out.push(c);
    }
    out
}

/// Whether it may be the name of a variable.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether it means itself inside of double quotes, in a shell and in a Dockerfile.
pub fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic() || c == ' ') && !text.contains(['"', '\'', '\\', '$', '`'])
}

/// The parts of a word; an error where it holds what only a shell can work out.
fn pieces(raw: &str) -> Result<Vec<Piece<'_>>, &'static str> {
    let mut out = Vec::new();
    let mut quote: Option<char> = None;
    let mut start = 0;
    let mut rest = raw.char_indices().peekable();
    let piece = |range: Range<usize>, quoted: bool| {
        let text = raw.get(range.clone()).filter(|t| !t.is_empty())?;
        Some(Piece { raw: range, kind: PieceKind::Text(text), quoted })
    };
    while let Some((at, c)) = rest.next() {
        match c {
            '\\' if quote != Some('\'') => return Err("an escape stands"),
            '`' if quote != Some('\'') => return Err("a command's output stands"),
            '"' | '\'' if quote.is_none() || quote == Some(c) => {
                out.extend(piece(start..at, quote.is_some()));
                quote = if quote.is_none() { Some(c) } else { None };
                start = at + 1;
            }
            '$' if quote != Some('\'') => {
                let tail = raw.get(at + 1..).unwrap_or_default();
                let (name, length) = match tail.strip_prefix('{') {
                    Some(inner) => match inner.split_once('}') {
                        Some((name, _)) if is_variable(name) => (name, name.len() + 3),
                        _ => return Err("a value is worked out"),
                    },
                    None => {
                        let end = tail.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                        let name = tail.get(..end.unwrap_or(tail.len())).unwrap_or_default();
                        if !is_variable(name) {
                            return Err("a value is worked out");
                        }
                        (name, name.len() + 1)
                    }
                };
                out.extend(piece(start..at, quote.is_some()));
                let kind = PieceKind::Variable(name);
                out.push(Piece { raw: at..at + length, kind, quoted: quote.is_some() });
                start = at + length;
                while rest.peek().is_some_and(|(next, _)| *next < start) {
                    rest.next();
                }
            }
            _ => {}
        }
    }
    out.extend(piece(start..raw.len(), quote.is_some()));
    Ok(out)
}

/// The bytes of `old` that are other in `new`, and what stands there instead.
fn difference<'n>(old: &str, new: &'n str) -> (usize, usize, &'n str) {
    let head: usize = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let rest = |t: &str| t.get(head..).unwrap_or_default().chars().rev().collect::<Vec<_>>();
    let tail: usize = rest(old).iter().zip(&rest(new)).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    (head, old.len() - tail, new.get(head..new.len() - tail).unwrap_or_default())
}

/// The words that a range touches: `cu126` rather than its `6`.
fn widened(text: &str, range: Range<usize>) -> Range<usize> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let head = before.chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    let tail = after.chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    range.start - head..range.end + tail
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    let head = text.get(..range.start).unwrap_or_default();
    let tail = text.get(range.end..).unwrap_or_default();
    format!("{head}{with}{tail}")
}
