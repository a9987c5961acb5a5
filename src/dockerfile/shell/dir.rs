//! The working directory, as `cd` changes it.

use super::HOLE;
use crate::dockerfile::value::Value;

/// The longest path that is followed.
const MOST_LENGTH: usize = 4096;

/// Directories that `pushd` leaves.
const MOST_DIRS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dir {
    pub value: Value,
    /// See [`super::Command::partly_dir`].
    pub partly: Option<String>,
}

impl Dir {
    /// Where a script starts.
    pub fn start(value: &Value) -> Self {
        let partly = (*value == Value::Unknown).then(|| format!("/{HOLE}"));
        Self { value: value.clone(), partly }
    }

    /// Another, as `cd` names it.
    pub fn to(&self, path: &Value) -> Self {
        let value = join(&self.value, path);
        let partly = match (path.known(), &self.partly) {
            (Some(path), Some(dir)) if value == Value::Unknown && !path.starts_with('~') => {
                Some(normal(&format!("{dir}/{path}"))).filter(|d| d.len() <= MOST_LENGTH)
            }
            _ => None,
        };
        Self { value, partly }
    }

    pub fn or(&self, other: &Self) -> Self {
        let partly = if self.partly == other.partly { self.partly.clone() } else { None };
        Self { value: self.value.or(&other.value), partly }
    }
}

/// The present directory, and those to go back to.
#[derive(Debug, Clone, Default)]
pub struct Dirs {
    pub now: Dir,
    /// For `cd -`.
    old: Dir,
    stack: Vec<Dir>,
}

impl Dirs {
    pub fn new(start: &Value) -> Self {
        Self { now: Dir::start(start), ..Self::default() }
    }

    /// `cd path`
    pub fn change(&mut self, path: &Value) {
        let next = if path.known() == Some("-") { self.old.clone() } else { self.now.to(path) };
        self.old = std::mem::replace(&mut self.now, next);
    }

    /// `pushd path`
    pub fn push(&mut self, path: &Value) {
        if self.stack.len() < MOST_DIRS {
            self.stack.push(self.now.clone());
        }
        self.change(path);
    }

    /// `popd`
    pub fn pop(&mut self) {
        let next = self.stack.pop().unwrap_or_default();
        self.old = std::mem::replace(&mut self.now, next);
    }

    pub fn or(&self, other: &Self) -> Self {
        let stack = if self.stack == other.stack { self.stack.clone() } else { Vec::new() };
        Self { now: self.now.or(&other.now), old: self.old.or(&other.old), stack }
    }
}

/// A directory as seen from another.
pub fn join(dir: &Value, path: &Value) -> Value {
    if *path == Value::Unknown || path.all().any(|p| p.len() > MOST_LENGTH) {
        return Value::Unknown;
    }
    if path.all().all(|p| p.starts_with('/')) {
        return Value::one_of(path.all().map(normal).collect());
    }
    let long = dir.all().any(|d| d.len() > MOST_LENGTH);
    if path.all().any(|p| p.starts_with('~')) || *dir == Value::Unknown || long {
        return Value::Unknown;
    }
    let both = dir.all().flat_map(|d| {
        path.all().map(move |p| if p.starts_with('/') { normal(p) } else { normal(&format!("{d}/{p}")) })
    });
    Value::one_of(both.collect())
}

/// A path without `.`, `..` and doubled slashes.
pub fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}
