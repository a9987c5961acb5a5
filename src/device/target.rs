//! What the names in offload containers mean: entry ids of bundles, triples and architectures.
//!
//! An id is `KIND-TRIPLE[-TARGET]`. A triple has three or four fields, and generic targets have dashes of their own, so
//! an id is never cut from its end.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::model::{Arch, GfxProcessor};

/// Number of a processor in `e_flags`, and its name: `[[isa]]` and `[[generic]]` of the catalog's table.
const PROCESSORS: &[(u8, &str)] = include!(concat!(env!("OUT_DIR"), "/amd_processors.rs"));

/// The processor of a number in a code object's `e_flags`; `None` where no table knows it.
pub(super) fn processor(number: u8) -> Option<GfxProcessor> {
    static KNOWN: OnceLock<HashMap<u8, GfxProcessor>> = OnceLock::new();
    let known =
        KNOWN.get_or_init(|| PROCESSORS.iter().filter_map(|(n, name)| Some((*n, name.parse().ok()?))).collect());
    known.get(&number).copied()
}

/// Whose code an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// The host's processor.
    Host,
    Device(Arch),
}

/// The meaning of a bundle entry's id, or of the end of a section's name.
pub(super) fn of_id(id: &str) -> Target {
    let Some((kind, rest)) = id.split_once('-') else { return Target::Device(Arch::Unknown) };
    if kind == "host" {
        return Target::Host;
    }
    let mut fields = rest.splitn(5, '-');
    let [machine, _vendor, _system, environment] = std::array::from_fn(|_| fields.next().unwrap_or_default());
    let target = match fields.next() {
        // Old ids of three fields and no empty fourth: `hip-amdgcn-amd-amdhsa-gfx900`.
        _ if environment.starts_with("gfx") => rest.find("-gfx").map_or("", |at| &rest[at + 1..]),
        Some(target) => target,
        // `hip-spirv64-amd-amdhsa-amdgcnspirv` in three fields as well.
        None => environment,
    };
    Target::Device(of_names(machine, target))
}

/// The meaning of a triple's first field and a target's name.
pub(super) fn of_names(machine: &str, target: &str) -> Arch {
    let parsed = target.parse().unwrap_or(Arch::Unknown);
    match (machine, parsed) {
        ("amdgcn", Arch::Gfx(_)) | ("nvptx64" | "nvptx", Arch::Sm(_)) => parsed,
        ("spirv64", Arch::AmdSpirv) => Arch::AmdSpirv,
        ("spir64" | "spirv64", Arch::Unknown) if target.is_empty() || target == "generic" => Arch::Spir64,
        _ => Arch::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn ids_of_all_shapes() {
        for (id, arch) in [
            ("hipv4-amdgcn-amd-amdhsa--gfx90a", "gfx90a"),
            ("hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-"),
            ("hipv4-amdgcn-amd-amdhsa-unknown-gfx1100", "gfx1100"),
            ("hipv4-amdgcn-amd-amdhsa--gfx10-3-generic", "gfx10-3-generic"),
            ("hip-amdgcn-amd-amdhsa-gfx900", "gfx900"),
            ("hip-amdgcn-amd-amdhsa-gfx9-4-generic", "gfx9-4-generic"),
            ("hip-spirv64-amd-amdhsa--amdgcnspirv", "amdgcnspirv"),
            ("hipv4-spirv64-amd-amdhsa-unknown-amdgcnspirv", "amdgcnspirv"),
            ("openmp-nvptx64-nvidia-cuda--sm_70", "sm_70"),
            ("openmp-amdgcn-amd-amdhsa--gfx1030", "gfx1030"),
            // Understood by nobody, or by a later version.
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:new+", "unknown"),
            ("hipv4-amdgcn-amd-amdhsa--sm_70", "unknown"),
            ("hipv4-amdgcn-amd-amdhsa--", "unknown"),
            ("hipv4", "unknown"),
            ("", "unknown"),
        ] {
            assert_eq!(of_id(id), Target::Device(arch.parse().unwrap()), "{id}");
        }
        for id in ["host-x86_64-unknown-linux--", "host-x86_64-unknown-linux-gnu-", "host-"] {
            assert_eq!(of_id(id), Target::Host, "{id}");
        }
    }

    /// The build script reads the table line by line; here it is read as what it is.
    #[test]
    fn all_processors_of_the_table_are_known() {
        let table: toml::Table = include_str!("../../rules/data/amd_gpus.toml").parse().unwrap();
        let rows = ["isa", "generic"].iter().flat_map(|list| table[*list].as_array().unwrap());
        let wanted: BTreeMap<u8, String> = rows
            .map(|row| (row["mach"].as_integer().unwrap() as u8, row["target"].as_str().unwrap().to_owned()))
            .collect();
        assert!(wanted.len() > 60);
        let known: BTreeMap<u8, String> = (0..=255).filter_map(|n| Some((n, processor(n)?.to_string()))).collect();
        assert_eq!(known, wanted);
    }
}
