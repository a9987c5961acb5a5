//! Which cache a scan uses, and `imagelint cache`.

use std::path::PathBuf;

use super::args::{CacheAction, CacheArgs, CacheCommandArgs, CacheFolder};
use super::error::CliError;
use super::output::Screen;
use crate::report::text::{bytes, count};
use crate::scan::cache::{Cache, Keep};

pub fn run(args: &CacheCommandArgs, screen: &Screen) -> Result<u8, CliError> {
    let root = folder(&args.folder).ok_or(CliError::NoCache)?;
    let failed = |e: std::io::Error| CliError::read(&root, e);
    let cache = Cache::existing(&root);
    let text = match (&args.action, &cache) {
        (CacheAction::Path, _) => root.display().to_string(),
        (_, None) => format!("{}: no cache yet", root.display()),
        (CacheAction::Size, Some(cache)) => {
            let size = cache.size().map_err(failed)?;
            let layers = count(usize::try_from(size.layers).unwrap_or(usize::MAX), "layer", "layers");
            format!("{}: {layers}, {}", root.display(), bytes(size.bytes))
        }
        (CacheAction::Prune(prune), Some(cache)) => {
            let pruned = match prune.all {
                true => cache.clear(),
                false => cache.prune(&Keep { used_within: prune.unused_for, max_bytes: prune.max_size }),
            };
            let (pruned, left) = (pruned.map_err(failed)?, cache.size().map_err(failed)?);
            let files = count(usize::try_from(pruned.files).unwrap_or(usize::MAX), "file", "files");
            format!("{files} ({}) taken out, {} left", bytes(pruned.bytes), bytes(left.bytes))
        }
    };
    screen.print(format!("{text}\n").as_bytes())?;
    Ok(0)
}

/// The folder that is named, or the user's own.
fn folder(args: &CacheFolder) -> Option<PathBuf> {
    let named = args.cache_dir.clone().filter(|dir| !dir.as_os_str().is_empty());
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    named.or_else(|| {
        let caches = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        Some(caches?.join("imagelint"))
    })
}

/// The cache that a scan uses; none if it is not wanted, or there can be none.
pub fn open(args: &CacheArgs, screen: &Screen) -> Option<Cache> {
    if args.no_cache {
        return None;
    }
    let root = folder(&args.folder)?;
    match Cache::open(&root) {
        Ok(cache) => Some(cache),
        Err(e) => {
            // Where nobody asked for one (a container without a home), its absence is no news.
            if args.folder.cache_dir.is_some() || screen.verbose() > 0 {
                screen.notice(&format!("no cache: {}: {e}", root.display()));
            }
            None
        }
    }
}

/// One for this run alone: for several images that are to share what they have in common.
pub fn temporary() -> Option<(tempfile::TempDir, Cache)> {
    let folder = tempfile::Builder::new().prefix("imagelint-").tempdir().ok()?;
    let cache = Cache::open(folder.path()).ok()?;
    Some((folder, cache))
}
