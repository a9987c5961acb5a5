//! Where facts of layers are kept, and the command that looks after them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::read::size;

/// Which cache is used.
#[derive(Debug, Clone, Default, Args)]
pub struct CacheArgs {
    /// Read every layer anew, and keep nothing of it
    #[arg(long, env = "IMAGELINT_NO_CACHE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Scan")]
    pub no_cache: bool,
    #[command(flatten)]
    pub folder: CacheFolder,
}

#[derive(Debug, Clone, Default, Args)]
pub struct CacheFolder {
    /// Folder of the cache [default: imagelint in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR", env = "IMAGELINT_CACHE_DIR", hide_env_values = true, help_heading = "Scan")]
    pub cache_dir: Option<PathBuf>,
}

pub const HELP: &str = "\
What was found in a layer is kept under its diff_id, so that it is not read twice: not by the next
scan, not for another image on the same base. Facts only, some hundred KiB a layer; no file of the
image.

Examples:
  imagelint cache size
  imagelint cache prune                              what is damaged, or of other versions
  imagelint cache prune --unused-for 30d --max-size 1GiB
  imagelint cache prune --all";

#[derive(Debug, Args)]
pub struct CacheCommandArgs {
    #[command(flatten)]
    pub folder: CacheFolder,
    #[command(subcommand)]
    pub action: CacheAction,
}

#[derive(Debug, Subcommand)]
pub enum CacheAction {
    /// Print the folder
    Path,
    /// Count what is in it
    Size,
    /// Take out what is of no use, and what is asked for
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Take out what no scan has used for that long, as in 30d, 12h
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub unused_for: Option<Duration>,
    /// Leave at most that much, the last used first, as in 1GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    /// Take out everything
    #[arg(long, conflicts_with_all = ["unused_for", "max_size"])]
    pub all: bool,
}

/// `90m`, `12h`, `30d`, `8w`.
fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "give a time such as 30d or 12h".to_owned();
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (digits, unit) = text.split_at(at);
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        "w" => 7 * 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let seconds = |text: &str| time(text).map(|t| t.as_secs());
        assert_eq!((seconds("90m"), seconds("30d"), seconds("0s")), (Ok(5400), Ok(2_592_000), Ok(0)));
        for wrong in ["", "30", "d", "1y", "-1d", "1.5h", "99999999999999999w"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
