//! `imagelint plan`: as scan, but what is printed is the plan.

use super::args::{Emit, PlanArgs};
use super::error::CliError;
use super::output::Screen;
use super::scan::Made;
use super::{check_wheels, scan};
use crate::plan;
use crate::report::Report;

pub fn run(args: &PlanArgs, screen: &Screen) -> Result<u8, CliError> {
    let emit = match args.emit {
        Emit::Text => plan::Emit::Text,
        Emit::Env => plan::Emit::Env,
    };
    let amend = |report: &mut Report, made: &Made<'_>| match args.wheels.check_wheels {
        true => {
            let open = scan::open(&args.image.read);
            check_wheels::amend(report, made.evidence, made.fleet, &args.wheels, open, screen)
        }
        false => Ok(()),
    };
    let show = |report: &Report, _, _| screen.print(plan::emit(report, emit).as_bytes());
    scan::judge_and_amend(&args.image, screen, amend, show)
}
