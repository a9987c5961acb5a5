//! NVIDIA's libraries, packages and toolkits of two images.

use std::collections::{BTreeMap, BTreeSet};

use super::pair::{family, pairs};
use crate::catalog::Catalog;
use crate::catalog::libraries::split_soname;
use crate::model::{ImagePath, Manager, Package, Toolkit, ToolkitKind, escape};
use crate::report::diff::{Kind, LibraryChange, LibraryVersion, PackageChange, ToolkitChange};
use crate::report::{Library, fingerprint};

/// By name, those whose SONAMEs or versions differ.
pub fn libraries(old: &[Library], new: &[Library], catalog: &Catalog) -> Vec<LibraryChange> {
    let (before, after) = (versions(old, catalog), versions(new, catalog));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let none = BTreeSet::new();
    let row = |name: &String| {
        let (old, new) = (before.get(name).unwrap_or(&none), after.get(name).unwrap_or(&none));
        if old == new {
            return None;
        }
        let sonames = |all: &BTreeSet<LibraryVersion>| -> BTreeSet<String> {
            all.iter().filter_map(|v| split_soname(&v.soname)).map(|(_, number)| number.to_owned()).collect()
        };
        let other_soname = !old.is_empty() && !new.is_empty() && !sonames(old).is_subset(&sonames(new));
        let change = kind(old.is_empty(), new.is_empty());
        let list = |all: &BTreeSet<LibraryVersion>| all.iter().cloned().collect();
        Some(LibraryChange { change, name: name.clone(), old: list(old), new: list(new), other_soname })
    };
    names.into_iter().filter_map(row).collect()
}

fn kind(none_old: bool, none_new: bool) -> Kind {
    match (none_old, none_new) {
        (true, _) => Kind::Added,
        (_, true) => Kind::Removed,
        _ => Kind::Changed,
    }
}

/// What each of NVIDIA's libraries is there as.
fn versions(libraries: &[Library], catalog: &Catalog) -> BTreeMap<String, BTreeSet<LibraryVersion>> {
    let mut out: BTreeMap<String, BTreeSet<LibraryVersion>> = BTreeMap::new();
    for library in libraries {
        let file = library.path.file_name_lossy().into_owned();
        // auditwheel renames files and leaves the number; their SONAMEs carry its hash as well.
        let soname = library.soname.clone().unwrap_or_else(|| escape(file.as_bytes()));
        let Some((_, number)) = split_soname(&soname) else { continue };
        let plain = fingerprint::plain_name(&soname);
        let name = plain.strip_suffix(".so").unwrap_or(&plain);
        if catalog.libraries().library(&plain).is_none()
            && catalog.components().vendor_of_path(&library.path).is_none()
        {
            continue;
        }
        let dot = if number.is_empty() { "" } else { "." };
        let soname = format!("{name}.so{dot}{number}");
        let version = library.version.clone();
        out.entry(name.to_owned()).or_default().insert(LibraryVersion { soname, version });
    }
    out
}

/// By manager and name.
pub fn packages(old: &[Package], new: &[Package]) -> Vec<PackageChange> {
    type Named = ((Manager, String), BTreeSet<String>);
    let grouped = |all: &[Package]| -> Vec<Named> {
        let mut out: BTreeMap<(Manager, String), BTreeSet<String>> = BTreeMap::new();
        for package in all {
            let versions = out.entry((package.manager, package.name.clone())).or_default();
            versions.extend(package.version.iter().map(|v| escape(v.as_bytes())));
        }
        out.into_iter().collect()
    };
    let (before, after) = (grouped(old), grouped(new));
    // Only wheels say in their name for which CUDA they are, and nothing else.
    let keys = |(key, _): &Named| match key.0 {
        Manager::Pip => [key.clone(), (key.0, family(&key.1))],
        Manager::Dpkg | Manager::Rpm | Manager::Apk | Manager::Conda | Manager::Path => [key.clone(), key.clone()],
    };
    let all = |side: &[Named]| side.iter().map(keys).collect::<Vec<_>>();
    let mut out: Vec<PackageChange> = Vec::new();
    for (a, b) in pairs(&all(&before), &all(&after)) {
        let (old, new) = (a.and_then(|a| before.get(a)), b.and_then(|b| after.get(b)));
        let Some(((manager, name), _)) = new.or(old) else { continue };
        if old == new {
            continue;
        }
        let old_name = old.map(|o| &o.0.1).filter(|n| *n != name).map(|n| escape(n.as_bytes()));
        let list = |side: Option<&Named>| side.iter().flat_map(|s| &s.1).cloned().collect();
        out.push(PackageChange {
            change: kind(old.is_none(), new.is_none()),
            manager: *manager,
            name: escape(name.as_bytes()),
            old_name,
            old: list(old),
            new: list(new),
        });
    }
    out.sort_by(|a, b| (a.manager, &a.name, a.change).cmp(&(b.manager, &b.name, b.change)));
    out
}

/// By path.
pub fn toolkits(old: &[Toolkit], new: &[Toolkit]) -> Vec<ToolkitChange> {
    let of = |all: &[Toolkit]| -> BTreeMap<_, _> {
        all.iter().map(|t| ((t.path.clone(), t.kind), escape(t.version.as_bytes()))).collect()
    };
    let (before, after) = (of(old), of(new));
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let row = |place: &&(ImagePath, ToolkitKind)| {
        let (old, new) = (before.get(place).cloned(), after.get(place).cloned());
        let change = kind(old.is_none(), new.is_none());
        (old != new).then(|| ToolkitChange { change, path: place.0.clone(), kind: place.1, old, new })
    };
    paths.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FileKind;

    fn library(path: &str, soname: &str, version: &str) -> Library {
        Library {
            path: ImagePath::new(path),
            kind: FileKind::SharedObject,
            machine: None,
            soname: Some(soname.into()),
            component: None,
            rpath: None,
            runpath: None,
            version: Some(version.into()),
            needs: Vec::new(),
            opens: Vec::new(),
        }
    }

    fn compared(old: &[Library], new: &[Library]) -> Vec<String> {
        let rows = libraries(old, new, Catalog::embedded());
        rows.iter().map(|r| format!("{} {:?} {}", r.name, r.change, r.other_soname)).collect()
    }

    #[test]
    fn libraries_are_compared_by_name_soname_and_version() {
        let blas = |n: &str, v: &str| library("a/libcublas.so", &format!("libcublas.so.{n}"), v);
        assert_eq!(compared(&[blas("12", "12.6")], &[blas("12", "12.8")]), ["libcublas Changed false"]);
        assert_eq!(compared(&[blas("12", "12.6")], &[blas("13", "13.0")]), ["libcublas Changed true"]);
        // Where the old is there beside the new, what is linked with it still finds it.
        assert_eq!(
            compared(&[blas("12", "12.6")], &[blas("12", "12.6"), blas("13", "13.0")]),
            ["libcublas Changed false"]
        );
        assert_eq!(compared(&[blas("12", "12.6")], &[]), ["libcublas Removed false"]);
        assert_eq!(compared(&[], &[blas("12", "12.6")]), ["libcublas Added false"]);
        assert!(compared(&[blas("12", "12.6")], &[blas("12", "12.6")]).is_empty());
    }

    #[test]
    fn others_libraries_are_left_out_and_hashes_do_not_count() {
        assert!(compared(&[library("a/libm.so.6", "libm.so.6", "2")], &[]).is_empty());
        let hashed = |hash: &str| library("x.libs/a", &format!("libcudart-{hash}.so.12"), "12.6");
        assert!(compared(&[hashed("9335f6a2")], &[hashed("0123abcd")]).is_empty());
        assert_eq!(compared(&[hashed("9335f6a2")], &[]), ["libcudart Removed false"]);
    }

    #[test]
    fn packages_that_were_renamed_for_their_cuda_are_one() {
        let pip = |name: &str, version: &str| Package::new(Manager::Pip, name, Some(version.into()));
        let rows = packages(
            &[pip("nvidia-cublas-cu12", "12.6"), pip("gone", "1"), pip("same", "1")],
            &[pip("nvidia-cublas", "13.0"), pip("same", "1"), pip("came", "2")],
        );
        let text: Vec<String> = rows
            .iter()
            .map(|r| format!("{:?} {} {:?} {:?} {:?}", r.change, r.name, r.old_name, r.old, r.new))
            .collect();
        assert_eq!(
            text,
            [
                r#"Added came None [] ["2"]"#,
                r#"Removed gone None ["1"] []"#,
                r#"Changed nvidia-cublas Some("nvidia-cublas-cu12") ["12.6"] ["13.0"]"#,
            ]
        );
        let apt = |name: &str| Package::new(Manager::Dpkg, name, Some("1".into()));
        assert_eq!(packages(&[apt("x-cu12")], &[apt("x-cu13")]).len(), 2, "names of the distribution stay apart");
    }

    #[test]
    fn toolkits_by_their_folder() {
        let kit = |path: &str, version: &str| Toolkit {
            path: ImagePath::new(path),
            kind: ToolkitKind::Cuda,
            version: version.into(),
            said_by: ImagePath::new("x"),
        };
        let rows = toolkits(&[kit("a", "12.6"), kit("b", "12.6")], &[kit("a", "12.8"), kit("c", "12.8")]);
        let text: Vec<String> = rows.iter().map(|r| format!("{} {:?}", r.path, r.change)).collect();
        assert_eq!(text, ["a Changed", "b Removed", "c Added"]);
    }
}
