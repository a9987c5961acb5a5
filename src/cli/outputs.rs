//! The files that `-o` asks for.

use super::args::Output;
use super::error::CliError;
use super::output::{NewFile, Screen};
use crate::report::{self, Format, Report, sarif};

/// Files that are written as the reports come, and are there when all have come.
pub struct Outputs<'a> {
    files: Vec<Pending<'a>>,
    several: bool,
}

struct Pending<'a> {
    output: &'a Output,
    file: Option<NewFile>,
    /// One log holds all images.
    runs: Vec<sarif::Run>,
}

impl<'a> Outputs<'a> {
    pub fn new(outputs: &'a [Output], several: bool) -> Self {
        let pending = |output| Pending { output, file: None, runs: Vec::new() };
        Self { files: outputs.iter().map(pending).collect(), several }
    }

    /// Adds an image. `unread`: nothing could be said of it, which only lines of JSON tell.
    pub fn add(&mut self, report: &Report, status: u8, unread: bool, screen: &Screen) -> Result<(), CliError> {
        let style = screen.file_style(Some(status));
        for pending in &mut self.files {
            let format = pending.output.format;
            if unread && format != Format::Json {
                continue;
            }
            if format == Format::Sarif {
                pending.runs.push(sarif::of_image(report, Some(status), self.several));
                continue;
            }
            let mut out = Vec::new();
            match self.several {
                true => render(report::write_next(report, pending.file.is_none(), format, &style, &mut out))?,
                false => render(report::write(report, format, &style, &mut out))?,
            }
            pending.file()?.write(&out)?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<(), CliError> {
        for mut pending in self.files {
            if pending.output.format == Format::Sarif {
                let log = log(std::mem::take(&mut pending.runs))?;
                pending.file()?.write(&log)?;
            }
            pending.file()?;
            if let Some(file) = pending.file {
                file.finish()?;
            }
        }
        Ok(())
    }
}

impl Pending<'_> {
    fn file(&mut self) -> Result<&mut NewFile, CliError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => NewFile::create(&self.output.file)?,
        };
        Ok(self.file.insert(file))
    }
}

/// One SARIF log of several images.
pub fn log(runs: Vec<sarif::Run>) -> Result<Vec<u8>, CliError> {
    sarif::log(runs).map_err(|source| CliError::Write { place: "the report".into(), source })
}

/// Rendering goes to memory, so what can fail is the report itself.
pub fn render(result: std::io::Result<()>) -> Result<(), CliError> {
    result.map_err(|source| CliError::Write { place: "the report".into(), source })
}
