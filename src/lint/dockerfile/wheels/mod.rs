//! Python packages and their indexes: which CUDA they were built for, and for which GPUs.

mod conda_without_cuda_override;
mod cpu_index_in_gpu_image;
mod ctranslate2_cudnn;
mod extra_index_ambiguous;
mod mixed_cu_suffix;
mod onnxruntime_cuda_major;
mod packages;
mod source;
mod targets;
mod toolkit;
mod torch;
mod torch_index_implicit;
mod torch_replaced_later;
mod torch_stable_html;
mod wheel_above_driver;
mod wheel_index_without_target_arch;
mod wheel_vs_toolkit_when_compiling;

use super::{Check, Needs, check};
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[
    check!(
        conda_without_cuda_override,
        "conda-without-cuda-override",
        Warning,
        File,
        true,
        "conda may take a CPU build, for want of a GPU during the build"
    ),
    check!(
        cpu_index_in_gpu_image,
        "cpu-index-in-gpu-image",
        Warning,
        File,
        true,
        "torch without CUDA on a CUDA base"
    ),
    check!(
        ctranslate2_cudnn,
        "ctranslate2-cudnn",
        Error,
        File,
        true,
        "CTranslate2 for another cuDNN than the image's"
    ),
    check!(
        extra_index_ambiguous,
        "extra-index-ambiguous",
        Warning,
        File,
        false,
        "torch may come from PyPI or from the extra index"
    ),
    check!(mixed_cu_suffix, "mixed-cu-suffix", Error, File, true, "one library's packages for two CUDA majors"),
    check!(
        onnxruntime_cuda_major,
        "onnxruntime-cuda-major",
        Error,
        File,
        true,
        "onnxruntime-gpu for another CUDA than the base's"
    ),
    check!(torch_index_implicit, "torch-index-implicit", Note, File, false, "torch without a version and an index"),
    check!(
        torch_replaced_later,
        "torch-replaced-later",
        Warning,
        File,
        false,
        "a later install takes another torch"
    ),
    check!(torch_stable_html, "torch-stable-html", Note, File, true, "torch from a page of links"),
    check!(
        wheel_above_driver,
        "wheel-above-driver",
        Error,
        Driver,
        true,
        "a wheel for a newer CUDA than the driver's"
    ),
    check!(
        wheel_index_without_target_arch,
        "wheel-index-without-target-arch",
        Error,
        Target,
        true,
        "a torch wheel without code for a target"
    ),
    check!(
        wheel_vs_toolkit_when_compiling,
        "wheel-vs-toolkit-when-compiling",
        Error,
        File,
        true,
        "an extension compiled by another CUDA than torch's"
    ),
];

pub use packages::{Installed, system_cudnn};
pub use targets::with_drivers;
pub use toolkit::{brings_another, name as base_name, of_base};
pub use torch::kept as torches;
pub use wheel_above_driver::{compat_library, drives};
