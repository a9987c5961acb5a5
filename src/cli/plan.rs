//! `imagelint plan`: as scan, but what is printed is the plan.

use super::args::{Emit, PlanArgs};
use super::error::CliError;
use super::output::Screen;
use super::scan;
use crate::plan;

pub fn run(args: &PlanArgs, screen: &Screen) -> Result<u8, CliError> {
    let emit = match args.emit {
        Emit::Text => plan::Emit::Text,
        Emit::Env => plan::Emit::Env,
    };
    scan::judge(&args.image, screen, |report, _, _| screen.print(plan::emit(report, emit).as_bytes()))
}
