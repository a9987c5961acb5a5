//! Forward-compat libraries in the image: whether libcuda of a newer driver is used instead of the host's, and whether
//! the host and its GPU can take it.

use super::Problem;
use super::case::TargetCase;
use super::driver_files::{MOUNT, is_compat, release};
use crate::catalog::Catalog;
use crate::catalog::forward::{Activation, Eligible};
use crate::model::{
    Confidence, DriverVersion, Evidence, ImagePath, Law, LdCache, Maker, Outcome, Runtime, Target, Verdict,
    Virtualisation,
};

const NOT_USABLE: &str = "forward-compat-not-usable";
const USED: &str = "forward-compat-used";

const NOT_ELIGIBLE: &str = "\"forward compatibility was attempted on non supported HW\" (804)";
const MISMATCH: &str = "\"system has unsupported display driver / cuda driver combination\" (803)";

/// What brings an image's library before the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    /// A variable of the image, or a path in its files: always.
    Image(Law),
    /// `ld.so.conf`, which the runtime's own ldconfig reads too.
    Conf,
    /// Only the cache in the image has it: the runtime's ldconfig drops it.
    Cache,
    /// The container toolkit, which compares the versions.
    Toolkit,
}

/// What becomes of it on one driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Not taken, or the same as the host's.
    Unused,
    Serves,
    /// 804.
    NotEligible,
    /// 803: older than the host's driver.
    Older,
    /// A bare branch: the same as the host's, or 803.
    MaybeOlder,
    /// Newer, and not made for the host's branch.
    NotForBranch,
    /// Whether it is taken depends on the toolkit's mode, and the GPU does not take it.
    NotEligibleByMode,
}

/// An image's library on a target.
#[derive(Debug, Clone)]
pub struct Compat<'a> {
    pub path: &'a ImagePath,
    pub version: DriverVersion,
    by: By,
    /// On the lowest driver.
    fate: Fate,
    /// The worst inside of the target's drivers, and the driver it is about.
    worst: (Fate, DriverVersion),
}

impl Compat<'_> {
    /// The driver that programs see, where it is the library's.
    pub fn driver(&self) -> Option<&DriverVersion> {
        (self.fate == Fate::Serves).then_some(&self.version)
    }
}

/// The forward-compat library that would be taken, or tried, on a target. Jetsons have packages of their own.
pub fn compat<'a>(target: &Target, evidence: &'a Evidence, catalog: &Catalog) -> Option<Compat<'a>> {
    let eligible = eligible(target, catalog);
    if target.runtime == Runtime::Tegra || eligible == Eligible::Own || target.maker() != Maker::Nvidia {
        return None;
    }
    let range = target.driver.as_ref()?;
    let hook = by_toolkit(evidence);
    let hooked = hook.as_ref().map(|(path, ..)| *path);
    let (path, version, by) = forced(target, evidence).or(hook)?;
    let note = evidence.file(path).and_then(|f| f.facts.compat_hosts.as_deref());
    let judge = |host: &DriverVersion| {
        let same_branch = host.is_branch() && host.branch() == version.branch();
        let older = version < *host;
        if by == By::Toolkit || by == By::Cache {
            let asked = hooked == Some(path);
            return match (catalog.forward().activation(&version, host, note, target.runtime), eligible) {
                (Activation::Yes, Eligible::No) if asked => Fate::NotEligible,
                (Activation::Yes, _) if asked && !catalog.forward().serves(&version, host, note) => {
                    Fate::NotForBranch
                }
                (Activation::Yes, _) if asked => Fate::Serves,
                (Activation::ByMode, Eligible::No) if asked => Fate::NotEligibleByMode,
                _ if by == By::Cache && older => Fate::Older,
                _ => Fate::Unused,
            };
        }
        if version == *host {
            Fate::Unused
        } else if same_branch {
            Fate::MaybeOlder
        } else if older {
            Fate::Older
        } else if eligible == Eligible::No {
            Fate::NotEligible
        } else if catalog.forward().serves(&version, host, note) {
            Fate::Serves
        } else {
            Fate::NotForBranch
        }
    };
    let fate = judge(&range.lowest);
    let inside = catalog.drivers().inside(range).into_iter().map(|d| (judge(&d), d));
    let worst = inside.min_by_key(|(fate, _)| rank(*fate))?;
    // Windows' driver is not one of Linux: nothing is promised of a Linux libcuda there.
    let fate = if target.runtime == Runtime::Wsl { Fate::Unused } else { fate };
    Some(Compat { path, version, by, fate, worst })
}

fn rank(fate: Fate) -> usize {
    let order = [
        Fate::NotEligible,
        Fate::Older,
        Fate::NotForBranch,
        Fate::NotEligibleByMode,
        Fate::MaybeOlder,
        Fate::Serves,
        Fate::Unused,
    ];
    order.iter().position(|f| *f == fate).unwrap_or(order.len())
}

fn eligible(target: &Target, catalog: &Catalog) -> Eligible {
    catalog.forward().eligible(target.class).map_or(Eligible::Yes, |(e, _)| e)
}

/// A library that the loader takes for libcuda.so.1 whatever the host has.
fn forced<'a>(target: &Target, evidence: &'a Evidence) -> Option<(&'a ImagePath, DriverVersion, By)> {
    let need = evidence.driver.iter().find(|n| n.name == "libcuda.so.1")?;
    let is_stale = evidence.ld_cache == LdCache::Stale && target.runtime.runs_ldconfig();
    let (path, by) = match &need.outcome {
        Outcome::Found { path, law: Law::Cache } if is_stale => (path, By::Cache),
        Outcome::Found { path, law: Law::Cache | Law::Default | Law::SystemPath } => (path, By::Conf),
        Outcome::Found { path, law } => (path, By::Image(law.clone())),
        Outcome::Missing { ldconfig: Some(path), .. } if target.runtime.runs_ldconfig() => (path, By::Conf),
        Outcome::Missing { .. } | Outcome::Driver => return None,
    };
    let mounted = target.runtime == Runtime::Gke && is_mount_first(evidence, path);
    if !is_compat(path) || mounted {
        return None;
    }
    Some((path, release(path)?, by))
}

/// Whether the folder in which GKE mounts the driver stands before a library's in LD_LIBRARY_PATH.
fn is_mount_first(evidence: &Evidence, library: &ImagePath) -> bool {
    let folder = library.parent();
    let dirs = evidence.image.config.var("LD_LIBRARY_PATH").unwrap_or_default();
    let mut dirs = dirs.split([':', ';']).map(ImagePath::new);
    // The image's own folder may be named through a link.
    dirs.find(|d| *d == ImagePath::new(MOUNT) || *d == folder || is_compat(&d.join(b"libcuda.so.1")))
        .is_some_and(|d| d == ImagePath::new(MOUNT))
}

/// The library that the container toolkit looks at: the only `libcuda.so.*.*` in `/usr/local/cuda/compat`. Where that
/// link leads is not kept, so that of several toolkits' folders none is taken.
fn by_toolkit(evidence: &Evidence) -> Option<(&ImagePath, DriverVersion, By)> {
    let mut found = evidence.files.iter().filter(|f| f.facts.kind.is_elf() && !f.in_archive).filter_map(|file| {
        let folder = file.path.parent();
        let mut parts = folder.components();
        let here = parts.next() == Some(b"usr") && parts.next() == Some(b"local");
        let cuda = parts.next().is_some_and(|p| p == b"cuda" || p.starts_with(b"cuda-"));
        let compat = parts.next() == Some(b"compat") && parts.next().is_none();
        let name = file.path.file_name_lossy();
        (here && cuda && compat && name.starts_with("libcuda.so.")).then_some(&file.path)
    });
    let path = found.next()?;
    if found.next().is_some() {
        return None;
    }
    Some((path, release(path)?, By::Toolkit))
}

/// What is to be said of it.
pub fn problem(compat: Option<&Compat<'_>>, target: &Target, catalog: &Catalog) -> Option<Problem> {
    let compat = compat?;
    let (fate, host) = &compat.worst;
    let wsl = target.runtime == Runtime::Wsl;
    let name = format!("the forward-compat library `{}`", compat.path);
    let version = &compat.version;
    let gpu = target.label();
    let by = if compat.by == By::Cache && *fate != Fate::Older { &By::Toolkit } else { &compat.by };
    let way = match by {
        By::Image(law) => format!("{name} is taken for libcuda.so.1 by {law}"),
        By::Conf => format!("{name} is taken for libcuda.so.1 by ld.so.conf"),
        By::Cache => format!("{name} is in ld.so.cache, though not in ld.so.conf"),
        By::Toolkit => {
            format!("the container toolkit puts {name} before the host's driver {host}, which is older")
        }
    };
    let (verdict, message) = match fate {
        Fate::Unused => return None,
        _ if wsl => (
            Verdict::Warn,
            format!(
                "{way}: on WSL2 the driver is Windows' own, and a Linux libcuda finds no /dev/nvidia* (likely no device)"
            ),
        ),
        Fate::NotEligible => (Verdict::Fail, format!("{way}, and {gpu} is no GPU that it serves: {NOT_ELIGIBLE}")),
        Fate::NotEligibleByMode => (
            Verdict::Warn,
            format!(
                "some modes of the container toolkit put {name} before the host's driver {host}, and {gpu} is no GPU \
                 that it serves: {NOT_ELIGIBLE}"
            ),
        ),
        Fate::Older => {
            let verdict = if compat.by == By::Cache { Verdict::Warn } else { Verdict::Fail };
            (verdict, format!("{way}, and {version} is older than the host's driver {host}: {MISMATCH}"))
        }
        Fate::MaybeOlder => {
            (Verdict::Warn, format!("{way}: where the host has a newer {host} than {version}, {MISMATCH}"))
        }
        Fate::NotForBranch => (
            Verdict::Warn,
            format!("{way}, and its list of host drivers lacks R{}: likely {MISMATCH}", host.branch()),
        ),
        Fate::Serves => return used(compat, target, catalog),
    };
    let confidence = match by {
        By::Conf | By::Cache => Confidence::Medium,
        By::Image(_) | By::Toolkit if verdict == Verdict::Warn => Confidence::Medium,
        By::Image(_) | By::Toolkit => Confidence::High,
    };
    Some(Problem {
        confidence,
        path: Some(compat.path.clone()),
        because: because(compat, target, catalog),
        ..Problem::new(NOT_USABLE, verdict, message, help(compat, by))
    })
}

fn help(compat: &Compat<'_>, by: &By) -> String {
    let folder = compat.path.parent();
    let branch = compat.version.branch();
    match by {
        By::Image(Law::LibraryPath) => format!(
            "take the folder out of LD_LIBRARY_PATH; let a start script add it on data-centre GPUs with a driver older \
             than R{branch}"
        ),
        By::Image(_) => format!("let nothing in the image lead to `/{folder}`"),
        By::Conf | By::Cache => format!(
            "take `/{folder}` out of ld.so.conf: the container toolkit uses it by itself where the driver is older and \
             the package allows it"
        ),
        By::Toolkit => format!(
            "use a driver of R{branch} or newer, or an image without the package (rm -rf /{folder}; GPUs that need it \
             lose it)"
        ),
    }
}

/// It is used, and serves: a note, so that what is said of drivers can be understood.
fn used(compat: &Compat<'_>, target: &Target, catalog: &Catalog) -> Option<Problem> {
    let (_, host) = &compat.worst;
    let own = |driver: &DriverVersion| match catalog.drivers().native_cuda(driver) {
        Some(cuda) => format!("{driver} (CUDA {cuda})"),
        None => driver.to_string(),
    };
    let limits = match (target.virtualisation, eligible(target, catalog)) {
        (Virtualisation::Vgpu, _) => "; vGPU: not documented",
        (_, Eligible::Note) => "; NVIDIA lists select workstation cards only",
        _ if target.class.is_none() => "; a GeForce would stop with 804",
        _ => "",
    };
    let message = format!(
        "on driver {} it runs through the forward-compat library `{}`, {}{limits}",
        own(host),
        compat.path,
        own(&compat.version)
    );
    let help = "nothing to do; a driver of that branch or newer makes it unnecessary".to_owned();
    let path = Some(compat.path.clone());
    let because = because(compat, target, catalog);
    Some(Problem { path, because, ..Problem::new(USED, Verdict::Ok, message, help) })
}

fn because(compat: &Compat<'_>, target: &Target, catalog: &Catalog) -> Vec<String> {
    let mut out = vec![target.because.clone()];
    out.extend(catalog.forward().eligible(target.class).map(|(_, row)| row));
    out.extend(catalog.forward().package(&compat.version).map(|p| p.because()));
    out
}

/// Names, where a library is in the way, the targets that run through it.
pub fn tell_who_needs_it(cases: &mut [TargetCase<'_>], catalog: &Catalog) {
    let users: Vec<String> = cases
        .iter()
        .filter(|c| c.compat.as_ref().is_some_and(|u| u.driver().is_some() && u.worst.0 == Fate::Serves))
        .filter_map(|c| {
            let driver = &c.target.driver.as_ref()?.lowest;
            let cuda = catalog.drivers().native_cuda(driver)?;
            Some(format!("{} (driver {driver}, without it CUDA {cuda})", c.target.name))
        })
        .collect();
    if users.is_empty() {
        return;
    }
    for problem in cases.iter_mut().flat_map(|c| &mut c.problems).filter(|p| p.rule == NOT_USABLE) {
        let text = format!("; deleting it breaks what runs through it: {}", users.join(", "));
        problem.help.push_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_target;
    use crate::lint::lab::{Lab, at};
    use crate::model::Need;

    fn image(release: &str, law: Option<Law>) -> Lab {
        let mut lab = Lab::new();
        let path = format!("usr/local/cuda-12/compat/libcuda.so.{release}");
        lab.library(&path, ("cuda-compat", "1"), "libcuda.so.1", false);
        if let Some(law) = law {
            let outcome = Outcome::Found { path: at(&path), law };
            lab.0.driver.push(Need { name: "libcuda.so.1".into(), outcome });
        }
        lab
    }

    fn judged(lab: &Lab, target: &str, runtime: Runtime) -> (Option<(Verdict, String)>, Option<String>) {
        let catalog = Catalog::embedded();
        let mut target = parse_target(target, catalog).unwrap();
        target.runtime = runtime;
        let compat = compat(&target, &lab.0, catalog);
        let said = problem(compat.as_ref(), &target, catalog).map(|p| (p.verdict, p.message));
        (said, compat.and_then(|c| c.driver().map(ToString::to_string)))
    }

    /// "fail 804", "warn 803", "used", "-".
    fn word(lab: &Lab, target: &str, runtime: Runtime) -> String {
        let (said, driver) = judged(lab, target, runtime);
        let Some((verdict, message)) = said else {
            assert_eq!(driver, None);
            return "-".to_owned();
        };
        assert!(driver.is_some() || verdict < Verdict::Ok, "{message}");
        let code = ["804", "803", "WSL2"].into_iter().find(|c| message.contains(c));
        match verdict {
            Verdict::Ok => "used".to_owned(),
            _ => format!("{verdict} {}", code.unwrap_or_default()),
        }
    }

    /// The list in the file itself counts before the table's.
    #[test]
    fn the_library_s_own_note_decides() {
        let mut lab = image("575.57.08", Some(Law::LibraryPath));
        assert_eq!(word(&lab, "a100@535", Runtime::Cdi), "used");
        let facts = std::sync::Arc::make_mut(&mut lab.0.files[0].facts);
        facts.compat_hosts = Some(vec![550, 570]);
        assert_ne!(word(&lab, "a100@535", Runtime::Cdi), "used");
        assert_eq!(word(&lab, "a100@550", Runtime::Cdi), "used");
    }

    #[test]
    fn what_the_environment_forces() {
        use Runtime::*;
        let lab = image("550.54.15", Some(Law::LibraryPath));
        assert_eq!(word(&lab, "rtx 3060@525", Toolkit), "fail 804");
        assert_eq!(word(&lab, "a100@525", Toolkit), "used");
        assert_eq!(word(&lab, "a100@575", Toolkit), "fail 803");
        assert_eq!(word(&lab, "a100@575", Cdi), "fail 803");
        assert_eq!(word(&lab, "a100@575", Gke), "fail 803");
        assert_eq!(word(&lab, "rtx 3060@575", Legacy), "fail 803");
        assert_eq!(word(&lab, "a100@550.54.15", Toolkit), "-");
        assert_eq!(word(&lab, "a100@550", Toolkit), "warn 803");
        assert_eq!(word(&lab, "a100@570", Wsl), "warn WSL2");
        assert_eq!(word(&lab, "Jetson AGX Orin@540", Tegra), "-");
        assert_eq!(word(&lab, "a100", Toolkit), "-");
        assert_eq!(word(&lab, "a100@>=525, <560", Toolkit), "fail 803");
        assert_eq!(word(&image("575.57.08", Some(Law::LibraryPath)), "a100@525", Cdi), "warn 803");
        let (said, _) = judged(&lab, "rtx 3060@525", Toolkit);
        let message = said.unwrap().1;
        assert!(message.contains("550.54.15") && message.contains("LD_LIBRARY_PATH"), "{message}");
    }

    #[test]
    fn where_gke_s_mount_stands_first_the_host_s_driver_is_taken() {
        let mut lab = image("550.54.15", Some(Law::LibraryPath));
        lab.env(&[("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64:/usr/local/cuda/compat")]);
        assert_eq!(word(&lab, "a100@575", Runtime::Gke), "-");
        assert_eq!(word(&lab, "a100@575", Runtime::Cdi), "fail 803");
        lab.env(&[("LD_LIBRARY_PATH", "/usr/local/cuda/compat:/usr/local/nvidia/lib64")]);
        assert_eq!(word(&lab, "a100@575", Runtime::Gke), "fail 803");
    }

    #[test]
    fn what_ld_so_conf_and_its_cache_do() {
        use Runtime::*;
        let conf = image("575.57.08", Some(Law::Cache));
        assert_eq!(word(&conf, "b200@580", Cdi), "fail 803");
        assert_eq!(word(&conf, "a100@550", Toolkit), "used");
        let mut stale = image("575.57.08", Some(Law::Cache));
        stale.0.ld_cache = LdCache::Stale;
        assert_eq!(word(&stale, "b200@580", Cdi), "warn 803");
        assert_eq!(word(&stale, "b200@580", Gke), "fail 803");
        assert_eq!(word(&stale, "a100@550", Cdi), "used");
        assert_eq!(word(&stale, "rtx 4090@550", Cdi), "fail 804");
        // Without a cache, the runtime's ldconfig makes one.
        let mut none = image("575.57.08", None);
        let path = none.0.files[0].path.clone();
        let outcome = Outcome::Missing { ldconfig: Some(path), refused: None };
        none.0.driver.push(Need { name: "libcuda.so.1".into(), outcome });
        assert_eq!(word(&none, "b200@580", Toolkit), "fail 803");
        assert_eq!(word(&none, "b200@580", Gke), "-");
    }

    #[test]
    fn what_the_toolkit_puts_first() {
        use Runtime::*;
        let lab = image("575.57.08", None);
        for runtime in [Toolkit, Legacy, Cdi] {
            assert_eq!(word(&lab, "rtx 4090@550", runtime), "fail 804");
            assert_eq!(word(&lab, "a100@550", runtime), "used");
            assert_eq!(word(&lab, "rtx 6000 ada@550", runtime), "used");
            assert_eq!(word(&lab, "rtx 4090@575", runtime), "-");
            assert_eq!(word(&lab, "rtx 4090@580", runtime), "-");
        }
        // R525 is not on this package's list, which only the newer mode reads.
        assert_eq!(word(&lab, "rtx 4090@525", Cdi), "-");
        assert_eq!(word(&lab, "rtx 4090@525", Legacy), "fail 804");
        assert_eq!(word(&lab, "rtx 4090@525", Toolkit), "warn 804");
        assert_eq!(word(&lab, "a100@525", Toolkit), "-");
        assert_eq!(word(&lab, "a100@525", Legacy), "warn 803");
        for runtime in [Gke, Wsl] {
            assert_eq!(word(&lab, "rtx 4090@550", runtime), "-");
        }
        let mut two = image("575.57.08", None);
        two.library("usr/local/cuda-13.0/compat/libcuda.so.580.82.07", ("c", "2"), "libcuda.so.1", false);
        assert_eq!(word(&two, "rtx 4090@550", Cdi), "-");
    }

    #[test]
    fn notes_say_what_is_not_sure() {
        let lab = image("575.57.08", None);
        let note = |target: &str| judged(&lab, target, Runtime::Cdi).0.unwrap().1;
        assert!(note("a100@550").contains("driver 550 (CUDA 12.4)"), "{}", note("a100@550"));
        assert!(note("rtx 6000 ada@550").contains("select workstation cards"));
        assert!(note("sm_89@550").contains("GeForce"));
        let catalog = Catalog::embedded();
        let mut target = parse_target("a100@550", catalog).unwrap();
        target.virtualisation = Virtualisation::Vgpu;
        let found = problem(compat(&target, &lab.0, catalog).as_ref(), &target, catalog).unwrap();
        assert!(found.message.contains("vGPU: not documented"));
    }
}
