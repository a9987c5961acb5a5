//! A set of named files that holds an image: a folder, an archive on disk, or an archive that streamed by.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::super::{Content, ImageError};
use super::manifest::{MAX_JSON, malformed, shown};
use crate::model::{Digest, ImagePath};

/// A layer as found in a [`Files`].
pub struct Stored {
    pub content: Content,
    pub size: u64,
    /// Known where the layer has been read already.
    pub read: Option<ReadDigests>,
}

/// Digests of a layer that streamed by.
#[derive(Debug, Clone, Copy)]
pub struct ReadDigests {
    pub digest: Digest,
    pub diff_id: Option<Digest>,
}

/// Files by name. Names come from manifests: they are hostile, and nothing outside the set may be opened.
pub trait Files: Send + Sync {
    /// What it is called in errors.
    fn place(&self) -> &str;

    /// A manifest or a config, at most [`MAX_JSON`] bytes; `None` if there is none of that name.
    fn small(&self, name: &str) -> Result<Option<Vec<u8>>, ImageError>;

    fn layer(&self, name: &str) -> Result<Option<Stored>, ImageError>;

    fn has(&self, name: &str) -> bool;
}

/// A folder.
pub struct Folder {
    root: PathBuf,
    place: String,
}

impl Folder {
    pub fn new(root: &Path, place: &str) -> Result<Self, ImageError> {
        let root = root.canonicalize().map_err(|e| io_error(place, e))?;
        Ok(Self { root, place: place.to_owned() })
    }

    /// The file of that name, if it is a regular file inside the folder, symbolic links followed.
    fn find(&self, name: &str) -> Result<Option<(PathBuf, u64)>, ImageError> {
        let normal = ImagePath::normalise(name.as_bytes());
        if normal.escaped || normal.path.is_root() || name.contains('\0') {
            return Ok(None);
        }
        let Some(inside) = normal.path.as_str() else { return Ok(None) };
        let path = match self.root.join(inside).canonicalize() {
            Ok(path) => path,
            Err(e) if is_absent(&e) => return Ok(None),
            Err(e) => return Err(io_error(&format!("{}: {}", self.place, normal.path), e)),
        };
        let what = || format!("{} is not a file inside the folder", normal.path);
        let meta = path.metadata().map_err(|e| io_error(&self.place, e))?;
        if !path.starts_with(&self.root) || !meta.is_file() {
            return Err(malformed(&self.place, what()));
        }
        Ok(Some((path, meta.len())))
    }
}

impl Files for Folder {
    fn place(&self) -> &str {
        &self.place
    }

    fn small(&self, name: &str) -> Result<Option<Vec<u8>>, ImageError> {
        let Some((path, size)) = self.find(name)? else { return Ok(None) };
        let file = File::open(path).map_err(|e| io_error(&self.place, e))?;
        read_small(file, size, name, &self.place).map(Some)
    }

    fn layer(&self, name: &str) -> Result<Option<Stored>, ImageError> {
        let Some((path, size)) = self.find(name)? else { return Ok(None) };
        let content = range(path, 0, size, format!("{}: {}", self.place, shown(name)));
        Ok(Some(Stored { content, size, read: None }))
    }

    fn has(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|f| f.is_some())
    }
}

/// Part of a file on disk as a layer's stored bytes.
pub fn range(path: PathBuf, offset: u64, size: u64, place: String) -> Content {
    Content::Blob(Box::new(move || {
        let open = || -> std::io::Result<_> {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file.take(size))
        };
        Ok(Box::new(open().map_err(|e| io_error(&place, e))?))
    }))
}

/// Reads `size` bytes, at most [`MAX_JSON`].
pub fn read_small(reader: impl Read, size: u64, name: &str, place: &str) -> Result<Vec<u8>, ImageError> {
    let too_large = || ImageError::TooLarge { place: place.to_owned(), what: shown(name), limit: MAX_JSON };
    if size > MAX_JSON {
        return Err(too_large());
    }
    let mut out = Vec::new();
    reader
        .take(MAX_JSON + 1)
        .read_to_end(&mut out)
        .map_err(|e| io_error(&format!("{place}: {}", shown(name)), e))?;
    match out.len() as u64 {
        n if n > MAX_JSON => Err(too_large()),
        n if n < size => Err(malformed(place, format!("{} is cut short", shown(name)))),
        _ => Ok(out),
    }
}

/// Checks bytes against what a descriptor promised.
pub fn verify(bytes: &[u8], digest: &Digest, size: Option<u64>, place: &str) -> Result<(), ImageError> {
    let actual = Digest::of(bytes);
    if actual != *digest {
        return Err(ImageError::DigestMismatch { place: place.to_owned(), expected: *digest, actual });
    }
    match size {
        Some(n) if n != bytes.len() as u64 => {
            Err(malformed(place, format!("{digest} has {} bytes, its descriptor says {n}", bytes.len())))
        }
        _ => Ok(()),
    }
}

/// Where something could not be read; an error that already knows its place keeps it.
pub fn io_error(place: &str, source: std::io::Error) -> ImageError {
    match source.downcast::<ImageError>() {
        Ok(inner) => inner,
        Err(source) => ImageError::Io { place: place.to_owned(), source },
    }
}

fn is_absent(e: &std::io::Error) -> bool {
    matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_opens_nothing_outside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("in");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::fs::write(root.join("a"), "12345").unwrap();
        let folder = Folder::new(&root, "x").unwrap();
        assert_eq!(folder.small("./a").unwrap().unwrap(), b"12345");
        assert!(folder.small("../secret").unwrap().is_none());
        assert!(folder.small("b").unwrap().is_none());
        assert!(folder.small("a/b").unwrap().is_none());
        assert!(folder.small("/").unwrap().is_none());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret", root.join("l")).unwrap();
            std::os::unix::fs::symlink("a", root.join("m")).unwrap();
            assert!(folder.small("l").is_err());
            assert_eq!(folder.small("m").unwrap().unwrap(), b"12345");
        }
        std::fs::create_dir(root.join("d")).unwrap();
        assert!(folder.layer("d").is_err());
        File::create(root.join("big")).unwrap().set_len(MAX_JSON + 1).unwrap();
        assert!(matches!(folder.small("big"), Err(ImageError::TooLarge { .. })));
        assert!(folder.has("big") && !folder.has("none"));
    }
}
