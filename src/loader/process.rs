//! One process: a file, what it loads, what that loads, breadth first.

use super::search::{Answer, ChainId, Instance, ListId, RefusalId, Search, Via};
use super::sites::First;
use super::system::Flavour;
use super::table::{Files, Name};

/// A file in the process.
#[derive(Debug, Clone, Copy)]
pub struct Map {
    pub instance: Instance,
    /// The RPATHs that count for what it needs.
    pub chain: ChainId,
    /// The map that loaded it; its own number for a root.
    pub by: u32,
    /// By which law.
    pub via: Via,
    pub preloaded: bool,
    /// It is the loader itself.
    pub is_loader: bool,
}

impl Map {
    fn new(instance: Instance, chain: ChainId, by: u32, via: Via) -> Self {
        Self { instance, chain, by, via, preloaded: false, is_loader: false }
    }
}

/// What became of a need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// It was loaded for this need.
    Fresh(u32),
    /// It is loaded already.
    Already(u32),
    Refused(RefusalId),
    Missing,
}

/// A need of a map: (map, index among what it needs, outcome).
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    pub from: u32,
    pub need: u32,
    pub to: To,
}

/// What a process starts with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'p> {
    /// RPATHs of the program that opens the root, where that is another file.
    pub base: ChainId,
    /// The program, for `$ORIGIN` in LD_LIBRARY_PATH.
    pub main: Option<u32>,
    pub library_path: Option<&'p str>,
    pub preloads: &'p [Name],
}

/// Another way to find a name, tried when the loader's laws find nothing.
pub type Fallback<'f> = &'f mut dyn FnMut(&mut Search<'_>, Name) -> Option<Answer>;

/// Made once and used for every root.
#[derive(Default)]
pub struct Process {
    pub maps: Vec<Map>,
    pub edges: Vec<Edge>,
    flavour: Option<Flavour>,
    library_path: ListId,
    /// By name and by file: (epoch, map). Entries of older epochs do not count.
    names: Vec<(u32, u32)>,
    files: Vec<(u32, u32)>,
    epoch: u32,
}

impl Process {
    /// Starts anew: the root, the loader, what is preloaded.
    pub fn start(&mut self, search: &mut Search<'_>, files: &Files<'_>, root: u32, context: &Context<'_>) {
        self.epoch += 1;
        self.flavour = Some(search.system.flavour);
        self.maps.clear();
        self.edges.clear();
        self.names.resize(files.names.len(), (0, 0));
        self.files.resize(files.all.len(), (0, 0));
        let main = context.main.unwrap_or(root);
        let origin = search.home(main);
        self.library_path = match context.library_path {
            Some(path) => search.list(path, origin, b":;"),
            None => ListId::default(),
        };
        self.open(search, files, root, context.base);
        if let Some(loader) = search.system.loader.filter(|l| *l != root) {
            let home = search.home(loader);
            let instance = search.instance(loader, home);
            let number = self.add(files, Map::new(instance, ChainId::default(), 0, Via::Path), None);
            self.maps[number as usize].is_loader = true;
            let asked = search.system.interpreter.as_ref().and_then(|i| files.names.find(i));
            if let Some(name) = asked {
                self.know(name, number);
            }
        }
        let first = self.maps[0];
        for &name in context.preloads {
            if self.by_name(search, files, name).is_none()
                && let Answer::Found { file, origin, via } =
                    search.ask(first.instance, first.chain, self.library_path, name)
                && self.of_file(file).is_none()
            {
                let instance = search.instance(file, origin);
                let number = self.add(files, Map::new(instance, first.chain, 0, via), Some(name));
                self.maps[number as usize].chain = search.chain(instance, first.chain);
                self.maps[number as usize].preloaded = true;
            }
        }
    }

    /// Loads what a framework loads before all others.
    pub fn load_first(&mut self, search: &mut Search<'_>, files: &Files<'_>, first: &[First]) {
        for one in first {
            let Answer::Found { file, origin, via } = one.answer else { continue };
            if self.by_name(search, files, one.name).is_none() && self.of_file(file).is_none() {
                let instance = search.instance(file, origin);
                let chain = search.chain(instance, ChainId::default());
                self.add(files, Map::new(instance, chain, 0, via), Some(one.name));
            }
        }
    }

    /// Opens one more file by its path.
    pub fn open(&mut self, search: &mut Search<'_>, files: &Files<'_>, root: u32, base: ChainId) {
        if self.of_file(root).is_some() {
            return;
        }
        let home = search.home(root);
        let instance = search.instance(root, home);
        let chain = search.chain(instance, base);
        let number = self.maps.len() as u32;
        self.add(files, Map::new(instance, chain, number, Via::Path), None);
    }

    /// Loads what one map needs.
    pub fn load(
        &mut self,
        search: &mut Search<'_>,
        files: &Files<'_>,
        from: u32,
        fallback: &mut Option<Fallback<'_>>,
    ) {
        let map = self.maps[from as usize];
        let Some(elf) = files.elf(map.instance.file) else { return };
        for (need, &name) in elf.needed.iter().enumerate() {
            let to = self.find(search, files, &map, name, fallback);
            let to = match to {
                Ok(number) => To::Already(number),
                Err(Answer::Refused(id)) => To::Refused(id),
                Err(Answer::Missing) => To::Missing,
                Err(Answer::Found { file, origin, via }) => {
                    let instance = search.instance(file, origin);
                    let chain = search.chain(instance, map.chain);
                    To::Fresh(self.add(files, Map::new(instance, chain, from, via), Some(name)))
                }
            };
            self.edges.push(Edge { from, need: need as u32, to });
        }
    }

    /// Loads everything that is not loaded yet, from a map on. False: the budget is spent.
    pub fn load_all(
        &mut self,
        search: &mut Search<'_>,
        files: &Files<'_>,
        from: u32,
        fallback: &mut Option<Fallback<'_>>,
    ) -> bool {
        let mut at = from;
        while (at as usize) < self.maps.len() {
            let before = self.edges.len();
            self.load(search, files, at, fallback);
            if !search.spend(1 + (self.edges.len() - before) as u64) {
                return false;
            }
            at += 1;
        }
        true
    }

    /// The map that a name leads to, or what the search answers.
    pub fn find(
        &mut self,
        search: &mut Search<'_>,
        files: &Files<'_>,
        map: &Map,
        name: Name,
        fallback: &mut Option<Fallback<'_>>,
    ) -> Result<u32, Answer> {
        if let Some(number) = self.by_name(search, files, name) {
            return Ok(number);
        }
        let mut answer = search.ask(map.instance, map.chain, self.library_path, name);
        if answer == Answer::Missing
            && let Some(fallback) = fallback
        {
            answer = fallback(search, name).unwrap_or(answer);
        }
        if let Answer::Found { file, .. } = answer
            && let Some(number) = self.of_file(file)
        {
            // The same file under another name.
            self.know(name, number);
            return Ok(number);
        }
        Err(answer)
    }

    /// The map of that name, by what it was asked for as or by its SONAME.
    pub fn by_name(&self, search: &Search<'_>, files: &Files<'_>, name: Name) -> Option<u32> {
        match self.names.get(name.0 as usize) {
            Some((epoch, number)) if *epoch == self.epoch => Some(*number),
            _ if search.system.flavour == Flavour::Musl && is_musl_itself(files.names.text(name)) => {
                self.maps.iter().position(|m| m.is_loader).map(|n| n as u32)
            }
            _ => None,
        }
    }

    pub fn of_file(&self, file: u32) -> Option<u32> {
        self.files.get(file as usize).filter(|(epoch, _)| *epoch == self.epoch).map(|(_, number)| *number)
    }

    fn know(&mut self, name: Name, number: u32) {
        let slot = &mut self.names[name.0 as usize];
        if slot.0 != self.epoch {
            *slot = (self.epoch, number);
        }
    }

    /// Adds a file, known by the name it was asked for as and by its SONAME.
    fn add(&mut self, files: &Files<'_>, map: Map, name: Option<Name>) -> u32 {
        let number = self.maps.len() as u32;
        let instance = map.instance;
        self.maps.push(map);
        self.files[instance.file as usize] = (self.epoch, number);
        let soname = files.elf(instance.file).and_then(|e| e.soname);
        let names = match self.flavour {
            Some(Flavour::Glibc) | None => [name, soname],
            // musl goes by the name that was searched for alone.
            Some(Flavour::Musl) => [name.filter(|n| !files.names.text(*n).contains('/')), None],
        };
        for name in names.into_iter().flatten() {
            self.know(name, number);
        }
        number
    }
}

/// musl is all of the C library; names of its parts, whatever the version, mean itself.
fn is_musl_itself(name: &str) -> bool {
    let parts = ["c.", "pthread.", "rt.", "m.", "dl.", "util.", "xnet."];
    name.strip_prefix("lib").is_some_and(|rest| parts.iter().any(|p| rest.starts_with(p)))
}
