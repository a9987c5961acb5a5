//! What changed between two images, each scanned and judged by itself.

mod code;
mod config;
mod libraries;
mod pair;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::catalog::Catalog;
use crate::lint::{self, Outline};
use crate::model::{DriverVersion, Evidence, LayerSummary, Verdict, escape};
use crate::report::diff::{
    DiffReport, FloorChange, Kind, Layers, Loss, LossKind, Side, SideGap, SizeChange, TargetChange,
};
use crate::report::{MinDriver, Report, Role, TargetReport};

/// Version of the JSON schema.
const SCHEMA: u32 = 1;

/// One image, judged: the evidence of the platform that is compared, and the report on all of them.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    pub evidence: &'a Evidence,
    pub report: &'a Report,
}

/// Compares two images that were judged for the same targets; `required`: components that count as core.
pub fn compare(old: Image<'_>, new: Image<'_>, required: &[String], catalog: &Catalog) -> DiffReport {
    let outline = |image: Image<'_>| lint::outline(image.evidence, required, catalog);
    let (before, after) = (outline(old), outline(new));
    let (a, b) = (old.evidence, new.evidence);
    let components = code::components((a, &before.components), (b, &after.components), catalog);
    let targets = targets(old.report, new.report);
    let mut report = DiffReport {
        schema: SCHEMA,
        tool: new.report.tool.clone(),
        old: side(a),
        new: side(b),
        equal: false,
        undecided: undecided(old, &before).into_iter().chain(undecided(new, &after)).collect(),
        losses: Vec::new(),
        targets,
        components,
        min_driver: floor(before.min_driver, after.min_driver),
        libraries: libraries::libraries(&before.libraries, &after.libraries, catalog),
        packages: libraries::packages(&a.packages, &b.packages),
        toolkits: libraries::toolkits(&a.toolkits, &b.toolkits),
        environment: config::environment(&a.image.config, &b.image.config),
        settings: config::settings(&a.image.config, &b.image.config),
        size: SizeChange {
            old: a.image.size,
            new: b.image.size,
            old_device_code: device_code(a),
            new_device_code: device_code(b),
        },
        layers: layers(&a.image.layers, &b.image.layers),
        gaps: gaps(old.report, false).chain(gaps(new.report, true)).collect(),
    };
    report.losses = losses(&report);
    report.equal = is_equal(&report);
    report
}

fn side(evidence: &Evidence) -> Side {
    let image = &evidence.image;
    Side {
        reference: escape(image.reference.as_bytes()),
        digest: image.digest,
        platform: image.platform.clone(),
        size: image.size,
        layers: image.layers.len(),
    }
}

fn gaps(report: &Report, new: bool) -> impl Iterator<Item = SideGap> {
    report.gaps.iter().map(move |gap| SideGap { new, gap: gap.clone() })
}

fn device_code(evidence: &Evidence) -> u64 {
    let items = evidence.files.iter().flat_map(|f| &f.facts.modules).flat_map(|m| &m.items);
    items.map(|i| i.bytes).fold(0, u64::saturating_add)
}

fn targets(old: &Report, new: &Report) -> Option<Vec<TargetChange>> {
    let before = old.targets.as_ref()?;
    let row = |now: &TargetReport| {
        let was = before.iter().find(|t| t.name == now.name)?;
        Some(TargetChange {
            name: now.name.clone(),
            gpu: now.gpu.clone(),
            arch: now.arch,
            driver: now.driver.clone(),
            required: now.required,
            old: was.verdict,
            new: now.verdict,
            old_why: was.why.clone(),
            new_why: now.why.clone(),
        })
    };
    let rows: Vec<TargetChange> = new.targets.iter().flatten().filter_map(row).collect();
    Some(rows).filter(|r| !r.is_empty())
}

fn floor(old: Option<MinDriver>, new: Option<MinDriver>) -> Option<FloorChange> {
    let version = |floor: &Option<MinDriver>| floor.as_ref().map(|f| f.version.clone());
    if version(&old) == version(&new) {
        return None;
    }
    let number = |floor: &Option<MinDriver>| version(floor)?.parse::<DriverVersion>().ok();
    // An image that asks for no driver is no image of CUDA: what it became is told by its code.
    let raised = number(&old).zip(number(&new)).is_some_and(|(old, new)| new > old);
    Some(FloorChange { old, new, raised })
}

/// Layers that both have, whatever the order; the same content counts however it is compressed.
fn layers(old: &[LayerSummary], new: &[LayerSummary]) -> Layers {
    let key = |l: &LayerSummary| l.diff_id.or(l.digest);
    let mut left: BTreeMap<_, usize> = BTreeMap::new();
    for key in old.iter().filter_map(key) {
        *left.entry(key).or_default() += 1;
    }
    let (mut shared, mut shared_bytes) = (0, 0u64);
    for layer in new {
        if let Some(count) = key(layer).and_then(|k| left.get_mut(&k)).filter(|n| **n > 0) {
            *count -= 1;
            shared += 1;
            shared_bytes = shared_bytes.saturating_add(layer.size);
        }
    }
    Layers { old: old.len(), new: new.len(), shared, shared_bytes }
}

/// Why an image's side of the question is open.
fn undecided(image: Image<'_>, outline: &Outline) -> Vec<String> {
    let mut out = lint::unanswered(image.report, false);
    // With targets, the verdicts have said so.
    if image.report.targets.iter().flatten().next().is_none() {
        let core = outline.components.iter().zip(&image.evidence.components).filter(|(c, _)| c.role == Role::Core);
        let open = core.filter(|(c, _)| c.words.values().any(|w| *w == Verdict::Unknown));
        out.extend(open.map(|(_, component)| {
            format!("{}: its device code could not be listed whole", lint::component_label(component))
        }));
    }
    let reference = escape(image.evidence.image.reference.as_bytes());
    out.into_iter().map(|why| format!("{reference}: {why}")).collect()
}

fn losses(report: &DiffReport) -> Vec<Loss> {
    let known = |word: Option<Verdict>| word != Some(Verdict::Unknown);
    let mut out = Vec::new();
    if let Some(targets) = &report.targets {
        for t in targets.iter().filter(|t| t.required && t.new < t.old && known(Some(t.new))) {
            let what = format!("{} → {}: {}", t.old, t.new, t.new_why);
            out.push(Loss { kind: LossKind::Verdict, subject: t.name.clone(), what });
        }
        return out;
    }
    for component in report.components.iter().filter(|c| c.role == Role::Core) {
        let worse = component.served_worse.iter().filter(|s| known(s.old) && known(s.new));
        let list: Vec<String> = worse.map(|s| s.capability.to_string()).collect();
        if list.is_empty() {
            continue;
        }
        let what = match component.change {
            Kind::Removed => format!("it is gone, and served {}", list.join(" ")),
            Kind::Changed | Kind::Added => format!("serves {} worse, or no more", list.join(" ")),
        };
        out.push(Loss { kind: LossKind::Coverage, subject: component.name.clone(), what });
    }
    if let Some(FloorChange { old: Some(old), new: Some(new), raised: true }) = &report.min_driver {
        let what = format!("driver {} or newer, not {}: {}", new.version, old.version, new.cause);
        out.push(Loss { kind: LossKind::DriverFloor, subject: String::new(), what });
    }
    out
}

fn is_equal(report: &DiffReport) -> bool {
    report.components.is_empty()
        && report.min_driver.is_none()
        && report.libraries.is_empty()
        && report.packages.is_empty()
        && report.toolkits.is_empty()
        && report.environment.is_empty()
        && report.settings.is_empty()
        && report.old.platform == report.new.platform
        && report.targets.iter().flatten().all(|t| t.old == t.new)
}
