//! Python requirements, as command lines and files write them. Nothing is refused: what cannot be read is unsure.

pub mod conda;
pub mod lock;
pub mod pyproject;
pub mod specifier;
pub mod txt;

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifier};

use super::Requirement;

impl Requirement {
    /// The version that `==` (or `===`) names, without `.*`.
    pub fn pinned(&self) -> Option<&str> {
        let (_, version) = self.specifiers.iter().find(|(op, _)| op == "==" || op == "===")?;
        (!version.contains('*')).then_some(version.as_str())
    }

    /// What stands behind the `+` of the pinned version: `cu124`.
    pub fn local(&self) -> Option<&str> {
        self.pinned()?.split_once('+').map(|(_, local)| local)
    }

    /// Whether a version may be installed for it, as PEP 440 compares; none where that is not known.
    pub fn allows(&self, version: &str) -> Option<bool> {
        if self.unsure || (self.url.is_some() && self.specifiers.is_empty()) {
            return None;
        }
        let version = Version::from_str(version).ok()?;
        let mut all = true;
        for (operator, wanted) in &self.specifiers {
            all &= if operator == "===" {
                version.to_string() == *wanted
            } else {
                VersionSpecifier::from_str(&format!("{operator}{wanted}")).ok()?.contains(&version)
            };
        }
        Some(all)
    }
}

/// A name of `--no-binary`, where `:all:` and `:none:` stand for themselves.
pub fn no_binary_name(name: &str) -> String {
    let name = name.trim();
    if name.starts_with(':') { name.to_owned() } else { normal_name(name) }
}

/// A name as PEP 503 compares them: `Flash_Attn` is `flash-attn`.
pub fn normal_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for char in name.chars() {
        if matches!(char, '-' | '_' | '.') {
            if !out.ends_with('-') {
                out.push('-');
            }
        } else {
            out.extend(char.to_lowercase());
        }
    }
    out
}
