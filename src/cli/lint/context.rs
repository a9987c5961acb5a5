//! The build context: files that a Dockerfile names, read from the folders that it is likely built from.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::dockerfile::commands::Files;

/// Bytes of a file that are read; more is no list of requirements.
const MOST: u64 = 1 << 20;

/// Folders that a path may be looked up in, the likeliest first.
#[derive(Debug, Clone, Default)]
pub struct Context {
    roots: Vec<PathBuf>,
}

impl Context {
    /// Of the folder that was named.
    pub fn of(dir: &Path) -> Self {
        Self { roots: fs::canonicalize(dir).into_iter().collect() }
    }

    /// Of a Dockerfile: its folder; the working directory and the repository where it lies below them, as in
    /// `docker build -f docker/Dockerfile .`
    pub fn around(dockerfile: Option<&Path>) -> Self {
        let here = std::env::current_dir().and_then(fs::canonicalize).ok();
        let Some(file) = dockerfile.and_then(|f| fs::canonicalize(f).ok()) else {
            return Self { roots: here.into_iter().collect() };
        };
        let mut roots: Vec<PathBuf> = file.parent().map(Path::to_owned).into_iter().collect();
        let repository = file.ancestors().find(|d| d.join(".git").exists()).map(Path::to_owned);
        for root in here.into_iter().chain(repository) {
            if file.starts_with(&root) && !roots.contains(&root) {
                roots.push(root);
            }
        }
        Self { roots }
    }
}

impl Context {
    /// The folders, the likeliest first.
    pub fn folders(&self) -> &[PathBuf] {
        &self.roots
    }
}

impl Files for Context {
    fn read(&self, path: &str) -> Option<Result<Vec<u8>, String>> {
        self.roots.iter().find_map(|root| read_below(root, path))
    }
}

/// A regular file below a folder, however links on the way turn.
fn read_below(root: &Path, path: &str) -> Option<Result<Vec<u8>, String>> {
    let mut inside = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => inside.push(name),
            // `/` is the context's own root.
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir => inside.pop().then_some(())?,
            Component::Prefix(_) => return None,
        }
    }
    let real = fs::canonicalize(root.join(inside)).ok().filter(|real| real.starts_with(root))?;
    let meta = fs::metadata(&real).ok().filter(fs::Metadata::is_file)?;
    if meta.len() > MOST {
        return Some(Err(format!("larger than {} MiB", MOST >> 20)));
    }
    let mut bytes = Vec::new();
    let read = File::open(&real).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    Some(read.map(|_| bytes).map_err(|e| e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_context_is_read() {
        let root = tempfile::tempdir().unwrap();
        let at = |p: &str| root.path().join(p);
        fs::create_dir_all(at("context/docker")).unwrap();
        fs::write(at("secret"), "s").unwrap();
        fs::write(at("context/requirements.txt"), "torch").unwrap();
        fs::write(at("context/large"), vec![b'x'; (MOST + 1) as usize]).unwrap();
        std::os::unix::fs::symlink(at("secret"), at("context/link")).unwrap();
        std::os::unix::fs::symlink(root.path(), at("context/up")).unwrap();
        std::os::unix::fs::symlink("requirements.txt", at("context/same")).unwrap();
        let context = Context::of(&at("context"));
        for path in ["requirements.txt", "./docker/../requirements.txt", "/requirements.txt", "same"] {
            assert_eq!(context.read(path), Some(Ok(b"torch".to_vec())), "{path}");
        }
        for path in ["../secret", "docker/../../secret", "link", "up/secret", "docker", "nosuch", "", "a\0b"] {
            assert_eq!(context.read(path), None, "{path}");
        }
        assert!(context.read("large").unwrap().is_err());
        assert_eq!(Context::of(&at("nosuch")).read("requirements.txt"), None);
    }

    #[test]
    fn a_dockerfile_in_a_folder_is_built_from_the_repository_too() {
        let root = tempfile::tempdir().unwrap();
        let at = |p: &str| root.path().join(p);
        fs::create_dir_all(at("docker")).unwrap();
        fs::create_dir_all(at(".git")).unwrap();
        fs::write(at("docker/Dockerfile"), "").unwrap();
        fs::write(at("requirements.txt"), "root").unwrap();
        let context = Context::around(Some(&at("docker/Dockerfile")));
        assert_eq!(context.read("requirements.txt"), Some(Ok(b"root".to_vec())));
        fs::write(at("docker/requirements.txt"), "near").unwrap();
        assert_eq!(context.read("requirements.txt"), Some(Ok(b"near".to_vec())));
    }
}
