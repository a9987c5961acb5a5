//! `imagelint fleet from-nodes`.

use std::path::Path;

use super::FleetError;
use super::show::{Source, made_by, show};
use crate::cli::args::FromNodesArgs;
use crate::cli::error::CliError;
use crate::cli::output::Screen;
use crate::cli::{basis, bounded};
use crate::discover::{self, Found};

/// Most of a list of nodes: those of the largest clusters, with the images that each of them holds.
const MOST_MIB: u64 = 512;

pub fn run(args: &FromNodesArgs, screen: &Screen) -> Result<u8, CliError> {
    let found = found(&args.file)?;
    let head = vec![made_by("from-nodes")];
    show(&found, &Source { head, one: "node", many: "nodes" }, args.format.format, screen)
}

/// The fleet in a list of nodes; an error where no node has a GPU.
pub fn found(file: &Path) -> Result<Found, CliError> {
    let (bytes, place) = read(file, MOST_MIB)?;
    let catalog = basis::catalog();
    let machines =
        discover::nodes(&bytes, catalog).map_err(|source| FleetError::Nodes { place: place.clone(), source })?;
    let found = discover::group(&machines, catalog);
    match found.is_empty() {
        true => Err(FleetError::NoGpuInNodes { place, nodes: machines.len() }.into()),
        false => Ok(found),
    }
}

/// A file, or standard input for `-`, and how messages call it.
pub fn read(file: &Path, most_mib: u64) -> Result<(Vec<u8>, String), CliError> {
    let place = match file.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => file.display().to_string(),
    };
    match bounded::read_or_stdin(file, most_mib << 20) {
        Err(source) => Err(CliError::Read { place, source }),
        Ok(None) => Err(FleetError::TooLarge { place, most: most_mib }.into()),
        Ok(Some(bytes)) => Ok((bytes, place)),
    }
}
