//! Flags of looking into wheels before they are proposed.

use super::read::size;

#[derive(Debug, Clone, clap::Args)]
pub struct WheelArgs {
    /// Look into each wheel that a step names, on its index, before it is proposed; nothing is installed
    #[arg(long, help_heading = "Wheels")]
    pub check_wheels: bool,
    /// Index of packages that no step names an index for [default: pip's own setting]
    #[arg(long, value_name = "URL", requires = "check_wheels", help_heading = "Wheels")]
    pub index_url: Option<String>,
    /// Most of one wheel that may be transferred [default: 6GiB]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "check_wheels", help_heading = "Wheels")]
    pub max_wheel_size: Option<u64>,
}
