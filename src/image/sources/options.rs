//! What the user says of servers: which are spoken to, and how. Set before the first image is opened, and then the
//! same for all: what was learned with them is kept.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::super::http::{DELAY, Pool, Roots, host_of};
use super::credentials::{Answered, Login};
use super::mirrors::Mirror;
use crate::model::Platform;

/// How images are opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Registry hosts (`host` or `host:port`) that are spoken to without TLS, or whose certificate is not looked at.
    /// Loopback hosts may always be spoken to without TLS.
    pub insecure: Vec<String>,
    /// The platform asked for, for servers that must choose before they answer.
    pub platform: Option<Platform>,
    pub connect_timeout: Duration,
    /// The longest silence of a server in the middle of an answer.
    pub read_timeout: Duration,
    /// The pause before something is tried again; each further one is twice as long.
    pub retry_delay: Duration,
    /// PEM file of authorities that are trusted besides the system's and the public ones.
    pub ca_file: Option<PathBuf>,
    /// Name and password for the one registry that is named.
    pub login: Option<Arc<Login>>,
    /// The only file that credentials are looked up in.
    pub auth_file: Option<PathBuf>,
    /// Hosts of token servers that may get a registry's credentials although they are another host.
    pub auth_hosts: Vec<String>,
    /// Where to look first, by the name of what is looked for.
    pub mirrors: Vec<Mirror>,
    /// Standard input was read for the password.
    pub stdin_is_read: bool,
    /// Is told of each request.
    pub trace: Option<Trace>,
    pub machine: Machine,
    pub shared: Shared,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            insecure: Vec::new(),
            platform: None,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(20),
            retry_delay: DELAY,
            ca_file: None,
            login: None,
            auth_file: None,
            auth_hosts: Vec::new(),
            mirrors: Vec::new(),
            stdin_is_read: false,
            trace: None,
            machine: Machine::default(),
            shared: Shared::default(),
        }
    }
}

impl OpenOptions {
    /// Whether the user named this host (`host` or `host:port`) as insecure.
    pub fn is_insecure(&self, host: &str) -> bool {
        let name = host_of(host);
        self.insecure.iter().any(|named| named.eq_ignore_ascii_case(host) || named.eq_ignore_ascii_case(name))
    }
}

/// What is kept between images.
#[derive(Clone, Default)]
pub struct Shared {
    pub(in super::super) agents: Arc<Pool>,
    pub(in super::super) roots: Arc<Roots>,
    /// What credential helpers have answered.
    pub(super) helpers: Arc<Mutex<HashMap<(String, String), Answered>>>,
    /// The registry that [`OpenOptions::login`] is for: the first that was named.
    pub(super) login_for: Arc<OnceLock<String>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// Takes one line for each request. There are no secrets in it.
#[derive(Clone)]
pub struct Trace(Arc<dyn Fn(&str) + Send + Sync>);

impl Trace {
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub fn tell(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace")
    }
}

/// Where this machine's settings are.
#[derive(Clone)]
pub struct Machine {
    /// `None`: the environment itself.
    vars: Option<BTreeMap<String, OsString>>,
    pub etc: PathBuf,
}

impl Default for Machine {
    fn default() -> Self {
        Self { vars: None, etc: PathBuf::from("/etc") }
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Machine")
    }
}

impl Machine {
    /// A machine with this environment alone.
    #[cfg(test)]
    pub fn with(vars: &[(&str, &str)]) -> Self {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
        Self { vars: Some(vars), etc: PathBuf::from("/nonexistent") }
    }

    fn raw(&self, name: &str) -> Option<OsString> {
        match &self.vars {
            Some(vars) => vars.get(name).cloned(),
            None => std::env::var_os(name),
        }
    }

    /// A variable, empty where it is set to nothing.
    pub fn var(&self, name: &str) -> Option<String> {
        self.raw(name)?.into_string().ok()
    }

    /// A variable that names a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).filter(|v| !v.is_empty()).map(PathBuf::from)
    }

    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME")
    }

    /// Where a user's settings are.
    pub fn config_home(&self) -> Option<PathBuf> {
        let named = self.path("XDG_CONFIG_HOME").filter(|p| p.is_absolute());
        named.or_else(|| Some(self.home()?.join(".config")))
    }

    /// A path as messages name it, short for what is the user's own.
    pub fn shown(&self, path: &std::path::Path) -> String {
        let inside = self.home().filter(|h| h.as_os_str() != "/");
        let inside = inside.and_then(|home| path.strip_prefix(home).ok().map(|p| format!("~/{}", p.display())));
        super::shown(&inside.unwrap_or_else(|| path.display().to_string()))
    }
}
