//! Packages taken out of an installer's command, or put in.

use super::Placed;
use super::wheel::{built, word_at};
use super::words::{Words, is_plain};
use crate::dockerfile::commands::{Asked, PythonTool, SystemTool};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::shell::{Command, When};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Body;
use crate::lint::dockerfile::Lint;
use crate::model::{Manager, escape};

/// A package in a command: its name, and its word where that is written in the file.
struct Found<'l> {
    command: &'l Command,
    name: String,
    place: Result<Span, String>,
    /// How many packages and the like the command asks for.
    of: usize,
    /// A name of an unknown rest.
    unsure: bool,
}

/// All that the installers of a manager are asked for in what is built, in the file's order.
fn asked<'l>(lint: &'l Lint<'_>, manager: Manager) -> Vec<Found<'l>> {
    let here = |asked: &Asked| match asked {
        Asked::Here(span) => Ok(*span),
        Asked::File { file, line } => Err(format!("{}:{line}", escape(file.as_bytes()))),
    };
    let mut out = Vec::new();
    match manager {
        Manager::Pip => {
            for install in &lint.asks.pip {
                let Some(command) = built(lint, install.command) else { continue };
                let of = install.requirements.len() + install.local.len() + install.files.len();
                out.extend(install.requirements.iter().map(|r| Found {
                    command,
                    name: r.name.clone(),
                    place: here(&r.asked),
                    of,
                    unsure: false,
                }));
            }
        }
        Manager::Conda => {
            for install in &lint.asks.conda {
                let Some(command) = built(lint, install.command) else { continue };
                let of = install.packages.len() + install.files.len();
                out.extend(install.packages.iter().map(|(name, _, place)| Found {
                    command,
                    name: name.clone(),
                    place: here(place),
                    of,
                    unsure: false,
                }));
            }
        }
        Manager::Dpkg | Manager::Rpm | Manager::Apk => {
            for install in lint.asks.system.iter().filter(|i| tool_of(i.tool) == manager) {
                let Some(command) = built(lint, install.command) else { continue };
                out.extend(install.packages.iter().map(|p| Found {
                    command,
                    name: p.name.clone(),
                    place: Ok(p.span),
                    of: install.packages.len(),
                    unsure: p.unsure,
                }));
            }
        }
        Manager::Path => {}
    }
    out
}

fn tool_of(tool: SystemTool) -> Manager {
    match tool {
        SystemTool::Apt => Manager::Dpkg,
        SystemTool::Rpm | SystemTool::Zypper => Manager::Rpm,
        SystemTool::Apk => Manager::Apk,
    }
}

pub fn remove(words: &Words<'_, '_>, manager: Manager, names: &[String]) -> Placed {
    let lint = words.lint;
    let all = asked(lint, manager);
    let mut placed = Placed::default();
    for name in names {
        let own: Vec<&Found<'_>> = all.iter().filter(|f| f.name == *name && !f.unsure).collect();
        if own.is_empty() {
            let name = escape(name.as_bytes());
            placed.left.push(format!("no command of the file asks for {name}: it comes with something else"));
        }
        for found in own {
            placed.take(removed(words, found, &all, names));
        }
    }
    placed
}

/// The word and the blanks before it.
fn removed(
    words: &Words<'_, '_>,
    found: &Found<'_>,
    all: &[Found<'_>],
    names: &[String],
) -> Result<Vec<Edit>, String> {
    let document = &words.lint.reading.document;
    let name = escape(found.name.as_bytes());
    let line = words.line(found.command.span);
    let span = match &found.place {
        Ok(span) => *span,
        Err(file) => return Err(format!("{file} asks for {name}: take it out there")),
    };
    let gone = |f: &&Found<'_>| f.command.span == found.command.span && names.contains(&f.name);
    if all.iter().filter(gone).count() >= found.of {
        return Err(format!("line {line} installs nothing else: take it out"));
    }
    let at = found.command.words.iter().position(|w| word_at(words.lint, found.command, span) == Some(w));
    let word = at.and_then(|at| found.command.words.get(at)).filter(|w| w.text.value.known().is_some());
    let before = at.and_then(|at| at.checked_sub(1)).and_then(|at| found.command.words.get(at));
    let (Some(word), Some(before)) = (word, before) else {
        return Err(format!("line {line} does not spell {name} out: take it out there"));
    };
    let json =
        words.lint.reading.instruction(found.command.instruction).is_none_or(|i| matches!(i.body, Body::Exec(_)));
    let literal =
        document.slice(word.span).trim_matches(['"', '\'']).starts_with(|c: char| c.is_ascii_alphanumeric());
    let same_place = found.command.words.iter().filter(|w| w.span == word.span).count();
    if json || !literal || same_place != 1 || document.slice(word.span).contains('$') {
        return Err(format!("line {line} does not spell {name} out: take it out there"));
    }
    let gap = Span::new(before.span.end, word.span.start);
    let blank = document.slice(gap).chars().all(|c| c.is_whitespace() || c == document.escape);
    let cut = if before.span.end <= word.span.start && blank { gap.to(word.span) } else { word.span };
    Ok(vec![Edit::new(cut, "")])
}

/// Words put behind the last package of the last command that installs such into the image.
pub fn add(words: &Words<'_, '_>, manager: Manager, names: &[String]) -> Placed {
    let lint = words.lint;
    let list = names.iter().map(|n| escape(n.as_bytes())).collect::<Vec<_>>().join(" ");
    let all = asked(lint, manager);
    if names.is_empty() || !names.iter().all(|n| is_package(n)) {
        return Placed::left(format!("`{list}` cannot be written into a command as it is"));
    }
    let missing: Vec<&String> = names
        .iter()
        .filter(|n| !all.iter().any(|f| f.name == **n && lint.in_image(f.command.instruction)))
        .collect();
    if missing.is_empty() {
        return Placed::left(format!("the file asks for {list} already: build without the cache"));
    }
    // pip takes an index for all of its command: another package may not be there.
    let own_index = |command: &Command| {
        let mut installs = lint.asks.pip.iter().filter(|p| lint.reading.commands.get(p.command) == Some(command));
        installs.any(|p| p.index.is_some() || p.no_deps || p.tool == PythonTool::Project)
    };
    let fits = |f: &&Found<'_>| {
        let word = f.place.as_ref().ok().and_then(|span| word_at(lint, f.command, *span));
        f.command.when == When::Build
            && !f.command.guessed
            && lint.in_image(f.command.instruction)
            && word.is_some()
            && !own_index(f.command)
            && lint.reading.instruction(f.command.instruction).is_some_and(|i| matches!(i.body, Body::Shell(_)))
    };
    let Some(last) = all.iter().rfind(fits) else {
        return Placed::left(format!("no command of the final stage installs such packages: install {list}"));
    };
    let end = last.place.as_ref().ok().and_then(|span| word_at(lint, last.command, *span)).map(|w| w.span.end);
    let Some(end) = end else { return Placed::left(format!("install {list}")) };
    let words: Vec<String> = missing
        .iter()
        .map(|n| if n.contains(['<', '>', '[', '*', '~', '!', '=']) { format!("\"{n}\"") } else { (*n).clone() })
        .collect();
    Placed::edit(vec![Edit::new(Span::new(end, end), format!(" {}", words.join(" ")))])
}

/// A package's name, with a version perhaps.
fn is_package(name: &str) -> bool {
    is_plain(name)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+:=<>!~@/[],*".contains(c))
}
