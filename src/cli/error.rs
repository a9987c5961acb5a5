//! Why a command could not answer.

use std::path::PathBuf;

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
    #[error("`imagelint {0}` is not available yet")]
    NotYet(String),
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
            Self::NoSuchRule(_, Some(near)) => Some(format!("imagelint explain {near}")),
            Self::NoSuchRule(_, None) => Some("imagelint rules, which lists all".into()),
            Self::NoRuleToSet(_, Some(near)) => Some(format!("--rule {near}")),
            Self::NoRuleToSet(_, None) => Some("imagelint rules, which lists all".into()),
            Self::NoDockerfile(_) => Some("naming the file: it is linted whatever it is called".into()),
            Self::FixOfStandardInput => Some("--diff, which prints what would change".into()),
            Self::NoSuchCommand(word) => Some(format!("imagelint scan {word}")),
            Self::NotYet(_) => Some("imagelint --help, which lists what is".into()),
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
            | Self::TooLarge { .. }
            | Self::BuildFile { .. }
            | Self::Write { .. } => None,
        }
    }
}
