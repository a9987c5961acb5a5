//! Which version a library file is of.

use crate::catalog::Catalog;
use crate::catalog::libraries::split_soname;
use crate::model::{Evidence, EvidenceFile, escape};

/// The version of a GPU library: its file name, its own strings, or its package. `None`: nothing tells.
pub fn of(evidence: &Evidence, file: &EvidenceFile, catalog: &Catalog) -> Option<String> {
    let name = file.path.file_name_lossy();
    if let Some((_, suffix)) = split_soname(&name)
        && suffix.split('.').count() > 1
        && suffix.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    {
        return Some(suffix.to_owned());
    }
    if let Some(says) = &file.facts.says_version {
        return Some(escape(says.as_bytes()));
    }
    let component = &evidence.components[file.component?];
    catalog.components().vendor_of_package(component.manager, &component.name)?;
    component.version.as_ref().map(|v| escape(v.as_bytes()))
}

/// The numbers that a version begins with.
pub fn numbers(version: &str) -> Vec<u64> {
    let public = version.split(['+', '-', '~']).next().unwrap_or(version);
    let public = public.rsplit(':').next().unwrap_or(public);
    public.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_versions() {
        assert_eq!(numbers("2.21.5+cuda12.4"), [2, 21, 5]);
        assert_eq!(numbers("1:9.7.1.26-1"), [9, 7, 1, 26]);
        assert_eq!(numbers("x"), [0u64; 0]);
    }
}
