//! How each project is told which GPUs to build for. Table: `build_knobs.toml`.

use serde::Deserialize;

use super::arch_lists::ArchVariables;
use super::components::Globs;
use super::{CatalogError, Tables, Trust, names};
use crate::model::{Capability, ImagePath, KnobForm, Maker, SmArch};

const FILE: &str = "build_knobs.toml";

/// What a knob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KnobKind {
    /// Environment variable of the build.
    Env,
    /// `-D` cache variable of CMake.
    Cmake,
    /// `ARG` of the project's Dockerfile.
    Arg,
    /// Variable of make.
    Make,
    /// Flag of a command.
    Flag,
    /// None: the architectures stand in the source.
    Auto,
    /// None: compiled on the machine that runs it.
    Jit,
}

impl KnobKind {
    /// How it is set; `None` where there is nothing to set.
    pub fn form(self) -> Option<KnobForm> {
        match self {
            Self::Env => Some(KnobForm::Env),
            Self::Cmake => Some(KnobForm::Cmake),
            Self::Arg => Some(KnobForm::Arg),
            Self::Make => Some(KnobForm::Make),
            Self::Flag => Some(KnobForm::Flag),
            Self::Auto | Self::Jit => None,
        }
    }
}

/// One project's way of being told, `[[knob]]`.
#[derive(Debug, Clone, Deserialize)]
pub struct Knob {
    pub project: String,
    /// The variable's or flag's name; "(none)" where there is no knob.
    pub variable: String,
    pub kind: KnobKind,
    /// An example of its value, in the project's own syntax.
    #[serde(rename = "value")]
    pub example: String,
    /// What shows the project inside an image, in words.
    pub identify: String,
    /// Python packages that are this project, `*` allowed.
    #[serde(default)]
    pub dists: Vec<String>,
    /// Globs over paths in an image.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The architectures that the project's build knows, where it knows few; empty: any.
    #[serde(default)]
    pub archs: Vec<SmArch>,
    /// How it is built and installed from source.
    pub install: String,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

impl Knob {
    pub fn because(&self) -> String {
        self.trust.because(FILE, &self.project)
    }

    /// Whether it was read in the project's own source.
    pub fn is_sure(&self) -> bool {
        self.trust.is_sure()
    }

    /// What to build so that `wanted` are served: themselves, or those of the project's own list that serve them;
    /// and those that the project does not build for. `serves` is the law of coverage.
    pub fn builds(
        &self,
        wanted: &[SmArch],
        serves: &dyn Fn(SmArch, Capability) -> bool,
    ) -> (Vec<SmArch>, Vec<SmArch>) {
        if self.archs.is_empty() {
            return (wanted.to_vec(), Vec::new());
        }
        let mut built: Vec<SmArch> = Vec::new();
        let mut left = Vec::new();
        for want in wanted {
            let fits = |a: &&SmArch| want.capability().is_some_and(|cc| serves(**a, cc));
            match self.archs.iter().filter(fits).max() {
                Some(best) if built.contains(best) => {}
                Some(best) => built.push(*best),
                None => left.push(*want),
            }
        }
        (built, left)
    }

    /// The first of the names that the row gives its variable.
    pub fn first_variable(&self) -> &str {
        self.variable.split(" / ").next().unwrap_or(&self.variable)
    }

    /// Whether there is anything to set.
    pub fn can_be_set(&self) -> bool {
        !matches!(self.kind, KnobKind::Auto | KnobKind::Jit)
    }
}

/// All knobs.
#[derive(Debug)]
pub struct Knobs {
    knobs: Vec<Knob>,
    dists: Vec<Globs>,
    paths: Vec<Globs>,
}

impl Knobs {
    pub(crate) fn read(tables: &mut Tables) -> Result<Self, CatalogError> {
        let knobs = tables.rows::<Knob>(FILE, "knob")?;
        let globs = |of: fn(&Knob) -> &[String], paths: bool| {
            let one = |k: &Knob| Globs::new(FILE, &k.project, of(k), paths);
            knobs.iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        let (dists, paths) = (globs(|k| &k.dists, false)?, globs(|k| &k.paths, true)?);
        Ok(Self { knobs, dists, paths })
    }

    pub fn all(&self) -> &[Knob] {
        &self.knobs
    }

    pub fn project(&self, name: &str) -> Option<&Knob> {
        self.knobs.iter().find(|k| k.project == name)
    }

    /// The knob of a component for a maker's GPUs, by what its variable takes.
    pub fn knob_of_maker(
        &self,
        component: &str,
        paths: &[&ImagePath],
        maker: Maker,
        variables: &ArchVariables,
    ) -> Option<&Knob> {
        let name = names::dist(component);
        let of = |k: &Knob| variables.variable(k.first_variable()).is_some_and(|v| v.maker == maker);
        let mut rows = self.knobs.iter().zip(&self.dists).zip(&self.paths).filter(|((k, _), _)| of(k));
        let is = |(k, dists): (&Knob, &Globs), globs: &Globs| {
            k.dists.contains(&name)
                || names::dist(&k.project) == name
                || dists.matches_name(&name)
                || paths.iter().any(|p| globs.matches(p))
        };
        rows.find(|((k, dists), globs)| is((k, dists), globs)).map(|((k, _), _)| k)
    }

    /// The knob of a component: by its name (a Python package's, or a project's own), else by the paths of its files.
    pub fn knob_for<'p>(&self, component: &str, paths: impl IntoIterator<Item = &'p ImagePath>) -> Option<&Knob> {
        let name = names::dist(component);
        let named = self.knobs.iter().position(|k| k.dists.contains(&name) || names::dist(&k.project) == name);
        let index = named.or_else(|| self.dists.iter().position(|d| d.matches_name(&name))).or_else(|| {
            let paths: Vec<_> = paths.into_iter().collect();
            self.paths.iter().position(|g| paths.iter().any(|p| g.matches(p)))
        })?;
        self.knobs.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    #[test]
    fn knobs_are_found_by_package_and_by_file() {
        let knobs = Catalog::embedded().knobs();
        let by_name = |name: &str| knobs.knob_for(name, []).map(|k| k.variable.as_str());
        assert_eq!(by_name("flash_attn"), Some("FLASH_ATTN_CUDA_ARCHS"));
        assert_eq!(by_name("cupy-cuda12x"), Some("CUPY_NVCC_GENERATE_CODE"));
        assert_eq!(by_name("transformer_engine_cu12"), Some("NVTE_CUDA_ARCHS"));
        assert_eq!(by_name("torch"), Some("TORCH_CUDA_ARCH_LIST"));
        assert_eq!(by_name("faiss"), Some("CMAKE_CUDA_ARCHITECTURES"));
        assert_eq!(by_name("no-such-package"), None);
        let path = ImagePath::new("usr/local/lib/libggml-cuda.so");
        assert_eq!(knobs.knob_for("whatever", [&path]).map(|k| k.project.as_str()), Some("llama.cpp"));
        let mamba = knobs.knob_for("mamba_ssm", []).unwrap();
        assert!(!mamba.can_be_set());
        assert!(mamba.because().starts_with("build_knobs.toml `mamba-ssm`: mamba@e9594ce"), "{}", mamba.because());
    }
}
