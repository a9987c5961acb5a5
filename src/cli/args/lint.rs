//! What `imagelint lint` takes.

use std::path::PathBuf;

use super::{FailOn, Format, Output, PolicyArgs, format, output};
use crate::model::Severity;

pub(super) const HELP: &str = "\
PATH is a Dockerfile, a folder (Dockerfile, Containerfile, Dockerfile.*, *.Dockerfile below it), or - for
standard input. What .gitignore leaves out is not looked for; a file that is named is always linted.

A comment accepts findings of the instruction below it, with a reason:
  # imagelint: ignore[devel-in-final-stage] kernels are compiled at start
`stage ignore[…]` is for the stage it stands in, `file ignore[…]` for the file.

Examples:
  imagelint lint
  imagelint lint docker/Dockerfile --target h100@535 --target \"RTX 5090@575\"
  imagelint lint . --fix && git diff
  imagelint lint --diff | git apply
  imagelint lint . -o sarif=imagelint.sarif --format github";

#[derive(Debug, clap::Args)]
pub struct LintArgs {
    /// Dockerfiles, folders of them, or - for standard input
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    pub paths: Vec<PathBuf>,

    /// GPU, and driver if known, to judge against; again for more
    #[arg(long = "target", short = 't', value_name = "GPU[@DRIVER]", help_heading = "Fleet")]
    pub targets: Vec<String>,
    /// File of targets, levels and waivers [default: imagelint.toml, here or in a folder above]
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub fleet: Option<PathBuf>,
    #[command(flatten)]
    pub policy: PolicyArgs,

    /// Turn a rule on, off, or give its findings a level; again for more
    #[arg(long = "rule", value_name = "ID[=LEVEL]", value_parser = rule, help_heading = "Rules")]
    pub rules: Vec<RuleFlag>,
    /// Findings that make the exit status 1
    #[arg(long, value_enum, default_value_t = FailOn::Error, value_name = "SEVERITY", help_heading = "Rules")]
    pub fail_on: FailOn,
    /// Report and fail on what is new since an earlier JSON report (-o json=FILE) of the same files
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    pub baseline: Option<PathBuf>,

    /// Build argument; without a value, the environment's
    #[arg(long = "build-arg", value_name = "NAME[=VALUE]", help_heading = "Build")]
    pub build_args: Vec<String>,
    /// Stage that is built, as `docker build --target` names it [default: the last]
    #[arg(long, value_name = "STAGE", help_heading = "Build")]
    pub build_target: Option<String>,
    /// Platform that is built for, as in linux/arm64 [default: amd64 and arm64 are both possible]
    #[arg(long, value_name = "OS/ARCH", help_heading = "Build")]
    pub platform: Option<crate::model::Platform>,
    /// Compose file whose build arguments count [default: one beside the Dockerfile that builds it]
    #[arg(long, value_name = "FILE", help_heading = "Build")]
    pub compose: Option<PathBuf>,
    /// Bake file whose build arguments count [default: one beside the Dockerfile that builds it]
    #[arg(long, value_name = "FILE", help_heading = "Build")]
    pub bake: Option<PathBuf>,
    /// Build context, where requirements files are read [default: the Dockerfile's folder, the working
    /// directory, the repository]
    #[arg(long, value_name = "DIR", help_heading = "Build")]
    pub context: Option<PathBuf>,

    /// Change files where the fix is safe, and report what is left
    #[arg(long, conflicts_with = "diff", help_heading = "Fixes")]
    pub fix: bool,
    /// Print all fixes as a patch, also those to be read first; change nothing
    #[arg(long, help_heading = "Fixes")]
    pub diff: bool,

    /// Look also into what .gitignore leaves out
    #[arg(long, help_heading = "Files")]
    pub no_ignore: bool,
    /// Worker threads [default: one per core]
    #[arg(long, short, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Files")]
    pub jobs: usize,

    /// Format on standard output: table, json, sarif, github, markdown, html, junit or gitlab
    #[arg(long, short, default_value = "table", value_parser = format, help_heading = "Report")]
    pub format: Format,
    /// Write a report to a file as well; again for more formats
    #[arg(long = "output", short, value_name = "FORMAT=FILE", value_parser = output, help_heading = "Report")]
    pub outputs: Vec<Output>,
}

/// One `--rule`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFlag {
    pub rule: String,
    pub level: RuleLevel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleLevel {
    Off,
    /// At its own severities.
    On,
    At(Severity),
}

fn rule(text: &str) -> Result<RuleFlag, String> {
    let (rule, level) = match text.split_once('=') {
        None => (text, RuleLevel::On),
        Some((rule, level)) => {
            let level = match level {
                "off" => RuleLevel::Off,
                "on" => RuleLevel::On,
                "note" => RuleLevel::At(Severity::Note),
                "warning" => RuleLevel::At(Severity::Warning),
                "error" => RuleLevel::At(Severity::Error),
                _ => return Err("a level is on, off, note, warning or error".to_owned()),
            };
            (rule, level)
        }
    };
    if rule.is_empty() {
        return Err("the rule's id is missing".to_owned());
    }
    Ok(RuleFlag { rule: rule.to_owned(), level })
}
