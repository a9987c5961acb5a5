//! Components across the fleet: what every matrix shows.

use std::collections::HashMap;

use super::{ComponentReport, Role, TargetReport};

/// A component in one version.
pub(super) struct ComponentRow<'a> {
    pub name: &'a str,
    pub version: Option<&'a str>,
    pub role: Role,
    /// By target: what was judged of it. The same version may be installed twice; targets of other platforms may have
    /// none.
    pub cells: Vec<Vec<&'a ComponentReport>>,
}

impl ComponentRow<'_> {
    pub fn label(&self) -> String {
        label(self.name, self.version)
    }
}

/// `torch 2.7.0`, as it is named.
pub(super) fn label(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
}

/// One row per component, in the order that targets name them.
pub(super) fn rows<'a>(fleet: &[&'a TargetReport]) -> Vec<ComponentRow<'a>> {
    let mut rows: Vec<ComponentRow<'a>> = Vec::new();
    let mut places = HashMap::new();
    for (column, target) in fleet.iter().enumerate() {
        for component in &target.components {
            let (name, version) = (component.name.as_str(), component.version.as_deref());
            let place = *places.entry((name, version)).or_insert_with(|| {
                rows.push(ComponentRow {
                    name,
                    version,
                    role: component.role,
                    cells: vec![Vec::new(); fleet.len()],
                });
                rows.len() - 1
            });
            rows[place].cells[column].push(component);
            rows[place].role = rows[place].role.min(component.role);
        }
    }
    rows
}
