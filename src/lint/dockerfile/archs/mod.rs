//! Lists of architectures that extensions are compiled for.

mod arch_list_bloat;
mod arch_list_misses_target;
mod arch_native;
mod arch_set_after_use;
mod arch_specific_suffix;
mod arch_syntax;
mod arch_unknown_to_toolkit;
mod arch_vars_disagree;
mod ext_build_without_arch_list;
mod force_cuda_missing;
mod jobs_unbounded;
mod lists;
mod no_ptx_tail;
mod toolkit;

pub use lists::{Archs, fit, write as write_list};
pub use toolkit::in_force;

use super::{Check, Needs, check};
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[
    check!(
        arch_list_bloat,
        "arch-list-bloat",
        Note,
        Target,
        true,
        "a list of architectures compiles for many GPUs that the targets are not"
    ),
    check!(
        arch_list_misses_target,
        "arch-list-misses-target",
        Error,
        Target,
        true,
        "a list of architectures to compile for leaves a target's GPU out"
    ),
    check!(
        arch_native,
        "arch-native",
        Warning,
        File,
        true,
        "device code is to be compiled for the GPU of the building machine, which sees none"
    ),
    check!(
        arch_set_after_use,
        "arch-set-after-use",
        Error,
        File,
        true,
        "a list of architectures is set where the build that wants it does not see it"
    ),
    check!(
        arch_specific_suffix,
        "arch-specific-suffix",
        Warning,
        Target,
        true,
        "code for one capability alone (9.0a) where a target needs the plain one's"
    ),
    check!(
        arch_syntax,
        "arch-syntax",
        Error,
        File,
        true,
        "a list of architectures is not written as its reader takes it"
    ),
    check!(
        arch_unknown_to_toolkit,
        "arch-unknown-to-toolkit",
        Error,
        File,
        true,
        "a list names an architecture that the stage's CUDA toolkit cannot compile for"
    ),
    check!(
        arch_vars_disagree,
        "arch-vars-disagree",
        Warning,
        File,
        true,
        "two variables of a stage name different GPUs to compile for"
    ),
    check!(
        ext_build_without_arch_list,
        "ext-build-without-arch-list",
        Warning,
        File,
        true,
        "device code is compiled without being told for which GPUs"
    ),
    check!(
        force_cuda_missing,
        "force-cuda-missing",
        Warning,
        File,
        true,
        "an extension leaves its device code out where it sees no GPU and is not told to build it"
    ),
    check!(
        jobs_unbounded,
        "jobs-unbounded",
        Note,
        File,
        false,
        "a build of many kernels starts as many compilers as there are cores"
    ),
    check!(
        no_ptx_tail,
        "no-ptx-tail",
        Note,
        File,
        true,
        "a list of machine code alone leaves later GPUs nothing to compile"
    ),
];
