//! Comments that accept findings: `# imagelint: ignore[rule, rule] reason` above an instruction or between its lines,
//! `stage ignore[…]` for the stage it stands in, `file ignore[…]` for the file; without brackets, for all rules.

#[cfg(test)]
mod tests;

use memchr::memmem;

use super::Found;
use crate::catalog::names::nearest;
use crate::dockerfile::edit::Edit;
use crate::dockerfile::reading::Reading;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Document, Keyword};

/// The word that a comment for this program starts with.
const MARK: &str = "imagelint:";

/// How it is written, for those who wrote it otherwise.
const FORM: &str = "write `# imagelint: ignore[RULE] REASON`, with `stage` or `file` before `ignore` for more than \
                    the next instruction";

/// Comments of one file, and rules of one comment, that are read.
const MOST: usize = 1_000;

/// What a comment covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Instruction(usize),
    Stage(usize),
    File,
    /// Nothing stands behind it.
    Nothing,
}

/// One comment that was understood.
#[derive(Debug)]
struct Ignore {
    span: Span,
    scope: Scope,
    /// Empty: all.
    rules: Vec<Named>,
    reason: String,
    used: bool,
}

#[derive(Debug)]
struct Named {
    rule: String,
    span: Span,
    used: bool,
}

/// The comments of one file.
#[derive(Debug, Default)]
pub(super) struct Ignores {
    all: Vec<Ignore>,
    malformed: Vec<(Span, String)>,
}

/// What an ignored finding is told with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Covered {
    pub comment: Span,
    pub reason: String,
}

impl Ignores {
    pub fn read(reading: &Reading) -> Self {
        let mut out = Self::default();
        let document = &reading.document;
        if memmem::find(&document.text.as_bytes().to_ascii_lowercase(), MARK.as_bytes()).is_none() {
            return out;
        }
        for comment in &document.comments {
            out.add(reading, comment.span, None);
        }
        // The comments of a script in a heredoc are text to the parser.
        for (index, instruction) in document.instructions.iter().enumerate() {
            for heredoc in &instruction.heredocs {
                let mut at = heredoc.body.start;
                for line in document.slice(heredoc.body).split_inclusive('\n') {
                    let text = line.trim_end();
                    let start = at + (text.len() - text.trim_start().len());
                    if text.trim_start().starts_with('#') {
                        out.add(reading, Span::new(start, at + text.len()), Some(index));
                    }
                    at += line.len();
                }
            }
        }
        out
    }

    fn add(&mut self, reading: &Reading, span: Span, inside: Option<usize>) {
        match parse(reading.document.slice(span), span.start) {
            None => {}
            Some(_) if self.all.len() + self.malformed.len() > MOST => {}
            Some(_) if self.all.len() + self.malformed.len() == MOST => {
                self.malformed
                    .push((span, format!("this and later comments are not read: there are more than {MOST}")));
            }
            Some(Err(what)) => self.malformed.push((span, what)),
            Some(Ok(parsed)) => self.all.push(Ignore {
                span,
                scope: scope(reading, span, inside, parsed.reach),
                rules: parsed.rules,
                reason: parsed.reason,
                used: false,
            }),
        }
    }

    /// The nearest comment that covers a finding of a rule at a place. All that cover it count as used.
    pub fn cover(&mut self, reading: &Reading, rule: &str, at: Span) -> Option<Covered> {
        let instruction = instruction_at(&reading.document, at.start);
        let stage = instruction.and_then(|i| reading.stage_of(i));
        let mut nearest: Option<(Scope, Covered)> = None;
        for ignore in &mut self.all {
            let here = match ignore.scope {
                Scope::Instruction(index) => instruction == Some(index),
                Scope::Stage(index) => stage == Some(index),
                Scope::File => true,
                Scope::Nothing => false,
            };
            let all = ignore.rules.is_empty();
            let named = ignore.rules.iter_mut().find(|n| n.rule == rule);
            if !here || (named.is_none() && !all) {
                continue;
            }
            ignore.used = true;
            if let Some(named) = named {
                named.used = true;
            }
            if nearest.as_ref().is_none_or(|(scope, _)| ignore.scope < *scope) {
                nearest = Some((ignore.scope, Covered { comment: ignore.span, reason: ignore.reason.clone() }));
            }
        }
        nearest.map(|(_, covered)| covered)
    }

    /// Comments that are not understood, name no rule, or cover nothing. `known` are the ids of all rules; `runs` is
    /// whether a rule had its say in this run, so that what it does not find is not there.
    pub fn complaints(
        &self,
        document: &Document,
        known: &[&'static str],
        runs: &dyn Fn(&str) -> bool,
    ) -> Vec<(&'static str, Found)> {
        let mut out = Vec::new();
        for (span, what) in &self.malformed {
            out.push(("ignore-malformed", Found::warning(*span, what.clone()).help(FORM)));
        }
        for ignore in &self.all {
            if ignore.rules.is_empty() && !ignore.used {
                let found =
                    Found::note(ignore.span, "this comment ignores nothing: there is no finding that it covers");
                out.push(("ignore-unmatched", unneeded(found, document, ignore.span)));
            }
            let idle = ignore.rules.iter().all(|n| !n.used && known.contains(&n.rule.as_str()) && runs(&n.rule));
            for named in ignore.rules.iter().filter(|n| !n.used) {
                if !known.contains(&named.rule.as_str()) {
                    out.push(("ignore-unknown-rule", unknown(named, known)));
                } else if runs(&named.rule) {
                    let message = format!("`{}` is ignored here, and not found", named.rule);
                    let found = Found::note(named.span, message);
                    out.push((
                        "ignore-unmatched",
                        if idle { unneeded(found, document, ignore.span) } else { found },
                    ));
                }
            }
        }
        out
    }
}

fn unneeded(found: Found, document: &Document, comment: Span) -> Found {
    let line = document.lines.line(comment.start);
    let start = document.lines.start(line).unwrap_or(comment.start);
    let end = document.lines.start(line + 1).unwrap_or(document.text.len());
    found.suggest("remove the comment", vec![Edit::new(Span::new(start, end), "")])
}

fn unknown(named: &Named, known: &[&'static str]) -> Found {
    let found = Found::warning(named.span, format!("there is no rule `{}`", named.rule));
    match nearest(&named.rule, known.iter().copied(), 1).first() {
        Some(near) => found
            .help(format!("did you mean `{near}`?"))
            .suggest(format!("write `{near}`"), vec![Edit::new(named.span, *near)]),
        None => found.help("`imagelint rules` lists all"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Next,
    Stage,
    File,
}

#[derive(Debug)]
struct Parsed {
    reach: Reach,
    rules: Vec<Named>,
    reason: String,
}

/// Reads a comment from its `#` on; none where it is not meant for this program. `base` is its place in the file.
fn parse(comment: &str, base: usize) -> Option<Result<Parsed, String>> {
    let text = comment.trim_start_matches('#').trim_start();
    let mark = text.get(..MARK.len())?;
    if !mark.eq_ignore_ascii_case(MARK) {
        return None;
    }
    let offset = |rest: &str| base + (comment.len() - rest.len());
    let rest = text.get(MARK.len()..)?.trim_start();
    let (word, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len()));
    let (reach, rest) = match word {
        "stage" => (Reach::Stage, behind.trim_start()),
        "file" => (Reach::File, behind.trim_start()),
        _ => (Reach::Next, rest),
    };
    let Some(behind) = rest.strip_prefix("ignore") else {
        let word = rest.split_whitespace().next().unwrap_or_default();
        return Some(Err(match word {
            "" => "`ignore` is missing in this comment".to_owned(),
            word => format!("`{word}` is not understood in this comment"),
        }));
    };
    let (rules, reason) = match behind.chars().next() {
        None => (Vec::new(), ""),
        Some('[') => {
            let list = behind.get(1..).unwrap_or_default();
            let Some((list, reason)) = list.split_once(']') else {
                return Some(Err("`]` is missing behind the rules that this comment ignores".to_owned()));
            };
            let mut rules = Vec::new();
            let mut at = offset(behind) + 1;
            for part in list.split(',') {
                let rule = part.trim();
                let start = at + (part.len() - part.trim_start().len());
                at += part.len() + 1;
                if !rule.is_empty() {
                    let span = Span::new(start, start + rule.len());
                    rules.push(Named { rule: rule.to_ascii_lowercase(), span, used: false });
                }
            }
            if rules.len() > MOST {
                return Some(Err(format!("this comment names more than {MOST} rules")));
            }
            if rules.is_empty() {
                return Some(Err("`ignore[]` names no rule; `ignore` alone is for all rules".to_owned()));
            }
            (rules, reason)
        }
        Some(c) if c.is_whitespace() => (Vec::new(), behind),
        Some('=' | ':') => return Some(Err("rules to be ignored stand in brackets".to_owned())),
        Some(_) => {
            let word = rest.split_whitespace().next().unwrap_or_default();
            return Some(Err(format!("`{word}` is not understood in this comment")));
        }
    };
    let reason = reason.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '#' | ':' | '-')).trim_end();
    Some(Ok(Parsed { reach, rules, reason: reason.to_owned() }))
}

fn scope(reading: &Reading, comment: Span, inside: Option<usize>, reach: Reach) -> Scope {
    let instructions = &reading.document.instructions;
    let within = inside.or_else(|| {
        instruction_at(&reading.document, comment.start)
            .filter(|i| instructions.get(*i).is_some_and(|i| i.span.contains(comment)))
    });
    let next = || {
        let index = instructions.partition_point(|i| i.span.start < comment.end);
        (index < instructions.len()).then_some(index)
    };
    match reach {
        Reach::File => Scope::File,
        Reach::Next => within.or_else(next).map_or(Scope::Nothing, Scope::Instruction),
        Reach::Stage => {
            let opens = |i: &usize| instructions.get(*i).is_some_and(|i| i.keyword == Keyword::From);
            let index = match within {
                Some(index) => reading.stage_of(index),
                None => match next().filter(opens) {
                    Some(from) => reading.stage_of(from),
                    None => {
                        let before = instructions.partition_point(|i| i.span.start < comment.start).checked_sub(1);
                        // Among the global ARGs it is for the first stage.
                        before.and_then(|i| reading.stage_of(i)).or((!reading.stages.is_empty()).then_some(0))
                    }
                },
            };
            index.map_or(Scope::Nothing, Scope::Stage)
        }
    }
}

/// The instruction that an offset stands in.
pub(super) fn instruction_at(document: &Document, offset: usize) -> Option<usize> {
    let index = document.instructions.partition_point(|i| i.span.start <= offset).checked_sub(1)?;
    // What stands right behind the last byte still belongs to it: a missing argument.
    document.instructions.get(index).filter(|i| offset <= i.span.end).map(|_| index)
}
