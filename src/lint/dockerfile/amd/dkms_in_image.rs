//! AMD's kernel module in an image: it belongs to the host, whose kernel containers share.

use crate::catalog::system_packages::SystemKind;
use crate::dockerfile::edit::Edit;
use crate::dockerfile::shell::{Command, When};
use crate::dockerfile::span::Span;
use crate::lint::dockerfile::{Found, Lint};

const WHY: &str = "containers share the host's kernel and cannot use it";

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for install in &lint.asks.system {
        let Some(command) = lint.reading.commands.get(install.command).filter(|c| runs(lint, c)) else { continue };
        for package in &install.packages {
            let known = lint.catalog.system_packages().classify(&package.name, package.version.as_deref());
            let is_module = known.as_ref().is_some_and(|k| k.kind == SystemKind::RocmKernelModule);
            if package.unsure || !is_module || !package.name.contains("dkms") {
                continue;
            }
            let message = format!("{} builds a kernel module into the image: {WHY}", package.name);
            let mut found = of(command, package.span, message).label("belongs to the host");
            if let Some(known) = known {
                found = found.because(known.because);
            }
            out.push(found.help("leave it out: ROCm's libraries do not need it"));
        }
    }
    for (_, command) in lint.build_commands() {
        out.extend(by_installer(lint, command));
    }
}

fn runs(lint: &Lint<'_>, command: &Command) -> bool {
    lint.built(command.instruction) && command.when != When::Start
}

fn of(command: &Command, span: Span, message: String) -> Found {
    match command.when {
        When::Build => Found::warning(span, message),
        When::BuildMaybe | When::Start => Found::note(span, message),
    }
}

/// `amdgpu-install`, whose every use case has the module unless it is told otherwise.
fn by_installer(lint: &Lint<'_>, command: &Command) -> Option<Found> {
    let known: Vec<&str> = command.args().iter().filter_map(|a| a.text.value.known()).collect();
    let other = ["--no-dkms", "--uninstall", "--list-usecase", "--help", "-h", "--dryrun", "--version"];
    if command.program() != Some("amdgpu-install")
        || known.len() < command.args().len()
        || known.iter().any(|a| other.contains(a))
    {
        return None;
    }
    let word =
        command.words.iter().find(|w| w.text.value.known().is_some_and(|w| w.ends_with("amdgpu-install")))?;
    let message = format!("amdgpu-install without --no-dkms builds the kernel module too: {WHY}");
    let found = of(command, word.span, message).label("with the kernel module").help("give it `--no-dkms`");
    let verbatim = lint.reading.document.slice(word.span).ends_with("amdgpu-install");
    let edit = Edit::new(Span::new(word.span.end, word.span.end), " --no-dkms");
    Some(if verbatim { found.safe_fix("leave the kernel module out", vec![edit]) } else { found })
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, lint, mended};
    use crate::model::Severity;

    const RULE: &str = "dkms-in-image";

    #[test]
    fn the_module_by_name_and_by_the_installer() {
        let file = "FROM ubuntu:24.04\nRUN apt-get update && apt-get install -y amdgpu-dkms rocm\n";
        assert_eq!(blamed(RULE, file, &[]), ["amdgpu-dkms"]);
        let file = "FROM ubuntu:24.04\nRUN sudo amdgpu-install --usecase=rocm -y && rm *.deb\n";
        assert_eq!(blamed(RULE, file, &[]), ["amdgpu-install"]);
        assert!(mended(RULE, file, &[]).contains("sudo amdgpu-install --no-dkms --usecase=rocm -y && rm"));
        let file = "FROM ubuntu:24.04\nARG X\nRUN if [ -n \"$X\" ]; then apt-get install -y amdgpu-dkms; fi\n";
        assert_eq!(lint(RULE, file, &[])[0].severity, Severity::Note);
    }

    #[test]
    fn what_is_no_module_is_not_told() {
        for file in [
            "FROM ubuntu:24.04\nRUN amdgpu-install --usecase=rocm --no-dkms -y\n",
            "FROM ubuntu:24.04\nRUN amdgpu-install --list-usecase\n",
            "FROM ubuntu:24.04\nARG OPTS\nRUN amdgpu-install --usecase=rocm $OPTS\n",
            "FROM ubuntu:24.04\nRUN apt-get install -y ./amdgpu-install_6.2.60202-1_all.deb dkms rocm-dev\n",
            "FROM ubuntu:24.04\nRUN apt-get purge -y amdgpu-dkms\n",
            "FROM ubuntu:24.04 AS unused\nRUN apt-get install -y amdgpu-dkms\nFROM ubuntu:24.04\n",
        ] {
            assert!(lint(RULE, file, &[]).is_empty(), "{file}");
        }
    }
}
