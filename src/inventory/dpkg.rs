//! dpkg: the status database and the file lists.

use super::driver::Wanted;
use super::lines::{Lines, field, token};
use super::{Fact, Files, Listed, MAX_PACKAGES};
use crate::model::{ImagePath, Manager, Package};
use crate::stream::Body;

/// Fields that name packages which come along.
const ASKS: [&str; 3] = ["Depends", "Pre-Depends", "Recommends"];

/// Stanzas of `status`, or the one of a file in `status.d`, which has no Status line.
pub fn status(body: &mut dyn Body) -> Result<Fact, String> {
    let mut lines = Lines::new(body);
    let mut packages = Vec::new();
    let mut stanza = Stanza::default();
    while let Some(line) = lines.next().map_err(|e| e.to_string())? {
        if line.is_empty() {
            packages.extend(std::mem::take(&mut stanza).package());
            if packages.len() > MAX_PACKAGES {
                return Err(format!("it lists more than {MAX_PACKAGES} packages"));
            }
        } else if let Some(value) = field(line, "Package") {
            stanza.name = token(value);
        } else if let Some(value) = field(line, "Version") {
            stanza.version = token(value);
        } else if let Some(value) = field(line, "Status") {
            let state = value.trim_ascii().rsplit(|&b| b == b' ').next().unwrap_or_default();
            stanza.absent = matches!(state, b"not-installed" | b"config-files");
        } else if let Some(list) = ASKS.iter().find_map(|name| field(line, name)) {
            stanza.wanted.add_list(list);
        }
    }
    packages.extend(stanza.package());
    if packages.is_empty() && lines.overlong > 0 {
        return Err("its lines are too long".to_owned());
    }
    Ok(Fact::Packages { packages, unread: 0 })
}

#[derive(Default)]
struct Stanza {
    name: Option<String>,
    version: Option<String>,
    absent: bool,
    wanted: Wanted,
}

impl Stanza {
    fn package(self) -> Option<Listed> {
        let name = self.name.filter(|_| !self.absent)?;
        let mut package = Package::new(Manager::Dpkg, name, self.version);
        package.wants_driver = self.wanted.finish();
        Some(Listed { package, files: Files::default() })
    }
}

/// `info/libc6:amd64.list`: one absolute path a line, directories too.
pub fn list(path: &ImagePath, body: &mut dyn Body) -> Result<Fact, String> {
    owned(path, b".list", body, |line| line)
}

/// `status.d/libc6.md5sums`: sum, two spaces, path from the root.
pub fn sums(path: &ImagePath, body: &mut dyn Body) -> Result<Fact, String> {
    owned(path, b".md5sums", body, |line| {
        line.iter().position(|&b| b == b' ').map_or(&[][..], |cut| line[cut..].trim_ascii_start())
    })
}

fn owned(
    path: &ImagePath,
    suffix: &[u8],
    body: &mut dyn Body,
    path_of: impl Fn(&[u8]) -> &[u8],
) -> Result<Fact, String> {
    let stem = path.file_name().strip_suffix(suffix).unwrap_or(path.file_name());
    let name = stem.split(|&b| b == b':').next().unwrap_or_default();
    let package = token(name).ok_or("its name is not the name of a package")?;
    let mut lines = Lines::new(body);
    let mut files = Files::default();
    while let Some(line) = lines.next().map_err(|e| e.to_string())? {
        files.add(&ImagePath::new(path_of(line)));
    }
    let overlong = lines.overlong;
    Ok(Fact::DpkgFiles { package, files: files.finish(overlong) })
}

#[cfg(test)]
mod tests {
    use super::super::hash;
    use super::*;
    use crate::stream::{Plain, Stream};

    fn read_status(text: &str) -> Vec<String> {
        let fact = status(&mut Stream::new(Plain(text.as_bytes()), None)).unwrap();
        let Fact::Packages { packages, .. } = fact else { panic!("{fact:?}") };
        packages
            .iter()
            .map(|l| &l.package)
            .map(|p| format!("{} {}", p.name, p.version.as_deref().unwrap_or("-")))
            .collect()
    }

    #[test]
    fn installed_packages_alone_count() {
        let text = "Package: aardvark-dns\nStatus: install ok installed\nPriority: optional\nSection: net\n\
                    Installed-Size: 2438\nArchitecture: amd64\nVersion: 1.4.0-3\nDescription: Container-focused DNS\n \
                    Package: not-this\n\n\
                    Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n\
                    Package: half\nStatus: install ok half-configured\nVersion: 1:2.0~rc1+b1\n";
        assert_eq!(read_status(text), ["aardvark-dns 1.4.0-3", "half 1:2.0~rc1+b1"]);
        assert_eq!(read_status("Package: libc6\nVersion: 2.36-9+deb12u10\n"), ["libc6 2.36-9+deb12u10"]);
        assert!(read_status("\n\nVersion: 1\n\n").is_empty());
    }

    #[test]
    fn packages_that_ask_for_the_driver_say_so() {
        let text = "Package: cuda-runtime-12-8\nStatus: install ok installed\nVersion: 12.8.1-1\n\
                    Depends: cuda-libraries-12-8 (>= 12.8.1), cuda-drivers (>= 570.124.06)\n\
                    Recommends: libcuda1 | libcuda-12.8-1\nSuggests: nvidia-smi\n\nPackage: b\nDepends: libc6\n";
        let fact = status(&mut Stream::new(Plain(text.as_bytes()), None)).unwrap();
        let Fact::Packages { packages, .. } = fact else { panic!("{fact:?}") };
        assert_eq!(packages[0].package.wants_driver, ["cuda-drivers", "libcuda-12.8-1", "libcuda1"]);
        assert!(packages[1].package.wants_driver.is_empty());
    }

    #[test]
    fn lists_name_their_package_in_the_file_name() {
        let list_path = ImagePath::new("var/lib/dpkg/info/libc6:amd64.list");
        let mut body = Stream::new(Plain(&b"/.\n/lib\n/lib/libc.so.6\n"[..]), None);
        let mut hashes = vec![hash(b"lib"), hash(b"lib/libc.so.6")];
        hashes.sort_unstable();
        let files = Files { hashes, skipped: 0 };
        assert_eq!(list(&list_path, &mut body), Ok(Fact::DpkgFiles { package: "libc6".into(), files }));

        let sums_path = ImagePath::new("var/lib/dpkg/status.d/zlib1g.md5sums");
        let text = b"e1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6  usr/lib/x86_64-linux-gnu/libz.so.1.2.13\n";
        let files = Files { hashes: vec![hash(b"usr/lib/x86_64-linux-gnu/libz.so.1.2.13")], skipped: 0 };
        let mut body = Stream::new(Plain(&text[..]), None);
        assert_eq!(sums(&sums_path, &mut body), Ok(Fact::DpkgFiles { package: "zlib1g".into(), files }));
    }
}
