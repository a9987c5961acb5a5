//! Base images: which CUDA and which system they bring, and whether they can still be pulled.

mod base_cuda_above_driver;
mod base_without_target_arch;
mod cuda_tag_latest;
mod cuda_tag_no_patch;
mod cuda_tag_removed;
mod cudnn_flavour_mismatch;
mod devel_in_final_stage;
mod eol_distro;
mod from;
mod gate;
mod runtime_lib_lost_in_copy;
mod unresolvable_base;

use super::{Check, Needs, check};
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[
    check!(
        base_cuda_above_driver,
        "base-cuda-above-driver",
        Error,
        Driver,
        true,
        "A target's driver is too old for the base image's CUDA"
    ),
    check!(
        base_without_target_arch,
        "base-without-target-arch",
        Error,
        Target,
        true,
        "The base image's toolkit cannot compile for a target"
    ),
    check!(cuda_tag_latest, "cuda-tag-latest", Error, File, true, "`nvidia/cuda` has no tag `latest`"),
    check!(
        cuda_tag_no_patch,
        "cuda-tag-no-patch",
        Warning,
        File,
        true,
        "A tag of `nvidia/cuda` without CUDA's patch level"
    ),
    check!(cuda_tag_removed, "cuda-tag-removed", Error, File, true, "A tag of `nvidia/cuda` that was deleted"),
    check!(
        cudnn_flavour_mismatch,
        "cudnn-flavour-mismatch",
        Warning,
        File,
        true,
        "The base has another cuDNN, or none, than a package loads"
    ),
    check!(
        devel_in_final_stage,
        "devel-in-final-stage",
        Note,
        File,
        true,
        "The image keeps a compiler that nothing is seen to need"
    ),
    check!(eol_distro, "eol-distro", Warning, File, true, "The base's distribution is no longer mended"),
    check!(
        runtime_lib_lost_in_copy,
        "runtime-lib-lost-in-copy",
        Warning,
        File,
        false,
        "Programs built with CUDA are copied into an image without its libraries"
    ),
    check!(
        unresolvable_base,
        "unresolvable-base",
        Note,
        File,
        true,
        "The base image is known only to those who pass build arguments"
    ),
];
