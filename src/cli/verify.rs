//! `imagelint verify-script`: as scan, but what is printed is a script that checks the prediction on a GPU node.

use super::args::VerifyArgs;
use super::error::CliError;
use super::output::Screen;
use super::{UNANSWERED, scan};
use crate::report;

pub fn run(args: &VerifyArgs, screen: &Screen) -> Result<u8, CliError> {
    let status =
        scan::judge(&args.image, screen, |judged| screen.print(report::verify::script(judged.report).as_bytes()))?;
    // A script that says "fails" is as good an answer as one that says "runs".
    Ok(if status == UNANSWERED { UNANSWERED } else { 0 })
}
