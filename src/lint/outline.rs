//! An image whatever its targets: which GPUs each component serves, the driver it asks for, its libraries. For
//! comparing images.

use std::collections::BTreeMap;

use super::{case, libraries, report, roles};
use crate::catalog::Catalog;
use crate::model::{Device, Evidence, Verdict};
use crate::report::{Library, MinDriver, Role};

/// What can be said of an image of one platform without any target.
#[derive(Debug, Clone)]
pub struct Outline {
    /// One per component of the evidence.
    pub components: Vec<Coverage>,
    pub min_driver: Option<MinDriver>,
    pub libraries: Vec<Library>,
}

/// A component on every architecture that the catalog has a GPU of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    pub role: Role,
    /// Its word by its code alone, on a GPU of which nothing else is known; capabilities for which none of its files
    /// counts are absent.
    pub words: BTreeMap<Device, Verdict>,
}

/// `required`: names of components that count as core.
pub fn outline(evidence: &Evidence, required: &[String], catalog: &Catalog) -> Outline {
    let roles = roles::roles(evidence, catalog, required);
    let known = catalog.gpus().devices();
    let row = |(index, role): (usize, &Role)| {
        let word = |device: &Device| {
            let case = case::component(index, *role, evidence, &catalog.bare_host(*device), catalog)?;
            Some((*device, case.verdict))
        };
        Coverage { role: *role, words: known.iter().filter_map(word).collect() }
    };
    Outline {
        components: roles.iter().enumerate().map(row).collect(),
        min_driver: report::min_driver(evidence, &roles, catalog),
        libraries: libraries::rows(evidence, catalog),
    }
}
