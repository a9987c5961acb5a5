//! Looking a merged tree over without changing it, from any directory in it: what the dynamic loader does.

use std::cell::Cell;

use super::{Id, MAX_DEPTH, MAX_HOPS, MAX_STEPS, MAX_TARGET, Node, ROOT, Tree, Unresolved};
use crate::model::ImagePath;

/// Path components looked up so far; see [`MAX_STEPS`].
#[derive(Debug, Default)]
pub struct Steps(Cell<u64>);

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen<'a, T> {
    Dir,
    File(&'a T),
    Special,
}

impl<T: Clone> Tree<T> {
    /// The number of the root directory.
    pub fn root(&self) -> u32 {
        ROOT
    }

    /// Follows raw bytes of a path as the kernel does: `..` from where a link has led, nothing behind what does
    /// not exist. A leading slash starts at the root, anything else in the directory `from`.
    pub fn seek(&self, from: u32, path: &[u8], steps: &Steps) -> Result<u32, Unresolved> {
        let mut at: Id = if path.starts_with(b"/") { ROOT } else { from };
        // What is still to be walked, last first.
        let mut todo: Vec<&[u8]> = path.rsplit(|&b| b == b'/').collect();
        let mut hops = 0;
        while let Some(name) = todo.pop() {
            steps.0.set(steps.0.get() + 1);
            if todo.len() > 2 * MAX_DEPTH {
                return Err(Unresolved::TooDeep);
            }
            let Some(slot) = self.slots.get(at as usize).filter(|_| steps.0.get() <= MAX_STEPS) else {
                return Err(Unresolved::Missing);
            };
            let Node::Dir(children) = &slot.node else { return Err(Unresolved::NotADirectory) };
            match name {
                b"" | b"." => continue,
                b".." => {
                    at = slot.parent;
                    continue;
                }
                _ => {}
            }
            let Some(&next) = children.get(name) else { return Err(Unresolved::Missing) };
            match &self.slots[next as usize].node {
                Node::Symlink(to) => {
                    hops += 1;
                    if hops > MAX_HOPS || to.len() > MAX_TARGET {
                        return Err(Unresolved::Loop);
                    }
                    if to.starts_with(b"/") {
                        at = ROOT;
                    }
                    todo.extend(to.rsplit(|&b| b == b'/'));
                }
                Node::File(_) | Node::Special if todo.iter().any(|n| !n.is_empty()) => {
                    return Err(Unresolved::NotADirectory);
                }
                _ => at = next,
            }
        }
        Ok(at)
    }

    pub fn seen(&self, number: u32) -> Option<Seen<'_, T>> {
        match &self.slots.get(number as usize)?.node {
            Node::Dir(_) => Some(Seen::Dir),
            Node::File(file) => Some(Seen::File(file)),
            Node::Special => Some(Seen::Special),
            Node::Symlink(_) => None,
        }
    }

    /// The names in a directory, and which of them are symbolic links.
    pub fn list(&self, dir: u32) -> impl Iterator<Item = (&[u8], bool)> {
        let children = match self.slots.get(dir as usize).map(|s| &s.node) {
            Some(Node::Dir(children)) => Some(children),
            _ => None,
        };
        let is_link = |id: Id| matches!(self.slots.get(id as usize).map(|s| &s.node), Some(Node::Symlink(_)));
        children.into_iter().flatten().map(move |(name, id)| (&**name, is_link(*id)))
    }

    /// The real path of what has a number.
    pub fn real_path(&self, number: u32) -> ImagePath {
        if (number as usize) < self.slots.len() { self.path_of(number) } else { ImagePath::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Change, LayerEntry};
    use super::*;

    fn tree() -> Tree<u8> {
        let entry = |path: &str, change| LayerEntry { path: ImagePath::new(path), change };
        let mut tree = Tree::new();
        let trouble = tree.apply(
            0,
            vec![
                entry("data/real/libx.so.1.2", Change::File(1)),
                entry("data/real/libx.so.1", Change::Symlink(b"libx.so.1.2".to_vec())),
                entry("data/lib/libz.so", Change::File(2)),
                entry("opt/link", Change::Symlink(b"/data/real".to_vec())),
                entry("opt/lib/libz.so", Change::File(3)),
                entry("opt/loop", Change::Symlink(b"loop".to_vec())),
                entry("opt/dangling", Change::Symlink(b"none".to_vec())),
            ],
        );
        assert!(trouble.is_empty());
        tree
    }

    #[test]
    fn paths_are_followed_as_the_kernel_does() {
        let tree = tree();
        let at = |path: &str| {
            let id = tree.seek(tree.root(), path.as_bytes(), &Steps::default()).ok()?;
            Some(tree.path_of(id).to_string())
        };
        assert_eq!(at("/opt/link/libx.so.1").as_deref(), Some("data/real/libx.so.1.2"));
        assert_eq!(at("opt/link/../lib/libz.so").as_deref(), Some("data/lib/libz.so"), "not opt/lib");
        assert_eq!(at("opt//./lib/").as_deref(), Some("opt/lib"));
        assert_eq!(at("../../opt/lib").as_deref(), Some("opt/lib"));
        assert_eq!(at("").as_deref(), Some(""));
        for nowhere in ["opt/none/../lib", "opt/loop", "opt/dangling", "opt/lib/libz.so/..", "data/lib/libz.so/x"] {
            assert_eq!(at(nowhere), None, "{nowhere}");
        }
        let loops = tree.seek(tree.root(), b"opt/loop", &Steps::default());
        assert_eq!(loops, Err(Unresolved::Loop));
        let dir = tree.seek(tree.root(), b"opt", &Steps::default()).unwrap();
        assert_eq!(tree.seen(dir), Some(Seen::Dir));
        let names: Vec<(&[u8], bool)> = tree.list(dir).collect();
        assert_eq!(names, [(&b"dangling"[..], true), (b"lib", false), (b"link", true), (b"loop", true)]);
        assert_eq!(tree.list(9999).count(), 0);
    }

    #[test]
    fn steps_are_bounded() {
        let tree = tree();
        let steps = Steps(Cell::new(MAX_STEPS));
        assert_eq!(tree.seek(tree.root(), b"opt", &steps), Err(Unresolved::Missing));
    }
}
