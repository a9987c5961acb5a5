//! Drivers, container toolkits and GPU queries in a build.

#[allow(unused_imports)]
use super::{Check, Needs, check};
#[allow(unused_imports)]
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[];
