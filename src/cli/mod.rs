//! The command line: arguments in, library called, text and an exit status out.

mod action_outputs;
mod affinity;
mod args;
mod attest;
mod baseline;
mod basis;
mod bounded;
mod cache;
mod check_wheels;
mod diff;
mod error;
mod explain;
mod fleet;
mod generate;
mod generated;
mod init;
mod inspect;
mod lint;
mod lists;
mod many;
mod ordered;
mod output;
mod outputs;
mod plan;
mod policy;
mod progress;
mod reader;
mod rebuild;
mod saved;
mod scan;
mod servers;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use self::args::{Args, Command};
use self::output::Screen;

/// The question could not be answered.
const UNANSWERED: u8 = 2;

/// Runs the command line that `args` spell; the first of them is the program's name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = match Args::try_parse_from(&args) {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    let screen = Screen::new(&parsed.global);
    let result = basis::choose(&parsed.global, &screen).and_then(|()| match &parsed.command {
        Command::Scan(args) => scan::run(args, &screen),
        Command::Lint(args) => lint::run(args, &screen),
        Command::Plan(args) => plan::run(args, &screen),
        Command::Rebuild(args) => rebuild::run(args, &screen),
        Command::VerifyScript(args) => verify::run(args, &screen),
        Command::Diff(args) => diff::run(args, &screen),
        Command::Inspect(args) => inspect::run(args, &screen),
        Command::Fleet(args) => fleet::run(args, &screen),
        Command::Init(args) => init::run(args, &screen),
        Command::Explain(args) => explain::run(args, &screen),
        Command::Rules(args) => lists::rules(args, &screen),
        Command::Gpus(args) => lists::gpus(args, &screen),
        Command::Toolkits(args) => lists::toolkits(args, &screen),
        Command::Cache(args) => cache::run(args, &screen),
        Command::Generate(args) => generate::files(args, &screen),
        Command::Completions(args) => generate::completions(args, &screen),
        Command::ActionOutputs(args) => action_outputs::run(args, &screen),
        Command::Man => generate::man(&screen),
    });
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            screen.error(&error);
            ExitCode::from(UNANSWERED)
        }
    }
}

/// Help and version are answers; everything else that the parser says is a usage error.
fn usage(error: &clap::Error) -> ExitCode {
    if let Some(better) = args::mistaken_command(error) {
        output::plain_error(&better);
        return ExitCode::from(UNANSWERED);
    }
    // A reader that has gone away has seen enough.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { UNANSWERED } else { 0 })
}
