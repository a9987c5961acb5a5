//! A layer's folder where no tar-split is kept: read as it lies, with the whiteouts as overlay file systems write
//! them.

use std::io;

use rustix::fs::FileType;

use super::super::super::files::{FileTree, Listing, Node};
use super::beneath::{Beneath, kind};
use super::tar_split::unopened;
use crate::model::ImagePath;
use crate::stream::{DiskFile, Source};

/// What marks a folder that hides those of lower layers, as root, as another user, and with fuse-overlayfs.
const OPAQUE: [&str; 3] = ["trusted.overlay.opaque", "user.overlay.opaque", "user.fuseoverlayfs.opaque"];

pub struct DiffFolder {
    folder: Beneath,
    /// Whether it is the whole root file system.
    whole: bool,
}

impl DiffFolder {
    pub fn new(folder: Beneath, whole: bool) -> Self {
        Self { folder, whole }
    }

    /// A name of fuse-overlayfs that hides something: in `.wh.NAME` form.
    fn hidden(&self, folder: &ImagePath, name: &[u8]) -> Option<(ImagePath, Node)> {
        if self.whole {
            return None;
        }
        match name.strip_prefix(b".wh.")? {
            b"" | b"." | b".." => None,
            b".opq" | b".wh..opq" => Some((folder.clone(), Node::Opaque)),
            hidden => Some((folder.join(hidden), Node::Whiteout)),
        }
    }
}

impl FileTree for DiffFolder {
    fn list(&self, limit: u64) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let mut dirs = vec![ImagePath::default()];
        while let Some(folder) = dirs.pop() {
            let entries = match self.folder.entries(&folder) {
                Ok(entries) => entries,
                Err(e) => {
                    let why = unopened("this folder", &e);
                    listing.troubles.push((folder, why));
                    continue;
                }
            };
            for (name, stat) in entries {
                if listing.entries.len() as u64 >= limit {
                    return Err(io::Error::other(format!("more than {limit} entries")));
                }
                let path = folder.join(&name);
                let node = match kind(&stat) {
                    _ if name.starts_with(b".wh.") && !self.whole => match self.hidden(&folder, &name) {
                        Some(hidden) => {
                            listing.entries.push(hidden);
                            continue;
                        }
                        None => continue,
                    },
                    FileType::Directory => {
                        if !self.whole && OPAQUE.iter().any(|a| self.folder.attribute(&path, a) == Some(b'y')) {
                            listing.entries.push((path.clone(), Node::Opaque));
                        }
                        dirs.push(path.clone());
                        Node::Dir
                    }
                    FileType::RegularFile => Node::File { size: stat.st_size as u64, id: 0 },
                    FileType::Symlink => match self.folder.link(&path) {
                        Ok(target) => Node::Symlink(target),
                        Err(e) => {
                            listing.troubles.push((path, unopened("this link", &e)));
                            continue;
                        }
                    },
                    FileType::CharacterDevice if stat.st_rdev == 0 && !self.whole => Node::Whiteout,
                    _ => Node::Special,
                };
                listing.entries.push((path, node));
            }
        }
        Ok(listing)
    }

    fn open(&self, path: &ImagePath, _: u64) -> io::Result<Box<dyn Source + Send + '_>> {
        let named = |e: io::Error| io::Error::new(e.kind(), unopened("the file", &e));
        Ok(Box::new(DiskFile::new(self.folder.file(path).map_err(named)?)?))
    }

    fn stored(&self) -> Option<u64> {
        None
    }

    fn is_root(&self) -> bool {
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn listed(tree: &DiffFolder) -> Vec<String> {
        let mut out: Vec<String> =
            tree.list(100).unwrap().entries.into_iter().map(|(path, node)| format!("{path} {node:?}")).collect();
        out.sort();
        out
    }

    #[test]
    fn whiteouts_of_every_kind_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["opt", "srv", "usr"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("opt/.wh.gone"), "").unwrap();
        fs::write(at("opt/.wh..wh..opq"), "").unwrap();
        fs::write(at("usr/a"), "abc").unwrap();
        std::os::unix::fs::symlink("../x", at("usr/l")).unwrap();
        let mut want = vec![
            "opt Dir",
            "opt Opaque",
            "opt/gone Whiteout",
            "srv Dir",
            "usr Dir",
            "usr/a File { size: 3, id: 0 }",
            "usr/l Symlink([46, 46, 47, 120])",
        ];
        // Only root makes devices and these attributes.
        if rustix::process::geteuid().is_root() {
            use rustix::fs::{CWD, Mode, XattrFlags, makedev, mknodat, setxattr};
            let device = FileType::CharacterDevice;
            mknodat(CWD, at("usr/w"), device, Mode::empty(), makedev(0, 0)).unwrap();
            mknodat(CWD, at("usr/z"), device, Mode::empty(), makedev(1, 5)).unwrap();
            setxattr(at("srv"), OPAQUE[0], b"y", XattrFlags::empty()).unwrap();
            want.extend(["srv Opaque", "usr/w Whiteout", "usr/z Special"]);
        }
        want.sort();
        let tree = DiffFolder::new(Beneath::open(dir.path()).unwrap(), false);
        assert_eq!(listed(&tree), want);
        assert!(tree.list(3).is_err());
        let mut text = String::new();
        let mut file = tree.open(&ImagePath::new("usr/a"), 0).unwrap();
        io::Read::read_to_string(&mut file, &mut text).unwrap();
        assert_eq!(text, "abc");
        // The root file system up to a layer has no whiteouts any more; such names are files.
        let whole = DiffFolder::new(Beneath::open(dir.path()).unwrap(), true);
        assert!(listed(&whole).contains(&"opt/.wh.gone File { size: 0, id: 0 }".to_owned()));
    }
}
