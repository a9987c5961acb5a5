//! `9.0a` and its like: code for one capability alone, where a target would run the plain one's.

use crate::catalog::arch_lists::{ArchList, Grammar};
use crate::catalog::compat::Fit;
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::{ArchSetting, Place};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::{Feature, SmArch, Target};

use super::lists::{self, Archs, Use};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(archs) = Archs::set(lint) else { return };
    for (place, settings) in archs.by_place() {
        let found = settings.into_iter().find_map(|s| told(lint, &archs, s, place));
        out.extend(found);
    }
}

fn told<'a>(lint: &Lint<'a>, archs: &Archs<'a>, setting: &ArchSetting<'_>, place: Place) -> Option<Found> {
    let usage = archs.usage(lint, setting);
    if setting.variable.adds || usage == Use::None || setting.variable.grammar == Grammar::One {
        return None;
    }
    let Value::Known(value) = &setting.value else { return None };
    let list = setting.variable.parse(value);
    if !list.is_closed() {
        return None;
    }
    let plain = plain(&list);
    let bound = |a: &SmArch| a.feature == Feature::Arch;
    let concerned: Vec<&Target> = lint
        .targets
        .iter()
        .filter(|target| {
            let now = lists::fit(lint, &list, None, target);
            now < Fit::Compatible && lists::fit(lint, &plain, None, target) > now && list.sass.iter().any(bound)
        })
        .collect();
    if concerned.is_empty() {
        return None;
    }
    let entry = list.entries.iter().rev().find(|e| e.sass.iter().chain(&e.ptx).any(bound))?;
    let arch = entry.sass.iter().chain(&entry.ptx).find(|a| bound(a))?;
    let capability = arch.capability()?;
    let name = lists::shown(value.get(entry.range.clone())?);
    let message = format!(
        "{}, and {name} is code for {capability} alone, its PTX too: {} cannot run it, newer GPUs neither",
        lists::said(lint, setting),
        lists::labels(&concerned)
    );
    let missing = lists::capabilities(concerned.iter().copied());
    let help = match setting.variable.add(value, &missing) {
        Some(new) => format!("add what is missing without a suffix: {}", lists::shown(&new)),
        None => format!("add {} without a suffix", lists::list_of(&missing)),
    };
    let span = lists::part(place, &entry.range);
    let found = if usage == Use::ReadPerhaps { Found::note(span, message) } else { Found::warning(span, message) };
    Some(
        found
            .label(format!("{capability} alone"))
            .help(help)
            .because(setting.variable.because())
            .on(concerned.iter().map(|t| t.name.clone()).collect()),
    )
}

/// What the list would be without its suffixes: its newest member could keep PTX that others compile.
fn plain(list: &ArchList) -> ArchList {
    let drop =
        |archs: &[SmArch]| -> Vec<SmArch> { archs.iter().map(|a| SmArch::new(a.number, Feature::Plain)).collect() };
    let (sass, mut ptx) = (drop(&list.sass), drop(&list.ptx));
    let newest = list.sass.iter().max_by_key(|a| a.capability());
    ptx.extend(newest.filter(|a| a.feature == Feature::Arch).map(|a| SmArch::new(a.number, Feature::Plain)));
    ArchList { sass, ptx, ..list.clone() }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "arch-specific-suffix";

    fn file(list: &str) -> String {
        format!(
            "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"{list}\"\nRUN pip install --no-build-isolation ./csrc\n"
        )
    }

    #[test]
    fn code_for_one_capability_alone() {
        assert_eq!(blamed(RULE, &file("9.0a;10.0a+PTX"), &["RTX 5090@575"]), ["10.0a+PTX"]);
        assert_eq!(blamed(RULE, &file("9.0a 10.0a"), &["RTX 5090@575"]), ["10.0a"]);
        let found = &lint(RULE, &file("9.0a 10.0a"), &["RTX 5090@575"])[0];
        assert!(found.help.as_deref().unwrap().contains("`9.0a 10.0a 12.0`"), "{:?}", found.help);
    }

    #[test]
    fn where_the_suffix_is_not_to_blame() {
        for (list, target) in [
            ("9.0a;10.0a", "h100@550"),
            ("8.0;9.0", "RTX 5090@575"),
            ("8.0;9.0a;12.0", "RTX 5090@575"),
            ("8.0;9.0a", "t4@470"),
        ] {
            assert!(lint(RULE, &file(list), &[target]).is_empty(), "{list} {target}");
        }
    }
}
