//! `pip install`, `uv pip install` and programs that take the same arguments.

use super::args::{self, Item, OptionValue, bare, items, program, python_module, readings};
use super::context::{Context, Lookup};
use super::environment::Environment;
use super::requirements::specifier::{Wanted, is_url, parse, split_extras};
use super::requirements::txt::{self, Line};
use super::settings::{drop_empty, settings};
use super::{Asked, HOLE, PipInstall, PythonTool, Setting};
use crate::dockerfile::shell::{Arg, Command};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Document;
use crate::dockerfile::value::{Text, Value};

/// Options of pip, uv and their kin that take a value.
const VALUED: &[&str] = &[
    "-r",
    "--requirement",
    "--requirements",
    "-c",
    "--constraint",
    "--constraints",
    "-e",
    "--editable",
    "-t",
    "--target",
    "-i",
    "--index-url",
    "--pypi-url",
    "--extra-index-url",
    "-f",
    "--find-links",
    "--platform",
    "--python-version",
    "--implementation",
    "--abi",
    "--root",
    "--prefix",
    "--src",
    "--upgrade-strategy",
    "-C",
    "--config-settings",
    "--config-setting",
    "--config-settings-package",
    "--global-option",
    "--install-option",
    "--build-option",
    "--no-binary",
    "--only-binary",
    "--progress-bar",
    "--root-user-action",
    "--report",
    "--group",
    "--log",
    "--proxy",
    "--retries",
    "--timeout",
    "--exists-action",
    "--trusted-host",
    "--cert",
    "--client-cert",
    "--cache-dir",
    "--use-feature",
    "--use-deprecated",
    "--keyring-provider",
    "--python",
    "-w",
    "--wheel-dir",
    "-d",
    "--dest",
    "-b",
    "--build-constraint",
    "--build-constraints",
    "--resume-retries",
    "--uploaded-prior-to",
    "-p",
    "--index",
    "--default-index",
    "--index-strategy",
    "--python-platform",
    "--torch-backend",
    "--extra",
    "--override",
    "--overrides",
    "--prerelease",
    "--resolution",
    "--exclude-newer",
    "--link-mode",
    "--no-build-isolation-package",
    "--no-build-package",
    "--no-binary-package",
    "--only-binary-package",
    "--reinstall-package",
    "--refresh-package",
    "-P",
    "--upgrade-package",
    "--color",
    "--directory",
    "--project",
    "--config-file",
    "--allow-insecure-host",
    "--fork-strategy",
    "--python-preference",
    "--preinstall",
    "--backend",
    "--suffix",
    "--pip-args",
    "--spec",
    "--build-dir",
    "--src-dir",
    "--download-cache",
    "--excludes",
    "--exclude",
];

/// Files that one install names, one through another.
const MOST_FILES: usize = 64;

/// Requirements kept of one install.
const MOST_REQUIREMENTS: usize = 10_000;

/// What a command line of an installer is about.
pub struct Invocation<'a> {
    pub tool: PythonTool,
    /// `install`, `wheel`, `config`.
    pub verb: &'a str,
    /// Behind the verb.
    pub args: &'a [Arg],
}

/// pip, uv pip, pipx, mim; none where the command is another.
pub fn invocation(command: &Command) -> Option<Invocation<'_>> {
    let first = command.words.first()?;
    let mut name = program(first);
    let mut at = 1;
    if let Some((module, behind)) = python_module(command) {
        (name, at) = (module, behind);
    }
    let mut tool = PythonTool::Pip;
    let uv = name == "uv";
    if uv {
        at = verb_at(command, at)?;
        match command.words.get(at)?.known_or_partly() {
            "pip" => at += 1,
            "tool" => at += 1,
            _ => return None,
        }
        tool = PythonTool::UvPip;
    }
    let pip = name
        .strip_prefix("pip")
        .is_some_and(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.' || HOLE.contains(c)));
    let variable = name == HOLE && command.words.get(1).is_some_and(|w| w.known_or_partly() == "install");
    if !(uv || pip || variable || matches!(name, "pipx" | "mim" | "pip-sync" | "rapids-pip-retry")) {
        return None;
    }
    if name == "pip-sync" {
        return Some(Invocation { tool, verb: "sync", args: command.words.get(1..)? });
    }
    let at = verb_at(command, at)?;
    Some(Invocation { tool, verb: command.words.get(at)?.known_or_partly(), args: command.words.get(at + 1..)? })
}

/// The first word that is no option.
pub fn verb_at(command: &Command, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let text = command.words.get(at)?.known_or_partly();
        if !text.starts_with('-') {
            return Some(at);
        }
        at += if VALUED.contains(&text) { 2 } else { 1 };
    }
}

/// What stands around an install.
pub struct Around<'a> {
    pub document: &'a Document,
    pub context: &'a Context<'a>,
    pub environment: Environment<'a>,
    pub missing: &'a mut Vec<(String, Span)>,
}

/// An install with nothing in it.
pub fn empty(command: usize, tool: PythonTool) -> PipInstall {
    PipInstall {
        command,
        tool,
        requirements: Vec::new(),
        index: None,
        extra_indexes: Vec::new(),
        find_links: Vec::new(),
        torch_backend: None,
        files: Vec::new(),
        constraints: Vec::new(),
        local: Vec::new(),
        no_build_isolation: false,
        no_binary: Vec::new(),
        pre: false,
        upgrade: false,
        no_deps: false,
        more: false,
    }
}

/// Reads an install's arguments.
pub fn install(
    index: usize,
    command: &Command,
    invocation: &Invocation<'_>,
    around: &mut Around<'_>,
) -> Option<PipInstall> {
    let mim = program(command.words.first()?) == "mim";
    if !matches!(invocation.verb, "install" | "download" | "wheel" | "sync" | "inject")
        || (mim && invocation.verb != "install")
    {
        return None;
    }
    let mut out = empty(index, invocation.tool);
    let mut files = Vec::new();
    for item in items(around.document, invocation.args, VALUED) {
        match item {
            Item::Operand(arg) if invocation.verb == "sync" => {
                files.push(args::whole(around.document, arg));
            }
            Item::Operand(arg) => operand(&mut out, around.document, arg),
            Item::Option(name, value) => option(&mut out, &mut files, &name, value, around.document),
        }
    }
    settings(&mut out, &around.environment);
    drop_empty(&mut out);
    for file in files {
        let path = file.known_or_partly().to_owned();
        let read = requirements_file(&mut out, index, command, &path, file.span, around);
        if !read {
            around.missing.push((shown(&path), file.span));
        }
        out.files.push((file.text, read));
    }
    projects(&mut out, index, command, around.context);
    Some(out)
}

/// What the projects that are installed from their folders need.
fn projects(out: &mut PipInstall, index: usize, command: &Command, context: &Context<'_>) {
    if out.no_deps {
        return;
    }
    let local: Vec<String> = out.local.iter().filter_map(|l| l.value.known().map(str::to_owned)).collect();
    for path in local {
        let (folder, extras) = split_extras(&path);
        if let Some(Lookup::Found(file)) = context.find_copied(index, command, &format!("{folder}/pyproject.toml"))
        {
            super::project::dependencies(out, &file, &extras);
        }
    }
}

/// A path as people are told of it.
pub fn shown(path: &str) -> String {
    path.replace(HOLE, "…")
}

/// A requirement on the command line.
pub fn operand(out: &mut PipInstall, document: &Document, arg: &Arg) {
    let asked = Asked::Here(bare(document, arg.span));
    for (text, sure) in readings(arg) {
        // A list in one word, of several that it may be.
        if !sure && !text.contains("://") && text.contains(char::is_whitespace) && !text.contains([';', '<', '>']) {
            for word in text.split_whitespace() {
                want(out, word, &asked, false, arg);
            }
        } else {
            want(out, text, &asked, sure, arg);
        }
    }
}

/// The value of `-e`: a folder, unless it is a URL.
fn editable(out: &mut PipInstall, document: &Document, arg: &Arg) {
    if is_url(arg.known_or_partly()) {
        operand(out, document, arg);
    } else {
        out.local.push(arg.text.clone());
    }
}

fn want(out: &mut PipInstall, text: &str, asked: &Asked, sure: bool, arg: &Arg) {
    if out.requirements.len() >= MOST_REQUIREMENTS {
        out.more = true;
        return;
    }
    match parse(text, asked, !sure) {
        Wanted::Requirement(requirement) => out.requirements.push(*requirement),
        Wanted::Path(path) => {
            let value = if sure { Value::Known(path) } else { arg.text.value.clone() };
            out.local.push(Text { value, trail: arg.text.trail.clone() });
        }
        Wanted::Nothing => out.more |= !sure,
    }
}

/// Whether what is installed for editing is a folder by its name alone.
fn is_folder(text: &str) -> bool {
    !text.is_empty() && !text.contains(['/', ':', '@', '[', ' '])
}

fn option(
    out: &mut PipInstall,
    files: &mut Vec<OptionValue>,
    name: &str,
    value: Option<OptionValue>,
    document: &Document,
) {
    match name {
        "--no-build-isolation" => out.no_build_isolation = true,
        "--pre" => out.pre = true,
        "-U" | "--upgrade" => out.upgrade = true,
        "--no-deps" => out.no_deps = true,
        _ => {}
    }
    let Some(value) = value else { return };
    match name {
        "-r" | "--requirement" | "--requirements" => files.push(value),
        "-c" | "--constraint" | "--constraints" => out.constraints.push(value.text),
        // A folder, even without a slash; else the URL of a repository.
        "-e" | "--editable" if value.text.value.known().is_some_and(is_folder) => {
            out.local.push(value.text);
        }
        "-e" | "--editable" => {
            let arg = Arg { text: value.text, partly: value.partly, span: value.span };
            editable(out, document, &arg);
        }
        "-i" | "--index-url" | "--pypi-url" | "--default-index" => out.index = Some(named_index(value)),
        "--extra-index-url" | "--index" => out.extra_indexes.push(named_index(value)),
        "-f" | "--find-links" => out.find_links.push(value.setting()),
        "--torch-backend" => out.torch_backend = Some(value.setting()),
        "--no-build-isolation-package" => out.no_build_isolation = true,
        "--prerelease" => out.pre |= value.text.value.known() == Some("allow"),
        "--no-binary" | "--no-binary-package" => {
            out.no_binary.extend(value.known_or_partly().split(',').map(super::requirements::no_binary_name));
        }
        _ => {}
    }
}

/// uv's `name=URL`.
fn named_index(value: OptionValue) -> Setting {
    let mut setting = value.setting();
    let parts = setting.text.value.known().and_then(|t| t.split_once('='));
    if let Some((name, url)) = parts.filter(|(n, _)| !n.contains([':', '/'])) {
        setting.span.start = (setting.span.start + name.len() + 1).min(setting.span.end);
        setting.text.value = Value::Known(url.to_owned());
    }
    setting
}

/// Reads a requirements file and those that it names; false where it is not to be had.
fn requirements_file(
    out: &mut PipInstall,
    index: usize,
    command: &Command,
    path: &str,
    span: Span,
    around: &mut Around<'_>,
) -> bool {
    let Lookup::Found(file) = around.context.find(index, command, path) else { return false };
    let mut open = vec![file];
    let mut seen = Vec::new();
    while let Some(file) = open.pop() {
        if seen.contains(&file.path) || seen.len() >= MOST_FILES {
            continue;
        }
        seen.push(file.path.clone());
        if file.path.ends_with(".toml") {
            super::project::dependencies(out, &file, &[]);
            continue;
        }
        let environment = &around.environment;
        let variable =
            |name: &str| environment.variable(name).and_then(|s| s.text.value.known().map(str::to_owned));
        for (line, item) in txt::lines(&file.bytes, &variable) {
            let asked = Asked::File { file: file.path.clone(), line };
            match item {
                Line::File(path) => match around.context.beside(&file.path, &path) {
                    Lookup::Found(next) => open.push(next),
                    Lookup::Missing => around.missing.push((shown(&path), span)),
                },
                item => take_line(out, item, &asked, span),
            }
        }
    }
    true
}

/// What a line of a requirements file adds.
pub fn take_line(out: &mut PipInstall, line: Line, asked: &Asked, span: Span) {
    let setting = |text: String| {
        let value = if text.contains(HOLE) { Value::Unknown } else { Value::Known(text) };
        Setting { text: Text { value, trail: Vec::new() }, span, file: Some(asked.clone()) }
    };
    match line {
        Line::Requirement(path, true) if !is_url(&path) => out.local.push(Text::known(path)),
        Line::Requirement(text, _) => {
            let sure = !text.contains(HOLE);
            let partly = (!sure).then(|| text.clone());
            let value = if sure { Value::Known(text.clone()) } else { Value::Unknown };
            let arg = Arg { text: Text { value, trail: Vec::new() }, partly, span };
            want(out, &text, asked, sure, &arg);
        }
        Line::Constraint(path) => out.constraints.push(Text::known(path)),
        Line::Index(url) => {
            if out.index.is_none() {
                out.index = Some(setting(url));
            }
        }
        Line::ExtraIndex(url) => out.extra_indexes.push(setting(url)),
        Line::FindLinks(url) => out.find_links.push(setting(url)),
        Line::NoBinary(list) => {
            out.no_binary.extend(list.split(',').map(super::requirements::no_binary_name));
        }
        Line::Pre => out.pre = true,
        Line::File(_) => {}
    }
}
