//! AMD's and Intel's GPUs.

mod dkms_in_image;
mod hsa_override_baked;
mod intel_gpu_runtime_missing;
mod rocm_arch_misses_target;
mod rocm_wheel_vs_base;

use super::{Check, Needs, check};
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[
    check!(dkms_in_image, "dkms-in-image", Warning, File, true, "AMD's kernel module is built into the image"),
    check!(
        hsa_override_baked,
        "hsa-override-baked",
        Warning,
        File,
        true,
        "the image tells ROCm to take every GPU for another one"
    ),
    check!(
        intel_gpu_runtime_missing,
        "intel-gpu-runtime-missing",
        Warning,
        File,
        false,
        "PyTorch for Intel's GPUs without their runtime"
    ),
    check!(
        rocm_arch_misses_target,
        "rocm-arch-misses-target",
        Error,
        AmdTarget,
        true,
        "a list of AMD's architectures leaves out a target"
    ),
    check!(
        rocm_wheel_vs_base,
        "rocm-wheel-vs-base",
        Warning,
        File,
        true,
        "PyTorch's wheels are of another ROCm than the base that extensions are compiled with"
    ),
];
