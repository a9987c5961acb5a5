//! How images are read, for every command that reads one.

use super::{CacheArgs, ServerArgs};

/// How images are read.
#[derive(Debug, Clone, clap::Args)]
pub struct ReadArgs {
    /// Worker threads [default: one per core]
    #[arg(long, short, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Scan")]
    pub jobs: usize,
    #[command(flatten)]
    pub servers: ServerArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Most that one layer may unpack to, as in 64GiB
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Scan")]
    pub max_layer_size: Option<u64>,
    /// Most times its stored size that a layer may unpack to, once past 1 GiB [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Scan")]
    pub max_ratio: Option<u64>,
}

/// `1048576`, `64GiB`, `10GB`, `512M`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || "give a size such as 64GiB".to_owned();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).filter(|&n| n > 0).ok_or_else(wrong)
}
