//! `nvidia/cuda` without a tag, or with `latest`.

use super::from::{images, is_cuda, weigh};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let tags = lint.catalog.cuda_tags();
    for image in images(lint) {
        let asks_latest = |_: &str, base: Option<&crate::catalog::bases::Base>| {
            let base = base.filter(|b| is_cuda(b))?;
            let none = base.tag.is_none() && !base.digest;
            (none || base.tag.as_deref() == Some("latest")).then(|| base.clone())
        };
        let Some((base, reference, one_of)) = image.every(asks_latest) else { continue };
        let fact = tags.state("latest");
        let worst = if fact.sure { Severity::Error } else { Severity::Warning };
        let trail = lint.trail(&image.text.trail);
        let message = format!(
            "`{reference}`{trail} asks for the tag `latest`, which `nvidia/cuda` has not: the build stops at FROM with \
             \"not found\""
        );
        let mut found =
            image.found(weigh(worst, &base, one_of), message).label("no such tag").because(fact.because);
        if let Some(near) = tags.nearest(EXAMPLE) {
            found = found.help(format!(
                "name CUDA's version, the flavour and the distribution, as `nvidia/cuda:{}`",
                near.tag
            ));
        }
        out.push(found);
    }
}

/// Any tag of the usual shape: the catalog finds the live one next to it.
const EXAMPLE: &str = "99.0.0-base-ubuntu24.04";

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "cuda-tag-latest";

    #[test]
    fn latest_is_told_written_or_not() {
        assert_eq!(blamed(RULE, "FROM nvidia/cuda\n", &[]), ["nvidia/cuda"]);
        assert_eq!(blamed(RULE, "FROM nvcr.io/nvidia/cuda:latest AS a\n", &[]), ["nvcr.io/nvidia/cuda:latest"]);
        let found = lint(RULE, "ARG TAG=latest\nFROM nvidia/cuda:$TAG\n", &[]);
        assert_eq!(found[0].severity, Severity::Error);
        assert!(found[0].help.as_deref().unwrap().contains("-base-ubuntu"), "{:?}", found[0].help);
        assert_eq!(lint(RULE, "FROM mirror.corp/nvidia/cuda\n", &[])[0].severity, Severity::Warning);
    }

    #[test]
    fn silent_on_what_names_its_image() {
        let digest = "0123456789abcdef".repeat(4);
        let pinned = format!("FROM nvidia/cuda@sha256:{digest}\n");
        for file in [
            "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n",
            pinned.as_str(),
            "FROM me/cuda\n",
            "FROM ubuntu:latest\n",
            "ARG TAG\nFROM nvidia/cuda:$TAG\n",
            "FROM nvidia/cuda AS unused\nFROM ubuntu:24.04\n",
        ] {
            assert!(lint(RULE, file, &[]).is_empty(), "{file}");
        }
    }
}
