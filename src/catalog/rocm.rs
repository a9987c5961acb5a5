//! ROCm's releases, which kernel drivers they go with, and PyTorch's builds for them. Tables: `rocm.toml`, `[[rocm]]` of
//! `pytorch.toml`.

use serde::Deserialize;

use super::laws::broken;
use super::processors::Processors;
use super::{CatalogError, Tables, Trust};
use crate::model::{GfxProcessor, RocmVersion, first_two};

const FILE: &str = "rocm.toml";

/// A release, `[[release]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct RocmRelease {
    pub version: RocmVersion,
    /// The last release that the row speaks of, where that is another.
    to: Option<RocmVersion>,
    /// GPUs that its documentation supports; empty: not known.
    pub official_gfx: Vec<GfxProcessor>,
    /// Releases of the kernel driver that it was tested with, both included.
    kmd_from: Option<RocmVersion>,
    kmd_to: Option<RocmVersion>,
    #[serde(flatten)]
    trust: Trust,
}

impl RocmRelease {
    /// The first and the last release of the kernel driver that it was tested with.
    pub fn drivers(&self) -> Option<(RocmVersion, RocmVersion)> {
        self.kmd_from.zip(self.kmd_to)
    }

    /// Whether the list of GPUs was read, not remembered.
    pub fn knows_its_gpus(&self) -> bool {
        !self.official_gfx.is_empty() && self.trust.status == "verified"
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &format!("ROCm {}", self.version))
    }

    fn is(&self, version: RocmVersion) -> bool {
        let version = version.short();
        self.version <= version && version <= self.to.unwrap_or(self.version)
    }
}

/// A line of the kernel driver since it has numbers of its own, `[[driver]]`.
#[derive(Debug, Clone, Deserialize)]
struct Driver {
    /// `30.30`.
    amdgpu: RocmVersion,
    rocm_user_space: Vec<RocmVersion>,
    /// It goes with others too, which are not known.
    #[serde(default)]
    open: bool,
    #[serde(flatten)]
    trust: Trust,
}

/// What the kernel module calls itself, `[[module]]`.
#[derive(Debug, Clone, Deserialize)]
struct Module {
    version: RocmVersion,
    driver: RocmVersion,
    #[serde(flatten)]
    trust: Trust,
}

/// A build of PyTorch, `[[pytorch]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct RocmTorch {
    /// Names of indexes: `rocm6.4`.
    pub index: Vec<String>,
    /// The architectures that the build script names.
    pub arch: Vec<GfxProcessor>,
    #[serde(flatten)]
    trust: Trust,
}

impl RocmTorch {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.index.join(", "))
    }

    pub fn is_sure(&self) -> bool {
        self.trust.is_sure()
    }
}

/// The newest ROCm that a release of PyTorch is built for.
#[derive(Debug, Clone, Deserialize)]
struct TorchRow {
    torch: String,
    rocm: RocmVersion,
    #[serde(flatten)]
    trust: Trust,
}

/// Whether a release goes with a kernel driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goes {
    /// `None`: nothing says so, either way.
    pub with: Option<bool>,
    /// Rows, as far as there are any.
    pub because: Vec<String>,
    /// They were read, not remembered.
    pub is_sure: bool,
}

/// All of it.
#[derive(Debug)]
pub struct Rocm {
    releases: Vec<RocmRelease>,
    drivers: Vec<Driver>,
    modules: Vec<Module>,
    torch: Vec<RocmTorch>,
    torch_newest: Vec<TorchRow>,
}

impl Rocm {
    pub(crate) fn read(tables: &mut Tables, processors: &Processors) -> Result<Self, CatalogError> {
        let this = Self {
            releases: tables.rows(FILE, "release")?,
            drivers: tables.rows(FILE, "driver")?,
            modules: tables.rows(FILE, "module")?,
            torch: tables.rows(FILE, "pytorch")?,
            torch_newest: tables.rows("pytorch.toml", "rocm")?,
        };
        for pair in this.releases.windows(2) {
            let [older, newer] = pair else { continue };
            if newer.version <= older.to.unwrap_or(older.version) {
                let law = format!("does not come after {}", older.version);
                return Err(broken(FILE, format!("[[release]] `{}`", newer.version), law));
            }
        }
        for release in &this.releases {
            let row = || format!("[[release]] `{}`", release.version);
            match (release.kmd_from, release.kmd_to) {
                (Some(from), Some(to)) if from <= to => {}
                (None, None) => {}
                _ => return Err(broken(FILE, row(), "its drivers have no first and last one")),
            }
        }
        let lists = this.releases.iter().map(|r| (r.version.to_string(), &r.official_gfx));
        let lists = lists.chain(this.torch.iter().map(|t| (t.index.join(", "), &t.arch)));
        for (row, list) in lists {
            if let Some(unknown) = list.iter().find(|p| processors.isa(**p).is_none()) {
                return Err(broken(FILE, format!("`{row}`"), format!("{unknown} has no [[isa]] in amd_gpus.toml")));
            }
        }
        let mut indexes: Vec<&String> = this.torch.iter().flat_map(|t| &t.index).collect();
        indexes.sort();
        if let Some(pair) = indexes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(broken(FILE, format!("[[pytorch]] `{}`", pair[0]), "stands twice"));
        }
        Ok(this)
    }

    /// Oldest first.
    pub fn releases(&self) -> &[RocmRelease] {
        &self.releases
    }

    /// The row of a release; its patch level does not count.
    pub fn release(&self, version: RocmVersion) -> Option<&RocmRelease> {
        self.releases.iter().find(|r| r.is(version))
    }

    /// Whether the user-space part of a release goes with a kernel driver: `30.30.3`, or one of ROCm's own numbers up
    /// to 6.4.
    pub fn goes(&self, user_space: RocmVersion, driver: RocmVersion) -> Goes {
        let unknown = Goes { with: None, because: Vec::new(), is_sure: false };
        let wanted = user_space.short();
        if let Some(row) = self.drivers.iter().find(|d| d.amdgpu == driver.short()) {
            let listed = row.rocm_user_space.contains(&wanted);
            let because = vec![row.trust.because(FILE, &format!("amdgpu {}", row.amdgpu))];
            let newest = row.rocm_user_space.iter().max();
            // What came later than the row is not known to be outside.
            let is_open = row.open || newest.is_none_or(|newest| wanted > *newest);
            let with = if listed { Some(true) } else { (!is_open).then_some(false) };
            return Goes { with, because, is_sure: row.trust.is_sure() };
        }
        let Some(release) = self.release(wanted) else { return unknown };
        let Some((from, to)) = release.drivers() else { return unknown };
        // Windows were written down when 6.3 was the newest driver: they say nothing of newer ones.
        let newest = self.releases.iter().filter_map(|r| Some(r.drivers()?.1)).max();
        let driver = driver.short();
        let with = match driver {
            driver if from <= driver && driver <= to => Some(true),
            driver if Some(driver) > newest => None,
            _ => Some(false),
        };
        Goes { with, because: vec![release.because()], is_sure: true }
    }

    /// The driver's release by what its kernel module calls itself (`6.10.5`), with the row; it is of memory mostly.
    /// Modules have three numbers, of which the last tells 6.3.6 from the patch levels of the driver's release 6.3.
    pub fn driver_of_module(&self, module: RocmVersion) -> Option<(RocmVersion, String)> {
        let is = |m: &&Module| m.version.short() == module.short() && module.patch >= m.version.patch;
        let row = self.modules.iter().find(is).filter(|_| module.patch.is_some())?;
        Some((row.driver, row.trust.because(FILE, &format!("module {}", row.version))))
    }

    /// PyTorch's build for an index: `rocm6.4`, also as a version's local tag has it.
    pub fn torch(&self, index: &str) -> Option<&RocmTorch> {
        let exact = || self.torch.iter().find(|t| t.index.iter().any(|i| i == index));
        let release = || {
            let version: RocmVersion = index.strip_prefix("rocm")?.parse().ok()?;
            let short = format!("rocm{}", version.short());
            self.torch.iter().find(|t| t.index.contains(&short))
        };
        exact().or_else(release)
    }

    /// Names of indexes whose builds have code for a processor, with their rows, newest first.
    pub fn torch_for(&self, processor: GfxProcessor) -> Vec<(&str, &RocmTorch)> {
        let rows = self.torch.iter().filter(|t| t.arch.contains(&processor));
        let mut out: Vec<_> = rows.flat_map(|t| t.index.iter().map(move |i| (i.as_str(), t))).collect();
        let number = |index: &str| index.strip_prefix("rocm").and_then(|v| v.parse::<RocmVersion>().ok());
        out.sort_by_key(|(index, _)| std::cmp::Reverse(number(index)));
        out
    }

    /// Releases of PyTorch (`2.8`), oldest first, whose newest build for ROCm has code for all of some processors: with the
    /// name of its index and the rows.
    pub fn torches_for(&self, processors: &[GfxProcessor]) -> Vec<(&str, String, &RocmTorch, String)> {
        let one = |row: &'_ TorchRow| {
            let index = format!("rocm{}", row.rocm);
            let build = self.torch(&index)?;
            processors.iter().all(|p| build.arch.contains(p)).then_some((index, build))
        };
        let minor = |torch: &str| torch.split('.').map(|p| p.parse().unwrap_or(0)).collect::<Vec<u32>>();
        let mut out: Vec<_> = self
            .torch_newest
            .iter()
            .filter_map(|row| {
                let (index, build) = one(row)?;
                let because = row.trust.because("pytorch.toml", &format!("torch {}", row.torch));
                Some((row.torch.as_str(), index, build, because))
            })
            .collect();
        out.sort_by_key(|row| minor(row.0));
        out
    }

    /// The name of the index that has the newest build of a release of PyTorch (`2.8`, `2.8.0`), and its row.
    pub fn index_of_torch(&self, torch: &str) -> Option<(String, String)> {
        let minor = first_two(torch);
        let row = self.torch_newest.iter().find(|r| r.torch == minor)?;
        Some((format!("rocm{}", row.rocm), row.trust.because("pytorch.toml", &format!("torch {minor}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Catalog, FILES};

    fn v(text: &str) -> RocmVersion {
        text.parse().unwrap()
    }

    #[test]
    fn releases_go_with_the_drivers_that_pages_name() {
        let rocm = Catalog::embedded().rocm();
        for (user_space, driver, with) in [
            ("6.2.4", "6.3", Some(true)),
            ("6.2", "6.0", Some(true)),
            ("6.2", "5.7", Some(false)),
            ("6.0", "6.3", Some(false)),
            // Newer than the page.
            ("6.3", "6.4", None),
            ("6.3", "30.30.3", Some(true)),
            ("7.2.1", "30.30.2", Some(true)),
            ("6.2", "30.30", Some(false)),
            ("10.0", "30.30", None),
            ("7.1", "30.20.1", None),
            ("7.2", "30.10", Some(true)),
            ("7.0", "6.3", None),
            ("6.2", "40.1", None),
        ] {
            assert_eq!(rocm.goes(v(user_space), v(driver)).with, with, "{user_space} on {driver}");
        }
        assert_eq!(rocm.release(v("7.11")).unwrap().version, v("7.9"));
        assert!(rocm.release(v("7.5")).is_none());
        assert!(
            rocm.release(v("6.1.3")).unwrap().knows_its_gpus() && !rocm.release(v("7.0")).unwrap().knows_its_gpus()
        );
        assert_eq!(rocm.driver_of_module(v("6.10.5")).unwrap().0, v("6.3"));
        assert_eq!(rocm.driver_of_module(v("6.3.6")).unwrap().0, v("6.0"));
        for release in ["6.3", "6.3.1", "30.30.3"] {
            assert!(rocm.driver_of_module(v(release)).is_none(), "{release}");
        }
    }

    #[test]
    fn pytorch_s_builds_by_index_and_by_processor() {
        let rocm = Catalog::embedded().rocm();
        let gfx = |t: &str| t.parse::<GfxProcessor>().unwrap();
        assert!(rocm.torch("rocm6.2.4").unwrap().arch.contains(&gfx("gfx942")));
        assert!(rocm.torch("rocm7.2.1").unwrap().arch.contains(&gfx("gfx950")));
        assert!(rocm.torch("cu126").is_none() && rocm.torch("rocm99.9").is_none());
        let names = |t: &str| rocm.torch_for(gfx(t)).iter().map(|(i, _)| *i).collect::<Vec<_>>();
        assert_eq!(names("gfx950"), ["rocm7.14", "rocm7.2", "rocm7.1", "rocm7.0"]);
        assert!(names("gfx1031").is_empty());
        assert_eq!(rocm.index_of_torch("2.8.0").unwrap().0, "rocm6.4");
        assert!(rocm.index_of_torch("9.9").is_none());
    }

    /// Two tables speak of the same SONAMEs.
    #[test]
    fn libraries_are_of_the_releases_that_wheels_showed() {
        let text = FILES.iter().find(|(name, _)| *name == FILE).unwrap().1;
        let table: toml::Table = text.parse().unwrap();
        let mut seen = 0;
        for row in table["soname"].as_array().unwrap() {
            let major = row["rocm_major"].as_integer().unwrap() as u16;
            for soname in row["libs"].as_array().unwrap().iter().filter_map(|l| l.as_str()) {
                let library = Catalog::embedded().libraries().library(soname).unwrap_or_else(|| panic!("{soname}"));
                let majors = library.release_majors(soname.split_once(".so.").unwrap().1);
                assert!(majors.is_empty() || majors.contains(&major), "{soname}: {majors:?}, not {major}");
                seen += 1;
            }
        }
        assert!(seen > 15);
    }
}
