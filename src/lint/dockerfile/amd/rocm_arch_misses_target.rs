//! A list of AMD's architectures without one of the fleet's.

use std::collections::BTreeSet;

use crate::catalog::arch_lists::ArchList;
use crate::catalog::compat::{Fit, module_fit};
use crate::dockerfile::edit::Edit;
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::ArchSetting;
use crate::lint::dockerfile::{Found, Lint, Reads};
use crate::model::{Form, GfxArch, Item, Maker, Target};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    if !lint.catalog.arch_variables().mentioned(&lint.reading.document.text) {
        return;
    }
    let builds = lint.builds();
    let settings = lint.arch_settings(&builds, Maker::Amd);
    let mut told = BTreeSet::new();
    for setting in &settings {
        let Value::Known(value) = &setting.value else { continue };
        let lists = setting.lists();
        let [list] = lists.as_slice() else { continue };
        let Some(archs) = archs(list) else { continue };
        let missing: Vec<&Target> = lint.amd().filter(|t| !serves(lint, &archs, t)).collect();
        // An ARG and the ENV made of it are one place.
        if missing.is_empty() || !told.insert(setting.place.span) {
            continue;
        }
        out.push(finding(lint, setting, value, &archs, &missing));
    }
}

/// A list's architectures; `None` where it leaves some to the build, or has none.
fn archs(list: &ArchList) -> Option<Vec<GfxArch>> {
    let closed = list.keywords.is_empty() && !list.entries.is_empty();
    let one = |entry: &crate::catalog::arch_lists::ArchEntry| entry.gfx.as_ref()?.parse().ok();
    if closed { list.entries.iter().map(one).collect() } else { None }
}

fn serves(lint: &Lint<'_>, archs: &[GfxArch], target: &Target) -> bool {
    let items: Vec<Item> = archs.iter().map(|arch| Item::of(*arch, Form::CodeObject)).collect();
    module_fit(&items, &lint.catalog.bare_host(target.device)) > Fit::Missing
}

fn finding(
    lint: &Lint<'_>,
    setting: &ArchSetting<'_>,
    value: &str,
    archs: &[GfxArch],
    missing: &[&Target],
) -> Found {
    let wanted: BTreeSet<GfxArch> =
        missing.iter().filter_map(|t| t.device.gfx()).map(|g| g.processor.into()).collect();
    let names = |list: &mut dyn Iterator<Item = String>| list.collect::<Vec<_>>().join(", ");
    let lacking = names(&mut missing.iter().map(|t| t.label()));
    let message = format!(
        "{}=`{}`{} compiles nothing for {lacking}: \"hipErrorNoBinaryForGpu\", \"invalid device function\"",
        setting.name,
        crate::model::escape(value.as_bytes()),
        lint.trail(&setting.trail)
    );
    let sure = setting.readers.iter().any(|(_, reads)| *reads == Reads::Surely);
    let found = match sure && missing.iter().any(|t| t.required) {
        true => Found::error(setting.place.span, message),
        false => Found::warning(setting.place.span, message),
    };
    let separator = setting.variable.separators.first().map_or(";", String::as_str);
    let all: Vec<String> = archs.iter().chain(&wanted).map(ToString::to_string).collect();
    let list = all.join(separator);
    let found = found
        .label(format!("no code for {}", names(&mut wanted.iter().map(ToString::to_string))))
        .because(setting.variable.because())
        .on(missing.iter().map(|t| t.name.clone()).collect());
    // A blank or a semicolon without quotes would end the value in a shell.
    match setting.place.verbatim && (setting.place.quoted || separator == ",") {
        true => found.suggest("name the targets' architectures", vec![Edit::new(setting.place.span, list)]),
        false => found.help(format!("{}=\"{list}\"", setting.name)),
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "rocm-arch-misses-target";

    #[test]
    fn a_list_without_a_target() {
        let file = "FROM rocm/dev-ubuntu-22.04:6.2\nENV PYTORCH_ROCM_ARCH=\"gfx90a;gfx942\"\nRUN pip install .\n";
        assert_eq!(blamed(RULE, file, &["RX 7900 XTX"]), ["gfx90a;gfx942"]);
        assert!(lint(RULE, file, &["MI300X", "MI210", "h100@535"]).is_empty());
        assert!(lint(RULE, file, &[]).is_empty());
        let mixed = lint(RULE, file, &["MI300X", "RX 7600", "h100@535"]);
        assert_eq!(mixed[0].targets, ["rx-7600"]);
        assert!(mixed[0].message.contains("gfx1102"), "{}", mixed[0].message);
        assert!(mended(RULE, file, &["RX 7600"]).contains("\"gfx90a;gfx942;gfx1102\""));
    }

    #[test]
    fn generic_targets_and_features() {
        let file = |list: &str| format!("FROM x\nENV AMDGPU_TARGETS=\"{list}\"\nRUN cmake .\n");
        assert!(lint(RULE, &file("gfx9-4-generic"), &["MI300X"]).is_empty());
        assert!(lint(RULE, &file("gfx90a:xnack-;gfx942"), &["MI210"]).is_empty());
        assert_eq!(lint(RULE, &file("gfx9-generic"), &["MI210"]).len(), 1);
        for open in ["native", "all", "gfx90a;native", ""] {
            assert!(lint(RULE, &file(open), &["RX 7600"]).is_empty(), "{open}");
        }
    }

    #[test]
    fn what_is_surely_read_is_an_error() {
        let file = "FROM rocm/dev-ubuntu-22.04:6.2\nRUN cmake -S . -B b -DAMDGPU_TARGETS=gfx90a\n";
        let found = lint(RULE, file, &["MI300X"]);
        assert_eq!(found.len(), 1);
        assert!(found[0].severity >= Severity::Warning);
    }
}
