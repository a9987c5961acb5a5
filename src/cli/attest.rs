//! `--attest FILE`.

use std::path::Path;

use clap::ValueEnum;

use super::args::ImageArgs;
use super::error::CliError;
use super::output::write_file;
use super::scan::Judged;
use crate::image::sources::SOURCES;
use crate::model::Digest;
use crate::report::attest::{Ran, Statement};
use crate::report::fingerprint;

/// Words for a registry: what follows is a name there.
const REGISTRY: [&str; 2] = ["registry:", "docker://"];

/// Writes the statement of an image that was judged.
pub fn write(file: &Path, args: &ImageArgs, judged: &Judged<'_>) -> Result<(), CliError> {
    if judged.several {
        return Err(CliError::AttestsOne);
    }
    let name = judged.report.image.as_ref().map_or("", |i| i.reference.as_str());
    let manifests: Option<Vec<Digest>> = judged.evidence.iter().map(|e| e.image.digest).collect();
    let Some(mut manifests) = manifests.filter(|m| !m.is_empty()) else {
        return Err(CliError::NoManifest { reference: name.to_owned() });
    };
    manifests.sort();
    manifests.dedup();
    let fail_on = args.fail_on.to_possible_value();
    let fail_on = fail_on.as_ref().map_or("", |v| v.get_name());
    let ran = Ran { status: judged.status, fail_on, allow_gaps: args.allow_gaps };
    let statement = Statement::new(judged.report, repository(name), &manifests, &ran);
    let failed = |source: serde_json::Error| CliError::write(file.to_owned(), source.into());
    let mut text = serde_json::to_vec_pretty(&statement).map_err(failed)?;
    text.push(b'\n');
    write_file(file, &text)
}

/// A registry's reference without its tag and digest; other names as they are.
fn repository(reference: &str) -> &str {
    let scheme = SOURCES.iter().map(|source| source.scheme).find(|scheme| reference.starts_with(scheme));
    match scheme {
        Some(scheme) if !REGISTRY.contains(&scheme) => reference,
        scheme => fingerprint::repository(&reference[scheme.map_or(0, str::len)..]),
    }
}

#[cfg(test)]
mod tests {
    use super::repository;

    #[test]
    fn repositories_have_no_tags() {
        for (reference, name) in [
            ("ubuntu:24.04", "ubuntu"),
            ("h:5000/team/app", "h:5000/team/app"),
            ("h:5000/team/app:1@sha256:00", "h:5000/team/app"),
            ("registry:h/app@sha256:00", "h/app"),
            ("oci:dir:tag", "oci:dir:tag"),
            ("images/sample.tar", "images/sample.tar"),
            ("", ""),
        ] {
            assert_eq!(repository(reference), name);
        }
    }
}
