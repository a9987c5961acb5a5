//! `imagelint init`: an imagelint.toml from what is here.

use std::fs;
use std::path::Path;

use super::args::InitArgs;
use super::basis;
use super::error::CliError;
use super::fleet::show::Source;
use super::fleet::{FleetError, host, nodes};
use super::lint::{Start, shown, starts};
use super::output::{Screen, write_file};
use crate::config::fleet::FILE_NAME;
use crate::config::{SCHEMA_NAME, schema};
use crate::discover::{Found, toml};
use crate::report::text::count;

/// Bases that the comments name.
const MOST_BASES: usize = 20;

const HEAD: &str = "\
# imagelint.toml: the GPUs and drivers that images and Dockerfiles are judged for.
# `imagelint scan IMAGE` and `imagelint lint` find this file from here and from folders below.

# ---- The fleet: one [[target]] for each kind of machine ----
# gpu: a product, an nvidia-smi name or an architecture (`imagelint gpus` lists them).
# driver: a version (\"535.183.01\"), a branch (\"535\") or a range (\">=535.54, <570\"); the lowest decides.
# More: runtime = \"toolkit\" | \"legacy\" | \"cdi\" | \"gke\" | \"wsl\" | \"tegra\",
#   virtualisation = \"none\" | \"mig\" | \"vgpu\" | \"passthrough\", required = false (reported, never fails).
";

const EXAMPLE: &str = "
# No GPU was found here. `imagelint fleet` prints rows for a cluster, for machine types, for another host;
# or take this one:
# [[target]]
# name = \"production\"
# gpu = \"A100\"
# driver = \"535.183.01\"
";

const TAIL: &str = "
# ---- What counts ----
# [components]
# required = [\"flash_attn\"]                # fails as the framework does, where others only warn

# [rules]                                  # `imagelint rules` lists them
# devel-in-final-stage = \"off\"             # off | note | warning | error

# [[waiver]]
# rule = \"no-device-code-for-target\"
# path = \"opt/legacy/**\"                   # and/or component = \"flash_attn\", targets = [\"production\"]
# reason = \"not started on these nodes\"    # required
# expires = \"2027-03-31\"                   # required
";

pub fn run(args: &InitArgs, screen: &Screen) -> Result<u8, CliError> {
    if !args.dir.is_dir() {
        return Err(CliError::NotFound(shown(&args.dir)));
    }
    let file = args.dir.join(FILE_NAME);
    let beside = args.dir.join(SCHEMA_NAME);
    for path in [Some(&file), Some(&beside).filter(|_| args.schema)].into_iter().flatten() {
        if !args.force && fs::symlink_metadata(path).is_ok() {
            return Err(FleetError::Exists(shown(path)).into());
        }
    }
    let (found, from, source) = targets(args, screen)?;
    let mut text = String::new();
    if args.schema {
        // Editors look for it in the first line.
        text.push_str(&format!("#:schema ./{SCHEMA_NAME}\n"));
        write_file(&beside, schema().as_bytes())?;
    }
    text.push_str(HEAD);
    for line in bases(&args.dir)? {
        toml::comment(&mut text, &line);
    }
    match &found {
        Some(found) => {
            text.push('\n');
            text.push_str(&source.toml(found));
        }
        None => text.push_str(EXAMPLE),
    }
    text.push_str(TAIL);
    write_file(&file, text.as_bytes())?;
    let said = match found.as_ref().map_or(0, |f| f.targets.len()) {
        0 => "no target yet, an example as a comment".to_owned(),
        n => format!("{} from {from}", count(n, "target", "targets")),
    };
    screen.print(format!("{}: {said}\nnext: imagelint scan IMAGE\n", shown(&file)).as_bytes())?;
    Ok(0)
}

/// What the targets are, and where they are from.
fn targets(args: &InitArgs, screen: &Screen) -> Result<(Option<Found>, &'static str, Source<'static>), CliError> {
    if let Some(file) = &args.nodes {
        let source = Source { head: Vec::new(), one: "node", many: "nodes" };
        return Ok((Some(nodes::found(file)?), "the cluster's nodes", source));
    }
    let source = Source { head: Vec::new(), one: "host", many: "hosts" };
    Ok((host::found(args.root.as_deref(), screen), "this host", source))
}

/// What the Dockerfiles' CUDA bases need of a driver.
fn bases(dir: &Path) -> Result<Vec<String>, CliError> {
    let catalog = basis::catalog();
    let starts = starts(dir.to_owned(), catalog)?;
    let needs = |start: &Start| {
        let cuda = start.base.cuda?;
        let floor = catalog.toolkits().floor_of(cuda)?.driver;
        let own = catalog.drivers().min_branch_for_cuda(cuda).map(|b| b.branch);
        let own = own.filter(|b| *b > floor.branch()).map(|b| format!("; to compile PTX of it, {b}"));
        let (file, image) = (&start.file, &start.image);
        Some(format!(
            "{file}: {image} has CUDA {cuda}, which needs driver {floor} or newer{}",
            own.unwrap_or_default()
        ))
    };
    let mut lines: Vec<String> = starts.iter().filter_map(needs).collect();
    let more = lines.len().saturating_sub(MOST_BASES);
    lines.truncate(MOST_BASES);
    if more > 0 {
        lines.push(format!("and {more} more bases"));
    }
    Ok(lines)
}
