//! The images that a file is FROM, and edits of their tags where these are written.

use crate::catalog::bases::{Base, BaseFamily};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::reading;
use crate::dockerfile::span::Span;
use crate::dockerfile::value::{Origin, Text, Trail, Value};
use crate::lint::dockerfile::ask::{lower, origin_span};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

/// An image that a stage which is built is FROM.
pub struct Image<'a> {
    pub stage: usize,
    pub in_image: bool,
    /// The word of FROM.
    pub from: Span,
    pub text: &'a Text,
    /// What it may be: one reference where it is known; all of them are known to the catalog or none is here.
    pub all: Vec<(String, Option<Base>)>,
}

/// The images of a file, in its order.
pub fn images<'a>(lint: &'a Lint<'_>) -> Vec<Image<'a>> {
    let mut out = Vec::new();
    for (at, stage) in lint.reading.stages.iter().enumerate() {
        let reading::Base::Image(text) = &stage.base else { continue };
        if !stage.built {
            continue;
        }
        let all = text.value.all().map(|r| (r.to_owned(), lint.catalog.bases().find(r))).collect();
        out.push(Image { stage: at, in_image: stage.in_image, from: stage.from, text, all });
    }
    out
}

impl Image<'_> {
    /// What a question finds in the image, with its reference; in all that it may be, where it is one of several: then
    /// the first. The flag says that it is one of several.
    pub fn every<T>(&self, ask: impl Fn(&str, Option<&Base>) -> Option<T>) -> Option<(T, &str, bool)> {
        let mut answers = self.all.iter().map(|(reference, base)| ask(reference, base.as_ref()));
        let first = answers.next()??;
        if answers.any(|a| a.is_none()) {
            return None;
        }
        Some((first, self.all.first()?.0.as_str(), self.all.len() > 1))
    }

    /// A finding at its FROM, and at the ARGs that its name is made of.
    pub fn found(&self, severity: Severity, message: String) -> Found {
        let mut found = Found { severity, ..Found::note(self.from, message) };
        for step in &self.text.trail {
            if let Some(span) = origin_span(step.origin) {
                found = found.also(span, format!("{} is set here", step.name));
            }
        }
        found
    }

    /// The edits that make one tag of another, where each part that differs stands at just one place.
    pub fn retag(&self, lint: &Lint<'_>, old: &str, new: &str) -> Option<Vec<Edit>> {
        if !matches!(self.text.value, Value::Known(_)) {
            return None;
        }
        let sources = sources(lint, self);
        let (olds, news): (Vec<&str>, Vec<&str>) = (old.split('-').collect(), new.split('-').collect());
        let parts: Vec<(&str, &str)> =
            if olds.len() == news.len() { olds.into_iter().zip(news).collect() } else { vec![(old, new)] };
        let differ = parts.into_iter().filter(|(a, b)| a != b);
        let edits: Option<Vec<Edit>> = differ
            .map(|(a, b)| {
                place(&sources, a).map(|span| Edit::new(span, b)).or_else(|| {
                    // `ubuntu${VERSION}`: the number alone may be written.
                    let (head, a) = a.split_at_checked(a.find(|c: char| c.is_ascii_digit())?)?;
                    let b = b.strip_prefix(head).filter(|_| !head.is_empty())?;
                    place(&sources, a).map(|span| Edit::new(span, b))
                })
            })
            .collect();
        edits.filter(|e| !e.is_empty())
    }
}

/// The texts that an image's name is made of, with their places.
fn sources<'a>(lint: &'a Lint<'_>, image: &Image<'_>) -> Vec<(&'a str, usize)> {
    let document = &lint.reading.document;
    let mut out = vec![(document.slice(image.from), image.from.start)];
    for Trail { origin, .. } in &image.text.trail {
        let Origin::Arg(span) = origin else { continue };
        let text = document.slice(*span);
        let value = text.find('=').map_or(0, |at| at + 1);
        out.push((text.get(value..).unwrap_or_default(), span.start + value));
    }
    out
}

/// The one place of a part of a tag: not inside of a longer word.
fn place(sources: &[(&str, usize)], part: &str) -> Option<Span> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let mut found = None;
    for (text, start) in sources {
        for (at, _) in text.match_indices(part) {
            let before = text.get(..at)?.chars().next_back();
            let after = text.get(at + part.len()..)?.chars().next();
            if before.is_some_and(word) || after.is_some_and(word) {
                continue;
            }
            let span = Span::new(start + at, start + at + part.len());
            if found.is_some_and(|other| other != span) {
                return None;
            }
            found = Some(span);
        }
    }
    found
}

/// Whether an image is one of the repository `nvidia/cuda` itself, here or on a mirror.
pub fn is_cuda(base: &Base) -> bool {
    base.family == BaseFamily::NvidiaCuda && base.repository == "nvidia/cuda"
}

/// One level lower for what is pinned by a digest, stands on a mirror, or is one of several.
pub fn weigh(severity: Severity, base: &Base, one_of: bool) -> Severity {
    if base.digest || base.mirror || one_of { lower(severity) } else { severity }
}

/// The version at a tag's head, where it has two numbers only: "11.0".
pub fn without_patch(tag: &str) -> Option<&str> {
    let version = tag.split('-').next()?;
    let mut numbers = version.split('.');
    let digits = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    let two = numbers.next().is_some_and(digits) && numbers.next().is_some_and(digits);
    (two && numbers.next().is_none()).then_some(version)
}
