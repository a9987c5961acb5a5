//! All files of an image, each as a process of its own, then in the processes that really load it.

use std::collections::{BTreeMap, HashMap};

use super::conf;
use super::law::{self, MISSING, is_missing};
use super::ldconfig::{self, View};
use super::process::{Context, Process, To};
use super::search::{Answer, Budget, ChainId, MAX_STEPS, Search};
use super::sites::{self, Sites};
use super::symbols::Checks;
use super::system::{self, Flavour, System};
use super::table::{Elf, Files, Name};
use super::{Cache, Capture, DRIVER, Simulated, Subject, Told};
use crate::model::{FileKind, Gap, GapEffect, LdCache, Libc, Loads, Need, Outcome};

/// Which loader a file gets: (machine, laws, the path by which it is asked for).
type Key = (u16, Flavour, Option<String>);

/// One loader of the image, and what its processes may find themselves in.
struct World<'a> {
    search: Search<'a>,
    sites: Sites,
    /// Programs of Python environments, with their RPATHs.
    bases: HashMap<u32, ChainId>,
    view: View,
}

/// A file that loads something.
struct Row {
    file: u32,
    world: usize,
    /// The program that opens it, where that is known.
    python: Option<u32>,
    needs: Vec<Outcome>,
    opens: Vec<Outcome>,
}

/// What a process other than the file's own has shown: by (file, whether it is opened, index).
type Elsewhere = HashMap<(u32, bool, u32), Outcome>;

/// Simulates the loader for every ELF file.
pub fn simulate(subject: &Subject<'_>) -> Simulated {
    simulate_within(subject, &Budget::new(MAX_STEPS))
}

pub(super) fn simulate_within(subject: &Subject<'_>, budget: &Budget) -> Simulated {
    let mut files = Files::new(subject.files, subject.known);
    let preloads = preloads(subject, &mut files);
    let interpreters = interpreters(&files);
    for (_, _, path) in interpreters.keys() {
        if let Some(path) = path {
            files.names.add(path);
        }
    }
    let driver = DRIVER.map(|name| (name, files.names.add(name)));
    let mut gaps = Vec::new();
    let conf = conf::directories(subject.tree, &mut gaps);
    let captured = subject.tree.captured(b"etc/ld.so.cache");
    let cache = match captured {
        Some(Capture::Cache(cache)) => Some(cache),
        _ => None,
    };
    let mut run = Run {
        subject,
        files: &files,
        budget,
        conf: &conf,
        cache,
        preloads: &preloads,
        frameworks: subject.known.lookups().iter().map(|l| l.name.to_owned()).collect(),
        usual: usual(&interpreters),
        worlds: Vec::new(),
        keys: HashMap::new(),
        process: Process::default(),
    };
    let main = run.main_world(&interpreters);
    let mut rows = run.own_needs();
    let mut checks = Checks::new(&files, subject.known);
    let elsewhere = run.closures(&mut rows, &mut checks);
    run.other_processes(&mut rows, &elsewhere);
    let mut out = Simulated { gaps, driver: run.driver(main, &driver), ..Simulated::default() };
    if let Some(world) = main.map(|m| &run.worlds[m]) {
        out.libc = system::libc(subject.tree, &files, &world.search.system);
        if world.search.system.flavour == Flavour::Glibc {
            out.ld_cache = ldconfig::state(subject.tree, &files, &world.search.system, &world.view, captured);
        }
    } else if matches!(captured, Some(Capture::UnreadableCache)) {
        out.ld_cache = LdCache::Unreadable;
    }
    // A musl image may hold nothing but files that want glibc.
    if out.libc.is_none() {
        let musl = files.elfs().find(|(_, e)| e.path.file_name().starts_with(b"ld-musl-"));
        out.libc = musl.map(|(_, e)| Libc::Musl { path: e.path.clone() });
    }
    if budget.is_spent() {
        out.gaps.push(Gap {
            path: None,
            layer: None,
            offset: None,
            why: "the libraries that files load form too large a web: not all of it was followed".to_owned(),
            effect: GapEffect::None,
        });
    }
    if budget.is_spent() {
        // What was not searched to the end is not missing.
        rows.retain(|row| !row.needs.iter().chain(&row.opens).any(|o| matches!(o, Outcome::Missing { .. })));
    }
    let mut unmet = checks.finish(&files);
    out.loads = rows.into_iter().filter_map(|row| loads(&files, row, &mut unmet)).collect();
    out
}

fn loads(files: &Files<'_>, row: Row, unmet: &mut BTreeMap<u32, Vec<crate::model::Unmet>>) -> Option<Loads> {
    let elf = files.elf(row.file)?;
    let need = |(name, outcome): (&Name, Outcome)| Need { name: files.names.text(*name).to_owned(), outcome };
    let opens = told(elf, &row.opens);
    let loads = Loads {
        file: row.file as usize,
        needs: elf.needed.iter().zip(row.needs).map(need).collect(),
        opens: opens.into_iter().map(|i| need((&elf.opens[i], row.opens[i].clone()))).collect(),
        unmet: unmet.remove(&row.file).unwrap_or_default(),
    };
    (!loads.needs.is_empty() || !loads.opens.is_empty()).then_some(loads)
}

/// Which of the names that a file opens are told, by their index. A name that two rows have is told once.
fn told(elf: &Elf<'_>, outcomes: &[Outcome]) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    let mut start = 0;
    let found = |i: &usize| outcomes[*i].path().is_some();
    for (count, told) in &elf.groups {
        let group = start..(start + count).min(outcomes.len());
        start += count;
        let any = group.clone().any(|i| found(&i));
        for i in group {
            let tells = match told {
                Told::Always => true,
                Told::UnlessAnother => found(&i) || !any,
                Told::IfFound => found(&i),
            };
            if tells && !out.iter().any(|o| elf.opens[*o] == elf.opens[i]) {
                out.push(i);
            }
        }
    }
    out
}

/// LD_PRELOAD, then `etc/ld.so.preload`.
fn preloads(subject: &Subject<'_>, files: &mut Files<'_>) -> Vec<Name> {
    let mut texts = subject.config.var("LD_PRELOAD").map(conf::preloads).unwrap_or_default();
    if let Some(Capture::Preload(more)) = subject.tree.captured(b"etc/ld.so.preload") {
        texts.extend(more.iter().cloned());
    }
    texts.iter().map(|t| files.names.add(t)).collect()
}

/// The loaders that programs ask for, and how many do.
fn interpreters(files: &Files<'_>) -> BTreeMap<Key, usize> {
    let mut out: BTreeMap<Key, usize> = BTreeMap::new();
    for (file, elf) in files.elfs() {
        let flavour = flavour_of(elf);
        let weight = usize::from(files.all[file as usize].facts.kind == FileKind::Executable);
        if let (Some(flavour), true) = (flavour, weight > 0 || !elf.needed.is_empty()) {
            *out.entry((elf.facts.machine, flavour, elf.facts.interpreter.clone())).or_default() += weight;
        }
    }
    out
}

/// Whose laws a file is under, as far as it says so itself.
fn flavour_of(elf: &Elf<'_>) -> Option<Flavour> {
    if let Some(interpreter) = &elf.facts.interpreter {
        return Some(system::flavour_of(interpreter));
    }
    let needs = |wanted: &dyn Fn(&str) -> bool| elf.facts.needed.iter().any(|n| wanted(n));
    if needs(&|n| n.starts_with("libc.musl-")) {
        Some(Flavour::Musl)
    } else if needs(&|n| n == "libc.so.6" || n.starts_with("ld-linux")) {
        Some(Flavour::Glibc)
    } else {
        None
    }
}

/// What libraries of a machine get: the laws that most programs are under, and the path they ask for.
fn usual(interpreters: &BTreeMap<Key, usize>) -> HashMap<(u16, Option<Flavour>), Key> {
    let mut out: HashMap<(u16, Option<Flavour>), (usize, Key)> = HashMap::new();
    for (key, count) in interpreters {
        for slot in [(key.0, Some(key.1)), (key.0, None)] {
            // A path that some program names counts more than none.
            let weight = count * 2 + usize::from(key.2.is_some());
            if out.get(&slot).is_none_or(|(most, _)| weight > *most) {
                out.insert(slot, (weight, key.clone()));
            }
        }
    }
    out.into_iter().map(|(slot, (_, key))| (slot, key)).collect()
}

struct Run<'a> {
    subject: &'a Subject<'a>,
    files: &'a Files<'a>,
    budget: &'a Budget,
    conf: &'a [String],
    cache: Option<&'a Cache>,
    preloads: &'a [Name],
    frameworks: Vec<String>,
    usual: HashMap<(u16, Option<Flavour>), Key>,
    worlds: Vec<World<'a>>,
    keys: HashMap<Key, usize>,
    process: Process,
}

impl<'a> Run<'a> {
    fn world(&mut self, key: Key) -> usize {
        if let Some(at) = self.keys.get(&key) {
            return *at;
        }
        let (machine, flavour, interpreter) = &key;
        let (tree, files) = (self.subject.tree, self.files);
        let system: System = system::system(tree, files, *machine, *flavour, interpreter.as_deref());
        let view = match flavour {
            Flavour::Glibc => ldconfig::view(tree, files, &system, self.conf, self.budget),
            Flavour::Musl => View::default(),
        };
        let directory = &self.subject.config.working_dir;
        let search = Search::new(system, tree, files, self.cache, directory, self.budget);
        self.worlds.push(World { search, sites: Sites::default(), bases: HashMap::new(), view });
        self.keys.insert(key, self.worlds.len() - 1);
        self.worlds.len() - 1
    }

    /// The loader of most programs, or of most libraries.
    fn main_world(&mut self, interpreters: &BTreeMap<Key, usize>) -> Option<usize> {
        let platform = |key: &&Key| interpreters.get(*key).copied().unwrap_or(0);
        let key = interpreters.keys().max_by_key(platform)?.clone();
        let usual = self.usual.get(&(key.0, Some(key.1))).cloned().unwrap_or(key);
        Some(self.world(usual))
    }

    /// What a program without search paths gets for the driver's libraries.
    fn driver(&mut self, main: Option<usize>, names: &[(&str, Name)]) -> Vec<Need> {
        let Some((_, elf)) = self.files.elfs().next() else { return Vec::new() };
        let world = main.unwrap_or_else(|| self.world((elf.facts.machine, Flavour::Glibc, None)));
        let library_path = self.subject.config.var("LD_LIBRARY_PATH");
        let World { search, view, .. } = &mut self.worlds[world];
        let list = match library_path {
            Some(path) => {
                let home = search.home(0);
                search.list(path, home, b":;")
            }
            None => Default::default(),
        };
        let mut out = Vec::new();
        for (text, name) in names {
            let outcome = match search.ask_bare(list, *name) {
                Answer::Found { file, via, .. } => {
                    law::found(self.files, file, law::law(self.files, &self.frameworks, via))
                }
                Answer::Refused(id) => Outcome::Missing { ldconfig: None, refused: Some(search.refusal(id)) },
                // The container runtime runs ldconfig.
                Answer::Missing => match view.get(text) {
                    Some(file) => Outcome::Missing { ldconfig: Some(self.files.path(file).clone()), refused: None },
                    None => continue,
                },
            };
            out.push(Need { name: (*text).to_owned(), outcome });
        }
        out
    }

    fn key_of(&self, elf: &Elf<'_>) -> Key {
        let (machine, flavour) = (elf.facts.machine, flavour_of(elf));
        if elf.facts.interpreter.is_some() {
            return (machine, flavour.unwrap_or(Flavour::Glibc), elf.facts.interpreter.clone());
        }
        let usual = self.usual.get(&(machine, flavour)).cloned();
        usual.unwrap_or((machine, flavour.unwrap_or(Flavour::Glibc), None))
    }

    /// The needs of every file, as `ldd FILE` shows them.
    fn own_needs(&mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        let files = self.files;
        for (file, elf) in files.elfs() {
            if elf.needed.is_empty() && elf.opens.is_empty() {
                continue;
            }
            if self.budget.is_spent() {
                break;
            }
            let world = self.world(self.key_of(elf));
            // Programs are started, not opened by Python.
            let python = match elf.facts.interpreter {
                None => sites::python_of(self.subject.tree, files, elf.path),
                Some(_) => None,
            };
            let mut row = Row { file, world, python, needs: Vec::new(), opens: Vec::new() };
            self.start(&row);
            let search = &mut self.worlds[world].search;
            self.process.load(search, files, 0, &mut None);
            let outcome = |to: To| law::outcome(files, &self.frameworks, search, &self.process, to);
            row.needs = self.process.edges.iter().map(|e| outcome(e.to)).collect();
            rows.push(row);
        }
        rows
    }

    fn context(&mut self, row: &Row) -> Context<'a> {
        let world = &mut self.worlds[row.world];
        let base = match row.python {
            Some(python) => *world.bases.entry(python).or_insert_with(|| {
                let home = world.search.home(python);
                let instance = world.search.instance(python, home);
                world.search.chain(instance, ChainId::default())
            }),
            None => ChainId::default(),
        };
        let library_path = self.subject.config.var("LD_LIBRARY_PATH");
        Context { base, main: row.python, library_path, preloads: self.preloads }
    }

    fn start(&mut self, row: &Row) {
        let context = self.context(row);
        let (files, world) = (self.files, &mut self.worlds[row.world]);
        let elf = files.elf(row.file).filter(|e| e.facts.interpreter.is_none());
        let first = match elf {
            Some(elf) => world.sites.first(&mut world.search, self.subject, files, elf.path, &context),
            None => Vec::new(),
        };
        self.process.start(&mut world.search, files, row.file, &context);
        self.process.load_first(&mut world.search, files, &first);
    }

    /// Everything that every file loads: what it opens by name, what its libraries ask of each other, and what
    /// other files find in its process.
    fn closures(&mut self, rows: &mut [Row], checks: &mut Checks) -> Elsewhere {
        let files = self.files;
        let row_of: HashMap<u32, usize> = rows.iter().enumerate().map(|(i, r)| (r.file, i)).collect();
        let mut elsewhere = Elsewhere::new();
        for at in 0..rows.len() {
            self.start(&rows[at]);
            let search = &mut self.worlds[rows[at].world].search;
            if !self.process.load_all(search, files, 0, &mut None) {
                break;
            }
            checks.process(search, files, &self.process);
            for edge in &self.process.edges {
                let from = self.process.maps[edge.from as usize].instance.file;
                let found = matches!(edge.to, To::Fresh(_) | To::Already(_));
                if edge.from == 0 || !found {
                    continue;
                }
                let own = row_of.get(&from).and_then(|r| rows[*r].needs.get(edge.need as usize));
                if own.is_some_and(is_missing) {
                    let key = (from, false, edge.need);
                    elsewhere
                        .entry(key)
                        .or_insert_with(|| law::outcome(files, &self.frameworks, search, &self.process, edge.to));
                }
            }
            for number in 0..self.process.maps.len() {
                let map = self.process.maps[number];
                let Some(elf) = files.elf(map.instance.file) else { continue };
                for (i, &name) in elf.opens.iter().enumerate() {
                    let answer = self.process.find(search, files, &map, name, &mut None);
                    let outcome = law::answer(files, &self.frameworks, search, &self.process, answer);
                    if number == 0 {
                        rows[at].opens.push(outcome);
                    } else if outcome.path().is_some() {
                        elsewhere.entry((map.instance.file, true, i as u32)).or_insert(outcome);
                    }
                }
            }
        }
        elsewhere
    }

    /// For what a file does not find by itself: its Python, the frameworks beside it, whoever else loads it, the
    /// host's driver, ldconfig.
    fn other_processes(&mut self, rows: &mut [Row], elsewhere: &Elsewhere) {
        let files = self.files;
        for row in rows {
            let Some(elf) = files.elf(row.file) else { continue };
            row.opens.resize(elf.opens.len(), MISSING);
            for (opened, index, name) in elf
                .needed
                .iter()
                .enumerate()
                .map(|(i, n)| (false, i, *n))
                .chain(elf.opens.iter().enumerate().map(|(i, n)| (true, i, *n)))
                .collect::<Vec<_>>()
            {
                let slot = if opened { &row.opens[index] } else { &row.needs[index] };
                if !is_missing(slot) {
                    continue;
                }
                let other = match self.beside(row, elf, name) {
                    Some(outcome) => Some(outcome),
                    None => elsewhere.get(&(row.file, opened, index as u32)).cloned(),
                };
                let outcome = other.unwrap_or_else(|| self.absent(row, name));
                let slot = if opened { &mut row.opens[index] } else { &mut row.needs[index] };
                *slot = outcome;
            }
        }
    }

    fn beside(&mut self, row: &Row, elf: &Elf<'_>, name: Name) -> Option<Outcome> {
        let context = self.context(row);
        let files = self.files;
        let world = &mut self.worlds[row.world];
        if let Some(python) = row.python
            && let Some(outcome) = world.sites.of_python(&mut world.search, files, python, &context, name)
        {
            return Some(outcome);
        }
        if elf.facts.interpreter.is_some() {
            return None;
        }
        world.sites.of_frameworks(&mut world.search, self.subject, files, elf.path, &context, name)
    }

    fn absent(&self, row: &Row, name: Name) -> Outcome {
        let text = self.files.names.text(name);
        if self.subject.known.is_driver(text.rsplit('/').next().unwrap_or_default()) {
            return Outcome::Driver;
        }
        let world = &self.worlds[row.world];
        // What the cache has already, or the file does not want of there, no ldconfig cures.
        let strict = self.files.elf(row.file).is_some_and(|e| e.facts.no_default_dirs);
        let curable = !strict && !world.search.is_cached(text);
        let ldconfig = world.view.get(text).filter(|_| curable).map(|f| self.files.path(f).clone());
        Outcome::Missing { ldconfig, refused: None }
    }
}
