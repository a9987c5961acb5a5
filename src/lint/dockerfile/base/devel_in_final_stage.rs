//! A compiler in the image that nothing in the file needs.

use super::from::images;
use crate::catalog::bases::{BaseFamily, Flavour};
use crate::catalog::cuda_tags::TagState;
use crate::dockerfile::shell::{Arg, Command};
use crate::lint::dockerfile::{Found, Lint};

/// Programs that compile, or that may start anything.
const BUILDERS: &[&str] = &[
    "make",
    "cmake",
    "ninja",
    "meson",
    "bazel",
    "nvcc",
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "clang++",
    "cargo",
    "go",
    "rustup",
    "configure",
    "npm",
    "mim",
    "poetry",
    "uv",
    "pixi",
    "sh",
    "bash",
    "source",
    ".",
    "eval",
    "conda",
    "mamba",
];

/// Parts of names of packages that somebody installs to compile with.
const TOOLS: &[&str] =
    &["build-essential", "gcc", "g++", "cmake", "ninja", "clang", "llvm", "rustc", "cargo", "ccache"];

/// Wheels that bring their compiler, or need none.
const PYTORCH: &[&str] = &["torch", "torchvision", "torchaudio"];

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(last) = lint.reading.last else { return };
    let Some(root) = lint.reading.stages.get(last).map(|s| s.root.1) else { return };
    let Some(image) = images(lint).into_iter().find(|i| i.stage == root) else { return };
    let devel = image.every(|_, base| {
        let nvidia = |f: BaseFamily| matches!(f, BaseFamily::NvidiaCuda | BaseFamily::Pytorch);
        base.filter(|b| b.flavour == Some(Flavour::Devel) && nvidia(b.family)).cloned()
    });
    let Some((base, reference, one_of)) = devel else { return };
    if one_of || compiles(lint) || is_workbench(lint, last) {
        return;
    }
    let message = format!(
        "the image keeps the compiler and the headers of `{reference}`{}, and nothing in the file is seen to need them at run \
         time: several gigabytes",
        lint.trail(&image.text.trail)
    );
    let mut found = Found::note(image.from, message)
        .label("devel")
        .help("take the runtime flavour; what is compiled, compile in a devel stage of its own, and copy it")
        .because(base.because.clone());
    if let Some(tag) = base.tag.as_deref() {
        let runtime = tag.replace("-devel", "-runtime");
        let there = base.family != BaseFamily::NvidiaCuda
            || matches!(lint.catalog.cuda_tags().state(&runtime).state, TagState::Live | TagState::Outdated);
        if let Some(edits) = image.retag(lint, tag, &runtime).filter(|_| there) {
            found = found.suggest("take the runtime flavour", edits);
        }
    }
    out.push(found);
}

/// Whether anything in the image compiles, may compile, or is not known.
fn compiles(lint: &Lint<'_>) -> bool {
    let here = |command: usize| lint.reading.commands.get(command).is_some_and(|c| lint.in_image(c.instruction));
    let started = |c: &Command| {
        let program = c.program().unwrap_or_default();
        let script = c
            .words
            .first()
            .is_none_or(|w| w.known_or_partly().ends_with(".sh") || w.known_or_partly().starts_with("./"));
        program.is_empty() || script || BUILDERS.contains(&program) || program.starts_with("gcc-") || runs_file(c)
    };
    let extension = |name: &str| !PYTORCH.contains(&name) && lint.catalog.extensions().find_package(name).is_some();
    let pip = lint.asks.pip.iter().filter(|p| here(p.command)).any(|p| {
        !p.local.is_empty()
            || p.files.iter().any(|(_, read)| !read)
            || p.requirements.iter().any(|r| r.unsure || r.url.is_some() || extension(&r.name))
    });
    let system = lint.asks.system.iter().filter(|s| here(s.command)).flat_map(|s| &s.packages);
    lint.builds().iter().any(|b| lint.in_image(b.command.instruction))
        || lint.build_commands().any(|(_, c)| lint.in_image(c.instruction) && (c.guessed || started(c)))
        || pip
        || !lint.asks.missing.is_empty()
        || lint.asks.conda.iter().any(|c| here(c.command))
        || lint.asks.clones.iter().any(|c| here(c.command))
        || system.into_iter().any(|p| TOOLS.iter().any(|t| p.name.contains(t)))
}

/// `python setup.py`, `python install.py`: what it does is not known.
fn runs_file(command: &Command) -> bool {
    let python = command.program().is_some_and(|p| p.starts_with("python"));
    python && command.args().first().map(Arg::known_or_partly).is_some_and(|a| !a.starts_with('-'))
}

/// Whether the image starts nothing of its own: somebody works, or builds, in it.
fn is_workbench(lint: &Lint<'_>, last: usize) -> bool {
    use crate::dockerfile::syntax::{Body, Keyword};
    let document = &lint.reading.document;
    let stages = lint.chain(last).into_iter().filter_map(|s| lint.reading.stages.get(s));
    let mut starts = stages.filter_map(|s| document.instructions.get(s.instructions.clone())).flatten();
    !starts.any(|i| {
        let text = match &i.body {
            Body::Shell(text) => text.text.as_str(),
            Body::Exec(words) => words.first().map_or("", |w| w.text.as_str()),
            _ => "",
        };
        let shell = ["bash", "/bin/bash", "sh", "/bin/sh", "zsh", ""].contains(&text.trim());
        matches!(i.keyword, Keyword::Cmd | Keyword::Entrypoint) && !shell
    })
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "devel-in-final-stage";

    fn file(run: &str) -> String {
        format!("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN {run}\nCMD [\"python3\", \"app.py\"]\n")
    }

    #[test]
    fn a_compiler_that_nothing_needs() {
        let text = file("apt-get update && apt-get install -y python3-pip && pip install torch numpy");
        assert_eq!(blamed(RULE, &text, &[]), ["nvidia/cuda:12.4.1-devel-ubuntu22.04"]);
        assert!(mended(RULE, &text, &[]).starts_with("FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"));
    }

    #[test]
    fn silent_where_something_may_compile() {
        for run in [
            "make -j8",
            "pip install flash-attn",
            "pip install vllm",
            "pip install -r requirements.txt",
            "pip install -e .",
            "apt-get install -y build-essential",
            "./install.sh",
            "bash /tmp/x.sh",
            "python3 setup.py install",
            "git clone https://github.com/x/y",
        ] {
            assert!(lint(RULE, &file(run), &[]).is_empty(), "{run}");
        }
        for text in [
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install torch\n",
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nCMD [\"bash\"]\n",
            "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nCMD [\"x\"]\n",
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS b\nRUN true\nFROM ubuntu\nCOPY --from=b /x /x\nCMD [\"x\"]\n",
        ] {
            assert!(lint(RULE, text, &[]).is_empty(), "{text}");
        }
    }
}
