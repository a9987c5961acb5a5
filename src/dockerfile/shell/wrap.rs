//! Programs that run another: `sudo`, `env`, `xargs`, `conda run` and their kin.

use super::Arg;
use super::parse::is_assignment;

/// A program that runs the words behind it.
struct Wrapper {
    name: &'static str,
    /// Words that have to follow its name: `run` of `conda run`.
    verb: &'static str,
    /// Options that take the next word.
    valued: &'static [&'static str],
    /// Words of its own before the command's: the time of `timeout`.
    operands: usize,
    /// `NAME=value` words before the command set its environment.
    assigns: bool,
    /// It does something itself, so that it is noted too.
    also: bool,
}

const fn wrapper(name: &'static str, valued: &'static [&'static str]) -> Wrapper {
    Wrapper { name, verb: "", valued, operands: 0, assigns: false, also: false }
}

const fn run(name: &'static str, valued: &'static [&'static str], also: bool) -> Wrapper {
    Wrapper { verb: "run", also, ..wrapper(name, valued) }
}

const CONDA: &[&str] = &["-n", "--name", "-p", "--prefix", "--cwd", "-r", "--root-prefix", "-a", "--attach", "-e"];

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        assigns: true,
        ..wrapper("sudo", &["-u", "-g", "-p", "-C", "-h", "-r", "-t", "-U", "-D", "-R", "-T", "--user", "--group"])
    },
    Wrapper { assigns: true, ..wrapper("env", &["-u", "--unset", "-C", "--chdir", "-S", "--split-string"]) },
    wrapper("nice", &["-n", "--adjustment"]),
    wrapper("ionice", &["-c", "-n", "-p", "--class", "--classdata"]),
    wrapper("time", &["-f", "-o", "--format", "--output"]),
    wrapper("nohup", &[]),
    wrapper("setsid", &[]),
    wrapper("unbuffer", &[]),
    wrapper("catchsegv", &[]),
    wrapper("tini", &["-p", "-e"]),
    wrapper("dumb-init", &[]),
    wrapper("command", &[]),
    wrapper("builtin", &[]),
    wrapper("exec", &["-a"]),
    wrapper("stdbuf", &["-i", "-o", "-e"]),
    wrapper("xvfb-run", &["-s", "-n", "-e", "-f", "-p", "--server-args", "--server-num"]),
    wrapper(
        "xargs",
        &["-n", "-P", "-I", "-d", "-L", "-a", "-s", "-E", "--max-args", "--max-procs", "--replace", "--delimiter"],
    ),
    Wrapper { operands: 1, ..wrapper("timeout", &["-k", "-s", "--kill-after", "--signal"]) },
    Wrapper { operands: 1, ..wrapper("chroot", &[]) },
    Wrapper { operands: 1, ..wrapper("gosu", &[]) },
    Wrapper { operands: 1, ..wrapper("su-exec", &[]) },
    Wrapper { operands: 1, ..wrapper("setarch", &[]) },
    wrapper("linux32", &[]),
    wrapper("linux64", &[]),
    run("conda", CONDA, false),
    run("mamba", CONDA, false),
    run("micromamba", CONDA, false),
    run("poetry", &["-C", "--directory"], true),
    run("pipenv", &[], true),
    run("pdm", &["-p", "--project"], true),
    run(
        "uv",
        &[
            "--with",
            "--extra",
            "--group",
            "--python",
            "-p",
            "--directory",
            "--project",
            "--with-requirements",
            "--with-editable",
            "--env-file",
            "--index",
            "--index-url",
            "--extra-index-url",
            "--package",
            "--no-group",
            "--only-group",
        ],
        true,
    ),
];

/// What a wrapper leaves.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Inner {
    /// Words before the command's first.
    pub skip: usize,
    /// Those that are assignments.
    pub assignments: Vec<usize>,
    /// Words that are not in the file follow: `xargs`.
    pub more: bool,
    /// The wrapper does something itself.
    pub also: bool,
}

/// The command that a wrapper runs; none where the words are no wrapper's, or it runs none.
pub fn strip(words: &[Arg]) -> Option<Inner> {
    let text = |at: usize| words.get(at).map(|w| w.text.value.known().unwrap_or_default());
    let first = text(0)?;
    let name = first.rsplit('/').next().unwrap_or(first);
    let wrapper = WRAPPERS.iter().find(|w| w.name == name)?;
    let mut inner = Inner { skip: 1, more: name == "xargs", also: wrapper.also, ..Inner::default() };
    if !wrapper.verb.is_empty() {
        // Options may stand before the verb too.
        skip_options(words, &mut inner.skip, wrapper.valued);
        if text(inner.skip) != Some(wrapper.verb) {
            return None;
        }
        inner.skip += 1;
    }
    skip_options(words, &mut inner.skip, wrapper.valued);
    while wrapper.assigns && words.get(inner.skip).is_some_and(|w| is_assignment(w.known_or_partly())) {
        inner.assignments.push(inner.skip);
        inner.skip += 1;
    }
    inner.skip += wrapper.operands;
    (inner.skip < words.len()).then_some(inner)
}

fn skip_options(words: &[Arg], at: &mut usize, valued: &[&str]) {
    while let Some(word) = words.get(*at).and_then(|w| w.text.value.known()) {
        if !word.starts_with('-') || word == "-" {
            return;
        }
        *at += 1;
        if word == "--" {
            return;
        }
        *at += usize::from(valued.contains(&word));
    }
}

/// Where the script of `bash -c …`, `su user -c …` stands; or that it is read from the standard input.
#[derive(Debug, PartialEq, Eq)]
pub enum ShellScript {
    /// By the word's index.
    Word(usize),
    Input,
    /// A file, or nothing that could be read.
    None,
}

/// Whether a program's name is that of a POSIX shell.
pub fn is_shell(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    matches!(name, "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh")
}

/// What a shell or `su` is told to run; none where the words are not theirs.
pub fn shell_script(words: &[Arg]) -> Option<ShellScript> {
    let text = |at: usize| words.get(at).map(|w| w.text.value.known().unwrap_or_default());
    let first = text(0)?;
    let name = first.rsplit('/').next().unwrap_or(first);
    let shell = is_shell(name);
    let switch = matches!(name, "su" | "runuser" | "script");
    if name == "busybox" && text(1).is_some_and(is_shell) {
        return shell_script(words.get(1..)?).map(|s| match s {
            ShellScript::Word(at) => ShellScript::Word(at + 1),
            other => other,
        });
    }
    if name == "scl" && text(1) == Some("enable") {
        // The last word is the script, where it is one word.
        return Some(ShellScript::Word(words.len() - 1)).filter(|_| words.len() > 3);
    }
    if !shell && !switch {
        return None;
    }
    let mut at = 1;
    while let Some(word) = text(at) {
        at += 1;
        if word == "-c" || word == "--command" {
            return Some(if at < words.len() { ShellScript::Word(at) } else { ShellScript::None });
        }
        if !shell {
            continue;
        }
        match word {
            "-" | "-s" => return Some(ShellScript::Input),
            "--rcfile" | "--init-file" => at += 1,
            "--" => return Some(if at < words.len() { ShellScript::None } else { ShellScript::Input }),
            _ if word.starts_with("--") => {}
            _ if word.starts_with(['-', '+']) => {
                let option = word.contains(['o', 'O']);
                at += usize::from(option);
                if word.contains('c') {
                    // `-c` may have more options behind it.
                    while text(at).is_some_and(|w| w.starts_with('-')) {
                        at += 1;
                    }
                    return Some(if at < words.len() { ShellScript::Word(at) } else { ShellScript::None });
                }
            }
            _ => return Some(ShellScript::None),
        }
    }
    Some(if shell { ShellScript::Input } else { ShellScript::None })
}
