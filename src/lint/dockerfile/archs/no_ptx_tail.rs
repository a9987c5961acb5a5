//! A list of machine code alone: GPUs that come later have nothing to compile.

use crate::catalog::arch_lists::{ArchEntry, Grammar};
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::{ArchSetting, Place};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::{Feature, SmArch};

use super::lists::{self, Archs, Use};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    // With targets it is known what it will run on.
    if !lint.targets.is_empty() {
        return;
    }
    let Some(archs) = Archs::set(lint) else { return };
    for (place, settings) in archs.by_place() {
        out.extend(settings.into_iter().find_map(|s| told(lint, &archs, s, place)));
    }
}

fn told<'a>(lint: &Lint<'a>, archs: &Archs<'a>, setting: &ArchSetting<'_>, place: Place) -> Option<Found> {
    if setting.variable.adds || archs.usage(lint, setting) < Use::ReadPerhaps {
        return None;
    }
    let Value::Known(value) = &setting.value else { return None };
    let list = setting.variable.parse(value);
    let plain = |a: &&SmArch| a.feature == Feature::Plain;
    if !list.is_closed() || !list.ptx.is_empty() || !list.sass.iter().all(|a| plain(&a)) {
        return None;
    }
    let highest = list.entries.iter().max_by_key(|e| e.sass.iter().filter_map(|a| a.capability()).max())?;
    let new = with_ptx(setting.variable.grammar, value, highest)?;
    let name = value.get(highest.range.clone())?;
    let message = format!(
        "{}: machine code alone, so GPUs of a generation that is not named get \"no kernel image\" instead of code \
         compiled by the driver",
        lists::said(lint, setting)
    );
    let found = Found::note(lists::part(place, &highest.range), message)
        .label("no PTX")
        .help(format!("write {} to keep the PTX of {}", lists::shown(&new), lists::shown(name)))
        .because(setting.variable.because());
    Some(match lists::write(lint, place, &new) {
        Some(edit) => found.suggest("keep the PTX of the newest", vec![edit]),
        None => found,
    })
}

/// The value with the PTX of one member; none where the grammar has no word for it.
fn with_ptx(grammar: Grammar, value: &str, entry: &ArchEntry) -> Option<String> {
    let mut new = value.to_owned();
    let name = value.get(entry.range.clone())?;
    let one = match grammar {
        Grammar::Torch => format!("{name}+PTX"),
        Grammar::Cmake => name.strip_suffix("-real")?.to_owned(),
        Grammar::Bazel => name.replacen("sm_", "compute_", 1),
        _ => return None,
    };
    new.replace_range(entry.range.clone(), &one);
    Some(new)
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};

    const RULE: &str = "no-ptx-tail";

    fn file(list: &str) -> String {
        format!(
            "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"{list}\"\nRUN pip install --no-build-isolation ./csrc\n"
        )
    }

    #[test]
    fn machine_code_alone() {
        assert_eq!(blamed(RULE, &file("8.6 8.0"), &[]), ["8.6"]);
        assert!(mended(RULE, &file("8.6 8.0"), &[]).contains("\"8.6+PTX 8.0\""));
        let file = "FROM ubuntu:24.04\nRUN cmake -DCMAKE_CUDA_ARCHITECTURES=\"80-real;90-real\" .\n";
        assert!(mended(RULE, file, &[]).contains("\"80-real;90\""));
    }

    #[test]
    fn ptx_targets_and_suffixes() {
        for list in ["8.0 8.6+PTX", "9.0a", "Turing", "Common"] {
            assert!(lint(RULE, &file(list), &[]).is_empty(), "{list}");
        }
        assert!(lint(RULE, &file("8.0 8.6"), &["a100@535"]).is_empty());
    }
}
