//! What a build can start from: an image of a registry by its name, an archive or a layout of this machine by its path.

use std::fs::{self, File};
use std::path::Path;

/// Schemes that buildah and podman know by the same words.
const SHARED: [&str; 3] = ["oci-archive:", "docker-archive:", "oci:"];

/// Entries of a tar that are looked at.
const MOST: usize = 1 << 16;

/// What `FROM` of buildah and podman takes for an image that has no name of a registry; none where nothing does.
pub fn transport(image: &str) -> Option<String> {
    if let Some((scheme, rest)) = SHARED.iter().find_map(|s| Some((*s, image.strip_prefix(s)?))) {
        let path = absolute(rest).or_else(|| rest.rsplit_once(':').and_then(|(path, _)| absolute(path)))?;
        let tag = rest.rsplit_once(':').filter(|_| !Path::new(rest).exists()).map(|(_, tag)| tag);
        return Some(tag.map_or_else(|| format!("{scheme}{path}"), |tag| format!("{scheme}{path}:{tag}")));
    }
    let path = absolute(image)?;
    if Path::new(&path).join("oci-layout").is_file() {
        return Some(format!("oci:{path}"));
    }
    let scheme = archive(Path::new(&path))?;
    Some(format!("{scheme}{path}"))
}

fn absolute(path: &str) -> Option<String> {
    fs::canonicalize(path).ok()?.into_os_string().into_string().ok().filter(|p| !p.contains(':'))
}

/// By what stands in the tar.
fn archive(path: &Path) -> Option<&'static str> {
    let mut tar = tar::Archive::new(File::open(path).ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()))?);
    for entry in tar.entries().ok()?.take(MOST) {
        let entry = entry.ok()?;
        let name = entry.path().ok()?.into_owned();
        match name.to_str().map(|n| n.trim_start_matches("./")) {
            Some("oci-layout") => return Some("oci-archive:"),
            Some("manifest.json") => return Some("docker-archive:"),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_and_layouts_are_told_by_what_they_hold() {
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/builders/images");
        let of = |name: &str| transport(images.join(name).to_str().unwrap());
        let at = |scheme: &str, name: &str| Some(format!("{scheme}{}", images.join(name).to_str().unwrap()));
        assert_eq!(of("podman-oci-archive.tar"), at("oci-archive:", "podman-oci-archive.tar"));
        assert_eq!(of("docker-24.tar"), at("docker-archive:", "docker-24.tar"));
        assert_eq!(of("umoci.oci"), at("oci:", "umoci.oci"));
        let tagged = format!("oci:{}:latest", images.join("umoci.oci").to_str().unwrap());
        assert_eq!(transport(&tagged), Some(tagged.clone()));
        for none in ["rootfs", "rootfs.tar", "rootfs.tar.gz", "nosuch.tar"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(transport("registry/app:1"), None);
    }
}
