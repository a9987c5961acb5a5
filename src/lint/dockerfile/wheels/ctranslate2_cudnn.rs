//! CTranslate2 for another cuDNN major than the image has.

use std::str::FromStr;

use pep440_rs::{Operator, Version, VersionSpecifiers};

use super::packages::{Package, brought_by_pip, installed, system_cudnn};
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let packages = installed(lint);
    for package in &packages {
        let Some((version, through)) = version(lint, &packages, package) else { continue };
        let Some(known) = lint.catalog.wheels().package_cuda("ctranslate2", &version) else { continue };
        let Some(wants) = known.cudnn_major else { continue };
        if brought_by_pip(lint, &packages, package, "cudnn") {
            continue;
        }
        let Some(base) = lint.base(package.stage).filter(|b| b.sure) else { continue };
        let has = match system_cudnn(lint, package.stage) {
            Some(major) => major,
            None => base.cudnn.as_ref().and_then(|c| c.major),
        };
        let Some(has) = has.filter(|h| *h != wants) else { continue };
        let name = match through {
            true => format!("{} takes ctranslate2 {version}, which", package.told()),
            false => format!("ctranslate2 {version}"),
        };
        let message = format!(
            "{name} opens cuDNN {wants}, and the image has cuDNN {has}: \"Unable to load any of {{libcudnn_ops…}}\" and \
             an abort when a model is loaded"
        );
        let sure = known.sure && base.sure;
        let found = if sure { Found::error(package.span, message) } else { Found::warning(package.span, message) };
        out.push(
            found
                .label(format!("wants cuDNN {wants}"))
                .help(match wants {
                    8 => format!("take ctranslate2 4.5.0 or newer for cuDNN {has}, or a base with cuDNN 8"),
                    _ => format!("take a base with cuDNN {wants}, or ctranslate2 4.4.0 for cuDNN {has}"),
                })
                .because(known.because)
                .because(base.because),
        );
    }
}

/// The version of CTranslate2, where a pin decides it, and whether another package asks for it.
fn version(lint: &Lint<'_>, packages: &[Package<'_>], package: &Package<'_>) -> Option<(String, bool)> {
    let requirement = package.requirement;
    if requirement.name == "ctranslate2" {
        return Some((requirement.pinned()?.to_owned(), false));
    }
    let own = packages.iter().any(|p| p.requirement.name == "ctranslate2");
    if own {
        return None;
    }
    let wants = lint.catalog.wheels().wants(&requirement.name, requirement.pinned()?, "ctranslate2")?;
    let range = VersionSpecifiers::from_str(&wants.specifier).ok()?;
    // pip takes the highest: where all that are admitted want one cuDNN, an end of the range says which.
    let end = range
        .iter()
        .find(|s| matches!(s.operator(), Operator::Equal | Operator::LessThan | Operator::LessThanEqual))?;
    let exact = *end.operator() != Operator::LessThan;
    let version = end.version().to_string();
    let version = if exact { Version::from_str(&version).ok()? } else { below(&version)? };
    Some((version.to_string(), true))
}

/// A version just below: 4.4.99 for 4.5.
fn below(version: &str) -> Option<Version> {
    let mut parts: Vec<u64> = version.split('.').map_while(|p| p.parse().ok()).collect();
    while parts.last() == Some(&0) {
        parts.pop();
    }
    let last = parts.last_mut()?;
    *last = last.checked_sub(1)?;
    let mut text: Vec<String> = parts.iter().map(u64::to_string).collect();
    text.push("999".to_owned());
    Version::from_str(&text.join(".")).ok()
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint};
    use crate::model::Severity;

    const RULE: &str = "ctranslate2-cudnn";

    fn file(base: &str, packages: &str) -> String {
        format!("FROM {base}\nRUN pip install {packages}\n")
    }

    #[test]
    fn the_cudnn_of_a_pin_and_of_the_base() {
        let eight = "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04";
        let nine = "nvidia/cuda:12.6.3-cudnn-runtime-ubuntu22.04";
        let wrong = file(eight, "ctranslate2==4.5.0");
        assert_eq!(blamed(RULE, &wrong, &[]), ["ctranslate2==4.5.0"]);
        assert_eq!(lint(RULE, &wrong, &[])[0].severity, Severity::Error);
        for quiet in [
            file(eight, "ctranslate2==4.4.0"),
            file(nine, "ctranslate2==4.5.0"),
            file(eight, "ctranslate2"),
            file(eight, "ctranslate2==4.5.0 nvidia-cudnn-cu12"),
            file("nvidia/cuda:12.2.2-runtime-ubuntu22.04", "ctranslate2==4.5.0"),
            file("example.com/cudnn8:1", "ctranslate2==4.5.0"),
            format!("FROM {eight}\nRUN apt-get install -y libcudnn9-cuda-12\nRUN pip install ctranslate2==4.5.0\n"),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
