//! Renders finished reports. A report renders; it never filters or decides, so every format tells the same set of
//! (rule, target, place).

mod amd;
pub mod attest;
mod components;
pub mod diff;
mod diff_table;
pub mod fingerprint;
mod gathered;
pub mod github;
pub mod gitlab;
pub mod html;
pub mod inspect;
pub mod json;
pub mod junit;
pub mod lint;
mod lint_table;
pub mod markdown;
pub mod model;
mod paint;
pub mod rebuild;
#[cfg(test)]
mod same;
#[cfg(test)]
pub(crate) mod sample;
pub mod sarif;
mod sections;
mod sizes;
mod snippet;
pub mod source;
pub mod table;
pub mod text;
mod told;
pub mod unified;
pub mod verify;

use std::io::{self, Write};

pub use amd::{AmdData, AmdReport};
pub use gathered::Gathered;
pub use model::*;
pub use paint::Ink;
pub use sizes::{ArchSize, ComponentSize, Sizes, Unused};

/// The formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For a person.
    Table,
    Json,
    /// SARIF 2.1.0: code scanning.
    Sarif,
    /// Annotations of a GitHub Actions step.
    Github,
    /// A job's summary, a comment of a pull request.
    Markdown,
    /// JUnit's XML.
    Junit,
    /// GitLab's Code Quality.
    Gitlab,
    /// A page of its own.
    Html,
}

/// How text is laid out. What is told does not depend on it, but for lists that `verbose` unfolds.
#[derive(Debug, Clone)]
pub struct Style {
    pub colour: bool,
    /// Columns; no line is longer.
    pub width: usize,
    /// How many `-v` were given.
    pub verbose: u8,
    /// Exit status of the run, for the summary line; `None` where the report does not decide it.
    pub exit: Option<u8>,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: 80, verbose: 0, exit: None }
    }
}

/// Writes one report: of an image, or (image and targets absent) of single files.
pub fn write(report: &Report, format: Format, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Table if report.image.is_none() => out.write_all(inspect::render(report, style).as_bytes()),
        Format::Table => out.write_all(table::render(report, style).as_bytes()),
        Format::Json => json::write_pretty(report, out),
        Format::Sarif | Format::Github | Format::Markdown | Format::Junit | Format::Gitlab | Format::Html => {
            let mut one = Gathered::new(format, false);
            one.iter_mut().for_each(|g| g.add(report, false, style.exit));
            one.map_or(Ok(()), |g| out.write_all(&g.finish(style.exit)?))
        }
    }
}

/// Writes one report of several: JSON lines, or tables with a blank line between them. Other formats are one document
/// however many there are; see [`Gathered`].
pub fn write_next(
    report: &Report,
    first: bool,
    format: Format,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Json => json::write_line(report, out),
        Format::Table => {
            if !first {
                out.write_all(b"\n")?;
            }
            write(report, format, style, out)
        }
        Format::Sarif | Format::Github | Format::Markdown | Format::Junit | Format::Gitlab | Format::Html => {
            write(report, format, style, out)
        }
    }
}
