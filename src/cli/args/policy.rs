//! What is judged by, kept apart from what is judged.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Clone, Default, Args)]
pub struct PolicyArgs {
    /// Targets, rules and waivers that count whatever the imagelint.toml beside the image or Dockerfile says, and
    /// comments in that: from outside the change that is judged
    #[arg(long, value_name = "FILE|URL", help_heading = "Fleet")]
    pub policy: Option<String>,
    /// File of more waivers, which count beside a policy as well
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub waivers: Option<PathBuf>,
}
