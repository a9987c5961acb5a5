//! Base images: which CUDA and which system they bring, and whether they can still be pulled.

mod cuda_tag_latest;
mod cuda_tag_no_patch;
mod cuda_tag_removed;
mod eol_distro;
mod from;
mod unresolvable_base;

use super::{Check, Needs, check};
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[
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
    check!(eol_distro, "eol-distro", Warning, File, true, "The base's distribution is no longer mended"),
    check!(
        unresolvable_base,
        "unresolvable-base",
        Note,
        File,
        true,
        "The base image is known only to those who pass build arguments"
    ),
];
