//! Compilers that run where the image runs, toolkits, and what files claim about versions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CudaVersion, ImagePath, SmArch};

/// A compiler or linker of device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    Nvcc,
    Ptxas,
    Nvlink,
    Nvrtc,
    /// libnvJitLink.
    Nvjitlink,
}

/// What the bytes of a compiler say about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFacts {
    pub kind: ToolKind,
    /// The CUDA release it is of.
    pub cuda: Option<CudaVersion>,
    /// The newest target that stands in its strings; not every tool keeps them readable.
    pub newest: Option<SmArch>,
}

/// Whose development kit or runtime it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolkitKind {
    #[default]
    Cuda,
    /// AMD's ROCm.
    Rocm,
    /// Intel's oneAPI: the SYCL compiler or its runtime.
    Oneapi,
}

impl ToolkitKind {
    /// As its maker writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDA",
            Self::Rocm => "ROCm",
            Self::Oneapi => "oneAPI",
        }
    }
}

/// A toolkit, or part of one, installed in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Toolkit {
    /// `usr/local/cuda-12.8`, `opt/rocm-6.4.1`.
    pub path: ImagePath,
    #[serde(default)]
    pub kind: ToolkitKind,
    /// As it names itself, `12.8.1`.
    pub version: String,
    /// The file that says so.
    pub said_by: ImagePath,
}

/// What a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// The CUDA release that something was built with, `12.8`.
    Cuda,
    /// The cuDNN release that something was built with or wants, `9` or `9.7.1`.
    Cudnn,
    /// Built for AMD: the ROCm release.
    Rocm,
    /// Built for Intel: the SYCL compiler's release, `20250301`.
    Xpu,
    /// Built without any GPU.
    CpuOnly,
}

/// Something a file of a component says about how the component was built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// Name of the component, as in the evidence's components or packages.
    pub component: String,
    pub kind: ClaimKind,
    pub value: String,
    pub said_by: ImagePath,
}

/// The C library whose loader starts programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Libc {
    /// With its newest symbol version, `2.36`.
    Glibc {
        path: ImagePath,
        version: Option<String>,
    },
    Musl {
        path: ImagePath,
    },
}

/// State of `etc/ld.so.cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LdCache {
    #[default]
    Absent,
    Fresh,
    /// ldconfig would write another one.
    Stale,
    Unreadable,
}
