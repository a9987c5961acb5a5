//! Standard output, standard error and files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::args::{Colour, Global};
use super::error::CliError;
use super::progress::Bars;
use crate::report::Style;
use crate::report::text::clean;

/// What the terminal is like, and what the user wants to see there.
pub struct Screen {
    pub quiet: bool,
    colour: bool,
    width: usize,
    verbose: u8,
    /// Where progress may be drawn on standard error.
    bars: Option<Bars>,
}

/// Columns where nobody knows better.
const WIDTH: usize = 80;

impl Screen {
    pub fn new(global: &Global) -> Self {
        let colour = match global.color {
            Colour::Always => true,
            Colour::Never => false,
            // Honours NO_COLOR, CLICOLOR and TERM=dumb.
            Colour::Auto => anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
        };
        let terminal = || terminal_size::terminal_size_of(io::stdout()).map(|(w, _)| usize::from(w.0).max(40));
        Self {
            quiet: global.quiet,
            colour,
            width: global.width.map(usize::from).or_else(terminal).unwrap_or(WIDTH),
            verbose: global.verbose,
            // -vv tells of every request on standard error.
            bars: (!global.quiet && global.verbose < 2 && io::stderr().is_terminal()).then(Bars::new),
        }
    }

    /// Progress, where it may be drawn.
    pub fn bars(&self) -> Option<&Bars> {
        self.bars.as_ref()
    }

    /// Writes to the terminal with no bars in the way.
    fn apart<R>(&self, write: impl FnOnce() -> R) -> R {
        match &self.bars {
            Some(bars) => bars.suspend(write),
            None => write(),
        }
    }

    /// How text on standard output is laid out.
    pub fn style(&self, exit: Option<u8>) -> Style {
        Style { colour: self.colour, width: self.width, verbose: self.verbose, exit }
    }

    /// How many `-v` were given.
    pub fn verbose(&self) -> u8 {
        self.verbose
    }

    /// How text in a file is laid out.
    pub fn file_style(&self, exit: Option<u8>) -> Style {
        Style { colour: false, ..self.style(exit) }
    }

    /// Writes to standard output. A reader that has gone away has seen enough: that is no error.
    pub fn print(&self, bytes: &[u8]) -> Result<(), CliError> {
        let write = || {
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        };
        match self.apart(write) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(CliError::Write { place: "standard output".into(), source: e })
            }
            _ => Ok(()),
        }
    }

    /// One line on standard error, unless the user wants quiet.
    pub fn notice(&self, text: &str) {
        if !self.quiet {
            self.apart(|| line(&format!("note: {}", clean(text))));
        }
    }

    pub fn error(&self, error: &CliError) {
        self.apart(|| plain_error(error));
    }

    /// The reason for exit status 2, and how many more there are.
    pub fn unanswered(&self, reasons: &[String]) {
        if let Some(first) = reasons.first() {
            let more = if reasons.len() > 1 { format!(" (and {} more)", reasons.len() - 1) } else { String::new() };
            self.apart(|| line(&format!("error: {}{more}", clean(first))));
        }
    }
}

pub fn plain_error(error: &CliError) {
    // Errors about a place in a file show that place, on lines of their own.
    for (place, text) in error.to_string().lines().enumerate() {
        line(&format!("{}{}", if place == 0 { "error: " } else { "" }, clean(text)));
    }
    if let Some(hint) = error.hint() {
        line(&format!("  try: {}", clean(&hint)));
    }
}

/// Standard error may be closed; there is nobody left to tell.
fn line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes a file so that it is there as a whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let mut file = NewFile::create(path)?;
    file.write(bytes)?;
    file.finish()
}

/// A file that is there as a whole or not at all: written beside its place, then renamed. What is no regular file
/// (`/dev/stdout`, a pipe) is written to as it is.
pub struct NewFile {
    /// As it was named.
    named: PathBuf,
    file: File,
    /// Where it is written, and where it goes.
    moves: Option<(PathBuf, PathBuf)>,
}

impl NewFile {
    pub fn create(path: &Path) -> Result<Self, CliError> {
        Self::open(path).map_err(|e| CliError::write(path.to_owned(), e))
    }

    fn open(path: &Path) -> io::Result<Self> {
        let named = path.to_owned();
        // The file that a symbolic link leads to is replaced, not the link.
        let (place, mode) = match fs::metadata(path) {
            Ok(meta) if !meta.is_file() => {
                let file = OpenOptions::new().write(true).open(path)?;
                return Ok(Self { named, file, moves: None });
            }
            Ok(meta) => (fs::canonicalize(path)?, Some(meta.permissions())),
            Err(_) => (named.clone(), None),
        };
        let name = place.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}.tmp", std::process::id()));
        let beside = place.with_file_name(beside);
        let file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        let new = Self { named, file, moves: Some((beside, place)) };
        // Who may read or run the file stays as it was.
        mode.map_or(Ok(()), |mode| new.file.set_permissions(mode))?;
        Ok(new)
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        match self.file.write_all(bytes) {
            // Whoever read the pipe has seen enough.
            Err(e) if self.moves.is_none() && e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|e| CliError::write(self.named.clone(), e)),
        }
    }

    /// Puts the file in its place.
    pub fn finish(mut self) -> Result<(), CliError> {
        match &self.moves {
            Some((beside, place)) => {
                fs::rename(beside, place).map_err(|e| CliError::write(self.named.clone(), e))?;
                self.moves = None;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some((beside, _)) = &self.moves {
            let _ = fs::remove_file(beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_appear_whole_and_leave_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        write_file(&path, b"one").unwrap();
        write_file(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        write_file(&path, b"new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    }

    #[test]
    fn a_link_keeps_being_one() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = write_file(&dir.path().join("no/such/folder.json"), b"x").unwrap_err();
        assert!(error.to_string().contains("folder.json cannot be written"), "{error}");
        let error = write_file(dir.path(), b"x").unwrap_err();
        assert!(error.to_string().contains("cannot be written"), "{error}");
        write_file(Path::new("/dev/null"), b"x").unwrap();
    }
}
