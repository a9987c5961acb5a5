//! Compose and bake files of the project: the arguments that they build a Dockerfile with.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::discover::shown;
use crate::cli::bounded;
use crate::cli::error::CliError;
use crate::dockerfile::inputs::{self, BuildInput};
use crate::dockerfile::syntax::{Body, Document, Keyword};
use crate::dockerfile::value::Value;

/// Bytes of such a file that are read.
const MOST: u64 = 4 << 20;

/// Names by which compose and bake find their files themselves.
const COMPOSE: [&str; 4] = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];
const BAKE: [&str; 2] = ["docker-bake.hcl", "docker-bake.json"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Compose,
    Bake,
}

/// What a file builds, or why it could not be read.
type Answer = Result<Vec<BuildInput>, String>;

/// Files that were read once for all Dockerfiles.
#[derive(Debug, Default)]
pub struct Builds {
    read: Mutex<HashMap<PathBuf, Arc<Answer>>>,
}

/// What is taken of such files for one Dockerfile.
#[derive(Debug, Default)]
pub struct Taken {
    pub args: Vec<(String, Value)>,
    /// Of a file that was named, where its builds agree.
    pub target: Option<String>,
    pub platform: Option<String>,
    pub notes: Vec<String>,
}

impl Builds {
    /// The builds of a file that was named; all that they give counts.
    pub fn named(&self, file: &Path, kind: Kind, dockerfile: Option<&Path>) -> Result<Taken, CliError> {
        let read = self.read(file, kind);
        let all = match read.as_ref() {
            Ok(all) => all,
            Err(what) => return Err(CliError::BuildFile { place: shown(file), what: what.clone() }),
        };
        let ours: Vec<BuildInput> = all.iter().filter(|b| builds(b, file, dockerfile)).cloned().collect();
        let mut taken = Taken { args: inputs::merge(&ours), ..Taken::default() };
        if let Some((first, rest)) = ours.split_first() {
            taken.target = first.target.clone().filter(|t| rest.iter().all(|b| b.target.as_ref() == Some(t)));
            let [platform] = first.platforms.as_slice() else { return Ok(taken) };
            taken.platform = Some(platform.clone()).filter(|_| rest.iter().all(|b| b.platforms == first.platforms));
        } else {
            let dockerfile = dockerfile.map_or("standard input".to_owned(), shown);
            taken.notes.push(format!("{} does not build {dockerfile}", shown(file)));
        }
        Ok(taken)
    }

    /// Those of files beside the Dockerfile or above it, for arguments that it gives no default.
    pub fn around(&self, folders: &[PathBuf], dockerfile: &Path, document: &Document) -> Taken {
        let mut taken = Taken::default();
        let open = without_default(document);
        if open.is_empty() {
            return taken;
        }
        for folder in folders {
            let names = COMPOSE.iter().map(|n| (n, Kind::Compose)).chain(BAKE.iter().map(|n| (n, Kind::Bake)));
            for (name, kind) in names {
                let file = folder.join(name);
                if !file.is_file() {
                    continue;
                }
                let read = self.read(&file, kind);
                let all = match read.as_ref() {
                    Ok(all) => all,
                    Err(what) => {
                        taken.notes.push(format!("{}: {what}", shown(&file)));
                        continue;
                    }
                };
                let ours: Vec<BuildInput> =
                    all.iter().filter(|b| builds(b, &file, Some(dockerfile))).cloned().collect();
                let new =
                    |name: &String| open.contains(name.as_str()) && !taken.args.iter().any(|(n, _)| n == name);
                let args: Vec<(String, Value)> =
                    inputs::merge(&ours).into_iter().filter(|(name, _)| new(name)).collect();
                if !args.is_empty() {
                    let names: Vec<&str> = args.iter().map(|(name, _)| name.as_str()).collect();
                    let text = format!("{} of {} from {}", names.join(", "), shown(dockerfile), shown(&file));
                    taken.notes.push(text);
                }
                taken.args.extend(args);
            }
        }
        taken
    }

    fn read(&self, file: &Path, kind: Kind) -> Arc<Answer> {
        let key = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if let Some(known) = self.read.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let read = Arc::new(read(file, kind));
        self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(key, read.clone());
        read
    }
}

fn read(file: &Path, kind: Kind) -> Answer {
    let Some(bytes) = bounded::read(file, MOST).map_err(|e| e.to_string())? else {
        return Err(format!("larger than {} MiB", MOST >> 20));
    };
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    match kind {
        Kind::Compose => inputs::compose(&text),
        Kind::Bake => inputs::bake(&text),
    }
    .map_err(|e| e.to_string())
}

/// Whether a build of a file is of this Dockerfile.
fn builds(build: &BuildInput, file: &Path, dockerfile: Option<&Path>) -> bool {
    let Some(dockerfile) = dockerfile.and_then(|d| fs::canonicalize(d).ok()) else { return false };
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    build.file().is_some_and(|path| fs::canonicalize(folder.join(path)).is_ok_and(|real| real == dockerfile))
}

/// Arguments that are declared, and nowhere with a value.
fn without_default(document: &Document) -> BTreeSet<&str> {
    let args = document.instructions.iter().filter(|i| i.keyword == Keyword::Arg);
    let pairs: Vec<_> = args
        .filter_map(|i| match &i.body {
            Body::Pairs(pairs) => Some(pairs),
            _ => None,
        })
        .flatten()
        .collect();
    let names = |valued: bool| {
        pairs
            .iter()
            .filter(move |p| p.value.is_some() == valued)
            .map(|p| p.key.text.as_str())
            .collect::<BTreeSet<_>>()
    };
    &names(false) - &names(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dockerfile::parse::parse;

    #[test]
    fn arguments_without_a_default_are_filled_in() {
        let root = tempfile::tempdir().unwrap();
        let at = |p: &str| root.path().join(p);
        fs::create_dir(at("docker")).unwrap();
        let text = "ARG BASE\nARG CUDA=12.4\nFROM ${BASE}\nARG CUDA\n";
        fs::write(at("docker/Dockerfile"), text).unwrap();
        let compose = "services:\n  a:\n    build:\n      context: .\n      dockerfile: docker/Dockerfile\n      args:\n        BASE: ubuntu:24.04\n        CUDA: '11.8'\n  b:\n    build: other\n";
        fs::write(at("compose.yaml"), compose).unwrap();
        let builds = Builds::default();
        let document = parse(text.as_bytes());
        let taken = builds.around(&[at("docker"), at("")], &at("docker/Dockerfile"), &document);
        assert_eq!(taken.args, [("BASE".to_owned(), Value::Known("ubuntu:24.04".into()))]);
        assert!(taken.notes[0].contains("BASE") && taken.notes[0].contains("compose.yaml"), "{:?}", taken.notes);
        let named = builds.named(&at("compose.yaml"), Kind::Compose, Some(&at("docker/Dockerfile"))).unwrap();
        assert_eq!(named.args.len(), 2, "a file that is named counts whole");
        let none = builds.named(&at("compose.yaml"), Kind::Compose, None).unwrap();
        assert!(none.args.is_empty() && none.notes[0].contains("does not build"));
        fs::write(at("bad.yaml"), "services: [").unwrap();
        assert!(builds.named(&at("bad.yaml"), Kind::Compose, None).is_err());
        assert!(builds.named(&at("nosuch.hcl"), Kind::Bake, None).is_err());
    }
}
