//! One target judged: platform, driver, each component's code. VERDICTS, "From components to the image".

use std::borrow::Cow;

use super::problem::Problem;
use super::{
    Judged, amd, compilers, driver_files, environment, forward, gate, gfx_compilers, host, intel, kpack, words,
};
use crate::catalog::Catalog;
use crate::catalog::compat::Host;
use crate::catalog::variants::{Choice, Context, TorchBuild, WhenMissing};
use crate::catalog::verdict::{self, Cause, Code, Counts, Judgement};
use crate::model::{
    ClaimKind, Container, Evidence, EvidenceFile, FileKind, GapEffect, Maker, Module, Platform, Target, Verdict,
};
use crate::report::Role;

/// A file's word.
pub struct FileCase<'a> {
    pub file: &'a EvidenceFile,
    pub judgement: Judgement,
}

/// A component's word for one target.
pub struct ComponentCase<'a> {
    /// Index into the evidence's components.
    pub index: usize,
    pub role: Role,
    pub verdict: Verdict,
    /// What decided it, and the file where it shows.
    pub cause: ComponentCause,
    pub worst: Option<&'a EvidenceFile>,
    /// Worst first.
    pub files: Vec<FileCase<'a>>,
    pub counts: Counts,
    /// A variant was taken that is not the wanted one, and the like.
    pub note: Option<String>,
    /// The worst problem besides its code, in its words.
    pub problem: Option<(Verdict, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComponentCause {
    Code(Cause),
    /// Of several variants none is for this image.
    NoVariant {
        wanted: String,
        cpu: bool,
    },
    /// Which variant is loaded cannot be told.
    VariantUnknown(String),
}

/// One target judged.
pub struct TargetCase<'a> {
    pub target: &'a Target,
    pub evidence: &'a Evidence,
    pub host: Host,
    /// The forward-compat library that would be taken, or tried, for libcuda.
    pub compat: Option<forward::Compat<'a>>,
    pub components: Vec<ComponentCase<'a>>,
    pub problems: Vec<Problem>,
    pub verdict: Verdict,
    pub why: String,
}

impl TargetCase<'_> {
    /// Whether the host has a problem that makes what a rule says of a component's code beside the point: another
    /// platform's image, or a driver so old that its limits on code follow.
    pub fn is_settled_by_host(&self, rule: &str) -> bool {
        self.problems.iter().any(|p| match p.rule {
            "wrong-platform" => p.verdict == Verdict::Fail,
            "driver-too-old-for-cuda" => p.verdict == Verdict::Fail && rule == "compressed-code-needs-newer-driver",
            _ => false,
        })
    }

    /// Whether the image could run on this target's processor at all.
    pub fn is_foreign(&self) -> bool {
        self.is_settled_by_host("")
    }
}

/// Which of several platforms of an image a target takes; the first where none is its own.
pub fn of_platform(target: &Target, evidence: &[&Evidence]) -> usize {
    let serves = |e: &Evidence| {
        let image = e.image.platform.as_ref();
        target.platforms.is_empty() || image.is_none_or(|i| target.platforms.iter().any(|p| i.serves(p)))
    };
    // Without a platform of its own a target takes linux/amd64, where there is a choice.
    let usual = |e: &Evidence| e.image.platform.as_ref().is_some_and(|p| p.serves(&Platform::default()));
    let preferred = if target.platforms.is_empty() { evidence.iter().position(|e| usual(e)) } else { None };
    preferred.or_else(|| evidence.iter().position(|e| serves(e))).unwrap_or(0)
}

/// Judges one target on the evidence of its platform.
pub fn judge<'a>(
    target: &'a Target,
    images: &[Judged<'a>],
    catalog: &Catalog,
    allow_gaps: bool,
) -> Option<TargetCase<'a>> {
    let chosen = of_platform(target, &images.iter().map(|i| i.0).collect::<Vec<_>>());
    let (found, roles, common) = *images.get(chosen)?;
    let compat = forward::compat(target, found, catalog);
    let host = host_of(target, found, compat.as_ref(), catalog);
    let mut components: Vec<ComponentCase<'a>> = Vec::new();
    for (index, role) in roles.iter().enumerate() {
        if let Some(case) = component(index, *role, found, &host, catalog) {
            components.push(case);
        }
    }
    let mut problems = Vec::new();
    let mut served = Vec::new();
    excuse_other_backends(&mut components, found, catalog);
    problems.extend(host::wrong_platform(target, found, &components));
    match target.maker() {
        Maker::Nvidia => {
            problems.extend(host::driver_window(target, catalog));
            problems.extend(host::cuda_major(target, &host, found, &components, catalog));
            problems.extend(forward::problem(compat.as_ref(), target, catalog));
            problems.extend(gate::problems(target, found, catalog));
            problems.extend(environment::problems(target, found, roles, catalog));
            problems.extend(driver_files::problems(target, found));
            problems.extend(compilers::too_old(target, found, roles, catalog));
            served = compilers::served(target, found, catalog);
        }
        Maker::Amd => {
            problems.extend(amd::problems(target, &host, found, &components, catalog));
            if let Some(gpu) = host.device.gfx() {
                let (too_old, knows) = gfx_compilers::judged(gpu.processor, target, found, roles, catalog);
                problems.extend(too_old);
                served = knows;
            }
        }
        Maker::Intel => problems.extend(intel::problems(target, found, &components, catalog)),
    }
    // What is wrong with a backend for another maker's GPUs is of no concern where another serves this one's.
    let excused = |index| {
        let case = components.iter().find(|c| c.index == index);
        case.is_some_and(|c| c.verdict == Verdict::Ok && c.cause == ComponentCause::Code(Cause::OtherMakers))
    };
    let concerns =
        |p: &&Problem| p.maker.is_none_or(|maker| maker == target.maker()) && !p.component.is_some_and(excused);
    problems.extend(common.iter().filter(concerns).map(|p| p.on(target)));
    attach(&problems, roles, &mut components);
    for (index, how) in served {
        row_of(index, roles[index], &mut components).problem.get_or_insert((Verdict::Ok, how));
    }
    components.sort_by_key(|c| c.index);
    let mut case = TargetCase {
        target,
        evidence: found,
        host,
        compat,
        components,
        problems,
        verdict: Verdict::Ok,
        why: String::new(),
    };
    (case.verdict, case.why) = sum(&case, allow_gaps);
    Some(case)
}

/// Backends for other makers' GPUs lie beside the one for this: a core component without code for this maker is no
/// failure where another has some, and never where it is another maker's own library.
fn excuse_other_backends(components: &mut [ComponentCase<'_>], evidence: &Evidence, catalog: &Catalog) {
    let other = |c: &ComponentCase<'_>| c.cause == ComponentCause::Code(Cause::OtherMakers);
    let served = components.iter().any(|c| c.role == Role::Core && c.has_code() && !other(c));
    let rows = catalog.components();
    for component in components.iter_mut().filter(|c| other(c)) {
        let info = &evidence.components[component.index];
        let vendor = rows.vendor_of_package(info.manager, &info.name).is_some();
        if served && (component.role == Role::Core || vendor) {
            component.verdict = Verdict::Ok;
            for file in &mut component.files {
                file.judgement.verdict = Verdict::Ok;
            }
        }
    }
}

/// Tells components what is wrong with them besides their code; those without code of their own get a row for it.
fn attach(problems: &[Problem], roles: &[Role], components: &mut Vec<ComponentCase<'_>>) {
    for problem in problems.iter().filter(|p| p.verdict < Verdict::Ok) {
        let Some(index) = problem.component else { continue };
        let worst = &mut row_of(index, roles[index], components).problem;
        if worst.as_ref().is_none_or(|(verdict, _)| problem.verdict < *verdict) {
            *worst = Some((problem.verdict, problem.message.clone()));
        }
    }
}

/// A component's row, made where it has no device code.
fn row_of<'c, 'a>(index: usize, role: Role, rows: &'c mut Vec<ComponentCase<'a>>) -> &'c mut ComponentCase<'a> {
    let at = rows.iter().position(|c| c.index == index).unwrap_or_else(|| {
        rows.push(ComponentCase::empty(index, role));
        rows.len() - 1
    });
    &mut rows[at]
}

impl ComponentCase<'_> {
    /// Without any device code.
    fn empty(index: usize, role: Role) -> Self {
        Self {
            index,
            role,
            verdict: Verdict::Ok,
            cause: ComponentCause::Code(Cause::Fits),
            worst: None,
            files: Vec::new(),
            counts: Counts::default(),
            note: None,
            problem: None,
        }
    }

    /// Whether its row is about code, and not only about a problem.
    pub fn has_code(&self) -> bool {
        !self.files.is_empty() || self.verdict < Verdict::Ok
    }

    /// Its word: the worse of its code's and of what else is wrong with it.
    pub fn word(&self) -> Verdict {
        self.problem.as_ref().map_or(self.verdict, |(verdict, _)| self.verdict.min(*verdict))
    }
}

/// The host as programs see it: through a forward-compat library, where one is used and serves.
pub fn host_of(
    target: &Target,
    evidence: &Evidence,
    compat: Option<&forward::Compat<'_>>,
    catalog: &Catalog,
) -> Host {
    let set = |name: &str| evidence.image.config.var(name).is_some_and(|v| v == "1");
    if target.maker() != Maker::Nvidia {
        let driver = target.driver.as_ref().map(|d| d.lowest.clone());
        return Host { driver, ..catalog.bare_host(amd::claimed(target.device, evidence, catalog)) };
    }
    let own = target.driver.as_ref().map(|d| &d.lowest);
    let driver = compat.and_then(|c| c.driver()).or(own).cloned();
    Host {
        cuda: driver.as_ref().and_then(|d| catalog.drivers().native_cuda(d)),
        jit: driver.as_ref().and_then(|d| catalog.drivers().ptx_isa(d)),
        driver,
        force_ptx: set("CUDA_FORCE_PTX_JIT"),
        jit_disabled: set("CUDA_DISABLE_PTX_JIT") || set("CUDA_DISABLE_JIT"),
        ..catalog.bare_host(target.device)
    }
}

/// The files of a component that count, less those of variants that are not loaded; which variant was taken in place
/// of the wanted one; and what decides the component's word where that is not its code.
pub fn loaded<'a>(
    index: usize,
    evidence: &'a Evidence,
    host: &Host,
    catalog: &Catalog,
) -> (Vec<&'a EvidenceFile>, Option<String>, Option<ComponentCause>) {
    let component = &evidence.components[index];
    let rows = catalog.components();
    let mut files: Vec<&EvidenceFile> =
        evidence.files.iter().filter(|f| f.component == Some(index) && super::roles::counts(f, catalog)).collect();
    if let Some(capability) = host.device.capability() {
        files.retain(|f| !rows.is_below_floor(&f.path, capability));
    }
    let mut note = None;
    let mut cause = None;
    if let Some(row) = rows.variant_for(&component.name, component.version.as_deref(), host.maker()) {
        files.retain(|f| !row.is_other(&f.path));
        let config = &evidence.image.config;
        let cx = Context {
            torch: torch_build(evidence),
            override_value: row.override_env.as_deref().and_then(|name| config.var(name)),
            device: host.device,
        };
        let variants: Vec<_> = files.iter().map(|f| &f.path).filter(|p| row.is_variant(p)).collect();
        if !variants.is_empty() {
            match row.choose(&variants, cx) {
                Choice::Loaded { path, substitute } => {
                    files.retain(|f| !row.is_variant(&f.path) || f.path == *path);
                    note = substitute;
                }
                Choice::Missing { wanted, then } => {
                    files.retain(|f| !row.is_variant(&f.path));
                    cause = Some(ComponentCause::NoVariant { wanted, cpu: then == WhenMissing::Cpu });
                }
                // Without torch nothing says which is loaded: any that serves may be.
                Choice::Unknown { why } => cause = Some(ComponentCause::VariantUnknown(why)),
            }
        }
    }
    (files, note, cause)
}

/// A component judged by its code alone; `None` where it has none.
pub fn component<'a>(
    index: usize,
    role: Role,
    evidence: &'a Evidence,
    host: &Host,
    catalog: &Catalog,
) -> Option<ComponentCase<'a>> {
    let rows = catalog.components();
    let (mut files, mut note, cause) = loaded(index, evidence, host, catalog);
    // Damage without any device code says nothing about GPUs, unless the file stands alone or among GPU code.
    let alone = evidence.files.len() == 1;
    let among = files.iter().any(|f| f.facts.has_device_code()) || role == Role::Core;
    files.retain(|f| f.facts.has_device_code() || alone || among);
    let binaries = files.iter().flat_map(|f| &f.facts.modules).any(|m| m.container != Container::PtxText);
    let mut judged: Vec<FileCase<'a>> = Vec::new();
    let mut loose: Vec<&EvidenceFile> = Vec::new();
    for file in files {
        if !file.facts.kind.is_elf() && file.facts.gaps.is_empty() {
            // What opens an archive of kernels is judged by it.
            if file.facts.kind != FileKind::Kpack {
                loose.push(file);
            }
            continue;
        }
        let modules = match kpack::modules(file, evidence, host.device) {
            Some(Ok(modules)) => Cow::Owned(modules),
            Some(Err(archives)) => {
                let judgement = Judgement::without_code(Verdict::Fail, Cause::Elsewhere(archives));
                judged.push(FileCase { file, judgement });
                continue;
            }
            None => modules_that_count(file, binaries),
        };
        if modules.is_empty() && file.facts.gaps.is_empty() {
            continue;
        }
        let code = Code {
            modules: &modules,
            union: rows.union(&file.path).is_some() || rows.vendor_of_path(&file.path).is_some(),
            incomplete: file.facts.gaps.iter().find(|g| g.effect == GapEffect::File).map(|g| g.why.clone()),
        };
        judged.extend(verdict::judge(&code, host).map(|judgement| FileCase { file, judgement }));
    }
    judged.extend(loose_code(&loose, host));
    if let Some(ComponentCause::VariantUnknown(_)) = cause {
        keep_best(&mut judged);
    }
    if judged.is_empty() && !matches!(cause, Some(ComponentCause::NoVariant { .. })) {
        return None;
    }
    let mut words: Vec<Judgement> = judged.iter().map(|f| f.judgement.clone()).collect();
    let worst = verdict::component(&mut words);
    let mut counts = Counts::default();
    for (file, word) in judged.iter_mut().zip(words) {
        counts.add(word.counts);
        file.judgement = word;
    }
    let worst_file = worst.map(|i| judged[i].file);
    let (mut word, decided) = match worst {
        Some(i) => (judged[i].judgement.verdict, ComponentCause::Code(judged[i].judgement.cause.clone())),
        None => (Verdict::Ok, ComponentCause::Code(Cause::Fits)),
    };
    let mut decided = decided;
    match cause {
        Some(missing @ ComponentCause::NoVariant { cpu, .. }) => {
            word = word.min(if cpu { Verdict::Cpu } else { Verdict::Fail });
            decided = missing;
        }
        Some(ComponentCause::VariantUnknown(why)) => note = Some(why),
        _ => {}
    }
    judged.sort_by(|a, b| (a.judgement.verdict, &a.file.path).cmp(&(b.judgement.verdict, &b.file.path)));
    Some(ComponentCase {
        index,
        role,
        verdict: word,
        cause: decided,
        worst: worst_file,
        files: judged,
        counts,
        note,
        problem: None,
    })
}

/// A component with its files and no judgement: for what does not depend on a target.
pub fn bare<'a>(index: usize, role: Role, evidence: &'a Evidence, catalog: &Catalog) -> ComponentCase<'a> {
    let component = &evidence.components[index];
    let rows = catalog.components();
    // Which variant is loaded depends on the target; what each needs says nothing of the package.
    let fixed = |f: &&EvidenceFile| !rows.is_variant(&component.name, component.version.as_deref(), &f.path);
    let own = |f: &&EvidenceFile| f.component == Some(index) && super::roles::counts(f, catalog);
    let files = evidence.files.iter().filter(own).filter(fixed);
    let judgement = Judgement::without_code(Verdict::Ok, Cause::Fits);
    ComponentCase {
        files: files.map(|file| FileCase { file, judgement: judgement.clone() }).collect(),
        ..ComponentCase::empty(index, role)
    }
}

/// A file's modules, less PTX that stands as text in a library whose package has compiled code: such text is a probe
/// or a template (cuDNN and TensorFlow carry some), not what the package runs.
fn modules_that_count(file: &EvidenceFile, binaries: bool) -> Cow<'_, [Module]> {
    let text = |m: &Module| m.container == Container::PtxText;
    if binaries && file.facts.kind.is_elf() && file.facts.modules.iter().any(text) {
        return Cow::Owned(file.facts.modules.iter().filter(|m| !text(m)).cloned().collect());
    }
    Cow::Borrowed(&file.facts.modules)
}

/// Loose cubins, fatbins and PTX files are picked by name by whatever loads them: judged by their union.
fn loose_code<'a>(files: &[&'a EvidenceFile], host: &Host) -> Option<FileCase<'a>> {
    let first = *files.first()?;
    let modules: Vec<_> = files.iter().flat_map(|f| f.facts.modules.iter().cloned()).collect();
    let union = files.len() > 1 || modules.iter().all(|m| verdict::is_one_choice(m.container));
    let judgement = verdict::judge(&Code { modules: &modules, union, incomplete: None }, host)?;
    Some(FileCase { file: first, judgement })
}

/// Of variants that cannot be told apart, the one that serves best speaks; of equal ones the first, which is built for
/// the oldest release.
fn keep_best(judged: &mut Vec<FileCase<'_>>) {
    if let Some(best) = (0..judged.len()).rev().max_by_key(|&i| judged[i].judgement.verdict) {
        judged.swap(0, best);
        judged.truncate(1);
    }
}

/// `torch.version.cuda`, `.hip`, `.xpu`.
fn torch_build(evidence: &Evidence) -> TorchBuild {
    let claim = |kind| evidence.claim("torch", kind).map(|c| c.value.as_str());
    // `6.4.43482-0f2d60242` is 6.4.
    let pair = |value: &str| {
        let mut parts = value.split('.').map(|p| p.parse().ok());
        Some((parts.next()??, parts.next()??))
    };
    TorchBuild {
        cuda: evidence.cuda_of("torch").map(|v| (v.major, v.minor)),
        hip: claim(ClaimKind::Rocm).and_then(pair),
        xpu: claim(ClaimKind::Xpu).and_then(|v| Some((v.get(..4)?.parse().ok()?, 0))),
    }
}

/// The target's word: the worst that counts, and its one line.
fn sum(case: &TargetCase<'_>, allow_gaps: bool) -> (Verdict, String) {
    let mut words: Vec<(Verdict, u8, String)> = Vec::new();
    let unread = case.evidence.gaps.iter().find(|g| g.effect == GapEffect::Image);
    if let Some(gap) = unread.filter(|_| !allow_gaps) {
        return (Verdict::Unknown, format!("the image could not be read whole: {}", words::gap(gap)));
    }
    let unread = if unread.is_some() { ", in what could be read" } else { "" };
    let through = match case.compat.as_ref().and_then(|c| c.driver()) {
        Some(library) => format!(", through the forward-compat library {library}"),
        None => String::new(),
    };
    for problem in case.problems.iter().filter(|p| p.verdict < Verdict::Ok) {
        let what = match problem.component {
            Some(index) => {
                format!("{}: {}", words::component(&case.evidence.components[index]), problem.message)
            }
            None => problem.message.clone(),
        };
        words.push((problem.verdict, 0, what));
    }
    for component in case.components.iter().filter(|c| c.has_code()) {
        let (verdict, order) = match component.role {
            Role::Core => (component.verdict, 1),
            Role::Optional => (component.verdict.max(Verdict::Warn), 2),
            Role::Idle => continue,
        };
        words.push((verdict, order, words::why(case, component)));
    }
    words.sort_by_key(|(verdict, order, _)| (*verdict, *order));
    match words.into_iter().next() {
        Some((verdict, order, why)) if order > 0 => (verdict, format!("{why}{through}{unread}")),
        Some((verdict, _, why)) => (verdict, format!("{why}{unread}")),
        None => (Verdict::Ok, format!("{}{unread}", words::nothing(case.evidence))),
    }
}
