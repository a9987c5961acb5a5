//! Base images: what a reference in `FROM` says of CUDA, ROCm, cuDNN and the distribution. Table: `base_images.toml`.
//!
//! A `[[family]]` row says whose images they are and what the parts of their tags mean; an `[[image]]` row says what
//! one release holds. Nothing is fetched: what neither the tag nor a row says is not known.

use serde::Deserialize;

use super::reference::{Place, Reference};
use super::tag_words::{TagWords, words};
use super::{CatalogError, Tables, Trust, names};
use crate::model::CudaVersion;

pub(super) const FILE: &str = "base_images.toml";

/// Whose images they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseFamily {
    /// `nvidia/cuda` and what is built as it.
    NvidiaCuda,
    /// Frameworks of nvcr.io, tagged by month.
    NvidiaNgc,
    /// `pytorch/pytorch`.
    Pytorch,
    /// `tensorflow/tensorflow`.
    Tensorflow,
    Rocm,
    /// oneAPI and Intel's extensions.
    Intel,
    /// A distribution or a language's image, without GPU software.
    Distro,
    /// Jetson's L4T images.
    Jetson,
    Other,
}

/// Which cuDNN a tag promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudnnFlavour {
    /// Not in the tag from CUDA 12.4 on, and then from the row.
    pub major: Option<u32>,
}

/// How much of the toolkit an image has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// The runtime library alone.
    Base,
    /// The toolkit's shared libraries.
    Runtime,
    /// Compiler and headers.
    Devel,
}

/// What is known of a base image from its reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub family: BaseFamily,
    /// "nvidia/cuda": without host and tag, a mirror's as the original's.
    pub repository: String,
    /// Not at its home, but under a path of that name elsewhere.
    pub mirror: bool,
    pub tag: Option<String>,
    /// Pinned by a digest.
    pub digest: bool,
    pub cuda: Option<CudaVersion>,
    /// With its patch level, as tag or row write it: "12.4.1"; "12" where only the major is said, and `cuda` is
    /// `None`.
    pub cuda_text: Option<String>,
    pub rocm: Option<String>,
    /// `None`: no cuDNN that tag or row speak of.
    pub cudnn: Option<CudnnFlavour>,
    pub flavour: Option<Flavour>,
    /// As tags of CUDA write it: "ubuntu22.04", "ubi9", "debian12".
    pub distro: Option<String>,
    /// PyTorch's version.
    pub torch: Option<String>,
    /// It sets LD_LIBRARY_PATH, which a plain `ENV LD_LIBRARY_PATH=…` would lose.
    pub sets_library_path: bool,
    /// Variables the image sets, as far as they are known.
    pub env: Vec<(String, String)>,
    /// nvcc is in it; `None`: not known.
    pub compiler: Option<bool>,
    /// Rows that say so.
    pub because: String,
    /// By a row that is not merely remembered.
    pub sure: bool,
}

impl Base {
    /// The value that the image gives a variable.
    pub fn env(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// What the number at the head of a tag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Leads {
    Cuda,
    Torch,
    /// The distribution's own version: `ubuntu:22.04`.
    Distro,
    Rocm,
    /// A version that says nothing here; rows of `[[image]]` may know it.
    Own,
}

#[derive(Debug, Deserialize)]
struct RawFamily {
    name: String,
    family: BaseFamily,
    /// "host/path", `*` within a part of the path.
    repositories: Vec<String>,
    leads: Leads,
    /// nvcc is there whatever the tag says.
    compiler: Option<bool>,
    /// The distribution where the tag names none.
    distro: Option<String>,
    /// cuDNN is there though the tag does not say.
    #[serde(default)]
    cudnn: bool,
    /// Words of tags that mean a GPU image; without one the image has no CUDA. Empty: all are.
    #[serde(default)]
    gpu_words: Vec<String>,
    /// Releases by month are one stack, whatever the framework: rows of another image of nvcr.io hold.
    #[serde(default)]
    shares: bool,
    /// It sets LD_LIBRARY_PATH, to what is not known.
    #[serde(default)]
    sets_library_path: bool,
    /// `NAME=value`; `{cuda}` stands for the version with its patch level.
    #[serde(default)]
    env: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

#[derive(Debug)]
struct Family {
    raw: RawFamily,
    globs: Vec<(String, Option<globset::GlobMatcher>)>,
}

#[derive(Debug, Deserialize)]
struct ImageRow {
    image: String,
    tag: String,
    /// Versions "2.5-2.11" that the row holds for, compared as numbers; else `tag` is the version itself.
    versions: Option<String>,
    cuda: Option<String>,
    cudnn: Option<String>,
    rocm: Option<String>,
    torch: Option<String>,
    #[serde(default)]
    env: Vec<String>,
    /// Of devel images besides.
    #[serde(default)]
    devel_env: Vec<String>,
    #[serde(flatten)]
    trust: Trust,
}

/// All base images.
#[derive(Debug)]
pub struct Bases {
    families: Vec<Family>,
    images: Vec<ImageRow>,
}

impl Bases {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let family = |raw: RawFamily| {
            let glob = |known: &String| {
                let bad = |e: globset::Error| CatalogError::Row {
                    file: FILE.to_owned(),
                    row: format!("[[family]] `{}`", raw.name),
                    what: e.to_string(),
                };
                if !known.contains('*') {
                    return Ok((known.clone(), None));
                }
                let glob = globset::GlobBuilder::new(known).literal_separator(true).build().map_err(bad)?;
                Ok((known.clone(), Some(glob.compile_matcher())))
            };
            let globs = raw.repositories.iter().map(glob).collect::<Result<_, CatalogError>>()?;
            Ok(Family { raw, globs })
        };
        let families = tables.rows::<RawFamily>(FILE, "family")?;
        Ok(Self {
            families: families.into_iter().map(family).collect::<Result<_, CatalogError>>()?,
            images: tables.rows(FILE, "image")?,
        })
    }

    /// What is known of the image that a `FROM` names; `None` for what no row knows, `scratch`, and references with
    /// variables left in them.
    pub fn find(&self, reference: &str) -> Option<Base> {
        let reference = Reference::parse(reference)?;
        let full = format!("{}/{}", reference.host, reference.repository);
        let found = self.families.iter().find_map(|f| Some((f, f.place(&reference, &full)?)));
        match found {
            Some((family, (place, repository))) => Some(self.of(family, place, repository, reference)),
            None => by_words_alone(reference),
        }
    }

    fn of(&self, family: &Family, place: Place, repository: String, reference: Reference) -> Base {
        let raw = &family.raw;
        let read = words(reference.tag.as_deref().unwrap_or_default());
        let path = words_of_path(&repository);
        let mut base = Base {
            family: raw.family,
            repository,
            mirror: place == Place::Mirror,
            tag: reference.tag,
            digest: reference.digest,
            cuda: None,
            cuda_text: read.cuda.clone().or(path.cuda),
            rocm: read.rocm.clone(),
            cudnn: read.cudnn.map(|major| CudnnFlavour { major }),
            // `base` is a word of many tags; NVIDIA means the runtime library alone by it.
            flavour: read.flavour.filter(|f| *f != Flavour::Base || raw.leads == Leads::Cuda || raw.shares),
            distro: read.distro.clone().or_else(|| raw.distro.clone()).or(path.distro),
            torch: read.torch.clone(),
            sets_library_path: false,
            env: Vec::new(),
            compiler: raw.compiler,
            because: raw.trust.because(FILE, &raw.name),
            sure: raw.trust.is_sure(),
        };
        match (raw.leads, read.number.clone()) {
            (Leads::Cuda, Some(n)) => base.cuda_text = Some(n),
            (Leads::Torch, Some(n)) => base.torch = Some(n),
            (Leads::Rocm, Some(n)) => base.rocm = base.rocm.or(Some(n)),
            (Leads::Distro, number) => base.distro = distro_of(raw, &read, number),
            (Leads::Own, _) | (_, None) => {}
        }
        if raw.gpu_words.is_empty() || raw.gpu_words.iter().any(|w| read.all.iter().any(|t| t == w)) {
            self.add_release(raw, &read, &mut base);
            if raw.cudnn && base.cudnn.is_none() {
                base.cudnn = Some(CudnnFlavour { major: None });
            }
        } else {
            base.compiler = Some(false);
        }
        base.cuda = minor_of(base.cuda_text.as_deref());
        if base.compiler.is_none() && (base.cuda.is_some() || raw.family == BaseFamily::NvidiaCuda) {
            base.compiler = base.flavour.map(|f| f == Flavour::Devel);
        }
        let family_env = raw.env.iter().filter_map(|pair| variable(pair, base.cuda_text.as_deref()));
        base.env.extend(family_env.collect::<Vec<_>>());
        base.sets_library_path = raw.sets_library_path || base.env("LD_LIBRARY_PATH").is_some();
        base
    }

    /// What the row of the release adds to what the tag says itself, which is right about what it says.
    fn add_release(&self, raw: &RawFamily, read: &TagWords, base: &mut Base) {
        let Some(row) = self.release(raw, &base.repository, read) else { return };
        let said = (base.cuda_text.is_some(), base.rocm.is_some(), base.torch.is_some());
        let version = |c: &&String| c.parse::<CudaVersion>().is_ok();
        base.cuda_text = base.cuda_text.take().or_else(|| row.cuda.as_ref().filter(version).cloned());
        base.rocm = base.rocm.take().or_else(|| row.rocm.clone());
        base.torch = base.torch.take().or_else(|| row.torch.clone());
        let major = row.cudnn.as_deref().and_then(|c| c.split('.').next()?.parse().ok());
        // Of CUDA's own images only those have cuDNN whose tag says so.
        match base.cudnn {
            None if raw.leads == Leads::Cuda => {}
            None => base.cudnn = major.map(|_| CudnnFlavour { major }),
            Some(told) => base.cudnn = Some(CudnnFlavour { major: told.major.or(major) }),
        }
        let devel = row.devel_env.iter().filter(|_| base.flavour == Some(Flavour::Devel));
        base.env = row.env.iter().chain(devel).filter_map(|pair| variable(pair, None)).collect();
        if said != (base.cuda_text.is_some(), base.rocm.is_some(), base.torch.is_some()) {
            base.because = row.trust.because(FILE, &format!("{} {}", row.image, row.tag));
            base.sure = row.trust.is_sure();
        }
    }

    /// The row of the release a tag names: of this repository, else one of the family that shares its stack.
    fn release(&self, raw: &RawFamily, repository: &str, read: &TagWords) -> Option<&ImageRow> {
        let number = read.number.as_deref()?;
        let fits = |row: &&ImageRow| match &row.versions {
            Some(range) => in_range(number, range),
            None => row.tag == number,
        };
        let ends = |image: &str, repository: &str| image.split_once('/').is_some_and(|(_, p)| p == repository);
        let own = |row: &&ImageRow| row.image == repository || ends(&row.image, repository);
        let shared = |row: &&ImageRow| raw.shares && row.image.starts_with("nvcr.io/");
        let of = |which: &dyn Fn(&&ImageRow) -> bool| self.images.iter().filter(which).find(fits);
        of(&own).or_else(|| of(&shared))
    }

    /// For the laws: names of families and the repositories each claims.
    pub(super) fn families(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.families.iter().map(|f| (f.raw.name.as_str(), f.raw.repositories.as_slice()))
    }
}

impl Family {
    /// Whether the reference is one of the family's, and the repository's name without a mirror's prefix.
    fn place(&self, reference: &Reference, full: &str) -> Option<(Place, String)> {
        self.globs.iter().find_map(|(known, glob)| match glob {
            Some(glob) => glob.is_match(full).then(|| (Place::Home, reference.repository.clone())),
            None => {
                let place = reference.is(known)?;
                Some((place, known.split_once('/')?.1.to_owned()))
            }
        })
    }
}

/// What a repository's own name says: `rocm/dev-ubuntu-22.04`, `pytorch/manylinux-cuda118`, `ubi9/ubi-minimal`.
fn words_of_path(repository: &str) -> TagWords {
    let mut said = TagWords::default();
    for part in repository.split('/').rev() {
        let read = words(part);
        said.distro = said.distro.or(read.distro);
        said.cuda = said.cuda.or(read.cuda);
    }
    said
}

fn distro_of(raw: &RawFamily, read: &TagWords, number: Option<String>) -> Option<String> {
    match (&raw.distro, number) {
        // `python:3.12-bookworm`: the number is Python's.
        (_, _) if read.distro.is_some() => read.distro.clone(),
        (Some(name), Some(number)) if !name.ends_with(|c: char| c.is_ascii_digit()) => {
            Some(format!("{name}{number}"))
        }
        (name, _) => name.clone(),
    }
}

/// A CUDA version that says its minor: `cu12` in a tag is no 12.0.
fn minor_of(text: Option<&str>) -> Option<CudaVersion> {
    text.filter(|t| t.contains('.'))?.parse().ok()
}

fn variable(pair: &str, cuda: Option<&str>) -> Option<(String, String)> {
    let (name, value) = pair.split_once('=')?;
    let value = if value.contains("{cuda}") { value.replace("{cuda}", cuda?) } else { value.to_owned() };
    Some((name.to_owned(), value))
}

/// "2.5-2.11" holds 2.9.1, not 2.12: both ends count with all their patches.
fn in_range(number: &str, range: &str) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (version, first, last) = (names::numbers(number), names::numbers(first), names::numbers(last));
    let cut = |to: &[u64]| version.iter().copied().take(to.len()).collect::<Vec<_>>();
    !version.is_empty() && cut(&first) >= first && cut(&last) <= last
}

/// An image that no row knows, whose tag speaks of CUDA or ROCm all the same.
fn by_words_alone(reference: Reference) -> Option<Base> {
    let tag = reference.tag.as_deref()?;
    let read = words(tag);
    if read.cuda.is_none() && read.rocm.is_none() {
        return None;
    }
    Some(Base {
        family: BaseFamily::Other,
        because: format!("the tag `{tag}` says so"),
        repository: reference.repository,
        mirror: false,
        digest: reference.digest,
        cuda: minor_of(read.cuda.as_deref()),
        cuda_text: read.cuda,
        rocm: read.rocm,
        cudnn: read.cudnn.map(|major| CudnnFlavour { major }),
        flavour: read.flavour.filter(|f| *f != Flavour::Base),
        distro: read.distro,
        torch: read.torch,
        sets_library_path: false,
        env: Vec::new(),
        compiler: None,
        sure: false,
        tag: reference.tag,
    })
}

#[cfg(test)]
mod tests;
