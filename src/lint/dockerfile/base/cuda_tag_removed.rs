//! Tags of `nvidia/cuda` that were deleted, that never were, or that are no longer mended.

use std::collections::BTreeMap;

use super::from::{Image, images, is_cuda, weigh, without_patch};
use crate::catalog::bases::Base;
use crate::catalog::cuda_tags::{TagFact, TagState};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    // Each tag is looked up once, however many stages name it.
    let mut near: BTreeMap<String, Near> = BTreeMap::new();
    for image in images(lint) {
        let judged = image.every(|_, base| judge(lint, base?));
        let Some(((fact, base), reference, one_of)) = judged else { continue };
        let key = base.tag.clone().unwrap_or_default();
        let near = near.entry(key).or_insert_with(|| find(lint, &base, &fact));
        out.extend(say(lint, &image, (&fact, near), &base, (reference, one_of)));
    }
}

fn judge(lint: &Lint<'_>, base: &Base) -> Option<(TagFact, Base)> {
    let tag = base.tag.as_deref().filter(|_| is_cuda(base))?;
    if tag == "latest" {
        return None;
    }
    let fact = lint.catalog.cuda_tags().state(tag);
    let speaks = match fact.state {
        TagState::Removed | TagState::Outdated => true,
        // Without a patch level: a rule of its own says which there is.
        TagState::Never => without_patch(tag).is_none(),
        TagState::Live | TagState::Unknown => false,
    };
    speaks.then(|| (fact, base.clone()))
}

/// Another tag, and its row.
type Near = Option<(String, String)>;

/// The tag to take instead.
fn find(lint: &Lint<'_>, base: &Base, fact: &TagFact) -> Near {
    let tag = base.tag.as_deref()?;
    match fact.state {
        TagState::Outdated => newer(lint, base, tag),
        TagState::Live | TagState::Removed | TagState::Never | TagState::Unknown => {
            lint.catalog.cuda_tags().nearest(tag).map(|n| (n.tag, n.because))
        }
    }
}

fn say(
    lint: &Lint<'_>,
    image: &Image<'_>,
    (fact, near): (&TagFact, &Near),
    base: &Base,
    (reference, one_of): (&str, bool),
) -> Option<Found> {
    let tag = base.tag.as_deref()?;
    let trail = lint.trail(&image.text.trail);
    let (worst, message, label) = match fact.state {
        TagState::Removed if base.digest => (
            Severity::Error,
            format!("the tag of `{reference}`{trail} was deleted, and its digest may be gone with it"),
            "deleted",
        ),
        TagState::Removed => (
            Severity::Error,
            format!(
                "`{reference}`{trail} was deleted from the registry: a build without a copy of it stops at FROM with \
                 \"not found\""
            ),
            "deleted",
        ),
        // That a tag is in no list says less than that it was taken out of one.
        TagState::Never => (
            Severity::Warning,
            format!("no list of NVIDIA's tags has `{tag}`{trail}: the build stops at FROM with \"not found\""),
            "not in any list",
        ),
        TagState::Outdated => (
            Severity::Note,
            format!("`{reference}`{trail} is no longer mended, and NVIDIA may delete it"),
            "no longer mended",
        ),
        TagState::Live | TagState::Unknown => return None,
    };
    let worst = if fact.sure { worst } else { worst.min(Severity::Warning) };
    let mut found = image.found(weigh(worst, base, one_of), message).label(label).because(fact.because.clone());
    match near {
        Some((near, because)) => {
            found = found.because(because.clone()).help(format!(
                "take `{}:{near}`, the nearest tag that is there{}",
                base.repository,
                if base.mirror { " (on the mirror under its own path)" } else { "" }
            ));
            if let Some(edits) = image.retag(lint, tag, near) {
                found = found.suggest(format!("take the tag {near}"), edits);
            }
        }
        // A note that nothing can be done about is not worth a line.
        None if fact.state == TagState::Outdated => return None,
        None => {}
    }
    Some(found)
}

/// The tag of the newest patch of the same CUDA, flavour and distribution.
fn newer(lint: &Lint<'_>, base: &Base, tag: &str) -> Option<(String, String)> {
    let tags = lint.catalog.cuda_tags();
    let (_, rest) = tag.split_once('-')?;
    let newest = format!("{}-{rest}", tags.newest_patch(base.cuda?)?);
    let fact = tags.state(&newest);
    (fact.state == TagState::Live && newest != tag).then_some((newest, fact.because))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "cuda-tag-removed";

    #[test]
    fn deleted_tags_are_told_at_from_and_at_the_arg() {
        assert_eq!(
            blamed(RULE, "FROM nvidia/cuda:10.2-devel-ubuntu18.04\n", &[]),
            ["nvidia/cuda:10.2-devel-ubuntu18.04"]
        );
        let file = "ARG CUDA=11.4.0\nFROM docker.io/nvidia/cuda:${CUDA}-devel-ubuntu20.04\n";
        let found = lint(RULE, file, &[]);
        assert_eq!(found[0].severity, Severity::Error);
        assert!(found[0].message.contains("from ARG CUDA in line 1"), "{}", found[0].message);
        assert_eq!(&file[found[0].also[0].0.start..found[0].also[0].0.end], "CUDA=11.4.0");
        assert!(mended(RULE, file, &[]).starts_with("ARG CUDA=11.4.3\n"), "{}", mended(RULE, file, &[]));
    }

    #[test]
    fn what_may_still_be_had_weighs_less() {
        let severity = |file: &str| lint(RULE, file, &[]).first().map(|f| f.severity);
        assert_eq!(severity("FROM mirror.corp/nvidia/cuda:10.2-devel-ubuntu18.04\n"), Some(Severity::Warning));
        let digest = "0123456789abcdef".repeat(4);
        assert_eq!(
            severity(&format!("FROM nvidia/cuda:10.2-devel-ubuntu18.04@sha256:{digest}\n")),
            Some(Severity::Warning)
        );
        assert_eq!(severity("FROM nvidia/cuda:12.4.1-cudnn8-devel-ubuntu22.04\n"), Some(Severity::Warning));
        assert_eq!(severity("FROM nvidia/cuda:12.4.0-devel-ubuntu22.04\n"), Some(Severity::Note));
    }

    #[test]
    fn silent_on_what_is_there_or_not_known() {
        for file in [
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n",
            "FROM nvidia/cuda:99.4.1-devel-ubuntu22.04\n",
            "FROM me/cuda:10.2-devel-ubuntu18.04\n",
            "ARG CUDA\nFROM nvidia/cuda:${CUDA}-devel-ubuntu18.04\n",
            "FROM nvidia/cuda:10.2-devel-ubuntu18.04 AS unused\nFROM ubuntu:24.04\n",
            "FROM ubuntu:18.04\n",
            "# FROM nvidia/cuda:10.2-devel-ubuntu18.04\nFROM ubuntu\n",
            "FROM nvidia/cuda:12.4-devel-ubuntu22.04\n",
        ] {
            assert!(lint(RULE, file, &[]).is_empty(), "{file}: {:?}", lint(RULE, file, &[]));
        }
    }
}
