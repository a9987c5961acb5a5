//! What the user says of servers: which are spoken to, and how.

use std::time::Duration;

use crate::model::Platform;

/// How images are opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Registry hosts (`host` or `host:port`) that are spoken to without TLS. Loopback hosts always may be.
    pub insecure: Vec<String>,
    /// The platform asked for, for servers that must choose before they answer.
    pub platform: Option<Platform>,
    pub connect_timeout: Duration,
    /// The longest silence of a server in the middle of an answer.
    pub read_timeout: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            insecure: Vec::new(),
            platform: None,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(20),
        }
    }
}
