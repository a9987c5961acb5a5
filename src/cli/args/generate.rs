//! What the commands take that write what the program's own sources imply.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub struct GenerateArgs {
    /// Write nothing: exit 1 where a file is not as it would be written
    #[arg(long)]
    pub check: bool,
    /// The repository's root
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
}
