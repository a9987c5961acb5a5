//! What names and words in a Dockerfile say of the use of a GPU: capabilities of the driver that a program needs, and
//! packages by which conda decides between builds. Table: `dockerfile_uses.toml`.

use serde::Deserialize;

use super::components::Globs;
use super::{CatalogError, Tables, Trust, names};

pub(super) const FILE: &str = "dockerfile_uses.toml";

/// Something that opens libraries of the driver beyond CUDA's, `[[capability_user]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct CapabilityUser {
    pub name: String,
    /// The word of NVIDIA_DRIVER_CAPABILITIES that brings them.
    pub capability: String,
    #[serde(default)]
    pip: Vec<String>,
    #[serde(default)]
    repositories: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl CapabilityUser {
    pub fn is_package(&self, pip_name: &str) -> bool {
        self.pip.contains(&names::dist(pip_name))
    }

    /// Whether a URL is of one of its repositories.
    pub fn is_repository(&self, url: &str) -> bool {
        let url = url.to_ascii_lowercase();
        let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '/', '@', '#']);
        self.repositories.iter().any(|r| url.split_once(r.as_str()).is_some_and(|(_, rest)| ends(rest)))
    }

    /// Whether one of its words is in a text.
    pub fn is_said(&self, text: &str) -> bool {
        self.words.iter().any(|w| text.contains(w.as_str()))
    }

    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.name)
    }
}

#[derive(Debug, Deserialize)]
struct Decider {
    name: String,
    packages: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Channel {
    channels: Vec<String>,
}

/// All rows.
#[derive(Debug)]
pub struct Uses {
    capabilities: Vec<CapabilityUser>,
    deciders: Vec<Globs>,
    channels: Vec<Channel>,
}

impl Uses {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let deciders: Vec<Decider> = tables.rows(FILE, "conda_decider")?;
        let globs = deciders.iter().map(|d| Globs::new(FILE, &d.name, &d.packages, false));
        Ok(Self {
            capabilities: tables.rows(FILE, "capability_user")?,
            deciders: globs.collect::<Result<_, _>>()?,
            channels: tables.rows(FILE, "conda_channel")?,
        })
    }

    pub fn capability_users(&self) -> &[CapabilityUser] {
        &self.capabilities
    }

    /// Whether a package decides which build of others conda takes.
    pub fn conda_package_decides(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.deciders.iter().any(|globs| globs.matches_name(&name))
    }

    /// Whether a channel, by name or URL, has builds for CUDA only, or prefers them.
    pub fn conda_channel_decides(&self, channel: &str) -> bool {
        let mut parts = channel.trim_end_matches('/').split('/');
        let is = |name: &str| self.channels.iter().any(|c| c.channels.iter().any(|known| known == name));
        // `nvidia/label/cuda-12.4.0` is a part of nvidia's.
        parts.clone().next_back().is_some_and(is) || parts.next().is_some_and(is)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;

    #[test]
    fn capabilities_by_package_repository_and_word() {
        let uses = Catalog::embedded().uses();
        let find = |is: &dyn Fn(&super::CapabilityUser) -> bool| {
            uses.capability_users().iter().find(|u| is(u)).map(|u| u.capability.as_str())
        };
        assert_eq!(find(&|u| u.is_package("PyNvVideoCodec")), Some("video"));
        assert_eq!(find(&|u| u.is_repository("https://github.com/FFmpeg/nv-codec-headers.git")), Some("video"));
        assert_eq!(find(&|u| u.is_repository("https://github.com/FFmpeg/nv-codec-headers-old")), None);
        assert_eq!(find(&|u| u.is_said("/usr/share/vulkan/icd.d/nvidia_icd.json")), Some("graphics"));
        assert_eq!(find(&|u| u.is_said("--enable-libx264")), None);
    }

    #[test]
    fn what_conda_decides_by() {
        let uses = Catalog::embedded().uses();
        assert!(uses.conda_package_decides("cuda-version") && uses.conda_package_decides("cpuonly"));
        assert!(!uses.conda_package_decides("numpy") && !uses.conda_package_decides("pytorch"));
        assert!(uses.conda_channel_decides("https://conda.anaconda.org/pytorch/"));
        assert!(uses.conda_channel_decides("nvidia/label/cuda-12.4.0"));
        assert!(!uses.conda_channel_decides("conda-forge"));
    }
}
