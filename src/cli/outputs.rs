//! The files that `-o` asks for.

use serde::Serialize;

use super::args::Output;
use super::error::CliError;
use super::output::{NewFile, Screen};
use crate::report::{self, Format, Gathered, Report};

/// Files that are written as the reports come, and are there when all have come.
pub struct Outputs<'a> {
    files: Vec<Pending<'a>>,
    several: bool,
}

struct Pending<'a> {
    output: &'a Output,
    file: Option<NewFile>,
    /// Of formats that are one document.
    gathered: Option<Gathered>,
}

impl<'a> Outputs<'a> {
    pub fn new(outputs: &'a [Output], several: bool) -> Self {
        let pending =
            |output: &'a Output| Pending { output, file: None, gathered: Gathered::new(output.format, several) };
        Self { files: outputs.iter().map(pending).collect(), several }
    }

    /// Adds an image. `unread`: nothing could be said of it, which tables have no line for.
    pub fn add(&mut self, report: &Report, status: u8, unread: bool, screen: &Screen) -> Result<(), CliError> {
        let style = screen.file_style(Some(status));
        for pending in &mut self.files {
            let format = pending.output.format;
            if let Some(gathered) = &mut pending.gathered {
                gathered.add(report, unread, Some(status));
                continue;
            }
            if unread && format != Format::Json {
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

    /// `status`: of the whole run.
    pub fn finish(self, status: u8) -> Result<(), CliError> {
        for mut pending in self.files {
            if let Some(gathered) = pending.gathered.take() {
                let document = document(gathered, status)?;
                pending.file()?.write(&document)?;
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

/// One document of all images.
pub fn document(gathered: Gathered, status: u8) -> Result<Vec<u8>, CliError> {
    gathered.finish(Some(status)).map_err(|source| CliError::Write { place: "the report".into(), source })
}

/// Prints a value that is no report, as indented JSON.
pub fn print_json(value: &(impl Serialize + ?Sized), screen: &Screen) -> Result<(), CliError> {
    let mut out = Vec::new();
    render(serde_json::to_writer_pretty(&mut out, value).map_err(Into::into))?;
    out.push(b'\n');
    screen.print(&out)
}

/// Rendering goes to memory, so what can fail is the report itself.
pub fn render(result: std::io::Result<()>) -> Result<(), CliError> {
    result.map_err(|source| CliError::Write { place: "the report".into(), source })
}
