//! Another base image.

use super::Placed;
use super::words::{Spot, Words, is_plain};
use crate::catalog::cuda_tags::TagState;
use crate::dockerfile::reading::Base;
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::Body;
use crate::model::escape;

pub fn place(mut words: Words<'_, '_>, from: &str, to: &str) -> Placed {
    let reading = words.lint.reading;
    let told = |text: &str| escape(text.as_bytes());
    if !is_plain(to) || to.is_empty() || to.contains(' ') {
        return Placed::left(format!("{} is no image's name", told(to)));
    }
    // One variable may name the tag of several stages, which should stay alike.
    words.together = reading.stages.iter().map(|s| s.from).collect();
    if let Some(placed) = release(&words, from, to) {
        return placed;
    }
    let Some((root, at)) = reading.last.and_then(|last| reading.stages.get(last)).map(|s| s.root.clone()) else {
        return Placed::left("the file has no stage");
    };
    let Base::Image(text) = &root else {
        return Placed::left(format!(
            "the final stage does not start from an image: {} is the one to take",
            told(to)
        ));
    };
    let Some(old) = text.value.known() else {
        return Placed::left(format!(
            "what the final stage starts from is not known: {} is the one to take",
            told(to)
        ));
    };
    let Some(stage) = reading.stages.get(at) else { return Placed::left("the file has no stage") };
    let line = words.line(stage.from);
    if plain_name(old) != plain_name(from) {
        return Placed::left(format!(
            "line {line} starts from {}, not from {}: see which it is",
            told(old),
            told(from)
        ));
    }
    if old == to {
        return Placed::left(format!("line {line} starts from it already: build with --pull"));
    }
    let instruction = stage.instructions.start;
    let Some(Body::From { image, .. }) = reading.instruction(instruction).map(|i| &i.body) else {
        return Placed::left(format!("line {line} could not be read"));
    };
    let span: Span = image.span;
    let mut placed = Placed::default();
    placed.take(words.change(Spot { span, instruction, command: None }, old, to));
    if placed.edits.is_empty() {
        return placed;
    }
    // Where the same image's other variants compile, they should be of the same release.
    for (index, other) in reading.stages.iter().enumerate().filter(|(i, s)| *i != at && s.built) {
        let Base::Image(text) = &other.base else { continue };
        let Some(name) = text.value.known() else { continue };
        let changed = placed.edits.iter().any(|e| other.from.contains(e.span));
        let variable = placed.edits.iter().all(|e| !stage.from.contains(e.span));
        if repository(name) == repository(old) && name != old && name != to && !changed && !variable && index != at
        {
            placed.left.push(format!(
                "line {} starts from {}: see that it fits {}",
                words.line(other.from),
                told(name),
                told(to)
            ));
        }
    }
    placed
}

/// Another release of one repository, `nvidia/cuda:12.8.1` for `nvidia/cuda:12.6.3`: flavour and distribution stay, in
/// all stages that are built. `None` where no stage starts from that release.
fn release(words: &Words<'_, '_>, from: &str, to: &str) -> Option<Placed> {
    let reading = words.lint.reading;
    let (repository, wanted) = to.rsplit_once(':').filter(|(_, tag)| !tag.contains(['/', '-']))?;
    let mut placed = Placed::default();
    let mut any = false;
    for stage in reading.stages.iter().filter(|s| s.built) {
        let Base::Image(text) = &stage.base else { continue };
        let Some(old) = text.value.known() else { continue };
        let plain = plain_name(old);
        let Some(rest) = plain.strip_prefix(from).filter(|rest| rest.starts_with('-')) else { continue };
        any = true;
        let line = words.line(stage.from);
        let tag = format!("{wanted}{rest}");
        let fact = words.lint.catalog.cuda_tags().state(tag.split('@').next().unwrap_or_default());
        if rest.contains('@') || !matches!(fact.state, TagState::Live | TagState::Unknown) {
            let near = words.lint.catalog.cuda_tags().nearest(&tag);
            let near = near.map_or(String::new(), |n| format!(", {repository}:{} is", n.tag));
            let told = escape(tag.as_bytes());
            placed.left.push(format!("line {line}: {repository}:{told} is not there{near}: choose one"));
            continue;
        }
        let instruction = stage.instructions.start;
        let Some(Body::From { image, .. }) = reading.instruction(instruction).map(|i| &i.body) else { continue };
        let spot = Spot { span: image.span, instruction, command: None };
        let new = old.replacen(from, to, 1);
        let before = placed.edits.len();
        placed.take(words.change(spot, old, &new));
        // A variable that several stages share is changed once.
        let (first, more) = placed.edits.split_at(before);
        let more: Vec<_> = more.iter().filter(|e| !first.contains(e)).cloned().collect();
        placed.edits.truncate(before);
        placed.edits.extend(more);
    }
    any.then_some(placed)
}

/// Without the registry and the folder that stand for Docker Hub, and with the tag that is meant where there is none.
fn plain_name(name: &str) -> String {
    let name = name.strip_prefix("docker.io/").or_else(|| name.strip_prefix("index.docker.io/")).unwrap_or(name);
    let name = name.strip_prefix("library/").unwrap_or(name);
    let tagged = name.contains('@') || name.rsplit('/').next().is_some_and(|last| last.contains(':'));
    if tagged { name.to_owned() } else { format!("{name}:latest") }
}

fn repository(name: &str) -> String {
    let name = plain_name(name);
    let name = name.split('@').next().unwrap_or_default();
    match name.rsplit_once(':') {
        Some((head, tag)) if !tag.contains('/') => head.to_owned(),
        _ => name.to_owned(),
    }
}
