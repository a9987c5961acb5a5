//! Who owns a file: the package that lists it, or else the place it lies in.

use std::collections::{BTreeMap, HashMap};

use super::super::{Files, hash, place};
use super::Naming;
use super::facts::{Dist, Facts, Spot};
use crate::model::{Component, ImagePath, Manager};

/// What a component is told apart by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    Dist(usize),
    /// A package of the system, or of a conda environment.
    Package {
        manager: Manager,
        name: String,
        /// The environment; the root otherwise.
        prefix: ImagePath,
    },
    Place {
        name: String,
        root: ImagePath,
    },
}

/// The component of each file, in this order: what pip's RECORD lists, what conda lists, what the system's package
/// managers list; and what nobody lists is named by its place.
pub fn keys(facts: &Facts<'_>, files: &[ImagePath], naming: &dyn Naming) -> Vec<Key> {
    let mut owners = Owners::new(facts, files);
    owners.listed_by_pip();
    owners.listed_by_conda();
    owners.also_in_a_merged_usr();
    for (name, files) in &facts.dpkg_files {
        owners.claim(files, &system(Manager::Dpkg, name), &|_| true);
    }
    for manager in [Manager::Dpkg, Manager::Rpm, Manager::Apk] {
        for package in facts.packages.iter().filter(|p| p.package.manager == manager) {
            owners.claim(package.files, &system(manager, &package.package.name), &|_| true);
        }
    }
    owners.named(naming)
}

fn system(manager: Manager, name: &str) -> Key {
    Key::Package { manager, name: name.to_owned(), prefix: ImagePath::default() }
}

/// Owners of folders by site and name; `None`: several distributions share it.
type Folders<'a> = HashMap<(&'a ImagePath, &'a str), Option<usize>>;

struct Owners<'a> {
    facts: &'a Facts<'a>,
    files: &'a [ImagePath],
    spots: Vec<Option<Spot>>,
    keys: Vec<Option<Key>>,
    by_hash: HashMap<u64, Vec<usize>>,
}

impl<'a> Owners<'a> {
    fn new(facts: &'a Facts<'a>, files: &'a [ImagePath]) -> Self {
        let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, path) in files.iter().enumerate() {
            by_hash.entry(hash(path.as_bytes())).or_default().push(index);
        }
        let spots = files.iter().map(|path| facts.spot(path)).collect();
        Self { facts, files, spots, keys: vec![None; files.len()], by_hash }
    }

    fn claim(&mut self, listed: &Files, key: &Key, may: &dyn Fn(Option<&Spot>) -> bool) {
        for &file in listed.hashes.iter().filter_map(|h| self.by_hash.get(h)).flatten() {
            if self.keys[file].is_none() && may(self.spots[file].as_ref()) {
                self.keys[file] = Some(key.clone());
            }
        }
    }

    fn listed_by_pip(&mut self) {
        for (index, dist) in self.facts.dists.iter().enumerate() {
            if let Some(files) = dist.files {
                self.claim(files, &Key::Dist(index), &|_| true);
            }
        }
    }

    /// A Python package of conda is a distribution too, though perhaps one without a RECORD: there the distribution's
    /// name is the one that everybody knows (`torch`, not `pytorch`).
    fn listed_by_conda(&mut self) {
        let facts = self.facts;
        let may = |spot: Option<&Spot>| spot.is_none_or(|s| facts.dist_for(&s.site, &s.top.name).is_none());
        for package in facts.packages.iter().filter(|p| p.package.manager == Manager::Conda) {
            let (name, prefix) = (package.package.name.clone(), package.prefix.clone());
            self.claim(package.files, &Key::Package { manager: Manager::Conda, name, prefix }, &may);
        }
    }

    /// With a merged /usr, lists may say `/lib/x` where the tree has `usr/lib/x`, and the other way round.
    fn also_in_a_merged_usr(&mut self) {
        for (index, path) in self.files.iter().enumerate() {
            let bytes = path.as_bytes();
            let other = match bytes.strip_prefix(b"usr/") {
                Some(rest) => hash(rest),
                None => hash(&[b"usr/", bytes].concat()),
            };
            self.by_hash.entry(other).or_default().push(index);
        }
    }

    /// The rest is named by its place.
    fn named(self, naming: &dyn Naming) -> Vec<Key> {
        // A folder whose other files one distribution lists is that distribution's.
        let mut folders: Folders<'_> = HashMap::new();
        for (key, spot) in self.keys.iter().zip(&self.spots) {
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
            None => self.place(&self.files[at], self.spots[at].as_ref(), &folders, naming),
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
pub fn components(facts: &Facts<'_>, files: &[ImagePath], keys: &[Key]) -> (Vec<Component>, Vec<Option<usize>>) {
    let versions = Versions::new(facts);
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
                Key::Package { manager, name, prefix } => {
                    let version = versions.of(*manager, name, prefix);
                    let root = if *manager == Manager::Conda { prefix.clone() } else { shared };
                    Component { name: name.clone(), version, manager: *manager, root }
                }
                Key::Place { name, root } => {
                    let built = facts.built.iter().find(|b| b.site == *root && b.import == name);
                    let version = built.and_then(|b| b.version).map(str::to_owned);
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

/// Versions of the package managers' packages. A name that is listed twice goes by what is listed first.
struct Versions<'a>(HashMap<(Manager, &'a str, &'a ImagePath), Option<&'a str>>);

impl<'a> Versions<'a> {
    fn new(facts: &'a Facts<'a>) -> Self {
        let row = |p: &'a super::facts::Installed<'a>| {
            ((p.package.manager, p.package.name.as_str(), &p.prefix), p.package.version.as_deref())
        };
        Self(facts.packages.iter().rev().map(row).collect())
    }

    fn of(&self, manager: Manager, name: &str, prefix: &ImagePath) -> Option<String> {
        self.0.get(&(manager, name, prefix)).copied().flatten().map(str::to_owned)
    }
}

/// The deepest directory that holds both.
fn common(a: &ImagePath, b: &ImagePath) -> ImagePath {
    let shared: Vec<&[u8]> = a.components().zip(b.components()).take_while(|(x, y)| x == y).map(|p| p.0).collect();
    ImagePath::new(shared.join(&b'/'))
}
