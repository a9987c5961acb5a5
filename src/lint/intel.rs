//! What can be wrong between an image and Intel's GPUs besides device code: the driver's user-space part, which no
//! runtime mounts from the host.

use super::case::ComponentCase;
use super::{Problem, devices};
use crate::catalog::Catalog;
use crate::catalog::intel_runtimes::{IntelRuntime, Present};
use crate::model::{Device, Evidence, Maker, Target, Verdict};
use crate::report::{Role, StepKind};

pub fn problems(
    target: &Target,
    evidence: &Evidence,
    components: &[ComponentCase<'_>],
    catalog: &Catalog,
) -> Vec<Problem> {
    let mut out: Vec<Problem> = runtime(target, evidence, components, catalog).into_iter().collect();
    out.extend(devices::to_pass(Maker::Intel, evidence, components));
    out
}

/// The driver's user-space part is not in the image, or is of a line of releases that does not serve the GPU.
fn runtime(
    target: &Target,
    evidence: &Evidence,
    components: &[ComponentCase<'_>],
    catalog: &Catalog,
) -> Option<Problem> {
    let core = components.iter().find(|c| c.role == Role::Core && devices::has_code(Maker::Intel)(c))?;
    let Device::Intel(ip) = target.device else { return None };
    if evidence.image.alone {
        return None;
    }
    let runtimes = catalog.intel_runtimes();
    let present = runtimes.in_image(evidence);
    let lines: Vec<(&Present, &IntelRuntime)> = present.iter().filter_map(|p| Some((p, runtimes.of(p)?))).collect();
    if lines.iter().any(|(_, line)| line.serves(ip)) {
        return None;
    }
    let seen = "\"No device of requested type available\"";
    let (verdict, message, because) = match lines.first() {
        None => (
            Verdict::Cpu,
            format!(
                "the image has neither libze_intel_gpu.so.1 (Level Zero) nor libigdrcl.so (OpenCL), and no runtime mounts \
                 them: {} is not seen ({seen})",
                target.gpu
            ),
            Vec::new(),
        ),
        Some((first, line)) => (
            if line.is_sure() { Verdict::Cpu } else { Verdict::Warn },
            format!(
                "{} is of {}, which does not serve {}: it is not seen ({seen})",
                first.said_by, line.name, target.gpu
            ),
            vec![line.because()],
        ),
    };
    let help = "install the driver's user-space part from Intel's graphics repository: libze-intel-gpu1 and libze1, or \
                intel-opencl-icd";
    Some(Problem {
        because,
        component: Some(core.index),
        step: StepKind::Libraries,
        ..Problem::new("intel-gpu-runtime-missing", verdict, message, help)
    })
}
