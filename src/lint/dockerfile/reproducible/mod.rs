//! Builds that come out otherwise tomorrow.

mod git_clone_unpinned_cuda_ext;
mod nightly_index_unpinned;

use super::{Check, Needs, check};
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[
    check!(
        git_clone_unpinned_cuda_ext,
        "git-clone-unpinned-cuda-ext",
        Note,
        File,
        true,
        "device code from whatever branch is there"
    ),
    check!(nightly_index_unpinned, "nightly-index-unpinned", Warning, File, true, "torch of the day"),
];
