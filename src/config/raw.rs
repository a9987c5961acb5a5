//! `imagelint.toml` as it is typed: every value with its place, nothing checked beyond types and keys. The schema for
//! editors is made of these types, and their comments are what an editor shows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::fleet::Level;
use crate::model::{GpuClass, Runtime, Start, Virtualisation};

type Text = Spanned<String>;

/// What images and Dockerfiles are judged for, and how strictly.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "imagelint.toml")]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The fleet: one for each kind of machine.
    #[serde(default)]
    #[schemars(with = "Vec<Target>")]
    pub target: Vec<Spanned<Target>>,
    #[serde(default)]
    pub components: Components,
    /// Levels of rules, by id; `imagelint rules` lists them.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Level>")]
    pub rules: BTreeMap<Text, Level>,
    /// Findings that are accepted.
    #[serde(default)]
    #[schemars(with = "Vec<Waiver>")]
    pub waiver: Vec<Spanned<Waiver>>,
}

/// One kind of machine: a GPU, its driver, and how a container gets it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    /// What reports call it, unlike all others; without one, made of GPU and driver.
    #[schemars(with = "Option<String>")]
    pub name: Option<Text>,
    /// A product, an alias, nvidia-smi's name, a GPU Feature Discovery label, or an architecture: "A100", "MI300X",
    /// "sm_80", "gfx942", "pvc".
    #[schemars(with = "String")]
    pub gpu: Option<Text>,
    /// A version ("535.183.01"; of AMD amdgpu's, "6.3" or "30.30.3"), a branch ("535") or a range (">=535.54, <570"), whose lowest decides.
    #[schemars(with = "Option<String>")]
    pub driver: Option<Text>,
    #[serde(default)]
    pub runtime: Runtime,
    #[serde(default)]
    pub start: Start,
    #[serde(default)]
    pub virtualisation: Virtualisation,
    /// NVML's brand of the GPU, in place of the catalog's, for NVIDIA_REQUIRE conditions.
    #[schemars(with = "Option<String>")]
    pub brand: Option<Text>,
    /// The host's platform, in place of the product's: "linux/amd64".
    #[schemars(with = "Option<String>")]
    pub platform: Option<Text>,
    /// The product's class, in place of the catalog's.
    pub class: Option<GpuClass>,
    /// False: reported, never fails. By default true.
    pub required: Option<bool>,
}

/// What counts as core.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Components {
    /// Components whose failing is the image's, as a framework's is.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub required: Vec<Text>,
}

/// A finding that is accepted: which, why, and until when.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Waiver {
    /// The rule's id.
    #[schemars(with = "String")]
    pub rule: Option<Text>,
    /// Glob over paths in the image: `*` stays within a folder, `**` does not.
    #[schemars(with = "Option<String>")]
    pub path: Option<Text>,
    /// The component's name.
    #[schemars(with = "Option<String>")]
    pub component: Option<Text>,
    /// Names of targets; without it, all.
    #[schemars(with = "Option<Vec<String>>")]
    pub targets: Option<Vec<Text>>,
    /// Why it is accepted.
    #[schemars(with = "String")]
    pub reason: Option<Text>,
    /// The last day it holds, as YYYY-MM-DD.
    #[schemars(with = "String")]
    pub expires: Option<Text>,
}
