//! A build from source, for the fleet's architectures, with the project's own knob.

use std::collections::BTreeSet;

use super::{Choice, Cx, gpus};
use crate::catalog::Catalog;
use crate::catalog::arch_text as archs;
use crate::catalog::compat::{Block, sass_serves};
use crate::catalog::knobs::{Knob, KnobKind};
use crate::catalog::names;
use crate::lint::ComponentCase;
use crate::model::{
    Built, Capability, Change, Component, CudaVersion, Feature, Form, KnobForm, PtxIsa, SmArch, Toolkit,
    ToolkitKind, escape, first_two,
};
use crate::plan::need::{Need, is_vendor};
use crate::report::{Cost, StepKind};

pub fn choices(
    need: &Need<'_, '_>,
    component: &ComponentCase<'_>,
    missing: &BTreeSet<Capability>,
    blocks: &BTreeSet<Block>,
    cx: &Cx<'_, '_>,
    found: &mut Vec<Choice>,
    why: &mut Vec<String>,
) {
    if is_vendor(need, cx.catalog) {
        return;
    }
    let own = need.evidence().cuda_of("torch").or_else(|| installed(need.evidence()));
    let fleet = cx.capabilities();
    let (served, left) = one_toolkit(&wanted(component, &fleet), missing, own, cx.catalog);
    if let Some(reason) = left {
        why.push(reason);
    }
    if served.is_empty() {
        return;
    }
    let toolkit = toolkit_for(&served, own, cx.catalog);
    if let Some(choice) = build(need, component, &served, Vec::new(), toolkit, own, cx, why) {
        found.extend(base(need, toolkit, own, cx));
        found.push(choice);
    }
    // Where only the PTX is too new, an older toolkit writes PTX that the driver reads.
    let newest = blocks.iter().filter_map(|b| match b {
        Block::PtxTooNew(isa) => Some(*isa),
        _ => None,
    });
    if let Some(isa) = newest.max() {
        found.extend(older_ptx(need, component, isa, cx));
    }
}

/// The fleet's architectures; a suffix is kept where the present build has code of that capability only with it.
fn wanted(component: &ComponentCase<'_>, fleet: &BTreeSet<Capability>) -> Vec<SmArch> {
    let present: BTreeSet<SmArch> = items(component).filter_map(|i| i.arch.sm()).collect();
    let one = |cc: &Capability| {
        let plain = SmArch::from(*cc);
        let own = present.iter().filter(|a| a.capability() == Some(*cc));
        match own.clone().any(|a| a.feature == Feature::Plain) {
            true => plain,
            false => own.max_by_key(|a| a.feature).map_or(plain, |a| SmArch::new(plain.number, a.feature)),
        }
    };
    fleet.iter().map(one).collect()
}

fn items<'c>(component: &'c ComponentCase<'_>) -> impl Iterator<Item = crate::model::Item> + 'c {
    component.files.iter().flat_map(|f| &f.file.facts.modules).flat_map(|m| m.items.iter().map(|i| i.item))
}

/// Those of the wanted that one toolkit compiles, and why not all. Of two that no release has in common the missing
/// ones go with what the image's own toolkit knows.
fn one_toolkit(
    wanted: &[SmArch],
    missing: &BTreeSet<Capability>,
    own: Option<CudaVersion>,
    catalog: &Catalog,
) -> (Vec<SmArch>, Option<String>) {
    let window = |archs: &[SmArch]| -> Option<(CudaVersion, CudaVersion)> {
        let known = archs.iter().filter_map(|a| catalog.toolkits().toolkits_that_compile(*a));
        let (first, last) = known
            .fold((CudaVersion::new(0, 0), CudaVersion::new(u16::MAX, 0)), |(f, l), (a, b)| (f.max(a), l.min(b)));
        (first <= last).then_some((first, last))
    };
    if window(wanted).is_some() {
        return (wanted.to_vec(), None);
    }
    // By the toolkit that serves the most of what is missing, then the most of all, then the one nearest the image's.
    let known: BTreeSet<CudaVersion> = catalog.toolkits().all().iter().map(|t| t.cuda).collect();
    let compiled = |cuda: CudaVersion| -> Vec<SmArch> {
        wanted.iter().copied().filter(|a| catalog.toolkits().compiles(cuda, *a) == Some(true)).collect()
    };
    let worth = |cuda: &CudaVersion| {
        let archs = compiled(*cuda);
        let mends = archs.iter().filter(|a| a.capability().is_some_and(|cc| missing.contains(&cc))).count();
        (mends, archs.len(), Some(*cuda) == own, *cuda)
    };
    let Some(best) = known.iter().copied().max_by_key(worth) else { return (Vec::new(), None) };
    let served = compiled(best);
    let edge = |oldest: bool| {
        let ranges = wanted.iter().filter_map(|a| Some((*a, catalog.toolkits().toolkits_that_compile(*a)?)));
        if oldest {
            ranges.min_by_key(|(_, (_, last))| *last).map(|(a, (_, last))| format!("{a} (up to {last})"))
        } else {
            ranges.max_by_key(|(_, (first, _))| *first).map(|(a, (first, _))| format!("{a} (from {first} on)"))
        }
    };
    let reason = format!(
        "no CUDA release compiles both {} and {}: two builds, two tags",
        edge(false).unwrap_or_default(),
        edge(true).unwrap_or_default()
    );
    (served, Some(reason))
}

/// The toolkit to build with: the image's own where it knows them all, else the oldest newer one, else the newest older.
fn toolkit_for(archs: &[SmArch], own: Option<CudaVersion>, catalog: &Catalog) -> Option<CudaVersion> {
    let known = archs.iter().filter_map(|a| catalog.toolkits().toolkits_that_compile(*a));
    let (first, last) = known.reduce(|(f, l), (a, b)| (f.max(a), l.min(b)))?;
    match own {
        Some(own) if own < first => Some(first),
        Some(own) if own > last => Some(last),
        Some(own) => Some(own),
        None => Some(first),
    }
}

/// The CUDA toolkit that is installed in the image, the newest of several.
fn installed(evidence: &crate::model::Evidence) -> Option<CudaVersion> {
    let release = |t: &Toolkit| t.version.parse::<CudaVersion>().ok().or_else(|| short(&t.version));
    let named = evidence.image.config.var("CUDA_VERSION").and_then(short);
    evidence.toolkits_of(ToolkitKind::Cuda).filter_map(release).max().or(named)
}

/// `12.8` of `12.8.1`.
fn short(version: &str) -> Option<CudaVersion> {
    first_two(version).parse().ok()
}

#[allow(clippy::too_many_arguments, reason = "one place, all of it needed")]
fn build(
    need: &Need<'_, '_>,
    component: &ComponentCase<'_>,
    sass: &[SmArch],
    ptx: Vec<SmArch>,
    toolkit: Option<CudaVersion>,
    own: Option<CudaVersion>,
    cx: &Cx<'_, '_>,
    why: &mut Vec<String>,
) -> Option<Choice> {
    let info = &need.evidence().components[component.index];
    let name = escape(info.name.as_bytes());
    let paths: Vec<_> = component.files.iter().map(|f| &f.file.path).collect();
    let knob = cx.catalog.knobs().knob_for(&info.name, paths.iter().copied());
    let note = toolkit_note(sass, toolkit, own, cx.catalog);
    let Some(knob) = knob else {
        return Some(unknown(need, &name, sass, ptx, toolkit, note));
    };
    let Some(form) = knob.kind.form() else {
        if knob.kind == KnobKind::Auto {
            why.push(format!(
                "{name}: {} has no setting for architectures, they stand in its source",
                knob.project
            ));
        }
        return None;
    };
    let (built, left) = knob.builds(sass, &sass_serves);
    for arch in &left {
        why.push(format!("{}: {} does not build it for {arch}", need.label, knob.project));
    }
    if built.is_empty() {
        return None;
    }
    let value = archs::like(&knob.variable, &knob.example, &built);
    let mut summary = format!("build {} with {}=\"{value}\" (for {})", need.label, knob.variable, gpus(need));
    if let Some(note) = &note {
        summary.push_str(&format!("; {note}"));
    }
    let change = Change::Source {
        component: info.name.clone(),
        project: Some(knob.project.clone()),
        form,
        setting: (knob.variable.clone(), value.clone()),
        built: Built { sass: built, ptx, toolkit, ..Built::default() },
        install: runnable(knob, info).unwrap_or_default(),
    };
    let mut choice = Choice::new(StepKind::Rebuild, Cost::SourceBuild, need, summary, change);
    choice.step.env = vec![(knob.variable.clone(), value)];
    let told = runnable(knob, info).unwrap_or_else(|| knob.install.clone());
    choice.step.command = (!told.is_empty()).then_some(told);
    Some(quirks(choice, knob, note))
}

/// The row's way to install from source as a command that can be run as it stands, of the version that is there: `pip
/// install` of the package by its name. Others need a checkout, or words to be filled in.
fn runnable(knob: &Knob, component: &Component) -> Option<String> {
    let version = component.version.as_deref()?.split('+').next()?;
    let plain = |w: &&str| w.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_=.".contains(&b));
    let words: Vec<&str> = knob.install.split(' ').collect();
    let (package, before) = words.split_last()?;
    let pip =
        before.iter().skip_while(|w| w.contains('=') && !w.starts_with('-')).take(2).eq(["pip", "install"].iter());
    let named = names::dist(package) == names::dist(&component.name);
    let safe = words.iter().all(plain) && is_version(version);
    (pip && named && safe).then(|| format!("{} {package}=={version}", before.join(" ")))
}

fn is_version(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.')
}

/// What a person should know of a project's knob before it is turned.
fn quirks(choice: Choice, knob: &Knob, note: Option<String>) -> Choice {
    let mut choice = choice.because([knob.because()]);
    if let Some(note) = knob.note.as_deref().filter(|n| !n.is_empty()) {
        choice = choice.because([format!("{}: {note}", knob.project)]);
    }
    if !knob.is_sure() {
        choice = choice.review("the knob's row rests on memory");
    }
    match note {
        Some(note) => choice.review(note),
        None => choice,
    }
}

/// A component of which no row knows how it is built.
fn unknown(
    need: &Need<'_, '_>,
    name: &str,
    sass: &[SmArch],
    ptx: Vec<SmArch>,
    toolkit: Option<CudaVersion>,
    note: Option<String>,
) -> Choice {
    let list = sass.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let more = note.as_ref().map_or(String::new(), |n| format!("; {n}"));
    let torch = ("TORCH_CUDA_ARCH_LIST".to_owned(), archs::torch(sass));
    let change = Change::Source {
        component: name.to_owned(),
        project: None,
        form: KnobForm::Env,
        setting: torch.clone(),
        built: Built { sass: sass.to_vec(), ptx, toolkit, ..Built::default() },
        install: String::new(),
    };
    let summary =
        format!("build {} for {list} (for {}), or take a build that has it{more}", need.label, gpus(need));
    let mut choice = Choice::new(StepKind::Rebuild, Cost::SourceBuild, need, summary, change);
    choice.step.env = vec![torch, ("CMAKE_CUDA_ARCHITECTURES".to_owned(), archs::cmake(sass))];
    let mut choice = choice
        .review("no row of build_knobs.toml names this component: which setting its build reads is not known");
    if let Some(note) = note {
        choice = choice.review(note);
    }
    choice
}

/// What to say where the image's toolkit is not the one.
fn toolkit_note(
    wanted: &[SmArch],
    toolkit: Option<CudaVersion>,
    own: Option<CudaVersion>,
    catalog: &Catalog,
) -> Option<String> {
    let (own, toolkit) = (own?, toolkit?);
    let ranges = || wanted.iter().filter_map(|a| Some((*a, catalog.toolkits().toolkits_that_compile(*a)?)));
    if toolkit > own {
        let (arch, (first, _)) = ranges().max_by_key(|(_, (first, _))| *first)?;
        return Some(format!("{arch} needs CUDA {first} or newer, the image has {own}"));
    }
    if toolkit < own {
        let (arch, (_, last)) = ranges().min_by_key(|(_, (_, last))| *last)?;
        return Some(format!("{arch} was dropped after CUDA {last}, the image has {own}"));
    }
    None
}

/// The same architectures by a toolkit whose PTX the driver reads.
fn older_ptx(need: &Need<'_, '_>, component: &ComponentCase<'_>, isa: PtxIsa, cx: &Cx<'_, '_>) -> Option<Choice> {
    let reads =
        cx.cases.iter().filter(|c| need.targets.contains(&c.target.name)).filter_map(|c| c.host.jit).min()?;
    let all: BTreeSet<SmArch> = items(component).filter_map(|i| i.arch.sm()).collect();
    let toolkits = cx.catalog.toolkits();
    let fits = |cuda: &CudaVersion| {
        toolkits.ptx_isa(*cuda).is_some_and(|own| own <= reads)
            && all.iter().all(|a| toolkits.compiles(*cuda, *a) == Some(true))
    };
    let cuda = toolkits.all().iter().map(|t| t.cuda).filter(fits).max()?;
    let info = &need.evidence().components[component.index];
    let of = |form: Form| -> Vec<SmArch> {
        let archs: BTreeSet<SmArch> =
            items(component).filter(|i| i.form == form).filter_map(|i| i.arch.sm()).collect();
        archs.into_iter().collect()
    };
    let written = toolkits.ptx_isa(cuda)?;
    let summary = format!(
        "build {} with CUDA {cuda} or older, whose PTX {written} their drivers read (the present is {isa}; for {})",
        need.label,
        gpus(need)
    );
    let change = Change::Source {
        component: info.name.clone(),
        project: None,
        form: KnobForm::Env,
        setting: ("CUDA_VERSION".to_owned(), cuda.to_string()),
        built: Built { sass: of(Form::Sass), ptx: of(Form::Ptx), toolkit: Some(cuda), ..Built::default() },
        install: String::new(),
    };
    let choice = Choice::new(StepKind::Rebuild, Cost::SourceBuild, need, summary, change);
    let row = toolkits.get(cuda).map(|t| t.because()).unwrap_or_default();
    let choice = choice.because([row]);
    Some(choice.review("which toolkit the build uses is the builder's choice: a base image or a package"))
}

/// A base image of NVIDIA's with the toolkit that the architectures need, where the image stands on an older one.
fn base(
    need: &Need<'_, '_>,
    toolkit: Option<CudaVersion>,
    own: Option<CudaVersion>,
    cx: &Cx<'_, '_>,
) -> Option<Choice> {
    let (toolkit, own) = (toolkit?, own?);
    if toolkit == own {
        return None;
    }
    let config = &need.evidence().image.config;
    // NVIDIA's images of CUDA set it, with the patch level.
    let has = config.var("CUDA_VERSION").filter(|v| short(v) == Some(own))?;
    let patch = cx.catalog.cuda_tags().newest_patch(toolkit)?;
    let from = format!("nvidia/cuda:{}", escape(has.as_bytes()));
    let to = format!("nvidia/cuda:{patch}");
    let summary =
        format!("build on {to}-devel-… instead of {from}…, whose toolkit compiles it (for {})", gpus(need));
    let change = Change::Base { from, to };
    let choice = Choice::new(StepKind::ChangeBase, Cost::BaseImage, need, summary, change);
    Some(choice.because([format!("cuda_tags.toml `{patch}` (as of {})", cx.catalog.cuda_tags().as_of())]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ImagePath, Manager};

    #[test]
    fn commands_that_can_be_run_as_they_stand() {
        let knobs = Catalog::embedded().knobs();
        let of = |package: &str, version: &str| {
            let component = Component {
                name: package.into(),
                version: Some(version.into()),
                manager: Manager::Pip,
                root: ImagePath::new("usr/lib/python3/dist-packages"),
            };
            runnable(knobs.knob_for(package, [])?, &component)
        };
        assert_eq!(
            of("flash_attn", "2.8.3+cu12torch2.8").as_deref(),
            Some("FLASH_ATTENTION_FORCE_BUILD=TRUE pip install --no-build-isolation flash-attn==2.8.3")
        );
        assert_eq!(of("gsplat", "1.5.3").as_deref(), Some("pip install --no-build-isolation gsplat==1.5.3"));
        // A checkout, words to be filled in, a choice of two, another program.
        for package in ["torchvision", "natten", "torch", "vllm", "tensorflow", "onnxruntime-gpu"] {
            assert_eq!(of(package, "1.0"), None, "{package}");
        }
        assert_eq!(of("gsplat", "1;rm -rf /"), None);
    }

    #[test]
    fn one_toolkit_for_all_or_for_the_most_that_is_missing() {
        let catalog = Catalog::embedded();
        let archs = |words: &[&str]| words.iter().map(|w| w.parse().unwrap()).collect::<Vec<SmArch>>();
        let missing = |words: &[&str]| archs(words).iter().filter_map(|a| a.capability()).collect::<BTreeSet<_>>();
        let (served, why) = one_toolkit(&archs(&["sm_80", "sm_120"]), &missing(&["sm_120"]), None, catalog);
        assert_eq!((served, why), (archs(&["sm_80", "sm_120"]), None));
        // 6.0 was dropped with 13.0, 11.0 came with it.
        let wanted = archs(&["sm_60", "sm_80", "sm_110"]);
        let (served, why) = one_toolkit(&wanted, &missing(&["sm_110"]), None, catalog);
        assert_eq!(served, archs(&["sm_80", "sm_110"]));
        let why = why.unwrap();
        assert!(why.contains("sm_110 (from 13.0 on)") && why.contains("sm_60 (up to 12.9)"), "{why}");
        let (served, _) = one_toolkit(&wanted, &missing(&["sm_60"]), None, catalog);
        assert_eq!(served, archs(&["sm_60", "sm_80"]));
        let cuda = |text: &str| text.parse::<CudaVersion>().ok();
        assert_eq!(toolkit_for(&archs(&["sm_80", "sm_120"]), cuda("12.6"), catalog), cuda("12.8"));
        assert_eq!(toolkit_for(&archs(&["sm_60"]), cuda("13.0"), catalog), cuda("12.9"));
        assert_eq!(toolkit_for(&archs(&["sm_80"]), cuda("12.6"), catalog), cuda("12.6"));
    }
}
