//! Of an index's files of a package, the one that an installer would take; or which wish none of them fulfils.

use std::collections::BTreeSet;
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

use super::Question;
use super::page::Link;
use super::tags::{self, Asks};
use super::wheel_name::WheelName;
use crate::model::{Libc, package_name};

/// Versions or tags listed in an answer.
const LISTED: usize = 6;

/// The wheel to look at.
#[derive(Debug, Clone)]
pub struct Chosen {
    pub link: Link,
    pub name: WheelName,
}

struct Candidate {
    link: Link,
    name: WheelName,
}

/// `Err`: what the index has instead, to be read after "… has".
pub fn choose(question: &Question, links: Vec<Link>) -> Result<Chosen, String> {
    let package = package_name(&question.package);
    let specifiers = VersionSpecifiers::from_str(&question.specifier)
        .map_err(|_| format!("nothing for {question}, whose version is no valid specifier"))?;
    let sources = links.iter().filter(|l| !l.filename.ends_with(".whl")).count();
    let wheels: Vec<Candidate> = links
        .into_iter()
        .filter_map(|link| {
            let name = WheelName::parse(&link.filename).filter(|n| n.name == package)?;
            Some(Candidate { link, name })
        })
        .collect();
    if wheels.is_empty() {
        let instead = if sources > 0 { ", only source archives" } else { "" };
        return Err(format!("no wheel of {package}{instead}"));
    }
    let of_version = right_versions(&specifiers, wheels).map_err(|there| {
        let there = listed(there.iter().rev().map(ToString::to_string), there.len());
        format!("no wheel of {question}; there are {there}")
    })?;
    let left = keep(of_version, |c| !c.link.yanked)
        .map_err(|_| format!("of {question} only what was yanked (withdrawn by its publisher)"))?;
    let machine = tags::machine(&question.platform).unwrap_or(question.platform.architecture.as_str());
    let left = keep(left, |c| c.name.platforms.iter().any(|t| tags::machine_fits(t, &question.platform)))
        .map_err(|all| format!("no wheel of {question} for {machine}; there are {}", platforms_of(&all)))?;
    let left = keep(left, |c| platform_of(c, question).is_some()).map_err(|all| {
        let has = match &question.libc {
            Some(Libc::Glibc { version: Some(version), .. }) => format!("the image has glibc {version}"),
            Some(Libc::Glibc { .. }) => "the image has glibc".to_owned(),
            Some(Libc::Musl { .. }) => "the image has musl".to_owned(),
            None => "the image's libc is not known".to_owned(),
        };
        format!(
            "no wheel of {question} for {machine} that the image's libc carries: {has}, there are {}",
            platforms_of(&all)
        )
    })?;
    let mut left = keep(left, |c| tags::python_fit(&c.name, question.python).is_some() && allows(c, question))
        .map_err(|all| {
            let tags: BTreeSet<String> = all.iter().flat_map(|c| c.name.pythons.clone()).collect();
            let wanted = question.python.map_or("CPython 3".to_owned(), |p| p.tag());
            let there = listed(tags.iter().cloned(), tags.len());
            format!("no {wanted} wheel of {question} for {machine}; there are {there}")
        })?;
    left.sort_by(|a, b| {
        rank(a, question).cmp(&rank(b, question)).then_with(|| a.link.filename.cmp(&b.link.filename))
    });
    match left.pop() {
        Some(Candidate { link, name }) => Ok(Chosen { link, name }),
        None => Err(format!("no wheel of {question}")),
    }
}

/// The candidates of the versions asked for: pre-releases only where they are named, or where there is nothing else.
/// `Err`: all versions there are, oldest first.
fn right_versions(wanted: &VersionSpecifiers, all: Vec<Candidate>) -> Result<Vec<Candidate>, Vec<Version>> {
    let names_one = wanted.iter().any(|s| s.version().any_prerelease());
    let stable = |c: &Candidate| !c.name.version.any_prerelease();
    let matching = keep(all, |c| wanted.contains(&c.name.version)).map_err(|all| {
        let versions: BTreeSet<Version> = all.into_iter().map(|c| c.name.version).collect();
        versions.into_iter().collect::<Vec<_>>()
    })?;
    if names_one || !matching.iter().any(stable) {
        return Ok(matching);
    }
    Ok(matching.into_iter().filter(stable).collect())
}

/// What passes; all of them back where nothing does.
fn keep(all: Vec<Candidate>, passes: impl Fn(&Candidate) -> bool) -> Result<Vec<Candidate>, Vec<Candidate>> {
    match all.iter().any(&passes) {
        true => Ok(all.into_iter().filter(passes).collect()),
        false => Err(all),
    }
}

/// The best platform tag that fits.
fn platform_of(candidate: &Candidate, question: &Question) -> Option<Asks> {
    let fitting = candidate.name.platforms.iter().filter(|t| tags::machine_fits(t, &question.platform));
    fitting.map(|t| tags::asks(t)).filter(|a| tags::libc_gives(question.libc.as_ref(), *a)).max()
}

/// pip's order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'a> {
    version: &'a Version,
    python: Option<(u8, u16)>,
    platform: Option<Asks>,
    build: &'a (u64, String),
}

fn rank<'a>(c: &'a Candidate, question: &Question) -> Rank<'a> {
    Rank {
        version: &c.name.version,
        python: tags::python_fit(&c.name, question.python),
        platform: platform_of(c, question),
        build: &c.name.build,
    }
}

/// Requires-Python, where both sides are known. Of the image only X.Y is.
fn allows(candidate: &Candidate, question: &Question) -> bool {
    let (Some(wanted), Some(python)) = (&candidate.link.requires_python, question.python) else { return true };
    // What cannot be read does not keep pip from installing either.
    let Ok(wanted) = VersionSpecifiers::from_str(wanted) else { return true };
    let release = |patch| Version::new([u64::from(python.major), u64::from(python.minor), patch]);
    wanted.contains(&release(0)) || wanted.contains(&release(99))
}

fn platforms_of(all: &[Candidate]) -> String {
    let tags: BTreeSet<&str> = all.iter().flat_map(|c| c.name.platforms.iter().map(String::as_str)).collect();
    listed(tags.iter().map(|t| (*t).to_owned()), tags.len())
}

fn listed(items: impl Iterator<Item = String>, count: usize) -> String {
    let shown: Vec<String> = items.take(LISTED).collect();
    let more = count.saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    super::shown(&shown.join(", ")) + &more
}
