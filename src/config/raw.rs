//! `imagelint.toml` as it is typed: every value with its place, nothing checked beyond types and keys.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

use super::fleet::Level;
use crate::model::{GpuClass, Runtime, Start, Virtualisation};

type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub target: Vec<Spanned<Target>>,
    #[serde(default)]
    pub components: Components,
    #[serde(default)]
    pub rules: BTreeMap<Text, Level>,
    #[serde(default)]
    pub waiver: Vec<Spanned<Waiver>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    pub name: Option<Text>,
    pub gpu: Option<Text>,
    pub driver: Option<Text>,
    #[serde(default)]
    pub runtime: Runtime,
    #[serde(default)]
    pub start: Start,
    #[serde(default)]
    pub virtualisation: Virtualisation,
    pub brand: Option<Text>,
    pub platform: Option<Text>,
    pub class: Option<GpuClass>,
    pub required: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Components {
    #[serde(default)]
    pub required: Vec<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Waiver {
    pub rule: Option<Text>,
    pub path: Option<Text>,
    pub component: Option<Text>,
    pub targets: Option<Vec<Text>>,
    pub reason: Option<Text>,
    pub expires: Option<Text>,
}
