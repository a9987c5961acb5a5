//! Python packages and their indexes: which CUDA they were built for, and for which GPUs.

#[allow(unused_imports)]
use super::{Check, Needs, check};
#[allow(unused_imports)]
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[];
