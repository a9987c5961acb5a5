//! An image in memory, for tests: files by path, links, and what is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::model::{FileFacts, FileKind};

/// An ELF file and what it says.
pub fn elf(needed: &[&str]) -> ElfFacts {
    ElfFacts { machine: 62, needed: needed.iter().map(|n| (*n).to_owned()).collect(), ..ElfFacts::default() }
}

pub fn soname(name: &str, needed: &[&str]) -> ElfFacts {
    ElfFacts { soname: Some(name.to_owned()), ..elf(needed) }
}

#[allow(clippy::large_enum_variant, reason = "a few nodes in tests")]
enum Node {
    File(FileKind, Option<Box<ElfFacts>>),
    Text,
    Link(String),
    Capture(Capture),
}

#[derive(Default)]
pub struct Builder {
    nodes: BTreeMap<String, Node>,
    pub config: ConfigFacts,
}

impl Builder {
    /// A glibc system of Debian's shape.
    pub fn debian() -> Self {
        let mut image = Self::default();
        let dir = "usr/lib/x86_64-linux-gnu";
        image.link("lib", "usr/lib").link("lib64", "usr/lib64");
        image.link("usr/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
        image.lib(&format!("{dir}/ld-linux-x86-64.so.2"), soname("ld-linux-x86-64.so.2", &[]));
        image.lib(&format!("{dir}/libc.so.6"), soname("libc.so.6", &["ld-linux-x86-64.so.2"]));
        image
    }

    pub fn lib(&mut self, path: &str, facts: ElfFacts) -> &mut Self {
        self.add(path, Node::File(FileKind::SharedObject, Some(facts.into())))
    }

    pub fn program(&mut self, path: &str, facts: ElfFacts) -> &mut Self {
        let interpreter = facts.interpreter.clone().or_else(|| Some("/lib64/ld-linux-x86-64.so.2".to_owned()));
        self.add(path, Node::File(FileKind::Executable, Some(ElfFacts { interpreter, ..facts }.into())))
    }

    pub fn damaged(&mut self, path: &str) -> &mut Self {
        self.add(path, Node::File(FileKind::BrokenElf, None))
    }

    pub fn text(&mut self, path: &str) -> &mut Self {
        self.add(path, Node::Text)
    }

    pub fn link(&mut self, path: &str, to: &str) -> &mut Self {
        self.add(path, Node::Link(to.to_owned()))
    }

    pub fn capture(&mut self, path: &str, capture: Capture) -> &mut Self {
        self.add(path, Node::Capture(capture))
    }

    pub fn conf(&mut self, path: &str, text: &str) -> &mut Self {
        self.capture(path, Capture::Conf(super::conf::lines(text.as_bytes())))
    }

    pub fn cache(&mut self, rows: &[(&str, &str)]) -> &mut Self {
        let entry = |(name, path): &(&str, &str)| CacheEntry {
            flags: 0x303,
            name: (*name).to_owned(),
            path: (*path).to_owned(),
            capability: Capability::Any,
        };
        self.capture("etc/ld.so.cache", Capture::Cache(Cache { entries: rows.iter().map(entry).collect() }))
    }

    pub fn env(&mut self, name: &str, value: &str) -> &mut Self {
        self.config.env.push((name.to_owned(), value.to_owned()));
        self
    }

    fn add(&mut self, path: &str, node: Node) -> &mut Self {
        self.nodes.insert(path.to_owned(), node);
        self
    }

    pub fn run(&self) -> Ran {
        self.run_within(&super::search::Budget::new(super::search::MAX_STEPS))
    }

    pub fn run_within(&self, budget: &super::search::Budget) -> Ran {
        let mut tree = Memory::default();
        tree.entries.push(Entry::Dir(BTreeMap::new(), 0));
        let mut files = Vec::new();
        // In the order of paths, as evidence has them.
        let mut sorted: Vec<(ImagePath, &Node)> = self.nodes.iter().map(|(p, n)| (ImagePath::new(p), n)).collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        for (path, node) in &sorted {
            let entry = match node {
                Node::File(kind, elf) => {
                    let facts = FileFacts { elf: elf.as_deref().cloned(), ..FileFacts::new(*kind, 4096) };
                    files.push(EvidenceFile {
                        path: path.clone(),
                        layer: None,
                        facts: Arc::new(facts),
                        component: None,
                        in_archive: false,
                    });
                    Entry::File(files.len() - 1)
                }
                Node::Text => Entry::Other(None),
                Node::Link(to) => Entry::Link(to.clone().into_bytes()),
                Node::Capture(capture) => Entry::Other(Some(capture.clone())),
            };
            tree.place(path, entry);
        }
        let subject = Subject { files: &files, config: &self.config, tree: &tree, known: &Known };
        let simulated = super::rows::simulate_within(&subject, budget);
        Ran { files, simulated }
    }
}

pub struct Ran {
    pub files: Vec<EvidenceFile>,
    pub simulated: Simulated,
}

impl Ran {
    pub fn loads(&self, path: &str) -> Option<&Loads> {
        let file = self.files.iter().position(|f| f.path == ImagePath::new(path))?;
        self.simulated.loads.iter().find(|l| l.file == file)
    }

    /// "liba.so: opt/liba.so (RUNPATH)" for every need of a file.
    pub fn needs(&self, path: &str) -> Vec<String> {
        self.loads(path).map(|l| l.needs.iter().map(show).collect()).unwrap_or_default()
    }

    pub fn opens(&self, path: &str) -> Vec<String> {
        self.loads(path).map(|l| l.opens.iter().map(show).collect()).unwrap_or_default()
    }

    pub fn unmet(&self, path: &str) -> Vec<String> {
        let show = |u: &crate::model::Unmet| {
            format!("{:?} {} of {} ({}): {}", u.kind, u.count, u.library, u.provider, u.names.join(" "))
        };
        self.loads(path).map(|l| l.unmet.iter().map(show).collect()).unwrap_or_default()
    }
}

fn show(need: &crate::model::Need) -> String {
    use crate::model::Outcome;
    let what = match &need.outcome {
        Outcome::Found { path, law } => format!("{path} ({law})"),
        Outcome::Driver => "driver".to_owned(),
        Outcome::Missing { refused: Some((path, why)), .. } => format!("refused: {path} {why}"),
        Outcome::Missing { ldconfig: Some(path), .. } => format!("missing, ldconfig: {path}"),
        Outcome::Missing { .. } => "missing".to_owned(),
    };
    format!("{}: {what}", need.name)
}

enum Entry {
    Dir(BTreeMap<Vec<u8>, u32>, u32),
    File(usize),
    Other(Option<Capture>),
    Link(Vec<u8>),
}

#[derive(Default)]
struct Memory {
    entries: Vec<Entry>,
}

impl Memory {
    fn place(&mut self, path: &ImagePath, entry: Entry) {
        let mut at = 0;
        for part in path.parent().components() {
            at = match self.child(at, part) {
                Some(id) => match &self.entries[id as usize] {
                    Entry::Link(_) => panic!("{path} lies below a link"),
                    _ => id,
                },
                None => self.attach(at, part, Entry::Dir(BTreeMap::new(), at)),
            };
        }
        self.attach(at, path.file_name(), entry);
    }

    fn attach(&mut self, dir: u32, name: &[u8], entry: Entry) -> u32 {
        let id = self.entries.len() as u32;
        self.entries.push(entry);
        if let Entry::Dir(children, _) = &mut self.entries[dir as usize] {
            children.insert(name.to_vec(), id);
        }
        id
    }

    fn child(&self, dir: u32, name: &[u8]) -> Option<u32> {
        match &self.entries[dir as usize] {
            Entry::Dir(children, _) => children.get(name).copied(),
            _ => None,
        }
    }

    /// `Err`: a circle, or below a file.
    fn walk(&self, from: u32, path: &[u8], hops: usize) -> Result<Option<u32>, ()> {
        let mut at = if path.starts_with(b"/") { 0 } else { from };
        for part in path.split(|&b| b == b'/') {
            let Entry::Dir(_, parent) = &self.entries[at as usize] else { return Err(()) };
            at = match part {
                b"" | b"." => at,
                b".." => *parent,
                name => {
                    let Some(next) = self.child(at, name) else { return Ok(None) };
                    match &self.entries[next as usize] {
                        Entry::Link(to) if hops < 40 => match self.walk(at, to, hops + 1)? {
                            Some(id) => id,
                            None => return Ok(None),
                        },
                        Entry::Link(_) => return Err(()),
                        _ => next,
                    }
                }
            };
        }
        Ok(Some(at))
    }
}

impl Tree for Memory {
    fn root(&self) -> u32 {
        0
    }

    fn look(&self, from: u32, path: &[u8]) -> Option<Place> {
        let Ok(id) = self.walk(from, path, 0) else { return Some(Place::Barred) };
        let id = id?;
        Some(match &self.entries[id as usize] {
            Entry::Dir(..) => Place::Dir(id),
            Entry::File(file) => Place::File(*file),
            _ => Place::Other(id),
        })
    }

    fn list(&self, dir: u32) -> Vec<(Vec<u8>, bool)> {
        match &self.entries[dir as usize] {
            Entry::Dir(children, _) => children
                .iter()
                .map(|(n, id)| (n.clone(), matches!(self.entries[*id as usize], Entry::Link(_))))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn path(&self, number: u32) -> ImagePath {
        let mut parts = Vec::new();
        let mut at = number;
        while at != 0 {
            let parent = self.entries.iter().enumerate().find_map(|(id, e)| match e {
                Entry::Dir(children, _) => {
                    children.iter().find(|(_, c)| **c == at).map(|(name, _)| (id as u32, name.clone()))
                }
                _ => None,
            });
            let Some((parent, name)) = parent else { break };
            parts.push(name);
            at = parent;
        }
        parts.reverse();
        ImagePath::new(parts.join(&b'/'))
    }

    fn captured(&self, path: &[u8]) -> Option<&Capture> {
        match &self.entries[self.walk(0, path, 0).ok()?? as usize] {
            Entry::Other(capture) => capture.as_ref(),
            _ => None,
        }
    }
}

/// A small table of its own.
struct Known;

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| (*s).to_owned()).collect()
}

impl Knowledge for Known {
    fn is_driver(&self, library: &str) -> bool {
        library.starts_with("libcuda.so") || library.starts_with("libnvidia-")
    }

    fn lookups(&self) -> Vec<Lookup<'_>> {
        static TEXT: std::sync::OnceLock<[Vec<String>; 3]> = std::sync::OnceLock::new();
        let [roots, dirs, libraries] = TEXT.get_or_init(|| {
            [owned(&["torch/lib/libtorch_python.so"]), owned(&["nvidia/*/lib"]), owned(&["libcu*.so.*"])]
        });
        vec![Lookup { name: "torch", package: "torch", roots, dirs, libraries, first: &[] }]
    }

    fn opens(&self, path: &ImagePath, _: &ElfFacts) -> Vec<Opens> {
        let row = |names: &[&str], told| Opens { names: owned(names), told };
        match &*path.file_name_lossy() {
            "libcudnn.so.9" => vec![
                row(&["libcudnn_ops.so.9"], Told::Always),
                row(&["libnvrtc.so.12", "libnvrtc.so.13"], Told::UnlessAnother),
                row(&["libplugin.so"], Told::IfFound),
            ],
            _ => Vec::new(),
        }
    }

    fn family(&self, symbol: &str) -> Option<&str> {
        symbol.starts_with("cudnn").then_some("libcudnn")
    }
}
