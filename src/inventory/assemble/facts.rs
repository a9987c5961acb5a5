//! Facts sorted by what they speak of.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::names::{installs, numbers, same_component};
use super::super::tags::tags;
use super::super::{Fact, Files, Listed, Said, normalise, pip, place};
use crate::model::{ClaimKind, Gap, ImagePath, Manager, Package, ToolkitKind};

/// A Python distribution.
pub struct Dist<'a> {
    pub site: ImagePath,
    pub name: String,
    pub version: Option<String>,
    pub files: Option<&'a Files>,
    /// From a dist-info or an egg, not from the egg-info of a source tree.
    installed: bool,
    /// What its name and version say about its build.
    pub said: Vec<Said>,
    pub said_by: ImagePath,
}

/// What a dist-info or egg-info directory says.
#[derive(Default)]
struct InfoDir<'a> {
    /// Name and version.
    told: Option<(&'a str, Option<&'a str>)>,
    files: Option<&'a Files>,
    said_by: ImagePath,
}

/// A package of a package manager.
pub struct Installed<'a> {
    pub package: &'a Package,
    pub files: &'a Files,
    /// The database or the record that lists it.
    pub said_by: ImagePath,
    /// The environment of a conda package; the root otherwise.
    pub prefix: ImagePath,
}

/// What a Python project says about its build.
pub struct Built<'a> {
    pub site: ImagePath,
    pub import: &'a str,
    pub version: Option<&'a str>,
    pub said: &'a [Said],
    pub said_by: ImagePath,
}

/// Where a file lies among Python packages.
pub struct Spot {
    pub site: ImagePath,
    /// Everything below the site belongs to a package. A directory that only holds an egg-info (a source tree)
    /// says nothing about folders it does not name.
    pub installed: bool,
    pub top: place::Top,
}

#[derive(Default)]
pub struct Facts<'a> {
    pub dists: Vec<Dist<'a>>,
    /// Distributions by site.
    sites: HashMap<ImagePath, Vec<usize>>,
    pub packages: Vec<Installed<'a>>,
    pub dpkg_files: Vec<(&'a str, &'a Files)>,
    pub built: Vec<Built<'a>>,
    /// The files that say so, whose it is, and the versions.
    pub toolkits: Vec<(ImagePath, ToolkitKind, &'a str)>,
    pub cudnn: Vec<(ImagePath, &'a str)>,
    /// Roots of conda environments.
    pub prefixes: BTreeSet<ImagePath>,
    pub gaps: Vec<Gap>,
}

impl<'a> Facts<'a> {
    pub fn gather(facts: &[(ImagePath, &'a Fact)]) -> Self {
        let mut sorted: Vec<&(ImagePath, &Fact)> = facts.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let mut out = Self::default();
        let mut dirs: BTreeMap<ImagePath, InfoDir<'_>> = BTreeMap::new();
        for (path, fact) in sorted {
            match fact {
                Fact::Python { name, version } => {
                    let single_file = path.file_name().ends_with(b".egg-info");
                    let dir = dirs.entry(if single_file { path.clone() } else { path.parent() }).or_default();
                    dir.told = Some((name, version.as_deref()));
                    dir.said_by = path.clone();
                }
                Fact::PythonFiles { files } => {
                    let dir = dirs.entry(path.parent()).or_default();
                    dir.files = Some(files);
                    if dir.told.is_none() {
                        dir.said_by = path.clone();
                    }
                    out.told_in_part(path, files);
                }
                Fact::Packages { packages, unread } => {
                    out.packages(path, packages);
                    if *unread > 0 {
                        out.gaps
                            .push(Gap::note(path.clone(), format!("{unread} of its packages could not be read")));
                    }
                }
                Fact::DpkgFiles { package, files } => {
                    out.dpkg_files.push((package, files));
                    out.told_in_part(path, files);
                }
                Fact::Built { import, version, said } => {
                    let (version, said_by) = (version.as_deref(), path.clone());
                    out.built.push(Built { site: site_of(path, import), import, version, said, said_by });
                }
                Fact::Toolkit { kind, version } => out.toolkits.push((path.clone(), *kind, version)),
                Fact::Cudnn { version } => out.cudnn.push((path.clone(), version)),
            }
        }
        for (dir, info) in dirs {
            out.distribution(&dir, info);
        }
        out.complete_versions();
        // Of two versions of one distribution in one place, the newer is what pip left last.
        out.dists.sort_by_cached_key(|d| {
            let version = d.version.as_deref().map(numbers);
            (d.site.clone(), normalise(&d.name), std::cmp::Reverse((version, d.version.clone())))
        });
        for (index, dist) in out.dists.iter().enumerate() {
            out.sites.entry(dist.site.clone()).or_default().push(index);
        }
        out
    }

    fn told_in_part(&mut self, path: &ImagePath, files: &Files) {
        if files.skipped > 0 {
            let why = format!("{} lines of its file list were not read", files.skipped);
            self.gaps.push(Gap::note(path.clone(), why));
        }
    }

    fn packages(&mut self, path: &ImagePath, packages: &'a [Listed]) {
        for Listed { package, files } in packages {
            let prefix = match package.manager {
                Manager::Conda => path.parent().parent(),
                _ => ImagePath::default(),
            };
            if package.manager == Manager::Conda {
                self.prefixes.insert(prefix.clone());
            }
            self.packages.push(Installed { package, files, said_by: path.clone(), prefix });
            self.told_in_part(path, files);
        }
    }

    fn distribution(&mut self, dir: &ImagePath, InfoDir { told, files, said_by }: InfoDir<'a>) {
        let site = dir.parent();
        if is_bundled(&site) {
            return;
        }
        let named = told
            .map(|(name, version)| (name.to_owned(), version.map(str::to_owned)))
            .or_else(|| pip::from_directory(dir));
        if let Some((name, version)) = named {
            let installed = !dir.file_name().ends_with(b".egg-info");
            let mut said = tags(&name);
            said.retain(|s| s.kind != ClaimKind::CpuOnly || name.ends_with("-cpu") || name.ends_with("_cpu"));
            said.extend(version.as_deref().and_then(|v| v.split_once('+')).into_iter().flat_map(|(_, t)| tags(t)));
            self.dists.push(Dist { site, name, version, files, installed, said, said_by });
        }
    }

    /// `torch/version.py` has the local tag (`+cu126`) that METADATA may lack.
    fn complete_versions(&mut self) {
        let says: HashMap<(&ImagePath, &str), &str> =
            self.built.iter().filter_map(|b| Some(((&b.site, b.import), b.version?))).collect();
        for dist in self.dists.iter_mut().filter(|d| d.version.as_ref().is_none_or(|v| !v.contains('+'))) {
            if let Some(version) = says.get(&(&dist.site, normalise(&dist.name).as_str())) {
                dist.version = Some((*version).to_owned());
            }
        }
    }

    /// The distribution of a site that installs an import name.
    pub fn dist_for(&self, site: &ImagePath, import: &str) -> Option<usize> {
        let dists = self.sites.get(site)?;
        let exact = dists.iter().find(|&&d| same_component(&self.dists[d].name, import));
        exact.or_else(|| dists.iter().find(|&&d| installs(&self.dists[d].name, import))).copied()
    }

    pub fn spot(&self, path: &ImagePath) -> Option<Spot> {
        let (site, installed) = self.site_over(path)?;
        let rel: Vec<&[u8]> = path.components().skip(site.components().count()).collect();
        Some(Spot { top: place::top(&rel)?, site, installed })
    }

    /// The site directory a file lies in, and whether packages are installed there.
    fn site_over(&self, path: &ImagePath) -> Option<(ImagePath, bool)> {
        let mut dir = path.clone();
        while !dir.is_root() {
            dir = dir.parent();
            if place::is_site(&dir) {
                return Some((dir, true));
            }
            if let Some(dists) = self.sites.get(&dir) {
                let installed = dists.iter().any(|&d| self.dists[d].installed);
                return Some((dir, installed));
            }
        }
        None
    }
}

/// The directory that holds the folder which a project installs.
fn site_of(path: &ImagePath, import: &str) -> ImagePath {
    let mut dir = path.parent();
    while !dir.is_root() && dir.file_name() != import.as_bytes() {
        dir = dir.parent();
    }
    dir.parent()
}

/// Whether a distribution is a copy inside another one (`setuptools/_vendor`), which pip does not list either.
fn is_bundled(site: &ImagePath) -> bool {
    let parts: Vec<&[u8]> = site.components().collect();
    let last = parts.len().saturating_sub(1);
    let egg = site.file_name().ends_with(b".egg");
    parts.iter().enumerate().any(|(at, part)| match *part {
        b"site-packages" | b"dist-packages" => at < last && !egg,
        b"_vendor" | b"_vendored" => true,
        _ => false,
    })
}
