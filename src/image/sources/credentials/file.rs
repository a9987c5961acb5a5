//! `config.json` and `auth.json`: logins by registry, or by registry and path.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use super::super::super::ImageError;
use super::super::hosts;
use super::super::manifest::malformed;
use super::Credential;

/// The largest file of logins.
const MAX_FILE: u64 = 1 << 20;

/// Files that were written by hand may lack the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct AuthFile {
    auths: Option<BTreeMap<String, Option<Entry>>>,
    #[serde(rename = "credHelpers")]
    helpers: Option<BTreeMap<String, String>>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    /// `NAME:PASSWORD` in base64.
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

/// Reads a file of logins; `None`: there is none.
pub fn read(path: &Path, name: &str, required: bool) -> Result<Option<AuthFile>, ImageError> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|f| f.take(MAX_FILE + 1).read_to_end(&mut bytes)) {
        Err(e) if !required && matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(ImageError::Io { place: format!("logins of registries, {name}"), source }),
        Ok(n) if n as u64 > MAX_FILE => Err(malformed(name, "too large for a file of registry logins")),
        Ok(_) => parse(&bytes, name).map(Some),
    }
}

/// Reads the text of a file of logins. What is wrong is told by its place: the text holds secrets.
pub fn parse(bytes: &[u8], name: &str) -> Result<AuthFile, ImageError> {
    if bytes.trim_ascii().is_empty() {
        return Ok(AuthFile::default());
    }
    serde_json::from_slice(bytes).map_err(|e| {
        let what = format!("no valid file of registry logins (line {}, column {})", e.line(), e.column());
        malformed(name, what)
    })
}

impl AuthFile {
    /// The helper of a registry.
    pub fn helper(&self, registry: &str) -> Option<&str> {
        let helpers = self.helpers.as_ref()?;
        helpers.iter().find(|(key, _)| normal(key) == registry).map(|(_, helper)| helper.as_str())
    }

    /// The helper of all registries that have none of their own.
    pub fn store(&self) -> Option<&str> {
        self.store.as_deref().filter(|s| !s.is_empty())
    }

    /// How the file spells a registry whose login a helper keeps.
    pub fn spelling(&self, registry: &str) -> Option<String> {
        self.auths.as_ref()?.keys().find(|key| normal(key) == registry).cloned()
    }

    /// The login with the longest key that covers the repository. The key of one that cannot be read is the error.
    pub fn stored(&self, registry: &str, repository: &str) -> Result<Option<Credential>, String> {
        let Some(auths) = &self.auths else { return Ok(None) };
        let full = format!("{registry}/{repository}");
        let ends = full.char_indices().rev().filter(|(_, c)| *c == '/').map(|(at, _)| &full[..at]);
        for wanted in std::iter::once(full.as_str()).chain(ends) {
            let entries = auths.iter().filter(|(key, _)| normal(key) == wanted);
            for (key, entry) in entries.filter_map(|(key, entry)| Some((key, entry.as_ref()?))) {
                if let Some(credential) = entry.credential().map_err(|()| key.clone())? {
                    return Ok(Some(credential));
                }
            }
        }
        Ok(None)
    }
}

impl Entry {
    fn credential(&self) -> Result<Option<Credential>, ()> {
        let said = |text: &Option<String>| text.clone().filter(|t| !t.is_empty());
        let (mut username, mut password) =
            (said(&self.username).unwrap_or_default(), said(&self.password).unwrap_or_default());
        if let Some(auth) = said(&self.auth) {
            let bytes = BASE64.decode(auth.trim()).map_err(|_| ())?;
            let text = String::from_utf8(bytes).map_err(|_| ())?;
            let (name, word) = text.split_once(':').ok_or(())?;
            username = name.to_owned();
            // Docker pads what it encodes.
            password = word.trim_end_matches('\0').to_owned();
        }
        let is_token = |t: &str| t.bytes().all(|b| b.is_ascii_graphic());
        if let Some(token) = said(&self.registrytoken) {
            return if is_token(&token) { Ok(Some(Credential::Registry(token))) } else { Err(()) };
        }
        if let Some(token) = said(&self.identitytoken) {
            return Ok(Some(Credential::Identity { token, username, password }));
        }
        let empty = username.is_empty() && password.is_empty();
        Ok((!empty).then_some(Credential::Password { username, password }))
    }
}

/// A key as it is compared: docker writes addresses (`https://index.docker.io/v1/`), podman names with or without a
/// path.
fn normal(key: &str) -> String {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://"));
    let name = match bare {
        // The path of an address is that of an interface, not of images.
        Some(address) => address.split('/').next().unwrap_or_default(),
        None => {
            let key = key.trim_end_matches('/');
            key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key)
        }
    };
    match name.split_once('/') {
        Some((host, path)) => format!("{}/{path}", hosts::canonical(host)),
        None => hosts::canonical(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str, registry: &str, repository: &str) -> Option<String> {
        let file = parse(text.as_bytes(), "x").unwrap();
        match file.stored(registry, repository).unwrap()? {
            Credential::Password { username, .. } => Some(username),
            Credential::Identity { token, .. } => Some(format!("identity {token}")),
            Credential::Registry(token) => Some(format!("registry {token}")),
        }
    }

    #[test]
    fn the_longest_key_counts() {
        let text = r#"{"auths":{
            "r.io":{"username":"host","password":"p"},
            "r.io/a":{"username":"a","password":"p"},
            "r.io/a/b":{"username":"ab","password":"p"},
            "r.io/a/b/empty":{},
            "r.io:5000":null}}"#;
        assert_eq!(user(text, "r.io", "a/b").unwrap(), "ab");
        assert_eq!(user(text, "r.io", "a/b/empty").unwrap(), "ab");
        assert_eq!(user(text, "r.io", "a/bc").unwrap(), "a");
        assert_eq!(user(text, "r.io", "ab").unwrap(), "host");
        assert_eq!(user(text, "r.io:5000", "a"), None);
        assert_eq!(user(text, "s.io", "a"), None);
        assert_eq!(user("", "s.io", "a"), None);
    }

    #[test]
    fn docker_hub_and_addresses_are_spelled_in_many_ways() {
        for key in [
            "https://index.docker.io/v1/",
            "index.docker.io",
            "docker.io",
            "registry-1.docker.io",
            "https://docker.io",
        ] {
            let text = format!(r#"{{"auths":{{"{key}":{{"auth":"dTpw"}}}}}}"#);
            assert_eq!(user(&text, "docker.io", "library/x").as_deref(), Some("u"), "{key}");
        }
        for key in ["https://r.io/v2/", "R.io", "r.io/v1/", "http://r.io", "r.io/"] {
            let text = format!(r#"{{"auths":{{"{key}":{{"auth":"dTpw"}}}}}}"#);
            assert_eq!(user(&text, "r.io", "x").as_deref(), Some("u"), "{key}");
        }
        let file = parse(br#"{"auths":{"https://r.io":{}},"credsStore":"x"}"#, "x").unwrap();
        assert_eq!((file.spelling("r.io").as_deref(), file.store()), (Some("https://r.io"), Some("x")));
    }

    #[test]
    fn every_kind_of_login() {
        let one = |entry: &str| user(&format!(r#"{{"auths":{{"r.io":{entry}}}}}"#), "r.io", "x");
        assert_eq!(one(r#"{"auth":"dTpwOnEAAA=="}"#).unwrap(), "u");
        assert_eq!(one(r#"{"auth":"dTpwOnEAAA"}"#).unwrap(), "u");
        // As `az acr login` writes it.
        let azure = r#"{"auth":"MDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwOg==","identitytoken":"t"}"#;
        assert_eq!(one(azure).unwrap(), "identity t");
        assert_eq!(one(r#"{"registrytoken":"r"}"#).unwrap(), "registry r");
        assert_eq!(one("{}"), None);
    }
}
