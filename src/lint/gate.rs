//! The runtime's gate: what an image asks of the host's driver before it is started (`NVIDIA_REQUIRE_*`).

use super::{Problem, Remedy};
use crate::catalog::Catalog;
use crate::catalog::require::{self, Answer, Properties};
use crate::model::{Change, Confidence, CudaVersion, DriverVersion, Evidence, Runtime, Target, Verdict, escape};
use crate::report::{Cost, StepKind};

/// The conditions of an image that a target does not meet. Without a driver there is nothing to hold them against.
pub fn problems(target: &Target, evidence: &Evidence, catalog: &Catalog) -> Vec<Problem> {
    // GKE's device plugin mounts the driver and runs no NVIDIA code before the container's.
    if target.driver.is_none() || target.runtime == Runtime::Gke {
        return Vec::new();
    }
    let gate = Gate::new(target, catalog);
    let asked = require::requirements(&evidence.image.config);
    asked.iter().filter_map(|(variable, predicate)| gate.problem(variable, predicate)).collect()
}

/// The variable from which the hook infers a condition where an image states none.
const IMPLIED: &str = "CUDA_VERSION";

type Check = fn(&str, &Properties<'_>) -> Answer;

/// A target, as the runtime's check may see it.
struct Gate<'a> {
    target: &'a Target,
    catalog: &'a Catalog,
    check: Check,
    brands: Vec<&'a str>,
    because: Vec<String>,
}

/// One way in which the check may turn out.
struct Refusal<'a> {
    driver: String,
    cuda: Option<String>,
    brand: Option<&'a str>,
    answer: Answer,
}

impl<'a> Gate<'a> {
    fn new(target: &'a Target, catalog: &'a Catalog) -> Self {
        let mut because = vec![target.because.clone()];
        let brands = match &target.brand {
            Some(brand) => vec![brand.as_str()],
            None => match catalog.gpus().brands(&target.gpu, target.class) {
                Some((brands, row)) => {
                    because.push(row);
                    brands.iter().map(String::as_str).collect()
                }
                None => Vec::new(),
            },
        };
        let check = if target.runtime == Runtime::Tegra { require::csv } else { require::legacy };
        Self { target, catalog, check, brands, because }
    }

    fn problem(&self, variable: &str, predicate: &str) -> Option<Problem> {
        let drivers = self.catalog.drivers().inside(self.target.driver.as_ref()?);
        let mut doubt = None;
        for driver in &drivers {
            let (refused, met) = self.ask(predicate, driver);
            if met == 0 {
                return refused.first().map(|first| self.refused(variable, predicate, first));
            }
            doubt = doubt.or(refused.into_iter().next());
        }
        doubt.map(|refusal| self.doubtful(variable, predicate, &refusal))
    }

    /// The ways in which a driver is refused, and the number of those in which it is not.
    fn ask(&self, predicate: &str, driver: &DriverVersion) -> (Vec<Refusal<'a>>, usize) {
        let brands = self.brands.iter().copied().map(Some);
        let brands: Vec<Option<&str>> = if self.brands.is_empty() { vec![None] } else { brands.collect() };
        let arch = self.target.device.to_string();
        let (mut refused, mut met) = (Vec::new(), 0);
        for brand in brands {
            for cuda in self.cuda(driver) {
                let cuda = cuda.map(|c| c.to_string());
                // A bare branch stands for its releases: one that is met is enough.
                let newest = driver.is_branch().then(|| format!("{driver}.9999"));
                let answers = std::iter::once(driver.to_string()).chain(newest).map(|driver| {
                    let host =
                        Properties { cuda: cuda.as_deref(), driver: Some(&driver), arch: Some(&arch), brand };
                    (self.check)(predicate, &host)
                });
                match answers.min_by_key(|a| *a != Answer::Met) {
                    Some(Answer::Met) | None => met += 1,
                    Some(answer) => refused.push(Refusal { driver: driver.to_string(), cuda, brand, answer }),
                }
            }
        }
        (refused, met)
    }

    /// The CUDA versions that a driver may have. The drivers of Jetsons count their releases apart, within a major.
    fn cuda(&self, driver: &DriverVersion) -> Vec<Option<CudaVersion>> {
        let drivers = self.catalog.drivers();
        let native = drivers.native_cuda(driver);
        let mut all = vec![native];
        if self.target.runtime == Runtime::Tegra {
            let same = drivers.branches().iter().map(|b| b.native_cuda);
            let newest = same.filter(|c| native.is_some_and(|n| n.major == c.major)).max();
            all.extend(newest.filter(|n| Some(*n) != native).map(Some));
        }
        all
    }

    fn why(&self, predicate: &str, refusal: &Refusal<'_>) -> String {
        let arch = self.target.device.to_string();
        let host = Properties {
            cuda: refusal.cuda.as_deref(),
            driver: Some(&refusal.driver),
            arch: Some(&arch),
            brand: refusal.brand,
        };
        escape(require::failures(predicate, &host, self.check).join("; ").as_bytes())
    }

    fn refused(&self, variable: &str, predicate: &str, refusal: &Refusal<'_>) -> Problem {
        let words = require::message(predicate, refusal.answer).unwrap_or_default();
        let words = escape(words.as_bytes());
        let (verdict, then) = match self.target.runtime {
            Runtime::Legacy => (Verdict::Blocked, format!("the runtime refuses to start it: \"{words}\"")),
            Runtime::Tegra => (Verdict::Blocked, "the runtime refuses to start it".to_owned()),
            Runtime::Cdi => (
                Verdict::Ok,
                "with CDI nothing checks it: the container starts, and what the driver lacks shows later"
                    .to_owned(),
            ),
            Runtime::Toolkit | Runtime::Wsl | Runtime::Gke => {
                // What the image does not say itself, only the hook reads into it.
                let verdict = if variable == IMPLIED { Verdict::Ok } else { Verdict::Warn };
                (verdict, format!("refused on legacy hosts (\"{words}\"), starts on CDI"))
            }
        };
        let variable = escape(variable.as_bytes());
        let message = format!("{variable} is not met ({}): {then}", self.why(predicate, refusal));
        self.finish(verdict, message, predicate)
    }

    fn doubtful(&self, variable: &str, predicate: &str, refusal: &Refusal<'_>) -> Problem {
        let variable = escape(variable.as_bytes());
        let why = self.why(predicate, refusal);
        let verdict = if self.target.runtime == Runtime::Cdi { Verdict::Ok } else { Verdict::Warn };
        let message = match refusal.brand {
            Some(brand) if self.brands.len() > 1 => format!(
                "{variable} is not met if NVML calls {} {brand} ({why}), and it may call it {}: a runtime that checks \
                 it refuses to start it",
                self.target.gpu,
                self.brands.join(" or ")
            ),
            _ => format!("{variable} may not be met, by the CUDA release of the Jetson's driver ({why})"),
        };
        Problem { confidence: Confidence::Medium, ..self.finish(verdict, message, predicate) }
    }

    fn finish(&self, verdict: Verdict, message: String, predicate: &str) -> Problem {
        let mut because = self.because.clone();
        let driver = self.target.driver.as_ref().and_then(|d| self.catalog.drivers().branch_of(&d.lowest));
        because.extend(driver.map(|b| b.because()));
        let asked = predicate.strip_prefix("cuda>=").and_then(|t| t.split([' ', ',']).next()?.parse().ok());
        let newer = asked.and_then(|cuda: CudaVersion| {
            let branch = self.catalog.drivers().min_branch_for_cuda(cuda)?;
            Some(format!("use a driver of R{} or newer, which knows CUDA {cuda}, or ", branch.branch))
        });
        let help = format!(
            "{}start it with NVIDIA_DISABLE_REQUIRE=1 where the code runs on that driver all the same (minor-version \
             compatibility)",
            newer.unwrap_or_default()
        );
        let step = StepKind::Driver;
        let branch = asked.and_then(|cuda: CudaVersion| self.catalog.drivers().min_branch_for_cuda(cuda));
        let newer = branch.map(|b| {
            let change = Change::Driver { targets: Vec::new(), least: DriverVersion::branch_floor(b.branch) };
            let summary = format!("use a driver of R{} or newer on {}", b.branch, self.target.label());
            Remedy { because: vec![b.because()], ..Remedy::new(step, Cost::Hosts, summary, change) }
        });
        let remedies = newer.into_iter().collect();
        Problem { because, step, remedies, ..Problem::new("requirement-not-met", verdict, message, help) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_target;
    use crate::lint::lab::Lab;

    const ASKED: &str =
        "cuda>=12.8 brand=tesla,driver>=535,driver<536 brand=tesla,driver>=550,driver<551 brand=nvidia,driver>=570";

    fn found(env: &[(&str, &str)], target: &str, runtime: Runtime, brand: Option<&str>) -> Option<Problem> {
        let mut lab = Lab::new();
        lab.env(env);
        let mut target = parse_target(target, Catalog::embedded()).unwrap();
        target.runtime = runtime;
        target.brand = brand.map(str::to_owned);
        let mut all = problems(&target, &lab.0, Catalog::embedded());
        assert!(all.len() < 2);
        all.pop()
    }

    fn word(target: &str, runtime: Runtime, brand: Option<&str>) -> Option<Verdict> {
        found(&[("NVIDIA_REQUIRE_CUDA", ASKED)], target, runtime, brand).map(|p| p.verdict)
    }

    #[test]
    fn each_runtime_has_its_word() {
        use Runtime::*;
        assert_eq!(word("rtx 4090@550", Legacy, None), Some(Verdict::Blocked));
        assert_eq!(word("rtx 4090@550", Toolkit, None), Some(Verdict::Warn));
        assert_eq!(word("rtx 4090@550", Wsl, None), Some(Verdict::Warn));
        assert_eq!(word("rtx 4090@550", Cdi, None), Some(Verdict::Ok));
        assert_eq!(word("rtx 4090@550", Gke, None), None);
        assert_eq!(word("rtx 4090", Legacy, None), None);
        assert_eq!(word("rtx 4090@570", Legacy, None), None);
    }

    #[test]
    fn brands_that_are_not_known_for_sure() {
        use Runtime::*;
        assert_eq!(word("l4@550", Legacy, None), Some(Verdict::Warn));
        assert_eq!(word("l4@550", Cdi, None), Some(Verdict::Ok));
        assert_eq!(word("l4@550", Legacy, Some("tesla")), None);
        assert_eq!(word("l4@550", Legacy, Some("nvidia")), Some(Verdict::Blocked));
        // Nothing known of the GPU: the rule holds, as where there is no device.
        assert_eq!(word("sm_89@550", Legacy, None), None);
        let found = found(&[("NVIDIA_REQUIRE_CUDA", ASKED)], "l4@550", Legacy, None).unwrap();
        assert!(found.message.contains("if NVML calls NVIDIA L4 nvidia"), "{}", found.message);
    }

    #[test]
    fn the_message_says_which_groups_failed_and_quotes_the_runtime() {
        let found = found(&[("NVIDIA_REQUIRE_CUDA", ASKED)], "rtx 4090@550", Runtime::Legacy, None).unwrap();
        for words in [
            "cuda>=12.8: the driver has 12.4",
            "brand=tesla|nvidia: the GPU is geforce",
            "requirement error: unsatisfied condition: cuda>=12.8",
        ] {
            assert!(found.message.contains(words), "{}", found.message);
        }
        assert!(found.help.contains("R570") && found.help.contains("NVIDIA_DISABLE_REQUIRE"), "{}", found.help);
    }

    #[test]
    fn ranges_are_as_their_worst_branch() {
        assert_eq!(word("a100@>=535, <560", Runtime::Legacy, Some("tesla")), Some(Verdict::Blocked));
        assert_eq!(word("a100@>=550, <555", Runtime::Legacy, Some("tesla")), None);
        assert_eq!(word("a100@>=570", Runtime::Legacy, None), None);
    }

    #[test]
    fn old_images_and_switched_off_checks() {
        let old = [("CUDA_VERSION", "12.8.1")];
        let found = |env: &[(&str, &str)]| found(env, "a100@550", Runtime::Legacy, None);
        assert!(found(&old).unwrap().message.contains("CUDA_VERSION is not met (cuda>=12.8"));
        assert_eq!(found(&old).unwrap().verdict, Verdict::Blocked);
        assert_eq!(found(&[old[0], ("NVIDIA_DISABLE_REQUIRE", "1")]), None);
        assert_eq!(found(&[old[0], ("NVIDIA_REQUIRE_CUDA", "cuda>=12.4")]), None);
        let floor = |v: &str| found(&[("NVIDIA_REQUIRE_DRIVER", v)]).map(|p| p.verdict);
        // A bare branch may be that release.
        assert_eq!(floor("driver>=550.54.14"), None);
        assert_eq!(floor("driver>=551"), Some(Verdict::Blocked));
        assert_eq!(floor("driver>550,gpu=1"), Some(Verdict::Blocked));
    }

    #[test]
    fn jetsons_count_their_drivers_apart() {
        let word = |asked: &str| {
            let env = [("NVIDIA_REQUIRE_CUDA", asked)];
            found(&env, "Jetson AGX Orin@540", Runtime::Tegra, None).map(|p| p.verdict)
        };
        assert_eq!(word("cuda>=12.2"), None);
        assert_eq!(word("cuda>=12.6"), Some(Verdict::Warn));
        assert_eq!(word("cuda>=13.0"), Some(Verdict::Blocked));
        assert_eq!(word("cuda>=13.0 brand=tesla,driver>=535"), Some(Verdict::Blocked));
    }
}
