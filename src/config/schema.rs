//! The JSON schema of `imagelint.toml`, for editors.

use super::raw;

/// The schema's file name, beside an imagelint.toml that names it.
pub const SCHEMA_NAME: &str = "imagelint.schema.json";

/// The schema, as kept in `rules/imagelint.schema.json`.
pub fn schema() -> String {
    let settings = schemars::generate::SchemaSettings::draft07();
    let schema = settings.into_generator().into_root_schema_for::<raw::File>();
    // Serialising a schema cannot fail: it is a tree of plain JSON values.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::catalog::Catalog;
    use crate::config::Fleet;

    /// The file's reader and the schema agree on texts that both can judge: keys, types and words.
    #[test]
    fn the_schema_takes_what_is_read_and_refuses_what_is_not() {
        let validator = jsonschema::validator_for(&serde_json::from_str(&schema()).unwrap()).unwrap();
        let target = "[[target]]\ngpu = \"A100\"\n";
        let waiver = "[[waiver]]\nrule = \"x\"\nreason = \"y\"\nexpires = \"2027-01-01\"\n";
        for (text, good) in [
            ("", true),
            (target, true),
            (waiver, true),
            ("[rules]\n\"devel-in-final-stage\" = \"off\"\n[components]\nrequired = [\"flash_attn\"]\n", true),
            (
                &*format!(
                    "{target}name = \"a\"\ndriver = \"535\"\nruntime = \"gke\"\nstart = \"env\"\nvirtualisation = \"mig\"\nbrand = \"tesla\"\nplatform = \"linux/amd64\"\nclass = \"consumer\"\nrequired = false\n"
                ),
                true,
            ),
            (&*format!("{waiver}path = \"a/**\"\ncomponent = \"b\"\ntargets = [\"c\"]\n"), true),
            ("[[target]]\nname = \"a\"\n", false),
            (&*format!("{target}drvier = \"535\"\n"), false),
            (&*format!("{target}driver = 535\n"), false),
            (&*format!("{target}runtime = \"docker\"\n"), false),
            (&*format!("{target}required = \"no\"\n"), false),
            ("[rules]\nx = \"warn\"\n", false),
            ("[[waiver]]\nrule = \"x\"\nreason = \"y\"\n", false),
            ("[[targets]]\ngpu = \"A100\"\n", false),
            ("[components]\nrequire = []\n", false),
        ] {
            let value: Value = serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap();
            assert_eq!(validator.is_valid(&value), good, "the schema on {text}");
            assert_eq!(Fleet::parse(text, "f", Catalog::embedded()).is_ok(), good, "the reader on {text}");
        }
    }
}
