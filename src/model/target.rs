//! What an image is judged against.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Capability, Device, DriverVersion, Maker, Platform};

/// The class of a GPU product; forward compatibility depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GpuClass {
    Datacenter,
    Workstation,
    Consumer,
    Embedded,
}

/// How the host gives the container its GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// NVIDIA container toolkit, mode unknown.
    #[default]
    Toolkit,
    Legacy,
    Cdi,
    Gke,
    Wsl,
    Tegra,
}

impl Runtime {
    /// As the fleet file has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Toolkit => "toolkit",
            Self::Legacy => "legacy",
            Self::Cdi => "cdi",
            Self::Gke => "gke",
            Self::Wsl => "wsl",
            Self::Tegra => "tegra",
        }
    }

    /// Whether it runs ldconfig in the container before the program starts.
    pub fn runs_ldconfig(self) -> bool {
        match self {
            Self::Toolkit | Self::Legacy | Self::Cdi | Self::Wsl | Self::Tegra => true,
            Self::Gke => false,
        }
    }
}

/// What asks for the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// `--gpus`, a device plugin.
    #[default]
    Gpus,
    /// The nvidia runtime; the image's variables decide.
    Env,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Virtualisation {
    #[default]
    None,
    Mig,
    Vgpu,
    Passthrough,
}

impl Start {
    /// As the fleet file has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gpus => "gpus",
            Self::Env => "env",
        }
    }
}

impl Virtualisation {
    /// As the fleet file has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mig => "mig",
            Self::Vgpu => "vgpu",
            Self::Passthrough => "passthrough",
        }
    }
}

impl fmt::Display for Virtualisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Mig => "MIG",
            Self::Vgpu => "vGPU",
            Self::Passthrough => "passthrough",
        })
    }
}

/// Drivers of a target: one version, a whole branch, or a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverRange {
    /// The lowest driver inside, which decides: newer drivers run all that older ones run.
    pub lowest: DriverVersion,
    /// Exclusive upper bound, where one was given.
    pub below: Option<DriverVersion>,
    /// As the user wrote it.
    pub text: String,
}

impl fmt::Display for DriverRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One kind of machine of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub name: String,
    /// As shown: the catalog's product name, or `sm_90`, `gfx942` for a bare architecture.
    pub gpu: String,
    pub device: Device,
    pub driver: Option<DriverRange>,
    pub class: Option<GpuClass>,
    /// NVML's brand as the fleet gives it; without one, the catalog says what it may be.
    pub brand: Option<String>,
    pub runtime: Runtime,
    pub start: Start,
    pub virtualisation: Virtualisation,
    /// Platforms of the host; empty when nothing is known (a bare architecture).
    pub platforms: Vec<Platform>,
    /// False: reported, never gates.
    pub required: bool,
    /// Catalog row the GPU came from, with its source and trust.
    pub because: String,
}

impl Target {
    /// NVIDIA's compute capability; `None`: a GPU of another maker.
    pub fn capability(&self) -> Option<Capability> {
        self.device.capability()
    }

    pub fn maker(&self) -> Maker {
        self.device.maker()
    }

    /// "RTX 5090 (12.0)": as messages name it.
    pub fn label(&self) -> String {
        let device = self.device.to_string();
        let bare = self.gpu == self.device.arch().to_string() || self.gpu == device;
        let how = match self.virtualisation {
            Virtualisation::None => String::new(),
            other => format!(", {other}"),
        };
        match (bare, how.is_empty()) {
            (true, true) => self.gpu.clone(),
            (true, false) => format!("{} ({})", self.gpu, how.trim_start_matches(", ")),
            (false, _) => format!("{} ({device}{how})", self.gpu),
        }
    }
}
