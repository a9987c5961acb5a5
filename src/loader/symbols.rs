//! Versions and symbols that files of one process ask of each other, and that are not there.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{Hash, Hasher};

use super::Knowledge;
use super::process::{Process, To};
use super::search::Search;
use super::table::{Elf, Files, Name};
use crate::model::{Unmet, UnmetKind};

/// Names that are told of one library.
const MAX_NAMES: usize = 10;

/// A library that provides a family of symbols, by its number.
type Family = u16;

/// What one file wants, sorted by whom it wants it of.
#[derive(Debug, Default)]
struct Wants {
    /// The library, and the imports that name it.
    versioned: Vec<(Name, Vec<usize>)>,
    /// The family, and the imports that name no library.
    plain: Vec<(Family, Vec<usize>)>,
    /// The provider that each row of `asks`, then of `versioned`, was last compared with.
    compared: Vec<Option<u32>>,
}

/// What is known of one file beyond its facts.
#[derive(Debug)]
struct Entry {
    wants: Wants,
    /// The family that it is a library of.
    family: Option<Family>,
}

/// Comparisons over all processes, each made once.
#[derive(Default)]
pub struct Checks {
    families: Vec<String>,
    entries: Vec<Option<Box<Entry>>>,
    of_name: HashMap<Name, Option<Family>>,
    /// (file, family, providers) that were compared.
    done: HashSet<(u32, Family, u64)>,
    unmet: BTreeMap<(u32, String, u32, UnmetKind), BTreeSet<String>>,
}

impl Checks {
    pub fn new(files: &Files<'_>, known: &dyn Knowledge) -> Self {
        let mut checks = Self::default();
        for index in 0..files.all.len() as u32 {
            let entry = files.elf(index).map(|elf| Box::new(checks.entry(files, elf, known)));
            checks.entries.push(entry);
        }
        // Families are known only now.
        for index in 0..files.all.len() as u32 {
            let Some(elf) = files.elf(index) else { continue };
            let family = checks.family_of(&library_name(elf));
            if let Some(entry) = &mut checks.entries[index as usize] {
                entry.family = family;
            }
        }
        checks
    }

    fn entry(&mut self, files: &Files<'_>, elf: &Elf<'_>, known: &dyn Knowledge) -> Entry {
        let mut versioned: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
        let mut plain: BTreeMap<Family, Vec<usize>> = BTreeMap::new();
        for (i, import) in elf.facts.imports.iter().enumerate().filter(|(_, import)| !import.weak) {
            match &import.version {
                Some((library, _)) => {
                    if let Some(name) = files.names.find(library) {
                        versioned.entry(name).or_default().push(i);
                    }
                }
                None => {
                    if let Some(family) = known.family(&import.name) {
                        plain.entry(self.family(family)).or_default().push(i);
                    }
                }
            }
        }
        let wants = Wants {
            compared: vec![None; elf.asks.len() + versioned.len()],
            versioned: versioned.into_iter().collect(),
            plain: plain.into_iter().collect(),
        };
        Entry { wants, family: None }
    }

    fn family(&mut self, name: &str) -> Family {
        let at = self.families.iter().position(|f| f == name).unwrap_or_else(|| {
            self.families.push(name.to_owned());
            self.families.len() - 1
        });
        at as Family
    }

    /// The family that a library is of, by its name: `libcudnn_ops.so.9` is of `libcudnn`, `libcublasLt.so.12` is
    /// not of `libcublas`.
    fn family_of(&self, library: &str) -> Option<Family> {
        let stem = library.split(".so").next().unwrap_or_default();
        let of = |f: &String| {
            stem.strip_prefix(f.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('_') || rest.starts_with('-'))
        };
        self.families.iter().position(of).map(|at| at as Family)
    }

    /// Compares the files of a process that is loaded.
    pub fn process(&mut self, search: &Search<'_>, files: &Files<'_>, process: &Process) {
        let mut plain = false;
        for map in process.maps.iter().filter(|m| !m.is_loader) {
            let file = map.instance.file;
            let (Some(elf), Some(mut entry)) = (files.elf(file), self.entries[file as usize].take()) else {
                continue;
            };
            let libraries = elf.asks.iter().chain(entry.wants.versioned.iter().map(|(name, _)| name));
            for (row, &name) in libraries.enumerate() {
                let Some(number) = process.by_name(search, files, name) else { continue };
                let provider = process.maps[number as usize].instance.file;
                if entry.wants.compared[row] == Some(provider) {
                    continue;
                }
                entry.wants.compared[row] = Some(provider);
                let Some(library) = files.elf(provider) else { continue };
                let lacks = match row.checked_sub(elf.asks.len()) {
                    None => (UnmetKind::Version, lacks_versions(elf, row, library)),
                    Some(row) => (UnmetKind::Symbol, lacks_symbols(elf, &entry.wants.versioned[row].1, library)),
                };
                self.note(file, files.names.text(name), provider, lacks.0, lacks.1);
            }
            plain |= !entry.wants.plain.is_empty();
            self.entries[file as usize] = Some(entry);
        }
        if plain {
            self.plain(files, process);
        }
    }

    /// Symbols that name no library: any of the process may define them. Told only where libraries of their
    /// family are loaded, all of them are known through and through, and none is missing.
    fn plain(&mut self, files: &Files<'_>, process: &Process) {
        let mut missing: BTreeSet<Family> = BTreeSet::new();
        for edge in &process.edges {
            if matches!(edge.to, To::Missing | To::Refused(_))
                && let Some(elf) = files.elf(process.maps[edge.from as usize].instance.file)
            {
                let name = elf.needed[edge.need as usize];
                let family = match self.of_name.get(&name) {
                    Some(family) => *family,
                    None => {
                        let family = self.family_of(files.names.text(name));
                        self.of_name.insert(name, family);
                        family
                    }
                };
                missing.extend(family);
            }
        }
        let loaded: Vec<u32> = process.maps.iter().map(|m| m.instance.file).collect();
        let exporters: Vec<(u32, &Elf<'_>)> = loaded
            .iter()
            .filter_map(|f| Some((*f, files.elf(*f)?)))
            .filter(|(_, elf)| elf.facts.exports.is_some())
            .collect();
        let mut hasher = DefaultHasher::new();
        exporters.iter().for_each(|(file, _)| file.hash(&mut hasher));
        let providers = hasher.finish();
        for &file in &loaded {
            let Some(elf) = files.elf(file) else { continue };
            let Some(entry) = self.entries[file as usize].take() else { continue };
            for (family, imports) in &entry.wants.plain {
                let family_of =
                    |f: u32| self.entries.get(f as usize).and_then(|e| e.as_ref()).and_then(|e| e.family);
                let mut relatives = loaded.iter().copied().filter(|f| family_of(*f) == Some(*family)).peekable();
                let Some(&first) = relatives.peek() else { continue };
                let open = relatives.any(|f| files.elf(f).is_none_or(|e| e.facts.exports.is_none()));
                if open || missing.contains(family) || !self.done.insert((file, *family, providers)) {
                    continue;
                }
                let has = |name: &str| {
                    exporters.iter().any(|(_, e)| e.facts.exports.as_ref().is_some_and(|x| x.has(name, None)))
                };
                let wanted = imports.iter().map(|i| &elf.facts.imports[*i].name);
                let lacks = wanted.filter(|name| !has(name)).cloned().collect();
                if let Some(library) = files.elf(first) {
                    self.note(file, &library_name(library), first, UnmetKind::Symbol, lacks);
                }
            }
            self.entries[file as usize] = Some(entry);
        }
    }

    fn note(&mut self, file: u32, library: &str, provider: u32, kind: UnmetKind, names: Vec<String>) {
        if !names.is_empty() {
            self.unmet.entry((file, library.to_owned(), provider, kind)).or_default().extend(names);
        }
    }

    /// What was found wanting, by the file that asks.
    pub fn finish(self, files: &Files<'_>) -> BTreeMap<u32, Vec<Unmet>> {
        let mut out: BTreeMap<u32, Vec<Unmet>> = BTreeMap::new();
        for ((file, library, provider, kind), names) in self.unmet {
            out.entry(file).or_default().push(Unmet {
                library,
                provider: files.path(provider).clone(),
                kind,
                count: names.len(),
                names: names.into_iter().take(MAX_NAMES).collect(),
            });
        }
        out
    }
}

fn library_name(elf: &Elf<'_>) -> String {
    elf.facts.soname.clone().unwrap_or_else(|| elf.path.file_name_lossy().into_owned())
}

/// Versions that a library does not define. One that defines none at all serves everybody: the loader only warns.
fn lacks_versions(elf: &Elf<'_>, row: usize, library: &Elf<'_>) -> Vec<String> {
    let Some(asked) = elf.facts.asks.get(row) else { return Vec::new() };
    let defines = &library.facts.defines;
    // The version that names the library itself is not among what it defines.
    let own = |name: &str| name == asked.of || library.facts.soname.as_deref() == Some(name);
    let lacks = asked.versions.iter().filter(|v| !v.weak && !own(&v.name) && !defines.contains(&v.name));
    if defines.is_empty() { Vec::new() } else { lacks.map(|v| v.name.clone()).collect() }
}

/// Symbols that a library does not define in the version asked for. A version that is not there at all is told as
/// such.
fn lacks_symbols(elf: &Elf<'_>, imports: &[usize], library: &Elf<'_>) -> Vec<String> {
    let Some(exports) = &library.facts.exports else { return Vec::new() };
    let defines = &library.facts.defines;
    let mut out = Vec::new();
    for import in imports.iter().filter_map(|i| elf.facts.imports.get(*i)) {
        let Some((_, version)) = &import.version else { continue };
        let has = if defines.contains(version) {
            exports.has(&import.name, Some(version))
        } else {
            !defines.is_empty() || exports.has(&import.name, None)
        };
        if !has {
            out.push(import.name.clone());
        }
    }
    out
}
