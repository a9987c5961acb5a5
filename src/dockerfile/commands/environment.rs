//! Settings that a command finds in its environment: variables, and what `pip config set` wrote before.

use std::collections::BTreeSet;

use super::Setting;
use super::args::{Item, items, whole};
use super::pip::invocation;
use crate::dockerfile::reading::{Base, Reading};
use crate::dockerfile::shell::Command;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Body, Instruction};
use crate::dockerfile::value::{Origin, Text};

/// Settings that are kept.
const MOST_CONFIGURED: usize = 256;

/// A setting of `pip config set`.
pub struct Configured {
    command: usize,
    instruction: usize,
    key: String,
    setting: Setting,
}

/// All that `pip config set` wrote, in order.
pub fn configured(reading: &Reading) -> Vec<Configured> {
    let document = &reading.document;
    let mut out = Vec::new();
    for (index, command) in reading.commands.iter().enumerate() {
        let Some(invocation) = invocation(command).filter(|i| i.verb == "config") else { continue };
        let operands: Vec<_> = items(document, invocation.args, &["--editor"])
            .into_iter()
            .filter_map(|i| match i {
                Item::Operand(arg) => Some(arg),
                Item::Option(..) => None,
            })
            .collect();
        if out.len() >= MOST_CONFIGURED {
            break;
        }
        if let [verb, key, value] = operands.as_slice() {
            let key = key.known_or_partly().rsplit('.').next().unwrap_or_default().replace('_', "-");
            if verb.known_or_partly() == "set" {
                let setting = whole(document, value).setting();
                out.push(Configured { command: index, instruction: command.instruction, key, setting });
            }
        }
    }
    out
}

/// What one command finds.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    pub reading: &'a Reading,
    pub configured: &'a [Configured],
    pub index: usize,
    pub command: &'a Command,
}

impl Environment<'_> {
    /// A variable that the program sees, with the place of its value.
    pub fn variable(&self, name: &str) -> Option<Setting> {
        if let Some(assigned) = self.command.assigned.get(name).filter(|a| a.exported) {
            let span = super::args::bare(&self.reading.document, assigned.value_span);
            return Some(Setting { text: assigned.text.clone(), span, file: None });
        }
        let variable = self.reading.scopes.get(self.command.instruction)?.get(name).filter(|v| !v.unset)?;
        let span = match variable.origin {
            Origin::Arg(span) | Origin::Env(span) | Origin::Shell(span) => self.value_span(span),
            Origin::Given | Origin::Base | Origin::Predefined => Span::default(),
        };
        let text = Text { value: variable.value.clone(), trail: variable.trail.clone() };
        Some(Setting { text, span, file: None })
    }

    /// A setting of `pip config`, of this stage or one that it is FROM.
    pub fn configured(&self, key: &str) -> Option<Setting> {
        if !self.configured.iter().any(|c| c.key == key && c.command < self.index) {
            return None;
        }
        let mut stages = BTreeSet::new();
        let mut next = self.reading.stage_of(self.command.instruction);
        while let Some(stage) = next.filter(|s| stages.insert(*s)) {
            next = match self.reading.stages.get(stage)?.base {
                Base::Stage(parent) => Some(parent),
                Base::Image(_) | Base::Scratch | Base::None => None,
            };
        }
        let here = |c: &&Configured| {
            c.key == key
                && c.command < self.index
                && self.reading.stage_of(c.instruction).is_some_and(|s| stages.contains(&s))
        };
        self.configured.iter().rev().find(here).map(|c| c.setting.clone())
    }

    /// The value of the pair that stands at a span.
    fn value_span(&self, span: Span) -> Span {
        let instructions = &self.reading.document.instructions;
        let at = instructions.partition_point(|i| i.span.start <= span.start);
        let own = at.checked_sub(1).and_then(|at| instructions.get(at));
        let value = own.and_then(|i| pair_value(i, span));
        super::args::bare(&self.reading.document, value.unwrap_or(span))
    }
}

fn pair_value(instruction: &Instruction, span: Span) -> Option<Span> {
    match &instruction.body {
        Body::Pairs(pairs) => pairs.iter().find(|p| p.span == span)?.value.as_ref().map(|v| v.span),
        _ => None,
    }
}
