//! Rules of Dockerfiles: what a file asks for, held against the fleet and the tables.
//!
//! One file a rule: a function over [`Lint`] that pushes what it [`Found`]. It never opens a file. Of what is not
//! known it makes no error: [`Found::error`] is for values that are [`Value::Known`](crate::dockerfile::value::Value).

mod found;

pub use found::{Fix, Found};

use crate::catalog::Catalog;
use crate::dockerfile::commands::Asks;
use crate::dockerfile::reading::Reading;
use crate::model::{Evidence, Severity, Target};

/// What a rule may look at.
pub struct Lint<'a> {
    pub reading: &'a Reading,
    /// What installers were asked for.
    pub asks: &'a Asks,
    /// The fleet; empty where none was named.
    pub targets: &'a [Target],
    pub catalog: &'a Catalog,
    /// The image that the file made, where it was scanned.
    pub image: Option<&'a Evidence>,
}

/// What a rule cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The file alone.
    File,
    /// GPUs to run on.
    Target,
    /// GPUs with their drivers.
    Driver,
    /// The image, scanned.
    Image,
}

/// One rule of Dockerfiles.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Kebab-case, names the problem.
    pub id: &'static str,
    /// At its worst.
    pub severity: Severity,
    pub needs: Needs,
    /// Whether it speaks without being asked for (`[rules]` of imagelint.toml, `--rule`).
    pub on: bool,
    pub summary: &'static str,
    /// Markdown: what, why, example, fix, limits.
    pub page: &'static str,
    pub run: fn(&Lint<'_>, &mut Vec<Found>),
}
