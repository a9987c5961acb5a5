//! The loader, simulated over the merged tree with what the catalog knows.

use std::collections::HashMap;

use super::probe::Payload;
use crate::catalog::Catalog;
use crate::catalog::loading::{Loading, Need};
use crate::image::overlay::{Seen, Steps, Tree, Unresolved};
use crate::loader::{self, Capture, Knowledge, Lookup, Opens, Place, Simulated, Subject, Told};
use crate::model::{ConfigFacts, ElfFacts, EvidenceFile, ImagePath, Package};

/// Simulates it. `numbers`: the files' numbers in the tree, by their index; members of archives have none.
pub fn simulate(
    tree: &Tree<Payload>,
    files: &[EvidenceFile],
    numbers: &[Option<u32>],
    config: &ConfigFacts,
    packages: &[Package],
    catalog: &Catalog,
) -> Simulated {
    let index = numbers.iter().enumerate().filter_map(|(file, number)| Some(((*number)?, file))).collect();
    let merged = Merged { tree, index, steps: Steps::default() };
    let known = Tables(catalog.loading(), packages);
    loader::simulate(&Subject { files, config, tree: &merged, known: &known })
}

struct Merged<'a> {
    tree: &'a Tree<Payload>,
    /// The evidence's files by their number in the tree.
    index: HashMap<u32, usize>,
    steps: Steps,
}

impl loader::Tree for Merged<'_> {
    fn root(&self) -> u32 {
        self.tree.root()
    }

    fn look(&self, from: u32, path: &[u8]) -> Option<Place> {
        let number = match self.tree.seek(from, path, &self.steps) {
            Ok(number) => number,
            Err(Unresolved::Missing) => return None,
            Err(Unresolved::Loop | Unresolved::NotADirectory | Unresolved::TooDeep) => return Some(Place::Barred),
        };
        match self.tree.seen(number)? {
            Seen::Dir => Some(Place::Dir(number)),
            Seen::File(_) => Some(self.index.get(&number).map_or(Place::Other(number), |f| Place::File(*f))),
            Seen::Special => Some(Place::Other(number)),
        }
    }

    fn list(&self, dir: u32) -> Vec<(Vec<u8>, bool)> {
        self.tree.list(dir).map(|(name, is_link)| (name.to_vec(), is_link)).collect()
    }

    fn path(&self, number: u32) -> ImagePath {
        self.tree.real_path(number)
    }

    fn captured(&self, path: &[u8]) -> Option<&Capture> {
        let number = self.tree.seek(self.tree.root(), path, &self.steps).ok()?;
        match self.tree.seen(number)? {
            Seen::File(payload) => payload.as_ref()?.loading.as_deref(),
            Seen::Dir | Seen::Special => None,
        }
    }
}

/// The catalog's rows, for the loader.
struct Tables<'a>(&'a Loading, &'a [Package]);

impl Knowledge for Tables<'_> {
    fn is_driver(&self, library: &str) -> bool {
        self.0.driver(library).is_some()
    }

    fn lookups(&self) -> Vec<Lookup<'_>> {
        let rows = self.0.lookups().iter();
        rows.map(|row| Lookup {
            name: &row.name,
            package: &row.package,
            roots: &row.roots,
            dirs: &row.dirs,
            libraries: &row.libraries,
            first: if row.loads_first(self.1) { &row.first } else { &[] },
        })
        .collect()
    }

    fn opens(&self, path: &ImagePath, elf: &ElfFacts) -> Vec<Opens> {
        let told = |need| match need {
            Need::Each => Told::Always,
            Need::Any => Told::UnlessAnother,
            Need::Optional => Told::IfFound,
        };
        self.0.opens_of(path, elf).map(|row| Opens { names: row.names(elf), told: told(row.need) }).collect()
    }

    fn family(&self, symbol: &str) -> Option<&str> {
        self.0.family(symbol)
    }
}
