//! Facts joined: packages, components, and who owns which file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::names::{installs, normalise, numbers, same_component};
use super::{DpkgPackage, Fact, Files, hash, pip, place};
use crate::model::{Claim, ClaimKind, Component, Gap, ImagePath, Manager, Package};

/// Names for files that projects are known by: `flash_attn_2_cuda*.so` belongs to `flash_attn`.
pub trait Naming {
    fn component_for(&self, path: &ImagePath) -> Option<String>;
}

/// Knows no names.
#[derive(Debug, Clone, Copy)]
pub struct NoNaming;
impl Naming for NoNaming {
    fn component_for(&self, _: &ImagePath) -> Option<String> {
        None
    }
}

/// What is installed, and who owns what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Sorted, without duplicates.
    pub packages: Vec<Package>,
    /// Components that own at least one of the files; sorted by name, then root.
    pub components: Vec<Component>,
    /// For each file, its component.
    pub owner: Vec<Option<usize>>,
    /// Sorted.
    pub claims: Vec<Claim>,
    /// Metadata that was read in part.
    pub gaps: Vec<Gap>,
}

/// A Python distribution.
struct Dist<'a> {
    site: ImagePath,
    name: String,
    version: Option<String>,
    files: Option<&'a Files>,
    /// From a dist-info or an egg, not from the egg-info of a source tree.
    installed: bool,
}

/// What a dist-info or egg-info directory says.
#[derive(Default)]
struct InfoDir<'a> {
    /// Name and version.
    told: Option<(&'a str, Option<&'a str>)>,
    files: Option<&'a Files>,
}

#[derive(Default)]
struct Facts<'a> {
    dists: Vec<Dist<'a>>,
    /// Distributions by site.
    sites: HashMap<ImagePath, Vec<usize>>,
    dpkg: Vec<&'a DpkgPackage>,
    dpkg_files: Vec<(&'a str, &'a Files)>,
    /// Site, version, CUDA.
    torch: Vec<(ImagePath, Option<&'a str>, Option<&'a str>)>,
    gaps: Vec<Gap>,
}

/// Joins the facts of the merged image; `facts` go with the path they were read from, `files` are the files
/// that want an owner. The order of `facts` does not matter.
pub fn assemble(facts: &[(ImagePath, &Fact)], files: &[ImagePath], naming: &dyn Naming) -> Inventory {
    let facts = Facts::gather(facts);
    let mut owners = Owners::new(&facts, files);
    owners.listed_by_pip();
    owners.listed_by_dpkg();
    let keys = owners.named(naming);
    let (components, owner) = components(&facts, files, &keys);

    let mut packages = BTreeSet::new();
    for dist in &facts.dists {
        let name = normalise(&dist.name);
        packages.insert(Package::new(Manager::Pip, name, dist.version.clone()));
    }
    for package in &facts.dpkg {
        let (name, version) = (package.name.clone(), package.version.clone());
        packages.insert(Package::new(Manager::Dpkg, name, version));
    }
    let mut claims = BTreeSet::new();
    for (site, _, cuda) in &facts.torch {
        if let Some(cuda) = cuda {
            let dist = facts.dist_for(site, "torch").map(|d| facts.dists[d].name.clone());
            claims.insert(Claim {
                component: dist.unwrap_or_else(|| "torch".to_owned()),
                kind: ClaimKind::Cuda,
                value: (*cuda).to_owned(),
                said_by: site.join(b"torch/version.py"),
            });
        }
    }
    Inventory {
        packages: packages.into_iter().collect(),
        components,
        owner,
        claims: claims.into_iter().collect(),
        gaps: facts.gaps,
    }
}

impl<'a> Facts<'a> {
    fn gather(facts: &[(ImagePath, &'a Fact)]) -> Self {
        let mut sorted: Vec<&(ImagePath, &Fact)> = facts.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let mut out = Self::default();
        let mut dirs: BTreeMap<ImagePath, InfoDir<'_>> = BTreeMap::new();
        for (path, fact) in sorted {
            let skipped = match fact {
                Fact::Python { name, version } => {
                    let single_file = path.file_name().ends_with(b".egg-info");
                    let dir = if single_file { path.clone() } else { path.parent() };
                    dirs.entry(dir).or_default().told = Some((name, version.as_deref()));
                    0
                }
                Fact::PythonFiles { files } => {
                    dirs.entry(path.parent()).or_default().files = Some(files);
                    files.skipped
                }
                Fact::Dpkg { packages } => {
                    out.dpkg.extend(packages);
                    0
                }
                Fact::DpkgFiles { package, files } => {
                    out.dpkg_files.push((package, files));
                    files.skipped
                }
                Fact::Torch { version, cuda } => {
                    out.torch.push((path.parent().parent(), version.as_deref(), cuda.as_deref()));
                    0
                }
            };
            if skipped > 0 {
                out.gaps.push(Gap::note(path.clone(), format!("{skipped} lines of its file list were not read")));
            }
        }
        for (dir, InfoDir { told, files }) in dirs {
            let site = dir.parent();
            if is_bundled(&site) {
                continue;
            }
            let named = told
                .map(|(name, version)| (name.to_owned(), version.map(str::to_owned)))
                .or_else(|| pip::from_directory(&dir));
            if let Some((name, version)) = named {
                let installed = !dir.file_name().ends_with(b".egg-info");
                out.dists.push(Dist { site, name, version, files, installed });
            }
        }
        out.complete_torch();
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

    /// `torch/version.py` has the local tag (`+cu126`) that METADATA may lack.
    fn complete_torch(&mut self) {
        for dist in &mut self.dists {
            let says = self.torch.iter().find(|t| t.0 == dist.site).and_then(|t| t.1);
            if let Some(version) = says
                && same_component(&dist.name, "torch")
                && dist.version.as_ref().is_none_or(|v| !v.contains('+'))
            {
                dist.version = Some(version.to_owned());
            }
        }
    }

    /// The distribution of a site that installs an import name.
    fn dist_for(&self, site: &ImagePath, import: &str) -> Option<usize> {
        let dists = self.sites.get(site)?;
        let exact = dists.iter().find(|&&d| same_component(&self.dists[d].name, import));
        exact.or_else(|| dists.iter().find(|&&d| installs(&self.dists[d].name, import))).copied()
    }

    fn spot(&self, path: &ImagePath) -> Option<Spot> {
        let (site, installed) = self.site_of(path)?;
        let rel: Vec<&[u8]> = path.components().skip(site.components().count()).collect();
        Some(Spot { top: place::top(&rel)?, site, installed })
    }

    /// The site directory a file lies in, and whether packages are installed there.
    fn site_of(&self, path: &ImagePath) -> Option<(ImagePath, bool)> {
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

/// What a component is told apart by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Dist(usize),
    /// Package name of dpkg.
    Dpkg(String),
    Place {
        name: String,
        root: ImagePath,
    },
}

/// Where a file lies among Python packages.
struct Spot {
    site: ImagePath,
    /// Everything below the site belongs to a package. A directory that only holds an egg-info (a source tree)
    /// says nothing about folders it does not name.
    installed: bool,
    top: place::Top,
}

/// Owners of folders by site and name; `None`: several distributions share it.
type Folders<'a> = HashMap<(&'a ImagePath, &'a str), Option<usize>>;

struct Owners<'a> {
    facts: &'a Facts<'a>,
    files: &'a [ImagePath],
    keys: Vec<Option<Key>>,
    by_hash: HashMap<u64, Vec<usize>>,
}

impl<'a> Owners<'a> {
    fn new(facts: &'a Facts<'a>, files: &'a [ImagePath]) -> Self {
        let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, path) in files.iter().enumerate() {
            by_hash.entry(hash(path.as_bytes())).or_default().push(index);
        }
        Self { facts, files, keys: vec![None; files.len()], by_hash }
    }

    fn claim(&mut self, files: &Files, key: &Key) {
        for file in files.hashes.iter().filter_map(|h| self.by_hash.get(h)).flatten() {
            self.keys[*file].get_or_insert_with(|| key.clone());
        }
    }

    fn listed_by_pip(&mut self) {
        for (index, dist) in self.facts.dists.iter().enumerate() {
            if let Some(files) = dist.files {
                self.claim(files, &Key::Dist(index));
            }
        }
    }

    /// With a merged /usr, lists may say `/lib/x` where the tree has `usr/lib/x`, and the other way round.
    fn listed_by_dpkg(&mut self) {
        for (index, path) in self.files.iter().enumerate() {
            let bytes = path.as_bytes();
            let other = match bytes.strip_prefix(b"usr/") {
                Some(rest) => hash(rest),
                None => hash(&[b"usr/", bytes].concat()),
            };
            self.by_hash.entry(other).or_default().push(index);
        }
        for (package, files) in &self.facts.dpkg_files {
            self.claim(files, &Key::Dpkg((*package).to_owned()));
        }
    }

    /// The rest is named by its place.
    fn named(self, naming: &dyn Naming) -> Vec<Key> {
        let spots: Vec<Option<Spot>> = self.files.iter().map(|path| self.facts.spot(path)).collect();
        // A folder whose other files one distribution lists is that distribution's.
        let mut folders: Folders<'_> = HashMap::new();
        for (key, spot) in self.keys.iter().zip(&spots) {
            if let (Some(Key::Dist(dist)), Some(spot)) = (key, spot)
                && !spot.top.module
            {
                let owner = folders.entry((&spot.site, &spot.top.name)).or_insert(Some(*dist));
                if *owner != Some(*dist) {
                    *owner = None;
                }
            }
        }
        let name = |(at, key): (usize, &Option<Key>)| match key {
            Some(key) => key.clone(),
            None => self.place(&self.files[at], spots[at].as_ref(), &folders, naming),
        };
        self.keys.iter().enumerate().map(name).collect()
    }

    fn place(&self, path: &ImagePath, spot: Option<&Spot>, folders: &Folders<'_>, naming: &dyn Naming) -> Key {
        let known = naming.component_for(path);
        if let Some(Spot { site, installed, top }) = spot {
            let folder = folders.get(&(site, top.name.as_str())).copied().flatten();
            let dist = folder.or_else(|| self.facts.dist_for(site, &top.name));
            let dist = dist.or_else(|| known.as_deref().and_then(|name| self.facts.dist_for(site, name)));
            if let Some(dist) = dist {
                return Key::Dist(dist);
            }
            if *installed {
                let name = known.unwrap_or_else(|| top.name.clone());
                return Key::Place { name, root: site.clone() };
            }
        }
        let place = place::outside(path);
        Key::Place { name: known.unwrap_or(place.name), root: place.root }
    }
}

/// One component per key, sorted by name and root; and the index of each file's.
fn components(facts: &Facts<'_>, files: &[ImagePath], keys: &[Key]) -> (Vec<Component>, Vec<Option<usize>>) {
    let dpkg: HashMap<&str, &DpkgPackage> = facts.dpkg.iter().rev().map(|p| (p.name.as_str(), *p)).collect();
    let mut roots: BTreeMap<&Key, ImagePath> = BTreeMap::new();
    for (key, path) in keys.iter().zip(files) {
        let parent = path.parent();
        roots.entry(key).and_modify(|root| *root = common(root, &parent)).or_insert(parent);
    }
    let mut made: Vec<(&Key, Component)> = roots
        .into_iter()
        .map(|(key, shared)| {
            let component = match key {
                Key::Dist(dist) => {
                    let Dist { site, name, version, .. } = &facts.dists[*dist];
                    let (name, version) = (name.clone(), version.clone());
                    Component { name, version, manager: Manager::Pip, root: site.clone() }
                }
                Key::Dpkg(name) => {
                    let version = dpkg.get(name.as_str()).and_then(|p| p.version.clone());
                    Component { name: name.clone(), version, manager: Manager::Dpkg, root: shared }
                }
                Key::Place { name, root } => {
                    let torch = facts.torch.iter().find(|t| t.0 == *root && name == "torch");
                    let version = torch.and_then(|t| t.1).map(str::to_owned);
                    Component { name: name.clone(), version, manager: Manager::Path, root: root.clone() }
                }
            };
            (key, component)
        })
        .collect();
    made.sort_by(|(ka, a), (kb, b)| (&a.name, &a.root, a.manager, ka).cmp(&(&b.name, &b.root, b.manager, kb)));
    let numbers: BTreeMap<&Key, usize> = made.iter().enumerate().map(|(i, (key, _))| (*key, i)).collect();
    let owner = keys.iter().map(|key| numbers.get(key).copied()).collect();
    (made.into_iter().map(|(_, component)| component).collect(), owner)
}

/// The deepest directory that holds both.
fn common(a: &ImagePath, b: &ImagePath) -> ImagePath {
    let shared: Vec<&[u8]> = a.components().zip(b.components()).take_while(|(x, y)| x == y).map(|p| p.0).collect();
    ImagePath::new(shared.join(&b'/'))
}

#[cfg(test)]
mod tests;
