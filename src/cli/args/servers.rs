//! How registries are spoken to.

use std::path::PathBuf;

use crate::image::sources::Mirror;

/// Whom to trust, and who one is.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerArgs {
    /// Name to log in with at the image's registry; the password is read from standard input
    #[arg(long, value_name = "NAME", requires = "password_stdin", help_heading = "Registry")]
    pub username: Option<String>,
    /// Read the password, or a token in its place, from standard input
    #[arg(long, requires = "username", help_heading = "Registry")]
    pub password_stdin: bool,
    /// File of logins, as docker and podman write it [default: REGISTRY_AUTH_FILE, else DOCKER_AUTH_CONFIG, podman's
    /// auth.json, docker's config.json]
    #[arg(long, value_name = "FILE", help_heading = "Registry")]
    pub authfile: Option<PathBuf>,
    /// Token server on another host that may get the registry's credentials; again for more
    #[arg(long = "allow-auth-host", value_name = "HOST[:PORT]", help_heading = "Registry")]
    pub auth_hosts: Vec<String>,
    /// Authorities to trust besides the system's and the public ones, in PEM form
    #[arg(long, value_name = "FILE", help_heading = "Registry")]
    pub ca_file: Option<PathBuf>,
    /// Registry that is spoken to without TLS or without looking at its certificate; again for more (loopback may
    /// always be spoken to without TLS)
    #[arg(long = "insecure-registry", value_name = "HOST[:PORT]", help_heading = "Registry")]
    pub insecure_registries: Vec<String>,
    /// Place to look first for images of NAME, a registry or a path in it [default: docker.io], as in
    /// nvcr.io=mirror.example/nvcr; again for more, tried in order
    #[arg(long = "mirror", value_name = "[NAME=]HOST[:PORT][/PATH]", help_heading = "Registry")]
    pub mirrors: Vec<Mirror>,
    /// Longest silence of a server before it is given up [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = "Registry")]
    pub read_timeout: Option<u64>,
}
