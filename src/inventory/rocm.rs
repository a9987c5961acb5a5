//! ROCm: where its files lie, and the releases that its packages are of.

use super::normalise;
use crate::model::{ImagePath, Manager, first_two};

/// Whether a folder is ROCm's own: `rocm-6.4.1`, `rocm/core-7.14`, `_rocm_sdk_core`.
pub fn is_root(folder: &[u8], above: Option<&[u8]>) -> bool {
    let is_core = folder == b"core" || folder.starts_with(b"core-");
    folder.starts_with(b"rocm") || folder.starts_with(b"_rocm_sdk_") || (is_core && above == Some(b"rocm"))
}

/// The release that a version file or a package's version names: `6.4.1` of `6.4.1-83`.
pub fn release(version: &str) -> Option<String> {
    let end = version.find(['-', '~', '+', ' ']).unwrap_or(version.len());
    let plain = &version[..end];
    let is_release = plain.starts_with(|c: char| c.is_ascii_digit()) && plain.contains('.');
    is_release.then(|| plain.to_owned())
}

/// The release in the version of one of AMD's packages, which name it as one number: `6.4.43483.60401-83` is of 6.4.1.
/// Those of newer releases are versioned by the release itself.
fn packed(version: &str) -> Option<String> {
    let release = release(version)?;
    let number = |part: &str| part.parse::<u32>().ok().filter(|n| (30_000..1_000_000).contains(n));
    let [_, _, _, packed] = release.split('.').collect::<Vec<_>>()[..] else { return Some(release) };
    let packed = number(packed)?;
    Some(format!("{}.{}.{}", packed / 10_000, packed / 100 % 100, packed % 100))
}

/// The folder and the release of ROCm that a package tells of, for images whose version file is gone.
pub fn of_package(manager: Manager, name: &str, version: &str, prefix: &ImagePath) -> Option<(ImagePath, String)> {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    match manager {
        Manager::Dpkg | Manager::Rpm => match name {
            "rocm-core" | "hip-runtime-amd" => {
                let release = packed(version)?;
                // Debian's and Fedora's own packages lie in the system's folders.
                let is_amd_s = version.split(['-', '~', '+']).next()?.split('.').count() == 4;
                let root = if is_amd_s { format!("opt/rocm-{release}") } else { "usr".to_owned() };
                Some((ImagePath::new(root), release))
            }
            "amdrocm-core" | "amdrocm-runtime" => {
                let release = release(version)?;
                let short = first_two(&release);
                Some((ImagePath::new(format!("opt/rocm/core-{short}")), release))
            }
            _ => None,
        },
        Manager::Conda => (name == "rocm-core").then(|| Some((prefix.clone(), release(version)?)))?,
        Manager::Pip => (normalise(name) == "rocm-sdk-core")
            .then(|| Some((prefix.join("_rocm_sdk_core"), release(version)?)))?,
        Manager::Apk | Manager::Path => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_tell_their_release() {
        let of = |manager, name: &str, version: &str| {
            of_package(manager, name, version, &ImagePath::new("site"))
                .map(|(root, release)| format!("{root} {release}"))
        };
        for (manager, name, version, expected) in [
            (Manager::Dpkg, "rocm-core", "6.4.1.60401-83~22.04", Some("opt/rocm-6.4.1 6.4.1")),
            (Manager::Dpkg, "rocm-core6.4.1", "6.4.1.60401-83~22.04", Some("opt/rocm-6.4.1 6.4.1")),
            (Manager::Rpm, "hip-runtime-amd", "7.0.51831.70002-56.el9", Some("opt/rocm-7.0.2 7.0.2")),
            (Manager::Rpm, "rocm-core", "7.2.0-1.fc43", Some("usr 7.2.0")),
            (Manager::Dpkg, "amdrocm-core7.14", "7.14.0-1", Some("opt/rocm/core-7.14 7.14.0")),
            (Manager::Dpkg, "amdrocm-core10.0", "10.0.0", Some("opt/rocm/core-10.0 10.0.0")),
            (Manager::Pip, "rocm_sdk_core", "7.14.1", Some("site/_rocm_sdk_core 7.14.1")),
            (Manager::Conda, "rocm-core", "7.2.1", Some("site 7.2.1")),
            (Manager::Dpkg, "rocm-core-asan", "6.4.1.60401-83", None),
            (Manager::Dpkg, "rocm-core", "6.4.1.x", None),
            (Manager::Dpkg, "rocm-core", "", None),
        ] {
            assert_eq!(of(manager, name, version).as_deref(), expected, "{name} {version}");
        }
    }
}
