//! Lists of architectures that extensions are compiled for.

#[allow(unused_imports)]
use super::{Check, Needs, check};
#[allow(unused_imports)]
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[];
