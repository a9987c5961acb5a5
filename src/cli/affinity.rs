//! `--emit-affinity FILE` and `--emit-compatibility FILE`.

use super::args::GateArgs;
use super::error::CliError;
use super::output::write_file;
use super::scan::Judged;
use crate::catalog::Catalog;
use crate::discover::affinity::{self, Pool};
use crate::model::Target;
use crate::report::text::clean;

/// Writes what is asked for of an image that was judged.
pub fn write<'a>(args: &GateArgs, judged: &Judged<'a>, catalog: &Catalog) -> Result<(), CliError> {
    if args.emit_affinity.is_none() && args.emit_compatibility.is_none() {
        return Ok(());
    }
    if judged.several {
        return Err(CliError::OneAffinity);
    }
    let report = judged.report;
    let verdict_of = |name: &str| report.targets.iter().flatten().find(|t| t.name == name);
    let pool = |target: &'a Target| {
        let judged = verdict_of(target.name.as_str())?;
        let counts = args.emit_for.contains(&judged.verdict);
        Some(Pool { target, verdict: judged.verdict, why: &judged.why, platform: judged.platform.as_ref(), counts })
    };
    let pools: Vec<Pool<'_>> = judged.fleet.targets.iter().filter_map(pool).collect();
    let selection = affinity::select(&pools, catalog);
    let words: Vec<&str> = args.emit_for.iter().map(|v| v.word()).collect();
    if selection.terms.is_empty() {
        let left = selection.left_out.first().map_or(String::new(), |(name, why)| format!(" ({name}: {why})"));
        let left = match pools.is_empty() {
            true => " (no target is judged: --target, --fleet or an imagelint.toml names some)".to_owned(),
            false => left,
        };
        return Err(CliError::NoPool { words: words.join(" or "), left });
    }
    let image = report.image.as_ref().map_or("", |i| i.reference.as_str());
    let head = vec![format!(
        "The nodes where {} is {}, by imagelint {}, catalog of {}.",
        clean(image),
        words.join(" or "),
        report.tool.version,
        report.tool.catalog.as_of
    )];
    if let Some(file) = &args.emit_affinity {
        let mut head = head.clone();
        head.push("Of a Pod; in a Deployment, Job or StatefulSet it goes under spec.template.".to_owned());
        write_file(file, affinity::node_affinity(&selection, &head).as_bytes())?;
    }
    if let Some(file) = &args.emit_compatibility {
        let mut head = head;
        head.push(
            "To attach it: oras attach --artifact-type application/vnd.nfd.image-compatibility.v1alpha1 IMAGE"
                .to_owned(),
        );
        head.push("FILE:application/vnd.nfd.image-compatibility.spec.v1alpha1+yaml".to_owned());
        let Some(text) = affinity::compatibility(&selection, &head) else {
            let left = " (no target is told by labels of GPU Feature Discovery alone)".to_owned();
            return Err(CliError::NoPool { words: words.join(" or "), left });
        };
        write_file(file, text.as_bytes())?;
    }
    Ok(())
}
