//! Layers merged into one tree: whiteouts, opaque directories, links, replaced files.
//!
//! Follows the OCI image spec and what containerd does where the spec is silent: a layer's whiteouts and opaque
//! markers hide lower layers only, wherever they stand in the tar; an entry below a symbolic link lands in the
//! link's target, inside the root; a directory entry over anything but a directory replaces it.

mod seek;

use std::collections::{BTreeMap, VecDeque};

use crate::model::ImagePath;

pub use seek::{Seen, Steps};

/// Links followed for one path, as the kernel has it.
const MAX_HOPS: usize = 40;

/// Longest link target that can be followed, PATH_MAX.
const MAX_TARGET: usize = 4096;

/// Path components looked up for one image: ends hostile webs of links that would take hours.
const MAX_STEPS: u64 = 1 << 28;

/// Components of one path: PATH_MAX allows half as many.
const MAX_DEPTH: usize = 4096;

/// One entry of a layer; `T` is whatever a file carries.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerEntry<T> {
    pub path: ImagePath,
    pub change: Change<T>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Change<T> {
    Dir,
    File(T),
    Symlink(Vec<u8>),
    Hardlink(ImagePath),
    Special,
    Whiteout,
    Opaque,
}

type Id = u32;
const ROOT: Id = 0;

#[derive(Debug)]
enum Node<T> {
    Dir(BTreeMap<Box<[u8]>, Id>),
    File(T),
    Symlink(Box<[u8]>),
    Special,
}

#[derive(Debug)]
struct Slot<T> {
    node: Node<T>,
    parent: Id,
    layer: u32,
}

/// Something that could not be placed: (path, why).
pub type Trouble = (ImagePath, String);

/// Why a path leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error("does not exist")]
    Missing,
    #[error("a loop of symbolic links (more than {MAX_HOPS} followed)")]
    Loop,
    #[error("is not a directory")]
    NotADirectory,
    #[error("is more than {MAX_DEPTH} directories deep")]
    TooDeep,
}

/// The merged tree.
#[derive(Debug)]
pub struct Tree<T> {
    slots: Vec<Slot<T>>,
    steps: u64,
}

/// A file of the merged tree.
#[derive(Debug, PartialEq, Eq)]
pub struct FileRef<'a, T> {
    /// The number of the file in its tree.
    pub id: u32,
    pub path: ImagePath,
    pub layer: usize,
    pub file: &'a T,
}

impl<T: Clone> Default for Tree<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone> Tree<T> {
    pub fn new() -> Self {
        Self { slots: vec![Slot { node: Node::Dir(BTreeMap::new()), parent: ROOT, layer: 0 }], steps: 0 }
    }

    /// Lays one layer over the tree.
    pub fn apply(&mut self, layer: usize, entries: Vec<LayerEntry<T>>) -> Vec<Trouble> {
        let layer = layer as u32;
        let mut trouble = Vec::new();
        // Hard links may name a file of a lower layer that this layer removes.
        let mut before: BTreeMap<usize, Node<T>> = BTreeMap::new();
        for (i, entry) in entries.iter().enumerate() {
            if let Change::Hardlink(to) = &entry.change
                && let Some(node) = self.copy_of(to)
            {
                before.insert(i, node);
            }
        }
        for entry in &entries {
            match entry.change {
                Change::Whiteout => self.whiteout(&entry.path),
                Change::Opaque => self.opaque(&entry.path),
                _ => {}
            }
        }
        let mut late = Vec::new();
        for (i, entry) in entries.into_iter().enumerate() {
            let path = entry.path;
            let node = match entry.change {
                Change::Whiteout | Change::Opaque => continue,
                Change::Dir => {
                    if let Err(why) = self.make_dir(&path, layer) {
                        trouble.push((path, why.to_string()));
                    }
                    continue;
                }
                Change::File(file) => Node::File(file),
                Change::Symlink(to) => Node::Symlink(to.into_boxed_slice()),
                Change::Special => Node::Special,
                Change::Hardlink(to) => match self.copy_of(&to).or_else(|| before.remove(&i)) {
                    Some(node) => node,
                    None => {
                        late.push((path, to));
                        continue;
                    }
                },
            };
            if let Err(why) = self.place(&path, node, layer) {
                trouble.push((path, why.to_string()));
            }
        }
        // Once more for links that stand before their target; what is left leads nowhere.
        for (path, to) in late {
            let placed = match self.copy_of(&to) {
                Some(node) => self.place(&path, node, layer).map_err(|e| e.to_string()),
                None => Err(format!("hard link to `{to}`, which is not in the image")),
            };
            if let Err(why) = placed {
                trouble.push((path, why));
            }
        }
        trouble
    }

    /// Hands over the files of the tree, in path order: there may be millions, of which few are of interest.
    pub fn each_file<'a>(&'a self, mut seen: impl FnMut(FileRef<'a, T>)) {
        self.visit(|path, id, slot| {
            if let Node::File(file) = &slot.node {
                seen(FileRef { id, path, layer: slot.layer as usize, file });
            }
        });
    }

    /// Symbolic links that lead to a file that `wanted` picks: (link, file).
    pub fn file_links(&mut self, wanted: impl Fn(&T) -> bool) -> Vec<(ImagePath, ImagePath)> {
        let mut links = Vec::new();
        self.visit(|path, _, slot| {
            if let Node::Symlink(_) = &slot.node {
                links.push(path);
            }
        });
        links
            .into_iter()
            .filter_map(|link| {
                let id = self.walk(&link, true, None).ok()?;
                let leads = matches!(&self.slots[id as usize].node, Node::File(file) if wanted(file));
                leads.then(|| (link, self.path_of(id)))
            })
            .collect()
    }

    /// Symbolic links of a wanted path that lead to a file.
    pub fn links_to_files(&mut self, wanted: impl Fn(&ImagePath) -> bool) -> Vec<ImagePath> {
        let mut links = Vec::new();
        self.visit(|path, _, slot| {
            if matches!(slot.node, Node::Symlink(_)) && wanted(&path) {
                links.push(path);
            }
        });
        links.retain(|link| {
            let end = self.walk(link, true, None);
            end.is_ok_and(|id| matches!(self.slots[id as usize].node, Node::File(_)))
        });
        links
    }

    /// The file a path leads to, links followed.
    pub fn file(&mut self, path: &ImagePath) -> Result<(ImagePath, &T), Unresolved> {
        let id = self.walk(path, true, None)?;
        let place = self.path_of(id);
        match &self.slots[id as usize].node {
            Node::File(file) => Ok((place, file)),
            _ => Err(Unresolved::Missing),
        }
    }

    fn visit<'a>(&'a self, mut seen: impl FnMut(ImagePath, Id, &'a Slot<T>)) {
        let mut path: Vec<u8> = Vec::new();
        // The directories above, each with the length of its path and what of it is left.
        let mut open = Vec::new();
        if let Node::Dir(children) = &self.slots[ROOT as usize].node {
            open.push((0, children.iter()));
        }
        while let Some((length, children)) = open.last_mut() {
            let Some((name, &id)) = children.next() else {
                open.pop();
                continue;
            };
            path.truncate(*length);
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            let slot = &self.slots[id as usize];
            match &slot.node {
                Node::Dir(children) => open.push((path.len(), children.iter())),
                _ => seen(ImagePath::new(&path), id, slot),
            }
        }
    }

    fn path_of(&self, mut id: Id) -> ImagePath {
        let mut names: Vec<&[u8]> = Vec::new();
        while id != ROOT {
            let parent = self.slots[id as usize].parent;
            if let Node::Dir(children) = &self.slots[parent as usize].node
                && let Some((name, _)) = children.iter().find(|(_, c)| **c == id)
            {
                names.push(name);
            }
            id = parent;
        }
        names.reverse();
        ImagePath::new(names.join(&b'/'))
    }

    fn child(&self, dir: Id, name: &[u8]) -> Option<Id> {
        match &self.slots[dir as usize].node {
            Node::Dir(children) => children.get(name).copied(),
            _ => None,
        }
    }

    fn attach(&mut self, dir: Id, name: &[u8], node: Node<T>, layer: u32) -> Id {
        let id = self.slots.len() as Id;
        self.slots.push(Slot { node, parent: dir, layer });
        if let Node::Dir(children) = &mut self.slots[dir as usize].node {
            children.insert(name.into(), id);
        }
        id
    }

    /// Finds a node. `make`: missing directories are made for that layer, and files in the way replaced.
    fn walk(&mut self, path: &ImagePath, follow_last: bool, make: Option<u32>) -> Result<Id, Unresolved> {
        let mut todo: VecDeque<Box<[u8]>> = path.components().take(MAX_DEPTH + 1).map(Into::into).collect();
        if todo.len() > MAX_DEPTH {
            return Err(Unresolved::TooDeep);
        }
        let mut at = ROOT;
        let mut hops = 0;
        while let Some(name) = todo.pop_front() {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(Unresolved::Loop);
            }
            if &*name == b".." {
                at = self.slots[at as usize].parent;
                continue;
            }
            let Some(next) = self.child(at, &name) else {
                match (&self.slots[at as usize].node, make) {
                    (Node::Dir(_), Some(layer)) => {
                        at = self.attach(at, &name, Node::Dir(BTreeMap::new()), layer);
                        continue;
                    }
                    (Node::Dir(_), None) => return Err(Unresolved::Missing),
                    _ => return Err(Unresolved::NotADirectory),
                }
            };
            match &self.slots[next as usize].node {
                Node::Symlink(to) if follow_last || !todo.is_empty() => {
                    hops += 1;
                    if hops > MAX_HOPS || to.len() > MAX_TARGET {
                        return Err(Unresolved::Loop);
                    }
                    if to.starts_with(b"/") {
                        at = ROOT;
                    }
                    let parts = to.split(|&b| b == b'/').filter(|p| !p.is_empty() && *p != b".");
                    for part in parts.rev().map(Box::from).collect::<Vec<Box<[u8]>>>() {
                        todo.push_front(part);
                    }
                }
                Node::File(_) | Node::Special | Node::Symlink(_) if !todo.is_empty() || make.is_some() => {
                    match make {
                        Some(layer) => at = self.attach(at, &name, Node::Dir(BTreeMap::new()), layer),
                        None => return Err(Unresolved::NotADirectory),
                    }
                }
                _ => at = next,
            }
        }
        Ok(at)
    }

    fn copy_of(&mut self, path: &ImagePath) -> Option<Node<T>> {
        let parent = self.walk(&path.parent(), true, None).ok()?;
        let id = self.child(parent, path.file_name())?;
        match &self.slots[id as usize].node {
            Node::File(file) => Some(Node::File(file.clone())),
            Node::Symlink(to) => Some(Node::Symlink(to.clone())),
            Node::Special => Some(Node::Special),
            Node::Dir(_) => None,
        }
    }

    fn whiteout(&mut self, path: &ImagePath) {
        let Ok(parent) = self.walk(&path.parent(), true, None) else { return };
        if let Node::Dir(children) = &mut self.slots[parent as usize].node {
            children.remove(path.file_name());
        }
    }

    fn opaque(&mut self, path: &ImagePath) {
        let Ok(dir) = self.walk(path, true, None) else { return };
        if let Node::Dir(children) = &mut self.slots[dir as usize].node {
            children.clear();
        }
    }

    fn make_dir(&mut self, path: &ImagePath, layer: u32) -> Result<(), Unresolved> {
        if path.is_root() {
            return Ok(());
        }
        let parent = self.parent_for(path, layer)?;
        if let Some(id) = self.child(parent, path.file_name())
            && matches!(self.slots[id as usize].node, Node::Dir(_))
        {
            return Ok(());
        }
        self.attach(parent, path.file_name(), Node::Dir(BTreeMap::new()), layer);
        Ok(())
    }

    fn place(&mut self, path: &ImagePath, node: Node<T>, layer: u32) -> Result<(), Unresolved> {
        if path.is_root() {
            return Err(Unresolved::Missing);
        }
        let parent = self.parent_for(path, layer)?;
        self.attach(parent, path.file_name(), node, layer);
        Ok(())
    }

    fn parent_for(&mut self, path: &ImagePath, layer: u32) -> Result<Id, Unresolved> {
        let parent = self.walk(&path.parent(), true, Some(layer))?;
        match self.slots[parent as usize].node {
            Node::Dir(_) => Ok(parent),
            _ => Err(Unresolved::NotADirectory),
        }
    }
}

#[cfg(test)]
mod tests;
