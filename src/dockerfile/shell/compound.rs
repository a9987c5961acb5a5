//! Branches and loops: what may run, and what a variable may be behind them.

use std::ops::Range;

use super::scan::{closing, is_name};
use super::tree::{Joint, List, Node};
use super::vars::Variable;
use super::walk::{State, Walk};
use super::word::slice;
use crate::dockerfile::syntax::Joined;
use crate::dockerfile::value::{Text, Trail, Value};

impl Walk<'_> {
    pub(super) fn conditional(&mut self, source: &Joined, arms: &[(List, List)], otherwise: Option<&List>) {
        for (index, (condition, _)) in arms.iter().enumerate() {
            if index == 0 {
                self.list(source, condition);
            } else {
                self.maybe(|walk| walk.list(source, condition));
            }
        }
        let bodies: Vec<&List> = arms.iter().map(|(_, body)| body).chain(otherwise).collect();
        self.branches(source, &bodies, otherwise.is_none());
    }

    /// One of several lists runs, or perhaps none.
    pub(super) fn branches(&mut self, source: &Joined, bodies: &[&List], none: bool) {
        let before = self.save();
        let mut ends: Vec<State> = Vec::new();
        for body in bodies {
            self.restore(before.clone());
            self.maybe(|walk| walk.list(source, body));
            if !leaves(source, body) {
                ends.push(self.save());
            }
        }
        if none {
            ends.push(before);
        }
        if let Some(first) = ends.pop() {
            self.restore(first);
        }
        for end in &ends {
            self.merge(end);
        }
    }

    pub(super) fn for_loop(
        &mut self,
        source: &Joined,
        name: &Range<usize>,
        words: Option<&[Range<usize>]>,
        body: &List,
    ) {
        let mut all = Vec::new();
        let mut unknown = words.is_none();
        let mut trail: Vec<Trail> = Vec::new();
        for word in words.unwrap_or_default() {
            for arg in self.word(source, word.clone()) {
                unknown |= arg.text.value == Value::Unknown;
                all.extend(arg.text.value.all().map(str::to_owned));
                super::vars::add_trail(&mut trail, &arg.text.trail);
            }
        }
        // What a pattern for file names stands for is not known.
        unknown |= all.iter().any(|v| v.contains(['*', '?']));
        let value = if unknown { Value::Unknown } else { Value::one_of(all) };
        let span = source.span(name.clone());
        let value_span = match words {
            Some([first, .., last]) => source.span(first.start..last.end),
            Some([one]) => source.span(one.clone()),
            _ => span,
        };
        let name = source.text.get(name.clone()).unwrap_or_default();
        let before = self.save();
        if is_name(name.as_bytes()) {
            let text = Text { value, trail };
            let variable =
                Variable { text, span: span.to(value_span), value_span, exported: false, items: None, gone: false };
            self.variables.set(name, variable);
        }
        self.maybe(|walk| walk.list(source, body));
        self.merge(&before);
    }

    /// The command substitutions inside of `[[ … ]]`.
    pub(super) fn test(&mut self, source: &Joined, range: &Range<usize>) {
        let text = source.text.get(..range.end).unwrap_or_default();
        let mut at = range.start;
        while let Some(next) = text.get(at..).and_then(|t| t.find("$(")) {
            let start = at + next;
            let Some(end) = closing(text, start) else { break };
            self.nested(&slice(source, start + 2..end - 1));
            at = end;
        }
    }

    /// What `(( … ))` sets is not known afterwards.
    pub(super) fn arithmetic(&mut self, source: &Joined, range: &Range<usize>) {
        let text = source.text.get(range.clone()).unwrap_or_default();
        if !text.contains(['=', '+', '-']) {
            return;
        }
        let span = source.span(range.clone());
        for name in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if self.variables.get(name).is_some() {
                self.variables.forget(name, span);
            }
        }
    }
}

/// A branch behind which nothing goes on.
fn leaves(source: &Joined, list: &List) -> bool {
    let last = list.items.last().and_then(|i| i.pipelines.last());
    let Some((Joint::First | Joint::And, pipeline)) = last else { return false };
    match pipeline.stages.as_slice() {
        [Node::Simple(simple)] => {
            let word = simple.words.first().and_then(|w| source.text.get(w.clone()));
            matches!(word, Some("exit" | "false"))
        }
        _ => false,
    }
}
