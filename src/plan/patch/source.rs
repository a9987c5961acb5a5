//! A build from source that is told its architectures: where the file tells it already, in place; else by a line of
//! its own before the build.

use std::collections::BTreeSet;

use super::Placed;
use super::wheel::{append, built};
use super::words::{Spot, Words, is_plain, is_variable};
use crate::catalog::arch_lists::Grammar;
use crate::catalog::arch_text::in_grammar;
use crate::catalog::names::dist;
use crate::dockerfile::commands::{Asked, SourceBuild};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Keyword;
use crate::lint::dockerfile::{ArchSetting, Archs, Build, By, Lint, Reads, Set, write_list};
use crate::model::{Built, KnobForm, Maker, Setting, escape};

/// The build that a step names.
pub struct Wanted<'s> {
    pub component: &'s str,
    pub project: Option<&'s str>,
    pub form: KnobForm,
    pub setting: &'s Setting,
    pub built: &'s Built,
    pub install: &'s str,
}

impl Wanted<'_> {
    fn told(&self) -> String {
        let (name, value) = self.setting;
        format!("{name}=\"{value}\"")
    }
}

pub fn place(words: &Words<'_, '_>, wanted: &Wanted<'_>) -> Placed {
    let lint = words.lint;
    let maker = if wanted.built.gfx.is_empty() { Maker::Nvidia } else { Maker::Amd };
    let archs = Archs::of_maker(lint, maker);
    let (builds, sure) = builds_of(lint, &archs, wanted);
    let Some(first) = builds.iter().filter_map(|at| archs.builds.get(*at)).next() else {
        return Placed::left(nowhere(words, wanted));
    };
    let mut placed = told(words, &archs, &builds, wanted);
    if placed.edits.is_empty() && placed.left.is_empty() {
        placed.take(inserted(words, &archs, &builds, first, wanted));
    }
    if !sure && !placed.edits.is_empty() {
        placed.left.push(format!(
            "line {} is taken for the build of {}, being the only one that may compile device code",
            words.line(first.span),
            escape(wanted.component.as_bytes())
        ));
    }
    placed
}

/// The builds of the component, by name; else those of the only instruction that may compile device code.
fn builds_of<'a>(lint: &Lint<'a>, archs: &Archs<'a>, wanted: &Wanted<'_>) -> (Vec<usize>, bool) {
    let names: BTreeSet<String> = std::iter::once(wanted.component).chain(wanted.project).map(dist).collect();
    let known = lint.catalog.extensions().find_package(wanted.component).map(|e| e.project.as_str());
    let named = |build: &Build<'_>| match build.project {
        Some(project) => known == Some(project.project.as_str()) || names.contains(&dist(&project.project)),
        None => {
            let local = build.pip.map(|p| p.local.as_slice()).unwrap_or_default();
            let folder = match local {
                [one] if build.origin.is_empty() => one.value.known().unwrap_or_default(),
                _ => build.origin.as_str(),
            };
            let last = folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            !last.is_empty() && names.contains(&dist(last))
        }
    };
    let own: Vec<usize> = (0..archs.builds.len()).filter(|at| archs.builds.get(*at).is_some_and(named)).collect();
    if !own.is_empty() {
        return (own, true);
    }
    let may = |build: &Build<'_>| {
        build.project.is_none()
            && match build.by {
                By::Nvcc => true,
                By::Cmake | By::Make | By::Setuptools => archs.stages.may_compile(lint, build.stage),
                By::Pip => archs.stages.may_compile(lint, build.stage) && build.looks_like_kernels(),
                By::Cargo | By::Bazel => false,
            }
    };
    let open: Vec<usize> = (0..archs.builds.len()).filter(|at| archs.builds.get(*at).is_some_and(may)).collect();
    let places: BTreeSet<usize> =
        open.iter().filter_map(|at| archs.builds.get(*at)).map(|b| b.command.instruction).collect();
    match places.len() {
        1 => (open, false),
        _ => (Vec::new(), false),
    }
}

/// Why there is no build to tell, and what to do.
fn nowhere(words: &Words<'_, '_>, wanted: &Wanted<'_>) -> String {
    let lint = words.lint;
    let name = dist(wanted.component);
    let how = match wanted.install {
        "" => String::new(),
        install => format!(": {}", escape(install.as_bytes())),
    };
    for install in &lint.asks.pip {
        let Some(command) = built(lint, install.command) else { continue };
        if let Some(requirement) = install.requirements.iter().find(|r| dist(&r.name) == name) {
            let place = match &requirement.asked {
                Asked::Here(span) => format!("line {}", words.line(*span)),
                Asked::File { file, line } => {
                    format!("{}:{line} (line {})", escape(file.as_bytes()), words.line(command.span))
                }
            };
            return format!(
                "{place} installs what is built elsewhere; build it from source with {}{how}",
                escape(wanted.told().as_bytes())
            );
        }
    }
    format!(
        "no instruction of the file builds {}; set {} where it is built{how}",
        escape(wanted.component.as_bytes()),
        escape(wanted.told().as_bytes())
    )
}

/// The lists that the builds read already, changed where they are written.
fn told(words: &Words<'_, '_>, archs: &Archs<'_>, builds: &[usize], wanted: &Wanted<'_>) -> Placed {
    // What the knob names counts wherever the build sees it: CMAKE_ARGS hands options on to what knows them.
    let meant = |s: &ArchSetting<'_>| s.inside.is_some() && s.name == wanted.setting.0;
    let reads = |s: &&ArchSetting<'_>| {
        s.readers.iter().any(|(at, how)| builds.contains(at) && (*how != Reads::No || meant(s)))
    };
    // What adds options to those that a build has anyway says nothing of the others.
    let decides = |s: &&ArchSetting<'_>| !s.variable.adds && s.variable.grammar != Grammar::Free;
    let mut placed = Placed::default();
    let mut same = None;
    for setting in archs.settings.iter().filter(reads).filter(decides) {
        let line = words.line(setting.span);
        match list(words, archs, setting, wanted) {
            Ok(edits) if edits.is_empty() => same = Some((line, setting.name.clone())),
            done => placed.take(done),
        }
    }
    if placed.edits.is_empty()
        && placed.left.is_empty()
        && let Some((line, name)) = same
    {
        placed.left.push(format!("{name} in line {line} says so already: build without the cache"));
    }
    // A variable that no grammar is known of.
    if placed.edits.is_empty() && placed.left.is_empty() {
        let (name, value) = wanted.setting;
        for set in words.lint.sets(false).into_iter().chain(words.lint.sets(true)).filter(|s| s.name == name) {
            let Some(word) = &set.pair.value else { continue };
            let line = words.line(set.pair.span);
            let spot = Spot { span: word.span, instruction: set.instruction, command: None };
            placed.take(match set.value.known() {
                Some(old) => words.change(spot, old, value),
                None => Err(format!("what {name} comes to in line {line} is not known")),
            });
        }
    }
    placed
}

fn list(
    words: &Words<'_, '_>,
    archs: &Archs<'_>,
    setting: &ArchSetting<'_>,
    wanted: &Wanted<'_>,
) -> Result<Vec<Edit>, String> {
    let line = words.line(setting.span);
    let old = setting.value.known();
    if let Some(source) = repeated(archs, setting) {
        return options(words, source, &setting.name, wanted);
    }
    let Some(old) = old else {
        return Err(format!("what {} comes to in line {line} is not known: {}", setting.name, wanted.told()));
    };
    let option = |w: &str| w.starts_with("-gencode") || w.starts_with("--generate-code") || w.starts_with("arch=");
    let others = old.split([' ', ';', '\t']).any(|w| !w.is_empty() && !option(w));
    if setting.variable.grammar == Grammar::Gencode && others && !setting.variable.name.starts_with('-') {
        return Err(format!("{} in line {line} holds other options too: {}", setting.name, wanted.told()));
    }
    let (name, value) = wanted.setting;
    let is_own = setting.variable.name == *name || setting.variable.aliases.contains(name);
    let new = in_grammar(setting.variable, old, &wanted.built.sass, &wanted.built.ptx);
    let new = new.or_else(|| processors(setting, wanted)).or_else(|| is_own.then(|| value.clone()));
    let Some(new) = new.filter(|n| is_plain(n)) else {
        return Err(format!("{} in line {line} cannot say what {} says", setting.name, wanted.told()));
    };
    if new == old || same_list(setting, old, &new) {
        return Ok(Vec::new());
    }
    write_list(words.lint, setting.place, &new)
        .map(|edit| vec![edit])
        .ok_or_else(|| format!("{} in line {line} is made of parts: make it {new}", setting.name))
}

/// AMD's processors as a variable writes them.
fn processors(setting: &ArchSetting<'_>, wanted: &Wanted<'_>) -> Option<String> {
    let list: Vec<String> = wanted.built.gfx.iter().map(ToString::to_string).collect();
    let separator = setting.variable.separators.first()?;
    (setting.variable.grammar == Grammar::Gfx && !list.is_empty()).then(|| list.join(separator))
}

/// Whether two texts ask for the same code.
fn same_list(setting: &ArchSetting<'_>, old: &str, new: &str) -> bool {
    let sorted = |text: &str| {
        let mut list = setting.variable.parse(text);
        list.sass.sort_unstable();
        list.ptx.sort_unstable();
        let mut gfx: Vec<String> = list.entries.into_iter().filter_map(|e| e.gfx).collect();
        gfx.sort_unstable();
        (list.sass, list.ptx, gfx, list.keywords.is_empty())
    };
    sorted(old) == sorted(new)
}

/// The build whose option is given several times, as nvcc's `-gencode`.
fn repeated<'a>(archs: &Archs<'a>, setting: &ArchSetting<'_>) -> Option<&'a SourceBuild> {
    let sources = archs.builds.iter().filter_map(|b| b.source);
    let mut own = sources.filter(|s| s.defines.iter().filter(|(n, _)| *n == setting.name).count() > 1);
    own.find(|s| s.defines.iter().any(|(n, d)| *n == setting.name && setting.span.contains(d.span)))
}

/// Options that follow each other, written anew as a whole.
fn options(
    words: &Words<'_, '_>,
    source: &SourceBuild,
    name: &str,
    wanted: &Wanted<'_>,
) -> Result<Vec<Edit>, String> {
    let document = &words.lint.reading.document;
    let spans: Vec<Span> = source.defines.iter().filter(|(n, _)| n == name).map(|(_, s)| s.span).collect();
    let whole = spans.iter().copied().reduce(Span::to).unwrap_or_default();
    let line = words.line(whole);
    let apart = || format!("the {name} options in line {line} stand apart: make them {}", wanted.told());
    let mut between = Vec::new();
    for pair in spans.windows(2) {
        let [one, two] = pair else { continue };
        let text = document.slice(Span::new(one.end, two.start));
        let bare: String = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '\\' | '"' | '\'')).collect();
        if bare != name && bare != format!("{name}=") || text.contains('#') {
            return Err(apart());
        }
        between.push(text);
    }
    let by = between.first().copied().unwrap_or(" ");
    let one = |text: String| {
        format!("arch=compute_{},code={text}", text.trim_start_matches(|c: char| !c.is_ascii_digit()))
    };
    let sass = wanted.built.sass.iter().map(|a| one(format!("sm_{}{}", a.number, a.suffix())));
    let ptx = wanted.built.ptx.iter().map(|a| one(format!("compute_{}{}", a.number, a.suffix())));
    let new: Vec<String> = sass.chain(ptx).collect();
    if new.is_empty() {
        return Err(apart());
    }
    let new = new.join(by);
    Ok(if new == document.slice(whole) { Vec::new() } else { vec![Edit::new(whole, new)] })
}

/// The setting put where the build finds it.
fn inserted(
    words: &Words<'_, '_>,
    archs: &Archs<'_>,
    builds: &[usize],
    first: &Build<'_>,
    wanted: &Wanted<'_>,
) -> Result<Vec<Edit>, String> {
    let (name, value) = wanted.setting;
    let line = words.line(first.span);
    if !is_plain(value) || value.is_empty() {
        return Err(format!("{} cannot be written into a Dockerfile as it is", escape(wanted.told().as_bytes())));
    }
    if let Some(edits) = default(words, first, name, value) {
        return Ok(edits);
    }
    let own = || builds.iter().filter_map(|at| archs.builds.get(*at));
    let tool = |by: By| own().find(|b| b.by == by);
    match wanted.form {
        KnobForm::Env => variable(words, first, name, value),
        KnobForm::Cmake => {
            if let Some(build) = tool(By::Cmake) {
                return append(words, build.command, &format!("-D{name}=\"{value}\""));
            }
            // CMake below pip: with the options that it is given already, else by its own variable.
            if let Some(done) = handed_on(words, first, &format!("-D{name}={value}")) {
                return done;
            }
            let environment = words.lint.catalog.arch_variables().variable(name);
            match environment.and_then(|v| v.environment.first()) {
                Some(variable_name) => variable(words, first, variable_name, value),
                None => Err(format!("give CMake of line {line} the option -D{name}=\"{value}\"")),
            }
        }
        KnobForm::Make => match tool(By::Make) {
            Some(build) => append(words, build.command, &format!("{name}=\"{value}\"")),
            None => Err(format!("give make of line {line} {name}=\"{value}\"")),
        },
        KnobForm::Arg => Err(format!("the file has no ARG {name}: give it to the Dockerfile of the project")),
        KnobForm::Flag => Err(format!("give the command of line {line} the option {name} {value}")),
    }
}

/// One more option in CMAKE_ARGS, where that is set for the build.
fn handed_on(words: &Words<'_, '_>, build: &Build<'_>, option: &str) -> Option<Result<Vec<Edit>, String>> {
    let spot = Spot { span: build.span, instruction: build.command.instruction, command: Some(build.command) };
    ["CMAKE_ARGS", "SKBUILD_CMAKE_ARGS"].into_iter().find_map(|holder| {
        let (value, _) = words.lint.seen(build.command, holder)?;
        let old = value.known()?.to_owned();
        Some(words.set(spot, holder, &old, &format!("{} {option}", old.trim_end())))
    })
}

/// An `ARG NAME` without a value before the build: it gets a default.
fn default(words: &Words<'_, '_>, build: &Build<'_>, name: &str, value: &str) -> Option<Vec<Edit>> {
    let sets = words.lint.sets(true);
    let here = |stage: Option<usize>| stage.is_none() || stage == Some(build.stage);
    let open = |s: &&Set<'_>| {
        let before = s.instruction < build.command.instruction;
        s.name == name && s.pair.value.is_none() && before && here(s.stage)
    };
    let set = sets.iter().rfind(open)?;
    // What ENV sets wins over it.
    let scope = words.lint.scope(build.command.instruction)?;
    scope.get(name).filter(|v| v.arg && v.unset)?;
    let at = set.pair.span.end;
    Some(vec![Edit::new(Span::new(at, at), format!("=\"{value}\""))])
}

/// A line before the build. What is in the image gets an ARG, which leaves nothing in its environment; but where the
/// base may set the variable, ENV alone is sure to win.
fn variable(words: &Words<'_, '_>, build: &Build<'_>, name: &str, value: &str) -> Result<Vec<Edit>, String> {
    let lint = words.lint;
    let at = build.command.instruction;
    let line = words.line(build.span);
    let refused = || format!("set {name}=\"{value}\" before line {line}");
    let instruction = lint.reading.instruction(at).filter(|i| i.keyword == Keyword::Run && is_variable(name));
    let _ = instruction.ok_or_else(refused)?;
    let unset = lint.reading.closed.get(at) == Some(&true) && lint.scope(at).is_some_and(|s| !s.contains_key(name));
    let shipped = lint.in_image(at);
    let keyword = if shipped && unset { Keyword::Arg } else { Keyword::Env };
    let text = words.assignment(keyword, name, value).ok_or_else(refused)?;
    words.before(at, &text).map(|edit| vec![edit]).ok_or_else(refused)
}
