//! Builds from source: setup.py, cmake, make, nvcc, cargo, bazel.

use super::args::{Item, behind, is_python, items, operands, program, python_module, whole};
use super::pip::invocation;
use super::{BuildTool, Setting, SourceBuild};
use crate::dockerfile::shell::{Arg, Command, join_path};
use crate::dockerfile::syntax::Document;
use crate::dockerfile::value::Value;

/// Reads a build; none where the command is none.
pub fn build(document: &Document, index: usize, command: &Command) -> Option<SourceBuild> {
    let name = program(command.words.first()?);
    let new = |tool, defines, dir| Some(SourceBuild { command: index, tool, defines, dir });
    let here = || command.dir.clone();
    match name {
        "cmake" | "cmake3" | "ccmake" => {
            let (defines, source) = cmake(document, command.args())?;
            let dir = source.map_or_else(here, |s| join_path(&command.dir, &s.text.value));
            return new(BuildTool::Cmake, defines, dir);
        }
        "make" | "gmake" | "remake" => {
            let (defines, folder) = make(document, command.args());
            let dir = folder.map_or_else(here, |f| join_path(&command.dir, &f));
            return new(BuildTool::Make, defines, dir);
        }
        "nvcc" | "hipcc" => return new(BuildTool::Nvcc, nvcc(document, command.args()), here()),
        "cargo" => return cargo(document, command).and_then(|d| new(BuildTool::Cargo, d, here())),
        "bazel" | "bazelisk" => return bazel(document, command).and_then(|d| new(BuildTool::Bazel, d, here())),
        "uv" | "poetry" | "hatch" | "pdm"
            if command.args().first().is_some_and(|a| a.known_or_partly() == "build") =>
        {
            return new(BuildTool::Setuptools, Vec::new(), here());
        }
        _ => {}
    }
    if let Some(found) = invocation(command).filter(|i| i.verb == "wheel") {
        let local = operands(document, found.args, &["-w", "--wheel-dir", "-r", "-c", "-i", "-f"]);
        let path = local.into_iter().find(|a| super::requirements::specifier::is_path(a.known_or_partly()))?;
        return new(BuildTool::Setuptools, Vec::new(), join_path(&command.dir, &path.text.value));
    }
    if python_module(command).is_some_and(|(module, _)| module == "build") {
        return new(BuildTool::Setuptools, Vec::new(), here());
    }
    if is_python(name) && setup(command) {
        return new(BuildTool::Setuptools, Vec::new(), here());
    }
    None
}

/// `python setup.py install`
fn setup(command: &Command) -> bool {
    const VERBS: [&str; 7] = ["install", "develop", "bdist_wheel", "build", "build_ext", "bdist", "install_lib"];
    let mut words = command.args().iter().map(Arg::known_or_partly).skip_while(|w| w.starts_with('-'));
    words.next().is_some_and(|w| w.rsplit('/').next() == Some("setup.py")) && words.any(|w| VERBS.contains(&w))
}

type Defines = Vec<(String, Setting)>;

/// `-DNAME=value`, and the source folder; none where nothing is configured.
fn cmake<'a>(document: &Document, args: &'a [Arg]) -> Option<(Defines, Option<&'a Arg>)> {
    let mut defines = Vec::new();
    let mut source = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.known_or_partly();
        match text {
            "--build" | "--install" | "-E" | "-P" | "--version" | "--help" | "--open" => return None,
            "-S" => source = rest.next(),
            "-B" | "-G" | "-C" | "-T" | "-A" | "-U" | "--preset" | "--toolchain" | "--install-prefix" => {
                rest.next();
            }
            "-D" => {
                let Some(next) = rest.next() else { break };
                defines.extend(define(document, next, 0));
            }
            _ if text.starts_with("-D") => defines.extend(define(document, arg, 2)),
            _ if text.starts_with('-') => {}
            _ => source = Some(arg),
        }
    }
    Some((defines, source))
}

/// `NAME=value`, `NAME:TYPE=value`, behind `skip` bytes.
fn define(document: &Document, arg: &Arg, skip: usize) -> Option<(String, Setting)> {
    let text = arg.known_or_partly().get(skip..)?;
    let (name, _) = text.split_once('=')?;
    let value = behind(document, arg, skip + name.len() + 1).setting();
    Some((name.split(':').next().unwrap_or(name).to_owned(), value))
}

/// `NAME=value` of make, and its folder.
fn make(document: &Document, args: &[Arg]) -> (Defines, Option<Value>) {
    let mut defines = Vec::new();
    let mut folder = None;
    for item in items(document, args, &["-C", "--directory", "-f", "--file", "-I", "-o", "-W"]) {
        match item {
            Item::Operand(arg) => {
                let named = define(document, arg, 0);
                defines
                    .extend(named.map(|(name, value)| (name.trim_end_matches(['+', '?', ':']).to_owned(), value)));
            }
            Item::Option(name, Some(value)) if name == "-C" || name == "--directory" => {
                folder = Some(value.text.value)
            }
            Item::Option(..) => {}
        }
    }
    (defines, folder)
}

/// Options that say what is generated, under their own names.
fn nvcc(document: &Document, args: &[Arg]) -> Defines {
    const OPTIONS: [&str; 8] = [
        "-gencode",
        "--generate-code",
        "-arch",
        "--gpu-architecture",
        "-code",
        "--gpu-code",
        "--offload-arch",
        "--amdgpu-target",
    ];
    let mut out = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.known_or_partly();
        if let Some(option) = OPTIONS.into_iter().find(|o| *o == text) {
            out.extend(rest.next().map(|v| (option.to_owned(), whole(document, v).setting())));
        } else if let Some((option, _)) = text.split_once('=').filter(|(o, _)| OPTIONS.contains(o)) {
            out.push((option.to_owned(), behind(document, arg, option.len() + 1).setting()));
        }
    }
    out
}

fn cargo(document: &Document, command: &Command) -> Option<Defines> {
    let mut verb = false;
    let mut out = Vec::new();
    for item in items(document, command.args(), &["--features", "-F", "--target", "--manifest-path", "--bin", "-p"])
    {
        match item {
            Item::Operand(arg) => verb |= matches!(arg.known_or_partly(), "build" | "install" | "rustc" | "chef"),
            Item::Option(name, Some(value)) if name == "--features" || name == "-F" => {
                out.push(("--features".to_owned(), value.setting()));
            }
            Item::Option(..) => {}
        }
    }
    verb.then_some(out)
}

/// `--config=cuda` under its own name; `--action_env=NAME=value` and its kin under the variable's.
fn bazel(document: &Document, command: &Command) -> Option<Defines> {
    let mut verb = false;
    let mut out = Vec::new();
    for arg in command.args() {
        let text = arg.known_or_partly();
        verb |= matches!(text, "build" | "run" | "test");
        let Some((option, value)) = text.split_once('=').filter(|_| text.starts_with("--")) else { continue };
        match option {
            "--action_env" | "--repo_env" | "--define" | "--test_env" | "--host_action_env" => {
                let Some((name, _)) = value.split_once('=') else { continue };
                let skip = option.len() + name.len() + 2;
                out.push((name.to_owned(), behind(document, arg, skip).setting()));
            }
            "--config" | "--copt" | "--cxxopt" => {
                out.push((option.to_owned(), behind(document, arg, option.len() + 1).setting()));
            }
            _ => {}
        }
    }
    verb.then_some(out)
}
