//! Which targets a command line means.

use std::path::{Path, PathBuf};

use super::args::ImageArgs;
use super::error::CliError;
use super::output::Screen;
use crate::catalog::Catalog;
use crate::config::{self, Fleet};
use crate::model::Platform;

const FILE: &str = "imagelint.toml";

/// `--fleet`, else the nearest imagelint.toml. Targets on the command line join those of `--fleet`, and stand in for
/// those of a file that was merely found.
pub fn choose(args: &ImageArgs, catalog: &Catalog, screen: &Screen) -> Result<Fleet, CliError> {
    let found = match &args.fleet {
        Some(_) => None,
        None => std::env::current_dir().ok().and_then(|here| upward(&here)),
    };
    let mut fleet = match args.fleet.as_ref().or(found.as_ref()) {
        Some(path) => Fleet::load(path, catalog)?,
        None => Fleet::default(),
    };
    if found.is_some() {
        if args.targets.is_empty() {
            screen.notice(&format!("targets are those of {FILE}, found here or in a folder above"));
        } else {
            fleet.targets.clear();
        }
    }
    for text in &args.targets {
        fleet.targets.push(config::parse_target(text, catalog)?);
    }
    Ok(fleet)
}

fn upward(from: &Path) -> Option<PathBuf> {
    from.ancestors().map(|folder| folder.join(FILE)).find(|path| path.is_file())
}

/// Platforms to take of an index: the one that was asked for, else each target's own.
pub fn platforms(args: &ImageArgs, fleet: &Fleet) -> Vec<Platform> {
    if let Some(platform) = &args.platform {
        return vec![platform.clone()];
    }
    let mut wanted = Vec::new();
    for target in &fleet.targets {
        let platform = target.platforms.first().cloned().unwrap_or_default();
        if !wanted.contains(&platform) {
            wanted.push(platform);
        }
    }
    // The default alone is no wish: an image that has another platform only is judged on that.
    if wanted == [Platform::default()] {
        wanted.clear();
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_upward_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(dir.path().join("a").join(FILE), "").unwrap();
        std::fs::create_dir(dir.path().join("a/b").join(FILE)).unwrap();
        assert_eq!(upward(&deep), Some(dir.path().join("a").join(FILE)), "a folder of that name is passed over");
    }
}
