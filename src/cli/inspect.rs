//! `imagelint inspect FILE…`.

use super::UNANSWERED;
use super::args::InspectArgs;
use super::error::CliError;
use super::output::Screen;
use super::scan::render;
use crate::catalog::Catalog;
use crate::lint;
use crate::model::GapEffect;
use crate::report;
use crate::scan;

pub fn run(args: &InspectArgs, screen: &Screen) -> Result<u8, CliError> {
    let mut evidence = Vec::new();
    let mut unread = false;
    for (file, read) in scan::inspect(&args.files) {
        match read {
            Ok(found) => evidence.push(found),
            Err(error) => {
                screen.error(&CliError::from(error));
                unread = true;
            }
        }
    }
    let report = lint::inspect(&evidence, Catalog::embedded());
    let mut out = Vec::new();
    render(report::write(&report, args.format, &screen.style(None), &mut out))?;
    screen.print(&out)?;
    let incomplete = unread || report.gaps.iter().any(|g| g.effect == GapEffect::Image);
    Ok(if incomplete { UNANSWERED } else { 0 })
}
