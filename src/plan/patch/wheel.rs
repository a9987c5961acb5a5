//! Another wheel: the version and the index that pip or conda is asked with.

use std::collections::BTreeSet;

use super::Placed;
use super::words::{Spot, Words, is_plain};
use crate::dockerfile::commands::{Asked, CondaInstall, PipInstall, PythonTool, Requirement, Setting, bare};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::shell::{Arg, Command, When};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Body;
use crate::lint::dockerfile::Lint;
use crate::model::escape;

/// The wheel that a step names.
pub struct Wanted<'s> {
    pub package: &'s str,
    pub version: Option<&'s str>,
    pub specifier: &'s str,
    /// Name and address.
    pub index: Option<&'s (String, String)>,
}

impl Wanted<'_> {
    /// `torch==2.7.0 from https://…/cu128`, for a person who does it by hand.
    fn told(&self) -> String {
        let from = self.index.map_or(String::new(), |(_, url)| format!(" from {url}"));
        format!("{}{}{from}", self.package, self.specifier)
    }
}

/// Edits for every command that is built and asks for the package. `moved` are the packages of all wheel steps.
pub fn place(mut words: Words<'_, '_>, wanted: &Wanted<'_>, moved: &BTreeSet<&str>) -> Placed {
    let lint = words.lint;
    if !is_plain(wanted.specifier) || wanted.index.is_some_and(|(n, u)| !is_word(n) || !is_word(u)) {
        return Placed::left(format!(
            "{} cannot be written into a command as it is",
            escape(wanted.told().as_bytes())
        ));
    }
    words.together = family(lint, wanted.package);
    let mut placed = Placed::default();
    let mut found = false;
    let mut same = None;
    for install in &lint.asks.pip {
        let Some(command) = built(lint, install.command) else { continue };
        let own: Vec<&Requirement> = install.requirements.iter().filter(|r| r.name == wanted.package).collect();
        if own.is_empty() {
            continue;
        }
        found = true;
        // A command is changed as a whole or not at all: a version without its index is another wheel.
        let mut own_edits = Placed::default();
        for requirement in &own {
            own_edits.take(version(&words, command, requirement, wanted));
        }
        own_edits.take(index(&words, command, install, wanted));
        match (own_edits.left.is_empty(), own_edits.edits.is_empty()) {
            (false, _) => placed.left.extend(own_edits.left),
            (true, true) => same = Some(words.line(command.span)),
            (true, false) => {
                placed.edits.extend(own_edits.edits);
                companions(&words, command, install, wanted, moved, &mut placed);
            }
        }
    }
    for install in &lint.asks.conda {
        let Some(command) = built(lint, install.command) else { continue };
        found |= conda(&words, command, install, wanted, &mut placed);
    }
    if !found {
        return Placed::left(format!(
            "no command of the file asks for {} by name: {}",
            wanted.package,
            wanted.told()
        ));
    }
    if placed.edits.is_empty()
        && placed.left.is_empty()
        && let Some(line) = same
    {
        placed.left.push(format!("line {line} asks for it already: build without the cache"));
    }
    placed
}

/// One word of a command, which needs no quotes.
fn is_word(text: &str) -> bool {
    is_plain(text) && !text.contains([' ', '<', '>', ';', '&', '|', '(', ')', '*', '?', '#', '~'])
}

/// A command that runs while the image is built, of a stage that is.
pub fn built<'l>(lint: &'l Lint<'_>, command: usize) -> Option<&'l Command> {
    let command = lint.reading.commands.get(command)?;
    (command.when != When::Start && lint.built(command.instruction)).then_some(command)
}

/// The words of commands that install the package or what is built for it: they may share variables.
fn family(lint: &Lint<'_>, package: &str) -> Vec<Span> {
    let kin = |r: &Requirement| r.name == package || lint.catalog.wheels().ever_wants(&r.name, package);
    let mut out = Vec::new();
    for install in lint.asks.pip.iter().filter(|i| i.requirements.iter().any(kin)) {
        if let Some(command) = lint.reading.commands.get(install.command) {
            out.push(command.span);
        }
        let settings = install.index.iter().chain(&install.extra_indexes).chain(&install.find_links);
        out.extend(settings.filter(|s| s.file.is_none()).map(|s| s.span));
    }
    out
}

/// The word of a command at a place.
pub fn word_at<'c>(lint: &Lint<'_>, command: &'c Command, span: Span) -> Option<&'c Arg> {
    command.words.iter().find(|w| w.span == span || bare(&lint.reading.document, w.span) == span)
}

fn version(
    words: &Words<'_, '_>,
    command: &Command,
    requirement: &Requirement,
    wanted: &Wanted<'_>,
) -> Result<Vec<Edit>, String> {
    let span = match &requirement.asked {
        Asked::Here(span) => *span,
        Asked::File { .. } if is_right(requirement, wanted) => return Ok(Vec::new()),
        Asked::File { file, line } => {
            return Err(format!("{}:{line} asks for it: write {} there", escape(file.as_bytes()), wanted.told()));
        }
    };
    let line = words.line(span);
    if requirement.url.is_some() {
        return Err(format!("line {line} takes it from an address of its own: put {} there", wanted.told()));
    }
    let arg = word_at(words.lint, command, span);
    let old = arg
        .and_then(|a| a.text.value.known())
        .ok_or_else(|| format!("line {line}: what it asks for is not known"))?;
    let new = restated(old, requirement, wanted).ok_or_else(|| format!("line {line} asks for several versions"))?;
    let spot = Spot { span, instruction: command.instruction, command: Some(command) };
    // The version first, then the part behind `+`: two variables may make them.
    match (old.split_once('+'), new.split_once('+')) {
        (Some((a, local)), Some((b, _))) if a != b && words.change(spot, old, &new).is_err() => {
            let mut edits = words.change(spot, old, &format!("{b}+{local}"))?;
            let moved = new.rsplit_once('+').map_or("", |(_, l)| l);
            edits.extend(words.change(spot, old, &format!("{a}+{moved}"))?);
            Ok(edits)
        }
        _ => words.change(spot, old, &new),
    }
}

/// Whether it is pinned to the version that is wanted: `2.7` is as good as `2.7.0`. Any local part is another matter.
fn is_right(requirement: &Requirement, wanted: &Wanted<'_>) -> bool {
    let Some(version) = wanted.version else {
        return wanted.specifier.is_empty() && requirement.pinned().is_none();
    };
    let public = requirement.pinned().and_then(|p| p.split('+').next());
    public == Some(version)
        || public.is_some() && requirement.local().is_none() && requirement.allows(version) == Some(true)
}

/// The requirement with the version that is wanted; none where it is not one that can be changed.
fn restated(old: &str, requirement: &Requirement, wanted: &Wanted<'_>) -> Option<String> {
    let at = old.find(|c: char| "=<>~!;".contains(c)).unwrap_or(old.len());
    let (head, rest) = old.split_at_checked(at)?;
    let (spec, marker) = match rest.find(';') {
        Some(at) => rest.split_at_checked(at)?,
        None => (rest, ""),
    };
    let pinned = requirement.pinned();
    let local = requirement.local();
    let public = |v: &str| v.split('+').next().unwrap_or(v).to_owned();
    let mut new = match (is_right(requirement, wanted), wanted.specifier.is_empty()) {
        (true, _) => public(spec),
        (false, true) if pinned.is_none() => spec.to_owned(),
        (false, _) => wanted.specifier.to_owned(),
    };
    if let Some(local) = local
        && !new.contains('+')
        && new.starts_with("==")
    {
        let part = wanted.index.map_or(local, |(name, _)| name.as_str());
        new = format!("{new}+{part}");
    }
    Some(format!("{head}{new}{marker}"))
}

/// The index of an install changed, or named.
fn index(
    words: &Words<'_, '_>,
    command: &Command,
    install: &PipInstall,
    wanted: &Wanted<'_>,
) -> Result<Vec<Edit>, String> {
    let wheels = words.lint.catalog.wheels();
    let line = words.line(command.span);
    let all = || install.index.iter().chain(&install.extra_indexes).chain(&install.find_links);
    let torch = |s: &Setting| s.text.value.known().and_then(|u| wheels.index_of_url(u));
    let Some((name, url)) = wanted.index else {
        return match all()
            .find_map(torch)
            .filter(|i| !i.name.is_empty() && wheels.ever_wants(wanted.package, "torch"))
        {
            Some(index) => Err(format!("line {line} takes it from the index {}: name the default one", index.name)),
            None => Ok(Vec::new()),
        };
    };
    if let Some(backend) = &install.torch_backend {
        return setting(words, command, backend, name);
    }
    let mut edits = Vec::new();
    let mut named = false;
    for one in all() {
        let Some(old) = one.text.value.known() else {
            return Err(format!("line {line}: which index it takes is not known, {url} is the one to take"));
        };
        let Some(index) = wheels.index_of_url(old) else {
            named |= old == url;
            continue;
        };
        if index.nightly || index.test {
            return Err(format!("line {line} takes a nightly build: {url} is the index to take"));
        }
        // One page for all builds: the version's own part chooses.
        if index.page && index.name.is_empty() {
            named = install.requirements.iter().any(|r| r.name == wanted.package && r.local().is_some());
            continue;
        }
        named = true;
        edits.extend(setting(words, command, one, &moved(old, &index.name, url, name))?);
    }
    if named {
        return Ok(edits);
    }
    if install.tool == PythonTool::Project {
        return Err(format!("line {line} installs what the project's files name: name the index {url} there"));
    }
    // An index of torch has little else: other packages must still be found.
    let kin = |r: &Requirement| r.name == wanted.package || wheels.ever_wants(&r.name, "torch");
    let alone = install.index.is_none()
        && wheels.index_of_url(url).is_some()
        && install.local.is_empty()
        && !install.more
        && install.requirements.iter().all(kin);
    let option = if alone { "--index-url" } else { "--extra-index-url" };
    append(words, command, &format!("{option} {url}"))
}

/// An index's address with another index's name in it; all of it where it does not name one so.
fn moved(old: &str, name: &str, url: &str, new: &str) -> String {
    let at = old.rfind(name).filter(|_| !name.is_empty() && url.trim_end_matches('/').ends_with(new));
    let whole = |at: usize| {
        let after = old.get(at + name.len()..).unwrap_or_default();
        let before = old.get(..at).unwrap_or_default();
        (before.ends_with('/') && (after.is_empty() || after.starts_with('/')))
            .then(|| format!("{before}{new}{after}"))
    };
    at.and_then(whole).unwrap_or_else(|| url.to_owned())
}

/// An option's or a variable's value changed.
fn setting(words: &Words<'_, '_>, command: &Command, setting: &Setting, new: &str) -> Result<Vec<Edit>, String> {
    if let Some(Asked::File { file, line }) = &setting.file {
        return Err(format!("{}:{line} names the index: write {new} there", escape(file.as_bytes())));
    }
    let old = setting.text.value.known().unwrap_or_default();
    let outside = || format!("which index line {} takes is not set in the file", words.line(command.span));
    if setting.span.is_empty() {
        return Err(outside());
    }
    let instruction = words.instruction_at(setting.span).ok_or_else(outside)?;
    // Of several in one value it is a part.
    let text = words.lint.reading.document.slice(setting.span);
    let span = match text.find(old).filter(|_| text != old && text.matches(old).count() == 1) {
        Some(at) => Span::new(setting.span.start + at, setting.span.start + at + old.len()),
        None => setting.span,
    };
    let command = (instruction == command.instruction).then_some(command);
    words.change(Spot { span, instruction, command }, old, new)
}

/// Words put at the end of a command.
pub fn append(words: &Words<'_, '_>, command: &Command, text: &str) -> Result<Vec<Edit>, String> {
    let line = words.line(command.span);
    let json = words.lint.reading.instruction(command.instruction).is_none_or(|i| matches!(i.body, Body::Exec(_)));
    let last = command.words.last().filter(|_| !json && !command.guessed);
    let last = last.ok_or_else(|| format!("`{text}` could not be put into the command of line {line}"))?;
    Ok(vec![Edit::new(Span::new(last.span.end, last.span.end), format!(" {text}"))])
}

/// Packages in the same command that are pinned for the old version, or name the old index in their own.
fn companions(
    words: &Words<'_, '_>,
    command: &Command,
    install: &PipInstall,
    wanted: &Wanted<'_>,
    moved: &BTreeSet<&str>,
    placed: &mut Placed,
) {
    let wheels = words.lint.catalog.wheels();
    for other in install.requirements.iter().filter(|r| !moved.contains(r.name.as_str())) {
        let Some(pin) = other.pinned().filter(|_| wheels.ever_wants(&other.name, wanted.package)) else { continue };
        let public = pin.split('+').next().unwrap_or(pin);
        let wants = wheels.wants(&other.name, public, wanted.package);
        let fits = |specifier: &str| {
            let asked =
                Requirement { specifiers: specifier.split(',').filter_map(operator).collect(), ..other.clone() };
            wanted.version.and_then(|v| asked.allows(v))
        };
        match wants.as_ref().map(|w| (w, fits(&w.specifier))) {
            Some((_, Some(true))) => {}
            Some(_) | None if wanted.version.is_none() => {}
            Some((w, _)) => placed.left.push(format!(
                "{} {public} beside it wants {}{}: pin its release for {}",
                other.name,
                wanted.package,
                w.specifier,
                wanted.told()
            )),
            None => placed.left.push(format!(
                "{} {public} is pinned beside it: see that it is for {}",
                other.name,
                wanted.told()
            )),
        }
        let (Some(local), Some((name, _)), Asked::Here(span)) = (other.local(), wanted.index, &other.asked) else {
            continue;
        };
        let Some(old) = word_at(words.lint, command, *span).and_then(|a| a.text.value.known()) else { continue };
        let spot = Spot { span: *span, instruction: command.instruction, command: Some(command) };
        placed.take(words.change(spot, old, &old.replacen(&format!("+{local}"), &format!("+{name}"), 1)));
    }
}

/// `==2.6.0` as operator and version.
fn operator(text: &str) -> Option<(String, String)> {
    let at = text.find(|c: char| c.is_ascii_digit())?;
    let (operator, version) = text.split_at_checked(at)?;
    Some((operator.trim().to_owned(), version.trim().to_owned()))
}

/// A version that conda is asked for. True where it is asked for the package at all.
fn conda(
    words: &Words<'_, '_>,
    command: &Command,
    install: &CondaInstall,
    wanted: &Wanted<'_>,
    placed: &mut Placed,
) -> bool {
    // conda calls PyTorch by its own name.
    let is = |name: &str| name == wanted.package || wanted.package == "torch" && name == "pytorch";
    let mut found = false;
    for (_, specification, asked) in install.packages.iter().filter(|(n, ..)| is(n)) {
        found = true;
        let line = words.line(command.span);
        let (span, version) = match (asked, wanted.version, wanted.index) {
            (Asked::File { file, line }, ..) => {
                let file = escape(file.as_bytes());
                placed.left.push(format!("{file}:{line} asks conda for it: {}", wanted.told()));
                continue;
            }
            (Asked::Here(span), Some(version), None) => (*span, version),
            (Asked::Here(_), ..) => {
                placed
                    .left
                    .push(format!("line {line} takes it from conda, which has no such index: {}", wanted.told()));
                continue;
            }
        };
        let arg = word_at(words.lint, command, span).and_then(|a| a.text.value.known());
        let plain =
            specification.as_deref().is_none_or(|s| s.trim_start_matches('=').split(['=', ' ']).count() == 1);
        let Some(old) = arg.filter(|_| plain) else {
            placed.left.push(format!("line {line} names a build of conda's: take that of {version}"));
            continue;
        };
        let head = old.split(['=', '<', '>', ' ', '~', '!']).next().unwrap_or(old);
        let spot = Spot { span, instruction: command.instruction, command: Some(command) };
        placed.take(words.change(spot, old, &format!("{head}={version}")));
        placed.left.push(format!("line {line} takes conda's build of it, of which no row says what it holds"));
    }
    for requirement in install.pip.iter().filter(|r| r.name == wanted.package) {
        found = true;
        if let Asked::File { file, line } = &requirement.asked {
            let file = escape(file.as_bytes());
            placed.left.push(format!("{file}:{line} asks for it: write {} there", wanted.told()));
        }
    }
    found
}
