//! What `imagelint fleet` and `imagelint init` take.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ListArgs, plain_format};
use crate::report::Format;

pub(super) const HELP: &str = "\
Prints targets for an imagelint.toml, each with a comment on where it is from. GPUs that cannot be told,
or that this version does not judge, stand in it as comments with the reason; nothing is guessed.

Examples:
  kubectl get nodes -o json | imagelint fleet from-nodes - >fleet.toml
  imagelint fleet from-instances g5.xlarge,p5.48xlarge >fleet.toml
  imagelint fleet from-host >>imagelint.toml
  imagelint fleet preset gke l4@550 a100@550 >fleet.toml
  imagelint scan IMAGE --fleet fleet.toml

Exit status:
  0  there is a target
  2  there is none";

pub(super) const INIT_HELP: &str = "\
Targets come from --nodes, else from this host's GPUs; where there are none, an example stands there as a
comment. What the Dockerfiles' CUDA bases need of a driver is told in comments.

Examples:
  imagelint init
  kubectl get nodes -o json | imagelint init --nodes -";

#[derive(Debug, Args)]
pub struct FleetArgs {
    #[command(subcommand)]
    pub source: FleetSource,
}

#[derive(Debug, Subcommand)]
pub enum FleetSource {
    /// From a cluster's nodes: their labels, capacity and machine types
    FromNodes(FromNodesArgs),
    /// From machine types of AWS, Google Cloud and Azure
    FromInstances(FromInstancesArgs),
    /// From this host's GPUs and driver
    FromHost(FromHostArgs),
    /// With the settings of a platform: for the GPUs that are named, else all it has, as comments
    Preset(PresetArgs),
    /// List the platforms that have a preset
    Presets(ListArgs),
}

#[derive(Debug, Args)]
pub struct FromNodesArgs {
    /// Output of `kubectl get nodes -o json` (or yaml); - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub format: FleetFormat,
}

#[derive(Debug, Args)]
pub struct FromInstancesArgs {
    /// Machine types, parted by commas or blanks; of Google's N1 machines, the accelerator type (nvidia-tesla-t4)
    #[arg(value_name = "TYPE", required = true, value_delimiter = ',')]
    pub types: Vec<String>,
    #[command(flatten)]
    pub format: FleetFormat,
}

#[derive(Debug, Args)]
pub struct FromHostArgs {
    /// Saved output of `nvidia-smi --query-gpu=name,driver_version,compute_cap,mig.mode.current --format=csv,noheader`
    /// of another host; - is standard input
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Folder to read proc and sys from
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "from")]
    pub root: Option<PathBuf>,
    #[command(flatten)]
    pub format: FleetFormat,
}

#[derive(Debug, Args)]
pub struct PresetArgs {
    /// Platform, as `imagelint fleet presets` lists it
    #[arg(value_name = "NAME")]
    pub name: String,
    /// GPUs, and drivers if known, that the targets are to be of
    #[arg(value_name = "GPU[@DRIVER]")]
    pub gpus: Vec<String>,
    #[command(flatten)]
    pub format: FleetFormat,
}

#[derive(Debug, Args)]
pub struct FleetFormat {
    /// Format on standard output: toml or json
    #[arg(long, short, default_value = "toml", value_parser = fleet_format)]
    pub format: Format,
}

/// TOML is what a person reads here, in place of a table.
fn fleet_format(text: &str) -> Result<Format, String> {
    match text {
        "toml" => Ok(Format::Table),
        "table" | "text" => Err("there are toml and json".to_owned()),
        other => plain_format(other).map_err(|_| "there are toml and json".to_owned()),
    }
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Folder to write imagelint.toml into, whose Dockerfiles are looked at
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Output of `kubectl get nodes -o json` (or yaml), to take the targets from; - is standard input
    #[arg(long, value_name = "FILE")]
    pub nodes: Option<PathBuf>,
    /// Write imagelint.schema.json as well, for editors, and name it in the file
    #[arg(long)]
    pub schema: bool,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// Folder to read proc and sys from
    #[arg(long, value_name = "DIR", hide = true)]
    pub root: Option<PathBuf>,
}
