//! Which targets a command line means, and `imagelint fleet`.

mod error;
pub mod host;
mod instances;
pub mod nodes;
mod preset;
pub mod show;

use std::path::Path;

pub use self::error::FleetError;
use super::args::{FleetArgs, FleetSource};
use super::error::CliError;
use super::output::Screen;
use crate::catalog::Catalog;
use crate::config::{self, Fleet, TargetError};
use crate::model::Platform;

pub fn run(args: &FleetArgs, screen: &Screen) -> Result<u8, CliError> {
    match &args.source {
        FleetSource::FromNodes(args) => nodes::run(args, screen),
        FleetSource::FromInstances(args) => instances::run(args, screen),
        FleetSource::FromHost(args) => host::run(args, screen),
        FleetSource::Preset(args) => preset::run(args, screen),
        FleetSource::Presets(args) => preset::presets(args, screen),
    }
}

/// `--fleet`, else the nearest imagelint.toml. Targets on the command line join those of `--fleet`, and stand in for
/// those of a file that was merely found.
pub fn choose(
    file: Option<&Path>,
    targets: &[String],
    catalog: &Catalog,
    screen: &Screen,
) -> Result<Fleet, CliError> {
    let found = match file {
        Some(_) => None,
        None => std::env::current_dir().ok().and_then(|here| config::find_upward(&here)),
    };
    let mut fleet = match file.or(found.as_deref()) {
        Some(path) => Fleet::load(path, catalog)?,
        None => Fleet::default(),
    };
    if found.is_some() {
        if targets.is_empty() && !fleet.targets.is_empty() {
            screen.notice("judged for the targets of imagelint.toml, found here or in a folder above");
        } else if !targets.is_empty() {
            fleet.targets.clear();
        }
    }
    add_targets(&mut fleet, targets, catalog)?;
    Ok(fleet)
}

/// The file that would count by itself: the one that is named, or the nearest imagelint.toml.
pub fn beside(file: Option<&Path>, catalog: &Catalog) -> Result<Option<Fleet>, CliError> {
    let found = std::env::current_dir().ok().and_then(|here| config::find_upward(&here));
    let path = file.or(found.as_deref());
    Ok(path.map(|path| Fleet::load(path, catalog)).transpose()?)
}

/// Adds the targets of the command line.
pub fn add_targets(fleet: &mut Fleet, targets: &[String], catalog: &Catalog) -> Result<(), CliError> {
    for target in config::parse_targets(targets.iter().map(String::as_str), catalog)? {
        if fleet.targets.iter().any(|t| t.name == target.name) {
            return Err(TargetError::Twice { text: target.name }.into());
        }
        fleet.targets.push(target);
    }
    Ok(())
}

pub fn warn_of_unknown_rules(fleet: &Fleet, screen: &Screen) {
    for rule in fleet.levels.keys().chain(fleet.waivers.iter().map(|w| &w.rule)) {
        if !crate::lint::RULES.iter().any(|r| r.id == rule) {
            screen.notice(&format!("fleet file: this version has no rule `{rule}`"));
        }
    }
}

/// Platforms that the targets would take of an index.
pub fn platforms(fleet: &Fleet) -> Vec<Platform> {
    let mut wanted = Vec::new();
    for target in &fleet.targets {
        let platform = target.platforms.first().cloned().unwrap_or_default();
        if !wanted.contains(&platform) {
            wanted.push(platform);
        }
    }
    // The default alone is no wish: an image that has another platform only is judged on that.
    if wanted == [Platform::default()] {
        wanted.clear();
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(targets: &[&str]) -> Vec<String> {
        let targets = config::parse_targets(targets.iter().copied(), Catalog::embedded()).unwrap();
        platforms(&Fleet::of_targets(targets)).iter().map(Platform::to_string).collect()
    }

    #[test]
    fn platforms_are_asked_for_only_where_something_says_so() {
        assert!(wanted(&[]).is_empty());
        assert!(wanted(&["a100@535", "t4"]).is_empty());
        assert_eq!(wanted(&["a100", "Jetson Thor"]), ["linux/amd64", "linux/arm64"]);
        assert_eq!(wanted(&["Jetson Thor"]), ["linux/arm64"]);
    }
}
