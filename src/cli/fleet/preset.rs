//! `imagelint fleet preset` and `imagelint fleet presets`.

use serde::Serialize;

use super::FleetError;
use super::show::{Source, made_by, show};
use crate::catalog::Catalog;
use crate::catalog::names::nearest;
use crate::catalog::presets::{Preset, PresetGpu};
use crate::cli::args::{ListArgs, PresetArgs};
use crate::cli::basis;
use crate::cli::error::CliError;
use crate::cli::lists::show as list;
use crate::cli::output::Screen;
use crate::cli::outputs::print_json;
use crate::config;
use crate::discover::{self, Found, Kind, Seen, toml};
use crate::model::{Runtime, Start, Virtualisation};
use crate::report::Format;

pub fn run(args: &PresetArgs, screen: &Screen) -> Result<u8, CliError> {
    let catalog = basis::catalog();
    let Some(preset) = catalog.presets().find(&args.name) else {
        let known = catalog.presets().all().iter().map(|p| p.name.as_str());
        let near = nearest(&args.name, known, 1).first().map(|&n| n.to_owned());
        return Err(FleetError::Preset { name: args.name.clone(), near }.into());
    };
    let mut head = vec![made_by(&format!("preset {}", preset.name)), preset.what.clone(), preset.because()];
    head.extend(preset.note.clone());
    if !args.gpus.is_empty() {
        let targets = config::parse_targets(args.gpus.iter().map(String::as_str), catalog)?;
        let kinds = targets.into_iter().map(|t| kind(preset, t.gpu, t.driver.map(|d| d.text)));
        let found = grouped(kinds.map(|kind| (kind, Vec::new())), catalog);
        return show(&found, &Source { head, one: "machine", many: "machines" }, args.format.format, screen);
    }
    if args.format.format == Format::Json {
        print_json(&Shown::new(preset, catalog), screen)?;
    } else {
        screen.print(commented(preset, head, catalog).as_bytes())?;
    }
    Ok(0)
}

/// All GPUs of the platform, to be taken by deleting the `#`.
fn commented(preset: &Preset, mut head: Vec<String>, catalog: &Catalog) -> String {
    let gpus = preset.gpus(catalog);
    let rows = gpus.iter().filter_map(|gpu| {
        let found = catalog.gpu(&gpu.gpu).ok()?;
        Some((kind(preset, found.name(), gpu.driver.clone()), vec![gpu.source.clone()]))
    });
    let found = grouped(rows, catalog);
    match found.targets.is_empty() {
        true => head.push("Any GPU: name those that you have behind the preset's name.".to_owned()),
        false => head.push(
            "Delete the # before the rows that you have, or name the GPUs behind the preset's name.".to_owned(),
        ),
    }
    let mut out = String::new();
    for line in &head {
        toml::comment(&mut out, line);
    }
    for target in &found.targets {
        out.push('\n');
        for remark in &target.remarks {
            toml::comment(&mut out, remark);
        }
        out.push_str(&toml::commented(&toml::row(target)));
    }
    out
}

fn kind(preset: &Preset, gpu: String, driver: Option<String>) -> Kind {
    Kind {
        driver,
        runtime: preset.runtime,
        start: preset.start,
        virtualisation: preset.virtualisation,
        ..Kind::of(gpu)
    }
}

fn grouped(kinds: impl Iterator<Item = (Kind, Vec<String>)>, catalog: &Catalog) -> Found {
    discover::one(kinds.map(|(kind, remarks)| Seen::Gpu { kind, remarks }).collect(), catalog)
}

#[derive(Serialize)]
struct Shown<'a> {
    schema: u32,
    name: &'a str,
    what: &'a str,
    runtime: Runtime,
    start: Start,
    virtualisation: Virtualisation,
    gpus: Vec<Gpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    because: String,
}

#[derive(Serialize)]
struct Gpu {
    gpu: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    source: String,
}

impl<'a> Shown<'a> {
    fn new(preset: &'a Preset, catalog: &Catalog) -> Self {
        let gpu = |g: PresetGpu| Gpu { gpu: g.gpu, driver: g.driver, source: g.source };
        Self {
            schema: 1,
            name: &preset.name,
            what: &preset.what,
            runtime: preset.runtime,
            start: preset.start,
            virtualisation: preset.virtualisation,
            gpus: preset.gpus(catalog).into_iter().map(gpu).collect(),
            note: preset.note.as_deref(),
            because: preset.because(),
        }
    }
}

pub fn presets(args: &ListArgs, screen: &Screen) -> Result<u8, CliError> {
    let catalog = basis::catalog();
    let rows: Vec<Shown<'_>> = catalog.presets().all().iter().map(|p| Shown::new(p, catalog)).collect();
    list(args, screen, &["PRESET", "RUNTIME", "GPUS", "PLATFORM"], &rows, |p| {
        let gpus = if p.gpus.is_empty() { "any".to_owned() } else { p.gpus.len().to_string() };
        vec![p.name.to_owned(), p.runtime.word().to_owned(), gpus, p.what.to_owned()]
    })
}
