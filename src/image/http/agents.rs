//! One agent for each origin, since each has its own proxy, authorities and client's certificate. Kept between images:
//! connections are used again, and roots read once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::RootCerts;

use super::super::ImageError;
use super::super::sources::OpenOptions;
use super::address::place_of;
use super::{proxy, trust};

/// Agents by what they may speak to.
#[derive(Default)]
pub struct Pool {
    made: Mutex<HashMap<Key, Spoken>>,
}

/// An origin, and whether its certificate counts.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    https: bool,
    insecure: bool,
    host: String,
}

/// Who speaks to an origin.
#[derive(Clone)]
pub struct Spoken {
    pub agent: Agent,
    /// The variable that names the proxy in between.
    pub via: Option<&'static str>,
}

/// Makes agents as the user's settings say.
pub struct Agents {
    options: OpenOptions,
    /// Authorities to believe instead of all others, and the agents that do.
    own: Option<(RootCerts, Pool)>,
}

impl Agents {
    pub fn new(options: &OpenOptions, roots: Option<&RootCerts>) -> Self {
        Self { options: options.clone(), own: roots.map(|r| (r.clone(), Pool::default())) }
    }

    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    pub fn of(&self, url: &Uri) -> Result<Spoken, ImageError> {
        let host = place_of(url);
        let insecure = self.options.is_insecure(&host);
        let key = Key { https: url.scheme_str() == Some("https"), insecure, host };
        let pool = self.own.as_ref().map_or(&*self.options.shared.agents, |(_, pool)| pool);
        let mut made = pool.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spoken) = made.get(&key) {
            return Ok(spoken.clone());
        }
        let spoken = self.make(url, &key)?;
        made.insert(key, spoken.clone());
        Ok(spoken)
    }

    fn make(&self, url: &Uri, Key { https, host, .. }: &Key) -> Result<Spoken, ImageError> {
        let options = &self.options;
        let via = proxy::of(url, &options.machine).map_err(|what| ImageError::Network {
            host: host.clone(),
            what,
            hint: "set it to http://HOST:PORT, or unset it".to_owned(),
        })?;
        // A proxy may be spoken to with TLS itself, whatever is behind it.
        let needs_tls = *https || via.is_some();
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(options.connect_timeout))
            .timeout_connect(Some(options.connect_timeout))
            .timeout_recv_response(Some(options.read_timeout))
            .timeout_per_read(Some(options.read_timeout))
            .user_agent(concat!("imagelint/", env!("CARGO_PKG_VERSION")))
            .proxy(via.as_ref().map(|v| v.proxy.clone()));
        if needs_tls {
            config = config.tls_config(trust::of(host, self.own.as_ref().map(|(r, _)| r), options)?);
        }
        Ok(Spoken { agent: config.build().new_agent(), via: via.map(|v| v.variable) })
    }
}
