//! What an image asks of a wheel: its interpreter, its platform, its C library.

use std::collections::BTreeMap;

use crate::image::index::{Python, Question};
use crate::model::{Evidence, ImagePath, Manager};

/// The question for a package of an image. `specifier` is as in [`crate::model::Change::Wheel`]; where it is empty
/// and there is a version, that version is meant.
pub fn question(
    evidence: &Evidence,
    package: &str,
    version: Option<&str>,
    specifier: &str,
    index: Option<(String, String)>,
) -> Question {
    let specifier = match version {
        Some(version) if specifier.trim().is_empty() => format!("=={version}"),
        _ => specifier.to_owned(),
    };
    Question {
        package: package.to_owned(),
        specifier,
        index,
        python: python_of(evidence, package),
        platform: evidence.image.platform.clone().unwrap_or_default(),
        libc: evidence.libc.clone(),
    }
}

/// The interpreter whose site-packages has the package; where it is not installed, the one that most other packages
/// and extension modules are of. `None`: nothing tells, or two are as good.
pub fn python_of(evidence: &Evidence, package: &str) -> Option<Python> {
    let own = evidence.component_named(package);
    let root = own.and_then(|c| of_path(&evidence.components[c].root));
    root.or_else(|| {
        let files = evidence.files.iter().filter(|f| own.is_some() && f.component == own);
        most(files.filter_map(|f| of_path(&f.path)))
    })
    .or_else(|| {
        let roots = evidence.components.iter().filter(|c| c.manager == Manager::Pip).map(|c| &c.root);
        most(roots.chain(evidence.files.iter().map(|f| &f.path)).filter_map(of_path))
    })
}

fn most(found: impl Iterator<Item = Python>) -> Option<Python> {
    let mut counts: BTreeMap<Python, usize> = BTreeMap::new();
    found.for_each(|p| *counts.entry(p).or_default() += 1);
    let best = counts.values().copied().max()?;
    let mut first = counts.into_iter().filter(|(_, n)| *n == best).map(|(p, _)| p);
    let python = first.next();
    python.filter(|_| first.next().is_none())
}

/// By a directory `python3.12`, an extension module `x.cpython-312-x86_64-linux-gnu.so`, or `libpython3.12.so.1.0`.
fn of_path(path: &ImagePath) -> Option<Python> {
    let text = path.as_str()?;
    let name = text.rsplit('/').next()?;
    if let Some((_, tag)) = name.split_once(".cpython-") {
        return Python::parse(tag);
    }
    let versioned = |part: &str| {
        let version = part.strip_prefix("lib").unwrap_or(part).strip_prefix("python")?;
        version.contains('.').then(|| Python::parse(version))?
    };
    text.split('/').find_map(versioned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Component;

    fn python(roots: &[(&str, &str)], package: &str) -> Option<String> {
        let component = |(name, root): &(&str, &str)| Component {
            name: (*name).into(),
            version: None,
            manager: Manager::Pip,
            root: ImagePath::new(root),
        };
        let evidence = Evidence { components: roots.iter().map(component).collect(), ..Evidence::default() };
        python_of(&evidence, package).map(|p| p.tag())
    }

    #[test]
    fn the_interpreter_is_the_package_s_own() {
        let roots = [
            ("torch", "opt/conda/lib/python3.11/site-packages"),
            ("a", "usr/lib/python3.12/site-packages"),
            ("b", "usr/lib/python3.12/site-packages"),
        ];
        assert_eq!(python(&roots, "torch").as_deref(), Some("cp311"));
        assert_eq!(python(&roots, "flash_attn").as_deref(), Some("cp312"));
        assert_eq!(python(&roots[..2], "flash_attn"), None);
        assert_eq!(python(&[("x", "usr/lib/python3/dist-packages")], "x"), None);
    }

    #[test]
    fn paths_tell_the_interpreter() {
        let of = |p: &str| of_path(&ImagePath::new(p)).map(|p| p.tag());
        let module = "usr/lib/python3/dist-packages/a/_C.cpython-310-x86_64-linux-gnu.so";
        assert_eq!(of(module).as_deref(), Some("cp310"));
        assert_eq!(of("opt/py/lib/python3.13t/site-packages/x.so").as_deref(), Some("cp313t"));
        assert_eq!(of("usr/lib/x86_64-linux-gnu/libpython3.9.so.1.0").as_deref(), Some("cp39"));
        assert_eq!(of("usr/bin/python3"), None);
        assert_eq!(of("a/pythonic.so"), None);
    }
}
