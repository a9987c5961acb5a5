//! Why there is no fleet.

use crate::discover::NodesError;

#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("{place}: {source}")]
    Nodes { place: String, source: NodesError },
    #[error("{place}: larger than {most} MiB")]
    TooLarge { place: String, most: u64 },
    #[error("{place}: {nodes} nodes, and none of them has a GPU")]
    NoGpuInNodes { place: String, nodes: usize },
    #[error("no GPU here: neither nvidia-smi nor the kernel's /proc/driver/nvidia, KFD or DRM shows one")]
    NoGpuHere,
    #[error(
        "{place}: no line is of the form that nvidia-smi prints: name, driver version, compute capability, MIG mode"
    )]
    NoAnswer { place: String },
    #[error("no target: this version judges none of the GPUs that were found")]
    NoTarget,
    #[error("`{text}` is no machine type with a GPU that the catalog knows{}", did_you_mean(near))]
    Instance { text: String, near: Vec<String> },
    #[error("no machine type is named")]
    NoInstance,
    #[error("there is no preset `{name}`")]
    Preset { name: String, near: Option<String> },
    #[error("{0} is there already")]
    Exists(String),
}

fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!("; did you mean {}?", near.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")),
    }
}

impl FleetError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Nodes { .. } => Some("the output of kubectl get nodes -o json".into()),
            Self::NoGpuHere => {
                Some("imagelint fleet from-host --from FILE with a GPU host's answer, or from-nodes, from-instances".into())
            }
            Self::NoAnswer { .. } => Some(
                "the output of nvidia-smi --query-gpu=name,driver_version,compute_cap,mig.mode.current --format=csv,noheader"
                    .into(),
            ),
            Self::Preset { near: Some(near), .. } => Some(format!("imagelint fleet preset {near}")),
            Self::Preset { near: None, .. } => Some("imagelint fleet presets, which lists all".into()),
            Self::Instance { near, .. } if near.is_empty() => {
                Some("naming its GPU: imagelint gpus lists them, --target GPU[@DRIVER] takes one".into())
            }
            Self::NoInstance => Some("imagelint fleet from-instances g5.xlarge".into()),
            Self::Exists(_) => Some("--force, which replaces it".into()),
            Self::TooLarge { .. } | Self::NoGpuInNodes { .. } | Self::NoTarget | Self::Instance { .. } => None,
        }
    }
}
