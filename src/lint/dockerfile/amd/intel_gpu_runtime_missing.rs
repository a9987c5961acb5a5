//! PyTorch for Intel's GPUs in an image without their runtime.

use crate::catalog::bases::BaseFamily;
use crate::catalog::system_packages::SystemKind;
use crate::dockerfile::shell::When;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for pip in &lint.asks.pip {
        let Some(command) = lint.reading.commands.get(pip.command).filter(|c| c.when == When::Build) else {
            continue;
        };
        let Some((stage, of)) = lint.stage_of(command.instruction).filter(|(_, s)| s.in_image) else { continue };
        let torch = pip.requirements.iter().any(|r| r.name == "torch");
        let xpu = pip.index.iter().chain(&pip.extra_indexes).find(|s| {
            let index = s.text.value.known().and_then(|url| lint.catalog.wheels().index_of_url(url));
            index.is_some_and(|i| i.name == "xpu")
        });
        let (Some(xpu), true, true) = (xpu, torch, of.built) else { continue };
        if lint.base(stage).is_none_or(|b| b.family != BaseFamily::Distro) || has_runtime(lint) {
            continue;
        }
        out.push(
            Found::warning(
                xpu.span,
                "PyTorch for Intel GPUs is installed, but no Level Zero driver: `torch.xpu.is_available()` will be \
                 false",
            )
            .label("needs Intel's GPU runtime")
            .help("install Intel's user-space driver: libze-intel-gpu1, libze1 and intel-opencl-icd"),
        );
    }
}

/// Packages of Intel's runtime in the image, or some whose names are not known.
fn has_runtime(lint: &Lint<'_>) -> bool {
    let installs = lint
        .asks
        .system
        .iter()
        .filter(|s| lint.reading.commands.get(s.command).is_some_and(|c| lint.in_image(c.instruction)));
    installs.flat_map(|s| &s.packages).any(|package| {
        let known = lint.catalog.system_packages().classify(&package.name, package.version.as_deref());
        package.unsure || known.is_some_and(|k| k.kind == SystemKind::IntelRuntime)
    })
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};

    const RULE: &str = "intel-gpu-runtime-missing";
    const PIP: &str = "RUN pip install torch --index-url https://download.pytorch.org/whl/xpu\n";

    #[test]
    fn wheels_without_a_runtime() {
        let file = format!("FROM ubuntu:24.04\n{PIP}");
        assert_eq!(blamed(RULE, &file, &[]), ["https://download.pytorch.org/whl/xpu"]);
    }

    #[test]
    fn a_runtime_from_packages_or_the_base() {
        for file in [
            format!("FROM ubuntu:24.04\nRUN apt-get install -y intel-opencl-icd libze1\n{PIP}"),
            format!("FROM intel/oneapi-basekit:2025.0.0-0-devel-ubuntu22.04\n{PIP}"),
            format!("FROM example.org/own\n{PIP}"),
            "FROM ubuntu:24.04\nRUN pip install torch\n".to_owned(),
        ] {
            assert!(lint(RULE, &file, &[]).is_empty(), "{file}");
        }
    }
}
