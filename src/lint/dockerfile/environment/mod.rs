//! Variables of the image that the container runtime, the loader and CUDA read.

mod capability_missing;
mod compat_forced;
mod driver_capabilities_all;
mod last_stage;
mod ld_path_overwrite;
mod nvidia_env_lost_in_last_stage;
mod nvidia_env_missing_on_plain_base;
mod pairs;
mod require_cuda_inconsistent;
mod require_disabled;
mod stubs_on_runtime_path;
mod versioned_cuda_path;
mod visible_devices_baked;

pub use pairs::removed as pair_removed;

use super::{Check, Needs, check};
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[
    check!(capability_missing, "capability-missing", Warning, File, true, "the driver's libraries are left out"),
    check!(compat_forced, "compat-forced", Warning, Driver, true, "a forward-compat libcuda before the host's"),
    check!(
        driver_capabilities_all,
        "driver-capabilities-all",
        Note,
        File,
        true,
        config,
        "all of the driver's libraries"
    ),
    check!(ld_path_overwrite, "ld-path-overwrite", Warning, File, true, "the base's LD_LIBRARY_PATH is lost"),
    check!(
        nvidia_env_lost_in_last_stage,
        "nvidia-env-lost-in-last-stage",
        Error,
        File,
        true,
        "the last stage does not ask for GPUs, and its builder did"
    ),
    check!(
        nvidia_env_missing_on_plain_base,
        "nvidia-env-missing-on-plain-base",
        Note,
        File,
        false,
        "nothing in the image asks for GPUs"
    ),
    check!(
        require_cuda_inconsistent,
        "require-cuda-inconsistent",
        Warning,
        File,
        true,
        "NVIDIA_REQUIRE_CUDA asks for another CUDA than the image's"
    ),
    check!(
        require_disabled,
        "require-disabled",
        Warning,
        File,
        true,
        config,
        "the check of the driver is switched off"
    ),
    check!(
        stubs_on_runtime_path,
        "stubs-on-runtime-path",
        Error,
        File,
        true,
        "a stub of libcuda before the driver"
    ),
    check!(versioned_cuda_path, "versioned-cuda-path", Note, File, true, "a folder that goes with the next base"),
    check!(
        visible_devices_baked,
        "visible-devices-baked",
        Warning,
        File,
        true,
        "the choice of GPUs is in the image"
    ),
];
