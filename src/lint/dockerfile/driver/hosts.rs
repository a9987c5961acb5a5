//! Images that play the host: driver containers, Docker in Docker, nodes of Kubernetes in containers.

use crate::catalog::system_packages::SystemKind;
use crate::dockerfile::reading::Base;
use crate::dockerfile::shell::When;
use crate::lint::dockerfile::Lint;

/// Words of images that hold a driver or a container engine for others.
const WORDS: &[&str] = &["nvidia/driver", "docker:", "/dind", "-dind", "/k3s", "kindest/node", "gpu-driver"];

/// Files that build a driver where they are started.
const INSTALLER: &[&str] = &["nvidia-installer", "nvidia-driver-installer"];

/// Whether the file is for such an image: then its driver and its toolkit are wanted.
pub fn plays_host(lint: &Lint<'_>) -> bool {
    let stages = lint.reading.stages.iter().filter(|s| s.in_image);
    let by_base = stages.filter_map(|s| match &s.root.0 {
        Base::Image(text) => text.value.known(),
        Base::Stage(_) | Base::Scratch | Base::None => None,
    });
    let named = |image: &str| WORDS.iter().any(|w| image.contains(w));
    let by_package = lint
        .packages()
        .iter()
        .any(|p| p.in_image && matches!(p.known.kind, SystemKind::ContainerEngine | SystemKind::KernelHeaders));
    let by_start = lint.reading.commands.iter().any(|c| {
        let words = || c.words.iter().filter_map(|w| w.text.value.known());
        lint.in_image(c.instruction)
            && (words().any(|w| INSTALLER.iter().any(|i| w.ends_with(i)))
                || (c.when == When::Start && words().any(|w| w.ends_with("dockerd") || w.ends_with("containerd"))))
    });
    by_base.into_iter().any(named) || by_package || by_start
}
