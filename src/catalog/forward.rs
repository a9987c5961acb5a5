//! Forward compatibility: libcuda of a newer driver in the image (packages cuda-compat-X-Y), on the host's older kernel
//! driver. Table: `forward_compat.toml`.

use serde::Deserialize;

use super::{CatalogError, Tables, Trust};
use crate::model::{CudaVersion, DriverVersion, GpuClass, Runtime};

const FILE: &str = "forward_compat.toml";

/// One package, `[[package]]`, with the branches of kernel drivers that it is for.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    pub branch: u32,
    /// From the note in its libcuda, or from the branches that its CUDA's base images let through, which are the same
    /// where both are known. `None`: not known.
    pub hosts: Option<Vec<u32>>,
    trust: Trust,
}

impl Package {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

/// Whether GPUs of a class take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Eligible {
    Yes,
    /// Some products; NVIDIA does not list them all.
    Note,
    /// "Forward compatibility was attempted on non supported HW" (804).
    No,
    /// A package of its own.
    Own,
}

#[derive(Debug, Deserialize)]
struct Class {
    name: GpuClass,
    #[serde(rename = "use")]
    eligible: Eligible,
    #[serde(flatten)]
    trust: Trust,
}

impl Class {
    fn because(&self) -> String {
        self.trust.because(FILE, &format!("class {:?}", self.name).to_lowercase())
    }
}

/// Whether the container toolkit puts an image's library before the host's driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    Yes,
    No,
    /// One of its modes does and another does not.
    ByMode,
}

#[derive(Deserialize)]
struct RawPackage {
    name: String,
    driver_branch: u32,
    note_driver_list: Option<Vec<u32>>,
    require_branches: Option<Vec<u32>>,
    #[serde(flatten)]
    trust: Trust,
}

/// What `NVIDIA_REQUIRE_CUDA` of NVIDIA's images of one CUDA lets through beside its own driver, `[[require]]`.
#[derive(Debug, Deserialize)]
struct Require {
    cuda: CudaVersion,
    branches: Vec<u32>,
    brands: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

/// All rows.
#[derive(Debug)]
pub struct Forward {
    packages: Vec<Package>,
    classes: Vec<Class>,
    requires: Vec<Require>,
}

impl Forward {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let package = |raw: RawPackage| {
            let asked = raw.require_branches.map(|mut branches| {
                branches.push(raw.driver_branch);
                branches
            });
            let hosts = raw.note_driver_list.or(asked);
            Package { name: raw.name, branch: raw.driver_branch, hosts, trust: raw.trust }
        };
        let packages = tables.rows::<RawPackage>(FILE, "package")?.into_iter().map(package).collect();
        Ok(Self { packages, classes: tables.rows(FILE, "class")?, requires: tables.rows(FILE, "require")? })
    }

    /// `NVIDIA_REQUIRE_CUDA` of the x86_64 images of `nvidia/cuda`, with its row; `None`: not known for that CUDA.
    pub fn requirement(&self, cuda: CudaVersion) -> Option<(String, String)> {
        let row = self.requires.iter().find(|r| r.cuda == cuda)?;
        let mut text = format!("cuda>={cuda}");
        for branch in &row.branches {
            for brand in &row.brands {
                text.push_str(&format!(" brand={brand},driver>={branch},driver<{}", branch + 1));
            }
        }
        Some((text, row.trust.because(FILE, &format!("NVIDIA_REQUIRE_CUDA of {cuda}"))))
    }

    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// The package that a library is of.
    pub fn package(&self, library: &DriverVersion) -> Option<&Package> {
        self.packages.iter().find(|p| p.branch == library.branch())
    }

    /// Whether GPUs of a class take it, with the row; `None`: no class is known.
    pub fn eligible(&self, class: Option<GpuClass>) -> Option<(Eligible, String)> {
        let row = self.classes.iter().find(|c| Some(c.name) == class)?;
        Some((row.eligible, row.because()))
    }

    /// Whether a library is made for kernel drivers of the host's branch. Without a list, for all older branches.
    pub fn serves(&self, library: &DriverVersion, host: &DriverVersion, note: Option<&[u32]>) -> bool {
        // The file's own word counts before the table's.
        match note.or_else(|| self.package(library).and_then(|p| p.hosts.as_deref())) {
            Some(hosts) => hosts.contains(&host.branch()),
            None => host.branch() < library.branch(),
        }
    }

    /// The toolkit's own decision, which knows no GPU. Mode `legacy` compares majors; the CDI hook reads the library's
    /// note, and without one compares majors too.
    pub fn activation(
        &self,
        library: &DriverVersion,
        host: &DriverVersion,
        note: Option<&[u32]>,
        runtime: Runtime,
    ) -> Activation {
        // A bare branch that is the library's own may be newer than it.
        let newer = library > host && !(host.is_branch() && host.branch() == library.branch());
        let by_major = host.branch() < library.branch();
        let by_note = newer && self.serves(library, host, note);
        let one = |yes| if yes { Activation::Yes } else { Activation::No };
        match runtime {
            Runtime::Legacy => one(by_major),
            Runtime::Cdi => one(by_note),
            Runtime::Toolkit if by_major == by_note => one(by_major),
            Runtime::Toolkit => Activation::ByMode,
            Runtime::Gke | Runtime::Wsl | Runtime::Tegra => Activation::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Catalog, FILES};
    use super::*;

    fn driver(text: &str) -> DriverVersion {
        text.parse().unwrap()
    }

    /// NVIDIA's matrix (package by column of host branches) and the lists that packages carry agree.
    #[test]
    fn the_matrix_and_the_lists_agree() {
        let text = FILES.iter().find(|(name, _)| *name == FILE).unwrap().1;
        let table: toml::Table = text.parse().unwrap();
        let matrix = table["matrix"].as_table().unwrap();
        let columns: Vec<u32> =
            matrix["columns"].as_array().unwrap().iter().map(|c| c.as_integer().unwrap() as u32).collect();
        let forward = Catalog::embedded().forward();
        let mut compared = 0;
        for (name, cells) in matrix["rows"].as_table().unwrap() {
            let Some(package) = forward.packages().iter().find(|p| p.name == *name) else { continue };
            for (column, cell) in columns.iter().zip(cells.as_array().unwrap()) {
                let library = driver(&format!("{}.99.1", package.branch));
                let serves = forward.serves(&library, &DriverVersion::branch_floor(*column), None);
                match cell.as_str().unwrap() {
                    "C" => assert!(serves, "{name} on R{column}"),
                    "X" => assert!(!serves, "{name} on R{column}"),
                    _ => assert_eq!(package.branch, *column, "{name}"),
                }
                compared += 1;
            }
        }
        assert!(compared > 50, "{compared}");
    }

    #[test]
    fn what_images_ask_of_the_driver() {
        let forward = Catalog::embedded().forward();
        let text = |cuda: &str| forward.requirement(cuda.parse().unwrap()).map(|(text, _)| text);
        assert!(text("12.4").unwrap().starts_with("cuda>=12.4 brand=tesla,driver>=470,driver<471 brand="));
        assert!(text("12.4").unwrap().contains(" brand=geforce,driver>=535,driver<536"));
        assert!(!text("12.5").unwrap().contains("geforce"));
        assert_eq!(text("13.5"), None);
    }

    #[test]
    fn what_the_toolkit_decides() {
        let forward = Catalog::embedded().forward();
        let act =
            |library: &str, host: &str, runtime| forward.activation(&driver(library), &driver(host), None, runtime);
        use Activation::*;
        assert_eq!(act("575.57.08", "550.54.15", Runtime::Cdi), Yes);
        assert_eq!(act("575.57.08", "550.54.15", Runtime::Legacy), Yes);
        assert_eq!(act("575.57.08", "525", Runtime::Cdi), No);
        assert_eq!(act("575.57.08", "525", Runtime::Legacy), Yes);
        assert_eq!(act("575.57.08", "525", Runtime::Toolkit), ByMode);
        assert_eq!(act("575.57.08", "575.51.03", Runtime::Cdi), Yes);
        assert_eq!(act("575.57.08", "575.51.03", Runtime::Legacy), No);
        assert_eq!(act("575.57.08", "575", Runtime::Toolkit), No);
        assert_eq!(act("575.57.08", "580", Runtime::Toolkit), No);
        assert_eq!(act("550.54.15", "525", Runtime::Toolkit), Yes);
        for runtime in [Runtime::Gke, Runtime::Wsl, Runtime::Tegra] {
            assert_eq!(act("575.57.08", "550", runtime), No);
        }
    }

    #[test]
    fn classes() {
        let forward = Catalog::embedded().forward();
        let eligible = |class| forward.eligible(class).map(|(e, _)| e);
        assert_eq!(eligible(Some(GpuClass::Datacenter)), Some(Eligible::Yes));
        assert_eq!(eligible(Some(GpuClass::Consumer)), Some(Eligible::No));
        assert_eq!(eligible(None), None);
        assert!(forward.eligible(Some(GpuClass::Consumer)).unwrap().1.contains("class consumer"));
    }
}
