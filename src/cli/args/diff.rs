//! What `imagelint diff` takes.

use std::path::PathBuf;

use super::{Format, ReadArgs, plain_format};
use crate::model::Platform;

pub(super) const HELP: &str = "\
OLD and NEW are images as `imagelint scan` takes them, or files of saved scans (--save-evidence), also written
evidence:FILE.

A loss is, with targets: the verdict of a required target got worse. Without targets: a core component serves a
compute capability worse than before (by machine code, PTX and families, whatever the driver), or is gone; or the
image needs a newer driver than before. Machine code that other code stands in for (sm_89, where sm_86 stays) is
told, and is no loss.

Examples:
  imagelint diff app:1 app:2
  imagelint diff app:1 oci-archive:new.tar --fleet imagelint.toml --fail-on-loss
  imagelint diff old-scan.json app:2 --format json

Exit status:
  0  compared; with --fail-on-loss: nothing is lost
  1  something is lost, and --fail-on-loss is given
  2  one of the images could not be read or decided";

#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// The image before
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The image after
    #[arg(value_name = "NEW")]
    pub new: String,

    /// GPU, and driver if known, to judge both against; again for more
    #[arg(long = "target", short = 't', value_name = "GPU[@DRIVER]", help_heading = "Fleet")]
    pub targets: Vec<String>,
    /// File of targets [default: imagelint.toml, here or in a folder above]
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub fleet: Option<PathBuf>,
    /// Platform that is compared [default: linux/amd64, else what both have]
    #[arg(long, value_name = "OS/ARCH", help_heading = "Fleet")]
    pub platform: Option<Platform>,

    /// Exit 1 if something is lost
    #[arg(long, help_heading = "Verdict")]
    pub fail_on_loss: bool,
    /// Answer even if part of an image could not be read, or a core component not be decided
    #[arg(long, help_heading = "Verdict")]
    pub allow_gaps: bool,

    #[command(flatten)]
    pub read: ReadArgs,

    /// Format on standard output: table or json
    #[arg(long, short, default_value = "table", value_parser = plain_format, help_heading = "Report")]
    pub format: Format,
}
