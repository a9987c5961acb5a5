//! A fleet that was found, on standard output.

use serde::Serialize;

use super::FleetError;
use crate::cli::basis;
use crate::cli::error::CliError;
use crate::cli::output::Screen;
use crate::cli::outputs::print_json;
use crate::discover::{Found, toml};
use crate::report::Format;
use crate::report::text::count;

/// What a fleet was found in, and how its comments speak of that.
pub struct Source<'a> {
    /// Lines of a comment on top.
    pub head: Vec<String>,
    pub one: &'a str,
    pub many: &'a str,
}

impl Source<'_> {
    pub fn toml(&self, found: &Found) -> String {
        toml::render(found, &self.head, self.one, self.many)
    }
}

/// The line on top that says which facts the rows rest on.
pub fn made_by(command: &str) -> String {
    format!("imagelint fleet {command}, with the catalog of {}", basis::catalog().as_of())
}

/// Prints what was found; an error where none of it is a target.
pub fn show(found: &Found, source: &Source<'_>, format: Format, screen: &Screen) -> Result<u8, CliError> {
    #[derive(Serialize)]
    struct Whole<'a> {
        schema: u32,
        #[serde(flatten)]
        found: &'a Found,
    }
    if format == Format::Json {
        print_json(&Whole { schema: 1, found }, screen)?;
    } else {
        screen.print(source.toml(found).as_bytes())?;
    }
    if found.targets.is_empty() {
        return Err(FleetError::NoTarget.into());
    }
    if !found.left_out.is_empty() {
        let kinds = count(found.left_out.len(), "kind of GPU is", "kinds of GPUs are");
        screen.notice(&format!("{kinds} not judged: the comments tell why"));
    }
    Ok(0)
}
