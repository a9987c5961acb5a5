//! `uv sync`, `uv add`, `poetry install`: what a project's own files ask for, at the versions of its lock file.

use super::args::{self, Item, items, program};
use super::context::{Context, Found, Lookup};
use super::pip::{Around, empty, operand, shown, verb_at};
use super::requirements::lock::locked;
use super::requirements::normal_name;
use super::requirements::pyproject::{Project, Requirements, project};
use super::requirements::specifier::{Wanted, parse};
use super::settings::{drop_empty, settings};
use super::{Asked, PipInstall, PythonTool, Requirement, Setting};
use crate::dockerfile::shell::Command;
use crate::dockerfile::span::Span;
use crate::dockerfile::value::{Text, Value};

const VALUED: &[&str] = &[
    "--extra",
    "--no-extra",
    "--group",
    "--only-group",
    "--no-group",
    "--with",
    "--without",
    "--only",
    "-E",
    "--extras",
    "-G",
    "--directory",
    "--project",
    "-C",
    "-P",
    "--package",
    "-p",
    "--python",
    "--index",
    "--default-index",
    "--index-url",
    "-i",
    "--extra-index-url",
    "-f",
    "--find-links",
    "--no-install-package",
    "--link-mode",
    "--cache-dir",
    "--python-platform",
    "--resolution",
    "--prerelease",
    "--exclude-newer",
    "--index-strategy",
    "--keyring-provider",
    "--config-setting",
    "--no-binary-package",
    "--no-build-package",
    "--no-build-isolation-package",
    "--reinstall-package",
    "--refresh-package",
    "--upgrade-package",
    "--config-file",
    "--allow-insecure-host",
    "--color",
    "-r",
    "--requirements",
    "-c",
    "--constraints",
    "--tag",
    "--branch",
    "--rev",
    "--optional",
    "--source",
    "-L",
    "--lockfile",
    "--script",
    "--marker",
    "-m",
    "--bounds",
    "--torch-backend",
    "--with-requirements",
    "--with-editable",
    "--env-file",
];

/// What is installed besides the dependencies themselves.
#[derive(Debug, Default)]
struct Selection {
    extras: Vec<String>,
    all_extras: bool,
    groups: Vec<String>,
    without: Vec<String>,
    /// Only groups, the project's own dependencies not.
    only: bool,
    no_dev: bool,
    all_groups: bool,
    folder: Option<String>,
}

/// Reads a command that installs a project; none where it is another.
pub fn install(index: usize, command: &Command, around: &mut Around<'_>) -> Option<PipInstall> {
    let tool = program(command.words.first()?);
    if !matches!(tool, "uv" | "poetry" | "pdm") {
        return None;
    }
    let at = verb_at(command, 1)?;
    let verb = command.words.get(at)?.known_or_partly();
    let adds = verb == "add";
    if !adds && !matches!((tool, verb), ("uv", "sync" | "run") | ("poetry" | "pdm", "install" | "sync" | "update"))
    {
        return None;
    }
    let mut out = empty(index, PythonTool::Project);
    let mut selection = Selection::default();
    for item in items(around.document, command.words.get(at + 1..)?, VALUED) {
        match item {
            Item::Operand(arg) if adds => operand(&mut out, around.document, arg),
            // The command that `uv run` runs has options of its own.
            Item::Operand(_) => break,
            Item::Option(name, value) => option(&mut out, &mut selection, tool, &name, value),
        }
    }
    settings(&mut out, &around.environment);
    drop_empty(&mut out);
    if !adds {
        let read = files(&mut out, index, command, tool, &selection, around.context);
        // `uv run` runs without a project too.
        if !read && verb != "run" {
            around.missing.push((shown(&path(&selection, "pyproject.toml")), command.span));
        }
        if !read && verb == "run" {
            return None;
        }
    }
    Some(out)
}

fn option(
    out: &mut PipInstall,
    selection: &mut Selection,
    tool: &str,
    name: &str,
    value: Option<args::OptionValue>,
) {
    match name {
        "--all-extras" => selection.all_extras = true,
        "--all-groups" => selection.all_groups = true,
        "--no-dev" | "--no-default-groups" | "--prod" | "--production" => selection.no_dev = true,
        "--no-build-isolation" => out.no_build_isolation = true,
        _ => {}
    }
    let Some(value) = value else { return };
    let text = value.known_or_partly().to_owned();
    let list = || text.split([',', ' ']).filter(|n| !n.is_empty()).map(normal_name);
    match name {
        "--extra" | "-E" | "--extras" => selection.extras.extend(list()),
        "-G" => selection.groups.extend(list()),
        "--group" | "--with" => selection.groups.extend(list()),
        "--only-group" | "--only" => {
            // Poetry's own dependencies are a group named main.
            selection.only = tool != "poetry" || !list().any(|n| n == "main");
            selection.no_dev = true;
            selection.groups.extend(list());
        }
        "--without" | "--no-group" => selection.without.extend(list()),
        "--directory" | "--project" | "-C" | "-P" | "-p" if tool != "uv" || name.len() > 2 => {
            selection.folder = Some(text.clone());
        }
        "--default-index" | "--index-url" | "-i" => out.index = Some(value.setting()),
        "--index" | "--extra-index-url" => out.extra_indexes.push(value.setting()),
        "-f" | "--find-links" => out.find_links.push(value.setting()),
        "--torch-backend" => out.torch_backend = Some(value.setting()),
        "--no-build-isolation-package" => out.no_build_isolation = true,
        _ => {}
    }
}

fn path(selection: &Selection, file: &str) -> String {
    selection.folder.as_ref().map_or_else(|| file.to_owned(), |f| format!("{f}/{file}"))
}

/// Reads the project's files; false where they are not to be had.
fn files(
    out: &mut PipInstall,
    index: usize,
    command: &Command,
    tool: &str,
    selection: &Selection,
    context: &Context<'_>,
) -> bool {
    let Lookup::Found(file) = context.find(index, command, &path(selection, "pyproject.toml")) else {
        return false;
    };
    let text = String::from_utf8_lossy(&file.bytes);
    let Ok(project) = project(&text) else { return false };
    let place = command.span;
    indexes(out, &project, &file, place);
    let direct = selected(&project, selection, tool);
    out.files.push((Text::known(&*file.path), true));
    let lock_name = match tool {
        "uv" => "uv.lock",
        "poetry" => "poetry.lock",
        _ => "pdm.lock",
    };
    let parsed: Vec<(usize, Wanted)> = direct
        .iter()
        .map(|(line, text)| (*line, parse(text, &Asked::File { file: file.path.clone(), line: *line }, false)))
        .collect();
    if let Lookup::Found(lock) = context.find(index, command, &path(selection, lock_name))
        && from_lock(out, &parsed, &lock, place)
    {
        out.files.push((Text::known(&*lock.path), true));
        return true;
    }
    add(out, parsed);
    true
}

fn add(out: &mut PipInstall, parsed: Vec<(usize, Wanted)>) {
    for (_, wanted) in parsed {
        match wanted {
            Wanted::Requirement(requirement) => out.requirements.push(*requirement),
            Wanted::Path(path) => out.local.push(Text::known(path)),
            Wanted::Nothing => {}
        }
    }
}

/// The requirements that are installed.
fn selected(project: &Project, selection: &Selection, tool: &str) -> Requirements {
    let mut out = Vec::new();
    if !selection.only {
        out.extend(project.dependencies.clone());
    }
    for (name, list) in &project.extras {
        if selection.all_extras || selection.extras.contains(name) {
            out.extend(list.clone());
        }
    }
    for (name, list) in &project.groups {
        let usual = match tool {
            "poetry" | "pdm" => !project.optional_groups.contains(name),
            _ => name == "dev",
        };
        let usual = usual && !selection.no_dev && !selection.without.contains(name);
        if usual || selection.all_groups || selection.groups.contains(name) {
            out.extend(list.clone());
        }
    }
    out
}

/// The settled versions instead of what the project asks for.
fn from_lock(out: &mut PipInstall, direct: &[(usize, Wanted)], lock: &Found, place: Span) -> bool {
    let wanted: Vec<(String, Vec<String>)> = direct
        .iter()
        .filter_map(|(_, w)| match w {
            Wanted::Requirement(r) => Some((r.name.clone(), r.extras.clone())),
            _ => None,
        })
        .collect();
    if wanted.is_empty() {
        return true;
    }
    let Ok(packages) = locked(&String::from_utf8_lossy(&lock.bytes), &wanted) else { return false };
    for package in packages {
        let asked = Asked::File { file: lock.path.clone(), line: package.line };
        if let Some(registry) = package.registry.filter(|r| !r.contains("pypi.org")) {
            let known = out.extra_indexes.iter().chain(&out.index);
            if !known.into_iter().any(|i| i.text.value.known() == Some(registry.as_str())) {
                out.extra_indexes.push(file_setting(registry, asked.clone(), place));
            }
        }
        out.requirements.push(Requirement {
            name: package.name,
            extras: Vec::new(),
            specifiers: package.version.map(|v| ("==".to_owned(), v)).into_iter().collect(),
            url: package.url,
            unsure: package.several,
            marker: None,
            asked,
        });
    }
    true
}

fn file_setting(text: String, asked: Asked, span: Span) -> Setting {
    Setting { text: Text { value: Value::Known(text), trail: Vec::new() }, span, file: Some(asked) }
}

fn indexes(out: &mut PipInstall, project: &Project, file: &Found, place: Span) {
    for (line, url, default) in &project.indexes {
        let setting = file_setting(url.clone(), Asked::File { file: file.path.clone(), line: *line }, place);
        if *default && out.index.is_none() {
            out.index = Some(setting);
        } else {
            out.extra_indexes.push(setting);
        }
    }
}

/// What `pip install -r pyproject.toml` and `pip install .` take of a project's file.
pub fn dependencies(out: &mut PipInstall, file: &Found, extras: &[String]) {
    let Ok(project) = project(&String::from_utf8_lossy(&file.bytes)) else { return };
    let selection = Selection { extras: extras.to_vec(), no_dev: true, ..Selection::default() };
    let parsed = selected(&project, &selection, "pip")
        .into_iter()
        .map(|(line, text)| (line, parse(&text, &Asked::File { file: file.path.clone(), line }, false)))
        .collect();
    add(out, parsed);
}
