//! What an image asks of a runtime by its variables: devices (`NVIDIA_VISIBLE_DEVICES`) and parts of the driver
//! (`NVIDIA_DRIVER_CAPABILITIES`), against what its programs use.

use std::collections::{BTreeMap, BTreeSet};

use super::driver_files::is_compat;
use super::host::entrypoint_file;
use super::libraries::is_stub;
use super::roles::counts;
use super::{Problem, words};
use crate::catalog::{Catalog, require};
use crate::model::{ConfigFacts, Evidence, EvidenceFile, Manager, Runtime, Start, Target, Verdict, escape};
use crate::report::Role;

const DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";
const CAPABILITIES: &str = "NVIDIA_DRIVER_CAPABILITIES";

/// The capability of CUDA itself.
const COMPUTE: &str = "compute";

/// What the variables of an image make of a target.
pub fn problems(target: &Target, evidence: &Evidence, roles: &[Role], catalog: &Catalog) -> Vec<Problem> {
    let uses = uses(evidence, roles, catalog);
    if let Some(problem) = not_requested(target, evidence, &uses) {
        let none = problem.verdict < Verdict::Ok;
        let mut out = vec![problem];
        if !none {
            out.extend(capabilities(target, evidence, &uses, catalog));
        }
        return out;
    }
    capabilities(target, evidence, &uses, catalog)
}

/// How much depends on a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// The image's program, or its only user of a GPU.
    Program,
    /// A core component that cannot be loaded without.
    Core,
    Some,
    /// A name in the strings of a package that may never open it.
    Mention,
}

/// A library of the driver that a file uses.
#[derive(Debug)]
struct Use<'a> {
    capability: &'a str,
    /// As told: "`opt/app/bin/transcode` opens libnvcuvid.so.1".
    how: String,
    library: String,
    file: &'a EvidenceFile,
    weight: Weight,
}

/// What the image's files use of the driver, the most important first.
fn uses<'a>(evidence: &'a Evidence, roles: &[Role], catalog: &'a Catalog) -> Vec<Use<'a>> {
    let mut out = Vec::new();
    let role = |file: &EvidenceFile| file.component.map_or(Role::Optional, |c| roles[c]);
    let entry = entrypoint_file(evidence);
    let cuda = evidence.files.iter().any(|f| counts(f, catalog));
    for file in evidence.files.iter().filter(|f| may_use(f, catalog)) {
        if role(file) == Role::Core && counts(file, catalog) {
            out.push(Use {
                capability: COMPUTE,
                how: format!("`{}` is CUDA code", file.path),
                library: "libcuda.so.1".to_owned(),
                file,
                weight: Weight::Core,
            });
        }
        let Some(elf) = &file.facts.elf else { continue };
        let manager = file.component.map(|c| evidence.components[c].manager);
        let own = manager.is_none_or(|m| m == Manager::Path);
        let started = entry.is_some_and(|e| e.path == file.path || (own && e.component == file.component));
        let linked = elf.needed.iter().map(|n| (n, true));
        for (library, linked) in linked.chain(elf.mentions.iter().map(|n| (n, false))) {
            let Some(capability) = catalog.loading().driver(library).and_then(|d| d.capability.as_deref()) else {
                continue;
            };
            // NVML's numbers are seldom what a program is for; those with CUDA code do without.
            let soft = !linked && catalog.loading().is_soft(capability);
            let weight = match (role(file), linked) {
                _ if soft && cuda => Weight::Mention,
                _ if started || (own && !cuda && !soft) => Weight::Program,
                (Role::Core, true) => Weight::Core,
                (Role::Core, false) | (Role::Optional, true) => Weight::Some,
                _ if !cuda => Weight::Some,
                _ => Weight::Mention,
            };
            let verb = if linked { "links" } else { "opens" };
            let how = format!("`{}` {verb} {}", file.path, escape(library.as_bytes()));
            out.push(Use { capability, how, library: escape(library.as_bytes()), file, weight });
        }
    }
    out.sort_by_key(|u| u.weight);
    out
}

/// Files of the image that may run: not stubs, nor the driver's own, nor what NVIDIA brings beside CUDA libraries.
fn may_use(file: &EvidenceFile, catalog: &Catalog) -> bool {
    let soname = file.facts.elf.as_ref().and_then(|e| e.soname.as_deref()).unwrap_or_default();
    let name = file.path.file_name_lossy();
    let driver = [soname, &*name].into_iter().any(|n| catalog.loading().driver(n).is_some());
    let idle = catalog.components().idle(&file.path).is_some();
    let vendor = catalog.components().vendor_of_path(&file.path).is_some();
    let profiler = catalog.components().profiler(&file.path).is_some();
    let loadable = file.facts.kind.loadable() && !file.in_archive;
    loadable && !driver && !idle && !vendor && !profiler && !is_stub(&file.path) && !is_compat(&file.path)
}

/// Why the image is no GPU container to a runtime that reads its variables; `None`: it is one.
fn no_request(config: &ConfigFacts) -> Option<String> {
    match config.var(DEVICES) {
        None if require::legacy_version(config).is_some() => None,
        None => Some(format!("{DEVICES} is not set in the image")),
        Some("") => Some(format!("{DEVICES} is empty")),
        Some("none") => Some(format!("{DEVICES} is `none`: the driver's files without any device")),
        Some(text) if text.split(',').any(|d| d == "void") => {
            Some(format!("{DEVICES} is `{}`", escape(text.as_bytes())))
        }
        Some(_) => None,
    }
}

/// The image asks for no GPU, and the target's start leaves that to the image.
fn not_requested(target: &Target, evidence: &Evidence, uses: &[Use<'_>]) -> Option<Problem> {
    let why = no_request(&evidence.image.config)?;
    let matters = uses.iter().any(|u| u.weight < Weight::Some);
    if !matters || target.runtime == Runtime::Gke {
        return None;
    }
    let help = format!(
        "ENV {DEVICES}=all {CAPABILITIES}=compute,utility in the last stage (NVIDIA's base images have both, and COPY \
         --from leaves them behind)"
    );
    let draft = |verdict, message| Some(Problem::new("gpu-not-requested", verdict, message, help.clone()));
    if target.start == Start::Gpus {
        return draft(
            Verdict::Ok,
            format!("{why}: whoever starts it must ask for the GPU (--gpus, a device plugin, a CDI device)"),
        );
    }
    // A program that cannot do without a library of the driver does not start without a GPU.
    match uses.iter().find(|u| u.weight == Weight::Program) {
        Some(first) => {
            let found = draft(
                Verdict::Fail,
                format!(
                    "{why}, and the nvidia runtime gives it no driver: {}: \"{}: cannot open shared object file\"",
                    first.how, first.library
                ),
            );
            found.map(|p| Problem { path: Some(first.file.path.clone()), ..p })
        }
        None => draft(
            Verdict::Cpu,
            format!("{why}, and the nvidia runtime gives it no GPU: libcuda.so.1 is not there, no GPU is seen"),
        ),
    }
}

/// What the image asks of the driver.
struct Asked<'a> {
    /// As told.
    text: String,
    /// `None`: all.
    names: Option<BTreeSet<&'a str>>,
    /// The image says nothing, and who starts it may.
    is_default: bool,
}

fn asked<'a>(config: &'a ConfigFacts, catalog: &'a Catalog) -> Asked<'a> {
    let text = config.var(CAPABILITIES).unwrap_or_default();
    if !text.is_empty() {
        let names: BTreeSet<&str> = text.split(',').filter(|n| !n.is_empty()).collect();
        let names = (!names.contains("all")).then_some(names);
        let text = format!("{CAPABILITIES} is {}", escape(text.as_bytes()));
        return Asked { text, names, is_default: false };
    }
    if require::legacy_version(config).is_some() {
        return Asked { text: "CUDA_VERSION alone asks for all".to_owned(), names: None, is_default: true };
    }
    let rows = catalog.loading().capabilities();
    let names: BTreeSet<&str> = rows.iter().filter(|c| c.default).map(|c| c.name.as_str()).collect();
    let list = names.iter().copied().collect::<Vec<_>>().join(",");
    Asked { text: format!("{CAPABILITIES} is not set, which means {list}"), names: Some(names), is_default: true }
}

fn capabilities(target: &Target, evidence: &Evidence, uses: &[Use<'_>], catalog: &Catalog) -> Vec<Problem> {
    // GKE, WSL2 and Tegra bring what they have, whatever the image says.
    if !matches!(target.runtime, Runtime::Toolkit | Runtime::Legacy | Runtime::Cdi) {
        return Vec::new();
    }
    let asked = asked(&evidence.image.config, catalog);
    let Some(names) = &asked.names else { return Vec::new() };
    let mut out: Vec<Problem> = unknown(target, names, &asked.text, catalog).into_iter().collect();
    let mut missing: BTreeMap<&str, Vec<&Use<'_>>> = BTreeMap::new();
    for used in uses.iter().filter(|u| !names.contains(u.capability)) {
        missing.entry(used.capability).or_default().push(used);
    }
    for (capability, users) in missing {
        let Some(first) = users.first() else { continue };
        let mut verdict = match first.weight {
            Weight::Program | Weight::Core => Verdict::Fail,
            Weight::Some => Verdict::Warn,
            Weight::Mention => Verdict::Ok,
        };
        let then = match target.runtime {
            Runtime::Cdi => {
                verdict = Verdict::Ok;
                "; with CDI the whole driver is there all the same"
            }
            _ if asked.is_default && target.start == Start::Gpus => {
                verdict = verdict.max(Verdict::Warn);
                ", unless who starts it asks for more"
            }
            _ => "",
        };
        let of: BTreeSet<_> = users.iter().filter_map(|u| u.file.component).collect();
        let more = match (users.len() - 1, of.first()) {
            (0, _) => String::new(),
            (_, Some(only)) if of.len() == 1 => {
                format!(" (and more of {})", words::component(&evidence.components[*only]))
            }
            (count, _) => format!(" (and {count} more)"),
        };
        let message = format!(
            "{}, without {capability}: {}{more}: \"{}: cannot open shared object file\"{then}",
            asked.text, first.how, first.library
        );
        let mut wanted = names.clone();
        wanted.insert(capability);
        let help = format!("ENV {CAPABILITIES}={}", wanted.into_iter().collect::<Vec<_>>().join(","));
        let because = catalog.loading().driver(&first.library).map(|d| d.because());
        out.push(Problem {
            path: Some(first.file.path.clone()),
            because: because.into_iter().collect(),
            ..Problem::new("driver-capability-missing", verdict, message, help)
        });
    }
    out
}

/// A value that no runtime knows stops the hook.
fn unknown(target: &Target, names: &BTreeSet<&str>, text: &str, catalog: &Catalog) -> Option<Problem> {
    let known = catalog.loading().capabilities();
    let bad: Vec<&str> = names.iter().copied().filter(|n| !known.iter().any(|k| k.name == *n)).collect();
    if bad.is_empty() {
        return None;
    }
    let (verdict, then) = match target.runtime {
        Runtime::Legacy => (Verdict::Blocked, "the runtime refuses to start it"),
        Runtime::Cdi => (Verdict::Ok, "with CDI nothing reads it"),
        _ => (Verdict::Warn, "refused on legacy hosts"),
    };
    let bad = escape(bad.join(",").as_bytes());
    let message = format!("{text}, and {bad} is no capability: {then} (\"unsupported capabilities found\")");
    let list = known.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(", ");
    Some(Problem::new("driver-capability-missing", verdict, message, format!("capabilities are {list}, or all")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_target;
    use crate::lint::lab::Lab;

    const ALL: (&str, &str) = (DEVICES, "all");

    /// A program of the image's own that opens two video libraries by name.
    fn video(env: &[(&str, &str)]) -> Lab {
        let mut lab = Lab::new();
        let elf = lab.library("opt/app/bin/transcode", ("app", "1"), "", false);
        elf.mentions = vec!["libnvcuvid.so.1".into(), "libnvidia-encode.so.1".into()];
        lab.0.components[0].manager = Manager::Path;
        lab.0.image.config.entrypoint = vec!["/opt/app/bin/transcode".into()];
        lab.env(env);
        lab
    }

    fn cuda(env: &[(&str, &str)]) -> Lab {
        let mut lab = Lab::new();
        lab.torch();
        lab.env(env);
        lab
    }

    fn found(lab: &Lab, runtime: Runtime, start: Start) -> Vec<Problem> {
        let catalog = Catalog::embedded();
        let mut target = parse_target("a10@570", catalog).unwrap();
        (target.runtime, target.start) = (runtime, start);
        let roles = crate::lint::roles::roles(&lab.0, catalog, &[]);
        problems(&target, &lab.0, &roles, catalog)
    }

    /// "gpu-not-requested cpu", parted by commas.
    fn words(lab: &Lab, runtime: Runtime, start: Start) -> String {
        let found = found(lab, runtime, start);
        found.iter().map(|p| format!("{} {}", p.rule, p.verdict)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn an_image_that_asks_for_no_gpu() {
        use Start::*;
        let toolkit = |env: &[(&str, &str)], start| words(&cuda(env), Runtime::Toolkit, start);
        assert_eq!(toolkit(&[], Env), "gpu-not-requested cpu");
        assert_eq!(toolkit(&[], Gpus), "gpu-not-requested ok");
        assert_eq!(toolkit(&[ALL], Env), "");
        assert_eq!(toolkit(&[(DEVICES, "void")], Env), "gpu-not-requested cpu");
        assert_eq!(toolkit(&[(DEVICES, "none")], Env), "gpu-not-requested cpu");
        assert_eq!(toolkit(&[("CUDA_VERSION", "9.0")], Env), "", "an old image asks for all");
        assert_eq!(
            toolkit(&[("CUDA_VERSION", "12.8"), ("NVIDIA_REQUIRE_CUDA", "x")], Env),
            "gpu-not-requested cpu"
        );
        assert_eq!(words(&cuda(&[]), Runtime::Gke, Env), "");
        let mut none = Lab::new();
        none.library("usr/lib/libfoo.so", ("foo", "1"), "libfoo.so", false);
        assert_eq!(words(&none, Runtime::Toolkit, Env), "", "nothing in it uses a GPU");
        let said = found(&cuda(&[]), Runtime::Toolkit, Env);
        assert!(said[0].message.contains("NVIDIA_VISIBLE_DEVICES is not set"), "{}", said[0].message);
        assert_eq!(words(&video(&[]), Runtime::Toolkit, Env), "gpu-not-requested fail");
    }

    #[test]
    fn video_must_be_asked_for() {
        use Runtime::*;
        let listed = video(&[ALL, (CAPABILITIES, "compute,utility")]);
        let env = Start::Env;
        assert_eq!(words(&listed, Toolkit, env), "driver-capability-missing fail");
        assert_eq!(words(&listed, Legacy, Start::Gpus), "driver-capability-missing fail");
        assert_eq!(words(&listed, Cdi, env), "driver-capability-missing ok");
        for runtime in [Gke, Wsl, Tegra] {
            assert_eq!(words(&listed, runtime, env), "");
        }
        assert_eq!(words(&video(&[ALL]), Toolkit, env), "driver-capability-missing fail");
        assert_eq!(words(&video(&[ALL]), Toolkit, Start::Gpus), "driver-capability-missing warn");
        for enough in ["compute,utility,video", "all", "video,all"] {
            assert_eq!(words(&video(&[ALL, (CAPABILITIES, enough)]), Toolkit, env), "");
        }
        let said = found(&listed, Toolkit, env);
        assert!(said[0].message.contains("libnvcuvid.so.1: cannot open shared object file"), "{}", said[0].message);
        assert_eq!(said[0].help, "ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility,video");
    }

    #[test]
    fn cuda_needs_compute_and_goes_on_without_nvml() {
        let word = |capabilities: &str, env: Start| {
            let mut lab = cuda(&[ALL, (CAPABILITIES, capabilities)]);
            let kernels = std::sync::Arc::get_mut(&mut lab.0.files[0].facts).unwrap();
            kernels.elf.as_mut().unwrap().mentions = vec!["libnvidia-ml.so.1".into()];
            words(&lab, Runtime::Toolkit, env)
        };
        assert_eq!(word("utility", Start::Gpus), "driver-capability-missing fail");
        assert_eq!(word("compute,utility", Start::Env), "");
        assert_eq!(word("compute", Start::Env), "driver-capability-missing ok");
    }

    #[test]
    fn optional_packages_that_only_name_a_library() {
        let mut lab = Lab::new();
        let cv = lab.library("SITE/cv2/libavcodec.so.59", ("opencv-python", "4.10"), "libavcodec.so.59", false);
        cv.mentions = vec!["libnvcuvid.so.1".into()];
        lab.torch();
        lab.env(&[ALL, (CAPABILITIES, "compute,utility")]);
        assert_eq!(words(&lab, Runtime::Toolkit, Start::Env), "driver-capability-missing ok");
        let mut linked = Lab::new();
        let codec = linked.library("SITE/codec/_codec.so", ("pynvvideocodec", "2.0"), "_codec.so", false);
        codec.needed = vec!["libnvcuvid.so.1".into()];
        linked.torch();
        linked.env(&[ALL, (CAPABILITIES, "compute,utility")]);
        assert_eq!(words(&linked, Runtime::Toolkit, Start::Env), "driver-capability-missing warn");
    }

    #[test]
    fn capabilities_that_nobody_knows() {
        let lab = cuda(&[ALL, (CAPABILITIES, "compute,utilty")]);
        let words = |runtime| words(&lab, runtime, Start::Gpus);
        assert_eq!(words(Runtime::Legacy), "driver-capability-missing blocked");
        assert_eq!(words(Runtime::Toolkit), "driver-capability-missing warn");
        assert_eq!(words(Runtime::Cdi), "driver-capability-missing ok");
    }
}
