//! `imagelint inspect FILE…`.

use super::UNANSWERED;
use super::args::InspectArgs;
use super::error::CliError;
use super::output::Screen;
use super::scan::render;
use crate::model::GapEffect;
use crate::report;
use crate::scan;

pub fn run(args: &InspectArgs, screen: &Screen) -> Result<u8, CliError> {
    for file in &args.files {
        std::fs::File::open(file).map_err(|e| CliError::read(file, e))?;
    }
    let report = scan::inspect(&args.files);
    let mut out = Vec::new();
    render(report::write(&report, args.format, &screen.style(None), &mut out))?;
    screen.print(&out)?;
    let incomplete = report.gaps.iter().any(|g| g.effect == GapEffect::Image);
    Ok(if incomplete { UNANSWERED } else { 0 })
}
