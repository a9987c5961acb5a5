//! Drivers and other things of the host in images, and GPUs asked for while no GPU is there.

mod cuda_metapackage;
mod distro_cuda_toolkit;
mod driver_in_image;
mod fatal;
mod gpu_query_at_build;
mod hosts;
mod python;
mod toolkit_in_image;
mod words;

use super::{Check, Needs, check};
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[
    check!(cuda_metapackage, "cuda-metapackage", Warning, File, true, "A package that brings the driver with CUDA"),
    check!(
        distro_cuda_toolkit,
        "distro-cuda-toolkit",
        Warning,
        File,
        true,
        "The distribution's CUDA toolkit beside NVIDIA's"
    ),
    check!(driver_in_image, "driver-in-image", Error, File, true, "NVIDIA's driver is installed into the image"),
    check!(gpu_query_at_build, "gpu-query-at-build", Error, File, true, "A build step asks for a GPU"),
    check!(
        toolkit_in_image,
        "toolkit-in-image",
        Warning,
        File,
        true,
        "The container toolkit, which belongs on the host, is in the image"
    ),
];
