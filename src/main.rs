//! `imagelint`: see `imagelint --help`, and the library's documentation for how it works.

use std::process::ExitCode;

fn main() -> ExitCode {
    imagelint::cli::run(std::env::args_os())
}
