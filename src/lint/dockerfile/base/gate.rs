//! The check that the container runtime makes before it starts an image, on what the Dockerfile leaves of the base's
//! `NVIDIA_REQUIRE_CUDA`.

use super::from::is_cuda;
use crate::catalog::bases::Base;
use crate::catalog::require::{self, Answer, Properties};
use crate::dockerfile::shell::Arg;
use crate::dockerfile::value::{Origin, Value};
use crate::lint::dockerfile::Lint;
use crate::model::{Runtime, Target};

/// What the final image sets.
pub struct Gate {
    disabled: bool,
    /// The Dockerfile's own value; the outer `None`: it sets none, the inner: not known.
    own: Option<Option<String>>,
    /// The base's forward-compat library is taken out.
    pub compat_removed: bool,
}

/// An image that a runtime would not start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// The first of the conditions, which the runtime's message names: "cuda>=12.8".
    pub asked: String,
    /// By any brand that NVML may report.
    pub sure: bool,
    pub because: String,
}

impl Refusal {
    pub fn then(&self, on: &str, targets: &[&Target]) -> String {
        let legacy = targets.iter().any(|t| t.runtime == Runtime::Legacy);
        let refuses = if self.sure { "refuses" } else { "may refuse" };
        let with = if legacy { "the runtime" } else { "a runtime in mode legacy (Docker's --gpus)" };
        format!("on {on} {with} {refuses} to start it (\"unsatisfied condition: {}\")", self.asked)
    }
}

impl Gate {
    pub fn of(lint: &Lint<'_>, last: usize) -> Self {
        let scope = lint.reading.ends.get(last);
        let value = |name: &str| {
            let variable = scope?.get(name).filter(|v| !v.arg && v.origin != Origin::Base)?;
            Some(&variable.value)
        };
        let compat_removed = lint.build_commands().any(|(_, c)| {
            let words: Vec<&str> = c.args().iter().map(Arg::known_or_partly).collect();
            let removes =
                c.program() == Some("rm") || words.iter().any(|w| matches!(*w, "remove" | "purge" | "erase"));
            let names = |w: &&str| w.contains("cuda-compat") || w.ends_with("/compat") || w.contains("/compat/");
            lint.in_image(c.instruction) && removes && words.iter().any(names)
        });
        Self {
            // What is not known may switch it off.
            disabled: value("NVIDIA_DISABLE_REQUIRE").is_some_and(|v| v.known().is_none_or(require::is_true)),
            own: value("NVIDIA_REQUIRE_CUDA").map(|v| match v {
                Value::Known(text) => Some(text.clone()),
                Value::OneOf(_) | Value::Unknown => None,
            }),
            compat_removed,
        }
    }

    /// Whether a target's runtime refuses the image; none where nothing is checked, or not known.
    pub fn refuses(&self, lint: &Lint<'_>, base: &Base, target: &Target) -> Option<Refusal> {
        match target.runtime {
            Runtime::Legacy | Runtime::Toolkit | Runtime::Wsl => {}
            Runtime::Cdi | Runtime::Gke | Runtime::Tegra => return None,
        }
        let cuda = base.cuda.filter(|_| is_cuda(base) && !self.disabled)?;
        let (asked, because) = match &self.own {
            Some(own) => (own.clone()?, "the file sets NVIDIA_REQUIRE_CUDA".to_owned()),
            None => lint.catalog.forward().requirement(cuda)?,
        };
        let asked = if asked.trim().is_empty() { format!("cuda>={cuda}") } else { asked };
        let host = &target.driver.as_ref()?.lowest;
        let native = lint.catalog.drivers().native_cuda(host)?.to_string();
        let brands: Vec<&str> = match (&target.brand, lint.catalog.gpus().brands(&target.gpu, target.class)) {
            (Some(brand), _) => vec![brand.as_str()],
            (None, Some((brands, _))) => brands.iter().map(String::as_str).collect(),
            (None, None) => return None,
        };
        let arch = target.device.to_string();
        // A bare branch stands for its releases: one that is met is enough.
        let newest = host.is_branch().then(|| format!("{host}.9999"));
        let drivers: Vec<String> = std::iter::once(host.to_string()).chain(newest).collect();
        let met = |brand: &&&str| {
            drivers.iter().any(|driver| {
                let host =
                    Properties { cuda: Some(&native), driver: Some(driver), arch: Some(&arch), brand: Some(brand) };
                require::legacy(&asked, &host) == Answer::Met
            })
        };
        let passed = brands.iter().filter(met).count();
        (passed < brands.len()).then(|| Refusal {
            asked: asked.split_whitespace().next().unwrap_or_default().to_owned(),
            sure: passed == 0,
            because,
        })
    }
}
