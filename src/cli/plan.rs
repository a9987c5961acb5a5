//! `imagelint plan`: as scan, but what is printed is the plan.

use super::args::{Emit, PlanArgs};
use super::error::CliError;
use super::output::Screen;
use super::scan::{Judged, Made};
use super::{check_wheels, scan};
use crate::plan::{self, Input, Written};
use crate::report::Report;

pub fn run(args: &PlanArgs, screen: &Screen) -> Result<u8, CliError> {
    let form = match args.emit {
        Emit::Text => plan::Emit::Text,
        Emit::Env => plan::Emit::Env,
        Emit::Dockerfile => plan::Emit::Dockerfile,
        Emit::Diff => plan::Emit::Diff,
        Emit::Bake => plan::Emit::Bake,
        Emit::Json => plan::Emit::Json,
    };
    if form == plan::Emit::Diff && args.image.dockerfile.is_none() {
        return Err(CliError::Plan(plan::EmitError::NoDockerfile));
    }
    let amend = |report: &mut Report, made: &Made<'_>| match args.wheels.check_wheels {
        true => check_wheels::amend(report, made.evidence, made.fleet, &args.wheels, made.open.clone(), screen),
        false => Ok(()),
    };
    scan::judge_and_amend(&args.image, screen, amend, |judged| {
        if judged.several && form.is_of_one_image() {
            return Err(CliError::OneImage);
        }
        print(args, screen, form, &judged)
    })
}

fn print(args: &PlanArgs, screen: &Screen, form: plan::Emit, judged: &Judged<'_>) -> Result<(), CliError> {
    let lint = judged.beside.map(|b| b.lint(judged.evidence.first()));
    let path = judged.beside.map(|b| b.path());
    let written = lint.as_ref().zip(path.as_deref()).map(|(lint, path)| Written { lint, path });
    let input = Input {
        report: judged.report,
        config: judged.evidence.first().map(|e| &e.image.config),
        dockerfile: written,
        tag: args.tag.as_deref(),
    };
    let emitted = plan::emit(&input, form)?;
    for note in &emitted.notes {
        screen.notice(note);
    }
    screen.print(&emitted.bytes)
}
