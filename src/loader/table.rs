//! The ELF files of an image with their names as numbers: simulating thousands of processes compares names all the
//! time.

use std::collections::HashMap;

use super::{Knowledge, Told};
use crate::model::{ElfFacts, EvidenceFile, FileKind, ImagePath};

/// A library name, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

/// Names and their numbers.
#[derive(Debug, Default)]
pub struct Names {
    numbers: HashMap<Box<str>, Name>,
    texts: Vec<Box<str>>,
}

impl Names {
    pub fn add(&mut self, text: &str) -> Name {
        if let Some(name) = self.numbers.get(text) {
            return *name;
        }
        let name = Name(self.texts.len() as u32);
        self.texts.push(text.into());
        self.numbers.insert(text.into(), name);
        name
    }

    pub fn find(&self, text: &str) -> Option<Name> {
        self.numbers.get(text).copied()
    }

    pub fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }
}

/// An ELF file that can be loaded.
#[derive(Debug)]
pub struct Elf<'a> {
    pub path: &'a ImagePath,
    pub facts: &'a ElfFacts,
    pub needed: Vec<Name>,
    pub soname: Option<Name>,
    /// The libraries that it asks versions of, in the order of `facts.asks`.
    pub asks: Vec<Name>,
    /// What it opens by name, group by group.
    pub opens: Vec<Name>,
    /// Of each group: how many names, and which are told.
    pub groups: Vec<(usize, Told)>,
}

/// All files of an image, by their index in the evidence.
pub struct Files<'a> {
    pub all: &'a [EvidenceFile],
    elfs: Vec<Option<Box<Elf<'a>>>>,
    pub names: Names,
}

impl<'a> Files<'a> {
    pub fn new(all: &'a [EvidenceFile], known: &dyn Knowledge) -> Self {
        let mut names = Names::default();
        let elfs = all.iter().map(|file| elf(file, known, &mut names).map(Box::new)).collect();
        Self { all, elfs, names }
    }

    pub fn elf(&self, file: u32) -> Option<&Elf<'a>> {
        self.elfs.get(file as usize)?.as_deref()
    }

    pub fn path(&self, file: u32) -> &'a ImagePath {
        &self.all[file as usize].path
    }

    pub fn elfs(&self) -> impl Iterator<Item = (u32, &Elf<'a>)> {
        self.elfs.iter().enumerate().filter_map(|(i, e)| Some((i as u32, e.as_deref()?)))
    }
}

fn elf<'a>(file: &'a EvidenceFile, known: &dyn Knowledge, names: &mut Names) -> Option<Elf<'a>> {
    let loadable = matches!(file.facts.kind, FileKind::SharedObject | FileKind::Executable);
    let facts = file.facts.elf.as_ref()?;
    if !loadable || file.in_archive {
        return None;
    }
    let opens = known.opens(&file.path, facts);
    Some(Elf {
        path: &file.path,
        facts,
        needed: facts.needed.iter().map(|n| names.add(n)).collect(),
        soname: facts.soname.as_ref().map(|n| names.add(n)),
        asks: facts.asks.iter().map(|a| names.add(&a.of)).collect(),
        opens: opens.iter().flat_map(|o| &o.names).map(|n| names.add(n)).collect(),
        groups: opens.iter().map(|o| (o.names.len(), o.told)).collect(),
    })
}
