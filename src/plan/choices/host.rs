//! What the hosts could do: another driver, a forward-compat library, or leave the fleet of this image.

use std::collections::BTreeSet;

use super::{Choice, Cx, gpus};
use crate::catalog::compat::{Block, zstd_driver};
use crate::catalog::forward::Eligible;
use crate::lint::TargetCase;
use crate::model::{Change, CudaVersion, DriverVersion, Manager};
use crate::plan::need::Need;
use crate::report::{Cost, Step, StepKind};

/// For code that is there, and that the driver refuses.
pub fn for_blocks(need: &Need<'_, '_>, blocks: &BTreeSet<Block>, cx: &Cx<'_, '_>, found: &mut Vec<Choice>) {
    for block in blocks {
        match block {
            Block::PtxTooNew(isa) => {
                let Some(branch) = cx.catalog.drivers().min_branch_for_ptx(*isa) else { continue };
                let summary =
                    format!("use driver R{branch} or newer on {}, the first that compiles PTX {isa}", gpus(need));
                let row = format!("drivers.toml R{branch}, toolkits.toml PTX {isa}");
                found.push(driver(need, DriverVersion::branch_floor(branch), summary, row));
            }
            Block::Compressed => {
                let Some(least) = zstd_driver() else { continue };
                let summary = format!(
                    "use driver {least} or newer on {}, or build without zstd (nvcc --compress-mode=speed)",
                    gpus(need)
                );
                let row = "NVCC manual, --compress-mode: needs a driver of CUDA 12.4 or newer".to_owned();
                found.push(driver(need, least, summary, row));
            }
            Block::Xnack { .. } => {}
            Block::JitDisabled => {
                let config = &need.evidence().image.config;
                let on = |name: &&str| config.var(name).is_some_and(|v| v == "1");
                for name in ["CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT"].iter().filter(|n| on(n)) {
                    let change = Change::UnsetVariable { name: (*name).to_owned() };
                    let summary = format!("remove {name} from the image's environment");
                    let choice = Choice::new(StepKind::Libraries, Cost::Setting, need, summary, change);
                    found.push(choice.because(["CUDA Programming Guide, environment variables".to_owned()]));
                }
            }
        }
    }
}

/// Another driver on the hosts of a need's targets.
pub fn driver(need: &Need<'_, '_>, least: DriverVersion, summary: String, row: String) -> Choice {
    let change = Change::Driver { targets: need.targets.clone(), least };
    Choice::new(StepKind::Driver, Cost::Hosts, need, summary, change).because([row])
}

/// NVIDIA's forward-compat package in the image, where all of the need's targets take it.
pub fn forward(need: &Need<'_, '_>, cuda: CudaVersion, cx: &Cx<'_, '_>) -> Option<Choice> {
    let table = cx.catalog.forward();
    let mine = |c: &&TargetCase<'_>| need.targets.contains(&c.target.name);
    let mut rows = Vec::new();
    for case in cx.cases.iter().filter(mine) {
        let (eligible, row) = table.eligible(case.target.class)?;
        if eligible != Eligible::Yes || !case.target.runtime.runs_ldconfig() {
            return None;
        }
        rows.push(row);
    }
    let hosts: Vec<&DriverVersion> =
        cx.cases.iter().filter(mine).filter_map(|c| Some(&c.target.driver.as_ref()?.lowest)).collect();
    // The oldest of the major that serves them all.
    let fits = |package: &&crate::catalog::forward::Package| {
        let library = DriverVersion::branch_floor(package.branch);
        cx.catalog.drivers().native_cuda(&library).is_some_and(|own| own >= cuda && own.major == cuda.major)
            && hosts.iter().all(|host| table.serves(&library, host, None))
    };
    let package = table.packages().iter().filter(fits).min_by_key(|p| p.branch)?;
    let library = DriverVersion::branch_floor(package.branch);
    let change =
        Change::AddPackages { manager: Manager::Dpkg, names: vec![package.name.clone()], libraries: Vec::new() };
    let summary = format!(
        "add {} to the image and its folder to the loader's path: forward compatibility with the drivers of {}",
        package.name,
        gpus(need)
    );
    let mut choice = Choice::new(StepKind::Driver, Cost::Hosts, need, summary, change);
    choice.driver = Some(library);
    choice.step.command = Some(format!("apt-get install -y {}", package.name));
    rows.push(package.because());
    Some(choice.because(rows).review(
        "it fails with 804 on other classes of GPUs and with 803 once the hosts' driver is newer: other targets must not take it",
    ))
}

/// Targets leave this image's fleet.
pub fn give_up(targets: Vec<String>) -> Step {
    let summary = format!(
        "start it on other nodes than {} (`required = false` in imagelint.toml keeps the report and drops the gate)",
        targets.join(", ")
    );
    Step {
        resolves: targets.clone(),
        cost: Cost::Target,
        review: Some("the image still does not serve them".to_owned()),
        change: Change::DropTargets { targets },
        ..Step::advice(StepKind::DropTarget, String::new(), summary)
    }
}
