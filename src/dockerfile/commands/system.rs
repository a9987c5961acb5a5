//! Packages asked of the distribution: apt, dnf and its kin, zypper, apk, and packages installed from a file.

use super::args::{bare, operands, program, readings};
use super::{HOLE, SystemInstall, SystemPackage, SystemTool};
use crate::dockerfile::shell::{Arg, Command};
use crate::dockerfile::syntax::Document;

/// How one installer takes its arguments.
struct Installer {
    names: &'static [&'static str],
    tool: SystemTool,
    verbs: &'static [&'static str],
    valued: &'static [&'static str],
}

const INSTALLERS: &[Installer] = &[
    Installer {
        names: &["apt-get", "apt", "aptitude", "apt-fast", "apt-install"],
        tool: SystemTool::Apt,
        verbs: &["install", "reinstall"],
        valued: &["-o", "--option", "-t", "--target-release", "--default-release", "-c", "--config-file", "-a"],
    },
    Installer {
        names: &["dnf", "dnf5", "yum", "microdnf", "tdnf"],
        tool: SystemTool::Rpm,
        verbs: &["install", "reinstall", "localinstall"],
        valued: &[
            "--setopt",
            "--enablerepo",
            "--disablerepo",
            "--repo",
            "--repoid",
            "--releasever",
            "--installroot",
            "-c",
            "--config",
            "-x",
            "--exclude",
            "--repofrompath",
            "--forcearch",
            "--advisory",
            "-R",
            "-d",
            "-e",
        ],
    },
    Installer {
        names: &["zypper"],
        tool: SystemTool::Zypper,
        verbs: &["install", "in"],
        valued: &[
            "-r",
            "--repo",
            "--from",
            "-t",
            "--type",
            "-R",
            "--root",
            "--releasever",
            "-p",
            "--plus-repo",
            "-C",
        ],
    },
    Installer {
        names: &["apk"],
        tool: SystemTool::Apk,
        verbs: &["add"],
        valued: &[
            "-t",
            "--virtual",
            "-X",
            "--repository",
            "-p",
            "--root",
            "--repositories-file",
            "--keys-dir",
            "--cache-dir",
            "--arch",
            "--wait",
            "--cache-max-age",
        ],
    },
];

/// Reads an install; none where the command is none.
pub fn install(document: &Document, index: usize, command: &Command) -> Option<SystemInstall> {
    let name = program(command.words.first()?);
    if let Some((tool, args)) = from_files(name, command) {
        let packages = operands(document, args, &[]).into_iter().flat_map(|a| packages(document, tool, a));
        return Some(SystemInstall { command: index, tool, packages: packages.collect() });
    }
    let installer = INSTALLERS.iter().find(|i| i.names.contains(&name))?;
    let words = operands(document, command.args(), installer.valued);
    let (verb, rest) = words.split_first()?;
    if !installer.verbs.contains(&verb.known_or_partly()) {
        return None;
    }
    let packages = rest.iter().flat_map(|a| packages(document, installer.tool, a)).collect();
    Some(SystemInstall { command: index, tool: installer.tool, packages })
}

/// `dpkg -i x.deb`, `rpm -ivh x.rpm`.
fn from_files<'a>(name: &str, command: &'a Command) -> Option<(SystemTool, &'a [Arg])> {
    let args = command.args();
    let installs = |test: fn(&str) -> bool| args.iter().any(|a| test(a.known_or_partly()));
    match name {
        "dpkg" if installs(|a| a == "--install" || a == "-i" || a == "-iE") => Some((SystemTool::Apt, args)),
        "rpm"
            if installs(|a| {
                matches!(a, "--install" | "--upgrade")
                    || (a.starts_with('-') && !a.starts_with("--") && a.contains(['i', 'U']) && !a.contains('q'))
            }) =>
        {
            Some((SystemTool::Rpm, args))
        }
        _ => None,
    }
}

/// The packages that a word names.
fn packages(document: &Document, tool: SystemTool, arg: &Arg) -> Vec<SystemPackage> {
    let span = bare(document, arg.span);
    let mut out = Vec::new();
    for (text, sure) in readings(arg) {
        for word in text.split_whitespace() {
            if let Some((name, version, whole)) = package(tool, word) {
                out.push(SystemPackage { name, version, unsure: !sure || !whole, span });
            }
        }
    }
    out
}

/// Name, version, and whether all of it is known.
fn package(tool: SystemTool, word: &str) -> Option<(String, Option<String>, bool)> {
    let whole = !word.contains(HOLE);
    if let Some((name, version)) = file_package(word) {
        return Some((name, version, whole));
    }
    let word = match tool {
        // `name/release`, `name:arch`.
        SystemTool::Apt => word.split('/').next().unwrap_or(word),
        SystemTool::Apk => word.split('@').next().unwrap_or(word),
        SystemTool::Rpm | SystemTool::Zypper => word,
    };
    let (name, version) = match tool {
        SystemTool::Rpm => (word, None),
        SystemTool::Apt => word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v))),
        SystemTool::Apk | SystemTool::Zypper => {
            let at = word.find(['=', '<', '>', '~']).unwrap_or(word.len());
            let (name, version) = word.split_at(at);
            (name, version.strip_prefix(['=', '~']).filter(|v| !v.is_empty()))
        }
    };
    let name = match tool {
        SystemTool::Apt => {
            let name = name.split(':').next().unwrap_or(name);
            // A `-` at the end removes the package.
            if name.ends_with('-') && whole {
                return None;
            }
            name.strip_suffix('+').filter(|n| !n.ends_with('+')).unwrap_or(name)
        }
        _ => name,
    };
    let name = name.split(HOLE).next().unwrap_or(name);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+*?[]^".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '*') || !name.chars().all(plain) {
        return None;
    }
    let version = version.filter(|v| !v.contains(HOLE));
    Some((name.to_owned(), version.map(str::to_owned), whole))
}

/// Name and version of a package's file: `cuda-keyring_1.1-1_all.deb`.
fn file_package(word: &str) -> Option<(String, Option<String>)> {
    let file = word.rsplit('/').next()?;
    if let Some(stem) = file.strip_suffix(".deb") {
        let mut parts = stem.split('_');
        let name = parts.next().filter(|n| !n.is_empty() && !n.contains(['*', '?']) && !n.contains(HOLE))?;
        return Some((name.to_owned(), parts.next().filter(|v| !v.contains(HOLE)).map(str::to_owned)));
    }
    let stem = file.strip_suffix(".rpm")?;
    // name-version-release.arch
    let stem = stem.rsplit_once('.').map_or(stem, |(s, _)| s);
    let mut parts = stem.rsplitn(3, '-');
    let (release, version, name) = (parts.next(), parts.next(), parts.next());
    let name = name.or(version).or(release).filter(|n| !n.contains(['*', '?']) && !n.contains(HOLE))?;
    Some((name.to_owned(), version.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(tool: SystemTool, word: &str) -> String {
        match package(tool, word) {
            Some((name, version, whole)) => {
                format!("{name} {}{}", version.unwrap_or_default(), if whole { "" } else { " ?" })
            }
            None => "none".into(),
        }
    }

    #[test]
    fn packages_are_read() {
        for (word, expected) in [
            ("libcudnn9-cuda-12=9.1.0.70-1", "libcudnn9-cuda-12 9.1.0.70-1"),
            ("libnccl2=2.21*", "libnccl2 2.21*"),
            ("libstdc++6", "libstdc++6 "),
            ("g++", "g++ "),
            ("libc6:i386", "libc6 "),
            ("vim/jammy", "vim "),
            ("nano-", "none"),
            ("cuda-*", "cuda-* "),
            ("cuda-toolkit-\u{fffc}", "cuda-toolkit-  ?"),
            ("\u{fffc}", "none"),
            ("./cuda-keyring_1.1-1_all.deb", "cuda-keyring 1.1-1"),
            ("/tmp/x.deb", "x "),
            ("/tmp/*.deb", "none"),
        ] {
            assert_eq!(show(SystemTool::Apt, word), expected, "{word}");
        }
        assert_eq!(show(SystemTool::Rpm, "cuda-toolkit-12-4"), "cuda-toolkit-12-4 ");
        assert_eq!(show(SystemTool::Rpm, "https://x/epel-release-latest-7.noarch.rpm"), "epel-release latest");
        assert_eq!(show(SystemTool::Apk, "gcc~12"), "gcc 12");
        assert_eq!(show(SystemTool::Zypper, "gcc>=12"), "gcc ");
    }
}
