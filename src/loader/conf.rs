//! Text files about the loader: `ld.so.conf` with what it includes, `ld.so.preload`, `os-release`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Capture, Tree, glob};
use crate::model::{Gap, ImagePath};

/// Configuration files read for one image; includes may form loops.
const MAX_FILES: usize = 1000;

/// A line of `ld.so.conf` that says something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfLine {
    Dir(String),
    /// A shell pattern.
    Include(String),
}

pub fn lines(bytes: &[u8]) -> Vec<ConfLine> {
    let mut out = Vec::new();
    for line in String::from_utf8_lossy(bytes).lines() {
        let text = line.split('#').next().unwrap_or_default().trim();
        let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
        match word {
            "" => {}
            "include" => out.extend(rest.split_whitespace().map(|p| ConfLine::Include(p.to_owned()))),
            _ if word.eq_ignore_ascii_case("hwcap") && !rest.is_empty() => {}
            // Old files name a kind of library behind the directory: `/usr/lib=libc5`.
            _ => {
                let dir = text.split('=').next().unwrap_or_default().trim_end();
                out.push(ConfLine::Dir(dir.to_owned()));
            }
        }
    }
    out
}

/// The directories that ldconfig would look into because `etc/ld.so.conf` says so, in its order.
pub fn directories(tree: &dyn Tree, gaps: &mut Vec<Gap>) -> Vec<String> {
    let mut dirs = Vec::new();
    let mut open = BTreeSet::new();
    let mut left = MAX_FILES;
    follow(tree, b"etc/ld.so.conf", &mut dirs, &mut open, &mut left, gaps);
    dirs
}

fn follow(
    tree: &dyn Tree,
    path: &[u8],
    dirs: &mut Vec<String>,
    open: &mut BTreeSet<Vec<u8>>,
    left: &mut usize,
    gaps: &mut Vec<Gap>,
) {
    let key = ImagePath::new(path).as_bytes().to_vec();
    if *left == 0 || !open.insert(key.clone()) {
        return;
    }
    *left -= 1;
    match tree.captured(path) {
        Some(Capture::Conf(lines)) => {
            for line in lines {
                match line {
                    ConfLine::Dir(dir) if dir.starts_with('/') => dirs.push(dir.clone()),
                    ConfLine::Dir(_) => {}
                    ConfLine::Include(pattern) => {
                        let full = if pattern.starts_with('/') {
                            pattern.clone().into_bytes()
                        } else {
                            let folder = ImagePath::new(path).parent();
                            [b"/", folder.as_bytes(), b"/", pattern.as_bytes()].concat()
                        };
                        for found in glob::expand(tree, tree.root(), &full) {
                            follow(tree, &found, dirs, open, left, gaps);
                        }
                    }
                }
            }
        }
        _ if path != b"etc/ld.so.conf" => {
            let why = "ld.so.conf includes it, and it was not read: ldconfig may know more directories";
            gaps.push(Gap::note(ImagePath::new(path), why));
        }
        _ => {}
    }
    open.remove(&key);
}

/// The names in LD_PRELOAD or `ld.so.preload`.
pub fn preloads(text: &str) -> Vec<String> {
    let text: Vec<&str> = text.lines().map(|l| l.split('#').next().unwrap_or_default()).collect();
    let names = text.iter().flat_map(|l| l.split([' ', ':', '\t'])).filter(|n| !n.is_empty());
    names.map(str::to_owned).collect()
}

/// Which distribution it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OsRelease {
    pub id: String,
    /// Distributions it descends from.
    pub like: Vec<String>,
}

impl OsRelease {
    pub fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.id.as_str()) || self.like.iter().any(|l| names.contains(&l.as_str()))
    }
}

pub fn os_release(bytes: &[u8]) -> OsRelease {
    let mut out = OsRelease::default();
    for line in String::from_utf8_lossy(bytes).lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim().trim_matches(['"', '\'']);
        match key.trim() {
            "ID" => out.id = value.to_owned(),
            "ID_LIKE" => out.like = value.split_whitespace().map(str::to_owned).collect(),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conf_lines() {
        let text = b"# all\ninclude /etc/ld.so.conf.d/*.conf  more.conf\n  /opt/lib/ # x\nhwcap 1 nosegneg\n/usr/lib=libc6\n";
        let expected = [
            ConfLine::Include("/etc/ld.so.conf.d/*.conf".into()),
            ConfLine::Include("more.conf".into()),
            ConfLine::Dir("/opt/lib/".into()),
            ConfLine::Dir("/usr/lib".into()),
        ];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn preloads_and_os_release() {
        assert_eq!(preloads("a.so:/b.so c.so\n# no\nd.so"), ["a.so", "/b.so", "c.so", "d.so"]);
        let os = os_release(b"NAME=x\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
        assert!(os.is(&["fedora"]) && os.is(&["rocky"]) && !os.is(&["debian"]));
    }
}
