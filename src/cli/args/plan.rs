//! What `imagelint plan` takes.

use clap::ValueEnum;

use super::ImageArgs;

pub(super) const HELP: &str = "\
With --dockerfile the plan is written into that file's text: in --emit dockerfile and bake as a whole, in
--emit diff as a patch. The file itself is never touched. What cannot be placed surely is told on standard
error, and stays to be reviewed. Without --dockerfile, a new file starts from the scanned image.

Where no single image serves the fleet, the plan has several tags: --tag takes one of them; dockerfile and
diff take the first without it, env then exports only what all of them share.

Examples:
  imagelint plan image.tar --target \"RTX 5090@575\"
  imagelint plan IMAGE --dockerfile Dockerfile --emit diff | git apply
  imagelint plan IMAGE --dockerfile Dockerfile --emit bake >bake.hcl && docker buildx bake -f bake.hcl
  eval \"$(imagelint plan image.tar --fleet fleet.toml --emit env --fail-on never)\"";

#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub image: ImageArgs,
    /// How to print the plan
    #[arg(long, value_enum, default_value_t = Emit::Text, value_name = "FORM", help_heading = "Report")]
    pub emit: Emit,
    /// Of several tags of the plan, the one to print
    #[arg(long, value_name = "NAME", help_heading = "Report")]
    pub tag: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// For a person
    Text,
    /// `export NAME=value` lines for the build's shell
    Env,
    /// The Dockerfile with the plan in it, or a new one
    Dockerfile,
    /// The change of the Dockerfile, for git apply
    Diff,
    /// A file for docker buildx bake, one target a tag
    Bake,
    /// The plan's part of the report
    Json,
}
