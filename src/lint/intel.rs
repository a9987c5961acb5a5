//! What can be wrong between an image and Intel's GPUs besides device code: the driver's user-space part, which no
//! runtime mounts from the host.

use super::case::ComponentCase;
use super::{Problem, devices};
use crate::catalog::Catalog;
use crate::model::{Evidence, EvidenceFile, Maker, Target, Verdict};
use crate::report::{Role, StepKind};

/// What file names of the drivers begin with: Level Zero's and OpenCL's.
const DRIVERS: [&[u8]; 2] = [b"libze_intel_gpu.so", b"libigdrcl.so"];

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

/// Neither Level Zero's nor OpenCL's driver for GPUs is in the image.
fn runtime(
    target: &Target,
    evidence: &Evidence,
    components: &[ComponentCase<'_>],
    _catalog: &Catalog,
) -> Option<Problem> {
    let core = components.iter().find(|c| c.role == Role::Core && devices::has_code(Maker::Intel)(c))?;
    let is_driver =
        |f: &EvidenceFile| !f.in_archive && DRIVERS.iter().any(|start| f.path.file_name().starts_with(start));
    if evidence.image.alone || evidence.files.iter().any(is_driver) {
        return None;
    }
    let message = format!(
        "the image has neither libze_intel_gpu.so.1 (Level Zero) nor libigdrcl.so (OpenCL), and no runtime mounts them: \
         {} is not seen (\"No device of requested type available\")",
        target.gpu
    );
    let help = "install the driver's user-space part from Intel's graphics repository: libze-intel-gpu1 and libze1, or \
                intel-opencl-icd";
    Some(Problem {
        component: Some(core.index),
        step: StepKind::Libraries,
        ..Problem::new("intel-gpu-runtime-missing", Verdict::Cpu, message, help)
    })
}
