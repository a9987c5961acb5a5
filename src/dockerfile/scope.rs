//! The variables of a stage, instruction by instruction: ARG, ENV, what the base image and the builder set.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::expand::{Expander, Work};
use super::syntax::{Pair, Word};
use super::value::{Origin, Scope, Text, Value, Variable};

/// Bytes of the variables in force at one place; a file with more has unknown variables from there on.
const MOST_HELD: usize = 4 << 20;

/// Bytes that may be copied for the scopes of one file: each ENV between two instructions copies what is in force.
const MOST_COPIED: usize = 64 << 20;

/// Bytes of a name. A longer one is not kept.
const MOST_NAME: usize = 256;

/// What Linux images without a PATH get from BuildKit.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What may be spent on one file.
#[derive(Debug, Default)]
pub struct Bounds {
    pub work: Work,
    /// Of the commands.
    pub shell: super::shell::Budget,
    copied: usize,
}

/// The variables in force at a place of a stage (or of the part before the first FROM).
#[derive(Debug, Clone)]
pub struct Variables {
    now: Arc<Scope>,
    /// Set by ENV and hidden by an ARG behind it: the image and the stages that are FROM this one have it.
    hidden: BTreeMap<String, Variable>,
    closed: bool,
    held: usize,
    lost: bool,
}

impl Variables {
    /// None yet; `closed`: a name that is not there is set nowhere.
    pub fn new(closed: bool) -> Self {
        Self { now: Arc::default(), hidden: BTreeMap::new(), closed, held: 0, lost: false }
    }

    /// Those of an empty image.
    pub fn scratch(bounds: &mut Bounds) -> Self {
        let mut variables = Self::new(true);
        variables.set("PATH", base(Value::Known(DEFAULT_PATH.to_owned())), bounds);
        variables
    }

    /// Those of an image. It is taken for its whole environment when it names PATH, as an image's own does.
    pub fn image(env: Vec<(String, String)>, bounds: &mut Bounds) -> Self {
        let mut variables = Self::new(env.iter().any(|(name, _)| name == "PATH"));
        for (name, value) in env {
            variables.set(&name, base(Value::Known(value)), bounds);
        }
        variables.charged(bounds)
    }

    /// Those that are in force whichever of several images it is.
    pub fn join(several: &[Self], bounds: &mut Bounds) -> Self {
        let Some((first, rest)) = several.split_first() else { return Self::new(false) };
        let mut joined = Self::new(several.iter().all(|v| v.closed));
        if bounds.copied > MOST_COPIED || several.iter().any(|v| v.lost) {
            joined.lose();
            return joined;
        }
        for (name, variable) in first.now.iter() {
            let mut variable = variable.clone();
            for other in rest {
                match other.now.get(name) {
                    Some(other) if other.value == variable.value => variable.unset &= other.unset,
                    Some(other) => variable.value = variable.value.or(&other.value),
                    None => variable.value = Value::Unknown,
                }
            }
            joined.set(name, variable, bounds);
        }
        // What only some have.
        for (name, variable) in rest.iter().flat_map(|v| v.now.iter()) {
            if !first.now.contains_key(name) {
                let variable = Variable { value: Value::Unknown, unset: false, ..variable.clone() };
                joined.set(name, variable, bounds);
            }
        }
        joined.charged(bounds)
    }

    /// A new map counts as a copied one.
    fn charged(mut self, bounds: &mut Bounds) -> Self {
        bounds.copied += self.held;
        if bounds.copied > MOST_COPIED {
            self.lose();
        }
        self
    }

    pub fn snapshot(&self) -> Arc<Scope> {
        Arc::clone(&self.now)
    }

    /// A name that the scope has not is set nowhere.
    pub fn closed(&self) -> bool {
        self.closed
    }

    pub fn expander<'a>(&'a self, escape: char, bounds: &'a Bounds) -> Expander<'a> {
        Expander { scope: &self.now, closed: self.closed, escape, work: &bounds.work }
    }

    /// What an image made of the stage has, with the ARGs that a stage FROM it goes on with.
    pub fn end(mut self, bounds: &mut Bounds) -> Self {
        for (name, variable) in std::mem::take(&mut self.hidden) {
            self.set(&name, variable, bounds);
        }
        self
    }

    /// ENV. All of its values see what was in force before it.
    pub fn env(&mut self, pairs: &[Pair], escape: char, bounds: &mut Bounds) {
        let expander = self.expander(escape, bounds);
        let set: Vec<(Text, Text, Origin)> = pairs
            .iter()
            .filter_map(|p| Some((expander.word(&p.key), expander.word(p.value.as_ref()?), Origin::Env(p.span))))
            .collect();
        for (name, text, origin) in set {
            let Some(name) = name.value.known() else {
                // It may be any.
                self.lose();
                return;
            };
            self.hidden.remove(name);
            let variable = Variable { value: text.value, origin, arg: false, unset: false, trail: text.trail };
            self.set(name, variable, bounds);
        }
    }

    /// One pair of an ARG. `given` is what the builder was told, `globals` the ARGs before the first FROM (none
    /// where this is one of them).
    pub fn arg(
        &mut self,
        pair: &Pair,
        escape: char,
        given: &BTreeMap<&str, &Value>,
        globals: Option<&Scope>,
        bounds: &mut Bounds,
    ) {
        let name = pair.key.text.as_str();
        let plain = |value: Value, origin| Variable { value, origin, arg: true, unset: false, trail: Vec::new() };
        let variable = if let Some(value) = given.get(name) {
            Some(plain((*value).clone(), Origin::Given))
        } else if let Some(value) = &pair.value {
            let text = self.expander(escape, bounds).word(value);
            Some(Variable { trail: text.trail, ..plain(text.value, Origin::Arg(pair.span)) })
        } else {
            globals.and_then(|g| g.get(name)).filter(|v| !v.unset).cloned()
        };
        match variable {
            Some(variable) => {
                if let Some(env) = self.now.get(name).filter(|v| !v.arg) {
                    self.hidden.insert(name.to_owned(), env.clone());
                }
                self.set(name, variable, bounds);
            }
            // It stays what it was.
            None if self.now.contains_key(name) => {}
            None => {
                let unset = Variable { unset: true, ..plain(Value::Unknown, Origin::Arg(pair.span)) };
                self.set(name, unset, bounds);
            }
        }
    }

    /// A variable of the builder's.
    pub fn predefine(&mut self, name: &str, value: Value, given: bool, bounds: &mut Bounds) {
        let origin = if given { Origin::Given } else { Origin::Predefined };
        self.set(name, Variable { value, origin, arg: true, unset: false, trail: Vec::new() }, bounds);
    }

    fn set(&mut self, name: &str, variable: Variable, bounds: &mut Bounds) {
        if self.lost {
            return;
        }
        if name.len() > MOST_NAME {
            self.closed = false;
            return;
        }
        let old = self.now.get(name);
        if old == Some(&variable) {
            return;
        }
        self.held = (self.held + size(name, &variable)).saturating_sub(old.map_or(0, |v| size(name, v)));
        if Arc::get_mut(&mut self.now).is_none() {
            bounds.copied += self.held;
        }
        if self.held > MOST_HELD || bounds.copied > MOST_COPIED {
            self.lose();
            return;
        }
        Arc::make_mut(&mut self.now).insert(name.to_owned(), variable);
    }

    /// From here on nothing is known.
    fn lose(&mut self) {
        *self = Self { lost: true, ..Self::new(false) };
    }
}

fn base(value: Value) -> Variable {
    Variable { value, origin: Origin::Base, arg: false, unset: false, trail: Vec::new() }
}

/// The bytes of a variable, about.
fn size(name: &str, variable: &Variable) -> usize {
    let texts: usize = variable.value.all().map(|t| t.len() + size_of::<String>()).sum();
    let trail: usize = variable.trail.iter().map(|t| t.name.len() + size_of_val(t)).sum();
    name.len() + size_of::<String>() + size_of::<Variable>() + texts + trail
}

/// The ARGs that BuildKit sets by itself: in force in FROM, and in a stage that declares them.
pub fn predefined(platform: Option<&str>, target: &str) -> Vec<(&'static str, Value)> {
    let known = |text: &str| Value::Known(text.to_owned());
    let set = |texts: [&str; 2]| Value::one_of(texts.map(str::to_owned).to_vec());
    // The builder's own platform need not be the target's.
    let mut all = vec![
        ("BUILDPLATFORM", set(["linux/amd64", "linux/arm64"])),
        ("BUILDOS", known("linux")),
        ("BUILDOSVERSION", known("")),
        ("BUILDARCH", set(["amd64", "arm64"])),
        ("BUILDVARIANT", known("")),
        ("TARGETOSVERSION", known("")),
        ("TARGETSTAGE", known(if target.is_empty() { "default" } else { target })),
    ];
    let Some(platform) = platform else {
        all.extend([
            ("TARGETPLATFORM", set(["linux/amd64", "linux/arm64"])),
            ("TARGETOS", known("linux")),
            ("TARGETARCH", set(["amd64", "arm64"])),
            ("TARGETVARIANT", known("")),
        ]);
        return all;
    };
    let lower = platform.to_ascii_lowercase();
    let mut parts = lower.split('/');
    let (os, arch) = match (parts.next(), parts.next()) {
        (Some(os), Some(arch)) => (os, arch),
        // `arm64` alone.
        (arch, _) => ("linux", arch.unwrap_or_default()),
    };
    let variant = parts.next().unwrap_or_default();
    let (arch, variant) = match (arch, variant) {
        ("x86_64" | "x86-64", v) => ("amd64", v),
        ("aarch64" | "arm64", "v8" | "") => ("arm64", ""),
        ("aarch64", v) => ("arm64", v),
        (arch, v) => (arch, v),
    };
    let whole = if variant.is_empty() { format!("{os}/{arch}") } else { format!("{os}/{arch}/{variant}") };
    all.extend([
        ("TARGETPLATFORM", known(&whole)),
        ("TARGETOS", known(os)),
        ("TARGETARCH", known(arch)),
        ("TARGETVARIANT", known(variant)),
    ]);
    all
}

/// Whether BuildKit hands it to every RUN when it is given, declared or not.
pub fn is_proxy(name: &str) -> bool {
    ["http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy"]
        .iter()
        .any(|proxy| name.eq_ignore_ascii_case(proxy))
}

/// Where a WORKDIR leads from a directory.
pub fn workdir(from: &Value, to: &Text) -> Value {
    let step = |from: Option<&str>, to: &str| -> Option<String> {
        let absolute = to.starts_with('/') || to.contains(':') || to.starts_with('\\');
        let path = if absolute { to.to_owned() } else { format!("{}/{to}", from?) };
        if path.len() > 4096 {
            return None;
        }
        if !path.starts_with('/') {
            return Some(path);
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        Some(format!("/{}", parts.join("/")))
    };
    let mut dirs = Vec::new();
    for to in to.value.all() {
        if from.all().next().is_none() {
            dirs.push(step(None, to));
        }
        dirs.extend(from.all().map(|from| step(Some(from), to)));
    }
    dirs.into_iter().collect::<Option<Vec<_>>>().map_or(Value::Unknown, Value::one_of)
}

/// Whether a SHELL reads what sh reads.
pub fn is_posix(shell: &[Word]) -> bool {
    let Some(program) = shell.first() else { return true };
    let name = program.text.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    !(matches!(name, "powershell" | "pwsh" | "cmd" | "perl" | "ruby" | "node") || name.starts_with("python"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dockerfile::span::Span;

    #[test]
    fn shells_that_read_what_sh_reads() {
        let posix = |words: &[&str]| {
            let word = |text: &&str| Word { text: (*text).to_owned(), span: Span::default(), literal: true };
            is_posix(&words.iter().map(word).collect::<Vec<_>>())
        };
        assert!(posix(&["/bin/bash", "-o", "pipefail", "-c"]));
        assert!(posix(&["conda", "run", "-n", "env", "/bin/bash", "-c"]));
        assert!(posix(&[]));
        assert!(!posix(&["powershell", "-Command"]));
        assert!(!posix(&["C:\\Windows\\System32\\CMD.EXE", "/S", "/C"]));
        assert!(!posix(&["/usr/bin/python3", "-c"]));
    }

    #[test]
    fn a_set_is_joined_with_what_is_missing() {
        let mut bounds = Bounds::default();
        let image = |value: &str| vec![("A".to_owned(), value.to_owned()), ("PATH".to_owned(), "/".to_owned())];
        let one = Variables::image(image("1"), &mut bounds);
        let two = Variables::image(image("2"), &mut bounds);
        let none = Variables::image(Vec::new(), &mut bounds);
        let both = Variables::join(&[one.clone(), two], &mut bounds);
        assert_eq!(both.snapshot()["A"].value, Value::OneOf(vec!["1".into(), "2".into()]));
        assert!(both.closed());
        let unsure = Variables::join(&[none, one], &mut bounds);
        assert_eq!(unsure.snapshot()["A"].value, Value::Unknown);
        assert!(!unsure.closed());
    }

    #[test]
    fn only_proxies_are_proxies() {
        assert!(is_proxy("HTTPS_PROXY") && is_proxy("no_proxy"));
        assert!(!is_proxy("PROXY"));
    }
}
