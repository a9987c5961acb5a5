//! A list of architectures whose code a target cannot run.

use crate::catalog::arch_lists::{ArchList, Grammar};
use crate::catalog::compat::{Block, Fit};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::{ArchSetting, How, Place};
use crate::lint::dockerfile::builds::{Build, By};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::{Capability, SmArch, Target};

use super::lists::{self, Archs, NO_IMAGE, Use};
use super::toolkit::InForce;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(archs) = Archs::set(lint) else { return };
    let mut told: Vec<Judged<'_, '_>> = Vec::new();
    for (_, settings) in archs.by_place() {
        let judged = settings.into_iter().filter_map(|s| Judged::of(lint, &archs, s));
        // The same value may be read by several variables' rules: the worst of them is told.
        let Some(worst) = judged.max_by_key(Judged::weight) else { continue };
        // So may the values of one RUN, and those of a variable that takes one architecture at a time.
        match told.iter_mut().find(|j| j.is_same(&worst)) {
            Some(same) if same.weight() < worst.weight() => *same = worst,
            Some(_) => {}
            None => told.push(worst),
        }
    }
    out.extend(told.iter().map(|j| j.told(lint, &archs, j.setting.place)));
}

/// A setting that leaves targets without code, or with PTX alone.
struct Judged<'a, 's> {
    setting: &'s ArchSetting<'a>,
    usage: Use,
    missing: Vec<&'s Target>,
    /// PTX that these targets' drivers cannot compile.
    too_new: Vec<&'s Target>,
    jit: Vec<&'s Target>,
    toolkit: Option<&'s InForce<'a>>,
    /// A build reads it of which enough is known.
    certain: bool,
}

impl<'a, 's> Judged<'a, 's> {
    fn of(lint: &'s Lint<'a>, archs: &'s Archs<'a>, setting: &'s ArchSetting<'a>) -> Option<Self> {
        // Options that are added to others leave nothing out; PTX alone is told with the machine code.
        if setting.variable.adds || setting.variable.grammar == Grammar::DottedPtx {
            return None;
        }
        let usage = archs.usage(lint, setting);
        if usage == Use::None {
            return None;
        }
        let mut lists: Vec<ArchList> = setting.lists();
        if lists.is_empty() || !lists.iter().all(ArchList::is_closed) {
            return None;
        }
        if setting.variable.grammar == Grammar::One {
            lists = vec![together(archs, setting)?];
        }
        let lists: Vec<ArchList> = lists.into_iter().map(|l| archs.with_ptx(setting, l)).collect();
        let stage = setting.stage.or_else(|| archs.readers(setting).next().map(|b| b.stage));
        let toolkit = stage.and_then(|stage| archs.stages.toolkit(lint, stage));
        let isa = toolkit.map(|t| t.toolkit.ptx_isa);
        // A make of whatever project may read what stands in ENV, or not.
        let vague = |b: &Build<'_>| b.by == By::Make && !b.command.span.contains(setting.span);
        let certain = archs.readers(setting).any(|b| b.is_certain() && !vague(b));
        let mut judged = Self { setting, usage, missing: vec![], too_new: vec![], jit: vec![], toolkit, certain };
        for target in &lint.targets {
            // The best that it may be.
            match lists.iter().map(|l| lists::fit(lint, l, isa, target)).max() {
                Some(Fit::Missing) => judged.missing.push(target),
                Some(Fit::Blocked(Block::PtxTooNew(_))) => judged.too_new.push(target),
                Some(Fit::Jit) => judged.jit.push(target),
                _ => {}
            }
        }
        let none = judged.missing.is_empty() && judged.too_new.is_empty() && judged.jit.is_empty();
        (!none).then_some(judged)
    }

    fn weight(&self) -> (bool, bool, Use) {
        (self.is_error(), self.fails(), self.usage)
    }

    fn is_same(&self, other: &Self) -> bool {
        let (a, b) = (self.setting, other.setting);
        a.name == b.name
            && (a.variable.grammar == Grammar::One || a.instruction == b.instruction && a.value == b.value)
    }

    fn fails(&self) -> bool {
        !self.missing.is_empty() || !self.too_new.is_empty()
    }

    fn is_error(&self) -> bool {
        let known = matches!(self.setting.value, Value::Known(_)) && self.setting.variable.is_sure();
        let required = self.missing.iter().chain(&self.too_new).any(|t| t.required);
        self.certain && self.usage == Use::Read && known && required
    }

    fn told(&self, lint: &Lint<'a>, archs: &Archs<'a>, place: Place) -> Found {
        let setting = self.setting;
        let said = lists::said(lint, setting);
        let lacking: Vec<&Target> = match (self.missing.is_empty(), self.too_new.is_empty()) {
            (false, _) => self.missing.clone(),
            (_, false) => self.too_new.clone(),
            _ => self.jit.clone(),
        };
        let names = lists::labels(&lacking);
        // One that has a name rather than one that has none.
        let named = archs.readers(setting).find(|b| b.project.is_some());
        let whose = match named.or_else(|| archs.readers(setting).next()) {
            Some(build) => build.label(),
            None => "what is built with it".to_owned(),
        };
        let message = if !self.missing.is_empty() {
            format!("{said}, which has no code for {names}: {whose} stops there with {NO_IMAGE}")
        } else if !self.too_new.is_empty() {
            let toolkit = self.toolkit.as_ref().map_or(String::new(), |t| format!(" of CUDA {}", t.toolkit.cuda));
            format!(
                "{said}, which has only PTX{toolkit} for {names}, newer than the driver compiles: {whose} stops there \
                 with \"the provided PTX was compiled with an unsupported toolchain\""
            )
        } else {
            format!("{said}, which has only PTX for {names}: the driver compiles {whose} there at each cold start")
        };
        let mut found = if self.is_error() && self.fails() {
            Found::error(place.span, message)
        } else if !self.fails() && self.usage == Use::Kept {
            Found::note(place.span, message)
        } else {
            Found::warning(place.span, message)
        };
        let missing = lists::capabilities(lacking.iter().copied());
        let what = if self.missing.is_empty() { "only PTX for" } else { "no code for" };
        found = found.label(format!("{what} {}", lists::list_of(&missing)));
        found = found.on(lacking.iter().map(|t| t.name.clone()).collect());
        found = found.because(setting.variable.because());
        for build in archs.readers(setting).take(2) {
            if !build.span.contains(place.span) && !build.command.span.contains(place.span) {
                found = found.also(build.span, "read by this build");
            }
        }
        if setting.span != place.span && !setting.span.contains(place.span) {
            found = found.also(setting.span, "taken from there here");
        }
        self.help(lint, archs, place, &missing, found)
    }

    /// The list with the targets in it, and what the toolkit of the stage says to that.
    fn help(
        &self,
        lint: &Lint<'a>,
        archs: &Archs<'a>,
        place: Place,
        missing: &[Capability],
        mut found: Found,
    ) -> Found {
        let (setting, toolkits) = (self.setting, lint.catalog.toolkits());
        let refused = self.toolkit.as_ref().and_then(|t| {
            let no = |c: &&Capability| toolkits.compiles(t.toolkit.cuda, SmArch::from(**c)) == Some(false);
            missing.iter().find(no).map(|c| (t, *c))
        });
        if let Some((toolkit, capability)) = refused {
            let wanted = match toolkits.toolkits_for(capability) {
                Some((first, last)) if first > toolkit.toolkit.cuda => {
                    format!("CUDA {first} or newer (up to {last})")
                }
                Some((first, last)) => format!("CUDA {first} to {last}"),
                None => "another toolkit".to_owned(),
            };
            found = found.because(toolkit.because.clone()).because(toolkit.toolkit.because());
            return found.help(format!(
                "the toolkit of {}, CUDA {}, does not compile for {capability}: take a base with {wanted}, then add it \
                 to the list",
                toolkit.image, toolkit.toolkit.cuda
            ));
        }
        let Some(new) = setting.value.known().and_then(|v| setting.variable.add(v, missing)) else {
            let add = lists::list_of(missing);
            return found.help(match setting.variable.grammar {
                Grammar::One => format!("{} takes one architecture: build once more for {add}", setting.name),
                _ => format!("add {add} to {}", setting.name),
            });
        };
        let given = if place.default_of_arg { ", as the ARG's default or with --build-arg" } else { "" };
        found = found.help(format!("write {}{given}", lists::shown(&new)));
        let edit = match (setting.how, setting.variable.grammar) {
            (How::Option, Grammar::Gencode) => self.one_more(lint, archs, missing),
            _ => lists::write(lint, place, &new),
        };
        match edit {
            Some(edit) => found.suggest(format!("add {}", lists::list_of(missing)), vec![edit]),
            None => found,
        }
    }
}

impl<'a> Judged<'a, '_> {
    /// Of an option that is given once for each, as nvcc's `-gencode`: the last with what is missing behind it.
    fn one_more(&self, lint: &Lint<'a>, archs: &Archs<'a>, missing: &[Capability]) -> Option<Edit> {
        let setting = self.setting;
        let source = archs.readers(setting).find_map(|b| b.source)?;
        let (_, last) = source.defines.iter().rfind(|(name, _)| *name == setting.name)?;
        let old = lint.reading.document.slice(last.span);
        // Quotes and variables would end up around what is added.
        let plain = old.chars().all(|c| c.is_ascii_alphanumeric() || "_=,.-".contains(c));
        let new = setting.variable.add(old, missing).filter(|new| plain && new.starts_with(old))?;
        Some(Edit::new(last.span, new))
    }
}

/// A variable that takes one architecture is set once for each build: all of them together are the list.
fn together(archs: &Archs<'_>, setting: &ArchSetting<'_>) -> Option<ArchList> {
    let same = archs.settings.iter().filter(|s| s.variable.name == setting.variable.name);
    let mut all: Option<ArchList> = None;
    for list in same.flat_map(ArchSetting::lists) {
        if !list.is_closed() {
            return None;
        }
        let all = all.get_or_insert_with(ArchList::default);
        all.sass.extend(list.sass);
        all.ptx.extend(list.ptx);
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "arch-list-misses-target";
    const BASE: &str = "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\n";
    const BUILD: &str = "RUN pip install --no-build-isolation ./csrc\n";

    fn with(lines: &str) -> String {
        format!("{BASE}{lines}{BUILD}")
    }

    #[test]
    fn a_list_without_the_target() {
        let file = with("ENV TORCH_CUDA_ARCH_LIST=\"8.0 8.6\"\n");
        assert_eq!(blamed(RULE, &file, &["h100@550"]), ["8.0 8.6"]);
        let found = &lint(RULE, &file, &["h100@550", "a100@535"])[0];
        assert_eq!((found.severity, found.targets.len()), (Severity::Error, 1));
        assert!(found.message.contains("has no code for NVIDIA H100 (9.0)"), "{}", found.message);
        assert_eq!(found.also.len(), 1);
        assert!(mended(RULE, &file, &["h100@550"]).contains("TORCH_CUDA_ARCH_LIST=\"8.0 8.6 9.0\""));
        assert!(lint(RULE, &file, &["a100@535", "l40s@570"]).is_empty());
    }

    #[test]
    fn ptx_alone_is_a_warning_and_too_new_ptx_is_none() {
        let file = with("ENV TORCH_CUDA_ARCH_LIST=\"8.0 8.6+PTX\"\n");
        let found = &lint(RULE, &file, &["RTX 5090@575"])[0];
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.message.contains("at each cold start"), "{}", found.message);
        // CUDA 12.8 writes PTX 8.7; driver 550 compiles 8.4.
        let found = &lint(RULE, &file, &["h100@550"])[0];
        assert_eq!(found.severity, Severity::Error);
        assert!(found.message.contains("unsupported toolchain"), "{}", found.message);
    }

    #[test]
    fn the_edit_is_made_where_the_value_stands() {
        for (lines, blamed_text, want) in [
            (
                "ARG torch_cuda_arch_list='8.0 8.6'\nENV TORCH_CUDA_ARCH_LIST=${torch_cuda_arch_list}\n",
                "8.0 8.6",
                "ARG torch_cuda_arch_list='8.0 8.6 9.0'\n",
            ),
            ("ENV TORCH_CUDA_ARCH_LIST=8.0\n", "8.0", "ENV TORCH_CUDA_ARCH_LIST=\"8.0;9.0\"\n"),
            ("ENV TORCH_CUDA_ARCH_LIST 8.0 8.6\n", "8.0 8.6", "ENV TORCH_CUDA_ARCH_LIST 8.0 8.6 9.0\n"),
        ] {
            let file = with(lines);
            assert_eq!(blamed(RULE, &file, &["h100@570"]), [blamed_text], "{lines}");
            assert!(mended(RULE, &file, &["h100@570"]).contains(want), "{lines}");
        }
        let global = format!("ARG A=8.0\n{BASE}ARG A\nENV TORCH_CUDA_ARCH_LIST=$A\n{BUILD}");
        assert!(mended(RULE, &global, &["h100@570"]).starts_with("ARG A=\"8.0;9.0\"\n"));
        let text = &lint(RULE, &global, &["h100@570"])[0].message;
        assert!(text.contains("the default of ARG A in line 1"), "{text}");
        let run = format!("{BASE}RUN TORCH_CUDA_ARCH_LIST=\"8.0;8.6\" python setup.py install\n");
        assert!(mended(RULE, &run, &["h100@570"]).contains("TORCH_CUDA_ARCH_LIST=\"8.0;8.6;9.0\" python"));
        let run =
            format!("{BASE}RUN cmake -B build -DCMAKE_CUDA_ARCHITECTURES=\"80-real;86-real\" . && make -C build\n");
        assert!(mended(RULE, &run, &["h100@570"]).contains("\"80-real;86-real;90-real\" ."));
        let run = format!("{BASE}ENV CMAKE_ARGS=\"-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=80-real\"\n{BUILD}");
        assert!(mended(RULE, &run, &["h100@570"]).contains("ARCHITECTURES=80-real;90-real\"\n"));
    }

    #[test]
    fn a_toolkit_that_cannot_is_told() {
        let file = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=9.0\nRUN pip install --no-build-isolation ./csrc\n";
        let found = &lint(RULE, file, &["RTX 5090@575"])[0];
        let help = found.help.as_deref().unwrap();
        assert!(found.fix.is_none() && help.contains("CUDA 12.8 or newer"), "{help}");
    }

    #[test]
    fn what_nobody_reads_weighs_less_or_nothing() {
        let severity = |file: &str| lint(RULE, file, &["h100@550"]).first().map(|f| f.severity);
        // In the image's environment, for whatever compiles there later.
        assert_eq!(severity(&format!("{BASE}ENV TORCH_CUDA_ARCH_LIST=8.0\n")), Some(Severity::Warning));
        for quiet in [
            // Overridden before it is read.
            with("ENV TORCH_CUDA_ARCH_LIST=8.0\nENV TORCH_CUDA_ARCH_LIST=9.0\n"),
            format!(
                "{BASE}ENV TORCH_CUDA_ARCH_LIST=8.0\nRUN TORCH_CUDA_ARCH_LIST=9.0 pip install --no-build-isolation ./csrc\nENV TORCH_CUDA_ARCH_LIST=\n"
            ),
            // Not in this stage, not built, not known, not a list.
            format!("{BASE}AS a\nENV TORCH_CUDA_ARCH_LIST=8.0\nFROM ubuntu:24.04\nCOPY --from=a /x /x\n"),
            format!("{BASE}AS a\nENV TORCH_CUDA_ARCH_LIST=8.0\n{BUILD}FROM ubuntu:24.04\n"),
            with("ARG X\nENV TORCH_CUDA_ARCH_LIST=$X\n"),
            with("ENV TORCH_CUDA_ARCH_LIST=Common\n"),
            with("ARG TORCH_CUDA_ARCH_LIST\n"),
            format!(
                "{BASE}RUN NVCC_APPEND_FLAGS=\"-gencode arch=compute_80,code=sm_80\" pip install --no-build-isolation ./csrc\n"
            ),
        ] {
            let quiet = quiet.replace("\nAS", " AS");
            assert_eq!(severity(&quiet), None, "{quiet}");
        }
    }

    #[test]
    fn one_architecture_at_a_time_is_a_list_together() {
        let file = format!(
            "{BASE}RUN CUDA_COMPUTE_CAP=80 cargo build --release\nRUN CUDA_COMPUTE_CAP=90 cargo build --release\n"
        );
        assert!(lint(RULE, &file, &["h100@550", "a100@535"]).is_empty());
        assert_eq!(lint(RULE, &file, &["t4@470"]).len(), 1);
    }

    #[test]
    fn options_of_nvcc() {
        let file = format!(
            "{BASE}RUN nvcc -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -o x x.cu\n"
        );
        assert!(lint(RULE, &file, &["h100@550", "a100@535"]).is_empty());
        assert_eq!(lint(RULE, &file, &["t4@470"])[0].severity, Severity::Error);
        let lines = format!(
            "{BASE}RUN nvcc \\\n  -gencode arch=compute_80,code=sm_80 \\\n  -gencode arch=compute_86,code=sm_86 \\\n  x.cu\n"
        );
        let more = "code=sm_86 -gencode arch=compute_90,code=sm_90 \\\n  x.cu";
        assert!(mended(RULE, &lines, &["h100@570"]).contains(more), "{}", mended(RULE, &lines, &["h100@570"]));
        let one = format!("{BASE}RUN nvcc -gencode=arch=compute_80,code=sm_80 x.cu\n");
        let fixed = mended(RULE, &one, &["h100@570"]);
        assert!(fixed.contains("code=sm_80 -gencode arch=compute_90,code=sm_90 x.cu"), "{fixed}");
    }
}
