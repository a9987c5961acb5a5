//! An architecture variable that is set where the build that wants it does not see it.

use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::{ArchSetting, How};
use crate::lint::dockerfile::ask::Set;
use crate::lint::dockerfile::builds::{Build, By, Reads};
use crate::lint::dockerfile::{Found, Lint};

use super::ext_build_without_arch_list as ext_build;
use super::lists::{self, Archs};
use super::toolkit;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(archs) = Archs::set(lint) else { return };
    let mut told: Vec<Span> = Vec::new();
    for lost in lost(lint, &archs) {
        if !told.contains(&lost.span) {
            told.push(lost.span);
            out.push(found(lint, &lost));
        }
    }
}

/// Why a build does not see a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// An ARG before the first FROM that no ARG of the stage repeats; without a default of its own.
    Global { unset: bool },
    /// Set behind the build.
    Behind,
    /// Set in a stage that this one is not FROM.
    OtherStage,
    /// Exported in an earlier RUN: gone when that ended.
    OtherRun,
}

/// A build without a list, and the setting that was meant for it.
pub struct Lost<'a, 'b> {
    /// Index into the builds.
    pub at: usize,
    pub build: &'b Build<'a>,
    name: String,
    /// `NAME=value` where it stands.
    span: Span,
    /// The value, as it was written.
    value: Option<Span>,
    known: bool,
    reads: Reads,
    why: Why,
}

/// All builds that see no list while one is set where they cannot see it.
pub fn lost<'a, 'b>(lint: &Lint<'a>, archs: &'b Archs<'a>) -> Vec<Lost<'a, 'b>> {
    let globals: Vec<Set<'_>> = lint.sets(true);
    let mut out = Vec::new();
    for (at, build) in archs.builds.iter().enumerate().filter(|(_, b)| b.is_sure()) {
        let wanted = build.wants(lint.catalog.arch_variables());
        // Most of what pip builds from a repository has no device code.
        let likely = match build.by {
            By::Pip | By::Setuptools => ext_build::is_extension(lint, build),
            By::Cmake => build.speaks_of("cuda"),
            By::Make | By::Nvcc | By::Cargo | By::Bazel => false,
        };
        let none = build.project.is_none() && !likely || !build.wants_cuda(lint);
        if none || wanted.is_empty() || archs.is_told(lint, at) {
            continue;
        }
        for (_, name, reads) in wanted {
            let made =
                |span, value, known, why| Lost { at, build, name: name.to_owned(), span, value, known, reads, why };
            if let Some(global) = global(lint, &globals, build, name) {
                let unset = global.pair.value.is_none();
                let known = !unset && global.value.known().is_some();
                let value = global.pair.value.as_ref().map(|v| v.span);
                out.push(made(global.pair.span, value, known, Why::Global { unset }));
            } else if let Some((setting, why)) =
                unseen(lint, archs, build, name).filter(|_| toolkit::sets_no_list(lint, build.stage))
            {
                let known = setting.value.known().is_some();
                out.push(made(setting.span, Some(setting.place.span), known, why));
            } else {
                continue;
            }
            break;
        }
    }
    out
}

/// An ARG before the first FROM, of which the build's stage knows nothing.
fn global<'s, 'g>(lint: &Lint<'_>, args: &'s [Set<'g>], build: &Build<'_>, name: &str) -> Option<&'s Set<'g>> {
    let chain = lint.chain(build.stage);
    let repeats = |a: &&Set<'_>| {
        a.name == name && a.stage.is_some_and(|s| chain.contains(&s)) && a.instruction < build.command.instruction
    };
    if args.iter().any(|a| repeats(&a)) {
        return None;
    }
    // Another stage may be the one that it is meant for.
    if build.project.is_none() && args.iter().any(|a| a.name == name && a.stage.is_some()) {
        return None;
    }
    args.iter().find(|a| a.name == name && a.stage.is_none())
}

/// A setting that no build reads, where this one does not see it.
fn unseen<'s, 'a>(
    lint: &Lint<'_>,
    archs: &'s Archs<'a>,
    build: &Build<'_>,
    name: &str,
) -> Option<(&'s ArchSetting<'a>, Why)> {
    let chain = lint.chain(build.stage);
    let idle = archs.settings.iter().filter(|s| s.name == name && s.inside.is_none() && s.readers.is_empty());
    idle.filter_map(|setting| {
        let stage = setting.stage?;
        let why = match setting.how {
            How::Env | How::Arg if stage == build.stage && setting.instruction > build.command.instruction => {
                Why::Behind
            }
            How::Env if !chain.contains(&stage) && lint.built(setting.instruction) => Why::OtherStage,
            How::Shell if chain.contains(&stage) && setting.instruction < build.command.instruction => {
                Why::OtherRun
            }
            _ => return None,
        };
        // What only a script of its own RUN may read is not lost.
        (why != Why::OtherRun || !lists::is_seen(lint, setting)).then_some((setting, why))
    })
    .next()
}

fn found(lint: &Lint<'_>, lost: &Lost<'_, '_>) -> Found {
    let (name, label) = (&lost.name, lost.build.label());
    let line = lint.line(lost.build.span);
    let message = match lost.why {
        Why::Global { unset: true } => format!(
            "ARG {name} stands before the first FROM and is not repeated in the stage that builds {label} (line \
             {line}): the build does not see it, whatever --build-arg says"
        ),
        Why::Global { unset: false } => format!(
            "ARG {name} stands before the first FROM and is not repeated in the stage that builds {label} (line \
             {line}): its default is lost there"
        ),
        Why::Behind => format!("{name} is set behind the build of {label} in line {line}, which does not see it"),
        Why::OtherStage => {
            format!(
                "{name} is set in another stage than the one that builds {label} in line {line}: it is lost there"
            )
        }
        Why::OtherRun => format!(
            "{name} is exported in a RUN of its own and gone when that ends: the build of {label} in line {line} does \
             not see it"
        ),
    };
    // A default before the first FROM is lost whoever reads it; else the build must be known to.
    let global = matches!(lost.why, Why::Global { .. });
    let certain = lost.known && (global || lost.reads == Reads::Surely);
    let found = if certain { Found::error(lost.span, message) } else { Found::warning(lost.span, message) };
    let found = found.label("not seen by the build").also(lost.build.span, "built without it");
    let Some(start) = lint.reading.instruction(lost.build.command.instruction).map(|i| i.span.start) else {
        return found;
    };
    let line = lint.line(Span::new(start, start));
    let before = |text: String| vec![Edit::new(Span::new(start, start), format!("{text}\n"))];
    match (lost.why, lost.value.filter(|v| is_plain(lint, *v))) {
        (Why::Global { .. }, _) => found
            .help(format!("write `ARG {name}` once more in that stage, before line {line}"))
            .suggest(format!("repeat ARG {name} in the stage"), before(format!("ARG {name}"))),
        (_, Some(value)) => {
            let value = lint.reading.document.slice(value);
            found
                .help(format!("write `ENV {name}=…` before line {line}"))
                .suggest(format!("set {name} before the build"), before(format!("ENV {name}=\"{value}\"")))
        }
        _ => found.help(format!("set {name} in that stage, before line {line}")),
    }
}

/// A value that means the same elsewhere.
fn is_plain(lint: &Lint<'_>, value: Span) -> bool {
    !lint.reading.document.slice(value).contains(['$', '"', '\'', '\\', '`', '\n'])
}

/// Whether a value is known at all, for rules that speak of builds without one.
pub fn is_lost(lost: &[Lost<'_, '_>], at: usize) -> bool {
    lost.iter().any(|l| l.at == at)
}

impl Archs<'_> {
    /// Whether a build is given architectures: by a variable that it reads, an option, or options in another variable.
    pub fn is_told(&self, lint: &Lint<'_>, at: usize) -> bool {
        let Some(build) = self.builds.get(at) else { return true };
        let listed = |s: &ArchSetting<'_>| {
            s.readers.iter().any(|(reader, reads)| *reader == at && *reads != Reads::No)
                && (!s.variable.adds || s.lists().iter().all(|l| !l.entries.is_empty()))
        };
        let in_scope = |name: &str| {
            let scope = lint.scope(build.command.instruction);
            let variable = scope.and_then(|scope| scope.get(name));
            variable.is_some_and(|v| !v.unset && v.value != Value::Known(String::new()))
        };
        let assigned = |name: &str| build.command.assigned.get(name).is_some_and(|a| a.exported);
        self.settings.iter().any(listed)
            || build
                .wants(lint.catalog.arch_variables())
                .iter()
                .any(|(_, name, _)| in_scope(name) || assigned(name))
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "arch-set-after-use";
    const BASE: &str = "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\n";
    const BUILD: &str = "RUN pip install git+https://github.com/facebookresearch/detectron2\n";
    const LIST: &str = "TORCH_CUDA_ARCH_LIST=\"8.0 9.0\"";

    #[test]
    fn an_arg_that_the_stage_does_not_repeat() {
        let file = format!("ARG {LIST}\n{BASE}{BUILD}");
        assert_eq!(blamed(RULE, &file, &[]), [LIST]);
        let found = &lint(RULE, &file, &[])[0];
        assert_eq!(found.severity, Severity::Error);
        assert!(found.message.contains("its default is lost"), "{}", found.message);
        assert!(mended(RULE, &file, &[]).ends_with(&format!("ARG TORCH_CUDA_ARCH_LIST\n{BUILD}")));
        // So it is for a project that only looks like an extension.
        let ext = "RUN pip install torch\nRUN pip install git+https://example.invalid/some-cuda-ext\n";
        assert_eq!(lint(RULE, &format!("ARG {LIST}\n{BASE}{ext}"), &[])[0].severity, Severity::Error);
        // Without a default there is nothing that is surely lost.
        let file = format!("ARG TORCH_CUDA_ARCH_LIST\n{BASE}{BUILD}");
        assert_eq!(lint(RULE, &file, &[])[0].severity, Severity::Warning);
    }

    #[test]
    fn set_behind_the_build_or_elsewhere() {
        let file = format!("{BASE}{BUILD}ENV {LIST}\n");
        assert_eq!(blamed(RULE, &file, &[]), [LIST]);
        assert!(mended(RULE, &file, &[]).contains(&format!("ENV {LIST}\n{BUILD}")));
        let file = format!("{BASE}RUN export {LIST}\n{BUILD}");
        assert_eq!(blamed(RULE, &file, &[]), [LIST]);
        let file = format!(
            "{}ENV {LIST}\nRUN touch /x\n{BASE}COPY --from=a /x /x\n{BUILD}",
            BASE.replace('\n', " AS a\n")
        );
        assert_eq!(blamed(RULE, &file, &[]), [LIST]);
    }

    #[test]
    fn what_the_build_sees_or_another_one_reads() {
        for file in [
            format!("ARG {LIST}\n{BASE}ARG TORCH_CUDA_ARCH_LIST\n{BUILD}"),
            format!("{BASE}ENV {LIST}\n{BUILD}ENV TORCH_CUDA_ARCH_LIST=\n"),
            format!("{BASE}{BUILD}ENV {LIST}\n{BUILD}"),
            format!("{BASE}RUN export {LIST} && pip install git+https://github.com/facebookresearch/detectron2\n"),
            format!("{BASE}RUN export {LIST} && ./build.sh\n{BUILD}"),
            format!("{BASE}RUN pip install requests\nENV {LIST}\n"),
            // The project does not read it.
            format!("{BASE}RUN pip install git+https://github.com/Dao-AILab/flash-attention\nENV {LIST}\n"),
            format!("FROM nvcr.io/nvidia/pytorch:24.10-py3\n{BUILD}ENV {LIST}\n"),
        ] {
            assert!(lint(RULE, &file, &[]).is_empty(), "{file}");
        }
    }
}
