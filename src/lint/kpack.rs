//! HIP libraries whose kernels were taken out into archives: which archives they would open, and what these hold.

use std::collections::BTreeMap;

use crate::model::{
    Arch, Container, Device, Evidence, EvidenceFile, Form, GfxArch, GfxMode, ImagePath, Item, ItemCount, Kpack,
    Module,
};

/// What stands for the target in an archive's name.
const TARGET: &str = "@GFXARCH@";

/// Archives that the environment names instead.
const VARIABLE: &str = "ROCM_KPACK_PATH";

/// The modules of a library by the archives that it would open on a GPU; nothing for a library that holds its own. An
/// error names the archives where none of them is in the image.
pub fn modules(file: &EvidenceFile, evidence: &Evidence, device: Device) -> Option<Result<Vec<Module>, String>> {
    let Some(Kpack::Reference { kernel, paths, indices }) = &file.facts.kpack else { return None };
    let gpu = device.gfx()?;
    let mut wanted: Vec<ImagePath> = Vec::new();
    let named = evidence.image.config.var(VARIABLE).unwrap_or_default();
    wanted.extend(named.split(':').filter(|p| p.starts_with('/')).map(ImagePath::new));
    let folder = file.path.parent();
    for path in paths {
        wanted.extend(spellings(gpu).iter().map(|target| folder.join(path.replace(TARGET, target).as_bytes())));
    }
    let mut found = false;
    let mut held: BTreeMap<u32, Vec<GfxArch>> = BTreeMap::new();
    for archive in wanted.iter().filter_map(|path| archive(path, evidence)) {
        found = true;
        for (key, archs) in archive {
            let Some((name, index)) = key.rsplit_once('#') else { continue };
            let Ok(index) = index.parse::<u32>() else { continue };
            let own = kernel.as_ref().is_none_or(|kernel| kernel == name);
            if own && (indices.is_empty() || indices.contains(&index)) {
                held.entry(index).or_default().extend(archs);
            }
        }
    }
    if !found {
        let list: Vec<String> = paths.iter().map(|p| crate::model::escape(p.as_bytes())).collect();
        return Some(Err(list.join(", ")));
    }
    let all = indices.iter().copied().chain(held.keys().copied()).collect::<std::collections::BTreeSet<_>>();
    let module = |index: u32| {
        let mut archs = held.get(&index).cloned().unwrap_or_default();
        archs.sort_unstable();
        archs.dedup();
        Module {
            container: Container::Kpack,
            section: None,
            relocatable: false,
            items: archs.into_iter().map(|arch| count(arch.into())).collect(),
            count: 1,
            first: 0,
        }
    };
    Some(Ok(all.into_iter().map(module).collect()))
}

fn count(arch: Arch) -> ItemCount {
    ItemCount { item: Item::of(arch, Form::CodeObject), entries: 1, bytes: 0 }
}

/// How a target is written in the names of archives: with its features, and with fewer of them.
fn spellings(gpu: GfxArch) -> Vec<String> {
    let plain = GfxArch::from(gpu.processor);
    let mut out: Vec<GfxArch> = vec![gpu];
    for sramecc in [gpu.sramecc, GfxMode::Any] {
        for xnack in [gpu.xnack, GfxMode::Any] {
            out.push(GfxArch { sramecc, xnack, ..plain });
        }
    }
    let mut out: Vec<String> = out.iter().map(ToString::to_string).collect();
    out.dedup();
    out
}

fn archive<'a>(path: &ImagePath, evidence: &'a Evidence) -> Option<&'a [(String, Vec<GfxArch>)]> {
    let real = evidence.links.iter().find(|(link, _)| link == path).map_or(path, |(_, to)| to);
    match &evidence.file(real)?.facts.kpack {
        Some(Kpack::Archive { binaries }) => Some(binaries),
        Some(Kpack::Reference { .. }) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::lint::lab::{Lab, at};
    use crate::model::{FileFacts, FileKind};

    /// An archive's keys, each with its targets.
    type Keys<'k> = &'k [(&'k str, &'k [&'k str])];

    fn image(archives: &[(&str, Keys<'_>)]) -> Lab {
        let mut lab = Lab::new();
        for (name, binaries) in archives {
            let mut facts = FileFacts::new(FileKind::Kpack, 10);
            let archs = |list: &[&str]| list.iter().map(|a| a.parse().unwrap()).collect();
            let binaries = binaries.iter().map(|(key, list)| ((*key).to_owned(), archs(list))).collect();
            facts.kpack = Some(Kpack::Archive { binaries });
            lab.0.files.push(EvidenceFile {
                path: at(&format!("opt/lib/.kpack/{name}")),
                layer: None,
                facts: Arc::new(facts),
                component: None,
                in_archive: false,
            });
        }
        let mut facts = FileFacts::new(FileKind::SharedObject, 10);
        let paths = vec![".kpack/foo_@GFXARCH@.kpack".to_owned()];
        facts.kpack = Some(Kpack::Reference { kernel: Some("libfoo.so".into()), paths, indices: vec![0, 1] });
        lab.0.files.push(EvidenceFile {
            path: at("opt/lib/libfoo.so"),
            layer: None,
            facts: Arc::new(facts),
            component: None,
            in_archive: false,
        });
        lab
    }

    fn found(lab: &Lab, gpu: &str) -> Result<Vec<String>, String> {
        let file = lab.0.files.last().unwrap();
        let modules = modules(file, &lab.0, gpu.parse().unwrap()).unwrap()?;
        let archs = |m: &Module| m.items.iter().map(|i| i.item.arch.to_string()).collect::<Vec<_>>().join(" ");
        Ok(modules.iter().map(archs).collect())
    }

    #[test]
    fn each_code_object_is_looked_for_in_the_archives() {
        let keys: Keys<'_> = &[("libbar.so#0", &["gfx942"]), ("libfoo.so#0", &["gfx942", "gfx90a"])];
        let lab = image(&[("foo_gfx942.kpack", keys)]);
        assert_eq!(found(&lab, "gfx942").unwrap(), ["gfx90a gfx942", ""]);
        assert_eq!(found(&lab, "gfx942:xnack+").unwrap(), ["gfx90a gfx942", ""]);
        assert_eq!(found(&lab, "gfx90a").unwrap_err(), ".kpack/foo_@GFXARCH@.kpack");
        assert!(modules(lab.0.files.last().unwrap(), &lab.0, "9.0".parse().unwrap()).is_none());
    }

    #[test]
    fn the_environment_names_archives() {
        let mut lab = image(&[("other.kpack", &[("libfoo.so#1", &["gfx1100"])])]);
        assert!(found(&lab, "gfx1100").is_err());
        lab.env(&[(VARIABLE, "/opt/lib/.kpack/other.kpack")]);
        assert_eq!(found(&lab, "gfx1100").unwrap(), ["", "gfx1100"]);
    }
}
