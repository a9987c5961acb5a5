//! Waivers of the fleet file: findings that somebody has accepted, with a reason and a last day.

use crate::config::{Date, Fleet, Waiver};
use crate::inventory::same_component;
use crate::model::{Accepted, AcceptedBy, Finding, ImagePath, Severity, Verdict};

/// Splits findings into those that stand and those that a waiver covers. A waiver past its day covers nothing and
/// is a finding; so is one that matches nothing though it `concerns` what was judged. Names of files count as they are,
/// and with `base` before them: from the repository's root.
pub fn apply(
    findings: Vec<Finding>,
    fleet: &Fleet,
    today: Date,
    base: &str,
    concerns: &dyn Fn(&Waiver) -> bool,
) -> (Vec<Finding>, Vec<Finding>) {
    let mut kept = Vec::new();
    let mut waived = Vec::new();
    let mut used = vec![false; fleet.waivers.len()];
    for mut finding in findings {
        for (waiver, used) in fleet.waivers.iter().zip(&mut used) {
            if !covers(waiver, &finding, base) {
                continue;
            }
            *used = true;
            if waiver.expires < today {
                continue;
            }
            let (given, left): (Vec<String>, Vec<String>) = std::mem::take(&mut finding.targets)
                .into_iter()
                .partition(|t| waiver.targets.is_empty() || waiver.targets.contains(t));
            let whole = left.is_empty();
            let mut part = Finding { targets: given, ..finding.clone() };
            let reason = crate::model::escape(waiver.reason.as_bytes());
            part.because.push(format!("waived until {}: {reason}", waiver.expires));
            part.accepted = Some(Accepted { by: AcceptedBy::Waiver, line: waiver.line, reason });
            finding.targets = left;
            waived.push(part);
            if whole {
                finding.rule.clear();
                break;
            }
        }
        if !finding.rule.is_empty() {
            kept.push(finding);
        }
    }
    for (waiver, used) in fleet.waivers.iter().zip(used) {
        let place = format!("the waiver of {} in line {}", waiver.rule, waiver.line);
        if used && waiver.expires < today {
            let message = format!("{place} ended on {}", waiver.expires);
            kept.push(about("waiver-expired", Severity::Error, message, "mend what it covered, or renew it"));
        } else if !used && concerns(waiver) {
            let message = format!("{place} matches no finding");
            kept.push(about("waiver-unmatched", Severity::Note, message, "remove it"));
        }
    }
    (kept, waived)
}

fn covers(waiver: &Waiver, finding: &Finding, base: &str) -> bool {
    let component = |wanted: &String| finding.component.as_ref().is_some_and(|c| same_component(c, wanted));
    waiver.rule == finding.rule
        && waiver.component.as_ref().is_none_or(component)
        && waiver.path.as_ref().is_none_or(|glob| paths(finding, base).any(|p| glob.matches(&p)))
        && (waiver.targets.is_empty() || finding.targets.iter().any(|t| waiver.targets.contains(t)))
}

/// The path in the image, and the Dockerfile's.
fn paths(finding: &Finding, base: &str) -> impl Iterator<Item = ImagePath> {
    let file =
        finding.dockerfile.as_ref().map(|d| [ImagePath::new(&d.file), ImagePath::new(format!("{base}{}", d.file))]);
    finding.path.clone().into_iter().chain(file.into_iter().flatten())
}

fn about(rule: &str, severity: Severity, message: String, help: &str) -> Finding {
    Finding { help: Some(help.to_owned()), ..Finding::new(rule, severity, Verdict::Ok, message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::model::FilePlace;

    fn fleet(waiver: &str) -> Fleet {
        let text =
            format!("[[waiver]]\nrule = \"jit-at-start\"\nreason = \"known\"\nexpires = \"2027-03-31\"\n{waiver}");
        Fleet::parse(&text, "imagelint.toml", Catalog::embedded()).unwrap()
    }

    fn finding(targets: &[&str]) -> Finding {
        let mut f = about("jit-at-start", Severity::Warning, "x".into(), "y");
        f.component = Some("flash_attn".into());
        f.path = Some(crate::model::ImagePath::new("opt/legacy/a.so"));
        f.targets = targets.iter().map(|t| (*t).to_owned()).collect();
        f
    }

    fn rules(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|f| f.rule.as_str()).collect()
    }

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn a_waiver_covers_what_it_names_until_its_day() {
        for waiver in ["", "component = \"flash-attn\"", "path = \"opt/legacy/**\"", "targets = [\"a\", \"b\"]"] {
            let (kept, waived) =
                apply(vec![finding(&["a", "b"])], &fleet(waiver), day("2027-03-31"), "", &|_| true);
            assert_eq!((kept.len(), rules(&waived)), (0, vec!["jit-at-start"]), "{waiver}");
        }
        let (kept, waived) = apply(vec![finding(&["a"])], &fleet(""), day("2027-04-01"), "", &|_| true);
        assert_eq!((rules(&kept), waived.len()), (vec!["jit-at-start", "waiver-expired"], 0));
    }

    #[test]
    fn targets_that_are_not_named_stay() {
        let (kept, waived) =
            apply(vec![finding(&["a", "b"])], &fleet("targets = [\"b\"]"), day("2026-12-01"), "", &|_| true);
        assert_eq!((&kept[0].targets[..], &waived[0].targets[..]), (&["a".to_owned()][..], &["b".to_owned()][..]));
    }

    #[test]
    fn a_waiver_that_matches_nothing_is_told() {
        for waiver in ["component = \"torch\"", "path = \"usr/**\"", "targets = [\"c\"]"] {
            let (kept, _) = apply(vec![finding(&["a"])], &fleet(waiver), day("2026-12-01"), "", &|_| true);
            assert_eq!(rules(&kept), ["jit-at-start", "waiver-unmatched"], "{waiver}");
        }
    }

    #[test]
    fn a_dockerfile_is_meant_from_here_and_from_the_root() {
        let mut found = finding(&[]);
        let place = FilePlace { file: "gpu/Dockerfile".into(), line: 1, column: 1, end_line: 1, end_column: 1 };
        (found.dockerfile, found.path) = (Some(place), None);
        for (path, base, waived) in [
            ("gpu/**", "", 1),
            ("gpu/**", "docker/", 1),
            ("docker/gpu/Dockerfile", "docker/", 1),
            ("docker/gpu/Dockerfile", "", 0),
        ] {
            let fleet = fleet(&format!("path = \"{path}\""));
            let (_, covered) = apply(vec![found.clone()], &fleet, day("2026-12-01"), base, &|_| true);
            assert_eq!(covered.len(), waived, "{path} {base}");
        }
    }
}
