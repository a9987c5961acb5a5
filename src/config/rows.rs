//! `--rules DIR`: the user's rows, merged over those of the catalog.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::date::Date;
use super::spans::{ConfigError, Source};
use crate::catalog::Catalog;
use crate::catalog::merge::{Addition, MergeError, file_names};
use crate::catalog::names::nearest;

/// The most bytes of a file of rows; the largest embedded one has a tenth of a MiB.
const MOST_BYTES: u64 = 8 << 20;

/// The embedded catalog with the rows of a folder merged over it. Messages call the files as `dir` does.
pub fn load_rows(dir: &Path) -> Result<Catalog, ConfigError> {
    let additions = read(dir)?;
    let pointed = |file: &str, point: &dyn Fn(Source<'_>) -> ConfigError| {
        let text = additions.iter().find(|a| a.file == file).map_or("", |a| a.text.as_str());
        point(Source { file: &shown(dir, file), text })
    };
    let catalog = Catalog::with_rows(&additions).map_err(|error| match error {
        MergeError::At { file, span, message, help } => {
            pointed(&file, &|source| source.error(span.clone(), &message, help.clone()))
        }
        MergeError::Syntax { file, source } => pointed(&file, &|place| place.toml(&source)),
        MergeError::NoSuchFile { file } => unknown(dir, &file),
        MergeError::Whole(error) => of_folder(dir, format!("with these rows the tables break a law: {error}")),
    })?;
    if catalog.as_of().parse::<Date>().is_err() {
        return Err(pointed("catalog.toml", &|source| {
            let at = source.text.find("as_of").unwrap_or_default();
            source.error(at..at + 5, "`as_of` is not a day; write YYYY-MM-DD", None)
        }));
    }
    Ok(catalog)
}

/// The folder's files, by name. Names that begin with a dot are left alone (Kubernetes keeps versions of mounted
/// files there), and so are Markdown files: a folder of rules may say what it is for.
fn read(dir: &Path) -> Result<Vec<Addition>, ConfigError> {
    let failed = |source| ConfigError::Read { file: dir.display().to_string(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && !name.ends_with(".md") {
            names.push(name);
        }
    }
    names.sort();
    if let Some(other) = names.iter().find(|name| !file_names().any(|known| known == name.as_str())) {
        return Err(unknown(dir, other));
    }
    if names.is_empty() {
        let known: Vec<&str> = file_names().collect();
        return Err(of_folder(dir, format!("holds no tables; it may hold {}", known.join(", "))));
    }
    names.into_iter().map(|file| Ok(Addition { text: text(dir, &file)?, file })).collect()
}

fn text(dir: &Path, file: &str) -> Result<String, ConfigError> {
    let place = shown(dir, file);
    let failed = |source| ConfigError::Read { file: place.clone(), source };
    let path = dir.join(file);
    // A pipe would be waited for, and may never end.
    if !std::fs::metadata(&path).map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::other("is no regular file")));
    }
    let mut text = String::new();
    let length =
        File::open(&path).and_then(|f| f.take(MOST_BYTES + 1).read_to_string(&mut text)).map_err(failed)?;
    if length as u64 > MOST_BYTES {
        return Err(failed(std::io::Error::other(format!("larger than {} MiB", MOST_BYTES >> 20))));
    }
    Ok(text)
}

fn unknown(dir: &Path, file: &str) -> ConfigError {
    let what = match nearest(file, file_names(), 1).first() {
        Some(near) => format!("no table is called so; did you mean {near}?"),
        None => format!("no table is called so; there are {}", file_names().collect::<Vec<_>>().join(", ")),
    };
    ConfigError::Rows { place: shown(dir, file), what }
}

fn of_folder(dir: &Path, what: String) -> ConfigError {
    ConfigError::Rows { place: dir.display().to_string(), what }
}

fn shown(dir: &Path, file: &str) -> String {
    dir.join(file).display().to_string()
}
