//! How registries are spoken to.

/// Whom to trust, and who one is.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerArgs {
    /// Registry that is spoken to without TLS; again for more (loopback always may be)
    #[arg(long = "insecure-registry", value_name = "HOST[:PORT]", help_heading = "Registry")]
    pub insecure_registries: Vec<String>,
}
