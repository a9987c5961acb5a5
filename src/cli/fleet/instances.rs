//! `imagelint fleet from-instances`.

use super::FleetError;
use super::show::{Source, made_by, show};
use crate::catalog::Catalog;
use crate::cli::args::FromInstancesArgs;
use crate::cli::basis;
use crate::cli::error::CliError;
use crate::cli::output::Screen;
use crate::discover::{self, Kind, Left, Machine, Seen};

pub fn run(args: &FromInstancesArgs, screen: &Screen) -> Result<u8, CliError> {
    let catalog = basis::catalog();
    let words = args.types.iter().flat_map(|t| t.split_whitespace());
    let machines = words.map(|word| machine(word, catalog)).collect::<Result<Vec<_>, _>>()?;
    if machines.is_empty() {
        return Err(FleetError::NoInstance.into());
    }
    let found = discover::group(&machines, catalog);
    let driver =
        "The driver is that of the machine's image: write it into each row, as in driver = \"535.183.01\".";
    let head = vec![made_by("from-instances"), driver.to_owned()];
    show(&found, &Source { head, one: "machine type", many: "machine types" }, args.format.format, screen)
}

fn machine(word: &str, catalog: &Catalog) -> Result<Machine, FleetError> {
    let instances = catalog.instances();
    let (gpu, platform, virtualisation, remarks) = match instances.find(word) {
        Some(row) => {
            let remarks = std::iter::once(row.because()).chain(row.note.clone());
            let platform = row.platform.clone().unwrap_or_default();
            (&row.gpu, Some(platform), row.virtualisation, remarks.collect())
        }
        // Google's machines of the N1 series have the GPU that is attached to them, by this name.
        None => match instances.accelerator("gcp", word) {
            Some(row) => (&row.gpu, None, Default::default(), vec![row.because()]),
            None => return Err(FleetError::Instance { text: word.to_owned(), near: instances.near(word) }),
        },
    };
    let seen = match catalog.gpu(gpu) {
        Ok(found) => {
            // What its product says of the platform already is left to the product.
            let platform = platform.filter(|p| !found.platforms().contains(p));
            Seen::Gpu { kind: Kind { platform, virtualisation, ..Kind::of(found.name()) }, remarks }
        }
        Err(error) => Seen::LeftOut(Left { what: gpu.clone(), why: error.to_string(), gpu: None }),
    };
    Ok(Machine { name: word.to_owned(), seen: vec![seen] })
}
