//! `git clone`, and whether what is cloned is pinned.

use super::GitClone;
use super::args::{Item, bare, items, program};
use crate::dockerfile::reading::Reading;
use crate::dockerfile::shell::{Command, Dir};
use crate::dockerfile::value::Value;

const VALUED: &[&str] = &[
    "-b",
    "--branch",
    "--depth",
    "-o",
    "--origin",
    "-u",
    "--upload-pack",
    "--reference",
    "--separate-git-dir",
    "-c",
    "--config",
    "-j",
    "--jobs",
    "--filter",
    "--shallow-since",
    "--shallow-exclude",
    "--template",
    "--revision",
    "--recurse-submodules=",
    "-C",
    "--git-dir",
    "--work-tree",
    "--server-option",
    "--bundle-uri",
];

/// Clones before a checkout that may be the one that it is of.
const MOST_CLONES: usize = 64;

/// All clones of a reading, and where each is, as [`Command::place`] says places.
pub fn clones(reading: &Reading) -> Vec<(GitClone, Dir)> {
    let mut out: Vec<(GitClone, Dir)> = Vec::new();
    for (index, command) in reading.commands.iter().enumerate() {
        if command.words.first().map(program) != Some("git") {
            continue;
        }
        let Some((verb, dir)) = verb(reading, command) else { continue };
        match verb.as_str() {
            "clone" => out.extend(clone(reading, index, command, &dir)),
            // A revision is checked out in what the same RUN has cloned.
            "checkout" | "reset" | "switch" => {
                let last = out.iter_mut().rev().take(MOST_CLONES).find(|(clone, place)| {
                    let own = reading.commands.get(clone.command);
                    let unknown = |d: &Dir| d.value == Value::Unknown && d.partly.is_none();
                    own.is_some_and(|o| o.instruction == command.instruction)
                        && (*place == dir || unknown(place) || unknown(&dir))
                });
                if let Some((clone, _)) = last.filter(|_| names_revision(command)) {
                    clone.pinned = true;
                }
            }
            _ => {}
        }
    }
    out
}

/// The verb, and the folder that git works in.
fn verb(reading: &Reading, command: &Command) -> Option<(String, Dir)> {
    let mut dir = Dir { value: command.dir.clone(), partly: command.partly_dir.clone() };
    for item in items(&reading.document, command.args(), VALUED) {
        match item {
            Item::Option(name, Some(value)) if name == "-C" => dir = dir.to(&value.text.value),
            Item::Option(..) => {}
            Item::Operand(arg) => return Some((arg.known_or_partly().to_owned(), dir)),
        }
    }
    None
}

/// Whether a checkout names more than files.
fn names_revision(command: &Command) -> bool {
    let mut words = command.args().iter().map(|a| a.known_or_partly());
    words.any(|w| matches!(w, "checkout" | "reset" | "switch"))
        && words.next().is_some_and(|w| w != "--" && w != ".")
}

fn clone(reading: &Reading, index: usize, command: &Command, dir: &Dir) -> Option<(GitClone, Dir)> {
    let mut pinned = false;
    let mut operands = Vec::new();
    for item in items(&reading.document, command.args(), VALUED) {
        match item {
            Item::Option(name, _) => pinned |= matches!(name.as_str(), "-b" | "--branch" | "--revision"),
            Item::Operand(arg) => operands.push(arg),
        }
    }
    let url = *operands.get(1)?;
    let target = match operands.get(2) {
        Some(arg) => arg.text.value.clone(),
        None => {
            let name = |u: &str| {
                let name = u.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
                name.strip_suffix(".git").unwrap_or(name).to_owned()
            };
            match &url.text.value {
                Value::Known(url) => Value::Known(name(url)),
                Value::OneOf(urls) => Value::one_of(urls.iter().map(|u| name(u)).collect()),
                Value::Unknown => Value::Unknown,
            }
        }
    };
    let place = dir.to(&target);
    let clone = GitClone {
        command: index,
        url: url.text.clone(),
        url_span: bare(&reading.document, url.span),
        pinned,
        dir: place.value.clone(),
    };
    Some((clone, place))
}
