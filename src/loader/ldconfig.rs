//! What ldconfig would write into `etc/ld.so.cache`: to tell a cache that is stale, and a library that only
//! ldconfig needs to be run for.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::search::Budget;
use super::system::System;
use super::table::Files;
use super::{Cache, Capability, Capture, Place, Tree};
use crate::model::{FileKind, LdCache};

/// The file that each name leads to.
#[derive(Debug, Default)]
pub struct View {
    names: HashMap<String, u32>,
}

impl View {
    pub fn get(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }
}

/// Looks into the directories of `ld.so.conf` and the built-in ones, as ldconfig does.
pub fn view(tree: &dyn Tree, files: &Files<'_>, system: &System, conf: &[String], budget: &Budget) -> View {
    let builtin = system.dirs.iter().map(String::as_str).chain(["/lib", "/usr/lib"]);
    let mut seen = Vec::new();
    let mut view = View::default();
    for dir in conf.iter().map(String::as_str).chain(builtin) {
        if let Some(Place::Dir(dir)) = tree.look(tree.root(), dir.as_bytes())
            && !seen.contains(&dir)
        {
            seen.push(dir);
            for (name, library) in libraries(tree, files, system.machine, dir, budget) {
                view.names.entry(name).or_insert(library.file);
            }
        }
    }
    view
}

#[derive(Debug)]
struct Library {
    file: u32,
    is_link: bool,
    /// The name in the directory.
    name: String,
}

fn libraries(
    tree: &dyn Tree,
    files: &Files<'_>,
    machine: u16,
    dir: u32,
    budget: &Budget,
) -> HashMap<String, Library> {
    let mut found: HashMap<String, Library> = HashMap::new();
    for (name, is_link) in tree.list(dir) {
        if !budget.spend(1) {
            break;
        }
        let Ok(name) = String::from_utf8(name) else { continue };
        if !is_library(&name) {
            continue;
        }
        let Some(Place::File(file)) = tree.look(dir, name.as_bytes()) else { continue };
        let file = file as u32;
        let Some(elf) = files.elf(file).filter(|e| e.facts.machine == machine) else { continue };
        if files.all[file as usize].facts.kind == FileKind::Executable && elf.soname.is_none() {
            continue;
        }
        let soname = elf.facts.soname.clone().unwrap_or_else(|| name.clone());
        // A link counts as one where it is called like the SONAME, or is its form for the linker.
        let is_link = is_link && (name == soname || (name.ends_with(".so") && soname.starts_with(name.as_str())));
        let key = if is_link { name.clone() } else { soname };
        let library = Library { file, is_link, name };
        match found.get_mut(&key) {
            Some(old) => {
                let newer = old.is_link == is_link && compare(&old.name, &library.name) == Ordering::Less;
                if newer || (old.is_link && !is_link) {
                    *old = library;
                }
            }
            None => {
                found.insert(key, library);
            }
        }
    }
    found
}

/// Whether a name looks like a library's and not like a leftover of a package manager.
fn is_library(name: &str) -> bool {
    let looks = (name.starts_with("lib") || name.starts_with("ld-")) && name.contains(".so");
    let leftover = name.contains(';') || name.contains(".#prelink#");
    looks && !leftover && !name.ends_with(".dpkg-new") && !name.ends_with(".dpkg-tmp")
}

/// How glibc orders names: runs of digits by their number.
fn compare(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.bytes().peekable(), b.bytes().peekable());
    loop {
        let digits = |c: Option<&u8>| c.is_some_and(u8::is_ascii_digit);
        match (digits(a.peek()), digits(b.peek())) {
            (true, true) => {
                let number = |it: &mut std::iter::Peekable<std::str::Bytes<'_>>| {
                    let mut value = 0u64;
                    while let Some(d) = it.next_if(u8::is_ascii_digit) {
                        value = value.saturating_mul(10).saturating_add(u64::from(d - b'0'));
                    }
                    value
                };
                match number(&mut a).cmp(&number(&mut b)) {
                    Ordering::Equal => {}
                    other => return other,
                }
            }
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => match (a.next(), b.next()) {
                (None, None) => return Ordering::Equal,
                (a, b) if a == b => {}
                (a, b) => return a.cmp(&b),
            },
        }
    }
}

/// Whether ldconfig would write another cache. Only plain entries for this machine are compared, by the file that
/// they lead to; the loader itself is listed by some releases and not by others.
pub fn state(
    tree: &dyn Tree,
    files: &Files<'_>,
    system: &System,
    view: &View,
    captured: Option<&Capture>,
) -> LdCache {
    let cache: &Cache = match captured {
        Some(Capture::Cache(cache)) => cache,
        Some(Capture::UnreadableCache) => return LdCache::Unreadable,
        _ => return LdCache::Absent,
    };
    let mut listed: HashMap<&str, Option<u32>> = HashMap::new();
    for entry in &cache.entries {
        if system.takes(entry.flags) && entry.capability == Capability::Any && !is_loader(&entry.name) {
            listed.entry(&entry.name).or_insert_with(|| match tree.look(tree.root(), entry.path.as_bytes()) {
                Some(Place::File(file)) if files.elf(file as u32).is_some() => Some(file as u32),
                _ => None,
            });
        }
    }
    let same = listed.iter().all(|(name, file)| file.is_some() && view.get(name) == *file)
        && view.names.keys().all(|name| is_loader(name) || listed.contains_key(name.as_str()));
    if same { LdCache::Fresh } else { LdCache::Stale }
}

fn is_loader(name: &str) -> bool {
    name.starts_with("ld-") || name.starts_with("ld.so") || name.starts_with("ld64.so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        assert_eq!(compare("liba.so.9", "liba.so.10"), Ordering::Less);
        assert_eq!(compare("liba.so.2", "liba.so.2"), Ordering::Equal);
        assert_eq!(compare("liba.so.2.1", "liba.so.2"), Ordering::Greater);
        assert_eq!(compare("liba1", "liba"), Ordering::Greater);
        assert_eq!(compare("liba", "libb"), Ordering::Less);
        assert!(is_library("libx.so.1") && is_library("ld-2.31.so"));
        assert!(!is_library("x.so") && !is_library("libx.so.1;5f3e") && !is_library("libx.so.dpkg-new"));
    }
}
