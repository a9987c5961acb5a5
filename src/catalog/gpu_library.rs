//! One GPU library by its SONAME: `[[library]]` of `libraries.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::components::Globs;
use super::laws::broken;
use super::libraries::FILE;
use super::{CatalogError, Tables};
use crate::model::Maker;

/// A GPU library.
#[derive(Debug)]
pub struct Library {
    pub name: String,
    /// Whose GPUs it is for.
    pub maker: Maker,
    pub(super) soname: Globs,
    /// SONAME suffix to the majors of CUDA, ROCm or oneAPI that it belongs to.
    majors: BTreeMap<String, Vec<u16>>,
    pip: String,
    apt: String,
    /// Debian packages of other SONAMEs than the newest.
    apt_of: BTreeMap<String, String>,
}

impl Library {
    /// The CUDA majors that a SONAME of it belongs to; empty: it does not say.
    pub fn cuda_majors(&self, suffix: &str) -> &[u16] {
        if self.maker == Maker::Nvidia { self.release_majors(suffix) } else { &[] }
    }

    /// The majors of its maker's releases that a SONAME of it belongs to: of CUDA, ROCm or oneAPI. Empty: it does not
    /// say.
    pub fn release_majors(&self, suffix: &str) -> &[u16] {
        self.majors.get(suffix).map_or(&[], Vec::as_slice)
    }

    /// The packages of PyPI and of its maker's Debian repository that bring it: `nvidia-cublas-cu12`,
    /// `libcublas-12-*`; empty where there is none. `cuda`: the major that is wanted, where others say so.
    pub fn packages(&self, suffix: &str, cuda: Option<u16>) -> (String, String) {
        let apt = self.apt_of.get(suffix).unwrap_or(&self.apt);
        if self.maker != Maker::Nvidia {
            return (self.pip.clone(), apt.clone());
        }
        let majors = self.cuda_majors(suffix);
        let major = cuda.filter(|c| majors.is_empty() || majors.contains(c)).or(majors.last().copied());
        let number = major.map_or("*".to_owned(), |m| m.to_string());
        // From CUDA 13 on its own libraries carry no number; cuDNN, NCCL and the like still do.
        let pip = match major {
            Some(13..) if !majors.is_empty() => self.pip.clone(),
            _ => format!("{}-cu{number}", self.pip),
        };
        (pip, apt.replace("{M}", &number).replace("{m}", "*"))
    }
}

/// `libcublas.so.12` in parts: what stands before and behind ".so.".
pub fn split_soname(name: &str) -> Option<(&str, &str)> {
    let (stem, rest) = name.split_once(".so")?;
    match rest.strip_prefix('.') {
        Some(suffix) => Some((stem, suffix)),
        None if rest.is_empty() => Some((stem, "")),
        None => None,
    }
}

#[derive(Deserialize)]
struct Raw {
    name: String,
    #[serde(default)]
    maker: Option<Maker>,
    soname: String,
    #[serde(default)]
    majors: BTreeMap<String, Vec<u16>>,
    #[serde(default)]
    pip: String,
    #[serde(default)]
    apt: String,
    #[serde(default)]
    apt_of: BTreeMap<String, String>,
}

pub(super) fn read(tables: &mut Tables) -> Result<Vec<Library>, CatalogError> {
    let mut libraries = Vec::new();
    for raw in tables.rows::<Raw>(FILE, "library")? {
        let soname = Globs::new(FILE, &raw.name, std::slice::from_ref(&raw.soname), true)?;
        let Raw { name, maker, majors, pip, apt, apt_of, .. } = raw;
        if pip.is_empty() && apt.is_empty() {
            return Err(broken(FILE, format!("[[library]] `{name}`"), "names no package that brings it"));
        }
        libraries.push(Library { name, maker: maker.unwrap_or(Maker::Nvidia), soname, majors, pip, apt, apt_of });
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use crate::catalog::Catalog;
    use crate::model::Maker;

    #[test]
    fn amd_s_and_intel_s_libraries_are_of_their_releases() {
        let libraries = Catalog::embedded().libraries();
        for (name, maker, majors, packages) in [
            ("libamdhip64.so.6", Maker::Amd, &[6][..], ("rocm-sdk-core", "hip-runtime-amd")),
            ("libamdhip64.so.7", Maker::Amd, &[7], ("rocm-sdk-core", "hip-runtime-amd")),
            ("librocblas.so.4", Maker::Amd, &[6], ("rocm-sdk-libraries", "rocblas")),
            ("libhipblaslt.so.1", Maker::Amd, &[7], ("rocm-sdk-libraries", "hipblaslt")),
            ("libhsa-runtime64.so.1", Maker::Amd, &[], ("rocm-sdk-core", "hsa-rocr")),
            ("libsycl.so.8", Maker::Intel, &[2025], ("intel-sycl-rt", "intel-oneapi-runtime-dpcpp-cpp")),
            ("libze_loader.so.1", Maker::Intel, &[], ("", "libze1")),
        ] {
            let library = libraries.library(name).unwrap_or_else(|| panic!("{name}"));
            let suffix = name.split_once(".so.").unwrap().1;
            assert_eq!(library.maker, maker, "{name}");
            assert_eq!(library.release_majors(suffix), majors, "{name}");
            assert!(library.cuda_majors(suffix).is_empty());
            assert_eq!(
                library.packages(suffix, Some(12)),
                (packages.0.to_owned(), packages.1.to_owned()),
                "{name}"
            );
        }
        let both = ["librocblas.so.5", "libamdhip64.so.7"];
        assert_eq!(
            libraries.packages_for(both.into_iter(), both.into_iter()),
            "pip: rocm-sdk-core, rocm-sdk-libraries; apt: hip-runtime-amd, rocblas"
        );
        let loader = ["libze_loader.so.1"];
        assert_eq!(libraries.packages_for(loader.into_iter(), loader.into_iter()), "apt: libze1");
    }
}
