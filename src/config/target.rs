//! `--target GPU[@DRIVER]`: a fleet of one line.

use crate::catalog::Catalog;
use crate::catalog::lookup::{FoundGpu, GpuError};
use crate::model::{DriverRange, Runtime, Start, Target, Virtualisation};

use super::driver::{DriverRangeError, parse_driver};

/// Why a `--target` could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    #[error("--target {text}: {source}")]
    Gpu { text: String, source: GpuError },
    #[error("--target {text}: {source}")]
    Driver { text: String, source: Box<DriverRangeError> },
    #[error("--target {text} is given twice")]
    Twice { text: String },
}

/// Parses `GPU[@DRIVER]`: "RTX 5090@575", "a100@535", "h100@>=535.54, <570", "Jetson Thor".
pub fn parse_target(text: &str, catalog: &Catalog) -> Result<Target, TargetError> {
    let (gpu, driver) = match text.split_once('@') {
        Some((gpu, driver)) => (gpu, Some(driver)),
        None => (text, None),
    };
    let found = catalog.gpu(gpu).map_err(|source| TargetError::Gpu { text: text.to_owned(), source })?;
    let driver = driver.map(|driver| parse_driver(driver, found.device.maker())).transpose();
    let driver = driver.map_err(|e| TargetError::Driver { text: text.to_owned(), source: Box::new(e) })?;
    Ok(of_gpu(&found, auto_name(gpu, driver.as_ref()), driver))
}

/// Parses several, whose names must differ.
pub fn parse_targets<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    catalog: &Catalog,
) -> Result<Vec<Target>, TargetError> {
    let mut targets: Vec<Target> = Vec::new();
    for text in texts {
        let target = parse_target(text, catalog)?;
        if targets.iter().any(|t| t.name == target.name) {
            return Err(TargetError::Twice { text: text.to_owned() });
        }
        targets.push(target);
    }
    Ok(targets)
}

/// A target with everything that the catalog says of its GPU, and the defaults.
pub(super) fn of_gpu(found: &FoundGpu<'_>, name: String, driver: Option<DriverRange>) -> Target {
    Target {
        name,
        gpu: found.name(),
        device: found.device,
        driver,
        class: found.class(),
        brand: None,
        runtime: Runtime::default(),
        start: Start::default(),
        virtualisation: Virtualisation::default(),
        platforms: found.platforms().to_vec(),
        required: true,
        because: found.because().to_owned(),
    }
}

/// The name of a target that was given none: "rtx-5090@575".
pub(super) fn auto_name(gpu: &str, driver: Option<&DriverRange>) -> String {
    let words: Vec<String> = gpu
        .split(|c: char| c.is_whitespace() || c.is_control() || c == '-')
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    let gpu = words.join("-");
    match driver {
        Some(driver) => format!("{gpu}@{}", driver.text.split_whitespace().collect::<String>()),
        None => gpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuClass, Platform};

    fn target(text: &str) -> Target {
        parse_target(text, Catalog::embedded()).unwrap()
    }

    #[test]
    fn one_line_fleets() {
        let t = target("RTX 5090@575");
        assert_eq!((t.name.as_str(), t.gpu.as_str()), ("rtx-5090@575", "NVIDIA GeForce RTX 5090"));
        assert_eq!((t.class, t.brand.as_deref()), (Some(GpuClass::Consumer), None));
        assert!(t.required && t.platforms.is_empty());
        assert!(t.because.starts_with("gpus.toml `NVIDIA GeForce RTX 5090`"), "{}", t.because);
        assert_eq!(target("a100@535").name, "a100@535");
        let t = target("h100@>=535.54, <570");
        assert_eq!(t.name, "h100@>=535.54,<570");
        assert_eq!(t.driver.unwrap().below.unwrap().to_string(), "570");
        let t = target("Jetson Thor");
        assert_eq!((t.name.as_str(), t.driver), ("jetson-thor", None));
        assert_eq!(t.platforms, [Platform::linux("arm64")]);
        assert_eq!(target("sm_90@550.54.14").gpu, "sm_90");
    }

    #[test]
    fn what_is_wrong_is_said_with_the_text() {
        let err = |text: &str| parse_target(text, Catalog::embedded()).unwrap_err();
        assert!(matches!(err("h1000@535"), TargetError::Gpu { .. }));
        assert!(matches!(err("h100@"), TargetError::Driver { .. }));
        assert!(matches!(err("h100@535@1"), TargetError::Driver { .. }));
        assert!(matches!(err("@535"), TargetError::Gpu { source: GpuError::Empty, .. }));
        assert!(err("gfx9420").to_string().starts_with("--target gfx9420: "));
        let twice = parse_targets(["a100@535", "A100@535"], Catalog::embedded());
        assert_eq!(twice, Err(TargetError::Twice { text: "A100@535".into() }));
        assert_eq!(parse_targets(["a100@535", "a100@550"], Catalog::embedded()).unwrap().len(), 2);
    }
}
