//! CUDA libraries of the distribution's packages, and where these come from.

#[allow(unused_imports)]
use super::{Check, Needs, check};
#[allow(unused_imports)]
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[];
