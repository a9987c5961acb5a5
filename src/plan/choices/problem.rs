//! What rules say of a problem, as choices: their own remedies, and what follows from the tables.

use super::{Choice, Cx, gpus, host, wheel};
use crate::lint::Problem;
use crate::model::{Change, CudaVersion, DriverVersion, escape, package_name};
use crate::plan::need::Need;
use crate::report::{Cost, Step, StepKind};

pub fn choices(need: &Need<'_, '_>, problem: &Problem, cx: &Cx<'_, '_>, found: &mut Vec<Choice>) {
    for remedy in &problem.remedies {
        let mut choice = Choice::new(remedy.kind, remedy.cost, need, remedy.summary.clone(), remedy.change.clone());
        if let Change::Driver { targets, least } = &mut choice.step.change {
            targets.clone_from(&need.targets);
            choice.step.summary = format!("use a driver of {} or newer on {}", named(least), gpus(need));
        }
        choice.step.command.clone_from(&remedy.command);
        choice = choice.because(remedy.because.iter().chain(&problem.because).cloned());
        if let Some(why) = &remedy.review {
            choice = choice.review(why.clone());
        }
        found.push(choice);
    }
    if let Some(least) = &problem.wants_driver {
        older_cuda(need, least.0, cx, found);
        found.extend(host::forward(need, least.0, cx));
    }
    if MISSES_LIBRARIES.contains(&problem.rule) {
        other_releases(need, cx, found);
    }
    if problem.remedies.is_empty() {
        found.push(words(need, problem));
    }
    for choice in found {
        choice.step.summary = with_subject(need, &choice.step);
    }
}

/// `580.65.06`, or `R570` for a whole branch.
fn named(driver: &DriverVersion) -> String {
    if driver.is_branch() { format!("R{}", driver.branch()) } else { driver.to_string() }
}

/// Rules of libraries that a package asks for and the image has not.
const MISSES_LIBRARIES: [&str; 3] = ["library-of-other-major", "library-not-found", "opened-library-not-found"];

/// Steps for hosts name the GPUs, those for a component the component.
fn with_subject(need: &Need<'_, '_>, step: &Step) -> String {
    let said = step.summary.contains(&need.label) || need.gpus.iter().any(|g| step.summary.contains(g));
    match (need.label.is_empty(), step.kind) {
        _ if said && !need.label.is_empty() => step.summary.clone(),
        (false, _) => format!("{}: {}", need.label, step.summary),
        (true, StepKind::Libraries) => step.summary.clone(),
        (true, _) if need.gpus.iter().any(|g| step.summary.contains(g)) => step.summary.clone(),
        (true, _) => format!("{}: {}", gpus(need), step.summary),
    }
}

/// Releases of the package that are built for other CUDA and cuDNN majors, those that the image has first.
fn other_releases(need: &Need<'_, '_>, cx: &Cx<'_, '_>, found: &mut Vec<Choice>) {
    let evidence = need.evidence();
    let Some(place) = need.place() else { return };
    let Some(component) = place.index(evidence).map(|index| &evidence.components[index]) else { return };
    let has = |library: &str, major: u64| {
        let wanted = format!("{library}.so.{major}");
        let sonames =
            evidence.files.iter().filter(|f| !f.in_archive).filter_map(|f| f.facts.elf.as_ref()?.soname.as_ref());
        sonames.into_iter().any(|s| *s == wanted)
    };
    let version = component.version.as_deref().unwrap_or_default();
    let name = escape(component.name.as_bytes());
    let mut unfit = 0;
    for row in cx.catalog.wheels().other_releases(&component.name, version) {
        let cuda = row.brings || has("libcublas", row.cuda_major.into()) || has("libcudart", row.cuda_major.into());
        let cudnn = row.brings || row.cudnn_major.is_none_or(|m| has("libcudnn", m.into()));
        unfit += usize::from(!(cuda && cudnn));
        // The newest of those that ask for more is enough.
        if !(cuda && cudnn) && unfit > 1 {
            continue;
        }
        let wants = match row.cudnn_major {
            Some(cudnn) => format!("CUDA {} and cuDNN {cudnn}", row.cuda_major),
            None => format!("CUDA {}", row.cuda_major),
        };
        let change = Change::Wheel {
            package: package_name(&component.name),
            version: None,
            specifier: row.versions.clone(),
            index: None,
            built: None,
            cuda: Some(CudaVersion::new(row.cuda_major, 0)),
        };
        let fits = cuda && cudnn;
        let there = if fits { ", which are in the image" } else { "" };
        let summary = format!("take {name} {}, which is built for {wants}{there}", row.versions);
        let mut choice = Choice::new(StepKind::ChangeWheel, Cost::OtherVersion, need, summary, change);
        choice.step.command = Some(format!("pip install '{name}{}'", row.versions));
        let mut choice = choice.because([row.because.clone()]);
        if !fits {
            choice.open = true;
            choice = choice.review(format!("{wants} must be put into the image as well"));
        }
        if !row.sure {
            choice = choice.review("the row rests on memory");
        }
        found.push(choice);
    }
    // A build for what the image has goes before what would have to be added to it.
    let added = |c: &Choice| c.step.review.is_some() || !matches!(c.step.change, Change::Wheel { .. });
    found.sort_by_key(|c| (c.step.cost, added(c)));
}

/// The rule's own words: what comes of them cannot be told here.
fn words(need: &Need<'_, '_>, problem: &Problem) -> Choice {
    let cost = match problem.step {
        StepKind::Driver | StepKind::DropTarget => Cost::Hosts,
        StepKind::Platform | StepKind::ChangeBase => Cost::BaseImage,
        StepKind::Rebuild => Cost::SourceBuild,
        StepKind::ChangeWheel | StepKind::Compiler => Cost::OtherVersion,
        StepKind::Libraries => Cost::Setting,
    };
    let choice = Choice::new(problem.step, cost, need, problem.help.clone(), Change::Advice);
    choice
        .because(problem.because.iter().cloned())
        .review("what it does to the verdict is known once the image is built")
}

/// Wheels of torch for a CUDA major that the hosts' drivers carry.
fn older_cuda(need: &Need<'_, '_>, cuda: CudaVersion, cx: &Cx<'_, '_>, found: &mut Vec<Choice>) {
    let mine = cx.cases.iter().filter(|c| need.targets.contains(&c.target.name));
    let drivers: Vec<&DriverVersion> = mine.filter_map(|c| Some(&c.target.driver.as_ref()?.lowest)).collect();
    let carried = |w: &crate::catalog::wheels::TorchWheel| {
        let floor = cx.catalog.toolkits().driver_floor(w.cuda.major);
        w.cuda.major < cuda.major && floor.is_some_and(|f| drivers.iter().all(|d| f.is_met_by(d)))
    };
    wheel::torch(need, cx, &carried, found, &mut Vec::new());
}
