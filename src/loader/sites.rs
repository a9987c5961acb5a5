//! Processes that load a file in reality: the Python of its environment, and the frameworks beside it.

use std::collections::HashMap;

use super::process::{Context, Process};
use super::search::{Answer, ChainId, DirId, Search, Via};
use super::table::{Files, Name};
use super::{Lookup, Place, Tree, glob, law};
use crate::model::{FileKind, ImagePath, Law, Outcome};

/// The directory of Python packages that a path lies in.
pub fn site_of(path: &ImagePath) -> Option<ImagePath> {
    cut(path, |parts, i| matches!(parts[i], b"site-packages" | b"dist-packages")).map(|(site, _)| site)
}

/// The root of a Python environment that a path lies in, and the name of its interpreter: `opt/venv`,
/// `python3.11` for `opt/venv/lib/python3.11/...`.
fn environment_of(path: &ImagePath) -> Option<(ImagePath, String)> {
    let (lib, name) = cut(path, |parts, i| {
        i > 0 && matches!(parts[i - 1], b"lib" | b"lib64") && parts[i].starts_with(b"python")
    })?;
    Some((lib.parent().parent(), name))
}

/// The path up to the first component that is wanted, and that component.
fn cut(path: &ImagePath, wanted: impl Fn(&[&[u8]], usize) -> bool) -> Option<(ImagePath, String)> {
    let parts: Vec<&[u8]> = path.components().collect();
    let at = (0..parts.len().saturating_sub(1)).find(|i| wanted(&parts, *i))?;
    Some((ImagePath::new(parts[..=at].join(&b'/')), String::from_utf8_lossy(parts[at]).into_owned()))
}

/// The interpreter of the environment that a file lies in.
pub fn python_of(tree: &dyn Tree, files: &Files<'_>, path: &ImagePath) -> Option<u32> {
    let (root, name) = environment_of(path)?;
    let machine = |file: u32| files.elf(file).map(|e| e.facts.machine);
    let own = files.all.binary_search_by(|f| f.path.cmp(path)).ok().and_then(|f| machine(f as u32));
    let homes = [root, ImagePath::new("usr/local"), ImagePath::new("usr")];
    let names = [name.as_str(), "python3", "python"];
    let candidates = homes.iter().flat_map(|home| names.map(|n| home.join(format!("bin/{n}"))));
    candidates.into_iter().find_map(|candidate| match tree.look(tree.root(), candidate.as_bytes()) {
        Some(Place::File(file)) => {
            let file = file as u32;
            let is_program = files.all[file as usize].facts.kind == FileKind::Executable;
            (is_program && machine(file) == own).then_some(file)
        }
        _ => None,
    })
}

/// What a process has loaded, by name.
#[derive(Debug, Default)]
struct Known {
    found: HashMap<Name, Outcome>,
}

/// A framework of a site, imported.
struct Imported {
    number: u32,
    /// What it loads before all others.
    first: Vec<First>,
    package: ImagePath,
    dirs: Vec<DirId>,
    known: Known,
}

/// A library that a framework loads first: its name, and where it is found.
#[derive(Debug, Clone, Copy)]
pub struct First {
    pub name: Name,
    pub answer: Answer,
}

/// The processes that files of one loader may find themselves in. Run when first asked for.
#[derive(Default)]
pub struct Sites {
    pythons: HashMap<u32, Known>,
    sites: HashMap<ImagePath, Vec<Imported>>,
    process: Process,
}

impl Sites {
    /// What the frameworks beside a file load before anything that needs them.
    pub fn first(
        &mut self,
        search: &mut Search<'_>,
        subject: &super::Subject<'_>,
        files: &Files<'_>,
        path: &ImagePath,
        context: &Context<'_>,
    ) -> Vec<First> {
        let lookups = subject.known.lookups();
        if lookups.iter().all(|l| l.first.is_empty()) {
            return Vec::new();
        }
        let imported = self.imported(search, subject, files, &lookups, path, context);
        imported.map(|all| all.iter().flat_map(|i| i.first.iter().copied()).collect()).unwrap_or_default()
    }

    /// The frameworks of the site that a file lies in.
    fn imported(
        &mut self,
        search: &mut Search<'_>,
        subject: &super::Subject<'_>,
        files: &Files<'_>,
        lookups: &[Lookup<'_>],
        path: &ImagePath,
        context: &Context<'_>,
    ) -> Option<&[Imported]> {
        let site = site_of(path)?;
        if !self.sites.contains_key(&site) {
            let imported = import(&mut self.process, search, subject.tree, files, lookups, &site, context);
            self.sites.insert(site.clone(), imported);
        }
        self.sites.get(&site).map(Vec::as_slice)
    }

    /// Whether the program of the environment has loaded a name already.
    pub fn of_python(
        &mut self,
        search: &mut Search<'_>,
        files: &Files<'_>,
        python: u32,
        context: &Context<'_>,
        name: Name,
    ) -> Option<Outcome> {
        if !self.pythons.contains_key(&python) {
            let context = Context { base: ChainId::default(), main: None, ..*context };
            self.process.start(search, files, python, &context);
            self.process.load_all(search, files, 0, &mut None);
            let known = known(&self.process, search, files, &[]);
            self.pythons.insert(python, known);
        }
        self.pythons.get(&python)?.found.get(&name).cloned()
    }

    /// Whether a framework beside a file has loaded a name, or would look it up itself.
    pub fn of_frameworks(
        &mut self,
        search: &mut Search<'_>,
        subject: &super::Subject<'_>,
        files: &Files<'_>,
        path: &ImagePath,
        context: &Context<'_>,
        name: Name,
    ) -> Option<Outcome> {
        let lookups = subject.known.lookups();
        let imported = self.imported(search, subject, files, &lookups, path, context)?;
        let own =
            |i: &&Imported| path.as_bytes().strip_prefix(i.package.as_bytes()).is_some_and(|r| r.starts_with(b"/"));
        let order = imported.iter().filter(own).chain(imported.iter().filter(|i| !own(i)));
        for one in order {
            if let Some(outcome) = one.known.found.get(&name) {
                return Some(outcome.clone());
            }
            let row = &lookups[one.number as usize];
            if let Some(Answer::Found { file, .. }) = look_up(search, files, row, one.number, &one.dirs, name) {
                return Some(law::found(files, file, Law::Framework(row.name.to_owned())));
            }
        }
        None
    }
}

/// Runs the import of every framework of a site.
fn import(
    process: &mut Process,
    search: &mut Search<'_>,
    tree: &dyn Tree,
    files: &Files<'_>,
    lookups: &[Lookup<'_>],
    site: &ImagePath,
    context: &Context<'_>,
) -> Vec<Imported> {
    let Some(Place::Dir(dir)) = tree.look(tree.root(), site.as_bytes()) else { return Vec::new() };
    let names: Vec<String> = lookups.iter().map(|l| l.name.to_owned()).collect();
    let mut out = Vec::new();
    for (number, row) in lookups.iter().enumerate() {
        let number = number as u32;
        if !matches!(tree.look(dir, row.package.as_bytes()), Some(Place::Dir(_))) {
            continue;
        }
        let mut dirs = Vec::new();
        for found in row.dirs.iter().flat_map(|d| glob::expand(tree, dir, d.as_bytes())) {
            let dir = search.dir(site.join(found).as_bytes());
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        let roots: Vec<u32> = row
            .roots
            .iter()
            .flat_map(|r| glob::expand(tree, dir, r.as_bytes()))
            .filter_map(|found| match tree.look(dir, &found) {
                Some(Place::File(file))
                    if files.elf(file as u32).is_some_and(|e| e.facts.machine == search.system.machine) =>
                {
                    Some(file as u32)
                }
                _ => None,
            })
            .collect();
        let first = first(search, files, row, number, &dirs);
        let mut known_here = Known::default();
        if let Some((&root, rest)) = roots.split_first() {
            let mut fall = |search: &mut Search<'_>, name: Name| look_up(search, files, row, number, &dirs, name);
            process.start(search, files, root, context);
            process.load_first(search, files, &first);
            process.load_all(search, files, 0, &mut Some(&mut fall));
            for &root in rest {
                let from = process.maps.len() as u32;
                process.open(search, files, root, context.base);
                process.load_all(search, files, from, &mut Some(&mut fall));
            }
            known_here = known(process, search, files, &names);
        }
        out.push(Imported { number, first, package: site.join(row.package), dirs, known: known_here });
    }
    out
}

/// Looks into a framework's directories, where it looks for a library of that name.
fn look_up(
    search: &mut Search<'_>,
    files: &Files<'_>,
    row: &Lookup<'_>,
    number: u32,
    dirs: &[DirId],
    name: Name,
) -> Option<Answer> {
    let text = files.names.text(name);
    if !row.libraries.iter().any(|l| glob::matches(l.as_bytes(), text.as_bytes())) {
        return None;
    }
    dirs.iter().find_map(|dir| search.in_dir(*dir, name, number))
}

/// The libraries that a framework loads first, from its directories.
fn first(search: &mut Search<'_>, files: &Files<'_>, row: &Lookup<'_>, number: u32, dirs: &[DirId]) -> Vec<First> {
    let mut out = Vec::new();
    if row.first.is_empty() {
        return out;
    }
    for name in (0..files.names.len() as u32).map(Name) {
        let text = files.names.text(name);
        if row.first.iter().any(|l| glob::matches(l.as_bytes(), text.as_bytes()))
            && let Some(answer) = dirs.iter().find_map(|dir| search.in_dir(*dir, name, number))
        {
            out.push(First { name, answer });
        }
    }
    out
}

/// All names that a process has loaded something for.
fn known(process: &Process, search: &Search<'_>, files: &Files<'_>, frameworks: &[String]) -> Known {
    let mut out = Known::default();
    for number in (0..files.names.len() as u32).map(Name) {
        let Some(map) = process.by_name(search, files, number) else { continue };
        let loaded = &process.maps[map as usize];
        let outcome = match loaded.via {
            Via::Framework(_) => law::found(files, loaded.instance.file, law::law(files, frameworks, loaded.via)),
            _ => law::already(files, process, map),
        };
        out.found.insert(number, outcome);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_and_sites_of_paths() {
        let path = ImagePath::new("opt/venv/lib/python3.11/site-packages/torch/_C.so");
        assert_eq!(site_of(&path).unwrap().to_string(), "opt/venv/lib/python3.11/site-packages");
        let (root, name) = environment_of(&path).unwrap();
        assert_eq!((root.to_string().as_str(), name.as_str()), ("opt/venv", "python3.11"));
        let path = ImagePath::new("usr/lib/python3/dist-packages/x.so");
        assert_eq!(environment_of(&path).unwrap().1, "python3");
        assert_eq!(environment_of(&ImagePath::new("usr/lib/python3.11")), None);
        assert_eq!(site_of(&ImagePath::new("app/x.so")), None);
    }
}
