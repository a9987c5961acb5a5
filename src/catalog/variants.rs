//! Packages that bring one library in several variants and load one of them. Which one is decided by the package's
//! own code, which the rows of `[[variant]]` in `components.toml` describe.

use serde::Deserialize;

use super::components::{FILE, Globs};
use super::{CatalogError, Tables, Trust, names};
use crate::model::{Capability, Device, ImagePath, Maker};

/// What the tag in a file's name is matched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// `torch.version.cuda` of the image: `128` is 12.8.
    TorchCuda,
    /// `torch.version.hip` of the image: `64` is 6.4.
    TorchHip,
    /// The year of `torch.version.xpu` of the image: `2026`.
    TorchXpu,
    /// The GPU's compute capability: `90` is 9.0.
    Capability,
}

impl Key {
    /// Whose GPUs the variants are for.
    fn maker(self) -> Maker {
        match self {
            Self::TorchCuda | Self::Capability => Maker::Nvidia,
            Self::TorchHip => Maker::Amd,
            Self::TorchXpu => Maker::Intel,
        }
    }

    /// Digits of the major in a tag; the rest is the minor. `None`: all but the last.
    fn major_digits(self) -> Option<usize> {
        match self {
            Self::TorchCuda => Some(2),
            Self::TorchHip => Some(1),
            Self::TorchXpu => Some(4),
            Self::Capability => None,
        }
    }
}

/// How the variant is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// The key's own variant or none.
    Exact,
    /// The key's own, else the highest below, else the lowest above; never another major.
    NearestSameMajor,
    /// The highest that is not above the key.
    HighestNotAbove,
    /// The key's own, else the one named `otherwise`.
    ExactOrOtherwise,
}

/// What happens when no variant fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenMissing {
    /// A call into the library raises.
    Error,
    /// The CPU library is loaded, with a warning: GPU functions are absent.
    Cpu,
}

/// One row.
#[derive(Debug)]
pub struct Variant {
    pub name: String,
    pub dists: Vec<String>,
    pub key: Key,
    pub pick: Pick,
    pub missing: WhenMissing,
    /// Environment variable whose digits take the key's place.
    pub override_env: Option<String>,
    pub note: Option<String>,
    raw: RawVariant,
    files: Globs,
    others: Globs,
}

#[derive(Debug, Deserialize)]
struct RawVariant {
    name: String,
    dists: Vec<String>,
    from: Option<String>,
    below: Option<String>,
    files: Vec<String>,
    pattern: String,
    key: Key,
    pick: Pick,
    missing: WhenMissing,
    otherwise: Option<String>,
    override_env: Option<String>,
    #[serde(default)]
    override_digits_only: bool,
    old_gpu_below: Option<Capability>,
    #[serde(default)]
    old_gpu_suffix: String,
    #[serde(default)]
    others: Vec<String>,
    note: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

/// The backend that the image's torch was built for, with its release as major and minor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TorchBuild {
    pub cuda: Option<(u16, u16)>,
    pub hip: Option<(u16, u16)>,
    /// The year, and nothing.
    pub xpu: Option<(u16, u16)>,
}

impl TorchBuild {
    fn of(self, key: Key) -> Option<(u16, u16)> {
        match key {
            Key::TorchCuda => self.cuda,
            Key::TorchHip => self.hip,
            Key::TorchXpu => self.xpu,
            Key::Capability => None,
        }
    }

    /// "CUDA 12.8".
    fn text(self) -> Option<String> {
        let named = |name: &str, (major, minor): (u16, u16)| format!("{name} {major}.{minor}");
        let cuda = self.cuda.map(|v| named("CUDA", v));
        cuda.or_else(|| self.hip.map(|v| named("ROCm", v))).or_else(|| self.xpu.map(|v| format!("XPU {}", v.0)))
    }
}

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub torch: TorchBuild,
    /// The value of [`Variant::override_env`] in the image, where it is set.
    pub override_value: Option<&'a str>,
    pub device: Device,
}

/// Which file is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice<'p> {
    /// This one. `substitute` says so when it is not the key's own.
    Loaded { path: &'p ImagePath, substitute: Option<String> },
    /// None: `wanted` is the file that would have been, or what is wrong.
    Missing { wanted: String, then: WhenMissing },
    /// Not to be said: the image does not tell the key.
    Unknown { why: String },
}

impl Variant {
    pub(super) fn read(tables: &mut Tables) -> Result<Vec<Self>, CatalogError> {
        let typed = |raw: RawVariant| {
            let bad = |what: &str| CatalogError::Row {
                file: FILE.to_owned(),
                row: format!("[[variant]] `{}`", raw.name),
                what: what.to_owned(),
            };
            if raw.pattern.matches("{}").count() != 1
                || raw.pattern.starts_with("{}")
                || raw.pattern.ends_with("{}")
            {
                return Err(bad("`pattern` needs one {} with text on both sides"));
            }
            if (raw.pick == Pick::ExactOrOtherwise) != raw.otherwise.is_some() {
                return Err(bad("`otherwise` goes with pick = \"exact-or-otherwise\" and with no other"));
            }
            Ok(Self {
                name: raw.name.clone(),
                dists: raw.dists.iter().map(|d| names::dist(d)).collect(),
                key: raw.key,
                pick: raw.pick,
                missing: raw.missing,
                override_env: raw.override_env.clone(),
                note: raw.note.clone(),
                files: Globs::new(FILE, &raw.name, &raw.files, true)?,
                others: Globs::new(FILE, &raw.name, &raw.others, true)?,
                raw,
            })
        };
        tables.rows::<RawVariant>(FILE, "variant")?.into_iter().map(typed).collect()
    }

    pub fn because(&self) -> String {
        self.raw.trust.because(FILE, &self.name)
    }

    /// Whether the row describes a version of the package.
    pub fn holds_for(&self, version: &str) -> bool {
        let version = names::version(version);
        self.raw.from.as_deref().is_none_or(|f| version >= names::version(f))
            && self.raw.below.as_deref().is_none_or(|b| version < names::version(b))
    }

    /// Whether a file is one of the variants.
    pub fn is_variant(&self, path: &ImagePath) -> bool {
        self.files.matches(path)
    }

    /// Whose GPUs its variants are for.
    pub fn maker(&self) -> Maker {
        self.key.maker()
    }

    /// Whether a file is a sibling for other hardware, never loaded for the row's maker's GPUs.
    pub fn is_other(&self, path: &ImagePath) -> bool {
        self.others.matches(path)
    }

    /// The variant that is loaded, of the files of one installation.
    pub fn choose<'p>(&self, files: &[&'p ImagePath], cx: Context<'_>) -> Choice<'p> {
        let present: Vec<(String, &'p ImagePath)> =
            files.iter().filter(|p| self.is_variant(p)).filter_map(|p| Some((self.tag(p)?, *p))).collect();
        let old = self.raw.old_gpu_below.zip(cx.device.capability()).is_some_and(|(below, cc)| cc < below);
        let suffix = if old { self.raw.old_gpu_suffix.as_str() } else { "" };
        let exact = |tag: &str, wanted: &str| match present.iter().find(|(t, _)| t == tag) {
            Some((_, path)) => Choice::Loaded { path, substitute: None },
            None => Choice::Missing { wanted: wanted.to_owned(), then: self.missing },
        };
        if let Some(value) = cx.override_value.filter(|v| !v.is_empty() || self.raw.override_digits_only) {
            if self.raw.override_digits_only && (value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit())) {
                let name = self.override_env.as_deref().unwrap_or_default();
                return Choice::Missing {
                    wanted: format!("{name}={value:?}, which is not digits"),
                    then: self.missing,
                };
            }
            // Before 0.45 the override is appended behind the suffix and then names no file.
            let tag = if suffix.is_empty() { value.to_owned() } else { format!("{suffix}{value}") };
            return exact(&tag, &self.raw.pattern.replace("{}", &tag));
        }
        let key = match self.key {
            Key::Capability => match cx.device.capability() {
                Some(cc) => (cc.major, cc.minor),
                None => return Choice::Unknown { why: "no variant is for another maker's GPU".to_owned() },
            },
            Key::TorchCuda | Key::TorchHip | Key::TorchXpu => match (cx.torch.of(self.key), cx.torch.text()) {
                (Some(key), _) => key,
                // A torch for other GPUs sees none of these.
                (None, Some(build)) => {
                    let wanted = format!("the image's torch is built for {build}");
                    return Choice::Missing { wanted, then: WhenMissing::Cpu };
                }
                (None, None) => {
                    let name = match self.key.maker() {
                        Maker::Nvidia => "cuda",
                        Maker::Amd => "hip",
                        Maker::Intel => "xpu",
                    };
                    return Choice::Unknown { why: format!("the image does not say torch.version.{name}") };
                }
            },
        };
        let minor = if self.key == Key::TorchXpu { String::new() } else { key.1.to_string() };
        let tag = format!("{}{minor}{suffix}", key.0);
        let wanted = self.raw.pattern.replace("{}", &tag);
        let found = exact(&tag, &wanted);
        if matches!(found, Choice::Loaded { .. }) {
            return found;
        }
        let substitute = |(tag, path): &(String, &'p ImagePath)| Choice::Loaded {
            path,
            substitute: Some(format!("no {wanted}, so {} is loaded", self.raw.pattern.replace("{}", tag))),
        };
        // "118" is 11.8, "90" is 9.0, "714" is 7.14.
        let number = |tag: &str| {
            let cut = self.key.major_digits().or_else(|| tag.len().checked_sub(1))?;
            let (major, minor) = tag.split_at_checked(cut)?;
            let minor = if self.key == Key::TorchXpu { "0" } else { minor };
            Some((major.parse::<u16>().ok()?, minor.parse::<u16>().ok()?))
        };
        let numbered = || present.iter().filter_map(|e| Some((number(&e.0)?, e)));
        let other = match self.pick {
            Pick::Exact => None,
            Pick::ExactOrOtherwise => present
                .iter()
                .find(|(t, _)| Some(t) == self.raw.otherwise.as_ref())
                .map(|(_, path)| Choice::Loaded { path, substitute: None }),
            Pick::HighestNotAbove => {
                numbered().filter(|(n, _)| *n <= key).max_by_key(|(n, _)| *n).map(|(_, e)| substitute(e))
            }
            Pick::NearestSameMajor => {
                let same = || numbered().filter(|(n, _)| n.0 == key.0);
                let below = same().filter(|(n, _)| *n < key).max_by_key(|(n, _)| *n);
                below.or_else(|| same().min_by_key(|(n, _)| *n)).map(|(_, e)| substitute(e))
            }
        };
        other.unwrap_or(found)
    }

    /// The tag in a file's path.
    fn tag(&self, path: &ImagePath) -> Option<String> {
        let (before, after) = self.raw.pattern.split_once("{}")?;
        let text = String::from_utf8_lossy(path.as_bytes());
        let rest = &text[text.rfind(before)? + before.len()..];
        Some(rest[..rest.find(after)?].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    fn files(tags: &[&str]) -> Vec<ImagePath> {
        let at = |t: &&str| ImagePath::new(format!("opt/site-packages/bitsandbytes/libbitsandbytes_{t}.so"));
        tags.iter().map(at).collect()
    }

    fn build(cuda: Option<&str>, hip: Option<(u16, u16)>) -> TorchBuild {
        let cuda = cuda.and_then(|c| c.split_once('.')).map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap()));
        TorchBuild { cuda, hip, xpu: None }
    }

    #[test]
    fn each_maker_has_its_own() {
        let names = ["cuda128.so", "rocm64.so", "rocm70.so", "rocm714.so", "rocm72.so", "xpu2025.so", "xpu2026.so"];
        let files = files(&names.map(|n| n.trim_end_matches(".so")));
        let pick = |maker: Maker, torch: TorchBuild, set: Option<&str>, device: &str| {
            let row = Catalog::embedded().components().variant_for("bitsandbytes", Some("0.50.2"), maker).unwrap();
            let cx = Context { torch, override_value: set, device: device.parse().unwrap() };
            match row.choose(&files.iter().collect::<Vec<_>>(), cx) {
                Choice::Loaded { path, .. } => path.file_name_lossy().replace("libbitsandbytes_", ""),
                Choice::Missing { wanted, then } => format!("{then:?}: {wanted}"),
                Choice::Unknown { why } => why,
            }
        };
        let hip = |major, minor| TorchBuild { hip: Some((major, minor)), ..TorchBuild::default() };
        assert_eq!(pick(Maker::Amd, hip(7, 2), None, "gfx942"), "rocm72.so");
        assert_eq!(pick(Maker::Amd, hip(7, 14), None, "gfx942"), "rocm714.so");
        assert_eq!(pick(Maker::Amd, hip(7, 13), None, "gfx942"), "rocm72.so");
        assert_eq!(pick(Maker::Amd, hip(6, 2), None, "gfx942"), "rocm64.so");
        assert!(pick(Maker::Amd, hip(5, 7), None, "gfx942").starts_with("Error: libbitsandbytes_rocm57.so"));
        assert_eq!(pick(Maker::Amd, hip(7, 2), Some("70"), "gfx942"), "rocm70.so");
        assert!(pick(Maker::Amd, build(Some("12.8"), None), None, "gfx942").contains("built for CUDA 12.8"));
        assert!(
            pick(Maker::Nvidia, hip(7, 2), None, "9.0").starts_with("Cpu: the image's torch is built for ROCm")
        );
        assert!(pick(Maker::Amd, TorchBuild::default(), None, "gfx942").contains("torch.version.hip"));
        let xpu = TorchBuild { xpu: Some((2026, 0)), ..TorchBuild::default() };
        assert_eq!(pick(Maker::Intel, xpu, None, "12.60.7"), "xpu2026.so");
    }

    /// The file name chosen for a version of bitsandbytes, or what is missing.
    fn pick(version: &str, tags: &[&str], cuda: Option<&str>, set: Option<&str>, cc: (u16, u16)) -> String {
        let row =
            Catalog::embedded().components().variant_for("bitsandbytes", Some(version), Maker::Nvidia).unwrap();
        let files = files(tags);
        let cx =
            Context { torch: build(cuda, None), override_value: set, device: Capability::new(cc.0, cc.1).into() };
        match row.choose(&files.iter().collect::<Vec<_>>(), cx) {
            Choice::Loaded { path, .. } => path.file_name_lossy().into_owned(),
            Choice::Missing { wanted, then } => format!("{then:?}: {wanted}"),
            Choice::Unknown { .. } => "unknown".to_owned(),
        }
    }

    const NEW: &[&str] = &["cpu", "cuda118", "cuda121", "cuda124", "cuda128", "cuda130", "rocm72", "xpu2026"];

    #[test]
    fn bitsandbytes_takes_the_nearest_of_the_same_major_since_0_50() {
        let chosen = |cuda| pick("0.50.2", NEW, Some(cuda), None, (9, 0));
        assert_eq!(chosen("12.8"), "libbitsandbytes_cuda128.so");
        assert_eq!(chosen("12.9"), "libbitsandbytes_cuda128.so");
        assert_eq!(chosen("12.6"), "libbitsandbytes_cuda124.so");
        assert_eq!(chosen("12.0"), "libbitsandbytes_cuda121.so");
        assert_eq!(chosen("13.2"), "libbitsandbytes_cuda130.so");
        assert_eq!(chosen("10.2"), "Error: libbitsandbytes_cuda102.so");
        assert_eq!(pick("0.50.2", NEW, None, None, (9, 0)), "unknown");
        assert_eq!(pick("0.50.2", NEW, Some("12.8"), Some("124"), (9, 0)), "libbitsandbytes_cuda124.so");
        assert_eq!(pick("0.50.2", NEW, Some("12.8"), Some("129"), (9, 0)), "Error: libbitsandbytes_cuda129.so");
        assert!(pick("0.50.2", NEW, Some("12.8"), Some(""), (9, 0)).starts_with("Error: BNB_CUDA_VERSION"));
    }

    #[test]
    fn older_bitsandbytes_wants_its_own_variant() {
        assert_eq!(pick("0.49.2", NEW, Some("12.9"), None, (9, 0)), "Error: libbitsandbytes_cuda129.so");
        assert_eq!(pick("0.45.5", NEW, Some("12.9"), None, (9, 0)), "Cpu: libbitsandbytes_cuda129.so");
        assert_eq!(pick("0.45.5", NEW, Some("12.8"), Some(""), (9, 0)), "libbitsandbytes_cuda128.so");
        let old = &["cuda121", "cuda121_nocublaslt", "cpu"];
        assert_eq!(pick("0.41.3", old, Some("12.1"), None, (8, 0)), "libbitsandbytes_cuda121.so");
        assert_eq!(pick("0.41.3", old, Some("12.1"), None, (7, 0)), "libbitsandbytes_cuda121_nocublaslt.so");
        assert_eq!(pick("0.41.3", old, Some("12.4"), None, (7, 0)), "Error: libbitsandbytes_cuda124_nocublaslt.so");
        assert_eq!(pick("0.43.3", old, Some("11.8"), Some("121"), (7, 5)), "libbitsandbytes_cuda121.so");
    }

    #[test]
    fn siblings_for_other_hardware_are_known() {
        let row = Catalog::embedded().components().variant_for("bitsandbytes", None, Maker::Nvidia).unwrap();
        assert!(row.holds_for("0.51"));
        for path in files(&["rocm72", "xpu2026", "cpu"]) {
            assert!(row.is_other(&path) && !row.is_variant(&path), "{path}");
        }
    }

    #[test]
    fn variants_chosen_by_gpu() {
        let components = Catalog::embedded().components();
        let paths = |texts: &[&str]| texts.iter().map(ImagePath::new).collect::<Vec<_>>();
        let chosen = |dist: &str, paths: &[ImagePath], major, minor| {
            let row = components.variant_for(dist, None, Maker::Nvidia).unwrap();
            let device = Capability::new(major, minor).into();
            let cx = Context { torch: TorchBuild::default(), override_value: None, device };
            match row.choose(&paths.iter().collect::<Vec<_>>(), cx) {
                Choice::Loaded { path, .. } => path.to_string(),
                other => format!("{other:?}"),
            }
        };
        let sgl = paths(&["s/sgl_kernel/sm90/common_ops.abi3.so", "s/sgl_kernel/sm100/common_ops.abi3.so"]);
        assert_eq!(chosen("sgl_kernel", &sgl, 9, 0), "s/sgl_kernel/sm90/common_ops.abi3.so");
        assert_eq!(chosen("sgl_kernel", &sgl, 8, 0), "s/sgl_kernel/sm100/common_ops.abi3.so");
        let tcnn = paths(&["s/tinycudann_bindings/_75_C.x.so", "s/tinycudann_bindings/_86_C.x.so"]);
        assert_eq!(chosen("tinycudann", &tcnn, 8, 9), "s/tinycudann_bindings/_86_C.x.so");
        assert_eq!(chosen("tinycudann", &tcnn, 8, 0), "s/tinycudann_bindings/_75_C.x.so");
        assert!(chosen("tinycudann", &tcnn, 7, 0).starts_with("Missing"));
    }
}
