//! Laws of the tables themselves: a catalog that breaks one is refused, with the row's name.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::gpus::FILE as GPUS;
use super::names::key;
use super::{Catalog, CatalogError, row_name};
use crate::model::{Device, GpuClass};

/// Test vectors: expectations, not facts.
pub(super) const NO_FACTS: &[&str] = &["require_vectors.toml"];

pub(super) fn broken(file: &'static str, row: impl Into<String>, law: impl Into<String>) -> CatalogError {
    CatalogError::Law { file, row: row.into(), law: law.into() }
}

/// Every row says how it is known: `source`, `status` or `verified`.
pub(super) fn rows_say_how_they_are_known(tables: &[(String, Table)]) -> Result<(), CatalogError> {
    for (file, table) in tables.iter().filter(|(f, _)| !NO_FACTS.contains(&f.as_str())) {
        for (name, rows) in table {
            let Value::Array(rows) = rows else { continue };
            for (index, row) in rows.iter().enumerate() {
                let Value::Table(keys) = row else { continue };
                let said = |k: &&str| keys.get(*k).and_then(Value::as_str).is_some_and(|t| !t.trim().is_empty());
                if !["source", "status", "verified"].iter().any(said) {
                    return Err(CatalogError::Row {
                        file: file.clone(),
                        row: row_name(name, index, row),
                        what: "says neither its source nor its status".to_owned(),
                    });
                }
            }
        }
    }
    Ok(())
}

/// All laws that need more than one row.
pub(super) fn check(catalog: &Catalog) -> Result<(), CatalogError> {
    gpu_names_are_unique(catalog)?;
    gpus_can_be_compiled_for(catalog)?;
    toolkits_only_grow(catalog)?;
    drivers_only_grow(catalog)?;
    windows_are_of_known_drivers(catalog)?;
    components_can_be_recognised(catalog)?;
    super::build_laws::check(catalog)
}

/// A name or alias is of one product. nvidia-smi's names may be shared (`Xavier`) by products of one capability.
fn gpu_names_are_unique(catalog: &Catalog) -> Result<(), CatalogError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for gpu in catalog.gpus().all() {
        let mut own = BTreeSet::new();
        for name in std::iter::once(&gpu.name).chain(&gpu.aliases) {
            let name = key(name);
            if name.is_empty() {
                return Err(broken(GPUS, format!("`{}`", gpu.name), "has an empty name or alias"));
            }
            if own.insert(name.clone())
                && let Some(other) = seen.insert(name.clone(), &gpu.name)
            {
                return Err(broken(
                    GPUS,
                    format!("`{}`", gpu.name),
                    format!("`{name}` is a name of `{other}` too"),
                ));
            }
        }
    }
    let mut shown = BTreeMap::new();
    for gpu in catalog.gpus().all() {
        for name in &gpu.smi {
            let first = *shown.entry(key(name)).or_insert(gpu.device);
            if first != gpu.device {
                let law = format!("nvidia-smi's name `{name}` is of {first} and of {} ", gpu.device);
                return Err(broken(GPUS, format!("`{}`", gpu.name), law));
            }
        }
    }
    Ok(())
}

/// Some toolkit compiles for each product; embedded products run on Arm.
fn gpus_can_be_compiled_for(catalog: &Catalog) -> Result<(), CatalogError> {
    for gpu in catalog.gpus().all() {
        let row = || format!("`{}`", gpu.name);
        let law = match gpu.device {
            Device::Nvidia(cc) if catalog.toolkits().toolkits_for(cc).is_none() => {
                format!("no toolkit compiles for {cc}")
            }
            Device::Amd(arch) if catalog.processors().isa(arch.processor).is_none() => {
                format!("no [[isa]] is of {arch}")
            }
            Device::Intel(ip) if catalog.processors().ip(ip).is_none() => {
                format!("no [[gpu]] is of {}", ip.dotted())
            }
            Device::Nvidia(_) | Device::Amd(_) | Device::Intel(_) => String::new(),
        };
        if !law.is_empty() {
            return Err(broken(GPUS, row(), law));
        }
        if gpu.class == GpuClass::Embedded && gpu.platforms.is_empty() {
            return Err(broken(GPUS, row(), "is embedded and names no platform"));
        }
    }
    Ok(())
}

/// Newer toolkits write newer PTX; newer majors ask for newer drivers.
fn toolkits_only_grow(catalog: &Catalog) -> Result<(), CatalogError> {
    const FILE: &str = "toolkits.toml";
    for pair in catalog.toolkits().all().windows(2) {
        let [older, newer] = pair else { continue };
        if older.cuda == newer.cuda {
            return Err(broken(FILE, format!("[[toolkit]] `{}`", newer.cuda), "stands twice"));
        }
        if newer.ptx_isa < older.ptx_isa {
            let law = format!("its PTX {} is older than {} of CUDA {}", newer.ptx_isa, older.ptx_isa, older.cuda);
            return Err(broken(FILE, format!("[[toolkit]] `{}`", newer.cuda), law));
        }
    }
    for pair in catalog.toolkits().floors().windows(2) {
        let [(older, low), (newer, high)] = pair else { continue };
        if older == newer || high.driver <= low.driver {
            let law = format!("its floor {} is not above {} of CUDA {older}", high.driver, low.driver);
            return Err(broken(FILE, format!("[[minor_version_compat]] `{newer}`"), law));
        }
    }
    for pair in catalog.toolkits().releases().windows(2) {
        let [older, newer] = pair else { continue };
        if newer.driver.branch() < older.driver.branch() {
            let law = format!("its driver {} is older than {} of {}", newer.driver, older.driver, older.version);
            return Err(broken(FILE, format!("[[release]] `{}`", newer.version), law));
        }
    }
    Ok(())
}

/// Newer branches know newer CUDA and newer PTX.
fn drivers_only_grow(catalog: &Catalog) -> Result<(), CatalogError> {
    for pair in catalog.drivers().branches().windows(2) {
        let [older, newer] = pair else { continue };
        let row = || format!("[[branch]] `{}`", newer.branch);
        if older.branch == newer.branch {
            return Err(broken("drivers.toml", row(), "stands twice"));
        }
        if newer.native_cuda < older.native_cuda || newer.ptx_isa < older.ptx_isa {
            let law = format!(
                "its CUDA {} (PTX {}) is older than {} (PTX {}) of R{}",
                newer.native_cuda, newer.ptx_isa, older.native_cuda, older.ptx_isa, older.branch
            );
            return Err(broken("drivers.toml", row(), law));
        }
    }
    Ok(())
}

/// Windows of architectures name known branches, in order, once a capability.
fn windows_are_of_known_drivers(catalog: &Catalog) -> Result<(), CatalogError> {
    let known: BTreeSet<u32> = catalog.drivers().branches().iter().map(|b| b.branch).collect();
    let mut seen = BTreeSet::new();
    for (capability, window) in catalog.drivers().windows() {
        let row = || format!("[[arch]] `{}`", window.name);
        if !seen.insert(*capability) {
            return Err(broken("drivers.toml", row(), format!("{capability} stands twice")));
        }
        for branch in [window.first_driver, window.last_driver].into_iter().flatten() {
            if !known.contains(&branch) {
                return Err(broken("drivers.toml", row(), format!("R{branch} is no known branch")));
            }
        }
        if let (Some(first), Some(last)) = (window.first_driver, window.last_driver)
            && first > last
        {
            return Err(broken("drivers.toml", row(), format!("R{first} to R{last} is empty")));
        }
    }
    Ok(())
}

/// Rows about components recognise something, and stand once.
fn components_can_be_recognised(catalog: &Catalog) -> Result<(), CatalogError> {
    for (table, rows) in catalog.components().tables() {
        let mut seen = BTreeSet::new();
        for row in rows {
            let name = || format!("[[{table}]] `{}`", row.name);
            if !seen.insert(&row.name) {
                return Err(broken("components.toml", name(), "stands twice"));
            }
            if row.recognises_nothing() {
                return Err(broken("components.toml", name(), "has neither dists, packages nor paths"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::FILES;
    use super::*;

    /// The message with which the tables are refused after one text in one file is replaced.
    fn refused(file: &str, from: &str, to: &str) -> String {
        let text = FILES.iter().find(|(f, _)| *f == file).unwrap().1;
        assert!(text.contains(from), "{file} has no {from:?}");
        let text = text.replacen(from, to, 1);
        let files: Vec<_> = FILES.iter().map(|&(f, t)| (f, if f == file { text.as_str() } else { t })).collect();
        Catalog::parse(&files).expect_err("a broken law is refused").to_string()
    }

    #[test]
    fn broken_tables_are_refused_with_the_rows_name() {
        let cases = [
            (
                "gpus.toml",
                "aliases = [\"h200\"]",
                "aliases = [\"H 100\"]",
                "`NVIDIA H200`: `h100` is a name of `NVIDIA H100` too",
            ),
            ("gpus.toml", "cc = \"3.7\"", "cc = \"4.2\"", "`Tesla K80`: no toolkit compiles for 4.2"),
            ("gpus.toml", "cc = \"3.7\"", "cc = \"x\"", "[[gpu]] `Tesla K80`"),
            ("gpus.toml", "class = \"datacenter\"", "class = \"toaster\"", "[[gpu]] `Tesla K80`"),
            (
                "toolkits.toml",
                "ptx_isa = \"9.4\"",
                "ptx_isa = \"9.6\"",
                "[[toolkit]] `13.5`: its PTX 9.5 is older than 9.6",
            ),
            (
                "toolkits.toml",
                "min_driver_linux = \"525.60.13\"",
                "min_driver_linux = \"425.60\"",
                "[[minor_version_compat]] `12`",
            ),
            ("drivers.toml", "native_cuda = \"12.2\"", "native_cuda = \"12.9\"", "[[branch]] `545`"),
            (
                "drivers.toml",
                "native_cuda = \"12.2\"",
                "native_cuda = \"12.10\"",
                "[[branch]] `535`: its CUDA 12.10 has no PTX ISA",
            ),
            ("drivers.toml", "first_driver = 570", "first_driver = 571", "R571 is no known branch"),
            (
                "components.toml",
                "source = \"PyPI wheel 4.8.5 opened\"\nstatus = \"executed\"",
                "",
                "[[framework]] `ctranslate2`: says neither",
            ),
            ("components.toml", "paths = [\"**/libctranslate2*.so*\"]", "paths = [\"[\"]", "`ctranslate2`"),
            ("components.toml", "pattern = \"/_{}_C.\"", "pattern = \"_C.\"", "[[variant]] `tinycudann`"),
            ("catalog.toml", "as_of = \"2026-11-30\"", "", "as_of"),
        ];
        for (file, from, to, message) in cases {
            let text = refused(file, from, to);
            assert!(text.contains(file) && text.contains(message), "{text}");
        }
        assert!(Catalog::parse(&[("gpus.toml", "[")]).unwrap_err().to_string().starts_with("gpus.toml: "));
        assert!(matches!(Catalog::parse(&[]), Err(CatalogError::NoFile { file: "catalog.toml" })));
    }
}
