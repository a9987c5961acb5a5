//! What changed between two images: what `imagelint diff --format json` prints, and what the table renders. The JSON
//! schema (`rules/diff.schema.json`) is generated from these types.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::{MinDriver, Role, Style, Tool, diff_table};
use crate::model::{Arch, Device, Digest, Form, Gap, ImagePath, Manager, Platform, ToolkitKind, Verdict};

/// The whole report. Lists hold what differs, and are empty where nothing does.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiffReport {
    /// Version of this schema: 1.
    pub schema: u32,
    pub tool: Tool,
    pub old: Side,
    pub new: Side,
    /// Nothing that is compared differs; layers and sizes may.
    pub equal: bool,
    /// What keeps the question from being answered: an image that was not read whole, a core component or a target
    /// that could not be decided.
    pub undecided: Vec<String>,
    /// What `--fail-on-loss` fails on: with targets, verdicts that got worse; without, coverage that a core component
    /// lost, and a driver floor that rose.
    pub losses: Vec<Loss>,
    /// All targets, changed or not; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<TargetChange>>,
    /// Components with device code.
    pub components: Vec<ComponentChange>,
    /// The oldest driver that carries each; absent where it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_driver: Option<FloorChange>,
    /// NVIDIA's libraries, by name.
    pub libraries: Vec<LibraryChange>,
    pub packages: Vec<PackageChange>,
    pub toolkits: Vec<ToolkitChange>,
    pub environment: Vec<VariableChange>,
    /// Entrypoint, command, user, working directory.
    pub settings: Vec<SettingChange>,
    pub size: SizeChange,
    pub layers: Layers,
    /// What of either could not be read.
    pub gaps: Vec<SideGap>,
}

/// One of the two images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Side {
    pub reference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Stored bytes of all layers.
    pub size: u64,
    pub layers: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Loss {
    pub kind: LossKind,
    /// The target or component; empty for the driver's floor.
    pub subject: String,
    /// One line.
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// A required target's verdict got worse.
    Verdict,
    /// A core component serves a capability worse than before, or is gone.
    Coverage,
    /// The image needs a newer driver.
    DriverFloor,
}

/// A target's verdict on each image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TargetChange {
    pub name: String,
    pub gpu: String,
    pub arch: Arch,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// False: reported, never a loss.
    pub required: bool,
    pub old: Verdict,
    pub new: Verdict,
    pub old_why: String,
    pub new_why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Removed,
    Changed,
    Added,
}

/// A component that has device code in one of the images at least.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ComponentChange {
    pub change: Kind,
    /// As the new image calls it; of one that is gone, the old.
    pub name: String,
    /// As the old image called it, where that differs: `nvidia-cublas-cu12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_name: Option<String>,
    /// The higher of its roles.
    pub role: Role,
    /// Where it is installed.
    pub root: ImagePath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_root: Option<ImagePath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_version: Option<String>,
    /// Stored bytes of device code.
    pub old_bytes: u64,
    pub new_bytes: u64,
    /// Code that is there no more, and code that was not. Suffixes count: `sm_90a` is not `sm_90`.
    pub lost: Vec<ArchChange>,
    pub won: Vec<ArchChange>,
    /// Code that both have, in fewer or more modules, where that matters for a capability: torch 2.8 keeps `sm_50` in
    /// one of its libraries.
    pub fewer: Vec<CountChange>,
    pub more: Vec<CountChange>,
    /// Capabilities that it serves worse, or better, by machine code, PTX and families, whatever the driver.
    pub served_worse: Vec<ServedChange>,
    pub served_better: Vec<ServedChange>,
}

/// Loadable device code of one architecture.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct ArchChange {
    pub arch: Arch,
    pub form: Form,
    /// Of the capabilities that it serves, those that the component serves worse without it (or, of code that was won,
    /// better with it). Empty: other code serves all of them as well.
    pub matters_for: Vec<Device>,
    /// Of code that was lost: what the component has now for the capability that it was made for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<Code>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Code {
    pub arch: Arch,
    pub form: Form,
}

/// Modules that have loadable code of one architecture.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct CountChange {
    pub arch: Arch,
    pub form: Form,
    pub old: u64,
    pub new: u64,
    /// Of the capabilities that it serves, those that the component serves worse, or better.
    pub matters_for: Vec<Device>,
}

/// What a component is on a GPU of that capability of which nothing else is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServedChange {
    pub capability: Device,
    /// Absent: it has no code there, not even for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Verdict>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FloorChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<MinDriver>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<MinDriver>,
    /// Drivers that carried the old image do not carry the new.
    pub raised: bool,
}

/// One of NVIDIA's libraries, whatever its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LibraryChange {
    pub change: Kind,
    /// `libcublas`.
    pub name: String,
    pub old: Vec<LibraryVersion>,
    pub new: Vec<LibraryVersion>,
    /// Programs that are linked with the old will not find the new: the numbers in the SONAMEs differ.
    pub other_soname: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct LibraryVersion {
    /// `libcublas.so.12`; the file's name where it has none.
    pub soname: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PackageChange {
    pub change: Kind,
    pub manager: Manager,
    pub name: String,
    /// As the old image called it, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_name: Option<String>,
    /// Several, where it is installed more than once; empty where none says its version.
    pub old: Vec<String>,
    pub new: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolkitChange {
    pub change: Kind,
    pub path: ImagePath,
    pub kind: ToolkitKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// A variable of the image's environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VariableChange {
    pub change: Kind,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The values look secret and are not shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SettingChange {
    /// `entrypoint`, `cmd`, `user`, `working_dir`.
    pub name: String,
    /// Words; those that look secret are not shown.
    pub old: Vec<String>,
    pub new: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SizeChange {
    /// Stored bytes of all layers.
    pub old: u64,
    pub new: u64,
    /// Stored bytes of device code, as its files hold it.
    pub old_device_code: u64,
    pub new_device_code: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Layers {
    pub old: usize,
    pub new: usize,
    /// Layers that both have.
    pub shared: usize,
    /// Their stored bytes, in the new image.
    pub shared_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SideGap {
    /// Whether it is the new image's.
    pub new: bool,
    #[serde(flatten)]
    pub gap: Gap,
}

impl DiffReport {
    /// Writes it as a table or as JSON; no other format tells differences.
    pub fn write(&self, json: bool, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        if !json {
            return out.write_all(diff_table::render(self, style).as_bytes());
        }
        serde_json::to_writer_pretty(&mut *out, self)?;
        out.write_all(b"\n")
    }
}
