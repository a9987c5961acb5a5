//! The verdicts' pages, in `rules/verdicts`, and which rules lead where.

use super::rules::{RULES, Rule};
use crate::model::Verdict;

/// Under this heading, pages end with what [`page`] makes of [`LEADS`].
const RULES_HEAD: &str = "## Rules that lead here\n";

/// What rules of images can make of a target. Whatever is found in a component that nothing loads, or on a target that
/// is not required, is a note besides.
const LEADS: &[(&str, &[Verdict])] = &[
    ("catalog-stale", &[]),
    ("code-mostly-for-other-targets", &[Verdict::Warn]),
    ("compiler-too-old-for-target", &[Verdict::Fail, Verdict::Warn]),
    ("compressed-code-needs-newer-driver", &[Verdict::Fail, Verdict::Warn]),
    ("cpu-build-in-gpu-image", &[Verdict::Cpu]),
    ("device-code-may-not-load", &[Verdict::Warn]),
    ("device-code-not-readable", &[Verdict::Unknown, Verdict::Warn]),
    ("driver-capability-missing", &[Verdict::Fail, Verdict::Blocked, Verdict::Warn]),
    ("driver-does-not-know-gpu", &[Verdict::Fail, Verdict::Warn]),
    ("driver-in-image", &[Verdict::Fail, Verdict::Warn]),
    ("driver-mount-not-on-path", &[Verdict::Cpu]),
    ("driver-too-old-for-cuda", &[Verdict::Fail]),
    ("forward-compat-not-usable", &[Verdict::Fail, Verdict::Warn]),
    ("forward-compat-used", &[]),
    ("glibc-too-old", &[Verdict::Fail, Verdict::Warn]),
    ("gpu-devices-to-pass", &[]),
    ("gpu-not-requested", &[Verdict::Fail, Verdict::Cpu]),
    ("hsa-override-baked", &[Verdict::Warn]),
    ("intel-gpu-runtime-missing", &[Verdict::Cpu, Verdict::Warn]),
    ("jit-at-start", &[Verdict::Slow, Verdict::Warn]),
    ("jit-compiler-missing", &[Verdict::Warn]),
    ("jit-disabled", &[Verdict::Fail, Verdict::Warn]),
    ("kpack-archive-missing", &[Verdict::Fail, Verdict::Warn]),
    ("ld-cache-stale", &[Verdict::Fail, Verdict::Warn]),
    ("library-data-missing", &[Verdict::Fail, Verdict::Slow, Verdict::Warn]),
    ("library-not-found", &[Verdict::Fail, Verdict::Cpu, Verdict::Warn]),
    ("library-not-loadable", &[Verdict::Fail, Verdict::Cpu, Verdict::Warn]),
    ("library-of-other-major", &[Verdict::Fail, Verdict::Cpu, Verdict::Warn]),
    ("library-shadowed", &[]),
    ("mixed-library-versions", &[Verdict::Fail]),
    ("needs-runtime-linker", &[Verdict::Warn]),
    ("no-device-code-for-target", &[Verdict::Fail, Verdict::Warn]),
    ("no-gpu-code", &[]),
    ("no-variant-for-image", &[Verdict::Fail, Verdict::Cpu, Verdict::Warn]),
    ("opened-library-not-found", &[Verdict::Fail, Verdict::Cpu, Verdict::Warn]),
    ("ptx-too-new-for-driver", &[Verdict::Fail, Verdict::Warn]),
    ("requirement-not-met", &[Verdict::Blocked, Verdict::Warn]),
    ("rocm-driver-not-tested", &[Verdict::Warn]),
    ("scan-incomplete", &[Verdict::Unknown]),
    ("special-code-for-other-targets", &[]),
    ("stub-driver-on-path", &[Verdict::Fail, Verdict::Warn]),
    ("symbol-version-not-found", &[Verdict::Fail, Verdict::Warn]),
    ("system-library-not-found", &[Verdict::Fail, Verdict::Cpu, Verdict::Warn]),
    ("undefined-symbol", &[Verdict::Fail, Verdict::Warn]),
    ("versions-disagree", &[Verdict::Warn]),
    ("waiver-expired", &[]),
    ("waiver-unmatched", &[]),
    ("wrong-platform", &[Verdict::Fail]),
    ("xnack-mode-differs", &[Verdict::Fail, Verdict::Warn]),
];

/// The page as it is kept.
const fn kept(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fail => include_str!("../../rules/verdicts/fail.md"),
        Verdict::Unknown => include_str!("../../rules/verdicts/unknown.md"),
        Verdict::Blocked => include_str!("../../rules/verdicts/blocked.md"),
        Verdict::Cpu => include_str!("../../rules/verdicts/cpu.md"),
        Verdict::Slow => include_str!("../../rules/verdicts/slow.md"),
        Verdict::Warn => include_str!("../../rules/verdicts/warn.md"),
        Verdict::Ok => include_str!("../../rules/verdicts/ok.md"),
    }
}

/// The page with its last part made anew.
pub fn page(verdict: Verdict) -> String {
    let text = kept(verdict);
    let mut out = text.find(RULES_HEAD).map_or(text, |at| &text[..at]).trim_end().to_owned();
    out.push_str(&format!("\n\n{RULES_HEAD}\n"));
    for rule in leading_to(verdict) {
        out.push_str(&format!("- [{id}](../lints/{id}.md): {summary}\n", id = rule.id, summary = rule.summary));
    }
    out
}

/// Rules of images that can give it, by id; for `ok`, those that never give anything worse.
pub fn leading_to(verdict: Verdict) -> impl Iterator<Item = &'static Rule> {
    let gives = move |id: &str| {
        LEADS.iter().any(|(rule, verdicts)| {
            *rule == id && if verdict == Verdict::Ok { verdicts.is_empty() } else { verdicts.contains(&verdict) }
        })
    };
    RULES.iter().filter(move |rule| gives(rule.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_images_leads_somewhere() {
        let of_images: Vec<&str> = RULES.iter().filter(|r| r.needs.is_none()).map(|r| r.id).collect();
        let listed: Vec<&str> = LEADS.iter().map(|(id, _)| *id).collect();
        assert_eq!(listed, of_images);
        for (rule, verdicts) in LEADS {
            assert!(verdicts.is_sorted() && !verdicts.contains(&Verdict::Ok), "{rule}: worst first");
        }
    }

    #[test]
    fn pages_have_their_parts() {
        for verdict in Verdict::ALL {
            let page = page(verdict);
            assert!(page.starts_with(&format!("# {}\n", verdict.word())), "{verdict}");
            for part in ["## How it is reached", "## What to do", "## Limits", RULES_HEAD.trim_end()] {
                assert_eq!(page.matches(part).count(), 1, "{verdict}: {part}");
            }
            assert!(leading_to(verdict).next().is_some(), "{verdict}: no rule");
        }
    }
}
