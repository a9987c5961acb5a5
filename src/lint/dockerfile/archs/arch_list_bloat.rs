//! A list that compiles for many GPUs that the fleet has not.

use crate::catalog::arch_lists::{ArchList, Grammar};
use crate::catalog::compat::Fit;
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::{ArchSetting, Place};
use crate::lint::dockerfile::{Found, Lint};

use super::lists::{self, Archs, Use};

/// Members of a list that is looked at.
const MANY: usize = 7;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(archs) = Archs::set(lint) else { return };
    for (place, settings) in archs.by_place() {
        out.extend(settings.into_iter().find_map(|s| told(lint, &archs, s, place)));
    }
}

fn told<'a>(lint: &Lint<'a>, archs: &Archs<'a>, setting: &ArchSetting<'_>, place: Place) -> Option<Found> {
    let members = matches!(setting.variable.grammar, Grammar::Torch | Grammar::Cmake | Grammar::Numbers);
    if !members || archs.usage(lint, setting) < Use::ReadPerhaps {
        return None;
    }
    let Value::Known(value) = &setting.value else { return None };
    let list = setting.variable.parse(value);
    if !list.is_closed() || list.entries.len() < MANY {
        return None;
    }
    let mut kept = vec![false; list.entries.len()];
    for target in &lint.targets {
        let (best, fit) = list
            .entries
            .iter()
            .enumerate()
            .map(|(at, e)| {
                let alone = ArchList { sass: e.sass.clone(), ptx: e.ptx.clone(), ..ArchList::default() };
                // Of several that fit alike the newest is the nearest.
                let newest = e.sass.iter().chain(&e.ptx).filter_map(|a| a.capability()).max();
                (at, (lists::fit(lint, &alone, None, target), newest))
            })
            .max_by_key(|(_, fit)| *fit)?;
        // A list that misses a target wants members, not fewer of them.
        if fit.0 <= Fit::Missing {
            return None;
        }
        *kept.get_mut(best)? = true;
    }
    let used = kept.iter().filter(|k| **k).count();
    if used * 2 > list.entries.len() {
        return None;
    }
    let names: Vec<&str> = list
        .entries
        .iter()
        .zip(&kept)
        .filter(|(_, kept)| **kept)
        .filter_map(|(e, _)| value.get(e.range.clone()))
        .collect();
    let new = names.join(&list.separator);
    let message = format!(
        "{}: {} architectures are compiled, of which the targets use {used}; the others cost build time and size",
        lists::said(lint, setting),
        list.entries.len()
    );
    let found = Found::note(place.span, message)
        .label(format!("the targets use {used} of {}", list.entries.len()))
        .help(format!("for these targets {} is enough", lists::shown(&new)))
        .because(setting.variable.because());
    Some(match lists::write(lint, place, &new) {
        Some(edit) => found.suggest("leave the others out", vec![edit]),
        None => found,
    })
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "arch-list-bloat";
    const LONG: &str = "6.0 6.1 7.0 7.5 8.0 8.6 9.0+PTX";

    fn file(list: &str) -> String {
        format!(
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"{list}\"\nRUN pip install --no-build-isolation ./csrc\n"
        )
    }

    #[test]
    fn many_members_for_few_targets() {
        assert_eq!(blamed(RULE, &file(LONG), &["h100@550"]), [LONG]);
        assert!(mended(RULE, &file(LONG), &["h100@550", "l40s@550"]).contains("\"8.6 9.0+PTX\""));
    }

    #[test]
    fn short_lists_and_wide_fleets() {
        assert!(lint(RULE, &file("7.0 7.5 8.0 8.6 8.9 9.0"), &["h100@550"]).is_empty());
        assert!(lint(RULE, &file(LONG), &["p100@535", "gtx 1080@535", "v100@535", "t4@535"]).is_empty());
        // What misses a target is not too long.
        assert!(lint(RULE, &file("5.0 5.2 6.0 6.1 7.0 7.5 8.0"), &["h100@550"]).is_empty());
    }
}
