//! An architecture that the toolkit of the stage cannot compile.

use crate::catalog::arch_lists::{ArchEntry, ArchList};
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::arch_settings::{ArchSetting, How, Place};
use crate::lint::dockerfile::builds::{Build, By};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::SmArch;

use super::lists::{self, Archs};
use super::toolkit::InForce;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let Some(archs) = Archs::set(lint) else { return };
    for (place, settings) in archs.by_place() {
        let found = settings.into_iter().flat_map(|setting| {
            let builds = archs.readers(setting);
            builds.filter_map(|build| told(lint, &archs, setting, build, place)).collect::<Vec<_>>()
        });
        out.extend(found.max_by_key(|f| f.severity));
    }
}

fn told<'a>(
    lint: &Lint<'a>,
    archs: &Archs<'a>,
    setting: &ArchSetting<'_>,
    build: &Build<'_>,
    place: Place,
) -> Option<Found> {
    // Such a project drops what it does not know.
    if build.project.is_some_and(|p| p.clamps) {
        return None;
    }
    let toolkit = archs.stages.toolkit(lint, build.stage)?;
    let lists = setting.lists();
    let refused: Vec<Vec<(&ArchEntry, SmArch)>> = lists.iter().map(|l| refused(lint, l, toolkit)).collect();
    if refused.is_empty() || refused.iter().any(Vec::is_empty) {
        return None;
    }
    let (entry, arch) = *refused.first()?.first()?;
    let value = setting.value.all().next()?;
    let name = value.get(entry.range.clone())?;
    let cuda = toolkit.toolkit.cuda;
    let message = format!(
        "{}, and CUDA {cuda} of {} cannot compile for {}: nvcc stops with \"Unsupported gpu architecture \
         'compute_{}{}'\"",
        lists::said(lint, setting),
        toolkit.image,
        lists::shown(name),
        arch.number,
        arch.suffix()
    );
    let span = lists::part(place, &entry.range);
    // The option of a compiler or of CMake is surely handed to it; a project may drop members first.
    let direct = setting.how == How::Option && matches!(build.by, By::Nvcc | By::Cmake);
    let known = build.project.is_some_and(crate::catalog::extensions::Extension::is_sure);
    let certain = matches!(setting.value, Value::Known(_)) && toolkit.sure && setting.variable.is_sure();
    let mut found = if certain && build.is_sure() && (direct || known) {
        Found::error(span, message)
    } else if build.is_sure() {
        Found::warning(span, message)
    } else {
        Found::note(span, message)
    };
    found = found.label(format!("not in CUDA {cuda}"));
    found = found.because(toolkit.because.clone()).because(toolkit.toolkit.because());
    if !build.command.span.contains(span) {
        found = found.also(build.span, "compiled here");
    }
    let toolkits = lint.catalog.toolkits().toolkits_that_compile(arch);
    let base = match toolkits {
        Some((first, last)) if first > cuda => format!("a base with CUDA {first} or newer (up to {last})"),
        Some((_, last)) => format!("a base with CUDA {last} or older"),
        None => "a toolkit that knows it".to_owned(),
    };
    found = found.help(format!("take {} out, or {base}", lists::shown(name)));
    let kept = |list: &ArchList| {
        let gone = refused.first()?;
        let kept: Vec<&str> = list
            .entries
            .iter()
            .filter(|e| !gone.iter().any(|(g, _)| g.range == e.range))
            .map(|e| value.get(e.range.clone()).unwrap_or_default())
            .collect();
        (!kept.is_empty()).then(|| kept.join(&list.separator))
    };
    let edit = lists.first().and_then(kept).and_then(|text| lists::write(lint, place, &text));
    Some(match edit {
        Some(edit) if setting.value.known().is_some() && !value.contains("-gencode") => {
            found.suggest(format!("leave {} out", lists::shown(name)), vec![edit])
        }
        _ => found,
    })
}

/// The members that a toolkit cannot compile.
fn refused<'l>(lint: &Lint<'_>, list: &'l ArchList, toolkit: &InForce<'_>) -> Vec<(&'l ArchEntry, SmArch)> {
    let no = |arch: &&SmArch| lint.catalog.toolkits().compiles(toolkit.toolkit.cuda, **arch) == Some(false);
    let entries = list.entries.iter();
    entries.filter_map(|e| Some((e, *e.sass.iter().chain(&e.ptx).find(no)?))).collect()
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "arch-unknown-to-toolkit";

    fn cmake(base: &str, list: &str) -> String {
        format!("FROM {base}\nRUN cmake -S . -B build -DCMAKE_CUDA_ARCHITECTURES=\"{list}\"\n")
    }

    #[test]
    fn too_new_and_dropped_architectures() {
        let file = cmake("nvidia/cuda:12.4.1-devel-ubuntu22.04", "80;90;120");
        assert_eq!(blamed(RULE, &file, &[]), ["120"]);
        let found = &lint(RULE, &file, &[])[0];
        assert_eq!(found.severity, Severity::Error);
        assert!(found.message.contains("Unsupported gpu architecture 'compute_120'"), "{}", found.message);
        assert!(mended(RULE, &file, &[]).contains("=\"80;90\""));
        let file = cmake("nvidia/cuda:13.0.1-devel-ubuntu24.04", "70;90");
        assert_eq!(blamed(RULE, &file, &[]), ["70"]);
        // A project that nobody knows may drop it.
        let file = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"9.0 12.0\"\nRUN pip install \
                    --no-build-isolation ./csrc\n";
        assert_eq!(lint(RULE, file, &[])[0].severity, Severity::Warning);
    }

    #[test]
    fn what_fits_or_is_not_known() {
        for file in [
            cmake("nvidia/cuda:12.8.1-devel-ubuntu22.04", "80;90;120"),
            cmake("nvidia/cuda:12.4.1-runtime-ubuntu22.04", "120"),
            cmake("example.org/own:1", "120"),
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN apt-get install -y cuda-toolkit-12-8\nRUN cmake \
             -DCMAKE_CUDA_ARCHITECTURES=120 .\n"
                .to_owned(),
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN sh cuda_12.8.1_570.124.06_linux.run --silent --toolkit\nRUN \
             cmake -DCMAKE_CUDA_ARCHITECTURES=120 .\n"
                .to_owned(),
            "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=12.0\nRUN pip install requests\n".to_owned(),
            cmake("nvidia/cuda:12.4.1-devel-ubuntu22.04", "native"),
        ] {
            assert!(lint(RULE, &file, &[]).is_empty(), "{file}");
        }
    }
}
