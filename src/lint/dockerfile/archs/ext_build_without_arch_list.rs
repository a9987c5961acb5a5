//! Device code that is compiled without being told for which GPUs.

use crate::catalog::arch_lists::{ArchVariable, Grammar};
use crate::catalog::bases::BaseFamily;
use crate::catalog::extensions::{Extension, Unset};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::ArchSetting;
use crate::lint::dockerfile::builds::{Build, By, Reads};
use crate::lint::dockerfile::{Found, Lint};

use super::arch_set_after_use as set_after;
use super::lists::{self, Archs};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let archs = Archs::of(lint);
    let lost = set_after::lost(lint, &archs);
    let mut told: Vec<(usize, String)> = Vec::new();
    for (at, build) in archs.builds.iter().enumerate() {
        let lacks = build.is_sure()
            && !set_after::is_lost(&lost, at)
            && !archs.is_told(lint, at)
            && lint.reading.instruction(build.command.instruction).is_some_and(|i| i.flag("device").is_none())
            && archs.stages.has_compiler(lint, build.stage);
        if !lacks {
            continue;
        }
        let Some(reason) = reason(lint, &archs, build) else { continue };
        // `setup.py build` and `setup.py install` of one project are one build.
        let key = (build.command.instruction, build.label());
        if !told.contains(&key) {
            told.push(key);
            out.push(found(lint, build, &reason));
        }
    }
}

/// Why a build needs a list, and which variable takes it.
struct Reason<'a> {
    variable: &'a ArchVariable,
    /// The name to set.
    name: &'a str,
    /// What comes of it.
    text: String,
    /// A list that is there, and is not read.
    unread: Option<Span>,
    project: Option<&'a Extension>,
}

fn reason<'a>(lint: &Lint<'a>, archs: &Archs<'a>, build: &Build<'a>) -> Option<Reason<'a>> {
    match (build.project, build.by) {
        (Some(project), _) => of_project(lint, archs, build, project),
        (None, By::Pip | By::Setuptools) => of_torch(lint, build),
        (None, By::Cmake) => of_cmake(lint, archs, build),
        _ => None,
    }
}

/// A project of the table.
fn of_project<'a>(
    lint: &Lint<'a>,
    archs: &Archs<'a>,
    build: &Build<'a>,
    project: &'a Extension,
) -> Option<Reason<'a>> {
    if !build.wants_cuda(lint) || build.is_given(lint, &project.own_list_when) {
        return None;
    }
    // The decisive variable; options of CMake are given in CMAKE_ARGS.
    let variables = lint.catalog.arch_variables();
    let (variable, name) = project.variables.iter().find_map(|v| Some((variables.variable(v)?, v.as_str())))?;
    let unread = unread_torch_list(archs, build).filter(|_| !project.reads_torch_list());
    let consequence = match project.unset {
        Unset::VisibleGpu if project.reads_torch_list() => NO_TORCH_LIST,
        Unset::VisibleGpu => "no GPU is visible while an image is built, so it has none to ask",
        Unset::CompilerDefault => "only code for the compiler's default architecture is made",
        // Its own list is sane, or nobody knows.
        Unset::OwnList | Unset::All | Unset::Unknown => return None,
    };
    let text = match unread {
        Some(_) => format!(
            "{} does not read TORCH_CUDA_ARCH_LIST and is compiled without {name}: {consequence}",
            project.project
        ),
        None => format!("{} is compiled without {name}: {consequence}", project.project),
    };
    Some(Reason { variable, name, text, unread, project: Some(project) })
}

const NO_TORCH_LIST: &str = "no GPU is visible while an image is built, so PyTorch's extension builder stops with \
                             \"list index out of range\" or takes a list of its own";

/// A project that nobody knows, built by pip or setup.py where PyTorch is, and that looks like one with kernels.
pub fn is_extension(lint: &Lint<'_>, build: &Build<'_>) -> bool {
    has_torch(lint, build) && build.looks_like_kernels()
}

fn of_torch<'a>(lint: &Lint<'a>, build: &Build<'a>) -> Option<Reason<'a>> {
    if !is_extension(lint, build) {
        return None;
    }
    let general = |v: &&ArchVariable| v.general && v.grammar == Grammar::Torch;
    let variable = lint.catalog.arch_variables().all().iter().find(general)?;
    let label = build.label();
    let text = format!("{label} is compiled without {}: if it has device code, {NO_TORCH_LIST}", variable.name);
    Some(Reason { variable, name: &variable.name, text, unread: None, project: None })
}

/// PyTorch is there before the build: installed in the stage, or of the base.
fn has_torch(lint: &Lint<'_>, build: &Build<'_>) -> bool {
    let chain = lint.chain(build.stage);
    if lint.base(build.stage).is_some_and(|b| b.torch.is_some() || b.family == BaseFamily::Pytorch) {
        return true;
    }
    let before = |command: usize| {
        let at = lint.reading.commands.get(command).and_then(|c| lint.reading.stage_of(c.instruction));
        command <= build.index && at.is_some_and(|s| chain.contains(&s))
    };
    let is_torch = |name: &str| name == "torch" || name == "pytorch" || name.starts_with("pytorch-cuda");
    let pip = lint.asks.pip.iter().filter(|p| before(p.command));
    let conda = lint.asks.conda.iter().filter(|c| before(c.command));
    pip.flat_map(|p| &p.requirements).any(|r| is_torch(&r.name))
        || conda.flat_map(|c| &c.packages).any(|(name, ..)| is_torch(name))
}

/// A CMake project whose list stands in a variable of PyTorch's, which CMake does not read.
fn of_cmake<'a>(lint: &Lint<'a>, archs: &Archs<'a>, build: &Build<'a>) -> Option<Reason<'a>> {
    let unread = unread_torch_list(archs, build)?;
    let for_cuda = |name: &str| name.to_ascii_uppercase().contains("CUDA");
    let defines = build.source.map(|s| s.defines.as_slice()).unwrap_or_default();
    let off = |v: &Value| {
        v.known().is_some_and(|v| ["OFF", "0", "NO", "FALSE"].contains(&v.to_ascii_uppercase().as_str()))
    };
    let asked = defines.iter().any(|(name, s)| for_cuda(name) && !off(&s.text.value));
    let refused = defines.iter().any(|(name, s)| for_cuda(name) && off(&s.text.value));
    // Something else in the stage may be what the list is for.
    let others = archs.settings.iter().filter(|s| s.place.span == unread || s.span == unread);
    let read_elsewhere = others.clone().any(ArchSetting::is_read);
    if refused || build.speaks_of("torch") || (read_elsewhere && !asked) {
        return None;
    }
    let general = |v: &&ArchVariable| v.general && v.grammar == Grammar::Cmake;
    let variable = lint.catalog.arch_variables().all().iter().find(general)?;
    let text = format!(
        "CMake does not read TORCH_CUDA_ARCH_LIST: without {} it makes only code for the compiler's default \
         architecture, unless the project sets a list of its own",
        variable.name
    );
    Some(Reason { variable, name: &variable.name, text, unread: Some(unread), project: None })
}

/// PyTorch's list, where the build sees it and does not read it.
fn unread_torch_list(archs: &Archs<'_>, build: &Build<'_>) -> Option<Span> {
    let sees = |s: &&ArchSetting<'_>| {
        let torch = s.variable.general && s.variable.grammar == Grammar::Torch;
        let unread = |(at, reads): &(usize, Reads)| {
            *reads == Reads::No
                && archs.builds.get(*at).is_some_and(|b| b.index == build.index && b.span == build.span)
        };
        torch && s.readers.iter().any(unread)
    };
    archs.settings.iter().find(sees).map(|s| s.span)
}

fn found(lint: &Lint<'_>, build: &Build<'_>, reason: &Reason<'_>) -> Found {
    let (list, whose) = lists::for_fleet(lint, reason.variable);
    let mut found = Found::warning(build.span, reason.text.clone()).label("for which GPUs?");
    if let Some(project) = reason.project {
        found = found.because(project.because());
    }
    found = found.because(reason.variable.because());
    if let Some(unread) = reason.unread {
        found = found.also(unread, "not read by this build");
    }
    let by_option = build.by == By::Cmake && !reason.variable.environment.iter().any(|n| n == reason.name);
    if by_option {
        return found.help(format!(
            "add `-D{}={}` to cmake{whose}",
            reason.name,
            if list.contains(';') { format!("\"{list}\"") } else { list }
        ));
    }
    let name = reason.variable.environment.first().map_or(reason.name, String::as_str);
    let set = format!("ENV {name}=\"{list}\"");
    found = found.help(format!("put `{set}` before this RUN{whose}"));
    let start = lint.reading.instruction(build.command.instruction).map(|i| i.span.start);
    match start.filter(|_| !lint.targets.is_empty()) {
        Some(start) => found.suggest(
            "name the targets' architectures",
            vec![Edit::new(Span::new(start, start), format!("{set}\n"))],
        ),
        None => found,
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "ext-build-without-arch-list";
    const BASE: &str = "FROM nvidia/cuda:12.8.1-devel\nRUN pip install torch\n";

    #[test]
    fn an_extension_that_nobody_told() {
        let file = format!("{BASE}RUN pip install git+https://example.invalid/some-cuda-ext\n");
        assert_eq!(blamed(RULE, &file, &[]), ["git+https://example.invalid/some-cuda-ext"]);
        let found = &lint(RULE, &file, &[])[0];
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.message.contains("list index out of range"), "{}", found.message);
        let text = mended(RULE, &file, &["a100@535", "RTX 5090@575"]);
        assert!(text.contains("ENV TORCH_CUDA_ARCH_LIST=\"8.0;12.0\"\nRUN pip install git"), "{text}");
        let file = format!("{BASE}WORKDIR /src\nCOPY . .\nRUN python setup.py install\n");
        assert_eq!(blamed(RULE, &file, &[]), ["python setup.py install"]);
    }

    #[test]
    fn a_project_of_the_table() {
        let file =
            format!("{BASE}ENV FORCE_CUDA=1\nRUN pip install git+https://github.com/facebookresearch/detectron2\n");
        assert!(
            lint(RULE, &file, &[])[0].message.starts_with("detectron2 is compiled without TORCH_CUDA_ARCH_LIST")
        );
        // It is told by another variable than PyTorch's.
        let file = format!(
            "{BASE}ENV TORCH_CUDA_ARCH_LIST=8.0\nRUN pip install \
             git+https://github.com/NVlabs/tiny-cuda-nn#subdirectory=bindings/torch\n"
        );
        let found = &lint(RULE, &file, &["a100@535"])[0];
        assert!(found.message.contains("does not read TORCH_CUDA_ARCH_LIST"), "{}", found.message);
        assert!(found.help.as_deref().unwrap().contains("ENV TCNN_CUDA_ARCHITECTURES=\"80\""), "{:?}", found.help);
    }

    #[test]
    fn cmake_with_a_list_of_pytorch() {
        let file =
            format!("{BASE}ENV TORCH_CUDA_ARCH_LIST=\"8.0;9.0\"\nRUN cmake -S . -B build && cmake --build build\n");
        assert_eq!(blamed(RULE, &file, &[]), ["cmake -S . -B build"]);
        let found = &lint(RULE, &file, &["a100@535"])[0];
        assert!(found.message.starts_with("CMake does not read TORCH_CUDA_ARCH_LIST"), "{}", found.message);
        assert!(found.help.as_deref().unwrap().contains("-DCMAKE_CUDA_ARCHITECTURES=80-real"), "{:?}", found.help);
        for other in ["-DCMAKE_CUDA_ARCHITECTURES=80", "-DUSE_CUDA=OFF", "-DCMAKE_PREFIX_PATH=/x/torch/share/cmake"]
        {
            let file = format!("{BASE}ENV TORCH_CUDA_ARCH_LIST=8.0\nRUN cmake -S . -B build {other}\n");
            assert!(lint(RULE, &file, &[]).is_empty(), "{other}");
        }
    }

    #[test]
    fn what_is_told_or_has_no_device_code() {
        let ext = "RUN pip install git+https://example.invalid/some-cuda-ext\n";
        for file in [
            format!("{BASE}ENV TORCH_CUDA_ARCH_LIST=8.0\n{ext}"),
            format!("{BASE}ARG TORCH_CUDA_ARCH_LIST=8.0\n{ext}"),
            format!("{BASE}RUN TORCH_CUDA_ARCH_LIST=8.0 pip install git+https://example.invalid/some-cuda-ext\n"),
            format!("{BASE}RUN pip install git+https://github.com/huggingface/transformers\n"),
            format!("{BASE}RUN pip install flash-attn --no-build-isolation\n"),
            format!("{BASE}RUN pip install .\n"),
            // The base may set a list; no compiler; no torch.
            format!("FROM nvcr.io/nvidia/pytorch:24.10-py3\n{ext}"),
            format!("FROM example.org/own\nRUN pip install torch\n{ext}"),
            format!("FROM nvidia/cuda:12.8.1-runtime-ubuntu22.04\nRUN pip install torch\n{ext}"),
            format!("FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\n{ext}"),
            // Told in vain: another rule says so.
            format!("ARG TORCH_CUDA_ARCH_LIST\n{BASE}{ext}"),
            format!("{BASE}RUN cmake -S . -B build\n"),
        ] {
            assert!(lint(RULE, &file, &[]).is_empty(), "{file}");
        }
    }
}
