//! Package metadata: which packages are installed, who owns a file, which group of files a user would call one
//! thing; and what files say about versions: toolkits, what frameworks were built with.
//!
//! [`wants`] picks files by path, [`read`] turns each into a small [`Fact`] while its layer flows by, and
//! [`assemble`] joins the facts that survive the overlay into packages, components, owners, claims and toolkits.
//! Bodies are read once and in bounded memory; what cannot be read is told in a line, and the scan goes on.

mod apk;
mod assemble;
mod built;
mod conda;
mod dpkg;
mod driver;
mod json;
mod landmarks;
mod lines;
mod names;
mod oneapi;
mod pip;
mod place;
mod rocm;
mod rpm;
mod tags;
mod toolkit;

use serde::{Deserialize, Serialize};

use crate::model::fnv1a as hash;
use crate::model::{ClaimKind, ImagePath, Package, ToolkitKind};
use crate::stream::Body;

pub use assemble::{Inventory, Naming, NoNaming, assemble};
pub use landmarks::{LIMIT as MAX_LANDMARKS, is_landmark};
pub use names::{normalise, same_component};

/// Packages read of one database at most; a full desktop has some thousands.
const MAX_PACKAGES: usize = 200_000;

/// Which metadata a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Probe {
    /// `*.dist-info/METADATA`, `*.egg-info/PKG-INFO`, `*.egg-info`, `EGG-INFO/PKG-INFO`.
    PythonMetadata,
    /// `*.dist-info/RECORD`.
    PythonRecord,
    /// `var/lib/dpkg/status` and the stanzas of `status.d`.
    DpkgStatus,
    /// `var/lib/dpkg/info/*.list`.
    DpkgList,
    /// `var/lib/dpkg/status.d/*.md5sums`: the lists of images without a package manager.
    DpkgSums,
    /// `var/lib/rpm/rpmdb.sqlite` and the like.
    Rpm(rpm::Source),
    /// `lib/apk/db/installed`.
    ApkInstalled,
    /// `conda-meta/*.json` of an environment.
    CondaRecord,
    /// `torch/version.py` and the like.
    Built(built::Project),
    /// `cuda-12.8/version.json`, `include/cuda.h`, `include/cudnn_version.h`, `rocm-6.4.1/.info/version`.
    Toolkit(toolkit::Source),
}

/// What one metadata file says. Plain data, small: owned files are kept as hashes, see [`Files`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    Python {
        name: String,
        version: Option<String>,
    },
    PythonFiles {
        files: Files,
    },
    /// A package manager's database, or a record of it.
    Packages {
        packages: Vec<Listed>,
        /// Of which nothing could be read.
        #[serde(default)]
        unread: u64,
    },
    /// dpkg keeps the lists apart from its database.
    DpkgFiles {
        package: String,
        files: Files,
    },
    /// What a Python project says about its own build.
    Built {
        /// The folder that it installs in its site.
        import: String,
        version: Option<String>,
        said: Vec<Said>,
    },
    Toolkit {
        #[serde(default)]
        kind: ToolkitKind,
        version: String,
    },
    Cudnn {
        version: String,
    },
}

/// An installed package and its files, where they stand beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub package: Package,
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub files: Files,
}

/// A claim whose component is known only when all facts are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Said {
    pub kind: ClaimKind,
    pub value: String,
}

/// The files of a package: sorted FNV-1a hashes (64 bits) of their normalised paths from the image's root.
/// torch alone lists 10,000 files and a distribution 100,000, which as text would be most of an image's facts. The
/// hash is fixed by its definition, so that facts can be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Files {
    pub hashes: Vec<u64>,
    /// Lines that were too long, or beyond the limit of a million files.
    #[serde(default)]
    pub skipped: u64,
}

impl Files {
    const LIMIT: usize = 1_000_000;

    fn is_empty(&self) -> bool {
        self.hashes.is_empty() && self.skipped == 0
    }

    fn add(&mut self, path: &ImagePath) {
        if path.is_root() {
        } else if self.hashes.len() < Self::LIMIT {
            self.hashes.push(hash(path.as_bytes()));
        } else {
            self.skipped += 1;
        }
    }

    fn finish(mut self, overlong: u64) -> Self {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.hashes.shrink_to_fit();
        self.skipped += overlong;
        self
    }
}

/// Decides by path alone whether a regular file is metadata.
pub fn wants(path: &ImagePath) -> Option<Probe> {
    let bytes = path.as_bytes();
    let (parent, name) = match bytes.iter().rposition(|&b| b == b'/') {
        Some(cut) => (&bytes[..cut], &bytes[cut + 1..]),
        None => (&b""[..], bytes),
    };
    match name {
        b"METADATA" if parent.ends_with(b".dist-info") => Some(Probe::PythonMetadata),
        b"RECORD" if parent.ends_with(b".dist-info") => Some(Probe::PythonRecord),
        b"PKG-INFO" if parent.ends_with(b".egg-info") || parent.ends_with(b".egg/EGG-INFO") => {
            Some(Probe::PythonMetadata)
        }
        b"status" if parent == b"var/lib/dpkg" => Some(Probe::DpkgStatus),
        b"installed" if matches!(parent, b"lib/apk/db" | b"usr/lib/apk/db") => Some(Probe::ApkInstalled),
        _ if name.ends_with(b".egg-info") => Some(Probe::PythonMetadata),
        _ if parent == b"var/lib/dpkg/info" && name.ends_with(b".list") => Some(Probe::DpkgList),
        _ if parent == b"var/lib/dpkg/status.d" && name.ends_with(b".md5sums") => Some(Probe::DpkgSums),
        _ if parent == b"var/lib/dpkg/status.d" => Some(Probe::DpkgStatus),
        _ if name.ends_with(b".json") && parent.rsplit(|&b| b == b'/').next() == Some(b"conda-meta") => {
            Some(Probe::CondaRecord)
        }
        _ => rpm::wants(parent, name)
            .map(Probe::Rpm)
            .or_else(|| built::wants(bytes).map(Probe::Built))
            .or_else(|| toolkit::wants(bytes).map(Probe::Toolkit)),
    }
}

/// Reads one metadata file; `None` where it is another's file of that name. The error says why it tells nothing;
/// the scan goes on without it.
pub fn read(probe: &Probe, path: &ImagePath, body: &mut dyn Body) -> Result<Option<Fact>, String> {
    match probe {
        Probe::PythonMetadata => pip::metadata(body),
        Probe::PythonRecord => pip::record(&path.parent().parent(), body),
        Probe::DpkgStatus => dpkg::status(body),
        Probe::DpkgList => dpkg::list(path, body),
        Probe::DpkgSums => dpkg::sums(path, body),
        Probe::Rpm(source) => return rpm::read(*source, body),
        Probe::ApkInstalled => apk::installed(body),
        Probe::CondaRecord => conda::record(&path.parent().parent(), body),
        Probe::Built(project) => built::read(*project, body),
        Probe::Toolkit(source) => return toolkit::read(*source, path, body),
    }
    .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Plain, Stream};

    fn probe(path: &str) -> Option<Probe> {
        wants(&ImagePath::new(path))
    }

    #[test]
    fn metadata_is_found_by_path() {
        let site = "opt/v/lib/python3.11/site-packages";
        assert_eq!(probe(&format!("{site}/torch-2.7.0.dist-info/METADATA")), Some(Probe::PythonMetadata));
        assert_eq!(probe("torch-2.7.0.dist-info/RECORD"), Some(Probe::PythonRecord));
        assert_eq!(probe(&format!("{site}/torch/version.py")), Some(Probe::Built(built::Project::Torch)));
        assert_eq!(probe(&format!("{site}/pytorch/version.py")), None);
        assert_eq!(probe("src/vllm/vllm.egg-info/PKG-INFO"), Some(Probe::PythonMetadata));
        assert_eq!(probe("a/foo-1-py3.9.egg/EGG-INFO/PKG-INFO"), Some(Probe::PythonMetadata));
        assert_eq!(probe("usr/lib/python3/dist-packages/six-1.16.0.egg-info"), Some(Probe::PythonMetadata));
        assert_eq!(probe("var/lib/dpkg/status"), Some(Probe::DpkgStatus));
        assert_eq!(probe("var/lib/dpkg/status.d/libc6"), Some(Probe::DpkgStatus));
        assert_eq!(probe("var/lib/dpkg/status.d/libc6.md5sums"), Some(Probe::DpkgSums));
        assert_eq!(probe("var/lib/dpkg/info/libc6:amd64.list"), Some(Probe::DpkgList));
        assert_eq!(probe("var/lib/dpkg/info/libc6:amd64.postinst"), None);
        assert_eq!(probe("opt/conda/conda-meta/zlib-1.3.1-h4bc722e_0.json"), Some(Probe::CondaRecord));
        assert_eq!(probe("opt/conda/conda-meta/history"), None);
        assert_eq!(probe("var/lib/rpm/rpmdb.sqlite"), Some(Probe::Rpm(rpm::Source::Sqlite)));
        assert_eq!(probe("usr/lib/sysimage/rpm/Packages.db"), Some(Probe::Rpm(rpm::Source::Ndb)));
        assert_eq!(probe("var/lib/rpm/Packages"), Some(Probe::Rpm(rpm::Source::Berkeley)));
        assert_eq!(probe("srv/repo/Packages"), None);
        assert_eq!(probe("lib/apk/db/installed"), Some(Probe::ApkInstalled));
        assert_eq!(probe("usr/lib/apk/db/installed"), Some(Probe::ApkInstalled));
        assert_eq!(probe("METADATA"), None);
        assert_eq!(probe(""), None);
    }

    #[test]
    fn no_bytes_panic() {
        let seeds: [&[u8]; 12] = [
            b"Metadata-Version: 2.4\nName: a-b\nVersion: 1.0\n\nbody\n",
            b"\"a,\"\"b\",sha256=x,1\r\n../../../bin/x,,\n/abs,,\n\n",
            b"Package: libc6\nStatus: install ok installed\nVersion: 2.36\n\nPackage: x\n",
            b"/.\n/usr\n/usr/lib/libx.so\n",
            b"__version__ = '2.7.0+cu126'\ncuda: Optional[str] = '12.6'\n",
            b"C:Q1x=\nP:musl\nV:1.2-r3\nD:so:x !y nvidia-driver>=1\nF:lib\nR:ld.so\na:0:0:755\n\nP:b\n",
            b"{\"name\": \"pytorch\", \"version\": \"2.1\", \"build\": \"cuda118_0\", \"files\": [\"lib/x.so\", \"a\"]}",
            b"{\"cuda\": {\"version\": \"12.8.1\"}, \"version\": {\"cuda\": 1208, \"hip\": null}}",
            b"CUDA Version 11.0.228\n",
            b"#define CUDA_VERSION 12090\n#define CUDNN_MAJOR 9\n  #define CUDNN_MINOR 28\n",
            b"build_info = dict([('cuda_version', '12.5'), (\"is_cuda_build\", True), ('is_rocm_build', False)])\n",
            b"RpmP\0\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0Slot\x01\0\0\0\x01\0\0\0\x02\0\0\0",
        ];
        let probes = [
            Probe::PythonMetadata,
            Probe::PythonRecord,
            Probe::DpkgStatus,
            Probe::DpkgList,
            Probe::DpkgSums,
            Probe::ApkInstalled,
            Probe::CondaRecord,
            Probe::Rpm(rpm::Source::Sqlite),
            Probe::Rpm(rpm::Source::SqliteLog),
            Probe::Rpm(rpm::Source::Ndb),
            Probe::Rpm(rpm::Source::Berkeley),
            Probe::Built(built::Project::Torch),
            Probe::Built(built::Project::Tensorflow),
            Probe::Built(built::Project::Onnxruntime),
            Probe::Built(built::Project::Paddle),
            Probe::Built(built::Project::Xformers),
            Probe::Toolkit(toolkit::Source::Json),
            Probe::Toolkit(toolkit::Source::Text),
            Probe::Toolkit(toolkit::Source::Header),
            Probe::Toolkit(toolkit::Source::Cudnn),
            Probe::Toolkit(toolkit::Source::RocmInfo),
            Probe::Toolkit(toolkit::Source::RocmHeader),
            Probe::Toolkit(toolkit::Source::Oneapi),
        ];
        let path = ImagePath::new("var/lib/dpkg/info/x.list");
        for seed in seeds {
            for at in 0..seed.len() {
                for flip in [0u8, 0x01, 0x80, 0xff] {
                    let mut bytes = seed.to_vec();
                    bytes[at] ^= flip;
                    if flip == 0 {
                        bytes.truncate(at);
                    }
                    for probe in &probes {
                        let _ = read(probe, &path, &mut Stream::new(Plain(&bytes[..]), None));
                    }
                }
            }
        }
    }
}
