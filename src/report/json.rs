//! The report as JSON, and its schema.

use std::io::{self, Write};

use super::Report;
use super::attest::Statement;
use super::diff::DiffReport;
use super::lint::LintReport;
use super::rebuild::RebuildReport;

/// One indented object.
pub fn write_pretty(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    out.write_all(b"\n")
}

/// One object on one line: several images make JSON lines.
pub fn write_line(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, report)?;
    out.write_all(b"\n")
}

/// The JSON schema of a report, as kept in `rules/report.schema.json`.
pub fn schema() -> String {
    schema_of::<Report>()
}

/// The JSON schema of a report of Dockerfiles, as kept in `rules/lint.schema.json`.
pub fn lint_schema() -> String {
    schema_of::<LintReport>()
}

/// The JSON schema of a comparison, as kept in `rules/diff.schema.json`.
pub fn diff_schema() -> String {
    schema_of::<DiffReport>()
}

/// The JSON schema of a rebuild, as kept in `rules/rebuild.schema.json`.
pub fn rebuild_schema() -> String {
    schema_of::<RebuildReport>()
}

/// The JSON schema of what `--attest` writes, as kept in `rules/attestation.schema.json`.
pub fn attestation_schema() -> String {
    schema_of::<Statement>()
}

fn schema_of<T: schemars::JsonSchema>() -> String {
    // Of what is written: fields that may be left out are not required.
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<T>();
    // Serialising a schema cannot fail: it is a tree of plain JSON values.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn pretty(report: &Report) -> String {
        let mut out = Vec::new();
        write_pretty(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn reports_of_dockerfiles_match_their_schema_and_the_contract() {
        let validator = jsonschema::validator_for(&serde_json::from_str(&lint_schema()).unwrap()).unwrap();
        let value = serde_json::to_value(sample::lint()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["findings", "gaps", "schema", "tool", "waived"]);
        for pointer in [
            "/findings/1/dockerfile/file",
            "/findings/1/dockerfile/line",
            "/findings/1/dockerfile/column",
            "/findings/1/dockerfile/end_line",
            "/findings/1/related/0/line",
            "/findings/1/related/0/message",
            "/findings/1/fix/edits/0/text",
            "/waived/0/accepted/reason",
            "/gaps/0/path",
            "/gaps/0/offset",
            "/gaps/0/why",
        ] {
            assert!(value.pointer(pointer).is_some(), "{pointer} is missing");
        }
        let bare = value.pointer("/findings/4").unwrap().as_object().unwrap();
        for absent in ["dockerfile", "label", "related", "fix", "accepted", "fingerprint"] {
            assert!(!bare.contains_key(absent), "{absent}");
        }
    }

    #[test]
    fn reports_match_the_schema() {
        let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for report in [sample::failing(), sample::wide(), sample::untargeted(), sample::files(), sample::hostile()]
        {
            let value: serde_json::Value = serde_json::from_str(&pretty(&report)).unwrap();
            let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?}");
        }
        assert!(!validator.is_valid(&serde_json::json!({ "schema": 1 })));
    }

    #[test]
    fn one_image_is_one_object_and_several_are_lines() {
        let report = sample::failing();
        assert!(pretty(&report).starts_with("{\n"));
        let mut lines = Vec::new();
        write_line(&report, &mut lines).unwrap();
        write_line(&report, &mut lines).unwrap();
        let text = String::from_utf8(lines).unwrap();
        assert_eq!(text.lines().count(), 2);
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }

    #[test]
    fn seconds_appear_only_when_asked_for() {
        let mut report = sample::failing();
        assert!(!pretty(&report).contains("seconds"));
        report.stats.seconds = Some(1.5);
        assert!(pretty(&report).contains("\"seconds\": 1.5"));
    }

    #[test]
    fn the_contract_s_names_stand() {
        let value = serde_json::to_value(sample::failing()).unwrap();
        for pointer in [
            "/schema",
            "/tool/name",
            "/tool/version",
            "/tool/catalog/as_of",
            "/tool/catalog/digest",
            "/image/reference",
            "/image/digest",
            "/image/platform",
            "/image/size",
            "/image/verdict",
            "/image/min_driver/version",
            "/image/min_driver/cause",
            "/image/arch_list/0",
            "/image/layers/0/digest",
            "/image/layers/0/diff_id",
            "/image/layers/0/size",
            "/image/layers/0/created_by",
            "/targets/0/name",
            "/targets/0/gpu",
            "/targets/0/arch",
            "/targets/0/driver",
            "/targets/0/verdict",
            "/targets/0/why",
            "/targets/0/components/0/name",
            "/targets/0/components/0/version",
            "/targets/0/components/0/verdict",
            "/targets/0/components/0/files/0",
            "/targets/0/components/0/modules/total",
            "/targets/0/components/0/modules/native",
            "/targets/0/components/0/modules/compatible",
            "/targets/0/components/0/modules/jit",
            "/targets/0/components/0/modules/missing",
            "/device_code/0/path",
            "/device_code/0/layer",
            "/device_code/0/format",
            "/device_code/0/modules",
            "/device_code/0/bytes",
            "/device_code/0/archs/0/arch",
            "/device_code/0/archs/0/form",
            "/device_code/0/archs/0/entries",
            "/device_code/0/archs/0/bytes",
            "/libraries/0/path",
            "/libraries/0/soname",
            "/libraries/0/component",
            "/libraries/0/needs/0/soname",
            "/packages/0/manager",
            "/packages/0/name",
            "/packages/0/version",
            "/findings/0/rule",
            "/findings/0/severity",
            "/findings/0/confidence",
            "/findings/0/verdict",
            "/findings/0/targets/0",
            "/findings/0/message",
            "/findings/0/help",
            "/findings/0/path",
            "/findings/0/layer",
            "/findings/0/because/0",
            "/waived",
            "/plan/steps/0/kind",
            "/plan/steps/0/summary",
            "/plan/steps/0/resolves/0",
            "/plan/steps/0/env",
            "/plan/steps/0/disposition",
            "/plan/unresolved",
            "/gaps/0/path",
            "/gaps/0/offset",
            "/gaps/0/why",
            "/stats/bytes_read",
            "/stats/files",
            "/stats/elfs",
        ] {
            assert!(value.pointer(pointer).is_some(), "{pointer} is missing");
        }
    }
}
