//! Devices and groups that a container needs where no runtime brings them by itself: AMD's and Intel's.

use super::Problem;
use super::case::ComponentCase;
use crate::model::{Confidence, Evidence, Maker, Verdict, escape};
use crate::report::StepKind;

/// What to pass to a container of an image that has code for a maker's GPUs.
pub fn to_pass(maker: Maker, evidence: &Evidence, components: &[ComponentCase<'_>]) -> Option<Problem> {
    if evidence.image.alone || !components.iter().any(has_code(maker)) {
        return None;
    }
    let (devices, groups) = match maker {
        Maker::Nvidia => return None,
        Maker::Amd => ("--device /dev/kfd --device /dev/dri", "video and render"),
        Maker::Intel => ("--device /dev/dri", "render"),
    };
    let user = &evidence.image.config.user;
    let root = matches!(user.split(':').next(), None | Some("" | "root" | "0"));
    let who = match root {
        true => String::new(),
        false => format!("; its user `{}` must be in the host's groups {groups} (EACCES)", escape(user.as_bytes())),
    };
    let message = format!("the container gets no {maker} GPU by itself: start it with {devices}{who}");
    let help = match root {
        true => format!("docker run {devices} …; under Kubernetes {maker}'s device plugin does it"),
        false => format!(
            "docker run {devices} --group-add with the host's number of the group render …: the number of that name in \
             the image may be another"
        ),
    };
    Some(Problem {
        confidence: Confidence::High,
        step: StepKind::Driver,
        ..Problem::new("gpu-devices-to-pass", Verdict::Ok, message, help)
    })
}

/// Whether a component has code that counts for a maker's GPUs.
pub fn has_code(maker: Maker) -> impl Fn(&ComponentCase<'_>) -> bool {
    move |component| {
        let modules = component.files.iter().flat_map(|f| &f.file.facts.modules);
        modules.flat_map(|m| &m.items).any(|i| i.item.arch.maker() == Some(maker))
    }
}
