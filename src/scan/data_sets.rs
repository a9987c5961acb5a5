//! Data files folded into sets while the merged tree goes by: a library may have ten thousand of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Catalog;
use crate::catalog::data_libraries::DataFile;
use crate::model::{DataSet, DataTarget, Gap, GapEffect, GfxGroup, ImagePath};

/// Architectures of all sets together; a hostile image can name any number.
const MAX_TARGETS: usize = 20_000;

/// Numbers of compute units of one target.
const MAX_UNITS: usize = 64;

#[derive(Default)]
struct Target {
    indexed: bool,
    units: BTreeSet<u16>,
    files: u64,
}

struct Set {
    targets: BTreeMap<GfxGroup, Target>,
    files: u64,
    layer: Option<usize>,
    /// The first of its files: whose that is, the set is.
    first: ImagePath,
}

/// What was found so far.
pub struct Folding<'a> {
    catalog: &'a Catalog,
    sets: BTreeMap<(usize, ImagePath), Set>,
    targets: usize,
    unlisted: u64,
}

impl<'a> Folding<'a> {
    pub fn new(catalog: &'a Catalog) -> Self {
        Self { catalog, sets: BTreeMap::new(), targets: 0, unlisted: 0 }
    }

    /// A file, whatever it holds; or a link to one, which is of no layer.
    pub fn see(&mut self, path: &ImagePath, layer: Option<usize>) {
        let Some(DataFile { library, root, told, is_index }) = self.catalog.data_libraries().file(path) else {
            return;
        };
        let key = (library, ImagePath::new(root));
        let is_known = self.sets.get(&key).is_some_and(|s| told.is_none_or(|t| s.targets.contains_key(&t.arch)));
        if !is_known {
            if self.targets >= MAX_TARGETS {
                self.unlisted += 1;
                return;
            }
            self.targets += 1;
        }
        let new = || Set { targets: BTreeMap::new(), files: 0, layer, first: path.clone() };
        let set = self.sets.entry(key).or_insert_with(new);
        set.files += 1;
        set.layer = set.layer.max(layer);
        if let Some(told) = told {
            let target = set.targets.entry(told.arch).or_default();
            target.files += 1;
            target.indexed |= is_index;
            if target.units.len() < MAX_UNITS {
                target.units.extend(told.units);
            }
        }
    }

    /// The sets by root and library, each with a file whose owner owns it.
    pub fn finish(self) -> (Vec<(DataSet, ImagePath)>, Option<Gap>) {
        let gap = (self.unlisted > 0).then(|| {
            let mut gap = Gap::image(format!("{} more data files of GPU libraries are not listed", self.unlisted));
            gap.effect = GapEffect::None;
            gap
        });
        let libraries = self.catalog.data_libraries().all();
        let told = |((library, root), set): ((usize, ImagePath), Set)| {
            let targets = set.targets.into_iter().map(|(arch, target)| DataTarget {
                arch,
                indexed: target.indexed,
                units: target.units.into_iter().collect(),
                files: target.files,
            });
            let library = libraries[library].name.clone();
            let (layer, component) = (set.layer, None);
            (DataSet { library, root, targets: targets.collect(), files: set.files, layer, component }, set.first)
        };
        let mut sets: Vec<(DataSet, ImagePath)> = self.sets.into_iter().map(told).collect();
        sets.sort_by(|(a, _), (b, _)| (&a.root, &a.library).cmp(&(&b.root, &b.library)));
        (sets, gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_kept_and_not_their_files() {
        let mut folding = Folding::new(Catalog::embedded());
        for kind in 0..5_000 {
            let name = format!("opt/rocm/lib/rocblas/library/TensileLibrary_Type_{kind}_gfx90a.co");
            folding.see(&ImagePath::new(name), Some(1));
        }
        for (path, layer) in [
            ("opt/rocm/lib/rocblas/library/TensileLibrary_lazy_gfx90a.dat", 2),
            ("opt/rocm/lib/rocblas/library/TensileLibrary_lazy_gfx942.dat", 0),
            ("opt/rocm/share/miopen/db/gfx942130.db.txt", 0),
            ("opt/rocm/share/miopen/db/gfx942e4.HIP.fdb.txt", 0),
            ("opt/rocm/share/miopen/db/readme.txt", 0),
        ] {
            folding.see(&ImagePath::new(path), Some(layer));
        }
        let (sets, gap) = folding.finish();
        assert!(gap.is_none());
        let [(rocblas, first), (miopen, _)] = &sets[..] else { panic!("{sets:?}") };
        assert!(first.to_string().ends_with("Type_0_gfx90a.co"));
        assert_eq!((rocblas.library.as_str(), rocblas.files, rocblas.layer), ("rocBLAS", 5_002, Some(2)));
        let targets: Vec<(String, bool, u64)> =
            rocblas.targets.iter().map(|t| (t.arch.to_string(), t.indexed, t.files)).collect();
        assert_eq!(targets, [("gfx90a".to_owned(), true, 5_001), ("gfx942".to_owned(), true, 1)]);
        assert_eq!(miopen.targets[0].units, [228, 304]);
    }

    #[test]
    fn a_hostile_image_costs_a_bounded_number_of_sets() {
        let mut folding = Folding::new(Catalog::embedded());
        for at in 0..MAX_TARGETS + 7 {
            let name = format!("{at}/rocblas/library/TensileLibrary_lazy_gfx90a.dat");
            folding.see(&ImagePath::new(name), None);
        }
        let (sets, gap) = folding.finish();
        assert_eq!(sets.len(), MAX_TARGETS);
        assert!(gap.unwrap().why.starts_with("7 more"));
    }
}
