//! Base images: which CUDA and which system they bring, and whether they can still be pulled.

#[allow(unused_imports)]
use super::{Check, Needs, check};
#[allow(unused_imports)]
use crate::model::Severity;

/// The rules of this folder, by id.
pub const CHECKS: &[Check] = &[];
