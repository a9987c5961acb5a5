//! conda asked for a package with CPU and CUDA builds, where it sees no GPU.

use crate::dockerfile::commands::{Asked, CondaInstall};
use crate::dockerfile::syntax::{Body, Keyword};
use crate::dockerfile::value::Value;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for install in &lint.asks.conda {
        let Some(command) = lint.reading.commands.get(install.command) else { continue };
        if !lint.built(command.instruction) || command.guessed || decided(lint, install) {
            continue;
        }
        if lint.seen(command, "CONDA_OVERRIDE_CUDA").is_some_and(|(v, _)| v != Value::Known(String::new())) {
            continue;
        }
        let variant = install.packages.iter().find_map(|(name, spec, asked)| {
            let build = lint.catalog.libraries().cpu_builds().iter().find(|b| b.is_dist(name))?;
            (!spec.as_deref().is_some_and(says_build)).then_some((name, asked, build))
        });
        let Some((name, asked, build)) = variant.filter(|_| out.len() < MOST) else { continue };
        let Some(why) = for_gpus(lint) else { return };
        let (span, place) = match asked {
            Asked::Here(span) => (*span, String::new()),
            Asked::File { file, line } => (command.span, format!(" ({file}, line {line})")),
        };
        let message = format!(
            "{name}{place} has builds with and without CUDA, and conda sees no GPU during `docker build`: it takes the \
             CPU build, in an image {why}"
        );
        out.push(
            Found::warning(span, message)
                .label("may become a CPU build")
                .help(format!(
                    "set CONDA_OVERRIDE_CUDA in front of the command (CONDA_OVERRIDE_CUDA=12.4 conda …), or pin the \
                     build: {name}=*=cuda*"
                ))
                .because(build.because()),
        );
    }
}

/// Findings of one file.
const MOST: usize = 64;

/// Whether the command itself says which build it wants.
fn decided(lint: &Lint<'_>, install: &CondaInstall) -> bool {
    let uses = lint.catalog.uses();
    let by_package = install.packages.iter().any(|(name, ..)| uses.conda_package_decides(name));
    // Only conda-forge is known to build both, with `__cuda` as the judge; of other channels nothing is.
    let forge = |c: &String| c.trim_end_matches('/').ends_with("conda-forge");
    let by_channel =
        !install.channels.iter().any(forge) || install.channels.iter().any(|c| uses.conda_channel_decides(c));
    by_package || by_channel || install.files.iter().any(|(_, read)| !read)
}

/// A third part of a specification is a build string: `2.5.1=*cuda*`, `=*=cpu*`; brackets may name one.
fn says_build(specification: &str) -> bool {
    let text = specification.trim_start_matches('=');
    text.contains('=') && !text.starts_with(['<', '>', '!', '~']) || text.contains("cuda") || text.contains("cpu")
}

/// Why the image is taken to be for GPUs.
fn for_gpus(lint: &Lint<'_>) -> Option<String> {
    let last = lint.reading.last?;
    if let Some(cuda) = lint.base(last).and_then(|b| b.cuda) {
        return Some(format!("on CUDA {cuda}"));
    }
    let gpu = |name: &str| name.starts_with("NVIDIA_") || name == "CUDA_VERSION";
    let env = lint.sets(false).into_iter().find(|s| gpu(s.name) && lint.in_image(s.instruction));
    if let Some(set) = env {
        return Some(format!("that sets {}", set.name));
    }
    let labels = lint
        .reading
        .document
        .instructions
        .iter()
        .enumerate()
        .filter(|(at, i)| i.keyword == Keyword::Label && lint.in_image(*at));
    let mut keys = labels.filter_map(|(_, i)| match &i.body {
        Body::Pairs(pairs) => pairs.iter().find(|p| {
            let key = p.key.text.to_ascii_lowercase();
            let no = p.value.as_ref().is_some_and(|v| matches!(v.text.trim_matches('"'), "false" | "no" | "0"));
            (key.contains("gpu") || key.contains("cuda")) && !no
        }),
        _ => None,
    });
    if let Some(pair) = keys.next() {
        return Some(format!("with the label {}", pair.key.text));
    }
    lint.targets.first().map(|target| format!("that is to run on {}", target.label()))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint_with};

    const RULE: &str = "conda-without-cuda-override";
    const BASE: &str = "nvidia/cuda:12.4.1-base-ubuntu22.04";

    fn file(command: &str) -> String {
        format!("FROM {BASE}\nRUN {command}\n")
    }

    #[test]
    fn conda_sees_no_gpu() {
        assert_eq!(blamed(RULE, &file("conda install -y -c conda-forge pytorch numpy"), &[]), ["pytorch"]);
        assert_eq!(blamed(RULE, &file("mamba create -n x -c conda-forge 'pytorch=2.5.1'"), &[]).len(), 1);
        let env = "channels:\n  - conda-forge\ndependencies:\n  - pytorch\n";
        let found = lint_with(RULE, &file("conda env create -f env.yml"), &[], &[("env.yml", env)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("env.yml, line 4"), "{}", found[0].message);
        for quiet in [
            "CONDA_OVERRIDE_CUDA=12.4 conda install -y -c conda-forge pytorch",
            "export CONDA_OVERRIDE_CUDA=12.4 && conda install -y -c conda-forge pytorch",
            "conda install -y -c pytorch pytorch",
            "conda install -y -c soumith pytorch",
            "conda install -y -c conda-forge pytorch pytorch-cuda=12.1",
            "conda install -y -c conda-forge pytorch cuda-version=12.4",
            "conda install -y -c conda-forge 'pytorch=2.5.1=cuda126*'",
            "conda install -y -c conda-forge pytorch-gpu",
            "conda install -y -c conda-forge pytorch cpuonly",
            "conda install -y numpy",
        ] {
            assert!(blamed(RULE, &file(quiet), &[]).is_empty(), "{quiet}");
        }
        let env = format!("FROM {BASE}\nENV CONDA_OVERRIDE_CUDA=12.4\nRUN conda install -c conda-forge pytorch\n");
        assert!(blamed(RULE, &env, &[]).is_empty());
        let label = "FROM condaforge/miniforge3\nLABEL gpu=true\nRUN conda install -c conda-forge pytorch\n";
        assert_eq!(blamed(RULE, label, &[]), ["pytorch"]);
        // An image without any GPU.
        assert!(blamed(RULE, "FROM ubuntu\nRUN conda install -c conda-forge pytorch\n", &[]).is_empty());
    }
}
