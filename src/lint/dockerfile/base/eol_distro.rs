//! Base images on a distribution that is no longer mended.

use std::collections::BTreeSet;

use super::from::images;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let distros = lint.catalog.distros();
    // The day of the facts, not of the run: the same file gets the same answer.
    let day = lint.catalog.as_of();
    let mut said = BTreeSet::new();
    for image in images(lint) {
        let ended = image.every(|reference, base| {
            let known = base.and_then(|b| b.distro.as_deref()).filter(|d| distros.eol(d).is_some());
            distros.ended(known.unwrap_or(reference), day)
        });
        let Some((eol, reference, one_of)) = ended else { continue };
        // Wheels are built there on purpose: for the glibc of old systems.
        if reference.contains("manylinux") {
            continue;
        }
        if !said.insert(reference.to_owned()) {
            continue;
        }
        // A stage whose files are copied elsewhere is often old on purpose: for its old glibc.
        let weak = !eol.sure || one_of || !image.in_image;
        let severity = if weak { Severity::Note } else { Severity::Warning };
        let message = format!(
            "`{reference}`{} stands on {}, whose support ended on {}: its packages get no fixes, and its repositories \
             may move away",
            lint.trail(&image.text.trail),
            eol.name,
            eol.free_until.as_ref().unwrap_or(&eol.date)
        );
        let help = "take the same image on a newer release of the distribution";
        out.push(
            image.found(severity, message).label(format!("{}: ended", eol.name)).help(help).because(eol.because),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "eol-distro";

    #[test]
    fn old_distributions_are_told_whoever_made_the_image() {
        for image in
            ["ubuntu:18.04", "nvidia/cuda:11.4.3-devel-ubuntu18.04", "centos:7", "nvidia/cuda:11.8.0-base-centos7"]
        {
            let file = format!("FROM {image}\nRUN true\n");
            assert_eq!(blamed(RULE, &file, &[]), [image]);
        }
        let found = lint(RULE, "ARG U=18.04\nFROM ubuntu:$U\n", &[]);
        assert_eq!(found[0].severity, Severity::Warning);
        assert!(
            found[0].message.contains("Ubuntu 18.04") && found[0].message.contains("2023"),
            "{}",
            found[0].message
        );
    }

    #[test]
    fn a_builder_is_only_noted_and_each_image_once() {
        let file = "FROM ubuntu:18.04 AS a\nFROM ubuntu:24.04\nCOPY --from=a /x /x\n";
        assert_eq!(lint(RULE, file, &[])[0].severity, Severity::Note);
        let file = "FROM ubuntu:18.04 AS a\nFROM ubuntu:18.04\nCOPY --from=a /x /x\n";
        assert_eq!(lint(RULE, file, &[]).len(), 1);
    }

    #[test]
    fn silent_on_the_young_and_the_unknown() {
        for file in [
            "FROM ubuntu:24.04\n",
            "FROM ubuntu\n",
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n",
            "FROM team/app:18.04\n",
            "ARG U\nFROM ubuntu:$U\n",
            "FROM ubuntu:18.04 AS unused\nFROM ubuntu:24.04\n",
            "FROM scratch\n",
            "FROM quay.io/pypa/manylinux2014_x86_64\n",
        ] {
            assert!(lint(RULE, file, &[]).is_empty(), "{file}");
        }
    }
}
