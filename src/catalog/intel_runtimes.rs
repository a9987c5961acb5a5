//! The user-space part of Intel's GPU driver, by generation: `[[runtime]]` of `intel_gpus.toml`. An image brings it; it is
//! not mounted from the host.

use serde::Deserialize;

use super::laws::broken;
use super::processors::INTEL;
use super::{CatalogError, Tables, Trust};
use crate::model::{Evidence, ImagePath, IntelIp, Manager};

/// One line of releases.
#[derive(Debug, Clone, Deserialize)]
pub struct IntelRuntime {
    pub name: String,
    /// What names of its libraries begin with: `libze_intel_gpu.so`.
    files: Vec<String>,
    /// Packages of Debian's kind that bring it.
    pub packages: Vec<String>,
    /// Build numbers, which are the third of a version: 30872 of 24.35.30872.22 and of 1.3.30872.22. The first that is of
    /// this line, and the first that is not any more.
    build_from: Option<u32>,
    build_below: Option<u32>,
    /// Majors of the IP versions that it serves, both included. Without a last one it is not known which it does not
    /// serve yet.
    first_ip: u16,
    last_ip: Option<u16>,
    #[serde(flatten)]
    trust: Trust,
}

impl IntelRuntime {
    /// Whether it may serve a GPU; `false` is sure, as far as the row is.
    pub fn serves(&self, ip: IntelIp) -> bool {
        self.first_ip <= ip.major && self.last_ip.is_none_or(|last| ip.major <= last)
    }

    pub fn because(&self) -> String {
        self.trust.because(INTEL, &self.name)
    }

    pub fn is_sure(&self) -> bool {
        self.trust.is_sure()
    }

    /// Whether a build is of this line; where it is not known, it may be.
    fn has_build(&self, build: Option<u32>) -> bool {
        build.is_none_or(|build| {
            self.build_from.is_none_or(|from| from <= build) && self.build_below.is_none_or(|below| build < below)
        })
    }

    fn is_file(&self, name: &[u8]) -> bool {
        self.files.iter().any(|start| {
            let rest = name.strip_prefix(start.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
        })
    }
}

/// A line of releases that an image has, and what says so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Present {
    /// Its row, as a number.
    row: usize,
    /// `usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1.6.32567`, `libze-intel-gpu1 25.18.33578.15`.
    pub said_by: String,
}

/// All lines.
#[derive(Debug)]
pub struct IntelRuntimes(Vec<IntelRuntime>);

impl IntelRuntimes {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let all: Vec<IntelRuntime> = tables.rows(INTEL, "runtime")?;
        for row in &all {
            if row.last_ip.is_some_and(|last| last < row.first_ip) {
                return Err(broken(
                    INTEL,
                    format!("[[runtime]] `{}`", row.name),
                    "its last IP is before its first",
                ));
            }
        }
        Ok(Self(all))
    }

    pub fn all(&self) -> &[IntelRuntime] {
        &self.0
    }

    /// What an image has. A file or package whose build is not known counts for each line that it may be of. Sorted.
    pub fn in_image(&self, evidence: &Evidence) -> Vec<Present> {
        let mut out = Vec::new();
        for (row, runtime) in self.0.iter().enumerate() {
            let links = evidence.links.iter().map(|(_, file)| file);
            let files = evidence.files.iter().filter(|f| !f.in_archive).map(|f| &f.path).chain(links);
            let is_of = |path: &&ImagePath| {
                let name = path.file_name();
                runtime.is_file(name) && runtime.has_build(build(&path.file_name_lossy()))
            };
            out.extend(files.filter(is_of).map(|path| Present { row, said_by: path.to_string() }));
            let packages = evidence.packages.iter().filter(|p| p.manager != Manager::Pip);
            let named = packages.filter(|p| runtime.packages.contains(&p.name));
            out.extend(named.filter_map(|p| {
                let version = p.version.as_deref().unwrap_or_default();
                let said_by = format!("{} {}", p.name, crate::model::escape(version.as_bytes()));
                runtime.has_build(build(version)).then_some(Present { row, said_by })
            }));
        }
        out.sort();
        out.dedup();
        out
    }

    pub fn of(&self, present: &Present) -> Option<&IntelRuntime> {
        self.0.get(present.row)
    }
}

/// The build number in a version or behind a library's name: the third number, of five digits.
fn build(text: &str) -> Option<u32> {
    let numbers = text.split(['.', '-', '~', '+', ':']);
    numbers.filter(|n| n.len() == 5 && n.bytes().all(|b| b.is_ascii_digit())).find_map(|n| n.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::model::Package;

    fn serves(packages: &[(&str, &str)], ip: &str) -> Option<bool> {
        let package = |(name, version): &(&str, &str)| Package::new(Manager::Dpkg, *name, Some((*version).into()));
        let evidence = Evidence { packages: packages.iter().map(package).collect(), ..Evidence::default() };
        let runtimes = Catalog::embedded().intel_runtimes();
        let present = runtimes.in_image(&evidence);
        let any = present.iter().filter_map(|p| runtimes.of(p)).any(|r| r.serves(ip.parse().unwrap()));
        (!present.is_empty()).then_some(any)
    }

    #[test]
    fn generations_serve_what_their_readme_says() {
        for (package, version, ip, expected) in [
            ("libze-intel-gpu1", "25.18.33578.15-1", "12.60.7", Some(true)),
            ("libze-intel-gpu1", "25.18.33578.15-1", "9.0.9", Some(false)),
            ("intel-opencl-icd", "24.35.30872.22", "12.0.0", Some(true)),
            ("intel-opencl-icd", "24.35.30872.22", "11.0.0", Some(false)),
            ("intel-opencl-icd", "22.14.22890-1", "9.0.9", Some(true)),
            ("intel-level-zero-gpu-legacy1", "1.5.30872.36", "11.0.0", Some(true)),
            ("intel-level-zero-gpu-legacy1", "1.5.30872.36", "12.55.8", Some(false)),
            ("libigdgmm12", "22.5.0", "12.55.8", None),
        ] {
            assert_eq!(serves(&[(package, version)], ip), expected, "{package} {version} on {ip}");
        }
        assert_eq!(build("libze_intel_gpu.so.1.6.32567"), Some(32_567));
        assert_eq!(build("libigdrcl.so"), None);
    }
}
