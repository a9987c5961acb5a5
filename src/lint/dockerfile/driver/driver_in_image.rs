//! Packages and installers of NVIDIA's driver in an image.

use super::hosts::plays_host;
use super::words::drop_word;
use crate::catalog::system_packages::SystemKind;
use crate::dockerfile::shell::{Command, When};
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::ask::{Package, lower};
use crate::lint::dockerfile::{Found, Lint};
use crate::model::Severity;

const HELP: &str = "leave it out: the container runtime brings libcuda and nvidia-smi from the host, of the version of \
                    its kernel module";

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    if plays_host(lint) {
        return;
    }
    let packages = lint.packages();
    let drivers: Vec<&Package<'_>> = packages.iter().filter(|p| p.in_image && is_driver(p.known.kind)).collect();
    for package in &drivers {
        if removed_later(lint, package) {
            continue;
        }
        out.push(said(lint, package, &drivers));
    }
    out.extend(lint.build_commands().filter_map(|(_, c)| installer(lint, c)));
}

fn is_driver(kind: SystemKind) -> bool {
    matches!(kind, SystemKind::Driver | SystemKind::KernelModule)
}

fn said(lint: &Lint<'_>, package: &Package<'_>, drivers: &[&Package<'_>]) -> Found {
    let name = &package.asked.name;
    let message = match package.known.kind {
        SystemKind::KernelModule => {
            format!("`{name}` builds a kernel module in the image, where no kernel will load it")
        }
        _ => format!(
            "`{name}` puts a driver of its own into the image: where the host's is another, which is mounted over it, CUDA \
             and nvidia-smi stop with \"Driver/library version mismatch\" (803)"
        ),
    };
    let found = package.found(Severity::Error, message).label("belongs on the host").help(HELP);
    let same = drivers.iter().filter(|p| p.command.span == package.command.span);
    let others: Vec<Span> = same.map(|p| p.asked.span).filter(|s| *s != package.asked.span).collect();
    if package.install.packages.len() <= others.len() + 1 {
        return found;
    }
    match drop_word(lint, package.asked.span, name, &others) {
        // What is built there may link to the driver's library.
        Some(edit) if lint.builds().iter().any(|b| lint.in_image(b.command.instruction)) => {
            found.suggest(format!("do not install {name}"), vec![edit])
        }
        Some(edit) => found.safe_fix(format!("do not install {name}"), vec![edit]),
        None => found,
    }
}

/// Whether a later command takes the package out of the image again.
fn removed_later(lint: &Lint<'_>, package: &Package<'_>) -> bool {
    lint.build_commands().filter(|(_, c)| c.span > package.command.span).any(|(_, command)| {
        let mut words = command.args().iter().map(crate::dockerfile::shell::Arg::known_or_partly);
        let removes =
            words.clone().any(|w| matches!(w, "remove" | "purge" | "autoremove" | "erase" | "--purge" | "-P"));
        let stem = |w: &str| w.trim_end_matches(['*', '.', '?']).to_owned();
        removes
            && words
                .any(|w| w == package.asked.name || (w.contains('*') && package.asked.name.starts_with(&stem(w))))
    })
}

/// NVIDIA's own installers: of the driver, and of the toolkit where it is not told to leave the driver out.
fn installer(lint: &Lint<'_>, command: &Command) -> Option<Found> {
    if command.when == When::Start || !lint.in_image(command.instruction) {
        return None;
    }
    let words: Vec<&str> = command.words.iter().map(crate::dockerfile::shell::Arg::known_or_partly).collect();
    let runs = matches!(command.program(), Some("sh" | "bash"));
    let at = if runs { words.iter().skip(1).position(|w| !w.starts_with('-')).map(|at| at + 1)? } else { 0 };
    let file = words.get(at)?.rsplit('/').next()?;
    let options = words.get(at + 1..).unwrap_or_default();
    let has = |names: &[&str]| options.iter().any(|o| names.contains(&o.split('=').next().unwrap_or(o)));
    let driver = if file.starts_with("NVIDIA-Linux-") && file.ends_with(".run") {
        !has(&["-x", "--extract-only", "--extract", "--help", "-h", "--list"])
    } else if file.starts_with("cuda_") && file.ends_with(".run") {
        let parts = ["--toolkit", "--samples", "--extract", "-extract", "--help", "--installpath", "--librarypath"];
        has(&["--driver", "-driver"])
            || (has(&["--silent", "-silent", "-s"]) && !has(&parts) && !has(&["-toolkit"]))
    } else {
        false
    };
    if !driver {
        return None;
    }
    let span = command.words.get(at)?.span;
    let message = format!(
        "the installer `{file}` puts a driver into the image: where the host's is another, CUDA and nvidia-smi stop with \
         \"Driver/library version mismatch\" (803)"
    );
    let severity = Severity::Warning;
    let severity = if command.when == When::Build && !command.guessed { severity } else { lower(severity) };
    let help = if file.starts_with("cuda_") { "pass --silent --toolkit: the toolkit alone" } else { HELP };
    Some(Found { severity, ..Found::note(span, message) }.label("a driver").help(help))
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "driver-in-image";

    fn file(run: &str) -> String {
        format!("FROM ubuntu:22.04\nRUN {run}\n")
    }

    #[test]
    fn driver_packages_are_told_by_name() {
        let text = file("apt-get update && apt-get install -y git nvidia-driver-535 libnvidia-compute-535=535.1-0");
        assert_eq!(blamed(RULE, &text, &[])[0], "nvidia-driver-535");
        assert_eq!(blamed(RULE, &text, &[]).len(), 2);
        assert!(lint(RULE, &text, &[]).iter().all(|f| f.severity >= Severity::Warning));
        assert_eq!(blamed(RULE, &file("dnf install -y cuda-drivers"), &[]), ["cuda-drivers"]);
        let maybe = file("if [ -n \"$X\" ]; then apt-get install -y nvidia-driver-535 git; fi");
        assert_ne!(lint(RULE, &maybe, &[])[0].severity, Severity::Error);
    }

    #[test]
    fn the_word_alone_is_dropped() {
        let gone = |run: &str| mended(RULE, &file(run), &[]);
        assert_eq!(gone("apt-get install -y git nvidia-driver-535"), file("apt-get install -y git"));
        assert_eq!(gone("apt-get install -y nvidia-utils-535 git"), file("apt-get install -y git"));
        assert_eq!(
            gone("apt-get install -y \\\n    git \\\n    nvidia-utils-535 \\\n    vim && true"),
            file("apt-get install -y \\\n    git \\\n    vim && true")
        );
        assert_eq!(
            gone("apt-get install -y \\\n    git \\\n    nvidia-utils-535"),
            file("apt-get install -y \\\n    git")
        );
        assert_eq!(
            gone("apt-get install -y \\\n    nvidia-utils-535 nvidia-driver-535 \\\n    git"),
            file("apt-get install -y \\\n    \\\n    git")
        );
        assert_eq!(
            gone("apt-get install -y git nvidia-utils-535 nvidia-driver-535; x"),
            file("apt-get install -y git ; x")
        );
        // Nothing else to install: no edit.
        assert!(lint(RULE, &file("apt-get install -y nvidia-driver-535"), &[])[0].fix.is_none());
    }

    #[test]
    fn installers_of_drivers() {
        for run in [
            "sh ./NVIDIA-Linux-x86_64-535.129.03.run --silent",
            "sh cuda_12.4.1_550.54.15_linux.run --silent",
            "./cuda_12.4.1_550.54.15_linux.run --silent --driver --toolkit",
        ] {
            assert_eq!(lint(RULE, &file(run), &[]).len(), 1, "{run}");
        }
        for run in [
            "sh cuda_12.4.1_550.54.15_linux.run --silent --toolkit",
            "wget https://us.download.nvidia.com/NVIDIA-Linux-x86_64-535.129.03.run",
            "sh NVIDIA-Linux-x86_64-535.129.03.run -x",
            "rm cuda_12.4.1_550.54.15_linux.run",
        ] {
            assert!(lint(RULE, &file(run), &[]).is_empty(), "{run}");
        }
    }

    #[test]
    fn silent_on_what_is_no_driver_or_wanted() {
        let quiet = [
            file("apt-get install -y libnvidia-ml-dev cuda-toolkit-12-4 cuda-compat-12-4 nvidia-cuda-toolkit"),
            file("apt-get install -y nvidia-driver-535 linux-headers-generic"),
            file("apt-get install -y docker-ce nvidia-utils-535"),
            file("apt-get install -y nvidia-utils-535 git && make && apt-get purge -y nvidia-utils-535"),
            file("apt-get purge -y nvidia-driver-535"),
            file("apt-cache show nvidia-driver-535 # apt-get install nvidia-driver-535"),
            "FROM nvcr.io/nvidia/driver:535.1-ubuntu22.04\nRUN apt-get install -y nvidia-utils-535 git\n".to_owned(),
            "FROM ubuntu AS b\nRUN apt-get install -y libnvidia-compute-535 git\nFROM ubuntu\nCOPY --from=b /x /x\n".to_owned(),
            "FROM ubuntu AS b\nRUN apt-get install -y nvidia-driver-535\nFROM ubuntu\n".to_owned(),
        ];
        for text in quiet {
            assert!(lint(RULE, &text, &[]).is_empty(), "{text}: {:?}", lint(RULE, &text, &[]));
        }
    }
}
