//! One loader's search for a library by name: the directories of every law, looked into once and remembered.

use std::collections::HashMap;

use super::expand::{self, Tokens};
use super::system::{Flavour, System};
use super::table::{Files, Name};
use super::{Cache, Capability, Place, Tree};
use crate::model::{FileKind, ImagePath};

/// Steps of all searches of one image: a large real image takes some hundred thousand, hostile ones would take
/// hours.
pub const MAX_STEPS: u64 = 1 << 26;

/// Steps left to an image.
#[derive(Debug)]
pub struct Budget(std::cell::Cell<u64>);

impl Budget {
    pub fn new(steps: u64) -> Self {
        Self(std::cell::Cell::new(steps))
    }

    /// Takes steps; false: there are none left.
    pub fn spend(&self, steps: u64) -> bool {
        self.0.set(self.0.get().saturating_sub(steps));
        !self.is_spent()
    }

    pub fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}

/// A directory that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DirId(u32);

/// A list of directories that exist, in their order. 0 is the empty list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ListId(u32);

/// A chain of RPATHs: of a file, of the file that loads it, and so on. 0 is the empty chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ChainId(u32);

/// Why a file could not be taken, with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusalId(u32);

/// A file as it was opened: `$ORIGIN` is the directory of the path by which it was found, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance {
    pub file: u32,
    pub origin: DirId,
    /// RPATH, where it counts.
    rpath: ListId,
    /// RUNPATH; with musl, whichever of the two there is stands in `rpath`.
    runpath: ListId,
    has_runpath: bool,
}

/// The law by which a search succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    Path,
    Rpath(u32),
    LibraryPath,
    Runpath,
    SystemPath,
    Cache,
    Default,
    /// The framework's number.
    Framework(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Found { file: u32, origin: DirId, via: Via },
    Refused(RefusalId),
    Missing,
}

/// Everything that an answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Question {
    name: Name,
    chain: ChainId,
    runpath: ListId,
    library_path: ListId,
    no_default_dirs: bool,
    /// Only for names with a slash.
    origin: Option<DirId>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    list: ListId,
    of: u32,
    parent: ChainId,
}

#[derive(Debug, Clone, Copy)]
enum Hit {
    None,
    File(u32),
    Refused(RefusalId),
    /// An error other than "not there": the search goes no further along its list.
    Barred,
}

/// What looking for a name in a directory gave; the error: what stands there cannot be taken, and why.
type Looked = Result<Hit, (ImagePath, String)>;

pub struct Search<'a> {
    pub system: System,
    tree: &'a dyn Tree,
    files: &'a Files<'a>,
    budget: &'a Budget,
    /// Where a process starts, for names that are relative paths.
    working_dir: Vec<u8>,
    dirs: Vec<(Box<[u8]>, Option<u32>)>,
    dir_ids: HashMap<Box<[u8]>, DirId>,
    lists: Vec<Vec<DirId>>,
    list_ids: HashMap<(Box<str>, DirId), ListId>,
    links: Vec<Link>,
    link_ids: HashMap<(ListId, u32, ChainId), ChainId>,
    instances: HashMap<(u32, DirId), Instance>,
    hits: HashMap<(DirId, Name), Hit>,
    answers: HashMap<Question, Answer>,
    refusals: Vec<(ImagePath, String)>,
    refused: HashMap<(DirId, Name), RefusalId>,
    /// What `ld.so.cache` answers, by name.
    cached: HashMap<&'a str, &'a str>,
    default: ListId,
}

impl<'a> Search<'a> {
    pub fn new(
        system: System,
        tree: &'a dyn Tree,
        files: &'a Files<'a>,
        cache: Option<&'a Cache>,
        working_dir: &str,
        budget: &'a Budget,
    ) -> Self {
        let mut search = Self {
            cached: cache.map(|c| choose(c, &system)).unwrap_or_default(),
            system,
            tree,
            files,
            budget,
            working_dir: ImagePath::new(working_dir).as_bytes().to_vec(),
            dirs: Vec::new(),
            dir_ids: HashMap::new(),
            lists: vec![Vec::new()],
            list_ids: HashMap::new(),
            links: vec![Link { list: ListId(0), of: 0, parent: ChainId(0) }],
            link_ids: HashMap::new(),
            instances: HashMap::new(),
            hits: HashMap::new(),
            answers: HashMap::new(),
            refusals: Vec::new(),
            refused: HashMap::new(),
            default: ListId(0),
        };
        let dirs = search.system.dirs.join(":");
        let root = search.dir(b"");
        search.default = search.list(&dirs, root, b":");
        search
    }

    pub fn dir(&mut self, path: &[u8]) -> DirId {
        if let Some(id) = self.dir_ids.get(path) {
            return *id;
        }
        let id = DirId(self.dirs.len() as u32);
        let place = if self.budget.spend(4) { self.tree.look(self.tree.root(), path) } else { None };
        let number = match place {
            Some(Place::Dir(number)) => Some(number),
            _ => None,
        };
        self.dirs.push((path.into(), number));
        self.dir_ids.insert(path.into(), id);
        id
    }

    /// The directory in which a file really stands.
    pub fn home(&mut self, file: u32) -> DirId {
        let parent = self.files.path(file).parent();
        self.dir(parent.as_bytes())
    }

    /// A search path as the directories that exist, with what the processor's capabilities put before each.
    pub fn list(&mut self, text: &str, origin: DirId, separators: &[u8]) -> ListId {
        // Without tokens it is the same for every file.
        let origin = if text.contains('$') { origin } else { DirId(0) };
        if let Some(id) = self.list_ids.get(&(Box::from(text), origin)) {
            return *id;
        }
        let expanded = match self.system.flavour {
            Flavour::Glibc => Some(expand::glibc(text, &self.tokens(origin))),
            Flavour::Musl => expand::musl(text, &self.dirs[origin.0 as usize].0),
        };
        let mut list: Vec<DirId> = Vec::new();
        for element in expand::elements(&expanded.unwrap_or_default(), separators) {
            for below in self.system.capabilities.clone() {
                let joined = [element, b"/", below.trim_end_matches('/').as_bytes()].concat();
                let id = self.dir(joined.strip_suffix(b"/").unwrap_or(&joined));
                if self.dirs[id.0 as usize].1.is_some() && !list.contains(&id) {
                    list.push(id);
                }
            }
        }
        let id = if list.is_empty() {
            ListId(0)
        } else {
            self.lists.push(list);
            ListId(self.lists.len() as u32 - 1)
        };
        self.list_ids.insert((text.into(), origin), id);
        id
    }

    fn tokens(&self, origin: DirId) -> Tokens<'_> {
        Tokens { origin: &self.dirs[origin.0 as usize].0, lib: &self.system.lib, platform: self.system.platform }
    }

    pub fn instance(&mut self, file: u32, origin: DirId) -> Instance {
        if let Some(instance) = self.instances.get(&(file, origin)) {
            return *instance;
        }
        let facts = self.files.elf(file).map(|e| e.facts);
        let rpath = facts.and_then(|f| f.rpath.as_deref());
        let runpath = facts.and_then(|f| f.runpath.as_deref());
        let mut instance =
            Instance { file, origin, rpath: ListId(0), runpath: ListId(0), has_runpath: runpath.is_some() };
        match self.system.flavour {
            Flavour::Musl => {
                instance.has_runpath = false;
                if let Some(path) = runpath.or(rpath) {
                    instance.rpath = self.list(path, origin, b":\n");
                }
            }
            Flavour::Glibc => match (rpath, runpath) {
                (_, Some(path)) => instance.runpath = self.list(path, origin, b":"),
                (Some(path), None) => instance.rpath = self.list(path, origin, b":"),
                (None, None) => {}
            },
        }
        self.instances.insert((file, origin), instance);
        instance
    }

    /// The RPATHs that count for what a file needs, given those of the file that loads it.
    pub fn chain(&mut self, instance: Instance, parent: ChainId) -> ChainId {
        if instance.rpath == ListId(0) {
            return parent;
        }
        let key = (instance.rpath, instance.file, parent);
        if let Some(id) = self.link_ids.get(&key) {
            return *id;
        }
        let id = ChainId(self.links.len() as u32);
        self.links.push(Link { list: instance.rpath, of: instance.file, parent });
        self.link_ids.insert(key, id);
        id
    }

    /// Searches for a name that a file needs, whatever is loaded already. `chain` is the file's own.
    pub fn ask(&mut self, of: Instance, chain: ChainId, library_path: ListId, name: Name) -> Answer {
        let slash = self.files.names.text(name).contains('/');
        let question = Question {
            name,
            chain: if of.has_runpath { ChainId(0) } else { chain },
            runpath: of.runpath,
            library_path,
            no_default_dirs: self.files.elf(of.file).is_some_and(|e| e.facts.no_default_dirs),
            origin: slash.then_some(of.origin),
        };
        if let Some(answer) = self.answers.get(&question) {
            return *answer;
        }
        let answer = match question.origin {
            Some(origin) => self.by_path(name, origin),
            None if self.system.flavour == Flavour::Musl => self.by_musl(&question),
            None => self.by_glibc(&question),
        };
        if !self.budget.is_spent() {
            self.answers.insert(question, answer);
        }
        answer
    }

    /// Searches for a name as a program without search paths of its own does.
    pub fn ask_bare(&mut self, library_path: ListId, name: Name) -> Answer {
        let nothing = ListId(0);
        let question = Question {
            name,
            chain: ChainId(0),
            runpath: nothing,
            library_path,
            no_default_dirs: false,
            origin: None,
        };
        match self.system.flavour {
            Flavour::Musl => self.by_musl(&question),
            Flavour::Glibc => self.by_glibc(&question),
        }
    }

    fn by_glibc(&mut self, q: &Question) -> Answer {
        let found = self
            .along(q.chain, q.name)
            .or_else(|| self.within(q.library_path, q.name, Via::LibraryPath))
            .or_else(|| self.within(q.runpath, q.name, Via::Runpath))
            .or_else(|| self.by_cache(q));
        found.or_else(|| self.by_default(q)).unwrap_or(Answer::Missing)
    }

    fn by_musl(&mut self, q: &Question) -> Answer {
        let found = self.within(q.library_path, q.name, Via::LibraryPath).or_else(|| self.along(q.chain, q.name));
        found.or_else(|| self.within(self.default, q.name, Via::SystemPath)).unwrap_or(Answer::Missing)
    }

    fn along(&mut self, mut chain: ChainId, name: Name) -> Option<Answer> {
        while chain != ChainId(0) {
            let link = self.links[chain.0 as usize];
            if let Some(answer) = self.within(link.list, name, Via::Rpath(link.of)) {
                return Some(answer);
            }
            chain = link.parent;
        }
        None
    }

    fn within(&mut self, list: ListId, name: Name, via: Via) -> Option<Answer> {
        for at in 0..self.lists[list.0 as usize].len() {
            let dir = self.lists[list.0 as usize][at];
            match self.hit(dir, name) {
                Hit::None => {}
                Hit::File(file) => return Some(Answer::Found { file, origin: dir, via }),
                Hit::Refused(id) => return Some(Answer::Refused(id)),
                // glibc goes on with the next law, musl gives up.
                Hit::Barred if self.system.flavour == Flavour::Musl => return Some(Answer::Missing),
                Hit::Barred => return None,
            }
        }
        None
    }

    /// A file of a name in a directory, where a framework looks for it.
    pub fn in_dir(&mut self, dir: DirId, name: Name, framework: u32) -> Option<Answer> {
        match self.hit(dir, name) {
            Hit::File(file) => Some(Answer::Found { file, origin: dir, via: Via::Framework(framework) }),
            Hit::None | Hit::Refused(_) | Hit::Barred => None,
        }
    }

    fn by_cache(&mut self, q: &Question) -> Option<Answer> {
        let path = *self.cached.get(self.files.names.text(q.name))?;
        // glibc compares the text, not the directory that it leads to.
        let built_in = |dirs: &[String]| {
            dirs.iter().any(|d| path.strip_prefix(d.trim_end_matches('/')).is_some_and(|r| r.starts_with('/')))
        };
        if q.no_default_dirs && built_in(&self.system.dirs) {
            return None;
        }
        self.open(path.as_bytes(), Via::Cache)
    }

    fn by_default(&mut self, q: &Question) -> Option<Answer> {
        if q.no_default_dirs { None } else { self.within(self.default, q.name, Via::Default) }
    }

    fn by_path(&mut self, name: Name, origin: DirId) -> Answer {
        let text = self.files.names.text(name);
        let path = match self.system.flavour {
            Flavour::Glibc => expand::glibc(text, &self.tokens(origin)),
            Flavour::Musl => text.as_bytes().to_vec(),
        };
        let path = if path.starts_with(b"/") { path } else { [&self.working_dir[..], b"/", &path].concat() };
        self.open(&path, Via::Path).unwrap_or(Answer::Missing)
    }

    /// Opens a path; what is for another machine counts as not there.
    fn open(&mut self, path: &[u8], via: Via) -> Option<Answer> {
        let cut = path.iter().rposition(|&b| b == b'/')?;
        let (parent, last) = (&path[..cut], &path[cut + 1..]);
        let parent = parent.strip_prefix(b"/").unwrap_or(parent);
        let dir = self.dir(parent);
        match self.look(dir, last) {
            Ok(Hit::File(file)) => Some(Answer::Found { file, origin: dir, via }),
            Ok(_) => None,
            Err((place, why)) => {
                self.refusals.push((place, why));
                Some(Answer::Refused(RefusalId(self.refusals.len() as u32 - 1)))
            }
        }
    }

    fn hit(&mut self, dir: DirId, name: Name) -> Hit {
        if let Some(hit) = self.hits.get(&(dir, name)) {
            return *hit;
        }
        let hit = match self.look(dir, self.files.names.text(name).as_bytes()) {
            Ok(hit) => hit,
            Err(refusal) => {
                let next = RefusalId(self.refusals.len() as u32);
                let id = *self.refused.entry((dir, name)).or_insert(next);
                if id == next {
                    self.refusals.push(refusal);
                }
                Hit::Refused(id)
            }
        };
        if !self.budget.is_spent() {
            self.hits.insert((dir, name), hit);
        }
        hit
    }

    fn look(&self, dir: DirId, name: &[u8]) -> Looked {
        let Some(number) = self.dirs[dir.0 as usize].1 else { return Ok(Hit::None) };
        if name.is_empty() || !self.budget.spend(1) {
            return Ok(Hit::None);
        }
        match self.tree.look(number, name) {
            None => Ok(Hit::None),
            Some(Place::Barred) => Ok(Hit::Barred),
            Some(Place::Dir(dir)) => Err((self.tree.path(dir), "is a directory".to_owned())),
            Some(Place::Other(other)) => Err((self.tree.path(other), "is not an ELF file".to_owned())),
            Some(Place::File(file)) => self.fits(file as u32),
        }
    }

    /// Whether a file is taken, or passed over.
    fn fits(&self, file: u32) -> Looked {
        let refuse = |why: &str| Err((self.files.path(file).clone(), why.to_owned()));
        let Some(whole) = self.files.all.get(file as usize) else { return Ok(Hit::None) };
        match (whole.facts.kind, whole.facts.elf.as_ref()) {
            (FileKind::Cubin, _) => Ok(Hit::None),
            (_, Some(elf)) if elf.machine != self.system.machine => match self.system.flavour {
                Flavour::Glibc => Ok(Hit::None),
                // musl does not look at the machine and maps whatever it finds.
                Flavour::Musl => refuse("is for another processor"),
            },
            (FileKind::SharedObject | FileKind::Executable, Some(_)) => Ok(Hit::File(file)),
            (FileKind::Object, _) => refuse("is an object file, not a shared library"),
            (FileKind::BrokenElf, _) => refuse("is a damaged ELF file"),
            _ => refuse("is not an ELF file"),
        }
    }

    /// Whether `ld.so.cache` has an entry of that name for this machine.
    pub fn is_cached(&self, name: &str) -> bool {
        self.cached.contains_key(name)
    }

    /// Takes steps of the image's; false: there are none left.
    pub fn spend(&self, steps: u64) -> bool {
        self.budget.spend(steps)
    }

    pub fn refusal(&self, id: RefusalId) -> (ImagePath, String) {
        self.refusals[id.0 as usize].clone()
    }
}

/// The entry that the loader takes for each name: the best of `glibc-hwcaps`, else the first.
fn choose<'a>(cache: &'a Cache, system: &System) -> HashMap<&'a str, &'a str> {
    let mut best: HashMap<&str, (usize, &str)> = HashMap::new();
    let plain = system.capabilities.len();
    for entry in cache.entries.iter().filter(|e| system.takes(e.flags)) {
        let rank = match &entry.capability {
            Capability::Any => plain,
            Capability::Named(name) => {
                let dir = format!("glibc-hwcaps/{name}/");
                match system.capabilities.iter().position(|c| *c == dir) {
                    Some(rank) => rank,
                    None => continue,
                }
            }
            // Bit 2 is AVX-512.
            Capability::Legacy(bits) if system.legacy() && bits & 4 == 0 => plain,
            Capability::Legacy(_) => continue,
        };
        // Entries that name the machine go before those that only say ELF.
        let rank = rank * 2 + usize::from(entry.flags != system.cache_flags);
        let known = best.get(entry.name.as_str()).is_some_and(|(r, _)| *r <= rank);
        if !known {
            best.insert(&entry.name, (rank, &entry.path));
        }
    }
    best.into_iter().map(|(name, (_, path))| (name, path)).collect()
}
