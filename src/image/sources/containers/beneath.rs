//! A folder that an image's files were unpacked into: opened name by name, no link followed that leads out of it.
//!
//! What an image puts there is hostile: `../../etc/shadow` as a name, a symbolic link planted where a folder was.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};

use crate::model::ImagePath;

/// Links followed for one path, as the kernel has it.
const MAX_HOPS: usize = 40;

/// A folder by its handle, so that nothing above it matters any more.
pub struct Beneath {
    root: Arc<OwnedFd>,
    /// The folder opened last: files come folder by folder.
    last: Mutex<Option<(ImagePath, Arc<OwnedFd>)>>,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A fifo is not waited for.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Beneath {
    pub fn open(root: &Path) -> io::Result<Self> {
        let root = rustix::fs::openat(CWD, root, FOLDER, Mode::empty())?;
        Ok(Self { root: Arc::new(root), last: Mutex::new(None) })
    }

    /// A folder beneath, no link followed.
    pub fn folder(&self, path: &ImagePath) -> io::Result<Arc<OwnedFd>> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, fd)) = last().as_ref().filter(|(known, _)| known == path) {
            return Ok(fd.clone());
        }
        let mut at = self.root.clone();
        for name in path.components() {
            at = Arc::new(rustix::fs::openat(&at, OsStr::from_bytes(name), FOLDER, Mode::empty())?);
        }
        *last() = Some((path.clone(), at.clone()));
        Ok(at)
    }

    /// A regular file beneath, no link followed.
    pub fn file(&self, path: &ImagePath) -> io::Result<File> {
        let folder = self.folder(&path.parent())?;
        let fd = rustix::fs::openat(&folder, OsStr::from_bytes(path.file_name()), FILE, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        if kind(&stat) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "is no regular file"));
        }
        Ok(File::from(fd))
    }

    /// The same where a folder of the path is a symbolic link of a lower layer: it is followed as if this folder
    /// were the root of everything.
    pub fn file_within(&self, path: &ImagePath) -> io::Result<File> {
        match self.file(path) {
            Err(e) if is_link(&e) => self.file(&self.followed(path)?),
            other => other,
        }
    }

    /// The path with the links of its folders followed.
    fn followed(&self, path: &ImagePath) -> io::Result<ImagePath> {
        let mut hops = 0;
        let mut place = ImagePath::default();
        let mut rest: Vec<Vec<u8>> = path.parent().components().rev().map(<[u8]>::to_vec).collect();
        while let Some(name) = rest.pop() {
            match &name[..] {
                b"" | b"." => continue,
                b".." => {
                    place = place.parent();
                    continue;
                }
                _ => {}
            }
            let folder = self.folder(&place)?;
            match rustix::fs::readlinkat(&folder, OsStr::from_bytes(&name), Vec::new()) {
                Ok(target) => {
                    hops += 1;
                    if hops > MAX_HOPS {
                        return Err(io::Error::other("a loop of symbolic links"));
                    }
                    if target.as_bytes().first() == Some(&b'/') {
                        place = ImagePath::default();
                    }
                    rest.extend(target.as_bytes().split(|&b| b == b'/').rev().map(<[u8]>::to_vec));
                }
                Err(_) => place = place.join(&name),
            }
        }
        Ok(place.join(path.file_name()))
    }

    /// What a folder holds: names and what they are, sorted.
    pub fn entries(&self, path: &ImagePath) -> io::Result<Vec<(Vec<u8>, Stat)>> {
        let folder = self.folder(path)?;
        let mut out = Vec::new();
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if !matches!(&name[..], b"." | b"..") {
                let stat = rustix::fs::statat(&folder, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW)?;
                out.push((name, stat));
            }
        }
        out.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(out)
    }

    pub fn link(&self, path: &ImagePath) -> io::Result<Vec<u8>> {
        let folder = self.folder(&path.parent())?;
        let target = rustix::fs::readlinkat(&folder, OsStr::from_bytes(path.file_name()), Vec::new())?;
        Ok(std::ffi::OsString::from_vec(target.into_bytes()).into_vec())
    }

    /// The first byte of an extended attribute of a folder.
    pub fn attribute(&self, path: &ImagePath, name: &str) -> Option<u8> {
        let mut value = [0; 16];
        let folder = self.folder(path).ok()?;
        let n = rustix::fs::fgetxattr(&folder, name, &mut value[..]).ok()?;
        value[..n].first().copied()
    }
}

pub fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether a name was refused for being a symbolic link, or for lying behind one.
fn is_link(e: &io::Error) -> bool {
    [rustix::io::Errno::LOOP, rustix::io::Errno::NOTDIR].iter().any(|n| e.raw_os_error() == Some(n.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_outside_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("diff");
        std::fs::create_dir_all(root.join("usr/lib")).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::fs::write(root.join("usr/lib/a"), "inside").unwrap();
        symlink("usr/lib", root.join("lib")).unwrap();
        symlink("/usr/lib", root.join("abs")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("../secret", root.join("leaf")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let beneath = Beneath::open(&root).unwrap();
        let text = |file: io::Result<File>| file.and_then(io::read_to_string);
        let at = |path: &str| ImagePath::new(path);
        assert_eq!(text(beneath.file(&at("usr/lib/a"))).unwrap(), "inside");
        for link in ["lib/a", "up/secret", "leaf", "usr/lib", "loop/a", "none"] {
            assert!(beneath.file(&at(link)).is_err(), "{link}");
        }
        for inside in ["lib/a", "abs/a", "up/lib/a", "up/up/abs/a"] {
            assert_eq!(text(beneath.file_within(&at(inside))).unwrap(), "inside", "{inside}");
        }
        for outside in ["up/secret", "leaf", "loop/a", "../secret"] {
            assert!(beneath.file_within(&at(outside)).is_err(), "{outside}");
        }
        assert!(Beneath::open(&root.join("lib")).is_err());
    }
}
