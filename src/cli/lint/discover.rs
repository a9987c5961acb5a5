//! Which files are meant: those that are named, and what looks like a Dockerfile in folders.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::cli::error::CliError;
use crate::model::escape;

/// A file to lint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// None: standard input.
    pub path: Option<PathBuf>,
    /// What reports call it.
    pub name: String,
}

/// What reports call standard input.
pub const STDIN: &str = "<stdin>";

/// Endings behind `Dockerfile.` of what is no Dockerfile, or not yet: templates, notes, backups, and what builders
/// read besides it.
const NO_DOCKERFILE: &[&str] = &[
    "bak",
    "dockerignore",
    "erb",
    "in",
    "j2",
    "jinja",
    "jinja2",
    "json",
    "lock",
    "log",
    "md",
    "mustache",
    "orig",
    "patch",
    "py",
    "rej",
    "rst",
    "sh",
    "swo",
    "swp",
    "template",
    "tmp",
    "tmpl",
    "toml",
    "tpl",
    "txt",
    "yaml",
    "yml",
];

/// Folders of version control.
const NEVER: &[&str] = &[".git", ".hg", ".svn", ".jj"];

/// The files, each once, and the errors of paths that lead to none.
pub fn find(paths: &[PathBuf], no_ignore: bool) -> (Vec<Named>, Vec<CliError>) {
    let mut out = Vec::new();
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        if path.as_os_str() == "-" {
            if seen.insert(PathBuf::from("-")) {
                out.push(Named { path: None, name: STDIN.to_owned() });
            }
            continue;
        }
        match fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                errors.push(CliError::NotFound(shown(path)));
            }
            Err(error) => errors.push(CliError::Read { place: shown(path), source: error }),
            Ok(meta) if meta.is_dir() => {
                let found = below(path, no_ignore, &mut errors);
                if found.is_empty() {
                    errors.push(CliError::NoDockerfile(shown(path)));
                }
                for file in found {
                    if seen.insert(real(&file)) {
                        out.push(Named { name: shown(&file), path: Some(file) });
                    }
                }
            }
            Ok(_) if seen.insert(real(path)) => out.push(Named { name: shown(path), path: Some(path.clone()) }),
            Ok(_) => {}
        }
    }
    (out, errors)
}

/// Dockerfiles below a folder. Links to folders are not followed; a link to a file counts once with it.
fn below(dir: &Path, no_ignore: bool, errors: &mut Vec<CliError>) -> Vec<PathBuf> {
    let mut walk = WalkBuilder::new(dir);
    // Names are specific enough to look into hidden folders (.devcontainer). The user's own settings of git do not
    // count, so that a repository gives the same findings everywhere.
    walk.hidden(false).git_global(false).require_git(false).follow_links(false);
    walk.git_ignore(!no_ignore).git_exclude(!no_ignore).ignore(!no_ignore).parents(!no_ignore);
    walk.filter_entry(|e| e.depth() == 0 || !NEVER.iter().any(|n| e.file_name() == *n));
    walk.sort_by_file_name(|a, b| a.cmp(b));
    let mut plain = Vec::new();
    let mut links = Vec::new();
    for entry in walk.build() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                // A folder that may not be read may hold Dockerfiles; a bad line of a .gitignore is nothing to us.
                if let Some(source) = error.io_error().map(|e| std::io::Error::new(e.kind(), error.to_string())) {
                    errors.push(CliError::Read { place: shown(dir), source });
                }
                continue;
            }
        };
        let Some(kind) = entry.file_type().filter(|_| is_dockerfile(entry.file_name())) else { continue };
        if kind.is_file() {
            plain.push(entry.into_path());
        } else if kind.is_symlink() && fs::metadata(entry.path()).is_ok_and(|m| m.is_file()) {
            links.push(entry.into_path());
        }
    }
    let mut seen: HashSet<PathBuf> = plain.iter().map(|p| real(p)).collect();
    plain.extend(links.into_iter().filter(|link| seen.insert(real(link))));
    plain.sort();
    plain
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// `Dockerfile`, `Containerfile`, `Dockerfile.gpu`, `gpu.Dockerfile`, in any case of letters.
fn is_dockerfile(name: &OsStr) -> bool {
    let Some(name) = name.to_str().map(str::to_ascii_lowercase) else { return false };
    let named = |whole: &str| {
        let (stem, rest) = name.split_at_checked(whole.len()).unwrap_or_default();
        let ending = rest.rsplit('.').next().unwrap_or_default();
        stem == whole
            && (rest.is_empty() || rest.len() > 1 && rest.starts_with('.') && !NO_DOCKERFILE.contains(&ending))
    };
    let behind = |ending: &str| name.strip_suffix(ending).is_some_and(|stem| !stem.is_empty() && stem != ".");
    !name.ends_with('~')
        && (named("dockerfile") || named("containerfile") || behind(".dockerfile") || behind(".containerfile"))
}

/// A path as reports tell it: from the working directory where it lies below that, with odd characters escaped.
pub fn shown(path: &Path) -> String {
    let inside = std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok());
    let path = inside.filter(|p| !p.as_os_str().is_empty()).unwrap_or(path);
    let parts = path.components().filter(|c| *c != std::path::Component::CurDir);
    let path: PathBuf = parts.collect();
    if path.as_os_str().is_empty() {
        return ".".to_owned();
    }
    escape(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_dockerfiles() {
        for yes in [
            "Dockerfile",
            "dockerfile",
            "Containerfile",
            "Dockerfile.gpu",
            "Dockerfile.cuda-12.4",
            "gpu.Dockerfile",
            "a.b.dockerfile",
            "Containerfile.rocm",
            "x.containerfile",
        ] {
            assert!(is_dockerfile(OsStr::new(yes)), "{yes}");
        }
        for no in [
            "Dockerfile~",
            "Dockerfile.swp",
            ".Dockerfile.swp",
            "Dockerfile.bak",
            "Dockerfile.dockerignore",
            "gpu.Dockerfile.dockerignore",
            "Dockerfile.j2",
            "Dockerfile.",
            ".Dockerfile",
            "..dockerfile",
            "Dockerfiles",
            "mydockerfile",
            "Dockerfile-gpu~",
            "Dockerfile.md",
            "#Dockerfile#",
            "",
            "dockerfïle",
        ] {
            // A hidden file of that ending has no name before it.
            assert!(!is_dockerfile(OsStr::new(no)), "{no}");
        }
    }

    #[test]
    fn folders_are_walked_as_the_repository_has_them() {
        let root = tempfile::tempdir().unwrap();
        let at = |p: &str| root.path().join(p);
        for dir in [".git", ".devcontainer", "a/b", "built", "loop"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        for file in
            [".git/Dockerfile", ".devcontainer/Dockerfile", "a/b/gpu.Dockerfile", "built/Dockerfile", "z.txt"]
        {
            fs::write(at(file), "FROM scratch\n").unwrap();
        }
        fs::write(at(".gitignore"), "built/\n").unwrap();
        std::os::unix::fs::symlink(at("loop"), at("loop/again")).unwrap();
        std::os::unix::fs::symlink(at("a/b/gpu.Dockerfile"), at("Dockerfile")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("a/Dockerfile")).unwrap();
        let names = |no_ignore| {
            let (found, errors) = find(&[root.path().to_owned(), at("a")], no_ignore);
            assert!(errors.is_empty(), "{errors:?}");
            let relative = |n: &Named| n.path.as_ref().unwrap().strip_prefix(root.path()).unwrap().to_owned();
            found.iter().map(|n| relative(n).to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(false), [".devcontainer/Dockerfile", "a/b/gpu.Dockerfile"]);
        assert_eq!(names(true), [".devcontainer/Dockerfile", "a/b/gpu.Dockerfile", "built/Dockerfile"]);
        let (found, errors) = find(&[at("loop"), at("nosuch"), at("z.txt"), at("z.txt")], false);
        assert_eq!((found.len(), errors.len()), (1, 2), "{errors:?}");
    }
}
