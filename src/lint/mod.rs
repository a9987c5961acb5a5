//! Rules: what is said of judged targets. Rules read evidence and never open a file.

mod amd;
mod amd_served;
mod baseline;
mod case;
mod compilers;
mod devices;
pub mod dockerfile;
mod driver_files;
mod environment;
mod findings;
mod forward;
mod gate;
mod gfx_compilers;
#[cfg(test)]
mod golden;
mod host;
mod intel;
mod kpack;
#[cfg(test)]
pub(crate) mod lab;
mod libraries;
mod outline;
mod policy;
mod problem;
mod report;
mod roles;
mod rules;
mod sizes;
mod stale;
pub mod verdicts;
mod waive;
mod words;

pub use baseline::Baseline;
pub use case::{ComponentCase, ComponentCause, FileCase, TargetCase};
pub use outline::{Coverage, Outline, outline};
pub use policy::weakened;
pub use problem::{Problem, Remedy};
pub use roles::counts;
pub use rules::{RULES, Rule};
pub use sizes::sizes;
pub use words::component as component_label;

use crate::catalog::Catalog;
use crate::config::{Date, Fleet, Waiver};
use crate::model::{Evidence, Finding, GapEffect, Severity, Target, Verdict};

use crate::report::{ComponentReport, Report, Role, TargetReport};

/// An image of one platform, with the roles of its components and what is wrong with it on any target.
type Judged<'a> = (&'a Evidence, &'a [Role], &'a [Problem]);

/// How to judge.
#[derive(Debug, Clone, Copy)]
pub struct JudgeOptions {
    /// Judge what was read even where something was not.
    pub allow_gaps: bool,
    /// The day that waivers and the catalog's age are held against.
    pub today: Date,
    /// No Dockerfile is at hand: rules of Dockerfiles that the image's config can answer are held against that.
    pub config: bool,
}

/// When findings make the run fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailOn {
    #[default]
    Error,
    Warning,
    Note,
    Never,
}

/// Judges the evidence of an image (one per platform) against a fleet.
pub fn judge(evidence: &[Evidence], fleet: &Fleet, catalog: &Catalog, options: &JudgeOptions) -> Report {
    let (targets, required) = (&fleet.targets[..], &fleet.required_components[..]);
    let subject = Subject { evidence, targets, required, catalog, allow_gaps: options.allow_gaps };
    subject.judged(|images, cases| {
        let plan = crate::plan::plan(&subject, cases);
        report_of(images, cases, plan, fleet, catalog, options)
    })
}

/// What is judged, against what.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// One per platform.
    pub evidence: &'a [Evidence],
    pub targets: &'a [Target],
    /// Components that count as core.
    pub required: &'a [String],
    pub catalog: &'a Catalog,
    pub allow_gaps: bool,
}

impl Subject<'_> {
    /// Judges each target, and hands what was judged on.
    pub fn cases<R>(&self, then: impl FnOnce(&[TargetCase<'_>]) -> R) -> R {
        self.judged(|_, cases| then(cases))
    }

    fn judged<R>(&self, then: impl FnOnce(&[Judged<'_>], &[TargetCase<'_>]) -> R) -> R {
        let Self { evidence, catalog, .. } = *self;
        let roles: Vec<_> = evidence.iter().map(|e| roles::roles(e, catalog, self.required)).collect();
        let mut common: Vec<_> =
            evidence.iter().zip(&roles).map(|(e, r)| libraries::problems(e, r, catalog)).collect();
        if self.targets.is_empty() {
            for (problems, evidence) in common.iter_mut().zip(evidence) {
                problems.extend(driver_files::without_target(evidence));
            }
        }
        let images: Vec<_> =
            evidence.iter().zip(&roles).zip(&common).map(|((e, r), p)| (e, &r[..], &p[..])).collect();
        let one = |t| case::judge(t, &images, catalog, self.allow_gaps);
        let mut cases: Vec<TargetCase<'_>> = self.targets.iter().filter_map(one).collect();
        forward::tell_who_needs_it(&mut cases, catalog);
        then(&images, &cases)
    }
}

fn report_of(
    images: &[Judged<'_>],
    cases: &[TargetCase<'_>],
    plan: crate::report::Plan,
    fleet: &Fleet,
    catalog: &Catalog,
    options: &JudgeOptions,
) -> Report {
    let mut findings = findings::all(cases, images, fleet, &plan, options.allow_gaps);
    if options.config {
        let levels = dockerfile::levels(fleet);
        let of_config = |e| dockerfile::config::findings(e, &fleet.targets, catalog, &levels);
        findings.extend(images.iter().map(|i| i.0).flat_map(of_config));
    }
    findings.extend(stale::finding(catalog, fleet, options.today));
    // Rules of Dockerfiles have no say here.
    let of_images = |w: &Waiver| rules::find(&w.rule).is_none_or(|r| r.needs.is_none());
    let (findings, waived) = waive::apply(findings, fleet, options.today, "", &of_images);
    let mut report = report::build(images, cases, findings, plan, catalog, options.allow_gaps);
    report.waived = waived;
    let off = |r: &rules::Rule| matches!(fleet.levels.get(r.id), Some(crate::config::Level::Off));
    let against = |r: &rules::Rule| r.needs.is_none() && !off(r);
    report.rules = rules::texts(against, report.findings.iter().chain(&report.waived));
    report
}

/// The report of single files, without image and targets.
pub fn inspect(evidence: &[Evidence], catalog: &Catalog) -> Report {
    report::of_files(evidence, catalog)
}

/// Why the run could not answer, one line each; empty when it could, or when gaps are allowed.
pub fn unanswered(report: &Report, allow_gaps: bool) -> Vec<String> {
    if allow_gaps {
        return Vec::new();
    }
    let gaps = report.gaps.iter().filter(|g| g.effect == GapEffect::Image);
    let unread: Vec<String> =
        gaps.map(|g| format!("the image could not be read whole: {}", words::gap(g))).collect();
    if !unread.is_empty() {
        return unread;
    }
    let undecided = report.targets.iter().flatten().filter(|t| t.required).flat_map(|t| {
        let core = t.components.iter().filter(|c| is_undecided(c));
        core.map(|c| format!("{} could not be decided for {}: {}", c.name, t.name, c.why))
    });
    undecided.collect()
}

fn is_undecided(component: &ComponentReport) -> bool {
    component.role == Role::Core && component.verdict == Verdict::Unknown
}

/// The run's exit status: 0 clean, 1 findings at or above `fail_on`, 2 the question could not be answered.
pub fn exit_code(report: &Report, fail_on: FailOn, allow_gaps: bool) -> u8 {
    if !allow_gaps {
        let unread = report.gaps.iter().any(|g| g.effect == GapEffect::Image);
        let undecided = |t: &TargetReport| t.verdict == Verdict::Unknown || t.components.iter().any(is_undecided);
        let undecided = report.targets.iter().flatten().any(|t| t.required && undecided(t));
        if unread || undecided {
            return 2;
        }
    }
    exit_code_of(&report.findings, fail_on)
}

/// 0 or 1, by findings alone.
pub fn exit_code_of(findings: &[Finding], fail_on: FailOn) -> u8 {
    let least = match fail_on {
        FailOn::Error => Severity::Error,
        FailOn::Warning => Severity::Warning,
        FailOn::Note => Severity::Note,
        FailOn::Never => return 0,
    };
    u8::from(findings.iter().any(|f| f.severity >= least))
}
