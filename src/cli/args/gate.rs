//! What `scan` writes for those who let images in.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct GateArgs {
    /// Write an in-toto statement of the verdicts about the image's manifest, for cosign to sign
    #[arg(long, value_name = "FILE", help_heading = "Gate")]
    pub attest: Option<PathBuf>,
}
