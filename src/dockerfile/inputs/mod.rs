//! What a Dockerfile is built with, where compose or bake files of the project say it.

mod bake;
mod compose;
mod eval;

pub use bake::bake;
pub use compose::compose;

use super::value::Value;

/// Bytes of a file that is read.
const MOST_BYTES: usize = 4 << 20;

/// One build that a file describes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuildInput {
    /// The compose service, or the bake target.
    pub service_or_target: String,
    /// As written, relative to the context; none: `Dockerfile`.
    pub dockerfile: Option<String>,
    /// As written, relative to the file; none: where the file is.
    pub context: Option<String>,
    /// The stage that is built.
    pub target: Option<String>,
    /// `linux/amd64`; empty: the builder's own.
    pub platforms: Vec<String>,
    /// Each once, in the order of the file.
    pub args: Vec<(String, Value)>,
    /// Its Dockerfile is written there and then, or where it lies depends on what is not known.
    pub unplaced: bool,
}

impl BuildInput {
    /// The Dockerfile, relative to the folder of the file that describes the build; none where it is not known or
    /// lies elsewhere than in that file's project.
    pub fn file(&self) -> Option<String> {
        let context = self.context.as_deref().unwrap_or(".");
        let dockerfile = self.dockerfile.as_deref().unwrap_or("Dockerfile");
        let outside = |path: &str| path.starts_with(['/', '~']) || path.contains(':');
        // A URL, `target:name`, or an absolute path.
        if self.unplaced || outside(context) || outside(dockerfile) {
            return None;
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in context.split('/').chain(dockerfile.split('/')) {
            match part {
                "" | "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        Some(parts.join("/"))
    }
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct InputError {
    /// From 1, where it is known.
    pub line: Option<usize>,
    pub what: String,
}

impl InputError {
    fn new(line: Option<usize>, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// The build arguments of several builds of one Dockerfile: one of all that they give. What some do not give is
/// unknown, as the file's own default holds for them.
pub fn merge(inputs: &[BuildInput]) -> Vec<(String, Value)> {
    let mut merged: Vec<(String, Value)> = Vec::new();
    for (name, _) in inputs.iter().flat_map(|i| &i.args) {
        if merged.iter().any(|(n, _)| n == name) {
            continue;
        }
        let mut values = inputs.iter().map(|i| i.args.iter().find(|(n, _)| n == name).map(|(_, value)| value));
        let first = values.next().flatten().cloned().unwrap_or_default();
        let value = values.fold(first, |all, value| value.map_or(Value::Unknown, |value| all.or(value)));
        merged.push((name.clone(), value));
    }
    merged
}

/// Arguments of one build.
const MOST_ARGS: usize = 1024;

/// Sets an argument; one of the same name is replaced.
fn put(args: &mut Vec<(String, Value)>, name: String, value: Value) {
    if let Some((_, old)) = args.iter_mut().find(|(n, _)| *n == name) {
        *old = value;
    } else if args.len() < MOST_ARGS {
        args.push((name, value));
    }
}

fn check_size(text: &str) -> Result<(), InputError> {
    if text.len() <= MOST_BYTES {
        return Ok(());
    }
    Err(InputError::new(None, format!("larger than {} MiB", MOST_BYTES >> 20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(args: &[(&str, Value)]) -> BuildInput {
        let args = args.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        BuildInput { args, ..BuildInput::default() }
    }

    fn known(text: &str) -> Value {
        Value::Known(text.to_owned())
    }

    #[test]
    fn several_builds_give_one_of_their_values() {
        let inputs = [
            input(&[("CUDA", known("12.4")), ("TORCH", known("2.6"))]),
            input(&[("CUDA", known("12.8")), ("TORCH", known("2.6")), ("EXTRA", known("x"))]),
        ];
        assert_eq!(
            merge(&inputs),
            [
                ("CUDA".to_owned(), Value::OneOf(vec!["12.4".into(), "12.8".into()])),
                ("TORCH".to_owned(), known("2.6")),
                ("EXTRA".to_owned(), Value::Unknown),
            ]
        );
        assert!(merge(&[]).is_empty());
        assert_eq!(merge(&inputs[..1]), inputs[0].args);
    }

    #[test]
    fn where_the_dockerfile_lies() {
        let at = |context: Option<&str>, dockerfile: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            BuildInput { context: owned(context), dockerfile: owned(dockerfile), ..BuildInput::default() }.file()
        };
        assert_eq!(at(None, None).as_deref(), Some("Dockerfile"));
        assert_eq!(at(Some("./app/"), None).as_deref(), Some("app/Dockerfile"));
        assert_eq!(at(Some(".."), Some("docker/gpu.Dockerfile")).as_deref(), Some("../docker/gpu.Dockerfile"));
        assert_eq!(at(Some("a/b"), Some("../x")).as_deref(), Some("a/x"));
        assert_eq!(at(Some("https://github.com/a/b.git"), None), None);
        assert_eq!(at(Some("/srv"), None), None);
        let unplaced = BuildInput { unplaced: true, ..BuildInput::default() };
        assert_eq!(unplaced.file(), None);
    }

    #[test]
    fn errors_say_their_line() {
        assert_eq!(InputError::new(Some(3), "wrong").to_string(), "line 3: wrong");
        assert_eq!(InputError::new(None, "wrong").to_string(), "wrong");
    }
}
