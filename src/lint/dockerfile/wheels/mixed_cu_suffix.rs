//! One library's packages for two CUDA majors in one environment.

use super::packages::{Installed, MOST_TOLD, Package, base_major, together};
use super::torch::{self, Torch};
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let installed = Installed::of(lint);
    let torches = torch::kept(lint);
    let packages = &installed.packages;
    let mut seen: Vec<(&Package<'_>, String, u16)> = Vec::new();
    let candidates = packages.iter().filter_map(|p| Some((p, family(lint, p)?)));
    for (package, (family, major)) in candidates.take(MOST_TOLD) {
        let first = seen.iter().find(|(p, f, m)| *f == family && *m != major && together(lint, p, package));
        if let Some((first, _, other)) = first {
            let message = format!(
                "{} and {} bring the same files for CUDA {other} and CUDA {major}: the one installed last overwrites \
                 the other",
                first.requirement.name, package.requirement.name
            );
            out.push(
                Found::error(package.span, message)
                    .label(format!("for CUDA {major}"))
                    .help("keep the package of one CUDA")
                    .also(first.span, format!("for CUDA {other}")),
            );
        } else if let Some(found) =
            beside_torch(lint, &torches, package, major).or_else(|| no_libraries(lint, &installed, package))
        {
            out.push(found);
        }
        seen.push((package, family, major));
    }
}

/// "nvidia-cudnn" and 12 of nvidia-cudnn-cu12, "cupy" and 11 of cupy-cuda11x.
fn family(lint: &Lint<'_>, package: &Package<'_>) -> Option<(String, u16)> {
    let name = &package.requirement.name;
    let is_suffix = |part: &&str| {
        let digits = part.strip_prefix("cuda").or_else(|| part.strip_prefix("cu"));
        digits.is_some_and(|d| d.starts_with(|c: char| c.is_ascii_digit()))
    };
    let parts: Vec<&str> = name.split('-').filter(|p| !is_suffix(p)).collect();
    let family = parts.join("-");
    if family == *name {
        return None;
    }
    Some((family, package.known(lint)?.cuda_major?))
}

/// torch of CUDA 12 and later asks pip for NVIDIA's packages of its own major.
fn beside_torch(lint: &Lint<'_>, torches: &[Torch<'_>], package: &Package<'_>, major: u16) -> Option<Found> {
    if !package.requirement.name.starts_with("nvidia-") {
        return None;
    }
    let torch = torches.iter().find(|t| {
        let same = torch::environment(t.command) == torch::environment(package.command);
        let joined = lint.chain(package.stage).contains(&t.stage) || lint.chain(t.stage).contains(&package.stage);
        same && joined && !t.maybe()
    })?;
    let cuda = torch.cuda(lint).filter(|c| c.major >= 12 && c.major != major)?;
    let message = format!(
        "{} is for CUDA {major}, and {} brings the same library for CUDA {}: files of both go to one folder",
        package.told(),
        torch.told(lint),
        cuda.major
    );
    let found = Found::warning(package.span, message).label(format!("for CUDA {major}"));
    Some(found.help("drop it: torch asks for the one it needs").also(torch.place(), format!("for CUDA {cuda}")))
}

/// CuPy and its like open the libraries of their own CUDA.
fn no_libraries(lint: &Lint<'_>, installed: &Installed<'_>, package: &Package<'_>) -> Option<Found> {
    let known = package.known(lint).filter(|k| k.opens && k.sure)?;
    let major = known.cuda_major?;
    let (base, name, because) = base_major(lint, package.stage).filter(|(base, ..)| *base != major)?;
    if package.requirement.name.starts_with("nvidia-") || installed.brings(lint, package, "cublas", major) {
        return None;
    }
    let message =
        format!("{} opens the libraries of CUDA {major}, and {name} has those of CUDA {base}", package.told());
    let found = Found::warning(package.span, message).label(format!("for CUDA {major}"));
    Some(found.help(format!("take its build for CUDA {base}")).because(known.because).because(because))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "mixed-cu-suffix";

    fn file(packages: &str) -> String {
        format!("FROM python:3.12-slim\nRUN pip install {packages}\n")
    }

    #[test]
    fn one_library_for_two_majors() {
        let both = file("nvidia-cudnn-cu11 numpy nvidia-cudnn-cu12");
        assert_eq!(blamed(RULE, &both, &[]), ["nvidia-cudnn-cu12"]);
        assert_eq!(lint(RULE, &both, &[])[0].severity, Severity::Error);
        assert_eq!(blamed(RULE, &file("cupy-cuda11x cupy-cuda12x"), &[]), ["cupy-cuda12x"]);
        for quiet in [
            "nvidia-cudnn-cu12 nvidia-cublas-cu12",
            // Other libraries may differ.
            "nvidia-cudnn-cu12 cupy-cuda11x",
            "cupy-cuda12x",
        ] {
            assert!(blamed(RULE, &file(quiet), &[]).is_empty(), "{quiet}");
        }
        // Two environments.
        let two = "FROM python:3.12\nRUN /a/bin/pip install cupy-cuda11x && /b/bin/pip install cupy-cuda12x\n";
        assert!(blamed(RULE, two, &[]).is_empty());
    }

    #[test]
    fn libraries_of_another_base() {
        let file = |base: &str, package: &str| format!("FROM {base}\nRUN pip install {package}\n");
        let runtime = "nvidia/cuda:12.4.1-runtime-ubuntu22.04";
        assert_eq!(blamed(RULE, &file(runtime, "cupy-cuda11x"), &[]), ["cupy-cuda11x"]);
        assert!(blamed(RULE, &file(runtime, "cupy-cuda12x"), &[]).is_empty());
        assert!(blamed(RULE, &file(runtime, "cupy-cuda13x[ctk]"), &[]).is_empty());
        assert!(blamed(RULE, &file(runtime, "cupy-cuda11x nvidia-cublas-cu11"), &[]).is_empty());
    }
}
