//! CTranslate2 for another cuDNN major than the image has.

use std::str::FromStr;

use pep440_rs::{Operator, Version, VersionSpecifiers};

use super::packages::{Installed, MOST_TOLD, Package, system_cudnn};
use crate::lint::dockerfile::{Found, Lint};

/// Newer than any release: it is in the row that has no end.
const NEWEST: &str = "99999";

/// The version of CTranslate2 that pip takes.
struct Taken {
    version: String,
    /// The package that asks for it, where it is another.
    through: bool,
    /// By a pin, not by being the newest.
    pinned: bool,
}

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let installed = Installed::of(lint);
    let packages = &installed.packages;
    let own = packages.iter().any(|p| p.requirement.name == "ctranslate2");
    let candidates = packages.iter().filter_map(|p| Some((p, taken(lint, own, p)?)));
    for (package, taken) in candidates.take(MOST_TOLD) {
        let Some(known) = lint.catalog.wheels().package_cuda("ctranslate2", &taken.version) else { continue };
        let (Some(wants), Some(cuda)) = (known.cudnn_major, known.cuda_major) else { continue };
        if installed.brings(lint, package, "cudnn", cuda) {
            continue;
        }
        let Some(base) = lint.base(package.stage).filter(|b| b.sure) else { continue };
        let has = match system_cudnn(lint, package.stage) {
            Some(major) => major,
            None => base.cudnn.as_ref().and_then(|c| c.major),
        };
        let Some(has) = has.filter(|h| *h != wants) else { continue };
        let name = match (taken.through, taken.pinned) {
            (true, true) => format!("{} takes a ctranslate2 that", package.told()),
            (true, false) => format!("{} without a version takes the newest ctranslate2, which", package.told()),
            (false, true) => package.told(),
            (false, false) => "ctranslate2 without a version is the newest, which".to_owned(),
        };
        let message = format!(
            "{name} opens cuDNN {wants}, and the image has cuDNN {has}: \"Unable to load any of {{libcudnn_ops…}}\" and \
             an abort when a model is loaded"
        );
        // A project that is installed in two steps is one.
        if out.iter().any(|f| f.message == message) {
            continue;
        }
        let sure = known.sure && base.sure && taken.pinned;
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

fn taken(lint: &Lint<'_>, own: bool, package: &Package<'_>) -> Option<Taken> {
    let requirement = package.requirement;
    let wheels = lint.catalog.wheels();
    let newest = |through| Taken { version: NEWEST.to_owned(), through, pinned: false };
    if requirement.name == "ctranslate2" {
        return match requirement.pinned() {
            Some(version) => Some(Taken { version: version.to_owned(), through: false, pinned: true }),
            None => requirement.specifiers.is_empty().then(|| newest(false)),
        };
    }
    if own || !wheels.ever_wants(&requirement.name, "ctranslate2") {
        return None;
    }
    let Some(pin) = requirement.pinned() else { return requirement.specifiers.is_empty().then(|| newest(true)) };
    let wants = wheels.wants(&requirement.name, pin, "ctranslate2")?;
    let range = VersionSpecifiers::from_str(&wants.specifier).ok()?;
    // pip takes the highest that is admitted.
    let end =
        |is: &dyn Fn(&Operator) -> bool| range.iter().find(|s| is(s.operator())).map(|s| s.version().to_string());
    let version = end(&|o| matches!(o, Operator::Equal | Operator::LessThanEqual))
        .or_else(|| below(&end(&|o| *o == Operator::LessThan)?).map(|v| v.to_string()))
        .unwrap_or_else(|| NEWEST.to_owned());
    Some(Taken { version, through: true, pinned: true })
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
        // SYSTRAN/faster-whisper#729: below 5 is 4.5 and later.
        assert_eq!(lint(RULE, &file(eight, "faster-whisper==1.0.3"), &[])[0].severity, Severity::Error);
        assert_eq!(lint(RULE, &file(eight, "faster-whisper"), &[])[0].severity, Severity::Warning);
        assert_eq!(lint(RULE, &file(eight, "ctranslate2"), &[])[0].severity, Severity::Warning);
        for quiet in [
            file(eight, "ctranslate2==4.4.0"),
            file(nine, "ctranslate2==4.5.0"),
            file(nine, "ctranslate2"),
            file(nine, "faster-whisper==1.0.3"),
            file(eight, "whisperx==3.4.2 torch==2.1.2"),
            file(eight, "ctranslate2==4.5.0 nvidia-cudnn-cu12"),
            file("nvidia/cuda:12.2.2-runtime-ubuntu22.04", "ctranslate2==4.5.0"),
            file("example.com/cudnn8:1", "ctranslate2==4.5.0"),
            format!("FROM {eight}\nRUN apt-get install -y libcudnn9-cuda-12\nRUN pip install ctranslate2==4.5.0\n"),
        ] {
            assert!(blamed(RULE, &quiet, &[]).is_empty(), "{quiet}");
        }
    }
}
