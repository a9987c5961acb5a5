//! What CUDA and cuDNN other projects' wheels want, and which versions go together. Table: `wheel_cuda.toml`.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};
use serde::Deserialize;

use super::wheels::Wheels;
use super::{CatalogError, Tables, Trust, names};
use crate::model::CudaVersion;

pub(super) const FILE: &str = "wheel_cuda.toml";

/// What a package's wheel wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageCuda {
    pub cuda_major: Option<u16>,
    /// With its minor, where a row says.
    pub cuda: Option<CudaVersion>,
    /// `None`: none, or not known.
    pub cudnn_major: Option<u32>,
    /// The wheel brings these libraries or asks pip for them; else they must be in the image.
    pub brings: bool,
    /// It opens the toolkit's libraries where the image has them: CuPy. False of those that link them in.
    pub opens: bool,
    pub because: String,
    pub sure: bool,
}

/// Another package that a package asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wants {
    /// Normalised name.
    pub package: String,
    /// As pip writes it: "<5,>=4.0".
    pub specifier: String,
    pub because: String,
    pub sure: bool,
}

/// Releases of a package on PyPI that are built for one CUDA and cuDNN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Releases {
    /// PEP 440: ">=1.19,<1.27".
    pub versions: String,
    pub cuda_major: u16,
    pub cudnn_major: Option<u32>,
    /// They bring these libraries or ask pip for them.
    pub brings: bool,
    pub because: String,
    pub sure: bool,
}

/// A version and the row that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub version: String,
    pub because: String,
    pub sure: bool,
}

#[derive(Debug, Deserialize)]
struct RawCuda {
    package: String,
    /// PEP 440: ">=1.19,<1.23"; absent: all.
    versions: Option<String>,
    /// Of an index other than PyPI: a part of its URL.
    index: Option<String>,
    cuda: Option<String>,
    cudnn: Option<u32>,
    #[serde(default)]
    brings: bool,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Debug, Deserialize)]
struct RawSuffix {
    /// A glob over normalised names: "cupy-cuda*x", "nvidia-*-cu*".
    package: String,
    /// What stands before the number: "cuda", "cu".
    before: String,
    /// The library is cuDNN: its version's major is cuDNN's.
    #[serde(default)]
    cudnn: bool,
    #[serde(default)]
    brings: bool,
    #[serde(default)]
    opens: bool,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Debug, Deserialize)]
struct RawPin {
    package: String,
    versions: Option<String>,
    wants: String,
    specifier: String,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Debug, Deserialize)]
struct RawRelease {
    version: String,
    #[serde(flatten)]
    trust: Trust,
}

/// Rows about wheels other than PyTorch's.
#[derive(Debug)]
pub(super) struct WheelCuda {
    cuda: Vec<(RawCuda, Option<VersionSpecifiers>)>,
    suffixes: Vec<(RawSuffix, globset::GlobMatcher)>,
    pins: Vec<(RawPin, Option<VersionSpecifiers>)>,
    torch: Vec<(RawRelease, Version)>,
}

fn bad(row: &str, what: impl ToString) -> CatalogError {
    CatalogError::Row { file: FILE.to_owned(), row: format!("`{row}`"), what: what.to_string() }
}

fn range(row: &str, text: Option<&String>) -> Result<Option<VersionSpecifiers>, CatalogError> {
    text.map(|t| VersionSpecifiers::from_str(t).map_err(|e| bad(row, e))).transpose()
}

impl WheelCuda {
    pub(super) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let cuda = |raw: RawCuda| Ok((range(&raw.package, raw.versions.as_ref())?, raw)).map(|(r, raw)| (raw, r));
        let pin = |raw: RawPin| {
            range(&raw.package, Some(&raw.specifier))?;
            Ok((range(&raw.package, raw.versions.as_ref())?, raw)).map(|(r, raw)| (raw, r))
        };
        let suffix = |raw: RawSuffix| {
            let glob = globset::Glob::new(&raw.package).map_err(|e| bad(&raw.package, e))?;
            Ok((raw, glob.compile_matcher()))
        };
        let release = |raw: RawRelease| {
            let version = Version::from_str(&raw.version).map_err(|e| bad(&raw.version, e))?;
            Ok((raw, version))
        };
        Ok(Self {
            cuda: tables.rows(FILE, "package")?.into_iter().map(cuda).collect::<Result<_, CatalogError>>()?,
            suffixes: tables.rows(FILE, "suffix")?.into_iter().map(suffix).collect::<Result<_, CatalogError>>()?,
            pins: tables.rows(FILE, "pin")?.into_iter().map(pin).collect::<Result<_, CatalogError>>()?,
            torch: tables.rows(FILE, "torch")?.into_iter().map(release).collect::<Result<_, CatalogError>>()?,
        })
    }
}

/// Whether a version is in a row's range; no range holds for all, also where the version is not known.
fn holds(range: Option<&VersionSpecifiers>, version: Option<&Version>) -> bool {
    match (range, version) {
        (None, _) => true,
        (Some(range), Some(version)) => range.contains(version),
        (Some(_), None) => false,
    }
}

/// A version without the local part that an index adds: 1.18.0+cu12 is 1.18.0 to a range.
fn public(version: &str) -> Option<Version> {
    Version::from_str(version.split('+').next()?.trim()).ok()
}

impl Wheels {
    /// What CUDA and cuDNN the wheel wants that PyPI serves for a version; by the name alone where that says it
    /// (`cupy-cuda12x`). `version` may be empty for such names.
    pub fn package_cuda(&self, name: &str, version: &str) -> Option<PackageCuda> {
        self.package_cuda_from(name, version, None)
    }

    /// The same of a wheel from another index, by its URL.
    pub fn package_cuda_from(&self, name: &str, version: &str, index: Option<&str>) -> Option<PackageCuda> {
        let name = names::dist(name);
        let public = public(version);
        let row = self.other.cuda.iter().find(|(row, range)| {
            let there = match (&row.index, index) {
                (None, None) => true,
                (Some(part), Some(url)) => url.contains(part.as_str()),
                _ => false,
            };
            there && row.package == name && holds(range.as_ref(), public.as_ref())
        });
        if let Some((row, _)) = row {
            let major = row.cuda.as_deref().and_then(|c| c.split('.').next()?.parse().ok());
            let cuda = row.cuda.as_deref().filter(|c| c.contains('.')).and_then(|c| c.parse().ok());
            return Some(PackageCuda {
                cuda_major: major,
                cuda,
                cudnn_major: row.cudnn,
                brings: row.brings,
                opens: !row.brings,
                because: row
                    .trust
                    .because(FILE, &format!("{} {}", row.package, row.versions.as_deref().unwrap_or(""))),
                sure: row.trust.is_sure(),
            });
        }
        let (row, _) = self.other.suffixes.iter().find(|(_, glob)| glob.is_match(&name))?;
        let at = name.rfind(&row.before)? + row.before.len();
        let digits: String = name.get(at..)?.chars().take_while(char::is_ascii_digit).collect();
        let (major, minor) = digits.split_at_checked(2).unwrap_or((&digits, ""));
        let major: u16 = major.parse().ok()?;
        let minor = minor.get(..1).and_then(|m| m.parse().ok());
        Some(PackageCuda {
            cuda_major: Some(major),
            cuda: minor.map(|minor| CudaVersion::new(major, minor)),
            cudnn_major: version.split('.').next().and_then(|m| m.parse().ok()).filter(|_| row.cudnn),
            brings: row.brings,
            opens: row.opens,
            because: row.trust.because(FILE, &row.package),
            sure: row.trust.is_sure(),
        })
    }

    /// The releases of a package by the CUDA and cuDNN they are built for, newest first; without those that `version`
    /// is one of.
    pub fn other_releases(&self, name: &str, version: &str) -> Vec<Releases> {
        let name = names::dist(name);
        let public = public(version);
        let rows = self.other.cuda.iter().filter(|(row, range)| {
            row.package == name && row.index.is_none() && range.is_some() && !holds(range.as_ref(), public.as_ref())
        });
        rows.filter_map(|(row, _)| {
            let versions = row.versions.clone()?;
            Some(Releases {
                cuda_major: row.cuda.as_deref()?.split('.').next()?.parse().ok()?,
                cudnn_major: row.cudnn,
                brings: row.brings,
                because: row.trust.because(FILE, &format!("{} {versions}", row.package)),
                sure: row.trust.is_sure(),
                versions,
            })
        })
        .collect()
    }

    /// What a version of a package asks of another: the torch that a torchvision is built for, the ctranslate2 that
    /// a faster-whisper takes.
    pub fn wants(&self, package: &str, version: &str, of: &str) -> Option<Wants> {
        let (package, of) = (names::dist(package), names::dist(of));
        let version = public(version);
        let fits = |(row, range): &&(RawPin, Option<VersionSpecifiers>)| {
            row.package == package && row.wants == of && holds(range.as_ref(), version.as_ref())
        };
        let (row, _) = self.other.pins.iter().find(fits)?;
        Some(Wants {
            package: of,
            specifier: row.specifier.clone(),
            because: row.trust.because(FILE, &format!("{} {}", row.package, row.versions.as_deref().unwrap_or(""))),
            sure: row.trust.is_sure(),
        })
    }

    /// Whether any version of a package asks for another, as far as rows say.
    pub fn ever_wants(&self, package: &str, of: &str) -> bool {
        let (package, of) = (names::dist(package), names::dist(of));
        self.other.pins.iter().any(|(row, _)| row.package == package && row.wants == of)
    }

    /// The torch version that a torchvision or torchaudio version is built for.
    pub fn torch_of(&self, package: &str, version: &str) -> Option<Known> {
        let wants = self.wants(package, version, "torch")?;
        let version = wants.specifier.strip_prefix("==")?.to_owned();
        Some(Known { version, because: wants.because, sure: wants.sure })
    }

    /// The newest release of torch that a specifier admits ("" admits all), as of the tables.
    pub fn newest_torch(&self, specifier: &str) -> Option<Known> {
        self.newest_torch_where(specifier, |_| true)
    }

    /// The newest release of torch that a specifier admits and an index has: `cu121` has none after 2.5.1.
    pub fn newest_torch_on(&self, index: &str, specifier: &str) -> Option<Known> {
        self.newest_torch_where(specifier, |version| self.torch_indexes(version).iter().any(|(i, _)| *i == index))
    }

    fn newest_torch_where(&self, specifier: &str, also: impl Fn(&str) -> bool) -> Option<Known> {
        let range = VersionSpecifiers::from_str(specifier.trim()).ok()?;
        let fits = self.other.torch.iter().filter(|(row, version)| range.contains(version) && also(&row.version));
        let (row, _) = fits.max_by(|(_, a), (_, b)| a.cmp(b))?;
        Some(Known {
            version: row.version.clone(),
            because: row.trust.because(FILE, &format!("torch {}", row.version)),
            sure: row.trust.is_sure(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;

    #[test]
    fn what_wheels_want() {
        let wheels = Catalog::embedded().wheels();
        let of = |name: &str, version: &str| {
            let found = wheels.package_cuda(name, version)?;
            let cuda = found.cuda.map(|c| c.to_string()).or(found.cuda_major.map(|m| m.to_string()));
            Some((cuda.unwrap_or_default(), found.cudnn_major))
        };
        for (name, version, want) in [
            ("onnxruntime-gpu", "1.17.1", Some(("11.8", Some(8)))),
            ("onnxruntime_gpu", "1.18.0", Some(("11.8", Some(8)))),
            ("onnxruntime-gpu", "1.19.0", Some(("12", Some(9)))),
            ("onnxruntime-gpu", "1.26.0", Some(("12", Some(9)))),
            ("onnxruntime-gpu", "1.27.0", Some(("13", Some(9)))),
            ("onnxruntime-gpu", "", None),
            ("onnxruntime", "1.19.0", None),
            ("ctranslate2", "3.24.0", Some(("11", Some(8)))),
            ("ctranslate2", "4.4.0", Some(("12", Some(8)))),
            ("ctranslate2", "4.5.0", Some(("12", Some(9)))),
            ("tensorflow", "2.11.1", Some(("11.2", Some(8)))),
            ("tensorflow", "2.18.0", Some(("12.5", Some(9)))),
            ("cupy-cuda12x", "", Some(("12", None))),
            ("cupy-cuda112", "10.0", Some(("11.2", None))),
            ("nvidia-cudnn-cu12", "9.1.0.70", Some(("12", Some(9)))),
            ("nvidia-cudnn-cu11", "8.5.0.96", Some(("11", Some(8)))),
            ("nvidia_cublas_cu12", "12.1.3.1", Some(("12", None))),
            ("spconv-cu118", "2.3.6", Some(("11.8", None))),
            ("faiss-gpu-cu12", "", Some(("12", None))),
            ("nvidia-ml-py", "12.0", None),
            ("requests", "2.0", None),
            ("onnxruntime-gpu", "not a version", None),
        ] {
            let want = want.map(|(cuda, cudnn)| (cuda.to_owned(), cudnn));
            assert_eq!(of(name, version), want, "{name} {version}");
        }
        let azure =
            "https://aiinfra.pkgs.visualstudio.com/PublicPackages/_packaging/onnxruntime-cuda-12/pypi/simple/";
        let twelve = wheels.package_cuda_from("onnxruntime-gpu", "1.17.1", Some(azure)).unwrap();
        assert_eq!((twelve.cuda_major, twelve.cudnn_major), (Some(12), Some(8)));
        assert!(wheels.package_cuda("ctranslate2", "4.5.0").unwrap().sure);
    }

    #[test]
    fn versions_that_go_together() {
        let wheels = Catalog::embedded().wheels();
        let torch = |package: &str, version: &str| wheels.torch_of(package, version).map(|t| t.version);
        assert_eq!(torch("torchvision", "0.20.1+cu124").as_deref(), Some("2.5.1"));
        assert_eq!(torch("torchvision", "0.15.2").as_deref(), Some("2.0.1"));
        assert_eq!(torch("torchaudio", "2.0.2").as_deref(), Some("2.0.1"));
        assert_eq!(torch("torchvision", "0.29.2"), None, "takes any torch from 2.14 on");
        assert_eq!(torch("torchvision", "9.9"), None);
        let wants = |p: &str, v: &str, of: &str| wheels.wants(p, v, of).map(|w| w.specifier);
        assert_eq!(wants("faster_whisper", "1.0.3", "ctranslate2").as_deref(), Some(">=4.0,<5"));
        assert_eq!(wants("whisperx", "3.4.2", "ctranslate2").as_deref(), Some("<4.5.0"));
        assert_eq!(wants("whisperx", "3.8.6", "torch").as_deref(), Some("~=2.8.0"));
        assert_eq!(wants("whisperx", "", "torch"), None);
    }

    #[test]
    fn newest_torch() {
        let wheels = Catalog::embedded().wheels();
        let newest = |s: &str| wheels.newest_torch(s).map(|k| k.version);
        assert_eq!(newest("").as_deref(), Some("2.15.0"));
        assert_eq!(newest("<2.6,>=2.1").as_deref(), Some("2.5.1"));
        assert_eq!(newest("==2.1.*").as_deref(), Some("2.1.2"));
        assert_eq!(newest("~=2.4.0").as_deref(), Some("2.4.1"));
        assert_eq!(newest(">99"), None);
        assert_eq!(newest("nonsense"), None);
        let on = |index: &str, s: &str| wheels.newest_torch_on(index, s).map(|k| k.version);
        assert_eq!(on("cu121", "").as_deref(), Some("2.5.1"));
        assert_eq!(on("cu124", "<2.6").as_deref(), Some("2.5.1"));
        assert_eq!(on("cu122", ""), None);
    }
}
