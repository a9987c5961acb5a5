//! The finished report, from evidence and judged targets.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{ComponentCase, TargetCase};
use super::host::required;
use super::libraries;
use super::{Judged, words};
use crate::catalog::Catalog;
use crate::catalog::verdict::{Counts, GENERAL};
use crate::model::{
    Container, Digest, Evidence, EvidenceFile, Finding, Form, Gap, GapEffect, SmArch, Verdict, Virtualisation,
    escape,
};
use crate::report::{
    ArchRow, CatalogId, ComponentReport, DeviceCode, FileVerdict, ImageReport, Library, MinDriver, ModuleCounts,
    Plan, Report, Role, RowsReport, StatsReport, TargetReport, Tool,
};

/// Version of the JSON schema.
pub const SCHEMA: u32 = 1;

pub fn build(
    images: &[Judged<'_>],
    cases: &[TargetCase<'_>],
    findings: Vec<Finding>,
    plan: Plan,
    catalog: &Catalog,
    allow_gaps: bool,
) -> Report {
    let evidence: Vec<&Evidence> = images.iter().map(|i| i.0).collect();
    let mut gaps: Vec<Gap> = evidence.iter().flat_map(|e| e.gaps.iter().cloned()).collect();
    gaps.sort();
    gaps.dedup();
    let unread = gaps.iter().any(|g| g.effect == GapEffect::Image) && !allow_gaps;
    let verdict = if unread {
        Verdict::Unknown
    } else {
        // Without targets, what is wrong on any of them.
        let common = images.iter().filter(|_| cases.is_empty()).flat_map(|i| i.2).map(|p| p.verdict);
        let judged = cases.iter().filter(|c| c.target.required).map(|c| c.verdict);
        judged.chain(common).min().unwrap_or(Verdict::Ok)
    };
    let first = images.first();
    let mut stats = crate::model::Stats::default();
    for e in &evidence {
        stats.bytes_read += e.stats.bytes_read;
        stats.files += e.stats.files;
        stats.elfs += e.stats.elfs;
    }
    Report {
        schema: SCHEMA,
        tool: tool(catalog),
        image: first.map(|(e, roles, _)| image(e, verdict, roles, catalog)),
        targets: Some(cases.iter().map(target).collect()),
        device_code: unique(evidence.iter().flat_map(|e| device_code(e, catalog)).collect(), |d: &DeviceCode| {
            d.path.clone()
        }),
        libraries: unique(evidence.iter().flat_map(|e| libraries::rows(e, catalog)).collect(), |l: &Library| {
            l.path.clone()
        }),
        packages: Some(all(&evidence, |e| e.packages.clone())),
        toolkits: Some(all(&evidence, |e| e.toolkits.clone())),
        compilers: Some(
            evidence
                .iter()
                .flat_map(|e| libraries::compiler_rows(e, catalog))
                .map(|c| (c.path.clone(), c))
                .collect::<BTreeMap<_, _>>()
                .into_values()
                .collect(),
        ),
        findings,
        waived: Vec::new(),
        known: None,
        resolved: None,
        plan: (!cases.is_empty()).then_some(plan),
        gaps,
        sizes: None,
        stats: StatsReport { counts: stats, seconds: None, stored_bytes_read: None },
        policy: None,
        overruled: Vec::new(),
        rules: Vec::new(),
        base: String::new(),
        sources: BTreeMap::new(),
    }
}

/// The report of single files: no image, no targets.
pub fn of_files(evidence: &[Evidence], catalog: &Catalog) -> Report {
    let images: Vec<Judged<'_>> = evidence.iter().map(|e| (e, &[][..], &[][..])).collect();
    let mut report = build(&images, &[], Vec::new(), Plan::default(), catalog, true);
    report.image = None;
    report.targets = None;
    report.packages = None;
    report.toolkits = None;
    report.compilers = None;
    report
}

fn all<T: Ord>(evidence: &[&Evidence], of: impl Fn(&Evidence) -> Vec<T>) -> Vec<T> {
    evidence.iter().flat_map(|e| of(e)).collect::<BTreeSet<_>>().into_iter().collect()
}

fn unique<T, K: Ord>(mut rows: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    rows.sort_by_key(|r| key(r));
    rows
}

pub(super) fn tool(catalog: &Catalog) -> Tool {
    let rules =
        catalog.merged().map(|m| RowsReport { files: m.files.clone(), added: m.added, replaced: m.replaced });
    Tool {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        catalog: CatalogId { as_of: catalog.as_of().to_owned(), digest: catalog.digest(), rules },
    }
}

fn image(evidence: &Evidence, verdict: Verdict, roles: &[Role], catalog: &Catalog) -> ImageReport {
    let mut layers = evidence.image.layers.clone();
    for layer in &mut layers {
        layer.created_by = layer.created_by.take().map(|c| escape(c.as_bytes()));
    }
    ImageReport {
        reference: escape(evidence.image.reference.as_bytes()),
        digest: evidence.image.digest,
        platform: evidence.image.platform.clone(),
        size: evidence.image.size,
        verdict,
        min_driver: min_driver(evidence, roles, catalog),
        arch_list: arch_list(evidence),
        amd: super::amd_served::served(evidence, roles, catalog),
        layers,
    }
}

/// The floor of the highest CUDA major that a core component uses.
pub(super) fn min_driver(evidence: &Evidence, roles: &[Role], catalog: &Catalog) -> Option<MinDriver> {
    let cores: Vec<ComponentCase<'_>> = roles
        .iter()
        .enumerate()
        .filter(|(_, role)| **role == Role::Core)
        .map(|(index, role)| super::case::bare(index, *role, evidence, catalog))
        .collect();
    let needed = required(evidence, &cores, catalog)?;
    let floor = catalog.toolkits().driver_floor(needed.cuda.major)?;
    let declared = needed.against_declared(evidence);
    let cause = format!("{}: the floor of CUDA {}.x{declared}", needed.cause, needed.cuda.major);
    Some(MinDriver { version: floor.driver.to_string(), cause })
}

/// What torch.cuda.get_arch_list() would print: the string torch carries; where that file is not there, what every
/// general module of its kernels has.
fn arch_list(evidence: &Evidence) -> Option<Vec<String>> {
    let is_torch = |f: &&EvidenceFile| {
        f.component.is_some_and(|c| crate::inventory::same_component(&evidence.components[c].name, "torch"))
    };
    if let Some(flags) = evidence.files.iter().filter(is_torch).find_map(|f| f.facts.arch_flags.as_ref()) {
        return Some(flags.split(' ').map(str::to_owned).collect());
    }
    let kernels = evidence.files.iter().filter(is_torch).find(|f| f.path.file_name() == b"libtorch_cuda.so")?;
    let mut common: Option<BTreeSet<(bool, SmArch)>> = None;
    for module in kernels.facts.modules.iter().filter(|m| !m.relocatable) {
        let archs: BTreeSet<(bool, SmArch)> = module
            .items
            .iter()
            .filter(|i| matches!(i.item.form, Form::Sass | Form::Ptx))
            .filter_map(|i| Some((i.item.form == Form::Ptx, i.item.arch.sm()?)))
            .collect();
        if archs.len() >= GENERAL {
            common = Some(match common {
                Some(before) => before.intersection(&archs).copied().collect(),
                None => archs,
            });
        }
    }
    let name = |(ptx, arch): &(bool, SmArch)| match ptx {
        true => arch.to_string().replace("sm_", "compute_"),
        false => arch.to_string(),
    };
    common.map(|c| c.iter().map(name).collect())
}

fn target(case: &TargetCase<'_>) -> TargetReport {
    let mut components: Vec<ComponentReport> = case.components.iter().map(|c| component(case, c)).collect();
    components.sort_by(|a, b| (a.role, a.verdict, &a.name, &a.files).cmp(&(b.role, b.verdict, &b.name, &b.files)));
    TargetReport {
        name: case.target.name.clone(),
        gpu: case.target.gpu.clone(),
        arch: case.target.device.arch(),
        driver: case.target.driver.as_ref().map(ToString::to_string),
        virtualisation: Some(case.target.virtualisation).filter(|v| *v != Virtualisation::None),
        verdict: case.verdict,
        why: case.why.clone(),
        required: case.target.required,
        platform: case.evidence.image.platform.clone(),
        components,
    }
}

fn component(case: &TargetCase<'_>, c: &ComponentCase<'_>) -> ComponentReport {
    let info = &case.evidence.components[c.index];
    let mut files: Vec<_> = c.files.iter().map(|f| f.file.path.clone()).collect();
    files.sort();
    ComponentReport {
        name: escape(info.name.as_bytes()),
        version: info.version.as_ref().map(|v| escape(v.as_bytes())),
        role: c.role,
        verdict: c.word(),
        why: match &c.problem {
            Some((verdict, why)) if *verdict == c.word() && (*verdict < Verdict::Ok || !c.has_code()) => {
                why.clone()
            }
            _ => words::reason(case, c),
        },
        files,
        modules: counts(c.counts),
        by_file: c
            .files
            .iter()
            .map(|f| FileVerdict {
                path: f.file.path.clone(),
                verdict: f.judgement.verdict,
                why: words::file_reason(case, f),
                modules: counts(f.judgement.counts),
            })
            .collect(),
    }
}

fn counts(c: Counts) -> ModuleCounts {
    ModuleCounts { total: c.total, native: c.native, compatible: c.compatible, jit: c.jit, missing: c.missing }
}

pub(super) fn component_name(evidence: &Evidence, file: &EvidenceFile) -> Option<String> {
    file.component.map(|c| escape(evidence.components[c].name.as_bytes()))
}

fn device_code(evidence: &Evidence, catalog: &Catalog) -> Vec<DeviceCode> {
    let with_code = evidence.files.iter().filter(|f| f.facts.has_device_code());
    with_code
        .map(|file| {
            // Rows differ by what a driver's choice depends on.
            let mut rows: BTreeMap<(crate::model::Arch, Form, Container, bool, String), ArchRow> = BTreeMap::new();
            for module in &file.facts.modules {
                for count in &module.items {
                    let item = count.item;
                    let rest = format!("{:?} {:?} {:?} {}", item.packing, item.isa, item.toolkit, item.kind);
                    let key = (item.arch, item.form, module.container, module.relocatable, rest);
                    let row = rows.entry(key).or_insert_with(|| ArchRow {
                        arch: item.arch,
                        form: item.form,
                        container: module.container,
                        entries: 0,
                        bytes: 0,
                        packing: item.packing,
                        relocatable: module.relocatable,
                        isa: item.isa,
                        toolkit: item.toolkit,
                        kind: (item.form == Form::Unknown).then_some(item.kind),
                    });
                    row.entries += count.entries;
                    row.bytes += count.bytes;
                }
            }
            let archs: Vec<ArchRow> = rows.into_values().collect();
            DeviceCode {
                path: file.path.clone(),
                layer: layer(evidence, file),
                component: component_name(evidence, file),
                format: file.facts.kind,
                not_judged: not_judged(file, catalog).map(str::to_owned),
                modules: file.facts.modules.iter().map(|m| m.count).sum(),
                bytes: archs.iter().map(|a| a.bytes).sum(),
                archs,
            }
        })
        .collect()
}

/// Why a file's device code counts for no verdict.
fn not_judged(file: &EvidenceFile, catalog: &Catalog) -> Option<&'static str> {
    let rows = catalog.components();
    if rows.profiler(&file.path).is_some() {
        Some("profiler stubs")
    } else if !file.facts.kind.loadable() {
        Some("not loaded at run time")
    } else if rows.idle(&file.path).is_some() {
        Some("nothing uses it")
    } else if file.in_archive {
        Some("in an archive that is not installed")
    } else {
        None
    }
}

fn layer(evidence: &Evidence, file: &EvidenceFile) -> Option<Digest> {
    evidence.image.layers.get(file.layer?)?.digest
}
