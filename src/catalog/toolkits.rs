//! CUDA toolkits: what each can compile for, which PTX it writes, which driver it needs. Table: `toolkits.toml`.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{CatalogError, Tables, Trust};
use crate::model::{Capability, CudaVersion, DriverVersion, Feature, PtxIsa, SmArch};

const FILE: &str = "toolkits.toml";

/// One toolkit minor, `[[toolkit]]`: measured by running its ptxas, but for the oldest.
#[derive(Debug, Clone)]
pub struct Toolkit {
    pub cuda: CudaVersion,
    /// The newest PTX it writes, which is what nvcc writes.
    pub ptx_isa: PtxIsa,
    /// Machine code it can write.
    pub sm: BTreeSet<SmArch>,
    trust: Trust,
}

impl Toolkit {
    /// Whether its machine code was read off its compiler: an error may be built on it.
    pub fn is_sure(&self) -> bool {
        self.trust.is_sure() && !self.trust.status.contains("memory")
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &format!("CUDA {}", self.cuda))
    }
}

/// One release, `[[release]]`, with the driver that came with it.
#[derive(Debug, Clone)]
pub struct Release {
    /// As the toolkit names itself, with its patch level: "12.8.1".
    pub version: String,
    pub cuda: CudaVersion,
    pub name: String,
    /// The driver that NVIDIA's release notes list for it.
    pub driver: DriverVersion,
    trust: Trust,
}

impl Release {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &format!("CUDA {}", self.version))
    }
}

/// The lowest driver that runs programs of a CUDA version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    pub driver: DriverVersion,
    pub because: String,
}

impl Floor {
    /// Whether a driver is not below the floor. A bare branch stands for its releases, the floor's among them.
    pub fn is_met_by(&self, driver: &DriverVersion) -> bool {
        *driver >= self.driver || (driver.is_branch() && driver.branch() == self.driver.branch())
    }
}

/// All toolkits.
#[derive(Debug)]
pub struct Toolkits {
    toolkits: Vec<Toolkit>,
    releases: Vec<Release>,
    floors: Vec<(u16, Floor)>,
    driver_only: Vec<(CudaVersion, PtxIsa)>,
}

#[derive(Deserialize)]
struct RawToolkit {
    cuda: CudaVersion,
    ptx_isa: PtxIsa,
    sm: Vec<SmArch>,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Deserialize)]
struct RawRelease {
    version: String,
    name: String,
    driver_linux: Option<DriverVersion>,
    driver_branch: u32,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Deserialize)]
struct RawFloor {
    cuda_major: u16,
    min_driver_linux: DriverVersion,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Deserialize)]
struct RawDriverOnly {
    cuda: CudaVersion,
    ptx_isa: PtxIsa,
}

impl Toolkits {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let mut toolkits: Vec<Toolkit> = tables
            .rows::<RawToolkit>(FILE, "toolkit")?
            .into_iter()
            .map(|r| Toolkit { cuda: r.cuda, ptx_isa: r.ptx_isa, sm: r.sm.into_iter().collect(), trust: r.trust })
            .collect();
        toolkits.sort_by_key(|t| t.cuda);
        let mut releases = Vec::new();
        for raw in tables.rows::<RawRelease>(FILE, "release")? {
            let cuda = raw.version.parse().map_err(|e: crate::model::ParseVersionError| CatalogError::Row {
                file: FILE.into(),
                row: format!("[[release]] `{}`", raw.version),
                what: e.to_string(),
            })?;
            let driver = raw.driver_linux.unwrap_or_else(|| DriverVersion::branch_floor(raw.driver_branch));
            releases.push(Release { version: raw.version, cuda, name: raw.name, driver, trust: raw.trust });
        }
        releases.sort_by(|a, b| (a.cuda, &a.driver, &a.version).cmp(&(b.cuda, &b.driver, &b.version)));
        let floor = |r: RawFloor| {
            let because = r.trust.because(FILE, &format!("minor-version compatibility of CUDA {}", r.cuda_major));
            (r.cuda_major, Floor { driver: r.min_driver_linux, because })
        };
        let mut floors: Vec<_> =
            tables.rows::<RawFloor>(FILE, "minor_version_compat")?.into_iter().map(floor).collect();
        floors.sort_by_key(|(major, _)| *major);
        let driver_only = tables.rows::<RawDriverOnly>(FILE, "driver_only")?;
        let driver_only = driver_only.into_iter().map(|r| (r.cuda, r.ptx_isa)).collect();
        Ok(Self { toolkits, releases, floors, driver_only })
    }

    /// Toolkit minors, oldest first.
    pub fn all(&self) -> &[Toolkit] {
        &self.toolkits
    }

    /// Releases, oldest first.
    pub fn releases(&self) -> &[Release] {
        &self.releases
    }

    pub fn get(&self, cuda: CudaVersion) -> Option<&Toolkit> {
        self.toolkits.iter().find(|t| t.cuda == cuda)
    }

    /// The PTX ISA of a CUDA version, toolkit or driver (12.7 exists as a driver only).
    pub fn ptx_isa(&self, cuda: CudaVersion) -> Option<PtxIsa> {
        self.get(cuda)
            .map(|t| t.ptx_isa)
            .or_else(|| self.driver_only.iter().find(|(c, _)| *c == cuda).map(|(_, isa)| *isa))
    }

    /// The oldest toolkit that writes PTX of that version.
    pub fn of_ptx(&self, isa: PtxIsa) -> Option<CudaVersion> {
        self.toolkits.iter().find(|t| t.ptx_isa == isa).map(|t| t.cuda)
    }

    /// Whether a toolkit writes machine code for `arch`; `None` where the toolkit is not known.
    pub fn compiles(&self, cuda: CudaVersion, arch: SmArch) -> Option<bool> {
        self.get(cuda).map(|t| t.sm.contains(&arch))
    }

    /// The oldest and newest known toolkit that write machine code for `arch`, by exactly that name.
    pub fn toolkits_that_compile(&self, arch: SmArch) -> Option<(CudaVersion, CudaVersion)> {
        let mut fits = self.toolkits.iter().filter(|t| t.sm.contains(&arch)).map(|t| t.cuda);
        let first = fits.next()?;
        Some((first, fits.next_back().unwrap_or(first)))
    }

    /// The same for a GPU: by any name of its capability without a suffix (11.0 was `sm_101` before CUDA 13).
    pub fn toolkits_for(&self, capability: Capability) -> Option<(CudaVersion, CudaVersion)> {
        let native = |a: &SmArch| a.feature == Feature::Plain && a.capability() == Some(capability);
        let mut fits = self.toolkits.iter().filter(|t| t.sm.iter().any(native)).map(|t| t.cuda);
        let first = fits.next()?;
        Some((first, fits.next_back().unwrap_or(first)))
    }

    /// The lowest driver for programs of a CUDA major, by minor-version compatibility (CUDA 11 and newer).
    pub fn driver_floor(&self, cuda_major: u16) -> Option<&Floor> {
        self.floors.iter().find(|(major, _)| *major == cuda_major).map(|(_, floor)| floor)
    }

    /// The lowest driver for programs of a CUDA version: that of its major, and before CUDA 11 the driver of the
    /// version's first release.
    pub fn floor_of(&self, cuda: CudaVersion) -> Option<Floor> {
        self.driver_floor(cuda.major).cloned().or_else(|| {
            let first = self.releases.iter().find(|r| r.cuda == cuda && cuda.major < 11)?;
            Some(Floor { driver: first.driver.clone(), because: first.because() })
        })
    }

    /// Majors that have a floor of their own, ascending.
    pub(super) fn floors(&self) -> &[(u16, Floor)] {
        &self.floors
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    fn cuda(text: &str) -> CudaVersion {
        text.parse().unwrap()
    }

    #[test]
    fn what_toolkits_compile() {
        let t = Catalog::embedded().toolkits();
        let sm = |s: &str| s.parse::<SmArch>().unwrap();
        assert_eq!(t.ptx_isa(cuda("12.6")), Some(PtxIsa::new(8, 5)));
        assert_eq!(t.ptx_isa(cuda("12.7")), Some(PtxIsa::new(8, 6)));
        assert_eq!(t.ptx_isa(cuda("99.0")), None);
        assert_eq!(t.compiles(cuda("12.8"), sm("sm_120")), Some(true));
        assert_eq!(t.compiles(cuda("12.6"), sm("sm_120")), Some(false));
        assert_eq!(t.compiles(cuda("12.7"), sm("sm_90")), None);
        assert_eq!(t.toolkits_that_compile(sm("sm_101")), Some((cuda("12.8"), cuda("12.9"))));
        assert_eq!(t.toolkits_that_compile(sm("sm_70")), Some((cuda("9.0"), cuda("12.9"))));
        assert_eq!(t.toolkits_for(Capability::new(11, 0)), Some((cuda("12.8"), cuda("13.5"))));
        assert_eq!(t.toolkits_for(Capability::new(4, 2)), None);
    }

    #[test]
    fn driver_floors() {
        let t = Catalog::embedded().toolkits();
        assert_eq!(t.driver_floor(12).unwrap().driver.to_string(), "525.60.13");
        assert!(t.driver_floor(12).unwrap().because.contains("minor-version-compat"));
        assert_eq!(t.floor_of(cuda("12.9")).unwrap().driver.to_string(), "525.60.13");
        assert_eq!(t.floor_of(cuda("10.2")).unwrap().driver.to_string(), "440.33");
        assert_eq!(t.driver_floor(10), None);
        assert_eq!(t.floor_of(cuda("14.0")), None);
    }
}
