//! Intel's oneAPI: the folders of its SYCL compiler, and the packages that bring its runtime.

use super::normalise;
use super::rocm::release as plain;
use crate::model::{ImagePath, Manager};

/// The release whose folder a file of the compiler lies in: `2025.1` of `opt/intel/oneapi/compiler/2025.1/env/vars.sh`.
pub fn release(path: &[u8]) -> Option<&str> {
    let mut parts = path.rsplit(|&b| b == b'/').skip(2);
    let (folder, compiler, oneapi) = (parts.next()?, parts.next()?, parts.next()?);
    let folder = std::str::from_utf8(folder).ok()?;
    let numbers =
        folder.len() <= 32 && folder.split('.').all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    (numbers && folder.contains('.') && compiler == b"compiler" && oneapi == b"oneapi").then_some(folder)
}

/// The folder and the release of the SYCL runtime that a package brings.
pub fn of_package(manager: Manager, name: &str, version: &str, prefix: &ImagePath) -> Option<(ImagePath, String)> {
    let version = || plain(version);
    match manager {
        Manager::Pip if normalise(name) == "intel-sycl-rt" => Some((prefix.clone(), version()?)),
        // Where pip and conda put libraries, `lib` of the environment.
        Manager::Conda if matches!(name, "intel-sycl-rt" | "dpcpp-cpp-rt" | "dpcpp_impl_linux-64") => {
            Some((prefix.clone(), version()?))
        }
        Manager::Dpkg | Manager::Rpm
            if name == "intel-oneapi-runtime-dpcpp-cpp" || name == "intel-oneapi-runtime-compilers" =>
        {
            Some((ImagePath::new("opt/intel/oneapi/redist"), version()?))
        }
        Manager::Pip | Manager::Conda | Manager::Dpkg | Manager::Rpm | Manager::Apk | Manager::Path => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_folders_tell_their_release() {
        let of = |manager, name: &str, version: &str| {
            of_package(manager, name, version, &ImagePath::new("p"))
                .map(|(root, release)| format!("{root} {release}"))
        };
        assert_eq!(of(Manager::Pip, "intel_sycl_rt", "2026.2.0").as_deref(), Some("p 2026.2.0"));
        let runtime = of(Manager::Dpkg, "intel-oneapi-runtime-dpcpp-cpp", "2025.1.0-756");
        assert_eq!(runtime.as_deref(), Some("opt/intel/oneapi/redist 2025.1.0"));
        assert_eq!(of(Manager::Pip, "intel-openmp", "2025.1"), None);
        assert_eq!(release(b"opt/intel/oneapi/compiler/2025.1.1/env/vars.sh"), Some("2025.1.1"));
        for path in
            [&b"opt/intel/oneapi/compiler/latest/env/vars.sh"[..], b"2025.1/env/vars.sh", b"", b"a/b/c/\xff/x/y"]
        {
            assert_eq!(release(path), None);
        }
    }
}
