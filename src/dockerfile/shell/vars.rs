//! The variables of a script while it is read.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Arg, Assigned};
use crate::dockerfile::span::Span;
use crate::dockerfile::value::{Origin, Scope, Text, Trail, Value};

/// Variables followed in one script; what is assigned beyond it is unknown.
const MOST_VARIABLES: usize = 128;

/// The longest value that is kept.
pub const MOST_LENGTH: usize = 32 * 1024;

/// What a name stands for.
#[derive(Debug, Clone)]
pub struct Variable {
    pub text: Text,
    /// `NAME=value`, the whole, and the value alone.
    pub span: Span,
    pub value_span: Span,
    pub exported: bool,
    /// Of an array.
    pub items: Option<Vec<Arg>>,
    /// By `unset`.
    pub gone: bool,
}

/// What is known of a name.
#[derive(Debug, Clone)]
pub enum Found {
    Set(Text),
    /// Surely not set.
    Unset(Text),
    /// An ARG that nobody gave a value: unset in a build that gives nothing.
    NotGiven(Text),
    /// Nowhere in the file: the base image may set it.
    Nowhere,
}

#[derive(Debug, Clone, Default)]
pub struct Variables {
    map: BTreeMap<Rc<str>, Rc<Variable>>,
    /// More were assigned than are followed.
    full: bool,
}

impl Variables {
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.map.get(name).map(Rc::as_ref)
    }

    pub fn set(&mut self, name: &str, mut variable: Variable) {
        if variable.text.value.all().any(|v| v.len() > MOST_LENGTH) {
            variable.text.value = Value::Unknown;
        }
        if self.map.len() >= MOST_VARIABLES && !self.map.contains_key(name) {
            self.full = true;
            return;
        }
        self.map.insert(name.into(), Rc::new(variable));
    }

    /// Marks a name as seen by programs.
    pub fn export(&mut self, name: &str) {
        if let Some(variable) = self.map.get_mut(name) {
            Rc::make_mut(variable).exported = true;
        }
    }

    /// Nothing is known of it any more.
    pub fn forget(&mut self, name: &str, span: Span) {
        let text = Text { value: Value::Unknown, trail: Vec::new() };
        let exported = self.get(name).is_some_and(|v| v.exported);
        self.set(name, Variable { text, span, value_span: span, exported, items: None, gone: false });
    }

    pub fn find(&self, name: &str, scope: &Scope) -> Found {
        if let Some(variable) = self.get(name) {
            let mut trail = vec![Trail { name: name.to_owned(), origin: Origin::Shell(variable.span) }];
            add_trail(&mut trail, &variable.text.trail);
            let text = Text { value: variable.text.value.clone(), trail };
            return if variable.gone { Found::Unset(text) } else { Found::Set(text) };
        }
        if self.full {
            return Found::Set(Text::default());
        }
        let Some(variable) = scope.get(name) else { return Found::Nowhere };
        let mut trail = vec![Trail { name: name.to_owned(), origin: variable.origin }];
        add_trail(&mut trail, &variable.trail);
        if variable.unset {
            return Found::NotGiven(Text { value: Value::Unknown, trail });
        }
        let long = variable.value.all().any(|v| v.len() > MOST_LENGTH);
        Found::Set(Text { value: if long { Value::Unknown } else { variable.value.clone() }, trail })
    }

    /// What they are where either of two ways was taken.
    pub fn merge(self, other: &Self, scope: &Scope) -> Self {
        let mut out = self;
        let missing: Vec<Rc<str>> = other.map.keys().filter(|n| !out.map.contains_key(*n)).cloned().collect();
        for (name, variable) in &mut out.map {
            match other.map.get(name) {
                Some(same) if Rc::ptr_eq(same, variable) => {}
                Some(there) => *variable = Rc::new(either(variable, Some(there), name, scope)),
                None => *variable = Rc::new(either(variable, None, name, scope)),
            }
        }
        for name in missing {
            if let Some(there) = other.map.get(&name) {
                out.map.insert(name.clone(), Rc::new(either(there, None, &name, scope)));
            }
        }
        out.full |= other.full;
        out
    }

    /// As a command sees them, and about how many bytes that takes.
    pub fn assigned(&self) -> (BTreeMap<String, Assigned>, usize) {
        let mut size = 0;
        let map = self
            .map
            .iter()
            .filter(|(_, v)| !v.gone)
            .map(|(name, v)| {
                size += 200 + name.len() + v.text.value.all().map(str::len).sum::<usize>();
                (name.to_string(), v.assigned())
            })
            .collect();
        (map, size)
    }
}

impl Variable {
    pub fn assigned(&self) -> Assigned {
        Assigned { text: self.text.clone(), span: self.span, value_span: self.value_span, exported: self.exported }
    }
}

/// A variable that has one value or another; none: what the scope says.
fn either(one: &Variable, other: Option<&Rc<Variable>>, name: &str, scope: &Scope) -> Variable {
    let mut out = one.clone();
    out.items = None;
    match other {
        Some(other) => {
            out.text.value = one.text.value.or(&other.text.value);
            add_trail(&mut out.text.trail, &other.text.trail);
            out.exported |= other.exported;
            out.gone &= other.gone;
        }
        None => {
            let before = scope.get(name).map_or(&Value::Unknown, |v| &v.value);
            out.text.value = one.text.value.or(before);
            out.gone = false;
        }
    }
    out
}

/// Adds what is not there yet.
pub fn add_trail(trail: &mut Vec<Trail>, more: &[Trail]) {
    for item in more {
        if !trail.iter().any(|t| t.name == item.name) {
            trail.push(item.clone());
        }
    }
}
