//! What `scan` writes for those who let images in, and for those who place them.

use std::path::PathBuf;

use crate::model::Verdict;

#[derive(Debug, clap::Args)]
pub struct GateArgs {
    /// Write an in-toto statement of the verdicts about the image's manifest, for cosign to sign
    #[arg(long, value_name = "FILE", value_parser = file, help_heading = "Gate")]
    pub attest: Option<PathBuf>,
    /// Write a Kubernetes nodeAffinity for the nodes of targets where the image is ok
    #[arg(long, value_name = "FILE", value_parser = file, help_heading = "Gate")]
    pub emit_affinity: Option<PathBuf>,
    /// Write the same as an image compatibility specification of Node Feature Discovery
    #[arg(long, value_name = "FILE", value_parser = file, help_heading = "Gate")]
    pub emit_compatibility: Option<PathBuf>,
    /// Verdicts whose targets count for these two, as in ok,warn
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', default_value = "ok", value_parser = verdict, help_heading = "Gate")]
    pub emit_for: Vec<Verdict>,
}

/// Standard output has the report.
fn file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("standard output is the report's; name a file".to_owned()),
        "" => Err("name a file".to_owned()),
        _ => Ok(text.into()),
    }
}

fn verdict(text: &str) -> Result<Verdict, String> {
    let words: Vec<&str> = Verdict::ALL.iter().rev().map(|v| v.word()).collect();
    Verdict::named(text).ok_or_else(|| format!("there are {}", words.join(", ")))
}
