//! Rules of Dockerfiles: what a file asks for, held against the fleet and the tables.
//!
//! One file a rule: a function over [`Lint`] that pushes what it [`Found`]. It never opens a file. Of what is not
//! known it makes no error: [`Found::error`] is for values that are
//! [`Value::Known`](crate::dockerfile::value::Value::Known).

mod amd;
mod arch_settings;
mod archs;
mod ask;
mod base;
mod builds;
pub mod config;
mod copies;
mod driver;
mod environment;
mod found;
mod ignore;
pub mod image;
#[cfg(test)]
pub mod lab;
mod layers;
mod own;
mod report;
mod reproducible;
mod system;
mod wheels;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use arch_settings::ArchSetting;
pub use archs::{Archs, write_list};
pub use ask::Set;
pub use builds::{Build, By, Reads};
pub use environment::pair_removed;
pub use found::{Fix, Found};
pub use layers::instructions as instructions_of_layers;
pub use report::{FileReport, Levels, add_to, file, join, levels, overrule_comments};

use crate::catalog::Catalog;
use crate::dockerfile::commands::Asks;
use crate::dockerfile::reading::Reading;
use crate::model::{Evidence, Maker, Severity, Target};

/// What a rule may look at.
pub struct Lint<'a> {
    pub reading: &'a Reading,
    /// What installers were asked for.
    pub asks: &'a Asks,
    /// The fleet's GPUs of NVIDIA; empty where none was named.
    pub targets: Vec<Target>,
    /// Those of other makers.
    pub others: Vec<Target>,
    pub catalog: &'a Catalog,
    /// The image that the file made, where it was scanned.
    pub image: Option<&'a Evidence>,
}

impl<'a> Lint<'a> {
    pub fn new(
        reading: &'a Reading,
        asks: &'a Asks,
        targets: &[Target],
        catalog: &'a Catalog,
        image: Option<&'a Evidence>,
    ) -> Self {
        let (targets, others) = targets.iter().cloned().partition(|t| t.maker() == Maker::Nvidia);
        Self { reading, asks, targets, others, catalog, image }
    }

    /// AMD's GPUs of the fleet.
    pub fn amd(&self) -> impl Iterator<Item = &Target> {
        self.others.iter().filter(|t| t.maker() == Maker::Amd)
    }
}

/// What a rule cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The file alone.
    File,
    /// GPUs of NVIDIA to run on.
    Target,
    /// GPUs of AMD to run on.
    AmdTarget,
    /// GPUs with their drivers.
    Driver,
    /// The image, scanned.
    Image,
}

/// One rule of Dockerfiles.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Kebab-case, names the problem.
    pub id: &'static str,
    /// At its worst.
    pub severity: Severity,
    pub needs: Needs,
    /// Whether it speaks without being asked for (`[rules]` of imagelint.toml, `--rule`).
    pub on: bool,
    /// Whether an image's config alone can answer it too.
    pub config: bool,
    pub summary: &'static str,
    /// Markdown: what, why, example, fix, limits.
    pub page: &'static str,
    pub run: fn(&Lint<'_>, &mut Vec<Found>),
}

/// A rule whose function is `MODULE::check` and whose page is `rules/lints/ID.md`.
macro_rules! check {
    ($module:ident, $id:literal, $severity:ident, $needs:ident, $on:literal, config, $summary:literal) => {
        Check { config: true, ..check!($module, $id, $severity, $needs, $on, $summary) }
    };
    ($module:ident, $id:literal, $severity:ident, $needs:ident, $on:literal, $summary:literal) => {
        Check {
            config: false,
            id: $id,
            severity: Severity::$severity,
            needs: Needs::$needs,
            on: $on,
            summary: $summary,
            page: include_str!(concat!("../../../../rules/lints/", $id, ".md")),
            run: $module::check,
        }
    };
}
use check;

/// All rules of Dockerfiles, by id.
pub static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(|| {
    let groups = [
        amd::CHECKS,
        archs::CHECKS,
        base::CHECKS,
        driver::CHECKS,
        environment::CHECKS,
        own::CHECKS,
        reproducible::CHECKS,
        system::CHECKS,
        wheels::CHECKS,
    ];
    let mut all: Vec<Check> = groups.concat();
    all.sort_by_key(|c| c.id);
    all
});

/// Whether a rule is about the device code that comes into the image: lists of architectures, wheels, bases.
pub fn is_of_code(rule: &str) -> bool {
    [archs::CHECKS, base::CHECKS, wheels::CHECKS].into_iter().flatten().any(|c| c.id == rule)
}

/// How loud a rule was asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loudness {
    Off,
    /// At its own severities.
    On,
    /// At this one, whatever it found.
    At(Severity),
}

/// Runs every rule that is on. What it finds comes in the order of the file, then of the rules' ids.
pub fn run(lint: &Lint<'_>, asked: &BTreeMap<String, Loudness>) -> Vec<(&'static Check, Found)> {
    let mut out = Vec::new();
    for check in CHECKS.iter() {
        let loudness = asked.get(check.id).copied().unwrap_or(if check.on { Loudness::On } else { Loudness::Off });
        if loudness == Loudness::Off || !can_run(check.needs, lint) {
            continue;
        }
        let mut found = Vec::new();
        (check.run)(lint, &mut found);
        for mut found in found {
            if let Loudness::At(severity) = loudness {
                found.severity = severity;
            }
            out.push((check, found));
        }
    }
    out.sort_by(|(a, x), (b, y)| (x.span, a.id, &x.message).cmp(&(y.span, b.id, &y.message)));
    out.dedup_by(|(a, x), (b, y)| a.id == b.id && x == y);
    out
}

fn can_run(needs: Needs, lint: &Lint<'_>) -> bool {
    match needs {
        Needs::File => true,
        Needs::Target => !lint.targets.is_empty(),
        Needs::AmdTarget => lint.amd().next().is_some(),
        Needs::Driver => lint.targets.iter().any(|t| t.driver.is_some()),
        Needs::Image => lint.image.is_some(),
    }
}
