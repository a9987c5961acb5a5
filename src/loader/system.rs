//! What a dynamic loader has built in: its directories, and what its tokens and capabilities stand for.

use super::conf::OsRelease;
use super::table::Files;
use super::{Capture, Place, Tree};
use crate::model::{ImagePath, Libc, Machine};

/// The instruction set level that a target's processor is taken to have, as a number of the x86-64 psABI: every
/// server that takes a current GPU has at least AVX2. Decides among the directories below `glibc-hwcaps`.
const X86_LEVEL: u8 = 3;

/// The release of glibc that first looked into `glibc-hwcaps`, and the one that dropped what was there before.
const HWCAPS_SINCE: u32 = 33;
const LEGACY_UNTIL: u32 = 37;

/// Whose laws are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    Glibc,
    Musl,
}

/// A loader of the image.
#[derive(Debug, Clone)]
pub struct System {
    pub machine: u16,
    pub flavour: Flavour,
    /// The loader's own file, where the image has it.
    pub loader: Option<u32>,
    /// The path by which programs ask for it.
    pub interpreter: Option<String>,
    /// Built-in directories; for musl, its system path.
    pub dirs: Vec<String>,
    /// Directories looked into below each other one, best first; the last is empty.
    pub capabilities: Vec<String>,
    /// What `$LIB` stands for.
    pub lib: String,
    /// What `$PLATFORM` stands for.
    pub platform: &'static str,
    /// glibc's minor version, where it is known.
    pub minor: Option<u32>,
    /// Flags of this machine's entries in `ld.so.cache`.
    pub cache_flags: u32,
}

impl System {
    /// Whether an entry of `ld.so.cache` is for this machine. 1 is ELF without further notice.
    pub fn takes(&self, flags: u32) -> bool {
        flags == self.cache_flags || flags == 1
    }

    /// Whether the mechanism that glibc 2.37 dropped still works. Not told: it does not.
    pub fn legacy(&self) -> bool {
        self.minor.is_some_and(|m| m < LEGACY_UNTIL)
    }
}

/// The usual names of a machine's loaders, and of its directories on Debian.
struct MachineNames {
    machine: u16,
    glibc: &'static str,
    musl: &'static str,
    multiarch: &'static str,
    platform: &'static str,
    cache_flags: u32,
    /// 64-bit libraries stand in `lib64`.
    lib64: bool,
}

const fn names(
    machine: u16,
    glibc: &'static str,
    musl: &'static str,
    multiarch: &'static str,
    platform: &'static str,
    cache_flags: u32,
    lib64: bool,
) -> MachineNames {
    MachineNames { machine, glibc, musl, multiarch, platform, cache_flags, lib64 }
}

const MACHINES: &[MachineNames] = &[
    names(62, "lib64/ld-linux-x86-64.so.2", "x86_64", "x86_64-linux-gnu", "x86_64", 0x0303, true),
    names(183, "lib/ld-linux-aarch64.so.1", "aarch64", "aarch64-linux-gnu", "aarch64", 0x0a03, true),
    names(3, "lib/ld-linux.so.2", "i386", "i386-linux-gnu", "i686", 0x0003, false),
    names(40, "lib/ld-linux-armhf.so.3", "armhf", "arm-linux-gnueabihf", "v7l", 0x0903, false),
    names(21, "lib64/ld64.so.2", "powerpc64le", "powerpc64le-linux-gnu", "power9", 0x0503, true),
    names(22, "lib/ld64.so.1", "s390x", "s390x-linux-gnu", "z15", 0x0403, true),
    names(243, "lib/ld-linux-riscv64-lp64d.so.1", "riscv64", "riscv64-linux-gnu", "riscv64", 0x1003, true),
];

fn machine_names(machine: u16) -> Option<&'static MachineNames> {
    MACHINES.iter().find(|m| m.machine == machine)
}

/// The path at which a machine's loader usually stands.
pub fn usual_loader(machine: u16, flavour: Flavour) -> Option<String> {
    let names = machine_names(machine)?;
    Some(match flavour {
        Flavour::Glibc => names.glibc.to_owned(),
        Flavour::Musl => format!("lib/ld-musl-{}.so.1", names.musl),
    })
}

/// Whose loader a path names.
pub fn flavour_of(interpreter: &str) -> Flavour {
    let name = interpreter.rsplit('/').next().unwrap_or_default();
    if name.starts_with("ld-musl-") { Flavour::Musl } else { Flavour::Glibc }
}

/// The loader that programs ask for by a path, or the usual one.
pub fn system(
    tree: &dyn Tree,
    files: &Files<'_>,
    machine: u16,
    flavour: Flavour,
    interpreter: Option<&str>,
) -> System {
    let path = interpreter.map(str::to_owned).or_else(|| usual_loader(machine, flavour));
    let loader = path.as_ref().and_then(|p| match tree.look(tree.root(), p.as_bytes()) {
        Some(Place::File(file)) => Some(file as u32),
        _ => None,
    });
    let built_in = loader.and_then(|f| files.elf(f)).map(|e| e.facts.system_dirs.clone()).unwrap_or_default();
    let names = machine_names(machine);
    let mut system = System {
        machine,
        flavour,
        loader,
        interpreter: path,
        dirs: Vec::new(),
        capabilities: vec![String::new()],
        lib: "lib".to_owned(),
        platform: names.map_or("", |n| n.platform),
        minor: None,
        cache_flags: names.map_or(1, |n| n.cache_flags),
    };
    match flavour {
        Flavour::Musl => system.dirs = musl_path(tree, names),
        Flavour::Glibc => {
            system.dirs = if built_in.is_empty() { default_dirs(tree, names) } else { built_in };
            system.lib = lib_token(&system.dirs);
            system.minor = libc_of(tree, files, &system).and_then(|(_, v)| minor(&v?));
            system.capabilities = capabilities(machine, system.minor);
        }
    }
    system
}

/// musl's system path: a file of the machine's name, or what is built in.
fn musl_path(tree: &dyn Tree, names: Option<&MachineNames>) -> Vec<String> {
    let file = names.map(|n| format!("etc/ld-musl-{}.path", n.musl));
    let text = match file.and_then(|f| tree.captured(f.as_bytes())) {
        Some(Capture::MuslPath(text)) if !text.trim().is_empty() => text.as_str(),
        _ => "/lib:/usr/local/lib:/usr/lib",
    };
    text.split([':', '\n']).filter(|e| !e.is_empty()).map(str::to_owned).collect()
}

/// The directories built into the distribution's loader, where the loader itself does not tell.
fn default_dirs(tree: &dyn Tree, names: Option<&MachineNames>) -> Vec<String> {
    let is_dir = |p: &str| matches!(tree.look(tree.root(), p.as_bytes()), Some(Place::Dir(_)));
    let owned = |dirs: &[&str]| dirs.iter().map(|d| (*d).to_owned()).collect::<Vec<_>>();
    let Some(names) = names else { return owned(&["/lib", "/usr/lib"]) };
    let os = [&b"etc/os-release"[..], b"usr/lib/os-release"].iter().find_map(|p| match tree.captured(p) {
        Some(Capture::OsRelease(os)) => Some(os.clone()),
        _ => None,
    });
    let os: OsRelease = os.unwrap_or_default();
    let multiarch = names.multiarch;
    if is_dir(&format!("usr/lib/{multiarch}"))
        || is_dir(&format!("lib/{multiarch}"))
        || os.is(&["debian", "ubuntu"])
    {
        return vec![
            format!("/lib/{multiarch}"),
            format!("/usr/lib/{multiarch}"),
            "/lib".to_owned(),
            "/usr/lib".to_owned(),
        ];
    }
    if os.is(&["arch"]) || !names.lib64 { owned(&["/lib", "/usr/lib"]) } else { owned(&["/lib64", "/usr/lib64"]) }
}

fn lib_token(dirs: &[String]) -> String {
    let below = dirs.iter().filter_map(|d| d.trim_end_matches('/').strip_prefix("/usr/"));
    below.map(str::to_owned).next().filter(|l| l.starts_with("lib")).unwrap_or_else(|| "lib".to_owned())
}

fn capabilities(machine: u16, minor: Option<u32>) -> Vec<String> {
    let mut dirs = Vec::new();
    let x86 = machine == Machine::X86_64.0;
    if minor.is_none_or(|m| m >= HWCAPS_SINCE) && x86 {
        dirs.extend((2..=X86_LEVEL).rev().map(|level| format!("glibc-hwcaps/x86-64-v{level}/")));
    }
    if minor.is_some_and(|m| m < LEGACY_UNTIL) && x86 {
        // `haswell` counts on Intel's processors with AVX2; others go on to what follows.
        for outer in ["tls/", ""] {
            for inner in ["haswell/x86_64/", "haswell/", "x86_64/x86_64/", "x86_64/", ""] {
                dirs.push(format!("{outer}{inner}"));
            }
        }
    } else {
        dirs.push(String::new());
    }
    dirs
}

/// glibc's file and version: the newest version it defines, or what its file is called.
fn libc_of(tree: &dyn Tree, files: &Files<'_>, system: &System) -> Option<(u32, Option<String>)> {
    let found = |dir: &String| match tree.look(tree.root(), format!("{dir}/libc.so.6").as_bytes()) {
        Some(Place::File(file)) if files.elf(file as u32).is_some_and(|e| e.facts.machine == system.machine) => {
            Some(file as u32)
        }
        _ => None,
    };
    let file = system.dirs.iter().find_map(found)?;
    let defined = files.elf(file).and_then(|e| {
        let versions = e.facts.defines.iter().filter_map(|d| minor(d.strip_prefix("GLIBC_")?));
        versions.max().map(|m| format!("2.{m}"))
    });
    let called = || {
        let name = files.path(file).file_name_lossy().into_owned();
        Some(name.strip_prefix("libc-")?.strip_suffix(".so")?.to_owned())
    };
    Some((file, defined.or_else(called)))
}

/// 36 of `2.36` and of `2.36.9`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("2.")?.split('.').next()?.parse().ok()
}

/// The C library that programs of a system start with.
pub fn libc(tree: &dyn Tree, files: &Files<'_>, system: &System) -> Option<Libc> {
    let path = |file: u32| -> ImagePath { files.path(file).clone() };
    match system.flavour {
        Flavour::Musl => Some(Libc::Musl { path: path(system.loader?) }),
        Flavour::Glibc => {
            let (file, version) = libc_of(tree, files, system)?;
            Some(Libc::Glibc { path: path(file), version })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_by_release() {
        assert_eq!(
            capabilities(62, Some(39)),
            ["glibc-hwcaps/x86-64-v3/", "glibc-hwcaps/x86-64-v2/", ""].map(str::to_owned)
        );
        assert_eq!(capabilities(62, Some(36)).len(), 12);
        assert_eq!(capabilities(62, Some(31))[0], "tls/haswell/x86_64/");
        assert_eq!(capabilities(183, None), [""]);
    }

    #[test]
    fn lib_is_what_the_directories_say() {
        let lib = |d: &[&str]| lib_token(&d.iter().map(|d| (*d).to_owned()).collect::<Vec<_>>());
        assert_eq!(lib(&["/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/"]), "lib/x86_64-linux-gnu");
        assert_eq!(lib(&["/lib64", "/usr/lib64"]), "lib64");
        assert_eq!(lib(&["/usr/lib/"]), "lib");
        assert_eq!(lib(&["/nix/store/x/lib"]), "lib");
    }
}
