//! Tags of `nvidia/cuda` without CUDA's patch level.

use super::from::{images, is_cuda, weigh, without_patch};
use crate::catalog::bases::Base;
use crate::catalog::cuda_tags::TagState;
use crate::catalog::names;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for image in images(lint) {
        let judge = |_: &str, base: Option<&Base>| {
            let base = base.filter(|b| is_cuda(b))?;
            let tag = base.tag.as_deref()?;
            Some((patched(lint, tag)?, base.clone()))
        };
        let Some((((with, because), base), reference, one_of)) = image.every(judge) else { continue };
        let Some(tag) = base.tag.as_deref() else { continue };
        let version = without_patch(tag).unwrap_or_default();
        let message = format!(
            "`{reference}`{} names CUDA {version} without its patch level: such tags of `nvidia/cuda` are gone, and \
             the build stops at FROM with \"not found\"",
            lint.trail(&image.text.trail)
        );
        let mut found = image
            .found(weigh(Severity::Warning, &base, one_of), message)
            .label("no patch level")
            .help(format!("take `{with}`, its newest patch"))
            .because(because);
        if let Some(edits) = image.retag(lint, tag, &with) {
            found = found.suggest(format!("take the tag {with}"), edits);
        }
        out.push(found);
    }
}

/// The same tag with the newest patch level that it is there with; none where tags of that version have no patch
/// level, or where it is there as it is.
fn patched(lint: &Lint<'_>, tag: &str) -> Option<(String, String)> {
    let version = without_patch(tag)?;
    let tags = lint.catalog.cuda_tags();
    if matches!(tags.state(tag).state, TagState::Live | TagState::Outdated) {
        return None;
    }
    let rest = tag.strip_prefix(version)?;
    let head = format!("{version}.");
    let of_line = tags.versions().into_iter().filter(|v| v.starts_with(&head));
    let there = of_line.filter_map(|v| {
        let with = format!("{v}{rest}");
        let fact = tags.state(&with);
        let there = matches!(fact.state, TagState::Live | TagState::Outdated);
        there.then(|| (names::numbers(v), with, fact.because))
    });
    let (_, with, because) = there.max_by(|a, b| a.0.cmp(&b.0))?;
    Some((with, because))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "cuda-tag-no-patch";

    #[test]
    fn the_newest_patch_is_put_in_where_the_version_stands() {
        let file = "FROM nvidia/cuda:11.0-base-ubuntu20.04\n";
        assert_eq!(blamed(RULE, file, &[]), ["nvidia/cuda:11.0-base-ubuntu20.04"]);
        assert_eq!(mended(RULE, file, &[]), "FROM nvidia/cuda:11.0.3-base-ubuntu20.04\n");
        let file = "ARG CUDA=12.4\nFROM nvidia/cuda:${CUDA}-devel-ubuntu22.04\n";
        assert_eq!(mended(RULE, file, &[]), "ARG CUDA=12.4.1\nFROM nvidia/cuda:${CUDA}-devel-ubuntu22.04\n");
    }

    #[test]
    fn silent_where_tags_have_no_patch_level_or_it_is_written() {
        for file in [
            "FROM nvidia/cuda:10.2-devel-ubuntu18.04\n",
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n",
            "FROM nvidia/cuda:latest\n",
            "FROM me/cuda:11.0-base\n",
            "FROM nvidia/cuda:12.4-no-such-flavour-ubuntu22.04\n",
            "ARG CUDA\nFROM nvidia/cuda:${CUDA}-devel-ubuntu22.04\n",
        ] {
            assert!(lint(RULE, file, &[]).is_empty(), "{file}: {:?}", lint(RULE, file, &[]));
        }
    }
}
