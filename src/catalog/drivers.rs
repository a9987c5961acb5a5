//! Driver branches: the CUDA version each knows natively, the PTX its JIT reads, the GPUs it drives. Table:
//! `drivers.toml`.

use serde::Deserialize;

use super::toolkits::Toolkits;
use super::{CatalogError, Tables, Trust};
use crate::model::{Capability, CudaVersion, DriverRange, DriverVersion, PtxIsa};

const FILE: &str = "drivers.toml";

/// One driver branch, `[[branch]]`.
#[derive(Debug, Clone)]
pub struct Branch {
    pub branch: u32,
    /// What cuDriverGetVersion and nvidia-smi report.
    pub native_cuda: CudaVersion,
    /// The newest PTX its JIT reads: that of its native CUDA.
    pub ptx_isa: PtxIsa,
    /// NVIDIA's words for it: "LTS", "PB, EOL".
    pub kind: String,
    /// End of life, `YYYY-MM`, where known.
    pub eol: Option<String>,
    trust: Trust,
}

impl Branch {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &format!("R{}", self.branch))
    }
}

/// The branches that drive GPUs of one capability, from an `[[arch]]` row. Branch numbers of desktop and
/// data-centre drivers; the L4T releases of Jetson number apart.
#[derive(Debug, Clone)]
pub struct ArchWindow {
    pub name: String,
    pub first_driver: Option<u32>,
    pub last_driver: Option<u32>,
    /// Whether the bounds were read in a vendor's text; otherwise they are inferred or remembered.
    pub verified: bool,
    pub because: String,
}

/// All branches.
#[derive(Debug)]
pub struct Drivers {
    branches: Vec<Branch>,
    windows: Vec<(Capability, ArchWindow)>,
}

#[derive(Deserialize)]
struct RawBranch {
    branch: u32,
    native_cuda: CudaVersion,
    #[serde(rename = "type")]
    kind: String,
    eol: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Deserialize)]
struct RawArch {
    name: String,
    cc: Vec<Capability>,
    first_driver: Option<u32>,
    last_driver: Option<u32>,
    #[serde(default)]
    driver_verified: bool,
    #[serde(flatten)]
    trust: Trust,
}

impl Drivers {
    pub(crate) fn read(tables: &mut Tables, toolkits: &Toolkits) -> Result<Self, CatalogError> {
        let mut branches = Vec::new();
        for raw in tables.rows::<RawBranch>(FILE, "branch")? {
            let Some(ptx_isa) = toolkits.ptx_isa(raw.native_cuda) else {
                return Err(CatalogError::Law {
                    file: FILE,
                    row: format!("[[branch]] `{}`", raw.branch),
                    law: format!("its CUDA {} has no PTX ISA in toolkits.toml", raw.native_cuda),
                });
            };
            branches.push(Branch {
                branch: raw.branch,
                native_cuda: raw.native_cuda,
                ptx_isa,
                kind: raw.kind,
                eol: raw.eol,
                trust: raw.trust,
            });
        }
        branches.sort_by_key(|b| b.branch);
        let mut windows = Vec::new();
        for raw in tables.rows::<RawArch>(FILE, "arch")? {
            let window = ArchWindow {
                because: raw.trust.because(FILE, &raw.name),
                name: raw.name,
                first_driver: raw.first_driver,
                last_driver: raw.last_driver,
                verified: raw.driver_verified,
            };
            windows.extend(raw.cc.into_iter().map(|cc| (cc, window.clone())));
        }
        windows.sort_by_key(|(cc, _)| *cc);
        Ok(Self { branches, windows })
    }

    /// Branches, oldest first.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// The known branch that a driver belongs to: its own, else the nearest older one. `None` for drivers older
    /// than all that are known.
    pub fn branch_of(&self, driver: &DriverVersion) -> Option<&Branch> {
        self.branches.iter().rev().find(|b| b.branch <= driver.branch())
    }

    /// The drivers of a range that may be told apart: its lowest, and the known branches behind that.
    pub fn inside(&self, range: &DriverRange) -> Vec<DriverVersion> {
        let later = self.branches.iter().map(|b| DriverVersion::branch_floor(b.branch));
        let later = later.filter(|b| *b > range.lowest && range.below.as_ref().is_none_or(|below| b < below));
        std::iter::once(range.lowest.clone()).chain(later).collect()
    }

    /// The oldest known branch whose own CUDA is `cuda` or newer.
    pub fn min_branch_for_cuda(&self, cuda: CudaVersion) -> Option<&Branch> {
        self.branches.iter().find(|b| b.native_cuda >= cuda)
    }

    /// The CUDA version that a driver knows natively.
    pub fn native_cuda(&self, driver: &DriverVersion) -> Option<CudaVersion> {
        self.branch_of(driver).map(|b| b.native_cuda)
    }

    /// The newest PTX ISA that a driver's JIT reads.
    pub fn ptx_isa(&self, driver: &DriverVersion) -> Option<PtxIsa> {
        self.branch_of(driver).map(|b| b.ptx_isa)
    }

    /// The oldest known branch whose JIT reads PTX of `isa`.
    pub fn min_branch_for_ptx(&self, isa: PtxIsa) -> Option<u32> {
        self.branches.iter().find(|b| b.ptx_isa >= isa).map(|b| b.branch)
    }

    /// The branches that drive GPUs of a capability; `None` where the capability is not known.
    pub fn window(&self, capability: Capability) -> Option<&ArchWindow> {
        self.windows.iter().find(|(cc, _)| *cc == capability).map(|(_, w)| w)
    }

    pub(super) fn windows(&self) -> &[(Capability, ArchWindow)] {
        &self.windows
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    #[test]
    fn drivers_know_a_cuda_version_and_its_ptx() {
        let d = Catalog::embedded().drivers();
        let isa = |v: &str| d.ptx_isa(&v.parse().unwrap()).map(|i| i.to_string());
        let cuda = |v: &str| d.native_cuda(&v.parse().unwrap()).map(|c| c.to_string());
        assert_eq!(cuda("535.183.01").as_deref(), Some("12.2"));
        assert_eq!(isa("535").as_deref(), Some("8.2"));
        assert_eq!(isa("565.57.01").as_deref(), Some("8.6"));
        assert_eq!(cuda("565").as_deref(), Some("12.7"));
        assert_eq!(cuda("536.40").as_deref(), Some("12.2"));
        assert_eq!(cuda("521").as_deref(), Some("11.8"));
        assert_eq!(cuda("616").as_deref(), Some("13.4"));
        assert_eq!(cuda("999").as_deref(), Some("13.5"));
        assert_eq!(cuda("367"), None);
        assert_eq!(d.min_branch_for_ptx(PtxIsa::new(8, 5)), Some(555));
        assert_eq!(d.min_branch_for_ptx(PtxIsa::new(8, 6)), Some(565));
        assert_eq!(d.min_branch_for_ptx(PtxIsa::new(99, 0)), None);
    }

    #[test]
    fn windows_say_whether_they_were_read() {
        let d = Catalog::embedded().drivers();
        let w = |major, minor| d.window(Capability::new(major, minor)).unwrap();
        assert_eq!((w(7, 0).last_driver, w(7, 0).verified), (Some(580), true));
        assert_eq!((w(3, 5).last_driver, w(3, 5).verified), (Some(470), true));
        assert_eq!((w(12, 0).first_driver, w(12, 0).verified), (Some(570), true));
        assert_eq!((w(10, 3).first_driver, w(10, 3).verified), (Some(575), false));
        assert_eq!((w(10, 7).first_driver, w(10, 7).verified), (Some(615), true));
        assert!(d.window(Capability::new(4, 2)).is_none());
    }
}
