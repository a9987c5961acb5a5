//! `imagelint rules`, `gpus` and `toolkits`: what the program and its catalog know.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

use super::args::ListArgs;
use super::basis;
use super::error::CliError;
use super::output::Screen;
use super::outputs::print_json;
use crate::lint::dockerfile::Needs;
use crate::lint::{RULES, Rule};
use crate::model::{Arch, CudaVersion, Device, GpuClass, Platform, PtxIsa, Severity, SmArch};
use crate::report::Format;
use crate::report::text::clean;

pub fn rules(args: &ListArgs, screen: &Screen) -> Result<u8, CliError> {
    #[derive(Serialize)]
    struct Row {
        id: &'static str,
        severity: Severity,
        /// What is looked at.
        judges: &'static str,
        /// What that takes besides: a target, a driver, the image.
        #[serde(skip_serializing_if = "Option::is_none")]
        needs: Option<&'static str>,
        /// Whether it speaks without being asked for.
        on: bool,
        summary: &'static str,
    }
    let row = |r: &Rule| {
        let (judges, needs) = judged(r);
        Row { id: r.id, severity: r.severity, judges, needs, on: r.on, summary: r.summary }
    };
    let mut rows: Vec<Row> = RULES.iter().map(row).collect();
    rows.sort_by_key(|r| r.id);
    show(args, screen, &["RULE", "SEVERITY", "JUDGES", "WHAT IT SAYS"], &rows, |r| {
        let off = if r.on { "" } else { ", off" };
        let needs = r.needs.map_or(String::new(), |n| format!(", {n}"));
        vec![r.id.to_owned(), format!("{}{off}", r.severity), format!("{}{needs}", r.judges), r.summary.to_owned()]
    })
}

/// What a rule looks at, and what it cannot do without besides.
pub fn judged(rule: &Rule) -> (&'static str, Option<&'static str>) {
    match rule.needs {
        None => ("image", None),
        Some(Needs::File) => ("dockerfile", None),
        Some(Needs::Target | Needs::AmdTarget) => ("dockerfile", Some("target")),
        Some(Needs::Driver) => ("dockerfile", Some("driver")),
        Some(Needs::Image) => ("dockerfile", Some("image")),
    }
}

pub fn gpus(args: &ListArgs, screen: &Screen) -> Result<u8, CliError> {
    #[derive(Serialize)]
    struct Row<'a> {
        name: &'a str,
        arch: Arch,
        /// `8.0`, `gfx942`, `12.60.7`.
        capability: Device,
        class: GpuClass,
        brand: &'a str,
        aliases: &'a [String],
        smi: &'a [String],
        platforms: &'a [Platform],
        status: &'a str,
        source: &'a str,
    }
    let mut rows: Vec<Row<'_>> = basis::catalog()
        .gpus()
        .all()
        .iter()
        .map(|g| Row {
            name: &g.name,
            arch: g.device.arch(),
            capability: g.device,
            class: g.class,
            brand: &g.brand,
            aliases: &g.aliases,
            smi: &g.smi,
            platforms: &g.platforms,
            status: g.status(),
            source: g.source(),
        })
        .collect();
    rows.sort_by(|a, b| (a.capability, a.name).cmp(&(b.capability, b.name)));
    show(args, screen, &["GPU", "ARCH", "CLASS", "HOST", "ALSO CALLED"], &rows, |g| {
        let hosts: Vec<String> = g.platforms.iter().map(Platform::to_string).collect();
        vec![
            g.name.to_owned(),
            g.arch.to_string(),
            class_word(g.class).to_owned(),
            if hosts.is_empty() { "any".to_owned() } else { hosts.join(", ") },
            g.aliases.join(", "),
        ]
    })
}

fn class_word(class: GpuClass) -> &'static str {
    match class {
        GpuClass::Datacenter => "datacenter",
        GpuClass::Workstation => "workstation",
        GpuClass::Consumer => "consumer",
        GpuClass::Embedded => "embedded",
    }
}

pub fn toolkits(args: &ListArgs, screen: &Screen) -> Result<u8, CliError> {
    #[derive(Serialize)]
    struct Row {
        cuda: CudaVersion,
        ptx_isa: PtxIsa,
        /// The lowest driver that runs its programs.
        min_driver: Option<String>,
        archs: Vec<SmArch>,
        because: String,
    }
    let toolkits = basis::catalog().toolkits();
    let rows: Vec<Row> = toolkits
        .all()
        .iter()
        .map(|t| Row {
            cuda: t.cuda,
            ptx_isa: t.ptx_isa,
            min_driver: toolkits.floor_of(t.cuda).map(|f| f.driver.to_string()),
            archs: t.sm.iter().copied().collect(),
            because: t.because(),
        })
        .collect();
    show(args, screen, &["CUDA", "PTX ISA", "DRIVER FROM", "MACHINE CODE FOR"], &rows, |t| {
        let archs: Vec<String> = t.archs.iter().map(|a| format!("{}{}", a.number, a.suffix())).collect();
        vec![
            t.cuda.to_string(),
            t.ptx_isa.to_string(),
            t.min_driver.clone().unwrap_or_else(|| "-".to_owned()),
            format!("sm_{}", archs.join(" ")),
        ]
    })
}

/// Prints rows as a table that fits the terminal, or as a JSON array.
pub fn show<T: Serialize>(
    args: &ListArgs,
    screen: &Screen,
    head: &[&str],
    rows: &[T],
    cells: impl Fn(&T) -> Vec<String>,
) -> Result<u8, CliError> {
    if args.format == Format::Json {
        print_json(rows, screen)?;
        return Ok(0);
    }
    let rows = rows.iter().map(|r| cells(r).iter().map(|c| clean(c)).collect());
    let text = table(head, rows, screen.style(None).width);
    screen.print(format!("{text}\n").as_bytes())?;
    Ok(0)
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>, width: usize) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.set_header(head);
    table.add_rows(&rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    // Words that are typed again by those who read them are never broken over lines.
    let words: Vec<bool> = (0..head.len()).map(|i| rows.iter().all(|r| !r[i].contains(' '))).collect();
    for (column, _) in table.column_iter_mut().zip(words).filter(|(_, word)| *word) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.trim_fmt()
}
