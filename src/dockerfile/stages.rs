//! The stages of a file: what each is built on, which are built, which are in the image.

use std::collections::BTreeMap;

use super::expand::Expander;
use super::reading::{Base, Source, Stage};
use super::span::Span;
use super::syntax::{Body, Document, Flag, Instruction, Keyword, Word};
use super::value::{Text, Value};

/// Bytes of an image's reference (a set of them, with its trail, may have four times as many).
const MOST_REFERENCE: usize = 512;

/// Stages up to which names that are partly unknown are looked for.
const MOST_SEARCHED: usize = 512;

/// The stages, and what they take files from.
#[derive(Debug, Default)]
pub struct Graph {
    pub stages: Vec<Stage>,
    pub sources: Vec<Source>,
    /// The stage that is built.
    pub last: Option<usize>,
}

/// Stages by name, in lower case; the last of a name so far.
type Names = BTreeMap<String, usize>;

/// Reads the stages. `globals` are the ARGs before the first FROM.
pub fn graph(document: &Document, globals: &Expander<'_>, target: Option<&str>) -> Graph {
    let mut graph = Graph::default();
    let mut names = Names::new();
    // Besides bases: what else must be built for a stage.
    let mut needs: Vec<Vec<usize>> = Vec::new();
    for range in ranges(&document.instructions) {
        let index = graph.stages.len();
        let mut also = Vec::new();
        let from = document.instructions.get(range.start);
        let (stage, unsure) = stage(from, range.clone(), &names, globals, &graph.stages);
        also.extend(unsure);
        for instruction in range {
            let Some(taken) = document.instructions.get(instruction) else { continue };
            for (name, span) in taken_from(taken) {
                let base = source(name, &names, index);
                if let Base::Stage(index) = base {
                    also.push(index);
                }
                graph.sources.push(Source { instruction, from: base, span });
            }
        }
        if let Some(name) = &stage.name {
            names.insert(name.clone(), index);
        }
        graph.stages.push(stage);
        also.sort_unstable();
        also.dedup();
        needs.push(also);
    }
    graph.last = match target {
        None => graph.stages.len().checked_sub(1),
        Some(target) => {
            let named = names.get(&target.to_lowercase()).copied();
            named.or_else(|| target.parse().ok()).filter(|index| *index < graph.stages.len())
        }
    };
    mark(&mut graph, &needs);
    graph
}

/// The instructions of each stage.
fn ranges(instructions: &[Instruction]) -> Vec<std::ops::Range<usize>> {
    let starts: Vec<usize> = instructions
        .iter()
        .enumerate()
        .filter(|(_, i)| i.keyword == Keyword::From)
        .map(|(index, _)| index)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([instructions.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

/// A stage by its FROM, and earlier stages that its text may name without there being a reason to think so.
fn stage(
    from: Option<&Instruction>,
    instructions: std::ops::Range<usize>,
    names: &Names,
    globals: &Expander<'_>,
    before: &[Stage],
) -> (Stage, Vec<usize>) {
    let mut stage = Stage {
        name: None,
        base: Base::None,
        from: from.map(|i| i.keyword_span).unwrap_or_default(),
        instructions,
        root: (Base::None, before.len()),
        maybe: Vec::new(),
        in_image: false,
        perhaps: false,
        built: false,
    };
    let Some(Body::From { image, alias }) = from.map(|i| &i.body) else { return (stage, Vec::new()) };
    stage.name = alias.as_ref().map(|a| a.text.to_lowercase());
    stage.from = image.span;
    let text = bounded(globals.word(image));
    let mut unsure = Vec::new();
    let named = |name: &str| names.get(&name.to_lowercase()).copied();
    match &text.value {
        Value::Known(name) => {
            stage.base = match named(name) {
                Some(index) => Base::Stage(index),
                None if name == "scratch" => Base::Scratch,
                // BuildKit refuses it.
                None if name.is_empty() => Base::Image(Text { value: Value::Unknown, trail: text.trail }),
                None => Base::Image(text),
            };
        }
        Value::OneOf(values) => {
            stage.maybe = values.iter().filter_map(|v| named(v)).collect();
            stage.base = Base::Image(text);
        }
        Value::Unknown => {
            (stage.maybe, unsure) = search(image, names);
            stage.base = Base::Image(text);
        }
    }
    stage.root = root(&stage, before);
    (stage, unsure)
}

/// The base followed through stages. Where all that a FROM may name are stages, it is one of their roots.
fn root(stage: &Stage, before: &[Stage]) -> (Base, usize) {
    match &stage.base {
        Base::Stage(index) => before.get(*index).map_or((Base::None, before.len()), |s| s.root.clone()),
        Base::Image(text) if !stage.maybe.is_empty() && text.value.all().count() == stage.maybe.len() => {
            let images: Option<Vec<&Text>> = stage
                .maybe
                .iter()
                .map(|index| match &before.get(*index)?.root.0 {
                    Base::Image(text) => Some(text),
                    _ => None,
                })
                .collect();
            let value = images
                .and_then(|images| images.into_iter().map(|t| t.value.clone()).reduce(|all, value| all.or(&value)));
            let text = Text { value: value.unwrap_or_default(), trail: text.trail.clone() };
            (Base::Image(bounded(text)), before.len())
        }
        base => (base.clone(), before.len()),
    }
}

/// A reference that is longer than any is unknown.
fn bounded(text: Text) -> Text {
    let longest = text.value.all().map(str::len).max().unwrap_or_default();
    let all: usize = text.value.all().map(str::len).sum();
    if longest > MOST_REFERENCE || all > 4 * MOST_REFERENCE {
        return Text { value: Value::Unknown, trail: text.trail };
    }
    text
}

/// Stages that an unknown text may name: those that fit what is written around its variable; and, where nothing
/// is, all.
fn search(image: &Word, names: &Names) -> (Vec<usize>, Vec<usize>) {
    if names.len() > MOST_SEARCHED {
        return (Vec::new(), Vec::new());
    }
    let text = image.text.trim_matches(['"', '\'']).to_lowercase();
    let start = text.split('$').next().unwrap_or_default();
    let last = text.rsplit('$').next().unwrap_or_default();
    let end = match last.rsplit_once('}') {
        Some((_, end)) => end,
        None => last.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'),
    };
    if start.is_empty() && end.is_empty() {
        return (Vec::new(), names.values().copied().collect());
    }
    let fits = |name: &str| name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end);
    (names.iter().filter(|(name, _)| fits(name)).map(|(_, index)| *index).collect(), Vec::new())
}

/// What an instruction takes files from: COPY --from, and mounts of RUN.
fn taken_from(instruction: &Instruction) -> Vec<(&str, Span)> {
    let value = |flag: &Flag| flag.value.as_ref().map(|v| v.span).unwrap_or(flag.span);
    let flags = instruction.flags.iter();
    match instruction.keyword {
        Keyword::Copy => flags
            .filter(|f| f.name == "from")
            .filter_map(|f| Some((f.value.as_ref()?.text.as_str(), value(f))))
            .collect(),
        Keyword::Run => flags
            .filter(|f| f.name == "mount")
            .filter_map(|f| Some((mount_from(&f.value.as_ref()?.text)?, value(f))))
            .collect(),
        _ => Vec::new(),
    }
}

/// `from=` of a mount.
fn mount_from(mount: &str) -> Option<&str> {
    mount.split(',').find_map(|field| {
        let (key, value) = field.trim_matches('"').split_once('=')?;
        key.eq_ignore_ascii_case("from").then_some(value)
    })
}

/// What COPY --from or a mount names: an earlier stage by name or index, or an image.
fn source(name: &str, names: &Names, current: usize) -> Base {
    if let Some(index) = names.get(&name.to_lowercase()) {
        return Base::Stage(*index);
    }
    if let Ok(index) = name.parse::<usize>() {
        return if index < current { Base::Stage(index) } else { Base::None };
    }
    match name {
        "scratch" => Base::Scratch,
        // Variables are not allowed there.
        name if name.is_empty() || name.contains('$') => Base::None,
        name => Base::Image(bounded(Text::known(name))),
    }
}

/// Marks what is built and what is in the image, from the last stage on.
fn mark(graph: &mut Graph, needs: &[Vec<usize>]) {
    let Some(last) = graph.last else { return };
    // Through FROMs that are known, then also through those that are not.
    let mut open = Vec::new();
    let mut at = Some(last);
    while let Some(stage) = at.and_then(|index| graph.stages.get_mut(index)) {
        if stage.in_image {
            break;
        }
        stage.in_image = true;
        open.extend(stage.maybe.iter().copied());
        at = below(stage);
    }
    while let Some(index) = open.pop() {
        let Some(stage) = graph.stages.get_mut(index) else { continue };
        if stage.in_image {
            continue;
        }
        (stage.in_image, stage.perhaps) = (true, true);
        open.extend(stage.maybe.iter().copied());
        open.extend(below(stage));
    }
    open.push(last);
    while let Some(index) = open.pop() {
        let Some(stage) = graph.stages.get_mut(index) else { continue };
        if stage.built {
            continue;
        }
        stage.built = true;
        open.extend(stage.maybe.iter().copied());
        open.extend(below(stage));
        open.extend(needs.get(index).into_iter().flatten().copied());
    }
}

fn below(stage: &Stage) -> Option<usize> {
    match stage.base {
        Base::Stage(index) => Some(index),
        Base::Image(_) | Base::Scratch | Base::None => None,
    }
}
