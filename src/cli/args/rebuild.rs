//! What `imagelint rebuild` takes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;

use super::{FailOn, ReadArgs, plain_format};
use crate::model::Platform;
use crate::report::Format;

pub(super) const HELP: &str = "\
With IMAGE, the plan is made from a scan of it; without, from what the Dockerfile lets expect, and a
second build may follow when a scan of the first shows what the file does not. At most two builds.
The Dockerfile is patched in a copy: files stay as they are without --write.

What is behind -- goes to the builder's build command as it is. Credentials, storage and isolation are
the builder's own (BUILDAH_ISOLATION, CONTAINERS_STORAGE_CONF, DOCKER_HOST, …).

Examples:
  imagelint rebuild registry/app:1 --dockerfile Dockerfile --target \"RTX 5090@575\" --tag registry/app:2
  imagelint rebuild --dockerfile docker/gpu.Dockerfile --context . --fleet imagelint.toml --write
  imagelint rebuild --dockerfile Dockerfile -t h100@550 --builder buildah -- --isolation chroot

Exit status:
  0  built, scanned, and the fleet is served as was promised
  1  built, and the promise was not kept; or no edit of a Dockerfile keeps one
  2  it could not be built, or not be looked at";

#[derive(Debug, clap::Args)]
pub struct RebuildArgs {
    /// Image to rebuild, as `scan` takes it; may be left out where there is a Dockerfile
    #[arg(value_name = "IMAGE")]
    pub image: Option<String>,

    /// GPU, and driver if known, to judge against; again for more
    #[arg(long = "target", short = 't', value_name = "GPU[@DRIVER]", help_heading = "Fleet")]
    pub targets: Vec<String>,
    /// File of targets [default: imagelint.toml, here or in a folder above]
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub fleet: Option<PathBuf>,
    /// Platform to build for and to take of an index [default: the builder's]
    #[arg(long, value_name = "OS/ARCH", help_heading = "Fleet")]
    pub platform: Option<Platform>,

    /// Dockerfile to patch and build [default: one that starts FROM the image]
    #[arg(long, value_name = "FILE", help_heading = "Build")]
    pub dockerfile: Option<PathBuf>,
    /// Build context [default: the Dockerfile's folder]
    #[arg(long, value_name = "DIR", help_heading = "Build")]
    pub context: Option<PathBuf>,
    /// Build argument; without a value, the environment's; again for more
    #[arg(long = "build-arg", value_name = "NAME[=VALUE]", help_heading = "Build")]
    pub build_args: Vec<String>,
    /// Stage to build [default: the last]
    #[arg(long, value_name = "STAGE", help_heading = "Build")]
    pub stage: Option<String>,
    /// Builder to use [default: docker with buildx, docker, buildah, podman: the first that runs]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Build")]
    pub builder: Option<BuilderName>,
    /// More arguments of the builder's build command
    #[arg(last = true, value_name = "BUILDER ARGUMENTS")]
    pub extra: Vec<OsString>,

    /// Name of the image that is built [default: localhost/imagelint-rebuild:DIGEST]
    #[arg(long, value_name = "NAME[:TAG]", help_heading = "Result")]
    pub tag: Option<String>,
    /// Push the image, once the promise is seen to be kept
    #[arg(long, requires = "tag", help_heading = "Result")]
    pub push: bool,
    /// Write the patched Dockerfile in place, once the promise is seen to be kept
    #[arg(long, requires = "dockerfile", help_heading = "Result")]
    pub write: bool,

    /// Findings that must be gone from what is built
    #[arg(long, value_enum, default_value_t = FailOn::Error, value_name = "SEVERITY", help_heading = "Verdict")]
    pub fail_on: FailOn,
    /// Answer even if part of an image could not be read, or a core component not be decided
    #[arg(long, help_heading = "Verdict")]
    pub allow_gaps: bool,

    #[command(flatten)]
    pub read: ReadArgs,

    /// Format on standard output: table or json
    #[arg(long, short, default_value = "table", value_parser = plain_format, help_heading = "Report")]
    pub format: Format,
}

/// Builders by the names that are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BuilderName {
    /// With buildx where there is one
    Docker,
    Buildah,
    Podman,
}
