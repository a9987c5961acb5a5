//! Libraries whose device code lies in data files: `data_libraries.toml`.

use serde::Deserialize;

use super::data_names::{Pattern, Told};
use super::laws::broken;
use super::processors::Processors;
use super::{CatalogError, Tables, Trust};
use crate::model::{GfxProcessor, ImagePath};

const FILE: &str = "data_libraries.toml";

/// What happens where a library has no data for the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lack {
    /// Calls of it end with an error, or the process does.
    Fail,
    /// Some calls do, or another library steps in.
    Warn,
    /// Kernels are compiled or searched for at run time.
    Slow,
    /// Nothing that can be told from outside.
    None,
}

/// A library and the names of its data files.
#[derive(Debug, Clone, Deserialize)]
pub struct DataLibrary {
    pub name: String,
    /// The last folders of the place that holds them: `rocblas/library`. Empty: they lie beside others.
    pub folder: String,
    /// The file that is looked for first.
    #[serde(default)]
    index: Vec<Pattern>,
    /// All others.
    files: Vec<Pattern>,
    /// What libraries' file names begin with that use the data: `librocblas.so`.
    pub used_by: Vec<String>,
    /// Where such a library looks for the folder, from its own: `../share/miopen/db`.
    #[serde(default)]
    pub beside: Vec<String>,
    /// Environment variables that say where else it is.
    #[serde(default)]
    pub variables: Vec<String>,
    pub lack: Lack,
    /// Words of the error that users see.
    #[serde(default)]
    pub symptom: String,
    /// What the library does then.
    pub then: String,
    #[serde(flatten)]
    trust: Trust,
}

impl DataLibrary {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }

    /// Whether a failure may be built on it.
    pub fn is_sure(&self) -> bool {
        self.trust.is_sure()
    }

    /// Whether a file is a library that uses the data.
    pub fn is_used_by(&self, file: &ImagePath) -> bool {
        let name = file.file_name();
        self.used_by.iter().any(|start| name.starts_with(start.as_bytes()))
    }

    /// Where a library that lies there looks for the data.
    pub fn roots_for(&self, library: &ImagePath) -> impl Iterator<Item = ImagePath> {
        let folder = library.parent();
        self.beside.iter().map(move |below| folder.join(below))
    }
}

/// A file of a library's data.
#[derive(Debug, PartialEq, Eq)]
pub struct DataFile<'a> {
    /// Its row.
    pub library: usize,
    /// The folder that the data lies in.
    pub root: &'a [u8],
    pub told: Option<Told>,
    pub is_index: bool,
}

/// All of them.
#[derive(Debug)]
pub struct DataLibraries {
    all: Vec<DataLibrary>,
    /// Processors by the length of their names, longest first.
    known: Vec<GfxProcessor>,
}

impl DataLibraries {
    pub(crate) fn read(tables: &mut Tables, processors: &Processors) -> Result<Self, CatalogError> {
        let all: Vec<DataLibrary> = tables.rows(FILE, "library")?;
        for library in &all {
            let row = || format!("[[library]] `{}`", library.name);
            if library.files.is_empty() && library.index.is_empty() {
                return Err(broken(FILE, row(), "names no file"));
            }
            if library.index.iter().any(|p| !p.tells()) {
                return Err(broken(FILE, row(), "its index says nothing of architectures"));
            }
            if library.lack == Lack::Fail && library.symptom.is_empty() {
                return Err(broken(FILE, row(), "fails without words of the error"));
            }
        }
        let mut known: Vec<GfxProcessor> = processors.isas().iter().map(|isa| isa.target).collect();
        known.sort_by_key(|p| (std::cmp::Reverse(p.to_string().len()), *p));
        Ok(Self { all, known })
    }

    /// In the table's order.
    pub fn all(&self) -> &[DataLibrary] {
        &self.all
    }

    pub fn named(&self, name: &str) -> Option<&DataLibrary> {
        self.all.iter().find(|library| library.name == name)
    }

    /// What a file is, told by its path alone.
    pub fn file<'a>(&self, path: &'a ImagePath) -> Option<DataFile<'a>> {
        let bytes = path.as_bytes();
        // There are millions of files, and few are of this kind.
        let may_tell = memchr::memmem::find(bytes, b"gfx").is_some();
        if !may_tell && !bytes.ends_with(b".db") {
            return None;
        }
        self.all.iter().enumerate().find_map(|(row, library)| {
            let (root, rest) = split(bytes, library.folder.as_bytes())?;
            let read = |patterns: &[Pattern]| {
                patterns.iter().filter(|p| may_tell || !p.tells()).find_map(|p| p.read(rest, &self.known))
            };
            let index = read(&library.index).map(|told| (told, true));
            let (told, is_index) = index.or_else(|| Some((read(&library.files)?, false)))?;
            Some(DataFile { library: row, root, told, is_index })
        })
    }
}

/// A path cut behind the last place where it has these folders; without folders, before its last name.
fn split<'a>(path: &'a [u8], folder: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    if folder.is_empty() {
        let cut = path.iter().rposition(|&b| b == b'/');
        return Some(cut.map_or((&b""[..], path), |at| (&path[..at], &path[at + 1..])));
    }
    let is_whole = |at: usize| (at == 0 || path[at - 1] == b'/') && path.get(at + folder.len()) == Some(&b'/');
    let at = memchr::memmem::rfind_iter(path, folder).find(|at| is_whole(*at))?;
    let end = at + folder.len();
    Some((&path[..end], &path[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn told(path: &str) -> Option<String> {
        let data = Catalog::embedded().data_libraries();
        let path = ImagePath::new(path);
        let file = data.file(&path)?;
        let arch = file.told.map_or("-".to_owned(), |t| t.arch.to_string());
        let units = file.told.and_then(|t| t.units).map_or(String::new(), |n| format!(" {n}"));
        let index = if file.is_index { " index" } else { "" };
        let root = String::from_utf8_lossy(file.root).into_owned();
        Some(format!("{} {root}: {arch}{units}{index}", data.all()[file.library].name))
    }

    #[test]
    fn data_files_are_told_by_their_place_and_name() {
        let rocblas = "opt/rocm-6.4.1/lib/rocblas/library";
        for (path, expected) in [
            (format!("{rocblas}/TensileLibrary_lazy_gfx90a.dat"), format!("rocBLAS {rocblas}: gfx90a index")),
            (format!("{rocblas}/Kernels.so-000-gfx90a-xnack-.hsaco"), format!("rocBLAS {rocblas}: gfx90a:xnack-")),
            (
                format!("{rocblas}/gfx1201/TensileLibrary_lazy_gfx1201.dat"),
                format!("rocBLAS {rocblas}: gfx1201 index"),
            ),
            (
                "s/torch/lib/rocblas/library/TensileLibrary_Type_HH_Contraction_l_Ailk_Bjlk_Cijk_Dijk_gfx942.co"
                    .into(),
                "rocBLAS s/torch/lib/rocblas/library: gfx942".into(),
            ),
            (
                "s/_rocm_sdk_libraries_gfx1250/lib/hipblaslt/library/gfx1250/TensileLibrary_lazy_gfx1250.dat.zlib"
                    .into(),
                "hipBLASLt s/_rocm_sdk_libraries_gfx1250/lib/hipblaslt/library: gfx1250 index".into(),
            ),
            (
                "opt/rocm/lib/hipblaslt/library/extop_gfx942.co".into(),
                "hipBLASLt opt/rocm/lib/hipblaslt/library: gfx942".into(),
            ),
            (
                "opt/rocm/lib/hipsparselt/library/TensileLibrary_gfx950.dat".into(),
                "hipSPARSELt opt/rocm/lib/hipsparselt/library: gfx950 index".into(),
            ),
            (
                "opt/rocm/share/miopen/db/gfx942130.db.txt".into(),
                "MIOpen opt/rocm/share/miopen/db: gfx942 304".into(),
            ),
            (
                "s/torch/share/miopen/db/gfx1030_36.HIP.fdb.txt".into(),
                "MIOpen s/torch/share/miopen/db: gfx1030 36".into(),
            ),
            ("opt/rocm/lib/libMIOpenCKGroupedConv_gfx942.so.1".into(), "MIOpen CK opt/rocm/lib: gfx942".into()),
            (
                "opt/rocm/lib/libdevice_conv_operations_gfx950_xnackp.a".into(),
                "composable_kernel opt/rocm/lib: gfx950:xnack+".into(),
            ),
            (
                "s/torch/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/x.aks2".into(),
                "AOTriton s/torch/lib/aotriton.images: gfx11xx".into(),
            ),
            (
                "s/aiter_meta/hsa/gfx942/fmha_v3_fwd/MI308/fwd_hd128.co".into(),
                "AITER s/aiter_meta/hsa: gfx942".into(),
            ),
            ("opt/rocm/lib/rocfft/2.14/rocfft_kernel_cache.db".into(), "rocFFT opt/rocm/lib/rocfft/2.14: -".into()),
        ] {
            assert_eq!(told(&path).as_deref(), Some(&*expected), "{path}");
        }
        for path in [
            format!("{rocblas}/TensileLibrary_Type_HH_Contraction_l_Ailk_Bljk_Cijk_Dijk_fallback.dat"),
            format!("{rocblas}/TensileManifest.txt"),
            "opt/rocm/lib/xrocblas/library/TensileLibrary_lazy_gfx90a.dat".into(),
            "opt/rocm/lib/rocblas/librarygfx90a/x_gfx90a.co".into(),
            "usr/share/doc/gfx90a.txt".into(),
            "home/x.db".into(),
            "gfx90a".into(),
            String::new(),
        ] {
            assert_eq!(told(&path), None, "{path}");
        }
    }

    #[test]
    fn a_library_looks_beside_itself() {
        let data = Catalog::embedded().data_libraries();
        let library = ImagePath::new("opt/rocm-6.4.1/lib/libMIOpen.so.1.0");
        let miopen = data.named("MIOpen").unwrap();
        assert!(miopen.is_used_by(&library) && !miopen.is_used_by(&ImagePath::new("a/libmiopen.so")));
        let roots: Vec<String> = miopen.roots_for(&library).map(|r| r.to_string()).collect();
        assert_eq!(roots[0], "opt/rocm-6.4.1/share/miopen/db");
        assert!(data.named("rocBLAS").unwrap().is_sure());
    }
}
