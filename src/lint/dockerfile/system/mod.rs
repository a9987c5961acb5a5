//! CUDA libraries of the distribution's packages, and where these come from.

mod apt_and_wheel_duplicate;
mod apt_cuda_vs_base;
mod cudnn_nccl_unpinned;
mod old_cuda_key;
mod old_ml_repo;

use super::{Check, Needs, check};
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[
    check!(
        apt_and_wheel_duplicate,
        "apt-and-wheel-duplicate",
        Note,
        File,
        true,
        "A library comes from the distribution's package and from a Python wheel"
    ),
    check!(
        apt_cuda_vs_base,
        "apt-cuda-vs-base",
        Warning,
        File,
        true,
        "A package of another CUDA than the base image's"
    ),
    check!(
        cudnn_nccl_unpinned,
        "cudnn-nccl-unpinned",
        Note,
        File,
        true,
        "A package that moves to another CUDA by itself, without a version"
    ),
    check!(old_cuda_key, "old-cuda-key", Error, File, true, "The withdrawn key of NVIDIA's package repositories"),
    check!(
        old_ml_repo,
        "old-ml-repo",
        Warning,
        File,
        true,
        "NVIDIA's machine-learning repository, which is retired"
    ),
];
