//! `imagelint inspect FILE…`.

use super::UNANSWERED;
use super::args::InspectArgs;
use super::basis;
use super::error::CliError;
use super::output::Screen;
use super::outputs::render;
use crate::model::GapEffect;
use crate::{lint, report, scan};

/// A file that cannot be read does not keep the others from being listed.
pub fn run(args: &InspectArgs, screen: &Screen) -> Result<u8, CliError> {
    let mut status = 0;
    let mut evidence = Vec::new();
    for (_, result) in scan::inspect(&args.files, args.verify, basis::catalog()) {
        match result {
            Ok(one) => evidence.push(one),
            Err(error) => {
                screen.error(&error.into());
                status = UNANSWERED;
            }
        }
    }
    if evidence.is_empty() {
        return Ok(status);
    }
    let report = lint::inspect(&evidence, basis::catalog());
    let mut out = Vec::new();
    render(report::write(&report, args.format, &screen.style(None), &mut out))?;
    screen.print(&out)?;
    if report.gaps.iter().any(|g| g.effect == GapEffect::Image) {
        status = UNANSWERED;
    }
    Ok(status)
}
