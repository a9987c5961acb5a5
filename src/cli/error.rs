//! Why a command could not answer.

use std::path::PathBuf;

use super::fleet::FleetError;
use crate::config::{ConfigError, TargetError};
use crate::image::ImageError;
use crate::image::index::IndexError;
use crate::plan::EmitError;

/// Every one of these is exit status 2.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("{0}")]
    Image(#[from] ImageError),
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Target(#[from] TargetError),
    #[error("{0}")]
    Fleet(#[from] FleetError),
    #[error("{place}: {source}")]
    Read { place: String, source: std::io::Error },
    #[error("{place} cannot be written: {source}")]
    Write { place: String, source: std::io::Error },
    #[error("{place} is no saved scan: {what}")]
    NotEvidence { place: String, what: String },
    #[error("{place}: holds {count} images; one is compared with one")]
    NotOneImage { place: String, count: usize },
    #[error("{place} is no baseline: {what}")]
    NotBaseline { place: String, what: String, command: &'static str },
    #[error("there is no rule `{0}`")]
    NoSuchRule(String, Option<&'static str>),
    #[error("--rule: there is no rule `{0}`")]
    NoRuleToSet(String, Option<&'static str>),
    #[error("--rule: `{0}` is a rule of images; `lint` has none of its findings")]
    RuleOfImages(String),
    #[error("{0}: no such file or folder")]
    NotFound(String),
    #[error("{0}: there is no Dockerfile in it")]
    NoDockerfile(String),
    #[error("{place}: larger than {most} MiB, which no Dockerfile is")]
    TooLarge { place: String, most: u64 },
    #[error("--fix cannot change standard input")]
    FixOfStandardInput,
    #[error("{place}: {what}")]
    BuildFile { place: String, what: String },
    #[error("{0}")]
    Plan(#[from] EmitError),
    #[error("this form of the plan is of one image")]
    OneImage,
    #[error("there is no command `{0}`")]
    NoSuchCommand(String),
    #[error("neither an image nor a Dockerfile is named to be rebuilt")]
    NothingToRebuild,
    #[error("no folder for a cache: neither XDG_CACHE_HOME nor HOME is set")]
    NoCache,
    #[error("--list {0}: names no image")]
    EmptyList(String),
    #[error("--list - and --password-stdin both read standard input")]
    TwiceStandardInput,
    #[error("--shard: {0}")]
    Shard(String),
    #[error("{reference} has no manifest, so no digest that a statement could be about")]
    NoManifest { reference: String },
    #[error("there is no node to send it to: no target that labels find is {words}{left}")]
    NoPool { words: String, left: String },
    #[error("--emit-affinity and --emit-compatibility are of one image")]
    OneAffinity,
    #[error("--attest: a statement is about one image")]
    AttestsOne,
    #[error("{0}: is not the root of imagelint's own repository, which alone has generated files")]
    NotOurRepository(String),
    #[error("no targets: there is nothing to rebuild for")]
    NoTargets,
    #[error("{}", no_builder(*.0))]
    NoBuilder(Option<&'static str>),
    #[error("{builder} could not {what} ({how}){}", last_lines(.tail))]
    Builder { builder: &'static str, what: String, how: String, tail: Vec<String> },
    #[error("{builder} cannot be started: {source}")]
    Start { builder: &'static str, source: std::io::Error },
    #[error("{name} was built, and cannot be judged: {why}")]
    NotSeen { name: String, why: String },
    #[error("--write: no single image serves the fleet, and {place} cannot hold what builds several")]
    WriteOfSeveral { place: String },
    #[error("{builder} cannot start a build from {reference}")]
    NoStart { reference: String, builder: &'static str },
}

impl CliError {
    pub fn read(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::Read { place: path.display().to_string(), source }
    }

    pub fn write(path: PathBuf, source: std::io::Error) -> Self {
        Self::Write { place: path.display().to_string(), source }
    }

    /// What to try instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Fleet(error) => error.hint(),
            Self::NoSuchRule(_, Some(near)) => Some(format!("imagelint explain {near}")),
            Self::NoSuchRule(_, None) => Some("imagelint rules, which lists all".into()),
            Self::NoRuleToSet(_, Some(near)) => Some(format!("--rule {near}")),
            Self::NoRuleToSet(_, None) => Some("imagelint rules, which lists all".into()),
            Self::NoDockerfile(_) => Some("naming the file: it is linted whatever it is called".into()),
            Self::FixOfStandardInput => Some("--diff, which prints what would change".into()),
            Self::NoSuchCommand(word) => Some(format!("imagelint scan {word}")),
            Self::NothingToRebuild => Some("imagelint rebuild IMAGE, or --dockerfile FILE, or both".into()),
            Self::NoTargets => Some("--target GPU[@DRIVER], or an imagelint.toml that names them".into()),
            Self::NoBuilder(Some(_)) => Some("leaving --builder out, which takes the first that runs".into()),
            Self::NoBuilder(None) => {
                Some("installing buildah or podman, which need no daemon, or docker with its daemon".into())
            }
            Self::NoPool { .. } => Some("--emit-for with more verdicts, or imagelint plan IMAGE".into()),
            Self::NoManifest { .. } => Some("pushing it, and scanning what the registry has".into()),
            Self::AttestsOne | Self::OneAffinity => Some("one run an image".into()),
            Self::NotOurRepository(_) => Some("--root DIR".into()),
            Self::Shard(_) => Some("--shard I/N, with the part to take".into()),
            Self::NoCache => Some("--cache-dir DIR".into()),
            Self::NoStart { .. } => {
                Some("--dockerfile FILE, or --builder buildah, which starts from archives and layouts".into())
            }
            Self::WriteOfSeveral { .. } => Some("the same without --write: the diffs are printed".into()),
            Self::Plan(EmitError::NoDockerfile) => {
                Some("--dockerfile FILE, or --emit dockerfile for a new one".into())
            }
            Self::OneImage => Some("naming one image, or --emit json".into()),
            Self::NotEvidence { .. } => Some("imagelint scan IMAGE --save-evidence FILE, which writes one".into()),
            Self::NotBaseline { command, .. } => {
                Some(format!("imagelint {command} -o json=FILE, which writes one"))
            }
            Self::NotOneImage { .. } => Some("imagelint scan IMAGE --save-evidence FILE, one file an image".into()),
            Self::Plan(EmitError::NoSuchTag(..) | EmitError::NoImage | EmitError::Bake(_))
            | Self::Image(_)
            | Self::Index(_)
            | Self::Config(_)
            | Self::Target(_)
            | Self::Read { .. }
            | Self::RuleOfImages(_)
            | Self::NotFound(_)
            | Self::EmptyList(_)
            | Self::TwiceStandardInput
            | Self::TooLarge { .. }
            | Self::BuildFile { .. }
            | Self::Builder { .. }
            | Self::NotSeen { .. }
            | Self::Start { .. }
            | Self::Write { .. } => None,
        }
    }
}

fn no_builder(asked: Option<&'static str>) -> String {
    match asked {
        Some("docker") => "docker does not run here, or its daemon does not answer".to_owned(),
        Some(name) => format!("{name} does not run here"),
        None => "no builder runs here: docker (with its daemon), buildah and podman were tried".to_owned(),
    }
}

/// On lines of their own.
fn last_lines(tail: &[String]) -> String {
    if tail.is_empty() {
        return "; it printed nothing".to_owned();
    }
    let lines: Vec<String> = tail.iter().map(|line| format!("\n  {line}")).collect();
    format!("; the last that it printed:{}", lines.concat())
}
