//! `--policy`: judged by what is kept apart from what is judged.

use std::io;
use std::path::Path;

use super::args::PolicyArgs;
use super::bounded;
use super::error::CliError;
use super::fleet;
use super::output::Screen;
use crate::catalog::Catalog;
use crate::config::Fleet;
use crate::image::fetch;
use crate::image::sources::OpenOptions;
use crate::lint;
use crate::model::Digest;
use crate::report::lint::LintReport;
use crate::report::{PolicyReport, Report};

/// The most bytes of a policy.
const MOST_BYTES: u64 = 4 << 20;

/// What is judged by, and where it is from.
pub struct Chosen {
    pub fleet: Fleet,
    pub policy: Option<PolicyReport>,
}

/// What a command line says of the fleet.
pub struct Asked<'a> {
    pub policy: &'a PolicyArgs,
    pub fleet: Option<&'a Path>,
    pub targets: &'a [String],
}

/// The policy, where one is named: then the fleet's own file is only held against it. Else the fleet.
pub fn choose(
    asked: &Asked<'_>,
    open: &OpenOptions,
    catalog: &Catalog,
    screen: &Screen,
) -> Result<Chosen, CliError> {
    let mut chosen = fleet_of(asked, open, catalog, screen)?;
    if let Some(waivers) = &asked.policy.waivers {
        chosen.fleet.add_waivers(waivers)?;
    }
    fleet::warn_of_unknown_rules(&chosen.fleet, screen);
    Ok(chosen)
}

fn fleet_of(asked: &Asked<'_>, open: &OpenOptions, catalog: &Catalog, screen: &Screen) -> Result<Chosen, CliError> {
    let own = |screen| fleet::choose(asked.fleet, asked.targets, catalog, screen);
    let Some(place) = asked.policy.policy.as_deref() else {
        return Ok(Chosen { fleet: own(screen)?, policy: None });
    };
    let bytes = read(place, open)?;
    let digest = Digest::of(&bytes);
    let text = String::from_utf8(bytes)
        .map_err(|_| CliError::read(Path::new(place), io::Error::other("is no text, so no policy")))?;
    let mut fleet = Fleet::parse(&text, place, catalog)?;
    fleet.is_policy = true;
    let weakened = match fleet::beside(asked.fleet, catalog) {
        Ok(Some(own)) => {
            if fleet.targets.is_empty() && asked.targets.is_empty() {
                // What the policy leaves open.
                fleet.targets.clone_from(&own.targets);
            }
            lint::weakened(&fleet, &own)
        }
        Ok(None) => Vec::new(),
        // It does not count, so that it cannot be read is no reason to stop.
        Err(e) => vec![format!("it cannot be read: {}", e.to_string().lines().next().unwrap_or_default())],
    };
    fleet::add_targets(&mut fleet, asked.targets, catalog)?;
    Ok(Chosen { fleet, policy: Some(PolicyReport { digest, weakened }) })
}

impl Chosen {
    /// Tells what the policy kept from counting.
    pub fn tell(policy: &PolicyReport, screen: &Screen) {
        for what in &policy.weakened {
            screen.notice(&format!("the policy counts, not what is beside the change: {what}"));
        }
    }
}

/// Tells a report what it was judged by, and which comments did not count.
pub fn add_to(report: &mut Report, policy: &PolicyReport, screen: &Screen) {
    report.policy = Some(with(policy, &report.overruled, screen));
}

/// The same of a report of Dockerfiles.
pub fn add_to_files(report: &mut LintReport, policy: &PolicyReport, screen: &Screen) {
    report.policy = Some(with(policy, &report.overruled, screen));
}

fn with(policy: &PolicyReport, overruled: &[String], screen: &Screen) -> PolicyReport {
    for what in overruled {
        screen.notice(&format!("the policy counts: {what}"));
    }
    PolicyReport { digest: policy.digest, weakened: [&policy.weakened[..], overruled].concat() }
}

fn read(place: &str, open: &OpenOptions) -> Result<Vec<u8>, CliError> {
    if place.starts_with("https://") || place.starts_with("http://") {
        return Ok(fetch(place, MOST_BYTES, "the policy", open)?);
    }
    let path = Path::new(place);
    let read = bounded::read(path, MOST_BYTES).map_err(|e| CliError::read(path, e))?;
    read.ok_or_else(|| CliError::read(path, io::Error::other("larger than 4 MiB, which no policy is")))
}
