//! From the command line to how registries are spoken to.

use super::args::ServerArgs;
use super::error::CliError;
use crate::image::sources::OpenOptions;

pub fn options(args: &ServerArgs) -> Result<OpenOptions, CliError> {
    Ok(OpenOptions { insecure: args.insecure_registries.clone(), ..OpenOptions::default() })
}
