//! A torch wheel that holds no code for a target.

use super::targets::{Service, better, discrete, labels, names, runs, service};
use super::torch::{self, From, Torch};
use crate::catalog::wheels::{TorchArchs, TorchWheel, Wheels, index_cuda};
use crate::dockerfile::edit::Edit;
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Target;

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for torch in torch::kept(lint) {
        if torch.is_moving() {
            continue;
        }
        for machine in ["amd64", "arm64"] {
            let fleet: Vec<&Target> = discrete(lint).filter(|(_, m)| *m == machine).map(|(t, _)| t).collect();
            if !fleet.is_empty() {
                judge(lint, &torch, &fleet, machine, out);
            }
        }
    }
}

/// The version and the index that pip takes, and whether another version of that index would do.
struct Taken {
    version: String,
    index: String,
    archs: TorchArchs,
    pinned: bool,
    because: Vec<String>,
}

fn taken(lint: &Lint<'_>, torch: &Torch<'_>, machine: &str) -> Option<Taken> {
    let wheels = lint.catalog.wheels();
    if let Some(version) = &torch.version {
        let index = torch.index(lint)?;
        // PyPI's aarch64 wheels had no CUDA for long, which is another matter.
        if torch.from == From::Pypi && machine != "amd64" {
            return None;
        }
        let archs = wheels.torch_archs(version, &index, machine)?;
        let because = torch.because.clone();
        return Some(Taken { version: version.clone(), index, archs, pinned: true, because });
    }
    let (newest, index) = match &torch.from {
        From::Index { name, .. } => (wheels.newest_torch_on(name, &torch.specifier)?, name.clone()),
        From::Pypi if machine == "amd64" => {
            let newest = wheels.newest_torch(&torch.specifier)?;
            let index = wheels.defaults().iter().find(|d| d.torch == newest.version)?.index.clone();
            (newest, index)
        }
        _ => return None,
    };
    let archs = wheels.torch_archs(&newest.version, &index, machine)?;
    Some(Taken { version: newest.version, index, archs, pinned: false, because: vec![newest.because] })
}

fn judge(lint: &Lint<'_>, torch: &Torch<'_>, fleet: &[&Target], machine: &str, out: &mut Vec<Found>) {
    let Some(taken) = taken(lint, torch, machine) else { return };
    let of = |which: Service| -> Vec<&Target> {
        fleet.iter().copied().filter(|t| service(&taken.archs, t.device) == which).collect()
    };
    let (mut older, mut none): (Vec<&Target>, Vec<&Target>) = (Vec::new(), Vec::new());
    for target in of(Service::No) {
        // Where pip is free, an older version of the index may have code for it.
        let served = !taken.pinned && another_version_serves(lint, torch, &taken, target, machine);
        if served { older.push(target) } else { none.push(target) }
    }
    let jit = of(Service::Jit);
    for (bad, fate) in [(none, Fate::NoImage), (older, Fate::Older), (jit, Fate::Jit)] {
        if !bad.is_empty() {
            out.push(found(lint, torch, &taken, fleet, &bad, fate, machine));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    NoImage,
    /// The newest version has none, an older one of the index has.
    Older,
    Jit,
}

fn found(
    lint: &Lint<'_>,
    torch: &Torch<'_>,
    taken: &Taken,
    fleet: &[&Target],
    bad: &[&Target],
    fate: Fate,
    machine: &str,
) -> Found {
    let has = Wheels::arch_list_text(&taken.archs.sass);
    let which = match (taken.pinned, &torch.from) {
        (true, _) => torch.told(lint),
        (false, From::Pypi) => format!("the newest torch of PyPI, {} ({}),", taken.version, taken.index),
        (false, _) => format!("the newest {} ({})", torch.told(lint), taken.version),
    };
    let end = match fate {
        Fate::Jit => "at best PTX, which the driver compiles at each cold start",
        Fate::NoImage | Fate::Older => "\"no kernel image is available for execution on the device\"",
    };
    let message = format!("{which} has code for {has}, none for {}: {end}", labels(bad));
    let soft = fate != Fate::NoImage || torch.maybe() || torch.is_loose(lint) || !sure(&taken.archs);
    let mut found = match (taken.pinned, &torch.from) {
        (false, From::Pypi) => Found::note(torch.place(), message),
        _ if soft => Found::warning(torch.place(), message),
        _ => Found::error(torch.place(), message),
    };
    if torch.place() != torch.asked {
        found = found.also(torch.asked, "torch is asked for here");
    }
    found.because.push(taken.archs.because.clone());
    found.because.extend(taken.because.iter().cloned());
    found = found.label(format!("no code for {}", bad.first().map_or(String::new(), |t| t.device.to_string())));
    let (advice, wheel) = advice(lint, taken, fleet, bad, machine);
    found.help = advice;
    if let Some(wheel) = wheel {
        found.because.extend(wheel.because.iter().cloned());
        if wheel.torch == taken.version
            && let Some(edits) = rewrite(lint, torch, &taken.index, &wheel.index)
        {
            found = found.suggest(format!("take the index {}", wheel.index), edits);
        }
    }
    found.on(names(bad))
}

/// A list that only memory knows makes no error.
fn sure(archs: &TorchArchs) -> bool {
    archs.measured || !archs.because.ends_with("memory")
}

/// Whether an older version of the same index has code for a target.
fn another_version_serves(
    lint: &Lint<'_>,
    torch: &Torch<'_>,
    taken: &Taken,
    target: &Target,
    machine: &str,
) -> bool {
    let From::Index { name, .. } = &torch.from else { return false };
    let wheels = lint.catalog.wheels();
    let mut below = taken.version.clone();
    // Each round takes the next older version.
    for _ in 0..64 {
        let specifier = match torch.specifier.is_empty() {
            true => format!("<{below}"),
            false => format!("{},<{below}", torch.specifier),
        };
        let Some(older) = wheels.newest_torch_on(name, &specifier) else { return false };
        let archs = wheels.torch_archs(&older.version, name, machine);
        if archs.is_some_and(|a| service(&a, target.device) == Service::Yes) {
            return true;
        }
        below = older.version;
    }
    false
}

/// What to take instead, and the wheel where one serves all of the fleet.
fn advice(
    lint: &Lint<'_>,
    taken: &Taken,
    fleet: &[&Target],
    bad: &[&Target],
    machine: &str,
) -> (Option<String>, Option<TorchWheel>) {
    let all = better(lint, &taken.version, fleet, machine);
    if let Some(wheel) = nearest(lint, all, &taken.index) {
        let text = format!("take torch {} of the index {}, which serves all targets", wheel.torch, wheel.index);
        let text = match floors(lint, fleet, &wheel) {
            Some(floor) => format!("{text} and runs with driver {floor} or newer"),
            None => text,
        };
        return (Some(text), Some(wheel));
    }
    let own = nearest(lint, better(lint, &taken.version, bad, machine), &taken.index);
    let text = match own {
        Some(wheel) => format!(
            "no build of torch {} serves all targets; build a second tag with {} {} for {}",
            taken.version,
            wheel.torch,
            wheel.index,
            labels(bad)
        ),
        None => {
            let none: Vec<&Target> = bad.iter().copied().filter(|t| runs_none(lint, t, taken, machine)).collect();
            match none.is_empty() {
                true => return (None, None),
                false => format!("no build of torch {} or later serves {}", taken.version, labels(&none)),
            }
        }
    };
    (Some(text), None)
}

fn runs_none(lint: &Lint<'_>, target: &Target, taken: &Taken, machine: &str) -> bool {
    better(lint, &taken.version, &[target], machine).is_empty()
}

/// A build of the same CUDA major, which asks for no other driver: PyPI's own, else the newest; where there is none,
/// that of the oldest CUDA.
fn nearest(lint: &Lint<'_>, wheels: Vec<TorchWheel>, index: &str) -> Option<TorchWheel> {
    let major = index_cuda(index).map(|c| c.major);
    let others: Vec<TorchWheel> = wheels.into_iter().filter(|w| w.index != index).collect();
    let same = || others.iter().filter(|w| Some(w.cuda.major) == major);
    let usual = same().find(|w| torch::default_index(lint, &w.torch).as_deref() == Some(w.index.as_str()));
    usual.or_else(|| same().next_back()).or_else(|| others.first()).cloned()
}

fn floors(lint: &Lint<'_>, fleet: &[&Target], wheel: &TorchWheel) -> Option<String> {
    let floor = lint.catalog.toolkits().floor_of(wheel.cuda)?;
    // Where the drivers are known, they are new enough: the wheel was chosen so.
    fleet.iter().any(|t| runs(lint, t, wheel.cuda).is_none()).then(|| floor.driver.to_string())
}

/// The index's name replaced where it is written out: in the URL, and in the version's local part.
pub(super) fn rewrite(lint: &Lint<'_>, torch: &Torch<'_>, old: &str, new: &str) -> Option<Vec<Edit>> {
    let From::Index { span, .. } = &torch.from else { return None };
    let mut edits = Vec::new();
    let mut spans = vec![*span];
    // Versions with a local part must move along: torch==2.6.0+cu124 and torchvision==0.21.0+cu124.
    for requirement in &torch.install.requirements {
        if let crate::dockerfile::commands::Asked::Here(place) = &requirement.asked
            && !spans.contains(place)
        {
            spans.push(*place);
        }
    }
    let settings = torch.install.extra_indexes.iter().chain(&torch.install.index).chain(&torch.install.find_links);
    for setting in settings.filter(|s| s.file.is_none()) {
        if !spans.contains(&setting.span) {
            spans.push(setting.span);
        }
    }
    for span in spans {
        let text = lint.reading.document.slice(span);
        for (at, _) in text.match_indices(old) {
            let behind = text.get(at + old.len()..).unwrap_or_default();
            if !behind.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                let start = span.start + at;
                let place = crate::dockerfile::span::Span::new(start, start + old.len());
                edits.push(Edit::new(place, new));
            }
        }
    }
    let literal = lint.reading.document.slice(*span).contains(old);
    (literal && !edits.is_empty()).then_some(edits)
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, lint_with, mended};
    use crate::model::Severity;

    const RULE: &str = "wheel-index-without-target-arch";
    const INDEX: &str = "https://download.pytorch.org/whl";

    fn file(install: &str) -> String {
        format!("FROM python:3.12-slim\nRUN {install}\n")
    }

    #[test]
    fn a_wheel_without_code_for_a_target() {
        let file = file(&format!("pip install torch==2.7.1 torchvision --index-url {INDEX}/cu126"));
        assert_eq!(blamed(RULE, &file, &["RTX 5090@575"]), [format!("{INDEX}/cu126")]);
        let found = lint(RULE, &file, &["RTX 5090@575", "RTX 4090@575"]);
        assert_eq!(found[0].severity, Severity::Error);
        assert_eq!(found[0].targets, ["rtx-5090@575"]);
        assert!(found[0].message.contains("5.0;6.0;7.0;7.5;8.0;8.6;9.0"), "{}", found[0].message);
        assert!(found[0].help.as_deref().unwrap().contains("cu128"), "{:?}", found[0].help);
        assert!(mended(RULE, &file, &["RTX 5090@575"]).contains("whl/cu128"));
        let newer = super::tests::file(&format!("pip install torch==2.9.1 --index-url {INDEX}/cu126"));
        // Also where the driver would take CUDA 13, or is not known.
        assert!(mended(RULE, &newer, &["RTX 5090@590"]).contains("whl/cu128"));
        assert!(mended(RULE, &newer, &["RTX 5090"]).contains("whl/cu128"));
    }

    #[test]
    fn a_local_part_moves_with_the_index() {
        let file = file(&format!("pip install torch==2.7.1+cu126 --extra-index-url {INDEX}/cu126"));
        let text = mended(RULE, &file, &["RTX 5090@575"]);
        assert!(
            text.contains("torch==2.7.1+cu128 --extra-index-url https://download.pytorch.org/whl/cu128"),
            "{text}"
        );
    }

    #[test]
    fn served_targets_are_left_alone() {
        let cu128 = file(&format!("pip install torch==2.8.0 --index-url {INDEX}/cu128"));
        assert!(blamed(RULE, &cu128, &["RTX 5090@575", "RTX 4090@550", "v100@580"]).is_empty());
        // 8.6 serves 8.9.
        let cu124 = file(&format!("pip install torch==2.6.0 --index-url {INDEX}/cu124"));
        assert!(blamed(RULE, &cu124, &["RTX 4090@550", "gtx 1080@580"]).is_empty());
    }

    #[test]
    fn two_tags_where_no_build_serves_all() {
        let file = file(&format!("pip install torch==2.8.0 --index-url {INDEX}/cu128"));
        let found = lint(RULE, &file, &["GTX 1080@580", "RTX 5090@580"]);
        assert_eq!(found[0].targets, ["gtx-1080@580"]);
        assert!(found[0].help.as_deref().unwrap().contains("second tag with 2.8.0 cu126"), "{:?}", found[0].help);
    }

    #[test]
    fn what_is_not_shipped_or_not_known_is_not_judged() {
        let index = format!("{INDEX}/cu126");
        for quiet in [
            // Nightly builds change.
            file(&format!("pip install --pre torch --index-url {INDEX}/nightly/cu126")),
            // Only for building.
            format!(
                "FROM python:3.12 AS b\nRUN pip install torch==2.7.1 --index-url {index}\nFROM python:3.12-slim\nCOPY --from=b /dist/x.whl /tmp/\n"
            ),
            // A dry run, and one replaced three lines below.
            file(&format!("pip install --dry-run torch==2.7.1 --index-url {index}")),
            file(&format!(
                "pip install torch==2.7.1 --index-url {index}\nRUN pip install torch==2.7.1 --index-url {INDEX}/cu128"
            )),
            // The index is somebody's choice.
            "FROM python:3.12-slim\nARG INDEX\nRUN pip install torch==2.7.1 --index-url $INDEX\n".to_owned(),
            file("pip install torch==2.7.1 --index-url https://pip.corp.example/simple"),
            "FROM python:3.12-slim\nARG INDEX=\"\"\nRUN pip install torch==2.7.1 --index-url \"$INDEX\"\n"
                .to_owned(),
            file(&format!("pip install torch==2.7.1 --index-url {INDEX}/cpu")),
        ] {
            assert!(blamed(RULE, &quiet, &["RTX 5090@575"]).is_empty(), "{quiet}");
        }
    }

    #[test]
    fn a_copied_environment_is_shipped() {
        let file = format!(
            "FROM python:3.12 AS b\nRUN python -m venv /venv && /venv/bin/pip install torch==2.7.1 --index-url {INDEX}/cu126\n\
             FROM python:3.12-slim\nCOPY --from=b /venv /venv\n"
        );
        assert_eq!(blamed(RULE, &file, &["RTX 5090@575"]).len(), 1);
    }

    #[test]
    fn versions_in_files_and_of_companions() {
        let file = file(&format!("pip install -r requirements.txt --index-url {INDEX}/cu124"));
        let found = lint_with(RULE, &file, &["RTX 5090@575"], &[("requirements.txt", "torch==2.6.0\n")]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Error);
    }

    #[test]
    fn pypi_s_own_build() {
        let file = file("pip install torch==2.6.0");
        assert_eq!(lint(RULE, &file, &["RTX 5090@575"])[0].severity, Severity::Error);
        let newest = "FROM ubuntu:22.04\nRUN pip install torch\n";
        let found = lint(RULE, newest, &["v100@580"]);
        assert_eq!(found[0].severity, Severity::Note);
        // What has torch already is not changed by asking for any.
        let base = "FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime\nRUN pip install torch\n";
        assert!(lint(RULE, base, &["v100@580"]).is_empty());
    }
}
