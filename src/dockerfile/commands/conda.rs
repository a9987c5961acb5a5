//! `conda install`, `conda create`, `mamba env create -f`, and micromamba.

use super::args::{Item, bare, items, program, readings};
use super::context::Lookup;
use super::pip::{Around, empty, shown, take_line};
use super::requirements::conda::{environment, specification};
use super::requirements::txt;
use super::{Asked, CondaInstall, HOLE, PythonTool};
use crate::dockerfile::shell::{Arg, Command};
use crate::dockerfile::span::Span;
use crate::dockerfile::value::Text;

const VALUED: &[&str] = &[
    "-n",
    "--name",
    "-p",
    "--prefix",
    "-c",
    "--channel",
    "--file",
    "-f",
    "--solver",
    "--revision",
    "--clone",
    "--platform",
    "--subdir",
    "-r",
    "--root-prefix",
    "--repodata-fn",
    "--relocate-prefix",
    "--rc-file",
    "--category",
    "--download-threads",
    "--extract-threads",
    "--channel-alias",
    "--rcfile",
    "--safety-checks",
    "--experimental",
    "--no-rc-file",
];

/// Reads a command of conda's; none where it installs nothing.
pub fn install(index: usize, command: &Command, around: &mut Around<'_>) -> Option<CondaInstall> {
    let name = program(command.words.first()?);
    if !matches!(name, "conda" | "mamba" | "micromamba" | "rapids-conda-retry" | "rapids-mamba-retry") {
        return None;
    }
    let all = items(around.document, command.args(), VALUED);
    let mut verbs = all.iter().filter_map(|i| match i {
        Item::Operand(arg) => Some(arg.known_or_partly()),
        Item::Option(..) => None,
    });
    let environment_verb = match verbs.next()? {
        "env" if matches!(verbs.next()?, "create" | "update") => true,
        "install" | "create" | "update" | "upgrade" => false,
        _ => return None,
    };
    let mut out = CondaInstall {
        command: index,
        packages: Vec::new(),
        channels: Vec::new(),
        files: Vec::new(),
        pip: Vec::new(),
    };
    let mut skip = if environment_verb { 2 } else { 1 };
    for item in all {
        match item {
            Item::Operand(_) if skip > 0 => skip -= 1,
            Item::Operand(_) if environment_verb => {}
            Item::Operand(arg) => package(&mut out, arg, &Asked::Here(bare(around.document, arg.span))),
            Item::Option(name, Some(value)) => match name.as_str() {
                "-c" | "--channel" => {
                    let channel = value.known_or_partly().replace(HOLE, "");
                    out.channels.extend(Some(channel).filter(|c| !c.is_empty()));
                }
                "-f" | "--file" => {
                    let path = value.known_or_partly().to_owned();
                    let read = file(&mut out, index, command, &path, value.span, around);
                    if !read {
                        around.missing.push((shown(&path), value.span));
                    }
                    out.files.push((value.text, read));
                }
                _ => {}
            },
            Item::Option(..) => {}
        }
    }
    // Without a file named, `conda env create` takes environment.yml.
    if environment_verb && out.files.is_empty() {
        let path = "environment.yml";
        let read = file(&mut out, index, command, path, command.span, around);
        if !read {
            around.missing.push((path.to_owned(), command.span));
        }
        out.files.push((Text::known(path), read));
    }
    Some(out)
}

fn package(out: &mut CondaInstall, arg: &Arg, asked: &Asked) {
    for (text, _) in readings(arg) {
        for word in words(text) {
            add(out, &word, asked.clone());
        }
    }
}

/// A list in one word; a specification may have blanks inside where it was quoted.
fn words(text: &str) -> Vec<String> {
    if text.contains(['<', '>', '=', '!']) {
        vec![text.to_owned()]
    } else {
        text.split_whitespace().map(str::to_owned).collect()
    }
}

fn add(out: &mut CondaInstall, text: &str, asked: Asked) {
    let Some((channel, name, version)) = specification(text) else { return };
    if let Some(channel) = channel.filter(|c| !out.channels.contains(c)) {
        out.channels.push(channel);
    }
    out.packages.push((name, version, asked));
}

/// Reads an environment file, or a list of specifications.
fn file(
    out: &mut CondaInstall,
    index: usize,
    command: &Command,
    path: &str,
    span: Span,
    around: &mut Around<'_>,
) -> bool {
    let Lookup::Found(file) = around.context.find(index, command, path) else { return false };
    let at = |line| Asked::File { file: file.path.clone(), line };
    if !file.path.ends_with(".yml") && !file.path.ends_with(".yaml") {
        for (line, item) in txt::lines(&file.bytes, &|_| None) {
            if let txt::Line::Requirement(text, _) = item {
                add(out, &text, at(line));
            }
        }
        return true;
    }
    let read = environment(&file.bytes);
    out.channels.extend(read.channels);
    for (line, text) in read.packages {
        add(out, &text, at(line));
    }
    let mut pip = empty(index, PythonTool::Pip);
    for (line, text) in read.pip {
        for (_, item) in txt::lines(text.as_bytes(), &|_| None) {
            match item {
                txt::Line::File(path) => {
                    let Lookup::Found(more) = around.context.beside(&file.path, &path) else {
                        around.missing.push((shown(&path), span));
                        continue;
                    };
                    for (line, item) in txt::lines(&more.bytes, &|_| None) {
                        take_line(&mut pip, item, &Asked::File { file: more.path.clone(), line }, span);
                    }
                }
                item => take_line(&mut pip, item, &at(line), span),
            }
        }
    }
    out.pip.append(&mut pip.requirements);
    true
}
