//! File names of wheels: `NAME-VERSION(-BUILD)?-PYTHON-ABI-PLATFORM.whl`.

use std::str::FromStr;

use pep440_rs::Version;

use crate::model::package_name;

/// The most tags of one part.
const MAX_TAGS: usize = 64;

/// A wheel's name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelName {
    /// Normalised.
    pub name: String,
    /// Its local part included, `2.7.0+cu128`.
    pub version: Version,
    /// The build tag: its number, and what follows.
    pub build: (u64, String),
    /// `cp312`, `py3`; several where the name compresses them.
    pub pythons: Vec<String>,
    pub abis: Vec<String>,
    pub platforms: Vec<String>,
}

impl WheelName {
    /// `None`: not a wheel's name.
    pub fn parse(filename: &str) -> Option<Self> {
        let stem = filename.strip_suffix(".whl")?;
        let parts: Vec<&str> = stem.split('-').collect();
        let (name, version, build, tags) = match parts[..] {
            [name, version, python, abi, platform] => (name, version, "", [python, abi, platform]),
            [name, version, build, python, abi, platform] if build.starts_with(|c: char| c.is_ascii_digit()) => {
                (name, version, build, [python, abi, platform])
            }
            _ => return None,
        };
        let digits = build.find(|c: char| !c.is_ascii_digit()).unwrap_or(build.len());
        let number = if digits == 0 { 0 } else { build[..digits].parse().ok()? };
        let [pythons, abis, platforms] = tags.map(split);
        let name = Some(package_name(name)).filter(|n| !n.is_empty())?;
        let version = Version::from_str(&version.replace('_', "-")).ok()?;
        let build = (number, build[digits..].to_owned());
        Some(Self { name, version, build, pythons: pythons?, abis: abis?, platforms: platforms? })
    }
}

fn split(tags: &str) -> Option<Vec<String>> {
    let tags: Vec<String> = tags.split('.').map(str::to_ascii_lowercase).collect();
    (tags.len() <= MAX_TAGS && tags.iter().all(|t| !t.is_empty())).then_some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let w = WheelName::parse("torch-2.7.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl").unwrap();
        assert_eq!((w.name.as_str(), w.version.to_string().as_str()), ("torch", "2.7.0+cu128"));
        assert_eq!(w.pythons, ["cp312"]);
        let w = WheelName::parse("Flash_Attn-1.0-12abc-py2.py3-none-manylinux1_x86_64.manylinux2014_x86_64.whl");
        let w = w.unwrap();
        assert_eq!((w.name.as_str(), &w.build), ("flash-attn", &(12, "abc".to_owned())));
        assert_eq!((w.pythons.len(), w.platforms.len()), (2, 2));
        // Underscores stand for what a name cannot have.
        let w = WheelName::parse("a-1.0_1-py3-none-any.whl").unwrap();
        assert_eq!(w.version, Version::from_str("1.0.post1").unwrap());
        for wrong in [
            "a-1.tar.gz",
            "a-1-py3-none.whl",
            "a-1-b-py3-none-any.whl",
            "a-x-py3-none-any.whl",
            "-1-py3-none-any.whl",
            "a-1-py3..py2-none-any.whl",
            "a-1-99999999999999999999-py3-none-any.whl",
            ".whl",
            "",
        ] {
            assert_eq!(WheelName::parse(wrong), None, "{wrong}");
        }
    }
}
