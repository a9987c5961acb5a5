//! What the rules of this folder share: the settings of a file by the place of their values, what a list does for
//! a target, how it is put into words and edits.

use std::collections::BTreeMap;

use super::toolkit::Stages;
use crate::catalog::arch_lists::{ArchList, ArchVariable, Grammar};
use crate::catalog::compat::{Fit, Host, module_fit};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::dockerfile::value::{Trail, Value};
use crate::lint::dockerfile::Lint;
use crate::lint::dockerfile::arch_settings::{ArchSetting, How, Place};
use crate::lint::dockerfile::ask::origin_span;
use crate::lint::dockerfile::builds::{Build, By, Reads};
use crate::model::{Capability, Form, Item, Maker, PtxIsa, SmArch, Target, escape};

/// What CUDA says where there is no code for a GPU.
pub const NO_IMAGE: &str = "\"no kernel image is available for execution on the device\"";

/// Characters of a value that a message repeats.
const MOST_SHOWN: usize = 120;

/// The builds and settings of a file.
pub struct Archs<'a> {
    pub builds: Vec<Build<'a>>,
    pub settings: Vec<ArchSetting<'a>>,
    pub stages: Stages<'a>,
}

/// Whether a value matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// Overridden, lost, or in a stage that is not built.
    None,
    /// Nothing that compiles in the file is seen to read it: it is in the image's environment, or in front of a
    /// command that is not known.
    Kept,
    /// By a build that runs only perhaps.
    ReadPerhaps,
    Read,
}

impl<'a> Archs<'a> {
    pub fn of(lint: &Lint<'a>) -> Self {
        Self::of_maker(lint, Maker::Nvidia)
    }

    /// With the settings for a maker's GPUs.
    pub fn of_maker(lint: &Lint<'a>, maker: Maker) -> Self {
        let builds = lint.builds();
        if !lint.catalog.arch_variables().mentioned(&lint.reading.document.text) {
            return Self { builds, settings: Vec::new(), stages: Stages::of(lint) };
        }
        let settings = lint.arch_settings(&builds, maker);
        Self { builds, settings, stages: Stages::of(lint) }
    }

    /// The same for rules of settings; none where the file names no architecture variable.
    pub fn set(lint: &Lint<'a>) -> Option<Self> {
        lint.catalog.arch_variables().mentioned(&lint.reading.document.text).then(|| Self::of(lint))
    }

    /// Settings whose values are written at one and the same place, by place.
    pub fn by_place(&self) -> BTreeMap<Place, Vec<&ArchSetting<'a>>> {
        // An ARG and the ENV made of it stand at the same bytes.
        let mut keys: BTreeMap<Span, Place> = BTreeMap::new();
        let mut out: BTreeMap<Place, Vec<&ArchSetting<'a>>> = BTreeMap::new();
        for setting in &self.settings {
            let key = *keys.entry(setting.place.span).or_insert(setting.place);
            out.entry(key).or_default().push(setting);
        }
        out
    }

    pub fn usage(&self, lint: &Lint<'a>, setting: &ArchSetting<'_>) -> Use {
        // Where no compiler is, pip may build, but no device code.
        let compiles = |stage: usize| self.stages.may_compile(lint, stage);
        let reading = self.readers(setting).filter(|b| b.by == By::Nvcc || compiles(b.stage));
        if reading.clone().any(Build::is_sure) {
            return Use::Read;
        }
        if reading.count() > 0 {
            return Use::ReadPerhaps;
        }
        let kept = setting.stage.is_none_or(compiles)
            && match setting.how {
                How::Env => {
                    let in_image = lint.in_image(setting.instruction);
                    let end = lint.reading.last.and_then(|last| lint.reading.ends.get(last));
                    let name = setting.inside.as_deref().unwrap_or(&setting.name);
                    let origin = end.and_then(|scope| scope.get(name)).map(|v| v.origin);
                    in_image && origin.and_then(origin_span) == Some(setting.span)
                }
                // Seen by a command of its RUN: that one is meant, whatever it is.
                How::Shell => is_seen(lint, setting),
                How::Arg | How::Option => false,
            };
        if kept { Use::Kept } else { Use::None }
    }

    /// The builds that read a setting.
    pub fn readers<'s>(&'s self, setting: &'s ArchSetting<'_>) -> impl Iterator<Item = &'s Build<'a>> + Clone + 's {
        let reads = setting.readers.iter().filter(|(_, reads)| *reads != Reads::No);
        reads.filter_map(|(at, _)| self.builds.get(*at))
    }

    /// Lists of PTX that belong to one of machine code: `CUDA_ARCH_PTX` beside `CUDA_ARCH_BIN`.
    pub fn with_ptx(&self, setting: &ArchSetting<'_>, mut list: ArchList) -> ArchList {
        if setting.variable.grammar == Grammar::Dotted {
            let beside = |s: &&ArchSetting<'_>| {
                s.variable.grammar == Grammar::DottedPtx && s.instruction == setting.instruction
            };
            for ptx in self.settings.iter().filter(beside).flat_map(|s| s.lists()).flat_map(|l| l.ptx) {
                if !list.ptx.contains(&ptx) {
                    list.ptx.push(ptx);
                }
            }
        }
        list
    }
}

/// Whether a command that may build sees a value that was set in its RUN.
pub fn is_seen(lint: &Lint<'_>, setting: &ArchSetting<'_>) -> bool {
    let idle = ["export", "echo", "cd", "set", "true", ":", "env", "printf", "test", "["];
    lint.build_commands().any(|(_, c)| {
        c.instruction == setting.instruction
            && c.assigned.get(&setting.name).is_some_and(|a| a.span == setting.span)
            && !c.program().is_some_and(|p| idle.contains(&p))
    })
}

/// What a list does for a target. `isa` is of the toolkit that writes its PTX, where that is known.
pub fn fit(lint: &Lint<'_>, list: &ArchList, isa: Option<PtxIsa>, target: &Target) -> Fit {
    let item = |arch: &SmArch, form| Item { isa, ..Item::of(*arch, form) };
    let sass = list.sass.iter().map(|a| item(a, Form::Sass));
    let items: Vec<Item> = sass.chain(list.ptx.iter().map(|a| item(a, Form::Ptx))).collect();
    let driver = target.driver.as_ref().map(|d| &d.lowest);
    let drivers = lint.catalog.drivers();
    let host = Host {
        cuda: driver.and_then(|d| drivers.native_cuda(d)),
        jit: driver.and_then(|d| drivers.ptx_isa(d)),
        driver: driver.cloned(),
        ..Host::bare(target.device)
    };
    module_fit(&items, &host)
}

/// The capabilities of targets, each once, ascending.
pub fn capabilities<'t>(targets: impl IntoIterator<Item = &'t Target>) -> Vec<Capability> {
    let mut out: Vec<Capability> = targets.into_iter().filter_map(Target::capability).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// "NVIDIA H100 (9.0) and NVIDIA T4 (7.5)", at most four by name.
pub fn labels(targets: &[&Target]) -> String {
    let mut names: Vec<String> = targets.iter().map(|t| t.label()).collect();
    names.dedup();
    let more = names.len().saturating_sub(4);
    names.truncate(4);
    if more > 0 {
        return format!("{} and {more} more", names.join(", "));
    }
    and(&names)
}

/// "a, b and c".
pub fn and(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// "8.0, 9.0".
pub fn list_of(capabilities: &[Capability]) -> String {
    capabilities.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A value for a message: on one line and not too long.
pub fn shown(value: &str) -> String {
    let text = escape(value.as_bytes());
    match text.char_indices().nth(MOST_SHOWN) {
        Some((at, _)) => format!("`{}…`", text.get(..at).unwrap_or_default()),
        None => format!("`{text}`"),
    }
}

/// "TORCH_CUDA_ARCH_LIST is `8.0;8.6`, from ARG x in line 3".
pub fn said(lint: &Lint<'_>, setting: &ArchSetting<'_>) -> String {
    let name = match &setting.inside {
        Some(holder) => format!("{} in {holder}", setting.name),
        None => setting.name.clone(),
    };
    let values: Vec<String> = setting.value.all().map(shown).collect();
    let value = match setting.value {
        Value::OneOf(_) => format!("one of {}", and(&values)),
        _ => values.concat(),
    };
    let from = match setting.how {
        How::Arg => ", the default of the ARG".to_owned(),
        _ => {
            // Of a chain of variables the one is told that the value is written at.
            let at_place = |step: &&Trail| {
                origin_span(step.origin).is_some_and(|s| s.contains(setting.place.span) && s != setting.span)
            };
            let step = setting.trail.iter().find(at_place).or(setting.trail.first());
            let from = lint.trail(step.map(std::slice::from_ref).unwrap_or_default());
            match (setting.place.default_of_arg, step) {
                (true, _) => from.replacen(", from ARG ", ", the default of ARG ", 1),
                // The ENV of the same name is where the caret stands.
                (false, Some(step)) if step.name == setting.name && setting.place.verbatim => String::new(),
                (false, _) => from,
            }
        }
    };
    format!("{name} is {value}{from}")
}

/// Another text at a value's place; none where the bytes there are not the value itself.
pub fn write(lint: &Lint<'_>, place: Place, text: &str) -> Option<Edit> {
    if !place.verbatim {
        return None;
    }
    let old = lint.reading.document.slice(place.span);
    let parts = |t: &str| t.contains([' ', ';']);
    // A single architecture needs no quotes, several do.
    let text = if place.quoted || parts(old) || !parts(text) { text.to_owned() } else { format!("\"{text}\"") };
    Some(Edit::new(place.span, text))
}

/// The place of a part of a value, where it stands there as it is.
pub fn part(place: Place, range: &std::ops::Range<usize>) -> Span {
    if place.verbatim && !range.is_empty() { place.within(range.clone()).span } else { place.span }
}

/// The list for the fleet in a variable's own way of writing, and words that say whose it is; without targets an
/// example.
pub fn for_fleet(lint: &Lint<'_>, variable: &ArchVariable) -> (String, &'static str) {
    let list = variable.add("", &capabilities(&lint.targets)).filter(|_| !lint.targets.is_empty());
    match list {
        Some(list) => (list, ", the list for the targets"),
        None => (variable.example.clone(), ", for example; with --target the list for your GPUs is printed"),
    }
}
