//! PyTorch of one ROCm where extensions are compiled with another.

use crate::dockerfile::commands::PipInstall;
use crate::dockerfile::shell::When;
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::builds::By;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let builds = lint.builds();
    for pip in &lint.asks.pip {
        let Some(command) = lint.reading.commands.get(pip.command) else { continue };
        let Some((stage, of)) = lint.stage_of(command.instruction) else { continue };
        let torch = pip.requirements.iter().any(|r| r.name == "torch");
        if command.when != When::Build || !of.built || !torch {
            continue;
        }
        let Some(base) = lint.base(stage).filter(|b| b.sure) else { continue };
        let Some((wheel, span, because)) = wheel(lint, pip) else { continue };
        let Some((has, gets)) = base.rocm.as_deref().and_then(minor).zip(minor(&wheel)) else { continue };
        if has == gets {
            continue;
        }
        let chain = lint.chain(stage);
        let later = |b: &&crate::lint::dockerfile::builds::Build<'_>| {
            b.index > pip.command
                && lint.chain(b.stage).iter().any(|s| chain.contains(s))
                && matches!(b.by, By::Pip | By::Setuptools | By::Cmake)
        };
        let compiled = builds.iter().find(later);
        let what = format!(
            "PyTorch's wheels for ROCm {}.{} come onto a base with ROCm {}.{}",
            gets.0, gets.1, has.0, has.1
        );
        let found = match compiled {
            Some(build) => Found::warning(
                span,
                format!(
                    "{what}: {} is compiled by the base's and run with the wheel's libraries, which are not found or \
                     do not fit",
                    build.label()
                ),
            )
            .also(build.span, "compiled with the base's ROCm"),
            None => Found::note(span, format!("{what}: the image holds ROCm's libraries twice")),
        };
        let text = format!("ROCm {}.{} here", gets.0, gets.1);
        out.push(
            found
                .label(text)
                .help(format!("take the index of ROCm {}.{}, or a base without ROCm", has.0, has.1))
                .because(because)
                .because(base.because.clone()),
        );
    }
}

/// The ROCm of PyTorch's wheels by the index, with its place.
fn wheel(lint: &Lint<'_>, pip: &PipInstall) -> Option<(String, Span, String)> {
    let settings = pip.index.iter().chain(&pip.extra_indexes).chain(&pip.find_links);
    settings.filter(|s| s.file.is_none()).find_map(|setting| {
        let index = lint.catalog.wheels().index_of_url(setting.text.value.known()?)?;
        let version = index.name.strip_prefix("rocm")?.trim_start_matches("-rel-").to_owned();
        Some((version, setting.span, index.because))
    })
}

/// Major and minor of "6.2.4".
fn minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "rocm-wheel-vs-base";
    const BASE: &str = "FROM rocm/dev-ubuntu-22.04:7.0-complete\n";

    #[test]
    fn another_rocm_than_the_compiler() {
        let file = format!(
            "{BASE}RUN pip install torch --index-url https://download.pytorch.org/whl/rocm6.3\nRUN pip install \
             --no-build-isolation ./csrc\n"
        );
        assert_eq!(blamed(RULE, &file, &[]), ["https://download.pytorch.org/whl/rocm6.3"]);
        assert_eq!(lint(RULE, &file, &[])[0].severity, Severity::Warning);
        let file = format!("{BASE}RUN pip install torch --index-url https://download.pytorch.org/whl/rocm6.3\n");
        assert_eq!(lint(RULE, &file, &[])[0].severity, Severity::Note);
    }

    #[test]
    fn the_same_rocm_or_an_unknown_one() {
        for (base, index) in [
            ("rocm/dev-ubuntu-22.04:6.3.1-complete", "rocm6.3"),
            ("ubuntu:22.04", "rocm6.3"),
            ("rocm/dev-ubuntu-22.04", "rocm6.3"),
            ("rocm/dev-ubuntu-22.04:7.0-complete", "cpu"),
        ] {
            let file = format!(
                "FROM {base}\nRUN pip install torch --index-url https://download.pytorch.org/whl/{index}\nRUN pip \
                 install ./csrc\n"
            );
            assert!(lint(RULE, &file, &[]).is_empty(), "{file}");
        }
    }
}
