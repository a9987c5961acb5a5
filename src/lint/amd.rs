//! What can be wrong between an image and AMD's GPUs besides device code: data files of libraries, and what the
//! environment makes of the GPU.

use super::Problem;
use super::case::ComponentCase;
use super::devices;
use crate::catalog::Catalog;
use crate::catalog::compat::Host;
use crate::catalog::data_libraries::{DataLibrary, Lack};
use crate::model::{
    ClaimKind, Confidence, DataSet, Device, Evidence, GfxArch, GfxMode, GfxProcessor, ImagePath, Maker, Outcome,
    RocmVersion, Target, ToolkitKind, Verdict, escape,
};
use crate::report::StepKind;

/// Makes the runtime claim another GPU: `10.3.0` is gfx1030.
const OVERRIDE: &str = "HSA_OVERRIDE_GFX_VERSION";

pub fn problems(
    target: &Target,
    host: &Host,
    evidence: &Evidence,
    components: &[ComponentCase<'_>],
    catalog: &Catalog,
) -> Vec<Problem> {
    let mut out: Vec<Problem> = claims(target, host, evidence).into_iter().collect();
    if let Some(gpu) = host.device.gfx() {
        out.extend(data(gpu, evidence, catalog));
    }
    out.extend(kernel_driver(target, evidence, catalog));
    out.extend(devices::to_pass(Maker::Amd, evidence, components));
    out
}

/// ROCm in the image and the kernel's driver on the hosts were not tested together. Only what tables say is told.
fn kernel_driver(target: &Target, evidence: &Evidence, catalog: &Catalog) -> Option<Problem> {
    let range = target.driver.as_ref()?;
    let number: RocmVersion = range.lowest.to_string().parse().ok()?;
    let module = catalog.rocm().driver_of_module(number);
    let driver = module.as_ref().map_or(number, |(driver, _)| *driver);
    for (release, path) in releases(evidence) {
        let goes = catalog.rocm().goes(release, driver);
        if goes.with != Some(false) {
            continue;
        }
        let message = format!(
            "the image has ROCm {release}, which was not tested with driver {range} of {}: kernels may hang, or no GPU be seen",
            target.name
        );
        let help = format!("use a driver that was tested with ROCm {release}, or another release of ROCm");
        return Some(Problem {
            because: goes.because.into_iter().chain(module.map(|(_, row)| row)).collect(),
            path: Some(path),
            confidence: if goes.is_sure { Confidence::Medium } else { Confidence::Low },
            step: StepKind::Driver,
            ..Problem::new("rocm-driver-not-tested", Verdict::Warn, message, help)
        });
    }
    None
}

/// The releases of ROCm that an image has, with the files that say so: its toolkits, else what torch was built for.
fn releases(evidence: &Evidence) -> Vec<(RocmVersion, ImagePath)> {
    let toolkits = evidence.toolkits.iter().filter(|t| t.kind == ToolkitKind::Rocm);
    let mut out: Vec<(RocmVersion, ImagePath)> =
        toolkits.filter_map(|t| Some((t.version.parse().ok()?, t.said_by.clone()))).collect();
    if out.is_empty() {
        let claim = evidence.claim("torch", ClaimKind::Rocm);
        out.extend(claim.and_then(|c| Some((c.value.parse().ok()?, c.said_by.clone()))));
    }
    out
}

/// The GPU that programs see: what the image's environment makes the runtime claim, with the mode it asks for.
pub fn claimed(device: Device, evidence: &Evidence, catalog: &Catalog) -> Device {
    let Device::Amd(gpu) = device else { return device };
    let config = &evidence.image.config;
    let processor = config.var(OVERRIDE).and_then(processor_of).unwrap_or(gpu.processor);
    let retries = catalog.processors().isa(processor).is_some_and(|isa| isa.xnack);
    let asked = match config.var("HSA_XNACK") {
        Some("1") => GfxMode::On,
        Some("0") => GfxMode::Off,
        _ => gpu.xnack,
    };
    Device::Amd(GfxArch { processor, xnack: if retries { asked } else { GfxMode::Any }, ..gpu })
}

/// `10.3.0`, major, minor and stepping in decimal; other texts are not taken.
fn processor_of(value: &str) -> Option<GfxProcessor> {
    let mut parts = value.trim().split('.').map(|p| p.parse::<u8>().ok());
    let (major, minor, stepping) = (parts.next()??, parts.next()??, parts.next()??);
    (parts.next().is_none() && minor < 16 && stepping < 16).then_some(GfxProcessor::Exact {
        major,
        minor,
        stepping,
    })
}

/// The environment makes the GPU pass for another.
fn claims(target: &Target, host: &Host, evidence: &Evidence) -> Option<Problem> {
    let (own, seen) = (target.device.gfx()?.processor, host.device.gfx()?.processor);
    let value = escape(evidence.image.config.var(OVERRIDE).filter(|_| own != seen)?.as_bytes());
    let message = format!(
        "{OVERRIDE}={value} in the image makes {} ({own}) pass for {seen}: judged as that, which AMD does not support; \
         instructions that {own} has not hang it or stop with \"invalid ISA\"",
        target.gpu
    );
    let help = format!("leave {OVERRIDE} out of the image, and build for {own}");
    Some(Problem {
        confidence: Confidence::Medium,
        step: StepKind::Rebuild,
        ..Problem::new("hsa-override-baked", Verdict::Warn, message, help)
    })
}

/// Libraries whose data files have nothing for the GPU. Of several installations those count that something loads.
fn data(gpu: GfxArch, evidence: &Evidence, catalog: &Catalog) -> Vec<Problem> {
    let mut out = Vec::new();
    for row in catalog.data_libraries().all() {
        let all: Vec<&DataSet> =
            evidence.data_sets.iter().filter(|d| d.library == row.name && !d.targets.is_empty()).collect();
        let used: Vec<&DataSet> = all.iter().copied().filter(|d| is_used(row, d, evidence)).collect();
        let judged = if used.is_empty() { all } else { used };
        out.extend(judged.into_iter().filter(|d| !d.covers(gpu)).filter_map(|d| lacking(row, d, gpu)));
    }
    out
}

/// Whether a file of the image loads the library that reads the data.
fn is_used(row: &DataLibrary, set: &DataSet, evidence: &Evidence) -> bool {
    let reads = |path: &ImagePath| row.is_used_by(path) && row.roots_for(path).any(|r| r == set.root);
    let wanted = evidence.loads.iter().flat_map(|l| l.needs.iter().chain(&l.opens));
    wanted
        .filter_map(|n| match &n.outcome {
            Outcome::Found { path, .. } => Some(path),
            _ => None,
        })
        .any(reads)
}

fn lacking(row: &DataLibrary, set: &DataSet, gpu: GfxArch) -> Option<Problem> {
    let verdict = match row.lack {
        Lack::Fail if row.is_sure() => Verdict::Fail,
        Lack::Fail | Lack::Warn => Verdict::Warn,
        Lack::Slow => Verdict::Slow,
        Lack::None => return None,
    };
    let has: Vec<String> = set.targets.iter().map(|t| t.arch.to_string()).collect();
    let words = if row.symptom.is_empty() { String::new() } else { format!(": \"{}\"", row.symptom) };
    let message = format!(
        "{} has no data for {} in `{}`, which has {}: {}{words}",
        row.name,
        gpu.processor,
        set.root,
        has.join(" "),
        row.then
    );
    let help = format!(
        "take a build of ROCm whose {} has {}, or build it for that; {OVERRIDE} would load another GPU's kernels, which \
         AMD does not support",
        row.name, gpu.processor
    );
    Some(Problem {
        because: vec![row.because()],
        path: Some(set.root.clone()),
        component: set.component,
        confidence: if verdict == Verdict::Fail { Confidence::High } else { Confidence::Medium },
        step: StepKind::Libraries,
        ..Problem::new("library-data-missing", verdict, message, help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_target;
    use crate::lint::lab::{Lab, at};
    use crate::model::Toolkit;

    #[test]
    fn the_override_is_read_as_the_runtime_reads_it() {
        let of = |value: &str| processor_of(value).map(|p| p.to_string());
        assert_eq!(of("10.3.0").as_deref(), Some("gfx1030"));
        assert_eq!(of("9.0.10").as_deref(), Some("gfx90a"));
        assert_eq!(of(" 11.0.0 ").as_deref(), Some("gfx1100"));
        for text in ["", "10.3", "10.3.0.1", "10.3.x", "10.16.0", "999.0.0"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    fn image(env: &[(&str, &str)]) -> Lab {
        let mut lab = Lab::new();
        lab.env(env);
        lab
    }

    fn seen(lab: &Lab, gpu: &str) -> String {
        claimed(gpu.parse().unwrap(), &lab.0, Catalog::embedded()).to_string()
    }

    #[test]
    fn the_environment_changes_what_programs_see() {
        let other = image(&[("HSA_OVERRIDE_GFX_VERSION", "10.3.0")]);
        assert_eq!(seen(&other, "gfx1031"), "gfx1030");
        assert_eq!(seen(&other, "9.0"), "9.0");
        assert_eq!(seen(&image(&[("HSA_OVERRIDE_GFX_VERSION", "")]), "gfx1031"), "gfx1031");
        let retries = image(&[("HSA_XNACK", "1")]);
        assert_eq!([seen(&retries, "gfx90a"), seen(&retries, "gfx1100")], ["gfx90a:xnack+", "gfx1100"]);
        let catalog = Catalog::embedded();
        let told = |lab: &Lab, gpu: &str| {
            let target = parse_target(gpu, catalog).unwrap();
            let host = catalog.bare_host(claimed(target.device, &lab.0, catalog));
            claims(&target, &host, &lab.0).map(|p| p.message)
        };
        let message = told(&other, "RX 6700 XT").unwrap();
        assert!(message.contains("gfx1031) pass for gfx1030"), "{message}");
        assert_eq!(told(&other, "RX 6800 XT"), None, "it is that one");
    }

    #[test]
    fn only_what_tables_say_of_kernel_drivers_is_told() {
        let catalog = Catalog::embedded();
        let mut lab = Lab::new();
        lab.0.toolkits.push(Toolkit {
            kind: ToolkitKind::Rocm,
            path: at("opt/rocm-6.0.2"),
            version: "6.0.2".into(),
            said_by: at("opt/rocm-6.0.2/.info/version"),
        });
        let told = |gpu: &str| {
            let problem = kernel_driver(&parse_target(gpu, catalog).unwrap(), &lab.0, catalog);
            problem.map(|p| (p.rule, p.verdict))
        };
        assert_eq!(told("MI300X@6.3"), Some(("rocm-driver-not-tested", Verdict::Warn)));
        for fine in ["MI300X", "MI300X@6.1", "MI300X@6.4", "MI300X@99.9"] {
            assert_eq!(told(fine), None, "{fine}");
        }
    }
}
