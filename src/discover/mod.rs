//! Which GPUs and drivers there are: read from a cluster's nodes, from machine types, from a host's own files, and
//! grouped into targets. Nothing is guessed: what does not say what it is stands apart, with the reason. And the way
//! back: by which labels a scheduler finds the nodes of a target.

pub mod affinity;
pub mod csv;
mod group;
pub mod host;
mod keys;
mod labels;
mod nodes;
mod other;
mod product;
pub mod toml;

use serde::Serialize;

pub use group::{group, one};
pub use nodes::{NodesError, machines as nodes};
pub use product::{Product, product};

use crate::catalog::Catalog;
use crate::model::{Platform, Runtime, Start, Virtualisation};

/// Several containers on one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    TimeSlicing,
    Mps,
    /// Shared, and nothing says how.
    Shared,
}

/// What targets are told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// As the catalog names it: a product, or `sm_90`.
    pub gpu: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub runtime: Runtime,
    #[serde(skip_serializing_if = "is_default")]
    pub start: Start,
    #[serde(skip_serializing_if = "is_default")]
    pub virtualisation: Virtualisation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

impl Kind {
    pub fn of(gpu: impl Into<String>) -> Self {
        Self {
            gpu: gpu.into(),
            driver: None,
            runtime: Runtime::default(),
            start: Start::default(),
            virtualisation: Virtualisation::default(),
            sharing: None,
            platform: None,
        }
    }
}

/// What one machine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// GPUs that can be judged. Remarks tell where from, and what is to be known.
    Gpu { kind: Kind, remarks: Vec<String> },
    /// GPUs that cannot be judged, or of which too little is known.
    LeftOut(Left),
}

/// GPUs that become no target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Left {
    /// "nvidia.com/gpu: 8", "AMD device 74ff".
    pub what: String,
    pub why: String,
    /// What a row for them would say, once it can be judged or a person knows the product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
}

/// One machine, with all kinds of GPUs in it; none: it has no GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub name: String,
    pub seen: Vec<Seen>,
}

/// A target that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundTarget {
    pub name: String,
    #[serde(flatten)]
    pub kind: Kind,
    /// Names of the machines, sorted.
    pub machines: Vec<String>,
    /// Where it is from, and what is to be known; sorted.
    pub remarks: Vec<String>,
}

/// GPUs that became no target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundLeft {
    #[serde(flatten)]
    pub left: Left,
    pub machines: Vec<String>,
}

/// All that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// By name.
    pub targets: Vec<FoundTarget>,
    pub left_out: Vec<FoundLeft>,
    /// Machines that have no GPU.
    pub without_gpu: usize,
}

impl Found {
    /// Whether there is neither a target nor anything that may become one.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty() && self.left_out.is_empty()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A GPU that the catalog can judge, or why it cannot, with the words that a row would have.
fn judged(catalog: &Catalog, product: &str) -> Result<String, Left> {
    match catalog.gpu(product) {
        Ok(found) => Ok(found.name()),
        Err(error) => Err(Left { what: product.to_owned(), why: error.to_string(), gpu: None }),
    }
}
