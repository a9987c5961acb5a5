//! Linked libraries, compilers and versions: what the report lists of them, and what is wrong with them on any
//! target.

mod agree;
mod cpu_build;
mod missing;
mod reach;
mod rows;
mod sets;
mod unmet;
pub mod versions;

use crate::catalog::Catalog;
use crate::lint::{Problem, compilers, driver_files};
use crate::model::Evidence;
use crate::report::Role;

pub use rows::{compilers as compiler_rows, rows};
pub use sets::is_stub;

/// What is wrong with an image's libraries on any target.
pub fn problems(evidence: &Evidence, roles: &[Role], catalog: &Catalog) -> Vec<Problem> {
    if evidence.image.alone {
        return Vec::new();
    }
    let reach = reach::Reach::new(evidence, roles, catalog);
    let mut out = missing::problems(evidence, roles, &reach, catalog);
    out.extend(unmet::problems(evidence, roles, &reach, catalog));
    out.extend(sets::mixed(evidence, &reach, catalog));
    out.extend(sets::shadowed(evidence, &reach, catalog));
    out.extend(cpu_build::problems(evidence, roles, catalog));
    out.extend(agree::problems(evidence, catalog));
    out.extend(driver_files::stubs(evidence));
    out.extend(compilers::missing(evidence, catalog));
    out
}

#[cfg(test)]
mod tests;
